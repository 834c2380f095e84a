/* Balance one loop: make a plan from the reports of a round. Earlier durations of the present speeds tell
 * how long these speeds will last. The losses of the present shares are counted over all speeds since the
 * last move. So if loads change too fast to follow, the loop ends up with the shares that lose least on
 * average. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "steer/parts.h"

/* the cost of a move counts as at least this part of a period, because smaller losses may be noise */
static const double PERIOD_PART = 0.2;

static void describe(kl_steer *s, kl_steer_plan *plan) {
    kl_outlook *o = &s->outlook;
    plan->before = o->here;
    plan->after = s->proposed ? s->proposed : o->here;
    plan->moved = kl_volume(o, plan->after);
    plan->body_now_s = kl_sweep_s(o, plan->before);
    plan->body_then_s = kl_sweep_s(o, plan->after);
    plan->transfers = s->transfers;
    if (plan->move && o->options.scattered)
        plan->transfer_count = kl_transfers(o->options.ranks, o->here, s->proposed, s->transfers);
    s->gain_s = plan->judgement.gain_s;
}

static void judge_last(kl_outcome *c, bool arrived, kl_steer_plan *plan) {
    if (!c->open || !(arrived || plan->move))
        return;
    c->due_s += c->unpaid_s;
    c->unpaid_s = 0;
    plan->settled = true;
    plan->settled_forecast_s = c->open_forecast_s;
    plan->settled_came_s = c->open_came_s;
    plan->settled_cost_s = c->open_cost_s;
    c->open = false;
}

/* Learn from the reports everything that depends on the ranks' speeds. Return the seconds that moves took. */
static double learn_rest(kl_steer *s, const kl_rank_report *reports) {
    kl_outlook *o = &s->outlook;
    kl_proof *proof = &s->trial.proof;
    double spent_s = kl_learn_movements(o, reports);
    bool rested = kl_proof_rests(proof, o->now_s);
    kl_proof_round(proof, o->now_s, o->sweeps, o->step_s - kl_smaller(spent_s, o->step_s),
                   kl_volume(o, o->equal) == 0);
    if (rested && !kl_proof_rests(proof, o->now_s)) /* the rest of balancing ended early, because the load
                                                       changed */
        kl_account_wake(&s->outcome.account);
    kl_learn_quantum(o, reports);
    kl_cores_learn(&s->trying.cores, o->options.ranks, reports, o->step_s);
    return spent_s;
}

/* Decide with the speeds known so far. `rest_begins` says why balancing rests (pauses) from now on. If it is
 * NULL, balancing does not rest. */
static kilter_status decide(kl_steer *s, double spent_s, const char *rest_begins, kl_steer_plan *plan) {
    uint32_t count = 0;
    bool tries = false;
    kilter_status status = kl_find_candidates(&s->outlook, s->candidates, &count);
    if (status == KILTER_OK)
        status = kl_short_decide(s, spent_s, plan, &tries);
    if (status != KILTER_OK || tries || kl_trial_keeps(s, plan))
        return status;
    kl_choose(s, count, rest_begins, plan);
    kl_trial_begin(s, plan);
    return KILTER_OK;
}

kilter_status kl_steer_round(kl_steer *s, const kl_rank_report *reports, kl_steer_plan *plan) {
    kl_outlook *o = &s->outlook;
    char rest_begins[KL_REASON_BYTES];
    *plan = (kl_steer_plan){.judgement.verdict = KL_STAY_WAITING, .depth = 1};
    s->proposed = NULL;
    kl_learn_step(o, reports);
    kl_learn_bytes(o, reports);
    kilter_status status = kl_learn_costs(o, reports);
    if (status != KILTER_OK)
        return status;
    bool known = kl_learn_speeds(o, reports);
    double spent_s = known ? learn_rest(s, reports) : 0;
    plan->period = kl_period_of(o->options.interact_s, o->movement_s, o->options.quantum_s);
    o->round_s = kl_larger(o->step_s, plan->period.target_s);
    if (!known) {
        snprintf(plan->judgement.reason, sizeof plan->judgement.reason, "no rank has done an iteration yet");
        describe(s, plan);
        return KILTER_OK;
    }
    s->outcome.unit_s = kl_larger(o->movement_s, PERIOD_PART * plan->period.target_s);
    bool rests = kl_outcome_settle(&s->outcome, o, s->mean.lag_s > 0, spent_s, rest_begins);
    if (o->loads.round <= KL_FIRST_ROUNDS)
        kl_loads_moved(&o->loads); /* forget the losses of the first rounds, which will not occur again */
    kl_loads_follow(&o->loads, o->now_s, o->step_s);
    status = decide(s, spent_s, rests ? rest_begins : NULL, plan);
    if (status != KILTER_OK)
        return status;
    describe(s, plan);
    judge_last(&s->outcome, o->loads.arrived, plan);
    plan->lag_s = s->mean.lag_s;
    bool forgets = s->mean.forgets;
    s->mean.forgets = false;
    return forgets ? kl_forget_loads(o) : KILTER_OK;
}

/* --- moves within the remaining part of a sweep --- */

/* Return the seconds by which the plan delays the present sweep, because its transfers first take rows
 * that are still to be done. */
static double delay_s(kl_steer *s, const uint64_t *todo, const kl_steer_plan *plan) {
    kl_outlook *o = &s->outlook;
    memcpy(s->left, todo, o->options.ranks * sizeof *todo);
    for (size_t i = 0; i < plan->transfer_count; i++) {
        const kl_transfer *t = &plan->transfers[i];
        uint64_t undone = t->count < s->left[t->from] ? t->count : s->left[t->from];
        s->left[t->from] -= undone;
        s->left[t->to] += undone;
    }
    return kl_sweep_s(o, s->left) - kl_sweep_s(o, todo);
}

static void put_off(kl_steer *s, double delayed_s, kl_steer_plan *plan) {
    kl_steer_stay(s, KL_STAY_WAITING, plan);
    plan->move = false;
    plan->after = s->outlook.here;
    plan->moved = plan->transfer_count = 0;
    snprintf(plan->judgement.reason, sizeof plan->judgement.reason,
             "other shares would save %s, but delay the rest of this sweep by %s",
             kl_say_s(plan->judgement.gain_s).text, kl_say_s(delayed_s).text);
}

/* Make a plan that distributes the iterations left in this sweep. Do not judge the last move, because its
 * gain cannot be separated from the gain of this plan. */
static void share_left(kl_steer *s, const uint64_t *todo, const kl_prospect *p, kl_steer_plan *plan) {
    s->outcome.open = false;
    plan->move = true;
    plan->transfer_count = kl_transfers(s->outlook.options.ranks, todo, s->left, s->transfers);
    for (size_t i = 0; i < plan->transfer_count; i++)
        plan->moved += plan->transfers[i].count;
    plan->judgement =
        (kl_judgement){.verdict = KL_MOVE_FORESIGHT, .gain_s = p->now_s - p->then_s, .cost_s = p->move_s};
    snprintf(plan->judgement.reason, sizeof plan->judgement.reason,
             "the rest of this sweep takes %s instead of %s: moving costs %s", kl_say_s(p->then_s).text,
             kl_say_s(p->now_s).text, kl_say_s(p->move_s).text);
}

bool kl_steer_left(kl_steer *s, const uint64_t *todo, kl_steer_plan *plan) {
    kl_outlook *o = &s->outlook;
    uint32_t ranks = o->options.ranks;
    uint64_t left = 0;
    for (uint32_t r = 0; r < ranks; r++)
        left += todo[r];
    if (left == 0 || o->loads.round < KL_FIRST_ROUNDS)
        return false;
    double delayed_s = plan->move ? delay_s(s, todo, plan) : 0;
    if (delayed_s > 0 && delayed_s > plan->judgement.gain_s)
        put_off(s, delayed_s, plan);
    if (plan->move || kl_shares(left, ranks, kl_loads_present(&o->loads), 0, s->left) != KILTER_OK)
        return false;
    kl_prospect p = {.now_s = kl_sweep_s(o, todo),
                     .then_s = kl_sweep_s(o, s->left),
                     .move_s = o->options.move.fixed_s + o->per_move_s * kl_busiest(o, todo, s->left)};
    double saved_s = p.now_s - p.then_s;
    if (saved_s <= p.move_s || saved_s <= plan->period.target_s ||
        saved_s <= kl_loads_uncertain(&o->loads) * p.now_s)
        return false;
    share_left(s, todo, &p, plan);
    return true;
}

/* --- what follows from a plan: it is carried out or refused --- */

void kl_steer_commit(kl_steer *s) {
    kl_outlook *o = &s->outlook;
    if (!s->proposed)
        return;
    /* swap the places instead of copying, because the plan's `before` points to o->here */
    kl_place *now = o->previous;
    o->previous = o->here;
    o->here = now;
    kl_put(o, o->here, s->proposed);
    kl_loads_moved(&o->loads);
    kl_moving_begin(o);
    kl_account_move(&s->outcome.account, s->gain_s);
    if (!s->outcome.retreats)
        kl_account_wake(&s->outcome.account); /* a move that pays ends the rest of balancing */
    s->outcome.open = true;
    s->outcome.open_forecast_s = s->gain_s;
    s->outcome.open_came_s = s->outcome.open_cost_s = 0;
    s->is_barred = false;
    s->proposed = NULL;
    o->moved = true;
    kl_short_moved(&s->trying);
}

void kl_steer_refuse(kl_steer *s) {
    kl_outlook *o = &s->outlook;
    kl_put(o, s->barred, o->here);
    kl_put(o, o->here, o->previous);
    s->outcome.account.moves--;
    s->outcome.account.forecast_s -= s->outcome.open_forecast_s;
    s->is_barred = true;
    s->outcome.open = o->moved = false;
    kl_short_refused(&s->trying);
}

void kl_steer_refill(kl_steer *s, double part) {
    s->outlook.refill = part;
}

void kl_steer_place(kl_steer *s, const uint64_t *iterations) {
    kl_outlook *o = &s->outlook;
    memcpy(o->here, iterations, (o->options.ranks + !o->options.scattered) * sizeof *iterations);
}

const uint64_t *kl_steer_shares(const kl_steer *s) {
    return s->outlook.here;
}

const kl_account *kl_steer_account(const kl_steer *s) {
    return &s->outcome.account;
}

bool kl_steer_open_move(const kl_steer *s, double *came_s, double *cost_s) {
    *came_s = s->outcome.open ? s->outcome.open_came_s : 0;
    *cost_s = s->outcome.open ? s->outcome.open_cost_s : 0;
    return s->outcome.open;
}

double kl_steer_rate(const kl_steer *s, uint32_t rank) {
    return s->outlook.loads.mean_speed * s->outlook.loads.speed[rank];
}

/* Allocate the memory of the steer. All places share one block, and all arrays with a number for each rank
 * share another. */
static bool allocate(kl_steer *s) {
    kl_outlook *o = &s->outlook;
    size_t ranks = o->options.ranks;
    kl_cores *c = &s->trying.cores;
    kl_found *f = s->trying.found;
    kl_place **places[] = {&o->here, &o->previous,   &o->equal,  &o->spare,          &s->outcome.anchor,
                           &s->left, &s->trial.kept, &s->barred, &s->mean.halves[0], &s->mean.halves[1]};
    double **numbers[] = {&o->scratch, &o->weight, &o->moving.reported_s,
                          &c->seen,    &c->part,   &c->differs_s,
                          &c->then,    &f[0].part, &f[1].part,
                          &f[2].part,  &f[3].part};
    enum { PLACES = sizeof places / sizeof *places, NUMBERS = sizeof numbers / sizeof *numbers };
    s->places = calloc((PLACES + KL_CANDIDATES) * (ranks + 1), sizeof *s->places);
    s->numbers = calloc(NUMBERS * ranks, sizeof *s->numbers);
    s->transfers = calloc(ranks, sizeof *s->transfers);
    if (!s->places || !s->numbers || !s->transfers)
        return false;
    for (size_t i = 0; i < PLACES; i++)
        *places[i] = s->places + i * (ranks + 1);
    for (size_t i = 0; i < KL_CANDIDATES; i++)
        s->candidates[i] = s->places + (PLACES + i) * (ranks + 1);
    for (size_t i = 0; i < NUMBERS; i++)
        *numbers[i] = s->numbers + i * ranks;
    return kl_loads_init(&o->loads, o->options.ranks) == KILTER_OK;
}

kl_steer *kl_steer_new(const kl_steer_options *options) {
    kl_steer *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    kl_outlook *o = &s->outlook;
    o->options = *options;
    o->costs.n = options->iterations;
    kl_moving_init(o);
    if (!allocate(s)) {
        kl_steer_free(s);
        return NULL;
    }
    kl_short_init(&s->trying, options->ranks);
    kl_equal_shares(options->iterations, options->ranks, o->previous);
    if (options->scattered)
        kl_put(o, o->here, o->previous);
    else
        kl_bounds_of_shares(options->ranks, o->previous, o->here);
    kl_put(o, o->previous, o->here);
    kl_put(o, o->equal, o->here);
    kl_outcome_anchor(&s->outcome, o);
    return s;
}

void kl_steer_free(kl_steer *s) {
    if (!s)
        return;
    kl_loads_free(&s->outlook.loads);
    kl_costs_free(&s->outlook.costs);
    free(s->places);
    free(s->numbers);
    free(s->transfers);
    free(s);
}
