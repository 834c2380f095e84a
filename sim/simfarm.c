#include "sim/simfarm.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kilter/kilter.h>

#include "sys/sys.h"

enum {
    INDEX_BYTES = sizeof(uint64_t)
}; /* a result of at least INDEX_BYTES bytes begins with the index of its task */

/* --- options --- */

static const char HELP[] =
    "usage: %s --tasks SPEC [OPTION]…\nA farm whose tasks only take time. It prints a line of JSON for each "
    "run.\n\n  --tasks SPEC         number and times of the tasks, such as 8000@lognormal(1ms,1.0)\n  "
    "--iterations N       number of runs (default: 1)\n  --seed N             seed of the task times "
    "(default: 1)\n  --task-bytes BYTES   input of a task (default: 0)\n  --result-bytes BYTES result of a "
    "task (default: 0)\n";

/* Return the value of the option --NAME, and remove both from argv. NULL: the option is not given. */
static const char *take(int *argc, char **argv, const char *name, kilter_error *error) {
    size_t length = strlen(name);
    for (int i = 1; i < *argc; i++) {
        const char *value = NULL;
        if (strcmp(argv[i], name) == 0)
            value = i + 1 < *argc ? argv[i + 1] : NULL;
        else if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=')
            value = argv[i] + length + 1;
        else
            continue;
        if (!value || !*value) {
            kl_fail(error, KILTER_ERR_USAGE, "%s: needs a value", name);
            return NULL;
        }
        int taken = value == argv[i + 1] ? 2 : 1;
        memmove(argv + i, argv + i + taken, (size_t)(*argc - i - taken + 1) * sizeof *argv);
        *argc -= taken;
        return value;
    }
    return NULL;
}

/* A number that is given by an option. */
typedef struct number {
    const char *name;
    uint64_t standard, least, most;
} number;

static uint64_t take_number(int *argc, char **argv, const number *n, kilter_error *error) {
    const char *text = take(argc, argv, n->name, error);
    if (!text)
        return n->standard;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno || value < n->least || value > n->most)
        kl_fail(error, KILTER_ERR_USAGE, "%s: '%s' is not a number from %llu to %llu", n->name, text,
                (unsigned long long)n->least, (unsigned long long)n->most);
    return value;
}

kilter_status kl_simfarm_read(int *argc, char **argv, kl_simfarm *farm, kilter_error *error) {
    enum { MOST_ITERATIONS = 1000000, MOST_BYTES = 1 << 30 };
    static const number SEED = {"--seed", 1, 0, UINT64_MAX},
                        ITERATIONS = {"--iterations", 1, 1, MOST_ITERATIONS},
                        TASK_BYTES = {"--task-bytes", 0, 0, MOST_BYTES},
                        RESULT_BYTES = {"--result-bytes", 0, 0, MOST_BYTES};
    kilter_error bad = {KILTER_OK, ""};
    for (int i = 1; i < *argc; i++)
        if (strcmp(argv[i], "--help") == 0) {
            printf(HELP, argv[0]);
            kilter_farm_usage(stdout);
            return kl_fail(error, KILTER_ENDED, "help was asked for");
        }
    const char *tasks = take(argc, argv, "--tasks", &bad);
    uint64_t seed = take_number(argc, argv, &SEED, &bad);
    kl_simfarm read = {
        .iterations = (uint32_t)take_number(argc, argv, &ITERATIONS, &bad),
        .task_bytes = take_number(argc, argv, &TASK_BYTES, &bad),
        .result_bytes = take_number(argc, argv, &RESULT_BYTES, &bad),
    };
    if (bad.status != KILTER_OK)
        return kl_fail(error, bad.status, "%s", bad.text);
    if (!tasks)
        return kl_fail(error, KILTER_ERR_USAGE, "--tasks: give the number of tasks and their times");
    kilter_status status = kl_tasks_parse(tasks, &read.tasks, &bad);
    if (status != KILTER_OK)
        return kl_fail(error, status, "--tasks: %.480s", bad.text);
    read.tasks.seed = seed;
    size_t most = read.task_bytes > read.result_bytes ? read.task_bytes : read.result_bytes;
    read.zeros = calloc(most + 1, 1);
    if (!read.zeros) {
        kl_simfarm_free(&read);
        return kl_fail(error, KILTER_ERR_MEMORY, "preparing messages of %zu bytes: memory ran out", most);
    }
    *farm = read;
    return KILTER_OK;
}

void kl_simfarm_free(kl_simfarm *farm) {
    kl_tasks_free(&farm->tasks);
    free(farm->zeros);
    *farm = (kl_simfarm){0};
}

/* --- the work of the farm's workers --- */

static int start(const kilter_worker *worker, void **state) {
    *state = worker->user;
    return 0;
}

static int take_time(const kilter_task *task, kilter_result *result, void *state) {
    const kl_simfarm *farm = state;
    kl_spend_s(kl_task_s(&farm->tasks, task->run, task->index));
    size_t head = farm->result_bytes >= INDEX_BYTES ? INDEX_BYTES : 0;
    if (kilter_result_put(result, &task->index, head) != KILTER_OK ||
        kilter_result_put(result, farm->zeros, farm->result_bytes - head) != KILTER_OK)
        return kilter_result_fail(result, "there is no memory for the result of %zu bytes",
                                  farm->result_bytes);
    return 0;
}

/* --- the master of the farm --- */

typedef struct tally {
    const kl_simfarm *farm;
    uint64_t came, wrong;
} tally;

static void count(const kilter_outcome *outcome, void *user) {
    tally *t = user;
    uint64_t index = outcome->index;
    if (outcome->result.size != t->farm->result_bytes)
        t->wrong++;
    else if (outcome->result.size >= INDEX_BYTES)
        t->wrong += memcmp(outcome->result.data, &index, INDEX_BYTES) != 0;
    t->came++;
}

/* Make one input for all tasks, since only its size matters. NULL: the tasks have no input, or memory ran
 * out. */
static kilter_bytes *make_inputs(const kl_simfarm *farm) {
    kilter_bytes *inputs = farm->task_bytes > 0 ? calloc(farm->tasks.count, sizeof *inputs) : NULL;
    for (uint64_t i = 0; inputs && i < farm->tasks.count; i++)
        inputs[i] = (kilter_bytes){farm->zeros, farm->task_bytes};
    return inputs;
}

static kilter_status iterate(const kl_simfarm *farm, kilter_farm *master, const kilter_bytes *inputs,
                             uint32_t iteration, kilter_error *error) {
    tally t = {.farm = farm};
    kilter_run run = {.tasks = farm->tasks.count, .inputs = inputs, .done = count, .user = &t};
    double began_s = kl_monotonic_s();
    kilter_status status = kilter_farm_run(master, &run, error);
    if (status != KILTER_OK)
        return status;
    if (t.came != run.tasks || t.wrong > 0)
        return kl_fail(error, KILTER_ERR_TASK,
                       "run %u: there are %llu results for %llu tasks, and %llu results are wrong", iteration,
                       (unsigned long long)t.came, (unsigned long long)run.tasks,
                       (unsigned long long)t.wrong);
    kilter_farm_summary s;
    kilter_farm_summary_get(master, &s);
    printf("{\"iteration\":%u,\"tasks\":%llu,\"elapsed_s\":%.9g,\"bound_s\":%.9g,\"efficiency\":%.9g,"
           "\"chunks\":%llu,\"workers\":%u,\"began_s\":%.9g}\n",
           iteration, (unsigned long long)s.tasks, s.elapsed_s, s.bound_s, s.efficiency,
           (unsigned long long)s.chunks, s.workers, began_s);
    fflush(stdout);
    return KILTER_OK;
}

static kilter_status be_master(const kl_simfarm *farm, kilter_farm *master, kilter_error *error) {
    kilter_bytes *inputs = make_inputs(farm);
    kilter_status status = KILTER_OK;
    if (farm->task_bytes > 0 && !inputs)
        status = kl_fail(error, KILTER_ERR_MEMORY, "preparing the inputs: memory ran out");
    for (uint32_t i = 0; i < farm->iterations && status == KILTER_OK; i++)
        status = iterate(farm, master, inputs, i, error);
    free(inputs);
    kilter_status closed = kilter_farm_close(master, status == KILTER_OK ? error : NULL);
    return status == KILTER_OK ? closed : status;
}

kilter_status kl_simfarm_run(const kl_simfarm *farm, int argc, char **argv, kilter_error *error) {
    kilter_farm *master;
    kilter_farm_options options = {
        .work = take_time, .start = start, .user = (void *)farm, .name = "simfarm"};
    kilter_status status = kilter_farm_open(&options, &argc, argv, &master, error);
    if (status != KILTER_OK)
        return status;
    if (argc == 1)
        return be_master(farm, master, error);
    kilter_farm_close(master, NULL);
    return kl_fail(error, KILTER_ERR_USAGE, "'%s' is not an option of this program", argv[1]);
}
