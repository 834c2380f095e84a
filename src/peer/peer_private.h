/* A peer is made of parts, each with its own file, in the order in which they may use each other:
 *
 *     note       messages                       tree    who is above and below whom
 *     share      algorithm 1: orders            tempo   the measured rate
 *     work       tasks owned, running, done     post    actions, messages
 *     give       gifts, and those who wait      ask     the search for work
 *     save       for when a peer dies           round   reports up, plans down
 *     root       what the root alone does       node    events in, actions out
 *
 * Private to room peer. */
#ifndef KL_PEER_PRIVATE_H
#define KL_PEER_PRIVATE_H

#include "measure/measure.h"
#include "peer/note.h"

/* --- tree.c: peer n is above 16 n + 1 … 16 n + 16; the place of one that is gone is its parent's --- */

typedef struct kl_tree {
    uint32_t number, peers; /* peers: how many ever were there */
    uint8_t *gone;          /* a bit a peer; NULL: nobody is */
    uint32_t room;          /* in bits */
    kl_numbers below;       /* living ones whose parent this is */
} kl_tree;

uint32_t kl_tree_above(uint32_t number);             /* number > 0 */
bool kl_tree_under(uint32_t above, uint32_t number); /* is it `above`, or anywhere below? */
void kl_tree_know(kl_tree *tree, uint32_t peers);    /* at least this number ever were there */
bool kl_tree_is_gone(const kl_tree *tree, uint32_t number);
bool kl_tree_lose(kl_tree *tree, uint32_t number); /* false: no memory */
bool kl_tree_look(kl_tree *tree);                  /* find `below` again; false: no memory */

/* --- share.c --- */

typedef struct kl_sharing_of {
    double left_s;    /* until all is done, if all went on as they do */
    double mean_rate; /* of those known */
} kl_sharing_of;

/* Algorithm 1: time left = all that is left/all rates; who has more than it can do until then gives, who has
 * less gets, near each other first. Tasks of `lost` are given to those that have least. Sorts `standings`. */
typedef struct kl_share_rule {
    double dead_zone;
    uint32_t near; /* as in kl_node_options */
    bool moves;    /* else only what is lost changes hands */
} kl_share_rule;

kl_sharing_of kl_share(kl_standings *standings, const kl_ranges *lost, const kl_share_rule *rule,
                       kl_orders *orders, bool *failed);

/* --- tempo.c --- */

enum { KL_TEMPO_LAST = 16 };

typedef struct kl_tempo {
    kl_pace pace;
    double last_s[KL_TEMPO_LAST]; /* times of the last tasks, in a ring */
    uint64_t count;
} kl_tempo;

void kl_tempo_add(kl_tempo *tempo, double task_s);
/* Tasks per second; hand_s: how long the task has run that does now, 0: none does. 0: not known. */
double kl_tempo_rate(const kl_tempo *tempo, double hand_s);

/* --- work.c --- */

typedef struct kl_running { /* the task that runs */
    bool on;
    bool settled; /* a copy of it was quicker */
    bool lent;    /* a copy of it runs at `lent_to`, or is on its way there */
    uint32_t lent_to;
    uint32_t owner; /* whose task it is a copy of; KL_NOBODY: it is this peer's */
    uint64_t task;
    double began_s;
} kl_running;

typedef struct kl_work {
    kl_ranges own; /* tasks not begun: done from the front, given away from the back */
    uint64_t left; /* in them */
    kl_running hand;
    kl_ranges done; /* since the last report */
    kl_ranges sent; /* reported and not known to be committed */
    uint64_t done_tasks;
    kl_tempo tempo;
} kl_work;

bool kl_work_add(kl_work *work, kl_span span);
uint64_t kl_work_next(kl_work *work);                            /* take the first; left > 0 */
bool kl_work_cut(kl_work *work, uint64_t count, kl_ranges *out); /* move the last `count` to `out` */
bool kl_work_count(kl_work *work, uint64_t task);                /* it is done */
bool kl_work_owns_hand(const kl_work *work); /* a task of its own runs, and its result is needed */
double kl_work_rate(const kl_work *work, double now_s);
/* Tasks not done: those not begun and the one that runs. */
double kl_work_left(const kl_work *work);

/* --- give.c --- */

typedef struct kl_gift { /* not acknowledged */
    uint32_t to;
    uint64_t number;
    kl_ranges spans;
} kl_gift;

typedef struct kl_waiting { /* a peer that has signed up here */
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
    double look_s; /* when the last task is looked at again; INFINITY: it is not */
} kl_giving;

/* --- ask.c --- */

typedef struct kl_asking {
    bool out; /* a question is under way to `victim` */
    uint32_t victim;
    double asked_s;
    double trip_s; /* from question to answer, lately; 0: not known */
    uint32_t fails;
    bool asleep;  /* signed up at its lines, or has found nobody on the board */
    double due_s; /* looks again then; INFINITY: when something happens */
    uint64_t draws;
    uint64_t signed_up; /* a bit for each neighbour in the hypercube */
    bool posted;        /* it is on the board */
    double checked_s;
} kl_asking;

/* --- save.c: what a child has done is at its parent as well --- */

typedef struct kl_save {
    uint32_t peer, round;
    kl_ranges done, sent; /* after its report in `round`; in that report */
} kl_save;

typedef struct kl_saves {
    kl_save *at;
    size_t count;
    uint64_t room;
    double due_s; /* of this peer's own */
} kl_saves;

/* --- round.c --- */

typedef struct kl_round {
    uint32_t number; /* the one that is under way; 0: no peer of the run yet */
    uint32_t census; /* the last one that was called */
    uint32_t above;  /* its parent: who sent the last call or plan */
    double due_s;    /* of its report; INFINITY: it waits for a call */
    bool closing;    /* it is due when nothing is left to do */
    bool joined_in;  /* its own part is in what is collected */
    bool reported;
    bool hurried;   /* a message went up that a round is wanted */
    kl_ranges late; /* done after the reports of a closing round, by this peer and those below */
    kl_ranges told; /* of those, this peer's own that went up */
    double pause_s, told_s, tell_s; /* of such messages: between two of them, the last one, the next one */
    uint8_t *heard;                 /* heard[i]: of tree.below.at[i] */
    uint64_t heard_room;
    size_t heard_count;
    uint32_t sent_round;   /* in which work.sent was reported */
    kl_note collected;     /* the report, as it grows */
    double mean_rate;      /* by the last plan; 0: not known */
    double began_s, end_s; /* when the peer began, when all should be done by the last plan */
} kl_round;

/* --- root.c --- */

typedef struct kl_root {
    kl_ranges committed;
    kl_node_state state;
    kl_numbers gone;
    kl_numbers board; /* peers that are late */
    uint32_t committed_round;
    uint64_t first;           /* tasks it does before the first round */
    double call_s;            /* a call is due; INFINITY: none is */
    double called_s;          /* the last one went out; below 0: none did */
    double planned_s, next_s; /* the last plan went out, and what it said */
    double took_s;            /* from a plan or call to the reports of all, without the time between */
    uint64_t hurried;         /* tasks done after their report */
    bool shared;              /* algorithm 1 was carried out */
    bool waits;               /* all have reported, and tasks are missing */
    kl_sharing_of sharing;
} kl_root;

/* --- node.c --- */

typedef struct kl_later { /* a message of a peer that has been called before this one was */
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
    kl_root *root; /* NULL: another one is */
    kl_note note;  /* the message at hand */
    kl_later *later, **later_end;
    bool over;
    kl_node_actions *out; /* of the step */
    double now_s;
};

/* --- post.c --- */

/* Send the note with the sender's marks; `tasks` change hands with it. */
void kl_post(kl_node *node, uint32_t to, kl_note *note, uint64_t tasks);
void kl_post_plain(kl_node *node, uint32_t to, kl_note_kind kind, uint64_t number);
void kl_act(kl_node *node, kl_node_action action);
void kl_peer_check(kl_node *node, bool ok); /* not ok: memory ran out */

/* Give `to` the last `count` tasks. */
void kl_give(kl_node *node, uint32_t to, uint64_t count);
/* Give an asking peer its part, or a copy of the last task. false: it has nothing for it. */
bool kl_give_part(kl_node *node, uint32_t to, double rate);
void kl_give_sign_up(kl_node *node, uint32_t peer, const kl_note *note);
void kl_give_feed(kl_node *node); /* those that wait, as far as there is something for them */
void kl_give_got(kl_node *node, uint32_t by, const kl_note *note);
void kl_give_refused(kl_node *node, uint32_t by,
                     const kl_note *note); /* a copy of the task that runs is not made */
void kl_give_lose_all(kl_node *node);      /* forget peers that are gone, and gifts to them */
bool kl_give_hold(const kl_node *node, kl_ranges *held);
void kl_give_free(kl_giving *giving);

void kl_ask_settle(kl_node *node); /* ask somebody if it is time to */
void kl_ask_answered(kl_node *node, uint32_t by, bool empty);
void kl_ask_lose(kl_node *node, uint32_t peer);
void kl_ask_victim(kl_node *node, uint32_t root, const kl_note *note); /* the board's answer */
void kl_ask_check(kl_node *node); /* is it late? Then it says so on the board */

void kl_save_send(kl_node *node); /* to the parent, when it is due */
void kl_save_take(kl_node *node, uint32_t from, const kl_note *note);
/* `peer` is gone: what it saved here counts as done by this peer, unless it was committed. */
void kl_save_inherit(kl_node *node, uint32_t peer, uint32_t committed);
void kl_save_free(kl_saves *saves);

void kl_round_begin(kl_node *node, uint32_t number);
void kl_round_call(kl_node *node, uint32_t from, const kl_note *note);
void kl_round_plan(kl_node *node, uint32_t from, const kl_note *note);
void kl_round_hear(kl_node *node, uint32_t from, const kl_note *note); /* a report */
bool kl_round_is_full(kl_node *node); /* with its own part, which joins in when it is due */
void kl_round_report(kl_node *node);
void kl_round_hurry(kl_node *node);
void kl_round_late(kl_node *node, uint32_t from, const kl_note *note);
void kl_round_late_own(kl_node *node);
void kl_round_tell(kl_node *node);
void kl_round_free(kl_round *round);

bool kl_root_begin(kl_node *node);
void kl_root_close(kl_node *node); /* all have reported */
void kl_root_lose(kl_node *node, uint32_t peer);
void kl_root_want(kl_node *node); /* call a round, as soon as one may be called */
void kl_root_board(kl_node *node, uint32_t peer, const kl_note *note); /* POST and QUERY */
void kl_root_late(kl_node *node);                                      /* is all done now? */
void kl_root_settle(kl_node *node);                                    /* what has become due */
void kl_root_free(kl_root *root);

#endif
