#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "steer/proof.h"

/* Add rounds of 1 s, in which a sweep takes here_s, until a trial is due, but at most `rounds`. Return the
 * number of rounds. */
static int rounds_until_due(kl_proof *p, double *now_s, double here_s, double cost_s, int rounds) {
    int n = 0;
    while (n < rounds && !kl_proof_due(p, *now_s, cost_s, 1)) {
        kl_proof_round(p, *now_s, 1 / here_s, 1, false);
        *now_s += 1;
        n++;
    }
    return n;
}

static kl_proved try(kl_proof *p, double *now_s, double equal_s) {
    kl_proof_begin(p);
    /* in this round shares become equal, so it does not count as a round with equal shares */
    kl_proof_round(p, *now_s, 3, 1, true);
    assert_int_equal(kl_proof_verdict(p), KL_PROVED_NOTHING);
    for (int n = 0; kl_proof_verdict(p) == KL_PROVED_NOTHING && n < 10; n++, *now_s += 1)
        kl_proof_round(p, *now_s, 1 / equal_s, 1, true);
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

/* Check that trials take at most a hundredth of the run's time, whatever they cost, and that the pauses
 * between them never become shorter. */
static void tries_cost_a_hundredth_at_most_and_ever_less(void **state) {
    (void)state;
    for (double cost_s = 0.001; cost_s < 10; cost_s *= 1.5) {
        kl_proof p = {0};
        double now_s = 0, before_s = 0;
        for (int t = 0; t < 6; t++) {
            double began_s = now_s;
            rounds_until_due(&p, &now_s, 0.1, cost_s, 1 << 20);
            double waited_s = now_s - began_s;
            assert_true(waited_s >= 100 * cost_s && waited_s >= 6 && waited_s >= before_s);
            /* pauses may be shorter by 1 s, because a trial begins only after a whole round */
            before_s = waited_s - 1;
            assert_int_equal(try(&p, &now_s, 0.2), KL_BALANCING_PAYS);
        }
    }
}

static void learn_equal(kl_proof *p, double equal_s) {
    kl_proof_round(p, 0, 1, 1, true);
    kl_proof_round(p, 0, 1 / equal_s, 1, true);
    kl_proof_round(p, 0, 1, 1, false);
}

/* Check that the next trial comes sooner if sweeps were faster when shares were equal. */
static void doubts_are_looked_into_soon(void **state) {
    (void)state;
    double sure_s = 0, doubting_s = 0;
    kl_proof sure = {0}, doubting = {0};
    learn_equal(&sure, 0.2);
    learn_equal(&doubting, 0.09);
    rounds_until_due(&sure, &sure_s, 0.1, 1, 1 << 20);
    rounds_until_due(&doubting, &doubting_s, 0.1, 1, 1 << 20);
    assert_true(doubting_s >= 6 && doubting_s < sure_s / 2);
}

/* Return the number of rounds with balanced shares until equal shares have won two trials. */
static int rounds_until_rest(kl_proof *p, double *now_s) {
    int n = 0;
    while (n < 1000 && !kl_proof_rests(p, *now_s)) {
        n += rounds_until_due(p, now_s, 0.1, 0.01, 1000);
        assert_int_equal(try(p, now_s, 0.05), KL_EQUAL_IS_BETTER);
    }
    return n;
}

/* Check that balancing rests (pauses) only after equal shares have won two trials, because a load may be
 * absent by chance during one trial. Later rests must be longer. */
static void what_costs_rests_ever_longer(void **state) {
    (void)state;
    kl_proof p = {0};
    double now_s = 0, balanced_s = 0, least_s = 0;
    for (int t = 0; t < 6; t++) {
        int rounds = rounds_until_rest(&p, &now_s);
        balanced_s += rounds;
        assert_true(t == 0 ? rounds == 13 : rounds == 7);
        assert_true(p.rest_s > least_s && p.rest_s <= 100);
        least_s = fmin(1.99 * p.rest_s, 99);
        while (kl_proof_rests(&p, now_s))
            kl_proof_round(&p, now_s += 1, 20, 1, true);
    }
    assert_true(balanced_s < 0.2 * now_s);
    rounds_until_due(&p, &now_s, 0.1, 0.01, 1000);
    assert_int_equal(try(&p, &now_s, 0.2), KL_BALANCING_PAYS);
    assert_true(p.rest_s == 0 && !kl_proof_rests(&p, now_s));
}

/* Check that a rest ends when sweeps take longer, because another load has outdated the trial's result. One
 * bad round must not end it. */
static void a_rest_ends_when_executions_take_longer(void **state) {
    (void)state;
    for (int bad = 0; bad < 10; bad++) {
        kl_proof p = {0};
        double now_s = 0;
        rounds_until_rest(&p, &now_s);
        for (int n = 0; n < bad; n++)
            kl_proof_round(&p, now_s += 1, 13, 1, true);
        if (bad < 2)
            assert_true(kl_proof_rests(&p, now_s));
        if (bad > 3)
            assert_false(kl_proof_rests(&p, now_s));
    }
}

/* Check that a trial is due after six rounds, but not while shares are equal anyway. */
static void rounds_count_whether_rows_move_or_not(void **state) {
    (void)state;
    kl_proof p = {0};
    double now_s = 0;
    rounds_until_due(&p, &now_s, 0.1, 1e-9, 1000);
    assert_true(now_s == 6);
    kl_proof_round(&p, now_s, 10, 1, true); /* in this round shares are equal, but not because of a trial */
    assert_false(kl_proof_due(&p, now_s + 100, 1e-9, 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_shares_are_judged_by_what_they_take),
        cmocka_unit_test(tries_cost_a_hundredth_at_most_and_ever_less),
        cmocka_unit_test(doubts_are_looked_into_soon),
        cmocka_unit_test(what_costs_rests_ever_longer),
        cmocka_unit_test(a_rest_ends_when_executions_take_longer),
        cmocka_unit_test(rounds_count_whether_rows_move_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
