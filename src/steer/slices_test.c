#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "steer/slices.h"

/* Return the number of rounds of round_s seconds until a choice is kept. takes_s[choice]: seconds of a sweep
 * with a choice. */
static int rounds_until_held(kl_slices *s, const double *takes_s, double round_s) {
    int rounds = 0;
    kl_slices_next(s, 0, 0, false, HUGE_VAL);
    while (!s->holds && rounds++ < 100)
        kl_slices_next(s, round_s / takes_s[s->choice], round_s, false, HUGE_VAL);
    return rounds;
}

/* Check for random times of all choices: each choice must be tried, the trials must end soon, and the best
 * choice must be kept. Equal shares must be kept if no choice is clearly better. */
static void the_best_choice_is_held(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        double takes_s[KL_CHOICES];
        int best = 0;
        for (int c = 0; c < KL_CHOICES; c++) {
            takes_s[c] =
                1e-5 * pow(1000, (double)(kl_mix64(seed * KL_CHOICES + (uint64_t)c) >> 11) * 0x1p-53);
            best = takes_s[c] < (best == KL_CHOICE_EQUAL ? 0.93 : 1) * takes_s[best] ? c : best;
        }
        kl_slices s = {0};
        assert_in_range(rounds_until_held(&s, takes_s, 0.04), 1, 21);
        assert_int_equal(s.choice, best);
        for (int c = 0; c < KL_CHOICES; c++)
            assert_true(fabs(kl_slices_sweep_s(&s, c) / takes_s[c] - 1) < 1e-9);
    }
}

static void choices_are_tried_again_ever_less_and_when_something_changes(void **state) {
    (void)state;
    static const double takes_s[KL_CHOICES] = {4e-5, 5e-5, 3e-5, 2e-5, 6e-5};
    kl_slices s = {0};
    rounds_until_held(&s, takes_s, 0.04);
    uint32_t held = 0;
    for (; s.holds; held++)
        kl_slices_next(&s, 0.04 / takes_s[s.choice], 0.04, false, HUGE_VAL);
    assert_int_equal(s.choice, KL_CHOICE_EQUAL);
    rounds_until_held(&s, takes_s, 0.04);
    assert_int_equal(s.choice, KL_CHOICE_LESS);
    uint32_t again = 0;
    for (; s.holds; again++)
        kl_slices_next(&s, 0.04 / takes_s[s.choice], 0.04, false, HUGE_VAL);
    assert_true(again > held);
    rounds_until_held(&s, takes_s, 0.04);
    kl_slices_next(&s, 0.04 / takes_s[s.choice], 0.04, true, HUGE_VAL);
    assert_false(s.holds);
}

/* In the first round of a trial, sweeps take three times as long, because rows still move. Check that the
 * best choice is found nevertheless. */
static void one_slow_round_does_not_end_a_trial(void **state) {
    (void)state;
    static const double takes_s[KL_CHOICES] = {4e-5, 2.5e-5, 5e-5, 5e-5, 6e-5};
    kl_slices s = {0};
    int before = -1;
    kl_slices_next(&s, 0, 0, false, HUGE_VAL);
    for (int round = 0; !s.holds && round < 50; round++) {
        double first = s.choice != before && s.choice != KL_CHOICE_EQUAL ? 3 : 1;
        before = s.choice;
        kl_slices_next(&s, 0.04 / (first * takes_s[s.choice]), 0.04, false, HUGE_VAL);
    }
    assert_int_equal(s.choice, KL_CHOICE_OUT);
}

/* In the first round of a trial, moving rows takes 5 ms, and the round lasts only 6 ms. Check that the trial
 * goes on, and that the first round does not count then. */
static void a_short_round_with_moves_does_not_end_a_trial(void **state) {
    (void)state;
    kl_slices s = {0};
    kl_slices_next(&s, 0, 0, false, HUGE_VAL);
    while (s.choice == KL_CHOICE_EQUAL)
        kl_slices_next(&s, 400, 0.04, false, HUGE_VAL);
    assert_int_equal(s.choice, KL_CHOICE_OUT);
    kl_slices_next(&s, 25, 6e-3, false, HUGE_VAL);
    assert_int_equal(s.choice, KL_CHOICE_OUT);
    kl_slices_next(&s, 1000, 0.04, false, HUGE_VAL);
    assert_int_equal(s.choice, KL_CHOICE_OUT);
    assert_true(fabs(kl_slices_sweep_s(&s, KL_CHOICE_OUT) / 4e-5 - 1) < 1e-9);
}

/* A choice that was refused before the trials ended is offered later. Check that it is tried, that the best
 * choice is kept then, and that no other choice is tried again. */
static void a_refused_choice_may_be_offered_later(void **state) {
    static const double takes_s[2][KL_CHOICES] = {{4e-5, 1e-5, 3e-5, 5e-5, 6e-5},
                                                  {4e-5, 9e-5, 3e-5, 5e-5, 6e-5}};
    (void)state;
    for (int better = 0; better < 2; better++) {
        const double *takes = takes_s[better];
        kl_slices s = {0};
        kl_slices_next(&s, 0, 0, false, HUGE_VAL);
        while (!s.holds) {
            kl_slices_next(&s, 0.04 / takes[s.choice], 0.04, false, HUGE_VAL);
            if (s.choice == KL_CHOICE_OUT && !s.holds)
                kl_slices_refuse(&s);
        }
        assert_int_equal(s.choice, KL_CHOICE_PROPORTION);
        kl_slices_offer(&s, KL_CHOICE_OUT);
        for (int round = 0; !s.holds && round < 20; round++) {
            assert_true(s.choice == KL_CHOICE_OUT || s.choice == KL_CHOICE_PROPORTION);
            kl_slices_next(&s, 0.04 / takes[s.choice], 0.04, false, HUGE_VAL);
        }
        assert_true(s.holds && s.choice == (better == 0 ? KL_CHOICE_OUT : KL_CHOICE_PROPORTION));
    }
}

/* Do `rounds` rounds after the trials, and return how often another choice replaced the kept choice. In the
 * first round after such a change, sweeps take three times as long, because rows move. */
static uint32_t count_switches(kl_slices *s, const double *takes_s, int rounds) {
    uint32_t switches = 0;
    int before = s->choice;
    for (int round = 0; round < rounds && s->holds; round++) {
        double slower = s->choice != before ? 3 : 1;
        switches += s->choice != before;
        before = s->choice;
        kl_slices_next(s, 0.04 / (slower * takes_s[s->choice]), 0.04, false, HUGE_VAL);
    }
    return switches + (s->choice != before);
}

/* Equal shares have won by chance. Check that the best other choice replaces them, and that this choice is
 * kept although its first round is slow. */
static void equal_shares_that_won_by_chance_are_given_up(void **state) {
    (void)state;
    static const double takes_s[KL_CHOICES] = {3e-5, 3.2e-5, 4e-5, 3.3e-5, 6e-5};
    static const double later_s[KL_CHOICES] = {5e-5, 3.2e-5, 4e-5, 3.3e-5, 6e-5};
    kl_slices s = {0};
    rounds_until_held(&s, takes_s, 0.04);
    assert_int_equal(s.choice, KL_CHOICE_EQUAL);
    assert_int_equal(count_switches(&s, later_s, 190), 1);
    assert_int_equal(s.choice, KL_CHOICE_OUT);
}

/* With every choice, sweeps become longer by the same factor, from 1.05 to 3. Check that the kept choice
 * changes at most three times, and that the last one is not much slower than equal shares. */
static void a_general_slowdown_causes_few_moves(void **state) {
    (void)state;
    static const double takes_s[KL_CHOICES] = {4e-5, 3e-5, 3.6e-5, 3.4e-5, 3.8e-5};
    for (double slower = 1.05; slower < 3; slower *= 1.05) {
        double later_s[KL_CHOICES];
        for (int c = 0; c < KL_CHOICES; c++)
            later_s[c] = slower * takes_s[c];
        kl_slices s = {0};
        rounds_until_held(&s, takes_s, 0.04);
        assert_in_range(count_switches(&s, later_s, 190), 0, 3);
        assert_true(later_s[s.choice] < 1.1 * later_s[KL_CHOICE_EQUAL]);
    }
}

/* Check that the time of a choice is forgotten when the load has left, because the next load is another
 * one. */
static void the_time_under_an_earlier_load_is_forgotten(void **state) {
    (void)state;
    static const double takes_s[KL_CHOICES] = {4e-5, 1e-5, 4e-5, 4e-5, 4e-5};
    kl_slices s = {0};
    rounds_until_held(&s, takes_s, 0.04);
    while (s.rounds < s.hold + 10)
        kl_slices_next(&s, 0.04 / takes_s[s.choice], 0.04, false, 0);
    kl_slices_leave(&s);
    kl_slices_next(&s, 0, 0, false, HUGE_VAL);
    assert_false(s.holds);
    assert_true(s.tried[KL_CHOICE_OUT].executions == 0);
}

/* Check that nothing is tried a second time if all choices except equal shares were refused. */
static void a_choice_that_cannot_be_used_gets_no_second_trial(void **state) {
    (void)state;
    kl_slices s = {0};
    kl_slices_next(&s, 0, 0, false, HUGE_VAL);
    for (int round = 0; round < 3; round++)
        kl_slices_next(&s, 1000, 0.04, false, HUGE_VAL);
    for (int c = 1; c < KL_CHOICES; c++) {
        assert_int_equal(s.choice, c);
        kl_slices_refuse(&s);
    }
    assert_true(s.holds);
    assert_int_equal(s.choice, KL_CHOICE_EQUAL);
}

/* A choice that is refused while it is kept must be replaced by the choice whose shares the rows have. */
static void a_choice_that_is_refused_while_it_is_kept_is_replaced(void **state) {
    (void)state;
    static const double takes_s[KL_CHOICES] = {4e-5, 5e-5, 3e-5, 2e-5, 6e-5};
    kl_slices s = {0};
    rounds_until_held(&s, takes_s, 0.04);
    kl_slices_return(&s, KL_CHOICE_PROPORTION);
    assert_true(s.holds);
    assert_int_equal(s.choice, KL_CHOICE_PROPORTION);
    assert_int_equal(count_switches(&s, takes_s, 100), 0);
    kl_slices_return(&s, KL_CHOICES); /* the rows have no choice's shares */
    assert_int_equal(s.choice, KL_CHOICE_PROPORTION);
}

/* Check that a second trial of much slower choices is shorter than the first, because the time of the choice
 * that was held is known. */
static void slow_choices_are_not_tried_for_long_again(void **state) {
    (void)state;
    static const double takes_s[KL_CHOICES] = {4e-5, 4e-5, 4e-5, 4e-5, 1e-5};
    kl_slices s = {0};
    int first = rounds_until_held(&s, takes_s, 0.04);
    while (s.holds)
        kl_slices_next(&s, 0.04 / takes_s[s.choice], 0.04, false, HUGE_VAL);
    int rounds = 0;
    for (; !s.holds; rounds++)
        kl_slices_next(&s, 0.04 / takes_s[s.choice], 0.04, false, HUGE_VAL);
    assert_int_equal(first, 3 + 3 + 3 + 3 + 3);
    assert_int_equal(rounds, 1 + 1 + 1 + 1 + 3);
    assert_int_equal(s.choice, KL_CHOICE_DEEP);
}

/* Two cores are shared: one by half, one hardly. Check that the second one counts as free. */
static void a_core_that_is_hardly_shared_counts_as_free(void **state) {
    (void)state;
    static const double free_and_shared[] = {0.84, 0.5, 1}, alike[] = {0.5, 0.5};
    double limit = kl_slices_limit(3, free_and_shared);
    assert_true(limit > 0.5 && limit < 0.84);
    assert_true(kl_slices_limit(2, alike) <= 0.5);
}

/* Another load comes every `rounds` rounds. Check that trials do not take more than the part of the time
 * that they may take. */
static void trying_takes_a_small_part_of_the_time(void **state) {
    (void)state;
    static const double takes_s[KL_CHOICES] = {4e-5, 5e-5, 3e-5, 2e-5, 6e-5}, ROUND_S = 0.04;
    for (uint32_t rounds = 1; rounds < 300; rounds += 7) {
        kl_slices s = {0};
        double first_s = 0;
        for (uint32_t round = 1; round < 20000; round++) {
            if (round % rounds == 0)
                kl_slices_leave(&s);
            else
                kl_slices_next(&s, ROUND_S / takes_s[s.choice], ROUND_S, round % 50 == 0, round * ROUND_S);
            first_s = first_s == 0 && s.holds ? s.trying_s : first_s;
        }
        assert_true(s.trying_s <= 0.05 * 20000 * ROUND_S + 21 * ROUND_S);
        assert_true(rounds < 25 || s.trying_s > first_s);
    }
}

/* Check that choices are tried only if a core is shared and sweeps are short. After the trials have begun,
 * only a much longer sweep ends them. */
static void only_short_executions_on_shared_cores(void **state) {
    (void)state;
    static const double own[] = {1, 1}, shared[] = {1, 0.5}, alike[] = {0.5, 0.45};
    kl_slices s = {0}, active = {.active = true};
    assert_false(kl_slices_apply(&s, 2, own, 1e-4, 4e-3));
    assert_false(kl_slices_apply(&s, 2, alike, 1e-4, 4e-3));
    assert_true(kl_slices_apply(&s, 2, shared, 1e-4, 4e-3));
    assert_false(kl_slices_apply(&s, 2, shared, 1e-2, 4e-3));
    assert_true(kl_slices_apply(&active, 2, shared, 1e-2, 4e-3));
    assert_false(kl_slices_apply(&active, 2, shared, 1e-1, 4e-3));
    assert_false(kl_slices_apply(&s, 2, shared, 0, 4e-3));
    active.tried[KL_CHOICE_PROPORTION] = (kl_tried){.executions = 10, .elapsed_s = 0.05};
    /* sweeps are long with the present choice, but short with another one, so trials continue */
    assert_true(kl_slices_apply(&active, 2, shared, 1e-1, 4e-3));
}

/* Check that a choice that won by chance, because of good rounds during its trial, is given up later. */
static void what_is_held_must_stay_better_than_equal_shares(void **state) {
    (void)state;
    static const double takes_s[KL_CHOICES] = {4e-5, 5e-5, 6e-5, 3e-5, 6e-5};
    static const double later_s[KL_CHOICES] = {4e-5, 5e-5, 6e-5, 5e-5, 6e-5};
    kl_slices s = {0};
    rounds_until_held(&s, takes_s, 0.04);
    assert_int_equal(s.choice, KL_CHOICE_LESS);
    assert_int_equal(count_switches(&s, later_s, 30), 1);
    assert_true(s.holds);
    assert_int_equal(s.choice, KL_CHOICE_EQUAL);
}

/* A choice is kept for a long time, and then its sweeps become longer than with equal shares. Check that
 * equal shares are taken soon. */
static void a_late_loss_is_noticed_soon(void **state) {
    (void)state;
    static const double takes_s[KL_CHOICES] = {4e-5, 5e-5, 6e-5, 3e-5, 6e-5};
    static const double later_s[KL_CHOICES] = {4e-5, 5e-5, 6e-5, 6e-5, 6e-5};
    kl_slices s = {0};
    rounds_until_held(&s, takes_s, 0.04);
    assert_int_equal(count_switches(&s, takes_s, 150), 0);
    assert_int_equal(count_switches(&s, later_s, 30), 1);
    assert_int_equal(s.choice, KL_CHOICE_EQUAL);
}

/* Check that the best of the other choices is kept if a choice is refused. */
static void what_is_refused_is_not_chosen(void **state) {
    (void)state;
    static const double takes_s[KL_CHOICES] = {4e-5, 5e-5, 3e-5, 2e-5, 6e-5};
    for (int refused = 0; refused < KL_CHOICES; refused++) {
        kl_slices s = {0};
        kl_slices_next(&s, 0, 0, false, HUGE_VAL);
        for (int round = 0; !s.holds && round < 30; round++)
            if (s.choice == refused)
                kl_slices_refuse(&s);
            else
                kl_slices_next(&s, 0.04 / takes_s[s.choice], 0.04, false, HUGE_VAL);
        assert_true(s.holds);
        assert_int_equal(s.choice, refused == KL_CHOICE_LESS ? KL_CHOICE_PROPORTION : KL_CHOICE_LESS);
    }
}

static void the_part_grows_with_the_execution(void **state) {
    (void)state;
    double last = 0;
    for (double sweep_s = 1e-6; sweep_s < 1; sweep_s *= 1.1) {
        double part = kl_slices_part(sweep_s, 4e-3, 0.5);
        assert_true(part > 0 && part <= 1 && part >= last);
        last = part;
    }
    assert_true(last > 0.99);
}

/* Check the depth of halos. One exchange should serve as many sweeps as take five time slices. But a rank
 * may compute at most a twentieth of its rows for neighbours. */
static void halos_are_as_deep_as_slices_want_and_ranks_allow(void **state) {
    (void)state;
    for (double sweep_s = 1e-6; sweep_s < 1; sweep_s *= 1.3)
        for (double rows = 1; rows < 1e7; rows *= 3)
            for (uint64_t reach = 1; reach <= 4; reach++) {
                uint64_t depth = kl_slices_depth(sweep_s, 4e-3, rows, reach, 32);
                assert_in_range(depth, 1, 32);
                assert_true((double)((depth - 1) * reach) <= 0.05 * rows);
                assert_true(depth == 1 || (double)(depth - 1) * sweep_s < 5 * 4e-3);
            }
    assert_int_equal(kl_slices_depth(1e-3, 4e-3, 1e6, 1, 32), 20);
    assert_int_equal(kl_slices_depth(1e-3, 4e-3, 1e6, 0, 32), 1); /* the body reads no ghost rows */
    assert_int_equal(kl_slices_depth(1e-3, 4e-3, 1e6, 1, 0), 1);
    assert_int_equal(kl_slices_depth(0, 4e-3, 1e6, 1, 32), 1);
}

/* A sweep without ranks on shared cores may take a tenth of the time with equal shares. Then no choice with
 * work for these ranks is tried. If the sweep takes half of this time, such a choice may be better. */
static void ranks_on_shared_cores_get_no_work_if_they_slow_all_sweeps(void **state) {
    (void)state;
    const double cores[] = {1, 0.5};
    const struct {
        double equal_s, out_s;
        bool may;
    } rows[] = {{2e-4, 2e-5, false}, {2e-4, 1e-4, true}, {2e-4, 0, true}, {0, 2e-5, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_slices s = {
            .tried = {[KL_CHOICE_EQUAL] = {.executions = rows[i].equal_s > 0, .elapsed_s = rows[i].equal_s},
                      [KL_CHOICE_OUT] = {.executions = rows[i].out_s > 0, .elapsed_s = rows[i].out_s}}};
        assert_int_equal(kl_slices_may_share(&s, 2, cores), rows[i].may);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halos_are_as_deep_as_slices_want_and_ranks_allow),
        cmocka_unit_test(the_best_choice_is_held),
        cmocka_unit_test(choices_are_tried_again_ever_less_and_when_something_changes),
        cmocka_unit_test(one_slow_round_does_not_end_a_trial),
        cmocka_unit_test(a_short_round_with_moves_does_not_end_a_trial),
        cmocka_unit_test(a_refused_choice_may_be_offered_later),
        cmocka_unit_test(equal_shares_that_won_by_chance_are_given_up),
        cmocka_unit_test(a_late_loss_is_noticed_soon),
        cmocka_unit_test(a_general_slowdown_causes_few_moves),
        cmocka_unit_test(the_time_under_an_earlier_load_is_forgotten),
        cmocka_unit_test(a_choice_that_cannot_be_used_gets_no_second_trial),
        cmocka_unit_test(a_choice_that_is_refused_while_it_is_kept_is_replaced),
        cmocka_unit_test(slow_choices_are_not_tried_for_long_again),
        cmocka_unit_test(a_core_that_is_hardly_shared_counts_as_free),
        cmocka_unit_test(trying_takes_a_small_part_of_the_time),
        cmocka_unit_test(what_is_held_must_stay_better_than_equal_shares),
        cmocka_unit_test(what_is_refused_is_not_chosen),
        cmocka_unit_test(ranks_on_shared_cores_get_no_work_if_they_slow_all_sweeps),
        cmocka_unit_test(only_short_executions_on_shared_cores),
        cmocka_unit_test(the_part_grows_with_the_execution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
