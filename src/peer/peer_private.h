/* A peer is made of parts, each with its own file, in the order in which they may use each other:
 *
 *     note       messages                       tree    who is above and below whom
 *     haul       tasks done, and their value
 *     share      algorithm 1: orders            tempo   the measured rate
 *     work       tasks owned, running, done     post    actions, messages
 *     give       gifts, and those who wait      ask     the search for work
 *     save       for when a peer dies           round   reports up, plans down
 *     loss       deaths, told to the root
 *     root       what the root alone does       node    events in, actions out
 *
 * Private to room peer. */
#ifndef KL_PEER_PRIVATE_H
#define KL_PEER_PRIVATE_H

#include "measure/measure.h"
#include "peer/note.h"

/* --- tree.c: peer n is above peers 16 n + 1 … 16 n + 16; the children of a peer that is gone belong to its
 * parent --- */

typedef struct kl_tree {
    uint32_t number, peers; /* peers: number of peers that ever took part */
    uint8_t *gone;          /* one bit for each peer; NULL: no peer is gone */
    uint32_t room;          /* number of bits in `gone` */
    kl_numbers below;       /* living peers whose parent this peer is */
} kl_tree;

uint32_t kl_tree_above(uint32_t number);             /* number > 0 */
bool kl_tree_under(uint32_t above, uint32_t number); /* Is `number` the peer `above`, or anywhere below it? */
void kl_tree_know(kl_tree *tree, uint32_t peers); /* note that at least this number of peers ever took part */
bool kl_tree_is_gone(const kl_tree *tree, uint32_t number);
bool kl_tree_lose(kl_tree *tree, uint32_t number); /* note that the peer is gone; false: no memory */
bool kl_tree_look(kl_tree *tree);                  /* make `below` anew; false: no memory */

/* --- share.c --- */

typedef struct kl_sharing_of {
    double left_s;    /* seconds until all tasks are done at the present rates */
    double mean_rate; /* tasks per second: the mean of all known rates */
} kl_sharing_of;

/* Algorithm 1: the time left is all tasks left over the sum of all rates. A peer that has more tasks than it
 * can do in this time gives tasks to one that has fewer, first to near ones. Tasks of `lost` go to the peers
 * that lack most. Sorts `standings`. */
typedef struct kl_share_rule {
    double dead_zone;
    uint32_t near; /* as in kl_node_options */
    bool moves;    /* false: only tasks of `lost` are given */
} kl_share_rule;

kl_sharing_of kl_share(kl_standings *standings, const kl_ranges *lost, const kl_share_rule *rule,
                       kl_orders *orders, bool *failed);

/* --- tempo.c --- */

enum { KL_TEMPO_LAST = 16 };

typedef struct kl_timed { /* tasks that were timed together */
    double tasks, seconds;
} kl_timed;

typedef struct kl_tempo {
    kl_pace pace;
    kl_timed last[KL_TEMPO_LAST]; /* the last tasks, in a ring */
    kl_timed open;                /* tasks that are too short to be timed alone */
    uint64_t count;
} kl_tempo;

/* least_s: shorter tasks are timed together, until they have taken this long. */
void kl_tempo_add(kl_tempo *tempo, double task_s, double least_s);
/* Return tasks per second; 0: not known. hand_s: seconds for which the present task has run, 0: none runs. */
double kl_tempo_rate(const kl_tempo *tempo, double hand_s);

/* --- haul.c --- */

typedef struct kl_haul {
    kl_ranges tasks; /* tasks that were done */
    kl_buffer value; /* their results, combined */
} kl_haul;

void kl_haul_add(kl_node *node, kl_haul *haul, const kl_ranges *tasks, kilter_bytes value);
void kl_haul_join(kl_node *node, kl_haul *haul, const kl_haul *more);
void kl_haul_move(kl_node *node, kl_haul *haul, kl_haul *from); /* `from` is empty afterwards */
kilter_bytes kl_haul_value(const kl_haul *haul);
void kl_haul_clear(kl_haul *haul);
void kl_haul_free(kl_haul *haul);

/* --- work.c --- */

typedef struct kl_running { /* the task that runs */
    bool on;
    bool settled; /* a copy of the task ended earlier */
    bool lent;    /* a copy of the task runs at `lent_to`, or is on its way there */
    uint32_t lent_to;
    uint32_t owner; /* the task is a copy of this peer's task; KL_NOBODY: it is no copy */
    uint64_t task;
    double began_s;
} kl_running;

typedef struct kl_work {
    kl_ranges own; /* tasks not begun: they are done from the front, and given away from the back */
    uint64_t left; /* number of tasks in `own` */
    kl_running hand;
    kl_haul done; /* tasks done since the last report */
    kl_haul sent; /* tasks that were reported, and whose round is not known to be committed */
    uint64_t done_tasks;
    kl_tempo tempo;
} kl_work;

bool kl_work_add(kl_work *work, kl_span span);
uint64_t kl_work_next(kl_work *work);                            /* take the first task; left > 0 */
bool kl_work_cut(kl_work *work, uint64_t count, kl_ranges *out); /* move the last `count` tasks to `out` */
bool kl_work_owns_hand(const kl_work *work); /* Does a task of its own run, whose result is needed? */
double kl_work_rate(const kl_work *work, double now_s);
/* Return the number of tasks not done: those not begun, and the running one. */
double kl_work_left(const kl_work *work);

/* --- give.c --- */

typedef struct kl_gift { /* a gift that is not acknowledged */
    uint32_t to;
    uint64_t number;
    kl_ranges spans;
} kl_gift;

typedef struct kl_waiting { /* a peer that waits for tasks of this peer */
    uint32_t peer;
    double rate;
} kl_waiting;

typedef struct kl_giving {
    kl_gift *gifts;
    size_t gift_count;
    uint64_t gift_room, gifts_made;
    kl_waiting *lines;
    size_t line_count;
    uint64_t line_room;
    double look_s; /* the time of the next look at the last task; INFINITY: none */
} kl_giving;

/* --- ask.c --- */

typedef struct kl_asking {
    bool out; /* `victim` was asked and has not answered */
    uint32_t victim;
    double asked_s;
    double trip_s; /* recent seconds from question to answer; 0: not known */
    uint32_t fails;
    bool asleep;  /* the peer has signed up at its neighbours, or there was no late peer on the board */
    double due_s; /* the time of the next question; INFINITY: after the next event that matters */
    uint64_t draws;
    uint64_t signed_up; /* one bit for each neighbour in the hypercube where this peer has signed up */
    bool posted;        /* this peer is on the board of late peers */
    double checked_s;
} kl_asking;

/* --- save.c: the parent keeps copies of what its children have done --- */

typedef struct kl_save {
    uint32_t peer, round;
    kl_haul done, sent; /* tasks of the peer: done after its report in `round`; done by that report */
} kl_save;

typedef struct kl_saves {
    kl_save *at;
    size_t count;
    uint64_t room;
    double due_s; /* the time of this peer's next copy to its own parent */
} kl_saves;

/* --- loss.c --- */

typedef struct kl_losses {
    kl_numbers news;       /* peers that are gone, which the parent does not know from this peer */
    double told_s, tell_s; /* times of the last message and of the next one; INFINITY: none is due */
} kl_losses;

/* --- round.c --- */

typedef struct kl_round {
    uint32_t number; /* number of the round that is under way; 0: the peer has not joined the run yet */
    uint32_t census; /* number of the last round that was called */
    uint32_t above;  /* number of the parent, which sent the last call or plan */
    double due_s;    /* the time of this peer's report; INFINITY: it waits for a call */
    bool closing;    /* the report is due when the peer has nothing left to do */
    bool joined_in;  /* `collected` has this peer's own part */
    bool reported;
    bool hurried; /* this peer has asked for a round */
    kl_haul late; /* tasks that this peer and peers below it did after their reports of a closing round */
    kl_haul told; /* tasks that this peer did itself after its report, and has added to `late` */
    double pause_s, told_s, tell_s; /* messages with late tasks: seconds between two, time of the last one,
                                       time of the next one */
    uint8_t *heard;                 /* heard[i]: child tree.below.at[i] has reported */
    uint64_t heard_room;
    size_t heard_count;
    uint32_t sent_round;   /* number of the round in which work.sent was reported */
    kl_note collected;     /* the report of this peer and of the children heard so far, without `reports` */
    kl_haul reports;       /* tasks of these reports */
    double period_s;       /* seconds from the last plan to the next report; 0: there was no plan */
    double mean_rate;      /* tasks per second of a mean peer, by the last plan; 0: not known */
    double began_s, end_s; /* times when the peer began, and when all should be done by the last plan */
} kl_round;

/* --- root.c --- */

typedef struct kl_root {
    kl_ranges committed;
    kl_node_state state;
    kl_numbers gone;
    kl_numbers board; /* peers that are late */
    uint32_t committed_round;
    double call_s;            /* the time of the next call; INFINITY: none */
    double called_s;          /* the time of the last call; below 0: there was none */
    double planned_s, next_s; /* the time of the last plan, and its seconds until the next report */
    double took_s;            /* seconds from the time when reports were due until all had come */
    uint64_t hurried;         /* number of tasks that were done after their peer's report */
    bool shared;              /* algorithm 1 has given orders */
    bool waits;               /* all peers have reported, and tasks are missing */
    kl_sharing_of sharing;
} kl_root;

/* --- node.c --- */

typedef struct kl_later { /* a message that waits: its sender was called to a census before this peer was */
    struct kl_later *next;
    uint32_t peer;
    size_t size;
    uint8_t data[];
} kl_later;

struct kl_node {
    kl_node_options of;
    kl_tree tree;
    kl_work work;
    kl_giving giving;
    kl_asking asking;
    kl_round round;
    kl_saves saves;
    kl_losses losses;
    kl_root *root; /* NULL: this peer is not the root */
    kl_note note;  /* the message that is being handled */
    kl_later *later, **later_end;
    bool over;
    uint32_t most;        /* numbers of peers are below this */
    uint64_t first;       /* number of tasks that this peer does before it begins the first round */
    kl_node_actions *out; /* the actions of this step */
    double now_s;
};

/* --- check.c --- */

/* Return whether peer `from` may have sent the note. Values and numbers of peers are checked. */
bool kl_note_is_sound(const kl_node *node, uint32_t from, const kl_note *note);

/* --- post.c --- */

/* Send the note, with the sender's numbers of the last census and of peers. It gives away `tasks` tasks. */
void kl_post(kl_node *node, uint32_t to, kl_note *note, uint64_t tasks);
void kl_post_plain(kl_node *node, uint32_t to, kl_note_kind kind, uint64_t number);
void kl_act(kl_node *node, kl_node_action action);
void kl_act_on(kl_node *node, kl_node_action_kind kind, kilter_bytes bytes); /* an action with bytes */
void kl_peer_check(kl_node *node, bool ok);                                  /* not ok: memory ran out */

/* Give `to` the last `count` tasks. */
void kl_give(kl_node *node, uint32_t to, uint64_t count);
/* Give an asking peer its part, or a copy of the last task. false: this peer has nothing to give. */
bool kl_give_part(kl_node *node, uint32_t to, double rate);
void kl_give_sign_up(kl_node *node, uint32_t peer, const kl_note *note);
void kl_give_feed(kl_node *node); /* give tasks to peers that wait, as far as there are tasks to give */
void kl_give_got(kl_node *node, uint32_t by, const kl_note *note);
void kl_give_refused(kl_node *node, uint32_t by,
                     const kl_note *note); /* the asked peer does not make the copy of the running task */
void kl_give_lose_all(kl_node *node);      /* forget peers that are gone, and gifts to them */
bool kl_give_hold(const kl_node *node, kl_ranges *held);
void kl_give_free(kl_giving *giving);

void kl_ask_settle(kl_node *node); /* ask a peer for tasks if it is time to */
void kl_ask_answered(kl_node *node, uint32_t by, bool empty);
void kl_ask_lose(kl_node *node, uint32_t peer);
void kl_ask_victim(kl_node *node, uint32_t root, const kl_note *note); /* the root's answer: a late peer */
void kl_ask_check(kl_node *node); /* is this peer late? Then tell the root */

void kl_save_send(kl_node *node); /* send a copy of what was done to the parent, if it is due */
void kl_save_take(kl_node *node, uint32_t from, const kl_note *note);
/* `peer` is gone. Tasks of its last copy count as done by this peer, unless they were committed. */
void kl_save_inherit(kl_node *node, uint32_t peer, uint32_t committed);
void kl_save_free(kl_saves *saves);

void kl_loss_note(kl_node *node, uint32_t peer); /* the peer is gone */
void kl_loss_hear(kl_node *node, uint32_t from, const kl_note *note);
void kl_loss_tell(kl_node *node); /* tell the parent, if it is time to */

void kl_round_begin(kl_node *node, uint32_t number);
void kl_round_call(kl_node *node, uint32_t from, const kl_note *note);
void kl_round_plan(kl_node *node, uint32_t from, const kl_note *note);
void kl_round_hear(kl_node *node, uint32_t from, const kl_note *note); /* a report */
bool kl_round_is_full(
    kl_node *node); /* Is the report complete? This peer's own part is added when it is due. */
void kl_round_report(kl_node *node);
void kl_round_hurry(kl_node *node);
void kl_round_late(kl_node *node, uint32_t from, const kl_note *note);
void kl_round_late_own(kl_node *node);
void kl_round_tell(kl_node *node);
void kl_round_free(kl_round *round);

bool kl_root_begin(kl_node *node, const kl_ranges *done); /* done: counted before; NULL: none */
void kl_root_close(kl_node *node);                        /* all peers have reported */
void kl_root_lose(kl_node *node, uint32_t peer);
void kl_root_want(kl_node *node); /* call a round as soon as the next one may be called */
void kl_root_board(kl_node *node, uint32_t peer, const kl_note *note); /* POST and QUERY */
void kl_root_late(kl_node *node);   /* end the run if every task is done now */
void kl_root_settle(kl_node *node); /* do what has become due */
void kl_root_free(kl_root *root);

#endif
