/* Whether what CLP says of a program is so, by the program's own data: its word alone counts for nothing, as
 * it may call a wrong point optimal, and a program without an answer that has one. */
#ifndef SP_CLAIM_H
#define SP_CLAIM_H

#include "clp_shim.h"
#include "lp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What CLP said of the last solve, where it follows; else SP_LP_OPTIMAL, if that does (CLP has no patience
 * with a row without entries whose side is rounding), or SP_LP_STOPPED: optimal      the point keeps all
 * bounds, and the duals prove that none costs less infeasible   a combination of rows that no point within
 * the columns' bounds can reach unbounded    a point that keeps all bounds, and a direction that keeps them
 * and lowers the cost */
sp_lp_status sp_claim_checked(Clp_Simplex *model, sp_lp_status said);

/* Where CLP's word did not hold: infeasible, if what is missing to a point, in the sum of all rows, is proved
 * to be more than rounding; unbounded, if there is a point, and a step lowers the cost that may be taken for
 * ever; else SP_LP_STOPPED, as where memory ran out. The model stays as it is. */
sp_lp_status sp_claim_without_answer(Clp_Simplex *model);

double sp_claim_cost(Clp_Simplex *model); /* of the point, from the data */

#ifdef __cplusplus
}
#endif
#endif
