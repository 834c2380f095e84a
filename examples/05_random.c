/* Estimate pi from random points. Each task has its own random numbers, so any number of workers gives the
 * same result. */
#include <kilter/kilter.h>

enum { TASKS = 1000, POINTS = 10000 };

static int throw_points(const kilter_task *task, kilter_result *result, void *state) {
    (void)state;
    kilter_random random = kilter_random_of(2026, task->index);
    uint64_t inside = 0;
    for (int i = 0; i < POINTS; i++) {
        double x = kilter_random_uniform(&random), y = kilter_random_uniform(&random);
        inside += x * x + y * y < 1;
    }
    return kilter_result_put(result, &inside, sizeof inside);
}

static void add(const kilter_outcome *outcome, void *sum) {
    *(uint64_t *)sum += *(const uint64_t *)outcome->result.data;
}

int main(int argc, char **argv) {
    kilter_farm *farm;
    kilter_error error;
    uint64_t inside = 0;
    if (kilter_farm_open(&(kilter_farm_options){.work = throw_points}, &argc, argv, &farm, &error) ||
        kilter_farm_run(farm, &(kilter_run){.tasks = TASKS, .done = add, .user = &inside}, &error))
        return kilter_exit(argv[0], &error);
    kilter_farm_close(farm, NULL);
    printf("%.6f\n", 4.0 * (double)inside / ((double)TASKS * POINTS));
}
