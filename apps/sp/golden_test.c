/* Check published problems: their sizes, their costs, and optima over samples. Another program found these
 * optima with the same sampler. Without the files of these problems, the tests are skipped. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "players.h"

static const struct published {
    const char *const names[4];
    int rows1, columns1, rows2, columns2, entries_a, entries_t, entries_w, variables;
    /* cost of the stored decision over 100,000 scenarios of another seed, and its standard error */
    double mean, mean_error;
    uint64_t scenarios;
} PUBLISHED[] = {
    {{"lands/lands.cor", "lands/lands.tim", "lands/lands.sto", "lands/lands.sol"},
     2,
     4,
     7,
     12,
     8,
     4,
     24,
     3,
     225.6294001,
     0,
     50000},
    {{"gbd/gbd.cor", "gbd/gbd.tim", "gbd/gbd.sto", "gbd/gbd.sol"},
     4,
     17,
     5,
     10,
     17,
     17,
     10,
     5,
     1655.627847,
     0,
     50000},
    {{"ssn/ssn.cor", "ssn/ssn.tim", "ssn/ssn.sto", "ssn/ssn.sol"},
     1,
     89,
     175,
     706,
     89,
     89,
     2284,
     86,
     9.858,
     0.061,
     5000},
    {{"storm/storm.cor", "storm/storm.tim", "storm/storm.sto", "storm/storm.sol"},
     185,
     121,
     528,
     1259,
     696,
     121,
     3220,
     117,
     15498389,
     1040,
     3000},
};
enum { LANDS_P, GBD_P, SSN_P, STORM_P, PROBLEMS };

/* Skip a test if the files of the published problems are missing. */
static void need_data(void) {
    if (access(SP_SHARED_DATA "/ssn/ssn.cor", R_OK) != 0) {
        print_message("skipped: the published problems are not at %s\n", SP_SHARED_DATA);
        skip();
    }
}

static void sizes_are_the_published_ones(void **state) {
    (void)state;
    need_data();
    for (int i = 0; i < PROBLEMS; i++) {
        const struct published *w = &PUBLISHED[i];
        double *x = NULL;
        sp_problem *p = load_problem(SP_SHARED_DATA, w->names, &x);
        assert_int_equal(p->stage[0].rows, w->rows1);
        assert_int_equal(p->stage[0].columns, w->columns1);
        assert_int_equal(p->stage[1].rows, w->rows2);
        assert_int_equal(p->stage[1].columns, w->columns2);
        assert_int_equal(p->a.start[w->columns1], w->entries_a);
        assert_int_equal(p->t.start[w->columns1], w->entries_t);
        assert_int_equal(p->w.start[w->columns2], w->entries_w);
        assert_int_equal(p->variables, w->variables);
        free(x);
        sp_problem_free(p);
    }
}

static void stored_decisions_cost_what_was_published(void **state) {
    (void)state;
    need_data();
    for (int i = 0; i < PROBLEMS; i++) {
        const struct published *w = &PUBLISHED[i];
        double *x = NULL;
        sp_problem *p = load_problem(SP_SHARED_DATA, w->names, &x);
        sp_evaluator *evaluator = NULL;
        kilter_error error = {.text = ""};
        sp_sums sums = {0};
        if (sp_evaluator_new(p, x, 1, &evaluator, &error))
            fail_msg("%s", error.text);
        for (uint64_t s = 0; s < w->scenarios; s++) {
            double cost;
            if (sp_evaluator_cost(evaluator, s, &cost, &error))
                fail_msg("%s", error.text);
            sp_sums_add(&sums, cost);
        }
        sp_estimate e = sp_sums_estimate(&sums, 95);
        double apart = hypot(e.standard_error, w->mean_error);
        if (!(fabs(e.mean - w->mean) < 4 * apart))
            fail_msg("%s: %.10g ± %.3g against %.10g ± %.3g", w->names[0], e.mean, e.standard_error, w->mean,
                     w->mean_error);
        sp_evaluator_free(evaluator);
        free(x);
        sp_problem_free(p);
    }
}

/* On large problems, where CLP pivots a lot, another evaluator must compute costs with the same bits in
 * reverse order or in a scattered order. */
static void bits_do_not_depend_on_order(void **state) {
    (void)state;
    need_data();
    enum { N = 300 };
    for (int i = SSN_P; i <= STORM_P; i++) {
        double *x = NULL, cost[N], duals[N];
        sp_problem *p = load_problem(SP_SHARED_DATA, PUBLISHED[i].names, &x);
        sp_evaluator *one = NULL, *other = NULL;
        assert_int_equal(sp_evaluator_new(p, x, 3, &one, NULL), KILTER_OK);
        assert_int_equal(sp_evaluator_new(p, x, 3, &other, NULL), KILTER_OK);
        for (int s = 0; s < N; s++) {
            assert_int_equal(sp_evaluator_cost(one, (uint64_t)s, &cost[s], NULL), KILTER_OK);
            duals[s] = 0;
            for (int r = 0; r < p->stage[1].rows; r++)
                duals[s] += (r + 1) * sp_evaluator_duals(one)[r];
        }
        for (int s = N - 1; s >= 0; s--) {
            int at = s * 7 % N;
            double again, sum = 0;
            assert_int_equal(sp_evaluator_cost(other, (uint64_t)at, &again, NULL), KILTER_OK);
            for (int r = 0; r < p->stage[1].rows; r++)
                sum += (r + 1) * sp_evaluator_duals(other)[r];
            assert_memory_equal(&again, &cost[at], sizeof again);
            assert_memory_equal(&sum, &duals[at], sizeof sum);
        }
        sp_evaluator_free(one);
        sp_evaluator_free(other);
        free(x);
        sp_problem_free(p);
    }
}

/* ---- the optimum over a sampled problem ---- */

static double sample_optimum(const sp_problem *p, uint64_t n, uint64_t seed) {
    sp_sampling sampling = {SP_INDEPENDENT, seed, n};
    sp_solution solution;
    kilter_error error = {.text = ""};
    if (sp_solve_extensive(p, &sampling, 1e-6, &solution, &error))
        fail_msg("%s", error.text);
    double optimum = solution.progress.upper;
    sp_solution_free(&solution);
    return optimum;
}

/* Compare optima over samples with recorded optima. This tests reader, sampler and stages together, because
 * any wrong scenario would change an optimum. */
static void sampled_optima_are_the_recorded_ones(void **state) {
    (void)state;
    need_data();
    static const struct {
        int problem;
        uint64_t scenarios;
        double optimum;
    } CASE[] = {{SSN_P, 50, 5.9149694}, {SSN_P, 100, 7.91823125}, {STORM_P, 50, 15507167.94}};
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        double *x = NULL;
        sp_problem *p = load_problem(SP_SHARED_DATA, PUBLISHED[CASE[i].problem].names, &x);
        double optimum = sample_optimum(p, CASE[i].scenarios, 1);
        if (!(fabs(optimum / CASE[i].optimum - 1) < 1e-7))
            fail_msg("%s, %d scenarios: %.12g is not %.12g", PUBLISHED[CASE[i].problem].names[0],
                     (int)CASE[i].scenarios, optimum, CASE[i].optimum);
        free(x);
        sp_problem_free(p);
    }
}

/* Compare the optima that the method tr finds in both modes with the recorded optima. With more than 200
 * scenarios the deterministic equivalent is too slow for a test. */
static void cuts_lead_to_the_recorded_optima(void **state) {
    (void)state;
    need_data();
    static const struct {
        int problem;
        uint64_t scenarios;
        bool remember;
        double optimum;
    } CASE[] = {
        {SSN_P, 100, false, 7.91823125},    {SSN_P, 100, true, 7.91823125},    {SSN_P, 500, true, 9.96997166},
        {STORM_P, 100, false, 15511726.47}, {STORM_P, 500, true, 15500507.84},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        double *x = NULL;
        sp_problem *p = load_problem(SP_SHARED_DATA, PUBLISHED[CASE[i].problem].names, &x);
        players who = {.problem = p,
                       .sampling = {SP_INDEPENDENT, 1, CASE[i].scenarios},
                       .clusters = 100,
                       .remember = CASE[i].remember};
        sp_solution s = solved(who, 1e-7);
        assert_close(s.progress.upper, CASE[i].optimum, 2e-7);
        assert_true(s.progress.lower <= CASE[i].optimum * (1 + 1e-7));
        sp_solution_free(&s);
        free(x);
        sp_problem_free(p);
    }
}

/* The shipped problems are the published problems under other names, with the same costs in each scenario. */
static void shipped_problems_equal_the_published_ones(void **state) {
    (void)state;
    need_data();
    const char *const *const SHIPPED[] = {LANDS, AIRCRAFT};
    for (int i = 0; i < 2; i++) {
        double *x = NULL, *same = NULL;
        sp_problem *theirs = load_problem(SP_SHARED_DATA, PUBLISHED[i == 0 ? LANDS_P : GBD_P].names, &x);
        sp_problem *ours = load_problem(SP_PROBLEMS, SHIPPED[i], &same);
        sp_evaluator *a = NULL, *b = NULL;
        assert_int_equal(sp_evaluator_new(theirs, x, 1, &a, NULL), KILTER_OK);
        assert_int_equal(sp_evaluator_new(ours, x, 1, &b, NULL), KILTER_OK);
        for (int j = 0; j < ours->stage[0].columns; j++)
            assert_true(fabs(x[j] - same[j]) < 1e-9);
        for (uint64_t s = 0; s < 5000; s++) {
            double p, q;
            assert_int_equal(sp_evaluator_cost(a, s, &p, NULL), KILTER_OK);
            assert_int_equal(sp_evaluator_cost(b, s, &q, NULL), KILTER_OK);
            assert_true(fabs(p - q) <= 1e-9 * fabs(p));
        }
        sp_evaluator_free(a);
        sp_evaluator_free(b);
        sp_problem_free(theirs);
        sp_problem_free(ours);
        free(x);
        free(same);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_the_published_ones),
        cmocka_unit_test(stored_decisions_cost_what_was_published),
        cmocka_unit_test(bits_do_not_depend_on_order),
        cmocka_unit_test(sampled_optima_are_the_recorded_ones),
        cmocka_unit_test(cuts_lead_to_the_recorded_optima),
        cmocka_unit_test(shipped_problems_equal_the_published_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
