/* For tests: evaluators in this process that do the work of the farm in a solve. Include this after cmocka.h.
 */
#ifndef SP_PLAYERS_H
#define SP_PLAYERS_H

#include <math.h>

#include "solve.h"
#include "test_support.h"

typedef struct players {
    const sp_problem *problem;
    sp_sampling sampling;
    /* count: number of evaluators in evaluator[], which take clusters in turn */
    int clusters, columns, count;
    uint64_t order; /* seed for the order of clusters; 0: ascending */
    int basket;     /* greatest number of candidates evaluated at once; 0 means 1 */
    bool remember;  /* true: evaluators keep the optimal bases of scenarios */
    sp_evaluator *evaluator[5];
    double *last; /* the candidate evaluated last */
} players;

static inline kilter_status move_all(players *p, const double *x, kilter_error *error) {
    kilter_status status = KILTER_OK;
    for (int i = 0; !status && i < p->count; i++) {
        if (p->evaluator[i])
            status = sp_evaluator_move(p->evaluator[i], x, error);
        else
            status = sp_evaluator_new(p->problem, x, 0, &p->evaluator[i], error);
        if (!status)
            sp_evaluator_sample(p->evaluator[i], &p->sampling);
        if (!status)
            status = sp_evaluator_remember(p->evaluator[i], p->remember ? p->sampling.scenarios : 0, error);
    }
    return status;
}

static inline kilter_status evaluate(void *user, sp_master *master, kilter_error *error) {
    players *p = user;
    sp_cut cut = {.slope = p->last};
    kilter_status status = move_all(p, sp_master_candidate(master, 0), error);
    for (int t = 0; !status && t < p->clusters; t++) {
        /* 7919 is prime and does not divide any number of clusters here, so each cluster is taken once */
        int cluster = p->order ? (int)((uint64_t)t * 7919 + p->order) % p->clusters : t;
        sp_span span = sp_cluster(p->sampling.scenarios, (uint64_t)p->clusters, (uint64_t)cluster);
        status = sp_cut_make(p->evaluator[t % p->count], span, p->columns, &cut, error);
        if (!status)
            sp_master_take(master, 0, cluster, &cut);
    }
    return status;
}

/* An errand: a cut that must still be computed and passed to the master. */
typedef struct errand {
    int slot, cluster;
} errand;

/* Draw the next of `count` errands at random, with p->order as seed. */
static inline errand draw_errand(players *p, errand *under_way, size_t *count, uint64_t draw) {
    size_t at = p->order ? (size_t)(sp_mix64(p->order * 1000003 + draw) % *count) : 0;
    errand drawn = under_way[at];
    memmove(under_way + at, under_way + at + 1, (--*count - at) * sizeof *under_way);
    return drawn;
}

static inline kilter_status explore(void *user, sp_solving *solving, kilter_error *error) {
    players *p = user;
    errand *under_way = calloc((size_t)p->basket * (size_t)p->clusters, sizeof *under_way);
    sp_cut cut = {.slope = p->last};
    size_t count = 0;
    int next = 0;
    kilter_status status = KILTER_OK;
    for (uint64_t draw = 0; !status && (next >= 0 || count > 0); draw++) {
        for (int t = 0; next >= 0 && t < p->clusters; t++)
            under_way[count++] = (errand){next, t};
        errand e = draw_errand(p, under_way, &count, draw);
        sp_span span = sp_cluster(p->sampling.scenarios, (uint64_t)p->clusters, (uint64_t)e.cluster);
        status = move_all(p, sp_solving_candidate(solving, e.slot), error);
        if (!status)
            status = sp_cut_make(p->evaluator[draw % (uint64_t)p->count], span, p->columns, &cut, error);
        if (!status)
            status = sp_solving_take(solving, e.slot, e.cluster, &cut, &next, error);
    }
    free(under_way);
    return status;
}

static inline kilter_status solve_as(players *p, double gap, const double *start, sp_solution *solution,
                                     kilter_error *error) {
    if (p->basket == 0)
        p->basket = 1;
    sp_solve_options options = {.sampling = p->sampling,
                                .clusters = p->clusters,
                                .gap = gap,
                                .start = start,
                                .most_candidates = 2000,
                                .basket = p->basket,
                                .evaluate = evaluate,
                                .explore = explore,
                                .user = p};
    p->columns = p->problem->stage[0].columns;
    p->last = calloc((size_t)p->columns, sizeof(double));
    if (p->count == 0)
        p->count = 1;
    kilter_status status = sp_solve(p->problem, &options, solution, error);
    for (int i = 0; i < p->count; i++)
        sp_evaluator_free(p->evaluator[i]);
    free(p->last);
    return status;
}

static inline sp_solution solved(players p, double gap) {
    sp_solution solution;
    kilter_error error = {.text = ""};
    if (solve_as(&p, gap, NULL, &solution, &error))
        fail_msg("%s", error.text);
    return solution;
}

static inline sp_solution extensive_solution(const sp_problem *problem, sp_sampling sampling, double gap) {
    sp_solution solution;
    kilter_error error = {.text = ""};
    if (sp_solve_extensive(problem, &sampling, gap, &solution, &error))
        fail_msg("%s", error.text);
    return solution;
}

static inline double extensive_cost(const sp_problem *problem, sp_sampling sampling) {
    sp_solution solution = extensive_solution(problem, sampling, 1e-6);
    double cost = solution.progress.upper;
    sp_solution_free(&solution);
    return cost;
}

static inline void assert_close(double value, double expected, double relative) {
    if (!(fabs(value - expected) <= relative * (1 + fabs(expected))))
        fail_msg("%.12g is not %.12g", value, expected);
}

#endif
