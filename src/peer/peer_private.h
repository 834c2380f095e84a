/* The parts of a peer, each with its own file. A part may use only those before it:
 *
 *     note       messages                       tree    parent and children of each peer
 *     haul       tasks done, and their value
 *     share      algorithm 1: orders            tempo   the measured rate
 *     work       tasks owned, running, done     post    actions, messages
 *     give       gifts, and peers that wait     ask     the search for work
 *     save       copies of results              round   reports up, plans down
 *     loss       deaths, reported to the root
 *     root       what the root alone does       node    events in, actions out
 *
 * Private to room peer. */
#ifndef KL_PEER_PRIVATE_H
#define KL_PEER_PRIVATE_H

#include "measure/measure.h"
#include "peer/note.h"

/* --- tree.c: children of a peer that is gone belong to its parent --- */

typedef struct kl_tree {
    uint32_t number, peers; /* peers: number of peers that ever took part */
    uint8_t *gone;          /* one bit for each peer; NULL: no peer is gone */
    uint32_t room;          /* number of bits in `gone` */
    kl_numbers below;       /* living peers whose parent is this peer */
} kl_tree;

uint32_t kl_tree_above(uint32_t number); /* number > 0 */
/* Return whether peer `number` is `above` itself or anywhere below it. */
bool kl_tree_under(uint32_t above, uint32_t number);
void kl_tree_know(kl_tree *tree, uint32_t peers); /* at least this number of peers ever took part */
bool kl_tree_is_gone(const kl_tree *tree, uint32_t number);
bool kl_tree_lose(kl_tree *tree, uint32_t number); /* note that the peer is gone; false: no memory */
bool kl_tree_look(kl_tree *tree);                  /* fill `below` again; false: no memory */

/* --- share.c --- */

typedef struct kl_sharing_of {
    double left_s;    /* seconds until all tasks are done at the present rates */
    double mean_rate; /* tasks per second: the mean of all known rates */
} kl_sharing_of;

/* Make new shares by algorithm 1. The time left is the number of all remaining tasks over the sum of all
 * rates. A peer that has more tasks than it can do in this time gives some to peers that have fewer, first to
 * near ones. Tasks in `lost` go to peers with too few tasks. The function sorts `standings`. */
typedef struct kl_share_rule {
    double dead_zone;
    uint32_t near; /* kl_node_options.near */
    bool moves;    /* false: only tasks of `lost` are given */
} kl_share_rule;

kl_sharing_of kl_share(kl_standings *standings, const kl_ranges *lost, const kl_share_rule *rule,
                       kl_orders *orders, bool *failed);

/* --- tempo.c --- */

enum { KL_TEMPO_LAST = 16 };

typedef struct kl_timed { /* tasks that were timed together, and their time */
    double tasks, seconds;
} kl_timed;

typedef struct kl_tempo {
    kl_pace pace;
    kl_timed last[KL_TEMPO_LAST]; /* the last entries, as a ring buffer */
    kl_timed open;                /* short tasks that are still being timed together */
    uint64_t count;
} kl_tempo;

/* Add a task's time. Tasks are timed together until they have taken least_s. */
void kl_tempo_add(kl_tempo *tempo, double task_s, double least_s);
/* Return tasks per second; 0: not known. hand_s: seconds for which the present task has run; 0: none runs. */
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
    bool settled; /* its result is known: a copy of the task has ended */
    bool lent;    /* a copy of the task runs at `lent_to`, or is on its way there */
    uint32_t lent_to;
    uint32_t owner; /* peer whose task this is a copy of; KL_NOBODY: it is not a copy */
    uint64_t task;
    double began_s;
} kl_running;

typedef struct kl_work {
    kl_ranges own; /* tasks not begun: the first is done next, the last are given away first */
    uint64_t left; /* number of tasks in `own` */
    kl_running hand;
    kl_haul done; /* tasks done since the last report */
    kl_haul sent; /* tasks that were reported in a round that is not known to be committed */
    uint64_t done_tasks;
    kl_tempo tempo;
} kl_work;

bool kl_work_add(kl_work *work, kl_span span);
/* remove and return the first task; left > 0 */
uint64_t kl_work_next(kl_work *work);
bool kl_work_cut(kl_work *work, uint64_t count, kl_ranges *out); /* move the last `count` tasks to `out` */
bool kl_work_owns_hand(const kl_work *work); /* true: a task of its own runs whose result is needed */
double kl_work_rate(const kl_work *work, double now_s);
/* Return the number of tasks that are not done: those not begun, and the running one. */
double kl_work_left(const kl_work *work);

/* --- give.c --- */

typedef struct kl_gift { /* tasks given to peer `to`, which has not acknowledged them yet */
    uint32_t to;
    uint64_t number;
    kl_ranges spans;
} kl_gift;

typedef struct kl_waiting { /* a peer that has signed up for tasks at this peer */
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
    double look_s; /* time to consider again a copy of the running task; INFINITY: never */
} kl_giving;

/* --- ask.c --- */

typedef struct kl_asking {
    bool out; /* `victim` was asked and has not answered */
    uint32_t victim;
    double asked_s;
    double trip_s; /* mean seconds from question to answer, lately; 0: not known */
    uint32_t fails;
    /* the peer asks no more for now: it has signed up at its neighbours, or no late peer is on the board */
    bool asleep;
    double due_s; /* time of the next question; INFINITY: an event decides */
    uint64_t draws;
    uint64_t signed_up; /* one bit for each neighbour in the hypercube at which this peer has signed up */
    bool posted;        /* this peer is on the root's board of late peers */
    double checked_s;
} kl_asking;

/* --- save.c: the parent keeps copies of its children's results --- */

typedef struct kl_save {
    uint32_t peer, round;
    kl_haul done, sent; /* the peer's tasks: done after its report in `round`; contained in this report */
} kl_save;

typedef struct kl_saves {
    kl_save *at;
    size_t count;
    uint64_t room;
    double due_s; /* time to send the next copy to this peer's own parent */
} kl_saves;

/* --- loss.c --- */

typedef struct kl_losses {
    kl_numbers news;       /* peers that are gone and not yet reported to the parent */
    double told_s, tell_s; /* times of the last message and of the next one (INFINITY: none is due) */
} kl_losses;

/* --- round.c --- */

typedef struct kl_round {
    uint32_t number; /* number of the round that is under way; 0: the peer has not joined the run yet */
    uint32_t census; /* number of the last round that was a census */
    uint32_t above;  /* number of the parent: the peer that sent the last call or plan */
    /* time of this peer's report; INFINITY: it waits for a call, or for the end of its tasks */
    double due_s;
    bool closing;   /* the report is due when the peer has no task left */
    bool joined_in; /* `collected` contains this peer's own part */
    bool reported;
    bool hurried; /* this peer has asked the root to begin a round */
    /* tasks done after the report in a closing round, by this peer and those below it, not yet sent up */
    kl_haul late;
    kl_haul told; /* tasks that this peer did itself after its report, and that were added to `late` */
    /* messages with late tasks: pause between two; time of the last one; time of the next one */
    double pause_s, told_s, tell_s;
    uint8_t *heard; /* heard[i]: child tree.below.at[i] has reported */
    uint64_t heard_room;
    size_t heard_count;
    uint32_t sent_round; /* round in which work.sent was reported */
    kl_note collected;   /* the report of this peer and of the children heard so far, without `reports` */
    kl_haul reports;     /* tasks done, of these reports */
    double period_s;     /* seconds from the last plan to the next report; 0: there was no plan */
    double mean_rate;    /* tasks per second of a mean peer, by the last plan; 0: not known */
    /* time when the peer began; time when all tasks should be done, by the last plan */
    double began_s, end_s;
} kl_round;

/* --- root.c --- */

typedef struct kl_root {
    kl_ranges committed;
    kl_node_state state;
    kl_numbers gone;
    kl_numbers board; /* late peers that no idle peer has been told of yet */
    uint32_t committed_round;
    double call_s;            /* time of the next call; INFINITY: none */
    double called_s;          /* time of the last call; below 0: there was none */
    double planned_s, next_s; /* time of the last plan, and seconds from then to the next reports */
    double took_s;            /* seconds from the time when reports were due until all had come */
    uint64_t hurried;         /* number of tasks that were done after their peer's report */
    bool shared;              /* new shares were made at least once */
    bool waits;               /* all peers have reported in a closing round, but tasks are missing */
    kl_sharing_of sharing;
} kl_root;

/* --- node.c --- */

/* a message that waits, because its sender was called to a census before this peer */
typedef struct kl_later {
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
    uint32_t most;        /* all numbers of peers are below this */
    uint64_t first;       /* number of tasks that this peer does before it asks for the first round */
    kl_node_actions *out; /* the actions of this step */
    double now_s;
};

/* --- check.c --- */

/* Return whether peer `from` can have sent this note. Values and numbers of peers are checked. */
bool kl_note_is_sound(const kl_node *node, uint32_t from, const kl_note *note);

/* --- post.c --- */

/* Send a note, with the number of this peer's last census. The note gives away `tasks` tasks. */
void kl_post(kl_node *node, uint32_t to, kl_note *note, uint64_t tasks);
void kl_post_plain(kl_node *node, uint32_t to, kl_note_kind kind, uint64_t number);
void kl_act(kl_node *node, kl_node_action action);
/* Add an action for the driver's signals, with the work left and the rate of this peer. */
void kl_act_signal(kl_node *node, kl_node_action_kind kind, uint64_t number);
void kl_post_offer(kl_node *node, uint32_t to); /* offer help to a peer by a signal */
void kl_act_on(kl_node *node, kl_node_action_kind kind, kilter_bytes bytes); /* add an action with bytes */
/* ok false: note that memory ran out */
void kl_peer_check(kl_node *node, bool ok);

/* Give this peer's last `count` tasks to `to`. */
void kl_give(kl_node *node, uint32_t to, uint64_t count);
/* Give an asking peer a part of the tasks, or the running task to copy. false: this peer has nothing to give.
 */
bool kl_give_part(kl_node *node, uint32_t to, double rate);
void kl_give_sign_up(kl_node *node, uint32_t peer, const kl_note *note);
void kl_give_feed(kl_node *node); /* give tasks to waiting peers, while there are any */
void kl_give_got(kl_node *node, uint32_t by, const kl_note *note);
void kl_give_refused(kl_node *node, uint32_t by, const kl_note *note); /* peer `by` does not do the copy */
void kl_give_lose_all(kl_node *node); /* forget peers that are gone, and gifts to them */
bool kl_give_hold(const kl_node *node, kl_ranges *held);
void kl_give_free(kl_giving *giving);

void kl_ask_settle(kl_node *node); /* ask a peer for tasks if it is time to */
void kl_ask_answered(kl_node *node, uint32_t by, bool empty);
void kl_ask_lose(kl_node *node, uint32_t peer);
void kl_ask_victim(kl_node *node, uint32_t root, const kl_note *note); /* the root's answer: a late peer */
void kl_ask_check(kl_node *node); /* tell the root if this peer is late, or no longer late */

void kl_save_send(kl_node *node); /* send a copy of this peer's results to the parent if it is due */
void kl_save_take(kl_node *node, uint32_t from, const kl_note *note);
/* Take over the results of a peer that is gone: report the tasks of its last copy, unless they were
 * committed. */
void kl_save_inherit(kl_node *node, uint32_t peer, uint32_t committed);
void kl_saves_free(kl_saves *saves);

void kl_loss_note(kl_node *node, uint32_t peer); /* note that a peer is gone */
void kl_loss_hear(kl_node *node, uint32_t from, const kl_note *note);
void kl_loss_tell(kl_node *node); /* report deaths to the parent if it is time to */

void kl_round_begin(kl_node *node, uint32_t number);
void kl_round_call(kl_node *node, uint32_t from, const kl_note *note);
void kl_round_plan(kl_node *node, uint32_t from, const kl_note *note);
void kl_round_hear(kl_node *node, uint32_t from, const kl_note *note); /* take a child's report */
bool kl_round_is_full(
    kl_node *node); /* Return whether the report is complete. Add this peer's own part when it is due. */
void kl_round_report(kl_node *node);
void kl_round_hurry(kl_node *node);
void kl_round_late(kl_node *node, uint32_t from, const kl_note *note);
void kl_round_late_own(kl_node *node);
void kl_round_tell(kl_node *node);
void kl_round_free(kl_round *round);

bool kl_root_begin(kl_node *node, const kl_ranges *done); /* done: tasks counted before; NULL: none */
void kl_root_close(kl_node *node);                        /* commit the round, as all peers have reported */
void kl_root_lose(kl_node *node, uint32_t peer);
void kl_root_want(kl_node *node); /* call a round as soon as the next one may be called */
void kl_root_board(kl_node *node, uint32_t peer, const kl_note *note); /* POST and QUERY */
void kl_root_late(kl_node *node);   /* end the run if late tasks complete it */
void kl_root_settle(kl_node *node); /* do what has become due */
void kl_root_free(kl_root *root);

#endif
