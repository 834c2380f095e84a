/* Sum the squares of 0 … 999,999 on all cores. */
#include <kilter/kilter.h>

static int square(const kilter_task *task, kilter_result *result, void *state) {
    (void)state;
    uint64_t square = task->index * task->index;
    return kilter_result_put(result, &square, sizeof square);
}

static void add(const kilter_outcome *outcome, void *sum) {
    *(uint64_t *)sum += *(const uint64_t *)outcome->result.data;
}

int main(int argc, char **argv) {
    kilter_farm *farm;
    kilter_error error;
    uint64_t sum = 0;
    if (kilter_farm_open(&(kilter_farm_options){.work = square}, &argc, argv, &farm, &error) ||
        kilter_farm_run(farm, &(kilter_run){.tasks = 1000000, .done = add, .user = &sum}, &error))
        return kilter_exit(argv[0], &error);
    kilter_farm_close(farm, NULL);
    printf("%llu\n", (unsigned long long)sum);
}
