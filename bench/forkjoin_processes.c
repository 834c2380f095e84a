/* Run the fork-join program on real processes over TCP. Their tasks sleep, so the described speeds hold on
 * a shared machine, too. */
#include "forkjoin.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sys/sys.h"

enum { MOST_WORKERS = 64 };

typedef struct ground {
    kilter_farm *farm;
    char endpoint[64];
    const char *key;
    struct process {
        pid_t pid; /* process id of the worker; 0: the worker has left */
        double speed;
    } workers[MOST_WORKERS];
    int count;
    kilter_bytes *inputs;
} ground;

static void check(kilter_status status, const kilter_error *error) {
    if (status != KILTER_OK)
        forkjoin_fail("the farm", error->text);
}

/* --- a worker --- */

typedef struct group { /* a task of the farm, which stands for a group of the program's tasks */
    double tasks, task_s;
} group;

static int work(const kilter_task *task, kilter_result *result, void *state) {
    group mine;
    memcpy(&mine, task->input.data, sizeof mine);
    /* Sleep once for each task of the group. Each sleep ends a little late. So a group of many tasks takes
     * longer than planned, as a group of real tasks would. */
    for (; mine.tasks >= 1; mine.tasks--)
        kl_nap_s(mine.task_s / *(double *)state);
    kl_nap_s(mine.tasks * mine.task_s / *(double *)state);
    return kilter_result_put(result, &task->index, sizeof task->index);
}

static int start(const kilter_worker *self, void **state) {
    *state = self->user;
    return 0;
}

int forkjoin_be_worker(char *master, char *key, double speed) {
    kilter_farm_options options = {
        .work = work, .start = start, .user = &speed, .join = master, .key = key, .name = "forkjoin"};
    kilter_farm *farm;
    kilter_error error;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return kilter_farm_open(&options, NULL, NULL, &farm, &error) == KILTER_ENDED ? 0 : 1;
}

/* --- the master of the farm --- */

static double now_s(void *self) {
    (void)self;
    return kl_monotonic_s();
}

static pid_t start_worker(ground *g, double speed) {
    char text[32];
    snprintf(text, sizeof text, "%g", speed);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "forkjoin", "worker", g->endpoint, g->key, text, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void come(void *self, int count, double speed) {
    ground *g = self;
    for (int i = 0; i < count && g->count < MOST_WORKERS; i++)
        g->workers[g->count++] = (struct process){start_worker(g, speed), speed};
}

static void end(struct process *worker) {
    kill(worker->pid, SIGKILL);
    waitpid(worker->pid, NULL, 0);
    worker->pid = 0;
}

static void go(void *self, int count, double speed) {
    ground *g = self;
    for (int i = 0; i < g->count && count > 0; i++)
        if (g->workers[i].pid && g->workers[i].speed == speed) {
            end(&g->workers[i]);
            count--;
        }
}

static uint64_t ask(void *self, const kilter_grain_options *options) {
    ground *g = self;
    kilter_grain grain;
    kilter_error error;
    check(kilter_farm_grain(g->farm, options, &grain, &error), &error);
    return grain.tasks;
}

static void count(const kilter_outcome *outcome, void *user) {
    (void)outcome;
    ++*(uint64_t *)user;
}

static void run(void *self, uint64_t groups, uint64_t tasks, double work_s) {
    ground *g = self;
    group each = {(double)tasks / (double)groups, work_s / (double)tasks};
    uint64_t done = 0;
    kilter_error error;
    kilter_bytes *inputs = realloc(g->inputs, groups * sizeof *inputs);
    if (!inputs)
        forkjoin_fail("a run", "memory ran out");
    g->inputs = inputs;
    for (uint64_t t = 0; t < groups; t++)
        inputs[t] = (kilter_bytes){&each, sizeof each};
    kilter_run run = {.tasks = groups, .inputs = inputs, .done = count, .user = &done, .work = work_s};
    check(kilter_farm_run(g->farm, &run, &error), &error);
    if (done != groups)
        forkjoin_fail("a run", "some tasks have no result");
}

static void alone(void *self, double seconds) {
    (void)self;
    kl_spend_s(seconds);
}

static uint32_t first_workers(const forkjoin *program) {
    uint32_t first = 0;
    for (int i = 0; i < program->change_count; i++)
        first += program->changes[i].at <= 0 ? (uint32_t)program->changes[i].count : 0;
    return first;
}

void forkjoin_run(const forkjoin *program, const char *key) {
    ground g = {.key = key};
    kilter_error error;
    snprintf(g.endpoint, sizeof g.endpoint, "tcp://127.0.0.1:%d", 20000 + (int)getpid() % 20000);
    kilter_farm_options options = {.work = work,
                                   .policy = program->policy,
                                   .organise = "master",
                                   .team = "all",
                                   .workers = first_workers(program),
                                   .listen = g.endpoint,
                                   .key = key,
                                   .record = "none",
                                   .name = "forkjoin"};
    check(kilter_farm_open(&options, NULL, NULL, &g.farm, &error), &error);
    forkjoin_play(program, &(forkjoin_ground){&g, now_s, come, go, ask, run, alone});
    check(kilter_farm_close(g.farm, &error), &error);
    for (int i = 0; i < g.count; i++)
        if (g.workers[i].pid)
            end(&g.workers[i]);
    free(g.inputs);
}
