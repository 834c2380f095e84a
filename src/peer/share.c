/* Compute new shares of tasks from measured rates, by algorithm 1 of Galyuk et al. 2007 (see
 * docs/reference/peers.md). The result is a list of orders for the peers that have too many tasks. */
#include <math.h>
#include <stdlib.h>

#include "peer/peer_private.h"

enum { GIFTS_MOST = 32 };

typedef struct shares {
    kl_standings *all;
    double *over; /* over[i]: number of tasks that peer all->at[i] has too many; below 0: too few */
    kl_orders *orders;
    bool failed;
} shares;

static int by_number(const void *a, const void *b) {
    const kl_standing *x = a, *y = b;
    return x->peer < y->peer ? -1 : x->peer > y->peer;
}

static void order(shares *s, uint32_t from, uint32_t to, kl_span span) {
    s->failed |= !kl_orders_add(s->orders, (kl_order){from, to, span});
}

/* Return the time left and the mean rate. A peer whose rate is not known gets the mean rate. */
static kl_sharing_of sum_up(kl_standings *all, uint64_t lost) {
    double left = (double)lost, rates = 0, known = 0;
    for (size_t i = 0; i < all->count; i++) {
        left += all->at[i].left;
        rates += all->at[i].rate;
        known += all->at[i].rate > 0;
    }
    double mean = known > 0 ? rates / known : 0;
    for (size_t i = 0; i < all->count; i++)
        if (!(all->at[i].rate > 0))
            all->at[i].rate = mean;
    return (kl_sharing_of){mean > 0 ? left / (mean * (double)all->count) : 0, mean};
}

/* Give `count` lost tasks to the peer all->at[i], beginning with the span *at. Return the span that has the
 * next lost task. */
static kl_span *adopt(shares *s, size_t i, uint64_t count, kl_span *at) {
    while (count > 0) {
        uint64_t part = at->hi - at->lo < count ? at->hi - at->lo : count;
        order(s, KL_NOBODY, s->all->at[i].peer, (kl_span){at->lo, at->lo + part});
        at->lo += part;
        count -= part;
        if (at->lo == at->hi)
            at++;
    }
    return at;
}

/* Give lost tasks to peers that have too few tasks. Then divide the remaining lost tasks among all peers. */
static void adopt_all(shares *s, kl_ranges *lost) {
    uint64_t left = kl_ranges_sum(lost);
    kl_span *at = lost->at;
    for (size_t i = 0; i < s->all->count && left > 0; i++) {
        double lacks = floor(-s->over[i]);
        uint64_t part = lacks < 1 ? 0 : lacks < (double)left ? (uint64_t)lacks : left;
        at = adopt(s, i, part, at);
        s->over[i] += (double)part;
        left -= part;
    }
    uint64_t each = s->all->count > 0 ? left / s->all->count + 1 : 0;
    for (size_t i = 0; i < s->all->count && left > 0; i++) {
        uint64_t part = each < left ? each : left;
        at = adopt(s, i, part, at);
        left -= part;
    }
}

/* Among the peers at positions [first, end), let peers with too many tasks give some to peers with too few. A
 * peer gives to at most GIFTS_MOST others, so that it does not send too many messages. */
static void match(shares *s, size_t first, size_t end) {
    size_t giver = first;
    unsigned gifts = 0;
    for (size_t i = first; i < end; i++)
        while (s->over[i] <= -1) {
            while (giver < end && (s->over[giver] < 1 || gifts == GIFTS_MOST)) {
                giver++;
                gifts = 0;
            }
            if (giver == end)
                return;
            double count = floor(fmin(-s->over[i], s->over[giver]));
            order(s, s->all->at[giver].peer, s->all->at[i].peer, (kl_span){0, (uint64_t)count});
            s->over[giver] -= count;
            s->over[i] += count;
            gifts++;
        }
}

static void match_near(shares *s, uint32_t near) {
    const kl_standing *at = s->all->at;
    size_t end = 0, count = s->all->count;
    for (size_t first = 0; near > 0 && first < count; first = end) {
        while (end < count && at[end].peer / near == at[first].peer / near)
            end++;
        match(s, first, end);
    }
    match(s, 0, count);
}

kl_sharing_of kl_share(kl_standings *standings, const kl_ranges *lost, const kl_share_rule *rule,
                       kl_orders *orders, bool *failed) {
    size_t count = standings->count;
    if (count > 1)
        qsort(standings->at, count, sizeof *standings->at, by_number);
    kl_sharing_of sum = sum_up(standings, kl_ranges_sum(lost));
    shares s = {.all = standings, .over = calloc(count + 1, sizeof *s.over), .orders = orders};
    kl_ranges rest = {0};
    s.failed = !s.over || !kl_ranges_add_all(&rest, lost->at, lost->count);
    for (size_t i = 0; i < count && !s.failed; i++)
        s.over[i] = standings->at[i].left - sum.left_s * standings->at[i].rate;
    if (!s.failed)
        adopt_all(&s, &rest);
    if (!s.failed && rule->moves) {
        for (size_t i = 0; i < count; i++)
            if (fabs(s.over[i]) < 1 + rule->dead_zone * sum.left_s * standings->at[i].rate)
                s.over[i] = 0;
        match_near(&s, rule->near);
    }
    *failed = s.failed;
    kl_ranges_free(&rest);
    free(s.over);
    return sum;
}
