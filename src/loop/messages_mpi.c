/* Measure the cost of messages between the ranks once, before the first sweep. */
#include <math.h>
#include <stdlib.h>

#include "loop/loop_mpi.h"

enum { PROBES = 4, PROBE_BYTES = 1 << 16 };

static const double GUESSED_QUANTUM_S = 0.01;
/* the guess if ranks share cores: they wait for each other's time slices, which last about 4 ms on Linux */
static const double CROWDED_QUANTUM_S = 0.005;

static double guessed_quantum_s(const kl_group *g) {
    return g->clock.simulated ? kl_quantum_s() : g->crowded ? CROWDED_QUANTUM_S : GUESSED_QUANTUM_S;
}

static kilter_status time_reports(kilter_loop *l, double *best_s, kilter_error *error) {
    kl_loop_rounds *r = &l->rank.rounds;
    kl_requests *requests = r->set.requests;
    kl_group *g = &l->bundle->group;
    kilter_status status = KILTER_OK;
    *best_s = HUGE_VAL;
    for (int i = 0; i < PROBES && status == KILTER_OK; i++) {
        double began_s = kl_group_now_s(g);
        status = kl_group_share(g, requests, &r->mine, r->heard, kl_rounds_report_bytes(r), error);
        if (status == KILTER_OK)
            status = kl_requests_await(g, requests, error);
        *best_s = fmin(*best_s, kl_group_now_s(g) - began_s);
    }
    return status;
}

/* Measure messages between neighbours. Each rank sends to the next rank, as ranks later send the rows at
 * their borders. data: memory for two messages. */
static kilter_status time_neighbours(kl_group *g, uint8_t *data, size_t bytes, double *best_s,
                                     kilter_error *error) {
    kl_requests requests = {0};
    kilter_status status = KILTER_OK;
    int ranks = (int)g->ranks, next = (g->rank + 1) % ranks, last = (g->rank + ranks - 1) % ranks;
    kl_mail in = {.data = data, .bytes = bytes, .peer = last, .tag = KL_TAG_PROBE},
            out = {.data = data + PROBE_BYTES, .bytes = bytes, .peer = next, .tag = KL_TAG_PROBE};
    *best_s = HUGE_VAL;
    for (int i = 0; i < PROBES && status == KILTER_OK; i++) {
        double began_s = kl_group_now_s(g);
        status = kl_receive(g, &requests, in, error);
        if (status == KILTER_OK)
            status = kl_send(g, &requests, out, error);
        if (status == KILTER_OK)
            status = kl_requests_await(g, &requests, error);
        *best_s = fmin(*best_s, kl_group_now_s(g) - began_s);
    }
    kl_requests_free(&requests);
    return status;
}

static kilter_status measure_messages(kilter_loop *l, kl_messages *messages, kilter_error *error) {
    kl_group *g = &l->bundle->group;
    double s[3];
    uint8_t *data = calloc(2, PROBE_BYTES);
    uint64_t fits = data != NULL;
    kilter_status status = kl_group_least(g, &fits, 1, error);
    if (status == KILTER_OK && !fits)
        status = kl_fail(error, KILTER_ERR_MEMORY,
                         "measuring messages between the ranks of loop '%s': memory ran out", g->name);
    if (status == KILTER_OK)
        status = time_reports(l, &s[0], error);
    if (status == KILTER_OK)
        status = time_neighbours(g, data, 1, &s[1], error);
    if (status == KILTER_OK)
        status = time_neighbours(g, data, PROBE_BYTES, &s[2], error);
    if (status == KILTER_OK)
        status = kl_group_most_f64(g, s, 3, error);
    if (status != KILTER_OK)
        return status; /* not freed after a failure, because MPI may still write into this memory */
    free(data);
    /* Outside simulations, guess the length of the system's time slice (quantum). Measuring it would cost
     * more time than a short loop could gain. */
    *messages =
        (kl_messages){s[0], {s[1], fmax(0, s[2] - s[1]) / PROBE_BYTES}, guessed_quantum_s(g), g->crowded};
    return status;
}

kilter_status kl_loop_open_rounds(kilter_loop *l, kilter_error *error) {
    kl_rank *k = &l->rank;
    kl_messages messages;
    if (!kl_rounds_wanted(k))
        return KILTER_OK;
    uint64_t fits = kl_rounds_reserve(&k->rounds, k->layout.ranks) && kl_loop_requests(&k->rounds.set);
    kilter_status status = kl_group_least(&l->bundle->group, &fits, 1, error);
    if (status == KILTER_OK && fits)
        status = measure_messages(l, &messages, error);
    if (status != KILTER_OK)
        return status;
    fits = fits && kl_rounds_open(k, &messages);
    status = kl_group_least(&l->bundle->group, &fits, 1, error);
    if (status == KILTER_OK && !fits)
        return kl_fail(error, KILTER_ERR_MEMORY, "beginning loop '%s': memory ran out", l->name);
    return status;
}
