/* Check CLP's answers against the program's own data. CLP may call a wrong point optimal, or find no answer
 * although the program has an answer. */
#ifndef SP_CLAIM_H
#define SP_CLAIM_H

#include "clp_shim.h"
#include "lp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Check CLP's answer `said` to the last solve, and return it if the check confirms it. Otherwise return
 * SP_LP_OPTIMAL if the point is optimal, and SP_LP_STOPPED if not. For example, CLP calls a program
 * infeasible if a row without entries has a side that is only a rounding error. Optimal is confirmed if the
 * point keeps all bounds and the duals prove that no point costs less. Infeasible is confirmed if no point
 * within the columns' bounds can meet a certain combination of rows. Unbounded is confirmed if the point
 * keeps all bounds, and a direction that lowers the cost keeps them without limit. */
sp_lp_status sp_claim_checked(Clp_Simplex *model, sp_lp_status said);

/* Find the answer if CLP's was not confirmed. Return SP_LP_INFEASIBLE if a proof shows that every point
 * misses rows by more than rounding. Return SP_LP_UNBOUNDED if there is a point, and a direction that lowers
 * the cost without limit. Otherwise, or if memory ran out, return SP_LP_STOPPED. The model is unchanged. */
sp_lp_status sp_claim_without_answer(Clp_Simplex *model);

/* Return the cost of CLP's point, computed from the program's data. */
double sp_claim_cost(Clp_Simplex *model);

#ifdef __cplusplus
}
#endif
#endif
