/* The problem: do the lengths of Fisher's 150 irises fall into three clusters, as there are three species?
 * The method: Lloyd's k-means from 2000 starting points at once. Each iteration is a run: the shared data is
 * where every start has got to, each task moves some of them by one step. Before each run the farm says in
 * how many tasks to cut them, from what the workers and this program took so far; the result does not depend
 * on it. You will see: the least sum of squared distances, for these data 78.851 cm². */
#include <stdio.h>

#include <kilter/kilter.h>

#include "iris.h"

enum { STARTS = 2000, CLUSTERS = 3 };

typedef struct start {
    double centre[CLUSTERS][IRIS_LENGTHS], squares;
} start;

static struct state {
    uint64_t tasks, improved;
    start starts[STARTS];
} all = {.improved = 1};

static double distance2(const double *centre, const unsigned char *iris) {
    double sum = 0;
    for (int d = 0; d < IRIS_LENGTHS; d++)
        sum += (iris[d] - centre[d]) * (iris[d] - centre[d]);
    return sum;
}

/* Each iris to its nearest centre, then each centre to the middle of its irises. */
static start step(const start *from) {
    start to = {.squares = 0};
    int size[CLUSTERS] = {0};
    for (int i = 0; i < IRISES; i++) {
        int nearest = 0;
        for (int c = 1; c < CLUSTERS; c++)
            if (distance2(from->centre[c], iris_mm[i]) < distance2(from->centre[nearest], iris_mm[i]))
                nearest = c;
        to.squares += distance2(from->centre[nearest], iris_mm[i]);
        size[nearest]++;
        for (int d = 0; d < IRIS_LENGTHS; d++)
            to.centre[nearest][d] += iris_mm[i][d];
    }
    for (int c = 0; c < CLUSTERS; c++)
        for (int d = 0; d < IRIS_LENGTHS; d++)
            to.centre[c][d] = size[c] ? to.centre[c][d] / size[c] : from->centre[c][d];
    return to;
}

static int advance(const kilter_task *task, kilter_result *result, void *state) {
    const struct state *now = task->shared.data;
    (void)state;
    for (uint64_t i = task->index * STARTS / now->tasks; i < (task->index + 1) * STARTS / now->tasks; i++) {
        start to = step(&now->starts[i]);
        if (kilter_result_put(result, &to, sizeof to) != KILTER_OK)
            return 1;
    }
    return 0;
}

static void take(const kilter_outcome *outcome, void *user) {
    const start *to = outcome->result.data;
    start *into = &all.starts[outcome->index * STARTS / all.tasks];
    (void)user;
    for (size_t i = 0; i < outcome->result.size / sizeof *to; i++) {
        all.improved += to[i].squares < into[i].squares;
        into[i] = to[i];
    }
}

int main(int argc, char **argv) {
    kilter_farm_options options = {.work = advance, .policy = "ect", .team = "all"};
    kilter_farm *farm;
    kilter_grain grain;
    kilter_error error;
    if (kilter_farm_open(&options, &argc, argv, &farm, &error) != KILTER_OK)
        return kilter_exit(argv[0], &error);
    for (int i = 0; i < STARTS * CLUSTERS * IRIS_LENGTHS; i++) { /* the first centres are irises */
        start *s = &all.starts[i / CLUSTERS / IRIS_LENGTHS];
        int c = i / IRIS_LENGTHS, iris = (int)(c * 7919L * (c / 150 + 1) % IRISES);
        s->centre[c % CLUSTERS][i % IRIS_LENGTHS] = iris_mm[iris][i % IRIS_LENGTHS];
        s->squares = 1e9;
    }
    int runs = 0;
    kilter_status status = KILTER_OK;
    for (; status == KILTER_OK && all.improved > 0; runs++) {
        status = kilter_farm_grain(farm, &(kilter_grain_options){.most = STARTS}, &grain, &error);
        if (status != KILTER_OK)
            break;
        all.tasks = grain.tasks;
        all.improved = 0;
        kilter_run run = {.tasks = all.tasks, .shared = {&all, sizeof all}, .done = take, .work = STARTS};
        status = kilter_farm_run(farm, &run, &error);
    }
    kilter_farm_close(farm, NULL);
    if (status != KILTER_OK)
        return kilter_exit(argv[0], &error);
    double least = all.starts[0].squares;
    for (int s = 1; s < STARTS; s++)
        least = all.starts[s].squares < least ? all.starts[s].squares : least;
    printf("%d iterations, least sum of squares %.3f cm2\n", runs, least / 100);
    return 0;
}
