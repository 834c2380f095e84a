/* The work that only the root does: commit rounds, find tasks that were lost with dead peers, make plans, and
 * end the run. */
#include <math.h>
#include <stdlib.h>

#include "peer/peer_private.h"

/* The next reports are due after this part of the time that is left. */
static const double NEXT_PART = 0.45;
/* The pause between two calls to a census is at least CALL_PART of the time left. It is also at least
 * CALL_ROUNDS times the length of a round. After a death it is at least LOSS_PART of the time left. */
static const double CALL_PART = 0.25, LOSS_PART = 0.8, CALL_ROUNDS = 4;
/* The closing round begins when the time left is shorter than LAST_ROUNDS rounds plus the time of LAST_TASKS
 * tasks. */
static const double LAST_ROUNDS = 1.5, LAST_TASKS = 8;
/* After the closing round, the root waits for late tasks. It waits for the longest of three times: PATIENCE_S
 * seconds, the time of PATIENCE_ROUNDS rounds, and the time of PATIENCE_TASKS tasks at a mean peer. */
static const double PATIENCE_S = 2, PATIENCE_ROUNDS = 50, PATIENCE_TASKS = 10;

bool kl_root_begin(kl_node *n, const kl_ranges *done) {
    n->root = calloc(1, sizeof *n->root);
    if (!n->root)
        return false;
    *n->root = (kl_root){.call_s = INFINITY, .patient_s = INFINITY, .called_s = -1};
    if (done && !kl_ranges_add_all(&n->root->committed, done->at, done->count))
        return false;
    kl_ranges_tidy(&n->root->committed);
    n->root->state.committed = kl_ranges_sum(&n->root->committed);
    return true;
}

static void call(kl_node *n) {
    kl_root *root = n->root;
    kl_note note = {.kind = KL_NOTE_CALL,
                    .round = n->round.number + 1,
                    .number = root->committed_round,
                    .peers = n->tree.peers,
                    .gone = root->gone};
    root->called_s = n->now_s;
    root->call_s = root->patient_s = INFINITY;
    root->waits = false;
    root->state.censuses++;
    kl_round_call(n, n->of.number, &note);
}

/* Return whether nobody works: the root rests, and all children to which it sent the last plan are gone. */
static bool all_gone(const kl_node *n) {
    for (size_t i = 0; i < n->tree.below.count; i++)
        if (!kl_tree_is_gone(&n->tree, n->tree.below.at[i]))
            return false;
    return n->of.root_rests;
}

static void want(kl_node *n, double part) {
    kl_root *root = n->root;
    double pause_s = all_gone(n) ? 0 : fmax(CALL_ROUNDS * root->took_s, part * (n->round.end_s - n->now_s));
    double call_s = root->called_s < 0 ? n->now_s : fmax(n->now_s, root->called_s + pause_s);
    if (!(root->call_s < call_s))
        root->call_s = call_s;
}

void kl_root_want(kl_node *n) {
    want(n, CALL_PART);
}

void kl_root_lose(kl_node *n, uint32_t peer) {
    if (peer == n->of.number || peer >= n->tree.peers || kl_numbers_has(&n->root->gone, peer))
        return;
    kl_peer_check(n, kl_numbers_add(&n->root->gone, peer));
    n->root->state.deaths++;
    want(n, LOSS_PART);
}

/* --- the end of a round --- */

static void commit(kl_node *n, kl_haul *done) {
    kl_root *root = n->root;
    uint64_t counted = root->state.committed + kl_ranges_sum(&done->tasks);
    kl_peer_check(n, kl_ranges_add_all(&root->committed, done->tasks.at, done->tasks.count));
    kl_ranges_tidy(&root->committed);
    root->state.committed = kl_ranges_sum(&root->committed);
    root->state.twice += counted - root->state.committed;
    root->committed_round = n->round.number;
    n->round.reported = true;
    kl_act_on(n, KL_NODE_COUNTS, kl_haul_value(done));
    if (done->tasks.count > 0)
        kl_put_bytes(&n->out->bytes, done->tasks.at, done->tasks.count * sizeof *done->tasks.at);
    kl_peer_check(n, !n->out->bytes.failed);
    if (n->out->count > 0) {
        kl_node_action *counts = &n->out->items[n->out->count - 1];
        counts->task = kl_ranges_sum(&done->tasks);
        counts->spans = done->tasks.count;
    }
    kl_haul_clear(done);
}

/* Find the lost tasks, which are neither committed nor held by a peer. */
static void find_lost(kl_node *n, kl_ranges *lost) {
    kl_ranges *held = &n->round.collected.held;
    kl_ranges all = {0}, open = {0};
    kl_ranges_tidy(held);
    kl_peer_check(n, kl_ranges_add(&all, (kl_span){0, n->of.tasks}) &&
                         kl_ranges_without(&all, &n->root->committed, &open) &&
                         kl_ranges_without(&open, held, lost));
    n->root->state.adopted += kl_ranges_sum(lost);
    kl_ranges_free(&all);
    kl_ranges_free(&open);
}

static void plan(kl_node *n, const kl_orders *orders) {
    kl_root *root = n->root;
    /* The time left and the rates in the reports are as old as the first report. The round has taken took_s
     * since then. */
    double left_s = fmax(root->sharing.left_s - root->took_s, 0), rate = root->sharing.mean_rate;
    double next_s = rate > 0 ? NEXT_PART * left_s : n->now_s - n->round.began_s;
    bool last = rate > 0 && left_s < LAST_ROUNDS * root->took_s + LAST_TASKS / rate;
    kl_note note = {.kind = KL_NOTE_PLAN,
                    .round = n->round.number,
                    .peers = n->tree.peers,
                    .rate = rate,
                    .left_s = left_s,
                    .next_s = fmax(next_s, 2 * root->took_s),
                    .closing = last || n->of.help->sharing == KL_SHARE_NEVER ||
                               (root->shared && n->of.help->sharing == KL_SHARE_ONCE),
                    .over = root->state.committed == n->of.tasks,
                    .census = n->round.census,
                    .orders = *orders};
    root->planned_s = n->now_s;
    root->next_s = note.next_s;
    root->waits = false;
    kl_round_plan(n, n->of.number, &note);
}

/* Wait for missing tasks after all peers have reported that they have no tasks left. The missing tasks should
 * soon come as late tasks. If they were lost with a dead peer, they never come, and a census finds them. */
static void be_patient(kl_node *n) {
    kl_root *root = n->root;
    double task_s = root->sharing.mean_rate > 0 ? 1 / root->sharing.mean_rate : 0;
    root->waits = true;
    root->patient_s =
        n->now_s + fmax(PATIENCE_S, fmax(PATIENCE_ROUNDS * root->took_s, PATIENCE_TASKS * task_s));
}

void kl_root_close(kl_node *n) {
    kl_root *root = n->root;
    kl_ranges lost = {0};
    kl_orders orders = {0};
    kl_sharing sharing = n->of.help->sharing;
    bool failed;
    commit(n, &n->round.reports);
    root->state.rounds++;
    if (n->round.census == n->round.number) {
        root->took_s = n->now_s - root->called_s;
        find_lost(n, &lost);
    } else if (!n->round.closing) {
        root->took_s = fmax(n->now_s - root->planned_s - root->next_s, 0);
    }
    kl_share_rule rule = {.dead_zone = n->of.help->dead_zone,
                          .near = n->of.near,
                          .moves = sharing == KL_SHARE_AGAIN || (sharing == KL_SHARE_ONCE && !root->shared)};
    root->sharing = kl_share(&n->round.collected.standings, &lost, &rule, &orders, &failed);
    kl_peer_check(n, !failed);
    root->shared |= rule.moves && root->sharing.mean_rate > 0;
    if (n->round.closing && root->state.committed < n->of.tasks)
        be_patient(n);
    else
        plan(n, &orders);
    kl_ranges_free(&lost);
    free(orders.at);
}

void kl_root_late(kl_node *n) {
    kl_root *root = n->root;
    if (!root->waits)
        return;
    kl_round_late_own(n);
    if (root->state.committed + kl_ranges_sum(&n->round.late.tasks) < n->of.tasks)
        return;
    commit(n, &n->round.late);
    plan(n, &(kl_orders){0});
}

void kl_root_settle(kl_node *n) {
    kl_root *root = n->root;
    bool first = n->of.help->sharing != KL_SHARE_NEVER && root->called_s < 0;
    bool overdue = n->now_s >= root->patient_s;
    root->state.overdue += overdue;
    if (!n->over && (overdue || n->now_s >= root->call_s || (first && n->work.done_tasks >= n->first)))
        call(n);
}

/* --- the board of late peers --- */

static void take_down(kl_numbers *board, uint32_t peer) {
    for (size_t i = board->count; i-- > 0;)
        if (board->at[i] == peer)
            board->at[i] = board->at[--board->count];
}

void kl_root_board(kl_node *n, uint32_t peer, const kl_note *note) {
    if (!n->root)
        return;
    kl_numbers *board = &n->root->board;
    if (note->kind == KL_NOTE_POST) {
        take_down(board, peer);
        kl_peer_check(n, note->number == 0 || kl_numbers_add(board, peer));
        return;
    }
    for (size_t i = 0; i < board->count; i++)
        if (board->at[i] != peer && !kl_tree_is_gone(&n->tree, board->at[i])) {
            kl_note answer = {.kind = KL_NOTE_VICTIM, .peer = board->at[i]};
            take_down(board, answer.peer);
            kl_post(n, peer, &answer, 0);
            return;
        }
    kl_post_plain(n, peer, KL_NOTE_EMPTY, 0);
}

void kl_root_free(kl_root *root) {
    if (!root)
        return;
    kl_ranges_free(&root->committed);
    free(root->gone.at);
    free(root->board.at);
    free(root);
}
