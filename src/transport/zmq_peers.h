/* Which peer of a zmq master has which connection. Private to transport_zmq.c. libzmq identifies a peer by
 * its routing id, which every message carries. It reports the end of a connection by its file descriptor,
 * which every message carries, too, but which the next connection may reuse. Reports come in the order of
 * events: a connection's end before the next one's beginning, its beginning before its first message. So
 * after reading all reports one knows who owns the descriptor now, unless two peers claim it. That happens
 * because libzmq may report a connection's end, and accept the next one on the same descriptor, before the
 * socket sees the dead peer's messages and notices that it is unreachable. Then no peer is cut until one of
 * them proves unreachable. */
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
    KL_ZMQ_IGNORED, /* the peer sent BYE, was dropped, or never was a peer */
} kl_zmq_standing;

typedef struct kl_zmq_slot {
    uint32_t id;
    kl_zmq_standing standing; /* UNKNOWN: the slot is free */
    kl_buffer parts;          /* parts of a message that is not complete yet */
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

/* The peers of a master. A zeroed table is empty. After a failed allocation it stays `failed`. */
typedef struct kl_zmq_peers {
    kl_zmq_slot *slots; /* a hash table with linear probing, at most half full */
    size_t slot_count, used, live;
    kl_zmq_connection *connections; /* the owner of each open connection, by file descriptor */
    size_t connection_count;
    uint32_t *cut; /* peers whose connections have ended; they are forgotten when their messages are read */
    uint64_t cut_count, cut_capacity;
    kl_zmq_rival *rivals; /* peers that claim an open connection which another peer owns */
    uint64_t rival_count, rival_capacity;
    bool failed;
} kl_zmq_peers;

void kl_zmq_peers_free(kl_zmq_peers *peers);
kl_zmq_standing kl_zmq_peers_get(const kl_zmq_peers *peers, uint32_t id);
/* Add an unknown peer. `reachable`: a message to it was accepted just now. A reachable peer whose descriptor
 * is open owns that connection, or is a rival of its owner; any other peer is already cut. */
void kl_zmq_peers_add(kl_zmq_peers *peers, uint32_t id, kl_zmq_standing standing, int fd, bool reachable);
kl_zmq_slot *kl_zmq_peers_slot(const kl_zmq_peers *peers, uint32_t id); /* the peer must be known */
/* Mark a peer as left, while its connection may still be open. ended: the peer itself said that it leaves. */
void kl_zmq_peers_ignore(kl_zmq_peers *peers, uint32_t id, bool ended);
void kl_zmq_peers_opened(kl_zmq_peers *peers, int fd);
void kl_zmq_peers_closed(kl_zmq_peers *peers, int fd);
/* If two peers claim one connection, cut the unreachable peer (`reachable` is called for both).
 * While both are reachable, the rivals remain; ask again soon. */
void kl_zmq_peers_settle(kl_zmq_peers *peers, bool (*reachable)(void *self, uint32_t id), void *self);
/* Remove a peer from `cut` and from the table, and return its state. false: there is no such peer. */
bool kl_zmq_peers_forget_cut(kl_zmq_peers *peers, uint32_t *id, kl_zmq_standing *standing);

#endif
