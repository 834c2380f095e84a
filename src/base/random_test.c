/* Test the random numbers of tasks: compare them with published values, begin in the middle of the sequence,
 * check means and variances. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kilter/random.h"

enum { NUMBERS = 100000 };

/* Compare with Random123's published answer for counter 0 and key 0, and with the next block. */
static void the_numbers_are_those_of_philox(void **state) {
    (void)state;
    static const uint64_t known[4] = {0x16554d9eca36314c, 0xdb20fe9d672d0fdc, 0xd7e772cee186176b,
                                      0x7e68b68aec7ba23b};
    kilter_random r = kilter_random_of(0, 0);
    for (int i = 0; i < 4; i++)
        assert_true(kilter_random_bits(&r) == known[i]);
    assert_true(kilter_random_bits(&r) != known[0]);
}

static void skipping_is_taking(void **state) {
    (void)state;
    for (uint64_t first = 0; first < 9; first++)
        for (uint64_t count = 0; count < 14; count++) {
            kilter_random taken = kilter_random_of(7, 3), skipped = taken;
            for (uint64_t i = 0; i < first; i++)
                assert_true(kilter_random_bits(&taken) == kilter_random_bits(&skipped));
            for (uint64_t i = 0; i < count; i++)
                kilter_random_bits(&taken);
            kilter_random_skip(&skipped, count);
            for (int i = 0; i < 6; i++)
                assert_true(kilter_random_bits(&taken) == kilter_random_bits(&skipped));
        }
}

static void tasks_and_seeds_have_numbers_of_their_own(void **state) {
    (void)state;
    static uint64_t first[64];
    for (uint64_t i = 0; i < 64; i++) {
        kilter_random r = kilter_random_of(i / 8, i % 8);
        first[i] = kilter_random_bits(&r);
        for (uint64_t k = 0; k < i; k++)
            assert_true(first[k] != first[i]);
    }
}

/* The mean and the variance of random numbers must be within five standard errors of the expected values.
 * Test the numbers of one long task, and then the first numbers of many tasks. */
static void check_moments(double (*draw)(kilter_random *), double mean, double variance, double fourth) {
    for (int many = 0; many < 2; many++) {
        kilter_random r = kilter_random_of(1, 0);
        double sum = 0, squares = 0;
        for (uint64_t i = 0; i < NUMBERS; i++) {
            if (many)
                r = kilter_random_of(1, i);
            double x = draw(&r) - mean;
            sum += x;
            squares += x * x;
        }
        assert_true(fabs(sum / NUMBERS) < 5 * sqrt(variance / NUMBERS));
        assert_true(fabs(squares / NUMBERS - variance) < 5 * sqrt((fourth - variance * variance) / NUMBERS));
    }
}

static void moments_are_those_of_the_distribution(void **state) {
    (void)state;
    check_moments(kilter_random_uniform, 0.5, 1.0 / 12, 1.0 / 80);
    check_moments(kilter_random_exponential, 1, 1, 9);
    check_moments(kilter_random_normal, 0, 1, 3);
}

static void uniform_numbers_are_below_one(void **state) {
    (void)state;
    kilter_random r = kilter_random_of(0, 0);
    for (int i = 0; i < 4; i++)
        r.ready[i] = UINT64_MAX;
    r.used = 0;
    assert_true(kilter_random_uniform(&r) < 1);
    assert_true(isfinite(kilter_random_exponential(&r)));
    assert_true(isfinite(kilter_random_normal(&r)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_numbers_are_those_of_philox),
        cmocka_unit_test(skipping_is_taking),
        cmocka_unit_test(tasks_and_seeds_have_numbers_of_their_own),
        cmocka_unit_test(moments_are_those_of_the_distribution),
        cmocka_unit_test(uniform_numbers_are_below_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
