/* The state machine of a peer: it takes an event and returns actions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "peer/peer_private.h"

/* The first round begins when peer 0 has done this part of its tasks. If peer 0 rests, the tasks of peer 1
 * count instead. */
static const double FIRST_PART = 0.05;

static uint64_t first_part(const kl_node_options *o) {
    uint64_t tasks = o->share.hi - o->share.lo + (o->more ? kl_ranges_sum(o->more) : 0);
    double first = FIRST_PART * (double)tasks;
    return first < 1 ? 1 : (uint64_t)first;
}

static bool own_first(kl_node *n, const kl_node_options *o) {
    bool ok = kl_work_add(&n->work, o->share);
    for (size_t i = 0; o->more && i < o->more->count && ok; i++)
        ok = kl_work_add(&n->work, o->more->at[i]);
    return ok;
}

kl_node *kl_node_new(const kl_node_options *options) {
    kl_node *n = calloc(1, sizeof *n);
    if (!n)
        return NULL;
    bool there = options->number < options->peers;
    n->of = *options;
    n->later_end = &n->later;
    n->most = KL_PEERS_MOST;
    n->tree = (kl_tree){.number = options->number};
    kl_tree_count(&n->tree, there ? options->peers : options->number + 1);
    n->round = (kl_round){.number = there ? 1 : 0,
                          .above = options->number == 0 ? 0 : kl_tree_above(options->number),
                          .due_s = INFINITY,
                          .closing = options->help->sharing == KL_SHARE_NEVER};
    n->asking.due_s = n->giving.look_s = n->round.tell_s = n->losses.tell_s = INFINITY;
    n->losses.told_s = -INFINITY;
    n->of.more = n->of.done = NULL; /* both lists belong to the caller, and their tasks are copied below */
    n->first = first_part(options);
    if (own_first(n, options) && (options->number > 0 || kl_root_begin(n, options->done)))
        return n;
    kl_node_free(n);
    return NULL;
}

void kl_node_bound(kl_node *n, uint32_t peers) {
    n->most = peers;
}

void kl_node_free(kl_node *n) {
    if (!n)
        return;
    kl_ranges_free(&n->work.own);
    kl_haul_free(&n->work.done);
    kl_haul_free(&n->work.sent);
    kl_give_free(&n->giving);
    kl_round_free(&n->round);
    kl_saves_free(&n->saves);
    free(n->losses.news.at);
    kl_root_free(n->root);
    kl_note_free(&n->note);
    free(n->tree.gone);
    free(n->tree.below.at);
    while (n->later) {
        kl_later *first = n->later;
        n->later = first->next;
        free(first);
    }
    free(n);
}

void kl_node_actions_free(kl_node_actions *actions) {
    free(actions->items);
    kl_buffer_free(&actions->bytes);
    *actions = (kl_node_actions){0};
}

kl_node_state kl_node_state_of(const kl_node *root) {
    return root->root->state;
}

const kl_ranges *kl_node_counted(const kl_node *root) {
    return &root->root->committed;
}

bool kl_node_counts_gone(const kl_node *root, uint32_t peer) {
    return kl_tree_is_gone(&root->tree, peer);
}

uint64_t kl_node_left(const kl_node *n) {
    return n->work.left;
}

/* --- tasks --- */

static void begin_task(kl_node *n, uint64_t task, uint32_t owner) {
    kl_act(n, (kl_node_action){.kind = KL_NODE_BEGIN, .task = task});
    n->work.hand = (kl_running){.on = true, .task = task, .owner = owner, .began_s = n->now_s};
}

static void begin_next(kl_node *n) {
    if (!n->work.hand.on && n->work.left > 0 && !n->over)
        begin_task(n, kl_work_next(&n->work), KL_NOBODY);
}

static void count(kl_node *n, uint64_t task, kilter_bytes result) {
    kl_span span = {task, task + 1};
    n->work.done_tasks++;
    kl_haul_add(n, &n->work.done, &(kl_ranges){.at = &span, .count = 1}, result);
}

static void end_task(kl_node *n, kilter_bytes result) {
    kl_running hand = n->work.hand;
    n->work.hand.on = false;
    kl_tempo_add(&n->work.tempo, n->now_s - hand.began_s, n->of.least_s);
    kl_note copied = {.kind = KL_NOTE_COPIED, .number = hand.task, .value = result};
    if (hand.owner != KL_NOBODY)
        kl_post(n, hand.owner, &copied, 0);
    else if (!hand.settled)
        count(n, hand.task, result);
}

/* --- messages --- */

static void asked(kl_node *n, uint32_t from, const kl_note *note) {
    /* The root has named this late peer to the peer that asks now. The root has also removed this peer from
     * its board of late peers. */
    n->asking.posted = false;
    if (!kl_give_part(n, from, note->rate))
        kl_post_plain(n, from, KL_NOTE_EMPTY, 0);
}

static void refused(kl_node *n, uint32_t from, const kl_note *note) {
    (void)note;
    kl_ask_answered(n, from, true);
}

static void take_gift(kl_node *n, uint32_t from, const kl_note *note) {
    for (size_t i = 0; i < note->spans.count; i++)
        kl_peer_check(n, kl_work_add(&n->work, note->spans.at[i]));
    kl_post_plain(n, from, KL_NOTE_GOT, note->number);
    kl_ask_answered(n, from, false);
}

static void copy(kl_node *n, uint32_t from, const kl_note *note) {
    kl_ask_answered(n, from, false);
    if (!n->work.hand.on && n->work.left == 0 && note->number < n->of.tasks)
        begin_task(n, note->number, from);
    else
        kl_post_plain(n, from, KL_NOTE_REFUSED, note->number);
}

static void copied(kl_node *n, uint32_t from, const kl_note *note) {
    (void)from;
    if (!kl_work_owns_hand(&n->work) || n->work.hand.task != note->number)
        return;
    n->work.hand.settled = true;
    count(n, note->number, note->value);
}

static void hurry(kl_node *n, uint32_t from, const kl_note *note) {
    uint32_t peers = note->peers > from ? note->peers : from + 1;
    /* ask the root for a round again if the message names new peers, because the root must learn of them */
    n->round.hurried = n->round.hurried && peers <= n->tree.peers;
    kl_tree_know(&n->tree, peers);
    (n->root ? kl_root_want : kl_round_hurry)(n);
}

static void called(kl_node *n, uint32_t from, const kl_note *note) {
    kl_round_call(n, from, note);
    kl_loss_again(n, &note->gone);
}

static void handle(kl_node *n, uint32_t from, const kl_note *note) {
    static void (*const handlers[])(kl_node *, uint32_t, const kl_note *) = {
        [KL_NOTE_ASK] = asked,
        [KL_NOTE_EMPTY] = refused,
        [KL_NOTE_REFUSED] = kl_give_refused,
        [KL_NOTE_GIFT] = take_gift,
        [KL_NOTE_GOT] = kl_give_got,
        [KL_NOTE_SIGN_UP] = kl_give_sign_up,
        [KL_NOTE_COPY] = copy,
        [KL_NOTE_COPIED] = copied,
        [KL_NOTE_POST] = kl_root_board,
        [KL_NOTE_QUERY] = kl_root_board,
        [KL_NOTE_VICTIM] = kl_ask_victim,
        [KL_NOTE_LATE] = kl_round_late,
        [KL_NOTE_HURRY] = hurry,
        [KL_NOTE_LOSS] = kl_loss_hear,
        [KL_NOTE_SAVE] = kl_save_take,
        [KL_NOTE_CALL] = called,
        [KL_NOTE_REPORT] = kl_round_hear,
        [KL_NOTE_PLAN] = kl_round_plan,
    };
    handlers[note->kind](n, from, note);
}

/* Keep a message whose sender was already called to a census, until this peer is called, too. If the message
 * were handled now, the census would miss the tasks that it moves, or count them twice. */
static void keep(kl_node *n, const kl_node_event *e) {
    kl_later *later = malloc(sizeof *later + e->size);
    kl_peer_check(n, later);
    if (!later)
        return;
    later->next = NULL;
    later->peer = e->peer;
    later->size = e->size;
    memcpy(later->data, e->data, e->size);
    *n->later_end = later;
    n->later_end = &later->next;
}

/* Handle an event of the driver's signals like the message that it replaces. Ignore peers that do not exist
 * or are gone. */
static void take_signal(kl_node *n, const kl_node_event *e) {
    bool rests = e->peer == 0 && n->of.root_rests;
    bool there =
        e->peer < n->tree.peers && !kl_tree_is_gone(&n->tree, e->peer) && e->peer != n->of.number && !rests;
    kl_note note = {.kind = KL_NOTE_ASK, .peer = e->peer, .rate = e->rate};
    if (e->kind == KL_NODE_FOUND && there)
        kl_ask_victim(n, 0, &note);
    else if (e->kind == KL_NODE_FOUND)
        n->asking.out = false; /* the peer that was found is gone, so this peer may ask again */
    else if (there)
        asked(n, e->peer, &note);
}

static void lose(kl_node *n, uint32_t peer);

static void hear(kl_node *n, const kl_node_event *e) {
    if (n->over || kl_tree_is_gone(&n->tree, e->peer))
        return;
    if (!kl_note_get(e->data, e->size, n->of.tasks, &n->note) || !kl_note_is_sound(n, e->peer, &n->note)) {
        n->out->malformed = true;
        if (e->peer > 0)
            lose(n, e->peer);
        return;
    }
    if (n->note.census > n->round.census && n->note.kind != KL_NOTE_CALL && n->round.number > 0)
        keep(n, e);
    else
        handle(n, e->peer, &n->note);
}

static void hear_kept(kl_node *n) {
    kl_later *kept = n->later;
    uint32_t census = n->round.census;
    n->later = NULL;
    n->later_end = &n->later;
    while (kept) {
        kl_later *first = kept;
        kept = first->next;
        hear(n, &(kl_node_event){
                    .kind = KL_NODE_HEARS, .peer = first->peer, .data = first->data, .size = first->size});
        free(first);
    }
    if (n->later && census != n->round.census)
        hear_kept(n);
}

/* --- other peers come and go --- */

static void lose(kl_node *n, uint32_t peer) {
    kl_tree_know(&n->tree, peer + 1);
    if (peer != n->round.above || n->root) {
        kl_loss_note(n, peer);
    } else {
        kl_peer_check(n, kl_tree_lose(&n->tree, peer));
        kl_ask_lose(n, peer);
        n->round.above = kl_tree_heir(&n->tree, peer);
        /* tell the new parent, which may not know of the death yet */
        kl_post_plain(n, n->round.above, KL_NOTE_HURRY, 0);
    }
}

/* --- one step of the peer --- */

/* Return whether this peer asks for the first round now. An idle peer asks. If the root rests, peer 1 also
 * asks when it has done the first part of its tasks. */
static bool wants_first_round(const kl_node *n) {
    bool chooses = n->of.root_rests && n->of.number == 1 && n->work.done_tasks >= n->first;
    return n->of.help->sharing != KL_SHARE_NEVER && n->round.number == 1 && !(n->root && n->of.root_rests) &&
           (!n->work.hand.on || chooses);
}

/* After any event, do everything that has become possible or due. */
static void settle(kl_node *n) {
    begin_next(n);
    kl_give_feed(n);
    kl_ask_check(n);
    kl_save_send(n);
    kl_ask_settle(n);
    if (wants_first_round(n))
        kl_round_hurry(n);
    if (n->root)
        kl_root_settle(n);
    if (kl_round_is_full(n))
        (n->root ? kl_root_close : kl_round_report)(n);
    (n->root ? kl_root_late : kl_round_tell)(n);
    kl_loss_tell(n);
    begin_next(n); /* a new plan may have given tasks to this peer */
}

void kl_node_step(kl_node *n, const kl_node_event *e, double now_s, kl_node_actions *out) {
    out->count = 0;
    out->failed = out->malformed = false;
    kl_buffer_clear(&out->bytes);
    n->out = out;
    n->now_s = now_s;
    if (e->kind == KL_NODE_STARTS) {
        n->round.began_s = now_s;
        kl_round_begin(n, n->round.number);
        if (n->round.number == 0)
            kl_post_plain(n, n->round.above, KL_NOTE_HURRY, 0);
    } else if (e->kind == KL_NODE_HEARS) {
        hear(n, e);
    } else if (e->kind == KL_NODE_LOSES) {
        lose(n, e->peer);
    } else if (e->kind == KL_NODE_ENDED) {
        end_task(n, (kilter_bytes){e->data, e->size});
    } else if ((e->kind == KL_NODE_FOUND || e->kind == KL_NODE_OFFERED) && !n->over) {
        take_signal(n, e);
    }
    if (n->later && n->round.census > 0)
        hear_kept(n);
    if (!n->over)
        settle(n);
    out->wake_s = fmin(fmin(n->asking.due_s, n->giving.look_s), fmin(n->round.tell_s, n->losses.tell_s));
    if (!n->round.joined_in && now_s < n->round.due_s)
        out->wake_s = fmin(out->wake_s, n->round.due_s);
    if (n->root)
        out->wake_s = fmin(out->wake_s, fmin(n->root->call_s, n->root->patient_s));
    if (n->over)
        out->wake_s = INFINITY;
}
