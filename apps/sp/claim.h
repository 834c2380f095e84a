/* Check CLP's answers against the program's own data. The solver CLP may call a wrong point optimal, or find
 * no answer although the linear program has one. */
#ifndef SP_CLAIM_H
#define SP_CLAIM_H

#include "clp_shim.h"
#include "lp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Check CLP's answer `said` to the last solve. If the check confirms the answer, return it. Otherwise return
 * SP_LP_OPTIMAL if CLP's point is optimal, and SP_LP_STOPPED if it is not. For example, CLP wrongly calls a
 * program infeasible if a row without entries has a side that is only a rounding error. An optimum is
 * confirmed if the point keeps all bounds, and the duals prove that no point costs less. Infeasibility is
 * confirmed if no point within the columns' bounds can meet CLP's combination of rows. Unboundedness is
 * confirmed if the point keeps all bounds, and can move without limit in a direction that lowers the cost. */
sp_lp_status sp_claim_checked(Clp_Simplex *model, sp_lp_status said);

/* Find the answer if CLP's answer was not confirmed. Return SP_LP_INFEASIBLE if a proof shows that every
 * point violates rows by more than rounding. Return SP_LP_UNBOUNDED if there is a feasible point, and a
 * direction that lowers the cost without limit. Otherwise, or if memory ran out, return SP_LP_STOPPED. The
 * model is unchanged. */
sp_lp_status sp_claim_without_answer(Clp_Simplex *model);

/* Return the cost of CLP's point, computed from the program's data. */
double sp_claim_cost(Clp_Simplex *model);

#ifdef __cplusplus
}
#endif
#endif
