/* The master of the trust-region L-shaped method: take the cuts at one decision, and find the next decision
 * to evaluate.
 *
 *   min  c'x + Σ θ_j
 *   s.t.  first stage,  ‖x − incumbent‖∞ <= Δ,  θ_j >= each cut of cluster j,  feasibility cuts
 *
 * The same cuts in the same order give the same bits, because the master uses no clock and no data about
 * workers. With one candidate at a time, the order of the cuts does not matter. The rules for Δ, and for
 * several candidates at a time (a basket), come from Linderoth and Wright (Computational Optimization and
 * Applications 24, 2003).
 */
#ifndef SP_MASTER_H
#define SP_MASTER_H

#include "cut.h"

typedef struct sp_master sp_master;

typedef struct sp_master_options {
    int clusters;        /* number of clusters; each cluster has one cut at every candidate */
    int basket;          /* greatest number of candidates evaluated at once */
    double gap;          /* relative gap at which the solve ends */
    const double *start; /* the first candidate, start[columns of stage 1]; it is copied */
} sp_master_options;

/* Make a master with the first candidate in slot 0. A slot is a place for a candidate that is being
 * evaluated. The master keeps a pointer to `problem`. */
kilter_status sp_master_new(const sp_problem *problem, const sp_master_options *options, sp_master **master,
                            kilter_error *error);
void sp_master_free(sp_master *master); /* free a master; NULL is allowed */

/* Return the decision to evaluate, for each column of stage 1. The decision is valid until all cuts at it are
 * taken and sp_master_next() is called. */
const double *sp_master_candidate(const sp_master *master, int slot);

/* Take a cluster's cut at the candidate in `slot`; the cut is copied. */
void sp_master_take(sp_master *master, int slot, int cluster, const sp_cut *cut);

typedef enum sp_step {
    SP_EVALUATE,   /* there is a new candidate to evaluate */
    SP_WAIT,       /* the master waits for more cuts at candidates that are being evaluated */
    SP_SOLVED,     /* the incumbent is optimal within the requested gap */
    SP_INFEASIBLE, /* no decision makes all scenarios feasible */
    SP_UNBOUNDED,  /* costs fall without limit */
} sp_step;

/* Continue after a cut of the candidate in `slot` was taken. After the candidate's last cut, judge the
 * candidate and make the next one. If the basket has a free slot, make the next candidate as soon as most
 * cuts have arrived. If *step is SP_EVALUATE, the new candidate is in slot *next. KILTER_ERR_TASK: the
 * master's solver cannot handle the problem's numbers. KILTER_ERR_MEMORY: memory ran out. */
kilter_status sp_master_next(sp_master *master, int slot, sp_step *step, int *next, kilter_error *error);

typedef struct sp_progress {
    int evaluated; /* number of candidates evaluated */
    int major;     /* number of candidates that became the incumbent */
    double upper;  /* cost of the incumbent over the sample; INFINITY: there is no incumbent yet */
    double model;  /* optimum of the master; −INFINITY: the master is not solved yet */
    /* best proved lower bound on the sample's optimum; −INFINITY: no bound is proved yet */
    double lower;
    double radius;     /* Δ */
    int cuts;          /* number of cuts in the master */
    uint64_t scenario; /* scenario of the last feasibility cut; UINT64_MAX: there was no feasibility cut */
} sp_progress;

void sp_master_progress(const sp_master *master, sp_progress *progress);

/* Return the best decision so far, for each column of stage 1; NULL: no decision was feasible. */
const double *sp_master_incumbent(const sp_master *master);

#endif
