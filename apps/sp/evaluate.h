/* What a first-stage decision costs: one scenario at a time, and the estimate made of many. */
#ifndef SP_EVALUATE_H
#define SP_EVALUATE_H

#include "kilter/status.h"
#include "lp.h"
#include "sample.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Solves second-stage problems at one decision x. One per worker; not for two threads at once. */
typedef struct sp_evaluator sp_evaluator;

/* Keeps pointers to `problem`, copies x[0 … columns of stage 1). */
kilter_status sp_evaluator_new(const sp_problem *problem, const double *x, uint64_t seed,
                               sp_evaluator **evaluator, kilter_error *error);
void sp_evaluator_free(sp_evaluator *evaluator); /* NULL does nothing */

/* Total cost of scenario `scenario` of the seed: constant + c'x + min q'y. Its bits depend on (problem, x,
 * seed, scenario) alone, not on what was evaluated before or elsewhere. *cost is written on KILTER_OK only.
 * KILTER_ERR_TASK when its second stage is infeasible, unbounded or not solved: the text names the scenario.
 */
kilter_status sp_evaluator_cost(sp_evaluator *evaluator, uint64_t scenario, double *cost,
                                kilter_error *error);

/* The same for a scenario given by its outcomes, outcome[k] for each variable: an index into
 * problem->outcome. */
kilter_status sp_evaluator_cost_of(sp_evaluator *evaluator, const size_t *outcome, double *cost,
                                   kilter_error *error);

/* From now on scenarios are those of `sampling`, until then SP_INDEPENDENT ones. */
void sp_evaluator_sample(sp_evaluator *evaluator, const sp_sampling *sampling);

/* Of the last scenario solved, in its sample. */
double sp_evaluator_weight(const sp_evaluator *evaluator);

/* Go on at another decision, as a new evaluator would. */
kilter_status sp_evaluator_move(sp_evaluator *evaluator, const double *x, kilter_error *error);

/* From now on keep the optimal basis of each of scenarios 0 … scenarios−1 (0: of none, and use none kept
 * before), and start it from there the next time: several times faster when decisions lie close to each
 * other, but costs are then no longer the same to the last bit. */
kilter_status sp_evaluator_remember(sp_evaluator *evaluator, uint64_t scenarios, kilter_error *error);

/* Scenarios that began from a basis kept, so far. */
uint64_t sp_evaluator_found(const sp_evaluator *evaluator);

/* Solve the second stage of a scenario. *value: min q'y, when *solved says SP_LP_OPTIMAL.
 * KILTER_ERR_MEMORY; what the solver says is no error. */
kilter_status sp_evaluator_recourse(sp_evaluator *evaluator, uint64_t scenario, sp_lp_status *solved,
                                    double *value, kilter_error *error);

/* By how much the last scenario's rows are missed in sum when they are missed as little as possible. *solved
 * as above. */
kilter_status sp_evaluator_miss(sp_evaluator *evaluator, sp_lp_status *solved, double *missed,
                                kilter_error *error);

/* Add weight times the slope of the last value or miss, by columns of stage 1: −T'π. The value at any x' is
 * at least value + slope'(x' − x). To size, the absolute values of what was added. */
void sp_evaluator_add_slope(const sp_evaluator *evaluator, double weight, double *slope, double *size);

/* Says which scenario could not be solved, and why. */
kilter_status sp_evaluator_unsolved(const sp_evaluator *evaluator, uint64_t scenario, sp_lp_status solved,
                                    kilter_error *error);

/* Duals of the second-stage rows at the last scenario solved. */
const double *sp_evaluator_duals(const sp_evaluator *evaluator);
long sp_evaluator_pivots(const sp_evaluator *evaluator);

/* Running sums of costs. Zeroed is empty. The result's bits depend on the order of the costs: feed them in
 * the order of their scenarios. */
typedef struct sp_sums {
    uint64_t count;
    double origin;                /* the first cost; sums are of the distance to it */
    double sum, sum_lost;         /* compensated */
    double squares, squares_lost; /* compensated */
} sp_sums;

void sp_sums_add(sp_sums *sums, double cost);

typedef struct sp_estimate {
    double mean;
    double standard_error; /* NaN for fewer than two scenarios */
    double low, high;      /* confidence interval by the normal distribution; NaN likewise */
} sp_estimate;

/* confidence in percent, above 0 and below 100. At least one cost must have been added. */
sp_estimate sp_sums_estimate(const sp_sums *sums, double confidence);

/* z with P(|N(0,1)| <= z) = confidence percent. */
double sp_normal_quantile(double confidence);

#ifdef __cplusplus
}
#endif
#endif
