/* Test a whole farm under a simulated clock: every policy, many sizes, and workers that are unequal, fail or
 * die. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cases_test_helper.h"
#include "engine/stepped.h"

/* --- a task whose result contains the number of the task --- */

static double cost_of(uint64_t index) {
    return 1e-4 * (1 + (double)(kl_mix64(index) % 100));
}

static int work(const kilter_task *task, kilter_result *result, void *state) {
    stepped_spend(state, cost_of(task->index));
    uint64_t shared = 0, input = task->index;
    if (task->shared.size == sizeof shared)
        memcpy(&shared, task->shared.data, sizeof shared);
    if (task->input.size > 0)
        memcpy(&input, task->input.data, sizeof input);
    uint64_t answer[] = {task->index * 3 + shared, input, task->run};
    return kilter_result_put(result, answer, sizeof answer);
}

typedef struct tally {
    uint64_t tasks, run, shared;
    uint8_t *seen;
    uint64_t count, next;
    bool in_order, right;
} tally;

static void count_outcome(const kilter_outcome *outcome, void *user) {
    tally *t = user;
    uint64_t answer[3];
    assert_int_equal(outcome->status, KILTER_OK);
    assert_true(outcome->index < t->tasks);
    assert_int_equal(outcome->result.size, sizeof answer);
    memcpy(answer, outcome->result.data, sizeof answer);
    t->right &=
        answer[0] == outcome->index * 3 + t->shared && answer[1] == outcome->index && answer[2] == t->run;
    t->seen[outcome->index]++;
    t->count++;
    t->in_order &= outcome->index == t->next;
    t->next = outcome->index + 1;
}

static void check_run(stepped_farm *f, uint64_t tasks, uint64_t run_number, kilter_order order, bool inputs,
                      bool weights) {
    tally t = {
        .tasks = tasks, .run = run_number, .shared = 1000 + run_number, .in_order = true, .right = true};
    t.seen = calloc(tasks + 1, 1);
    uint64_t *numbers = calloc(tasks + 1, sizeof *numbers);
    kilter_bytes *spans = calloc(tasks + 1, sizeof *spans);
    double *costs = calloc(tasks + 1, sizeof *costs);
    for (uint64_t i = 0; i < tasks; i++) {
        numbers[i] = i;
        spans[i] = (kilter_bytes){&numbers[i], sizeof numbers[i]};
        costs[i] = cost_of(i);
    }
    kilter_run run = {.tasks = tasks,
                      .shared = {&t.shared, sizeof t.shared},
                      .order = order,
                      .done = count_outcome,
                      .user = &t};
    run.inputs = inputs ? spans : NULL;
    run.weights = weights ? costs : NULL;
    kilter_error error = {KILTER_OK, ""};
    if (stepped_run(f, &run, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    assert_true(t.count == tasks && t.right);
    assert_true(order == KILTER_BY_ARRIVAL || t.in_order);
    for (uint64_t i = 0; i < tasks; i++)
        assert_int_equal(t.seen[i], 1);
    free(t.seen);
    free(numbers);
    free(spans);
    free(costs);
}

static void every_policy_does_every_task_once_whatever_the_size(void **state) {
    (void)state;
    const uint32_t workers[] = {1, 2, 3, 7, 16};
    for (size_t p = 0; p < kl_policy_count(); p++)
        for (size_t w = 0; w < sizeof workers / sizeof workers[0]; w++) {
            stepped_farm f = {0};
            stepped_open(&f, kl_policy_name(kl_policy_at(p)), workers[w], 50e-6, work);
            for (uint32_t i = 0; i < workers[w]; i++)
                f.workers[i].speed = 0.1 + (double)(kl_mix64(i + p) % 10);
            stepped_gather(&f);
            uint64_t sizes[] = {0, 1, 2, workers[w] - 1, workers[w], workers[w] + 1, 3 * workers[w] + 2, 500};
            for (uint64_t run = 0; run < sizeof sizes / sizeof sizes[0]; run++)
                check_run(&f, sizes[run], run, run % 2 ? KILTER_BY_INDEX : KILTER_BY_ARRIVAL, run % 3 == 0,
                          run % 5 == 2);
            stepped_close(&f);
        }
}

enum { SERIES_TASKS = 200 };

typedef struct doers {
    uint32_t now[SERIES_TASKS], before[SERIES_TASKS];
} doers;

static void note_doer(const kilter_outcome *outcome, void *user) {
    assert_int_equal(outcome->status, KILTER_OK);
    ((doers *)user)->now[outcome->index] = outcome->worker;
}

/* Do a run. Return how many tasks were done by another worker than in the last run. Tasks of workers whose
 * number is `gone` or higher do not count. */
static int run_and_count_moved(stepped_farm *f, doers *d, uint64_t series, uint32_t gone) {
    int moved = 0;
    memcpy(d->before, d->now, sizeof d->before);
    kilter_run run = {.tasks = SERIES_TASKS, .done = note_doer, .user = d, .series = series};
    assert_int_equal(stepped_run(f, &run, NULL), KILTER_OK);
    for (int i = 0; i < SERIES_TASKS; i++)
        moved += d->now[i] != d->before[i] && d->before[i] < gone;
    return moved;
}

static int spend_one(const kilter_task *task, kilter_result *result, void *state) {
    stepped_spend(state, 1e-3);
    return kilter_result_put(result, &task->index, sizeof task->index);
}

enum { SERIES_WORKERS = 6, SERIES_RUNS = 8 };

/* Do runs in which speeds change by up to a tenth. Return how many tasks changed their worker, in all runs
 * together. Then let a worker die, and do one more run. *then: number of tasks that changed their worker in
 * this run, without tasks of the dead worker. */
static int moved_by(const char *policy, uint64_t series, int *then) {
    stepped_farm f = {0};
    int moved = 0;
    doers d;
    stepped_open(&f, policy, SERIES_WORKERS, 50e-6, spend_one);
    stepped_gather(&f);
    for (uint64_t run = 0; run < SERIES_RUNS; run++) {
        for (uint64_t i = 0; i < SERIES_WORKERS; i++)
            f.workers[i].speed =
                (1 + (double)i / 2) * (0.9 + 0.2 * (double)(kl_mix64(run * 8 + i) % 100) / 100);
        int now = run_and_count_moved(&f, &d, series, SERIES_WORKERS);
        moved += run ? now : 0;
    }
    f.workers[SERIES_WORKERS - 1].dies_s = f.master_actor.now_s;
    while (kl_master_ready(f.master) == SERIES_WORKERS)
        assert_int_equal(stepped_turn(&f, NULL), KILTER_OK);
    *then = run_and_count_moved(&f, &d, series, SERIES_WORKERS - 1);
    stepped_close(&f);
    return moved;
}

static void tasks_of_a_series_stay_at_their_workers(void **state) {
    (void)state;
    static const char *const policies[] = {"static", "ss", "fac2", "auto", "ect"};
    for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
        int alone_then, then, alone = moved_by(policies[p], 0, &alone_then),
                              moved = moved_by(policies[p], 7, &then);
        printf("%s: of %d tasks %d move, in a series %d; %d and %d after a death\n", policies[p],
               SERIES_TASKS * (SERIES_RUNS - 1), alone, moved, alone_then, then);
        if (moved > alone / 2 || then > SERIES_TASKS / 10)
            fail_msg("%s: %d tasks moved, %d after a death", policies[p], moved, then);
    }
}

static void tasks_of_dead_workers_are_done_by_the_others(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < kl_test_cases(40, 150); seed++) {
        const kl_policy *policy = kl_policy_at(seed % kl_policy_count());
        uint32_t workers = 2 + kl_mix64(seed) % 5;
        stepped_farm f = {0};
        stepped_open(&f, kl_policy_name(policy), workers, 50e-6, work);
        /* all workers but the first may die at any moment, even while they join */
        for (uint32_t i = 1; i < workers; i++)
            f.workers[i].dies_s = 0.3 * (double)(kl_mix64(seed * 64 + i) % 1000) / 1000;
        stepped_gather(&f);
        check_run(&f, 300, 0, seed % 2 ? KILTER_BY_INDEX : KILTER_BY_ARRIVAL, true, seed % 3 == 0);
        check_run(&f, 100, 1, KILTER_BY_INDEX, false, false);
        stepped_close(&f);
    }
}

static void the_death_of_the_last_worker_ends_the_run_with_its_name(void **state) {
    (void)state;
    stepped_farm f = {0};
    stepped_open(&f, "auto", 2, 50e-6, work);
    f.workers[0].dies_s = 0.05;
    f.workers[1].dies_s = 0.07;
    stepped_gather(&f);
    kilter_error error;
    assert_int_equal(stepped_run(&f, &(kilter_run){.tasks = 1000}, &error), KILTER_ERR_NO_WORKER);
    assert_non_null(strstr(error.text, "of 1000 tasks are not done; the last loss: worker 1"));
    kilter_farm_summary summary;
    kl_master_summary(f.master, &summary);
    assert_true(summary.efficiency > 0 && summary.efficiency <= 1 && summary.equal_split_s == 0);
    assert_int_equal(stepped_run(&f, &(kilter_run){.tasks = 10}, &error),
                     KILTER_ERR_NO_WORKER); /* the next run must end with the same error, and must not hang */
    stepped_close(&f);
}

static void a_worker_that_cannot_start_is_left_out(void **state) {
    (void)state;
    stepped_farm f = {0};
    stepped_open(&f, "static", 3, 50e-6, work);
    f.workers[1].refuses = true;
    stepped_gather(&f);
    assert_int_equal(kl_master_ready(f.master), 2);
    assert_non_null(strstr(kl_master_last_loss(f.master), "start function returned 1"));
    check_run(&f, 40, 0, KILTER_BY_INDEX, false, false);
    stepped_close(&f);
}

/* --- tasks that fail --- */

static int work_or_fail(const kilter_task *task, kilter_result *result, void *state) {
    stepped_spend(state, 1e-3);
    kilter_result_put(result, "half done", 9);
    if (task->index % 10 == 3)
        return kilter_result_fail(result, "the number %llu ends in 3", (unsigned long long)task->index);
    return task->index % 10 == 7 ? 42 : 0;
}

typedef struct failures {
    uint64_t threes, sevens, good;
} failures;

static void count_failures(const kilter_outcome *o, void *user) {
    failures *f = user;
    char expected[64];
    if (o->index % 10 == 3) {
        snprintf(expected, sizeof expected, "the number %llu ends in 3", (unsigned long long)o->index);
        assert_string_equal(o->error, expected);
        f->threes++;
    } else if (o->index % 10 == 7) {
        assert_string_equal(o->error, "the work function returned 42");
        f->sevens++;
    } else {
        assert_null(o->error);
        assert_int_equal(o->result.size, 9);
        f->good++;
        return;
    }
    assert_int_equal(o->status, KILTER_ERR_TASK);
    /* the part of a result that was written before the failure must be dropped */
    assert_int_equal(o->result.size, 0);
}

static void failed_tasks_are_told_and_the_rest_goes_on(void **state) {
    (void)state;
    stepped_farm f = {0};
    stepped_open(&f, "auto", 3, 50e-6, work_or_fail);
    stepped_gather(&f);
    failures seen = {0, 0, 0};
    assert_int_equal(
        stepped_run(&f, &(kilter_run){.tasks = 200, .done = count_failures, .user = &seen}, NULL), KILTER_OK);
    assert_true(seen.threes == 20 && seen.sevens == 20 && seen.good == 160);
    kilter_farm_summary summary;
    kl_master_summary(f.master, &summary);
    assert_int_equal(summary.failed, 40);
    stepped_close(&f);
}

/* --- weights of extreme sizes --- */

static void weights_of_any_size_and_mixture_are_dealt(void **state) {
    (void)state;
    enum { TASKS = 200 };
    const double pairs[][2] = {{1e-50, 1e-50}, {1e50, 1e50}, {1e-50, 1e50}, {1, 1e50}};
    double weights[TASKS];
    for (size_t p = 0; p < kl_policy_count(); p++)
        for (size_t k = 0; k < sizeof pairs / sizeof pairs[0]; k++) {
            for (int i = 0; i < TASKS; i++)
                weights[i] = pairs[k][i % 2];
            stepped_farm f = {0};
            stepped_open(&f, kl_policy_name(kl_policy_at(p)), 3, 50e-6, work);
            stepped_gather(&f);
            kilter_error error = {KILTER_OK, ""};
            if (stepped_run(&f, &(kilter_run){.tasks = TASKS, .weights = weights}, &error) != KILTER_OK)
                fail_msg("%s, %g, %g: %s", kl_policy_name(kl_policy_at(p)), pairs[k][0], pairs[k][1],
                         error.text);
            kilter_farm_summary summary;
            kl_master_summary(f.master, &summary);
            assert_int_equal(kl_master_ready(f.master), 3);
            assert_true(summary.efficiency >= 0 && summary.efficiency <= 1 + 1e-9);
            stepped_close(&f);
        }
}

/* --- large inputs of tasks --- */

static int work_on_input(const kilter_task *task, kilter_result *result, void *state) {
    stepped_spend(state, 1e-3);
    return kilter_result_put(result, &task->input.size, sizeof task->input.size) != KILTER_OK;
}

/* Give the last task nearly all the weight. By weight, nearly all other tasks would then fit into a small
 * chunk. But their inputs do not fit into one message. */
static void inputs_fit_their_message_whatever_the_weights(void **state) {
    (void)state;
    enum { TASKS = 1100, INPUT_BYTES = 1 << 20 };
    void *input = calloc(1, INPUT_BYTES);
    kilter_bytes inputs[TASKS];
    double weights[TASKS];
    for (int i = 0; i < TASKS; i++) {
        inputs[i] = (kilter_bytes){input, INPUT_BYTES};
        weights[i] = i < TASKS - 1 ? 1e-6 : 1e6;
    }
    stepped_farm f = {0};
    stepped_open(&f, "auto", 2, 50e-6, work_on_input);
    stepped_gather(&f);
    kilter_error error = {KILTER_OK, ""};
    if (stepped_run(&f, &(kilter_run){.tasks = TASKS, .inputs = inputs, .weights = weights}, &error))
        fail_msg("%s", error.text);
    kilter_farm_summary summary;
    kl_master_summary(f.master, &summary);
    assert_true(summary.chunks >= TASKS / 16);
    stepped_close(&f);
    free(input);
}

/* --- the times at which results arrive --- */

typedef struct arrivals {
    stepped_farm *farm;
    double began_s;
    uint64_t count;
} arrivals;

static void expect_soon(const kilter_outcome *o, void *user) {
    arrivals *a = user;
    double ended_s = a->began_s + 0.02 * (double)(o->index + 1);
    assert_true(a->farm->master_actor.now_s < ended_s + 0.15);
    a->count++;
}

static int work_20ms(const kilter_task *task, kilter_result *result, void *state) {
    (void)task, (void)result;
    stepped_spend(state, 20e-3);
    return 0;
}

static void results_do_not_wait_for_the_end_of_their_chunk(void **state) {
    (void)state;
    stepped_farm f = {0};
    stepped_open(&f, "static", 1, 50e-6, work_20ms);
    stepped_gather(&f);
    arrivals a = {.farm = &f, .began_s = f.master_actor.now_s};
    assert_int_equal(stepped_run(&f, &(kilter_run){.tasks = 200, .done = expect_soon, .user = &a}, NULL),
                     KILTER_OK);
    assert_int_equal(a.count, 200);
    stepped_close(&f);
}

/* --- efficiency under a simulated clock --- */

static int work_1ms(const kilter_task *task, kilter_result *result, void *state) {
    (void)task, (void)result;
    stepped_spend(state, 1e-3);
    return 0;
}

static double efficiency(const char *policy, uint32_t workers, double slow, uint64_t tasks) {
    stepped_farm f = {0};
    stepped_open(&f, policy, workers, 50e-6, work_1ms);
    for (uint32_t i = workers / 2; i < workers; i++)
        f.workers[i].speed = slow;
    stepped_gather(&f);
    assert_int_equal(stepped_run(&f, &(kilter_run){.tasks = tasks}, NULL), KILTER_OK);
    kilter_farm_summary summary;
    kl_master_summary(f.master, &summary);
    stepped_close(&f);
    return summary.efficiency;
}

static void auto_keeps_unequal_workers_busy(void **state) {
    (void)state;
    const struct {
        uint32_t workers;
        double slow;
        uint64_t tasks;
        double least;
    } rows[] = {
        {2, 1, 2000, 0.99},    {2, 0.5, 2000, 0.99}, {16, 0.25, 8000, 0.985},
        {2, 0.05, 2000, 0.98}, {1, 1, 100, 0.97},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double got = efficiency("auto", rows[i].workers, rows[i].slow, rows[i].tasks);
        print_message("auto, %u workers, half of them at %g: %.4f\n", rows[i].workers, rows[i].slow, got);
        assert_true(got >= rows[i].least && got <= 1.0 + 1e-9);
    }
    double equal = efficiency("static", 2, 0.5, 2000);
    /* with an equal split, the fast worker must wait for the slow one */
    assert_true(fabs(equal - 2.0 / 3) < 0.01);
}

/* Change the unit of the tasks' weights from run to run. The farm must stay equally efficient. */
static void units_of_weight_do_not_matter(void **state) {
    (void)state;
    const double scales[] = {0, 1e-6, 1, 1e6};
    stepped_farm f = {0};
    stepped_open(&f, "auto", 4, 50e-6, work_1ms);
    f.workers[2].speed = 0.3;
    stepped_gather(&f);
    double weights[2000];
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
        for (int k = 0; k < 2000; k++)
            weights[k] = scales[i];
        kilter_run run = {.tasks = 2000, .weights = scales[i] > 0 ? weights : NULL};
        assert_int_equal(stepped_run(&f, &run, NULL), KILTER_OK);
        kilter_farm_summary summary;
        kl_master_summary(f.master, &summary);
        assert_true(summary.efficiency > 0.98);
    }
    stepped_close(&f);
}

static void the_summary_says_what_was_gained(void **state) {
    (void)state;
    stepped_farm f = {0};
    stepped_open(&f, "auto", 2, 50e-6, work_1ms);
    f.workers[1].speed = 0.5;
    stepped_gather(&f);
    assert_int_equal(stepped_run(&f, &(kilter_run){.tasks = 2000}, NULL), KILTER_OK);
    kilter_farm_summary s;
    kl_master_summary(f.master, &s);
    assert_true(fabs(s.bound_s - 2.0 / 1.5) < 0.01);
    assert_true(fabs(s.equal_split_s - 2.0) < 0.02);
    assert_int_equal(s.workers, 2);
    assert_non_null(strstr(s.decision, "auto dealt 2000 tasks"));
    assert_non_null(strstr(s.decision, "1.00 : 0.50"));
    stepped_close(&f);
}

/* Do a run with messages that take much longer than tasks. The summary must say that an equal split would
 * have been faster. */
static void the_summary_does_not_flatter(void **state) {
    (void)state;
    stepped_farm f = {0};
    stepped_open(&f, "ss", 2, 10e-3, work_1ms);
    stepped_gather(&f);
    assert_int_equal(stepped_run(&f, &(kilter_run){.tasks = 40}, NULL), KILTER_OK);
    kilter_farm_summary s;
    kl_master_summary(f.master, &s);
    assert_true(s.equal_split_s < 0.9 * s.elapsed_s);
    assert_non_null(strstr(s.decision, "would have taken 0."));
    assert_null(strstr(s.decision, "as well"));
    stepped_close(&f);
}

/* --- the cost of messages --- */

static void the_message_cost_follows_the_traffic(void **state) {
    (void)state;
    for (size_t p = 0; p < kl_policy_count(); p++) {
        /* Let workers check for messages during tasks. Otherwise a message would wait until a task ends, and
         * would seem slow. */
        stepped_farm f = {.attended = true};
        stepped_open(&f, kl_policy_name(kl_policy_at(p)), 4, 50e-6, work_1ms);
        stepped_gather(&f);
        const double latencies_s[] = {50e-6, 500e-6, 20e-6};
        for (size_t i = 0; i < sizeof latencies_s / sizeof latencies_s[0]; i++) {
            f.timing.latency_s = latencies_s[i];
            for (int run = 0; run < 3; run++)
                assert_int_equal(stepped_run(&f, &(kilter_run){.tasks = 400}, NULL), KILTER_OK);
            kl_farm_state s;
            kl_master_state(f.master, &s);
            if (fabs(s.message.fixed_s - latencies_s[i]) > 0.1 * latencies_s[i] ||
                fabs(s.message.per_unit_s - 8e-9) > 0.2 * 8e-9)
                fail_msg("%s: %g s and %g s/byte, it is %g s", kl_policy_name(kl_policy_at(p)),
                         s.message.fixed_s, s.message.per_unit_s, latencies_s[i]);
        }
        stepped_close(&f);
    }
}

/* --- tuning points that a user sets during a run --- */

static uint32_t working(const stepped_farm *f) {
    kl_farm_state state;
    kl_master_state(f->master, &state);
    return state.present;
}

static void a_number_set_by_hand_holds_from_the_next_run_on(void **state) {
    (void)state;
    for (size_t p = 0; p < kl_policy_count(); p++) {
        stepped_farm f = {0};
        stepped_open(&f, kl_policy_name(kl_policy_at(p)), 5, 50e-6, work);
        for (uint32_t i = 0; i < 5; i++)
            f.workers[i].speed = 1 + i;
        stepped_gather(&f);
        check_run(&f, 300, 0, KILTER_BY_ARRIVAL, false, false);
        const uint32_t wanted[] = {2, 1, 4, 9, 0};
        for (uint64_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
            kl_tuning tuning = {.set = KL_TUNE_WORKERS, .workers = wanted[i]};
            uint32_t before = working(&f);
            assert_int_equal(kl_master_tune(f.master, &tuning, NULL), KILTER_OK);
            assert_int_equal(working(&f), before);
            check_run(&f, 300, i + 1, KILTER_BY_INDEX, true, i % 2);
            assert_int_equal(working(&f), wanted[i] == 0 || wanted[i] > 5 ? 5 : wanted[i]);
            kilter_farm_summary summary;
            kl_master_summary(f.master, &summary);
            assert_true(summary.workers <= working(&f) && summary.efficiency <= 1 + 1e-9);
        }
        stepped_close(&f);
    }
}

static void the_fastest_stay(void **state) {
    (void)state;
    stepped_farm f = {0};
    stepped_open(&f, "auto", 6, 50e-6, work);
    for (uint32_t i = 0; i < 6; i++)
        f.workers[i].speed = i % 2 ? 2 : 0.5;
    stepped_gather(&f);
    check_run(&f, 600, 0, KILTER_BY_ARRIVAL, false, false);
    kl_master_tune(f.master, &(kl_tuning){.set = KL_TUNE_WORKERS, .workers = 3}, NULL);
    check_run(&f, 600, 1, KILTER_BY_ARRIVAL, false, false);
    kl_farm_state s;
    kl_master_state(f.master, &s);
    for (uint32_t i = 0; i < s.listed; i++)
        assert_int_equal(s.worker[i].doing == KL_WORKER_RESTING, s.worker[i].worker % 2 == 0);
    kl_master_tune(f.master, &(kl_tuning){.set = KL_TUNE_WORKERS}, NULL);
    check_run(&f, 600, 2, KILTER_BY_ARRIVAL, false, false);
    kl_master_state(f.master, &s);
    assert_int_equal(s.present, 6);
    assert_string_equal(s.decision, "6 workers: the farm chooses the number again, as set by hand");
    stepped_close(&f);
}

static void whoever_dies_is_replaced_by_one_that_rests(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < kl_test_cases(40, 150); seed++) {
        stepped_farm f = {0};
        stepped_open(&f, kl_policy_name(kl_policy_at(seed % kl_policy_count())), 6, 50e-6, work);
        stepped_gather(&f);
        check_run(&f, 100, 0, KILTER_BY_ARRIVAL, false, false);
        kl_master_tune(f.master, &(kl_tuning){.set = KL_TUNE_WORKERS, .workers = 2}, NULL);
        uint32_t alive = 6;
        for (uint32_t i = 0; i < 5; i++) /* the workers that die may be active or resting ones */
            f.workers[i].dies_s =
                f.master_actor.now_s + 2.0 * (double)(kl_mix64(seed * 64 + i) % 1000) / 1000;
        for (uint64_t run = 1; run < 8; run++) {
            check_run(&f, 200, run, KILTER_BY_INDEX, true, seed % 3 == 0);
            alive = kl_master_ready(f.master);
            assert_int_equal(working(&f), alive < 2 ? alive : 2);
        }
        assert_true(alive >= 1);
        stepped_close(&f);
    }
}

static void policy_and_factor_are_set_when_they_may_be(void **state) {
    (void)state;
    stepped_farm f = {0};
    stepped_open(&f, "auto", 3, 50e-6, work);
    stepped_gather(&f);
    kilter_error error;
    kl_farm_state s;
    kl_tuning tuning = {.set = KL_TUNE_FACTOR, .factor = 1.5};
    assert_int_equal(kl_master_tune(f.master, &tuning, &error), KILTER_ERR_RANGE);
    tuning =
        (kl_tuning){.set = KL_TUNE_POLICY | KL_TUNE_FACTOR, .policy = kl_policy_find("fsc"), .factor = 0.1};
    assert_int_equal(kl_master_tune(f.master, &tuning, &error), KILTER_OK);
    kl_master_state(f.master, &s);
    assert_string_equal(kl_policy_name(s.policy), "auto");
    assert_true(s.pending.set == (KL_TUNE_POLICY | KL_TUNE_FACTOR) && s.factor == 0);
    check_run(&f, 300, 0, KILTER_BY_INDEX, false, false);
    kl_master_state(f.master, &s);
    assert_string_equal(kl_policy_name(s.policy), "fsc");
    assert_true(s.pending.set == 0 && s.factor == 0.1);
    kl_master_tune(f.master, &(kl_tuning){.set = KL_TUNE_FACTOR, .factor = 0.5}, NULL);
    kl_master_state(f.master, &s);
    assert_true(s.factor == 0.5);
    assert_string_equal(s.decision, "factor 0.5: set by hand");
    stepped_close(&f);
}

static void the_state_shows_the_model_of_the_last_run(void **state) {
    (void)state;
    stepped_farm f = {0};
    stepped_open(&f, "auto", 4, 50e-6, work_1ms);
    f.workers[3].speed = 0.5;
    kl_farm_state s;
    kl_master_state(f.master, &s);
    assert_true(s.last.workers == 0 && s.best_workers == 0 && s.listed == 0);
    stepped_gather(&f);
    assert_int_equal(stepped_run(&f, &(kilter_run){.tasks = 2000}, NULL), KILTER_OK);
    kl_master_state(f.master, &s);
    assert_int_equal(s.last.workers, 4);
    assert_true(fabs(s.last.model.work_s - 2000 * 1e-3 * 4 / 3.5) < 1e-3);
    assert_true(s.last.task_sd_s < 1e-9 && s.last.quality < 0.02);
    assert_true(fabs(s.time_s - s.last.elapsed_s) < 0.05 * s.last.elapsed_s);
    assert_true(s.present == 4 && s.listed == 4 && s.done == 2000 && !s.running && s.run == 0);
    assert_true(fabs(s.worker[3].rate_units_per_s - 500) < 1);
    stepped_close(&f);
}

/* --- only workers that make the run faster are active --- */

static double run_s(stepped_farm *f, uint64_t tasks) {
    kilter_error error = {KILTER_OK, ""};
    if (stepped_run(f, &(kilter_run){.tasks = tasks}, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    kilter_farm_summary summary;
    kl_master_summary(f->master, &summary);
    assert_true(summary.efficiency <= 1 + 1e-9);
    return summary.elapsed_s;
}

/* Do runs with 100 ms of work, in which each message takes 5 ms. Most of the 16 workers must rest. With more
 * work, all workers must be active again. */
static void those_that_do_not_pay_rest_and_come_back_when_they_do(void **state) {
    (void)state;
    const char *const policies[] = {"static", "auto", "daf", "fac2", "gss"};
    for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++) {
        stepped_farm f = {.send_s = 5e-3};
        stepped_open(&f, policies[p], 16, 50e-6, work_1ms);
        stepped_gather(&f);
        double all_s = run_s(&f, 100), some_s = 0;
        for (int run = 1; run < 12; run++) {
            some_s = run_s(&f, 100);
            assert_true(run > 2 || working(&f) == 16);
        }
        kl_farm_state s;
        kl_master_state(f.master, &s);
        print_message("%s: %u workers, %.3g s instead of %.3g s: %s\n", policies[p], working(&f), some_s,
                      all_s, s.decision);
        assert_true(working(&f) >= 1 && working(&f) <= 6 && some_s < all_s);
        kilter_farm_summary summary;
        kl_master_summary(f.master, &summary);
        assert_int_equal(summary.resting, 16 - working(&f));
        assert_non_null(strstr(summary.decision, "more rested"));
        for (int run = 0; run < 8; run++)
            run_s(&f, 50000);
        assert_true(working(&f) > 12);
        stepped_close(&f);
    }
}

static void the_choice_loses_no_task_whoever_dies(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < kl_test_cases(40, 130); seed++) {
        stepped_farm f = {
            .send_s = 2e-3,
        };
        stepped_open(&f, kl_policy_name(kl_policy_at(seed % kl_policy_count())), 8, 50e-6, work);
        stepped_gather(&f);
        for (uint32_t i = 1; i < 8; i++) /* the workers that die may be active or resting ones */
            f.workers[i].dies_s = 4.0 * (double)(kl_mix64(seed * 64 + i) % 1000) / 1000;
        for (uint64_t run = 0; run < 12; run++) {
            check_run(&f, run < 6 ? 30 : 300, run, KILTER_BY_INDEX, true, seed % 3 == 0);
            assert_true(working(&f) >= 1);
        }
        stepped_close(&f);
    }
}

static void released_workers_leave_once_it_is_sure(void **state) {
    (void)state;
    stepped_farm f = {.send_s = 5e-3, .release = true};
    stepped_open(&f, "static", 16, 50e-6, work_1ms);
    stepped_gather(&f);
    for (int run = 0; run < 4; run++)
        run_s(&f, 100);
    assert_true(working(&f) < 16);
    /* resting workers must stay connected, because they may be needed again */
    assert_int_equal(kl_master_ready(f.master), 16);
    for (int run = 0; run < 4; run++)
        run_s(&f, 100);
    uint32_t left = kl_master_ready(f.master), alive = 0;
    assert_int_equal(left, working(&f));
    /* workers that were released must not count as refused */
    assert_int_equal(kl_master_refused(f.master), 0);
    for (uint32_t i = 0; i < f.count; i++)
        alive += f.workers[i].worker != NULL;
    assert_int_equal(alive, left);
    for (int run = 0; run < 4; run++)
        run_s(&f, 50000);
    assert_int_equal(working(&f), left);
    stepped_close(&f);
}

static void the_master_counts_its_own_time(void **state) {
    (void)state;
    stepped_farm f = {0};
    stepped_open(&f, "static", 8, 50e-6, work_1ms);
    stepped_gather(&f);
    for (int run = 0; run < 8; run++) {
        /* the program itself computes for 0.5 s, the time of all tasks in total, so one worker is enough */
        kl_master_spent(f.master, 0.5);
        run_s(&f, 500);
    }
    kl_farm_state s;
    kl_master_state(f.master, &s);
    assert_true(s.last.model.master_s == 0.5 && s.best_workers == 1 && s.present == 1);
    stepped_close(&f);
}

/* Tell the master that too many results wait for the disk. The tasks that were dealt must be done, and no
 * more tasks may be dealt until there is room again. */
static void a_master_that_holds_deals_nothing(void **state) {
    (void)state;
    enum { TASKS = 5000 };
    stepped_farm f = {0};
    stepped_open(&f, "auto", 3, 50e-6, work);
    stepped_gather(&f);
    uint8_t seen[TASKS] = {0};
    tally t = {.tasks = TASKS, .right = true, .seen = seen};
    kilter_run run = {.tasks = TASKS, .done = count_outcome, .user = &t};
    kl_deliverer *deliverer;
    assert_int_equal(kl_deliverer_new(&run, (kl_reducer){0}, &deliverer, NULL), KILTER_OK);
    assert_int_equal(kl_master_begin(f.master, &run, NULL), KILTER_OK);
    uint64_t held_at = 0;
    for (int times = 0; times < 5 && kl_master_running(f.master); times++) {
        while (kl_master_running(f.master) && t.count < held_at + TASKS / 10) {
            assert_int_equal(stepped_turn(&f, NULL), KILTER_OK);
            assert_int_equal(kl_deliver(deliverer, kl_master_take(f.master), NULL), KILTER_OK);
        }
        kl_master_unsafe(f.master, t.count, true);
        double first_s;
        while (stepped_next(&f, &first_s) && first_s < HUGE_VAL)
            assert_int_equal(stepped_turn(&f, NULL), KILTER_OK);
        assert_int_equal(kl_deliver(deliverer, kl_master_take(f.master), NULL), KILTER_OK);
        assert_true(times > 0 || t.count < TASKS); /* dealing must have been stopped at least once */
        held_at = t.count;
        kl_master_unsafe(f.master, 0, false);
    }
    while (kl_master_running(f.master)) {
        assert_int_equal(stepped_turn(&f, NULL), KILTER_OK);
        assert_int_equal(kl_deliver(deliverer, kl_master_take(f.master), NULL), KILTER_OK);
    }
    assert_int_equal(t.count, TASKS);
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(seen[i], 1);
    kl_deliverer_free(deliverer);
    stepped_close(&f);
}

static void the_same_run_twice_is_the_same_run(void **state) {
    (void)state;
    double first = efficiency("auto", 5, 0.3, 777);
    assert_true(first == efficiency("auto", 5, 0.3, 777));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_policy_does_every_task_once_whatever_the_size),
        cmocka_unit_test(tasks_of_a_series_stay_at_their_workers),
        cmocka_unit_test(tasks_of_dead_workers_are_done_by_the_others),
        cmocka_unit_test(the_death_of_the_last_worker_ends_the_run_with_its_name),
        cmocka_unit_test(a_worker_that_cannot_start_is_left_out),
        cmocka_unit_test(failed_tasks_are_told_and_the_rest_goes_on),
        cmocka_unit_test(weights_of_any_size_and_mixture_are_dealt),
        cmocka_unit_test(inputs_fit_their_message_whatever_the_weights),
        cmocka_unit_test(results_do_not_wait_for_the_end_of_their_chunk),
        cmocka_unit_test(auto_keeps_unequal_workers_busy),
        cmocka_unit_test(units_of_weight_do_not_matter),
        cmocka_unit_test(the_summary_says_what_was_gained),
        cmocka_unit_test(the_summary_does_not_flatter),
        cmocka_unit_test(the_message_cost_follows_the_traffic),
        cmocka_unit_test(a_number_set_by_hand_holds_from_the_next_run_on),
        cmocka_unit_test(the_fastest_stay),
        cmocka_unit_test(whoever_dies_is_replaced_by_one_that_rests),
        cmocka_unit_test(policy_and_factor_are_set_when_they_may_be),
        cmocka_unit_test(the_state_shows_the_model_of_the_last_run),
        cmocka_unit_test(those_that_do_not_pay_rest_and_come_back_when_they_do),
        cmocka_unit_test(the_choice_loses_no_task_whoever_dies),
        cmocka_unit_test(released_workers_leave_once_it_is_sure),
        cmocka_unit_test(the_master_counts_its_own_time),
        cmocka_unit_test(a_master_that_holds_deals_nothing),
        cmocka_unit_test(the_same_run_twice_is_the_same_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
