/* A policy defined by the program: chunks shrink as the run goes on, and a fast worker gets larger chunks. */
#include <kilter/kilter.h>

static int square(const kilter_task *task, kilter_result *result, void *state) {
    (void)state;
    uint64_t square = task->index * task->index;
    return kilter_result_put(result, &square, sizeof square);
}

static void add(const kilter_outcome *outcome, void *sum) {
    *(uint64_t *)sum += *(const uint64_t *)outcome->result.data;
}

/* Return half of the remaining tasks, times the worker's speed divided by the speed of all workers together.
 * Return 10 if the worker's speed is not known. */
static uint64_t half_by_speed(const kilter_policy_view *view, kilter_policy_reason *reason, void *user) {
    (void)user;
    if (view->asks->rate <= 0) {
        kilter_policy_say(reason, "its speed is not known yet");
        return 10;
    }
    double part = view->asks->rate / view->rate;
    kilter_policy_say(reason, "half of its part of %.0f %%", 100 * part);
    return (uint64_t)(part * (double)view->left / 2) + 1;
}

int main(int argc, char **argv) {
    const kilter_policy policy = {
        .name = "half-by-speed",
        .summary = "half of what is left, divided by speed",
        .choose = half_by_speed,
    };
    const kilter_policy *const policies[] = {&policy, NULL};
    kilter_farm_options options = {.work = square, .policies = policies, .policy = "half-by-speed"};
    kilter_farm *farm;
    kilter_error error;
    uint64_t sum = 0;
    if (kilter_farm_open(&options, &argc, argv, &farm, &error) ||
        kilter_farm_run(farm, &(kilter_run){.tasks = 100000, .done = add, .user = &sum}, &error))
        return kilter_exit(argv[0], &error);
    kilter_farm_close(farm, NULL);
    printf("%llu\n", (unsigned long long)sum);
}
