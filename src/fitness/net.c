/* The network part of fitness: how fast the links of a host are, compared with the fastest link. */
#include <math.h>
#include <stdlib.h>

#include "fitness/fitness.h"
#include "fitness/fitness_private.h"

enum { ROUNDS_MOST = 9 };
static const double MESSAGE_BYTES = 65536;

double kl_link_message_s(const kl_link *link) {
    return link->bytes_per_s > 0 ? 0.5 * link->trip_s + MESSAGE_BYTES / link->bytes_per_s : INFINITY;
}

/* Sums for a host over its links. */
typedef struct sums {
    double best;    /* best quality of a link */
    double inverse; /* sum of 1 / quality over links to connected hosts */
    uint32_t count;
    double all_inverse; /* the same over all links */
    uint32_t all_count;
} sums;

static bool counts(const kl_fit_ask *ask, const kl_fit *fits, const kl_link *link) {
    return link->from < ask->count && link->to < ask->count && link->from != link->to &&
           fits[link->from].state == KL_FIT_KNOWN && fits[link->to].state == KL_FIT_KNOWN;
}

static double least_message_s(const kl_fit_ask *ask, const kl_fit *fits) {
    double least_s = INFINITY;
    for (size_t i = 0; i < ask->link_count; i++)
        if (counts(ask, fits, &ask->links[i]))
            least_s = fmin(least_s, kl_link_message_s(&ask->links[i]));
    return least_s;
}

/* A host is connected if it has a link at least half as fast as the fastest one. */
static void add_link(sums *mine, const sums *other, double quality) {
    static const double CONNECTED = 0.5;
    mine->all_inverse += 1 / quality;
    mine->all_count++;
    if (other->best < CONNECTED)
        return;
    mine->inverse += 1 / quality;
    mine->count++;
}

/* Add up the links. best: only find the best qualities. */
static void add_links(const kl_fit_ask *ask, const kl_fit *fits, double least_s, bool best, sums *of) {
    for (size_t i = 0; i < ask->link_count; i++) {
        const kl_link *link = &ask->links[i];
        if (!counts(ask, fits, link))
            continue;
        double message_s = kl_link_message_s(link), quality = isinf(message_s) ? 0 : least_s / message_s;
        sums *from = &of[link->from], *to = &of[link->to];
        if (best) {
            from->best = fmax(from->best, quality);
            to->best = fmax(to->best, quality);
        } else {
            add_link(from, to, quality);
            add_link(to, from, quality);
        }
    }
}

/* Return the harmonic mean over the links to connected hosts. So one host with slow links does not make
 * all others look bad, and a single slow link counts for both its hosts. */
bool kl_fit_net(const kl_fit_ask *ask, kl_fit *fits) {
    sums *of = calloc(ask->count + 1, sizeof *of);
    if (!of)
        return false;
    double least_s = least_message_s(ask, fits);
    add_links(ask, fits, least_s, true, of);
    add_links(ask, fits, least_s, false, of);
    for (size_t i = 0; i < ask->count; i++) {
        if (fits[i].state != KL_FIT_KNOWN)
            continue;
        if (of[i].all_count == 0)
            fits[i].net = 1;
        else
            fits[i].net = of[i].count > 0 ? of[i].count / of[i].inverse : of[i].all_count / of[i].all_inverse;
    }
    free(of);
    return true;
}

/* --- which links to measure --- */

uint32_t kl_link_rounds(uint32_t hosts) {
    uint32_t all = hosts > 1 ? hosts + (hosts & 1) - 1 : 0;
    return all < ROUNDS_MOST ? all : ROUNDS_MOST;
}

/* In round r of the circle method, the numbers of two partners add up to r, modulo the number of rounds.
 * The last host measures with the one that would be its own partner. */
uint32_t kl_link_partner(uint32_t hosts, uint32_t round, uint32_t host) {
    uint32_t players = hosts + (hosts & 1), last = players - 1,
             partner; /* if the number is odd, the last host stays out */
    if (hosts < 2)
        return host;
    uint64_t half = ((uint64_t)round % last) * (players / 2) % last; /* 2·half equals `round` */
    if (host == last)
        partner = (uint32_t)half;
    else
        partner = host == half ? last : (uint32_t)(((uint64_t)round % last + last - host) % last);
    return partner < hosts ? partner : host;
}
