/* A fork-join program whose times and sizes are given as numbers. Its workers join and leave while it runs.
 */
#ifndef BENCH_FORKJOIN_H
#define BENCH_FORKJOIN_H

#include "kilter/farm.h"

enum { FORKJOIN_POINTS = 16, FORKJOIN_CHANGES = 64 };

/* A point: the number of iterations and the master's time, for one number of tasks in a run. Between two
 * points, the logarithms of these numbers are interpolated linearly. */
typedef struct forkjoin_point {
    double tasks, iterations, master_s; /* tasks in a run; iterations of the program; seconds that the
                                         * master computes alone in all iterations */
} forkjoin_point;

typedef struct forkjoin_change {
    double at; /* the workers join or leave after this fraction of all iterations */
    int count; /* number of workers that join; negative: number of workers that leave */
    double speed;
} forkjoin_change;

typedef struct forkjoin {
    forkjoin_point points[FORKJOIN_POINTS];
    forkjoin_change changes[FORKJOIN_CHANGES];
    int point_count, change_count;
    double work_s; /* work of an iteration, in seconds on a worker of speed 1 */
    const char *policy;
    double tasks; /* number of tasks in a run; 0: the farm chooses */
    /* number of groups into which the tasks are divided; a group is dealt as one task; 0: no groups */
    double groups;
} forkjoin;

/* Functions of an environment in which the fork-join program can run: simulated, or with real processes. */
typedef struct forkjoin_ground {
    void *self;
    double (*now_s)(void *self);
    void (*come)(void *self, int count, double speed);
    void (*go)(void *self, int count, double speed);
    uint64_t (*ask)(void *self, const kilter_grain_options *options);
    void (*run)(void *self, uint64_t groups, uint64_t tasks,
                double work_s); /* groups: number of groups into which the tasks are divided */
    void (*alone)(void *self, double seconds);
} forkjoin_ground;

/* Run the program in this environment, and print its time as a line of JSON. */
void forkjoin_play(const forkjoin *program, const forkjoin_ground *ground);

/* Run the program with Kilter's real master and worker code under a simulated clock. The result is the
 * same on every machine. */
void forkjoin_simulate(const forkjoin *program);
/* Run the program on real processes that are connected over TCP. Their tasks sleep instead of computing. */
void forkjoin_run(const forkjoin *program, const char *key);
/* Be a worker of the farm that forkjoin_run() opens. */
int forkjoin_be_worker(char *master, char *key, double speed);

void forkjoin_fail(const char *what, const char *why) __attribute__((noreturn));

#endif
