#include <climits>

#include <ClpDualRowDantzig.hpp>
#include <ClpSimplex.hpp>
#include <ClpSolve.hpp>

/* With this macro, CLP's C interface declares the struct behind its model handle. */
#define CLP_EXTERN_C
#include "clp_shim.h"

/* Return a limit of iterations, because CLP may iterate for ever. No solve of the published problems comes
 * near this limit. */
static int most_iterations(int rows, int columns) {
    double most = 1e5 + 100.0 * rows + 100.0 * columns;
    return most < INT_MAX ? (int)most : INT_MAX;
}

extern "C" Clp_Simplex *sp_clp_load(const sp_program *p) {
    Clp_Simplex *model = nullptr;
    try {
        model = Clp_newModel();
        Clp_setLogLevel(model, 0);
        Clp_loadProblem(model, p->columns, p->rows, p->matrix.start, p->matrix.row, p->matrix.value, p->lower,
                        p->upper, p->cost, p->row_lower, p->row_upper);
        Clp_setMaximumIterations(model, most_iterations(p->rows, p->columns));
        return model;
    } catch (...) {
        if (model)
            Clp_deleteModel(model);
        return nullptr;
    }
}

extern "C" bool sp_clp_restart_often(Clp_Simplex *model) {
    try {
        ClpDualRowDantzig dantzig; /* setDualRowPivotAlgorithm() copies this object */
        model->model_->setDualRowPivotAlgorithm(dantzig);
        model->model_->setPersistenceFlag(1);
        return true;
    } catch (...) {
        return false;
    }
}

extern "C" bool sp_clp_add_rows(Clp_Simplex *model, const sp_rows *rows, const double *upper) {
    try {
        Clp_addRows(model, rows->count, rows->lower, upper, rows->start, rows->column, rows->value);
        return true;
    } catch (...) {
        return false;
    }
}

extern "C" bool sp_clp_delete_rows(Clp_Simplex *model, int count, const int *row) {
    try {
        Clp_deleteRows(model, count, row);
        return true;
    } catch (...) {
        return false;
    }
}

extern "C" void sp_clp_start_from_slacks(Clp_Simplex *model) {
    /* the argument `true` also resets the values of all columns and rows */
    model->model_->allSlackBasis(true);
}

template <typename Method> static int status_after(Clp_Simplex *model, Method method) {
    try {
        method();
        return Clp_status(model);
    } catch (...) {
        return 4;
    }
}

extern "C" int sp_clp_dual(Clp_Simplex *model) {
    return status_after(model, [=] { Clp_dual(model, 0); });
}

extern "C" int sp_clp_primal(Clp_Simplex *model) {
    return status_after(model, [=] { Clp_primal(model, 0); });
}

extern "C" int sp_clp_presolved(Clp_Simplex *model) {
    return status_after(model, [=] { Clp_initialSolve(model); });
}
