/* Test the end of a run, with workers that become slow and with long tasks, under a simulated clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "engine/master_private.h"
#include "engine/stepped.h"

enum { TASKS_MOST = 2000 };

/* How the workers of a test behave. There is one global instance, because the farm runs in one thread. */
typedef struct scenario {
    double task_s;
    /* index of the long task, which takes long_times times as long as any other; UINT64_MAX: there is none */
    uint64_t long_task;
    double long_times;
    /* seed of random speeds; 0: all workers have the speed 1, but from the time drop_s on, the first `slow`
     * workers have the speed `factor` */
    uint64_t seed;
    uint32_t slow;
    double drop_s, factor;
    const stepped_farm *farm;
    /* number of the current run; a task of the previous run may still begin, and is not counted */
    uint64_t run;
    uint8_t executed[TASKS_MOST];
} scenario;

static scenario now;

static double speed_of(const stepped_actor *a) {
    static const double factors[] = {1, 1, 1, 0.3, 0.1, 0.02};
    uint32_t worker = (uint32_t)(a - now.farm->workers);
    if (now.seed > 0)
        return factors[kl_mix64(now.seed * 64 + worker + 7919 * (uint64_t)(a->now_s / 0.03)) % 6];
    return worker < now.slow && a->now_s >= now.drop_s ? now.factor : 1;
}

static int work(const kilter_task *task, kilter_result *result, void *state) {
    double cost_s = now.task_s * (task->index == now.long_task ? now.long_times : 1);
    now.executed[task->index] += task->run == now.run;
    stepped_spend(state, cost_s / speed_of(state));
    return kilter_result_put(result, &task->index, sizeof task->index);
}

typedef struct tally {
    uint64_t tasks, count;
    uint8_t seen[TASKS_MOST];
} tally;

static void count_outcome(const kilter_outcome *outcome, void *user) {
    tally *t = user;
    uint64_t index;
    assert_int_equal(outcome->status, KILTER_OK);
    assert_int_equal(outcome->result.size, sizeof index);
    memcpy(&index, outcome->result.data, sizeof index);
    assert_true(outcome->index < t->tasks && index == outcome->index);
    t->seen[index]++;
    t->count++;
}

/* Do a run. Check that every task counts once and has no more copies than allowed. Return the seconds that
 * the run takes. */
static double run_s(stepped_farm *f, uint64_t tasks, bool deaths) {
    tally t = {.tasks = tasks};
    now.run = f->master->run.number;
    memset(now.executed, 0, sizeof now.executed);
    kilter_run run = {.tasks = tasks, .done = count_outcome, .user = &t};
    kilter_error error = {KILTER_OK, ""};
    if (stepped_run(f, &run, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    assert_int_equal(t.count, tasks);
    for (uint64_t i = 0; i < tasks; i++) {
        assert_int_equal(t.seen[i], 1);
        if (now.executed[i] < 1 || (!deaths && now.executed[i] > 1 + KL_RESCUE_COPIES))
            fail_msg("task %d was carried out %d times", (int)i, now.executed[i]);
    }
    const kl_tally *recalls = &f->master->balance.ledger.recalls;
    for (size_t i = 0; i < recalls->count; i++)
        assert_true(recalls->spans[i].times <= KL_RESCUE_RECALLS);
    kilter_farm_summary summary;
    kl_master_summary(f->master, &summary);
    return summary.elapsed_s;
}

static uint64_t twice(uint64_t tasks) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < tasks; i++)
        count += now.executed[i] > 1;
    return count;
}

static void open_farm(stepped_farm *f, uint32_t workers) {
    *f = (stepped_farm){0};
    stepped_open(f, "auto", workers, 50e-6, work);
    now.farm = f;
    stepped_gather(f);
}

/* At some moment, let two of eight workers slow down to a tenth of their speed. Check that the run takes
 * little longer than it would if all workers shared the remaining work perfectly. */
static void a_drop_costs_little_whenever_it_comes(void **state) {
    (void)state;
    enum { WORKERS = 8, TASKS = 1600 };
    for (double part = 0.1; part < 1; part += 0.1) {
        stepped_farm f;
        double drop_s = part * TASKS * 1e-3 / WORKERS;
        now =
            (scenario){.task_s = 1e-3, .long_task = UINT64_MAX, .slow = 2, .drop_s = HUGE_VAL, .factor = 0.1};
        open_farm(&f, WORKERS);
        now.drop_s = f.master_actor.now_s + drop_s;
        double elapsed_s = run_s(&f, TASKS, false);
        double bound_s = drop_s + (TASKS * 1e-3 - WORKERS * drop_s) / (WORKERS - 2 + 2 * 0.1);
        if (elapsed_s > bound_s + 20e-3) /* 20e-3: seconds of two tasks of a slow worker */
            fail_msg("after %.0f %%: %.1f ms, bound %.1f ms", 100 * part, elapsed_s * 1e3, bound_s * 1e3);
        now.drop_s = HUGE_VAL; /* check that the slow workers of the last run take part in the next run */
        run_s(&f, 100, false);
        stepped_close(&f);
    }
}

/* Let two workers almost stop while they have whole chunks. Check that other workers soon get the tasks that
 * these two workers have not begun. */
static void workers_that_all_but_stop_keep_little(void **state) {
    (void)state;
    stepped_farm f;
    now = (scenario){.task_s = 1e-3, .long_task = UINT64_MAX, .slow = 2, .drop_s = HUGE_VAL, .factor = 1e-2};
    open_farm(&f, 4);
    now.drop_s = f.master_actor.now_s + 0.1;
    double elapsed_s = run_s(&f, 1000, false);
    assert_true(f.master->balance.ledger.recalls.count > 0 || twice(1000) > 0);
    /* After 0.1 s, two workers slow down. The other two need 0.35 s for the remaining work. Two tasks of a
     * slow worker take 0.2 s. */
    assert_true(elapsed_s < 0.1 + 0.35 + 0.2);
    stepped_close(&f);
}

/* One task takes 10 to 300 times as long as any other task, on workers of equal speed. Idle workers may copy
 * the task. The run must take little longer than an equal share of all tasks plus this task. */
static void a_long_task_takes_its_time_and_no_more(void **state) {
    (void)state;
    for (uint64_t at = 0; at < 400; at += 19)
        for (double times = 10; times < 400; times *= 5.4) {
            stepped_farm f;
            now = (scenario){.task_s = 1e-3, .long_task = at, .long_times = times};
            open_farm(&f, 4);
            double elapsed_s = run_s(&f, 400, false);
            if (elapsed_s > 400 * 1e-3 / 4 + times * 1e-3 + 5e-3)
                fail_msg("task %d, %.0f times as long: %.1f ms", (int)at, times, elapsed_s * 1e3);
            /* the long task and the tasks behind it may be copied, because their worker does not answer a
             * recall */
            assert_true(twice(400) <= 16);
            stepped_close(&f);
        }
}

/* Let a slow worker get a task that takes 0.5 s there, but would take 50 ms at an idle worker. Check that an
 * idle worker begins the task again. */
static void a_long_task_at_a_slow_worker_is_begun_anew(void **state) {
    (void)state;
    uint64_t copied = 0;
    for (uint64_t at = 0; at < 400; at++) {
        stepped_farm f;
        now = (scenario){.task_s = 1e-3, .long_task = at, .long_times = 50, .slow = 1, .factor = 0.1};
        open_farm(&f, 4);
        double elapsed_s = run_s(&f, 400, false);
        /* begun_late_s: seconds until the second check for late workers */
        double all_s = 450 * 1e-3 / 3.1, begun_late_s = 50e-3;
        if (elapsed_s > all_s + begun_late_s + 40e-3)
            fail_msg("task %d: %.1f ms", (int)at, elapsed_s * 1e3);
        copied += now.executed[at] > 1;
        stepped_close(&f);
    }
    assert_true(copied > 4); /* if fewer tasks were copied, the test has not tested copies */
}

/* Change speeds at random and kill workers. Check that each task counts once. */
static void speeds_may_change_at_any_moment(void **state) {
    (void)state;
    uint64_t copied = 0, recalled = 0;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        stepped_farm f;
        uint32_t workers = 2 + seed % 6;
        bool deaths = seed % 3 == 0;
        now = (scenario){
            .task_s = seed % 2 ? 1e-3 : 5e-3, .long_task = seed % 50, .long_times = 20, .seed = seed};
        open_farm(&f, workers);
        for (uint32_t i = 1; i < workers && deaths; i++)
            f.workers[i].dies_s =
                f.master_actor.now_s + 0.4 * (double)(kl_mix64(seed * 64 + i) % 1000) / 1000;
        for (int run = 0; run < 3; run++) {
            uint64_t tasks = 30 + kl_mix64(seed + 1000 * (uint64_t)run) % 300;
            run_s(&f, tasks, deaths);
            copied += twice(tasks);
            recalled += f.master->balance.ledger.recalls.count;
        }
        stepped_close(&f);
    }
    /* if fewer tasks were copied or recalled, the test has not tested copies and recalls */
    assert_true(copied > 10 && recalled > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_drop_costs_little_whenever_it_comes),
        cmocka_unit_test(workers_that_all_but_stop_keep_little),
        cmocka_unit_test(a_long_task_takes_its_time_and_no_more),
        cmocka_unit_test(a_long_task_at_a_slow_worker_is_begun_anew),
        cmocka_unit_test(speeds_may_change_at_any_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
