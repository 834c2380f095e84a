/* Run the fork-join program on a farm under a simulated clock. */
#include "forkjoin.h"

#include "engine/stepped.h"

static const double LATENCY_S = 50e-6;

typedef struct ground {
    stepped_farm farm;
    double alone_s; /* seconds that the master has worked alone since the previous run */
    bool begun;
} ground;

static double now_s(void *self) {
    return ((ground *)self)->farm.master_actor.now_s;
}

/* Let workers join. Workers that join before the first run are present when the program begins. */
static void come(void *self, int count, double speed) {
    ground *g = self;
    stepped_farm *f = &g->farm;
    for (int i = 0; i < count; i++) {
        stepped_join(f, stepped_task);
        f->workers[f->count - 1].speed = speed;
    }
    if (!g->begun)
        stepped_gather(f);
}

static void go(void *self, int count, double speed) {
    stepped_farm *f = &((ground *)self)->farm;
    for (uint32_t i = 0; i < f->count && count > 0; i++)
        if (f->workers[i].speed == speed && f->workers[i].dies_s == HUGE_VAL) {
            f->workers[i].dies_s = f->master_actor.now_s;
            count--;
        }
}

static uint64_t ask(void *self, const kilter_grain_options *options) {
    ground *g = self;
    kl_grain_look look;
    kl_grain_plan plan;
    kl_grain_question question = {
        .least = options->least, .most = options->most, .runs = options->runs, .user = options->user};
    if (kl_master_grain(g->farm.master, g->alone_s, options->work, &look) != KILTER_OK ||
        kl_grain_choose(&look, &question, &plan) != KILTER_OK)
        forkjoin_fail("the farm did not give a number of tasks", "memory ran out");
    free((void *)(uintptr_t)look.lanes);
    return plan.decision.count;
}

static void run(void *self, uint64_t groups, uint64_t tasks, double work_s) {
    ground *g = self;
    (void)tasks;
    uint64_t done = 0;
    kilter_run run = {.tasks = groups, .done = stepped_count, .user = &done, .work = work_s};
    g->farm.task_s = work_s / (double)groups;
    g->begun = true;
    kl_master_spent(g->farm.master, g->alone_s);
    if (stepped_run(&g->farm, &run, NULL) != KILTER_OK || done != groups)
        forkjoin_fail("a run", "some tasks have no result");
}

static void alone(void *self, double seconds) {
    ground *g = self;
    g->alone_s = seconds;
    g->farm.master_actor.now_s += seconds;
}

static uint32_t most_workers(const forkjoin *program) {
    uint32_t most = 0;
    for (int i = 0; i < program->change_count; i++)
        most += program->changes[i].count > 0 ? (uint32_t)program->changes[i].count : 0;
    return most;
}

void forkjoin_simulate(const forkjoin *program) {
    ground g = {.farm = {.room = most_workers(program), .whole_team = true}};
    stepped_open(&g.farm, program->policy, 0, LATENCY_S, stepped_task);
    forkjoin_play(program, &(forkjoin_ground){&g, now_s, come, go, ask, run, alone});
    stepped_close(&g.farm);
}
