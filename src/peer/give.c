/* Give tasks to other peers. A gift is a message with tasks. In a census, peers report the tasks that they
 * hold. There, the tasks of a gift belong to the giver until the receiver has acknowledged the gift. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "peer/peer_private.h"

void kl_give(kl_node *n, uint32_t to, uint64_t count) {
    kl_giving *g = &n->giving;
    kl_gift *gifts = kl_array_grow(g->gifts, &g->gift_room, g->gift_count + 1, sizeof *gifts);
    if (!gifts) {
        n->out->failed = true;
        return;
    }
    g->gifts = gifts;
    kl_gift *gift = &gifts[g->gift_count++];
    *gift = (kl_gift){.to = to, .number = ++g->gifts_made};
    kl_peer_check(n, kl_work_cut(&n->work, count, &gift->spans));
    kl_note note = {.kind = KL_NOTE_GIFT, .number = gift->number, .spans = gift->spans};
    kl_post(n, to, &note, kl_ranges_sum(&gift->spans));
}

static void remove_gift(kl_giving *g, size_t i) {
    kl_ranges_free(&g->gifts[i].spans);
    g->gifts[i] = g->gifts[--g->gift_count];
}

/* If this peer must report the tasks of a gift in the present census, add them to its report. The parameter
 * `census` is the last census to which the receiver had been called when the gift arrived. If this is
 * the present census, the receiver's report lacks the gift. Otherwise the receiver reports the tasks of the
 * gift itself, or has given them to another peer. */
static void settle_gift(kl_node *n, const kl_gift *gift, uint32_t census) {
    kl_ranges *held = &n->round.collected.held;
    if (gift->open && census >= n->round.census)
        kl_peer_check(n, kl_ranges_add_all(held, gift->spans.at, gift->spans.count));
}

void kl_give_got(kl_node *n, uint32_t by, const kl_note *note) {
    for (size_t i = 0; i < n->giving.gift_count; i++)
        if (n->giving.gifts[i].to == by && n->giving.gifts[i].number == note->number) {
            settle_gift(n, &n->giving.gifts[i], note->census);
            remove_gift(&n->giving, i);
            return;
        }
}

/* Return the number of tasks to give to a peer that does `rate` tasks per second. It is half of the tasks, or
 * the number after which both peers should end at the same time. The number is 0 if there is no task to give,
 * or if the peer is too slow. */
static uint64_t part_of(const kl_node *n, double rate) {
    const kl_round *r = &n->round;
    kl_part_rule rule = n->of.help->part;
    double own = kl_work_rate(&n->work, n->now_s), left = (double)n->work.left;
    bool slow =
        n->of.help->sharing == KL_SHARE_AGAIN && rate < 0.5 * r->mean_rate && n->now_s + 1 / rate > r->end_s;
    if (n->work.left == 0 || (rate > 0 && slow))
        return 0;
    if (rule == KL_PART_HALF || !(own > 0) || (rule == KL_PART_BY_RATE_OR_HALF && rate > 2 * own))
        return (n->work.left + 1) / 2;
    rate = rate > 0 ? rate : own;
    double rest_s = (left + 0.5) / own - n->asking.trip_s, part = rest_s * own * rate / (own + rate);
    if (part >= 1)
        return (uint64_t)fmin(part, left);
    return 1 / rate < rest_s ? 1 : 0;
}

/* Return whether a peer of this rate would probably end a copy of the running task much earlier than this
 * peer ends the task. The file decide/rescue.c uses the same rule. */
static bool pays_to_copy(const kl_node *n, double rate) {
    const kl_running *h = &n->work.hand;
    double own = kl_work_rate(&n->work, n->now_s), done = own * (n->now_s - h->began_s);
    double rest = fmax(1 - done, done);
    return rate > 0 && rate >= 0.5 * n->round.mean_rate &&
           (done + rest) / rate + n->asking.trip_s <= 0.8 * rest / own;
}

static bool can_copy(const kl_node *n) {
    return n->of.help->copies && n->of.attends && n->work.left == 0 && kl_work_owns_hand(&n->work) &&
           !n->work.hand.lent;
}

bool kl_give_part(kl_node *n, uint32_t to, double rate) {
    uint64_t part = part_of(n, rate);
    if (part > 0) {
        kl_give(n, to, part);
        return true;
    }
    if (!can_copy(n) || !pays_to_copy(n, rate))
        return false;
    n->work.hand.lent = true;
    n->work.hand.lent_to = to;
    kl_post_plain(n, to, KL_NOTE_COPY, n->work.hand.task);
    return true;
}

void kl_give_refused(kl_node *n, uint32_t by, const kl_note *note) {
    if (n->work.hand.lent_to == by && n->work.hand.task == note->number)
        n->work.hand.lent = false;
}

/* --- peers that wait for tasks --- */

void kl_give_sign_up(kl_node *n, uint32_t peer, const kl_note *note) {
    kl_giving *g = &n->giving;
    double rate = note->rate;
    if (kl_give_part(n, peer, rate))
        return;
    for (size_t i = 0; i < g->line_count; i++)
        if (g->lines[i].peer == peer) {
            g->lines[i].rate = rate;
            return;
        }
    kl_waiting *lines = kl_array_grow(g->lines, &g->line_room, g->line_count + 1, sizeof *lines);
    kl_peer_check(n, lines);
    if (lines) {
        g->lines = lines;
        g->lines[g->line_count++] = (kl_waiting){peer, rate};
    }
}

void kl_give_feed(kl_node *n) {
    kl_giving *g = &n->giving;
    g->look_s = INFINITY;
    while (g->line_count > 0 && (n->work.left > 0 || can_copy(n))) {
        size_t next = 0; /* the fastest of the waiting peers */
        for (size_t i = 1; i < g->line_count; i++)
            next = g->lines[i].rate > g->lines[next].rate ? i : next;
        if (!kl_give_part(n, g->lines[next].peer, g->lines[next].rate))
            break;
        g->lines[next] = g->lines[--g->line_count];
    }
    if (g->line_count > 0 && can_copy(n))
        g->look_s = n->now_s + 0.25 / kl_work_rate(&n->work, n->now_s);
}

/* Forget gifts to the peers in `gone`: if such a gift did not arrive, the census finds its tasks. A peer may
 * be gone without being in `gone`. The results of such a peer still count in this census, so a gift to it
 * stays open. Then this census does not end, and the next one counts the peer as gone. */
void kl_give_lose_all(kl_node *n, const kl_numbers *gone) {
    kl_giving *g = &n->giving;
    for (size_t i = g->gift_count; i-- > 0;)
        if (kl_numbers_has(gone, g->gifts[i].to))
            remove_gift(g, i);
    for (size_t i = g->line_count; i-- > 0;)
        if (kl_tree_is_gone(&n->tree, g->lines[i].peer))
            g->lines[i] = g->lines[--g->line_count];
    if (n->work.hand.lent && kl_tree_is_gone(&n->tree, n->work.hand.lent_to))
        n->work.hand.lent = false;
}

void kl_give_open(kl_node *n) {
    for (size_t i = 0; i < n->giving.gift_count; i++)
        n->giving.gifts[i].open = true;
}

bool kl_give_is_open(const kl_node *n) {
    for (size_t i = 0; i < n->giving.gift_count; i++)
        if (n->giving.gifts[i].open)
            return true;
    return false;
}

void kl_give_free(kl_giving *g) {
    while (g->gift_count > 0)
        remove_gift(g, g->gift_count - 1);
    free(g->gifts);
    free(g->lines);
}
