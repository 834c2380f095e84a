#include <climits>

#include <ClpDualRowDantzig.hpp>
#include <ClpSimplex.hpp>
#include <ClpSolve.hpp>

/* The C interface's handle is a struct for those who define this. */
#define CLP_EXTERN_C
#include "clp_shim.h"

/* CLP may go round for ever. No solve of published problems comes near this. */
static int most_iterations(int rows, int columns) {
    double most = 1e5 + 100.0 * rows + 100.0 * columns;
    return most < INT_MAX ? (int)most : INT_MAX;
}

extern "C" Clp_Simplex *sp_clp_load(int columns, int rows, const int *start, const int *row,
                                    const double *value, const double *column_lower,
                                    const double *column_upper, const double *cost, const double *row_lower,
                                    const double *row_upper) {
    Clp_Simplex *model = nullptr;
    try {
        model = Clp_newModel();
        Clp_setLogLevel(model, 0);
        Clp_loadProblem(model, columns, rows, start, row, value, column_lower, column_upper, cost, row_lower,
                        row_upper);
        Clp_setMaximumIterations(model, most_iterations(rows, columns));
        return model;
    } catch (...) {
        if (model)
            Clp_deleteModel(model);
        return nullptr;
    }
}

extern "C" bool sp_clp_restart_often(Clp_Simplex *model) {
    try {
        ClpDualRowDantzig dantzig; /* copied by the call */
        model->model_->setDualRowPivotAlgorithm(dantzig);
        model->model_->setPersistenceFlag(1);
        return true;
    } catch (...) {
        return false;
    }
}

extern "C" bool sp_clp_add_rows(Clp_Simplex *model, int count, const double *lower, const double *upper,
                                const int *start, const int *column, const double *value) {
    try {
        Clp_addRows(model, count, lower, upper, start, column, value);
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
    model->model_->allSlackBasis(true); /* true: the point, too */
}

extern "C" int sp_clp_dual(Clp_Simplex *model) {
    try {
        Clp_dual(model, 0);
        return Clp_status(model);
    } catch (...) {
        return 4;
    }
}

extern "C" int sp_clp_primal(Clp_Simplex *model) {
    try {
        Clp_primal(model, 0);
        return Clp_status(model);
    } catch (...) {
        return 4;
    }
}

extern "C" int sp_clp_presolved(Clp_Simplex *model) {
    try {
        Clp_initialSolve(model);
        return Clp_status(model);
    } catch (...) {
        return 4;
    }
}
