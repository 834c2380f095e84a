#include "table.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "claim.h"
#include "support.h"

struct sp_table {
    Clp_Simplex *model;
};

static double clp_number(double value) {
    return isinf(value) ? copysign(DBL_MAX, value) : value;
}

static kilter_status no_memory(const char *doing, kilter_error *error) {
    return sp_fail(error, KILTER_ERR_MEMORY,
                   "%s: memory ran out; sample fewer scenarios, or use a machine with more memory", doing);
}

static void set_bounds(Clp_Simplex *model, const sp_program *program) {
    for (int j = 0; j < program->columns; j++) {
        Clp_columnLower(model)[j] = clp_number(program->lower[j]);
        Clp_columnUpper(model)[j] = clp_number(program->upper[j]);
    }
    for (int i = 0; i < program->rows; i++) {
        Clp_rowLower(model)[i] = clp_number(program->row_lower[i]);
        Clp_rowUpper(model)[i] = clp_number(program->row_upper[i]);
    }
}

kilter_status sp_table_new(const sp_program *program, sp_table **table, kilter_error *error) {
    sp_table *made = calloc(1, sizeof *made);
    sp_program without_bounds = *program;
    without_bounds.lower = without_bounds.upper = without_bounds.row_lower = without_bounds.row_upper = NULL;
    if (made)
        made->model = sp_clp_load(&without_bounds);
    if (!made || !made->model) {
        sp_table_free(made);
        return no_memory("making a linear program", error);
    }
    set_bounds(made->model, program);
    *table = made;
    return KILTER_OK;
}

void sp_table_free(sp_table *table) {
    if (!table)
        return;
    if (table->model)
        Clp_deleteModel(table->model);
    free(table);
}

void sp_table_bound(sp_table *table, int column, double lower, double upper) {
    Clp_columnLower(table->model)[column] = clp_number(lower);
    Clp_columnUpper(table->model)[column] = clp_number(upper);
}

kilter_status sp_table_add(sp_table *table, const sp_rows *rows, kilter_error *error) {
    if (rows->count == 0)
        return KILTER_OK;
    double *upper = malloc((size_t)rows->count * sizeof *upper);
    for (int i = 0; upper && i < rows->count; i++)
        upper[i] = DBL_MAX;
    bool added = upper && sp_clp_add_rows(table->model, rows, upper);
    free(upper);
    return added ? KILTER_OK : no_memory("adding rows to a linear program", error);
}

kilter_status sp_table_drop(sp_table *table, int count, const int *row, kilter_error *error) {
    if (count == 0 || sp_clp_delete_rows(table->model, count, row))
        return KILTER_OK;
    return no_memory("dropping rows of a linear program", error);
}

/* ---- solving ---- */

static sp_lp_status solve_by(sp_table *table, int (*method)(Clp_Simplex *), sp_lp_status *said) {
    *said = sp_lp_meaning(method(table->model));
    return sp_claim_checked(table->model, *said);
}

/* Solve by several methods, first by the dual method. If the dual method calls the program infeasible, do not
 * use the primal method: one of CLP's assertions may fail on such a program. */
static sp_lp_status solve(sp_table *table) {
    sp_lp_status said, solved = solve_by(table, sp_clp_dual, &said);
    if (solved == SP_LP_STOPPED && said != SP_LP_INFEASIBLE)
        solved = solve_by(table, sp_clp_primal, &said);
    return solved;
}

/* Solve without scaling, because scaling magnifies entries that are rounding errors. */
static sp_lp_status solve_unscaled(sp_table *table) {
    enum { UNSCALED = 0, BY_ITSELF = 3 };
    Clp_scaling(table->model, UNSCALED);
    sp_clp_start_from_slacks(table->model);
    sp_lp_status solved = solve(table);
    Clp_scaling(table->model, BY_ITSELF);
    return solved;
}

sp_lp_status sp_table_solve(sp_table *table) {
    sp_lp_status said, solved = solve(table);
    if (solved == SP_LP_STOPPED) {
        sp_clp_start_from_slacks(table->model);
        solved = solve(table);
    }
    if (solved == SP_LP_STOPPED)
        solved = sp_claim_without_answer(table->model);
    if (solved == SP_LP_STOPPED)
        solved = solve_unscaled(table);
    if (solved == SP_LP_STOPPED) {
        sp_clp_start_from_slacks(table->model);
        solved = solve_by(table, sp_clp_primal, &said);
    }
    return solved;
}

sp_lp_status sp_table_without_answer(sp_table *table) {
    return sp_claim_without_answer(table->model);
}

sp_lp_status sp_table_solve_once(sp_table *table) {
    sp_lp_status said, solved = solve_by(table, sp_clp_presolved, &said);
    return solved == SP_LP_OPTIMAL ? solved : sp_table_solve(table);
}

sp_lp_status sp_table_solve_exactly(sp_table *table) {
    static const double TOLERANCE = 1e-11;
    Clp_setPrimalTolerance(table->model, TOLERANCE);
    Clp_setDualTolerance(table->model, TOLERANCE);
    sp_lp_status said;
    return solve_by(table, sp_clp_primal, &said);
}

double sp_table_objective(const sp_table *table) {
    return sp_claim_cost(table->model);
}

const double *sp_table_point(const sp_table *table) {
    return Clp_primalColumnSolution(table->model);
}

const double *sp_table_duals(const sp_table *table) {
    return Clp_dualRowSolution(table->model);
}

const double *sp_table_reduced(const sp_table *table) {
    return Clp_dualColumnSolution(table->model);
}

bool sp_table_is_slack(const sp_table *table, int row) {
    enum { BASIC = 1 };
    return Clp_getRowStatus(table->model, row) == BASIC;
}
