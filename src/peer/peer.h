/* Public header of the folder peer: peers that balance independent tasks among themselves, without a
 * master. A peer is a state machine: it takes an event and the time, and returns actions, which its driver
 * carries out. It knows other peers by their numbers; the driver knows their addresses. All functions are
 * pure. */
#ifndef KL_PEER_H
#define KL_PEER_H

#include "base/base.h"
#include "kilter/run.h"

/* Number of peers that may ever take part in a run. A message that names more is malformed. */
enum { KL_PEERS_MOST = 1 << 20 };

/* The children of peer n in the tree are KL_PEERS_BELOW peers, from number KL_PEERS_BELOW n + 1 on. */
enum { KL_PEERS_BELOW = 12 };

/* A policy: how peers distribute tasks among each other. The table is in help.c. */
typedef enum kl_sharing { KL_SHARE_NEVER, KL_SHARE_ONCE, KL_SHARE_AGAIN } kl_sharing;
typedef enum kl_part_rule { KL_PART_HALF, KL_PART_BY_RATE, KL_PART_BY_RATE_OR_HALF } kl_part_rule;

typedef struct kl_help {
    const char *name;
    kl_sharing sharing; /* how often all rates are collected and new shares are computed (algorithm 1) */
    kl_part_rule part;  /* which part of its remaining tasks a victim gives away */
    double dead_zone;   /* a share that is wrong by less than this fraction is not changed */
    /* true: late peers are listed at the root, which names one to each idle peer; false: an idle peer asks a
     * random one */
    bool board;
    bool lines;  /* true: a peer that finds no tasks signs up at its neighbours, which give it tasks later */
    bool early;  /* true: a peer asks before it has run out of tasks */
    bool copies; /* true: idle peers do speculative copies of the last tasks */
    const char *summary;
} kl_help;

/* Return policy i in order of registration; NULL: there is none. */
const kl_help *kl_help_at(size_t i);
const kl_help *kl_help_find(const char *name); /* Return the policy with this name; NULL: there is none. */

typedef struct kl_node kl_node; /* the state of one peer */

/* How to combine the results of several tasks into one value. A task's result is a value, too. All zero:
 * values are appended to each other. */
typedef struct kl_combine {
    /* Combine another value into `into`, which is empty at first. The order of the values differs from run to
     * run. false: memory ran out, or the bytes are not a value. */
    bool (*add)(void *self, kl_buffer *into, const void *value, size_t size);
    /* Return whether the bytes are a value. NULL: any bytes are. */
    bool (*check)(void *self, const void *value, size_t size);
    void *self;
} kl_combine;

typedef struct kl_node_options {
    uint32_t number; /* number of this peer; peer 0 is the root, which commits the results of all peers */
    uint32_t peers;  /* number of peers at the start, which is also the number of the next peer that joins */
    /* messages are fast within each group of `near` consecutive peers; 0: among all peers */
    uint32_t near;
    uint64_t tasks;        /* number of tasks of the run */
    kl_span share;         /* the tasks with which the peer begins */
    const kl_ranges *more; /* more tasks with which it begins; NULL: none; they are copied */
    /* for the root: tasks that were counted before the run began; NULL: none; they are copied */
    const kl_ranges *done;
    bool root_rests; /* true: peer 0 does no tasks itself; its `share` is empty */
    const kl_help *help;
    kl_combine combine;
    bool attends; /* true: the peer gets messages while a task runs */
    /* true: the driver passes on calls for help and offers of help without messages. So a policy with a
     * board gives KL_NODE_CALLS, KL_NODE_SEEKS and KL_NODE_OFFERS instead of messages. */
    bool signals;
    /* tasks are timed together until they have taken this many seconds, because a thread may lose its core
     * during a short task; 0: time each task alone */
    double least_s;
    uint64_t seed;
} kl_node_options;

typedef enum kl_node_event_kind {
    KL_NODE_STARTS,
    KL_NODE_HEARS,   /* a message from `peer` arrived; messages of one peer arrive in the order of sending */
    KL_NODE_LOSES,   /* `peer` is gone: messages to it may be lost, and no more messages come from it */
    KL_NODE_ENDED,   /* the running task has ended; `data` is its result */
    KL_NODE_REACHED, /* the time wake_s of the last step has come */
    KL_NODE_FOUND,   /* the answer to KL_NODE_SEEKS: `peer` has called for help */
    KL_NODE_OFFERED, /* `peer`, which does `rate` tasks per second, offers to help this peer */
} kl_node_event_kind;

typedef struct kl_node_event {
    kl_node_event_kind kind;
    uint32_t peer;
    const void *data;
    size_t size;
    double rate; /* OFFERED: tasks per second of `peer`; 0: not known */
} kl_node_event;

typedef enum kl_node_action_kind {
    /* send `size` bytes from offset `at` of actions.bytes to `peer`, which may be this peer itself */
    KL_NODE_SEND,
    KL_NODE_BEGIN, /* begin `task` */
    /* only for the root: report newly counted tasks, each of them once. Their combined result is the
     * `size` bytes from offset `at` of actions.bytes. The tasks follow these bytes, as `spans` pairs of
     * 64-bit numbers */
    KL_NODE_COUNTS,
    KL_NODE_OVER,   /* every task of the run is counted */
    KL_NODE_CALLS,  /* task 1: this peer is late and calls for help; 0: it withdraws its call */
    KL_NODE_SEEKS,  /* give KL_NODE_FOUND when a peer has called for help and no other peer has answered the
                       call */
    KL_NODE_OFFERS, /* offer help to `peer`; the bytes are a message with the offer, for KL_NODE_SEND */
} kl_node_action_kind;

typedef struct kl_node_action {
    kl_node_action_kind kind;
    uint32_t peer;
    /* BEGIN: index of the task; SEND: number of tasks in the message; COUNTS: number of tasks counted */
    uint64_t task;
    size_t at, size, spans;
    double left,
        rate; /* CALLS, OFFERS: number of this peer's remaining tasks, and tasks per second; 0: not known */
} kl_node_action;

/* The actions of a step, which the driver must carry out in order. Several peers may use the same struct:
 * each step empties it first. */
typedef struct kl_node_actions {
    kl_node_action *items;
    size_t count;
    uint64_t room;
    kl_buffer bytes;
    /* time at which the peer wants KL_NODE_REACHED; it replaces the wake_s of earlier steps; INFINITY:
     * never */
    double wake_s;
    bool failed; /* memory ran out, so the peer cannot go on */
    /* The message of this step was malformed, so its sender counts as gone. If its sender is the root,
     * this peer cannot go on. */
    bool malformed;
} kl_node_actions;

void kl_node_actions_free(kl_node_actions *actions);

kl_node *kl_node_new(const kl_node_options *options); /* NULL: no memory */
void kl_node_free(kl_node *node);                     /* NULL does nothing */
/* Limit the numbers of peers: messages that name a peer with this number or a higher one are malformed.
 * The default is KL_PEERS_MOST. */
void kl_node_bound(kl_node *node, uint32_t peers);
void kl_node_step(kl_node *node, const kl_node_event *event, double now_s, kl_node_actions *actions);

/* The state of the run, as far as the root knows it. */
typedef struct kl_node_state {
    uint64_t committed; /* number of tasks counted */
    uint64_t twice;     /* number of tasks that were counted more than once; above 0: there is an error in the
                           protocol */
    uint64_t adopted;   /* number of tasks that were lost with a peer and given to another peer */
    uint32_t rounds, censuses, deaths;
} kl_node_state;

kl_node_state kl_node_state_of(const kl_node *root);
/* Return the tasks that are counted, in order. They are valid until the next step. */
const kl_ranges *kl_node_counted(const kl_node *root);
/* Return whether the root counts this peer as gone, for example because another peer has reported so. */
bool kl_node_counts_gone(const kl_node *root, uint32_t peer);
/* Return the number of tasks that this peer owns and has not begun. */
uint64_t kl_node_left(const kl_node *node);

#endif
