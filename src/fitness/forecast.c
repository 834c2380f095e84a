/* The default picker. It forecasts the end of the run for each set of hosts that could be the best. It takes
 * the set with the earliest end. The time until the end is work / rate + sweeps × time of the slowest message
 * + cost of the move. If messages may take at most a given time, the best n hosts are the n fastest hosts
 * with such messages. So it is enough to try each number n with each message time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fitness/fitness.h"
#include "fitness/fitness_private.h"

typedef struct runner { /* a host; an array of runners is sorted by speed */
    double speed, message_s;
    bool last;
    uint32_t host;
} runner;

typedef struct field {
    const kl_pick_ask *ask;
    runner *at;
    uint32_t count, wanted; /* count: number of runners; wanted: number of hosts in a set, 0: any number */
    double least_limit_s;   /* least value of set.limit_s: the slowest message of the hosts that must be in
                               every set; 0: no host must be in every set */
} field;

typedef struct set { /* a set of hosts: the `count` fastest ones whose messages take at most limit_s */
    double limit_s, end_s;
    uint32_t count;
} set;

static int by_speed(const void *left, const void *right) {
    const runner *a = left, *b = right;
    if (a->last != b->last)
        return a->last ? 1 : -1;
    if (a->speed != b->speed)
        return a->speed > b->speed ? -1 : 1;
    return a->host < b->host ? -1 : a->host > b->host;
}

static int by_value(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* List the hosts that may be chosen. Hosts that should be avoided are listed only if the others are not
 * enough. */
static bool gather(const kl_pick_ask *ask, field *f) {
    uint32_t wished = 0;
    *f = (field){.ask = ask, .at = malloc((ask->count + 1) * sizeof *f->at)};
    if (!f->at)
        return false;
    for (uint32_t i = 0; i < ask->count; i++) {
        const kl_candidate *c = &ask->candidates[i];
        if (c->qos > 0) {
            f->at[f->count++] = (runner){c->speed, c->message_s, c->last, i};
            wished += !c->last;
        }
    }
    qsort(f->at, f->count, sizeof *f->at, by_speed);
    f->wanted = ask->wanted < f->count ? ask->wanted : f->count;
    if (wished > 0 && wished >= f->wanted)
        f->count = wished;
    else /* the hosts that need not be avoided are not enough, so all of them are in every set */
        for (uint32_t i = 0; i < wished; i++)
            f->least_limit_s = fmax(f->least_limit_s, f->at[i].message_s);
    f->wanted = ask->wanted > 0 ? f->wanted : 0;
    return true;
}

static double end_s(const kl_pick_ask *ask, uint32_t count, double rate, double message_s) {
    double work_s = rate > 0 ? ask->work / rate : INFINITY;
    return work_s + (count > 1 && ask->sweeps > 0 ? ask->sweeps * message_s : 0);
}

/* The number and the total speed of the hosts in a set, and the speed of its slowest host. */
typedef struct crew {
    uint32_t count;
    double sum, least;
} crew;

static void join(crew *c, double speed) {
    c->least = c->count > 0 ? fmin(c->least, speed) : speed;
    c->sum += speed;
    c->count++;
}

static double rate_of(const kl_pick_ask *ask, const crew *c) {
    return ask->equal ? c->count * c->least : c->sum;
}

/* Try all sets of hosts whose messages take at most limit_s. */
static void try_limit(const field *f, double limit_s, set *best) {
    crew c = {.count = 0};
    for (uint32_t i = 0; i < f->count && (f->wanted == 0 || c.count < f->wanted); i++) {
        if (f->at[i].message_s > limit_s)
            continue;
        join(&c, f->at[i].speed);
        double end = end_s(f->ask, c.count, rate_of(f->ask, &c), limit_s);
        if ((f->wanted == 0 || c.count == f->wanted) && (best->count == 0 || end < best->end_s))
            *best = (set){limit_s, end, c.count};
    }
}

static bool try_all(const field *f, set *best) {
    double *limits = malloc((f->count + 1) * sizeof *limits);
    if (!limits)
        return false;
    for (uint32_t i = 0; i < f->count; i++)
        limits[i] = f->at[i].message_s;
    qsort(limits, f->count, sizeof *limits, by_value);
    for (uint32_t i = 0; i < f->count; i++)
        if (limits[i] >= f->least_limit_s && (i == 0 || limits[i] > limits[i - 1]))
            try_limit(f, limits[i], best);
    free(limits);
    return true;
}

/* Forecast the end of the run if it stays on the current hosts. Set end_s to INFINITY if one of these hosts
 * is unfit, or if their number is not the wanted one. */
static set stay(const field *f) {
    const kl_pick_ask *ask = f->ask;
    set s = {.limit_s = 0};
    crew c = {.count = 0};
    bool possible = true;
    for (uint32_t i = 0; i < ask->count; i++) {
        const kl_candidate *one = &ask->candidates[i];
        if (!one->current)
            continue;
        join(&c, one->speed);
        possible &= one->qos > 0;
        s.limit_s = fmax(s.limit_s, one->message_s);
    }
    possible &= c.count > 0 && (f->wanted == 0 || f->wanted == c.count);
    s.count = c.count;
    s.end_s = possible ? end_s(ask, c.count, rate_of(ask, &c), s.limit_s) : INFINITY;
    return s;
}

/* Store the chosen hosts in `pick`: those of the set, or the current hosts if the program stays. */
static bool take(const field *f, const set *chosen, bool stays, kl_pick *pick) {
    pick->at = malloc((chosen->count + 1) * sizeof *pick->at);
    if (!pick->at)
        return false;
    for (uint32_t i = 0; stays && i < f->ask->count; i++)
        if (f->ask->candidates[i].current)
            pick->at[pick->count++] = i;
    for (uint32_t i = 0; !stays && i < f->count && pick->count < chosen->count; i++)
        if (f->at[i].message_s <= chosen->limit_s)
            pick->at[pick->count++] = f->at[i].host;
    return true;
}

kilter_status kl_pick_by_forecast(const kl_picker *self, const kl_pick_ask *ask, kl_pick *pick,
                                  kilter_error *error) {
    field f;
    set best = {.count = 0, .end_s = INFINITY}, staying = {.end_s = INFINITY};
    (void)self;
    bool good = gather(ask, &f) && try_all(&f, &best);
    if (good)
        staying = stay(&f);
    best.end_s += ask->move_s;
    bool stays = staying.end_s < INFINITY && staying.end_s <= best.end_s;
    good = good && take(&f, stays ? &staying : &best, stays, pick);
    free(f.at);
    pick->end_s = stays ? staying.end_s : best.end_s;
    pick->stay_s = staying.end_s;
    if (good && staying.count > 0)
        snprintf(pick->why, sizeof pick->why,
                 stays
                     ? "the forecast end is after %.3g s with the current hosts, and %.3g s with others"
                     : "the forecast end is after %.3g s with other hosts, and %.3g s with the current ones",
                 pick->end_s, stays ? best.end_s : staying.end_s);
    return good ? KILTER_OK : kl_fail(error, KILTER_ERR_MEMORY, "picking hosts: memory ran out");
}

double kl_pick_most_speed(const kl_pick_ask *ask) {
    field f;
    double sum = 0;
    if (gather(ask, &f))
        for (uint32_t i = 0; i < f.count && (f.wanted == 0 || i < f.wanted); i++)
            sum += f.at[i].speed;
    free(f.at);
    return sum;
}
