/* Compute the cost of a first-stage decision, for single scenarios and as an estimate over many scenarios. */
#ifndef SP_EVALUATE_H
#define SP_EVALUATE_H

#include "kilter/status.h"
#include "lp.h"
#include "sample.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An evaluator solves second-stage problems at one decision x. Each worker has its own evaluator; two threads
 * must not share an evaluator. */
typedef struct sp_evaluator sp_evaluator;

/* Make an evaluator. It keeps a pointer to `problem`, and copies x[0 … columns of stage 1). */
kilter_status sp_evaluator_new(const sp_problem *problem, const double *x, uint64_t seed,
                               sp_evaluator **evaluator, kilter_error *error);
void sp_evaluator_free(sp_evaluator *evaluator); /* free an evaluator; NULL is allowed */

/* Compute the total cost of scenario `scenario` of the seed: constant + c'x + min q'y. The cost's bits depend
 * on (problem, x, seed, scenario) alone, not on earlier evaluations. *cost is written on KILTER_OK only. For
 * KILTER_ERR_TASK, the error's text names a scenario whose second stage is infeasible, unbounded or not
 * solved. */
kilter_status sp_evaluator_cost(sp_evaluator *evaluator, uint64_t scenario, double *cost,
                                kilter_error *error);

/* Compute the total cost of a scenario given by its outcomes: outcome[k] is an index into problem->outcome,
 * for variable k. */
kilter_status sp_evaluator_cost_of(sp_evaluator *evaluator, const size_t *outcome, double *cost,
                                   kilter_error *error);

/* Draw scenarios by `sampling` from now on. Without this call, the method is SP_INDEPENDENT. */
void sp_evaluator_sample(sp_evaluator *evaluator, const sp_sampling *sampling);

/* Return the weight that the last solved scenario has in its sample. */
double sp_evaluator_weight(const sp_evaluator *evaluator);

/* Continue with another decision. All later results are the same as those of a new evaluator. */
kilter_status sp_evaluator_move(sp_evaluator *evaluator, const double *x, kilter_error *error);

/* Keep the optimal bases of scenarios 0 … scenarios−1 from now on, and start the next solve of a scenario
 * from its basis. If `scenarios` is 0, use no kept bases. Kept bases make solves several times faster if
 * decisions are close to each other, but the last bits of costs then depend on earlier solves. */
kilter_status sp_evaluator_remember(sp_evaluator *evaluator, uint64_t scenarios, kilter_error *error);

/* Return the number of solves so far that began from the scenario's own basis. */
uint64_t sp_evaluator_found(const sp_evaluator *evaluator);

/* Solve the second stage of a scenario. If *solved is SP_LP_OPTIMAL, *value is min q'y. A failure of the
 * solver is no error of this call; the only error is KILTER_ERR_MEMORY. */
kilter_status sp_evaluator_recourse(sp_evaluator *evaluator, uint64_t scenario, sp_lp_status *solved,
                                    double *value, kilter_error *error);

/* Compute the least total amount by which the last scenario must violate its rows. *solved is set as by
 * sp_evaluator_recourse(). */
kilter_status sp_evaluator_miss(sp_evaluator *evaluator, sp_lp_status *solved, double *missed,
                                kilter_error *error);

/* Add weight × the slope of the last result to slope[], for each column of stage 1. Add to size[] the
 * absolute values of the slope's terms. The slope is −T'π, with duals π. At any decision x', the result is at
 * least its value at x plus slope'(x' − x).
 */
void sp_evaluator_add_slope(const sp_evaluator *evaluator, double weight, double *slope, double *size);

/* Return the error that names the unsolved scenario and the reason. */
kilter_status sp_evaluator_unsolved(const sp_evaluator *evaluator, uint64_t scenario, sp_lp_status solved,
                                    kilter_error *error);

/* Return the duals of the second-stage rows for the last solved scenario. */
const double *sp_evaluator_duals(const sp_evaluator *evaluator);
long sp_evaluator_pivots(const sp_evaluator *evaluator);

/* Running sums of costs; all members are zero before the first cost. The result's bits depend on the order of
 * the costs, so add them in the order of their scenarios. */
typedef struct sp_sums {
    uint64_t count;
    /* the first cost; the sums below add the differences of all costs from the first one */
    double origin;
    double sum, sum_lost;         /* sum, and rounding errors lost from it */
    double squares, squares_lost; /* sum of squares, and rounding errors lost from it */
} sp_sums;

void sp_sums_add(sp_sums *sums, double cost);

typedef struct sp_estimate {
    double mean;
    double standard_error; /* standard error of the mean; NaN if there are fewer than two scenarios */
    double low, high; /* bounds of the confidence interval by the normal distribution; NaN if there are fewer
                         than two scenarios */
} sp_estimate;

/* Return the estimate, with an interval for `confidence` percent, above 0 and below 100. The sums must
 * contain at least one cost. */
sp_estimate sp_sums_estimate(const sp_sums *sums, double confidence);

/* Return z with P(|N(0,1)| <= z) = confidence percent. */
double sp_normal_quantile(double confidence);

#ifdef __cplusplus
}
#endif
#endif
