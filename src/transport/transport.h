/* Public header of the folder transport: messages between a master and its workers, and between workers,
 * over any medium. There is one table of operations with several implementations, and one set of tests for
 * all of them (transport_suite.h). */
/* An endpoint belongs to one thread at a time; only kl_transport_wake() may be called from another thread.
 * Messages between two endpoints arrive complete, once and in order, or not at all when the peer is lost.
 * Code outside this folder must not depend on any other property of a transport. */
#ifndef KL_TRANSPORT_H
#define KL_TRANSPORT_H

#include "base/base.h"

/* A number that identifies a peer of an endpoint. It is never reused while the endpoint exists. A worker's
 * first peer is its master. Its other peers are workers that it has reached, or that have reached it. */
typedef uint64_t kl_peer;
enum { KL_NO_PEER = 0 };

/* A received message. `release` frees the memory behind `data`; kl_message_release() calls it. */
typedef struct kl_message {
    const uint8_t *data;
    size_t size;
    void *owner;
    void (*release)(void *owner);
} kl_message;

/* Release the message and set it to zero. A message of zeros is allowed. */
void kl_message_release(kl_message *message);

typedef enum kl_event_kind {
    KL_EVENT_NONE,    /* no event: the time for the wait is over, or kl_transport_wake() was called */
    KL_EVENT_MESSAGE, /* a message from the peer; the receiver must release `message` */
    /* first event of a peer, before its first message; there is no such event for a peer that kl_reach()
     * returned */
    KL_EVENT_JOINED,
    /* last event of a peer, after its last message: the peer closed its endpoint, died, or dropped this
     * endpoint */
    KL_EVENT_LEFT,
} kl_event_kind;

typedef struct kl_event {
    kl_event_kind kind;
    kl_peer peer;
    kl_message message; /* the message, only if kind is KL_EVENT_MESSAGE */
} kl_event;

typedef struct kl_transport kl_transport;

enum { KL_ADDRESS_BYTES = 256 }; /* greatest size of a worker's address, with its terminating 0 */

typedef struct kl_transport_ops {
    const char *name;
    bool threads; /* true: several threads may use the endpoint, one after the other */
    /* Queue a copy of `size` bytes for `peer` and return at once. KILTER_ERR_PEER: the peer is known to be
     * gone. */
    kilter_status (*send)(kl_transport *transport, kl_peer peer, const void *data, size_t size,
                          kilter_error *error);
    /* Wait up to `timeout_s` for the next event; 0: only check; < 0: wait for ever. The call sleeps while
     * nothing happens. */
    kilter_status (*poll)(kl_transport *transport, double timeout_s, kl_event *event, kilter_error *error);
    /* Forget `peer`: nothing more is sent to it or received from it, and no LEFT event comes. */
    void (*drop)(kl_transport *transport, kl_peer peer);
    /* Make the present poll(), or the next one, return KL_EVENT_NONE. Any thread may call this. */
    void (*wake)(kl_transport *transport);
    /* Deliver the queued messages, but only for a limited time. Then tell the peers that this endpoint
     * closes, and free everything. */
    void (*close)(kl_transport *transport);
    /* Lend memory for a message; see kl_lend(). NULL: the transport has no memory to lend. */
    void (*lend)(kl_transport *transport, kl_peer peer, size_t size, kl_buffer *buffer);
    /* Let other workers of the same master reach this worker from now on. `address` is set to the address
     * that the others pass to reach(). Only workers may call this. Repeated calls give the same address. */
    kilter_status (*open)(kl_transport *transport, char address[KL_ADDRESS_BYTES], kilter_error *error);
    /* Connect to another worker, after open(). Messages may be sent to *peer at once. LEFT follows if the
     * worker cannot be reached. The other worker gets JOINED for this worker. Two workers that reach each
     * other have two connections. KILTER_ERR_USAGE: the text is not an address of this transport. */
    kilter_status (*reach)(kl_transport *transport, const char *address, kl_peer *peer, kilter_error *error);
} kl_transport_ops;

struct kl_transport {
    const kl_transport_ops *ops;
};

/* --- zmq: a transport with libzmq's ROUTER (master) and DEALER (worker) --- */

#define KL_LOST_AFTER_S 10.0

/* The keys of a farm that uses tcp, for libzmq's CURVE encryption and in libzmq's notation. A master accepts
 * peers that have the workers' secret key. A worker accepts only the master whose public key it knows. */
enum { KL_KEY_CHARS = 40 };

typedef struct kl_key {
    /* keys of the master; server_secret is "" in the copy for workers */
    char server_public[KL_KEY_CHARS + 1], server_secret[KL_KEY_CHARS + 1];
    char worker_public[KL_KEY_CHARS + 1], worker_secret[KL_KEY_CHARS + 1];
    char file[256]; /* name of the file from which the key was read, for error messages */
} kl_key;

kilter_status kl_key_make(kl_key *key, kilter_error *error);
/* Write the text of a key file. for_master: true writes all keys; false leaves out the master's secret key.
 */
void kl_key_write(const kl_key *key, bool for_master, kl_buffer *out);
kilter_status kl_key_parse(const char *text, size_t size, const char *file, kl_key *key, kilter_error *error);
/* Read a key file; "-" is the standard input, read to its end. A file that others may read or write is
 * refused. */
kilter_status kl_key_read(const char *path, kl_key *key, kilter_error *error);
/* Read the key as a master does: if the file is missing, create it and its parent folders. */
kilter_status kl_key_read_or_make(const char *path, kl_key *key, kilter_error *error);
/* Get the path of the key file in the folder of run records. The caller frees it. */
kilter_status kl_key_default_path(char **path, kilter_error *error);

/* Memory that a master shares with the workers that it forks later, up to `workers` at a time. A large
 * message between the master and such a worker is put into this memory, and the socket carries only the
 * message's place. The memory has no name and is freed with the last process that uses it. */
/* kl_arenas_open() returns NULL if this memory is not available, or if the address space is limited
 * (ulimit -v). All messages then go through the socket. */
typedef struct kl_arenas kl_arenas;
kl_arenas *kl_arenas_open(uint32_t workers);
/* Close the arenas for the process that opened them. Received messages stay valid until they are released.
 * NULL: do nothing. */
void kl_arenas_close(kl_arenas *arenas);

typedef struct kl_zmq_options {
    /* seconds of silence after which a peer counts as lost. A thread of libzmq sends and answers heartbeats,
     * so a busy peer is not silent. Handshakes may take as long, up to a minute. 0: KL_LOST_AFTER_S. */
    double lost_after_s;
    const kl_key *key; /* key of the farm, which is copied; required for tcp, not used for ipc */
    /* Function by which a master reports in a sentence, at most once a minute, that strangers tried to
     * connect. NULL: nothing is reported. */
    void (*complain)(void *self, const char *sentence);
    void *complain_to;
    kl_arenas *arenas; /* memory that both ends share; NULL: none. Close the endpoints before these arenas. */
} kl_zmq_options;

/* Open the master's end, bound to `endpoint`. The endpoint is ipc://PATH in a folder that no other user can
 * enter, or tcp://ADDRESS:PORT ("tcp://127.0.0.1:*" takes a free port). *bound gets the endpoint that workers
 * connect to, which the caller frees; `bound` may be NULL. */
kilter_status kl_zmq_listen(const char *endpoint, const kl_zmq_options *options, char **bound,
                            kl_transport **transport, kilter_error *error);
/* Open a worker's end. The master may start later: KL_EVENT_JOINED comes when the master has answered. */
kilter_status kl_zmq_join(const char *endpoint, const kl_zmq_options *options, kl_transport **transport,
                          kilter_error *error);
/* Check whether kl_zmq_listen() and kl_zmq_join() can use `endpoint`. If not, fill `error` with a sentence
 * that names the endpoint. Open nothing. */
kilter_status kl_zmq_check(const char *endpoint, kilter_error *error);

/* --- inproc: a transport between threads of one process, or between state machines that one loop steps ---
 */

/* the object that owns all endpoints of one process (the hub); it must outlive the endpoints */
typedef struct kl_inproc kl_inproc;

/* The clock and message times of a stepped hub, in which time is simulated. In such a hub poll() never waits.
 * It returns an event that is due by the endpoint's present time, or NONE. A message is due (latency_s +
 * per_byte_s·size) seconds after the sender's present time. */
typedef struct kl_inproc_stepped {
    double latency_s, per_byte_s;
    /* return the present time of an endpoint: number 1 is the master; 2, 3, … are workers */
    double (*now_s)(void *clock, kl_peer endpoint);
    void *clock;
} kl_inproc_stepped;

/* Make a hub. stepped: the clock and message times of a stepped hub, which the caller owns and may change
 * while the hub exists; NULL: the hub is for threads. */
kilter_status kl_inproc_new(const kl_inproc_stepped *stepped, kl_inproc **hub, kilter_error *error);
void kl_inproc_free(kl_inproc *hub); /* Call this after all endpoints of the hub are closed. */
kilter_status kl_inproc_listen(kl_inproc *hub, kl_transport **transport, kilter_error *error);
/* Open a worker's end. *endpoint (if not NULL) is set to the endpoint's number, which is also an
 * argument of now_s(). */
kilter_status kl_inproc_join(kl_inproc *hub, kl_peer *endpoint, kl_transport **transport,
                             kilter_error *error);
/* Return the time at which the endpoint's next event becomes due; HUGE_VAL: no event is on its way. For
 * stepped hubs only. */
double kl_inproc_next_s(const kl_inproc *hub, kl_peer endpoint);

/* --- mpi: a transport between the ranks of MPI_COMM_WORLD; rank 0 is the master --- */

/* Open the endpoint of this rank. All ranks must call this. Set *rank and *size as in MPI. First load
 * libkilter-openmpi or libkilter-mpich. The choice depends on the MPI that the program is linked with, else
 * on KILTER_MPI, else on the launcher. Start MPI if it is not running; close() then ends MPI. */
/* If the launcher keeps the other ranks alive, LEFT comes within a second of a peer's death
 * (docs/reference/faults.md). If a peer's host is silent, LEFT comes after lost_after_s: whole seconds, at
 * least 3; 0 stands for KL_LOST_AFTER_S. The status KILTER_ERR_USAGE means: MPI sees only one of several
 * processes, the launcher belongs to another MPI, or the library is missing. */
kilter_status kl_mpi_open(double lost_after_s, int *rank, int *size, kl_transport **transport,
                          kilter_error *error);

/* --- the operations of a transport, as functions for other folders --- */

static inline kilter_status kl_send(kl_transport *t, kl_peer peer, const kl_buffer *buffer,
                                    kilter_error *error) {
    if (buffer->failed)
        return kl_fail(error, KILTER_ERR_MEMORY, "building a message: memory ran out");
    return t->ops->send(t, peer, buffer->data, buffer->size, error);
}
/* Place an empty buffer for a large message in memory that `peer` can read. So sending the message copies
 * nothing. size: bytes of the message; 0: as many as the last message to this peer had. Sending gives the
 * memory away, so call this again before the next message. Each peer can have only one such buffer at a
 * time. */
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
static inline kilter_status kl_open_to_workers(kl_transport *t, char address[KL_ADDRESS_BYTES],
                                               kilter_error *error) {
    return t->ops->open(t, address, error);
}
static inline kilter_status kl_reach(kl_transport *t, const char *address, kl_peer *peer,
                                     kilter_error *error) {
    return t->ops->reach(t, address, peer, error);
}
static inline void kl_transport_wake(kl_transport *t) {
    t->ops->wake(t);
}
static inline void kl_transport_close(kl_transport *t) {
    if (t)
        t->ops->close(t);
}

#endif
