/* Check CLP's answers against the program's own data. CLP may call a wrong point optimal, or find no answer
 * although the program has an answer. */
#ifndef SP_CLAIM_H
#define SP_CLAIM_H

#include "clp_shim.h"
#include "lp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Check CLP's answer to the last solve, and return the answer if the check confirms it; otherwise
 * SP_LP_OPTIMAL if that holds (CLP rejects a row without entries whose side is rounding), or else
 * SP_LP_STOPPED. An optimal point keeps all bounds, and the duals prove that none costs less. Infeasible: no
 * point within the columns' bounds reaches a combination of rows. Unbounded: a point and a direction keep all
 * bounds, and the direction lowers the cost.
 */
sp_lp_status sp_claim_checked(Clp_Simplex *model, sp_lp_status said);

/* Answer for CLP if its answer did not hold. Infeasible: the sum of what the rows miss is proved to exceed
 * rounding. Unbounded: there is a point, and a direction that can be followed for ever and lowers the cost.
 * Otherwise, or if memory ran out: SP_LP_STOPPED. The model is unchanged. */
sp_lp_status sp_claim_without_answer(Clp_Simplex *model);

double sp_claim_cost(Clp_Simplex *model); /* Return the cost of the point, from the program's data. */

#ifdef __cplusplus
}
#endif
#endif
