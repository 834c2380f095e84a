/* From a start to a decision that is optimal over the sample. Who evaluates is the caller's business. */
#ifndef SP_SOLVE_H
#define SP_SOLVE_H

#include "master.h"

/* Have every cluster's cut at the master's candidate, in slot 0, taken. */
typedef kilter_status (*sp_evaluate_fn)(void *user, sp_master *master, kilter_error *error);

/* A solve with several candidates under way. */
typedef struct sp_solving sp_solving;

/* Have the candidate in slot 0 evaluated, and all that follow from its cuts. */
typedef kilter_status (*sp_explore_fn)(void *user, sp_solving *solving, kilter_error *error);

/* The decision to evaluate; good until its last cut is taken. */
const double *sp_solving_candidate(const sp_solving *solving, int slot);
/* A cluster's cut at it. *next: the slot of a candidate that is to be evaluated from now on, −1: none is.
 * After the end cuts are welcome, and nothing comes of them. */
kilter_status sp_solving_take(sp_solving *solving, int slot, int cluster, const sp_cut *cut, int *next,
                              kilter_error *error);

/* After each candidate. */
typedef void (*sp_watch_fn)(void *user, const sp_progress *progress);

typedef struct sp_solve_options {
    sp_sampling sampling;
    int clusters;
    double gap;              /* relative */
    const double *start;     /* NULL: the solution for the mean scenario */
    int most_candidates;     /* after which it gives up; 0: never */
    int basket;              /* candidates under way at once, at most */
    sp_evaluate_fn evaluate; /* with a basket of 1 */
    sp_explore_fn explore;   /* with a larger one */
    sp_watch_fn watch;       /* NULL: nobody */
    void *user;
} sp_solve_options;

typedef struct sp_solution {
    double *x;            /* by columns of stage 1 */
    double mean_bound;    /* optimum of the mean scenario, at most that of the whole distribution where only
                             right-hand sides and T are random; NaN: it has none */
    sp_progress progress; /* at the end */
} sp_solution;

/* KILTER_ERR_TASK: infeasible or unbounded, with the scenario where one is to blame; too many candidates. */
kilter_status sp_solve(const sp_problem *problem, const sp_solve_options *options, sp_solution *solution,
                       kilter_error *error);
void sp_solution_free(sp_solution *solution); /* zeroed ones may be */

/* The same by the deterministic equivalent, here and at once. KILTER_ERR_TASK also where what CLP found and
 * what its duals prove are farther apart than the relative gap. */
kilter_status sp_solve_extensive(const sp_problem *problem, const sp_sampling *sampling, double gap,
                                 sp_solution *solution, kilter_error *error);

/* How many clusters to cut `scenarios` into. */
int sp_clusters_for(uint64_t scenarios);

#endif
