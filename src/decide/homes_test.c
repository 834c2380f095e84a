/* Test that workers get the tasks that they did in the last run of a series. Each task must be dealt once,
 * and each worker must get its share by earliest completion. No more tasks may change workers than the
 * shares require. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decide/decide.h"
#include "measure/crew_test_helper.h"

enum { WORKERS = 12, TASKS = 400 };

typedef struct series {
    double unit_s[WORKERS]; /* unit_s[i]: seconds per unit of work of worker i; 0: worker i has left */
    uint32_t doer[TASKS];   /* doer[t]: worker that did task t in the last run; UINT32_MAX: none */
    kl_homes homes;
    uint64_t tasks, number;
} series;

typedef struct run_of_series {
    kl_worker_view workers[WORKERS];
    kl_snapshot s;
    kl_crew *crew;
    kl_dealer *dealer;
    /* had[i]: number of tasks that worker i, if present, did in the last run */
    uint64_t share[WORKERS], dealt[WORKERS], had[WORKERS];
    uint64_t moved, chunks;
} run_of_series;

static void make_run(run_of_series *r, const series *q) {
    *r = (run_of_series){0};
    for (uint32_t i = 0; i < WORKERS; i++) {
        if (!(q->unit_s[i] > 0))
            continue;
        r->workers[i].present = true;
        r->s.present++;
        kl_pace_add(&r->workers[i].pace, 1, 1 / q->unit_s[i], 1);
        kl_stat_add(&r->s.unit_s, q->unit_s[i], 0);
    }
    r->s.workers = r->workers;
    r->s.slots = WORKERS;
    r->s.tasks = r->s.left = q->tasks;
    r->s.units = r->s.left_units = (double)q->tasks;
    r->crew = crew_of(&r->s);
    r->dealer = kl_dealer_new(kl_policy_find("ect"), NULL);
    assert_non_null(r->dealer);
    assert_int_equal(kl_dealer_begin(r->dealer, &r->s), KILTER_OK);
    for (uint32_t i = 0; i < WORKERS; i++)
        r->share[i] = kl_dealer_share(r->dealer, i);
    for (uint64_t t = 0; t < q->tasks; t++)
        if (q->doer[t] < WORKERS && q->unit_s[q->doer[t]] > 0)
            r->had[q->doer[t]]++;
}

/* Deal a chunk to a worker that asks; return its number of tasks. */
static uint64_t give(run_of_series *r, series *q, uint32_t worker) {
    kl_plan plan;
    kl_dealer_plan(r->dealer, &r->s, worker, &plan);
    if (plan.decision.count == 0)
        return 0;
    uint64_t most;
    uint32_t home = kl_homes_choose(&q->homes, r->dealer, &r->s, worker, &most);
    kl_span span = kl_homes_front(&q->homes, home);
    uint64_t together = span.hi - span.lo < most ? span.hi - span.lo : most;
    plan.cut_short = together < plan.decision.count;
    plan.decision.count = plan.cut_short ? together : plan.decision.count;
    kl_homes_take(&q->homes, home, plan.decision.count);
    kl_homes_note(&q->homes, (kl_span){span.lo, span.lo + plan.decision.count}, worker);
    assert_int_equal(kl_dealer_commit(r->dealer, &r->s, &plan), KILTER_OK);
    for (uint64_t t = span.lo; t < span.lo + plan.decision.count; t++) {
        r->moved += q->doer[t] != worker;
        q->doer[t] = worker;
    }
    r->s.left -= plan.decision.count;
    r->s.left_units = (double)r->s.left;
    r->dealt[worker] += plan.decision.count;
    r->chunks++;
    kl_view_dealt(&r->workers[worker], plan.decision.count, (double)plan.decision.count, 0);
    kl_crew_update(r->crew, r->workers, worker);
    return plan.decision.count;
}

static void end_run(run_of_series *r) {
    kl_dealer_free(r->dealer);
    kl_crew_free(r->crew);
}

/* Deal all tasks of a run, in an order of requests drawn from the seed. */
static void run_once(run_of_series *r, series *q, uint64_t seed) {
    make_run(r, q);
    kl_span all = {0, q->tasks};
    assert_int_equal(kl_homes_begin(&q->homes, q->number, q->tasks, &r->s, &all, 1), KILTER_OK);
    for (uint64_t step = 0; r->s.left > 0; step++) {
        assert_true(step < 100000);
        give(r, q, (uint32_t)(kl_mix64(seed * 100000 + step) % WORKERS));
    }
    end_run(r);
}

static series begin_series(uint64_t seed) {
    series q = {.tasks = 1 + kl_mix64(seed) % TASKS, .number = 1 + seed};
    memset(q.doer, 0xff, sizeof q.doer);
    for (uint32_t i = 0; i < WORKERS; i++)
        q.unit_s[i] = kl_mix64(seed * 50 + i) % 3 ? 1 + (double)(kl_mix64(seed * 70 + i) % 900) / 100 : 0;
    q.unit_s[0] = 1;
    return q;
}

/* Change the speeds of some workers. Let some workers leave, and others join. */
static void change(series *q, uint64_t seed) {
    for (uint32_t i = 1; i < WORKERS; i++) {
        uint64_t random = kl_mix64(seed * 90 + i);
        if (random % 5 == 0)
            q->unit_s[i] = q->unit_s[i] > 0 ? 0 : 2;
        else if (random % 5 == 1)
            q->unit_s[i] *= 0.5 + (double)(random >> 40) / (double)(1 << 24);
    }
}

static void check_shares(const run_of_series *r, uint64_t seed) {
    for (uint32_t i = 0; i < WORKERS; i++)
        if (r->dealt[i] != r->share[i])
            fail_msg("seed %d: worker %d gets %d tasks, but its share is %d", (int)seed, (int)i,
                     (int)r->dealt[i], (int)r->share[i]);
}

static void shares_stay_and_no_more_tasks_move_than_must(void **state) {
    (void)state;
    uint64_t moved = 0, stayed = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        series q = begin_series(seed);
        for (uint64_t i = 0; i < 8; i++) {
            run_of_series r;
            run_once(&r, &q, seed * 8 + i);
            uint64_t least = 0;
            for (uint32_t w = 0; w < WORKERS; w++)
                least += r.share[w] > r.had[w] ? r.share[w] - r.had[w] : 0;
            check_shares(&r, seed);
            assert_int_equal(r.moved, least);
            moved += i ? r.moved : 0;
            stayed += i ? q.tasks - r.moved : 0;
            change(&q, seed * 8 + i);
        }
        kl_homes_free(&q.homes);
    }
    assert_true(moved > 10000 && stayed > 10000); /* the test had enough tasks that changed workers, and
                                                     enough that did not */
}

static void nothing_moves_while_nothing_changes(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        series q = begin_series(seed);
        for (uint64_t i = 0; i < 4; i++) {
            run_of_series r;
            run_once(&r, &q, seed * 4 + i);
            assert_int_equal(r.moved, i ? 0 : q.tasks);
        }
        kl_homes_free(&q.homes);
    }
}

/* If the series or the number of tasks changes, or if there is no series, the workers of the last run must be
 * forgotten. */
static void another_series_begins_anew(void **state) {
    (void)state;
    series q = begin_series(3);
    kl_snapshot nobody = {.slots = 0};
    for (int i = 0; i < 3; i++) {
        run_of_series r;
        run_once(&r, &q, 1);
        run_once(&r, &q, 2);
        assert_int_equal(r.moved, 0);
        kl_span all = {0, q.tasks};
        if (i == 0)
            q.number++;
        else if (i == 1)
            q.tasks--;
        else
            assert_int_equal(kl_homes_begin(&q.homes, 0, q.tasks, &nobody, &all, 1), KILTER_OK);
        assert_int_equal(kl_homes_begin(&q.homes, q.number, q.tasks, &nobody, &all, 1), KILTER_OK);
        for (uint64_t t = 0; t < q.tasks; t++)
            assert_int_equal(q.homes.last[t], UINT32_MAX);
        memset(q.doer, 0xff, sizeof q.doer);
    }
    kl_homes_free(&q.homes);
}

/* Three workers do nine tasks. A row says which worker did each task in the last run. It also says whose
 * tasks worker 0 must take first and second. */
static const struct {
    const char *name;
    double unit_s[3];
    uint32_t doer[9];
    /* first, then: the workers whose tasks worker 0 must take first and second; 3: tasks without a present
     * worker */
    uint32_t first, then;
} rows[] = {
    {"worker 0 takes its own tasks first", {1, 1, 1}, {0, 0, 0, 1, 1, 1, 2, 2, 2}, 0, 1},
    {"worker 0 takes tasks that no worker did last, after its own",
     {1, 1, 1},
     {0, 1, 1, 1, 2, 2, 2, 9, 9},
     0,
     3},
    {"worker 0 takes the tasks of a worker that has left", {1, 0, 1}, {0, 1, 1, 1, 1, 2, 2, 2, 2}, 0, 3},
    {"worker 0 takes tasks of a worker with more than its share",
     {1, 1, 1},
     {0, 0, 1, 1, 1, 2, 2, 2, 2},
     0,
     2},
    {"worker 0 takes tasks of a worker that has become slower",
     {1, 1, 50},
     {0, 0, 0, 1, 1, 1, 2, 2, 2},
     0,
     2},
    {"worker 0 did no tasks in the last run", {1, 1, 1}, {1, 1, 1, 1, 1, 1, 2, 2, 2}, 1, 1},
};

static void homes_are_chosen_as_in_the_table(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        series q = {.tasks = 9, .number = 1};
        memcpy(q.unit_s, rows[i].unit_s, sizeof rows[i].unit_s);
        run_of_series r;
        kl_span all = {0, 9};
        make_run(&r, &q);
        assert_int_equal(kl_homes_begin(&q.homes, 1, 9, &r.s, &all, 1), KILTER_OK);
        for (uint64_t t = 0; t < 9; t++)
            kl_homes_note(&q.homes, (kl_span){t, t + 1}, rows[i].doer[t]);
        assert_int_equal(kl_homes_begin(&q.homes, 1, 9, &r.s, &all, 1), KILTER_OK);
        for (int step = 0; step < 2; step++) {
            uint64_t most;
            uint32_t home = kl_homes_choose(&q.homes, r.dealer, &r.s, 0, &most);
            uint32_t expected = step ? rows[i].then : rows[i].first;
            if (home != (expected == 3 ? WORKERS : expected))
                fail_msg("%s: step %d takes tasks of worker %d, not of worker %d", rows[i].name, step,
                         (int)home, (int)expected);
            while (kl_homes_has_own(&q.homes, 0))
                kl_homes_take(&q.homes, 0, 1);
        }
        end_run(&r);
        kl_homes_free(&q.homes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_stay_and_no_more_tasks_move_than_must),
        cmocka_unit_test(nothing_moves_while_nothing_changes),
        cmocka_unit_test(another_series_begins_anew),
        cmocka_unit_test(homes_are_chosen_as_in_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
