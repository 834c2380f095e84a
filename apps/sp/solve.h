/* Find the decision that is optimal over the sampled scenarios. The caller supplies a function that evaluates
 * candidate decisions. */
#ifndef SP_SOLVE_H
#define SP_SOLVE_H

#include "master.h"

/* Evaluate the master's candidate in slot 0, and pass the cut of every cluster to the master. */
typedef kilter_status (*sp_evaluate_fn)(void *user, sp_master *master, kilter_error *error);

/* The state of a solve that evaluates several candidates at the same time. */
typedef struct sp_solving sp_solving;

/* Evaluate the candidate in slot 0, and all further candidates that sp_solving_take() announces. */
typedef kilter_status (*sp_explore_fn)(void *user, sp_solving *solving, kilter_error *error);

/* Return the decision to evaluate. The decision is valid until its last cut is taken. */
const double *sp_solving_candidate(const sp_solving *solving, int slot);
/* Take a cluster's cut at the candidate. *next becomes the slot of a new candidate to evaluate, or −1 if
 * there is none. Cuts that arrive after the end of the solve are accepted and ignored. */
kilter_status sp_solving_take(sp_solving *solving, int slot, int cluster, const sp_cut *cut, int *next,
                              kilter_error *error);

/* A function that the solve calls after each candidate. */
typedef void (*sp_watch_fn)(void *user, const sp_progress *progress);

typedef struct sp_solve_options {
    sp_sampling sampling;
    int clusters;
    double gap;              /* relative gap at which the solve ends */
    const double *start;     /* first candidate; NULL: start at the solution for the mean scenario */
    int most_candidates;     /* greatest number of candidates, after which the solve fails; 0: no limit */
    int basket;              /* greatest number of candidates evaluated at once */
    sp_evaluate_fn evaluate; /* function that evaluates a candidate; used if `basket` is 1 */
    sp_explore_fn explore;   /* function that evaluates several candidates; used if `basket` is above 1 */
    sp_watch_fn watch;       /* called after each candidate; NULL: not called */
    void *user;
} sp_solve_options;

typedef struct sp_solution {
    double *x; /* x[columns of stage 1]: the decision found */
    /* optimum of the mean scenario; NaN: the mean scenario has no optimum. If only right-hand sides and T are
     * random, this optimum is a lower bound for the whole distribution */
    double mean_bound;
    sp_progress progress; /* progress at the end of the solve */
} sp_solution;

/* Solve the problem with cuts (the L-shaped method). Return KILTER_ERR_TASK if the problem is infeasible or
 * unbounded, or if the limit of candidates was reached. If the problem is infeasible, the error's text may
 * name an infeasible scenario. */
kilter_status sp_solve(const sp_problem *problem, const sp_solve_options *options, sp_solution *solution,
                       kilter_error *error);
/* free the contents of a solution, which may also be all zero */
void sp_solution_free(sp_solution *solution);

/* Solve the deterministic equivalent in this process. Return KILTER_ERR_TASK in three cases: no
 * optimum is found; the duals prove a bound that differs from CLP's cost by more than the relative gap; CLP's
 * answer misses rows. */
kilter_status sp_solve_extensive(const sp_problem *problem, const sp_sampling *sampling, double gap,
                                 sp_solution *solution, kilter_error *error);

/* Return the number of clusters into which to divide `scenarios`. */
int sp_clusters_for(uint64_t scenarios);

#endif
