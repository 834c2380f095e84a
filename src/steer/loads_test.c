/* Test the states of speeds: a known state must be recognised, its duration must be known, and noise must
 * not count as a new state. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "steer/loads.h"

enum { RANKS = 4 };

static double random_01(uint64_t i) {
    return (double)(kl_mix64(i) >> 11) * 0x1p-53;
}

/* Measure speeds for one second. Rank 0 has `speed`, the other ranks have speed 1. */
static void second(kl_loads *loads, double *now_s, double speed, double noise) {
    double rates[RANKS];
    *now_s += 1;
    for (int r = 0; r < RANKS; r++)
        rates[r] =
            100 * (r == 0 ? speed : 1) * (1 + noise * (2 * random_01((uint64_t)*now_s * RANKS + r) - 1));
    assert_true(kl_loads_measure(loads, rates));
    kl_loads_follow(loads, *now_s, 1);
}

static uint32_t states_known(const kl_loads *loads) {
    uint32_t known = 0;
    for (int i = 0; i < KL_STATES; i++)
        known += loads->states[i].seen > 0;
    return known;
}

static void states_that_come_back_are_known_with_how_long_they_last(void **state) {
    (void)state;
    for (int noisy = 0; noisy < 2; noisy++) {
        kl_loads loads;
        double now_s = 0;
        uint32_t calm = 0, loaded = 0;
        assert_int_equal(kl_loads_init(&loads, RANKS), KILTER_OK);
        for (int period = 0; period < 12; period++) {
            for (int i = 0; i < 20; i++)
                second(&loads, &now_s, 1, 0.03 * noisy);
            calm = loads.here;
            for (int i = 0; i < 10; i++)
                second(&loads, &now_s, 0.5, 0.03 * noisy);
            loaded = loads.here;
        }
        assert_int_equal(states_known(&loads), 2);
        assert_int_not_equal(calm, loaded);
        assert_true(fabs(loads.states[calm].lasts_s - 20) <= 2);
        assert_true(fabs(loads.states[loaded].lasts_s - 10) <= 2);
        assert_true(fabs(kl_loads_lasted_s(&loads, now_s) - 10) <= 3);
        assert_true(fabs(kl_loads_present(&loads)[0] * 3.5 / 4 - 0.5) < 0.04);
        kl_loads_free(&loads);
    }
}

static void visits_add_up_to_the_time_since_the_last_movement(void **state) {
    (void)state;
    kl_loads loads;
    double now_s = 0, moved_s = 0;
    assert_int_equal(kl_loads_init(&loads, RANKS), KILTER_OK);
    for (int i = 0; i < 500; i++) {
        if (i == 250) {
            kl_loads_moved(&loads);
            moved_s = now_s;
        }
        second(&loads, &now_s, 1.0 / (1 + i / 40 % 2), 0.02);
        double sum_s = loads.pending_s;
        for (uint32_t k = 0; k < loads.visit_count; k++)
            sum_s += loads.visits[k].stayed_s;
        assert_true(fabs(sum_s - (now_s - moved_s)) < 1e-9);
    }
    for (int i = 0; i < 2000; i++) /* there are more states, and more visits to states, than can be stored */
        second(&loads, &now_s, 0.1 + 0.9 * random_01((uint64_t)i / 7), 0.02);
    assert_true(loads.visit_count <= KL_VISITS && states_known(&loads) == KL_STATES);
    kl_loads_free(&loads);
}

static void noise_is_no_state_and_is_known_for_what_it_is(void **state) {
    (void)state;
    kl_loads loads;
    double now_s = 0;
    assert_int_equal(kl_loads_init(&loads, RANKS), KILTER_OK);
    for (int i = 0; i < 1000; i++)
        second(&loads, &now_s, 1, 0.04);
    assert_int_equal(states_known(&loads), 1);
    assert_true(loads.noise > 0.01 && loads.noise < 0.04);
    assert_true(kl_loads_uncertain(&loads) < loads.noise / 3.9);
    kl_loads_free(&loads);
}

static void of_ranks_never_measured_the_mean_is_taken(void **state) {
    (void)state;
    kl_loads loads;
    double none[RANKS] = {0}, some[RANKS] = {0, 50, 0, 100};
    assert_int_equal(kl_loads_init(&loads, RANKS), KILTER_OK);
    assert_false(kl_loads_measure(&loads, none));
    assert_true(kl_loads_measure(&loads, some));
    assert_true(loads.speed[0] == 1 && loads.speed[2] == 1 && loads.mean_speed == 75);
    assert_true(fabs(loads.speed[1] - 50.0 / 75) < 1e-12);
    kl_loads_free(&loads);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_that_come_back_are_known_with_how_long_they_last),
        cmocka_unit_test(visits_add_up_to_the_time_since_the_last_movement),
        cmocka_unit_test(noise_is_no_state_and_is_known_for_what_it_is),
        cmocka_unit_test(of_ranks_never_measured_the_mean_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
