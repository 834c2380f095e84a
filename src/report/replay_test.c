/* Test that every recorded decision is the same when it is made again, and that missing or changed parts of a
 * record are reported. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "kilter/farm.h"
#include "report/report.h"
#include "sim/sim.h"
#include "trace/record_test_helper.h"

typedef struct farm_case {
    uint32_t workers,
        slow; /* slow: number of workers that slow down to a tenth of their speed during the run */
    uint64_t tasks;
    double task_s, cv;
    uint32_t runs;
    size_t bytes; /* size of each task's input in bytes */
} farm_case;

static const farm_case cases[] = {
    {2, 1, 200, 1e-2, 0, 1, 0},      {7, 3, 500, 1e-3, 0.8, 4, 1000}, {3, 1, 7, 1e-2, 0.3, 3, 0},
    {16, 4, 3000, 1e-4, 1, 2, 0},    {40, 10, 800, 1e-3, 0.5, 1, 10}, {1, 0, 30, 1e-3, 0, 2, 0},
    {4, 0, 1000, 1e-5, 0, 2, 10000},
};
enum { CASES = sizeof cases / sizeof *cases };

static double task_s(void *self, uint64_t run, uint64_t i) {
    const farm_case *c = self;
    double lot = (double)(kl_mix64(run << 40 ^ i) >> 11) * 0x1p-53;
    return c->task_s * (1 + c->cv * (2 * lot - 1));
}

static void check(kilter_status status, const kilter_error *error) {
    if (status != KILTER_OK)
        fail_msg("%s", error->text);
}

static void record(const char *file, const farm_case *c, const char *policy, double factor) {
    kl_host_group groups[] = {{c->slow, {.speed = 1, .profile = {1, {0.02}, {0.1}, 0}}},
                              {.count = c->workers - c->slow, .host = {.speed = 1}}};
    kl_cluster cluster = {.groups = groups,
                          .group_count = 2,
                          .workers = c->workers,
                          .master_apart = true,
                          .master = {.speed = 1},
                          .latency_s = 25e-6,
                          .bytes_per_s = 1e8};
    kl_sim_farm farm = {
        .cluster = &cluster, .policy = kl_policy_find(policy), .factor = factor, .answer_s = 20e-6};
    kl_sim_run run = {.tasks = c->tasks, .task_s = task_s, .self = (void *)c, .task_bytes = c->bytes};
    kl_trace_run_row row = {.program = "replayed",
                            .version = "",
                            .transport = "",
                            .policy = policy,
                            .host = "",
                            .simulated = true,
                            .control = ""};
    kilter_error error = {.text = ""};
    kl_sim_outcome outcome;
    kl_trace *trace;
    kl_sim *sim;
    unlink(file);
    check(kl_trace_open(file, &row, &trace, &error), &error);
    check(kl_sim_new(&farm, &sim, &error), &error);
    kl_sim_record(sim, trace);
    for (uint32_t i = 0; i < c->runs; i++)
        check(kl_sim_run_next(sim, &run, &outcome, &error), &error);
    kl_sim_free(sim);
    check(kl_trace_close(trace, 1, &error), &error);
}

static char *replay(const char *file, kl_replay_choice choice) {
    char *text = NULL;
    size_t size = 0;
    kilter_error error = {.text = ""};
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    kilter_status status = kl_replay_print(file, &choice, out, &error);
    fclose(out);
    check(status, &error);
    return text;
}

static bool has(const char *text, const char *words) {
    return strstr(text, words) != NULL;
}

/* Return the number that follows `words` in the text. */
static long number_after(const char *text, const char *words) {
    const char *at = strstr(text, words);
    if (!at)
        fail_msg("'%s' is not in: %s", words, text);
    return strtol(at + strlen(words), NULL, 10);
}

static void expect_all_the_same(const char *file, const char *policy) {
    static const char *const kinds[] = {"deal", "withhold", "assign", "recall", "copy"};
    char *text = replay(file, (kl_replay_choice){.by = KL_REPLAY_LIST});
    char words[40];
    if (has(text, "  again differs"))
        fail_msg("%s: %s", policy, strstr(text, "  again differs"));
    assert_true(number_after(text, "made again: ") > 0);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        snprintf(words, sizeof words, "of kind %s not", kinds[i]);
        if (has(text, words))
            fail_msg("%s: %s", policy, strstr(text, words));
    }
    free(text);
}

static void each_decision_of_each_policy_is_made_again(void **state) {
    const char *file = ((place *)*state)->file;
    for (size_t p = 0; p < kl_policy_count(); p++)
        for (size_t i = 0; i < CASES; i++) {
            const char *policy = kl_policy_name(kl_policy_at(p));
            record(file, &cases[i], policy, 0);
            expect_all_the_same(file, policy);
            if (!kl_policy_has_factor(kl_policy_at(p)))
                continue;
            record(file, &cases[i], policy, 0.7);
            expect_all_the_same(file, policy);
        }
}

/* A task of the second run kills its worker. Tasks are added to this run until it has two times as many tasks
 * as at its beginning. The tasks of the first run have weights. */
static int work_or_die(const kilter_task *task, kilter_result *result, void *state) {
    volatile double sum = 0;
    (void)state;
    if (task->run == 1 && task->index == 11)
        raise(SIGKILL);
    for (uint64_t i = 0; i < 2000 * (1 + task->index % 7); i++)
        sum += 1.0 / (double)(i + 1);
    return kilter_result_put(result, (const void *)&sum, sizeof sum);
}

static void add_one(const kilter_outcome *outcome, void *farm) {
    if (outcome->index < 100)
        kilter_farm_add(*(kilter_farm **)farm, 1, NULL, NULL, NULL);
}

static void what_real_farms_decide_is_made_again(void **state) {
    const char *file = ((place *)*state)->file;
    static const char *const policies[] = {"auto", "dpf", "ect", "awf-c", "static", "af"};
    double weights[100];
    for (int i = 0; i < 100; i++)
        weights[i] = 1 + i % 7;
    for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
        kilter_farm *farm;
        kilter_error error = {.text = ""};
        kilter_farm_options options = {.work = work_or_die,
                                       .workers = 3,
                                       .attempts = 2,
                                       .policy = policies[p],
                                       .record = file,
                                       .name = "replayed"};
        unlink(file);
        check(kilter_farm_open(&options, NULL, NULL, &farm, &error), &error);
        check(kilter_farm_run(farm, &(kilter_run){.tasks = 100, .weights = weights}, &error), &error);
        kilter_run grows = {.tasks = 100, .grows = true, .done = add_one, .user = &farm};
        assert_int_equal(kilter_farm_run(farm, &grows, NULL), KILTER_ERR_TASK);
        for (int i = 0; i < 3; i++)
            check(kilter_farm_run(farm, &(kilter_run){.tasks = 60, .series = 1}, &error), &error);
        check(kilter_farm_close(farm, &error), &error);
        expect_all_the_same(file, policies[p]);
    }
}

static void change(const char *file, const char *sql) {
    sqlite3 *db;
    char *why = NULL;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s: %s", sql, why);
    sqlite3_close(db);
}

/* Change a recorded decision. The report must say that the decision differs when it is made again. */
static void what_differs_is_said(void **state) {
    const char *file = ((place *)*state)->file;
    record(file, &cases[1], "gss", 0);
    change(file, "UPDATE decision SET reason = 'a changed reason', gain_s = 7 WHERE id = 5");
    char *text = replay(file, (kl_replay_choice){.by = KL_REPLAY_LIST});
    assert_true(has(text, "a changed reason  again differs  gain_s "));
    assert_int_equal(number_after(text, "made again: ") - number_after(text, " decisions, "), 1);
    free(text);
    text = replay(file, (kl_replay_choice){.by = KL_REPLAY_ID, .number = 6});
    assert_true(has(text, "the decision, made again:\n  again same  kind deal  count "));
    free(text);
}

static void what_the_record_lacks_is_said(void **state) {
    const char *file = ((place *)*state)->file;
    record(file, &cases[1], "fac2", 0);
    change(file, "DELETE FROM decision WHERE id = 3");
    char *text = replay(file, (kl_replay_choice){.by = KL_REPLAY_ID, .number = 4});
    assert_true(has(text, "not made again: earlier rows of the run are missing from the record\n"));
    free(text);
    change(file, "UPDATE decision SET grounds = NULL");
    text = replay(file, (kl_replay_choice){.by = KL_REPLAY_ID, .number = 2, .json = true});
    assert_true(has(text, "\"made\": false") || has(text, "\"made\":false"));
    free(text);
    change(file, "ALTER TABLE decision DROP COLUMN grounds");
    text = replay(file, (kl_replay_choice){.by = KL_REPLAY_LIST});
    assert_int_equal(number_after(text, "made again: "), 0);
    assert_true(has(text, "of kind deal not made again: the record lacks the inputs of the decision"));
    free(text);
}

/* Change or remove one byte of the inputs of decisions. Making the decisions again must not crash. */
static void bytes_that_are_wrong_do_no_harm(void **state) {
    const char *file = ((place *)*state)->file;
    char sql[200];
    for (int cut = 1; cut < 60; cut++) {
        record(file, &cases[2], cut % 2 ? "ect" : "auto", 0);
        snprintf(
            sql, sizeof sql,
            "UPDATE decision SET grounds = CAST(substr(grounds, 1, %d) || x'%02x' || substr(grounds, %d) AS "
            "BLOB) WHERE id %% 3 = %d",
            cut, cut * 37 % 256, cut + 1 + cut % 2, cut % 3);
        change(file, sql);
        char *text = replay(file, (kl_replay_choice){.by = KL_REPLAY_LIST});
        assert_true(number_after(text, "made again: ") >= 0);
        free(text);
    }
}

static void another_policy_decides_at_the_same_point(void **state) {
    const char *file = ((place *)*state)->file;
    record(file, &cases[0], "gss", 0);
    char *text = replay(file, (kl_replay_choice){.by = KL_REPLAY_LIST, .policy = "ss"});
    long made = number_after(text, "made again by policy ss: ");
    assert_true(made > 0);
    assert_true(number_after(text, " decisions, ") < made);
    assert_true(has(text, "  instead differs  count 1  count_then 100"));
    free(text);
    text = replay(file, (kl_replay_choice){.by = KL_REPLAY_LIST, .policy = "GSS"});
    assert_int_equal(number_after(text, "made again by policy GSS: "), number_after(text, " decisions, "));
    free(text);
    kilter_error error;
    const kl_replay_choice none = {.by = KL_REPLAY_LIST, .policy = "none"};
    assert_int_equal(kl_replay_print(file, &none, stdout, &error), KILTER_ERR_INPUT);
    assert_true(has(error.text, "policy 'none'"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(each_decision_of_each_policy_is_made_again),
        TEST(what_real_farms_decide_is_made_again),
        TEST(what_differs_is_said),
        TEST(what_the_record_lacks_is_said),
        TEST(bytes_that_are_wrong_do_no_harm),
        TEST(another_policy_decides_at_the_same_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
