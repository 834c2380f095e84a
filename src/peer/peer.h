/* Door of room peer: peers that balance independent tasks among themselves, without a master. A peer is a
 * state machine: it takes an event and the time, and gives actions, which its driver carries out. It knows
 * others by their numbers; the driver knows their addresses. Pure. */
#ifndef KL_PEER_H
#define KL_PEER_H

#include "base/base.h"
#include "kilter/run.h"

/* Number of peers that may ever take part in a run. A message that names more is malformed. */
enum { KL_PEERS_MOST = 1 << 20 };

/* A policy: how peers help each other. help.c has the table. */
typedef enum kl_sharing { KL_SHARE_NEVER, KL_SHARE_ONCE, KL_SHARE_AGAIN } kl_sharing;
typedef enum kl_part_rule { KL_PART_HALF, KL_PART_BY_RATE, KL_PART_BY_RATE_OR_HALF } kl_part_rule;

typedef struct kl_help {
    const char *name;
    kl_sharing sharing; /* when algorithm 1 measures all rates and makes shares anew */
    kl_part_rule part;  /* the part of a victim's remaining tasks that is given */
    double dead_zone;   /* shares that are off by less than this fraction stay */
    bool board;         /* late peers tell the root, and idle peers ask the root; else victims are random */
    bool lines;         /* a peer that finds no tasks signs up at its neighbours, which give it some later */
    bool early;         /* a peer asks before it has run out of tasks */
    bool copies;        /* idle peers do speculative copies of the last tasks */
    const char *summary;
} kl_help;

const kl_help *kl_help_at(size_t i);           /* in order of registration; NULL behind the last policy */
const kl_help *kl_help_find(const char *name); /* NULL: no policy has this name */

typedef struct kl_node kl_node; /* the state of one peer */

/* How the results of several tasks become one value. A task's result is a value, too. Zeroed: values are
 * appended to each other. */
typedef struct kl_combine {
    /* Combine the value in `into`, which is empty at first, with another one. The order in which values come
     * differs from run to run. false: memory ran out, or the bytes are not a value */
    bool (*add)(void *self, kl_buffer *into, const void *value, size_t size);
    /* Return whether the bytes are a value. NULL: any bytes are. */
    bool (*check)(void *self, const void *value, size_t size);
    void *self;
} kl_combine;

typedef struct kl_node_options {
    uint32_t number; /* this peer's number. Peer 0 is the root, which commits the results of all */
    uint32_t peers;  /* number of peers at the start. The next one that joins gets number `peers` */
    uint32_t near;   /* messages within each group of `near` consecutive peers are quick; 0: among all */
    uint64_t tasks;  /* number of tasks of the run */
    kl_span share;   /* the tasks that the peer begins with */
    const kl_ranges *more; /* tasks that it begins with in addition, copied; NULL: none */
    const kl_ranges *done; /* root: tasks that were counted before the run began, copied; NULL: none */
    bool root_rests;       /* peer 0 does no tasks itself; its `share` is empty */
    const kl_help *help;
    kl_combine combine;
    bool attends;   /* the peer gets messages while a task runs */
    double least_s; /* tasks are timed together until they have taken this long, because a clock's thread may
                       be kept from its core; 0: each task alone */
    uint64_t seed;
} kl_node_options;

typedef enum kl_node_event_kind {
    KL_NODE_STARTS,
    KL_NODE_HEARS, /* a message from `peer`; messages of one peer come in the order in which they were sent */
    KL_NODE_LOSES, /* `peer` is gone: messages to it may be lost, and no more messages come from it */
    KL_NODE_ENDED, /* the running task has ended; `data` is its result */
    KL_NODE_REACHED, /* the time wake_s of the last step has been reached */
} kl_node_event_kind;

typedef struct kl_node_event {
    kl_node_event_kind kind;
    uint32_t peer;
    const void *data;
    size_t size;
} kl_node_event;

typedef enum kl_node_action_kind {
    KL_NODE_SEND,   /* send `size` bytes from offset `at` of actions.bytes to `peer`, which may be the sender
                       itself */
    KL_NODE_BEGIN,  /* begin `task` */
    KL_NODE_COUNTS, /* root: `size` bytes from offset `at` are the value of tasks that are counted from now
                       on, each once */
    KL_NODE_OVER,   /* every task of the run is counted */
} kl_node_action_kind;

typedef struct kl_node_action {
    kl_node_action_kind kind;
    uint32_t peer;
    /* BEGIN: index of the task; SEND: number of tasks that the message gives away; COUNTS: number of tasks */
    uint64_t task;
    size_t at, size;
} kl_node_action;

/* Orders to the driver. Many peers may share one struct: each step empties it first. */
typedef struct kl_node_actions {
    kl_node_action *items;
    size_t count;
    uint64_t room;
    kl_buffer bytes;
    double wake_s; /* the time of the next event KL_NODE_REACHED, which replaces any earlier one; INFINITY:
                      none */
    bool failed;   /* memory ran out, and the peer cannot go on */
    /* The message of this step was malformed: its sender counts as gone. After a message of the root the peer
     * cannot go on. */
    bool malformed;
} kl_node_actions;

void kl_node_actions_free(kl_node_actions *actions);

kl_node *kl_node_new(const kl_node_options *options); /* NULL: no memory */
void kl_node_free(kl_node *node);                     /* NULL does nothing */
/* Messages that name a peer of this number or a greater one are malformed. Without this, the bound is
 * KL_PEERS_MOST. */
void kl_node_bound(kl_node *node, uint32_t peers);
void kl_node_step(kl_node *node, const kl_node_event *event, double now_s, kl_node_actions *actions);

/* The state of the run, as the root knows it. */
typedef struct kl_node_state {
    uint64_t committed; /* number of tasks counted */
    uint64_t twice;     /* number of tasks that peers counted again: a fault of the protocol */
    uint64_t adopted;   /* number of tasks that were lost with a peer and given to another one */
    uint32_t rounds, censuses, deaths;
} kl_node_state;

kl_node_state kl_node_state_of(const kl_node *root);
/* Return the tasks that are counted, in order. They are valid until the next step. */
const kl_ranges *kl_node_counted(const kl_node *root);
/* Return whether the root counts this peer as gone: other peers may have reported it. */
bool kl_node_counts_gone(const kl_node *root, uint32_t peer);
/* Return the number of tasks that this peer owns and has not begun. */
uint64_t kl_node_left(const kl_node *node);

#endif
