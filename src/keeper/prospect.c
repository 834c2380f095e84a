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

/* --- evidence --- */

static const double SUM_LEAST = 0.05;
/* Forecasts that differ only by chance reach the required sum about once in CHANCE_APART measurements, if
 * their mean is BELOW less than a move needs. */
static const double CHANCE_APART = 1000, BELOW = 0.05;

/* Return the sum that a move needs. It is the control limit of a CUSUM chart for values that are BELOW less
 * than needed on average. The run length of the chart is taken to be that of a random walk. */
static double needed(const kl_keeper_evidence *e) {
    double sigma = fmax(kl_keeper_sigma(&e->change), kl_keeper_sigma(&e->stay)), variance = sigma * sigma;
    double limit = variance / (2 * BELOW) * log1p(CHANCE_APART * 2 * BELOW * BELOW / variance);
    return fmax(SUM_LEAST, limit);
}

void kl_keeper_weigh(kl_keeper *k, const kl_keeper_prospect *p, bool others) {
    kl_keeper_evidence *e = &k->evidence;
    if (!(p->sweep_s > 0) || !(p->stay_sweep_s > 0)) {
        e->pays_s = 0;
        return;
    }
    double shorter = log(p->stay_sweep_s / p->sweep_s), apart = (k->now_s - e->weighed_s) / KL_KEEPER_APART_S;
    kl_keeper_note_change(&e->change, shorter, k->now_s, k->watch.started_s);
    kl_keeper_note_change(&e->stay, log(p->stay_sweep_s), k->now_s, k->watch.started_s);
    e->weighed_s = k->now_s;
    /* Hosts are measured early if sweeps are slow. So a longer time before a measurement is a time without
     * slow sweeps, and counts against a move. */
    e->sum = fmax(0, e->sum - fmax(0, apart - 1) * log(RATIO_LEAST));
    e->sum += fmin(1, apart) * ((others ? shorter : 0) - log(RATIO_LEAST));
    e->sum = fmin(fmax(0, e->sum), needed(e));
    if (!others || !p->pays)
        e->pays_s = 0;
    else if (e->pays_s == 0)
        e->pays_s = k->now_s;
}

bool kl_keeper_is_evident(const kl_keeper *k) {
    return k->evidence.sum >= needed(&k->evidence);
}
