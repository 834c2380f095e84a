/* Whether what CLP says of a program is so, by the program's own data: its word alone counts for nothing, as
 * it may call a wrong point optimal, and a program without an answer that has one. */
#ifndef SP_CLAIM_H
#define SP_CLAIM_H

#include "clp_shim.h"
#include "lp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What CLP said of the last solve, or SP_LP_STOPPED where that does not follow:
 *   optimal      the point keeps all bounds, and the duals prove that none costs less
 *   infeasible   a combination of rows that no point within the columns' bounds can reach
 *   unbounded    a point that keeps all bounds, and a direction that keeps them and lowers the cost */
sp_lp_status sp_claim_checked(Clp_Simplex *model, sp_lp_status said);

/* Whether the program has no point at all: what is missing at least, in the sum of its rows, is proved to be more
 * than rounding. false also where memory ran out. */
bool sp_claim_no_point(Clp_Simplex *model);

double sp_claim_cost(Clp_Simplex *model); /* of the point, from the data */

#ifdef __cplusplus
}
#endif
#endif
