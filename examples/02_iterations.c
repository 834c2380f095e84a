/* The problem: find the 97.5 % quantile of the standard normal density, tabulated on a grid. The method:
 * bisection. Each iteration is a run of the same farm. The shared data is the middle of the present bounds.
 * Every task integrates one slice of the density up to this middle, and the sum of all slices gives the next
 * bounds. Each worker counts its tasks over all runs, in its own state. The output is the quantile, and a
 * check that each task was done once. */
#include <math.h>
#include <stdlib.h>

#include <kilter/kilter.h>

enum { SLICES = 400, POINTS = 5000, ITERATIONS = 30 };

static int start(const kilter_worker *worker, void **state) {
    (void)worker;
    *state = calloc(1, sizeof(uint64_t));
    return *state ? 0 : 1;
}

static int integrate(const kilter_task *task, kilter_result *result, void *state) {
    double upper = *(const double *)task->shared.data, low = -8, sum = 0;
    double width = (upper - low) / SLICES, step = width / POINTS;
    for (int i = 0; i < POINTS; i++) {
        double x = low + width * (double)task->index + step * (i + 0.5);
        sum += step * exp(-x * x / 2) / sqrt(2 * acos(-1));
    }
    ++*(uint64_t *)state;
    return kilter_result_put(result, &sum, sizeof sum);
}

typedef struct total {
    double mass;
    int results;
} total;

static void add(const kilter_outcome *outcome, void *user) {
    total *t = user;
    t->mass += *(const double *)outcome->result.data;
    t->results++;
}

int main(int argc, char **argv) {
    kilter_farm_options options = {.work = integrate, .start = start, .stop = free};
    kilter_farm *farm;
    kilter_error error;
    if (kilter_farm_open(&options, &argc, argv, &farm, &error) != KILTER_OK)
        return kilter_exit(argv[0], &error);
    double low = 0, high = 8;
    int results = 0;
    kilter_status status = KILTER_OK;
    for (int i = 0; i < ITERATIONS && status == KILTER_OK; i++) {
        double middle = (low + high) / 2;
        total t = {0, 0};
        kilter_run run = {.tasks = SLICES,
                          .shared = {&middle, sizeof middle},
                          .order = KILTER_BY_INDEX,
                          .done = add,
                          .user = &t};
        status = kilter_farm_run(farm, &run, &error);
        results += t.results;
        *(t.mass < 0.975 ? &low : &high) = middle;
    }
    kilter_farm_close(farm, NULL);
    if (status != KILTER_OK)
        return kilter_exit(argv[0], &error);
    printf("97.5 %% quantile %.6f, %d results of %d tasks\n", low, results, SLICES * ITERATIONS);
    return 0;
}
