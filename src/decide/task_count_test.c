/* Compare the chosen number of tasks with every other number, and with tables of expected numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "decide/decide.h"

enum { MOST = 64 };

static double random_01(uint64_t seed) {
    return (double)(kl_mix64(seed) >> 11) * 0x1p-53;
}

/* Return the seconds of all runs with `tasks` tasks in an iteration, computed by definition. */
static double total_s(const kl_grain_look *look, const kl_grain_question *q, uint64_t tasks) {
    uint64_t counts[MOST];
    double units = look->work_units / (double)tasks;
    assert_int_equal(kl_assign_earliest(look->lanes, look->lane_count, units, tasks, counts), KILTER_OK);
    uint32_t workers = 0;
    for (uint32_t i = 0; i < look->lane_count; i++)
        workers += counts[i] > 0;
    double workers_s = kl_assignment_end_s(look->lanes, look->lane_count, units, counts);
    double each_s = kl_model_forkjoin_s(&look->model, (double)tasks, workers, workers_s) + look->lost_s;
    return (q->runs ? q->runs(tasks, q->user) : 1) * each_s;
}

static double falling(uint64_t tasks, void *user) {
    return 20 + *(double *)user / (double)tasks;
}

static kl_grain_look random_look(uint64_t seed, kl_lane *lanes) {
    kl_grain_look look = {.lanes = lanes, .lane_count = 1 + (uint32_t)(kl_mix64(seed) % 8)};
    for (uint32_t i = 0; i < look.lane_count; i++)
        lanes[i] = (kl_lane){1 + 9 * random_01(seed * 64 + i), 0};
    look.work_units = 1 + 99 * random_01(seed ^ 1);
    look.model =
        (kl_forkjoin){.master = {.fixed_s = random_01(seed ^ 2), .per_unit_s = 0.1 * random_01(seed ^ 3)},
                      .round_trip_s = 0.1 * random_01(seed ^ 4),
                      .update_s = 0.01 * random_01(seed ^ 5),
                      .task_s = 0.001 * random_01(seed ^ 6)};
    look.tasks = look.least_seen = look.most_seen = 1 + kl_mix64(seed ^ 7) % 32;
    return look;
}

/* The choice considers every number of tasks up to 16, so within this range no other number may be better. */
static void none_is_better(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        kl_lane lanes[MOST];
        kl_grain_look look = random_look(seed, lanes);
        double saved = 100 * random_01(seed ^ 8);
        kl_grain_question q = {.least = 1, .most = 16};
        if (seed % 2)
            q = (kl_grain_question){1, 16, falling, &saved};
        kl_grain_plan plan;
        assert_int_equal(kl_grain_choose(&look, &q, &plan), KILTER_OK);
        uint64_t least = look.least_seen / 4 > 1 ? look.least_seen / 4 : 1;
        uint64_t most = 4 * look.most_seen < 16 ? 4 * look.most_seen : 16;
        uint64_t now = look.tasks < 16 ? look.tasks : 16;
        assert_true(plan.decision.count >= 1 && plan.decision.count <= 16 && plan.workers >= 1 &&
                    plan.decision.gain_s >= 0);
        double got_s = total_s(&look, &q, plan.decision.count), now_s = total_s(&look, &q, now);
        /* the number of tasks may change only if this saves at least 5 % */
        assert_true(plan.decision.count == now || got_s < 0.95 * now_s);
        for (uint64_t tasks = least; tasks <= most; tasks++)
            if (total_s(&look, &q, tasks) < (plan.decision.count == now ? 0.95 : 1) * got_s * (1 - 1e-12))
                fail_msg("seed %d: %d tasks instead of %d", (int)seed, (int)plan.decision.count, (int)tasks);
        double parts = plan.master_s + plan.workers_s + plan.messages_s;
        double runs = q.runs ? q.runs(plan.decision.count, q.user) : 1;
        assert_true(fabs(parts * runs - got_s) <= 1e-9 * got_s);
    }
}

/* Return the number of iterations that a planning problem with N = 10,000 scenarios needs. The paper of
 * Buaklee et al. 2002 measured this number for four numbers of tasks. Interpolate between them on a
 * log-log scale. */
static double runs_of_ssn(uint64_t tasks, void *user) {
    static const double at[] = {50, 100, 200, 400};
    const double *runs = user;
    size_t i = tasks < 100 ? 0 : tasks < 200 ? 1 : 2;
    double part = log((double)tasks / at[i]) / log(2);
    return runs[i] * pow(runs[i + 1] / runs[i], part);
}

/* Compare the best number of tasks T on the machines of the paper from 2002 with the best number on new
 * machines. The new workers are about 260 times as fast as the old ones, but the new master is only 16 to 40
 * times as fast. The master therefore limits the run on the new machines. */
static void the_best_T_is_not_the_papers(void **state) {
    (void)state;
    double then[] = {66, 50, 38, 26}, now[] = {62, 33, 21, 16};
    kl_lane lanes[50];
    for (int i = 0; i < 50; i++)
        lanes[i] = (kl_lane){200 / 6.44, 0}; /* speed of a worker in scenarios per second */
    kl_grain_look look = {.model = {.master = {.fixed_s = 0.6, .per_unit_s = 0.0055}},
                          .lanes = lanes,
                          .lane_count = 50,
                          .work_units = 10000,
                          .tasks = 100,
                          .least_seen = 50,
                          .most_seen = 200};
    kl_grain_question q = {50, 400, runs_of_ssn, then};
    kl_grain_plan plan;
    assert_int_equal(kl_grain_choose(&look, &q, &plan), KILTER_OK);
    assert_int_equal(plan.decision.count, 400);
    assert_non_null(strstr(plan.decision.reason, "with 100 tasks all runs would take"));
    for (int i = 0; i < 50; i++)
        lanes[i].rate = 200 / 0.025;
    look.model = (kl_forkjoin){.master = {.per_unit_s = 0.00043}, .round_trip_s = 1e-4, .update_s = 1e-5};
    look.tasks = look.most_seen = 400;
    q.user = now;
    assert_int_equal(kl_grain_choose(&look, &q, &plan), KILTER_OK);
    assert_in_range(plan.decision.count, 80, 130);
    /* workers across an ocean: an iteration costs more, so more tasks and fewer iterations are best */
    look.model.round_trip_s = 0.2;
    assert_int_equal(kl_grain_choose(&look, &q, &plan), KILTER_OK);
    assert_in_range(plan.decision.count, 200, 400);
}

static const struct {
    const char *name;
    double rate[4];
    uint32_t lanes;
    double work_units, master_task_s, lost_s;
    uint64_t tasks, least_seen, most_seen, least, most, low, high;
    const char *reason;
} rows[] = {
    {"nothing is measured yet",
     {0},
     4,
     0,
     0,
     0,
     0,
     0,
     0,
     1,
     1000,
     16,
     16,
     "nothing is measured yet, so 4 for each of 4 workers"},
    {"nothing is measured, and at most 10 tasks are allowed",
     {0},
     4,
     0,
     0,
     0,
     0,
     0,
     0,
     1,
     10,
     10,
     10,
     "nothing"},
    {"no worker is present", {0}, 0, 0, 0, 0, 0, 0, 0, 3, 10, 3, 3, "nothing"},
    {"with equal workers, one task each is best",
     {1, 1, 1, 1},
     4,
     100,
     0,
     0,
     4,
     4,
     4,
     1,
     99,
     4,
     4,
     "4 tasks"},
    {"with one task more than equal workers, some workers are idle",
     {1, 1, 1, 1},
     4,
     100,
     0,
     0,
     5,
     5,
     5,
     1,
     99,
     4,
     4,
     "with 5 tasks all"},
    {"the master limits the run, so few tasks are best",
     {9, 9, 9, 9},
     4,
     1,
     1,
     0,
     64,
     64,
     64,
     1,
     99,
     16,
     16,
     "16 tasks"},
    {"measurements show that the master limits the run, so fewer tasks are best",
     {9, 9, 9, 9},
     4,
     1,
     1,
     0,
     16,
     16,
     64,
     1,
     99,
     4,
     4,
     "4 tasks"},
    {"with unequal workers, more tasks are better",
     {7, 3, 2, 1},
     4,
     100,
     0,
     0,
     4,
     4,
     4,
     1,
     99,
     12,
     16,
     "tasks"},
    {"with unequal workers, the most tasks possible are best",
     {7, 3, 2, 1},
     4,
     100,
     0,
     0,
     4,
     4,
     4,
     1,
     6,
     5,
     6,
     "tasks"},
    {"the number of tasks stays if a change saves less than 5 %",
     {1, 1},
     2,
     100,
     0,
     1000,
     3,
     3,
     3,
     1,
     99,
     3,
     3,
     "3 tasks"},
};

static void numbers_are_those_of_the_table(void **state) {
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        kl_lane lanes[4];
        for (uint32_t i = 0; i < 4; i++)
            lanes[i] = (kl_lane){rows[r].rate[i], 0};
        kl_grain_look look = {.model.master.per_unit_s = rows[r].master_task_s,
                              .lanes = lanes,
                              .lane_count = rows[r].lanes,
                              .work_units = rows[r].work_units,
                              .lost_s = rows[r].lost_s,
                              .tasks = rows[r].tasks,
                              .least_seen = rows[r].least_seen,
                              .most_seen = rows[r].most_seen};
        kl_grain_question q = {.least = rows[r].least, .most = rows[r].most};
        kl_grain_plan plan;
        assert_int_equal(kl_grain_choose(&look, &q, &plan), KILTER_OK);
        if (plan.decision.count < rows[r].low || plan.decision.count > rows[r].high ||
            !strstr(plan.decision.reason, rows[r].reason))
            fail_msg("%s: %d tasks (%s)", rows[r].name, (int)plan.decision.count, plan.decision.reason);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_is_better),
        cmocka_unit_test(the_best_T_is_not_the_papers),
        cmocka_unit_test(numbers_are_those_of_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
