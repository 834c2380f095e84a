/* Test a farm over the ranks of mpirun: `farm_mpi_test [--single | --absent]`. With --single, the program
 * has started MPI itself for one thread only. Then the master handles messages in the caller's thread. With
 * --absent, the last rank never opens the farm, and the other ranks must end with an error. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "farm/farm.h"
#include "report/report.h"
#include "sys/sys.h"

enum { TASKS = 3000, RUNS = 4 };

static int start(const kilter_worker *worker, void **state) {
    (void)worker;
    *state = calloc(1, sizeof(uint64_t));
    return *state == NULL;
}

static int work(const kilter_task *task, kilter_result *result, void *state) {
    uint64_t shared;
    memcpy(&shared, task->shared.data, sizeof shared);
    uint64_t answer[2] = {task->index * shared, ++*(uint64_t *)state};
    if (task->index == 1234)
        return kilter_result_fail(result, "this task must fail");
    return kilter_result_put(result, answer, sizeof answer) != KILTER_OK;
}

typedef struct tally {
    uint64_t next, shared, failed, wrong, of_workers;
} tally;

static void count(const kilter_outcome *o, void *user) {
    tally *t = user;
    uint64_t answer[2] = {0, 0};
    t->wrong += o->index != t->next++;
    if (o->status == KILTER_ERR_TASK) {
        t->failed++;
        t->wrong += o->index != 1234 || strcmp(o->error, "this task must fail") != 0;
        return;
    }
    memcpy(answer, o->result.data, sizeof answer);
    t->wrong += answer[0] != o->index * t->shared;
    t->of_workers = answer[1] > t->of_workers ? answer[1] : t->of_workers;
}

static int run_all(kilter_farm *farm, kilter_error *error) {
    tally t = {0, 0, 0, 0, 0};
    for (int i = 0; i < RUNS; i++) {
        t.shared = (uint64_t)i + 2;
        t.next = 0;
        kilter_run run = {.tasks = TASKS, .order = KILTER_BY_INDEX, .done = count, .user = &t};
        run.shared = (kilter_bytes){&t.shared, sizeof t.shared};
        if (kilter_farm_run(farm, &run, error) != KILTER_ERR_TASK || t.next != TASKS)
            return 1;
    }
    kilter_farm_summary summary;
    kilter_farm_summary_get(farm, &summary);
    /* a worker's state counts the tasks that the worker did in all runs; the greatest count must therefore be
     * larger than one worker's part of a run */
    bool kept = t.of_workers >= TASKS;
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    kept |= t.of_workers * (uint64_t)(size - 1) > TASKS * (RUNS - 1);
    return t.wrong || t.failed != RUNS || !kept || summary.tasks != TASKS;
}

typedef struct growth {
    kilter_farm *farm;
    uint64_t given, added;
} growth;

/* Add one task for each result, until 2·TASKS tasks were added. */
static void add_more(const kilter_outcome *o, void *user) {
    growth *g = user;
    (void)o;
    g->given++;
    if (g->added < 2 * TASKS && kilter_farm_add(g->farm, 1, NULL, NULL, NULL) == KILTER_OK)
        g->added++;
}

static int grow(kilter_farm *farm, kilter_error *error) {
    growth g = {.farm = farm};
    uint64_t shared = 3;
    kilter_run run = {
        .tasks = 100, .shared = {&shared, sizeof shared}, .done = add_more, .user = &g, .grows = true};
    kilter_farm_summary summary;
    kilter_status status = kilter_farm_run(farm, &run, error);
    kilter_farm_summary_get(farm, &summary);
    return status != KILTER_ERR_TASK || g.given != 100 + 2 * TASKS || summary.tasks != g.given ||
           summary.failed != 1;
}

/* Change settings between two runs. A master without a service thread does nothing between runs, so the
 * settings wait for the next run. */
static int tune(kilter_farm *farm, kilter_error *error) {
    kl_report *report;
    kl_tuner *tuner;
    if (kl_report_read_run(kilter_farm_record(farm), &report, error) != KILTER_OK)
        return 1;
    kilter_status status = kl_tuner_attach(report->run.control, 60, &tuner, error);
    kl_report_free(report);
    if (status != KILTER_OK)
        return 1;
    kl_control_setting setting = {.policy_given = true, .policy = "fsc", .workers_given = true, .workers = 1};
    kl_control_state seen;
    kilter_farm_summary summary = {0};
    char answer[KL_CONTROL_ANSWER_BYTES];
    status = kl_tuner_set(tuner, &setting, answer, error);
    if (status == KILTER_OK)
        status = kilter_farm_run(farm, &(kilter_run){.tasks = 100}, error);
    if (status == KILTER_OK)
        status = kl_tuner_look(tuner, &seen, error);
    kilter_farm_summary_get(farm, &summary);
    kl_tuner_detach(tuner);
    return status != KILTER_OK || summary.workers != 1 || seen.present != 1 || seen.done != 100 ||
           strcmp(seen.policy, "fsc") != 0;
}

/* Bind rank 0 to one core, as a launcher may do. */
static void bind_master(void) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
    char binding[KL_BINDING_BYTES];
    if (rank && strcmp(rank, "0") == 0)
        kl_bind_cores(0, 1, binding);
}

/* Check that the record counts all cores of the host, although the master is bound to one core. Return the
 * number of errors. */
static int miscount_cores(const char *record, kilter_error *error) {
    kl_report *report;
    if (kl_report_read(record, &report, error) != KILTER_OK)
        return 1;
    double cores = kl_report_measured(report, "cores");
    kl_report_free(report);
    return cores != kl_host_core_count();
}

/* Open a farm that the last rank never opens. The last rank waits until all other ranks have reported their
 * error. */
static void miss_one(void) {
    char byte = 0;
    int rank, size, provided;
    kilter_farm *farm;
    kilter_error error = {KILTER_OK, ""};
    setenv("KILTER_MPI_START_S", "0.5", 1);
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == size - 1) {
        for (int i = 0; i < size - 1; i++)
            MPI_Recv(&byte, 1, MPI_CHAR, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        kilter_farm_options options = {.work = work, .transport = "mpi", .record = "none"};
        kilter_status status = kilter_farm_open(&options, NULL, NULL, &farm, &error);
        bool right = status == KILTER_ERR_PEER && strstr(error.text, "not all ranks are there after 0.5 s");
        printf("rank %d %s: %s\n", rank, right ? "is right" : "is WRONG", error.text);
        fflush(stdout);
        MPI_Send(&byte, 1, MPI_CHAR, size - 1, 0, MPI_COMM_WORLD);
    }
    /* end without MPI_Finalize(), because MPI_Finalize() would wait for an operation that the last rank never
     * begins */
    _exit(0);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--absent") == 0)
        miss_one();
    bool single = argc > 1 && strcmp(argv[1], "--single") == 0;
    int provided;
    bind_master();
    if (single)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
    kilter_farm *farm = NULL;
    kilter_error error = {KILTER_OK, ""};
    char record[64];
    snprintf(record, sizeof record, "/tmp/kilter-mpi-test-%d.kilter", (int)getpid());
    kilter_farm_options options = {.work = work, .start = start, .stop = free};
    if (single) /* with --resume, test also that the caller's thread waits until results are on the disk */
        options.resume = record;
    else
        options.record = record;
    int failed = 0;
    if (kilter_farm_open(&options, &argc, argv, &farm, &error) == KILTER_OK) {
        failed = run_all(farm, &error) || tune(farm, &error) || grow(farm, &error);
        kilter_farm_close(farm, NULL);
        failed = failed || (!single && miscount_cores(record, &error));
        unlink(record);
        printf(failed ? "FAILED %s\n" : "all results right%s\n", failed ? error.text : "");
    } else {
        failed = kilter_exit("farm_mpi_test", &error);
    }
    if (single)
        MPI_Finalize();
    return failed;
}
