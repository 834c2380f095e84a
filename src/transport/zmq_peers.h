/* A table that says which connection each peer of a zmq master has. Private to transport_zmq.c. libzmq
 * identifies a peer by its routing id, which every message carries. But libzmq reports the end of a
 * connection by the connection's file descriptor. Every message carries this descriptor, too, but the next
 * connection may reuse it. */
/* Reports come in the order of events. So after all reports are read, the owner of a descriptor is known,
 * unless two peers (rivals) claim the descriptor. This happens if libzmq reports a connection's end, and
 * accepts the next connection on the same descriptor, before the dead peer's messages are read. Then no peer
 * is cut until one of the rivals cannot be reached. */
#ifndef KL_ZMQ_PEERS_H
#define KL_ZMQ_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "transport/arena.h"

typedef enum kl_zmq_standing {
    KL_ZMQ_UNKNOWN,
    KL_ZMQ_LIVE,
    KL_ZMQ_IGNORED, /* peer that sent BYE, was dropped, or never sent HELLO */
} kl_zmq_standing;

typedef struct kl_zmq_slot {
    uint32_t id;
    kl_zmq_standing standing; /* what is known of the peer; KL_ZMQ_UNKNOWN: the slot is free */
    kl_buffer parts;          /* the parts received so far of a message from this peer */
    kl_arena *arena;          /* arena for large messages to the peer; NULL: none */
} kl_zmq_slot;

typedef struct kl_zmq_connection {
    bool open, has_peer;
    uint32_t peer;
} kl_zmq_connection;

typedef struct kl_zmq_rival {
    uint32_t id;
    int fd;
} kl_zmq_rival;

/* The peers of a master. All zero: there are none. After a failed allocation, `failed` stays set. */
typedef struct kl_zmq_peers {
    kl_zmq_slot *slots; /* a hash table of the peers with linear probing, at most half full */
    size_t slot_count, used, live;
    /* [connection_count] the owner of each open connection; the index is the file descriptor */
    kl_zmq_connection *connections;
    size_t connection_count;
    uint32_t *cut; /* peers whose connections have ended; each is removed when its messages are read */
    uint64_t cut_count, cut_capacity;
    kl_zmq_rival *rivals; /* peers that claim an open connection although it has another owner */
    uint64_t rival_count, rival_capacity;
    bool failed;
} kl_zmq_peers;

void kl_zmq_peers_free(kl_zmq_peers *peers);
kl_zmq_standing kl_zmq_peers_get(const kl_zmq_peers *peers, uint32_t id);
/* Add a peer. reachable: true if libzmq has just accepted a message to the peer. If so, and if the
 * descriptor is open, the peer owns the connection or is a rival of its owner. Otherwise the peer's
 * connection has already ended. */
void kl_zmq_peers_add(kl_zmq_peers *peers, uint32_t id, kl_zmq_standing standing, int fd, bool reachable);
/* return what is known of the peer with this routing id, which must be in the table */
kl_zmq_slot *kl_zmq_peers_slot(const kl_zmq_peers *peers, uint32_t id);
/* Mark a peer as left; its connection may still be open. ended: true if the peer itself said that it leaves.
 */
void kl_zmq_peers_ignore(kl_zmq_peers *peers, uint32_t id, bool ended);
void kl_zmq_peers_opened(kl_zmq_peers *peers, int fd);
void kl_zmq_peers_closed(kl_zmq_peers *peers, int fd);
/* If two peers claim one connection, cut the peer for which reachable() is false. If reachable() is true for
 * both, both stay rivals; call this again soon. */
void kl_zmq_peers_settle(kl_zmq_peers *peers, bool (*reachable)(void *self, uint32_t id), void *self);
/* Remove a peer from `cut` and from the table, and get its routing id and what was known of it. false: `cut`
 * is empty. */
bool kl_zmq_peers_forget_cut(kl_zmq_peers *peers, uint32_t *id, kl_zmq_standing *standing);

#endif
