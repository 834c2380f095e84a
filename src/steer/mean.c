/* Decide about shares for the mean of changing speeds, in loops whose ranks may run ahead of each other. */
#include "steer/parts.h"

/* after speeds have changed to a known state, rows move within this number of rounds */
enum { RECALLS = 3 };
/* Use shares for the mean speeds only if a sweep then takes less than this part of its time with the best
 * alternative. The alternatives are other shares, and moving rows at each change of speeds. */
static const double AVERAGED_PART = 0.98;
/* with shares for the mean speeds, a rank loses this fraction of what it gains by working ahead in its fast
 * half; simulations gave 0.63 to 0.75 */
static const double AHEAD_LOST = 2.0 / 3;
/* give up shares for the mean speeds if sweeps take more than this multiple of the time with the best shares
 * for the latest speeds */
static const double AVERAGED_MOST = 1.15;

/* One of the two states between which the speeds alternate; such states are called halves. */
typedef struct half {
    const kl_state *state;
    double lasts_s;
    kl_place *best;
} half;

static double rate_in(const kl_outlook *o, const half *h, const kl_place *at) {
    return h->state->level / kl_time_with(o, at, h->state->speed);
}

static double follow_s(const kl_outlook *o, const half h[2], double moving_s) {
    double done = 0;
    for (int i = 0; i < 2; i++) {
        double late_s = kl_smaller(RECALLS * o->round_s, h[i].lasts_s);
        done += late_s * rate_in(o, &h[i], h[1 - i].best) +
                kl_larger(0, h[i].lasts_s - late_s - moving_s) * rate_in(o, &h[i], h[i].best);
    }
    return (h[0].lasts_s + h[1].lasts_s) / done;
}

/* Return the seconds of a sweep with shares for the mean speeds. While a rank is fast, it works ahead for the
 * time in which it is slow. At the beginning of a sweep no rank is ahead, so a part of the gain is lost. */
static double averaged_s(const kl_outlook *o, const half h[2], const kl_place *at, const double *mean) {
    double pace_s = kl_time_with(o, at, mean), ahead_s = 0;
    for (int i = 0; i < 2; i++)
        ahead_s = kl_larger(ahead_s, h[i].lasts_s * (1 - pace_s * rate_in(o, &h[i], at)));
    return pace_s + AHEAD_LOST * ahead_s;
}

bool kl_mean_pays(kl_mean *m, const kl_outlook *o, kl_prospect *p) {
    const kl_loads *l = &o->loads;
    const kl_state *here = &l->states[l->here], *next = kl_next_state(l);
    if (!o->options.buffers || l->unsettled > 0 || here->ended == 0 || !next || next->ended == 0)
        return false;
    half h[2] = {{here, here->lasts_s, m->halves[0]}, {next, next->lasts_s, m->halves[1]}};
    double cycle_s = h[0].lasts_s + h[1].lasts_s;
    for (uint32_t r = 0; r < l->ranks; r++)
        o->scratch[r] =
            (h[0].lasts_s * here->level * here->speed[r] + h[1].lasts_s * next->level * next->speed[r]) /
            cycle_s;
    if (kl_best_for(o, here->speed, h[0].best) != KILTER_OK ||
        kl_best_for(o, next->speed, h[1].best) != KILTER_OK ||
        kl_best_for(o, o->scratch, o->spare) != KILTER_OK)
        return false;
    const kl_place *places[] = {o->here, o->equal, o->spare, h[0].best, h[1].best};
    p->move_s = kl_move_s(o, o->spare);
    p->now_s = follow_s(o, h, kl_larger(p->move_s, o->movement_s));
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        /* mean seconds of a sweep over both states, without moves */
        double stay_s = (h[0].lasts_s + h[1].lasts_s) / (h[0].lasts_s * rate_in(o, &h[0], places[i]) +
                                                         h[1].lasts_s * rate_in(o, &h[1], places[i]));
        p->now_s = kl_smaller(p->now_s, stay_s);
    }
    p->then_s = averaged_s(o, h, o->spare, o->scratch);
    p->lasted_s = (double)here->ended * h[0].lasts_s + (double)next->ended * h[1].lasts_s;
    p->lost_s = p->lasted_s * (1 - p->then_s / p->now_s) * kl_share_of_time(o);
    m->cycle_s = cycle_s;
    return p->then_s < AVERAGED_PART * p->now_s;
}

bool kl_mean_fails(const kl_mean *m, const kl_outlook *o) {
    if (m->lag_s == 0 || kl_best_for(o, o->loads.raw, o->spare) != KILTER_OK)
        return false;
    return o->loads.dwells > 0 ||
           kl_time_with(o, o->here, o->loads.raw) > AVERAGED_MOST * kl_time_with(o, o->spare, o->loads.raw);
}
