/* What a cluster of scenarios says about a decision, as one linear inequality. */
#ifndef SP_CUT_H
#define SP_CUT_H

#include "evaluate.h"
#include "support.h"

/* Where every scenario of the cluster can be met:  Q(x') >= value + slope'(x' − x)  for the cluster's share Q
 * of the expected cost of stage 2. Else, of the scenario that misses its rows most:  0 >= value + slope'(x' −
 * x) for every x' at which it can be met. */
typedef struct sp_cut {
    bool feasible;
    double value;
    double *slope;     /* by columns of stage 1; the caller's memory */
    uint64_t scenario; /* the one that misses most; 0 when feasible */
    uint64_t found;    /* of the cluster's scenarios began from a basis of their own */
} sp_cut;

/* Cluster `at` of `clusters` holds scenarios [first, end) of `scenarios`. */
sp_span sp_cluster(uint64_t scenarios, uint64_t clusters, uint64_t at);

/* The cut of scenarios [span.lo, span.hi) at the evaluator's decision.
 * KILTER_ERR_TASK names a scenario that is unbounded or not solved. */
kilter_status sp_cut_make(sp_evaluator *evaluator, sp_span span, int columns, sp_cut *cut,
                          kilter_error *error);

/* As bytes; slope[0 … columns). False: those are not the bytes of a cut. */
void sp_cut_put(sp_buffer *bytes, const sp_cut *cut, int columns);
bool sp_cut_get(const void *data, size_t size, int columns, sp_cut *cut);

#endif
