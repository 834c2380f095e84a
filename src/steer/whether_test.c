/* Check that deciding between moving and staying costs at most two times the best decision in hindsight, and
 * that no imbalance stays for ever. Test the account of what moves gain and cost as well. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "steer/steer.h"

static double random_01(uint64_t i) {
    return (double)(kl_mix64(i) >> 11) * 0x1p-53;
}

/* --- whether --- */

static void verdicts_are_those_of_the_table(void **state) {
    (void)state;
    static const struct {
        kl_prospect p;
        kl_verdict verdict;
        const char *says;
    } rows[] = {
        {{.now_s = 1, .then_s = 1}, KL_STAY_BALANCED, "balanced"},
        {{.now_s = 1, .then_s = 1.2, .lost_s = 9, .lasted_s = 9}, KL_STAY_BALANCED, "balanced"},
        /* cases in which the usual duration of the speeds is not known */
        {{.now_s = 2, .then_s = 1, .lasted_s = 3, .lost_s = 1.5, .move_s = 2}, KL_STAY_WAITING, "so far"},
        {{.now_s = 2, .then_s = 1, .lasted_s = 4, .lost_s = 2, .move_s = 2},
         KL_MOVE_HINDSIGHT,
         "staying has cost 2 s"},
        {{.now_s = 2, .then_s = 1, .lasted_s = 1, .lost_s = 0.5}, KL_MOVE_HINDSIGHT, "moving costs 0 us"},
        {{.now_s = 2, .then_s = 1, .lasted_s = 0, .lost_s = 0}, KL_STAY_WAITING, "so far"},
        /* an imbalance of 1 % must also be removed after some time */
        {{.now_s = 1, .then_s = 0.99, .lasted_s = 1000, .lost_s = 10, .move_s = 9},
         KL_MOVE_HINDSIGHT,
         "cost 10 s"},
        /* cases in which the present speeds lasted 30 s or 10 s before */
        {{.now_s = 2, .then_s = 1, .lasts_s = 30, .lasted_s = 3, .move_s = 2, .back_s = 3},
         KL_MOVE_FORESIGHT,
         "13.5 s saved in the 27 s"},
        {{.now_s = 2, .then_s = 1, .lasts_s = 10, .lasted_s = 3, .move_s = 2, .back_s = 3, .lost_s = 1.5},
         KL_STAY_WAITING,
         "as seen before"},
        {{.now_s = 2, .then_s = 1, .lasts_s = 10, .lasted_s = 30, .move_s = 2, .back_s = 3, .lost_s = 1.5},
         KL_MOVE_FORESIGHT,
         "10 s saved in the 20 s"},
        {{.now_s = 2, .then_s = 1, .lasts_s = 10, .lasted_s = 9, .move_s = 2, .back_s = 3, .lost_s = 2},
         KL_MOVE_HINDSIGHT,
         "staying has cost 2 s"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_judgement j;
        kl_whether(&rows[i].p, &j);
        if (j.verdict != rows[i].verdict || !strstr(j.reason, rows[i].says))
            fail_msg("row %zu: verdict %d, \"%s\"", i, (int)j.verdict, j.reason);
    }
}

/* Return the cost of the decisions during an imbalance that lasts ends_s seconds. Staying costs the part
 * `part` of each second. A move costs move_s seconds and ends the imbalance. The decisions do not know when
 * the imbalance ends. */
static double cost_of_deciding(double part, double move_s, double ends_s, double step_s) {
    double cost_s = 0;
    for (double at = step_s; at <= ends_s; at += step_s) {
        cost_s += part * step_s;
        kl_prospect p = {.now_s = 1, .then_s = 1 - part, .lasted_s = at, .lost_s = cost_s, .move_s = move_s};
        kl_judgement j;
        kl_whether(&p, &j);
        assert_true(j.verdict == KL_STAY_WAITING || j.verdict == KL_MOVE_HINDSIGHT);
        if (j.verdict == KL_MOVE_HINDSIGHT)
            return cost_s + move_s;
    }
    return cost_s;
}

static void staying_and_moving_cost_at_most_twice_the_best_in_hindsight(void **state) {
    (void)state;
    double worst = 0;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        double part = 0.001 + 0.9 * random_01(seed), step_s = 0.01 + random_01(seed + 1);
        double move_s = 100 * part * step_s * random_01(seed + 2),
               ends_s = 300 * step_s * random_01(seed + 3);
        double paid_s = cost_of_deciding(part, move_s, ends_s, step_s);
        double best_s = fmin(move_s, part * (floor(ends_s / step_s) * step_s));
        /* the bound, plus one round because decisions are made only between rounds */
        assert_true(paid_s <= 2 * best_s + part * step_s * (1 + 1e-9));
        worst = fmax(worst, paid_s / fmax(best_s, part * step_s));
    }
    assert_true(worst > 1.5); /* the worst case must come close to the bound */
}

static void every_imbalance_ends_and_none_is_moved_at_a_loss_that_is_forecast(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        kl_prospect p = {.now_s = exp(10 * random_01(seed) - 5),
                         .move_s = exp(10 * random_01(seed + 1) - 5),
                         .lasted_s = exp(10 * random_01(seed + 2) - 5),
                         .back_s = 2 * random_01(seed + 3)};
        p.then_s = p.now_s * (0.2 + random_01(seed + 4));
        p.lasts_s = seed % 2 ? exp(10 * random_01(seed + 5) - 5) : 0;
        p.lost_s = seed % 3 ? random_01(seed + 6) * p.lasted_s : 0;
        kl_judgement j;
        kl_whether(&p, &j);
        assert_true(j.reason[0] != '\0' && strlen(j.reason) < KL_REASON_BYTES - 1);
        if (j.verdict == KL_MOVE_FORESIGHT)
            assert_true(j.gain_s > j.cost_s && j.cost_s >= p.move_s);
        if (p.then_s < p.now_s && p.lost_s >= p.move_s)
            assert_true(j.verdict >= KL_MOVE_FORESIGHT);
        if (p.then_s >= p.now_s)
            assert_int_equal(j.verdict, KL_STAY_BALANCED);
    }
}

/* --- the account of what moves gain and cost --- */

static void balancing_that_costs_rests_for_twice_as_long_each_time(void **state) {
    (void)state;
    kl_account account = {0};
    char reason[KL_REASON_BYTES];
    double now_s = 0, before_s = 0, spent_s = 0, rested_s = 0;
    for (int rests = 0; rests < 14;) { /* each move costs 1 s and gains nothing */
        now_s += 0.1;
        if (kl_account_rests(&account, now_s, 0))
            continue;
        kl_account_move(&account, 5);
        now_s += 1;
        spent_s += 1;
        if (!kl_account_settle(&account, now_s, &(kl_account_step){0, 0, 1}, 1, reason))
            continue;
        assert_true(strstr(reason, "balancing rests for") &&
                    strstr(reason, "it has cost 3 s more than it gained"));
        assert_true(account.rest_s == (rests == 0 ? 10 : fmin(2 * before_s, 640)));
        before_s = account.rest_s;
        rested_s += account.rest_s;
        rests++;
    }
    assert_true(account.forecast_s == 5 * spent_s && account.cost_s == spent_s && account.rests == 14);
    assert_true(spent_s < 0.01 * rested_s);
}

static void gains_of_old_do_not_pay_for_losses_of_today(void **state) {
    (void)state;
    kl_account account = {0};
    char reason[KL_REASON_BYTES];
    assert_false(kl_account_settle(&account, 1, &(kl_account_step){-100, -100, 0}, 1,
                                   reason)); /* this loss does not count, because no row was moved yet */
    kl_account_move(&account, 1000);
    assert_false(kl_account_settle(&account, 2, &(kl_account_step){1000, 1000, 1}, 1, reason));
    double lost_s = 0;
    while (!kl_account_settle(&account, 3 + lost_s, &(kl_account_step){-0.5, -0.5, 0}, 1, reason))
        lost_s += 0.5;
    assert_true(lost_s >= 33.5 && lost_s <= 34.5);
    assert_true(account.rest_s == 10);
    assert_true(fabs(account.came_s - (1000 - lost_s - 0.5)) < 1e-9);
}

static void a_time_that_paid_makes_the_next_rest_short_again(void **state) {
    (void)state;
    kl_account account = {0};
    char reason[KL_REASON_BYTES];
    kl_account_move(&account, 1);
    assert_true(kl_account_settle(&account, 0, &(kl_account_step){-3, -3, 0}, 1, reason));
    assert_true(kl_account_settle(&account, 100, &(kl_account_step){-3, -3, 0}, 1, reason));
    assert_true(account.rest_s == 20);
    assert_false(kl_account_settle(&account, 200, &(kl_account_step){17, 17, 0}, 1, reason));
    assert_true(kl_account_settle(&account, 300, &(kl_account_step){-20, -20, 0}, 1, reason));
    assert_true(account.rest_s == 10);
}

static void a_rest_ends_in_time_or_when_it_becomes_dear(void **state) {
    (void)state;
    kl_account account = {0};
    char reason[KL_REASON_BYTES];
    assert_false(kl_account_rests(&account, 0, 0));
    kl_account_move(&account, 1);
    assert_true(kl_account_settle(&account, 7, &(kl_account_step){0, 0, 3}, 1, reason));
    assert_true(kl_account_rests(&account, 16.9, 3.3));
    assert_false(kl_account_rests(&account, 17.1, 0));
    assert_false(kl_account_rests(&account, 8, 3.4));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_are_those_of_the_table),
        cmocka_unit_test(staying_and_moving_cost_at_most_twice_the_best_in_hindsight),
        cmocka_unit_test(every_imbalance_ends_and_none_is_moved_at_a_loss_that_is_forecast),
        cmocka_unit_test(balancing_that_costs_rests_for_twice_as_long_each_time),
        cmocka_unit_test(gains_of_old_do_not_pay_for_losses_of_today),
        cmocka_unit_test(a_time_that_paid_makes_the_next_rest_short_again),
        cmocka_unit_test(a_rest_ends_in_time_or_when_it_becomes_dear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
