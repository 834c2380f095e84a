/* Choose the hosts of the next attempt. */
#include <math.h>
#include <stdlib.h>

#include "keeper/keeper_private.h"

enum { FAILURES_TOLERATED = 1 }; /* hosts with more failures in a row than this are chosen last */

static const double ALIKE = 0.1; /* speeds that differ by less than this part of the fastest host's speed
                                    count as equal, because measurements are not exact */

typedef struct choice {
    long speed; /* speed of a rank on the host, as a multiple of ALIKE × the fastest speed */
    bool used;  /* true: the last attempt ran on this host */
    uint32_t host;
} choice;

static int faster_first(const void *a, const void *b) {
    const choice *x = a, *y = b;
    if (x->speed != y->speed)
        return x->speed > y->speed ? -1 : 1;
    if (x->used != y->used)
        return x->used ? -1 : 1;
    return x->host < y->host ? -1 : x->host > y->host;
}

/* Put the fastest hosts first. Among equally fast hosts, hosts in use come first. Apart from that, hosts keep
 * the order of the table. If memory runs out, all hosts keep the order of the table. */
static void order_by_speed(const kl_keeper *k, uint32_t *order) {
    choice *choices = malloc((k->count + 1) * sizeof *choices);
    double best = 0;
    for (uint64_t i = 0; i < k->count; i++)
        best = fmax(best, kl_keeper_rank_speed(k, &k->hosts[i]));
    for (uint64_t i = 0; i < k->count && choices; i++)
        choices[i] = (choice){best > 0 ? lround(kl_keeper_rank_speed(k, &k->hosts[i]) / best / ALIKE) : 0,
                              k->hosts[i].ranks > 0, (uint32_t)i};
    if (choices)
        qsort(choices, k->count, sizeof *choices, faster_first);
    for (uint64_t i = 0; i < k->count; i++)
        order[i] = choices ? choices[i].host : (uint32_t)i;
    free(choices);
}

/* Return the fitness of a host. A host in use is not measured. Its fitness is the rate of its ranks, divided
 * by the rate that a rank has on an idle host of the fastest kind. */
static double share_of(const kl_keeper *k, const kl_keeper_host *h) {
    if (h->ranks > 0 && h->rate > 0 && k->costs.row_s.value > 0)
        return fmin(h->rate / h->ranks * k->costs.row_s.value, 1);
    return h->qos;
}

/* Give ranks to the hosts in `order`. If `last` is true, use only hosts with more than FAILURES_TOLERATED
 * failures, otherwise only the other hosts. `placed` ranks already have a host. Return their new number. */
static uint32_t fill(kl_keeper *k, const uint32_t *order, const char *names, bool last, uint32_t placed) {
    for (uint64_t i = 0; i < k->count && placed < k->options.ranks; i++) {
        if (order[i] >= k->count)
            continue;
        kl_keeper_host *h = &k->hosts[order[i]];
        bool fails = h->failures > FAILURES_TOLERATED;
        if (!kl_keeper_can_use(h) || h->next > 0 || fails != last || !kl_keeper_listed(names, h->name))
            continue;
        uint32_t left = k->options.ranks - placed;
        h->next = h->slots < left ? h->slots : left;
        placed += h->next;
    }
    return placed;
}

uint32_t kl_keeper_place(kl_keeper *k, const char *names) {
    uint32_t *order = malloc((k->count + 1) * sizeof *order), placed = 0;
    for (uint64_t i = 0; i < k->count; i++)
        k->hosts[i].next = 0, k->hosts[i].share = share_of(k, &k->hosts[i]);
    if (!order)
        return 0;
    if (k->options.order)
        k->options.order(k->options.self, k->hosts, k->count, order);
    else
        order_by_speed(k, order);
    placed = fill(k, order, names, false, 0);
    placed = fill(k, order, names, true, placed);
    free(order);
    return placed;
}

uint32_t kl_keeper_planned(const kl_keeper *k) {
    uint32_t ranks = 0;
    for (uint64_t i = 0; i < k->count; i++) {
        const kl_keeper_host *h = &k->hosts[i];
        if (h->next > 0 && (!kl_keeper_can_use(h) || h->next > h->slots))
            return 0;
        ranks += h->next;
    }
    return ranks;
}

bool kl_keeper_same_place(const kl_keeper *k) {
    for (uint64_t i = 0; i < k->count; i++)
        if (k->hosts[i].next != k->hosts[i].ranks)
            return false;
    return true;
}
