#include "solve_farm.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "extensive.h"
#include "forecast.h"
#include "inputs.h"
#include "job.h"
#include "support.h"

/* The order that all tasks of a run get as input, and memory for its copies. */
typedef struct orders {
    sp_order order;       /* order of the present run */
    sp_buffer input;      /* the order packed as bytes */
    kilter_bytes *inputs; /* inputs of the tasks, one for each cluster; all are equal */
    size_t inputs_room;
    sp_buffer files; /* shared data of all runs: the problem's files */
    bool files_sent;
    /* number of the series of runs in which workers keep scenarios' bases: 1 + the sample's number; 0:
     * workers keep no bases
     */
    uint64_t series;
} orders;

/* Errors that end the solve. */
typedef struct failures {
    kilter_error task; /* error of the failed task with the lowest number */
    uint64_t number;   /* number of the failed task in `task` */
    kilter_error next; /* error that occurred while the solver made the next candidate */
} failures;

/* Candidates that are evaluated at the same time, in one growing run of the farm. */
typedef struct basket {
    sp_solving *solving;
    int *slot_of; /* slot_of[0 … made−1]: slots of the candidates, in the order in which they were made */
    uint64_t made, room;
} basket;

/* Times of a solve, or of a part of it. */
typedef struct times {
    /* begun_s: time at the start; farm_s: seconds in runs of the farm; work_s: busy seconds of all workers,
     * scaled to their mean speed */
    double begun_s, farm_s, work_s;
} times;

typedef struct solver {
    kilter_farm *farm;
    sp_options options;
    sp_inputs in;
    int columns; /* number of columns of stage 1 */
    sp_stages stages;
    int clusters; /* number of clusters of the present sample */
    orders orders;
    failures failures;
    basket basket;
    sp_master *master; /* the solver's master; used only if candidates are evaluated one at a time */
    sp_cut cut;        /* memory for one cut */
    double *costs;     /* costs[scenario]: costs of the scenarios of the out-of-sample estimate */
    bool watched;      /* true: progress lines are printed */
    double first_gap, first_gap_s;
    times all, stage; /* times of the whole command and of the present sample */
    double ahead_s;   /* seconds that the master computed during runs of the farm */
    uint32_t workers,
        last_workers; /* workers: largest number of workers in a run; last_workers: number in the last run */
    /* evaluated: number of scenario solves for all candidates; found: number of solves that began from the
     * scenario's own basis */
    uint64_t evaluated, found;
    sp_times times; /* mean times of a candidate, which the answer contains */
    sp_solution solution;
} solver;

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- one run of the farm ---- */

static void fail_task(solver *s, const kilter_outcome *outcome, const char *what) {
    if (s->failures.task.status && s->failures.number < outcome->index)
        return;
    s->failures.number = outcome->index;
    sp_fail(&s->failures.task, KILTER_ERR_TASK, "%s: %s",
            s->orders.order.wanted == SP_WANT_COSTS ? "estimating out of sample" : "solving",
            outcome->error ? outcome->error : what);
}

static void take_cut(const kilter_outcome *outcome, void *user) {
    solver *s = user;
    if (outcome->status == KILTER_OK &&
        sp_cut_get(outcome->result.data, outcome->result.size, s->columns, &s->cut)) {
        sp_master_take(s->master, 0, (int)outcome->index, &s->cut);
        s->found += s->cut.found;
    } else {
        fail_task(s, outcome, "the result of a worker is not a cut");
    }
}

static void take_costs(const kilter_outcome *outcome, void *user) {
    solver *s = user;
    sp_span span = sp_cluster(s->orders.order.sampling.scenarios, s->orders.order.clusters, outcome->index);
    sp_reader reader = sp_reader_of(outcome->result.data, outcome->result.size);
    for (uint64_t i = span.lo; i < span.hi; i++)
        s->costs[i] = sp_get_f64(&reader);
    if (outcome->status != KILTER_OK || !sp_reader_done(&reader))
        fail_task(s, outcome, "the result of a worker is not a list of costs");
}

static kilter_status no_memory(kilter_error *error) {
    return sp_fail(error, KILTER_ERR_MEMORY,
                   "packing tasks for the workers: memory ran out; use a machine with more memory");
}

static kilter_status pack_order(solver *s, kilter_error *error) {
    sp_buffer_clear(&s->orders.input);
    sp_order_pack(&s->orders.input, &s->orders.order, s->columns);
    size_t tasks = (size_t)s->orders.order.clusters;
    if (tasks > s->orders.inputs_room) {
        kilter_bytes *inputs = realloc(s->orders.inputs, tasks * sizeof *inputs);
        if (!inputs)
            return no_memory(error);
        s->orders.inputs = inputs;
        s->orders.inputs_room = tasks;
    }
    for (size_t t = 0; t < tasks; t++)
        s->orders.inputs[t] = (kilter_bytes){s->orders.input.data, s->orders.input.size};
    return s->orders.input.failed ? no_memory(error) : KILTER_OK;
}

static kilter_status write_program(const solver *s, const sp_program *program, const char *path,
                                   kilter_error *error) {
    sp_new_file file;
    kilter_status status = sp_new_file_open(path, &file, error);
    if (status)
        return status;
    sp_extensive_write(file.out, s->in.problem, program);
    return sp_new_file_end(&file, error);
}

/* Return the first scenario of the failed task that fails in this process, too; UINT64_MAX: no scenario fails
 * here. */
static uint64_t find_culprit(solver *s) {
    sp_span span =
        sp_cluster(s->orders.order.sampling.scenarios, s->orders.order.clusters, s->failures.number);
    uint64_t culprit = UINT64_MAX;
    sp_evaluator *evaluator = NULL;
    if (sp_evaluator_new(s->in.problem, s->orders.order.x, 0, &evaluator, NULL))
        return culprit;
    sp_evaluator_sample(evaluator, &s->orders.order.sampling);
    for (uint64_t i = span.lo; i < span.hi && culprit == UINT64_MAX; i++)
        if (sp_cut_make(evaluator, (sp_span){i, i + 1}, s->columns, &s->cut, NULL))
            culprit = i;
    sp_evaluator_free(evaluator);
    return culprit;
}

/* Write the scenario that was not solved to a file, so that the user can examine it. */
static void write_culprit(solver *s) {
    char path[64];
    sp_program program;
    kilter_error failure = s->failures.task;
    uint64_t culprit = find_culprit(s);
    snprintf(path, sizeof path, "kilter-sp-scenario-%llu.mps", (unsigned long long)culprit);
    if (culprit == UINT64_MAX || sp_extensive_one(s->in.problem, &s->orders.order.sampling, culprit,
                                                  s->orders.order.x, &program, NULL))
        return;
    if (write_program(s, &program, path, NULL) == KILTER_OK)
        sp_fail(&s->failures.task, failure.status, "%.400s; written to %s", failure.text, path);
    sp_program_free(&program);
}

/* Run the farm with one task for each cluster. Each task carries out s->orders.order. */
static kilter_status run_order(solver *s, kilter_done_fn done, bool grows, kilter_error *error) {
    kilter_status status = pack_order(s, error);
    if (status)
        return status;
    kilter_run run = {.tasks = s->orders.order.clusters,
                      .inputs = s->orders.inputs,
                      .done = done,
                      .user = s,
                      .work = (double)s->orders.order.sampling.scenarios,
                      .order = grows && !s->options.fast ? KILTER_BY_INDEX : KILTER_BY_ARRIVAL,
                      .grows = grows,
                      .series = grows ? 0 : s->orders.series};
    if (!s->orders.files_sent)
        run.shared = (kilter_bytes){s->orders.files.data, s->orders.files.size};
    double begun_s = now_s();
    status = kilter_farm_run(s->farm, &run, error);
    s->all.farm_s += now_s() - begun_s;
    s->stage.farm_s += now_s() - begun_s;
    s->orders.files_sent = true;
    kilter_farm_summary summary;
    kilter_farm_summary_get(s->farm, &summary);
    s->stage.work_s += summary.bound_s * summary.workers;
    s->last_workers = summary.workers;
    if (summary.workers > s->workers)
        s->workers = summary.workers;
    if (!s->failures.task.status)
        return status;
    write_culprit(s);
    if (error)
        *error = s->failures.task;
    return s->failures.task.status;
}

/* ---- several candidates at a time: one growing run of the farm ---- */

static kilter_status note_candidate(solver *s, int slot, kilter_error *error) {
    if (s->basket.made == s->basket.room) {
        int *slot_of = realloc(s->basket.slot_of, (2 * s->basket.made + 16) * sizeof *slot_of);
        if (!slot_of)
            return no_memory(error);
        s->basket.slot_of = slot_of;
        s->basket.room = 2 * s->basket.made + 16;
    }
    s->basket.slot_of[s->basket.made++] = slot;
    s->evaluated += s->orders.order.sampling.scenarios;
    s->orders.order.x = sp_solving_candidate(s->basket.solving, slot);
    return pack_order(s, error);
}

/* Add the tasks of the candidate in `slot` to the run; the farm copies the orders. */
static kilter_status go_on_with(solver *s, int slot, kilter_error *error) {
    kilter_status status = note_candidate(s, slot, error);
    return status ? status
                  : kilter_farm_add(s->farm, s->orders.order.clusters, s->orders.inputs, NULL, error);
}

static void explore_on(const kilter_outcome *outcome, void *user) {
    solver *s = user;
    uint64_t cluster = outcome->index % s->orders.order.clusters;
    int slot = s->basket.slot_of[outcome->index / s->orders.order.clusters], next = -1;
    double begun_s = now_s();
    if (s->failures.task.status || s->failures.next.status)
        return;
    if (outcome->status != KILTER_OK ||
        !sp_cut_get(outcome->result.data, outcome->result.size, s->columns, &s->cut)) {
        /* a candidate cannot be completed if one of its tasks failed */
        s->orders.order.x = sp_solving_candidate(s->basket.solving, slot);
        fail_task(s, outcome, "the result of a worker is not a cut");
        s->failures.number = cluster;
        return;
    }
    s->found += s->cut.found;
    kilter_status status =
        sp_solving_take(s->basket.solving, slot, (int)cluster, &s->cut, &next, &s->failures.next);
    if (!status && next >= 0)
        go_on_with(s, next, &s->failures.next);
    s->ahead_s += now_s() - begun_s;
}

/* Take cuts in the order of their tasks, so that the candidates do not depend on the workers. */
static kilter_status explore(void *user, sp_solving *solving, kilter_error *error) {
    solver *s = user;
    s->basket.solving = solving;
    s->basket.made = 0;
    kilter_status status = note_candidate(s, 0, error);
    if (!status)
        status = run_order(s, explore_on, true, error);
    return status || !s->failures.next.status
               ? status
               : sp_fail(error, s->failures.next.status, "%s", s->failures.next.text);
}

static kilter_status evaluate(void *user, sp_master *master, kilter_error *error) {
    solver *s = user;
    s->master = master;
    s->orders.order.x = sp_master_candidate(master, 0);
    s->evaluated += s->orders.order.sampling.scenarios;
    return run_order(s, take_cut, false, error);
}

/* ---- the progress line ---- */

/* Estimate the time left if the gap continues to shrink at the same rate. Return NaN if this time is not
 * known. */
static double time_left_s(solver *s, double gap) {
    if (!isfinite(gap) || !(gap > 0))
        return NAN;
    if (s->first_gap == 0) {
        s->first_gap = gap;
        s->first_gap_s = now_s();
    }
    double shrunk = log(s->first_gap / gap);
    return shrunk > 0 ? (now_s() - s->first_gap_s) * fmax(0, log(gap / s->options.gap)) / shrunk : NAN;
}

static void watch(void *user, const sp_progress *progress) {
    solver *s = user;
    if (!s->watched)
        return;
    double gap = (progress->upper - progress->model) / (1 + fabs(progress->upper));
    fprintf(stderr, "\r\033[K%llu scenarios, ", (unsigned long long)s->orders.order.sampling.scenarios);
    sp_progress_print(stderr, progress, now_s() - s->all.begun_s, time_left_s(s, gap));
    fflush(stderr);
}

/* ---- samples of growing size ---- */

static bool takes_all(const solver *s) {
    return s->options.grow.count == 0 && s->options.scenarios == 0;
}

/* Plan a sample, and smaller samples before it. Each of the smaller samples has a tenth of the scenarios of
 * the next sample. Each solve starts at the solution of the previous sample, so it needs few candidates.
 * Compared with a start from the mean scenario, ssn takes a third of the time (5000 scenarios: 19 s of CPU
 * time against 71 s), and storm takes two thirds. */
static void climb_to(sp_stages *stages, uint64_t scenarios, int room) {
    enum { RATIO = 10, FEWEST = 50, LARGER = 2 };
    uint64_t least = stages->count > 0 ? LARGER * stages->scenarios[stages->count - 1] : FEWEST;
    int from = stages->count;
    uint64_t size = scenarios;
    for (; room > 0 && size / RATIO >= FEWEST && size / RATIO >= least; size /= RATIO, room--)
        stages->count++;
    for (int i = stages->count++; i >= from; i--, scenarios /= RATIO)
        stages->scenarios[i] = scenarios;
}

sp_stages sp_stages_towards(uint64_t scenarios) {
    sp_stages stages = {.count = 0};
    climb_to(&stages, scenarios, SP_STAGES_MAX - 1);
    return stages;
}

sp_stages sp_stages_through(const sp_stages *asked) {
    sp_stages stages = {.count = 0};
    for (int i = 0; i < asked->count; i++)
        climb_to(&stages, asked->scenarios[i], SP_STAGES_MAX - stages.count - (asked->count - i));
    return stages;
}

static sp_stages plan_stages(const solver *s) {
    if (s->options.grow.count)
        return s->options.at ? s->options.grow : sp_stages_through(&s->options.grow);
    uint64_t scenarios = takes_all(s) ? (uint64_t)sp_scenario_count(s->in.problem) : s->options.scenarios;
    if (s->options.at || s->options.extensive)
        return (sp_stages){.scenarios = {scenarios}, .count = 1};
    return sp_stages_towards(scenarios);
}

static bool is_last(const solver *s, int stage) {
    return stage + 1 == s->stages.count;
}

static sp_sampling sampling_of(const solver *s, int stage) {
    return (sp_sampling){.draw = takes_all(s) && is_last(s, stage) ? SP_ALL
                                 : s->options.latin                ? SP_LATIN
                                                                   : SP_INDEPENDENT,
                         .seed = s->options.seed,
                         .scenarios = s->stages.scenarios[stage]};
}

static kilter_status check_whole(const solver *s, kilter_error *error) {
    double possible = sp_scenario_count(s->in.problem);
    if (!takes_all(s) || possible <= SP_SCENARIOS_MAX)
        return KILTER_OK;
    return sp_fail(error, KILTER_ERR_RANGE,
                   "taking all scenarios of %.200s: there are %.4g, more than the limit of %d; give a "
                   "number with --scenarios",
                   s->options.stoch, possible, SP_SCENARIOS_MAX);
}

/* Relative gap at which the solve of a sample ends, except for the last sample. This gap is large, because
 * the optimum of a smaller sample is only the start for the next sample. */
static const double STAGE_GAP = 1e-4;

/* The number of candidates is assumed proportional to 1 + 126/T for T clusters. For ssn with N = 1000 and T
 * from 10 to 1000, the measured number was within a sixth of 23 + 2900/T. */
static const double CANDIDATES_SAVED = 126;

double sp_candidates_with(uint64_t clusters, void *user) {
    (void)user;
    return 1 + CANDIDATES_SAVED / (double)clusters;
}

double sp_candidates_after(int candidates, int before, int clusters) {
    double ratio = sp_candidates_with((uint64_t)clusters, NULL) / sp_candidates_with((uint64_t)before, NULL);
    return fmax(1, candidates * ratio);
}

/* Greatest number of candidates. Problems need some hundreds at most, so a solve that reaches this number
 * makes no progress. */
enum { MOST_CANDIDATES = 20000 };

/* Choose the number of clusters from the times measured with earlier samples. */
static kilter_status choose_clusters(solver *s, uint64_t scenarios, kilter_error *error) {
    kilter_grain_options options = {.least = scenarios < SP_AUTO_LEAST ? scenarios : SP_AUTO_LEAST,
                                    .most = scenarios < SP_AUTO_MOST ? scenarios : SP_AUTO_MOST,
                                    .runs = sp_candidates_with,
                                    .work = (double)scenarios};
    kilter_grain grain;
    kilter_status status = kilter_farm_grain(s->farm, &options, &grain, error);
    if (!status)
        s->clusters = (int)grain.tasks;
    return status;
}

static kilter_status set_clusters(solver *s, int stage, uint64_t scenarios, kilter_error *error) {
    bool by_time = s->options.clusters == SP_CLUSTERS_AUTO;
    /* if several candidates are evaluated at once, a run's time is not the time of one candidate */
    if (by_time && stage > 0 && s->options.basket == 1)
        return choose_clusters(s, scenarios, error);
    s->clusters = s->options.clusters && !by_time ? (int)s->options.clusters : sp_clusters_for(scenarios);
    /* with a given start there are no smaller samples, so no times have been measured */
    if (by_time && s->options.at)
        s->clusters *= 2;
    if ((uint64_t)s->clusters > scenarios)
        s->clusters = (int)scenarios;
    return KILTER_OK;
}

static sp_times times_of(const solver *s, const sp_progress *progress) {
    double all_s = now_s() - s->stage.begun_s, farm_s = s->stage.farm_s;
    if (s->options.basket > 1)
        return (sp_times){0};
    return (sp_times){(all_s - farm_s) / progress->evaluated, farm_s / progress->evaluated};
}

/* Fill in the benchmark's numbers for the sample that was just solved. */
static kilter_status take_benchmark(const solver *s, sp_benchmark *b, kilter_error *error) {
    *b = (sp_benchmark){.scenarios = s->orders.order.sampling.scenarios,
                        .clusters = s->clusters,
                        .candidates = s->solution.progress.evaluated,
                        .workers = s->last_workers,
                        .elapsed_s = now_s() - s->stage.begun_s,
                        .farm_s = s->stage.farm_s};
    b->work_s = s->stage.work_s / b->candidates;
    return kilter_farm_program(s->farm, &b->program, error);
}

/* Store a forecast in the run record; the record later gets the measured time, too. If stored results of a
 * resumed run were used, no forecast is possible. */
static void expect(solver *s, const sp_benchmark *b, uint64_t scenarios, int clusters, int candidates) {
    char reason[160];
    kilter_prediction p;
    if (!(b->work_s > 0) || sp_forecast_sample(b, scenarios, clusters, candidates, &p, NULL))
        return;
    snprintf(
        reason, sizeof reason,
        "%llu scenarios: %d candidate%s in %d clusters on %u worker%s take %.3g s, each %.3g s of the master "
        "and %.3g s of the workers",
        (unsigned long long)scenarios, candidates, candidates == 1 ? "" : "s", clusters, b->workers,
        b->workers == 1 ? "" : "s", p.total_s, p.master_s, p.workers_s);
    kilter_expectation expectation = {.runs = (uint64_t)candidates, .seconds = p.total_s, .reason = reason};
    kilter_farm_expect(s->farm, &expectation, NULL);
}

static kilter_status solve_stage(solver *s, int stage, const double *start, kilter_error *error) {
    sp_sampling sampling = sampling_of(s, stage);
    sp_solution found;
    sp_benchmark before;
    bool measured = stage > 0 && !take_benchmark(s, &before, NULL);
    s->stage = (times){.begun_s = now_s()};
    if (s->options.extensive) {
        kilter_status status = sp_solve_extensive(s->in.problem, &sampling, s->options.gap, &found, error);
        if (!status) {
            sp_solution_free(&s->solution);
            s->solution = found;
        }
        return status;
    }
    kilter_status status = set_clusters(s, stage, sampling.scenarios, error);
    if (status)
        return status;
    s->orders.order = (sp_order){.wanted = SP_WANT_CUT,
                                 .remember = s->options.fast,
                                 .sampling = sampling,
                                 .clusters = (uint64_t)s->clusters};
    s->orders.series = s->options.fast ? 1 + (uint64_t)stage : 0;
    s->first_gap = 0;
    if (measured)
        expect(s, &before, sampling.scenarios, s->clusters,
               (int)lround(sp_candidates_after(before.candidates, before.clusters, s->clusters)));
    sp_solve_options options = {.sampling = sampling,
                                .clusters = s->clusters,
                                .most_candidates = MOST_CANDIDATES,
                                .gap = is_last(s, stage) ? s->options.gap : fmax(s->options.gap, STAGE_GAP),
                                .start = start,
                                .basket = (int)s->options.basket,
                                .evaluate = evaluate,
                                .explore = explore,
                                .watch = watch,
                                .user = s};
    status = sp_solve(s->in.problem, &options, &found, error);
    if (!status) {
        s->times = times_of(s, &found.progress);
        sp_solution_free(&s->solution);
        s->solution = found;
    }
    return status;
}

static kilter_status solve_stages(solver *s, kilter_error *error) {
    kilter_status status = KILTER_OK;
    double mean_bound = NAN;
    for (int stage = 0; !status && stage < s->stages.count; stage++) {
        const double *start = stage ? s->solution.x : s->in.x;
        status = solve_stage(s, stage, start, error);
        if (!status && stage == 0)
            mean_bound = s->solution.mean_bound;
        if (s->watched)
            fputs(!is_last(s, stage) ? "\n" : "\r\033[K", stderr);
    }
    s->solution.mean_bound = mean_bound;
    return status;
}

/* ---- the out-of-sample estimate ---- */

/* Estimate the decision's cost over scenarios of another seed. These scenarios did not influence the
 * decision. */
static kilter_status check_decision(solver *s, sp_estimate *estimate, kilter_error *error) {
    uint64_t scenarios = s->options.check;
    s->costs = calloc(scenarios, sizeof *s->costs);
    if (!s->costs)
        return no_memory(error);
    sp_benchmark solved;
    bool measured = !s->options.extensive && !take_benchmark(s, &solved, NULL);
    s->orders.order = (sp_order){
        .wanted = SP_WANT_COSTS,
        .sampling = {SP_INDEPENDENT, s->options.seed + 1, scenarios},
        /* each task has 25 scenarios; with fewer scenarios, the fixed cost of a task would matter */
        .clusters = (scenarios + 24) / 25,
        .x = s->solution.x};
    s->orders.series = 0;
    if (measured)
        expect(s, &solved, scenarios, (int)s->orders.order.clusters, 1);
    kilter_status status = run_order(s, take_costs, false, error);
    sp_sums sums = {0};
    for (uint64_t i = 0; !status && i < scenarios; i++)
        sp_sums_add(&sums, s->costs[i]);
    if (!status)
        *estimate = sp_sums_estimate(&sums, s->options.confidence);
    return status;
}

/* ---- writing the decision and the answer ---- */

static kilter_status write_mps(const solver *s, kilter_error *error) {
    sp_sampling sampling = sampling_of(s, s->stages.count - 1);
    sp_program program;
    kilter_status status = sp_extensive(s->in.problem, &sampling, &program, error);
    if (status)
        return status;
    status = write_program(s, &program, s->options.mps, error);
    sp_program_free(&program);
    return status;
}

/* Write the decision in the format that --at and --start read. */
static kilter_status write_decision(const solver *s, kilter_error *error) {
    sp_new_file file;
    kilter_status status = sp_new_file_open(s->options.decision, &file, error);
    if (status)
        return status;
    for (int j = 0; j < s->columns; j++)
        fprintf(file.out, "%s %.17g\n", s->in.problem->stage[0].column_name[j], s->solution.x[j]);
    return sp_new_file_end(&file, error);
}

static kilter_status print_answer(const solver *s, const sp_estimate *check, kilter_error *error) {
    double elapsed_s = now_s() - s->all.begun_s;
    sp_solve_answer answer = {.solution = &s->solution,
                              .problem = s->in.problem,
                              .options = &s->options,
                              .scenarios = s->stages.scenarios[s->stages.count - 1],
                              .possible = sp_scenario_count(s->in.problem),
                              .clusters = s->clusters,
                              .checked = check != NULL,
                              .check = check ? *check : (sp_estimate){0},
                              .check_scenarios = s->options.check,
                              .check_seed = s->options.seed + 1,
                              .elapsed_s = elapsed_s,
                              .master_s = elapsed_s - s->all.farm_s + s->ahead_s,
                              .times = s->times,
                              .workers = s->workers,
                              .evaluated = s->evaluated,
                              .found = s->found,
                              .record = kilter_farm_record(s->farm)};
    if (s->options.json)
        sp_solve_answer_print_json(stdout, &answer);
    else
        sp_solve_answer_print(stdout, &answer);
    if (fflush(stdout) != 0)
        return sp_fail(error, KILTER_ERR_SYSTEM, "printing the answer: %s; check where the output goes",
                       strerror(errno));
    return KILTER_OK;
}

/* ---- the commands solve and predict ---- */

static kilter_status prepare(solver *s, kilter_error *error) {
    kilter_status status = sp_inputs_read(&s->options, &s->in, error);
    if (!status)
        status = check_whole(s, error);
    if (status)
        return status;
    sp_inputs_warn(stderr, &s->in);
    s->columns = s->in.problem->stage[0].columns;
    s->stages = plan_stages(s);
    s->cut.slope = calloc((size_t)s->columns + 1, sizeof(double));
    sp_job_pack(&s->orders.files, s->in.files, NULL, 0, s->options.seed);
    return s->orders.files.failed || !s->cut.slope ? no_memory(error) : KILTER_OK;
}

/* Decide whether measured times choose the number of clusters. A resumed solve must use the same number as
 * the first attempt, but would measure other times. */
static kilter_status decide_about_clusters(solver *s, kilter_error *error) {
    bool resumes = kilter_farm_resumes(s->farm);
    if (s->options.clusters == 0 && s->options.fast && !resumes)
        s->options.clusters = SP_CLUSTERS_AUTO;
    if (s->options.clusters != SP_CLUSTERS_AUTO || !resumes)
        return KILTER_OK;
    return sp_fail(error, KILTER_ERR_USAGE,
                   "reading the command line: --clusters auto depends on measured times, but --resume needs "
                   "the same number of clusters every time; give a number of clusters");
}

static kilter_status solve_and_print(solver *s, kilter_error *error) {
    sp_estimate estimate = {0};
    bool check = s->options.check > 0 && !takes_all(s);
    kilter_status status = decide_about_clusters(s, error);
    if (!status)
        status = prepare(s, error);
    if (!status && s->options.mps)
        status = write_mps(s, error);
    if (!status)
        status = solve_stages(s, error);
    if (status)
        return status;
    /* the answer is printed even if an error happens after the solve */
    kilter_error later = {.status = KILTER_OK};
    if (s->options.decision)
        write_decision(s, &later);
    bool checked = check && !check_decision(s, &estimate, later.status ? NULL : &later);
    status = print_answer(s, checked ? &estimate : NULL, error);
    return status || !later.status ? status : sp_fail(error, later.status, "%s", later.text);
}

static void free_solver(solver *s) {
    sp_inputs_free(&s->in);
    sp_buffer_free(&s->orders.files);
    sp_buffer_free(&s->orders.input);
    free(s->orders.inputs);
    free(s->cut.slope);
    free(s->costs);
    free(s->basket.slot_of);
    sp_solution_free(&s->solution);
}

kilter_status sp_solve_on(kilter_farm *farm, int count, char *const *arguments, kilter_error *error) {
    solver s = {.farm = farm, .watched = isatty(STDERR_FILENO), .all.begun_s = now_s()};
    kilter_status status = sp_options_parse(SP_SOLVE_COMMAND, count, arguments, &s.options, error);
    if (!status)
        status = solve_and_print(&s, error);
    free_solver(&s);
    return status;
}

/* ---- predicting ---- */

/* Measure a solve on the local workers. The last sample is the benchmark, because its solve takes longest.
 * The first sample shows how many candidates are needed without a solution to start from. */
static kilter_status measure(solver *s, uint64_t scenarios, sp_benchmark *b, kilter_error *error) {
    s->options.scenarios = scenarios;
    kilter_status status = prepare(s, error);
    int first_candidates = 0, first_clusters = 0;
    for (int stage = 0; !status && stage < s->stages.count; stage++) {
        status = solve_stage(s, stage, stage ? s->solution.x : NULL, error);
        if (stage == 0) {
            first_candidates = s->solution.progress.evaluated;
            first_clusters = s->clusters;
        }
    }
    if (!status)
        status = take_benchmark(s, b, error);
    b->first_candidates = first_candidates;
    b->first_clusters = first_clusters;
    return status;
}

static kilter_status predict_and_print(solver *s, kilter_error *error) {
    sp_options asked = s->options;
    sp_benchmark benchmark;
    sp_forecast forecast;
    kilter_status status =
        measure(s, asked.benchmark < asked.scenarios ? asked.benchmark : asked.scenarios, &benchmark, error);
    if (!status)
        status = sp_forecast_make(&asked, &benchmark, &forecast, error);
    if (status)
        return status;
    if (asked.json)
        sp_forecast_print_json(stdout, &forecast, &benchmark);
    else
        sp_forecast_print(stdout, &forecast, &benchmark);
    return fflush(stdout) == 0
               ? KILTER_OK
               : sp_fail(error, KILTER_ERR_SYSTEM, "printing the forecast: %s; check where the output goes",
                         strerror(errno));
}

kilter_status sp_predict_on(kilter_farm *farm, int count, char *const *arguments, kilter_error *error) {
    solver s = {.farm = farm, .all.begun_s = now_s()};
    kilter_status status = sp_options_parse(SP_PREDICT_COMMAND, count, arguments, &s.options, error);
    if (!status)
        status = sp_forecast_check(&s.options, error);
    if (!status)
        status = decide_about_clusters(&s, error);
    if (!status)
        status = predict_and_print(&s, error);
    free_solver(&s);
    return status;
}
