/* Test algorithm 1, which computes how many tasks each peer gives to which other peer. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "peer/peer_private.h"

enum { MOST = 40 };

typedef struct setting {
    kl_standings all;
    kl_ranges lost;
    kl_orders orders;
    kl_sharing_of sum;
    double has[MOST];
} setting;

static void setting_free(setting *s) {
    free(s->all.at);
    free(s->orders.at);
    kl_ranges_free(&s->lost);
}

/* Compute new shares, and carry out the orders to give tasks. Then s->has[] is the number of tasks of each
 * peer. */
static void share(setting *s, kl_share_rule rule) {
    bool failed;
    for (size_t i = 0; i < s->all.count; i++)
        s->has[s->all.at[i].peer] = s->all.at[i].left;
    s->sum = kl_share(&s->all, &s->lost, &rule, &s->orders, &failed);
    assert_false(failed);
    for (size_t i = 0; i < s->orders.count; i++) {
        const kl_order *o = &s->orders.at[i];
        assert_true(o->span.lo < o->span.hi && o->to < MOST);
        s->has[o->to] += (double)(o->span.hi - o->span.lo);
        if (o->from != KL_NOBODY)
            s->has[o->from] -= (double)(o->span.hi - o->span.lo);
    }
}

static setting random_setting(uint64_t seed, bool lost) {
    setting s = {0};
    uint32_t count = 1 + (uint32_t)(kl_mix64(seed) % (MOST - 1));
    for (uint32_t i = 0; i < count; i++) {
        double left = (double)(kl_mix64(seed + 3 * i + 1) % 1000),
               rate = 1 + (double)(kl_mix64(seed + 3 * i + 2) % 50);
        assert_true(kl_standings_add(&s.all, (kl_standing){count - 1 - i, left, rate}));
    }
    for (uint64_t i = 0; lost && i < kl_mix64(seed + 7) % 5; i++)
        assert_true(kl_ranges_add(&s.lost, (kl_span){1000 * i, 1000 * i + 1 + kl_mix64(seed + i) % 500}));
    return s;
}

static void all_would_end_together(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < 300; seed++) {
        setting s = random_setting(seed * 1000, seed % 2);
        share(&s, (kl_share_rule){.moves = true, .near = seed % 3 ? 0 : 8});
        for (size_t i = 0; i < s.all.count; i++) {
            const kl_standing *one = &s.all.at[i];
            assert_true(fabs(s.has[one->peer] - s.sum.left_s * one->rate) < 2 + (double)s.all.count);
            assert_true(s.has[one->peer] >= 0);
        }
        setting_free(&s);
    }
}

/* Each lost task must get exactly one owner. */
static void lost_tasks_find_an_owner(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < 300; seed++) {
        setting s = random_setting(seed * 1000, true);
        kl_ranges found = {0};
        share(&s, (kl_share_rule){.moves = seed % 2});
        for (size_t i = 0; i < s.orders.count; i++)
            if (s.orders.at[i].from == KL_NOBODY)
                assert_true(kl_ranges_add(&found, s.orders.at[i].span));
        assert_int_equal(kl_ranges_sum(&found), kl_ranges_sum(&s.lost));
        kl_ranges_tidy(&found);
        kl_ranges_tidy(&s.lost);
        assert_int_equal(found.count, s.lost.count);
        if (found.count > 0)
            assert_memory_equal(found.at, s.lost.at, found.count * sizeof *found.at);
        kl_ranges_free(&found);
        setting_free(&s);
    }
}

static void small_differences_stay(void **state) {
    (void)state;
    setting s = {0};
    assert_true(kl_standings_add(&s.all, (kl_standing){0, 104, 10}));
    assert_true(kl_standings_add(&s.all, (kl_standing){1, 96, 10}));
    share(&s, (kl_share_rule){.moves = true, .dead_zone = 0.1});
    assert_int_equal(s.orders.count, 0);
    assert_true(fabs(s.sum.left_s - 10) < 1e-9);
    share(&s, (kl_share_rule){.moves = true});
    assert_int_equal(s.orders.count, 1);
    setting_free(&s);
}

static void near_ones_come_first(void **state) {
    (void)state;
    setting s = {0};
    static const double left[] = {0, 200, 0, 200};
    for (uint32_t i = 0; i < 4; i++)
        assert_true(kl_standings_add(&s.all, (kl_standing){i, left[i], 10}));
    share(&s, (kl_share_rule){.moves = true, .near = 2});
    assert_int_equal(s.orders.count, 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(s.orders.at[i].from / 2, s.orders.at[i].to / 2);
    setting_free(&s);
}

static void without_rates_nothing_moves(void **state) {
    (void)state;
    setting s = {0};
    assert_true(kl_standings_add(&s.all, (kl_standing){0, 100, 0}));
    assert_true(kl_standings_add(&s.all, (kl_standing){1, 0, 0}));
    share(&s, (kl_share_rule){.moves = true});
    assert_true(s.sum.mean_rate == 0 && s.sum.left_s == 0);
    setting_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_would_end_together),      cmocka_unit_test(lost_tasks_find_an_owner),
        cmocka_unit_test(small_differences_stay),      cmocka_unit_test(near_ones_come_first),
        cmocka_unit_test(without_rates_nothing_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
