/* The problem: do the lengths of Fisher's 150 irises form three clusters, for three species? The method:
 * Lloyd's k-means from 2000 starting points at the same time. Each iteration is a run. Its shared data is the
 * present state of all starts, and each task moves some of the starts by one step. Before each run the farm
 * chooses the number of tasks from the times measured so far. The result does not depend on this number. The
 * output is the least sum of squared distances; for these data it is 78.851 cm². */
#include <stdio.h>

#include <kilter/kilter.h>

#include "iris.h"

enum { STARTS = 2000, CLUSTERS = 3 };

typedef struct start {
    double centre[CLUSTERS][IRIS_LENGTHS], squares;
} start;

static struct state {
    uint64_t tasks, moved;
    start starts[STARTS];
} all = {.moved = 1};

static int advance(const kilter_task *task, kilter_result *result, void *state) {
    const struct state *now = task->shared.data;
    (void)state;
    for (uint64_t i = task->index * STARTS / now->tasks; i < (task->index + 1) * STARTS / now->tasks; i++) {
        start s = now->starts[i];
        s.squares = iris_step(s.centre, CLUSTERS);
        if (kilter_result_put(result, &s, sizeof s) != KILTER_OK)
            return 1;
    }
    return 0;
}

static void take(const kilter_outcome *outcome, void *user) {
    const start *to = outcome->result.data;
    start *into = &all.starts[outcome->index * STARTS / all.tasks];
    (void)user;
    for (size_t i = 0; i < outcome->result.size / sizeof *to; i++) {
        all.moved += to[i].squares != into[i].squares;
        into[i] = to[i];
    }
}

int main(int argc, char **argv) {
    kilter_farm_options options = {.work = advance, .policy = "ect", .team = "all"};
    kilter_farm *farm;
    kilter_grain grain;
    kilter_error error = {.status = KILTER_OK};
    if (kilter_farm_open(&options, &argc, argv, &farm, &error) != KILTER_OK)
        return kilter_exit(argv[0], &error);
    for (int i = 0; i < STARTS * CLUSTERS; i++) /* the centres of a start are first some of the irises */
        for (int d = 0; d < IRIS_LENGTHS; d++)
            all.starts[i / CLUSTERS].centre[i % CLUSTERS][d] =
                iris_mm[i * 7919L * (i / IRISES + 1) % IRISES][d];
    while (all.moved > 0 && error.status == KILTER_OK) {
        if (kilter_farm_grain(farm, &(kilter_grain_options){.most = STARTS}, &grain, &error) != KILTER_OK)
            break;
        all.tasks = grain.tasks;
        all.moved = 0;
        kilter_run run = {.tasks = all.tasks, .shared = {&all, sizeof all}, .done = take, .work = STARTS};
        kilter_farm_run(farm, &run, &error);
    }
    kilter_farm_close(farm, NULL);
    double least = all.starts[0].squares;
    for (int i = 1; i < STARTS; i++)
        least = all.starts[i].squares < least ? all.starts[i].squares : least;
    if (error.status == KILTER_OK)
        printf("least sum of squares %.3f cm2\n", least / 100);
    return kilter_exit(argv[0], &error);
}
