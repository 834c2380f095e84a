/* Functions that CLP's C interface lacks, and calls of CLP that let no C++ exception through to C functions.
 */
#ifndef SP_CLP_SHIM_H
#define SP_CLP_SHIM_H

#include <stdbool.h>

#include <Clp_C_Interface.h>

#include "program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Return a model of the program that prints nothing; NULL: memory ran out. Bounds that are NULL have CLP's
 * defaults. */
Clp_Simplex *sp_clp_load(const sp_program *program);

/* Use persistent arrays, and Dantzig's pricing in the dual method. Not for a model whose rows change: CLP's
 * assertions fail. False: memory ran out. */
bool sp_clp_restart_often(Clp_Simplex *model);

/* False: memory ran out. */
bool sp_clp_add_rows(Clp_Simplex *model, const sp_rows *rows, const double *upper);
bool sp_clp_delete_rows(Clp_Simplex *model, int count, const int *row);

/* Make every row basic. */
void sp_clp_start_from_slacks(Clp_Simplex *model);

/* CLP's status: 0 optimal, 1 infeasible, 2 unbounded, 3 stopped, 4 error. */
int sp_clp_dual(Clp_Simplex *model);
int sp_clp_primal(Clp_Simplex *model);
int sp_clp_presolved(Clp_Simplex *model); /* With presolve, for a large program that is solved once. */

#ifdef __cplusplus
}
#endif
#endif
