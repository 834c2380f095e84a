/* A fork-join program that is described, on a crew that comes and goes. */
#ifndef BENCH_FORKJOIN_H
#define BENCH_FORKJOIN_H

#include "kilter/farm.h"

enum { FORKJOIN_POINTS = 16, FORKJOIN_CHANGES = 64 };

/* What it takes with a number of tasks; between two points it is a straight line of logarithms. */
typedef struct forkjoin_point {
    double tasks, iterations, master_s; /* master_s: the program alone, in all iterations */
} forkjoin_point;

typedef struct forkjoin_change {
    double at; /* part of the iterations that are done */
    int count; /* of workers that come, below 0 that go */
    double speed;
} forkjoin_change;

typedef struct forkjoin {
    forkjoin_point points[FORKJOIN_POINTS];
    forkjoin_change changes[FORKJOIN_CHANGES];
    int point_count, change_count;
    double work_s; /* of an iteration, on a worker of speed 1 */
    const char *policy;
    double tasks;  /* 0: as many as the farm says */
    double groups; /* that the tasks are dealt in; 0: each by itself */
} forkjoin;

/* Where it runs. */
typedef struct forkjoin_ground {
    void *self;
    double (*now_s)(void *self);
    void (*come)(void *self, int count, double speed);
    void (*go)(void *self, int count, double speed);
    uint64_t (*ask)(void *self, const kilter_grain_options *options);
    void (*run)(void *self, uint64_t groups, uint64_t tasks,
                double work_s); /* groups: of so many tasks in all */
    void (*alone)(void *self, double seconds);
} forkjoin_ground;

/* A line of JSON: what the program took there. */
void forkjoin_play(const forkjoin *program, const forkjoin_ground *ground);

/* The real master and workers under a fake clock, the same on every machine. */
void forkjoin_simulate(const forkjoin *program);
/* Real processes over tcp, whose tasks sleep. */
void forkjoin_run(const forkjoin *program, const char *key);
/* Be one of them. */
int forkjoin_be_worker(char *master, char *key, double speed);

void forkjoin_fail(const char *what, const char *why) __attribute__((noreturn));

#endif
