/* Functions that CLP's C interface lacks, and wrappers of CLP's functions that catch all C++ exceptions.
 */
#ifndef SP_CLP_SHIM_H
#define SP_CLP_SHIM_H

#include <stdbool.h>

#include <Clp_C_Interface.h>

#include "program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Return a CLP model of the program; the model prints nothing. Bounds that are NULL get CLP's defaults.
 * Return NULL if memory ran out. */
Clp_Simplex *sp_clp_load(const sp_program *program);

/* Use persistent arrays, and Dantzig's pricing in the dual method. Do not call this for a model whose rows
 * change, because CLP's assertions would fail. Return false if memory ran out. */
bool sp_clp_restart_often(Clp_Simplex *model);

/* Add or delete rows of the model. Return false if memory ran out. */
bool sp_clp_add_rows(Clp_Simplex *model, const sp_rows *rows, const double *upper);
bool sp_clp_delete_rows(Clp_Simplex *model, int count, const int *row);

/* Set the slack basis, in which every row is basic. */
void sp_clp_start_from_slacks(Clp_Simplex *model);

/* CLP's status: 0 optimal, 1 infeasible, 2 unbounded, 3 stopped, 4 error. */
int sp_clp_dual(Clp_Simplex *model);
int sp_clp_primal(Clp_Simplex *model);
/* Solve with CLP's presolve, for a large program that is solved once. */
int sp_clp_presolved(Clp_Simplex *model);

#ifdef __cplusplus
}
#endif
#endif
