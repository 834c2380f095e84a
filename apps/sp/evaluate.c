#include "evaluate.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "lp.h"
#include "sample.h"

struct sp_evaluator {
    const sp_problem *problem;
    sp_lp *lp;
    double *x;
    uint64_t seed;
    double first_stage; /* constant + c'x */
    bool random_cost;
    size_t *outcome;      /* by variable */
    double *fixed_shift;  /* by row: T x with CORE's T */
    double *rhs, *shift;  /* by row, of the present scenario */
    double *target_value; /* by target; for the mean scenario */
};

static void fixed_part(sp_evaluator *e) {
    const sp_problem *problem = e->problem;
    e->first_stage = problem->constant;
    for (int j = 0; j < problem->stage[0].columns; j++) {
        e->first_stage += problem->stage[0].cost[j] * e->x[j];
        for (int at = problem->t.start[j]; at < problem->t.start[j + 1]; at++)
            e->fixed_shift[problem->t.row[at]] += problem->t.value[at] * e->x[j];
    }
    for (int t = 0; t < problem->targets; t++)
        e->random_cost |= problem->target[t].kind == SP_COST;
}

static void begin_scenario(sp_evaluator *e, const sp_lp_data *data) {
    const sp_stage *stage = &e->problem->stage[1];
    memcpy(e->rhs, stage->rhs, (size_t)stage->rows * sizeof(double));
    memcpy(e->shift, e->fixed_shift, (size_t)stage->rows * sizeof(double));
    if (e->random_cost)
        memcpy(data->cost, stage->cost, (size_t)stage->columns * sizeof(double));
}

static void set_target(sp_evaluator *e, const sp_lp_data *data, int at, double value) {
    const sp_target *target = &e->problem->target[at];
    switch (target->kind) {
    case SP_RHS:
        e->rhs[target->row] = value;
        break;
    case SP_TECHNOLOGY:
        e->shift[target->row] += (value - target->core) * e->x[target->column];
        break;
    case SP_COST:
        data->cost[target->column] = value;
        break;
    }
}

static void set_rows(const sp_evaluator *e, const sp_lp_data *data) {
    const sp_stage *stage = &e->problem->stage[1];
    for (int i = 0; i < stage->rows; i++) {
        double at = e->rhs[i] - e->shift[i];
        data->row_lower[i] = stage->below[i] == -INFINITY ? -DBL_MAX : at + stage->below[i];
        data->row_upper[i] = stage->above[i] == INFINITY ? DBL_MAX : at + stage->above[i];
    }
}

/* The basis of the mean scenario at x starts every scenario. Where it has none (the mean may be infeasible
 * although every scenario is not, and the other way round) the slack basis does. */
static kilter_status start_from_mean(sp_evaluator *e, kilter_error *error) {
    sp_lp_data data;
    kilter_status status = sp_lp_begin(e->lp, &data, error);
    if (status)
        return status;
    begin_scenario(e, &data);
    sp_target_means(e->problem, e->target_value);
    for (int t = 0; t < e->problem->targets; t++)
        set_target(e, &data, t, e->target_value[t]);
    set_rows(e, &data);
    if (sp_lp_solve(e->lp) == SP_LP_OPTIMAL)
        sp_lp_keep(e->lp);
    return KILTER_OK;
}

static bool make_arrays(sp_evaluator *e) {
    const sp_problem *problem = e->problem;
    size_t columns = (size_t)problem->stage[0].columns, rows = (size_t)problem->stage[1].rows;
    e->x = calloc(columns + 1, sizeof(double));
    e->outcome = calloc((size_t)problem->variables + 1, sizeof(size_t));
    e->fixed_shift = calloc(rows + 1, sizeof(double));
    e->rhs = calloc(rows + 1, sizeof(double));
    e->shift = calloc(rows + 1, sizeof(double));
    e->target_value = calloc((size_t)problem->targets + 1, sizeof(double));
    return e->x && e->outcome && e->fixed_shift && e->rhs && e->shift && e->target_value;
}

kilter_status sp_evaluator_new(const sp_problem *problem, const double *x, uint64_t seed,
                               sp_evaluator **evaluator, kilter_error *error) {
    sp_evaluator *e = calloc(1, sizeof *e);
    if (e) {
        e->problem = problem;
        e->seed = seed;
    }
    if (!e || !make_arrays(e)) {
        sp_evaluator_free(e);
        return kl_fail(error, KILTER_ERR_MEMORY,
                       "preparing the second stage: memory ran out; use fewer workers");
    }
    memcpy(e->x, x, (size_t)problem->stage[0].columns * sizeof(double));
    fixed_part(e);
    kilter_status status = sp_lp_new(&problem->stage[1], &problem->w, &e->lp, error);
    if (!status)
        status = start_from_mean(e, error);
    if (status)
        sp_evaluator_free(e);
    else
        *evaluator = e;
    return status;
}

void sp_evaluator_free(sp_evaluator *evaluator) {
    if (!evaluator)
        return;
    sp_lp_free(evaluator->lp);
    free(evaluator->x);
    free(evaluator->outcome);
    free(evaluator->fixed_shift);
    free(evaluator->rhs);
    free(evaluator->shift);
    free(evaluator->target_value);
    free(evaluator);
}

static const char *failure_text(sp_lp_status status) {
    switch (status) {
    case SP_LP_INFEASIBLE:
        return "its second stage is infeasible: no recourse at this decision; change the decision or the "
               "problem";
    case SP_LP_UNBOUNDED:
        return "its second stage is unbounded: costs fall without limit; bound the second-stage columns";
    default:
        return "the solver gave up on its second stage; look for very large or very small numbers in the "
               "problem";
    }
}

/* The reason goes to `why`, so that the caller can say which scenario it was. */
static kilter_status solve(sp_evaluator *e, const size_t *outcome, double *cost, const char **why,
                           kilter_error *error) {
    const sp_problem *problem = e->problem;
    sp_lp_data data;
    kilter_status status = sp_lp_begin(e->lp, &data, error);
    if (status)
        return status;
    begin_scenario(e, &data);
    for (int k = 0; k < problem->variables; k++) {
        const sp_outcome *at = &problem->outcome[outcome[k]];
        for (size_t c = at->first; c < at->end; c++)
            set_target(e, &data, problem->change[c].target, problem->change[c].value);
    }
    set_rows(e, &data);
    sp_lp_status solved = sp_lp_solve(e->lp);
    double value = solved == SP_LP_OPTIMAL ? sp_lp_objective(e->lp) : NAN;
    if (!isfinite(value)) {
        *why = failure_text(solved);
        return KILTER_ERR_TASK;
    }
    *cost = e->first_stage + value;
    return KILTER_OK;
}

kilter_status sp_evaluator_cost(sp_evaluator *evaluator, uint64_t scenario, double *cost,
                                kilter_error *error) {
    const char *why = NULL;
    sp_sample(evaluator->problem, evaluator->seed, scenario, evaluator->outcome);
    kilter_status status = solve(evaluator, evaluator->outcome, cost, &why, error);
    return why ? kl_fail(error, status, "scenario %llu of seed %llu: %s", (unsigned long long)scenario,
                         (unsigned long long)evaluator->seed, why)
               : status;
}

kilter_status sp_evaluator_cost_of(sp_evaluator *evaluator, const size_t *outcome, double *cost,
                                   kilter_error *error) {
    const char *why = NULL;
    kilter_status status = solve(evaluator, outcome, cost, &why, error);
    return why ? kl_fail(error, status, "the scenario asked for: %s", why) : status;
}

const double *sp_evaluator_duals(const sp_evaluator *evaluator) {
    return sp_lp_duals(evaluator->lp);
}

long sp_evaluator_pivots(const sp_evaluator *evaluator) {
    return sp_lp_pivots(evaluator->lp);
}

/* ---- the estimate ---- */

/* Neumaier's sum: what an addition loses is kept apart, whichever of the two is larger. */
static void add_compensated(double *sum, double *lost, double value) {
    double total = *sum + value;
    *lost += fabs(*sum) >= fabs(value) ? (*sum - total) + value : (value - total) + *sum;
    *sum = total;
}

void sp_sums_add(sp_sums *sums, double cost) {
    if (sums->count++ == 0)
        sums->origin = cost;
    double distance = cost - sums->origin;
    add_compensated(&sums->sum, &sums->sum_lost, distance);
    add_compensated(&sums->squares, &sums->squares_lost, distance * distance);
}

double sp_normal_quantile(double confidence) {
    double outside = 1 - confidence / 100, low = 0, high = 40;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (erfc(middle / sqrt(2)) > outside)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

sp_estimate sp_sums_estimate(const sp_sums *sums, double confidence) {
    double n = (double)sums->count;
    double sum = sums->sum + sums->sum_lost, squares = sums->squares + sums->squares_lost;
    double mean = sums->origin + sum / n;
    if (sums->count < 2)
        return (sp_estimate){mean, NAN, NAN, NAN};
    double variance = fmax(0, (squares - sum * sum / n) / (n - 1));
    double error = sqrt(variance / n);
    double reach = sp_normal_quantile(confidence) * error;
    return (sp_estimate){mean, error, mean - reach, mean + reach};
}
