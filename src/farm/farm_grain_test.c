/* Test that the farm chooses the number of tasks of a run. The workers are threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "kilter/farm.h"
#include "report/decision_test_helper.h"
#include "report/report.h"

enum { ITEMS = 1200 };

/* Add up the squares of the items in this task's part of the ITEMS items. The run may have any
 * number of tasks. */
static int add_up(const kilter_task *task, kilter_result *result, void *state) {
    uint64_t tasks, sum = 0;
    (void)state;
    memcpy(&tasks, task->shared.data, sizeof tasks);
    for (uint64_t i = task->index * ITEMS / tasks; i < (task->index + 1) * ITEMS / tasks; i++)
        sum += i * i;
    return kilter_result_put(result, &sum, sizeof sum) != KILTER_OK;
}

static void take(const kilter_outcome *outcome, void *user) {
    uint64_t part;
    memcpy(&part, outcome->result.data, sizeof part);
    *(uint64_t *)user += part;
}

static kilter_farm *open_farm(const char *record) {
    kilter_farm_options options = {.work = add_up,
                                   .transport = "inproc",
                                   .workers = 3,
                                   .policy = "ect",
                                   .team = "all",
                                   .record = record,
                                   .name = "farm_grain_test"};
    kilter_farm *farm;
    kilter_error error;
    if (kilter_farm_open(&options, NULL, NULL, &farm, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    return farm;
}

static void run_once(kilter_farm *farm, uint64_t tasks, double work) {
    uint64_t sum = 0, expected = (uint64_t)(ITEMS - 1) * ITEMS * (2 * ITEMS - 1) / 6;
    kilter_run run = {
        .tasks = tasks, .shared = {&tasks, sizeof tasks}, .done = take, .user = &sum, .work = work};
    assert_int_equal(kilter_farm_run(farm, &run, NULL), KILTER_OK);
    assert_true(sum == expected);
}

static double half_as_many(uint64_t tasks, void *user) {
    ++*(int *)user;
    return 100.0 / (double)tasks;
}

static void a_farm_is_a_benchmark(void **state) {
    (void)state;
    kilter_farm *farm = open_farm("none");
    kilter_program program = {.tasks = 7};
    kilter_error error;
    assert_int_equal(kilter_farm_program(farm, &program, &error), KILTER_ERR_USAGE);
    assert_non_null(strstr(error.text, "nothing is measured yet"));
    assert_int_equal(program.tasks, 7);
    for (int i = 0; i < 3; i++)
        run_once(farm, 30, 0);
    assert_int_equal(kilter_farm_program(farm, &program, &error), KILTER_OK);
    assert_true(program.tasks == 30 && program.iterations == 1 && program.work_s > 0);
    kilter_prediction prediction;
    double speeds[] = {1, 0.5};
    assert_int_equal(kilter_predict(&program, speeds, 2, &prediction, NULL), KILTER_OK);
    assert_true(prediction.total_s >= prediction.bound_s && prediction.workers == 2);
    assert_true(fabs(prediction.workers_s - 20 * program.work_s / 30) < 1e-9 * program.work_s);
    assert_int_equal(kilter_farm_close(farm, NULL), KILTER_OK);
}

static double none(uint64_t tasks, void *user) {
    (void)tasks, (void)user;
    return 0;
}

static void it_may_be_asked_before_every_run(void **state) {
    (void)state;
    kilter_farm *farm = open_farm("none");
    kilter_grain grain;
    int asked = 0;
    assert_int_equal(kilter_farm_grain(farm, &(kilter_grain_options){.most = ITEMS}, &grain, NULL),
                     KILTER_OK);
    /* without measurements, the farm chooses four tasks for each of three workers */
    assert_int_equal(grain.tasks, 12);
    for (int i = 0; i < 20; i++) {
        run_once(farm, grain.tasks, ITEMS);
        kilter_grain_options options = {.least = 2, .most = ITEMS};
        if (i % 2)
            options = (kilter_grain_options){.most = 50, .runs = half_as_many, .user = &asked, .work = ITEMS};
        assert_int_equal(kilter_farm_grain(farm, &options, &grain, NULL), KILTER_OK);
        assert_in_range(grain.tasks, i % 2 ? 1 : 2, options.most);
        assert_in_range(grain.workers, 1, 3);
        assert_true(grain.master_s >= 0 && grain.workers_s > 0 && grain.messages_s >= 0);
        assert_non_null(strstr(grain.reason, "tasks: "));
    }
    assert_true(asked > 0);
    assert_int_equal(kilter_farm_close(farm, NULL), KILTER_OK);
}

static void wrong_questions_are_refused(void **state) {
    (void)state;
    kilter_farm *farm = open_farm("none");
    run_once(farm, 6, 0);
    static const struct {
        kilter_grain_options options;
        const char *text;
    } rows[] = {
        {{.most = 0}, "the range from 0 to 0 is empty"},
        {{.least = 5, .most = 4}, "the range from 5 to 4 is empty"},
        {{.most = 5, .work = -1}, "the work is -1"},
        {{.most = 5, .runs = none}, "the function `runs` must return"},
    };
    kilter_grain grain = {.tasks = 77};
    kilter_error error;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        assert_int_equal(kilter_farm_grain(farm, &rows[r].options, &grain, &error), KILTER_ERR_RANGE);
        assert_non_null(strstr(error.text, rows[r].text));
        assert_int_equal(grain.tasks, 77);
    }
    kilter_run run = {.tasks = 3, .work = -3};
    assert_int_equal(kilter_farm_run(farm, &run, &error), KILTER_ERR_RANGE);
    assert_non_null(strstr(error.text, "its work of -3 cannot be used"));
    run_once(farm, 4, 0); /* the farm must still work after these errors */
    assert_int_equal(kilter_farm_close(farm, NULL), KILTER_OK);
}

static void ask_within(const kilter_outcome *outcome, void *user) {
    kilter_grain grain;
    kilter_error error;
    (void)outcome;
    assert_int_equal(kilter_farm_expect(user, &(kilter_expectation){1, 1, NULL}, NULL), KILTER_ERR_USAGE);
    assert_int_equal(kilter_farm_grain(user, &(kilter_grain_options){.most = 9}, &grain, &error),
                     KILTER_ERR_USAGE);
    assert_non_null(strstr(error.text, "not from the callback"));
}

static void a_callback_cannot_ask(void **state) {
    (void)state;
    kilter_farm *farm = open_farm("none");
    uint64_t tasks = 2;
    kilter_run run = {.tasks = tasks, .shared = {&tasks, sizeof tasks}, .done = ask_within, .user = farm};
    assert_int_equal(kilter_farm_run(farm, &run, NULL), KILTER_OK);
    assert_int_equal(kilter_farm_close(farm, NULL), KILTER_OK);
}

/* Check that the record has two kinds of decisions with forecasts: the number of tasks of each run, and the
 * assignments of shares. The report must compare the forecast with the measured time. */
static void forecasts_are_in_the_record(void **state) {
    (void)state;
    enum { RUNS = 5 };
    char path[] = "/tmp/kilter_grain_XXXXXX";
    assert_true(mkstemp(path) >= 0);
    kilter_farm *farm = open_farm(path);
    for (int i = 0; i < RUNS; i++) {
        kilter_grain grain;
        assert_int_equal(kilter_farm_grain(farm, &(kilter_grain_options){.most = ITEMS}, &grain, NULL),
                         KILTER_OK);
        run_once(farm, grain.tasks, ITEMS);
    }
    assert_int_equal(kilter_farm_close(farm, NULL), KILTER_OK);
    kl_report *report;
    assert_int_equal(kl_report_read(path, &report, NULL), KILTER_OK);
    assert_int_equal(decision_of(report, "grain")->decisions, RUNS);
    assert_int_equal(decision_of(report, "grain")->forecasts, RUNS);
    /* at least one run has no assignment: in the first run no speed is known, so no shares are assigned */
    assert_in_range(decision_of(report, "assign")->decisions, 1, RUNS - 1);
    assert_int_equal(decision_of(report, "assign")->forecasts, decision_of(report, "assign")->decisions);
    kl_report_free(report);
    unlink(path);
}

/* Store a forecast for three runs, and then a forecast for two runs. Each forecast must be in the record
 * before the last of its runs ends. A forecast that was replaced by another must not be recorded. */
static void what_a_program_expects_is_in_the_record(void **state) {
    (void)state;
    char path[] = "/tmp/kilter_expect_XXXXXX";
    assert_true(mkstemp(path) >= 0);
    kilter_farm *farm = open_farm(path);
    kilter_error error;
    assert_int_equal(kilter_farm_expect(farm, &(kilter_expectation){.seconds = 1}, &error), KILTER_ERR_RANGE);
    assert_non_null(strstr(error.text, "expecting 0 runs"));
    assert_int_equal(kilter_farm_expect(farm, &(kilter_expectation){.runs = 3, .seconds = NAN}, NULL),
                     KILTER_ERR_RANGE);
    run_once(farm, 30, 0);
    assert_int_equal(kilter_farm_expect(farm, &(kilter_expectation){9, 9000, NULL}, NULL), KILTER_OK);
    assert_int_equal(kilter_farm_expect(farm, &(kilter_expectation){3, 1000, "first"}, NULL), KILTER_OK);
    for (int i = 0; i < 3; i++)
        run_once(farm, 30, 0);
    assert_int_equal(kilter_farm_expect(farm, &(kilter_expectation){2, 5000, "second"}, NULL), KILTER_OK);
    for (int i = 0; i < 2; i++)
        run_once(farm, 30, 0);
    kl_report *report;
    assert_int_equal(kilter_farm_close(farm, NULL), KILTER_OK);
    assert_int_equal(kl_report_read(path, &report, NULL), KILTER_OK);
    const kl_report_decision *program = decision_of(report, "program");
    assert_true(program->decisions == 2 && program->forecasts == 2);
    assert_string_equal(program->last_reason, "second");
    assert_true(fabs(program->late_s + 3000) < 500 && fabs(program->missed_s - 3000) < 500);
    kl_report_free(report);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_may_be_asked_before_every_run),
        cmocka_unit_test(a_farm_is_a_benchmark),
        cmocka_unit_test(wrong_questions_are_refused),
        cmocka_unit_test(a_callback_cannot_ask),
        cmocka_unit_test(forecasts_are_in_the_record),
        cmocka_unit_test(what_a_program_expects_is_in_the_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
