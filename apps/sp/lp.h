/* A linear program that is solved again and again with other row bounds and costs, and sometimes another
 * matrix, always from the same basis.
 *
 * Every solve starts from the kept basis and the point that belongs to it, with Dantzig's pricing in the dual
 * simplex method: nothing of an earlier solve is left over, so the answer's bits do not depend on which
 * problems were solved before, or where. No answer counts that does not follow from the program's own data
 * (claim.h): SP_LP_STOPPED is said instead. One instance per thread. */
#ifndef SP_LP_H
#define SP_LP_H

#include <stdbool.h>

#include "smps.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sp_lp sp_lp;

typedef enum sp_lp_status { SP_LP_OPTIMAL, SP_LP_INFEASIBLE, SP_LP_UNBOUNDED, SP_LP_STOPPED } sp_lp_status;

sp_lp_status sp_lp_meaning(int clp_status);

/* The stage's rows and columns with `matrix`, which are copied. The kept basis is that of the slacks. */
kilter_status sp_lp_new(const sp_stage *stage, const sp_matrix *matrix, sp_lp **lp, kilter_error *error);
void sp_lp_free(sp_lp *lp); /* NULL does nothing */

/* Where the next problem is written: row_lower and row_upper by row, in full every time; cost by column, in
 * full every time or never. Infinite is ±DBL_MAX. Valid until the next call of sp_lp_begin. */
typedef struct sp_lp_data {
    double *row_lower, *row_upper, *cost;
} sp_lp_data;

kilter_status sp_lp_begin(sp_lp *lp, sp_lp_data *data, kilter_error *error);

/* The matrix's entries, by their places in the one given to sp_lp_new. What is written there holds from the
 * next sp_lp_begin on, which makes a new model: one that was solved keeps its matrix in other forms, too. */
double *sp_lp_entries(sp_lp *lp);

sp_lp_status sp_lp_solve(sp_lp *lp);

/* The same from another basis of this program: faster where it is close, but what was solved before can show
 * in the answer's last bits. */
sp_lp_status sp_lp_solve_from(sp_lp *lp, const unsigned char *basis);

/* For what the others leave unsolved: from no basis at all, in an instance that has solved nothing before,
 * and in other ways from try to try, 0 … SP_LP_TRIES − 1. Begins with a sp_lp_begin of its own. */
enum { SP_LP_TRIES = 6 };
kilter_status sp_lp_begin_anew(sp_lp *lp, int try, sp_lp_data *data, kilter_error *error);
sp_lp_status sp_lp_solve_anew(sp_lp *lp, int try);

/* The basis of the last solve, which was optimal: sp_lp_basis_bytes() bytes. */
size_t sp_lp_basis_bytes(const sp_lp *lp);
void sp_lp_basis(const sp_lp *lp, unsigned char *basis);

/* Keep the basis and point of the last solve, which was optimal, as the start of all that follow. */
void sp_lp_keep(sp_lp *lp);

/* As after sp_lp_new: the kept basis is that of the slacks, and no solve has left anything. */
kilter_status sp_lp_forget(sp_lp *lp, kilter_error *error);

/* Of the last solve, when it was optimal. */
double sp_lp_objective(const sp_lp *lp);
const double *sp_lp_duals(const sp_lp *lp); /* by row */
long sp_lp_pivots(const sp_lp *lp);         /* of all solves */

#ifdef __cplusplus
}
#endif
#endif
