/* The master of the trust-region L-shaped method: given the cuts at one decision, the next to evaluate.
 *
 *   min  c'x + Σ θ_j   s.t.  first stage,  ‖x − incumbent‖∞ <= Δ,  θ_j >= each cut of cluster j,  feasibility
 * cuts
 *
 * It knows no clock and no worker: the same cuts in the same order give the same decisions, bit for bit; with
 * one candidate at a time, in any order. The rules for Δ, and for candidates side by side (a basket), are
 * those of Linderoth and Wright (Computational Optimization and Applications 24, 2003). */
#ifndef SP_MASTER_H
#define SP_MASTER_H

#include "cut.h"

typedef struct sp_master sp_master;

typedef struct sp_master_options {
    int clusters;        /* a cut of each at every candidate */
    int basket;          /* candidates under way at once, at most */
    double gap;          /* relative, at which to end */
    const double *start; /* the first candidate, by columns of stage 1; copied */
} sp_master_options;

/* Begin with the first candidate in slot 0. Keeps a pointer to `problem`. */
kilter_status sp_master_new(const sp_problem *problem, const sp_master_options *options, sp_master **master,
                            kilter_error *error);
void sp_master_free(sp_master *master); /* NULL does nothing */

/* The decision to evaluate, by columns of stage 1; good until its last cut is taken and sp_master_next(). */
const double *sp_master_candidate(const sp_master *master, int slot);

/* What the cluster says about the candidate; copied. */
void sp_master_take(sp_master *master, int slot, int cluster, const sp_cut *cut);

typedef enum sp_step {
    SP_EVALUATE,   /* there is another candidate */
    SP_WAIT,       /* not before more cuts of those under way are taken */
    SP_SOLVED,     /* to the gap asked for */
    SP_INFEASIBLE, /* no decision lets every scenario be met */
    SP_UNBOUNDED,  /* costs fall without limit */
} sp_step;

/* A cut of the candidate in `slot` was taken. When it was the last one, decide about the candidate and find
 * the next; when most are there and the basket has room, find the next already. SP_EVALUATE: it is in slot
 * *next. KILTER_ERR_TASK: numbers too bad for the master; KILTER_ERR_MEMORY. */
kilter_status sp_master_next(sp_master *master, int slot, sp_step *step, int *next, kilter_error *error);

typedef struct sp_progress {
    int evaluated;     /* candidates */
    int major;         /* of them became the incumbent */
    double upper;      /* cost of the incumbent over the sample; INFINITY: there is none yet */
    double model;      /* optimum of the master; −INFINITY: not solved yet */
    double lower;      /* the best bound on the sample's optimum proved so far; −INFINITY: none */
    double radius;     /* Δ */
    int cuts;          /* in the master now */
    uint64_t scenario; /* of the last feasibility cut; UINT64_MAX: there was none */
} sp_progress;

void sp_master_progress(const sp_master *master, sp_progress *progress);

/* The best decision so far, by columns of stage 1; NULL: none was feasible. */
const double *sp_master_incumbent(const sp_master *master);

#endif
