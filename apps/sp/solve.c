#include "solve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "extensive.h"

/* ---- the decision to start from ---- */

/* Copy the first stage's values, and move each value into its bounds, because rounding may have put it
 * outside. */
static void copy_first_stage(const sp_problem *problem, const sp_table *table, double *x) {
    const sp_stage *stage = &problem->stage[0];
    for (int j = 0; j < stage->columns; j++)
        x[j] = fmin(stage->upper[j], fmax(stage->lower[j], sp_table_point(table)[j]));
}

static kilter_status no_memory_to_check(kilter_error *error) {
    return sp_fail(error, KILTER_ERR_MEMORY, "checking an optimum: memory ran out; sample fewer scenarios");
}

/* A reduced cost up to this size counts as zero, as in CLP. */
static const double NO_PRICE = 1e-7;

/* Return the term of column j in the lower bound on the cost. If the column's bound is infinite and its price
 * is only a rounding error, use the column's value instead of the bound. */
static double least_of_column(const sp_program *program, const double *duals, int j, double at) {
    double price = program->cost[j], size = 1 + fabs(price);
    for (int k = program->matrix.start[j]; k < program->matrix.start[j + 1]; k++) {
        double part = program->matrix.value[k] * duals[program->matrix.row[k]];
        price -= part;
        size += fabs(part);
    }
    double side = price > 0 ? program->lower[j] : program->upper[j];
    if (price == 0 || (isinf(side) && fabs(price) <= NO_PRICE * size))
        side = at;
    return price * side;
}

static double side_of(const sp_program *program, int row, double dual) {
    return dual > 0 ? program->row_lower[row] : program->row_upper[row];
}

/* Compute the lower bound on the cost that the duals prove. This bound does not depend on CLP's point. A dual
 * whose row has an infinite side is only a rounding error, and counts as 0. Error: KILTER_ERR_MEMORY. */
static kilter_status least_cost(const sp_program *program, const sp_table *table, double *least,
                                kilter_error *error) {
    double *duals = calloc((size_t)program->rows + 1, sizeof *duals);
    if (!duals)
        return no_memory_to_check(error);
    *least = 0;
    for (int i = 0; i < program->rows; i++) {
        double dual = sp_table_duals(table)[i];
        duals[i] = isinf(side_of(program, i, dual)) ? 0 : dual;
        *least += duals[i] * (duals[i] == 0 ? 0 : side_of(program, i, dual));
    }
    for (int j = 0; j < program->columns; j++)
        *least += least_of_column(program, duals, j, sp_table_point(table)[j]);
    free(duals);
    return KILTER_OK;
}

/* The tolerance of a row is this fraction of the row's largest term, or of 1 if all terms are smaller.
 * Decisions given with --at are checked with the same tolerance. */
static const double MISSED = 1e-6;

/* Find out whether the point satisfies the rows after each value is moved into its bounds. CLP ignores a
 * small distance from a bound, but a large entry magnifies this distance in a row. Error: KILTER_ERR_MEMORY.
 */
static kilter_status keeps_rows(const sp_program *program, const sp_table *table, bool *kept,
                                kilter_error *error) {
    double *activity = calloc(2 * (size_t)program->rows + 1, sizeof *activity);
    if (!activity)
        return no_memory_to_check(error);
    double *size = activity + program->rows;
    for (int j = 0; j < program->columns; j++) {
        double x = fmin(program->upper[j], fmax(program->lower[j], sp_table_point(table)[j]));
        for (int k = program->matrix.start[j]; k < program->matrix.start[j + 1]; k++) {
            double part = program->matrix.value[k] * x;
            activity[program->matrix.row[k]] += part;
            size[program->matrix.row[k]] = fmax(size[program->matrix.row[k]], fabs(part));
        }
    }
    *kept = true;
    for (int i = 0; i < program->rows; i++) {
        double beside = fmax(program->row_lower[i] - activity[i], activity[i] - program->row_upper[i]);
        *kept = *kept && beside <= MISSED * fmax(1, size[i]);
    }
    free(activity);
    return KILTER_OK;
}

typedef struct optimum {
    /* result of the solve; all other members are valid only if the result is SP_LP_OPTIMAL */
    sp_lp_status status;
    double *x;          /* values of the first stage's columns, in the caller's memory */
    double objective;   /* optimal cost without the problem's constant */
    double cost, least; /* least: lower bound that the duals prove */
    bool kept;          /* true: CLP's point satisfies the rows */
} optimum;

/* a relative gap with which every optimum that CLP reports is accepted */
static const double ANY_GAP = INFINITY;

static bool is_proven(const optimum *found, double gap) {
    return isinf(gap) || (found->kept && fabs(found->cost - found->least) <= gap * (1 + fabs(found->cost)));
}

static kilter_status take_optimum(const sp_problem *problem, const sp_program *program, const sp_table *table,
                                  optimum *found, kilter_error *error) {
    copy_first_stage(problem, table, found->x);
    *found = (optimum){.status = SP_LP_OPTIMAL, .x = found->x, .objective = sp_table_objective(table)};
    found->cost = found->objective + problem->constant;
    kilter_status status = least_cost(program, table, &found->least, error);
    found->least += problem->constant;
    return status ? status : keeps_rows(program, table, &found->kept, error);
}

/* Take CLP's optimum. If the duals do not prove the requested gap, CLP's tolerances were too wide; then solve
 * once more with smaller tolerances. */
static kilter_status prove(const sp_problem *problem, const sp_program *program, double gap, sp_table *table,
                           optimum *found, kilter_error *error) {
    kilter_status status = take_optimum(problem, program, table, found, error);
    if (status || is_proven(found, gap) || sp_table_solve_exactly(table) != SP_LP_OPTIMAL)
        return status;
    return take_optimum(problem, program, table, found, error);
}

/* Solve a program, in which the columns of the first stage come first. Free the program afterwards. */
static kilter_status solve_program(const sp_problem *problem, sp_program *program, double gap, double *x,
                                   optimum *found, kilter_error *error) {
    sp_table *table = NULL;
    kilter_status status = sp_table_new(program, &table, error);
    if (!status) {
        *found = (optimum){.status = sp_table_solve_once(table), .x = x};
        if (found->status == SP_LP_OPTIMAL)
            status = prove(problem, program, gap, table, found, error);
    }
    sp_table_free(table);
    sp_program_free(program);
    return status;
}

static kilter_status start_from_first_stage(const sp_problem *problem, double *x, kilter_error *error) {
    for (int costly = 1; costly >= 0; costly--) {
        sp_program program;
        optimum found;
        kilter_status status = sp_first_stage(problem, &program, error);
        if (status)
            return status;
        if (!costly) /* with costs of 0, the solve only finds a feasible point */
            memset(program.cost, 0, (size_t)program.columns * sizeof *program.cost);
        status = solve_program(problem, &program, ANY_GAP, x, &found, error);
        if (status || found.status == SP_LP_OPTIMAL)
            return status;
        if (found.status == SP_LP_INFEASIBLE)
            break;
    }
    return sp_fail(
        error, KILTER_ERR_TASK,
        "looking for a start: the first stage is infeasible: no decision keeps its rows and bounds; "
        "change CORE");
}

static kilter_status find_start(const sp_problem *problem, sp_solution *solution, kilter_error *error) {
    sp_program program;
    optimum found;
    kilter_status status = sp_extensive_mean(problem, &program, error);
    if (!status)
        status = solve_program(problem, &program, ANY_GAP, solution->x, &found, error);
    if (status)
        return status;
    if (found.status == SP_LP_OPTIMAL) {
        solution->mean_bound = found.cost;
        return KILTER_OK;
    }
    return start_from_first_stage(problem, solution->x, error);
}

/* ---- the loop over candidates ---- */

static kilter_status is_unbounded(const sp_sampling *sampling, const char *columns, kilter_error *error) {
    return sp_fail(error, KILTER_ERR_TASK,
                   "solving over %llu scenarios of seed %llu: the problem is unbounded: costs fall without "
                   "limit; bound %s columns",
                   (unsigned long long)sampling->scenarios, (unsigned long long)sampling->seed, columns);
}

static kilter_status ended_badly(const sp_solve_options *options, sp_step step, const sp_progress *progress,
                                 kilter_error *error) {
    unsigned long long seed = options->sampling.seed, scenario = progress->scenario;
    if (step == SP_UNBOUNDED)
        return is_unbounded(&options->sampling, "the first-stage", error);
    return sp_fail(
        error, KILTER_ERR_TASK,
        "solving over %llu scenarios of seed %llu: the problem is infeasible: no decision makes every "
        "scenario feasible. The last infeasible one was scenario %llu; change the problem",
        (unsigned long long)options->sampling.scenarios, seed, scenario);
}

static kilter_status check_count(const sp_solve_options *options, const sp_progress *progress,
                                 kilter_error *error) {
    if (options->most_candidates == 0 || progress->evaluated < options->most_candidates)
        return KILTER_OK;
    return sp_fail(error, KILTER_ERR_TASK,
                   "solving over %llu scenarios of seed %llu: the gap is not reached after %d candidates; "
                   "the best one costs %.10g; ask for a larger --gap, or for more clusters (--clusters)",
                   (unsigned long long)options->sampling.scenarios,
                   (unsigned long long)options->sampling.seed, progress->evaluated, progress->upper);
}

struct sp_solving {
    const sp_solve_options *options;
    sp_master *master;
    sp_progress *progress;
    sp_step step;
};

/* Continue the solve after the master has added the cuts of a candidate. */
static kilter_status go_on(sp_solving *s, int slot, int *next, kilter_error *error) {
    kilter_status status = sp_master_next(s->master, slot, &s->step, next, error);
    int before = s->progress->evaluated;
    sp_master_progress(s->master, s->progress);
    if (status || s->progress->evaluated == before)
        return status;
    if (s->options->watch)
        s->options->watch(s->options->user, s->progress);
    bool ends = s->step != SP_EVALUATE && s->step != SP_WAIT;
    return ends ? KILTER_OK : check_count(s->options, s->progress, error);
}

const double *sp_solving_candidate(const sp_solving *solving, int slot) {
    return sp_master_candidate(solving->master, slot);
}

kilter_status sp_solving_take(sp_solving *s, int slot, int cluster, const sp_cut *cut, int *next,
                              kilter_error *error) {
    *next = -1;
    if (s->step != SP_EVALUATE && s->step != SP_WAIT)
        return KILTER_OK;
    sp_master_take(s->master, slot, cluster, cut);
    int place = -1;
    kilter_status status = go_on(s, slot, &place, error);
    if (!status && s->step == SP_EVALUATE)
        *next = place;
    return status;
}

static kilter_status run(const sp_solve_options *options, sp_master *master, sp_progress *progress,
                         kilter_error *error) {
    sp_solving solving = {options, master, progress, SP_EVALUATE};
    kilter_status status = KILTER_OK;
    int slot = 0;
    if (options->basket > 1)
        status = options->explore(options->user, &solving, error);
    while (!status && solving.step == SP_EVALUATE) {
        status = options->evaluate(options->user, master, error);
        if (!status)
            status = go_on(&solving, slot, &slot, error);
    }
    return status || solving.step == SP_SOLVED ? status : ended_badly(options, solving.step, progress, error);
}

static bool is_far(const sp_problem *problem, const double *x, double unit) {
    static const double FAR = 1e6;
    double most = 0;
    for (int j = 0; j < problem->stage[0].columns; j++)
        most = fmax(most, fabs(x[j]));
    return most > FAR * unit;
}

static double larger(double most, double side) {
    return isfinite(side) ? fmax(most, fabs(side)) : most;
}

/* Return the largest finite side of any row or column, at least 1. */
static double largest_side(const sp_problem *problem) {
    double most = 1;
    for (const sp_stage *stage = problem->stage; stage < problem->stage + 2; stage++) {
        for (int i = 0; i < stage->rows; i++)
            most = larger(larger(larger(most, stage->rhs[i]), stage->below[i]), stage->above[i]);
        for (int j = 0; j < stage->columns; j++)
            most = larger(larger(most, stage->lower[j]), stage->upper[j]);
    }
    const sp_outcome *last = &problem->outcome[problem->variable[problem->variables - 1].end - 1];
    for (size_t c = 0; c < last->end; c++)
        if (problem->target[problem->change[c].target].kind == SP_RHS)
            most = larger(most, problem->change[c].value);
    return most;
}

/* Return whether the solve moved to ever larger decisions. In this case rounding stops the method at some
 * decision, which may look like an optimum. */
static bool runs_away(const sp_problem *problem, const sp_master *master, kilter_status status) {
    if (status == KILTER_OK)
        return is_far(problem, sp_master_incumbent(master), largest_side(problem));
    return master && status == KILTER_ERR_TASK && is_far(problem, sp_master_candidate(master, 0), 1);
}

/* Return whether the cost of the deterministic equivalent falls without limit. */
static bool falls_for_ever(const sp_problem *problem, const sp_sampling *sampling) {
    sp_program program;
    sp_table *table = NULL;
    if (sp_extensive(problem, sampling, &program, NULL))
        return false;
    bool unbounded = sp_table_new(&program, &table, NULL) == KILTER_OK &&
                     sp_table_without_answer(table) == SP_LP_UNBOUNDED;
    sp_table_free(table);
    sp_program_free(&program);
    return unbounded;
}

static kilter_status solve_from(const sp_problem *problem, const sp_solve_options *options,
                                sp_solution *solution, kilter_error *error) {
    size_t columns = (size_t)problem->stage[0].columns;
    sp_master *master = NULL;
    const sp_master_options of_master = {options->clusters, options->basket, options->gap, solution->x};
    kilter_status status = sp_master_new(problem, &of_master, &master, error);
    if (!status)
        status = run(options, master, &solution->progress, error);
    if (runs_away(problem, master, status) && falls_for_ever(problem, &options->sampling))
        status = is_unbounded(&options->sampling, "its", error);
    if (!status)
        memcpy(solution->x, sp_master_incumbent(master), columns * sizeof(double));
    sp_master_free(master);
    return status;
}

static kilter_status make_solution(const sp_problem *problem, sp_solution *solution, kilter_error *error) {
    *solution = (sp_solution){.mean_bound = NAN};
    solution->x = calloc((size_t)problem->stage[0].columns + 1, sizeof(double));
    if (!solution->x)
        return sp_fail(error, KILTER_ERR_MEMORY, "solving: memory ran out; use a machine with more memory");
    return KILTER_OK;
}

kilter_status sp_solve(const sp_problem *problem, const sp_solve_options *options, sp_solution *solution,
                       kilter_error *error) {
    sp_solution made;
    kilter_status status = make_solution(problem, &made, error);
    if (!status && options->start)
        memcpy(made.x, options->start, (size_t)problem->stage[0].columns * sizeof(double));
    else if (!status)
        status = find_start(problem, &made, error);
    if (!status)
        status = solve_from(problem, options, &made, error);
    if (status)
        sp_solution_free(&made);
    else
        *solution = made;
    return status;
}

void sp_solution_free(sp_solution *solution) {
    free(solution->x);
    solution->x = NULL;
}

static kilter_status is_infeasible(const sp_sampling *sampling, kilter_error *error) {
    return sp_fail(error, KILTER_ERR_TASK,
                   "solving over %llu scenarios of seed %llu: the problem is infeasible: no decision makes "
                   "every scenario feasible; change the problem",
                   (unsigned long long)sampling->scenarios, (unsigned long long)sampling->seed);
}

/* Fail with the error that says why the problem has no optimum. */
static kilter_status no_optimum(const sp_problem *problem, const sp_sampling *sampling, sp_lp_status solved,
                                double *x, kilter_error *error) {
    kilter_status status = start_from_first_stage(problem, x, error);
    if (status)
        return status;
    if (solved == SP_LP_INFEASIBLE)
        return is_infeasible(sampling, error);
    if (solved == SP_LP_UNBOUNDED)
        return is_unbounded(sampling, "its", error);
    return sp_fail(
        error, KILTER_ERR_TASK,
        "solving the deterministic equivalent of %llu scenarios of seed %llu: CLP gave up; look for "
        "very large or very small numbers in the problem, or leave out --method de",
        (unsigned long long)sampling->scenarios, (unsigned long long)sampling->seed);
}

static kilter_status not_proven(const sp_sampling *sampling, const optimum *found, kilter_error *error) {
    unsigned long long scenarios = sampling->scenarios, seed = sampling->seed;
    if (!found->kept)
        return sp_fail(
            error, KILTER_ERR_TASK,
            "solving the deterministic equivalent of %llu scenarios of seed %llu: CLP's answer misses "
            "rows by more than rounding; look for very large or very small numbers in the problem",
            scenarios, seed);
    if (isinf(found->least))
        return sp_fail(
            error, KILTER_ERR_TASK,
            "solving the deterministic equivalent of %llu scenarios of seed %llu: CLP's answer costs %.10g, "
            "but its duals prove no bound; look for very large or very small numbers in "
            "the problem, or bound its columns",
            scenarios, seed, found->cost);
    return sp_fail(
        error, KILTER_ERR_TASK,
        "solving the deterministic equivalent of %llu scenarios of seed %llu: CLP's answer costs %.10g, but "
        "its duals prove only that the cost is at least %.10g; look for very large or very small numbers "
        "in the problem, or ask for a larger --gap",
        scenarios, seed, found->cost, found->least);
}

kilter_status sp_solve_extensive(const sp_problem *problem, const sp_sampling *sampling, double gap,
                                 sp_solution *solution, kilter_error *error) {
    sp_solution made;
    sp_program program;
    optimum found;
    kilter_status status = make_solution(problem, &made, error);
    if (!status)
        status = sp_extensive(problem, sampling, &program, error);
    if (!status)
        status = solve_program(problem, &program, gap, made.x, &found, error);
    if (!status && found.status != SP_LP_OPTIMAL)
        status = no_optimum(problem, sampling, found.status, made.x, error);
    else if (!status && !is_proven(&found, gap))
        status = not_proven(sampling, &found, error);
    if (status) {
        sp_solution_free(&made);
        return status;
    }
    double lower = fmin(found.cost, found.least); /* rounding may make the bound larger than the cost */
    made.progress = (sp_progress){.upper = found.cost, .model = lower, .lower = lower};
    *solution = made;
    return KILTER_OK;
}

/* Return the number of clusters. With more clusters, a solve needs fewer candidates, but the master needs
 * more time for each candidate. For example, ssn with 10 000 scenarios and a good start needs 35, 22 and 16
 * candidates with 100, 200 and 400 clusters. These solves take 45, 33 and 24 s of CPU time. */
int sp_clusters_for(uint64_t scenarios) {
    enum { FEWEST = 200, MOST = 400, SCENARIOS_EACH = 25 };
    uint64_t clusters = scenarios / SCENARIOS_EACH;
    clusters = clusters < FEWEST ? FEWEST : clusters > MOST ? MOST : clusters;
    return (int)(clusters < scenarios ? clusters : scenarios);
}
