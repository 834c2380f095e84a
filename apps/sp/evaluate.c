#include "evaluate.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

struct sp_evaluator {
    const sp_problem *problem;
    sp_lp *lp;
    double *x;
    sp_sampling sampling;
    double first_stage; /* constant + c'x */
    bool random_cost, random_recourse;
    size_t *outcome;     /* outcome[variable]: the variable's outcome in the present scenario */
    double *fixed_shift; /* T x for each row, with all entries of T as in CORE */
    double *rhs, *shift; /* right-hand side, and T x, of each row in the present scenario */
    /* value of each random number in the present scenario; used for the mean scenario, and if W is random */
    double *target_value;
    /* program for feasibility cuts, made when first needed. Its columns are y, then the shortfall and the
     * excess of each row. */
    sp_lp *elastic;
    const double *duals; /* duals of the last solve */
    uint64_t remembered; /* the evaluator keeps bases for the scenarios 0 … remembered − 1 */
    unsigned char **own; /* own[scenario]: basis of the scenario; NULL: not solved yet */
    /* own_room: length of own[]; found: number of solves that began from the scenario's own basis */
    uint64_t own_room, found;
};

static void fixed_part(sp_evaluator *e) {
    const sp_problem *problem = e->problem;
    e->first_stage = problem->constant;
    memset(e->fixed_shift, 0, (size_t)problem->stage[1].rows * sizeof(double));
    for (int j = 0; j < problem->stage[0].columns; j++) {
        e->first_stage += problem->stage[0].cost[j] * e->x[j];
        for (int at = problem->t.start[j]; at < problem->t.start[j + 1]; at++)
            e->fixed_shift[problem->t.row[at]] += problem->t.value[at] * e->x[j];
    }
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
    case SP_RECOURSE: /* write_recourse() writes random entries of W */
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

/* Write the random entries of W into the program's matrix. Call this before sp_lp_begin(), which makes the
 * model from the matrix. */
static void write_recourse(const sp_evaluator *e, sp_lp *lp) {
    const sp_problem *problem = e->problem;
    for (int t = 0; t < problem->targets; t++)
        if (problem->target[t].kind == SP_RECOURSE)
            sp_lp_entries(lp)[problem->target[t].entry] = e->target_value[t];
}

/* Keep the optimal basis of the mean scenario at x as the start of every scenario. If the mean scenario has
 * no optimum, keep the slack basis. The mean scenario may be infeasible although all scenarios are feasible.
 */
static kilter_status start_from_mean(sp_evaluator *e, kilter_error *error) {
    sp_lp_data data;
    sp_target_means(e->problem, e->target_value);
    write_recourse(e, e->lp);
    kilter_status status = sp_lp_begin(e->lp, &data, error);
    if (status)
        return status;
    begin_scenario(e, &data);
    for (int t = 0; t < e->problem->targets; t++)
        set_target(e, &data, t, e->target_value[t]);
    set_rows(e, &data);
    if (sp_lp_solve(e->lp) == SP_LP_OPTIMAL)
        sp_lp_keep(e->lp);
    e->duals = sp_lp_duals(e->lp);
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
        e->sampling = (sp_sampling){.seed = seed, .scenarios = 1};
    }
    if (!e || !make_arrays(e)) {
        sp_evaluator_free(e);
        return sp_fail(error, KILTER_ERR_MEMORY,
                       "preparing the second stage: memory ran out; use fewer workers");
    }
    memcpy(e->x, x, (size_t)problem->stage[0].columns * sizeof(double));
    for (int t = 0; t < problem->targets; t++) {
        e->random_cost |= problem->target[t].kind == SP_COST;
        e->random_recourse |= problem->target[t].kind == SP_RECOURSE;
    }
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
    sp_lp_free(evaluator->elastic);
    for (uint64_t i = 0; i < evaluator->own_room; i++)
        free(evaluator->own[i]);
    free(evaluator->own);
    free(evaluator->x);
    free(evaluator->outcome);
    free(evaluator->fixed_shift);
    free(evaluator->rhs);
    free(evaluator->shift);
    free(evaluator->target_value);
    free(evaluator);
}

void sp_evaluator_sample(sp_evaluator *e, const sp_sampling *sampling) {
    e->sampling = *sampling;
}

double sp_evaluator_weight(const sp_evaluator *e) {
    return sp_scenario_weight(e->problem, &e->sampling, e->outcome);
}

kilter_status sp_evaluator_move(sp_evaluator *e, const double *x, kilter_error *error) {
    memcpy(e->x, x, (size_t)e->problem->stage[0].columns * sizeof(double));
    fixed_part(e);
    kilter_status status = sp_lp_forget(e->lp, error);
    return status ? status : start_from_mean(e, error);
}

kilter_status sp_evaluator_remember(sp_evaluator *e, uint64_t scenarios, kilter_error *error) {
    if (scenarios <= e->own_room) {
        e->remembered = scenarios;
        return KILTER_OK;
    }
    unsigned char **own = realloc(e->own, scenarios * sizeof *own);
    if (!own)
        return sp_fail(error, KILTER_ERR_MEMORY,
                       "making room for the bases of %llu scenarios: memory ran out; use --mode reproducible",
                       (unsigned long long)scenarios);
    for (uint64_t i = e->own_room; i < scenarios; i++)
        own[i] = NULL;
    e->own = own;
    e->own_room = e->remembered = scenarios;
    return KILTER_OK;
}

uint64_t sp_evaluator_found(const sp_evaluator *e) {
    return e->found;
}

static const char *failure_text(sp_lp_status status) {
    switch (status) {
    case SP_LP_INFEASIBLE:
        return "its second stage is infeasible: no values of the second-stage columns meet all rows at this "
               "decision; change the decision or the problem";
    case SP_LP_UNBOUNDED:
        return "its second stage is unbounded: costs fall without limit; bound the second-stage columns";
    default:
        return "the solver gave up on its second stage; look for very large or very small numbers in the "
               "problem";
    }
}

static kilter_status begin(const sp_evaluator *e, const size_t *outcome, sp_lp *lp, sp_lp_data *data,
                           kilter_error *error) {
    if (e->random_recourse) {
        sp_target_values(e->problem, outcome, e->target_value);
        write_recourse(e, lp);
    }
    return sp_lp_begin(lp, data, error);
}

/* Write the right-hand sides and costs of a scenario into the program. */
static void write_scenario(sp_evaluator *e, const size_t *outcome, const sp_lp_data *data) {
    const sp_problem *problem = e->problem;
    begin_scenario(e, data);
    for (int k = 0; k < problem->variables; k++) {
        const sp_outcome *at = &problem->outcome[outcome[k]];
        for (size_t c = at->first; c < at->end; c++)
            set_target(e, data, problem->change[c].target, problem->change[c].value);
    }
    set_rows(e, data);
}

/* Solve from the basis `start`, or from the mean scenario's basis if `start` is NULL. If that solve fails,
 * try other methods. */
static kilter_status solve_from(sp_evaluator *e, const size_t *outcome, const unsigned char *start,
                                sp_lp_status *solved, kilter_error *error) {
    sp_lp_data data;
    kilter_status status = begin(e, outcome, e->lp, &data, error);
    if (status)
        return status;
    write_scenario(e, outcome, &data);
    *solved = start ? sp_lp_solve_from(e->lp, start) : sp_lp_solve(e->lp);
    for (int try = 0; *solved == SP_LP_STOPPED && try < SP_LP_TRIES; try++) {
        status = sp_lp_begin_anew(e->lp, try, &data, error);
        if (status)
            return status;
        write_scenario(e, outcome, &data);
        *solved = sp_lp_solve_anew(e->lp, try);
    }
    return KILTER_OK;
}

/* Solve a scenario. On entry, *own is the scenario's basis from an earlier solve, or NULL; on return, it is
 * the new basis. If `own` itself is NULL, no basis is kept. */
static kilter_status solve(sp_evaluator *e, const size_t *outcome, unsigned char **own, sp_lp_status *solved,
                           double *value, kilter_error *error) {
    kilter_status status = solve_from(e, outcome, own ? *own : NULL, solved, error);
    if (status)
        return status;
    e->found += own && *own;
    e->duals = sp_lp_duals(e->lp);
    if (*solved != SP_LP_OPTIMAL)
        return KILTER_OK;
    *value = sp_lp_objective(e->lp);
    if (!isfinite(*value))
        *solved = SP_LP_STOPPED;
    if (own && !*own)
        *own = malloc(sp_lp_basis_bytes(e->lp)); /* if memory runs out here, the next solve of the scenario
                                                    starts from the mean scenario's basis again */
    if (own && *own)
        sp_lp_basis(e->lp, *own);
    return KILTER_OK;
}

kilter_status sp_evaluator_recourse(sp_evaluator *e, uint64_t scenario, sp_lp_status *solved, double *value,
                                    kilter_error *error) {
    sp_scenario(e->problem, &e->sampling, scenario, e->outcome);
    return solve(e, e->outcome, scenario < e->remembered ? &e->own[scenario] : NULL, solved, value, error);
}

kilter_status sp_evaluator_unsolved(const sp_evaluator *e, uint64_t scenario, sp_lp_status solved,
                                    kilter_error *error) {
    return sp_fail(error, KILTER_ERR_TASK, "scenario %llu of seed %llu: %s", (unsigned long long)scenario,
                   (unsigned long long)e->sampling.seed, failure_text(solved));
}

kilter_status sp_evaluator_cost(sp_evaluator *e, uint64_t scenario, double *cost, kilter_error *error) {
    sp_lp_status solved = SP_LP_OPTIMAL;
    double value = 0;
    kilter_status status = sp_evaluator_recourse(e, scenario, &solved, &value, error);
    if (!status && solved != SP_LP_OPTIMAL)
        return sp_evaluator_unsolved(e, scenario, solved, error);
    if (!status)
        *cost = e->first_stage + value;
    return status;
}

kilter_status sp_evaluator_cost_of(sp_evaluator *e, const size_t *outcome, double *cost,
                                   kilter_error *error) {
    sp_lp_status solved = SP_LP_OPTIMAL;
    double value = 0;
    kilter_status status = solve(e, outcome, NULL, &solved, &value, error);
    if (!status && solved != SP_LP_OPTIMAL)
        return sp_fail(error, KILTER_ERR_TASK, "the given scenario: %s", failure_text(solved));
    if (!status)
        *cost = e->first_stage + value;
    return status;
}

/* ---- the elastic second stage, whose rows may be violated at a cost ---- */

static void put_miss(sp_matrix *matrix, sp_stage *stage, int column, int row, double value) {
    int at = matrix->start[column];
    matrix->row[at] = row;
    matrix->value[at] = value;
    matrix->start[column + 1] = at + 1;
    stage->cost[column] = 1;
    stage->upper[column] = INFINITY;
}

static bool fill_elastic(const sp_problem *problem, sp_stage *stage, sp_matrix *matrix) {
    const sp_stage *two = &problem->stage[1];
    size_t columns = (size_t)two->columns, all = (size_t)stage->columns;
    size_t entries = (size_t)problem->w.start[two->columns], more = 2 * (size_t)two->rows;
    stage->cost = calloc(all + 1, sizeof(double));
    stage->lower = calloc(all + 1, sizeof(double));
    stage->upper = calloc(all + 1, sizeof(double));
    matrix->start = calloc(all + 1, sizeof(int));
    matrix->row = calloc(entries + more + 1, sizeof(int));
    matrix->value = calloc(entries + more + 1, sizeof(double));
    if (!stage->cost || !stage->lower || !stage->upper || !matrix->start || !matrix->row || !matrix->value)
        return false;
    memcpy(stage->lower, two->lower, columns * sizeof(double));
    memcpy(stage->upper, two->upper, columns * sizeof(double));
    memcpy(matrix->start, problem->w.start, (columns + 1) * sizeof(int));
    memcpy(matrix->row, problem->w.row, entries * sizeof(int));
    memcpy(matrix->value, problem->w.value, entries * sizeof(double));
    for (int i = 0; i < two->rows; i++) {
        put_miss(matrix, stage, two->columns + 2 * i, i, 1);
        put_miss(matrix, stage, two->columns + 2 * i + 1, i, -1);
    }
    return true;
}

static kilter_status make_elastic(sp_evaluator *e, kilter_error *error) {
    const sp_stage *two = &e->problem->stage[1];
    sp_stage stage = {.rows = two->rows,
                      .columns = two->columns + 2 * two->rows,
                      .rhs = two->rhs,
                      .below = two->below,
                      .above = two->above};
    sp_matrix matrix = {0};
    kilter_status status;
    if (fill_elastic(e->problem, &stage, &matrix))
        status = sp_lp_new(&stage, &matrix, &e->elastic, error);
    else
        status = sp_fail(error, KILTER_ERR_MEMORY,
                         "preparing a feasibility cut: memory ran out; use fewer workers");
    free(stage.cost);
    free(stage.lower);
    free(stage.upper);
    free(matrix.start);
    free(matrix.row);
    free(matrix.value);
    return status;
}

kilter_status sp_evaluator_miss(sp_evaluator *e, sp_lp_status *solved, double *missed, kilter_error *error) {
    kilter_status status = e->elastic ? KILTER_OK : make_elastic(e, error);
    sp_lp_data data, plain;
    if (!status)
        status = begin(e, e->outcome, e->elastic, &data, error);
    if (!status)
        status = sp_lp_begin(e->lp, &plain, error);
    if (status)
        return status;
    data.cost = plain.cost; /* write_scenario() writes costs, but the elastic program must keep its own */
    write_scenario(e, e->outcome, &data);
    *solved = sp_lp_solve(e->elastic);
    for (int try = 0; *solved == SP_LP_STOPPED && try < SP_LP_TRIES; try++) {
        status = sp_lp_begin_anew(e->elastic, try, &data, error);
        if (status)
            return status;
        data.cost = plain.cost;
        write_scenario(e, e->outcome, &data);
        *solved = sp_lp_solve_anew(e->elastic, try);
    }
    e->duals = sp_lp_duals(e->elastic);
    if (*solved == SP_LP_OPTIMAL)
        *missed = sp_lp_objective(e->elastic);
    return KILTER_OK;
}

static void add_part(double part, double *sum, double *size) {
    *sum -= part;
    *size += fabs(part);
}

/* Add the slope in two parts: first with T as in CORE, then with the difference between each random entry of
 * T and its value in CORE. */
void sp_evaluator_add_slope(const sp_evaluator *e, double weight, double *slope, double *size) {
    const sp_problem *p = e->problem;
    for (int j = 0; j < p->stage[0].columns; j++)
        for (int at = p->t.start[j]; at < p->t.start[j + 1]; at++)
            add_part(weight * p->t.value[at] * e->duals[p->t.row[at]], &slope[j], &size[j]);
    for (int k = 0; k < p->variables; k++) {
        const sp_outcome *outcome = &p->outcome[e->outcome[k]];
        for (size_t c = outcome->first; c < outcome->end; c++) {
            const sp_target *target = &p->target[p->change[c].target];
            if (target->kind == SP_TECHNOLOGY)
                add_part(weight * (p->change[c].value - target->core) * e->duals[target->row],
                         &slope[target->column], &size[target->column]);
        }
    }
}

const double *sp_evaluator_duals(const sp_evaluator *evaluator) {
    return evaluator->duals;
}

long sp_evaluator_pivots(const sp_evaluator *evaluator) {
    return sp_lp_pivots(evaluator->lp);
}

/* ---- the estimate over many scenarios ---- */

/* Add a cost by Neumaier's method, which sums the rounding error of each addition separately. */
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
