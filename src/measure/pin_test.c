#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "measure/measure.h"

/* A rank is pinned while other processes and ranks need more cores than there are. */
static void ranks_are_pinned_while_cores_are_short(void **state) {
    (void)state;
    static const struct {
        bool pinned;
        kl_pin_sample sample;
        bool wanted;
    } rows[] = {
        /* the sample has the time, and: known, core shared, threads; cores of others, idle, spare */
        {false, {5, true, false, false, 1, 0, 0}, false},
        {false, {5, true, true, false, 1, 0, 0}, true},
        {false, {5, true, true, false, 0, 0, 0}, false},
        {false, {5, true, true, false, 0.2, 0, 0}, false},
        {false, {5, true, true, false, 0.5, 0, 0}, true},
        {false, {5, true, true, true, 1, 0, 0}, false},
        {false, {5, true, true, false, 1, 0, 1}, false},
        {false, {5, true, true, false, 2.6, 0, 2}, true},
        {false, {5, true, true, false, 1, 0, -1}, false},
        {true, {5, true, false, false, 0.5, 0, 0}, true},
        {true, {5, true, false, false, 0.2, 0, 0}, true},
        {true, {5, true, false, false, 0.05, 0, 0}, false},
        {true, {5, true, true, true, 1, 0, 0}, false},
        {true, {5, true, true, false, 1, 0, -1}, false},
        {true, {5, true, false, false, 62.5, 0, 62}, true},
        {false, {5, true, true, false, 62.5, 0, 62}, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_pin p = {.pinned = rows[i].pinned};
        assert_true(kl_pin_wanted(&p, &rows[i].sample) == rows[i].wanted);
    }
}

static bool wanted_at(kl_pin *p, double now_s) {
    p->pinned = kl_pin_wanted(p, &(kl_pin_sample){now_s, true, true, false, 1, 0, 0});
    return p->pinned;
}

/* Run rounds of 0.1 s until the pin ends, for at most 100 s. Return how long it lasted in seconds. */
static double lasts_s(kl_pin *p, double *now_s, bool useful) {
    double begun_s = *now_s;
    while (*now_s - begun_s < 100 && wanted_at(p, *now_s)) {
        kl_pin_round(p, useful, *now_s);
        *now_s += 0.1;
    }
    return *now_s - begun_s;
}

static double pauses_s(kl_pin *p, double *now_s) {
    double begun_s = *now_s;
    while (*now_s - begun_s < 200 && !wanted_at(p, *now_s))
        *now_s += 0.1;
    return *now_s - begun_s;
}

static void a_pin_that_is_of_no_use_ends(void **state) {
    (void)state;
    static const double pauses[] = {5, 10, 20, 40, 80, 80};
    kl_pin p = {0};
    double now_s = 1000;
    for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
        double lasted_s = lasts_s(&p, &now_s, false), paused_s = pauses_s(&p, &now_s);
        assert_true(lasted_s > 0.9 && lasted_s < 1.3);
        assert_true(paused_s > pauses[i] - 0.3 && paused_s < pauses[i] + 0.3);
    }
    assert_true(lasts_s(&p, &now_s, true) > 99); /* a useful pin stays, and the pauses begin anew */
    assert_true(lasts_s(&p, &now_s, false) < 1.3 && pauses_s(&p, &now_s) < 5.3);
}

/* In long sweeps, rows need some rounds to follow the speeds. */
static void a_pin_lasts_for_some_rounds(void **state) {
    (void)state;
    kl_pin p = {0};
    for (int round = 0; round < 9; round++) {
        assert_true(wanted_at(&p, 100 * (round + 1)));
        kl_pin_round(&p, false, 100 * (round + 1));
    }
    kl_pin_round(&p, false, 1000);
    kl_pin_round(&p, false, 1000); /* the pause has begun, and does not begin again */
    assert_true(!wanted_at(&p, 1000) && !wanted_at(&p, 1004.9) && wanted_at(&p, 1005.1));
}

/* If a core is idle for long, the system could move the rank there. Idle times of ranks that wait are short.
 */
static void a_pin_ends_if_a_core_is_idle(void **state) {
    (void)state;
    static const double idle[] = {0.5, 1};
    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++) {
        kl_pin p = {0};
        kl_pin_sample s = {
            .now_s = 10, .known = true, .shared = true, .others = 2, .idle = idle[i], .spare = 1};
        for (int k = 0; k < 31; k++, s.now_s += 0.1) {
            p.pinned = kl_pin_wanted(&p, &s);
            kl_pin_round(&p, true, s.now_s);
            assert_true(p.pinned || (idle[i] == 1 && s.now_s > 13));
        }
        s.now_s += 0.1;
        assert_true(kl_pin_wanted(&p, &s) == (idle[i] < 1));
        s.known = false; /* nothing changes while nothing is known */
        assert_true(kl_pin_wanted(&p, &s) == p.pinned);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_pinned_while_cores_are_short),
        cmocka_unit_test(a_pin_that_is_of_no_use_ends),
        cmocka_unit_test(a_pin_lasts_for_some_rounds),
        cmocka_unit_test(a_pin_ends_if_a_core_is_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
