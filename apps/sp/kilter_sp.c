/* kilter-sp: stochastic linear programs on a farm.
 *
 * One task is one scenario; its result is the scenario's cost, 8 bytes. The shared data of the run are the
 * three files, the decision and the seed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "job.h"
#include "kilter/farm.h"
#include "kilter/version.h"
#include "sample.h"

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

static int evaluate_scenario(const kilter_task *task, kilter_result *result, void *state) {
    sp_job **job = state;
    kilter_error error;
    double cost;
    if (!*job)
        return kilter_result_fail(result, "a scenario: its worker was sent no problem");
    if (sp_job_cost(*job, task->index, &cost, &error))
        return kilter_result_fail(result, "%s", error.text);
    uint64_t bits;
    uint8_t bytes[8]; /* little-endian on every machine */
    memcpy(&bits, &cost, sizeof bits);
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(bits >> (8 * i));
    return kilter_result_put(result, bytes, sizeof bytes) != KILTER_OK;
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
    kilter_error first_failure; /* of the lowest scenario: results come in order */
} collector;

static void collect(const kilter_outcome *outcome, void *user) {
    collector *collected = user;
    kl_reader reader = kl_reader_of(outcome->result.data, outcome->result.size);
    double cost = kl_get_f64(&reader);
    if (outcome->status == KILTER_OK && kl_reader_done(&reader))
        sp_sums_add(&collected->sums, cost);
    else if (collected->first_failure.status == KILTER_OK)
        kl_fail(&collected->first_failure, KILTER_ERR_TASK, "evaluating %s",
                outcome->error ? outcome->error : "a scenario: its worker sent no cost");
}

typedef struct inputs {
    sp_file core, time, stoch, at;
    sp_problem *problem;
    double *x;
} inputs;

static kilter_status read_inputs(const sp_options *options, inputs *in, kilter_error *error) {
    kilter_status status = sp_file_load(options->core, &in->core, error);
    if (!status)
        status = sp_file_load(options->time, &in->time, error);
    if (!status)
        status = sp_file_load(options->stoch, &in->stoch, error);
    if (!status)
        status = sp_file_load(options->at, &in->at, error);
    if (!status)
        status = sp_problem_read(&in->core, &in->time, &in->stoch, &in->problem, error);
    if (!status)
        status = sp_decision_read(in->problem, &in->at, &in->x, error);
    return status;
}

static void free_inputs(inputs *in) {
    sp_file_free(&in->core);
    sp_file_free(&in->time);
    sp_file_free(&in->stoch);
    sp_file_free(&in->at);
    sp_problem_free(in->problem);
    free(in->x);
}

static kilter_status run_scenarios(kilter_farm *farm, const sp_options *options, const inputs *in,
                                   collector *collected, kilter_error *error) {
    kl_buffer shared = {0};
    sp_job_pack(&shared, &in->core, &in->time, &in->stoch, in->x, in->problem->stage[0].columns,
                options->seed);
    if (shared.failed) {
        kl_buffer_free(&shared);
        return kl_fail(error, KILTER_ERR_MEMORY,
                       "packing the problem for the workers: memory ran out; use a machine with more of it");
    }
    kilter_run run = {.tasks = options->scenarios,
                      .shared = {shared.data, shared.size},
                      .order = KILTER_BY_INDEX,
                      .done = collect,
                      .user = collected};
    kilter_status status = kilter_farm_run(farm, &run, error);
    kl_buffer_free(&shared);
    if (collected->first_failure.status) {
        if (error)
            *error = collected->first_failure;
        return collected->first_failure.status;
    }
    return status;
}

static kilter_status print_answer(const kilter_farm *farm, const sp_options *options, const inputs *in,
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
        return kl_fail(error, KILTER_ERR_SYSTEM, "printing the answer: %s; look at where the output goes",
                       strerror(errno));
    return KILTER_OK;
}

static kilter_status evaluate_on(kilter_farm *farm, int count, char *const *arguments, kilter_error *error) {
    sp_options options;
    inputs in = {0};
    collector collected = {0};
    kilter_status status = sp_options_parse(count, arguments, &options, error);
    if (!status)
        status = read_inputs(&options, &in, error);
    if (!status)
        status = run_scenarios(farm, &options, &in, &collected, error);
    if (!status)
        status = print_answer(farm, &options, &in, &collected, error);
    free_inputs(&in);
    return status;
}

/* ---- command line ---- */

static void print_usage(FILE *out) {
    fprintf(out, "usage: kilter-sp COMMAND …\n\n"
                 "  evaluate   estimate the expected cost of a first-stage decision\n\n"
                 "  --help     print this; after a command, its own help\n"
                 "  --version  print the version\n");
}

static bool has_option(int argc, char **argv, const char *option) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], option) == 0)
            return true;
    return false;
}

static bool is_evaluate(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "evaluate") == 0)
            return true;
    return false;
}

/* Help and version need no farm. */
static bool answered(int argc, char **argv) {
    if (has_option(argc, argv, "--version")) {
        printf("kilter-sp %s\n", KILTER_VERSION);
    } else if (has_option(argc, argv, "--help") && is_evaluate(argc, argv)) {
        sp_evaluate_usage(stdout);
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
    kilter_farm_options options = {.work = evaluate_scenario,
                                   .start = start_worker,
                                   .shared = take_shared,
                                   .stop = stop_worker,
                                   .name = "kilter-sp",
                                   .progress = isatty(STDERR_FILENO)};
    kilter_status status = kilter_farm_open(&options, &argc, argv, &farm, &error);
    if (status == KILTER_ENDED)
        return 0;
    if (status)
        return finish(&error);
    if (argc < 2 || strcmp(argv[1], "evaluate") != 0)
        kl_fail(&error, KILTER_ERR_USAGE,
                "reading the command line: %s%.60s; kilter-sp --help lists the commands",
                argc < 2 ? "a command is missing" : "there is no command ", argc < 2 ? "" : argv[1]);
    else
        evaluate_on(farm, argc - 2, argv + 2, &error);
    kilter_error close_error = {.status = KILTER_OK};
    kilter_farm_close(farm, &close_error);
    return finish(error.status ? &error : &close_error);
}
