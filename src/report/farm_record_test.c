/* Check that the report shows what a real farm has recorded. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/stepped.h"
#include "report/decision_test_helper.h"
#include "report/report.h"
#include "trace/record_test_helper.h"

static int work(const kilter_task *task, kilter_result *result, void *state) {
    (void)state;
    return task->index == 7 ? kilter_result_fail(result, "seven") : 0;
}

static void a_run_leaves_a_record_that_can_be_read(void **state) {
    const char *file = ((place *)*state)->file;
    kilter_farm *farm;
    kilter_error error = {KILTER_OK, ""};
    kilter_farm_options options = {.work = work, .workers = 2, .record = file, .name = "recorded"};
    if (kilter_farm_open(&options, NULL, NULL, &farm, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    assert_int_not_equal(access(file, F_OK),
                         0); /* a farm creates its record only when its first run begins */
    assert_int_equal(kilter_farm_run(farm, &(kilter_run){.tasks = 500}, &error), KILTER_ERR_TASK);
    assert_int_equal(kilter_farm_run(farm, &(kilter_run){.tasks = 5}, &error), KILTER_OK);
    assert_string_equal(kilter_farm_record(farm), file);
    kilter_farm_summary summary;
    kilter_farm_summary_get(farm, &summary);
    assert_true(summary.tasks == 5 && summary.failed == 0 && summary.chunks > 0 && summary.elapsed_s > 0);
    assert_true(summary.efficiency >= 0 && summary.efficiency <= 1);
    assert_non_null(strstr(summary.decision, "auto dealt 5 tasks"));
    assert_int_equal(kilter_farm_close(farm, NULL), KILTER_OK);

    kl_report *report;
    if (kl_report_read(file, &report, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    assert_int_equal(report->iteration_count, 2);
    assert_int_equal(report->iterations[0].tasks, 500);
    assert_int_equal(report->iterations[0].failed, 1);
    assert_int_equal(report->iterations[1].tasks, 5);
    kl_report_free(report);
}

/* a task that computes for about 50 µs */
static int compute(const kilter_task *task, kilter_result *result, void *state) {
    (void)state;
    volatile double sum = 0;
    for (int i = 0; i < 50000; i++)
        sum += (double)task->index / (i + 1);
    return kilter_result_put(result, (const void *)&sum, sizeof sum);
}

/* Run more workers than there are cores. Depending on the machine, the farm uses all workers or fewer. The
 * record must have the chosen number in any case. */
static void a_farm_that_ran_once_says_what_it_learned(void **state) {
    const char *file = ((place *)*state)->file;
    kilter_farm *farm;
    kilter_farm_options options = {.work = compute, .workers = 8, .record = file, .name = "recorded"};
    assert_int_equal(kilter_farm_open(&options, NULL, NULL, &farm, NULL), KILTER_OK);
    assert_int_equal(kilter_farm_run(farm, &(kilter_run){.tasks = 2000}, NULL), KILTER_OK);
    kilter_farm_summary summary;
    kilter_farm_summary_get(farm, &summary);
    assert_int_equal(summary.tasks, 2000);
    assert_in_range(summary.resting, 0, 7);
    assert_int_equal(kilter_farm_close(farm, NULL), KILTER_OK);
    kl_report *report;
    assert_int_equal(kl_report_read(file, &report, NULL), KILTER_OK);
    assert_int_equal(decision_of(report, "team")->decisions, 1);
    kl_report_free(report);
}

static const double BESIDE_S = 0.5; /* CPU seconds that a thread of the program itself uses; the farm must not
                                       count them as its own costs */

static void *compute_beside(void *unused) {
    clockid_t cpu = kl_thread_cpu();
    double begun_s = kl_cpu_s(cpu);
    while (kl_cpu_s(cpu) < begun_s + BESIDE_S)
        ;
    return unused;
}

static void wait_for_a_thread(const kilter_outcome *outcome, void *user) {
    pthread_t thread;
    if (outcome->index > 0)
        return;
    assert_int_equal(pthread_create(&thread, NULL, compute_beside, user), 0);
    pthread_join(thread, NULL);
}

static int nothing(const kilter_task *task, kilter_result *result, void *state) {
    (void)task, (void)result, (void)state;
    return 0;
}

static void a_thread_of_the_program_is_no_cost_of_the_farm(void **state) {
    const char *file = ((place *)*state)->file;
    kilter_farm *farm;
    kilter_farm_options options = {.work = nothing, .workers = 1, .record = file, .name = "recorded"};
    kilter_run run = {.tasks = 20, .done = wait_for_a_thread};
    kl_report *report;
    assert_int_equal(kilter_farm_open(&options, NULL, NULL, &farm, NULL), KILTER_OK);
    assert_int_equal(kilter_farm_run(farm, &run, NULL), KILTER_OK);
    assert_int_equal(kilter_farm_close(farm, NULL), KILTER_OK);
    assert_int_equal(kl_report_read(file, &report, NULL), KILTER_OK);
    assert_true(kl_report_measured(report, "farm_cpu_s") > 0);
    assert_true(kl_report_measured(report, "farm_cpu_s") < BESIDE_S / 2);
    assert_true(kl_report_measured(report, "callbacks_cpu_s") < BESIDE_S / 2);
    kl_report_free(report);
}

/* Task 3 kills each worker that begins it; task 7 reports a failure. */
static int deadly(const kilter_task *task, kilter_result *result, void *state) {
    (void)state;
    if (task->index == 3)
        raise(SIGKILL);
    return task->index == 7 ? kilter_result_fail(result, "seven") : 0;
}

static void what_failed_is_recorded_with_each_attempt(void **state) {
    const char *file = ((place *)*state)->file;
    kilter_farm *farm;
    kilter_error error = {KILTER_OK, ""};
    kilter_farm_options options = {
        .work = deadly, .workers = 2, .attempts = 3, .policy = "ss", .record = file, .name = "recorded"};
    assert_int_equal(kilter_farm_open(&options, NULL, NULL, &farm, &error), KILTER_OK);
    assert_int_equal(kilter_farm_run(farm, &(kilter_run){.tasks = 20}, &error), KILTER_ERR_TASK);
    assert_int_equal(kilter_farm_close(farm, NULL), KILTER_OK);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(kl_failures_print(file, true, out, &error), KILTER_OK);
    fclose(out);
    char want[100];
    for (int attempt = 1; attempt <= 3; attempt++) {
        snprintf(want, sizeof want, "\"run\":0,\"task\":3,\"attempt\":%d,", attempt);
        assert_non_null(strstr(text, want));
    }
    assert_null(strstr(text, "\"attempt\":4"));
    assert_non_null(strstr(text, "\"lost\":true,\"code\":null,\"signal\":9,"));
    assert_non_null(strstr(text, "\"task\":7,\"attempt\":"));
    assert_non_null(strstr(text, "\"lost\":false,\"code\":null,\"signal\":null,\"text\":\"seven\"}"));
    free(text);
}

/* --- the number of workers, under a fake clock --- */

static int work_1ms(const kilter_task *task, kilter_result *result, void *state) {
    (void)task, (void)result;
    stepped_spend(state, 1e-3);
    return 0;
}

static kl_trace *open_recorded(stepped_farm *f, const char *policy, uint32_t workers, const char *file) {
    kl_trace *trace;
    const kl_trace_run_row row = {.program = "test", .version = "", .policy = policy, .host = "here"};
    assert_int_equal(kl_trace_open(file, &row, &trace, NULL), KILTER_OK);
    stepped_open(f, policy, workers, 50e-6, work_1ms);
    kl_master_record(f->master, trace);
    return trace;
}

static kl_report *close_recorded(stepped_farm *f, kl_trace *trace, const char *file) {
    kl_report *report;
    stepped_close(f);
    assert_int_equal(kl_trace_close(trace, 1, NULL), KILTER_OK);
    assert_int_equal(kl_report_read(file, &report, NULL), KILTER_OK);
    return report;
}

/* If messages cost much, the farm must use fewer workers from its third run on, and record the choice with
 * its forecast. */
static void a_choice_is_recorded_with_forecast_and_outcome(void **state) {
    const char *file = ((place *)*state)->file;
    stepped_farm f = {.send_s = 5e-3, .master_actor.now_s = 1e4};
    kl_trace *trace = open_recorded(&f, "static", 16, file);
    stepped_gather(&f);
    for (int run = 0; run < 5; run++)
        assert_int_equal(stepped_run(&f, &(kilter_run){.tasks = 100}, NULL), KILTER_OK);
    kl_master_advise(f.master);
    kl_report *report = close_recorded(&f, trace, file);
    const kl_report_decision *workers = decision_of(report, "workers");
    assert_true(workers->decisions == 4 && workers->forecasts == 3 && workers->tasks == 0);
    assert_non_null(strstr(workers->last_reason, "tries 3 workers: iteration"));
    assert_true(workers->missed_s <
                0.02); /* allowed error of the forecast in seconds; a run takes 60 to 100 ms */
    kl_report_free(report);
    uint32_t team = 0;
    assert_int_equal(kl_record_team(file, "test", &team, NULL), KILTER_OK);
    assert_int_equal(team, 3);
}

/* A farm must begin with the number of workers that an earlier farm has recorded. */
static void a_farm_begins_as_the_record_of_an_earlier_one_says(void **state) {
    const char *file = ((place *)*state)->file;
    stepped_farm f = {.send_s = 5e-3};
    kl_trace *trace = open_recorded(&f, "static", 16, file);
    stepped_gather(&f);
    assert_int_equal(stepped_run(&f, &(kilter_run){.tasks = 100}, NULL), KILTER_OK);
    kl_master_advise(f.master);
    kl_report_free(close_recorded(&f, trace, file));
    stepped_farm next = {.send_s = 5e-3};
    assert_int_equal(kl_record_team(file, "test", &next.seats, NULL), KILTER_OK);
    assert_in_range(next.seats, 1, 8);
    stepped_open(&next, "static", 16, 50e-6, work_1ms);
    stepped_gather(&next);
    assert_int_equal(stepped_run(&next, &(kilter_run){.tasks = 100}, NULL), KILTER_OK);
    kilter_farm_summary summary;
    kl_master_summary(next.master, &summary);
    assert_int_equal(summary.workers, next.seats);
    assert_int_equal(summary.resting, 16 - next.seats);
    stepped_close(&next);
}

static void advice_is_that_of_the_same_program_or_none(void **state) {
    const char *file = ((place *)*state)->file;
    stepped_farm f = {.send_s = 5e-3};
    kl_trace *trace = open_recorded(&f, "static", 4, file);
    stepped_gather(&f);
    kl_master_advise(f.master); /* this farm has had no run, so it cannot know a good number of workers */
    kl_report_free(close_recorded(&f, trace, file));
    uint32_t team = 7;
    kilter_error error;
    assert_int_equal(kl_record_team(file, "test", &team, &error), KILTER_OK);
    assert_int_equal(team, 0); /* 0 means that the record has no number of workers */
    team = 7;
    assert_int_equal(kl_record_team(file, "other", &team, &error), KILTER_ERR_USAGE);
    assert_non_null(strstr(error.text, "it is a record of program 'test', but this program is 'other'"));
    assert_int_equal(kl_record_team("missing.kilter", "test", &team, &error), KILTER_ERR_USAGE);
    assert_non_null(strstr(error.text, "--team missing.kilter: No such file"));
    assert_int_equal(team, 7);
}

/* One of four workers is a thousand times slower than the others. The farm notices this when the worker
 * does not answer for a long time. From then on, the worker must get no tasks, and each forecast must
 * mention the worker. */
static void who_is_too_slow_to_help_is_recorded(void **state) {
    enum { RUNS = 6 };
    const char *file = ((place *)*state)->file;
    stepped_farm f = {0};
    kl_trace *trace = open_recorded(&f, "ect", 4, file);
    f.workers[2].speed = 1e-3;
    stepped_gather(&f);
    for (int run = 0; run < RUNS; run++)
        assert_int_equal(stepped_run(&f, &(kilter_run){.tasks = 60}, NULL), KILTER_OK);
    kl_report *report = close_recorded(&f, trace, file);
    const kl_report_decision *withheld = decision_of(report, "withhold"),
                             *assigned = decision_of(report, "assign");
    assert_non_null(strstr(withheld->last_reason, "too slow to help: this worker would end a task only in "));
    assert_non_null(strstr(assigned->last_reason, "to 3 workers"));
    assert_non_null(strstr(assigned->last_reason, "too slow to help: 1"));
    assert_true(assigned->forecasts == assigned->decisions && assigned->decisions >= RUNS - 2);
    assert_int_equal(report->iterations[RUNS - 1].workers, 3);
    kl_report_free(report);
}

static void add_twice(const kilter_outcome *o, void *user) {
    if (o->index < 60)
        assert_int_equal(stepped_add(user, 2, NULL, NULL, NULL), KILTER_OK);
}

/* Tasks are added during the run. The row of the run and the rows of its chunks must count them, too. There
 * is no forecast, because at the beginning nobody knew how many tasks would come. */
static void a_run_that_grows_is_recorded_as_it_ended(void **state) {
    const char *file = ((place *)*state)->file;
    stepped_farm f = {0};
    kl_trace *trace = open_recorded(&f, "ect", 3, file);
    stepped_gather(&f);
    for (int run = 0; run < 4; run++)
        assert_int_equal(
            stepped_run(&f, &(kilter_run){.tasks = 60, .done = add_twice, .user = &f, .grows = true}, NULL),
            KILTER_OK);
    kl_report *report = close_recorded(&f, trace, file);
    for (int run = 0; run < 4; run++) {
        const kl_report_iteration *it = &report->iterations[run];
        assert_int_equal(it->tasks, 180);
        assert_int_equal(it->tasks_done, 180);
        assert_true(it->units == 180);
    }
    const kl_report_decision *assigned = decision_of(report, "assign");
    assert_true(assigned->decisions > 0 && assigned->forecasts == 0);
    kl_report_free(report);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_leaves_a_record_that_can_be_read, make_place, remove_place),
        cmocka_unit_test_setup_teardown(a_farm_that_ran_once_says_what_it_learned, make_place, remove_place),
        cmocka_unit_test_setup_teardown(what_failed_is_recorded_with_each_attempt, make_place, remove_place),
        cmocka_unit_test_setup_teardown(a_choice_is_recorded_with_forecast_and_outcome, make_place,
                                        remove_place),
        cmocka_unit_test_setup_teardown(a_farm_begins_as_the_record_of_an_earlier_one_says, make_place,
                                        remove_place),
        cmocka_unit_test_setup_teardown(a_thread_of_the_program_is_no_cost_of_the_farm, make_place,
                                        remove_place),
        cmocka_unit_test_setup_teardown(advice_is_that_of_the_same_program_or_none, make_place, remove_place),
        cmocka_unit_test_setup_teardown(who_is_too_slow_to_help_is_recorded, make_place, remove_place),
        cmocka_unit_test_setup_teardown(a_run_that_grows_is_recorded_as_it_ended, make_place, remove_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
