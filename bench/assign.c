/* assign WORKERS TASKS: print the mean CPU time, in seconds, in which the master assigns all tasks of a run.
 * Each task goes to the worker that would finish it first. The workers have speeds 1 to 7. */
#include <stdio.h>
#include <stdlib.h>

#include "decide/decide.h"
#include "sys/sys.h"

int main(int argc, char **argv) {
    enum { REPEATS = 200 };
    uint32_t workers = argc == 3 ? (uint32_t)atoi(argv[1]) : 0;
    uint64_t tasks = argc == 3 ? (uint64_t)atoll(argv[2]) : 0;
    kl_lane *lanes = calloc((size_t)workers + 1, sizeof *lanes);
    uint64_t *counts = calloc((size_t)workers + 1, sizeof *counts);
    if (workers == 0 || tasks == 0 || !lanes || !counts) {
        fprintf(stderr, "usage: assign WORKERS TASKS\n");
        return 2;
    }
    for (uint32_t i = 0; i < workers; i++)
        lanes[i].rate = 1 + i % 7;
    kl_clock clock = kl_clock_system();
    double began_s = kl_busy_s(&clock);
    for (int i = 0; i < REPEATS; i++)
        if (kl_assign_earliest(lanes, workers, 1, tasks, counts) != KILTER_OK)
            return 1;
    printf("%.3g\n", (kl_busy_s(&clock) - began_s) / REPEATS);
    free(lanes);
    free(counts);
    return 0;
}
