/* The network's part of fitness: how fast the links of a host are, compared with the fastest link. */
#include <math.h>
#include <stdlib.h>

#include "fitness/fitness.h"
#include "fitness/fitness_private.h"

enum { ROUNDS_MOST = 9 };
static const double MESSAGE_BYTES = 65536;

double kl_link_message_s(const kl_link *link) {
    return link->bytes_per_s > 0 ? 0.5 * link->trip_s + MESSAGE_BYTES / link->bytes_per_s : INFINITY;
}

/* Sums over the links of one host. The quality of a link is its speed divided by that of the fastest link. */
typedef struct sums {
    double best;    /* best quality of the host's links */
    double inverse; /* sum of 1 / quality over the links to connected hosts */
    uint32_t count;
    double all_inverse; /* sum of 1 / quality over all links of the host */
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

/* Add one link to the sums of the host `mine`. Only links to connected hosts count in `inverse` and `count`.
 * A host is connected if it has a link at least half as fast as the fastest of all links. */
static void add_link(sums *mine, const sums *other, double quality) {
    static const double CONNECTED = 0.5;
    mine->all_inverse += 1 / quality;
    mine->all_count++;
    if (other->best < CONNECTED)
        return;
    mine->inverse += 1 / quality;
    mine->count++;
}

/* Add up the links of all hosts. If `best` is true, only find the best quality of each host. */
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

/* Set `net` of each host: the harmonic mean of the qualities of its links to connected hosts. A host with
 * only slow links is not connected, so it does not lower `net` of other hosts. Between connected hosts, a
 * single slow link lowers `net` of both. */
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

/* The partners in a round come from the circle method: the numbers of two partners add up to the round,
 * modulo the number of rounds. The host that would be its own partner measures with the last host. */
uint32_t kl_link_partner(uint32_t hosts, uint32_t round, uint32_t host) {
    uint32_t players = hosts + (hosts & 1), last = players - 1,
             partner; /* the partner of the host; with an odd number of hosts, one partner does not exist */
    if (hosts < 2)
        return host;
    uint64_t half =
        ((uint64_t)round % last) * (players / 2) %
        last; /* `half` is the host that would be its own partner: 2·half equals `round`, modulo `last` */
    if (host == last)
        partner = (uint32_t)half;
    else
        partner = host == half ? last : (uint32_t)(((uint64_t)round % last + last - host) % last);
    return partner < hosts ? partner : host;
}
