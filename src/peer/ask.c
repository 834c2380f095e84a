/* Ask other peers for tasks when this peer runs out of tasks. */
#include <math.h>

#include "peer/peer_private.h"

enum { RANDOM_TRIES = 3, DRAWS = 16 };
/* Constants of algorithm 2 of Galyuk et al. 2007 (see docs/reference/peers.md), as parts of the time of the
 * whole run. CHECK_PART: pause between two checks whether this peer is late. LATE_PART: a peer is late if it
 * will end later than planned by this part or more. */
static const double CHECK_PART = 0.01, LATE_PART = 0.01;

static uint64_t draw(kl_node *n) {
    return kl_mix64(n->of.seed + kl_mix64(n->of.number + ((uint64_t)++n->asking.draws << 32)));
}

/* Choose at random a peer to ask for tasks. Three of four draws are among near peers. KL_NOBODY: no draw gave
 * a peer that can be asked. */
static uint32_t random_victim(kl_node *n) {
    uint32_t peers = n->tree.peers, near = n->of.near;
    for (int i = 0; i < DRAWS; i++) {
        uint32_t first = 0, count = peers;
        if (near > 0 && near < peers && draw(n) % 4 > 0) {
            first = n->of.number / near * near;
            count = peers - first < near ? peers - first : near;
        }
        uint32_t victim = first + (uint32_t)(draw(n) % count);
        bool rests = victim == 0 && n->of.root_rests;
        if (victim != n->of.number && !rests && !kl_tree_is_gone(&n->tree, victim))
            return victim;
    }
    return KL_NOBODY;
}

static void question(kl_node *n, uint32_t to, kl_note_kind kind) {
    kl_asking *a = &n->asking;
    a->out = true;
    a->victim = to;
    a->asked_s = n->now_s;
    if (!n->of.signals)
        kl_post_plain(n, to, kind, 0);
    else if (kind == KL_NOTE_QUERY)
        kl_act_signal(n, KL_NODE_SEEKS, to);
    else
        kl_post_offer(n, to);
}

static void ask(kl_node *n, bool idle) {
    kl_asking *a = &n->asking;
    if (n->of.help->board) {
        question(n, 0, KL_NOTE_QUERY);
        return;
    }
    uint32_t victim = a->fails < RANDOM_TRIES ? random_victim(n) : KL_NOBODY;
    if (victim != KL_NOBODY)
        question(n, victim, KL_NOTE_ASK);
    if (victim != KL_NOBODY || !idle || !n->of.help->lines)
        return;
    a->asleep = true;
    /* sign up with all neighbours in a hypercube, whose numbers differ from this peer's number in one bit */
    for (uint64_t bit = 1; bit < n->tree.peers; bit *= 2) {
        uint32_t other = n->of.number ^ (uint32_t)bit;
        if (other < n->tree.peers && !(a->signed_up & bit) && !kl_tree_is_gone(&n->tree, other))
            kl_post_plain(n, other, KL_NOTE_SIGN_UP, 0);
        a->signed_up |= bit;
    }
}

/* Return the seconds after which this peer should ask for tasks, so that the answer comes before its own
 * tasks end; 0: ask now. */
static double spare_s(const kl_node *n) {
    double rate = kl_work_rate(&n->work, n->now_s), elapsed_s = n->now_s - n->work.hand.began_s;
    if (!(rate > 0))
        return INFINITY;
    double rest_s = (double)n->work.left / rate + fmax(1 / rate - elapsed_s, 0.25 / rate);
    double spare = rest_s - n->asking.trip_s - 0.25 / rate;
    return spare > 1e-3 / rate ? spare : 0;
}

void kl_ask_settle(kl_node *n) {
    kl_asking *a = &n->asking;
    bool idle = !n->work.hand.on && n->work.left == 0;
    a->due_s = INFINITY;
    if (a->out || a->asleep || n->round.number == 0 || n->tree.peers < 2 || (n->root && n->of.root_rests))
        return;
    if (idle) {
        ask(n, true);
    } else if (n->of.help->early && a->fails < RANDOM_TRIES && kl_work_owns_hand(&n->work)) {
        double spare = spare_s(n);
        if (!(spare > 0))
            ask(n, false);
        else if (n->work.left == 0)
            a->due_s = n->now_s + spare;
    }
}

void kl_ask_answered(kl_node *n, uint32_t by, bool empty) {
    kl_asking *a = &n->asking;
    a->fails = empty ? a->fails + 1 : 0;
    if (!empty) /* the peer that gave tasks has also removed this peer from its list of waiting peers */
        a->signed_up &= ~(uint64_t)(by ^ n->of.number);
    a->asleep = empty && (a->asleep || n->of.help->board);
    if (!a->out || a->victim != by)
        return;
    double trip_s = n->now_s - a->asked_s;
    a->trip_s = a->trip_s > 0 ? 0.75 * a->trip_s + 0.25 * trip_s : trip_s;
    a->out = false;
}

void kl_ask_lose(kl_node *n, uint32_t peer) {
    if (n->asking.out && n->asking.victim == peer)
        n->asking.out = false;
}

void kl_ask_victim(kl_node *n, uint32_t root, const kl_note *note) {
    (void)root;
    n->asking.out = false;
    if (!kl_tree_is_gone(&n->tree, note->peer) && note->peer < n->tree.peers)
        question(n, note->peer, KL_NOTE_ASK);
}

void kl_ask_check(kl_node *n) {
    kl_asking *a = &n->asking;
    double whole_s = n->round.end_s - n->round.began_s;
    if (!n->of.help->board || !(n->round.end_s > 0) || n->now_s < a->checked_s + CHECK_PART * whole_s)
        return;
    a->checked_s = n->now_s;
    double rate = kl_work_rate(&n->work, n->now_s);
    double end_s = rate > 0 ? n->now_s + kl_work_left(&n->work) / rate : n->now_s;
    bool late = n->work.left > 0 && end_s - n->round.end_s >= LATE_PART * whole_s;
    if (late != a->posted && n->of.signals)
        kl_act_signal(n, KL_NODE_CALLS, late);
    else if (late != a->posted)
        kl_post_plain(n, 0, KL_NOTE_POST, late);
    a->posted = late;
}
