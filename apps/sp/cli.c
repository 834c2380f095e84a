#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

/* ---- options ---- */

static kilter_status take_path(const char *text, void *value, kilter_error *error) {
    if (*text == 0)
        return sp_fail(error, KILTER_ERR_USAGE,
                       "reading the command line: an option has no file; give the path of a file");
    *(const char **)value = text;
    return KILTER_OK;
}

static bool whole_number(const char *text, uint64_t *value) {
    if (*text == 0 || strspn(text, "0123456789") != strlen(text))
        return false;
    errno = 0;
    *value = strtoull(text, NULL, 10);
    return errno == 0;
}

static kilter_status read_scenarios(const char *text, const char *or_else, uint64_t *value,
                                    kilter_error *error) {
    uint64_t number;
    if (!whole_number(text, &number) || number < 1 || number > SP_SCENARIOS_MAX)
        return sp_fail(error, KILTER_ERR_USAGE,
                       "reading the command line: --scenarios %.40s; give a whole number from 1 to %d%s",
                       text, SP_SCENARIOS_MAX, or_else);
    *value = number;
    return KILTER_OK;
}

static kilter_status take_scenarios(const char *text, void *value, kilter_error *error) {
    return read_scenarios(text, "", value, error);
}

static kilter_status take_scenarios_or_all(const char *text, void *value, kilter_error *error) {
    if (strcmp(text, "all") != 0)
        return read_scenarios(text, ", or all", value, error);
    *(uint64_t *)value = 0;
    return KILTER_OK;
}

static kilter_status take_check(const char *text, void *value, kilter_error *error) {
    uint64_t number;
    if (!whole_number(text, &number) || number > SP_SCENARIOS_MAX)
        return sp_fail(
            error, KILTER_ERR_USAGE,
            "reading the command line: --check %.40s; give a whole number up to %d; 0: no estimate", text,
            SP_SCENARIOS_MAX);
    *(uint64_t *)value = number;
    return KILTER_OK;
}

static kilter_status take_clusters(const char *text, void *value, kilter_error *error) {
    uint64_t number;
    if (!whole_number(text, &number) || number < 1 || number > SP_CLUSTERS_MAX)
        return sp_fail(error, KILTER_ERR_USAGE,
                       "reading the command line: --clusters %.40s; give a whole number from 1 to %d", text,
                       SP_CLUSTERS_MAX);
    *(uint64_t *)value = number;
    return KILTER_OK;
}

static kilter_status take_basket(const char *text, void *value, kilter_error *error) {
    uint64_t number;
    if (!whole_number(text, &number) || number < 1 || number > SP_BASKET_MAX)
        return sp_fail(error, KILTER_ERR_USAGE,
                       "reading the command line: --basket %.40s; give a whole number from 1 to %d", text,
                       SP_BASKET_MAX);
    *(uint64_t *)value = number;
    return KILTER_OK;
}

static kilter_status take_clusters_or_auto(const char *text, void *value, kilter_error *error) {
    if (strcmp(text, "auto") != 0)
        return take_clusters(text, value, error);
    *(uint64_t *)value = SP_CLUSTERS_AUTO;
    return KILTER_OK;
}

static kilter_status take_gap(const char *text, void *value, kilter_error *error) {
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end || !(number >= 1e-12 && number <= 1))
        return sp_fail(error, KILTER_ERR_USAGE,
                       "reading the command line: --gap %.40s; give a relative gap from 1e-12 to 1", text);
    *(double *)value = number;
    return KILTER_OK;
}

static kilter_status bad_stages(const char *text, kilter_error *error) {
    return sp_fail(
        error, KILTER_ERR_USAGE,
        "reading the command line: --grow %.60s; give up to %d growing numbers of scenarios, from 1 "
        "to %d, with commas between them",
        text, SP_STAGES_MAX, SP_SCENARIOS_MAX);
}

static kilter_status take_stages(const char *text, void *value, kilter_error *error) {
    sp_stages stages = {.count = 0};
    for (const char *at = text;; at++) {
        char word[16];
        size_t size = strcspn(at, ",");
        if (size >= sizeof word || stages.count == SP_STAGES_MAX)
            return bad_stages(text, error);
        memcpy(word, at, size);
        word[size] = 0;
        uint64_t number, before = stages.count ? stages.scenarios[stages.count - 1] : 0;
        if (!whole_number(word, &number) || number <= before || number > SP_SCENARIOS_MAX)
            return bad_stages(text, error);
        stages.scenarios[stages.count++] = number;
        at += size;
        if (*at == 0)
            break;
    }
    *(sp_stages *)value = stages;
    return KILTER_OK;
}

/* Read the value of an option that must be one of two words: the word `no` sets *value to false, the word
 * `yes` to true. */
static kilter_status take_word(const char *option, const char *text, const char *no, const char *yes,
                               bool *value, kilter_error *error) {
    if (strcmp(text, no) != 0 && strcmp(text, yes) != 0)
        return sp_fail(error, KILTER_ERR_USAGE, "reading the command line: %s %.40s; give %s or %s", option,
                       text, no, yes);
    *value = strcmp(text, yes) == 0;
    return KILTER_OK;
}

static kilter_status take_mode(const char *text, void *value, kilter_error *error) {
    return take_word("--mode", text, "reproducible", "fast", value, error);
}

static kilter_status take_method(const char *text, void *value, kilter_error *error) {
    return take_word("--method", text, "tr", "de", value, error);
}

/* Read an option without a value. */
static kilter_status take_flag(const char *text, void *value, kilter_error *error) {
    (void)text;
    (void)error;
    *(bool *)value = true;
    return KILTER_OK;
}

static kilter_status take_seed(const char *text, void *value, kilter_error *error) {
    if (!whole_number(text, value))
        return sp_fail(
            error, KILTER_ERR_USAGE,
            "reading the command line: --seed %.40s; give a whole number from 0 to 18446744073709551615",
            text);
    return KILTER_OK;
}

static kilter_status take_confidence(const char *text, void *value, kilter_error *error) {
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end || strspn(text, "0123456789.") != strlen(text) || !(number > 0 && number < 100))
        return sp_fail(error, KILTER_ERR_USAGE,
                       "reading the command line: --confidence %.40s; give percent, above 0 and below 100",
                       text);
    *(double *)value = number;
    return KILTER_OK;
}

static kilter_status take_benchmark(const char *text, void *value, kilter_error *error) {
    uint64_t number;
    if (!whole_number(text, &number) || number < 1 || number > SP_SCENARIOS_MAX)
        return sp_fail(error, KILTER_ERR_USAGE,
                       "reading the command line: --benchmark %.40s; give a number of scenarios from 1 to %d",
                       text, SP_SCENARIOS_MAX);
    *(uint64_t *)value = number;
    return KILTER_OK;
}

static kilter_status take_candidates(const char *text, void *value, kilter_error *error) {
    uint64_t number;
    if (!whole_number(text, &number) || number < 1 || number > SP_SCENARIOS_MAX)
        return sp_fail(error, KILTER_ERR_USAGE,
                       "reading the command line: --candidates %.40s; give a whole number from 1 to %d", text,
                       SP_SCENARIOS_MAX);
    *(uint64_t *)value = number;
    return KILTER_OK;
}

enum {
    EVALUATE = SP_EVALUATE_COMMAND,
    SOLVE = SP_SOLVE_COMMAND,
    PREDICT = SP_PREDICT_COMMAND,
    SOLVES = SOLVE | PREDICT,
    BOTH = EVALUATE | SOLVE,
    ALL = BOTH | PREDICT,
};

static const struct option {
    int commands;
    /* argument: name of the option's argument in the help; NULL: the option has no argument */
    const char *name, *argument, *help;
    size_t offset;
    kilter_status (*take)(const char *text, void *value, kilter_error *error);
} OPTION[] = {
    {EVALUATE, "--at", "FILE", "the first-stage decision (required)", offsetof(sp_options, at), take_path},
    {EVALUATE, "--scenarios", "N", "number of scenarios to sample (required)",
     offsetof(sp_options, scenarios), take_scenarios},
    {SOLVE, "--scenarios", "N", "number of scenarios to sample (required), or all",
     offsetof(sp_options, scenarios), take_scenarios_or_all},
    {PREDICT, "--scenarios", "N", "number of scenarios whose solution time to predict (required)",
     offsetof(sp_options, scenarios), take_scenarios},
    {PREDICT, "--on", "LIST",
     "speeds of the workers to predict for, such as 40x1,10x0.25; 1 is the speed of a worker of this machine "
     "(default: the workers here)",
     offsetof(sp_options, on), take_path},
    {PREDICT, "--candidates", "K",
     "number of candidates in the solve (default: the benchmark's number, corrected for clusters)",
     offsetof(sp_options, candidates), take_candidates},
    {PREDICT, "--benchmark", "B", "number of scenarios solved here to measure (default 500), at most N",
     offsetof(sp_options, benchmark), take_benchmark},
    {ALL, "--seed", "S", "seed of the sample; the same seed gives the same scenarios (default 1)",
     offsetof(sp_options, seed), take_seed},
    {SOLVES, "--gap", "E", "relative gap at which to end (default 1e-6)", offsetof(sp_options, gap),
     take_gap},
    {SOLVE, "--grow", "LIST",
     "solve several samples of these sizes, such as 1000,5000; each starts at the previous sample's "
     "solution, the first as with --scenarios",
     offsetof(sp_options, grow), take_stages},
    {SOLVE, "--lhs", NULL, "draw the sample by the Latin hypercube method", offsetof(sp_options, latin),
     take_flag},
    {SOLVE, "--start", "FILE", "first-stage decision to start from", offsetof(sp_options, at), take_path},
    {SOLVES, "--mode", "M", "reproducible (default) or fast", offsetof(sp_options, fast), take_mode},
    {SOLVES, "--clusters", "T",
     "number of tasks, and of cuts, per candidate; auto (default in fast mode): chosen from measured "
     "times from the second sample on",
     offsetof(sp_options, clusters), take_clusters_or_auto},
    {SOLVE, "--basket", "B", "greatest number of candidates evaluated at a time (default 1)",
     offsetof(sp_options, basket), take_basket},
    {SOLVE, "--method", "M",
     "tr (default), or de, which solves the deterministic equivalent as one program; --mode, --clusters, "
     "--basket, "
     "--start and --grow need tr",
     offsetof(sp_options, extensive), take_method},
    {SOLVE, "--check", "N", "number of scenarios of the out-of-sample estimate (default 10000)",
     offsetof(sp_options, check), take_check},
    {BOTH, "--confidence", "P", "confidence of the interval, in percent (default 95)",
     offsetof(sp_options, confidence), take_confidence},
    {SOLVE, "--decision", "FILE", "write the decision found to this file", offsetof(sp_options, decision),
     take_path},
    {SOLVE, "--mps", "FILE", "write the sampled problem to this file, in MPS", offsetof(sp_options, mps),
     take_path},
    {ALL, "--json", NULL, "print one JSON object", offsetof(sp_options, json), take_flag},
};
enum { OPTIONS = sizeof OPTION / sizeof *OPTION };

static const char *name_of(sp_command command) {
    return command == SP_SOLVE_COMMAND ? "solve" : command == SP_PREDICT_COMMAND ? "predict" : "evaluate";
}

static void print_options(FILE *out, sp_command command) {
    fprintf(out, "  CORE TIME STOCH    the problem, in SMPS\n");
    for (int i = 0; i < OPTIONS; i++)
        if (OPTION[i].commands & (int)command)
            fprintf(out, "  %-13s %-4s %s\n", OPTION[i].name, OPTION[i].argument ? OPTION[i].argument : "",
                    OPTION[i].help);
    fprintf(out, "  --help             print this\n\n");
}

static void evaluate_usage(FILE *out) {
    fprintf(
        out,
        "usage: kilter-sp evaluate CORE TIME STOCH --at FILE --scenarios N [options]\n\n"
        "Estimate the expected cost of a first-stage decision of a two-stage stochastic linear program.\n\n");
    print_options(out, SP_EVALUATE_COMMAND);
    fprintf(
        out,
        "The decision's file has the number of first-stage columns and then their values in CORE's order.\n"
        "Or it has lines COLUMN VALUE. The estimate's bits depend only on the files, N and S, not on the\n"
        "workers.\n\n");
}

static void solve_usage(FILE *out) {
    fprintf(
        out,
        "usage: kilter-sp solve CORE TIME STOCH --scenarios N [options]\n\n"
        "Find the first-stage decision of least cost over a sample, to a certified gap, and estimate its\n"
        "cost over another sample.\n\n");
    print_options(out, SP_SOLVE_COMMAND);
    fprintf(out, "In reproducible mode the answer's bits depend only on the files and these options, not on "
                 "the\nworkers. In fast mode workers keep each scenario's last basis.\n\n");
}

static void predict_usage(FILE *out) {
    fprintf(out, "usage: kilter-sp predict CORE TIME STOCH --scenarios N [options]\n\n"
                 "Solve a small sample here, and predict the time for N scenarios on other workers.\n\n");
    print_options(out, SP_PREDICT_COMMAND);
    fprintf(out,
            "The prediction deals whole clusters, each to the worker that would finish it first, as policy "
            "ect\ndoes. A prediction for the small sample is printed beside the measured time.\n\n");
}

void sp_command_usage(FILE *out, sp_command command) {
    if (command == SP_SOLVE_COMMAND)
        solve_usage(out);
    else if (command == SP_PREDICT_COMMAND)
        predict_usage(out);
    else
        evaluate_usage(out);
    fprintf(out, "Exit code: 0 success; 2 an error in the command line or the files; 1 any other error.\n");
}

typedef struct parser {
    sp_command command;
    int count, at; /* count: number of arguments; at: index of the argument that is being read */
    char *const *arguments;
    bool seen[OPTIONS];
    sp_options options;
} parser;

static const struct option *find_option(sp_command command, const char *name, size_t size) {
    for (int i = 0; i < OPTIONS; i++)
        if (OPTION[i].commands & (int)command && strlen(OPTION[i].name) == size &&
            strncmp(OPTION[i].name, name, size) == 0)
            return &OPTION[i];
    return NULL;
}

/* Read "--name value" or "--name=value", and move p->at to the last argument used. */
static kilter_status take_option(parser *p, kilter_error *error) {
    const char *argument = p->arguments[p->at];
    size_t size = strcspn(argument, "=");
    const struct option *option = find_option(p->command, argument, size);
    if (!option || (!option->argument && argument[size]))
        return sp_fail(error, KILTER_ERR_USAGE,
                       "reading the command line: there is no option %.60s; kilter-sp %s --help lists them",
                       argument, name_of(p->command));
    if (p->seen[option - OPTION])
        return sp_fail(error, KILTER_ERR_USAGE, "reading the command line: %s is given twice; give it once",
                       option->name);
    p->seen[option - OPTION] = true;
    const char *text = argument[size] ? argument + size + 1 : NULL;
    if (option->argument && !text && p->at + 1 < p->count)
        text = p->arguments[++p->at];
    if (option->argument && !text)
        return sp_fail(error, KILTER_ERR_USAGE, "reading the command line: %s has no value; give %s",
                       option->name, option->argument);
    return option->take(text, (char *)&p->options + option->offset, error);
}

static bool was_given(const parser *p, const char *name) {
    const struct option *option = find_option(p->command, name, strlen(name));
    return option && p->seen[option - OPTION];
}

/* Refuse options that would have no effect. */
static kilter_status check_effects(const parser *p, kilter_error *error) {
    const sp_options *o = &p->options;
    bool solve = p->command == SP_SOLVE_COMMAND, all = solve && o->scenarios == 0 && o->grow.count == 0;
    const struct {
        bool holds;
        const char *beside, *does;
        const char *idle[6];
    } CASE[] = {
        {o->extensive,
         "--method de",
         "solves one program at once",
         {"--mode", "--clusters", "--basket", "--start", "--grow"}},
        {all, "--scenarios all", "draws no sample", {"--lhs", "--confidence"}},
        {all && o->check > 0, "--scenarios all", "leaves no other scenarios", {"--check"}},
        {all && o->extensive, "--scenarios all and --method de", "draw no sample", {"--seed"}},
        {all && o->at, "--scenarios all and --start", "draw no sample", {"--seed"}},
        {solve && o->check == 0, "--check 0", "estimates nothing", {"--confidence"}},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++)
        for (const char *const *idle = CASE[i].idle; CASE[i].holds && *idle; idle++)
            if (was_given(p, *idle))
                return sp_fail(
                    error, KILTER_ERR_USAGE,
                    "reading the command line: %s has no effect beside %s, which %s; leave one of them out",
                    *idle, CASE[i].beside, CASE[i].does);
    return KILTER_OK;
}

static kilter_status check_complete(int files, const parser *p, kilter_error *error) {
    bool evaluate = p->command == SP_EVALUATE_COMMAND;
    const char *missing = files < 3                    ? "one of the three files CORE, TIME and STOCH"
                          : evaluate && !p->options.at ? "the first-stage decision (--at FILE)"
                          : !was_given(p, "--scenarios") && !was_given(p, "--grow")
                              ? "the number of scenarios to sample (--scenarios N)"
                              : NULL;
    if (missing)
        return sp_fail(error, KILTER_ERR_USAGE,
                       "reading the command line: %s is missing; see kilter-sp %s --help", missing,
                       name_of(p->command));
    if (p->options.basket > 1 && p->options.clusters == SP_CLUSTERS_AUTO)
        return sp_fail(error, KILTER_ERR_USAGE,
                       "reading the command line: --clusters auto needs runs of one candidate each; give a "
                       "number of clusters, or leave out --basket");
    if (was_given(p, "--scenarios") && was_given(p, "--grow"))
        return sp_fail(error, KILTER_ERR_USAGE,
                       "reading the command line: --scenarios and --grow cannot be combined");
    return check_effects(p, error);
}

kilter_status sp_options_parse(sp_command command, int count, char *const *arguments, sp_options *options,
                               kilter_error *error) {
    parser p = {
        .command = command,
        .count = count,
        .arguments = arguments,
        .options = {.seed = 1, .confidence = 95, .gap = 1e-6, .basket = 1, .check = 10000, .benchmark = 500}};
    const char **file[] = {&p.options.core, &p.options.time, &p.options.stoch};
    bool plain = false; /* after "--", every argument is a file */
    int files = 0;
    kilter_status status = KILTER_OK;
    for (; !status && p.at < count; p.at++) {
        const char *argument = arguments[p.at];
        if (!plain && strcmp(argument, "--") == 0)
            plain = true;
        else if (!plain && argument[0] == '-' && argument[1])
            status = take_option(&p, error);
        else if (files < 3)
            *file[files++] = argument;
        else
            status = sp_fail(error, KILTER_ERR_USAGE,
                             "reading the command line: %.60s is one file too many; give CORE TIME STOCH",
                             argument);
    }
    if (!status)
        status = check_complete(files, &p, error);
    if (!status)
        *options = p.options;
    return status;
}

/* ---- answer ---- */

void sp_answer_print(FILE *out, const sp_answer *answer) {
    const sp_estimate *estimate = &answer->estimate;
    fprintf(out, "expected cost  %.10g\n", estimate->mean);
    if (isnan(estimate->standard_error))
        fprintf(out, "interval       not known from one scenario\n");
    else
        fprintf(out, "interval       %.10g to %.10g (%g %%, standard error %.4g)\n", estimate->low,
                estimate->high, answer->confidence, estimate->standard_error);
    fprintf(out, "scenarios      %llu of %.4g possible, seed %llu\n", (unsigned long long)answer->scenarios,
            answer->possible, (unsigned long long)answer->seed);
    fprintf(out, "time           %.3f s on %u worker%s", answer->elapsed_s, answer->workers,
            answer->workers == 1 ? "" : "s");
    if (answer->elapsed_s > 0)
        fprintf(out, ", %.0f scenarios/s", (double)answer->scenarios / answer->elapsed_s);
    fprintf(out, "\n");
    if (answer->decision)
        fprintf(out, "balance        %s\n", answer->decision);
    if (answer->record)
        fprintf(out, "record         %s\n", answer->record);
}

static void print_number(FILE *out, const char *name, double value) {
    if (isfinite(value))
        fprintf(out, "\"%s\": %.17g, ", name, value);
    else
        fprintf(out, "\"%s\": null, ", name);
}

static void print_string(FILE *out, const char *name, const char *text) {
    fprintf(out, ", \"%s\": ", name);
    if (!text) {
        fprintf(out, "null");
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < 32)
            fprintf(out, "\\u%04x", *text);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

void sp_answer_print_json(FILE *out, const sp_answer *answer) {
    uint64_t bits;
    memcpy(&bits, &answer->estimate.mean, sizeof bits);
    fprintf(out, "{");
    print_number(out, "estimate", answer->estimate.mean);
    fprintf(out, "\"estimate_bits\": \"0x%016llx\", ", (unsigned long long)bits);
    print_number(out, "standard_error", answer->estimate.standard_error);
    print_number(out, "confidence_percent", answer->confidence);
    print_number(out, "low", answer->estimate.low);
    print_number(out, "high", answer->estimate.high);
    fprintf(out, "\"scenarios\": %llu, \"seed\": %llu, ", (unsigned long long)answer->scenarios,
            (unsigned long long)answer->seed);
    print_number(out, "possible_scenarios", answer->possible);
    print_number(out, "elapsed_s", answer->elapsed_s);
    print_number(out, "scenarios_per_s",
                 answer->elapsed_s > 0 ? (double)answer->scenarios / answer->elapsed_s : NAN);
    fprintf(out, "\"workers\": %u", answer->workers);
    print_string(out, "decision", answer->decision);
    print_string(out, "record", answer->record);
    fprintf(out, "}\n");
}

/* ---- printing the answer of solve ---- */

static double relative_gap(const sp_progress *progress) {
    return (progress->upper - progress->lower) / (1 + fabs(progress->upper));
}

static void print_check(FILE *out, const sp_solve_answer *a) {
    unsigned long long scenarios = a->check_scenarios, seed = a->check_seed;
    if (isnan(a->check.standard_error))
        fprintf(out, "out of sample  %.10g; %llu scenarios of seed %llu\n", a->check.mean, scenarios, seed);
    else
        fprintf(out,
                "out of sample  %.10g, %.10g to %.10g (%g %%, standard error %.4g); %llu scenarios of seed "
                "%llu\n",
                a->check.mean, a->check.low, a->check.high, a->options->confidence, a->check.standard_error,
                scenarios, seed);
}

static void print_decision(FILE *out, const sp_solve_answer *a) {
    const sp_stage *stage = &a->problem->stage[0];
    int width = 14, most = 20, unprinted = 0;
    fprintf(out, "decision       (columns that are not 0)\n");
    for (int j = 0; j < stage->columns; j++) {
        if (a->solution->x[j] == 0)
            continue;
        if (most-- > 0)
            fprintf(out, "  %-*s %.10g\n", width - 2, stage->column_name[j], a->solution->x[j]);
        else
            unprinted++;
    }
    if (unprinted)
        fprintf(out, "  and %d more columns: --decision FILE or --json gives all\n", unprinted);
}

static void print_basket(FILE *out, const sp_solve_answer *a) {
    fprintf(out, "basket         ");
    if (a->options->basket == 1)
        sp_basket_print(out, &a->times);
    else
        fprintf(out, "up to %llu candidates at a time", (unsigned long long)a->options->basket);
    fprintf(out, "\n");
}

void sp_solve_answer_print(FILE *out, const sp_solve_answer *a) {
    const sp_progress *p = &a->solution->progress;
    fprintf(out, "cost           %.10g over the sample, at least %.10g (gap %.1e)\n", p->upper, p->lower,
            relative_gap(p));
    if (a->checked)
        print_check(out, a);
    if (!isnan(a->solution->mean_bound))
        fprintf(out, "mean scenario  %.10g\n", a->solution->mean_bound);
    if (a->options->scenarios == 0 && a->options->grow.count == 0)
        fprintf(out, "scenarios      all %.10g\n", a->possible);
    else
        fprintf(out, "scenarios      %llu of %.4g possible, seed %llu\n", (unsigned long long)a->scenarios,
                a->possible, (unsigned long long)a->options->seed);
    if (!a->options->extensive)
        fprintf(out, "candidates     %d, %d of them better than all before; %d clusters\n", p->evaluated,
                p->major, a->clusters);
    if (!a->options->extensive)
        print_basket(out, a);
    fprintf(out, "time           %.3f s", a->elapsed_s);
    if (!a->options->extensive && a->elapsed_s > 0)
        fprintf(out, " on %u worker%s, %.0f %% of it in the master", a->workers, a->workers == 1 ? "" : "s",
                100 * a->master_s / a->elapsed_s);
    fprintf(out, "\n");
    if (a->options->fast && a->evaluated > 0)
        fprintf(out, "own basis      %.1f %% of the scenario solves began from the scenario's own basis\n",
                100 * (double)a->found / (double)a->evaluated);
    if (a->record)
        fprintf(out, "record         %s\n", a->record);
    print_decision(out, a);
}

static void print_bits(FILE *out, const char *name, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    fprintf(out, "\"%s\": \"0x%016llx\", ", name, (unsigned long long)bits);
}

void sp_solve_answer_print_json(FILE *out, const sp_solve_answer *a) {
    const sp_progress *p = &a->solution->progress;
    fprintf(out, "{");
    print_number(out, "cost", p->upper);
    print_bits(out, "cost_bits", p->upper);
    print_number(out, "bound", p->lower);
    print_number(out, "gap", relative_gap(p));
    print_number(out, "mean_scenario", a->solution->mean_bound);
    if (a->checked) {
        print_number(out, "estimate", a->check.mean);
        print_bits(out, "estimate_bits", a->check.mean);
        print_number(out, "standard_error", a->check.standard_error);
        print_number(out, "confidence_percent", a->options->confidence);
        print_number(out, "low", a->check.low);
        print_number(out, "high", a->check.high);
    }
    fprintf(out, "\"scenarios\": %llu, \"seed\": %llu, \"candidates\": %d, \"major\": %d, \"clusters\": %d, ",
            (unsigned long long)a->scenarios, (unsigned long long)a->options->seed, p->evaluated, p->major,
            a->clusters);
    print_number(out, "possible_scenarios", a->possible);
    print_number(out, "elapsed_s", a->elapsed_s);
    print_number(out, "master_s", a->master_s);
    print_number(out, "two_at_once", sp_basket_ratio(&a->times));
    fprintf(out, "\"basket\": %llu, \"workers\": %u, \"scenarios_evaluated\": %llu, \"bases_found\": %llu, ",
            (unsigned long long)a->options->basket, a->workers, (unsigned long long)a->evaluated,
            (unsigned long long)a->found);
    fprintf(out, "\"decision\": [");
    for (int j = 0; j < a->problem->stage[0].columns; j++)
        fprintf(out, "%s%.17g", j ? ", " : "", a->solution->x[j]);
    fprintf(out, "]");
    print_string(out, "record", a->record);
    fprintf(out, "}\n");
}

void sp_progress_print(FILE *out, const sp_progress *p, double elapsed_s, double time_left_s) {
    fprintf(out, "candidate %d: ", p->evaluated);
    if (isfinite(p->upper))
        fprintf(out, "cost %.10g, model %.10g, gap %.1e", p->upper, p->model,
                (p->upper - p->model) / (1 + fabs(p->upper)));
    else
        fprintf(out, "no decision yet with which every scenario is feasible");
    fprintf(out, ", %d cuts, %.0f s", p->cuts, elapsed_s);
    if (isfinite(time_left_s))
        fprintf(out, ", about %.0f s left", time_left_s);
}
