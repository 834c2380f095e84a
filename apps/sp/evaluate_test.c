#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "evaluate.h"
#include "job.h"
#include "sample.h"
#include "test_support.h"

static sp_evaluator *evaluator_of(const sp_problem *problem, const double *x, uint64_t seed) {
    sp_evaluator *evaluator = NULL;
    kilter_error error = {.text = ""};
    if (sp_evaluator_new(problem, x, seed, &evaluator, &error))
        fail_msg("%s", error.text);
    return evaluator;
}

static double cost_of(sp_evaluator *evaluator, uint64_t scenario) {
    double cost = NAN;
    kilter_error error = {.text = ""};
    if (sp_evaluator_cost(evaluator, scenario, &cost, &error))
        fail_msg("%s", error.text);
    return cost;
}

/* Return the exact expected cost of a problem with one random variable. */
static double exact_mean(const sp_problem *problem, sp_evaluator *evaluator) {
    double mean = 0;
    assert_int_equal(problem->variables, 1);
    for (size_t o = problem->variable[0].first; o < problem->variable[0].end; o++) {
        double cost;
        kilter_error error = {.text = ""};
        if (sp_evaluator_cost_of(evaluator, &o, &cost, &error))
            fail_msg("%s", error.text);
        mean += sp_outcome_probability(problem, &problem->variable[0], o) * cost;
    }
    return mean;
}

static void three_scenarios_cost_what_was_published(void **state) {
    (void)state;
    const char *const *const FORM[] = {THREE_BLOCKS, THREE_SCENARIOS};
    for (int i = 0; i < 2; i++) {
        double *x = NULL;
        sp_problem *problem = load_problem(SP_PROBLEMS, FORM[i], &x);
        sp_evaluator *evaluator = evaluator_of(problem, x, 1);
        double mean = exact_mean(problem, evaluator);
        if (!(fabs(mean / 381.8533333 - 1) < 1e-9))
            fail_msg("%.12g", mean);
        sp_evaluator_free(evaluator);
        sp_problem_free(problem);
        free(x);
    }
}

/* The routes are independent in stage 2. So the mean over all 646 425 scenarios is a sum with one term for
 * each route. A term is the mean over this route's demand; the demands of all other routes are fixed. */
static void aircraft_cost_what_was_published(void **state) {
    (void)state;
    double *x = NULL;
    sp_problem *p = load_problem(SP_PROBLEMS, AIRCRAFT, &x);
    sp_evaluator *evaluator = evaluator_of(p, x, 1);
    size_t outcome[5];
    kilter_error error;
    double held, mean = 0, cost = 0;
    for (int k = 0; k < 5; k++)
        outcome[k] = p->variable[k].first;
    assert_int_equal(sp_evaluator_cost_of(evaluator, outcome, &held, &error), KILTER_OK);
    for (int k = 0; k < 5; k++) {
        for (size_t o = p->variable[k].first; o < p->variable[k].end; o++) {
            outcome[k] = o;
            assert_int_equal(sp_evaluator_cost_of(evaluator, outcome, &cost, &error), KILTER_OK);
            mean += sp_outcome_probability(p, &p->variable[k], o) * cost;
        }
        outcome[k] = p->variable[k].first;
    }
    mean -= 4 * held;
    if (!(fabs(mean / 1655.627847 - 1) < 1e-7))
        fail_msg("%.12g", mean);
    sp_evaluator_free(evaluator);
    sp_problem_free(p);
    free(x);
}

static sp_estimate estimate_of(sp_evaluator *evaluator, uint64_t scenarios, double confidence) {
    sp_sums sums = {0};
    for (uint64_t i = 0; i < scenarios; i++)
        sp_sums_add(&sums, cost_of(evaluator, i));
    return sp_sums_estimate(&sums, confidence);
}

static void a_sample_agrees_with_the_published_optimum(void **state) {
    (void)state;
    const char *const *const NAMES[] = {LANDS, AIRCRAFT};
    const double OPTIMUM[] = {225.6294001, 1655.627847};
    for (int i = 0; i < 2; i++) {
        double *x = NULL;
        sp_problem *problem = load_problem(SP_PROBLEMS, NAMES[i], &x);
        sp_evaluator *evaluator = evaluator_of(problem, x, 1);
        sp_estimate e = estimate_of(evaluator, 50000, 99.9);
        assert_true(e.low < OPTIMUM[i] && OPTIMUM[i] < e.high);
        assert_true(e.standard_error < 0.002 * OPTIMUM[i]);
        sp_evaluator_free(evaluator);
        sp_problem_free(problem);
        free(x);
    }
}

/* ---- problems whose right-hand sides, technology and costs are all random ---- */

static const char CORE[] =
    "ROWS\n N COST\n L LIMIT\n G NEED\n E MIX\nCOLUMNS\n"
    " X COST 1 LIMIT 1\n X NEED 1\n Z COST 2 LIMIT 1\n Z MIX 2\n"
    " Y COST 5 NEED 1\n Y MIX 1\n S MIX -1 COST 0.5\n M MIX 1 COST 9\n F NEED 1 COST 40\n"
    "RHS\n RHS LIMIT 10 NEED 3\n RHS MIX 1 COST -100\nBOUNDS\n UP B Y 4\n LO B S -3\nENDATA\n";
static const char TIME[] = "PERIODS\n X LIMIT 1\n Y NEED 2\nENDATA\n";
static const char ALL_RANDOM[] =
    "BLOCKS DISCRETE\n BL A 2 0.5\n RHS NEED 6\n X NEED 2\n Y COST 4\n BL A 2 0.3\n X NEED 0\n"
    " Z MIX 1\n BL A 2 0.2\n Y COST 60\n RHS MIX -2\nINDEP DISCRETE\n S COST 0.25 0.5\n S COST 1 "
    "0.5\nENDATA\n";

static void every_kind_of_random_number_counts(void **state) {
    (void)state;
    sp_problem *p = read_texts(CORE, TIME, ALL_RANDOM);
    double x[] = {2, 1};
    sp_evaluator *e = evaluator_of(p, x, 1);
    /* Costs computed by hand: c'x + constant = 4 + 100. NEED: Y + F >= n − 2x; MIX: Y − S + M = m − z. */
    static const double EXPECTED[3][2] = {
        /* n − 2x = 2: Y = 2 at cost 4. m − z = −1: S = 3. */
        {104 + 8 + 3 * 0.25, 104 + 8 + 3 * 1.0},
        /* n − 2x = 6: Y = 4 at cost 4, F = 2. m − z = 0: S = 4. */
        {104 + 16 + 80 + 4 * 0.25, 104 + 16 + 80 + 4 * 1.0},
        /* n − 2x = 2: F = 2 at cost 40, because Y costs 60. m − z = −4: S = 4. */
        {104 + 80 + 4 * 0.25, 104 + 80 + 4 * 1.0},
    };
    for (size_t a = 0; a < 3; a++) {
        for (size_t s = 0; s < 2; s++) {
            size_t outcome[] = {a, 3 + s};
            double cost = NAN;
            kilter_error error = {.text = ""};
            if (sp_evaluator_cost_of(e, outcome, &cost, &error))
                fail_msg("%s", error.text);
            if (!(fabs(cost - EXPECTED[a][s]) < 1e-9))
                fail_msg("outcome %zu %zu: %.12g is not %.12g", a, s, cost, EXPECTED[a][s]);
        }
    }
    sp_evaluator_free(e);
    sp_problem_free(p);
}

/* Each scenario has its own W, including entries that CORE does not have. No entry of an earlier scenario's W
 * may remain. */
static void every_scenario_has_its_own_recourse(void **state) {
    (void)state;
    /* NEED: w Y + F >= 6, CAP: v Y <= 8; Y costs 1, F costs 40. */
    static const char core[] = "ROWS\n N COST\n G NEED\n L CAP\nCOLUMNS\n X COST 1\n Y COST 1 NEED 1\n"
                               " F COST 40 NEED 1\nRHS\n RHS NEED 6 CAP 8\nENDATA\n";
    static const char stoch[] = "INDEP DISCRETE\n Y NEED 0 0.25\n Y NEED 1 0.5\n Y NEED 3 0.25\n"
                                " Y CAP 0 0.5\n Y CAP 2 0.5\nENDATA\n";
    static const double EXPECTED[3][2] = {
        {6 * 40, 6 * 40},   /* the entry of column Y is 0, so Y does not help to meet the row */
        {6, 4 + 2 * 40},    /* in the first case column Y is 6, in the second case at most 4 */
        {6.0 / 3, 6.0 / 3}, /* Y = 2 */
    };
    sp_problem *p = read_texts(core, "PERIODS\n X NEED 1\n Y NEED 2\nENDATA\n", stoch);
    double x[] = {0};
    sp_evaluator *e = evaluator_of(p, x, 1);
    for (size_t i = 0; i < 36; i++) {
        size_t outcome[] = {i * 7 % 3, 3 + i * 5 % 2};
        double cost = NAN;
        assert_int_equal(sp_evaluator_cost_of(e, outcome, &cost, NULL), KILTER_OK);
        assert_true(fabs(cost - EXPECTED[outcome[0]][outcome[1] - 3]) < 1e-9);
    }
    sp_evaluator_free(e);
    sp_problem_free(p);
}

/* ---- costs have the same bits in any order ---- */

/* Costs must have the same bits in three cases: one evaluator computes them in order, in another order, or
 * several evaluators compute them. */
static void assert_bits_do_not_depend_on_order(const sp_problem *problem, const double *x, uint64_t n) {
    double *cost = calloc(n, sizeof *cost);
    sp_evaluator *one = evaluator_of(problem, x, 5);
    for (uint64_t i = 0; i < n; i++)
        cost[i] = cost_of(one, i);
    sp_evaluator_free(one);
    for (uint64_t workers = 1; workers <= 7; workers += 3) {
        sp_evaluator *worker[7];
        for (uint64_t w = 0; w < workers; w++)
            worker[w] = evaluator_of(problem, x, 5);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t scenario =
                sp_mix64(i + 1000 * workers) % n; /* some scenarios are drawn more than once, some never */
            double again = cost_of(worker[sp_mix64(i) % workers], scenario);
            assert_memory_equal(&again, &cost[scenario], sizeof again);
        }
        for (uint64_t w = 0; w < workers; w++)
            sp_evaluator_free(worker[w]);
    }
    free(cost);
}

static void bits_do_not_depend_on_order_or_workers(void **state) {
    (void)state;
    const char *const *const NAMES[] = {LANDS, AIRCRAFT};
    for (int i = 0; i < 2; i++) {
        double *x = NULL;
        sp_problem *problem = load_problem(SP_PROBLEMS, NAMES[i], &x);
        assert_bits_do_not_depend_on_order(problem, x, 2000);
        sp_problem_free(problem);
        free(x);
    }
    sp_problem *problem = read_texts(CORE, TIME, ALL_RANDOM);
    double x[] = {2, 1.0 / 3}, contracts[] = {100.0 / 3, 7};
    assert_bits_do_not_depend_on_order(problem, x, 200);
    sp_problem_free(problem);
    problem = load_problem(SP_PROBLEMS, MILL, NULL);
    assert_bits_do_not_depend_on_order(problem, contracts, 200);
    sp_problem_free(problem);
}

/* ---- failures ---- */

static void hopeless_scenarios_are_named_and_leave_no_trace(void **state) {
    (void)state;
    /* Column Y is at most 4, so it alone cannot meet row NEED with right-hand side 9. Column S has no upper
     * bound, so the cost is unbounded if S costs −1. */
    const char *core =
        "ROWS\n N COST\n L LIMIT\n G NEED\nCOLUMNS\n X COST 1 LIMIT 1\n Y COST 1 NEED 1\n S COST 1\n"
        "RHS\n RHS LIMIT 10\nBOUNDS\n UP B Y 4\nENDATA\n";
    const char *stoch =
        "INDEP DISCRETE\n RHS NEED 1.7 0.5\n RHS NEED 9 0.5\n S COST 1 0.7\n S COST -1 0.3\nENDATA\n";
    sp_problem *p = read_texts(core, TIME, stoch);
    double x = 0;
    sp_evaluator *mixed = evaluator_of(p, &x, 1), *clean = evaluator_of(p, &x, 1);
    int infeasible = 0, unbounded = 0, fine = 0;
    for (uint64_t i = 0; i < 100; i++) {
        size_t outcome[2];
        double cost = 77, other;
        char expected[64];
        kilter_error error = {.text = ""};
        sp_sample(p, 1, i, outcome);
        kilter_status status = sp_evaluator_cost(mixed, i, &cost, &error);
        snprintf(expected, sizeof expected, "scenario %d of seed 1: its second stage is %s", (int)i,
                 outcome[0] == 1 ? "infeasible" : "unbounded");
        if (outcome[0] == 1 || outcome[1] == 3) {
            assert_int_equal(status, KILTER_ERR_TASK);
            assert_int_equal(error.status, KILTER_ERR_TASK);
            if (strncmp(error.text, expected, strlen(expected)) != 0)
                fail_msg("%s", error.text);
            assert_true(cost == 77);
            infeasible += outcome[0] == 1;
            unbounded += outcome[0] != 1;
        } else {
            assert_int_equal(status, KILTER_OK);
            other = cost_of(clean, i);
            assert_memory_equal(&cost, &other, sizeof cost);
            fine++;
        }
    }
    assert_true(infeasible > 0 && unbounded > 0 && fine > 0);
    sp_evaluator_free(mixed);
    sp_evaluator_free(clean);
    sp_problem_free(p);
}

/* ---- sums of costs ---- */

static void sums_are_exact_where_plain_ones_are_not(void **state) {
    (void)state;
    sp_sums sums = {0};
    for (int i = 0; i < 1000; i++) {
        sp_sums_add(&sums, 1e15);
        sp_sums_add(&sums, 1e15 + 1);
    }
    sp_estimate e = sp_sums_estimate(&sums, 95);
    assert_true(e.mean == 1e15 + 0.5);
    assert_true(fabs(e.standard_error - sqrt(0.25 / 1999)) < 1e-9);
}

static void estimates_are_those_of_the_textbook(void **state) {
    (void)state;
    sp_sums sums = {0};
    static const double COST[] = {2, 4, 4, 4, 5, 5, 7, 9};
    for (size_t i = 0; i < 8; i++)
        sp_sums_add(&sums, COST[i]);
    sp_estimate e = sp_sums_estimate(&sums, 95);
    assert_true(fabs(e.mean - 5) < 1e-12);
    assert_true(fabs(e.standard_error - sqrt(32.0 / 7 / 8)) < 1e-12);
    assert_true(fabs(e.high - 5 - 1.959963984540054 * e.standard_error) < 1e-9);
    assert_true(fabs(5 - e.low - 1.959963984540054 * e.standard_error) < 1e-9);
    sums = (sp_sums){0};
    sp_sums_add(&sums, 3);
    e = sp_sums_estimate(&sums, 95);
    assert_true(e.mean == 3 && isnan(e.standard_error) && isnan(e.low) && isnan(e.high));
}

static void quantiles_are_those_of_the_normal_distribution(void **state) {
    (void)state;
    assert_true(fabs(sp_normal_quantile(68.268949213708590) - 1) < 1e-9);
    assert_true(fabs(sp_normal_quantile(99) - 2.575829303548901) < 1e-9);
    assert_true(fabs(sp_normal_quantile(50) - 0.674489750196082) < 1e-9);
}

/* ---- a worker's job ---- */

static void pack_lands(sp_buffer *bytes, const double *x, int columns) {
    sp_file file[3];
    for (int i = 0; i < 3; i++)
        file[i] = load(SP_PROBLEMS, LANDS[i]);
    sp_job_pack(bytes, file, x, columns, 9);
    assert_false(bytes->failed);
    for (int i = 0; i < 3; i++)
        sp_file_free(&file[i]);
}

static void a_job_is_all_a_worker_needs(void **state) {
    (void)state;
    double *x = NULL;
    sp_problem *problem = load_problem(SP_PROBLEMS, LANDS, &x);
    sp_evaluator *here = evaluator_of(problem, x, 9);
    sp_buffer bytes = {0};
    pack_lands(&bytes, x, 4);
    sp_job *job = NULL;
    kilter_error error = {.text = ""};
    if (sp_job_new(bytes.data, bytes.size, &job, &error))
        fail_msg("%s", error.text);
    sp_buffer_free(&bytes);
    for (uint64_t i = 0; i < 100; i++) {
        double far, near = cost_of(here, i);
        assert_int_equal(sp_job_cost(job, i, &far, &error), KILTER_OK);
        assert_memory_equal(&far, &near, sizeof far);
    }
    sp_job_free(job);
    sp_evaluator_free(here);
    sp_problem_free(problem);
    free(x);
}

static void damaged_jobs_are_refused(void **state) {
    (void)state;
    static const double X[] = {1, 2, 3, 4}, WILD[] = {1, 2, 3, INFINITY};
    sp_buffer bytes = {0};
    sp_job *job = NULL;
    kilter_error error;
    pack_lands(&bytes, X, 4);
    for (size_t size = 0; size < 64; size++)
        assert_int_equal(sp_job_new(bytes.data, size, &job, &error), KILTER_ERR_INPUT);
    for (size_t cut = 1; cut < 40; cut++)
        assert_int_equal(sp_job_new(bytes.data, bytes.size - cut, &job, &error), KILTER_ERR_INPUT);
    bytes.data[0] ^= 1;
    assert_int_equal(sp_job_new(bytes.data, bytes.size, &job, &error), KILTER_ERR_INPUT);
    sp_buffer_clear(&bytes);
    pack_lands(&bytes, X, 3); /* packed with a decision that has too few values */
    assert_int_equal(sp_job_new(bytes.data, bytes.size, &job, &error), KILTER_ERR_INPUT);
    sp_buffer_clear(&bytes);
    pack_lands(&bytes, WILD, 4);
    assert_int_equal(sp_job_new(bytes.data, bytes.size, &job, &error), KILTER_ERR_INPUT);
    assert_null(job);
    sp_buffer_free(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_do_not_depend_on_order_or_workers),
        cmocka_unit_test(three_scenarios_cost_what_was_published),
        cmocka_unit_test(aircraft_cost_what_was_published),
        cmocka_unit_test(a_sample_agrees_with_the_published_optimum),
        cmocka_unit_test(every_kind_of_random_number_counts),
        cmocka_unit_test(every_scenario_has_its_own_recourse),
        cmocka_unit_test(hopeless_scenarios_are_named_and_leave_no_trace),
        cmocka_unit_test(sums_are_exact_where_plain_ones_are_not),
        cmocka_unit_test(estimates_are_those_of_the_textbook),
        cmocka_unit_test(quantiles_are_those_of_the_normal_distribution),
        cmocka_unit_test(a_job_is_all_a_worker_needs),
        cmocka_unit_test(damaged_jobs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
