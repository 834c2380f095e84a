/* Door of room peer: peers that balance independent tasks among themselves, without a master. A peer is a
 * state machine: it takes an event and the time, and gives actions, which its driver carries out. It knows
 * others by their numbers; the driver knows their addresses. Pure. */
#ifndef KL_PEER_H
#define KL_PEER_H

#include "base/base.h"

/* How peers help each other: a policy; help.c. */
typedef enum kl_sharing { KL_SHARE_NEVER, KL_SHARE_ONCE, KL_SHARE_AGAIN } kl_sharing;
typedef enum kl_part_rule { KL_PART_HALF, KL_PART_BY_RATE, KL_PART_BY_RATE_OR_HALF } kl_part_rule;

typedef struct kl_help {
    const char *name;
    kl_sharing sharing; /* algorithm 1: all rates are measured, and shares made anew */
    kl_part_rule part;  /* of what a victim has left */
    double dead_zone;   /* shares that are off by less stay as they are */
    bool board;         /* late peers say so, and idle ones ask for those; else victims are random */
    bool lines;         /* who finds nothing waits at some peers, which think of it later */
    bool early;         /* asks before it has run out of work */
    bool copies;        /* speculative copies of last tasks */
} kl_help;

const kl_help *kl_help_at(size_t i);           /* in order of registration; NULL behind the last one */
const kl_help *kl_help_find(const char *name); /* NULL: there is none of this name */

typedef struct kl_node kl_node; /* one peer */

typedef struct kl_node_options {
    uint32_t number; /* its own. Number 0 is the root, which commits the results of all */
    uint32_t peers;  /* there at the start: 0 … peers − 1. The next one that joins gets number `peers` */
    uint32_t near;   /* peers 0 … near − 1 are near each other, and so are the next ones; 0: all are */
    uint64_t tasks;  /* of the run */
    kl_span share;   /* the tasks it begins with */
    const kl_help *help;
    bool attends; /* it gets messages while a task runs */
    uint64_t seed;
} kl_node_options;

typedef enum kl_node_event_kind {
    KL_NODE_STARTS,
    KL_NODE_HEARS,   /* a message from `peer`; those of one peer come in the order they were sent */
    KL_NODE_LOSES,   /* `peer` is gone: a message for it may be lost, and none of it will come any more */
    KL_NODE_ENDED,   /* the task that runs has ended */
    KL_NODE_REACHED, /* the time that was asked for */
} kl_node_event_kind;

typedef struct kl_node_event {
    kl_node_event_kind kind;
    uint32_t peer;
    const void *data;
    size_t size;
} kl_node_event;

typedef enum kl_node_action_kind {
    KL_NODE_SEND,  /* `size` bytes from offset `at` of actions.bytes to `peer`, which may be itself */
    KL_NODE_BEGIN, /* begin `task` */
    KL_NODE_OVER,  /* every task of the run is counted */
} kl_node_action_kind;

typedef struct kl_node_action {
    kl_node_action_kind kind;
    uint32_t peer;
    uint64_t task; /* SEND: how many tasks the message hands over */
    size_t at, size;
} kl_node_action;

/* Orders to the driver. Many peers may share one; a step empties it first. */
typedef struct kl_node_actions {
    kl_node_action *items;
    size_t count;
    uint64_t room;
    kl_buffer bytes;
    double wake_s; /* KL_NODE_REACHED is due then, whatever was asked for before; INFINITY: never */
    bool failed;   /* memory ran out: the peer cannot go on */
} kl_node_actions;

void kl_node_actions_free(kl_node_actions *actions);

kl_node *kl_node_new(const kl_node_options *options); /* NULL: no memory */
void kl_node_free(kl_node *node);                     /* NULL does nothing */
void kl_node_step(kl_node *node, const kl_node_event *event, double now_s, kl_node_actions *actions);

/* The run, as the root knows it. */
typedef struct kl_node_state {
    uint64_t committed; /* tasks counted */
    uint64_t twice;     /* tasks that peers counted again: a fault of the protocol */
    uint64_t adopted;   /* tasks that died with a peer and were given to another one */
    uint32_t rounds, censuses, deaths;
} kl_node_state;

kl_node_state kl_node_state_of(const kl_node *root);
/* Tasks that this peer owns and has not begun. */
uint64_t kl_node_left(const kl_node *node);

#endif
