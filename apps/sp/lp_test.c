#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lp.h"
#include "test_support.h"

/* min 5a + b  s.t.  a + b >= r0,  b <= r1,  a >= 0, b free */
static sp_lp *small_lp(void) {
    static double rhs[] = {3, 1}, below[] = {0, -INFINITY}, above[] = {INFINITY, 0};
    static double cost[] = {5, 1}, lower[] = {0, -INFINITY}, upper[] = {INFINITY, INFINITY};
    static int start[] = {0, 1, 3}, row[] = {0, 0, 1};
    static double value[] = {1, 1, 1};
    sp_stage stage = {.rows = 2,
                      .columns = 2,
                      .rhs = rhs,
                      .below = below,
                      .above = above,
                      .cost = cost,
                      .lower = lower,
                      .upper = upper};
    sp_matrix matrix = {start, row, value};
    sp_lp *lp = NULL;
    kilter_error error = {.text = ""};
    if (sp_lp_new(&stage, &matrix, &lp, &error))
        fail_msg("%s", error.text);
    return lp;
}

static sp_lp_status solve_for(sp_lp *lp, double r0, double r1, double cost_b) {
    sp_lp_data data;
    kilter_error error;
    assert_int_equal(sp_lp_begin(lp, &data, &error), KILTER_OK);
    data.row_lower[0] = r0;
    data.row_upper[0] = DBL_MAX;
    data.row_lower[1] = -DBL_MAX;
    data.row_upper[1] = r1;
    data.cost[0] = 5;
    data.cost[1] = cost_b;
    return sp_lp_solve(lp);
}

static void objective_and_duals_are_those_of_the_program(void **state) {
    (void)state;
    sp_lp *lp = small_lp();
    assert_int_equal(solve_for(lp, 3, 1, 1), SP_LP_OPTIMAL);
    assert_true(fabs(sp_lp_objective(lp) - 11) < 1e-9); /* b = 1, a = 2 */
    assert_true(fabs(sp_lp_duals(lp)[0] - 5) < 1e-9);
    assert_true(fabs(sp_lp_duals(lp)[1] + 4) < 1e-9);
    sp_lp_keep(lp);
    assert_int_equal(solve_for(lp, 0.5, 1, 1), SP_LP_OPTIMAL);
    assert_true(fabs(sp_lp_objective(lp) - 0.5) < 1e-9);
    sp_lp_free(lp);
}

static void every_start_leads_to_the_same_optimum(void **state) {
    (void)state;
    sp_lp *lp = small_lp();
    unsigned char basis[4];
    assert_int_equal(sp_lp_basis_bytes(lp), sizeof basis);
    assert_int_equal(solve_for(lp, 0.5, 1, 1), SP_LP_OPTIMAL);
    sp_lp_basis(lp, basis);
    sp_lp_keep(lp);
    for (int start = 0; start < 4; start++) {
        sp_lp_data data;
        if (start == 3)
            assert_int_equal(sp_lp_forget(lp, NULL), KILTER_OK);
        assert_int_equal(sp_lp_begin(lp, &data, NULL), KILTER_OK);
        data.row_lower[0] = 3;
        data.row_upper[0] = DBL_MAX;
        data.row_lower[1] = -DBL_MAX;
        data.row_upper[1] = 1;
        data.cost[0] = 5;
        data.cost[1] = 1;
        sp_lp_status solved = start == 0   ? sp_lp_solve_from(lp, basis)
                              : start == 1 ? sp_lp_solve_anew(lp, 0)
                                           : sp_lp_solve(lp);
        assert_int_equal(solved, SP_LP_OPTIMAL);
        assert_true(fabs(sp_lp_objective(lp) - 11) < 1e-9);
        assert_true(fabs(sp_lp_duals(lp)[0] - 5) < 1e-9);
    }
    sp_lp_free(lp);
}

static void hopeless_programs_are_told_apart(void **state) {
    (void)state;
    sp_lp *lp = small_lp();
    assert_int_equal(solve_for(lp, 3, 1, 5), SP_LP_OPTIMAL);
    sp_lp_keep(lp);
    /* if a rises by 1 and b falls by 1, the cost changes by 5 − 6 */
    assert_int_equal(solve_for(lp, 3, 1, 6), SP_LP_UNBOUNDED);
    sp_lp_data data;
    kilter_error error;
    assert_int_equal(sp_lp_begin(lp, &data, &error), KILTER_OK);
    data.row_lower[0] = 3;
    data.row_upper[0] = 2;
    data.row_lower[1] = -DBL_MAX;
    data.row_upper[1] = 1;
    assert_int_equal(sp_lp_solve(lp), SP_LP_INFEASIBLE);
    /* after an infeasible problem, the next solve works again */
    assert_int_equal(solve_for(lp, 3, 1, 1), SP_LP_OPTIMAL);
    assert_true(fabs(sp_lp_objective(lp) - 11) < 1e-9);
    sp_lp_free(lp);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objective_and_duals_are_those_of_the_program),
        cmocka_unit_test(every_start_leads_to_the_same_optimum),
        cmocka_unit_test(hopeless_programs_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
