/* Test the interval for the time left: a table of cases, and how often it contains the end of simple runs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/model.h"

enum { SEEN = 100 };

/* Make tasks that take base_s to base_s + spread_s. The tasks of worker 1 take `slower` times as long as
 * those of worker 0. */
static void see(kl_seen_task *seen, uint32_t count, double base_s, double spread_s, double slower) {
    for (uint32_t i = 0; i < count; i++)
        seen[i] = (kl_seen_task){
            (base_s + spread_s * (double)(kl_mix64(i) >> 11) * 0x1p-53) * (i % 2 ? slower : 1), i % 2};
}

static void test_cases(void **state) {
    static const struct {
        double base_s, spread_s, slower;
        kl_left_worker workers[2];
        uint64_t tasks, chain;
        double least_low_s, middle_s, within,
            most_high_s; /* within: allowed error of middle_s, as a part of it */
    } CASES[] = {
        {1, 0.02, 1, {{0, 0, 0}, {0, 0, 0}}, 100, 0, 48, 50.5, 0.02, 55},  /* equal tasks on equal workers */
        {1, 0.02, 3, {{0, 0, 0}, {0, 0, 0}}, 400, 0, 295, 303, 0.02, 320}, /* worker 1 is three times slower
                                                                            */
        {0, 2, 1, {{0, 0, 0}, {0, 0, 0}}, 1000, 0, 400, 500, 0.2, 700}, /* tasks of very different length */
        {1, 0.02, 1, {{1, 0.4, 0.4}, {1, 0.9, 0.9}}, 2, 0, 0.5, 0.61, 0.05, 1.2}, /* only two running tasks
                                                                                     are left */
        {1, 0.02, 1, {{1, 9, 9}, {0, 0, 0}}, 1, 0, 0, 1, 1, 90}, /* a single task is left, and hangs */
        /* in a chain of 15 tasks, each waits for the previous one */
        {1, 0.02, 1, {{0, 0, 0}, {0, 0, 0}}, 20, 15, 14, 15.2, 0.05, 17},
        {1, 0.02, 1, {{0, 0, 0}, {0, 0, 0}}, 1000000, 0, 495000, 505000, 0.01, 520000}, /* many tasks */
        {1, 0.02, 1, {{0, 0, 0}, {0, 0, 0}}, 0, 0, 0, 0, 0, 0},                         /* no task is left */
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        kl_seen_task seen[SEEN];
        kl_left left, again;
        see(seen, SEEN, CASES[i].base_s, CASES[i].spread_s, CASES[i].slower);
        const kl_left_ask ask = {seen, SEEN, CASES[i].workers, 2, CASES[i].tasks, 1, CASES[i].chain, 0.9, i};
        assert_true(kl_model_time_left(&ask, &left) && kl_model_time_left(&ask, &again));
        assert_memory_equal(&left, &again, sizeof left);
        if (!(left.low_s >= CASES[i].least_low_s && left.high_s <= CASES[i].most_high_s &&
              left.low_s <= left.middle_s && left.middle_s <= left.high_s &&
              fabs(left.middle_s - CASES[i].middle_s) <= CASES[i].within * CASES[i].middle_s))
            fail_msg("case %zu: %g, %g, %g", i, left.low_s, left.middle_s, left.high_s);
    }
}

static void test_nothing_known(void **state) {
    kl_seen_task seen[1] = {{1, 0}}, none[1] = {{0, 0}};
    kl_left_worker worker = {0};
    kl_left left;
    (void)state;
    assert_false(kl_model_time_left(&(kl_left_ask){seen, 0, &worker, 1, 5, 1, 0, 0.9, 1}, &left));
    assert_false(kl_model_time_left(&(kl_left_ask){seen, 1, &worker, 0, 5, 1, 0, 0.9, 1}, &left));
    assert_false(kl_model_time_left(&(kl_left_ask){none, 1, &worker, 1, 5, 1, 0, 0.9, 1}, &left));
    assert_true(kl_model_time_left(&(kl_left_ask){seen, 1, &worker, 1, 5, 1, 0, 0.9, 1}, &left));
    assert_true(left.low_s > 1 && left.high_s < 100);
}

/* The first tasks that end are short ones, because long tasks end later. So the running tasks must count,
 * too. */
static void test_running_tasks_count(void **state) {
    enum { WORKERS = 20 };
    kl_seen_task seen[10];
    kl_left_worker workers[WORKERS];
    kl_left left;
    (void)state;
    see(seen, 10, 1, 0.02, 1);
    for (int i = 0; i < WORKERS; i++)
        workers[i] = (kl_left_worker){1, i < 10 ? 30 : 0.1, i < 10 ? 30 : 0.1};
    assert_true(kl_model_time_left(&(kl_left_ask){seen, 10, workers, WORKERS, 220, 1, 0, 0.9, 1}, &left));
    assert_true(left.middle_s > 100);
}

/* A farm of 4000 workers is simulated with fewer workers, and the result is scaled. It must still be right.
 */
static void test_many_workers(void **state) {
    enum { WORKERS = 4000 };
    static kl_left_worker workers[WORKERS];
    kl_seen_task seen[SEEN];
    kl_left left;
    (void)state;
    see(seen, SEEN, 1, 0.02, 1);
    assert_true(kl_model_time_left(&(kl_left_ask){seen, SEEN, workers, WORKERS, 40000, 1, 0, 0.9, 1}, &left));
    assert_true(left.low_s > 8 && left.high_s < 13);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_nothing_known),
        cmocka_unit_test(test_running_tasks_count),
        cmocka_unit_test(test_many_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
