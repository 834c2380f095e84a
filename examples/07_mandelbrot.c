/* Compute the area of the Mandelbrot set. A task counts the points of one row that are in the set. The
 * same program is in the folder plain/ with OpenMP, and with a master and workers in MPI. */
#include <inttypes.h>
#include <stdio.h>

#include <kilter/kilter.h>

#include "mandelbrot.h"

static int count_row(const kilter_task *task, kilter_result *result, void *state) {
    uint64_t inside = points_inside(task->index);
    (void)state;
    return kilter_result_put(result, &inside, sizeof inside);
}

static void add(const kilter_outcome *outcome, void *sum) {
    *(uint64_t *)sum += *(const uint64_t *)outcome->result.data;
}

int main(int argc, char **argv) {
    uint64_t inside = 0;
    kilter_farm *farm;
    kilter_error error;
    if (kilter_farm_open(&(kilter_farm_options){.work = count_row}, &argc, argv, &farm, &error) ||
        kilter_farm_run(farm, &(kilter_run){.tasks = GRID, .done = add, .user = &inside}, &error))
        return kilter_exit(argv[0], &error);
    printf("%" PRIu64 " points inside, area %.4f\n", inside, 9.0 * (double)inside / GRID / GRID);
    return kilter_farm_close(farm, &error) ? kilter_exit(argv[0], &error) : 0;
}
