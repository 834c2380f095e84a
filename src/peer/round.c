/* Rounds: reports go up the tree of peers, and plans come down. The tasks in a report count when its round is
 * committed. A round that begins with a call of the root is also a census: peers report all tasks that they
 * hold. A message must wait if its sender was called and its receiver was not called yet. Otherwise the
 * census would miss tasks, or count them twice. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "peer/peer_private.h"

/* Pause between two messages with late tasks, as a part of the time between two reports. */
static const double PAUSE_PART = 0.125;

static void empty(kl_round *r) {
    kl_haul_clear(&r->reports);
    r->collected.held.count = 0;
    r->collected.standings.count = 0;
}

/* Prepare for the reports of a new round. */
void kl_round_begin(kl_node *n, uint32_t number) {
    kl_round *r = &n->round;
    r->number = number;
    r->reported = r->joined_in = r->hurried = false;
    r->heard_count = 0;
    n->asking.signed_up = 0;
    /* report these results again, because the earlier report may not be committed */
    kl_haul_move(n, &n->work.done, &r->told);
    kl_haul_clear(&r->late);
    empty(r);
    kl_peer_check(n, kl_tree_look(&n->tree));
    uint8_t *heard = kl_array_grow(r->heard, &r->heard_room, n->tree.below.count + 1, 1);
    kl_peer_check(n, heard);
    if (heard) {
        r->heard = heard;
        memset(heard, 0, n->tree.below.count + 1);
    }
}

/* Add this peer's own part to the report: the tasks done since its last report, the number of its tasks left,
 * and its rate. */
static void join_in(kl_node *n) {
    kl_round *r = &n->round;
    kl_work *w = &n->work;
    kl_standing own = {n->of.number, kl_work_left(w), kl_work_rate(w, n->now_s)};
    kl_ranges_tidy(&w->done.tasks);
    if (!(n->root && n->of.root_rests)) /* a root that rests does not report itself, so it gets no tasks */
        kl_peer_check(n, kl_standings_add(&r->collected.standings, own));
    kl_haul_join(n, &r->reports, &w->done);
    kl_haul_move(n, &w->sent, &w->done);
    r->sent_round = r->number;
    r->joined_in = true;
}

/* Add all tasks that this peer holds to its report in a census. */
static bool hold(kl_node *n) {
    kl_ranges *held = &n->round.collected.held;
    const kl_work *w = &n->work;
    kl_span hand = {w->hand.task, w->hand.task + kl_work_owns_hand(w)};
    return kl_ranges_add_all(held, w->own.at, w->own.count) && kl_ranges_add(held, hand);
}

void kl_round_call(kl_node *n, uint32_t from, const kl_note *note) {
    kl_round *r = &n->round;
    kl_haul *sent = &n->work.sent;
    uint32_t committed = (uint32_t)note->number;
    if (note->round <= r->number)
        return;
    if (r->sent_round > committed) /* the round of these results was not committed, so report them again */
        kl_haul_join(n, &n->work.done, sent);
    kl_haul_clear(sent);
    kl_tree_count(&n->tree, note->peers);
    for (size_t i = 0; i < note->gone.count; i++) {
        uint32_t gone = note->gone.at[i];
        kl_peer_check(n, gone < n->tree.peers && kl_tree_lose(&n->tree, gone));
        kl_ask_lose(n, gone);
    }
    for (size_t i = 0; i < note->gone.count; i++)
        kl_save_inherit(n, note->gone.at[i], committed);
    kl_give_lose_all(n, &note->gone);
    r->above = from;
    r->census = note->round;
    r->closing = false;
    r->due_s = INFINITY;
    kl_round_begin(n, note->round);
    n->asking.asleep = false;
    n->asking.fails = 0;
    kl_note call = *note;
    for (size_t i = 0; i < n->tree.below.count; i++)
        kl_post(n, n->tree.below.at[i], &call, 0);
    join_in(n);
    kl_peer_check(n, hold(n));
    kl_give_open(n);
}

/* --- plans --- */

static void forward(kl_node *n, const kl_note *note) {
    kl_note plan = *note;
    plan.orders = (kl_orders){0};
    for (size_t i = 0; i < n->tree.below.count; i++) {
        plan.orders.count = 0;
        for (size_t k = 0; k < note->orders.count; k++) {
            const kl_order *o = &note->orders.at[k];
            if (kl_tree_under(n->tree.below.at[i], o->from == KL_NOBODY ? o->to : o->from))
                kl_peer_check(n, kl_orders_add(&plan.orders, *o));
        }
        kl_post(n, n->tree.below.at[i], &plan, 0);
    }
    free(plan.orders.at);
}

void kl_round_plan(kl_node *n, uint32_t from, const kl_note *note) {
    kl_round *r = &n->round;
    if (r->number != 0 && (note->round != r->number || from != r->above))
        return;
    kl_tree_count(&n->tree, note->peers);
    r->above = from;
    r->census = note->census > r->census ? note->census : r->census;
    kl_haul_clear(&n->work.sent);
    kl_round_begin(n, note->round + 1);
    forward(n, note);
    r->closing = note->closing;
    r->pause_s = fmin(PAUSE_PART * note->next_s, note->rate > 0 ? 0.5 / note->rate : INFINITY);
    r->due_s = note->closing ? INFINITY : n->now_s + note->next_s;
    r->end_s = n->now_s + note->left_s;
    r->mean_rate = note->rate;
    r->period_s = note->next_s;
    if (!note->closing) {
        n->asking.asleep = n->asking.asleep && n->of.help->board;
        n->asking.fails = 0;
    }
    for (size_t i = 0; i < note->orders.count; i++) {
        const kl_order *o = &note->orders.at[i];
        uint64_t count = o->span.hi - o->span.lo;
        if (o->from == KL_NOBODY && o->to == n->of.number)
            kl_peer_check(n, kl_work_add(&n->work, o->span));
        else if (o->from == n->of.number && n->work.left > 0 && !kl_tree_is_gone(&n->tree, o->to))
            kl_give(n, o->to, count < n->work.left ? count : n->work.left);
    }
    n->over = note->over;
    if (note->over)
        kl_act(n, (kl_node_action){.kind = KL_NODE_OVER});
}

/* --- reports --- */

void kl_round_hear(kl_node *n, uint32_t from, const kl_note *note) {
    kl_round *r = &n->round;
    size_t place = 0;
    while (place < n->tree.below.count && n->tree.below.at[place] != from)
        place++;
    if (note->round != r->number || r->reported || place == n->tree.below.count || r->heard[place])
        return;
    r->heard[place] = 1;
    r->heard_count++;
    kl_tree_know(&n->tree, note->peers);
    bool ok = kl_ranges_add_all(&r->collected.held, note->held.at, note->held.count);
    kl_haul_add(n, &r->reports, &note->spans, note->value);
    for (size_t i = 0; i < note->standings.count && ok; i++)
        ok = kl_standings_add(&r->collected.standings, note->standings.at[i]);
    kl_peer_check(n, ok);
}

bool kl_round_is_full(kl_node *n) {
    kl_round *r = &n->round;
    const kl_work *w = &n->work;
    /* If the root does no tasks itself (it rests), a peer that becomes idle before its report is due reports
     * at once. The root may have planned the reports for a wrong time. */
    bool idle =
        n->of.root_rests && r->period_s > 0 && w->left == 0 && !w->hand.on && (n->root || n->asking.asleep);
    bool due = idle         ? true
               : r->closing ? w->left == 0 && (!kl_work_owns_hand(w) || w->hand.lent)
                            : n->now_s >= r->due_s;
    if (n->over || r->number == 0 || r->reported || r->heard_count < n->tree.below.count)
        return false;
    if (!r->joined_in && due)
        join_in(n);
    return r->joined_in && !kl_give_is_open(n);
}

void kl_round_report(kl_node *n) {
    kl_round *r = &n->round;
    kl_note *report = &r->collected;
    report->kind = KL_NOTE_REPORT;
    report->round = r->number;
    report->peers = n->tree.peers;
    kl_ranges_tidy(&r->reports.tasks);
    kl_ranges_tidy(&report->held);
    report->spans = r->reports.tasks;
    report->value = kl_haul_value(&r->reports);
    kl_post(n, r->above, report, 0);
    empty(r);
    r->reported = true;
}

void kl_round_hurry(kl_node *n) {
    kl_note note = {.kind = KL_NOTE_HURRY, .peers = n->tree.peers};
    if (!n->round.hurried)
        kl_post(n, n->round.above, &note, 0);
    n->round.hurried = true;
}

/* Add the tasks that this peer has done after its report to `late`. The parent that received the report gets
 * these tasks. */
void kl_round_late_own(kl_node *n) {
    kl_haul_join(n, &n->round.late, &n->work.done);
    kl_haul_move(n, &n->round.told, &n->work.done);
}

void kl_round_late(kl_node *n, uint32_t from, const kl_note *note) {
    kl_round *r = &n->round;
    (void)from;
    if (note->round == r->number)
        kl_haul_add(n, &r->late, &note->spans, note->value);
}

/* Send late tasks to the parent, if this is due. The message has the late tasks of this peer and of the peers
 * below it. */
void kl_round_tell(kl_node *n) {
    kl_round *r = &n->round;
    bool idle = n->work.left == 0 && !kl_work_owns_hand(&n->work);
    bool untold = idle && n->work.done.tasks.count > 0;
    bool wants = r->closing && r->reported && (r->late.tasks.count > 0 || untold);
    r->tell_s = wants ? r->told_s + r->pause_s : INFINITY;
    if (n->now_s < r->tell_s)
        return;
    kl_round_late_own(n);
    kl_ranges_tidy(&r->late.tasks);
    kl_note note = {
        .kind = KL_NOTE_LATE, .round = r->number, .spans = r->late.tasks, .value = kl_haul_value(&r->late)};
    kl_post(n, r->above, &note, 0);
    kl_haul_clear(&r->late);
    r->told_s = n->now_s;
    r->tell_s = INFINITY;
}

void kl_round_free(kl_round *r) {
    free(r->heard);
    kl_haul_free(&r->late);
    kl_haul_free(&r->told);
    kl_haul_free(&r->reports);
    r->collected.spans = (kl_ranges){0}; /* this points into r->reports.tasks, which was just freed */
    kl_note_free(&r->collected);
}
