/* A cut is one linear inequality, computed from a cluster of scenarios at a decision. */
#ifndef SP_CUT_H
#define SP_CUT_H

#include "evaluate.h"
#include "support.h"

/* Q is the cluster's share of the expected cost of stage 2. If every scenario of the cluster is feasible at
 * decision x, the cut for every decision x' is Q(x') >= value + slope'(x' − x). Otherwise the cut is 0 >=
 * value + slope'(x' − x). This second cut holds for every x' at which scenario number `scenario` is
 * feasible. */
typedef struct sp_cut {
    bool feasible;
    double value;
    double *slope; /* slope[columns of stage 1]: slope of the cut, in memory of the caller */
    /* number of the scenario that violates its rows most; 0 if all scenarios are feasible */
    uint64_t scenario;
    uint64_t found; /* number of the cluster's scenarios whose solve began from their own basis */
} sp_cut;

/* Return the range [first, end) of scenarios that belong to cluster number `at` of `clusters` clusters. */
sp_span sp_cluster(uint64_t scenarios, uint64_t clusters, uint64_t at);

/* Make the cut of scenarios [span.lo, span.hi) at the evaluator's decision. For KILTER_ERR_TASK, the error's
 * text names a scenario that is unbounded or not solved. */
kilter_status sp_cut_make(sp_evaluator *evaluator, sp_span span, int columns, sp_cut *cut,
                          kilter_error *error);

/* Write and read a cut as bytes; slope[0 … columns). Reading returns false if the bytes are not a cut. */
void sp_cut_put(sp_buffer *bytes, const sp_cut *cut, int columns);
bool sp_cut_get(const void *data, size_t size, int columns, sp_cut *cut);

#endif
