/* Who is at the other end of which connection of a zmq master. Private to transport_zmq.c.
 *
 * libzmq knows a peer by its routing id, which every message carries; it reports the end of a connection by
 * its file descriptor, which every message carries too, but which the next connection may get. Reports come
 * in the order in which things happened: a connection's end before the next one's beginning, its beginning
 * before its first message. So whoever has read all reports knows whose the descriptor is now, unless two
 * claim it: libzmq reports a connection's end, and may take the next one on the same descriptor, before the
 * dead one's messages and its being out of reach get through to the socket. Then nobody is cut before it is
 * known who can be reached no more. */
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
    KL_ZMQ_IGNORED, /* has said goodbye, was dropped, or never was one of us */
} kl_zmq_standing;

typedef struct kl_zmq_slot {
    uint32_t id;
    kl_zmq_standing standing; /* UNKNOWN: the slot is free */
    kl_buffer parts;          /* of a message that has not come to its end */
    kl_arena *arena;          /* for large messages to it; NULL: none */
} kl_zmq_slot;

typedef struct kl_zmq_connection {
    bool open, has_peer;
    uint32_t peer;
} kl_zmq_connection;

typedef struct kl_zmq_rival {
    uint32_t id;
    int fd;
} kl_zmq_rival;

/* Zeroed is empty. After a failed allocation it is `failed`, for good. */
typedef struct kl_zmq_peers {
    kl_zmq_slot *slots; /* a hash table with linear probing, at most half full */
    size_t slot_count, used, live;
    kl_zmq_connection *connections; /* by file descriptor */
    size_t connection_count;
    uint32_t *cut; /* peers whose connection has ended, to be forgotten once their messages are read */
    size_t cut_count, cut_capacity;
    kl_zmq_rival *rivals; /* peers that claim an open connection which is another's already */
    size_t rival_count, rival_capacity;
    bool failed;
} kl_zmq_peers;

void kl_zmq_peers_free(kl_zmq_peers *peers);
kl_zmq_standing kl_zmq_peers_get(const kl_zmq_peers *peers, uint32_t id);
/* A peer not known yet. `reachable`: a message to it was taken just now. When it is, and its descriptor is
 * that of an open connection, the two belong together, or the peer is a rival of the one who has it;
 * otherwise the peer is already cut. */
void kl_zmq_peers_add(kl_zmq_peers *peers, uint32_t id, kl_zmq_standing standing, int fd, bool reachable);
kl_zmq_slot *kl_zmq_peers_slot(const kl_zmq_peers *peers, uint32_t id); /* of a peer that is known */
/* It has left, but for its connection. ended: by its own word. */
void kl_zmq_peers_ignore(kl_zmq_peers *peers, uint32_t id, bool ended);
void kl_zmq_peers_opened(kl_zmq_peers *peers, int fd);
void kl_zmq_peers_closed(kl_zmq_peers *peers, int fd);
/* Of two who claim one connection, cut the one who cannot be reached (`reachable` tells, asked about both).
 * As long as both can, rivals are left; ask again soon. */
void kl_zmq_peers_settle(kl_zmq_peers *peers, bool (*reachable)(void *self, uint32_t id), void *self);
/* Takes a peer out of `cut` and of the table, and tells how it stood. false when there is none. */
bool kl_zmq_peers_forget_cut(kl_zmq_peers *peers, uint32_t *id, kl_zmq_standing *standing);

#endif
