/* Who is at the other end of which connection of a zmq master. Private to transport_zmq.c.
 *
 * libzmq knows a peer by its routing id, which every message carries; it reports the end of a connection by
 * its file descriptor, which every message carries too, but which the next connection may get. Reports come
 * in the order in which things happened: a connection's end before the next one's beginning, its beginning
 * before its first message. So whoever has read all reports knows whose the descriptor is now. */
#ifndef KL_ZMQ_PEERS_H
#define KL_ZMQ_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum kl_zmq_standing {
    KL_ZMQ_UNKNOWN,
    KL_ZMQ_LIVE,
    KL_ZMQ_IGNORED, /* has said goodbye, was dropped, or never was one of us */
} kl_zmq_standing;

typedef struct kl_zmq_slot {
    uint32_t id;
    kl_zmq_standing standing; /* UNKNOWN: the slot is free */
} kl_zmq_slot;

typedef struct kl_zmq_connection {
    bool open, has_peer;
    uint32_t peer;
} kl_zmq_connection;

/* Zeroed is empty. After a failed allocation it is `failed`, for good. */
typedef struct kl_zmq_peers {
    kl_zmq_slot *slots; /* a hash table with linear probing, at most half full */
    size_t slot_count, used, live;
    kl_zmq_connection *connections; /* by file descriptor */
    size_t connection_count;
    uint32_t *cut; /* peers whose connection has ended, to be forgotten once their messages are read */
    size_t cut_count, cut_capacity;
    bool failed;
} kl_zmq_peers;

void kl_zmq_peers_free(kl_zmq_peers *peers);
kl_zmq_standing kl_zmq_peers_get(const kl_zmq_peers *peers, uint32_t id);
/* A peer not known yet. `reachable`: a message to it was taken just now. When it is, and its descriptor is
 * that of a connection that is nobody's yet, the two belong together; otherwise the peer is already cut. */
void kl_zmq_peers_add(kl_zmq_peers *peers, uint32_t id, kl_zmq_standing standing, int fd, bool reachable);
void kl_zmq_peers_ignore(kl_zmq_peers *peers, uint32_t id);
void kl_zmq_peers_opened(kl_zmq_peers *peers, int fd);
void kl_zmq_peers_closed(kl_zmq_peers *peers, int fd);
/* Takes a peer out of `cut` and of the table, and tells how it stood. false when there is none. */
bool kl_zmq_peers_forget_cut(kl_zmq_peers *peers, uint32_t *id, kl_zmq_standing *standing);

#endif
