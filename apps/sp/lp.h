/* A linear program that is solved many times. Row bounds and costs change between solves, sometimes also the
 * matrix. Every solve starts from a kept basis and its point, with Dantzig's pricing in the dual simplex
 * method. Nothing of an earlier solve remains, so the answer's bits do not depend on earlier problems. An
 * answer is checked against the program's own data (claim.h); if the check fails, the status is
 * SP_LP_STOPPED. Threads must not share an instance. */
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

/* Make a program with copies of the stage and `matrix`. At first, the kept basis is the slack basis. */
kilter_status sp_lp_new(const sp_stage *stage, const sp_matrix *matrix, sp_lp **lp, kilter_error *error);
void sp_lp_free(sp_lp *lp); /* free a program; NULL is allowed */

/* Memory for the data of the next problem. The caller fills row_lower[] and row_upper[] for every problem;
 * cost[] either for every problem or for none. ±DBL_MAX stands for infinite. The memory is valid until the
 * next call of sp_lp_begin(). */
typedef struct sp_lp_data {
    double *row_lower, *row_upper, *cost;
} sp_lp_data;

kilter_status sp_lp_begin(sp_lp *lp, sp_lp_data *data, kilter_error *error);

/* Return the matrix's entries, in the order given to sp_lp_new(). Changes take effect at the next
 * sp_lp_begin(). sp_lp_begin() makes a new model after a change, because a solved model keeps copies of its
 * matrix. */
double *sp_lp_entries(sp_lp *lp);

sp_lp_status sp_lp_solve(sp_lp *lp);

/* Solve from the given basis instead of the kept basis. This is faster if `basis` is close to the optimal
 * basis, but the last bits of the answer may depend on earlier solves. */
sp_lp_status sp_lp_solve_from(sp_lp *lp, const unsigned char *basis);

/* Solve a problem that sp_lp_solve() left unsolved. The function sp_lp_begin_anew() makes a new model
 * and does what sp_lp_begin() does. The function sp_lp_solve_anew() solves without a basis, by another method
 * for each `try` from 0 to SP_LP_TRIES − 1. */
enum { SP_LP_TRIES = 6 };
kilter_status sp_lp_begin_anew(sp_lp *lp, int try, sp_lp_data *data, kilter_error *error);
sp_lp_status sp_lp_solve_anew(sp_lp *lp, int try);

/* Return the basis of the last solve, which must have been optimal, in sp_lp_basis_bytes() bytes. */
size_t sp_lp_basis_bytes(const sp_lp *lp);
void sp_lp_basis(const sp_lp *lp, unsigned char *basis);

/* Keep the basis and point of the last solve, which must have been optimal, as the start of all later solves.
 */
void sp_lp_keep(sp_lp *lp);

/* Restore the state of a new program: the slack basis becomes the kept basis, and earlier solves have no
 * effect.
 */
kilter_status sp_lp_forget(sp_lp *lp, kilter_error *error);

/* Return the objective of the last solve, which must have been optimal. */
double sp_lp_objective(const sp_lp *lp);
const double *sp_lp_duals(const sp_lp *lp); /* return the dual of each row for the last solve */
long sp_lp_pivots(const sp_lp *lp);         /* Return the number of pivots of all solves. */

#ifdef __cplusplus
}
#endif
#endif
