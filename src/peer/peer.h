/* Public header of the folder peer: peers that balance independent tasks among themselves, without a
 * master. A peer is a state machine: it takes an event and the time, and returns actions, which its driver
 * carries out. It knows other peers by their numbers; the driver knows their addresses. All functions are
 * pure. */
#ifndef KL_PEER_H
#define KL_PEER_H

#include "base/base.h"
#include "kilter/run.h"

/* Greatest number of peers that may take part in a run. A message with a larger number is malformed. */
enum { KL_PEERS_MOST = 1 << 20 };

/* Number of children of a peer in the tree. The children of peer n have the numbers from KL_PEERS_BELOW · n +
 * 1 on. */
enum { KL_PEERS_BELOW = 12 };

/* A policy: how peers distribute tasks among themselves. help.c has the table of policies. */
typedef enum kl_sharing { KL_SHARE_NEVER, KL_SHARE_ONCE, KL_SHARE_AGAIN } kl_sharing;
typedef enum kl_part_rule { KL_PART_HALF, KL_PART_BY_RATE, KL_PART_BY_RATE_OR_HALF } kl_part_rule;

typedef struct kl_help {
    const char *name;
    /* how often new shares are computed from the rates of all peers, by algorithm 1
     * (see docs/reference/peers.md) */
    kl_sharing sharing;
    kl_part_rule part; /* the part of its remaining tasks that a peer gives to a peer that asks */
    double dead_zone;  /* shares that are wrong by less than this part are not changed */
    /* true: the root lists late peers on a board, and names one of them to each idle peer; false: an idle
     * peer asks a random peer */
    bool board;
    bool lines; /* true: a peer that finds no tasks signs up with its neighbours, which give it tasks later */
    bool early; /* true: a peer asks for tasks before its own tasks have ended */
    bool copies; /* true: idle peers do speculative copies of the last tasks */
    const char *summary;
} kl_help;

/* Return the policy with this index, in order of registration; NULL: there is none. */
const kl_help *kl_help_at(size_t i);
const kl_help *kl_help_find(const char *name); /* Return the policy with this name; NULL: there is none. */

typedef struct kl_node kl_node; /* the state of one peer */

/* How the results of several tasks are combined into one value. A task's result is a value, too. If all
 * fields are zero, values are appended to each other. */
typedef struct kl_combine {
    /* Combine another value into `into`, which is empty at first. The order of the values differs from run to
     * run. false: memory ran out, or the bytes are not a value. */
    bool (*add)(void *self, kl_buffer *into, const void *value, size_t size);
    /* Return whether the bytes are a value. If this is NULL, any bytes are a value. */
    bool (*check)(void *self, const void *value, size_t size);
    void *self;
} kl_combine;

typedef struct kl_node_options {
    uint32_t number; /* number of this peer; peer 0 is the root, which counts the results of all peers */
    uint32_t peers;  /* number of peers at the start; the next peer that joins gets this number */
    /* messages are fast within groups of `near` peers with consecutive numbers; 0: messages between all peers
     * are fast */
    uint32_t near;
    uint64_t tasks;        /* number of tasks of the run */
    kl_span share;         /* the tasks with which the peer begins */
    const kl_ranges *more; /* further tasks with which the peer begins, which are copied; NULL: none */
    /* only for the root: tasks that were done before the run began, which are copied; NULL: none */
    const kl_ranges *done;
    bool root_rests; /* true: peer 0 does no tasks itself, and its `share` is empty */
    const kl_help *help;
    kl_combine combine;
    bool attends; /* true: the driver passes on messages also while a task runs */
    /* true: the driver passes on calls for help and offers of help by its own means. If the policy has a
     * board, a peer then returns the actions KL_NODE_CALLS, KL_NODE_SEEKS and KL_NODE_OFFERS instead of
     * sending messages. */
    bool signals;
    /* short tasks are timed together until they have taken this number of seconds, because a thread may lose
     * its core during a task; 0: each task is timed alone */
    double least_s;
    uint64_t seed;
} kl_node_options;

typedef enum kl_node_event_kind {
    KL_NODE_STARTS,
    KL_NODE_HEARS,   /* a message from `peer` has arrived; messages of one peer arrive in the order of sending
                      */
    KL_NODE_LOSES,   /* `peer` is gone: no more messages come from it, and messages to it may be lost */
    KL_NODE_ENDED,   /* the running task has ended; `data` is its result */
    KL_NODE_REACHED, /* the time `wake_s` of the last step has come */
    KL_NODE_FOUND,   /* the answer to KL_NODE_SEEKS: `peer` calls for help */
    KL_NODE_OFFERED, /* `peer`, which does `rate` tasks per second, offers to help this peer */
} kl_node_event_kind;

typedef struct kl_node_event {
    kl_node_event_kind kind;
    uint32_t peer;
    const void *data;
    size_t size;
    double rate; /* for KL_NODE_OFFERED: tasks per second of `peer`; 0: not known */
} kl_node_event;

typedef enum kl_node_action_kind {
    /* send `size` bytes from offset `at` of actions.bytes to `peer`, which may be this peer itself */
    KL_NODE_SEND,
    KL_NODE_BEGIN, /* begin `task` */
    /* only at the root: report tasks that are now counted; each task is reported once. Their combined result
       is the `size` bytes from offset `at` of actions.bytes. After it come the tasks, as `spans` pairs of
       64-bit numbers. */
    KL_NODE_COUNTS,
    KL_NODE_OVER,   /* every task of the run is counted, so the run is over */
    KL_NODE_CALLS,  /* task = 1: this peer is late and calls for help; task = 0: it withdraws its call */
    KL_NODE_SEEKS,  /* look for a peer whose call for help no peer has answered, and give the event
                       KL_NODE_FOUND for it */
    KL_NODE_OFFERS, /* offer help to `peer`; the bytes are a message with the offer, as for KL_NODE_SEND */
} kl_node_action_kind;

typedef struct kl_node_action {
    kl_node_action_kind kind;
    uint32_t peer;
    /* for KL_NODE_BEGIN: index of the task; for KL_NODE_SEND: number of tasks in the message; for
     * KL_NODE_COUNTS: number of counted tasks */
    uint64_t task;
    size_t at, size, spans;
    double left, rate; /* only for KL_NODE_CALLS and KL_NODE_OFFERS. left: number of tasks that this peer has
                          left; rate: its tasks per second, or 0 if not known */
} kl_node_action;

/* The actions of one step, which the driver must carry out in this order. Several peers may use the same
 * struct, because each step empties it first. */
typedef struct kl_node_actions {
    kl_node_action *items;
    size_t count;
    uint64_t room;
    kl_buffer bytes;
    /* time at which the peer wants the event KL_NODE_REACHED; it replaces the time of earlier steps;
     * INFINITY: the peer does not want this event */
    double wake_s;
    bool failed; /* true: memory ran out, so the peer cannot go on */
    /* true: the message of this step was malformed, so its sender counts as gone. If the sender is the root,
     * this peer cannot go on. */
    bool malformed;
} kl_node_actions;

void kl_node_actions_free(kl_node_actions *actions);

kl_node *kl_node_new(const kl_node_options *options); /* Return a new peer. NULL: memory ran out. */
void kl_node_free(kl_node *node);                     /* free a peer; NULL: do nothing */
/* Limit the number of peers: a message that names peer `peers` or a higher number is malformed. The default
 * limit is KL_PEERS_MOST. */
void kl_node_bound(kl_node *node, uint32_t peers);
void kl_node_step(kl_node *node, const kl_node_event *event, double now_s, kl_node_actions *actions);

/* The state of the run, as far as the root knows it. */
typedef struct kl_node_state {
    uint64_t committed; /* number of tasks that are counted */
    uint64_t twice; /* number of tasks that were counted more than once; above 0: the protocol has an error */
    uint64_t adopted; /* number of tasks that were lost with dead peers and given to others */
    uint32_t rounds, censuses, deaths;
    uint32_t overdue; /* number of censuses (searches for lost tasks) that were called because late tasks did
                         not come */
} kl_node_state;

kl_node_state kl_node_state_of(const kl_node *root);
/* Return the tasks that are counted, in order. The result is valid until the next step. */
const kl_ranges *kl_node_counted(const kl_node *root);
/* Return whether this peer is gone, as far as the root knows, for example because another peer has reported
 * it. */
bool kl_node_counts_gone(const kl_node *root, uint32_t peer);
/* Return the number of tasks that this peer owns and has not begun. */
uint64_t kl_node_left(const kl_node *node);

#endif
