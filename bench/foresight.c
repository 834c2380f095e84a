/* foresight: a farm that runs equal tasks with costly messages, in several runs. tools/foresight calls this
 * program.
 *
 *   foresight --tasks N --task-s S --input-bytes B --result-bytes B --runs R --sleep|--compute
 *             [options of a farm]
 *
 * Each task reads its own input and writes a result. With --sleep, a task sleeps until S seconds have passed.
 * With --compute, a task uses S seconds of CPU time, so a worker with half a core takes twice as long. The
 * master checks every result. At the end the program prints one line of JSON. The line has the time of each
 * run, counted from the end of the previous run, and the numbers of workers with and without tasks. */
#include <errno.h>
#include <kilter/kilter.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum { LEAST_BYTES = sizeof(uint64_t), MOST_BYTES = 1 << 29 };
static const double MOST_TASKS = 1e8, MOST_RUNS = 1e4, MOST_S = 1000;

typedef struct settings {
    uint64_t tasks, runs;
    size_t input_bytes, result_bytes;
    double task_s;
    bool sleeps, computes;
} settings;

/* The master and the workers all run this program, and each reads its own command line. */
static settings set;

/* --- a task --- */

static double clock_s(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void sleep_until(double at_s) {
    struct timespec at = {.tv_sec = (time_t)at_s, .tv_nsec = (long)(1e9 * fmod(at_s, 1))};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
}

static void compute_until(double cpu_s) {
    while (clock_s(CLOCK_THREAD_CPUTIME_ID) < cpu_s)
        ;
}

/* Return the sum of the input's 8-byte words; bytes after the last whole word are ignored. */
static uint64_t sum_of(kilter_bytes input) {
    const uint64_t *words = input.data;
    uint64_t sum = 0;
    for (size_t i = 0; i < input.size / sizeof *words; i++)
        sum += words[i];
    return sum;
}

/* Compute one task. The input's first word is the task's number and all others are 0, so the sum of the
 * words must be the task's number. */
static int do_task(const kilter_task *task, kilter_result *result, void *state) {
    uint64_t *words = state;
    clockid_t clock = set.sleeps ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
    double end_s = clock_s(clock) + set.task_s;
    words[0] = sum_of(task->input);
    if (task->input.size != set.input_bytes || words[0] != task->index)
        return kilter_result_fail(result, "the input of task %llu arrived as %llu",
                                  (unsigned long long)task->index, (unsigned long long)words[0]);
    if (set.sleeps)
        sleep_until(end_s);
    else
        compute_until(end_s);
    return kilter_result_put(result, words, set.result_bytes) != KILTER_OK;
}

static int start_worker(const kilter_worker *worker, void **state) {
    (void)worker;
    *state = malloc(set.result_bytes + sizeof(uint64_t));
    if (!*state)
        return 1;
    /* touch the memory here, so that the first task takes no longer than the others */
    memset(*state, 1, set.result_bytes + sizeof(uint64_t));
    return 0;
}

/* --- the master of the farm --- */

static void check(const kilter_outcome *outcome, void *user) {
    uint64_t word = 0;
    if (outcome->status == KILTER_OK && outcome->result.size == set.result_bytes)
        memcpy(&word, outcome->result.data, sizeof word);
    if (outcome->status != KILTER_OK || outcome->result.size != set.result_bytes || word != outcome->index)
        ++*(uint64_t *)user;
}

static void *allocate(size_t count, size_t bytes) {
    void *memory = calloc(count, bytes);
    if (!memory) {
        fprintf(stderr, "foresight: memory ran out\n");
        exit(1);
    }
    return memory;
}

/* Give each task an input in separate memory, as in real programs. A common input would stay in the
 * processor's caches. */
static kilter_bytes *make_inputs(void) {
    kilter_bytes *inputs = allocate(set.tasks, sizeof *inputs);
    for (uint64_t i = 0; i < set.tasks; i++) {
        uint64_t *words = malloc(set.input_bytes);
        if (!words) {
            fprintf(stderr, "foresight: memory ran out\n");
            exit(1);
        }
        memset(words, 0, set.input_bytes);
        words[0] = i;
        inputs[i] = (kilter_bytes){words, set.input_bytes};
    }
    return inputs;
}

static void free_inputs(kilter_bytes *inputs) {
    for (uint64_t i = 0; i < set.tasks; i++)
        free((void *)inputs[i].data);
    free(inputs);
}

typedef struct report {
    double period_s, elapsed_s;
    uint32_t workers, resting;
} report;

static kilter_status run_all(kilter_farm *farm, const kilter_bytes *inputs, report *reports,
                             kilter_error *error) {
    uint64_t wrong = 0;
    double ended_s = clock_s(CLOCK_MONOTONIC);
    for (uint64_t i = 0; i < set.runs; i++) {
        kilter_farm_summary summary;
        kilter_run run = {.tasks = set.tasks, .inputs = inputs, .done = check, .user = &wrong};
        kilter_status status = kilter_farm_run(farm, &run, error);
        if (status != KILTER_OK)
            return status;
        double now_s = clock_s(CLOCK_MONOTONIC);
        kilter_farm_summary_get(farm, &summary);
        reports[i] = (report){now_s - ended_s, summary.elapsed_s, summary.workers, summary.resting};
        ended_s = now_s;
    }
    if (wrong > 0) {
        fprintf(stderr, "foresight: %llu results are wrong\n", (unsigned long long)wrong);
        exit(1);
    }
    return KILTER_OK;
}

static void print(const report *reports) {
    printf("{\"tasks\":%llu,\"runs\":[", (unsigned long long)set.tasks);
    for (uint64_t i = 0; i < set.runs; i++)
        printf("%s{\"period_s\":%.9g,\"elapsed_s\":%.9g,\"workers\":%u,\"resting\":%u}", i ? "," : "",
               reports[i].period_s, reports[i].elapsed_s, (unsigned)reports[i].workers,
               (unsigned)reports[i].resting);
    printf("]}\n");
}

/* --- the command line --- */

static double number_of(int argc, char **argv, int at, double least, double most) {
    char *end = NULL;
    double value = at + 1 < argc ? strtod(argv[at + 1], &end) : NAN;
    if (!end || *end || !(value >= least && value <= most)) {
        fprintf(stderr, "foresight: %s needs a number from %g to %g\n", argv[at], least, most);
        exit(2);
    }
    return value;
}

/* An option that is unknown here may be an option of the farm, which reports unknown options itself. */
static void read_settings(int argc, char **argv) {
    set = (settings){
        .tasks = 1000, .runs = 1, .input_bytes = LEAST_BYTES, .result_bytes = LEAST_BYTES, .task_s = 1e-3};
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--tasks") == 0)
            set.tasks = (uint64_t)number_of(argc, argv, i, 1, MOST_TASKS);
        else if (strcmp(argv[i], "--runs") == 0)
            set.runs = (uint64_t)number_of(argc, argv, i, 1, MOST_RUNS);
        else if (strcmp(argv[i], "--input-bytes") == 0)
            set.input_bytes = (size_t)number_of(argc, argv, i, LEAST_BYTES, MOST_BYTES);
        else if (strcmp(argv[i], "--result-bytes") == 0)
            set.result_bytes = (size_t)number_of(argc, argv, i, LEAST_BYTES, MOST_BYTES);
        else if (strcmp(argv[i], "--task-s") == 0)
            set.task_s = number_of(argc, argv, i, 0, MOST_S);
        else if (strcmp(argv[i], "--sleep") == 0)
            set.sleeps = true;
        else if (strcmp(argv[i], "--compute") == 0)
            set.computes = true;
    if (set.sleeps == set.computes) {
        fprintf(stderr, "foresight: give either --sleep or --compute\n");
        exit(2);
    }
}

int main(int argc, char **argv) {
    kilter_farm *farm;
    kilter_error error;
    read_settings(argc, argv);
    prctl(PR_SET_TIMERSLACK,
          1UL); /* local workers inherit this small timer slack, so their sleeps end in time */
    kilter_farm_options options = {.work = do_task, .start = start_worker, .stop = free};
    if (kilter_farm_open(&options, &argc, argv, &farm, &error) != KILTER_OK)
        return kilter_exit(argv[0], &error);
    report *reports = allocate(set.runs, sizeof *reports);
    kilter_bytes *inputs = make_inputs();
    kilter_status status = run_all(farm, inputs, reports, &error);
    if (status == KILTER_OK)
        status = kilter_farm_close(farm, &error);
    if (status == KILTER_OK)
        print(reports);
    free_inputs(inputs);
    free(reports);
    return status == KILTER_OK ? 0 : kilter_exit(argv[0], &error);
}
