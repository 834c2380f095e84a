/* Test the trend filter, the period, the block sizes, and the model of a load that comes and goes. Compare
 * them with tables. Compare the optimum that a formula gives with the best of all values tried. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "steer/steer.h"

static double random_01(uint64_t i) {
    return (double)(kl_mix64(i) >> 11) * 0x1p-53;
}

/* --- the filter of rates: its table in docs/explanation/loops.md --- */

enum { ROUNDS = 8 };

static void the_response_is_the_documented_one(void **state) {
    (void)state;
    static const struct {
        const char *what;
        double rates[ROUNDS], filtered[ROUNDS];
    } rows[] = {
        {"step down", {100, 50, 50, 50, 50, 50, 50, 50}, {100, 100, 62.5, 50, 50, 50, 50, 50}},
        {"step up", {50, 100, 100, 100, 100, 100, 100, 100}, {50, 50, 75, 93.75, 100, 100, 100, 100}},
        {"spike down", {100, 50, 100, 100, 100, 100, 100, 100}, {100, 100, 100, 100, 100, 100, 100, 100}},
        {"spike up", {100, 200, 100, 100, 100, 100, 100, 100}, {100, 100, 100, 100, 100, 100, 100, 100}},
        {"two rounds with another speed",
         {100, 50, 50, 100, 100, 100, 100, 100},
         {100, 100, 62.5, 62.5, 81.25, 95.3125, 96.484375, 97.36328125}},
        {"noise", {100, 90, 110, 90, 110, 90, 110, 90}, {100, 100, 100, 100, 100, 100, 100, 100}},
        {"drift",
         {100, 104, 104, 104, 104, 104, 104, 104},
         {100, 101, 101.75, 102.3125, 102.734375, 103.05078125, 103.2880859375, 103.466064453125}},
        {"not measured", {100, 0, 0, NAN, -3, INFINITY, 100, 100}, {100, 100, 100, 100, 100, 100, 100, 100}},
        {"late", {0, 0, 40, 40, 40, 40, 40, 40}, {0, 0, 40, 40, 40, 40, 40, 40}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_trend trend = {0};
        for (int k = 0; k < ROUNDS; k++) {
            double filtered = kl_trend_next(&trend, rows[i].rates[k]);
            if (fabs(filtered - rows[i].filtered[k]) > 1e-9)
                fail_msg("%s, round %d: %.12g instead of %.12g", rows[i].what, k, filtered,
                         rows[i].filtered[k]);
            assert_true(filtered == trend.rate);
        }
    }
}

static int rounds_until_believed(double from, double to) {
    kl_trend trend = {0};
    kl_trend_next(&trend, from);
    int rounds = 1;
    while (fabs(kl_trend_next(&trend, to) - to) > 0.05 * to && rounds < 1000)
        rounds++;
    for (int i = 0; i < 3; i++)
        kl_trend_next(&trend, to);
    assert_false(kl_trend_moves(&trend));
    return rounds;
}

static void a_decrease_is_believed_sooner_and_a_first_change_never(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        double low = 1 + random_01(seed), high = low * (1.35 + 10 * random_01(seed + 1));
        int down = rounds_until_believed(high, low), up = rounds_until_believed(low, high);
        assert_int_equal(down, 3);
        assert_int_equal(up, high > 1.7 * low ? 4 : up);
        assert_true(up >= down && up <= 4);
        kl_trend trend = {0};
        kl_trend_next(&trend, low);
        assert_true(kl_trend_next(&trend, high) == low);
        assert_true(kl_trend_moves(&trend));
        assert_true(kl_trend_next(&trend, low * 0.9) == low);
    }
}

static void what_is_believed_lies_between_what_was_measured(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        kl_trend trend = {0};
        double low = INFINITY, high = 0;
        for (uint64_t k = 0; k < 1000; k++) { /* more rounds than the member `seen` can count */
            double rate = seed % 3 == 0 ? 1 + (double)k : 0.5 + random_01(seed * 1000 + k);
            low = fmin(low, rate);
            high = fmax(high, rate);
            double filtered = kl_trend_next(&trend, rate);
            assert_true(filtered >= low * (1 - 1e-12) && filtered <= high * (1 + 1e-12));
        }
    }
}

/* --- the time between decisions --- */

static void the_period_is_the_largest_bound(void **state) {
    (void)state;
    static const struct {
        double interact_s, movement_s, quantum_s, target_s;
        kl_bound_of_period bound;
    } rows[] = {
        {0.001, 0, 0.1, 1, KL_PERIOD_QUANTUM}, /* times that Siegell and Steenkiste measured */
        {0.1, 0, 0.1, 2, KL_PERIOD_INTERACT},          {0.001, 3, 0.1, 3, KL_PERIOD_MOVEMENT},
        {0.001, 0.01, 0.003, 0.03, KL_PERIOD_QUANTUM}, {0, 0, 0, 0, KL_PERIOD_INTERACT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_period p = kl_period_of(rows[i].interact_s, rows[i].movement_s, rows[i].quantum_s);
        assert_true(fabs(p.target_s - rows[i].target_s) < 1e-12);
        assert_int_equal(p.bound, rows[i].bound);
    }
}

static void reports_take_less_than_a_hundredth_and_come_no_more_often_than_2_ms_apart(void **state) {
    (void)state;
    for (double interact_s = 1e-7; interact_s < 0.1; interact_s *= 3)
        for (double pass_s = 1e-7; pass_s < 100; pass_s *= 2.7) {
            uint64_t hooks = kl_report_hooks(interact_s, pass_s);
            double part = interact_s / ((double)hooks * pass_s), apart_s = fmax(interact_s / 0.005, 2e-3);
            assert_true(hooks >= 1 && (hooks == 1 || part < 0.01));
            assert_true(hooks == 1 || (double)(hooks - 1) * pass_s < apart_s * 1.0001);
            assert_true((double)hooks * pass_s > apart_s * 0.9999);
        }
    assert_int_equal(kl_report_hooks(10e-6, 10e-6), 200);
    assert_int_equal(kl_report_hooks(1e-6, 10e-6), 200);
    assert_int_equal(kl_report_hooks(100e-6, 10e-6), 2000);
    assert_int_equal(kl_report_hooks(10e-6, 1), 1);
    assert_int_equal(kl_report_hooks(10e-6, NAN), 1);
}

static void hooks_fill_the_period(void **state) {
    (void)state;
    kl_period p = kl_period_of(0, 0, 0.1);
    assert_int_equal(kl_period_hooks(p.target_s, 0.25), 4);
    assert_int_equal(kl_period_hooks(p.target_s, 0.3), 3);
    assert_int_equal(kl_period_hooks(p.target_s, 7), 1);
    assert_int_equal(kl_period_hooks(p.target_s, 0), 1);
    assert_int_equal(kl_period_hooks(p.target_s, NAN), 1);
    assert_true(kl_period_hooks(p.target_s, 1e-300) > 1000000);
}

/* --- grain --- */

static kl_pipeline random_pipeline(uint64_t seed) {
    return (kl_pipeline){.ranks = 2 + kl_mix64(seed) % 63,
                         .elements = 1 + kl_mix64(seed + 1) % 3000,
                         .seq_s = exp(12 * random_01(seed + 2) - 6),
                         .fixed_s = exp(10 * random_01(seed + 3) - 14),
                         .incr_s = exp(10 * random_01(seed + 4) - 20)};
}

static double with_block_s(const kl_pipeline *p, uint64_t block) {
    uint64_t blocks = (p->elements - 1) / block + 1;
    return kl_pipeline_elapsed_s(p, (double)blocks);
}

static void the_block_is_the_best_of_all(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        kl_pipeline p = random_pipeline(seed);
        double least_s = INFINITY, any_s = INFINITY;
        for (uint64_t block = 1; block <= p.elements; block++)
            least_s = fmin(least_s, with_block_s(&p, block));
        for (double blocks = 1; blocks <= (double)p.elements; blocks += 0.25)
            any_s = fmin(any_s, kl_pipeline_elapsed_s(&p, blocks));
        uint64_t block = kl_pipeline_block(&p);
        assert_true(block >= 1 && block <= p.elements);
        double chosen_s = with_block_s(&p, block);
        assert_true(chosen_s <= least_s * (1 + 1e-9));
        double best = kl_pipeline_best_blocks(&p);
        assert_true(best >= 1 && best <= (double)p.elements);
        assert_true(kl_pipeline_elapsed_s(&p, best) <= any_s * (1 + 1e-12));
    }
}

/* If the best number of blocks is neither near 1 nor near the maximum, two times or half this number must
 * cost little. */
static void a_factor_of_two_costs_little(void **state) {
    (void)state;
    double worst = 1, sum = 0;
    int seen = 0;
    for (uint64_t seed = 0; seed < 5000; seed++) {
        kl_pipeline p = random_pipeline(seed);
        double best = kl_pipeline_best_blocks(&p), best_s = kl_pipeline_elapsed_s(&p, best);
        if (best <= 2 || best * 2 >= (double)p.elements || kl_pipeline_efficiency(&p, best) < 0.5)
            continue;
        double off = fmax(kl_pipeline_elapsed_s(&p, best * 2), kl_pipeline_elapsed_s(&p, best / 2)) / best_s;
        worst = fmax(worst, off);
        sum += off;
        seen++;
    }
    assert_true(seen > 500);
    assert_true(worst < 1.16);
    assert_true(sum / seen < 1.06);
}

static void a_pipeline_has_its_known_forms(void **state) {
    (void)state;
    kl_pipeline p = {.ranks = 4, .elements = 1000, .seq_s = 8};
    assert_true(fabs(kl_pipeline_efficiency(&p, 10) - 10.0 / 13) < 1e-12); /* M/(M + P − 1) */
    /* in this pipeline, messages cost nothing */
    assert_true(kl_pipeline_best_blocks(&p) == 1000 && kl_pipeline_block(&p) == 1);
    p.fixed_s = 1;
    assert_true(kl_pipeline_block(&p) >= 334);
    p.fixed_s = 0.001;
    p.incr_s = 1e-6; /* M* (the best number of blocks) is now sqrt((8·3/4 + 0.002)/0.001) */
    assert_true(fabs(kl_pipeline_best_blocks(&p) - sqrt(6.002 / 0.001)) < 1e-9);
    p.ranks = 1;
    assert_true(kl_pipeline_block(&p) == 1000 && kl_pipeline_efficiency(&p, 1) == 1);
    kl_pipeline free_of_all = {.ranks = 3, .elements = 7};
    assert_true(kl_pipeline_block(&free_of_all) >= 1);
}

static void doall_is_given_what_a_period_holds(void **state) {
    (void)state;
    assert_int_equal(kl_doall_grain(1000, 0.01, 1), 100);
    assert_int_equal(kl_doall_grain(70, 0.01, 1), 70);
    assert_int_equal(kl_doall_grain(70, 10, 1), 1);
    /* if the time of an iteration is not known, one iteration is done between checks */
    assert_int_equal(kl_doall_grain(70, 0, 1), 1);
    assert_int_equal(kl_doall_grain(0, 0, 1), 1);
}

/* --- the efficiency under a load that comes and goes --- */

/* Return the efficiency under a changing load, simulated in small time steps. */
static double stepped(const kl_swing *s, bool moves) {
    double done = 0, step_s = (s->on_s + s->off_s) / 200000, available = 0;
    for (int i = 0; i < 200000; i++) {
        double at = (i + 0.5) * step_s, half = at < s->on_s ? at : at - s->on_s;
        bool on = at < s->on_s;
        double speed = on ? s->speed : 1, react_s = on ? s->react_on_s : s->react_off_s;
        /* the shares fit this speed of the rank whose speed changes */
        double wish = !moves ? 1 : half < react_s ? (on ? 1 : s->speed) : speed;
        double share = wish / (s->ranks - 1 + wish), other = 1 / (s->ranks - 1 + wish);
        bool moving = moves && half >= react_s && half < react_s + s->move_s;
        done += moving ? 0 : step_s / fmax(share / speed, other);
        available += step_s * (s->ranks - 1 + speed);
    }
    return done / available;
}

static void the_loss_under_a_swinging_load_is_what_its_parts_add_up_to(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        kl_swing s = {.ranks = 2 + seed % 7,
                      .speed = 0.2 + 0.8 * random_01(seed),
                      .on_s = 1 + 30 * random_01(seed + 1),
                      .off_s = 1 + 30 * random_01(seed + 2),
                      .react_on_s = 4 * random_01(seed + 3),
                      .react_off_s = 4 * random_01(seed + 4),
                      .move_s = random_01(seed + 5)};
        assert_true(fabs(kl_swing_efficiency(&s) - stepped(&s, true)) < 1e-3);
        assert_true(fabs(kl_swing_unmoved(&s) - stepped(&s, false)) < 1e-3);
    }
    kl_swing calm = {.ranks = 4, .speed = 0.5, .on_s = 30, .off_s = 30};
    assert_true(fabs(kl_swing_efficiency(&calm) - 1) < 1e-12);
    kl_swing dear = {
        .ranks = 4, .speed = 0.5, .on_s = 10, .off_s = 10, .react_on_s = 3, .react_off_s = 4, .move_s = 5};
    assert_true(kl_swing_efficiency(&dear) < kl_swing_unmoved(&dear));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_response_is_the_documented_one),
        cmocka_unit_test(a_decrease_is_believed_sooner_and_a_first_change_never),
        cmocka_unit_test(what_is_believed_lies_between_what_was_measured),
        cmocka_unit_test(the_period_is_the_largest_bound),
        cmocka_unit_test(hooks_fill_the_period),
        cmocka_unit_test(reports_take_less_than_a_hundredth_and_come_no_more_often_than_2_ms_apart),
        cmocka_unit_test(the_block_is_the_best_of_all),
        cmocka_unit_test(a_factor_of_two_costs_little),
        cmocka_unit_test(a_pipeline_has_its_known_forms),
        cmocka_unit_test(doall_is_given_what_a_period_holds),
        cmocka_unit_test(the_loss_under_a_swinging_load_is_what_its_parts_add_up_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
