#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "measure/measure.h"

/* The ranks' CPU time and the cores' idle time, as parts of the cores' time. Others take the rest, and use at
 * least this number of cores. */
static void other_processes_are_seen_by_the_time_that_nobody_accounts_for(void **state) {
    static const struct {
        double cores, used, idle;
        uint32_t taken;
    } rows[] = {
        {1, 1, 0, 0},      {1, 0.2, 0.8, 0},  {1, 0.95, 0, 0},  {1, 0.5, 0, 1},
        {1, 0, 0.5, 1},    {1, 0, 0, 1},      {2, 0.75, 0, 1},  {2, 0.5, 0, 1},
        {2, 0.25, 0, 2},   {2, 0, 0, 2},      {2, 0.1, 0.4, 1}, {3, 0.6, 0, 1},
        {4, 0.6, 0.35, 0}, {4, 0.6, 0.25, 1}, {4, 0.2, 0.3, 2}, {4, 0, 0, 4},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_crowd c = {0};
        for (int k = 0; k < 4; k++) {
            double at_s = 0.4 * k, all_s = rows[i].cores * at_s;
            assert_true(c.judged == (k > 1));
            assert_true(kl_crowd_due(&c, 100 + at_s));
            kl_crowd_add(&c, &(kl_crowd_sample){.now_s = 100 + at_s,
                                                .cores = rows[i].cores,
                                                .used_s = 7 + rows[i].used * all_s,
                                                .idle_s = 3 + rows[i].idle * all_s});
            assert_true(c.alone == (k > 0 && rows[i].taken == 0) && c.taken == (k > 0 ? rows[i].taken : 0));
        }
    }
}

/* If the system does not tell idle times, the ranks neither count as alone, nor as disturbed by others. */
static void without_idle_times_nothing_is_assumed(void **state) {
    (void)state;
    kl_crowd c = {0};
    for (int k = 0; k < 6; k++) {
        double idle_s = k == 3 ? 1 : -1; /* once, the system does tell */
        kl_crowd_add(&c, &(kl_crowd_sample){100 + 0.4 * k, 1, 0.1 * k, idle_s, 0, 1});
        assert_true(!c.alone && c.taken == 0 && c.judged == (k > 0));
    }
}

/* When a rank has ended, the CPU time of the ranks is not known for a window. */
static void without_the_time_of_ranks_nothing_is_assumed(void **state) {
    (void)state;
    kl_crowd c = {0};
    for (int k = 0; k < 6; k++) {
        kl_crowd_add(&c, &(kl_crowd_sample){100 + 0.4 * k, 2, 0.4 * k, 0, 0, k < 3 ? 2 : 1});
        bool known = k > 0 && k != 3;
        assert_true(c.taken == known && (known ? fabs(c.others - 1) < 1e-9 : c.others == 0) && !c.alone &&
                    c.known == known);
    }
}

static void the_first_window_is_short(void **state) {
    (void)state;
    kl_crowd c = {0};
    assert_true(kl_crowd_due(&c, 100));
    kl_crowd_add(&c, &(kl_crowd_sample){100, 1, 0, 0, 0, 1});
    assert_true(!kl_crowd_due(&c, 100.05) && kl_crowd_due(&c, 100.15));
    kl_crowd_add(&c, &(kl_crowd_sample){100.15, 1, 0.15, 0, 0, 1});
    assert_true(c.judged && !kl_crowd_due(&c, 100.35) && kl_crowd_due(&c, 100.5));
}

/* Near a boundary the number stays as it was. */
static void the_number_of_taken_cores_is_steady(void **state) {
    (void)state;
    static const struct {
        double others;
        uint32_t taken;
    } rows[] = {{0, 0},    {1.3, 1},  {1.45, 1}, {1.55, 2}, {1.45, 2},
                {1.35, 2}, {1.25, 1}, {0.2, 0},  {2.6, 3},  {0, 0}};
    kl_crowd c = {0};
    double used_s = 5;
    kl_crowd_add(&c, &(kl_crowd_sample){100, 4, used_s, 0, 0, 1});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        used_s += 4 - rows[i].others;
        kl_crowd_add(&c, &(kl_crowd_sample){101 + (double)i, 4, used_s, 0, 0, 1});
        assert_int_equal(c.taken, rows[i].taken);
    }
}

static void threads_that_compute_are_seen(void **state) {
    (void)state;
    static const struct {
        double threads_s;
        bool seen;
    } rows[] = {{0, false}, {0.02, false}, {0.05, true}, {1, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_crowd c = {0};
        kl_crowd_add(&c, &(kl_crowd_sample){100, 2, 0.1, 0, 7, 1});
        assert_false(c.threads);
        kl_crowd_add(&c, &(kl_crowd_sample){100.4, 2, 0.5, 0, 7 + rows[i].threads_s, 1});
        assert_true(c.threads == rows[i].seen);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_processes_are_seen_by_the_time_that_nobody_accounts_for),
        cmocka_unit_test(without_idle_times_nothing_is_assumed),
        cmocka_unit_test(without_the_time_of_ranks_nothing_is_assumed),
        cmocka_unit_test(the_first_window_is_short),
        cmocka_unit_test(the_number_of_taken_cores_is_steady),
        cmocka_unit_test(threads_that_compute_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
