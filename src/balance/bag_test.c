#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "balance/balance.h"

enum { WORKERS = 3 };

typedef struct team {
    kl_worker_view views[WORKERS];
    kl_snapshot s;
    kl_dealer *dealer;
} team;

static void make_team(team *t) {
    *t = (team){.dealer = kl_dealer_new(kl_policy_find("ss"), NULL)};
    assert_non_null(t->dealer);
    for (int i = 0; i < WORKERS; i++)
        t->views[i].present = true;
    t->s.workers = t->views;
    t->s.slots = t->s.present = WORKERS;
}

static kl_span take_for(kl_bag *bag, const team *t, uint32_t worker, uint64_t count) {
    kl_offer offer = kl_bag_offer(bag, t->dealer, &t->s, worker, count);
    if (offer.span.hi - offer.span.lo > 1 && count % 5 == 0)
        offer.span.hi--; /* leave out the last offered task, as if the message had no room for it */
    kl_bag_take(bag, &offer);
    return offer.span;
}

static kl_span take(kl_bag *bag, uint64_t count) {
    /* without a series of runs, the bag offers the same tasks to every worker */
    kl_offer offer = kl_bag_offer(bag, NULL, NULL, 0, count);
    kl_bag_take(bag, &offer);
    return offer.span;
}

static double weight_of(uint64_t i) {
    return 0.1 + (double)(kl_mix64(i) % 1000);
}

/* Take random numbers of tasks, and return some of them. In the end, every task must have been taken
 * exactly once. */
static void every_task_is_taken_once(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        uint64_t tasks = kl_mix64(seed) % 300;
        double *weights = NULL;
        if (seed % 2) {
            weights = calloc(tasks + 1, sizeof *weights);
            for (uint64_t i = 0; i < tasks; i++)
                weights[i] = weight_of(i);
        }
        kl_bag bag = {0};
        assert_int_equal(kl_bag_fill(&bag, tasks, weights, (kl_spans){0}, NULL), KILTER_OK);
        free(weights); /* the bag must not use the array of weights after it was filled */
        int *seen = calloc(tasks + 1, sizeof *seen);
        for (uint64_t step = 0; bag.left > 0; step++) {
            uint64_t random = kl_mix64(seed * 1000 + step), left = bag.left;
            double left_units = bag.left_units;
            /* sometimes ask for more tasks than are left */
            kl_span span = take(&bag, 1 + random % (left + 3));
            assert_true(span.lo < span.hi && span.hi <= tasks);
            assert_true(bag.left == left - (span.hi - span.lo));
            assert_true(fabs(left_units - bag.left_units - kl_bag_units(&bag, span)) < 1e-6);
            uint64_t done = step > 50 ? span.hi : span.lo + (random >> 20) % (span.hi - span.lo + 1);
            for (uint64_t i = span.lo; i < done; i++)
                seen[i]++;
            if (done < span.hi)
                assert_int_equal(kl_bag_return(&bag, (kl_span){done, span.hi}), KILTER_OK);
        }
        assert_true(bag.left_units == 0);
        for (uint64_t i = 0; i < tasks; i++)
            assert_int_equal(seen[i], 1);
        free(seen);
        kl_bag_free(&bag);
    }
}

/* Take and return tasks with several workers, in a series of runs. In every second run, one of the workers
 * has left. */
static void in_a_series_too(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        uint64_t tasks = 1 + kl_mix64(seed) % 100;
        double *weights = calloc(tasks, sizeof *weights);
        for (uint64_t i = 0; i < tasks; i++)
            weights[i] = weight_of(i);
        int *seen = calloc(tasks, sizeof *seen);
        kl_bag bag = {0};
        team t;
        make_team(&t);
        for (uint64_t run = 0; run < 5; run++) {
            const kl_span done = {tasks / 3, tasks / 2};
            kl_spans some = {&done, run % 2 && done.lo < done.hi};
            assert_int_equal(kl_bag_fill(&bag, tasks, seed % 2 ? weights : NULL, some, NULL), KILTER_OK);
            assert_int_equal(kl_bag_sort(&bag, 1 + run / 4, &t.s), KILTER_OK);
            memset(seen, 0, tasks * sizeof *seen);
            for (uint64_t i = done.lo; some.count && i < done.hi; i++)
                seen[i] = 1;
            for (uint64_t step = 0; bag.left > 0; step++) {
                uint64_t random = kl_mix64(seed * 1000 + run * 100 + step);
                kl_span span = take_for(&bag, &t, random % (WORKERS + 1), 1 + (random >> 10) % 40);
                assert_true(span.lo < span.hi && span.hi <= tasks);
                uint64_t end = step > 50 ? span.hi : span.lo + (random >> 20) % (span.hi - span.lo + 1);
                kl_homes_note(&bag.homes, (kl_span){span.lo, end}, random % (WORKERS + 1));
                for (uint64_t i = span.lo; i < end; i++)
                    seen[i]++;
                if (end < span.hi)
                    assert_int_equal(kl_bag_return(&bag, (kl_span){end, span.hi}), KILTER_OK);
            }
            assert_true(bag.left_units == 0);
            for (uint64_t i = 0; i < tasks; i++)
                assert_int_equal(seen[i], 1);
            t.views[2].present = !t.views[2].present;
        }
        kl_dealer_free(t.dealer);
        kl_bag_free(&bag);
        free(seen);
        free(weights);
    }
}

/* Add tasks; weights NULL: each task has one unit of work. The bag's units must grow by no more than the
 * units of the added tasks. */
static void grow(kl_bag *bag, uint64_t count, const double *weights, kl_spans done) {
    uint64_t last = bag->tasks;
    double before = bag->units, units = weights ? 0 : (double)count;
    assert_int_equal(kl_bag_grow(bag, count, weights ? weights + last : NULL, done), KILTER_OK);
    double added_units = kl_bag_units(bag, (kl_span){last, last + count});
    for (uint64_t i = last; weights && i < last + count; i++)
        units += bag->scale * weights[i];
    assert_true(fabs(added_units - units) < 1e-6 * units);
    assert_true(bag->units <= before + units * (1 + 1e-9));
}

/* Take a span of tasks. Either do all its tasks, or do none and return the span. */
static void take_some(kl_bag *bag, uint64_t random, int *seen) {
    kl_span span = take(bag, 1 + random % 17);
    uint64_t end = random % 5 ? span.hi : span.lo;
    for (uint64_t i = span.lo; i < end; i++)
        seen[i]++;
    if (end < span.hi)
        assert_int_equal(kl_bag_return(bag, (kl_span){end, span.hi}), KILTER_OK);
}

/* Add tasks later, some of which are already done. Every other task must be taken exactly once. */
static void what_is_added_is_taken_once(void **state) {
    (void)state;
    enum { MOST = 4000 };
    static int seen[MOST];
    for (uint64_t seed = 0; seed < 300; seed++) {
        uint64_t tasks = kl_mix64(seed) % 50, done_count = 0;
        double weights[MOST];
        kl_span done[MOST / 20];
        kl_bag bag = {0};
        memset(seen, 0, sizeof seen);
        for (uint64_t i = 0; i < MOST; i++)
            weights[i] = weight_of(i);
        /* every third time, some tasks are done already, in spans that may extend beyond the first tasks
         * into the added ones */
        for (uint64_t at = 3; seed % 3 == 0 && at + 10 < MOST; at += 20)
            done[done_count++] = (kl_span){at, at + 1 + kl_mix64(at) % 9};
        size_t first = 0;
        while (first < done_count && done[first].lo < tasks)
            first++;
        if (first > 0 && done[first - 1].hi > tasks)
            tasks = done[first - 1].hi;
        const kl_spans all_done = {done, done_count};
        assert_int_equal(kl_bag_fill(&bag, tasks, seed % 2 ? weights : NULL, (kl_spans){done, first}, NULL),
                         KILTER_OK);
        for (uint64_t step = 0; bag.left > 0 || step < 40; step++) {
            uint64_t random = kl_mix64(seed * 1000 + step), count = 1 + random % 40;
            if (step < 40 && random % 2 && bag.tasks + count <= MOST)
                grow(&bag, count, seed / 2 % 2 ? weights : NULL, all_done);
            if (bag.left > 0)
                take_some(&bag, random, seen);
        }
        for (size_t i = 0; i < done_count; i++)
            for (uint64_t task = done[i].lo; task < done[i].hi; task++)
                seen[task]++;
        for (uint64_t i = 0; i < bag.tasks; i++)
            assert_int_equal(seen[i], 1);
        kl_bag_free(&bag);
    }
}

static void what_is_added_is_dealt_last(void **state) {
    (void)state;
    kl_bag bag = {0};
    assert_int_equal(kl_bag_fill(&bag, 10, NULL, (kl_spans){0}, NULL), KILTER_OK);
    take(&bag, 4);
    assert_int_equal(kl_bag_grow(&bag, 5, NULL, (kl_spans){0}), KILTER_OK);
    assert_int_equal(kl_bag_return(&bag, (kl_span){1, 3}), KILTER_OK);
    kl_span back = take(&bag, 100), rest = take(&bag, 100);
    assert_true(back.lo == 1 && back.hi == 3);
    assert_true(rest.lo == 4 && rest.hi == 15);
    assert_int_equal(bag.left, 0);
    kl_bag_free(&bag);
}

/* Add tasks during runs of a series. The added tasks must be dealt after returned tasks and after the tasks
 * that workers did in the last run. */
static void what_is_added_in_a_series_is_dealt_last_too(void **state) {
    (void)state;
    enum { TASKS = 40, MOST = 80 };
    for (uint64_t seed = 0; seed < 200; seed++) {
        kl_bag bag = {0};
        team t;
        make_team(&t);
        for (uint64_t run = 0; run < 3; run++) {
            uint64_t waiting = TASKS, taken = 0;
            int seen[MOST] = {0};
            assert_int_equal(kl_bag_fill(&bag, TASKS, NULL, (kl_spans){0}, NULL), KILTER_OK);
            assert_int_equal(kl_bag_sort(&bag, 1, &t.s), KILTER_OK);
            for (uint64_t step = 0; bag.left > 0; step++) {
                uint64_t random = kl_mix64(seed * 1000 + run * 100 + step);
                if (random % 3 == 0 && bag.tasks + 5 <= MOST)
                    assert_int_equal(kl_bag_grow(&bag, 5, NULL, (kl_spans){0}), KILTER_OK);
                kl_span span = take_for(&bag, &t, random % (WORKERS + 1), 1 + (random >> 10) % 7);
                assert_true(span.hi <= TASKS || (span.lo >= TASKS && waiting == 0));
                uint64_t end = random % 5 ? span.hi : span.lo;
                for (uint64_t i = span.lo; i < end; i++)
                    seen[i]++;
                kl_homes_note(&bag.homes, (kl_span){span.lo, end}, random % (WORKERS + 1));
                waiting -= span.lo < TASKS ? end - span.lo : 0;
                taken += end - span.lo;
                if (end < span.hi)
                    assert_int_equal(kl_bag_return(&bag, (kl_span){end, span.hi}), KILTER_OK);
            }
            assert_int_equal(taken, bag.tasks);
            for (uint64_t i = 0; i < bag.tasks; i++)
                assert_int_equal(seen[i], 1);
        }
        kl_dealer_free(t.dealer);
        kl_bag_free(&bag);
    }
}

static void weights_cut_by_share(void **state) {
    (void)state;
    /* the first four tasks together weigh one twenty-fifth of the work */
    double weights[] = {1, 1, 1, 1, 96};
    kl_bag bag = {0};
    assert_int_equal(kl_bag_fill(&bag, 5, weights, (kl_spans){0}, NULL), KILTER_OK);
    /* each weight is converted to units, so that a task is 1 unit on average */
    assert_true(fabs(bag.units - 5) < 1e-12);
    assert_true(fabs(kl_bag_units(&bag, (kl_span){4, 5}) - 4.8) < 1e-12);
    /* the first fifth of the work ends inside the last task; tasks cannot be split, so all are dealt */
    kl_span first = take(&bag, 1);
    assert_int_equal(first.hi, 5);
    kl_bag_free(&bag);

    double rising[] = {1, 2, 3, 4, 5, 5};
    assert_int_equal(kl_bag_fill(&bag, 6, rising, (kl_spans){0}, NULL), KILTER_OK);
    assert_int_equal(take(&bag, 3).hi, 4); /* half of the tasks, which have half of the total weight of 20 */
    kl_bag_free(&bag);
}

static void weights_that_are_no_weights_are_refused_by_name(void **state) {
    (void)state;
    const double bad[] = {0, -1, NAN, INFINITY, 1e-300, 1e300};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        double weights[] = {1, 2, bad[i]};
        kl_bag bag = {0};
        kilter_error error;
        assert_int_equal(kl_bag_fill(&bag, 3, weights, (kl_spans){0}, &error), KILTER_ERR_RANGE);
        assert_non_null(strstr(error.text, "task 2"));
        assert_null(bag.spans);
    }
}

static void what_is_done_is_not_dealt(void **state) {
    (void)state;
    const kl_span all[] = {{0, 10}}, some[] = {{0, 2}, {3, 4}, {8, 10}};
    const double weights[] = {1, 1, 1, 1, 4, 1, 1, 1, 1, 1};
    kl_bag bag = {0};
    assert_int_equal(kl_bag_fill(&bag, 10, NULL, (kl_spans){all, 1}, NULL), KILTER_OK);
    assert_int_equal(bag.left, 0);
    assert_true(bag.units == 0);
    for (int weighted = 0; weighted < 2; weighted++) {
        uint8_t dealt[10] = {0};
        assert_int_equal(kl_bag_fill(&bag, 10, weighted ? weights : NULL, (kl_spans){some, 3}, NULL),
                         KILTER_OK);
        assert_int_equal(bag.left, 5);
        assert_true(fabs(bag.units - (weighted ? 8 * bag.scale : 5)) < 1e-9);
        while (bag.left > 0) {
            kl_span span = take(&bag, 2);
            for (uint64_t i = span.lo; i < span.hi; i++)
                dealt[i]++;
        }
        assert_memory_equal(dealt, ((uint8_t[]){0, 0, 1, 0, 1, 1, 1, 1, 0, 0}), 10);
    }
    kl_bag_free(&bag);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_is_taken_once),
        cmocka_unit_test(in_a_series_too),
        cmocka_unit_test(what_is_added_is_taken_once),
        cmocka_unit_test(what_is_added_is_dealt_last),
        cmocka_unit_test(what_is_added_in_a_series_is_dealt_last_too),
        cmocka_unit_test(weights_cut_by_share),
        cmocka_unit_test(weights_that_are_no_weights_are_refused_by_name),
        cmocka_unit_test(what_is_done_is_not_dealt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
