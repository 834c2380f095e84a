/* Decide whether the run would end sooner on other hosts. */
#include <math.h>

#include "keeper/keeper_private.h"

static const double MARGIN = 1.25;      /* a move pays only if it gains more than this multiple of its cost */
static const double RATIO_LEAST = 1.1;  /* a move pays only if a sweep on the present hosts takes more than
                                           this multiple of a sweep on the other hosts */
static const double LAUNCH_GUESS_S = 2; /* seconds of a launch that are assumed before one was measured */

/* Return the number of sweeps that are left. If the run's length is not known, assume that it is half done.
 */
static double sweeps_left(const kl_keeper_watch *w) {
    return w->expected > w->sweeps ? (double)(w->expected - w->sweeps)
           : w->expected > 0       ? 0
                                   : (double)w->sweeps;
}

static double cost_of_move_s(const kl_keeper *k) {
    const kl_keeper_watch *w = &k->watch;
    double stop_s = fmax(k->costs.stop_s, w->write_s + w->sweep_s);
    double launch_s = k->costs.launch_s > 0 ? k->costs.launch_s : LAUNCH_GUESS_S;
    return stop_s + launch_s;
}

bool kl_keeper_pays(const kl_keeper *k, const kl_keeper_prospect *p) {
    return p->gain_s > MARGIN * k->costs.doubt * p->cost_s && p->stay_sweep_s > RATIO_LEAST * p->sweep_s;
}

kl_keeper_prospect kl_keeper_look_ahead(const kl_keeper *k) {
    kl_keeper_prospect p = {.stay_sweep_s = k->watch.sweep_s,
                            .sweep_s = kl_keeper_forecast_sweep_s(k),
                            .left = sweeps_left(&k->watch),
                            .cost_s = cost_of_move_s(k)};
    if (!(p.stay_sweep_s > 0) || !(p.sweep_s > 0))
        return p;
    p.gain_s = p.left * (p.stay_sweep_s - p.sweep_s);
    p.pays = kl_keeper_pays(k, &p);
    return p;
}
