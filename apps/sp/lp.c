#include "lp.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "claim.h"
#include "support.h"

struct sp_lp {
    Clp_Simplex *model;
    /* true: the model's internal state may affect later solves, so a new model must replace it */
    bool spoiled;
    long pivots;
    sp_program program; /* the program as it was loaded */
    /* status of each column and row in the kept basis */
    unsigned char *basis;                     /* status of the columns, then of the rows */
    double *column_point, *row_point, *duals; /* point and duals of the kept basis */
    double *reduced;
};

static double clp_number(double value) {
    return isinf(value) ? copysign(DBL_MAX, value) : value;
}

sp_lp_status sp_lp_meaning(int clp_status) {
    static const sp_lp_status MEANING[] = {SP_LP_OPTIMAL, SP_LP_INFEASIBLE, SP_LP_UNBOUNDED};
    return clp_status >= 0 && clp_status < 3 ? MEANING[clp_status] : SP_LP_STOPPED;
}

static bool copy_array(void *to, const void *from, size_t count, size_t size) {
    void *copy = malloc(count ? count * size : 1);
    if (copy && count)
        memcpy(copy, from, count * size);
    memcpy(to, &copy, sizeof copy);
    return copy != NULL;
}

static bool make_program(sp_program *p, const sp_stage *stage, const sp_matrix *matrix) {
    size_t columns = (size_t)stage->columns, entries = (size_t)matrix->start[columns];
    if (!sp_program_make(p, stage->rows, stage->columns, entries))
        return false;
    memcpy(p->matrix.start, matrix->start, (columns + 1) * sizeof(int));
    memcpy(p->matrix.row, matrix->row, entries * sizeof(int));
    memcpy(p->matrix.value, matrix->value, entries * sizeof(double));
    memcpy(p->cost, stage->cost, columns * sizeof(double));
    for (size_t j = 0; j < columns; j++) {
        p->lower[j] = clp_number(stage->lower[j]);
        p->upper[j] = clp_number(stage->upper[j]);
    }
    for (int i = 0; i < stage->rows; i++) {
        p->row_lower[i] = clp_number(stage->rhs[i] + stage->below[i]);
        p->row_upper[i] = clp_number(stage->rhs[i] + stage->above[i]);
    }
    return true;
}

static kilter_status load(sp_lp *lp, bool often, kilter_error *error) {
    if (lp->model)
        Clp_deleteModel(lp->model);
    lp->model = sp_clp_load(&lp->program);
    lp->spoiled = !lp->model;
    if (lp->model && often && !sp_clp_restart_often(lp->model))
        lp->spoiled = true;
    if (lp->spoiled)
        return sp_fail(
            error, KILTER_ERR_MEMORY,
            "loading the second stage (%d rows, %d columns) into CLP: memory ran out; use fewer workers",
            lp->program.rows, lp->program.columns);
    return KILTER_OK;
}

static bool make_start(sp_lp *lp) {
    size_t rows = (size_t)lp->program.rows, columns = (size_t)lp->program.columns;
    return copy_array(&lp->basis, Clp_statusArray(lp->model), rows + columns, 1) &&
           copy_array(&lp->column_point, Clp_primalColumnSolution(lp->model), columns, sizeof(double)) &&
           copy_array(&lp->row_point, Clp_primalRowSolution(lp->model), rows, sizeof(double)) &&
           copy_array(&lp->duals, Clp_dualRowSolution(lp->model), rows, sizeof(double)) &&
           copy_array(&lp->reduced, Clp_dualColumnSolution(lp->model), columns, sizeof(double));
}

kilter_status sp_lp_new(const sp_stage *stage, const sp_matrix *matrix, sp_lp **lp, kilter_error *error) {
    sp_lp *made = calloc(1, sizeof *made);
    if (!made)
        return sp_fail(error, KILTER_ERR_MEMORY,
                       "making a linear program: memory ran out; use fewer workers");
    kilter_status status = KILTER_ERR_MEMORY;
    if (make_program(&made->program, stage, matrix)) {
        status = load(made, true, error);
        if (!status && !make_start(made))
            status = KILTER_ERR_MEMORY;
    }
    if (status) {
        sp_lp_free(made);
        return sp_fail(error, status,
                       "making a linear program of %d rows and %d columns: memory ran out; use "
                       "fewer workers",
                       stage->rows, stage->columns);
    }
    *lp = made;
    return KILTER_OK;
}

void sp_lp_free(sp_lp *lp) {
    if (!lp)
        return;
    if (lp->model)
        Clp_deleteModel(lp->model);
    sp_program_free(&lp->program);
    free(lp->basis);
    free(lp->column_point);
    free(lp->row_point);
    free(lp->duals);
    free(lp->reduced);
    free(lp);
}

kilter_status sp_lp_begin(sp_lp *lp, sp_lp_data *data, kilter_error *error) {
    if (lp->spoiled) {
        kilter_status status = load(lp, true, error);
        if (status)
            return status;
    }
    *data = (sp_lp_data){Clp_rowLower(lp->model), Clp_rowUpper(lp->model), Clp_objective(lp->model)};
    return KILTER_OK;
}

double *sp_lp_entries(sp_lp *lp) {
    lp->spoiled = true;
    return lp->program.matrix.value;
}

/* Restore basis and point. Without the point, a nonbasic column without bounds would keep its value from the
 * last solve. */
static void restore_start(sp_lp *lp) {
    size_t rows = (size_t)lp->program.rows, columns = (size_t)lp->program.columns;
    memcpy(Clp_statusArray(lp->model), lp->basis, rows + columns);
    memcpy(Clp_primalColumnSolution(lp->model), lp->column_point, columns * sizeof(double));
    memcpy(Clp_primalRowSolution(lp->model), lp->row_point, rows * sizeof(double));
    memcpy(Clp_dualRowSolution(lp->model), lp->duals, rows * sizeof(double));
    memcpy(Clp_dualColumnSolution(lp->model), lp->reduced, columns * sizeof(double));
}

static sp_lp_status solve_by(sp_lp *lp, int (*method)(Clp_Simplex *), sp_lp_status *said) {
    *said = sp_lp_meaning(method(lp->model));
    lp->pivots += Clp_numberIterations(lp->model);
    sp_lp_status solved = sp_claim_checked(lp->model, *said);
    lp->spoiled = solved != SP_LP_OPTIMAL;
    return solved;
}

/* Solve from the model's basis. Try the dual method first. Try the primal method only if the dual method did
 * not call the program infeasible. */
static sp_lp_status solve(sp_lp *lp) {
    sp_lp_status said, solved = solve_by(lp, sp_clp_dual, &said);
    if (solved == SP_LP_STOPPED && said != SP_LP_INFEASIBLE) {
        solved = solve_by(lp, sp_clp_primal, &said);
        lp->spoiled = true;
    }
    return solved;
}

sp_lp_status sp_lp_solve(sp_lp *lp) {
    restore_start(lp);
    return solve(lp);
}

sp_lp_status sp_lp_solve_from(sp_lp *lp, const unsigned char *basis) {
    memcpy(Clp_statusArray(lp->model), basis, sp_lp_basis_bytes(lp));
    return solve(lp);
}

kilter_status sp_lp_begin_anew(sp_lp *lp, int try, sp_lp_data *data, kilter_error *error) {
    kilter_status status = load(lp, try == 0, error);
    return status ? status : sp_lp_begin(lp, data, error);
}

sp_lp_status sp_lp_solve_anew(sp_lp *lp, int try) {
    enum { UNSCALED = 0 };
    sp_lp_status said, solved = SP_LP_STOPPED;
    sp_clp_start_from_slacks(lp->model);
    if (try == 3 || try == 4)
        Clp_scaling(lp->model, UNSCALED);
    if (try == 0)
        solved = solve(lp);
    else if (try == 1)
        solved = sp_claim_without_answer(lp->model);
    else
        solved = solve_by(lp, try == 3 ? sp_clp_dual : try == 5 ? sp_clp_presolved : sp_clp_primal, &said);
    lp->spoiled = true; /* mark the model, so that these tries do not affect later solves */
    return solved;
}

size_t sp_lp_basis_bytes(const sp_lp *lp) {
    return (size_t)lp->program.rows + (size_t)lp->program.columns;
}

void sp_lp_basis(const sp_lp *lp, unsigned char *basis) {
    memcpy(basis, Clp_statusArray(lp->model), sp_lp_basis_bytes(lp));
}

void sp_lp_keep(sp_lp *lp) {
    size_t rows = (size_t)lp->program.rows, columns = (size_t)lp->program.columns;
    memcpy(lp->basis, Clp_statusArray(lp->model), rows + columns);
    memcpy(lp->column_point, Clp_primalColumnSolution(lp->model), columns * sizeof(double));
    memcpy(lp->row_point, Clp_primalRowSolution(lp->model), rows * sizeof(double));
    memcpy(lp->duals, Clp_dualRowSolution(lp->model), rows * sizeof(double));
    memcpy(lp->reduced, Clp_dualColumnSolution(lp->model), columns * sizeof(double));
}

kilter_status sp_lp_forget(sp_lp *lp, kilter_error *error) {
    kilter_status status = load(lp, true, error);
    if (!status)
        sp_lp_keep(lp);
    return status;
}

double sp_lp_objective(const sp_lp *lp) {
    return sp_claim_cost(lp->model);
}

const double *sp_lp_duals(const sp_lp *lp) {
    return Clp_dualRowSolution(lp->model);
}

long sp_lp_pivots(const sp_lp *lp) {
    return lp->pivots;
}
