/* The pickers, and the registry that names them. Each picker begins with the hosts in order of fitness. Hosts
 * of equal fitness keep the order of the list. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fitness/fitness.h"
#include "fitness/fitness_private.h"

typedef struct entry {
    double qos;
    bool last;
    uint32_t host;
} entry;

/* The hosts that may be chosen, in order of fitness. Hosts that should be avoided come last. */
typedef struct kl_ranking {
    entry *at;
    uint32_t count,
        wished;      /* count: number of these hosts; wished: number of them that need not be avoided */
    uint32_t wanted; /* number of hosts to choose, at most `count` */
} ranking;

static int by_fitness(const void *left, const void *right) {
    const entry *a = left, *b = right;
    if (a->last != b->last)
        return a->last ? 1 : -1;
    if (a->qos != b->qos)
        return a->qos > b->qos ? -1 : 1;
    return a->host < b->host ? -1 : a->host > b->host;
}

static int by_place(const void *left, const void *right) {
    const entry *a = left, *b = right;
    return a->host < b->host ? -1 : a->host > b->host;
}

static bool rank(const kl_pick_ask *ask, ranking *r) {
    *r = (ranking){.at = malloc((ask->count + 1) * sizeof *r->at)};
    if (!r->at)
        return false;
    for (uint32_t i = 0; i < ask->count; i++)
        if (ask->candidates[i].qos > 0) {
            r->at[r->count++] = (entry){ask->candidates[i].qos, ask->candidates[i].last, i};
            r->wished += !ask->candidates[i].last;
        }
    qsort(r->at, r->count, sizeof *r->at, by_fitness);
    uint32_t all = r->wished > 0 ? r->wished : r->count;
    r->wanted = ask->wanted > 0 ? ask->wanted : all;
    r->wanted = r->wanted < r->count ? r->wanted : r->count;
    return true;
}

/* Return how many of the ranked hosts reach the threshold. If they are fewer than wanted, lower the threshold
 * to the fitness of the last host that is needed, and say so in `why`. */
static uint32_t pool_of(const ranking *r, double threshold, char why[KL_PICK_WHY_BYTES]) {
    uint32_t pool = 0;
    while (pool < r->wished && r->at[pool].qos >= threshold)
        pool++;
    if (pool >= r->wanted)
        return pool;
    const entry *needed = &r->at[r->wanted - 1];
    snprintf(why, KL_PICK_WHY_BYTES,
             "the least fitness is lowered from %.3g to %.3g, because only %u of %u wanted hosts reach the "
             "first value",
             threshold, needed->qos, pool, r->wanted);
    for (pool = r->wanted;
         pool < r->count && r->at[pool].last == needed->last && r->at[pool].qos == needed->qos;)
        pool++;
    return pool;
}

/* Draw `wanted` of the first `pool` entries at random, and move them to the front. First sort the entries by
 * their place in the list of hosts. So their order of fitness has no influence on the draw. */
static void draw(ranking *r, uint32_t pool, uint64_t seed) {
    qsort(r->at, pool, sizeof *r->at, by_place);
    for (uint32_t i = 0; i < r->wanted; i++) {
        uint32_t j = i + (uint32_t)(kl_mix64(kl_mix64(seed) + i) % (pool - i));
        entry drawn = r->at[j];
        r->at[j] = r->at[i];
        r->at[i] = drawn;
    }
}

/* --- the pickers --- */

/* Choose hosts in turn among those that reach the threshold (the pool), beginning with the host ask->start.
 * Store in `pick` where the next choice begins. */
static void choose_in_turn(const kl_pick_ask *ask, ranking *r, kl_pick *pick) {
    uint32_t pool = pool_of(r, ask->threshold > 0 ? ask->threshold : 0.7, pick->why), first = 0;
    qsort(r->at, pool, sizeof *r->at, by_place);
    while (first < pool && r->at[first].host < ask->start)
        first++;
    for (uint32_t i = 0; i < first; i++) /* hosts before `start` come after all others */
        r->at[i].host += ask->count;
    qsort(r->at, pool, sizeof *r->at, by_place);
    for (uint32_t i = 0; i < pool; i++)
        r->at[i].host %= ask->count;
    pick->next = (r->at[r->wanted - 1].host + 1) % ask->count;
}

static void choose_at_random(const kl_pick_ask *ask, ranking *r, kl_pick *pick) {
    draw(r, pool_of(r, ask->threshold > 0 ? ask->threshold : 0.5, pick->why), ask->seed);
}

/* Draw the wanted number of hosts at random from the fittest hosts. Twice the wanted number take part in the
 * draw. */
static void choose_of_few(const kl_pick_ask *ask, ranking *r, kl_pick *pick) {
    uint64_t few = 2 * (uint64_t)r->wanted;
    uint32_t pool = few < r->wished ? (uint32_t)few : r->wished;
    (void)pick;
    draw(r, pool > r->wanted ? pool : r->wanted, ask->seed);
}

/* Choose the first of the ranked hosts, after the picker has sorted them in its own way. */
static kilter_status pick_ranked(const kl_picker *self, const kl_pick_ask *ask, kl_pick *pick,
                                 kilter_error *error) {
    ranking r;
    bool good = rank(ask, &r);
    if (good && self->choose && r.wanted > 0)
        self->choose(ask, &r, pick);
    pick->at = good ? malloc((r.wanted + 1) * sizeof *pick->at) : NULL;
    pick->count = pick->at ? r.wanted : 0;
    for (uint32_t i = 0; i < pick->count; i++)
        pick->at[i] = r.at[i].host;
    free(r.at);
    return pick->at ? KILTER_OK : kl_fail(error, KILTER_ERR_MEMORY, "picking hosts: memory ran out");
}

/* --- the registry --- */

static const kl_picker pickers[] = {
    {"forecast", "the hosts on which the program is forecast to end first", kl_pick_by_forecast, NULL},
    {"best", "the fittest hosts", pick_ranked, NULL},
    {"round-robin", "hosts of fitness 0.7 and more, each in its turn", pick_ranked, choose_in_turn},
    {"random", "hosts of fitness 0.5 and more, drawn at random", pick_ranked, choose_at_random},
    {"best-few", "hosts drawn at random from the fittest ones; twice the wanted number take part in the draw",
     pick_ranked, choose_of_few},
};

size_t kl_picker_count(void) {
    return sizeof pickers / sizeof *pickers;
}

const kl_picker *kl_picker_at(size_t i) {
    return i < kl_picker_count() ? &pickers[i] : NULL;
}

const kl_picker *kl_picker_find(const char *name) {
    for (size_t i = 0; i < kl_picker_count(); i++)
        if (strcmp(pickers[i].name, name) == 0)
            return &pickers[i];
    return NULL;
}

kilter_status kl_pick_hosts(const kl_picker *picker, const kl_pick_ask *ask, kl_pick *pick,
                            kilter_error *error) {
    kl_pick made = {.next = ask->start, .end_s = -1, .stay_s = -1};
    kilter_status status = picker->pick(picker, ask, &made, error);
    if (status == KILTER_OK)
        *pick = made;
    return status;
}

void kl_pick_free(kl_pick *pick) {
    free(pick->at);
    *pick = (kl_pick){0};
}

/* Choose the least number of hosts whose slots are enough for the ranks, or all hosts. */
static kilter_status pick_for_ranks(const kl_picker *picker, const kl_pick_ask *ask, const uint32_t *slots,
                                    uint32_t ranks, kl_pick *pick) {
    kl_pick_ask some = *ask;
    for (some.wanted = 1;; some.wanted++) {
        uint64_t room = 0;
        if (kl_pick_hosts(picker, &some, pick, NULL) != KILTER_OK)
            return KILTER_ERR_MEMORY;
        for (uint32_t i = 0; i < pick->count; i++)
            room += slots[pick->at[i]];
        if (room >= ranks || some.wanted >= ask->count)
            return KILTER_OK;
        kl_pick_free(pick);
    }
}

void kl_pick_order(const kl_picker *picker, const kl_pick_ask *ask, const uint32_t *slots, uint32_t ranks,
                   uint32_t *order) {
    kl_pick picks[2] = {{.count = 0}, {.count = 0}};
    uint32_t filled = 0;
    bool *taken = calloc(ask->count + 1, sizeof *taken);
    kl_pick_ask all = *ask;
    all.wanted = 0;
    if (taken && pick_for_ranks(picker, ask, slots, ranks, &picks[0]) == KILTER_OK)
        kl_pick_hosts(kl_picker_find("best"), &all, &picks[1], NULL);
    for (int p = 0; p < 2; p++)
        for (uint32_t i = 0; i < picks[p].count; i++)
            if (!taken[picks[p].at[i]]) {
                taken[picks[p].at[i]] = true;
                order[filled++] = picks[p].at[i];
            }
    for (uint32_t i = 0; i < ask->count; i++)
        if (!taken || !taken[i])
            order[filled++] = i;
    kl_pick_free(&picks[0]);
    kl_pick_free(&picks[1]);
    free(taken);
}

void kl_pick_by_weight(const kl_fit *fits, uint32_t count, double weight, kl_candidate *candidates,
                       kl_pick_ask *ask) {
    static const double LEAST_NET = 1e-3;
    kl_pick_ask fastest = {.candidates = candidates, .count = count, .wanted = ask->wanted, .work = 1};
    for (uint32_t i = 0; i < count; i++)
        candidates[i] = (kl_candidate){.qos = fits[i].qos,
                                       .speed = fits[i].speed,
                                       .message_s = 1 / (fits[i].net > LEAST_NET ? fits[i].net : LEAST_NET)};
    ask->candidates = candidates;
    ask->count = count;
    ask->work = weight * kl_pick_most_speed(&fastest);
    ask->sweeps = 1 - weight;
}
