/* Decide whether the run leaves its hosts. A person may ask for it, or the owner of a host may need the host.
 * Other hosts may be faster, or a time limit may be near. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "keeper/keeper_private.h"

/* A move must look worthwhile for some time before it is made. The need for it may pass: the loop may balance
 * its rows, or other programs may end. */
static const double SETTLE_LEAST_S = 2, SETTLE_MOST_S = 30;
static const double SETTLE_SWEEPS = 5;
static const double MARGIN_PART =
    0.25; /* greatest part of an attempt's time that may be reserved for saving */

static kl_keeper_action *say_move(kl_keeper *k, const kl_keeper_prospect *p, const char *why) {
    kl_keeper_action *a =
        p && p->sweep_s > 0
            ? kl_keeper_decide(k, KL_DECIDES_RELOCATE,
                               "%s: a sweep takes %s here and %s on %s; a move saves %s in the %.0f sweeps "
                               "left, and costs %s",
                               why, kl_say_s(p->stay_sweep_s).text, kl_say_s(p->sweep_s).text,
                               kl_keeper_say_hosts(k, true).text, kl_say_s(p->gain_s).text, p->left,
                               kl_say_s(p->cost_s).text)
            : kl_keeper_decide(k, KL_DECIDES_RELOCATE, "%s: the run is saved and continues on %s", why,
                               kl_keeper_say_hosts(k, true).text);
    a->decision.count = kl_keeper_ranks(k, true);
    a->decision.gain_s = p ? p->gain_s : 0;
    a->decision.cost_s = p ? p->cost_s : 0;
    return a;
}

static void move(kl_keeper *k, kl_keeper_cause cause, const char *why) {
    kl_keeper_prospect p = kl_keeper_look_ahead(k);
    bool forecast = p.sweep_s > 0 && p.gain_s > 0 && !k->options.queued;
    kl_keeper_action *a = say_move(k, forecast ? &p : NULL, why);
    kl_keeper_promise_make(k, a->number, forecast ? &p : NULL);
    k->tally.by_hand |= cause == KL_KEEPER_FOR_MOVE;
    kl_keeper_save_and_stop(k, cause);
}

/* Record why the run stays on its hosts, if the reason differs from the last recorded one. */
static void go_on(kl_keeper *k, kl_decision_kind kind, const char *why) {
    if (strcmp(k->kept, why) == 0)
        return;
    snprintf(k->kept, sizeof k->kept, "%s", why);
    kl_keeper_decide(k, kind, "%s", why);
}

/* --- requests --- */

static bool carry_out_move(kl_keeper *k) {
    uint32_t placed = k->options.queued ? k->options.ranks : kl_keeper_place(k, k->wish.names);
    if (placed >= k->options.least && (k->options.queued || !kl_keeper_same_place(k))) {
        move(k, KL_KEEPER_FOR_MOVE, "as requested");
        return true;
    }
    k->wish.move = false;
    kl_keeper_decide(k, KL_DECIDES_STAY, "%s: the run stays where it is",
                     placed < k->options.least ? "the hosts of the request are not fit"
                                               : "no host is fitter");
    return false;
}

static const kl_keeper_host *host_to_leave(const kl_keeper *k, uint32_t *count) {
    const kl_keeper_host *first = NULL;
    *count = 0;
    for (uint64_t i = 0; i < k->count; i++) {
        const kl_keeper_host *h = &k->hosts[i];
        if (h->ranks == 0 || (!h->drained && !h->leaving))
            continue;
        first = first ? first : h;
        ++*count;
    }
    return first;
}

/* Return whether the run can leave `leaving` hosts. In a queue, at least this number of other hosts must be
 * idle. Otherwise the next job would only wait for nodes. */
static bool can_leave(kl_keeper *k, uint32_t leaving) {
    uint32_t idle = 0;
    if (!k->options.queued)
        return kl_keeper_place(k, "") >= k->options.least;
    for (uint64_t i = 0; i < k->count; i++)
        idle += k->hosts[i].ranks == 0 && kl_keeper_can_use(&k->hosts[i]);
    return idle >= leaving;
}

static bool carry_out_drain(kl_keeper *k) {
    uint32_t leaving;
    const kl_keeper_host *h = host_to_leave(k, &leaving);
    if (!h)
        return false;
    char why[KL_KEEPER_NAME_BYTES + 32];
    snprintf(why, sizeof why, h->drained ? "%.200s was drained" : "%.200s is taken away", h->name);
    if (can_leave(k, leaving)) {
        move(k, KL_KEEPER_FOR_DRAIN, why);
        return true;
    }
    snprintf(why, sizeof why,
             h->drained ? "%.200s was drained, and no other host is free"
                        : "%.200s is taken away, and no other host is free",
             h->name);
    go_on(k, KL_DECIDES_WAIT, why);
    return false;
}

/* --- speed --- */

/* Return for how many seconds a move must look worthwhile before it is made. These are the seconds of
 * SETTLE_SWEEPS sweeps, or fewer if the slow sweeps lose the cost of the move earlier. */
static double settle_s(const kl_keeper *k, const kl_keeper_prospect *p) {
    double lost_s = p->cost_s * k->costs.doubt / (1 - p->sweep_s / p->stay_sweep_s);
    return fmin(fmax(SETTLE_LEAST_S, fmin(SETTLE_SWEEPS * k->watch.sweep_s, lost_s)), SETTLE_MOST_S);
}

static void say_stay(kl_keeper *k, const kl_keeper_prospect *p) {
    if (p->sweep_s > 0 && p->sweep_s < p->stay_sweep_s && p->gain_s > 0 && !kl_keeper_same_place(k)) {
        char why[KL_KEEPER_TEXT_BYTES];
        snprintf(why, sizeof why, "%s would be faster, but the gain is not worth the cost of a move",
                 kl_keeper_say_hosts(k, true).text);
        go_on(k, KL_DECIDES_WAIT, why);
    } else {
        go_on(k, KL_DECIDES_STAY, "no faster hosts are known");
    }
}

static void consider_speed(kl_keeper *k) {
    uint32_t placed = kl_keeper_place(k, "");
    kl_keeper_prospect p = kl_keeper_look_ahead(k);
    bool others = placed >= k->options.least && !kl_keeper_same_place(k);
    kl_keeper_weigh(k, &p, others);
    if (!others || !p.pays) {
        if (placed >= k->options.least)
            say_stay(k, &p);
        return;
    }
    double settled_s = k->evidence.pays_s + settle_s(k, &p);
    if (k->now_s < settled_s || !kl_keeper_is_evident(k)) {
        k->look_s = fmin(k->look_s, settled_s > k->now_s ? settled_s : k->now_s + KL_KEEPER_APART_S);
        return;
    }
    bool scales = placed != kl_keeper_ranks(k, false);
    move(k, scales ? KL_KEEPER_FOR_SCALE : KL_KEEPER_FOR_SPEED,
         scales ? "another number of ranks is faster" : "other hosts are faster");
}

/* In a queue, move the run to more hosts if more hosts are free and the gain exceeds the cost of the move.
 */
static void consider_queue(kl_keeper *k) {
    uint32_t used = 0, free = 0;
    for (uint64_t i = 0; i < k->count; i++) {
        used += k->hosts[i].ranks > 0;
        free += k->hosts[i].ranks == 0 && kl_keeper_can_use(&k->hosts[i]);
    }
    uint32_t more = used + free < k->options.ranks ? used + free : k->options.ranks;
    kl_keeper_prospect p = kl_keeper_look_ahead(k);
    if (used == 0 || more <= used || !(p.stay_sweep_s > 0))
        return;
    p.sweep_s = p.stay_sweep_s * used / more;
    p.gain_s = p.left * (p.stay_sweep_s - p.sweep_s);
    if (!kl_keeper_pays(k, &p))
        return;
    kl_keeper_action *a = kl_keeper_decide(
        k, KL_DECIDES_RELOCATE, "%u hosts are free: %u instead of %u hosts save %s, and cost %s", free, more,
        used, kl_say_s(p.gain_s).text, kl_say_s(p.cost_s).text);
    a->decision.count = more;
    a->decision.gain_s = p.gain_s;
    a->decision.cost_s = p.cost_s;
    kl_keeper_promise_make(k, a->number, &p);
    kl_keeper_save_and_stop(k, KL_KEEPER_FOR_SCALE);
}

void kl_keeper_consider(kl_keeper *k) {
    if (k->wish.move && carry_out_move(k))
        return;
    if (carry_out_drain(k) || k->options.fixed)
        return;
    if (k->options.queued)
        consider_queue(k);
    else
        consider_speed(k);
}

void kl_keeper_mind_limit(kl_keeper *k) {
    double margin_s = fmin(kl_keeper_margin_s(k), MARGIN_PART * (k->limit_s - k->watch.started_s));
    if (!(k->limit_s > 0) || k->now_s < k->limit_s - margin_s)
        return;
    kl_keeper_action *a =
        kl_keeper_decide(k, KL_DECIDES_RELOCATE, "the time limit is in %s: the run is saved",
                         kl_say_s(fmax(k->limit_s - k->now_s, 0)).text);
    kl_keeper_promise_make(k, a->number, NULL);
    kl_keeper_save_and_stop(k, KL_KEEPER_FOR_LIMIT);
}
