/* Test how often a program writes checkpoints: properties of Young's interval between checkpoints. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "model/model.h"

static const double COSTS_S[] = {1e-4, 0.1, 3, 60}, BETWEEN_S[] = {300, 3600, 86400, 1e7};
enum { CASES = 4 };

/* No other interval between checkpoints may lose less time, by the formula for the lost time. */
static void loses_the_least(void **state) {
    (void)state;
    for (int c = 0; c < CASES; c++)
        for (int m = 0; m < CASES; m++) {
            double cost_s = COSTS_S[c], between_s = BETWEEN_S[m];
            double best_s = kl_model_checkpoint_s(cost_s, between_s);
            double least = kl_model_lost_part(best_s, cost_s, between_s);
            for (double factor = 0.1; factor < 10; factor *= 1.05)
                assert_true(kl_model_lost_part(factor * best_s, cost_s, between_s) >= least * (1 - 1e-12));
        }
}

/* If a checkpoint takes 0.1 s and a program fails once a day, checkpoints must take less than a hundredth of
 * the time. */
static void costs_little(void **state) {
    (void)state;
    double best_s = kl_model_checkpoint_s(0.1, 86400);
    assert_true(best_s > 131 && best_s < 132);
    assert_true(kl_model_lost_part(best_s, 0.1, 86400) < 0.01);
}

static void is_never_below_its_cost(void **state) {
    (void)state;
    for (double between_s = 1; between_s < 1e6; between_s *= 3)
        for (int c = 0; c < CASES; c++)
            assert_true(kl_model_checkpoint_s(COSTS_S[c], between_s) >= COSTS_S[c]);
}

/* The expected time between failures falls with their number. For a program that has never failed, it is at
 * least a day. */
static void failures_shorten_the_time(void **state) {
    (void)state;
    assert_true(kl_model_between_failures_s(10, 0) == 86400);
    assert_true(kl_model_between_failures_s(2e5, 0) == 2e5);
    for (uint64_t failures = 1; failures < 20; failures++) {
        double ran_s = 1e4, between_s = kl_model_between_failures_s(ran_s, failures);
        assert_true(fabs(between_s * (double)failures - ran_s) < 1e-6);
        assert_true(between_s <= kl_model_between_failures_s(ran_s, failures - 1));
    }
    assert_true(kl_model_between_failures_s(0, 3) >= 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(loses_the_least), cmocka_unit_test(costs_little),
                                       cmocka_unit_test(is_never_below_its_cost),
                                       cmocka_unit_test(failures_shorten_the_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
