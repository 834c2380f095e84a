#include "steer/loads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* a change of speeds that still continues after this number of rounds counts as a new state */
    SETTLES = 4,
    AVERAGED = 16, /* a state's speeds are averaged over at most this number of rounds */
    /* the usual duration of a state of speeds is the mean of at most this number of its last durations */
    DWELLS = 4,
    /* the usual duration of a new state is the mean duration of at most this number of recent states */
    OTHERS = 8,
    /* the mean duration over all states is used if at least this number of states have ended */
    SEVERAL = 3,
};
/* two sets of speeds count as the same state if no rank's speeds differ by more than this factor */
static const double SAME = 1.15;
static const double NOISE_H = 0.9; /* weight of earlier rounds in the mean noise of measured speeds */

kilter_status kl_loads_init(kl_loads *l, uint32_t ranks) {
    *l = (kl_loads){.ranks = ranks};
    l->trends = calloc(ranks, sizeof *l->trends);
    l->raw = calloc(ranks, sizeof *l->raw);
    l->speed = calloc(ranks, sizeof *l->speed);
    bool got = l->trends && l->raw && l->speed;
    for (uint32_t i = 0; i < KL_STATES; i++)
        got = (l->states[i].speed = calloc(ranks, sizeof *l->states[i].speed)) && got;
    return got ? KILTER_OK : KILTER_ERR_MEMORY;
}

void kl_loads_free(kl_loads *l) {
    for (uint32_t i = 0; i < KL_STATES; i++)
        free(l->states[i].speed);
    free(l->trends);
    free(l->raw);
    free(l->speed);
    *l = (kl_loads){0};
}

/* --- speeds --- */

static double mean_of_known(const double *speeds, uint32_t ranks) {
    double sum = 0;
    uint32_t known = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        sum += speeds[r];
        known += speeds[r] > 0;
    }
    return known > 0 ? sum / known : 0;
}

/* Set the speeds of ranks that are not known to `guess`, and return the mean speed. */
static double fill(double *speeds, uint32_t ranks, double guess) {
    for (uint32_t r = 0; r < ranks; r++)
        speeds[r] = speeds[r] > 0 ? speeds[r] : guess;
    return mean_of_known(speeds, ranks);
}

/* Update the mean relative difference between measured and estimated rates. Leave out large differences,
 * because they are changes of speed. */
static void learn_noise(kl_loads *l, const double *rates) {
    double sum = 0;
    uint32_t known = 0;
    for (uint32_t r = 0; r < l->ranks; r++) {
        double off = l->trends[r].rate > 0 ? fabs(rates[r] / l->trends[r].rate - 1) : INFINITY;
        if (off < SAME - 1) {
            sum += off;
            known++;
        }
    }
    if (known > 0)
        l->noise = l->noise > 0 ? NOISE_H * l->noise + (1 - NOISE_H) * sum / known : sum / known;
}

bool kl_loads_measure(kl_loads *l, const double *rates) {
    l->round++;
    learn_noise(l, rates);
    for (uint32_t r = 0; r < l->ranks; r++) {
        l->raw[r] = rates[r] > 0 ? rates[r] : l->raw[r];
        l->speed[r] = kl_trend_next(&l->trends[r], rates[r]);
    }
    if (l->guess == 0)
        l->guess = mean_of_known(l->speed, l->ranks);
    if (l->guess == 0)
        return false;
    fill(l->raw, l->ranks, l->guess);
    l->mean_speed = fill(l->speed, l->ranks, l->guess);
    for (uint32_t r = 0; r < l->ranks; r++)
        l->speed[r] /= l->mean_speed;
    return true;
}

static double averaged(const kl_state *state) {
    return (double)(state->rounds < AVERAGED ? state->rounds : AVERAGED);
}

double kl_loads_uncertain(const kl_loads *l) {
    const kl_state *here = &l->states[l->here];
    return l->unsettled > 0 || here->rounds == 0 ? l->noise : l->noise / sqrt(averaged(here));
}

/* --- states --- */

static bool alike(uint32_t ranks, const double *speed, double mean, const kl_state *state) {
    for (uint32_t r = 0; r < ranks; r++) {
        double a = speed[r] / mean, b = state->speed[r];
        if (a > SAME * b || b > SAME * a)
            return false;
    }
    return state->seen > 0;
}

static bool moving(const kl_loads *l) {
    for (uint32_t r = 0; r < l->ranks; r++)
        if (kl_trend_moves(&l->trends[r]))
            return true;
    return false;
}

/* Forget the last visit to this state and all earlier visits, because another state takes the entry of this
 * state. A visit is a time in one state of speeds. */
static void forget(kl_loads *l, uint32_t state) {
    for (uint32_t i = l->visit_count; i-- > 0;)
        if (l->visits[i].state == state) {
            l->visit_count -= i + 1;
            memmove(l->visits, l->visits + i + 1, l->visit_count * sizeof *l->visits);
            return;
        }
}

/* Return the state of the present speeds. This is a known state, or a new one, which takes the entry of the
 * state that was not seen for the longest time. */
static uint32_t recognise(kl_loads *l) {
    uint32_t oldest = 0;
    for (uint32_t i = 0; i < KL_STATES; i++) {
        if (alike(l->ranks, l->speed, 1, &l->states[i]))
            return i;
        if (l->states[i].seen < l->states[oldest].seen)
            oldest = i;
    }
    kl_state *fresh = &l->states[oldest];
    *fresh = (kl_state){.speed = fresh->speed};
    memcpy(fresh->speed, l->speed, l->ranks * sizeof *l->speed);
    forget(l, oldest);
    return oldest;
}

static double mean_with(double mean, uint64_t count, uint64_t most, double value) {
    double weight = (double)(count < most ? count : most - 1);
    return (mean * weight + value) / (weight + 1);
}

static void arrive(kl_loads *l) {
    kl_state *left = &l->states[l->here];
    double dwell_s = l->departed_s - l->begun_s;
    if (left->seen > 0) {
        left->lasts_s = mean_with(left->lasts_s, left->ended++, DWELLS, dwell_s);
        l->dwell_s = mean_with(l->dwell_s, l->dwells++, OTHERS, dwell_s);
    }
    l->here = recognise(l);
    l->begun_s = l->departed_s;
    l->arrived = true;
}

/* If the measured rates fit another known state, use these rates at once, without the filter. Return whether
 * they fit. */
static bool recall(kl_loads *l) {
    double mean = mean_of_known(l->raw, l->ranks);
    uint32_t i = 0;
    while (i < KL_STATES && (i == l->here || !alike(l->ranks, l->raw, mean, &l->states[i])))
        i++;
    if (i == KL_STATES)
        return false;
    for (uint32_t r = 0; r < l->ranks; r++) {
        l->speed[r] = l->raw[r] / mean;
        l->trends[r].rate = l->trends[r].rate > 0 ? l->raw[r] : 0;
    }
    l->mean_speed = mean;
    return true;
}

static void stay_in(kl_loads *l, double step_s) {
    kl_state *here = &l->states[l->here];
    here->rounds++;
    here->seen = l->round;
    for (uint32_t r = 0; r < l->ranks; r++)
        here->speed[r] += (l->speed[r] - here->speed[r]) / averaged(here);
    here->level += (l->mean_speed - here->level) / averaged(here);
    if (l->visit_count == 0 || l->visits[l->visit_count - 1].state != l->here) {
        if (l->visit_count == KL_VISITS)
            memmove(l->visits, l->visits + 1, --l->visit_count * sizeof *l->visits);
        l->visits[l->visit_count++] = (kl_visit){.state = l->here};
    }
    l->visits[l->visit_count - 1].stayed_s += step_s + l->pending_s;
    l->pending_s = 0;
    l->unsettled = 0;
}

void kl_loads_follow(kl_loads *l, double now_s, double step_s) {
    const kl_state *here = &l->states[l->here];
    l->arrived = false;
    if (!alike(l->ranks, l->speed, 1, here)) {
        if (l->unsettled++ == 0)
            l->departed_s = now_s - step_s;
        if (!recall(l) && moving(l) && l->unsettled < SETTLES) {
            l->pending_s += step_s;
            return;
        }
        arrive(l);
    }
    stay_in(l, step_s);
}

void kl_loads_moved(kl_loads *l) {
    l->visit_count = 0;
    l->pending_s = 0;
}

const double *kl_loads_present(const kl_loads *l) {
    return l->unsettled > 0 ? l->speed : l->states[l->here].speed;
}

double kl_loads_lasts_s(const kl_loads *l) {
    const kl_state *here = &l->states[l->here];
    return here->ended > 0 ? here->lasts_s : l->dwells >= SEVERAL ? l->dwell_s : 0;
}

double kl_loads_lasted_s(const kl_loads *l, double now_s) {
    return now_s - (l->unsettled > 0 ? l->departed_s : l->begun_s);
}
