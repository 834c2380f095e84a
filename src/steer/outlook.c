#include <string.h>

#include "steer/parts.h"

void kl_put(const kl_outlook *o, kl_place *to, const kl_place *from) {
    memcpy(to, from, (o->options.ranks + 1) * sizeof *to);
}

double kl_time_with(const kl_outlook *o, const kl_place *at, const double *speed) {
    double most = 0;
    for (uint32_t r = 0; r < o->options.ranks; r++) {
        double time =
            (o->options.scattered ? (double)at[r] : kl_costs_work(&o->costs, (kl_span){at[r], at[r + 1]})) /
            speed[r];
        most = time > most ? time : most;
    }
    return most;
}

kilter_status kl_best_for(const kl_outlook *o, const double *speed, kl_place *at) {
    const kl_steer_options *options = &o->options;
    if (!options->scattered)
        return kl_bounds(&o->costs, options->ranks, speed, options->least, at);
    at[options->ranks] = 0;
    return kl_shares(options->iterations, options->ranks, speed, options->least, at);
}

double kl_sweep_s(const kl_outlook *o, const kl_place *at) {
    return o->loads.mean_speed > 0 ? kl_time_with(o, at, kl_loads_present(&o->loads)) / o->loads.mean_speed
                                   : 0;
}

double kl_move_s(const kl_outlook *o, const kl_place *after) {
    return o->options.move.fixed_s + o->per_move_s * kl_busiest(o, o->here, after) +
           o->refill * kl_sweep_s(o, o->here);
}

uint64_t kl_volume(const kl_outlook *o, const kl_place *after) {
    uint64_t sum = 0;
    for (uint32_t r = 0; r < o->options.ranks; r++)
        sum += after[r] > o->here[r]  ? after[r] - o->here[r]
               : o->options.scattered ? 0
                                      : o->here[r] - after[r];
    return sum;
}

/* Return the seconds that the ranks spent on computing since the last round. Sweeps before a move count with
 * the shares before the move. */
double kl_computed_s(const kl_outlook *o) {
    return o->as_before * kl_time_with(o, o->previous, o->loads.raw) +
           (o->sweeps - o->as_before) * kl_time_with(o, o->here, o->loads.raw);
}

double kl_share_of_time(const kl_outlook *o) {
    double compute_s = kl_computed_s(o);
    return o->sweeps > 0 && o->step_s > 0 && compute_s < o->step_s ? compute_s / o->step_s : 1;
}
