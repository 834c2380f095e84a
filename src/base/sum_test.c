/* Compare exact sums with sums of integers, and with sums in a different order. */

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static bool same_bits(double a, double b) {
    return bits_of(a) == bits_of(b);
}

static double draw(uint64_t *seed) { /* Draw any finite double. */
    double x;
    do {
        *seed = kl_mix64(*seed);
        memcpy(&x, seed, sizeof x);
    } while (!isfinite(x));
    return x;
}

static double sum_of(const double *x, size_t count) {
    kilter_sum sum = {{0}, 0};
    for (size_t i = 0; i < count; i++)
        kilter_sum_add(&sum, x[i]);
    return kilter_sum_value(&sum);
}

static void test_known_sums(void **state) {
    (void)state;
    static const struct {
        double x[4], sum;
    } cases[] = {
        {{0}, 0},
        {{-0.0}, 0},
        {{1e308, 1e308, -1e308, -1e308}, 0},
        {{DBL_MAX, DBL_MAX, -DBL_MAX, 1}, DBL_MAX},
        {{DBL_MAX, DBL_MAX}, INFINITY},
        {{-DBL_MAX, -DBL_MAX}, -INFINITY},
        {{1, 1e100, 1, -1e100}, 2},
        {{0.1, 0.2, -0.3}, 0x1p-55},
        /* the sum is half way between two doubles: it is rounded to the one whose last bit is even */
        {{1, 0x1p-53}, 1},
        /* the sum is slightly more than half way between two doubles */
        {{1, 0x1p-53, 0x1p-1074}, 1 + DBL_EPSILON},
        /* the sum is slightly less than half way between two doubles */
        {{1, 3 * 0x1p-53, -0x1p-1074}, 1 + DBL_EPSILON},
        {{-1, -0x1p-53, -0x1p-1074}, -1 - DBL_EPSILON},
        {{0x1p-1074, 0x1p-1074}, 0x1p-1073},
        {{DBL_MIN, -0x1p-1074}, DBL_MIN - 0x1p-1074},
        {{INFINITY, 1}, INFINITY},
        {{-INFINITY, DBL_MAX}, -INFINITY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(same_bits(sum_of(cases[i].x, 4), cases[i].sum));
    assert_true(isnan(sum_of((double[]){INFINITY, -INFINITY}, 2)));
    assert_true(isnan(sum_of((double[]){NAN, 1}, 2)));
}

/* Compare sums of two doubles with the sums that the processor computes. */
static void test_pairs_are_rounded_as_by_the_hardware(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 100000; i++) {
        double a = draw(&seed), b = ldexp(draw(&seed), 0);
        int exponent;
        frexp(a, &exponent); /* a sum must be rounded only if its two numbers have similar size */
        if (i % 2)
            b = ldexp(frexp(b, &(int){0}), exponent - i % 70);
        volatile double sum = a + b;
        assert_true(same_bits(sum_of((double[]){a, b}, 2), sum));
    }
}

static void test_order_and_parts_do_not_matter(void **state) {
    (void)state;
    enum { COUNT = 500 };
    double x[COUNT];
    uint64_t seed = 2;
    for (int i = 0; i < COUNT; i++)
        x[i] = ldexp(draw(&seed), -40); /* choose numbers so small that no sum overflows */
    double whole = sum_of(x, COUNT);
    for (int round = 0; round < 50; round++) {
        kilter_sum parts[7] = {{{0}, 0}}, total = {{0}, 0};
        for (int i = COUNT - 1; i > 0; i--) {
            size_t k = (size_t)((seed = kl_mix64(seed)) % (uint64_t)(i + 1));
            double kept = x[i];
            x[i] = x[k];
            x[k] = kept;
        }
        for (int i = 0; i < COUNT; i++)
            kilter_sum_add(&parts[(seed = kl_mix64(seed)) % 7], x[i]);
        for (int p = 0; p < 7; p++)
            kilter_sum_join(&total, &parts[p]);
        /* reading the value of a sum does not change the sum */
        assert_true(same_bits(kilter_sum_value(&total), whole));
        assert_true(same_bits(kilter_sum_value(&total), whole));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_sums),
        cmocka_unit_test(test_pairs_are_rounded_as_by_the_hardware),
        cmocka_unit_test(test_order_and_parts_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
