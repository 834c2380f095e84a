/* The master of the trust-region L-shaped method: given the cuts at one decision, the next to evaluate.
 *
 *   min  c'x + Σ θ_j   s.t.  first stage,  ‖x − incumbent‖∞ <= Δ,  θ_j >= each cut of cluster j,  feasibility
 * cuts
 *
 * It uses no clock and no worker: the same cuts in the same order give the same bits. With one candidate at a
 * time, the order does not matter. The rules for Δ, and for candidates side by side (a basket), are those of
 * Linderoth and Wright (Computational Optimization and Applications 24, 2003). */
#ifndef SP_MASTER_H
#define SP_MASTER_H

#include "cut.h"

typedef struct sp_master sp_master;

typedef struct sp_master_options {
    int clusters;        /* each gives a cut at every candidate */
    int basket;          /* most candidates under way at once */
    double gap;          /* relative gap at which to end */
    const double *start; /* the first candidate, by columns of stage 1; copied */
} sp_master_options;

/* Begin with the first candidate in slot 0. Keeps a pointer to `problem`. */
kilter_status sp_master_new(const sp_problem *problem, const sp_master_options *options, sp_master **master,
                            kilter_error *error);
void sp_master_free(sp_master *master); /* NULL does nothing */

/* Return the decision to evaluate, by columns of stage 1; valid until sp_master_next() after its last cut. */
const double *sp_master_candidate(const sp_master *master, int slot);

/* Take the cluster's cut at the candidate; the cut is copied. */
void sp_master_take(sp_master *master, int slot, int cluster, const sp_cut *cut);

typedef enum sp_step {
    SP_EVALUATE,   /* there is another candidate */
    SP_WAIT,       /* more cuts of candidates under way are needed first */
    SP_SOLVED,     /* to the requested gap */
    SP_INFEASIBLE, /* at no decision are all scenarios feasible */
    SP_UNBOUNDED,  /* costs fall without limit */
} sp_step;

/* Continue after a cut of the candidate in `slot` was taken. After its last cut, judge the candidate and make
 * the next. After most cuts, if the basket has room, make the next already. SP_EVALUATE: it is in slot *next.
 * KILTER_ERR_TASK: numbers too bad for the master; KILTER_ERR_MEMORY. */
kilter_status sp_master_next(sp_master *master, int slot, sp_step *step, int *next, kilter_error *error);

typedef struct sp_progress {
    int evaluated;     /* candidates */
    int major;         /* candidates that became the incumbent */
    double upper;      /* the incumbent's cost over the sample; INFINITY: there is none yet */
    double model;      /* the master's optimum; −INFINITY: not solved yet */
    double lower;      /* best proved lower bound on the sample's optimum; −INFINITY: none */
    double radius;     /* Δ */
    int cuts;          /* number of cuts in the master */
    uint64_t scenario; /* scenario of the last feasibility cut; UINT64_MAX: there was none */
} sp_progress;

void sp_master_progress(const sp_master *master, sp_progress *progress);

/* Return the best decision so far, by columns of stage 1; NULL: none was feasible. */
const double *sp_master_incumbent(const sp_master *master);

#endif
