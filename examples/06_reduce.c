/* Sum a million numbers of very different sizes, exactly. The workers combine their sums on the way to the
 * master, so the master gets a few sums instead of a result for each task. With --organise peers, the workers
 * also give tasks to each other, without the master. The sum has the same bits in every run. */
#include <kilter/kilter.h>

#include <math.h>

enum { TASKS = 1000, NUMBERS = 1000 };

static int add_numbers(const kilter_task *task, kilter_result *result, void *state) {
    (void)state;
    kilter_sum sum = {0};
    kilter_random random = kilter_random_of(2026, task->index);
    for (int i = 0; i < NUMBERS; i++) {
        double x = kilter_random_uniform(&random) - 0.5;
        kilter_sum_add(&sum, ldexp(x, (int)(task->index % 200) - 100));
    }
    return kilter_result_put(result, &sum, sizeof sum);
}

static void join(void *into, const void *value, size_t bytes, void *user) {
    (void)bytes, (void)user;
    kilter_sum_join(into, value);
}

int main(int argc, char **argv) {
    kilter_farm *farm;
    kilter_error error;
    kilter_sum sum = {0};
    kilter_farm_options options = {.work = add_numbers, .combine = join};
    kilter_run run = {.tasks = TASKS, .reduce = true, .results = &sum, .result_bytes = sizeof sum};
    if (kilter_farm_open(&options, &argc, argv, &farm, &error) || kilter_farm_run(farm, &run, &error))
        return kilter_exit(argv[0], &error);
    kilter_farm_close(farm, NULL);
    printf("%.17g\n", kilter_sum_value(&sum));
}
