/* Judge the last planned move, and adapt the factor by which a gain must exceed its cost. */
#include <math.h>

#include "keeper/keeper_private.h"

static const double DISAPPOINTS =
    0.25; /* if a move saves less than this part of its forecast gain, the factor costs.doubt is doubled */

void kl_keeper_promise_make(kl_keeper *k, uint64_t number, const kl_keeper_prospect *p) {
    kl_keeper_promise_settle(k);
    k->promise = (kl_keeper_promise){.number = number,
                                     .asked_s = k->now_s,
                                     .stay_sweep_s = p ? p->stay_sweep_s : 0,
                                     .sweep_s = p ? p->sweep_s : 0};
}

static void tell(kl_keeper *k, double came_s) {
    kl_keeper_action *a = kl_keeper_ask_for(k, KL_KEEPER_CAME);
    a->number = k->promise.number;
    a->came_s = came_s;
    a->spent_s = k->promise.spent_s;
}

void kl_keeper_promise_began(kl_keeper *k) {
    kl_keeper_promise *p = &k->promise;
    if (p->number == 0 || p->spent_s > 0)
        return;
    p->spent_s = k->now_s - p->asked_s;
    p->first = k->watch.first;
    tell(k, 0);
}

/* Return the seconds that the move has saved: how much longer the sweeps after the move would have taken on
 * the old hosts. */
static double gained_s(const kl_keeper *k) {
    const kl_keeper_promise *p = &k->promise;
    double sweeps = k->watch.sweeps > p->first ? (double)(k->watch.sweeps - p->first) : 0;
    return sweeps * p->stay_sweep_s - (k->now_s - k->watch.first_s);
}

static void learn(kl_keeper *k, double came_s) {
    const kl_keeper_promise *p = &k->promise;
    double sweeps = k->watch.sweeps > p->first ? (double)(k->watch.sweeps - p->first) : 0;
    double promised_s = sweeps * (p->stay_sweep_s - p->sweep_s);
    k->costs.doubt = came_s < DISAPPOINTS * promised_s ? fmin(2 * k->costs.doubt, KL_KEEPER_DOUBT_MOST)
                                                       : fmax(k->costs.doubt / 2, 1);
}

void kl_keeper_promise_settle(kl_keeper *k) {
    kl_keeper_promise *p = &k->promise;
    bool forecast = p->stay_sweep_s > 0 && p->sweep_s > 0;
    if (p->number > 0 && p->spent_s > 0 && k->watch.reported) {
        double came_s = forecast ? gained_s(k) : 0;
        tell(k, came_s);
        if (forecast && k->watch.sweeps > p->first)
            learn(k, came_s);
    }
    *p = (kl_keeper_promise){.number = 0};
}
