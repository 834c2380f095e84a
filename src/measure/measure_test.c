#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "measure/measure.h"

static double random_01(uint64_t i) {
    return (double)(kl_mix64(i) >> 11) * 0x1p-53;
}

static bool near(double a, double b, double relative) {
    return fabs(a - b) <= relative * fmax(fabs(a), fabs(b)) + 1e-300;
}

static void mean_and_deviation_are_those_of_two_passes(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        kl_stat s = {0};
        double sum = 0, squares = 0, low = INFINITY, high = -INFINITY, v[100];
        size_t n = 2 + seed;
        for (size_t i = 0; i < n; i++) {
            v[i] = 1e6 + random_01(seed << 8 | i); /* values with a large offset, for which the textbook
                                                      formula of the variance loses all digits */
            kl_stat_add(&s, v[i], (double)i);
            sum += v[i];
            low = fmin(low, v[i]);
            high = fmax(high, v[i]);
        }
        for (size_t i = 0; i < n; i++)
            squares += (v[i] - sum / (double)n) * (v[i] - sum / (double)n);
        assert_int_equal(s.count, n);
        assert_true(near(s.mean, sum / (double)n, 1e-12));
        assert_true(near(kl_stat_sd(&s), sqrt(squares / (double)(n - 1)), 1e-6));
        assert_true(s.min == low && s.max == high && s.last_s == (double)(n - 1));
    }
}

static void merging_equals_adding_all(void **state) {
    (void)state;
    for (size_t cut = 0; cut <= 40; cut++) {
        kl_stat all = {0}, left = {0}, right = {0};
        for (size_t i = 0; i < 40; i++) {
            double v = random_01(i) * 10 - 3;
            kl_stat_add(&all, v, (double)i);
            kl_stat_add(i < cut ? &left : &right, v, (double)i);
        }
        kl_stat_merge(&left, &right);
        assert_int_equal(left.count, all.count);
        assert_true(near(left.mean, all.mean, 1e-12) && near(left.m2, all.m2, 1e-12));
        assert_true(left.min == all.min && left.max == all.max && left.last_s == all.last_s);
    }
}

static void few_or_odd_values_make_no_nan(void **state) {
    (void)state;
    kl_stat s = {0};
    assert_true(kl_stat_sd(&s) == 0 && kl_stat_cv(&s) == 0);
    kl_stat_add(&s, NAN, 0);
    kl_stat_add(&s, INFINITY, 0);
    assert_int_equal(s.count, 0);
    kl_stat_add(&s, 0, 0);
    kl_stat_add(&s, 0, 0);
    assert_true(kl_stat_sd(&s) == 0 && kl_stat_cv(&s) == 0);
    kl_stat_add(&s, -3, 0);
    assert_true(kl_stat_cv(&s) > 0);

    kl_pace p = {0};
    kl_pace_add(&p, NAN, 1, 1);
    kl_pace_add(&p, -1, 1, 1);
    kl_pace_add(&p, 1, 1, 0);
    assert_true(kl_pace_unit_s(&p) == 0);
    kl_pace_add(&p, 0, 5, 1); /* work that took no time must give a very small pace, and not an unknown one */
    assert_true(kl_pace_unit_s(&p) > 0 && kl_pace_unit_s(&p) < 1e-9);
}

static void pace_of_a_burst_is_that_of_one_long_chunk(void **state) {
    (void)state;
    for (int parts = 1; parts <= 1000; parts *= 10) {
        kl_pace burst = {0}, whole = {0};
        kl_pace_add(&burst, 0.7, 2, 0.5);
        kl_pace_add(&whole, 0.7, 2, 0.5);
        for (int i = 0; i < parts; i++)
            kl_pace_add(&burst, 0.3 / parts, 10.0 / parts, 0.5);
        kl_pace_add(&whole, 0.3, 10, 0.5);
        assert_true(near(burst.seconds, whole.seconds, 1e-9) && near(burst.units, whole.units, 1e-9));
    }
}

static void pace_forgets(void **state) {
    (void)state;
    kl_pace p = {0};
    kl_pace_add(&p, 10, 1000, 0.5); /* the worker needs 10 ms per unit */
    double before = kl_pace_unit_s(&p);
    for (int i = 0; i < 50; i++) {
        kl_pace_add(&p, 0.1, 1, 0.5); /* from now on the worker needs 100 ms per unit */
        assert_true(kl_pace_unit_s(&p) > before && kl_pace_unit_s(&p) <= 0.1);
        before = kl_pace_unit_s(&p);
    }
    assert_true(near(before, 0.1, 0.01));
    assert_true(p.spread > 0);
}

static void steady_pace_has_no_spread(void **state) {
    (void)state;
    kl_pace p = {0};
    for (int i = 1; i < 20; i++)
        kl_pace_add(&p, 0.01 * i, i, 0.5);
    assert_true(near(kl_pace_unit_s(&p), 0.01, 1e-12) && p.spread < 1e-20);
}

static double cost_of(kl_linear cost, double bytes) {
    return cost.fixed_s + cost.per_unit_s * bytes;
}

static void message_cost_is_found_again(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        kl_linear truth = {random_01(2 * seed) * 1e-3, random_01(2 * seed + 1) * 1e-6};
        kl_msgcost cost = {0};
        for (double bytes = 0; bytes <= 1 << 20; bytes = bytes * 2 + 1)
            kl_msgcost_add(&cost, bytes, cost_of(truth, bytes));
        kl_linear fit = kl_msgcost_fit(&cost);
        assert_true(near(fit.per_unit_s, truth.per_unit_s, 1e-6));
        assert_true(fabs(fit.fixed_s - truth.fixed_s) < 1e-9);
    }
}

/* Return the sum of squared errors of a fit, over three points {bytes, seconds}. */
static double error_of(kl_linear fit, double (*points)[2]) {
    double sum = 0;
    for (int i = 0; i < 3; i++)
        sum += pow(cost_of(fit, points[i][0]) - points[i][1], 2);
    return sum;
}

static void neither_term_goes_below_zero_and_the_fit_stays_best(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        double points[3][2];
        kl_msgcost cost = {0};
        for (uint64_t i = 0; i < 3; i++) {
            points[i][0] = ldexp(0.5 + random_01(seed * 16 + i) / 2,
                                 2 * (int)i); /* messages of three different size classes */
            points[i][1] = random_01(seed * 16 + 8 + i);
            kl_msgcost_add(&cost, points[i][0], points[i][1]);
        }
        kl_linear fit = kl_msgcost_fit(&cost);
        assert_true(fit.fixed_s >= 0 && fit.per_unit_s >= 0);
        double best = error_of(fit, points);
        for (int i = 0; i <= 100; i++)
            for (int j = 0; j <= 100; j++)
                assert_true(error_of((kl_linear){i * 0.01, j * 0.01}, points) >= best - 1e-12);
    }
}

static void message_cost_of_nothing_and_of_one_size(void **state) {
    (void)state;
    kl_msgcost cost = {0};
    assert_true(kl_msgcost_fit(&cost).fixed_s == 0 && kl_msgcost_fit(&cost).per_unit_s == 0);
    for (int i = 0; i < 1000; i++)
        kl_msgcost_add(&cost, 123457, 2e-3 + 1e-3 * (i % 2));
    kl_linear fit = kl_msgcost_fit(&cost);
    assert_true(near(fit.fixed_s, 2e-3, 1e-12) && fit.per_unit_s == 0);
}

static void messages_that_waited_for_others_do_not_count(void **state) {
    (void)state;
    kl_linear truth = {40e-6, 1e-9};
    kl_msgcost cost = {0};
    for (uint64_t i = 0; i < 400; i++) {
        double bytes = i % 2 ? 100 : 65536, late_s = i % 10 < 2 ? 0 : random_01(i) * 1e-2;
        kl_msgcost_add(&cost, bytes, cost_of(truth, bytes) + late_s);
    }
    kl_linear fit = kl_msgcost_fit(&cost);
    assert_true(near(fit.fixed_s, truth.fixed_s, 1e-6) && near(fit.per_unit_s, truth.per_unit_s, 1e-6));
}

/* First send large messages, which show λ (seconds per byte). Then send only small messages, with another
 * start-up cost m_o. λ must keep its value, and m_o must follow. */
static void the_fit_follows_a_change_and_keeps_the_cost_of_a_byte(void **state) {
    (void)state;
    const double factors[] = {10, 0.1, 1, 300};
    for (size_t k = 0; k < sizeof factors / sizeof factors[0]; k++) {
        kl_linear truth = {40e-6, 1e-9};
        kl_msgcost cost = {0};
        for (uint64_t i = 0; i < 8; i++)
            kl_msgcost_add(&cost, i % 2 ? 65536 : 8, cost_of(truth, i % 2 ? 65536 : 8));
        truth.fixed_s *= factors[k];
        for (int window = 0; window < 2; window++) {
            kl_msgcost_next_window(&cost);
            for (double bytes = 100; bytes < 600; bytes += 100)
                kl_msgcost_add(&cost, bytes, cost_of(truth, bytes));
        }
        kl_msgcost_next_window(&cost);
        kl_linear fit = kl_msgcost_fit(&cost);
        assert_true(near(fit.fixed_s, truth.fixed_s, 0.01) && near(fit.per_unit_s, truth.per_unit_s, 0.01));
        /* one delayed exchange is too few to end a window, so the previous window still counts */
        kl_msgcost_add(&cost, 200, 1);
        kl_msgcost_next_window(&cost);
        kl_msgcost_next_window(&cost);
        assert_true(near(kl_msgcost_fit(&cost).fixed_s, truth.fixed_s, 0.01));
    }
}

static void later_chunks_weigh_more(void **state) {
    (void)state;
    kl_wap wap = {0};
    assert_true(kl_wap_unit_s(&wap) == 0);
    kl_wap_add(&wap, 1, 1);
    kl_wap_add(&wap, 4, 1);
    assert_true(near(kl_wap_unit_s(&wap), (1 * 1 + 2 * 4) / 3.0, 1e-12)); /* (1·1 + 2·4)/(1 + 2) */
}

/* A first task that took almost no time must count as at least 0.4 of the mean time per unit. A first task
 * that is slower than the mean must count with its own time. */
static void a_first_report_makes_nobody_endlessly_fast(void **state) {
    (void)state;
    const kl_stat nothing = {.count = 1, .mean = 0};
    for (double mean_s = 1e-6; mean_s < 10; mean_s *= 10) {
        kl_worker_view view = {.present = true, .queued_tasks = 2, .queued_units = 2};
        kl_view_reported(&view, &nothing, 0, 1, mean_s, 1);
        double unit_s = kl_pace_unit_s(&view.pace);
        assert_true(unit_s > 0.4 * mean_s && unit_s <= mean_s);
        kl_worker_view slower = {.present = true, .queued_tasks = 2, .queued_units = 2};
        kl_stat slow = {.count = 1, .mean = 3 * mean_s};
        kl_view_reported(&slower, &slow, 3 * mean_s, 1, mean_s, 1);
        assert_true(fabs(kl_pace_unit_s(&slower.pace) / (3 * mean_s) - 1) < 1e-9);
    }
}

/* Bins must be adjacent, each value must lie between the ends of its bin, and every task of a stat must be
 * counted. */
static void sizes_lie_in_their_bins(void **state) {
    (void)state;
    double most, least = kl_sizes_bin(KL_SIZE_BINS / 2, &most);
    assert_true(fabs(least * most - 1) < 1e-12); /* size 1 is in the middle of its bin */
    for (uint32_t i = 0; i + 1 < KL_SIZE_BINS; i++) {
        kl_sizes_bin(i, &most);
        assert_true(fabs(kl_sizes_bin(i + 1, &(double){0}) / most - 1) < 1e-12);
    }
    for (uint64_t seed = 1; seed <= 200; seed++) {
        kl_sizes sizes = {0};
        double size = exp(8 * (double)(kl_mix64(seed) >> 11) * 0x1p-53 - 4), rate = (double)seed;
        kl_stat one = {0};
        kl_stat_add(&one, size / rate, 0);
        kl_sizes_add(&sizes, &one, rate);
        uint32_t bin = 0;
        while (!(sizes.tasks[bin] > 0))
            bin++;
        least = kl_sizes_bin(bin, &most);
        assert_true(sizes.count == 1 && sizes.tasks[bin] == 1);
        assert_true(least <= size * (1 + 1e-9) && size <= most * (1 + 1e-9));
    }
}

static void of_many_tasks_the_extremes_are_kept(void **state) {
    (void)state;
    kl_sizes sizes = {0};
    kl_stat many = {0};
    for (int i = 0; i < 98; i++)
        kl_stat_add(&many, 1.05, 0);
    kl_stat_add(&many, 0.01, 0);
    kl_stat_add(&many, 50, 0);
    kl_sizes_add(&sizes, &many, 1);
    kl_sizes_add(&sizes, &many, 0); /* tasks of a worker whose rate is not known (0) are not counted */
    kl_sizes_add(&sizes, &(kl_stat){0}, 1);
    double sum = 0, most = 0;
    for (uint32_t i = 0; i < KL_SIZE_BINS; i++)
        sum += sizes.tasks[i];
    assert_true(fabs(sum - 100) < 1e-9 && fabs(sizes.count - 100) < 1e-9);
    assert_true(sizes.tasks[KL_SIZE_BINS / 2] == 98);
    for (uint32_t i = 0; i < KL_SIZE_BINS; i++)
        if (sizes.tasks[i] > 0)
            kl_sizes_bin(i, &most);
    assert_true(most >= 50 && most < 60);
}

static void who_never_reported_is_as_slow_as_it_was_silent(void **state) {
    (void)state;
    kl_worker_view view = {.present = true, .queued_tasks = 1, .queued_units = 1, .queued_at_s = 10};
    kl_view_abandoned(&view, 1, 0.1,
                      10.05); /* a task that has run for less than the mean time of a task shows nothing */
    assert_true(kl_worker_rate(&view) == 0);
    kl_view_abandoned(&view, 1, 0.1, 12);
    assert_true(fabs(kl_worker_rate(&view) - 0.5) < 1e-9);
    kl_view_abandoned(&view, 1, 0.1,
                      20); /* the worker's rate is known now, so a further task does not change it */
    assert_true(fabs(kl_worker_rate(&view) - 0.5) < 1e-9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_and_deviation_are_those_of_two_passes),
        cmocka_unit_test(merging_equals_adding_all),
        cmocka_unit_test(few_or_odd_values_make_no_nan),
        cmocka_unit_test(pace_of_a_burst_is_that_of_one_long_chunk),
        cmocka_unit_test(pace_forgets),
        cmocka_unit_test(steady_pace_has_no_spread),
        cmocka_unit_test(message_cost_is_found_again),
        cmocka_unit_test(neither_term_goes_below_zero_and_the_fit_stays_best),
        cmocka_unit_test(messages_that_waited_for_others_do_not_count),
        cmocka_unit_test(the_fit_follows_a_change_and_keeps_the_cost_of_a_byte),
        cmocka_unit_test(message_cost_of_nothing_and_of_one_size),
        cmocka_unit_test(later_chunks_weigh_more),
        cmocka_unit_test(a_first_report_makes_nobody_endlessly_fast),
        cmocka_unit_test(sizes_lie_in_their_bins),
        cmocka_unit_test(of_many_tasks_the_extremes_are_kept),
        cmocka_unit_test(who_never_reported_is_as_slow_as_it_was_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
