/* Compare the assignment by earliest completion with assigning one task at a time, and with the best of all
 * possible assignments. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decide/decide.h"
#include "measure/crew_test_helper.h"

enum { MOST = 64 };

static double random_01(uint64_t seed) {
    return (double)(kl_mix64(seed) >> 11) * 0x1p-53;
}

static uint32_t random_lanes(uint64_t seed, kl_lane *lanes, bool alike) {
    uint32_t count = 1 + (uint32_t)(kl_mix64(seed) % MOST);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t at = seed * MOST * 4 + i * 4;
        lanes[i].rate = alike ? 2 : 1 + 9 * random_01(at);
        lanes[i].free_s = kl_mix64(at + 1) % 3 ? 0 : 10 * random_01(at + 2);
    }
    return count;
}

static double end_with(const kl_lane *lane, double units, uint64_t tasks) {
    return lane->free_s + (double)tasks * units / lane->rate;
}

/* Assign each task to the lane (worker) that would end it first, without a heap. */
static void assign_one_by_one(const kl_lane *lanes, uint32_t count, double units, uint64_t tasks,
                              uint64_t *counts) {
    memset(counts, 0, count * sizeof *counts);
    for (; tasks > 0; tasks--) {
        uint32_t first = 0;
        for (uint32_t i = 1; i < count; i++)
            if (end_with(&lanes[i], units, counts[i] + 1) < end_with(&lanes[first], units, counts[first] + 1))
                first = i;
        counts[first]++;
    }
}

static void it_is_the_assignment_of_one_task_at_a_time(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        kl_lane lanes[MOST];
        uint64_t counts[MOST], expected[MOST];
        uint32_t count = random_lanes(seed, lanes, seed % 3 == 0);
        uint64_t tasks = kl_mix64(seed ^ 77) % 500;
        double units = 0.1 + random_01(seed ^ 99);
        assert_int_equal(kl_assign_earliest(lanes, count, units, tasks, counts), KILTER_OK);
        assign_one_by_one(lanes, count, units, tasks, expected);
        for (uint32_t i = 0; i < count; i++)
            if (counts[i] != expected[i])
                fail_msg("seed %d: lane %d of %d gets %d, not %d", (int)seed, (int)i, (int)count,
                         (int)counts[i], (int)expected[i]);
    }
}

/* Try all assignments of `tasks` tasks to the lanes (workers) from `lane` on. Return the least number of
 * seconds until all tasks end. */
static double best_end_s(const kl_lane *lanes, uint32_t count, uint32_t lane, uint64_t tasks) {
    if (lane + 1 == count)
        return tasks ? end_with(&lanes[lane], 1, tasks) : 0;
    double best = INFINITY;
    for (uint64_t here = 0; here <= tasks; here++) {
        double own = here ? end_with(&lanes[lane], 1, here) : 0;
        best = fmin(best, fmax(own, best_end_s(lanes, count, lane + 1, tasks - here)));
    }
    return best;
}

static void no_other_assignment_ends_sooner(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        kl_lane lanes[MOST];
        uint64_t counts[MOST];
        random_lanes(seed, lanes, false);
        uint32_t count = 1 + (uint32_t)(seed % 4);
        uint64_t tasks = kl_mix64(seed) % 12;
        assert_int_equal(kl_assign_earliest(lanes, count, 1, tasks, counts), KILTER_OK);
        double end_s = kl_assignment_end_s(lanes, count, 1, counts);
        assert_true(fabs(end_s - best_end_s(lanes, count, 0, tasks)) <= 1e-12 * end_s);
    }
}

/* Tasks without work must all go to the lane that is free first, without a loop over them. */
static void tasks_without_work_are_assigned_at_once(void **state) {
    (void)state;
    const kl_lane lanes[] = {{1, 3}, {2, 1}, {9, 2}, {5, 1}};
    uint64_t counts[4];
    assert_int_equal(kl_assign_earliest(lanes, 4, 0, UINT64_MAX / 2, counts), KILTER_OK);
    assert_true(counts[0] == 0 && counts[1] == UINT64_MAX / 2 && counts[2] == 0 && counts[3] == 0);
}

static void any_number_of_tasks_is_assigned_at_once(void **state) {
    (void)state;
    kl_lane lanes[MOST];
    uint64_t counts[MOST], sum = 0, tasks = UINT64_C(1000000000000);
    uint32_t count = random_lanes(5, lanes, false);
    assert_int_equal(kl_assign_earliest(lanes, count, 1, tasks, counts), KILTER_OK);
    double end_s = kl_assignment_end_s(lanes, count, 1, counts);
    for (uint32_t i = 0; i < count; i++) {
        sum += counts[i];
        assert_true(end_with(&lanes[i], 1, counts[i] + 1) >= end_s * (1 - 1e-12));
    }
    assert_true(sum == tasks);
    assert_int_equal(kl_assign_earliest(lanes, 0, 1, 5, counts), KILTER_OK);
}

static const struct {
    const char *name;
    uint32_t lanes;
    double rate[5], free_s[5];
    uint64_t tasks, counts[5];
} rows[] = {
    {"without tasks, no worker gets any", 2, {1, 1}, {0}, 0, {0, 0}},
    {"equal workers", 4, {1, 1, 1, 1}, {0}, 10, {3, 3, 2, 2}},
    {"shares are proportional to speeds", 2, {1, 7}, {0}, 16, {2, 14}},
    {"a worker that is too slow to help gets no task", 3, {10, 10, 1}, {0}, 8, {4, 4, 0}},
    {"a worker that is just fast enough to help gets a task", 3, {10, 10, 1}, {0}, 21, {10, 10, 1}},
    {"a worker that is still busy gets fewer tasks", 2, {1, 1}, {3, 0}, 5, {1, 4}},
    {"a worker that is busy for longer than all tasks take gets none", 2, {1, 1}, {30, 0}, 5, {0, 5}},
    {"if there are fewer tasks than workers, the fastest workers get them",
     5,
     {1, 3, 2, 5, 4},
     {0},
     2,
     {0, 0, 0, 1, 1}},
};

static void assignments_are_those_of_the_table(void **state) {
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        kl_lane lanes[5];
        uint64_t counts[5];
        for (uint32_t i = 0; i < rows[r].lanes; i++)
            lanes[i] = (kl_lane){rows[r].rate[i], rows[r].free_s[i]};
        assert_int_equal(kl_assign_earliest(lanes, rows[r].lanes, 1, rows[r].tasks, counts), KILTER_OK);
        for (uint32_t i = 0; i < rows[r].lanes; i++)
            if (counts[i] != rows[r].counts[i])
                fail_msg("%s: lane %d gets %d, not %d", rows[r].name, (int)i, (int)counts[i],
                         (int)rows[r].counts[i]);
    }
}

/* --- test of policy ECT --- */

typedef struct world {
    kl_worker_view workers[MOST];
    kl_snapshot s;
    kl_crew *crew;
    kl_dealer *dealer;
} world;

/* unit_s[i]: seconds per unit of work of worker i; 0: not known. */
static void make_world(world *w, uint32_t workers, const double *unit_s, uint64_t tasks) {
    *w = (world){0};
    for (uint32_t i = 0; i < workers; i++) {
        w->workers[i].present = true;
        if (unit_s[i] > 0) {
            kl_pace_add(&w->workers[i].pace, 1, 1 / unit_s[i], 1);
            kl_stat_add(&w->s.unit_s, unit_s[i], 0);
        }
    }
    w->s.workers = w->workers;
    w->s.slots = w->s.present = workers;
    w->s.tasks = w->s.left = tasks;
    w->s.units = w->s.left_units = (double)tasks;
    w->crew = crew_of(&w->s);
    w->dealer = kl_dealer_new(kl_policy_find("ect"), NULL);
    assert_non_null(w->dealer);
    assert_int_equal(kl_dealer_begin(w->dealer, &w->s), KILTER_OK);
}

static void end_world(world *w) {
    kl_dealer_free(w->dealer);
    kl_crew_free(w->crew);
}

static kl_plan plan_for(world *w, uint32_t worker) {
    kl_plan plan;
    kl_dealer_plan(w->dealer, &w->s, worker, &plan);
    return plan;
}

static uint64_t deal(world *w, uint32_t worker) {
    kl_plan plan = plan_for(w, worker);
    assert_int_equal(kl_dealer_commit(w->dealer, &w->s, &plan), KILTER_OK);
    w->s.left -= plan.decision.count;
    w->s.left_units = (double)w->s.left;
    if (plan.decision.count)
        kl_view_dealt(&w->workers[worker], plan.decision.count, (double)plan.decision.count, 0);
    kl_crew_update(w->crew, w->workers, worker);
    return plan.decision.count;
}

static void whole_shares_are_dealt_in_any_order(void **state) {
    (void)state;
    world w;
    make_world(&w, 4, (double[]){1, 0.5, 0.25, 20}, 28);
    kl_assignment a;
    assert_true(kl_dealer_assignment(w.dealer, &a));
    assert_int_equal(a.decision.count, 3);
    assert_int_equal(a.idle, 1);
    assert_true(fabs(a.end_s - 4) < 1e-9);
    /* With equal shares, the slow worker would do 7 tasks of 20 s, so the run would end after 140 s. With the
     * chosen assignment, the run ends after 4 s. */
    assert_true(fabs(a.decision.gain_s - 136) < 1e-9);
    assert_non_null(strstr(a.decision.reason, "; too slow to help: 1"));
    char reason[KL_REASON_BYTES];
    assert_true(kl_dealer_leaves_out(w.dealer, &w.s, 3, reason));
    assert_non_null(strstr(
        reason, "this worker would end a task only in 20 s, but the other workers finish all tasks in 4 s"));
    assert_false(kl_dealer_leaves_out(w.dealer, &w.s, 0, reason));
    assert_int_equal(deal(&w, 3), 0);
    assert_int_equal(deal(&w, 2), 16);
    /* worker 2 asks again, but the remaining tasks are shares of other workers */
    assert_int_equal(deal(&w, 2), 0);
    assert_int_equal(deal(&w, 0), 4);
    assert_int_equal(deal(&w, 1), 8);
    assert_int_equal(w.s.left, 0);
    end_world(&w);
}

static void one_not_known_gets_its_benchmark(void **state) {
    (void)state;
    world w;
    make_world(&w, 3, (double[]){1, 0, 1}, 9);
    kl_plan plan = plan_for(&w, 1);
    assert_int_equal(plan.decision.count, 1);
    assert_non_null(strstr(plan.decision.reason, "benchmark"));
    assert_int_equal(deal(&w, 0), 4);
    assert_int_equal(deal(&w, 1), 1);
    assert_int_equal(deal(&w, 2), 4);
    end_world(&w);
    /* no pace is known, so tasks are dealt step by step as AUTO does */
    make_world(&w, 2, (double[]){0, 0}, 9);
    kl_assignment a;
    assert_false(kl_dealer_assignment(w.dealer, &a));
    assert_int_equal(deal(&w, 0), 1);
    end_world(&w);
}

/* Every task must be dealt even if a worker that got a share leaves, does not ask, or returns tasks. */
static void an_assignment_that_no_longer_holds_is_given_up(void **state) {
    (void)state;
    world w;
    make_world(&w, 3, (double[]){1, 1, 50}, 8);
    assert_int_equal(deal(&w, 0), 4);
    w.workers[1].present = false; /* worker 1 leaves before it asks for tasks */
    w.s.present = 2;
    kl_crew_update(w.crew, w.workers, 1);
    kl_dealer_changed(w.dealer);
    for (int i = 0; i < 20 && w.s.left > 0; i++)
        deal(&w, 0);
    assert_int_equal(w.s.left, 0);
    end_world(&w);
    make_world(&w, 2, (double[]){1, 1}, 8);
    assert_int_equal(deal(&w, 0), 4);
    /* worker 0 has done its share, and worker 1 has not asked yet; worker 0 must now get tasks from the share
     * of worker 1 */
    w.workers[0].queued_tasks = 0;
    w.workers[0].queued_units = 0;
    kl_crew_update(w.crew, w.workers, 0);
    assert_true(deal(&w, 0) > 0);
    end_world(&w);
    make_world(&w, 2, (double[]){1, 1}, 8);
    assert_int_equal(deal(&w, 0), 4);
    assert_int_equal(deal(&w, 1), 4);
    w.s.left = 2; /* worker 1 has returned two of its tasks */
    w.s.left_units = 2;
    assert_true(deal(&w, 0) + deal(&w, 1) > 0);
    end_world(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_assignment_of_one_task_at_a_time),
        cmocka_unit_test(no_other_assignment_ends_sooner),
        cmocka_unit_test(tasks_without_work_are_assigned_at_once),
        cmocka_unit_test(any_number_of_tasks_is_assigned_at_once),
        cmocka_unit_test(assignments_are_those_of_the_table),
        cmocka_unit_test(whole_shares_are_dealt_in_any_order),
        cmocka_unit_test(one_not_known_gets_its_benchmark),
        cmocka_unit_test(an_assignment_that_no_longer_holds_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
