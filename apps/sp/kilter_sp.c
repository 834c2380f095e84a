/* kilter-sp: stochastic linear programs on a farm.
 *
 * For the command evaluate, a task is a scenario, and the task's result is the scenario's cost in 8 bytes.
 * The run's shared data are the three files, the decision and the seed. For the command solve, see
 * solve_farm.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "inputs.h"
#include "job.h"
#include "kilter/farm.h"
#include "kilter/version.h"
#include "sample.h"
#include "solve_farm.h"

/* ---- worker ---- */

static int start_worker(const kilter_worker *worker, void **state) {
    (void)worker;
    *state = calloc(1, sizeof(sp_job *));
    return *state ? 0 : 1;
}

static int take_shared(kilter_bytes shared, void *state) {
    sp_job **job = state;
    kilter_error error;
    sp_job_free(*job);
    *job = NULL;
    if (sp_job_new(shared.data, shared.size, job, &error) == KILTER_OK)
        return 0;
    kilter_exit("kilter-sp", &error);
    return 1;
}

static kilter_status work_on(sp_job *job, const kilter_task *task, sp_buffer *result, kilter_error *error) {
    if (task->input.size > 0)
        return sp_job_carry_out(job, task->input.data, task->input.size, task->index, result, error);
    double cost = 0;
    kilter_status status = sp_job_cost(job, task->index, &cost, error);
    sp_put_f64(result, cost);
    return status;
}

static int work(const kilter_task *task, kilter_result *result, void *state) {
    sp_job **job = state;
    kilter_error error;
    sp_buffer bytes = {0};
    if (!*job)
        return kilter_result_fail(result, "evaluating a scenario: the worker has not received the problem");
    int failed = 0;
    if (work_on(*job, task, &bytes, &error))
        failed = kilter_result_fail(result, "%s", error.text);
    else if (bytes.failed)
        failed = kilter_result_fail(result, "packing a task's result: memory ran out; use fewer workers");
    else
        failed = kilter_result_put(result, bytes.data, bytes.size) != KILTER_OK;
    sp_buffer_free(&bytes);
    return failed;
}

static void stop_worker(void *state) {
    sp_job **job = state;
    if (job)
        sp_job_free(*job);
    free(job);
}

/* ---- master ---- */

typedef struct collector {
    sp_sums sums;
    /* error of the failed scenario with the lowest number; results come in order, so this is the first
     * failure */
    kilter_error first_failure;
} collector;

static void collect(const kilter_outcome *outcome, void *user) {
    collector *collected = user;
    sp_reader reader = sp_reader_of(outcome->result.data, outcome->result.size);
    double cost = sp_get_f64(&reader);
    if (outcome->status == KILTER_OK && sp_reader_done(&reader))
        sp_sums_add(&collected->sums, cost);
    else if (collected->first_failure.status == KILTER_OK)
        sp_fail(&collected->first_failure, KILTER_ERR_TASK, "evaluating %s",
                outcome->error ? outcome->error : "evaluating a scenario: the worker's result is not a cost");
}

static kilter_status run_scenarios(kilter_farm *farm, const sp_options *options, const sp_inputs *in,
                                   collector *collected, kilter_error *error) {
    sp_buffer shared = {0};
    sp_job_pack(&shared, in->files, in->x, in->problem->stage[0].columns, options->seed);
    if (shared.failed) {
        sp_buffer_free(&shared);
        return sp_fail(error, KILTER_ERR_MEMORY,
                       "packing the problem for the workers: memory ran out; use a machine with more memory");
    }
    kilter_run run = {.tasks = options->scenarios,
                      .shared = {shared.data, shared.size},
                      .order = KILTER_BY_INDEX,
                      .done = collect,
                      .user = collected};
    kilter_status status = kilter_farm_run(farm, &run, error);
    sp_buffer_free(&shared);
    if (collected->first_failure.status) {
        if (error)
            *error = collected->first_failure;
        return collected->first_failure.status;
    }
    return status;
}

static kilter_status print_answer(const kilter_farm *farm, const sp_options *options, const sp_inputs *in,
                                  const collector *collected, kilter_error *error) {
    kilter_farm_summary summary;
    kilter_farm_summary_get(farm, &summary);
    sp_answer answer = {.estimate = sp_sums_estimate(&collected->sums, options->confidence),
                        .confidence = options->confidence,
                        .scenarios = options->scenarios,
                        .seed = options->seed,
                        .possible = sp_scenario_count(in->problem),
                        .elapsed_s = summary.elapsed_s,
                        .workers = summary.workers,
                        .decision = summary.decision,
                        .record = kilter_farm_record(farm)};
    if (options->json)
        sp_answer_print_json(stdout, &answer);
    else
        sp_answer_print(stdout, &answer);
    if (fflush(stdout) != 0)
        return sp_fail(error, KILTER_ERR_SYSTEM, "printing the answer: %s; check where the output goes",
                       strerror(errno));
    return KILTER_OK;
}

static kilter_status evaluate_on(kilter_farm *farm, int count, char *const *arguments, kilter_error *error) {
    sp_options options;
    sp_inputs in = {0};
    collector collected = {0};
    kilter_status status = sp_options_parse(SP_EVALUATE_COMMAND, count, arguments, &options, error);
    if (!status)
        status = sp_inputs_read(&options, &in, error);
    if (!status)
        sp_inputs_warn(stderr, &in);
    if (!status)
        status = run_scenarios(farm, &options, &in, &collected, error);
    if (!status)
        status = print_answer(farm, &options, &in, &collected, error);
    sp_inputs_free(&in);
    return status;
}

/* ---- command line ---- */

static void print_usage(FILE *out) {
    fprintf(out, "usage: kilter-sp COMMAND …\n\n"
                 "  evaluate   estimate the expected cost of a first-stage decision\n"
                 "  solve      find the decision that costs least over a sample\n"
                 "  predict    predict the time of a solve on other workers\n\n"
                 "  --help     print this help; after a command, print the command's help\n"
                 "  --version  print the version\n");
}

static bool has_option(int argc, char **argv, const char *option) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], option) == 0)
            return true;
    return false;
}

static bool has_word(int argc, char **argv, const char *word) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], word) == 0)
            return true;
    return false;
}

/* Return whether the command (solve or predict) has many runs of the farm. */
static bool solves(int argc, char **argv) {
    return has_word(argc, argv, "solve") || has_word(argc, argv, "predict");
}

/* Print help and version, which need no farm. */
static bool answered(int argc, char **argv) {
    if (has_option(argc, argv, "--version")) {
        printf("kilter-sp %s\n", KILTER_VERSION);
    } else if (has_option(argc, argv, "--help") && (has_word(argc, argv, "evaluate") || solves(argc, argv))) {
        sp_command_usage(stdout, has_word(argc, argv, "solve")     ? SP_SOLVE_COMMAND
                                 : has_word(argc, argv, "predict") ? SP_PREDICT_COMMAND
                                                                   : SP_EVALUATE_COMMAND);
        printf("\nKilter's options:\n");
        kilter_farm_usage(stdout);
    } else if (has_option(argc, argv, "--help")) {
        print_usage(stdout);
    } else {
        return false;
    }
    return true;
}

static int finish(const kilter_error *error) {
    return kilter_exit("kilter-sp", error);
}

int main(int argc, char **argv) {
    if (argc > 0 && answered(argc, argv))
        return fflush(stdout) == 0 ? 0 : 1;
    kilter_farm *farm = NULL;
    kilter_error error = {.status = KILTER_OK};
    kilter_farm_options options = {.work = work,
                                   .start = start_worker,
                                   .shared = take_shared,
                                   .stop = stop_worker,
                                   .name = "kilter-sp",
                                   .version = KILTER_VERSION,
                                   /* a solve is a fork-join program: a run ends with its last cut */
                                   .policy = solves(argc, argv) ? "ect" : NULL,
                                   .team = solves(argc, argv) ? "all" : NULL,
                                   /* a solve prints its own progress line */
                                   .progress = isatty(STDERR_FILENO) && !solves(argc, argv)};
    kilter_status status = kilter_farm_open(&options, &argc, argv, &farm, &error);
    if (status == KILTER_ENDED)
        return 0;
    if (status)
        return finish(&error);
    bool solve = argc >= 2 && strcmp(argv[1], "solve") == 0;
    bool predict = argc >= 2 && strcmp(argv[1], "predict") == 0;
    if (argc < 2 || (!solve && !predict && strcmp(argv[1], "evaluate") != 0))
        sp_fail(&error, KILTER_ERR_USAGE,
                "reading the command line: %s%.60s; kilter-sp --help lists the commands",
                argc < 2 ? "a command is missing" : "there is no command ", argc < 2 ? "" : argv[1]);
    else if (solve)
        sp_solve_on(farm, argc - 2, argv + 2, &error);
    else if (predict)
        sp_predict_on(farm, argc - 2, argv + 2, &error);
    else
        evaluate_on(farm, argc - 2, argv + 2, &error);
    kilter_error close_error = {.status = KILTER_OK};
    kilter_farm_close(farm, &close_error);
    return finish(error.status ? &error : &close_error);
}
