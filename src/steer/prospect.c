/* Compare the present shares with other shares: over the time since the last move, and in a forecast for the
 * expected speeds. */
#include <math.h>

#include "steer/parts.h"

enum {
    REACTS = 4, /* number of rounds between a change of speeds and the move that follows it */
    /* number of states of speeds that a cycle visits: a state, another one, and the first one again */
    CYCLE = 3,
};

/* A time of elapsed_s seconds, and two numbers of sweeps. `done` sweeps were done in this time with the
 * present shares. With other shares, `would` sweeps would have been done. */
typedef struct tally {
    double elapsed_s, done, would;
} tally;

static tally each_second(const kl_outlook *o, const kl_place *after, const double *speed, double level) {
    return (tally){1, level / kl_time_with(o, o->here, speed), level / kl_time_with(o, after, speed)};
}

static void count(tally *t, const tally *each, double elapsed_s) {
    t->elapsed_s += elapsed_s;
    t->done += elapsed_s * each->done;
    t->would += elapsed_s * each->would;
}

/* Return the seconds that other shares would have saved in the time t->elapsed_s. Compare how many sweeps the
 * present and the other shares do in the same time, because both then have the same loads. */
static double saved_s(const tally *t) {
    return t->would > 0 ? t->elapsed_s * (1 - t->done / t->would) : 0;
}

/* Return the part of a sweep's time that the shares `after` would save or lose. The caller estimates an error
 * with this part. The time at which the present speeds began may be wrong by up to one round. So the loss
 * since that time may be wrong by the returned part of a round. */
static double part_apart(const kl_outlook *o, const kl_place *after) {
    const double *speed = kl_loads_present(&o->loads);
    double now = kl_time_with(o, o->here, speed), then = kl_time_with(o, after, speed);
    return then < now ? 1 - then / now : 1 - now / then;
}

double kl_lost_s(const kl_outlook *o, const kl_place *after, bool cycles) {
    const kl_loads *l = &o->loads;
    double most_s = 0, last_s = 0, doubt_s = o->round_s * part_apart(o, after);
    tally since = {0}, pending = each_second(o, after, l->speed, l->mean_speed), each[KL_STATES];
    bool known[KL_STATES] = {false};
    uint32_t visits = l->unsettled > 0, least = cycles ? CYCLE : 0;
    count(&since, &pending, l->pending_s);
    if (!cycles)
        most_s = kl_larger(most_s, saved_s(&since));
    for (uint32_t i = l->visit_count; i-- > 0;) {
        uint32_t state = l->visits[i].state;
        double before_s = last_s;
        if (!known[state])
            each[state] = each_second(o, after, l->states[state].speed, l->states[state].level);
        known[state] = true;
        count(&since, &each[state], l->visits[i].stayed_s);
        last_s = saved_s(&since);
        if (++visits >= least)
            most_s =
                kl_larger(most_s, cycles ? kl_smaller(before_s, last_s) - doubt_s * sqrt(visits) : last_s);
    }
    return most_s * kl_share_of_time(o);
}

static double stayed_s(const kl_loads *l, uint32_t state) {
    double sum_s = 0;
    for (uint32_t i = 0; i < l->visit_count; i++)
        sum_s += l->visits[i].state == state ? l->visits[i].stayed_s : 0;
    return sum_s;
}

kilter_status kl_find_candidates(const kl_outlook *o, kl_place *const *candidates, uint32_t *count) {
    const kl_loads *l = &o->loads;
    uint32_t n = 0, lived = l->unsettled > 0;
    kilter_status status = kl_best_for(o, kl_loads_present(l), candidates[n++]);
    for (uint32_t r = 0; r < l->ranks; r++)
        o->scratch[r] = l->pending_s * l->mean_speed * l->speed[r];
    for (uint32_t i = 0; i < KL_STATES && status == KILTER_OK; i++) {
        double weight = stayed_s(l, i) * l->states[i].level;
        if (weight <= 0)
            continue;
        lived++;
        for (uint32_t r = 0; r < l->ranks; r++)
            o->scratch[r] += weight * l->states[i].speed[r];
        if (i != l->here || l->unsettled > 0)
            status = kl_best_for(o, l->states[i].speed, candidates[n++]);
    }
    if (status == KILTER_OK && lived > 1) {
        status = kl_best_for(o, o->scratch, candidates[n++]);
        kl_put(o, candidates[n++], o->equal);
    }
    *count = n;
    return status;
}

const kl_state *kl_next_state(const kl_loads *l) {
    const kl_state *next = NULL;
    for (uint32_t i = 0; i < KL_STATES; i++)
        if (i != l->here && l->states[i].seen > 0 && (!next || l->states[i].seen > next->seen))
            next = &l->states[i];
    return next;
}

/* Return the seconds that the shares `at` are expected to lose in the next state of speeds. This is the
 * smaller of two losses: the loss if rows move when that state begins, and the loss if they do not. The best
 * shares for that state are in o->spare. */
static double next_state_s(const kl_outlook *o, const kl_state *next, const kl_place *at, double moving_s) {
    double part = 1 - kl_time_with(o, o->spare, next->speed) / kl_time_with(o, at, next->speed);
    double followed_s = moving_s + REACTS * o->round_s * part, borne_s = next->lasts_s * part;
    if (part <= 0)
        return 0;
    return next->lasts_s > 0 && borne_s < followed_s ? borne_s : followed_s;
}

static double back_s(const kl_outlook *o, const kl_place *after, double moving_s) {
    const kl_state *next = kl_next_state(&o->loads);
    if (!next || kl_best_for(o, next->speed, o->spare) != KILTER_OK)
        return moving_s;
    double more_s = next_state_s(o, next, after, moving_s) - next_state_s(o, next, o->here, moving_s);
    return more_s > 0 ? more_s : 0;
}

bool kl_comes_and_goes(const kl_loads *l) {
    if (l->unsettled == 0)
        return kl_loads_lasts_s(l) > 0;
    for (uint32_t i = 0; i < KL_STATES; i++)
        if (i != l->here && l->states[i].lasts_s > 0)
            return true;
    return false;
}

kl_prospect kl_prospect_of(const kl_outlook *o, const kl_place *after, bool cycles) {
    return (kl_prospect){.now_s = kl_sweep_s(o, o->here),
                         .then_s = kl_sweep_s(o, after),
                         .lasted_s = kl_loads_lasted_s(&o->loads, o->now_s) * kl_share_of_time(o),
                         .lost_s = kl_lost_s(o, after, cycles),
                         .move_s = kl_move_s(o, after)};
}

/* Include the state of speeds that is expected next. While speeds change to another state, that state is not
 * known, so it is left out. */
kl_prospect kl_foresee(const kl_outlook *o, const kl_place *best, bool cycles) {
    const kl_loads *l = &o->loads;
    kl_prospect p = kl_prospect_of(o, best, cycles);
    p.lasts_s = l->unsettled > 0 ? 0 : kl_loads_lasts_s(l) * kl_share_of_time(o);
    p.back_s = p.lasts_s > 0 ? back_s(o, best, p.move_s) : 0;
    return p;
}
