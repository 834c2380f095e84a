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

/* --- tree.c: the children of a peer that is gone go to its parent --- */

typedef struct kl_tree {
    uint32_t number, peers; /* peers: number of peers that ever took part */
    uint8_t *gone;          /* one bit for each peer; NULL: no peer is gone */
    uint32_t room;          /* number of bits in `gone` */
    kl_numbers below;       /* living peers whose parent is this peer */
} kl_tree;

uint32_t kl_tree_above(uint32_t number); /* number > 0 */
/* Return whether peer `number` is `above` itself, or below it in the tree. */
bool kl_tree_under(uint32_t above, uint32_t number);
void kl_tree_know(kl_tree *tree,
                  uint32_t peers); /* set the number of peers that have ever taken part to at least this */
bool kl_tree_is_gone(const kl_tree *tree, uint32_t number);
bool kl_tree_lose(kl_tree *tree, uint32_t number); /* mark the peer as gone; false: memory ran out */
bool kl_tree_look(kl_tree *tree);                  /* compute `below` again; false: memory ran out */

/* --- share.c --- */

typedef struct kl_sharing_of {
    double left_s;    /* seconds until all tasks are done at the present rates */
    double mean_rate; /* tasks per second: the mean of all known rates */
} kl_sharing_of;

/* Make new shares by algorithm 1. The time left is the number of all remaining tasks divided by the sum of
 * all rates. A peer that has more tasks than it can do in this time gives some to peers that have fewer,
 * first to near peers. Tasks in `lost` go to peers with too few tasks. The function sorts `standings`. */
typedef struct kl_share_rule {
    double dead_zone;
    uint32_t near; /* kl_node_options.near */
    bool moves;    /* false: only tasks in `lost` are given */
} kl_share_rule;

kl_sharing_of kl_share(kl_standings *standings, const kl_ranges *lost, const kl_share_rule *rule,
                       kl_orders *orders, bool *failed);

/* --- tempo.c --- */

enum { KL_TEMPO_LAST = 16 };

typedef struct kl_timed { /* number of tasks that were timed together, and their time */
    double tasks, seconds;
} kl_timed;

typedef struct kl_tempo {
    kl_pace pace;
    kl_timed last[KL_TEMPO_LAST]; /* the last entries, as a ring buffer */
    kl_timed open;                /* short tasks whose common time is still being measured */
    uint64_t count;
} kl_tempo;

/* Add a task's time. Tasks are timed together until they have taken least_s. */
void kl_tempo_add(kl_tempo *tempo, double task_s, double least_s);
/* Return tasks per second; 0: not known. hand_s: seconds for which the present task has run; 0: no task
 * runs. */
double kl_tempo_rate(const kl_tempo *tempo, double hand_s);

/* --- haul.c --- */

typedef struct kl_haul {
    kl_ranges tasks; /* tasks that were done */
    kl_buffer value; /* the combined results of these tasks */
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
    bool settled; /* true: its result is known, because a copy of the task has ended */
    bool lent;    /* a copy of the task runs at `lent_to`, or is on its way there */
    uint32_t lent_to;
    uint32_t owner; /* the peer for which this task is a copy; KL_NOBODY: the task is no copy */
    uint64_t task;
    double began_s;
} kl_running;

typedef struct kl_work {
    kl_ranges own; /* tasks that are not begun: the first is done next, the last are given away first */
    uint64_t left; /* number of tasks in `own` */
    kl_running hand;
    kl_haul done; /* tasks done since the last report */
    kl_haul sent; /* tasks that were reported in a round, which may not be committed yet */
    uint64_t done_tasks;
    kl_tempo tempo;
} kl_work;

bool kl_work_add(kl_work *work, kl_span span);
/* Remove the first task and return it; left must be above 0. */
uint64_t kl_work_next(kl_work *work);
bool kl_work_cut(kl_work *work, uint64_t count, kl_ranges *out); /* Move the last `count` tasks to `out`. */
bool kl_work_owns_hand(
    const kl_work *work); /* true: a task runs that belongs to this peer and whose result is needed */
double kl_work_rate(const kl_work *work, double now_s);
/* Return the number of tasks that are not done, including the running one. */
double kl_work_left(const kl_work *work);

/* --- give.c --- */

typedef struct kl_gift { /* tasks that were given to peer `to`, which has not acknowledged them yet */
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
    double look_s; /* time at which to consider a copy of the running task again; INFINITY: never */
} kl_giving;

/* --- ask.c --- */

typedef struct kl_asking {
    bool out; /* `victim` was asked for tasks and has not answered */
    uint32_t victim;
    double asked_s;
    double trip_s; /* mean seconds from question to answer, over the last questions; 0: not known */
    uint32_t fails;
    /* true: the peer asks no more for now, because it has signed up at its neighbours, or no late peer is
     * on the board */
    bool asleep;
    double due_s; /* time of the next question; INFINITY: an event decides */
    uint64_t draws;
    uint64_t signed_up; /* one bit for each neighbour in the hypercube at which this peer has signed up */
    bool posted;        /* true: this peer is on the root's board of late peers */
    double checked_s;
} kl_asking;

/* --- save.c: a parent stores copies of its children's results --- */

typedef struct kl_save {
    uint32_t peer, round;
    kl_haul done,
        sent; /* the peer's tasks: those done after its report in `round`, and those in this report */
} kl_save;

typedef struct kl_saves {
    kl_save *at;
    size_t count;
    uint64_t room;
    double due_s; /* time at which to send the next copy to the peer's own parent */
} kl_saves;

/* --- loss.c --- */

typedef struct kl_losses {
    kl_numbers news;       /* peers that are gone, but not yet reported to the parent */
    double told_s, tell_s; /* time of the last message, and of the next one (INFINITY: none is due) */
} kl_losses;

/* --- round.c --- */

typedef struct kl_round {
    uint32_t number; /* number of the round that is under way; 0: the peer has not joined the run yet */
    uint32_t census; /* number of the last round that was a census */
    uint32_t above;  /* number of the parent: the peer that sent the last call or plan */
    /* time of this peer's report; INFINITY: the report waits for a call, or for the end of the tasks */
    double due_s;
    bool closing;   /* true: the report is due when the peer has no task left */
    bool joined_in; /* true: `collected` contains the part of this peer */
    bool reported;
    bool hurried; /* true: this peer has asked the root to begin a round */
    /* tasks that this peer, and those below it, did after the report in a closing round, and that were not
     * yet sent up */
    kl_haul late;
    kl_haul told; /* those of the tasks in `late` that this peer did itself after its report */
    /* messages with late tasks: pause between two messages; time of the last one; time of the next one */
    double pause_s, told_s, tell_s;
    uint8_t *heard; /* heard[i]: child tree.below.at[i] has reported */
    uint64_t heard_room;
    size_t heard_count;
    uint32_t sent_round; /* round in which work.sent was reported */
    kl_note collected;   /* the reports of this peer and of the children that have reported so far, combined,
                            without `reports` */
    kl_haul reports;     /* done tasks in these reports */
    double period_s;     /* seconds from the last plan to the next report; 0: there was no plan */
    double mean_rate;    /* tasks per second of the mean peer, from the last plan; 0: not known */
    /* time when the peer began; time when all tasks should be done, by the last plan */
    double began_s, end_s;
} kl_round;

/* --- root.c --- */

typedef struct kl_root {
    kl_ranges committed;
    kl_node_state state;
    kl_numbers gone;
    kl_numbers board; /* late peers that the root has not yet named to an idle peer */
    uint32_t committed_round;
    double call_s;            /* time of the next call; INFINITY: none */
    double called_s;          /* time of the last call; below 0: there was none */
    double planned_s, next_s; /* time of the last plan, and seconds from then to the next reports */
    double took_s;            /* seconds from the time when reports were due until all had arrived */
    uint64_t hurried;         /* number of tasks that were done after the report of their peer */
    bool shared;              /* true: new shares were computed at least once */
    bool waits;               /* true: all peers have reported in a closing round, but tasks are missing */
    kl_sharing_of sharing;
} kl_root;

/* --- node.c --- */

/* a message that must wait, because its sender was called to a census before this peer */
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

/* Return whether peer `from` can have sent this note. Check its values and numbers of peers. */
bool kl_note_is_sound(const kl_node *node, uint32_t from, const kl_note *note);

/* --- post.c --- */

/* Send a note, with the number of the last census that this peer knows. The note gives away `tasks` tasks. */
void kl_post(kl_node *node, uint32_t to, kl_note *note, uint64_t tasks);
void kl_post_plain(kl_node *node, uint32_t to, kl_note_kind kind, uint64_t number);
void kl_act(kl_node *node, kl_node_action action);
/* Add an action for the driver's signals, with the work left and the rate of this peer. */
void kl_act_signal(kl_node *node, kl_node_action_kind kind, uint64_t number);
void kl_post_offer(kl_node *node, uint32_t to); /* Offer help to a peer by a signal. */
void kl_act_on(kl_node *node, kl_node_action_kind kind, kilter_bytes bytes); /* add an action with bytes */
/* If ok is false, store that memory ran out. */
void kl_peer_check(kl_node *node, bool ok);

/* Give this peer's last `count` tasks to `to`. */
void kl_give(kl_node *node, uint32_t to, uint64_t count);
/* Give a peer that asks a part of the tasks, or a copy of the running task. false: this peer has nothing
 * to give. */
bool kl_give_part(kl_node *node, uint32_t to, double rate);
void kl_give_sign_up(kl_node *node, uint32_t peer, const kl_note *note);
void kl_give_feed(kl_node *node); /* Give tasks to waiting peers, while there are tasks to give. */
void kl_give_got(kl_node *node, uint32_t by, const kl_note *note);
void kl_give_refused(kl_node *node, uint32_t by,
                     const kl_note *note); /* Handle that peer `by` does not do the copy. */
void kl_give_lose_all(kl_node *node);      /* Remove peers that are gone, and gifts to them. */
bool kl_give_hold(const kl_node *node, kl_ranges *held);
void kl_give_free(kl_giving *giving);

void kl_ask_settle(kl_node *node); /* ask a peer for tasks if it is time to */
void kl_ask_answered(kl_node *node, uint32_t by, bool empty);
void kl_ask_lose(kl_node *node, uint32_t peer);
void kl_ask_victim(kl_node *node, uint32_t root,
                   const kl_note *note); /* Handle the root's answer: a late peer. */
void kl_ask_check(kl_node *node);        /* tell the root if this peer is late, or no longer late */

void kl_save_send(kl_node *node); /* send a copy of this peer's results to the parent if it is due */
void kl_save_take(kl_node *node, uint32_t from, const kl_note *note);
/* Take over the results of a peer that is gone: report the tasks of its last copy that are not committed. */
void kl_save_inherit(kl_node *node, uint32_t peer, uint32_t committed);
void kl_saves_free(kl_saves *saves);

void kl_loss_note(kl_node *node, uint32_t peer); /* Store that a peer is gone. */
void kl_loss_hear(kl_node *node, uint32_t from, const kl_note *note);
void kl_loss_tell(kl_node *node); /* report deaths to the parent if it is time to */

void kl_round_begin(kl_node *node, uint32_t number);
void kl_round_call(kl_node *node, uint32_t from, const kl_note *note);
void kl_round_plan(kl_node *node, uint32_t from, const kl_note *note);
void kl_round_hear(kl_node *node, uint32_t from, const kl_note *note); /* Take in the report of a child. */
bool kl_round_is_full(
    kl_node *node); /* Return whether the report is complete. Add this peer's own part when it is due. */
void kl_round_report(kl_node *node);
void kl_round_hurry(kl_node *node);
void kl_round_late(kl_node *node, uint32_t from, const kl_note *note);
void kl_round_late_own(kl_node *node);
void kl_round_tell(kl_node *node);
void kl_round_free(kl_round *round);

bool kl_root_begin(kl_node *node,
                   const kl_ranges *done); /* done: tasks that were counted before; NULL: none */
void kl_root_close(kl_node *node);         /* commit the round, as all peers have reported */
void kl_root_lose(kl_node *node, uint32_t peer);
void kl_root_want(kl_node *node); /* Call a round as soon as the next one is allowed. */
void kl_root_board(kl_node *node, uint32_t peer, const kl_note *note); /* POST and QUERY */
void kl_root_late(kl_node *node);   /* end the run if late tasks complete it */
void kl_root_settle(kl_node *node); /* do what has become due */
void kl_root_free(kl_root *root);

#endif
