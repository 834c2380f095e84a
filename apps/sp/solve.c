#include "solve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "extensive.h"

/* ---- the start ---- */

/* Rounding may leave a solution beside its bounds. */
static void copy_first_stage(const sp_problem *problem, const sp_table *table, double *x) {
    const sp_stage *stage = &problem->stage[0];
    for (int j = 0; j < stage->columns; j++)
        x[j] = fmin(stage->upper[j], fmax(stage->lower[j], sp_table_point(table)[j]));
}

/* Solve a program that has the first stage's columns first. The program is freed. */
static kilter_status solve_program(const sp_problem *problem, sp_program *program, double *x, double *optimum,
                                   sp_lp_status *solved, kilter_error *error) {
    sp_table *table = NULL;
    kilter_status status = sp_table_new(program, &table, error);
    if (!status) {
        *solved = sp_table_solve_once(table);
        if (*solved == SP_LP_OPTIMAL) {
            copy_first_stage(problem, table, x);
            *optimum = sp_table_objective(table) + problem->constant;
        }
    }
    sp_table_free(table);
    sp_program_free(program);
    return status;
}

static kilter_status start_from_first_stage(const sp_problem *problem, double *x, kilter_error *error) {
    for (int costly = 1; costly >= 0; costly--) {
        sp_program program;
        sp_lp_status solved = SP_LP_STOPPED;
        double optimum;
        kilter_status status = sp_first_stage(problem, &program, error);
        if (status)
            return status;
        if (!costly)
            memset(program.cost, 0, (size_t)program.columns * sizeof *program.cost);
        status = solve_program(problem, &program, x, &optimum, &solved, error);
        if (status || solved == SP_LP_OPTIMAL)
            return status;
        if (solved == SP_LP_INFEASIBLE)
            break;
    }
    return kl_fail(
        error, KILTER_ERR_TASK,
        "looking for a start: the first stage is infeasible: no decision keeps its rows and bounds; "
        "change CORE");
}

static kilter_status find_start(const sp_problem *problem, sp_solution *solution, kilter_error *error) {
    sp_program program;
    sp_lp_status solved = SP_LP_STOPPED;
    kilter_status status = sp_extensive_mean(problem, &program, error);
    if (!status)
        status = solve_program(problem, &program, solution->x, &solution->mean_bound, &solved, error);
    if (status || solved == SP_LP_OPTIMAL)
        return status;
    return start_from_first_stage(problem, solution->x, error);
}

/* ---- the loop ---- */

static kilter_status ended_badly(const sp_solve_options *options, sp_step step, const sp_progress *progress,
                                 kilter_error *error) {
    unsigned long long seed = options->sampling.seed, scenario = progress->scenario;
    if (step == SP_UNBOUNDED)
        return kl_fail(
            error, KILTER_ERR_TASK,
            "solving over %llu scenarios of seed %llu: the problem is unbounded: costs fall without "
            "limit; bound the first-stage columns",
            (unsigned long long)options->sampling.scenarios, seed);
    return kl_fail(
        error, KILTER_ERR_TASK,
        "solving over %llu scenarios of seed %llu: the problem is infeasible: no decision lets every "
        "scenario be met, the last that was not is scenario %llu; change the problem",
        (unsigned long long)options->sampling.scenarios, seed, scenario);
}

static kilter_status check_count(const sp_solve_options *options, const sp_progress *progress,
                                 kilter_error *error) {
    if (options->most_candidates == 0 || progress->evaluated < options->most_candidates)
        return KILTER_OK;
    return kl_fail(
        error, KILTER_ERR_TASK,
        "solving over %llu scenarios of seed %llu: not within the gap after %d candidates, the best "
        "costs %.10g; ask for a larger --gap, or for more clusters (--clusters)",
        (unsigned long long)options->sampling.scenarios, (unsigned long long)options->sampling.seed,
        progress->evaluated, progress->upper);
}

struct sp_solving {
    const sp_solve_options *options;
    sp_master *master;
    sp_progress *progress;
    sp_step step;
};

/* Cuts of a candidate were taken. */
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

static kilter_status solve_from(const sp_problem *problem, const sp_solve_options *options,
                                sp_solution *solution, kilter_error *error) {
    size_t columns = (size_t)problem->stage[0].columns;
    sp_master *master = NULL;
    kilter_status status =
        sp_master_new(problem, options->clusters, options->basket, options->gap, solution->x, &master, error);
    if (!status)
        status = run(options, master, &solution->progress, error);
    if (!status)
        memcpy(solution->x, sp_master_incumbent(master), columns * sizeof(double));
    sp_master_free(master);
    return status;
}

static kilter_status make_solution(const sp_problem *problem, sp_solution *solution, kilter_error *error) {
    *solution = (sp_solution){.mean_bound = NAN};
    solution->x = calloc((size_t)problem->stage[0].columns + 1, sizeof(double));
    if (!solution->x)
        return kl_fail(error, KILTER_ERR_MEMORY, "solving: memory ran out; use a machine with more of it");
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

kilter_status sp_solve_extensive(const sp_problem *problem, const sp_sampling *sampling,
                                 sp_solution *solution, kilter_error *error) {
    sp_solution made;
    sp_program program;
    double optimum = NAN;
    sp_lp_status solved = SP_LP_STOPPED;
    kilter_status status = make_solution(problem, &made, error);
    if (!status)
        status = sp_extensive(problem, sampling, &program, error);
    if (!status)
        status = solve_program(problem, &program, made.x, &optimum, &solved, error);
    if (!status && solved != SP_LP_OPTIMAL)
        status = kl_fail(error, KILTER_ERR_TASK,
                         "solving the deterministic equivalent of %llu scenarios of seed %llu: %s",
                         (unsigned long long)sampling->scenarios, (unsigned long long)sampling->seed,
                         solved == SP_LP_INFEASIBLE  ? "it is infeasible; change the problem"
                         : solved == SP_LP_UNBOUNDED ? "it is unbounded; bound its columns"
                                                     : "CLP gave up; leave out --method de");
    made.progress = (sp_progress){.upper = optimum, .model = optimum, .lower = optimum};
    if (status)
        sp_solution_free(&made);
    else
        *solution = made;
    return status;
}

/* More clusters take fewer candidates and more of the master's time, which matters less the longer a
 * candidate takes: on ssn, N = 10 000 from a warm start, 100, 200 and 400 take 45, 33 and 24 s of CPU time
 * for 35, 22 and 16 candidates. */
int sp_clusters_for(uint64_t scenarios) {
    enum { FEWEST = 200, MOST = 400, SCENARIOS_EACH = 25 };
    uint64_t clusters = scenarios / SCENARIOS_EACH;
    clusters = clusters < FEWEST ? FEWEST : clusters > MOST ? MOST : clusters;
    return (int)(clusters < scenarios ? clusters : scenarios);
}
