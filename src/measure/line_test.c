/* Test the lines and powers that are fitted to costs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "measure/measure.h"

static bool near(double a, double b) {
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)) + 1e-12;
}

static double number_of(uint64_t seed, uint64_t i) {
    return 1 + (double)(kl_mix64(seed * 64 + i) % 1000);
}

static void a_line_is_found(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        kl_line line = {0};
        double fixed_s = 0.1 * (double)(seed % 5), slope = 0.01 * (double)(1 + seed % 7);
        for (uint64_t i = 0; i < 20; i++)
            kl_line_add(&line, number_of(seed, i), fixed_s + slope * number_of(seed, i));
        kl_curve fit = kl_line_fit(&line);
        assert_true(near(fit.fixed_s, fixed_s) && near(fit.per_unit_s, slope));
        assert_true(line.least_x >= 1 && line.most_x <= 1000 && line.least_x <= line.most_x);
    }
}

static void one_number_tells_a_proportion(void **state) {
    (void)state;
    kl_line line = {0};
    assert_true(kl_line_fit(&line).per_unit_s == 0 && kl_line_fit(&line).fixed_s == 0);
    for (int i = 0; i < 3; i++)
        kl_line_add(&line, 200, 5 + i);
    kl_curve fit = kl_line_fit(&line);
    assert_true(
        fit.fixed_s == 0 && fit.per_unit_s * 200 > 6 &&
        fit.per_unit_s * 200 <
            7); /* the fit is near the last readings of 5, 6 and 7 s, with more weight on later ones */
}

/* Costs that grow with a power of the number of tasks must be predicted for 50 to 800 tasks, from readings at
 * 100 and 400 tasks. */
static void a_power_is_found(void **state) {
    (void)state;
    for (int p = 0; p <= 10; p++) {
        double power = 1 + 0.1 * p;
        kl_line line = {0};
        for (int i = 0; i < 12; i++)
            kl_line_add(&line, i % 2 ? 400 : 100, pow(i % 2 ? 4 : 1, power));
        kl_curve fit = kl_line_fit(&line);
        for (double tasks = 50; tasks <= 800; tasks *= 2) {
            double ratio = kl_curve_s(&fit, tasks) / pow(tasks / 100, power);
            assert_true(ratio > 0.9 && ratio < 1.1);
        }
    }
}

/* Readings with noise, at almost the same number, must give a cost that is nearly proportional to the number.
 */
static void noise_is_no_power(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        kl_line line = {0};
        for (uint64_t i = 0; i < 10; i++)
            kl_line_add(&line, i % 2 ? 105 : 100,
                        1 + 0.1 * ((double)(kl_mix64(seed * 16 + i) % 1000) / 1000 - 0.5));
        kl_curve fit = kl_line_fit(&line);
        assert_true(kl_curve_s(&fit, 200) < 2.7 && kl_curve_s(&fit, 50) > 0.37);
    }
}

/* For any readings, no term of the fit may be negative, and the fit must lie between the smallest and the
 * largest reading. */
static void no_term_is_below_zero(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        kl_line line = {0};
        double least = INFINITY, most = 0;
        for (uint64_t i = 0; i <= seed % 9; i++) {
            double seconds = (double)(kl_mix64(seed + 7 * i) % 100);
            least = fmin(least, seconds);
            most = fmax(most, seconds);
            kl_line_add(&line, number_of(seed, i), seconds);
        }
        kl_curve fit = kl_line_fit(&line);
        assert_true(fit.fixed_s >= 0 && fit.per_unit_s >= 0 && fit.bend >= 0);
        if (fit.fixed_s > 0 || seed % 9 == 0)
            assert_true(fit.fixed_s + fit.per_unit_s * line.plain.x >= least - 1e-9 &&
                        fit.fixed_s + fit.per_unit_s * line.plain.x <= most + 1e-9);
    }
}

static void the_past_fades(void **state) {
    (void)state;
    kl_line line = {0};
    for (int i = 0; i < 50; i++)
        kl_line_add(&line, 100 + i % 3 * 100, 10);
    for (int i = 0; i < 50; i++)
        kl_line_add(&line, 100 + i % 3 * 100, 1 + 0.01 * (100 + i % 3 * 100));
    kl_curve fit = kl_line_fit(&line);
    assert_true(fabs(fit.fixed_s - 1) < 0.01 && fabs(fit.per_unit_s - 0.01) < 1e-4);
}

/* A change of the unit of work must not change any cost in seconds. */
static void views_are_rescaled(void **state) {
    (void)state;
    kl_worker_view v = {.present = true};
    kl_stat unit_s = {0};
    for (int i = 0; i < 5; i++)
        kl_stat_add(&unit_s, 0.1 + 0.01 * i, i);
    kl_view_dealt(&v, 5, 5, 0);
    kl_view_reported(&v, &unit_s, 0.6, 5, 0.1, 5);
    double rate = kl_worker_rate(&v), cv = kl_stat_cv(&v.unit_s);
    kl_view_rescale(&v, 4);
    assert_true(near(kl_worker_rate(&v), rate / 4));
    assert_true(near(kl_stat_cv(&v.unit_s), cv) && near(v.unit_s.mean, 4 * unit_s.mean));
    assert_true(near(v.units, 1.25) && v.busy_s == 0.6);
    kl_view_rescale(&v, 0.25);
    assert_true(near(kl_worker_rate(&v), rate));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_found),       cmocka_unit_test(a_power_is_found),
        cmocka_unit_test(noise_is_no_power),     cmocka_unit_test(one_number_tells_a_proportion),
        cmocka_unit_test(no_term_is_below_zero), cmocka_unit_test(the_past_fades),
        cmocka_unit_test(views_are_rescaled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
