/* Choose between staying, moving and resting, by the forecasts for the candidate shares. */
#include <stdio.h>

#include "steer/parts.h"

/* Other shares must save more than this number of seconds in a sweep. Measured speeds have an error that more
 * measurements do not reduce. One reason is that the time in the body includes reading the clock, and waiting
 * for the first row to come from memory. */
static const double LEAST_GAIN_S = 3e-7;

/* If speeds were not seen before, rows move only after the speeds have lasted for this number of seconds. A
 * shorter load often ends before rows have moved and moved back. */
static const double LEAST_AGE_S = 0.15;

/* The forecast of a sweep's time may be wrong by this fraction of the time in which a rank does not compute.
 * If there are more ranks than cores, ranks compute in turn, and each rank waits for most of a sweep. */
static const double OTHER_PART = 0.1;

/* Return the fraction by which the forecast of a sweep's time may be wrong. */
static double uncertain_part(const kl_outlook *o, double sweep_s) {
    double noise = kl_loads_uncertain(&o->loads), least = LEAST_GAIN_S / sweep_s,
           other = OTHER_PART * (1 - kl_share_of_time(o));
    return kl_larger(noise, kl_larger(least, other));
}

/* Return whether moving to the shares `after` pays and saves more than the possible error of measurements.
 * Write the judgement to *j. */
static bool worth(const kl_outlook *o, const kl_place *after, const kl_prospect *p, kl_judgement *j) {
    double uncertain = uncertain_part(o, p->now_s);
    kl_whether(p, j);
    if (!(j->verdict == KL_MOVE_FORESIGHT || j->verdict == KL_MOVE_HINDSIGHT))
        return false;
    /* the speeds measured last may be the beginning of a change, so the move must pay at these speeds as
     * well */
    if (kl_time_with(o, after, o->loads.raw) >= kl_time_with(o, o->here, o->loads.raw)) {
        j->verdict = KL_STAY_WAITING;
        snprintf(j->reason, sizeof j->reason,
                 "a sweep could take %s instead of %s, but not at the speeds measured last",
                 kl_say_s(p->then_s).text, kl_say_s(p->now_s).text);
        return false;
    }
    if (o->loads.round >= KL_FIRST_ROUNDS && 1 - p->then_s / p->now_s > uncertain)
        return true;
    j->verdict = KL_STAY_BALANCED;
    snprintf(j->reason, sizeof j->reason,
             "balanced as far as is known: other shares would save %s in a sweep of %s, less than the error "
             "of measurements, %s",
             kl_say_s(p->now_s - p->then_s).text, kl_say_s(p->now_s).text,
             kl_say_s(uncertain * p->now_s).text);
    return false;
}

/* Return whether the move may be made now. If the reason for the move is a loss in the past, the present
 * speeds must have lasted for LEAST_AGE_S seconds. */
static bool is_old(const kl_prospect *p, kl_judgement *j) {
    if (j->verdict != KL_MOVE_HINDSIGHT || p->lasted_s >= LEAST_AGE_S)
        return true;
    j->verdict = KL_STAY_WAITING;
    snprintf(j->reason, sizeof j->reason,
             "a sweep could take %s instead of %s, if the speeds of the last %s remain",
             kl_say_s(p->then_s).text, kl_say_s(p->now_s).text, kl_say_s(p->lasted_s).text);
    return false;
}

static void adopt(kl_steer_plan *plan, const kl_prospect *p, const kl_judgement *j) {
    plan->now_s = p->now_s;
    plan->then_s = p->then_s;
    plan->judgement = *j;
}

static void choose_candidate(kl_steer *s, uint32_t count, kl_steer_plan *plan) {
    kl_outlook *o = &s->outlook;
    /* if speeds come and go, a loss of time in one state of the speeds is no reason to move */
    bool cycles = kl_comes_and_goes(&o->loads);
    kl_prospect p = kl_foresee(o, s->candidates[0], cycles);
    kl_judgement j;
    if (worth(o, s->candidates[0], &p, &j) && is_old(&p, &j))
        s->proposed = s->candidates[0];
    adopt(plan, &p, &j);
    if (j.verdict == KL_MOVE_FORESIGHT)
        return;
    double most_s = s->proposed ? p.lost_s - p.move_s : 0;
    for (uint32_t i = 1; i < count; i++) {
        p = kl_prospect_of(o, s->candidates[i], cycles);
        if (p.lost_s - p.move_s > most_s && worth(o, s->candidates[i], &p, &j)) {
            most_s = p.lost_s - p.move_s;
            s->proposed = s->candidates[i];
            adopt(plan, &p, &j);
        }
    }
}

/* Return whether the proposed shares count as refused already: no rank's share differs from refused shares
 * by more than a tenth of a mean share. */
bool kl_steer_barred(const kl_steer *s) {
    const kl_outlook *o = &s->outlook;
    uint64_t tolerance = o->options.iterations / o->options.ranks / 10;
    for (uint32_t r = 0; s->is_barred && r <= o->options.ranks; r++) {
        uint64_t a = s->proposed[r], b = s->barred[r];
        if ((a > b ? a - b : b - a) > tolerance)
            return false;
    }
    return s->is_barred;
}

void kl_steer_stay(kl_steer *s, kl_verdict verdict, kl_steer_plan *plan) {
    s->proposed = NULL;
    plan->judgement.verdict = verdict;
}

/* Go back to equal shares and let balancing rest, because equal shares would have been better lately. */
static void retreat(kl_steer *s, const char *rest_begins, kl_steer_plan *plan) {
    kl_outlook *o = &s->outlook;
    kl_judgement *j = &plan->judgement;
    kl_prospect p = kl_prospect_of(o, o->equal, false);
    *j = (kl_judgement){.verdict = KL_MOVE_HINDSIGHT, .cost_s = p.move_s};
    snprintf(j->reason, sizeof j->reason, "%.120s; until then, equal shares", rest_begins);
    plan->now_s = p.now_s;
    plan->then_s = p.then_s;
    s->proposed = o->equal;
}

/* Choose shares for the mean of changing speeds, or give up such shares. In both cases forget the known
 * states of speeds, because reports then cover another length of time. With such shares, a report covers a
 * whole cycle of the speeds and measures their mean. */
static void average(kl_steer *s, kl_steer_plan *plan) {
    kl_outlook *o = &s->outlook;
    kl_prospect p = {0};
    if (kl_mean_fails(&s->mean, o)) {
        s->mean.lag_s = 0;
        s->mean.forgets = true;
    } else if (s->mean.lag_s == 0 && kl_mean_pays(&s->mean, o, &p) && p.lost_s >= p.move_s) {
        s->mean.lag_s = s->mean.cycle_s;
        s->mean.forgets = true;
        s->proposed = kl_volume(o, o->spare) > 0 ? o->spare : NULL;
        kl_judgement j = {.verdict = s->proposed ? KL_MOVE_HINDSIGHT : KL_STAY_BALANCED,
                          .gain_s = (1 - p.then_s / p.now_s) * p.lasted_s,
                          .cost_s = p.move_s};
        snprintf(j.reason, sizeof j.reason,
                 "speeds change every %s: with shares for their mean, and ranks ahead of each other, a sweep "
                 "takes %s instead of %s",
                 kl_say_s(s->mean.cycle_s).text, kl_say_s(p.then_s).text, kl_say_s(p.now_s).text);
        adopt(plan, &p, &j);
    }
}

void kl_choose(kl_steer *s, uint32_t count, const char *rest_begins, kl_steer_plan *plan) {
    kl_outlook *o = &s->outlook;
    char *reason = plan->judgement.reason;
    choose_candidate(s, count, plan);
    if (rest_begins && s->outcome.retreats) {
        retreat(s, rest_begins, plan);
    } else if (rest_begins) {
        kl_steer_stay(s, KL_STAY_RESTING, plan);
        snprintf(reason, KL_REASON_BYTES, "%s", rest_begins);
    } else if (s->proposed &&
               kl_account_rests(&s->outcome.account, o->now_s, kl_lost_s(o, s->proposed, false))) {
        kl_steer_stay(s, KL_STAY_RESTING, plan);
        snprintf(reason, KL_REASON_BYTES,
                 "balancing rests for another %s, although a sweep could take %s instead of %s",
                 kl_say_s(s->outcome.account.rests_until_s - o->now_s).text, kl_say_s(plan->then_s).text,
                 kl_say_s(plan->now_s).text);
    } else if (s->proposed && kl_moving_open(o)) {
        kl_steer_stay(s, KL_STAY_WAITING, plan);
        snprintf(reason, KL_REASON_BYTES, "the last move is still under way, so its cost is not known");
    } else if (s->proposed && kl_steer_barred(s)) {
        kl_steer_stay(s, KL_STAY_WAITING, plan);
        snprintf(reason, KL_REASON_BYTES,
                 "such shares were refused before: a rank had no memory for its rows");
    }
    average(s, plan);
    plan->move = s->proposed != NULL;
}
