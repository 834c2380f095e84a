/* Choose shares by trials if sweeps are shorter than the time slices in which the scheduler shares a core
 * between processes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "steer/parts.h"

static const double CORE_CHANGED =
    0.2; /* if a rank's share of its core has changed by more than this, another load has begun */
/* while the chosen kind of shares stays the same, rows move only if more than this part of all iterations
 * would move */
static const double SAME_PART = 0.08;
/* A kind of shares is tried only if the forecast for it is below this multiple of the best measured time.
 * Ranks without rows send no halos, and the forecast contains no time for halos. So the limit is higher if
 * ranks on shared cores get no rows. */
static const double WORTH_TRYING = 0.97, WORTH_TRYING_OUT = 1.25;

static const double SHARED_S =
    0.3; /* trials begin when a core has been shared for this number of seconds without a break */
static const double CALM_S =
    1; /* if no core was shared for this number of seconds, the load is not expected to come again */

void kl_short_learn(kl_short *t, uint32_t ranks, const kl_rank_report *reports) {
    for (uint32_t r = 0; r < ranks; r++)
        t->core[r] = reports[r].share > 0 ? reports[r].share : 1;
}

static kilter_status place_of_choice(kl_short *t, const kl_outlook *o, int choice, double sweep_s,
                                     kl_place *at) {
    const double *speed = kl_loads_present(&o->loads);
    uint32_t ranks = o->options.ranks;
    if (choice == KL_CHOICE_EQUAL) {
        kl_put(o, at, o->equal);
        return KILTER_OK;
    }
    double limit = kl_slices_limit(ranks, t->core);
    for (uint32_t r = 0; r < ranks; r++) {
        double part = t->core[r] >= limit        ? 1
                      : choice == KL_CHOICE_OUT  ? 0
                      : choice == KL_CHOICE_LESS ? kl_slices_part(sweep_s, o->options.quantum_s, t->core[r])
                                                 : 1;
        o->scratch[r] = part * speed[r];
    }
    return kl_bounds(&o->costs, ranks, o->scratch, choice != KL_CHOICE_OUT, at);
}

static bool cores_changed(const kl_short *t, const kl_outlook *o) {
    double most = 0;
    for (uint32_t r = 0; r < o->options.ranks; r++)
        most = kl_larger(most, fabs(t->core[r] - t->core_then[r]));
    return most > CORE_CHANGED;
}

/* Return whether the kind of shares whose turn it is should be tried. Its shares are in o->spare. The time
 * that speeds forecast is about the least that it can take. */
static bool may_be_better(const kl_steer *s) {
    const kl_outlook *o = &s->outlook;
    const kl_slices *c = &s->trying.slices;
    bool possible = c->choice == KL_CHOICE_DEEP  ? s->trying.depth > 1
                    : c->choice == KL_CHOICE_OUT ? !s->is_barred /* it needs even more memory */
                                                 : true;
    double limit = c->choice == KL_CHOICE_OUT ? WORTH_TRYING_OUT : WORTH_TRYING;
    return possible && kl_sweep_s(o, o->spare) < limit * kl_slices_best_s(c);
}

/* Find the kind of shares for the next round: the present kind, or the next one that is worth trying. Store
 * the shares in o->spare. */
static kilter_status next_choice(kl_steer *s, double now_s, int before) {
    const kl_outlook *o = &s->outlook;
    kl_short *t = &s->trying;
    kl_slices *c = &t->slices;
    double rows = (double)o->options.iterations / o->options.ranks;
    kilter_status status = place_of_choice(t, o, c->choice, now_s, o->spare);
    while (status == KILTER_OK && c->choice != before && c->choice != KL_CHOICE_EQUAL &&
           kl_slices_sweep_s(c, c->choice) == 0) {
        if (c->choice == KL_CHOICE_DEEP)
            t->depth = kl_slices_depth(kl_slices_best_s(c), o->options.quantum_s, rows, o->options.reach,
                                       o->options.deepest);
        if (may_be_better(s))
            break;
        kl_slices_refuse(c);
        status = place_of_choice(t, o, c->choice, now_s, o->spare);
    }
    return status;
}

/* Count the time of the round as a measurement of the kind of shares that was in use. Return this kind; −1:
 * there was none. */
static int count_round(kl_short *t, const kl_outlook *o, double took_s) {
    kl_slices *c = &t->slices;
    int before = c->active && !t->unplaced ? c->choice : -1;
    bool changed = cores_changed(t, o), counts = !c->active || changed || !t->unplaced;
    if (counts && kl_slices_next(c, o->sweeps, took_s, changed, o->now_s))
        memcpy(t->core_then, t->core, o->options.ranks * sizeof *t->core);
    t->unplaced = false;
    return before;
}

/* Propose the present kind of shares, which is in o->spare. */
static void propose(kl_steer *s, double now_s, int before, kl_steer_plan *plan) {
    const kl_outlook *o = &s->outlook;
    const kl_slices *c = &s->trying.slices;
    double least = before == c->choice ? SAME_PART * (double)o->options.iterations : 0;
    double then_s = kl_slices_sweep_s(c, c->choice);
    s->proposed = (double)kl_volume(o, o->spare) > least ? o->spare : NULL;
    if (s->proposed && kl_steer_barred(s))
        s->proposed = NULL;
    plan->move = s->proposed != NULL;
    plan->depth = c->choice == KL_CHOICE_DEEP ? s->trying.depth : 1;
    plan->now_s = now_s;
    plan->then_s = then_s > 0 ? then_s : now_s;
    plan->judgement = (kl_judgement){.verdict = plan->move ? KL_MOVE_HINDSIGHT : KL_STAY_BALANCED,
                                     .cost_s = plan->move ? kl_move_s(o, o->spare) : 0};
    kl_slices_say(c, now_s, o->options.quantum_s, plan->judgement.reason);
}

/* Return whether a load began so recently that trials may take longer than the load, or ended so recently
 * that it may come again. Meanwhile rows do not follow the speeds, because in such short sweeps speeds do
 * not show which shares are best. But rows that trials have moved may move back. */
static bool is_passing(kl_short *t, const kl_outlook *o, bool shared, double now_s) {
    const kl_slices *c = &t->slices;
    t->shared_s = shared ? t->shared_s + o->step_s : 0;
    if (shared) {
        t->seen_s = o->now_s;
        return !c->active && t->shared_s < SHARED_S;
    }
    bool lately = t->seen_s > 0 && o->now_s - t->seen_s < CALM_S;
    return lately && c->held == KL_CHOICE_EQUAL && kl_slices_short(now_s, o->options.quantum_s) &&
           kl_volume(o, o->equal) == 0;
}

static void wait_for_load(kl_steer *s, double now_s, kl_steer_plan *plan) {
    kl_steer_stay(s, KL_STAY_WAITING, plan);
    plan->now_s = plan->then_s = now_s;
    snprintf(plan->judgement.reason, KL_REASON_BYTES,
             "other processes use a core now and then, in time slices of %s: Kilter tries no shares for "
             "loads shorter than %s",
             kl_say_s(s->outlook.options.quantum_s).text, kl_say_s(SHARED_S).text);
}

kilter_status kl_short_decide(kl_steer *s, double spent_s, kl_steer_plan *plan, bool *tries) {
    const kl_outlook *o = &s->outlook;
    kl_short *t = &s->trying;
    double took_s = o->step_s - kl_smaller(spent_s, o->step_s),
           now_s = o->sweeps > 0 ? took_s / o->sweeps : 0;
    bool shared = !o->options.scattered &&
                  kl_slices_apply(&t->slices, o->options.ranks, t->core, now_s, o->options.quantum_s);
    *tries = shared;
    if (!shared)
        kl_slices_leave(&t->slices);
    if (!o->options.scattered && !s->trial.proof.tries && is_passing(t, o, shared, now_s)) {
        *tries = true;
        wait_for_load(s, now_s, plan);
        return KILTER_OK;
    }
    if (!shared)
        return KILTER_OK;
    if (s->trial.proof.tries)
        kl_proof_end(&s->trial.proof, o->now_s, KL_PROVED_NOTHING);
    int before = count_round(t, o, took_s);
    kilter_status status = next_choice(s, now_s, before);
    if (status == KILTER_OK)
        propose(s, now_s, before, plan);
    return status;
}
