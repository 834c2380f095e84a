#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "steer/proof.h"

/* Rounds of a second of executions that take `here_s`, until a try begins or `rounds` are over. */
static int rounds_until_due(kl_proof *p, double *now_s, double here_s, double cost_s, int rounds) {
    int n = 0;
    while (n < rounds && !kl_proof_due(p, *now_s, cost_s, 1)) {
        kl_proof_round(p, 1 / here_s, 1, false, false);
        *now_s += 1;
        n++;
    }
    return n;
}

static kl_proved try(kl_proof *p, double *now_s, double equal_s) {
    kl_proof_begin(p);
    kl_proof_round(p, 3, 1, true, true); /* partly with the shares before */
    assert_int_equal(kl_proof_verdict(p), KL_PROVED_NOTHING);
    for (int n = 0; kl_proof_verdict(p) == KL_PROVED_NOTHING && n < 10; n++, *now_s += 1)
        kl_proof_round(p, 1 / equal_s, 1, true, false);
    kl_proved proved = kl_proof_verdict(p);
    kl_proof_end(p, *now_s, proved);
    return proved;
}

static void equal_shares_are_judged_by_what_they_take(void **state) {
    (void)state;
    for (double ratio = 0.2; ratio < 5; ratio *= 1.07) {
        kl_proof p = {0};
        double now_s = 0;
        rounds_until_due(&p, &now_s, 0.1, 0.01, 1000);
        kl_proved proved = try(&p, &now_s, 0.1 * ratio);
        assert_int_equal(proved, ratio < 0.98 ? KL_EQUAL_IS_BETTER : KL_BALANCING_PAYS);
    }
}

/* Whatever a try costs, and however they come out. */
static void tries_cost_a_hundredth_at_most_and_ever_less(void **state) {
    (void)state;
    for (double cost_s = 0.001; cost_s < 10; cost_s *= 1.5) {
        kl_proof p = {0};
        double now_s = 0, before_s = 0;
        for (int t = 0; t < 6; t++) {
            double began_s = now_s;
            rounds_until_due(&p, &now_s, 0.1, cost_s, 1 << 20);
            double waited_s = now_s - began_s;
            assert_true(waited_s >= 100 * cost_s && waited_s >= 12 && waited_s >= before_s);
            before_s = waited_s - 1; /* in whole rounds */
            assert_int_equal(try(&p, &now_s, 0.2), KL_BALANCING_PAYS);
        }
    }
}

/* Executions were faster with equal shares: that is looked into sooner. */
static void doubts_are_looked_into_soon(void **state) {
    (void)state;
    double sure_s = 0, doubting_s = 0;
    kl_proof sure = {0}, doubting = {0};
    kl_proof_round(&sure, 1, 0.2, true, false);
    kl_proof_round(&doubting, 1, 0.09, true, false);
    kl_proof_round(&sure, 1, 0.1, false, true);
    kl_proof_round(&doubting, 1, 0.1, false, true);
    rounds_until_due(&sure, &sure_s, 0.1, 1, 1 << 20);
    rounds_until_due(&doubting, &doubting_s, 0.1, 1, 1 << 20);
    assert_true(doubting_s >= 12 && doubting_s < sure_s / 2);
}

static void nothing_is_due_while_rows_move(void **state) {
    (void)state;
    kl_proof p = {0};
    for (int n = 0; n < 1000; n++) {
        kl_proof_round(&p, 10, 1, false, n % 5 == 0);
        assert_false(kl_proof_due(&p, n, 1e-9, 1));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_shares_are_judged_by_what_they_take),
        cmocka_unit_test(tries_cost_a_hundredth_at_most_and_ever_less),
        cmocka_unit_test(doubts_are_looked_into_soon),
        cmocka_unit_test(nothing_is_due_while_rows_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
