/* The parts of a peer. Each part has its own file, and uses only parts that are named before it:
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
 * Private to the folder peer. */
#ifndef KL_PEER_PRIVATE_H
#define KL_PEER_PRIVATE_H

#include "measure/measure.h"
#include "peer/note.h"

/* --- tree.c: the tree of peers; the children of a dead peer become children of its parent --- */

typedef struct kl_tree {
    /* number: number of this peer; peers: number of peers that have ever taken part */
    uint32_t number, peers;
    uint32_t counted; /* number of peers in the last message of the root (a call to a census, or a plan) */
    uint8_t *gone;    /* one bit for each peer; NULL: no peer is gone */
    uint32_t room;    /* number of bits in `gone` */
    size_t gone_count;
    kl_numbers below; /* numbers of the living peers whose parent is this peer */
} kl_tree;

uint32_t kl_tree_above(uint32_t number); /* return the number of the parent; number must be above 0 */
/* Return whether peer `number` is peer `above` itself, or is below it in the tree. */
bool kl_tree_under(uint32_t above, uint32_t number);
/* Record that at least `peers` peers have ever taken part. */
void kl_tree_know(kl_tree *tree, uint32_t peers);
void kl_tree_count(kl_tree *tree, uint32_t peers); /* record that the root knows of `peers` peers */
bool kl_tree_is_gone(const kl_tree *tree, uint32_t number);
/* Return the nearest living peer above peer `number` > 0. If peer `number` is dead, the returned peer is
 * its heir. */
uint32_t kl_tree_heir(const kl_tree *tree, uint32_t number);
bool kl_tree_lose(kl_tree *tree, uint32_t number); /* mark the peer as gone; false: memory ran out */
bool kl_tree_look(kl_tree *tree);                  /* find the living children again; false: memory ran out */

/* --- share.c: computing new shares of tasks --- */

typedef struct kl_sharing_of {
    double left_s;    /* seconds until all tasks are done, if rates stay as they are */
    double mean_rate; /* mean of all known rates, in tasks per second */
} kl_sharing_of;

/* Compute new shares by algorithm 1. The time left is the number of all remaining tasks divided by the sum of
 * all rates. A peer with more tasks than it can do in this time gives some to peers with fewer, first to near
 * peers. Tasks in `lost` go to peers with too few tasks. The function sorts `standings`. */
typedef struct kl_share_rule {
    double dead_zone;
    uint32_t near; /* kl_node_options.near */
    bool moves;    /* false: peers give no tasks to each other, and only the tasks in `lost` get new owners */
} kl_share_rule;

kl_sharing_of kl_share(kl_standings *standings, const kl_ranges *lost, const kl_share_rule *rule,
                       kl_orders *orders, bool *failed);

/* --- tempo.c: the measured rate of this peer --- */

enum { KL_TEMPO_LAST = 16 };

typedef struct kl_timed { /* a number of tasks that were timed together, and the seconds that they took */
    double tasks, seconds;
} kl_timed;

typedef struct kl_tempo {
    kl_pace pace;
    kl_timed last[KL_TEMPO_LAST]; /* the last measured times, as a ring buffer */
    kl_timed open;                /* short tasks that are being timed together */
    uint64_t count;
} kl_tempo;

/* Add the time of a task. Short tasks are timed together until they have taken least_s. */
void kl_tempo_add(kl_tempo *tempo, double task_s, double least_s);
/* Return the measured tasks per second; 0: not known. hand_s: seconds for which the present task has run; 0:
 * no task runs. */
double kl_tempo_rate(const kl_tempo *tempo, double hand_s);

/* --- haul.c: done tasks and their combined results --- */

typedef struct kl_haul {
    kl_ranges tasks; /* tasks that are done */
    kl_buffer value; /* the combined results of these done tasks */
} kl_haul;

void kl_haul_add(kl_node *node, kl_haul *haul, const kl_ranges *tasks, kilter_bytes value);
void kl_haul_join(kl_node *node, kl_haul *haul, const kl_haul *more);
/* Add the tasks and results of `from` to `haul`. `from` is empty afterwards. */
void kl_haul_move(kl_node *node, kl_haul *haul, kl_haul *from);
kilter_bytes kl_haul_value(const kl_haul *haul);
void kl_haul_clear(kl_haul *haul);
void kl_haul_free(kl_haul *haul);

/* --- work.c: the tasks of this peer --- */

typedef struct kl_running { /* the task that the peer is running */
    bool on;
    bool settled; /* true: the result of the task is known, because a copy of it has ended */
    bool lent;    /* true: a copy of the task is on its way to peer `lent_to`, or runs there */
    uint32_t lent_to;
    uint32_t owner; /* the peer for which this task is done as a copy; KL_NOBODY: the task is no copy */
    uint64_t task;
    double began_s;
} kl_running;

typedef struct kl_work {
    kl_ranges own; /* tasks that this peer owns and has not begun: the first is done next, the last are given
                      away first */
    uint64_t left; /* number of tasks in `own` */
    kl_running hand;
    kl_haul done; /* tasks that this peer has done since its last report */
    kl_haul sent; /* reported tasks; the round of the report may not be committed yet */
    uint64_t done_tasks;
    kl_tempo tempo;
} kl_work;

bool kl_work_add(kl_work *work, kl_span span);
/* Remove the first of the peer's tasks and return it. There must be at least one. */
uint64_t kl_work_next(kl_work *work);
/* Move the last `count` of the peer's tasks to `out`. false: memory ran out. */
bool kl_work_cut(kl_work *work, uint64_t count, kl_ranges *out);
/* Return whether this peer runs a task that it owns, and whose result is still needed. */
bool kl_work_owns_hand(const kl_work *work);
double kl_work_rate(const kl_work *work, double now_s);
/* Return the number of tasks that are not done, including the running one. */
double kl_work_left(const kl_work *work);

/* --- give.c: giving tasks to other peers --- */

typedef struct kl_gift { /* tasks that were given to peer `to`; it has not acknowledged them yet */
    uint32_t to;
    uint64_t number;
    kl_ranges spans;
    bool open; /* true: a census (search for lost tasks) has begun, and this peer cannot report before the
                  gift is acknowledged */
} kl_gift;

typedef struct kl_waiting { /* a peer that has signed up to get tasks from this peer */
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
    /* time at which the peer decides again about a copy of the running task; INFINITY: never */
    double look_s;
} kl_giving;

/* --- ask.c: asking other peers for tasks --- */

typedef struct kl_asking {
    bool out; /* true: `victim` was asked for tasks, and has not answered yet */
    uint32_t victim;
    double asked_s;
    double trip_s; /* seconds from question to answer, averaged over the last questions; 0: not known */
    uint32_t fails;
    /* true: the peer has stopped asking, because it has signed up with its neighbours, or no late peer is on
     * the root's board */
    bool asleep;
    double due_s; /* time at which the peer asks next; INFINITY: it waits for an event */
    uint64_t draws;
    uint64_t signed_up; /* one bit for each neighbour in the hypercube; 1: this peer has signed up with that
                           neighbour */
    bool posted;        /* true: this peer is on the board of late peers, which the root keeps */
    double checked_s;
} kl_asking;

/* --- save.c: a parent keeps copies of its children's results --- */

typedef struct kl_save {
    uint32_t peer, round;
    /* done: tasks that the child `peer` did after its report of round `round`; sent: tasks in that report */
    kl_haul done, sent;
} kl_save;

typedef struct kl_saves {
    kl_save *at;
    size_t count;
    uint64_t room;
    double due_s; /* time at which this peer sends the next copy of its own results to its parent */
} kl_saves;

/* --- loss.c: reporting deaths to the root --- */

typedef struct kl_losses {
    kl_numbers news;       /* peers whose death this peer has not reported to its parent yet */
    double told_s, tell_s; /* told_s: time of the last message about deaths; tell_s: time of the next one,
                              INFINITY: none is due */
} kl_losses;

/* --- round.c: rounds of reports and plans --- */

typedef struct kl_round {
    uint32_t number; /* number of the present round; 0: the peer has not joined the run yet */
    uint32_t census; /* number of the last round that was a census */
    uint32_t above;  /* number of the parent, which sent the last call or plan */
    /* time at which this peer's report is due; INFINITY: it reports when it is called, or when it has no
     * tasks */
    double due_s;
    bool closing;   /* true: the report is due when the peer has no task left */
    bool joined_in; /* true: this peer's own part is in `collected` */
    bool reported;
    bool hurried; /* true: this peer has asked the root to begin a round */
    /* late tasks: this peer or peers below it did them after their reports in a closing round; tasks that
     * were sent to the parent are removed from here */
    kl_haul late;
    kl_haul told; /* the tasks in `late` that this peer did itself */
    /* for messages with late tasks. pause_s: seconds between two messages; told_s: time of the last message;
     * tell_s: time of the next message */
    double pause_s, told_s, tell_s;
    uint8_t *heard; /* heard[i] is 1 if the child tree.below.at[i] has reported */
    uint64_t heard_room;
    size_t heard_count;
    uint32_t sent_round; /* number of the round in which the tasks of work.sent were reported */
    kl_note collected;   /* the combined reports of this peer and of its children that have reported so far,
                            without the done tasks */
    kl_haul reports;     /* the done tasks of these reports */
    double period_s;     /* seconds from the last plan to the next report; 0: there was no plan yet */
    double mean_rate;    /* mean rate of all peers in the last plan, in tasks per second; 0: not known */
    /* began_s: time when the peer began; end_s: time when all tasks should be done, by the last plan */
    double began_s, end_s;
} kl_round;

/* --- root.c: the work that only the root does --- */

typedef struct kl_root {
    kl_ranges committed;
    kl_node_state state;
    kl_numbers gone;
    kl_numbers board; /* the board: late peers that the root has not named to an idle peer yet */
    uint32_t committed_round;
    double call_s;    /* time at which the root calls the next census; INFINITY: none is planned */
    double patient_s; /* time until which the root waits for late tasks; INFINITY: it does not wait for them
                       */
    double called_s;  /* time of the last call to a census; below 0: there was none */
    double planned_s, next_s; /* planned_s: time of the last plan; next_s: seconds from then until the next
                                 reports are due */
    /* seconds from the time at which reports were due until all had arrived, in the last round */
    double took_s;
    uint64_t hurried; /* number of tasks that were done after the report of their peer */
    bool shared;      /* true: new shares have been computed at least once */
    bool waits;       /* true: all peers have reported in a closing round, but some tasks are missing */
    kl_sharing_of sharing;
} kl_root;

/* --- node.c: the whole peer --- */

/* a message that must wait, because its sender was called to a census (search for lost tasks) before this
 * peer */
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
    kl_root *root; /* what only the root has; NULL: this peer is not the root */
    kl_note note;  /* the message that is being handled */
    kl_later *later, **later_end;
    bool over;
    uint32_t most;        /* all numbers of peers must be below this limit */
    uint64_t first;       /* number of tasks that this peer does before it asks for the first round */
    kl_node_actions *out; /* the actions of the present step */
    double now_s;
};

/* --- check.c: checking messages --- */

/* Return whether peer `from` can have sent this message. The values and the numbers of peers in the message
 * are checked. */
bool kl_note_is_sound(const kl_node *node, uint32_t from, const kl_note *note);

/* --- post.c: adding actions to a step --- */

/* Send a message, with the number of the last census that this peer knows. tasks: number of tasks that the
 * message gives away. */
void kl_post(kl_node *node, uint32_t to, kl_note *note, uint64_t tasks);
void kl_post_plain(kl_node *node, uint32_t to, kl_note_kind kind, uint64_t number);
void kl_act(kl_node *node, kl_node_action action);
/* Add an action by which the driver passes on a call for help or an offer of help. The action contains this
 * peer's rate and the number of tasks that it has left. */
void kl_act_signal(kl_node *node, kl_node_action_kind kind, uint64_t number);
void kl_post_offer(kl_node *node, uint32_t to); /* Offer help to a peer by a signal of the driver. */
/* Add an action of this kind, with these bytes. */
void kl_act_on(kl_node *node, kl_node_action_kind kind, kilter_bytes bytes);
/* Let the present step fail if ok = false, which means that memory ran out. */
void kl_peer_check(kl_node *node, bool ok);

/* Give the last `count` tasks of this peer to peer `to`. */
void kl_give(kl_node *node, uint32_t to, uint64_t count);
/* Give some tasks, or a copy of the running task, to a peer that asks. false: there is nothing to give. */
bool kl_give_part(kl_node *node, uint32_t to, double rate);
void kl_give_sign_up(kl_node *node, uint32_t peer, const kl_note *note);
void kl_give_feed(kl_node *node); /* give tasks to waiting peers, as long as there are tasks to give */
void kl_give_got(kl_node *node, uint32_t by, const kl_note *note);
/* Handle the message that peer `by` does not do the copy of a task. */
void kl_give_refused(kl_node *node, uint32_t by, const kl_note *note);
/* Forget waiting peers that are gone. Also forget gifts to the peers in `gone`, which a census counts as
 * gone. */
void kl_give_lose_all(kl_node *node, const kl_numbers *gone);
void kl_give_open(kl_node *node); /* let the report of the census wait for acknowledgements of all gifts */
bool kl_give_is_open(const kl_node *node); /* Return whether the report of the census must wait. */
void kl_give_free(kl_giving *giving);

void kl_ask_settle(kl_node *node); /* ask a peer for tasks, if it is time to do so */
void kl_ask_answered(kl_node *node, uint32_t by, bool empty);
void kl_ask_lose(kl_node *node, uint32_t peer);
/* Handle the root's answer, which names a late peer. */
void kl_ask_victim(kl_node *node, uint32_t root, const kl_note *note);
void kl_ask_check(kl_node *node); /* tell the root whether this peer is late, if this has changed */

void kl_save_send(kl_node *node); /* send a copy of this peer's results to its parent, if the copy is due */
void kl_save_take(kl_node *node, uint32_t from, const kl_note *note);
/* Take over the results of a dead peer. Report the results in the last copy that the peer sent, unless they
 * are committed. committed: number of the last committed round. */
void kl_save_inherit(kl_node *node, uint32_t peer, uint32_t committed);
void kl_saves_free(kl_saves *saves);

/* Record that peer `peer` is gone: it gets and gives no more tasks. */
void kl_loss_note(kl_node *node, uint32_t peer);
/* The root lists the dead peers that it knows (`known`) when it calls a census. Report again each dead peer
 * that is not in this list. The earlier report may have been lost with a dead parent. Until the root knows,
 * gifts to such peers stay open. */
void kl_loss_again(kl_node *node, const kl_numbers *known);
void kl_loss_hear(kl_node *node, uint32_t from, const kl_note *note);
void kl_loss_tell(kl_node *node); /* report deaths to the parent, if it is time to do so */

void kl_round_begin(kl_node *node, uint32_t number);
void kl_round_call(kl_node *node, uint32_t from, const kl_note *note);
void kl_round_plan(kl_node *node, uint32_t from, const kl_note *note);
void kl_round_hear(kl_node *node, uint32_t from, const kl_note *note); /* handle the report of a child */
/* Return whether the report to the parent is complete. Add this peer's own part if it is due. */
bool kl_round_is_full(kl_node *node);
void kl_round_report(kl_node *node);
void kl_round_hurry(kl_node *node);
void kl_round_late(kl_node *node, uint32_t from, const kl_note *note);
void kl_round_late_own(kl_node *node);
void kl_round_tell(kl_node *node);
void kl_round_free(kl_round *round);

/* Begin the run at the root. done: tasks that were done before the run; NULL: none. false: memory ran out. */
bool kl_root_begin(kl_node *node, const kl_ranges *done);
void kl_root_close(kl_node *node); /* commit the round, because all peers have reported */
void kl_root_lose(kl_node *node, uint32_t peer);
void kl_root_want(kl_node *node); /* Call a census as soon as the pause after the last one is over. */
void kl_root_board(kl_node *node, uint32_t peer,
                   const kl_note *note); /* handle KL_NOTE_POST and KL_NOTE_QUERY */
void kl_root_late(kl_node *node);        /* end the run if late tasks were the last ones */
void kl_root_settle(kl_node *node);      /* do what has become due at the root */
void kl_root_free(kl_root *root);

#endif
