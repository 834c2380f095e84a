#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli.h"
#include "test_support.h"

enum { MOST = 24 };

static kilter_status parse_for(sp_command command, const char *line, sp_options *options, char *text,
                               kilter_error *error) {
    char *argument[MOST];
    int count = 0;
    strcpy(text, line);
    for (char *word = strtok(text, " "); word && count < MOST; word = strtok(NULL, " "))
        argument[count++] = word;
    return sp_options_parse(command, count, argument, options, error);
}

static kilter_status parse(const char *line, sp_options *options, char *text, kilter_error *error) {
    return parse_for(SP_EVALUATE_COMMAND, line, options, text, error);
}

static void options_stand_anywhere(void **state) {
    (void)state;
    static const char *const LINE[] = {
        "c t s --at x --scenarios 100 --seed 7 --confidence 99 --json",
        "--json --seed=7 c --at=x t --confidence=99.0 s --scenarios=100",
        "--json --seed 7 --at x --confidence 99 --scenarios 100 -- c t s",
    };
    for (size_t i = 0; i < sizeof LINE / sizeof *LINE; i++) {
        char text[256];
        sp_options o;
        kilter_error error = {.text = ""};
        if (parse(LINE[i], &o, text, &error))
            fail_msg("%s", error.text);
        assert_string_equal(o.core, "c");
        assert_string_equal(o.time, "t");
        assert_string_equal(o.stoch, "s");
        assert_string_equal(o.at, "x");
        assert_true(o.scenarios == 100 && o.seed == 7 && o.confidence == 99 && o.json);
    }
}

static void defaults_are_seed_1_and_95_percent(void **state) {
    (void)state;
    char text[256];
    sp_options o;
    assert_int_equal(parse("c t s --at x --scenarios 1000000000", &o, text, NULL), KILTER_OK);
    assert_true(o.seed == 1 && o.confidence == 95 && !o.json && o.scenarios == 1000000000);
    assert_int_equal(parse("c t s --at x --scenarios 1 --seed 18446744073709551615", &o, text, NULL),
                     KILTER_OK);
    assert_true(o.seed == UINT64_MAX);
}

static void wrong_options_are_named(void **state) {
    (void)state;
    static const char *const CASE[][2] = {
        {"", "one of the three files"},
        {"c t --at x --scenarios 5", "one of the three files"},
        {"c t s u --at x --scenarios 5", "u is one file too many"},
        {"c t s --scenarios 5", "the first-stage decision (--at FILE) is missing"},
        {"c t s --at x", "the number of scenarios to sample (--scenarios N) is missing"},
        {"c t s --at x --scenarios 0", "--scenarios 0; give a whole number from 1"},
        {"c t s --at x --scenarios -5", "--scenarios -5;"},
        {"c t s --at x --scenarios 1e6", "--scenarios 1e6;"},
        {"c t s --at x --scenarios 1000000001", "--scenarios 1000000001;"},
        {"c t s --at x --scenarios 99999999999999999999999", "--scenarios 99999999999999999999999;"},
        {"c t s --at x --scenarios", "--scenarios has no value; give N"},
        {"c t s --at x --scenarios=", "--scenarios ;"},
        {"c t s --at= --scenarios 5", "an option has no file"},
        {"c t s --at x --scenarios 5 --scenarios 6", "--scenarios is given twice"},
        {"c t s --at x --scenarios 5 --seed -1", "--seed -1;"},
        {"c t s --at x --scenarios 5 --seed 18446744073709551616", "--seed 18446744073709551616;"},
        {"c t s --at x --scenarios 5 --confidence 0", "--confidence 0;"},
        {"c t s --at x --scenarios 5 --confidence 100", "--confidence 100;"},
        {"c t s --at x --scenarios 5 --confidence nan", "--confidence nan;"},
        {"c t s --at x --scenarios 5 --confidence 5x", "--confidence 5x;"},
        {"c t s --at x --scenarios 5 --sed 5", "there is no option --sed"},
        {"c t s --at x --scenario 5", "there is no option --scenario;"},
        {"c t s --at x --scenarios 5 -v", "there is no option -v"},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        char text[256];
        sp_options o = {.seed = 42};
        kilter_error error = {.text = ""};
        assert_int_equal(parse(CASE[i][0], &o, text, &error), KILTER_ERR_USAGE);
        if (!strstr(error.text, CASE[i][1]))
            fail_msg("\"%s\" is not \"%s\"", error.text, CASE[i][1]);
        assert_true(o.seed == 42); /* after an error the options are unchanged */
    }
}

static void options_of_solve_are_read(void **state) {
    (void)state;
    char text[256];
    sp_options o;
    assert_int_equal(parse_for(SP_SOLVE_COMMAND, "c t s --scenarios 9", &o, text, NULL), KILTER_OK);
    assert_true(o.scenarios == 9 && o.seed == 1 && o.gap == 1e-6 && o.clusters == 0 && o.check == 10000);
    assert_true(o.basket == 1 && !o.fast && !o.extensive && !o.latin && !o.json && !o.at && !o.mps &&
                !o.decision);
    assert_int_equal(
        parse_for(SP_SOLVE_COMMAND,
                  "--grow=10,200,3000 c --mode fast t --method=tr --lhs --gap 1e-4 s --clusters 7 "
                  "--basket 3 --check 0 --start a --mps m --decision d --json",
                  &o, text, NULL),
        KILTER_OK);
    assert_true(o.grow.count == 3 && o.grow.scenarios[0] == 10 && o.grow.scenarios[2] == 3000);
    assert_true(o.basket == 3 && o.fast && !o.extensive && o.latin && o.json && o.gap == 1e-4 &&
                o.clusters == 7 && o.check == 0);
    assert_string_equal(o.at, "a");
    assert_string_equal(o.mps, "m");
    assert_string_equal(o.decision, "d");
    assert_int_equal(parse_for(SP_SOLVE_COMMAND, "c t s --scenarios all --check 0", &o, text, NULL),
                     KILTER_OK);
    assert_true(o.scenarios == 0 && o.grow.count == 0 && !o.extensive);
    assert_int_equal(parse_for(SP_SOLVE_COMMAND,
                               "c t s --scenarios 9 --method de --lhs --gap 1e-3 --check 7 --confidence 90 "
                               "--seed 3 --mps m --decision d",
                               &o, text, NULL),
                     KILTER_OK);
    assert_true(o.extensive && o.latin && o.scenarios == 9);
}

/* The benchmark never has more scenarios than the predicted sample, whether --benchmark is given or not. */
static void a_benchmark_may_be_larger_than_the_sample(void **state) {
    (void)state;
    char text[256];
    sp_options given, unless;
    assert_int_equal(
        parse_for(SP_PREDICT_COMMAND, "c t s --scenarios 300 --benchmark 500", &given, text, NULL),
        KILTER_OK);
    assert_int_equal(parse_for(SP_PREDICT_COMMAND, "c t s --scenarios 300", &unless, text, NULL), KILTER_OK);
    assert_true(given.benchmark == 500 && given.scenarios == 300);
    assert_true(unless.benchmark == given.benchmark && unless.scenarios == given.scenarios);
}

/* An option that has no effect together with another option is refused. */
static void options_without_effect_are_refused(void **state) {
    (void)state;
    static const struct {
        sp_command command;
        const char *line, *idle, *beside;
    } CASE[] = {
        {SP_SOLVE_COMMAND, "--scenarios 5 --method de --mode fast", "--mode", "--method de"},
        {SP_SOLVE_COMMAND, "--clusters 5 --scenarios 5 --method de", "--clusters", "--method de"},
        {SP_SOLVE_COMMAND, "--scenarios 5 --method de --basket 1", "--basket", "--method de"},
        {SP_SOLVE_COMMAND, "--scenarios 5 --start x --method de", "--start", "--method de"},
        {SP_SOLVE_COMMAND, "--grow 5,9 --method de", "--grow", "--method de"},
        {SP_SOLVE_COMMAND, "--lhs --scenarios all", "--lhs", "--scenarios all"},
        {SP_SOLVE_COMMAND, "--scenarios all --confidence 90", "--confidence", "--scenarios all"},
        {SP_SOLVE_COMMAND, "--scenarios all --check 9", "--check", "--scenarios all"},
        {SP_SOLVE_COMMAND, "--scenarios all --method de --seed 4", "--seed", "--method de"},
        {SP_SOLVE_COMMAND, "--scenarios all --start x --seed 4", "--seed", "--start"},
        {SP_SOLVE_COMMAND, "--scenarios 5 --check 0 --confidence 90", "--confidence", "--check 0"},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        char text[256], line[256];
        sp_options o = {.seed = 42};
        kilter_error error = {.text = ""};
        snprintf(line, sizeof line, "c t s %s", CASE[i].line);
        assert_int_equal(parse_for(CASE[i].command, line, &o, text, &error), KILTER_ERR_USAGE);
        if (!strstr(error.text, CASE[i].idle) || !strstr(error.text, CASE[i].beside))
            fail_msg("\"%s\" does not name %s and %s", error.text, CASE[i].idle, CASE[i].beside);
        assert_true(o.seed == 42);
    }
}

static void wrong_options_of_solve_are_named(void **state) {
    (void)state;
    static const char *const CASE[][2] = {
        {"c t s", "the number of scenarios to sample (--scenarios N) is missing"},
        {"c t s --scenarios 5 --at x", "there is no option --at; kilter-sp solve"},
        {"c t s --scenarios any", "--scenarios any; give a whole number from 1 to 1000000000, or all"},
        {"c t s --scenarios 0", "--scenarios 0; give a whole number from 1 to 1000000000, or all"},
        {"c t s --scenarios 5 --grow 5,6", "--scenarios and --grow cannot be combined"},
        {"c t s --grow 5,5", "--grow 5,5;"},
        {"c t s --grow 5,", "--grow 5,;"},
        {"c t s --grow 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "up to 16 growing numbers"},
        {"c t s --scenarios 5 --gap 2", "--gap 2; give a relative gap"},
        {"c t s --scenarios 5 --gap nan", "--gap nan;"},
        {"c t s --scenarios 5 --gap 1e-6x", "--gap 1e-6x;"},
        {"c t s --scenarios 5 --clusters 0", "--clusters 0;"},
        {"c t s --scenarios 5 --basket 0", "--basket 0; give a whole number from 1 to 64"},
        {"c t s --scenarios 5 --basket 65", "--basket 65;"},
        {"c t s --scenarios 5 --basket 2 --clusters auto",
         "give a number of clusters, or leave out --basket"},
        {"c t s --scenarios 5 --mode quick", "--mode quick; give reproducible or fast"},
        {"c t s --scenarios 5 --method pd", "--method pd; give tr or de"},
        {"c t s --scenarios 5 --lhs=yes", "there is no option --lhs=yes"},
        {"c t s --scenarios 5 --check -1", "--check -1;"},
        {"c t s --scenarios 5 --lhs --lhs", "--lhs is given twice"},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        char text[256];
        sp_options o = {.seed = 42};
        kilter_error error = {.text = ""};
        assert_int_equal(parse_for(SP_SOLVE_COMMAND, CASE[i][0], &o, text, &error), KILTER_ERR_USAGE);
        if (!strstr(error.text, CASE[i][1]))
            fail_msg("\"%s\" is not \"%s\"", error.text, CASE[i][1]);
        assert_true(o.seed == 42);
    }
}

static char *printed(void (*print)(FILE *, const sp_answer *), const sp_answer *answer) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    print(out, answer);
    fclose(out);
    return text;
}

static const sp_answer ANSWER = {.estimate = {0.1, 0.25, -0.4, 0.6},
                                 .confidence = 95,
                                 .scenarios = 1000,
                                 .seed = UINT64_MAX,
                                 .possible = 1e6,
                                 .elapsed_s = 0.5,
                                 .workers = 2,
                                 .decision = "it said \"yes\"\tand \\",
                                 .record = NULL};

static void json_is_exact_and_escaped(void **state) {
    (void)state;
    char *text = printed(sp_answer_print_json, &ANSWER);
    assert_string_equal(
        text, "{\"estimate\": 0.10000000000000001, \"estimate_bits\": \"0x3fb999999999999a\", "
              "\"standard_error\": 0.25, "
              "\"confidence_percent\": 95, \"low\": -0.40000000000000002, \"high\": 0.59999999999999998, "
              "\"scenarios\": 1000, \"seed\": 18446744073709551615, \"possible_scenarios\": 1000000, "
              "\"elapsed_s\": 0.5, \"scenarios_per_s\": 2000, \"workers\": 2, "
              "\"decision\": \"it said \\\"yes\\\"\\u0009and \\\\\", \"record\": null}\n");
    free(text);
}

static void unknown_numbers_are_null_in_json(void **state) {
    (void)state;
    sp_answer answer = ANSWER;
    answer.estimate.standard_error = answer.estimate.low = answer.estimate.high = NAN;
    answer.elapsed_s = 0;
    answer.possible = INFINITY;
    char *text = printed(sp_answer_print_json, &answer);
    assert_non_null(strstr(text, "\"standard_error\": null"));
    assert_non_null(strstr(text, "\"high\": null"));
    assert_non_null(strstr(text, "\"possible_scenarios\": null"));
    assert_non_null(strstr(text, "\"scenarios_per_s\": null"));
    free(text);
}

static void the_answer_for_people_has_its_lines(void **state) {
    (void)state;
    char *text = printed(sp_answer_print, &ANSWER);
    assert_string_equal(text, "expected cost  0.1\n"
                              "interval       -0.4 to 0.6 (95 %, standard error 0.25)\n"
                              "scenarios      1000 of 1e+06 possible, seed 18446744073709551615\n"
                              "time           0.500 s on 2 workers, 2000 scenarios/s\n"
                              "balance        it said \"yes\"\tand \\\n");
    free(text);
    sp_answer one = ANSWER;
    one.estimate.standard_error = NAN;
    text = printed(sp_answer_print, &one);
    assert_non_null(strstr(text, "not known from one scenario"));
    free(text);
}

static char *reason_for(double master_s, double farm_s) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    sp_basket_print(out, &(sp_times){master_s, farm_s});
    fclose(out);
    return text;
}

/* With two candidates at a time, master and workers can compute at the same time, but more candidates are
 * needed. So two at a time is faster only if master and workers take similar times. */
static void two_at_a_time_pay_where_master_and_workers_take_alike_long(void **state) {
    (void)state;
    assert_true(isnan(sp_basket_ratio(&(sp_times){0, 0})));
    double least = sp_basket_ratio(&(sp_times){1, 1});
    for (double master_s = 1.0 / 1024; master_s <= 1024; master_s *= 2) {
        double ratio = sp_basket_ratio(&(sp_times){master_s, 1});
        assert_true(ratio >= least && ratio <= 2 * least);
        assert_true(fabs(ratio - sp_basket_ratio(&(sp_times){1, master_s})) < 1e-12);
        char *text = reason_for(master_s, 1);
        assert_non_null(strstr(text, ratio < 0.95 ? "less: try --basket 2" : "longer"));
        free(text);
    }
    char *text = reason_for(0, 0);
    assert_string_equal(text, "one candidate at a time");
    free(text);
}

static void help_names_every_option(void **state) {
    (void)state;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    sp_command_usage(out, SP_EVALUATE_COMMAND);
    fclose(out);
    static const char *const NAME[] = {"--at", "--scenarios", "--seed", "--confidence", "--json", "--help"};
    for (size_t i = 0; i < sizeof NAME / sizeof *NAME; i++)
        assert_non_null(strstr(text, NAME[i]));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_stand_anywhere),
        cmocka_unit_test(defaults_are_seed_1_and_95_percent),
        cmocka_unit_test(wrong_options_are_named),
        cmocka_unit_test(options_of_solve_are_read),
        cmocka_unit_test(wrong_options_of_solve_are_named),
        cmocka_unit_test(a_benchmark_may_be_larger_than_the_sample),
        cmocka_unit_test(options_without_effect_are_refused),
        cmocka_unit_test(json_is_exact_and_escaped),
        cmocka_unit_test(unknown_numbers_are_null_in_json),
        cmocka_unit_test(the_answer_for_people_has_its_lines),
        cmocka_unit_test(two_at_a_time_pay_where_master_and_workers_take_alike_long),
        cmocka_unit_test(help_names_every_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
