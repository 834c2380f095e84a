/* Door of room transport: messages between a master and its workers, whatever carries them.
 *
 * One table of operations, several implementations, one conformance suite (transport_suite.h). An endpoint
 * belongs to one thread at a time; only kl_transport_wake() may be called from another. Messages between two
 * endpoints arrive whole, once and in order, or not at all when the peer is lost. Nothing above this room may
 * depend on more than that. */
#ifndef KL_TRANSPORT_H
#define KL_TRANSPORT_H

#include "base/base.h"

/* Names a peer for as long as the endpoint lives; never reused. A worker's only peer is its master. */
typedef uint64_t kl_peer;
enum { KL_NO_PEER = 0 };

/* A received message. `release` frees what backs `data`; kl_message_release() calls it. */
typedef struct kl_message {
    const uint8_t *data;
    size_t size;
    void *owner;
    void (*release)(void *owner);
} kl_message;

void kl_message_release(kl_message *message); /* leaves it zeroed; a zeroed one is fine */

typedef enum kl_event_kind {
    KL_EVENT_NONE,    /* the time is up, or somebody called kl_transport_wake() */
    KL_EVENT_MESSAGE, /* `message` is the receiver's to release */
    KL_EVENT_JOINED,  /* first sign of a peer: comes before its first message */
    KL_EVENT_LEFT, /* the peer closed, died or was dropped by its side: comes once, after its last message */
} kl_event_kind;

typedef struct kl_event {
    kl_event_kind kind;
    kl_peer peer;
    kl_message message; /* KL_EVENT_MESSAGE only */
} kl_event;

typedef struct kl_transport kl_transport;

typedef struct kl_transport_ops {
    const char *name;
    bool threads; /* may the endpoint live in another thread than the one that made it? */
    /* Queue `size` bytes for `peer`; returns at once, the bytes are copied. KILTER_ERR_PEER when the peer is
     * known to be gone. */
    kilter_status (*send)(kl_transport *transport, kl_peer peer, const void *data, size_t size,
                          kilter_error *error);
    /* Wait up to `timeout_s` (0: only look; < 0: for ever) for the next event. Sleeps while nothing happens.
     */
    kilter_status (*poll)(kl_transport *transport, double timeout_s, kl_event *event, kilter_error *error);
    /* Forget `peer`: nothing is sent to it or received from it any more, and no LEFT comes for it. */
    void (*drop)(kl_transport *transport, kl_peer peer);
    /* Make a poll() that waits, or the next one, return KL_EVENT_NONE. Any thread. */
    void (*wake)(kl_transport *transport);
    /* Deliver what was queued (for a bounded time), tell the peers, free everything. */
    void (*close)(kl_transport *transport);
    /* See kl_lend(). NULL: it has nothing to lend. */
    void (*lend)(kl_transport *transport, kl_peer peer, size_t size, kl_buffer *buffer);
} kl_transport_ops;

struct kl_transport {
    const kl_transport_ops *ops;
};

/* --- zmq: ROUTER (master) and DEALER (worker) of libzmq --- */

#define KL_LOST_AFTER_S 10.0

/* The keys of a farm that works over tcp (CURVE, as libzmq writes them). Who has the workers' is let in; who
 * knows the server's public one cannot be taken in by another master. */
enum { KL_KEY_CHARS = 40 };

typedef struct kl_key {
    char server_public[KL_KEY_CHARS + 1], server_secret[KL_KEY_CHARS + 1]; /* "" in what workers are handed */
    char worker_public[KL_KEY_CHARS + 1], worker_secret[KL_KEY_CHARS + 1];
    char file[256]; /* where it was read, for messages */
} kl_key;

kilter_status kl_key_make(kl_key *key, kilter_error *error);
/* The text of a key file, all of it or the workers' part. */
void kl_key_write(const kl_key *key, bool for_master, kl_buffer *out);
kilter_status kl_key_parse(const char *text, size_t size, const char *file, kl_key *key, kilter_error *error);
/* "-" is the standard input, read to its end. A file that others may read or write is refused. */
kilter_status kl_key_read(const char *path, kl_key *key, kilter_error *error);
/* As a master does: a file that is not there is made, with the folders above it. */
kilter_status kl_key_read_or_make(const char *path, kl_key *key, kilter_error *error);
kilter_status kl_key_default_path(char **path, kilter_error *error); /* in the folder of records; malloc'd */

/* Memory that a master shares with the workers it forks afterwards, `workers` at a time: large messages
 * between them lie there, and the socket tells where. It has no name, and is freed with the last process that
 * has it. NULL: it is not to be had, or the address space is limited (ulimit -v); all goes through the socket
 * then. */
typedef struct kl_arenas kl_arenas;
kl_arenas *kl_arenas_open(uint32_t workers);
void kl_arenas_close(
    kl_arenas *arenas); /* messages that lie there stay until they are released. NULL: nothing */

typedef struct kl_zmq_options {
    /* A peer of which nothing was heard for so long has left; both ends ask often enough, in a thread of
     * libzmq's, so that one that only does not poll answers. 0: KL_LOST_AFTER_S. */
    double lost_after_s;
    const kl_key *key; /* of a tcp endpoint, which needs one; copied. Not used by others. */
    /* A master says there, in a sentence and not too often, that strangers tried to get in. NULL: nowhere. */
    void (*complain)(void *self, const char *sentence);
    void *complain_to;
    kl_arenas *arenas; /* at both ends; NULL: none. Closed after them */
} kl_zmq_options;

/* Master's end, bound to `endpoint` (ipc://PATH in a folder nobody else can enter, tcp://ADDRESS:PORT;
 * "tcp://127.0.0.1:*" takes a free port).
 * *bound (may be NULL) gets the endpoint workers connect to, malloc'd, the caller's to free. */
kilter_status kl_zmq_listen(const char *endpoint, const kl_zmq_options *options, char **bound,
                            kl_transport **transport, kilter_error *error);
/* Worker's end. The master need not be there yet: KL_EVENT_JOINED tells when it is. */
kilter_status kl_zmq_join(const char *endpoint, const kl_zmq_options *options, kl_transport **transport,
                          kilter_error *error);
/* Is `endpoint` one the two calls above can use? Fills `error` (naming it) when not. Opens nothing. */
kilter_status kl_zmq_check(const char *endpoint, kilter_error *error);

/* --- inproc: between threads of one process, or between state machines stepped by one loop --- */

typedef struct kl_inproc kl_inproc; /* the hub all endpoints hang from; outlives them */

/* In a stepped hub poll() never waits: it gives what has been delivered up to the endpoint's present time,
 * else NONE. Messages take latency_s + per_byte_s·size from the sender's present time. */
typedef struct kl_inproc_stepped {
    double latency_s, per_byte_s;
    double (*now_s)(void *clock,
                    kl_peer endpoint); /* present time of an endpoint: 1 the master, 2, 3, … the workers */
    void *clock;
} kl_inproc_stepped;

/* stepped: NULL for threads; else the caller's, who may change its times while the hub lives. */
kilter_status kl_inproc_new(const kl_inproc_stepped *stepped, kl_inproc **hub, kilter_error *error);
void kl_inproc_free(kl_inproc *hub); /* after all its endpoints */
kilter_status kl_inproc_listen(kl_inproc *hub, kl_transport **transport, kilter_error *error);
/* *endpoint (may be NULL) gets the number now_s is asked with. */
kilter_status kl_inproc_join(kl_inproc *hub, kl_peer *endpoint, kl_transport **transport,
                             kilter_error *error);
/* When does the endpoint's next event become visible? HUGE_VAL when none is under way. Stepped hubs only. */
double kl_inproc_next_s(const kl_inproc *hub, kl_peer endpoint);

/* --- mpi: the ranks of MPI_COMM_WORLD, rank 0 the master --- */

/* Collective. Loads libkilter-openmpi or libkilter-mpich, whichever is for the MPI the program is linked
 * with, or else the MPI that the environment variable KILTER_MPI names, or whose launcher started it. Starts
 * MPI when it is not (and then close() ends it). *rank and *size as MPI says. A peer that is dead has left
 * within a second, and lost_after_s (whole seconds from 3; 0: KL_LOST_AFTER_S) after its host fell silent,
 * where the launcher lets others live: docs/faults.md. KILTER_ERR_USAGE when the launcher says there are
 * several processes but MPI sees one, the launcher belongs to another MPI than the program, or the library is
 * not there. */
kilter_status kl_mpi_open(int *argc, char ***argv, double lost_after_s, int *rank, int *size,
                          kl_transport **transport, kilter_error *error);

/* --- the operations, as the rooms above call them --- */

static inline kilter_status kl_send(kl_transport *t, kl_peer peer, const kl_buffer *buffer,
                                    kilter_error *error) {
    if (buffer->failed)
        return kl_fail(error, KILTER_ERR_MEMORY, "building a message: memory ran out");
    return t->ops->send(t, peer, buffer->data, buffer->size, error);
}
/* Let an empty buffer lie where `peer` can read it, when it is to hold a large message: sending it is then no
 * copy. size: its bytes; 0: as many as messages to this peer had lately. The buffer's memory is given away
 * when it is sent: lend it again before more is put into it. One buffer of each peer at a time. */
static inline void kl_lend(kl_transport *t, kl_peer peer, size_t size, kl_buffer *buffer) {
    if (t->ops->lend)
        t->ops->lend(t, peer, size, buffer);
}
static inline kilter_status kl_poll(kl_transport *t, double timeout_s, kl_event *event, kilter_error *error) {
    return t->ops->poll(t, timeout_s, event, error);
}
static inline void kl_drop(kl_transport *t, kl_peer peer) {
    t->ops->drop(t, peer);
}
static inline void kl_transport_wake(kl_transport *t) {
    t->ops->wake(t);
}
static inline void kl_transport_close(kl_transport *t) {
    if (t)
        t->ops->close(t);
}

#endif
