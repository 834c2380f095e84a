#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sample.h"
#include "test_support.h"

static sp_problem *load_shipped(const char *const names[4]) {
    double *x = NULL;
    sp_problem *problem = load_problem(SP_PROBLEMS, names, &x);
    free(x);
    return problem;
}

/* sp_mix64() is splitmix64: compare with its published first outputs for states 0 and 1234567. */
static void the_mixer_is_splitmix64(void **state) {
    (void)state;
    assert_true(sp_mix64(0) == 0xe220a8397b1dcdafu);
    assert_true(sp_mix64(1234567) == 6457827717110365317u);
    assert_true(sp_mix64(1234567 + 0x9e3779b97f4a7c15u) == 3203168211198807973u);
}

/* Draw an outcome as sample.h defines it, by a slower method: compute with the exact fraction, and search the
 * outcomes from the first one. */
static void outcomes_follow_the_definition(void **state) {
    (void)state;
    sp_problem *p = load_shipped(AIRCRAFT);
    for (uint64_t scenario = 0; scenario < 2000; scenario++) {
        size_t outcome[5];
        sp_sample(p, 12345, scenario, outcome);
        for (uint64_t k = 0; k < 5; k++) {
            uint64_t bits = sp_mix64(sp_mix64(sp_mix64(12345) + scenario) + k) >> 11;
            size_t expected = p->variable[k].first;
            while (!(ldexp((double)bits, -53) < p->outcome[expected].below))
                expected++;
            assert_int_equal(outcome[k], expected);
        }
    }
    sp_problem_free(p);
}

/* Compare samples with recorded values, so that a change of the sampler is noticed. */
static void the_first_scenarios_stay_what_they_are(void **state) {
    (void)state;
    static const size_t FIRST[3][3] = {{69, 42, 8}, {83, 47, 58}, {90, 5, 54}};
    sp_problem *p = load_shipped(LANDS);
    for (uint64_t scenario = 0; scenario < 3; scenario++) {
        size_t outcome[3];
        sp_sample(p, 1, scenario, outcome);
        for (int k = 0; k < 3; k++)
            assert_int_equal(outcome[k] - p->variable[k].first, FIRST[scenario][k]);
    }
    sp_problem_free(p);
}

static void the_order_of_drawing_does_not_matter(void **state) {
    (void)state;
    sp_problem *p = load_shipped(LANDS);
    enum { N = 500 };
    size_t first[N][3], again[3];
    for (uint64_t i = 0; i < N; i++)
        sp_sample(p, 7, i, first[i]);
    for (uint64_t i = N; i-- > 0;) {
        sp_sample(p, 7, (i * 77) % N, again);
        assert_memory_equal(first[(i * 77) % N], again, sizeof again);
    }
    sp_problem_free(p);
}

static double value_of(const sp_problem *p, int variable, size_t outcome) {
    (void)variable;
    return p->change[p->outcome[outcome].first].value;
}

/* Compare moments of a large sample with theory. The mean and variance of each variable, and the covariance
 * of adjacent variables, must be within the sampling errors. */
static void samples_have_the_distributions_moments(void **state) {
    (void)state;
    sp_problem *p = load_shipped(AIRCRAFT);
    enum { N = 100000 };
    double mean[5], variance[5] = {0}, got[5] = {0}, spread[5] = {0}, together[5] = {0};
    sp_target_means(p, mean);
    for (int k = 0; k < 5; k++)
        for (size_t o = p->variable[k].first; o < p->variable[k].end; o++)
            variance[k] +=
                sp_outcome_probability(p, &p->variable[k], o) * pow(value_of(p, k, o) - mean[k], 2);
    for (uint64_t i = 0; i < N; i++) {
        size_t outcome[5];
        double away[5];
        sp_sample(p, 3, i, outcome);
        for (int k = 0; k < 5; k++) {
            away[k] = value_of(p, k, outcome[k]) - mean[k];
            got[k] += away[k] / N;
            spread[k] += away[k] * away[k] / N;
        }
        for (int k = 0; k < 5; k++)
            together[k] += away[k] * away[(k + 1) % 5] / N;
    }
    for (int k = 0; k < 5; k++) {
        double error = sqrt(variance[k] / N);
        assert_true(fabs(got[k]) < 5 * error);
        assert_true(fabs(spread[k] / variance[k] - 1) < 0.05);
        assert_true(fabs(together[k]) < 5 * error * sqrt(variance[(k + 1) % 5]));
    }
    sp_problem_free(p);
}

static void seeds_give_different_samples(void **state) {
    (void)state;
    sp_problem *p = load_shipped(LANDS);
    int same = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        size_t a[3], b[3];
        sp_sample(p, 1, i, a);
        sp_sample(p, 2, i, b);
        same += memcmp(a, b, sizeof a) == 0;
    }
    assert_true(same < 5);
    sp_problem_free(p);
}

static void means_count_what_core_says_elsewhere(void **state) {
    (void)state;
    double mean[3];
    sp_problem *p = load_shipped(THREE_BLOCKS);
    sp_target_means(p, mean);
    assert_true(fabs(mean[0] - 5) < 1e-12 && fabs(mean[1] - 3) < 1e-12 && fabs(mean[2] - 2) < 1e-12);
    assert_true(sp_scenario_count(p) == 3);
    sp_problem_free(p);
    p = load_shipped(AIRCRAFT);
    assert_true(sp_scenario_count(p) == 646425);
    sp_problem_free(p);
}

/* An outcome of probability 0 must never be drawn, wherever it is in the list of outcomes. */
static void impossible_outcomes_do_not_happen(void **state) {
    (void)state;
    sp_problem *p = read_texts(
        "ROWS\n N C\n L A\n G R\nCOLUMNS\n X A 1\n Y R 1\nENDATA\n", "PERIODS\n X A 1\n Y R 2\nENDATA\n",
        "INDEP DISCRETE\n RHS R 0 0\n RHS R 1 0.5\n RHS R 2 0\n RHS R 3 0.5\n RHS R 4 0\nENDATA\n");
    for (uint64_t i = 0; i < 10000; i++) {
        size_t outcome;
        sp_sample(p, 1, i, &outcome);
        assert_true(outcome == 1 || outcome == 3);
    }
    sp_problem_free(p);
}

/* ---- samples by Latin hypercube, and the whole distribution ---- */

/* Each variable of LandS has 100 outcomes of probability .01. So a Latin hypercube of 100·m scenarios must
 * draw each outcome m times. */
static void a_hypercube_has_every_stratum_once(void **state) {
    (void)state;
    sp_problem *p = load_shipped(LANDS);
    for (uint64_t seed = 0; seed < 20; seed++) {
        sp_sampling sampling = {SP_LATIN, seed, 100 * (1 + seed % 4)};
        int seen[3][100] = {{0}}, in_order = 0;
        for (uint64_t i = 0; i < sampling.scenarios; i++) {
            size_t outcome[3];
            sp_scenario(p, &sampling, i, outcome);
            for (int k = 0; k < 3; k++)
                seen[k][outcome[k] - p->variable[k].first]++;
            in_order += outcome[0] - p->variable[0].first == outcome[1] - p->variable[1].first;
        }
        for (int k = 0; k < 3; k++)
            for (int o = 0; o < 100; o++)
                assert_int_equal(seen[k][o], sampling.scenarios / 100);
        /* the permutations of two variables differ, so their outcomes are equal in few scenarios */
        assert_true(in_order < 30);
    }
    sp_problem_free(p);
}

static void a_hypercube_of_any_size_is_drawn(void **state) {
    (void)state;
    sp_problem *p = load_shipped(AIRCRAFT);
    for (uint64_t n = 1; n < 300; n++) {
        sp_sampling sampling = {SP_LATIN, n, n};
        double mean = 0;
        for (uint64_t i = 0; i < n; i++) {
            size_t outcome[5];
            sp_scenario(p, &sampling, i, outcome);
            /* the stratum of the first variable follows from its outcome, up to the width of an outcome */
            mean += p->outcome[outcome[0]].below / (double)n;
        }
        double expected = 0, before = 0;
        for (size_t o = p->variable[0].first; o < p->variable[0].end; o++) {
            expected += p->outcome[o].below * (p->outcome[o].below - before);
            before = p->outcome[o].below;
        }
        /* the number of strata that an outcome gets is rounded by less than one at each end of the outcome */
        double most = (double)(p->variable[0].end - p->variable[0].first) / (double)n;
        assert_true(fabs(mean - expected) <= most);
    }
    sp_problem_free(p);
}

static void counting_out_gives_each_scenario_once(void **state) {
    (void)state;
    sp_problem *p =
        read_texts("ROWS\n N C\n L A\n G B\n G D\nCOLUMNS\n X C 1 A 1\n Y C 1 B 1\n Y D 1\n"
                   "RHS\n R A 1 B 1\n R D 1\nENDATA\n",
                   "PERIODS\n X A 1\n Y B 2\nENDATA\n",
                   "INDEP DISCRETE\n R B 1 0.2\n R B 2 0.3\n R B 3 0.5\n R D 1 0.1\n R D 2 0.9\nENDATA\n");
    sp_sampling all = {SP_ALL, 0, 6};
    double weights = 0;
    for (uint64_t i = 0; i < 6; i++) {
        size_t outcome[2];
        static const double FIRST[] = {0.2, 0.3, 0.5}, SECOND[] = {0.1, 0.9};
        sp_scenario(p, &all, i, outcome);
        assert_int_equal(outcome[0], i / 2);
        assert_int_equal(outcome[1], 3 + i % 2);
        double weight = sp_scenario_weight(p, &all, outcome);
        assert_true(fabs(weight - FIRST[i / 2] * SECOND[i % 2]) < 1e-12);
        weights += weight;
    }
    assert_true(fabs(weights - 1) < 1e-12);
    sp_problem_free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mixer_is_splitmix64),
        cmocka_unit_test(outcomes_follow_the_definition),
        cmocka_unit_test(the_first_scenarios_stay_what_they_are),
        cmocka_unit_test(the_order_of_drawing_does_not_matter),
        cmocka_unit_test(samples_have_the_distributions_moments),
        cmocka_unit_test(seeds_give_different_samples),
        cmocka_unit_test(means_count_what_core_says_elsewhere),
        cmocka_unit_test(impossible_outcomes_do_not_happen),
        cmocka_unit_test(a_hypercube_has_every_stratum_once),
        cmocka_unit_test(a_hypercube_of_any_size_is_drawn),
        cmocka_unit_test(counting_out_gives_each_scenario_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
