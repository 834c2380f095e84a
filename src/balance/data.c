/* Inputs and weights of the run's tasks: the user's arrays, or own copies after tasks were added. */
#include "balance/balance.h"

/* Make one array of the inputs of all tasks. The inputs of the added tasks come last. */
static bool add_inputs(kl_run_data *d, uint64_t tasks, uint64_t count, const kilter_bytes *inputs) {
    bool own = d->inputs && d->inputs == d->own_inputs;
    if (!d->inputs && !inputs)
        return true;
    kilter_bytes *all = kl_array_grow(d->own_inputs, &d->inputs_room, tasks + count, sizeof *all);
    if (!all)
        return false;
    for (uint64_t i = 0; !own && i < tasks; i++)
        all[i] = d->inputs ? d->inputs[i] : (kilter_bytes){0};
    for (uint64_t i = 0; i < count; i++)
        all[tasks + i] = inputs ? inputs[i] : (kilter_bytes){0};
    d->inputs = d->own_inputs = all;
    return true;
}

/* Make one array of the weights of all tasks. The weights of the added tasks come last. A task without a
 * weight is 1 unit. */
static bool add_weights(kl_run_data *d, const kl_bag *bag, uint64_t count, const double *weights) {
    uint64_t tasks = bag->tasks;
    double unit = 1 / bag->scale;
    bool own = d->weights && d->weights == d->own_weights;
    if (!d->weights && !weights)
        return true;
    double *all = kl_array_grow(d->own_weights, &d->weights_room, tasks + count, sizeof *all);
    if (!all)
        return false;
    for (uint64_t i = 0; !own && i < tasks; i++)
        all[i] = d->weights ? d->weights[i] : unit;
    for (uint64_t i = 0; i < count; i++)
        all[tasks + i] = weights ? weights[i] : unit;
    d->weights = d->own_weights = all;
    return true;
}

bool kl_run_data_add(kl_run_data *d, const kl_bag *bag, uint64_t count, const kilter_bytes *inputs,
                     const double *weights) {
    return add_inputs(d, bag->tasks, count, inputs) && add_weights(d, bag, count, weights);
}
