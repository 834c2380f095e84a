/* What CLP's C interface lacks, and calls that keep its C++ exceptions from crossing C frames. */
#ifndef SP_CLP_SHIM_H
#define SP_CLP_SHIM_H

#include <stdbool.h>

#include <Clp_C_Interface.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A loaded model, silent; NULL: memory ran out. */
Clp_Simplex *sp_clp_load(int columns, int rows, const int *start, const int *row, const double *value,
                         const double *column_lower, const double *column_upper, const double *cost,
                         const double *row_lower, const double *row_upper);

/* Persistent arrays and Dantzig's pricing in the dual method. Not for a model whose rows change: CLP's
 * assertions fail. False: memory ran out. */
bool sp_clp_restart_often(Clp_Simplex *model);

/* False: memory ran out. */
bool sp_clp_add_rows(Clp_Simplex *model, int count, const double *lower, const double *upper,
                     const int *start, const int *column, const double *value);
bool sp_clp_delete_rows(Clp_Simplex *model, int count, const int *row);

/* Make every row basic. */
void sp_clp_start_from_slacks(Clp_Simplex *model);

/* CLP's status: 0 optimal, 1 infeasible, 2 unbounded, 3 stopped, 4 error. */
int sp_clp_dual(Clp_Simplex *model);
int sp_clp_primal(Clp_Simplex *model);
int sp_clp_presolved(Clp_Simplex *model); /* a large program, once */

#ifdef __cplusplus
}
#endif
#endif
