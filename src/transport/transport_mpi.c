/* Messages over MPI between rank 0, the master, and the other ranks.
 * This file uses only calls that work on every MPI, even when a rank dies: Isend, Irecv, Testsome, and one
 * posted receive for each peer. A message has a head and, if it is large, a rest:
 *
 *     TAG_HEAD   total length (8 bytes), then as much of the message as fits into EAGER_BYTES
 *     TAG_REST   the rest, in pieces whose sizes both sides know
 *
 * The posted receive is small. The rest of a message is received at its final place. */
/* A message with a rest ends with a seal of SEAL_BYTES. When a sender dies, MPICH 4.0 calls a receive
 * complete, without an error and without data. Therefore a missing seal means that the sender is dead.
 * Requests with a dead peer are abandoned: they may never complete, so this file neither waits for them nor
 * frees them. */
/* The first message of each side is for the endpoints themselves. The master invites the worker to connect to
 * the failure detector (liveness_mpi.h). Through this connection, called a line, each side notices when the
 * other side dies. The worker answers that its line works, or why it does not. */
/* A side's last message is a head whose length is the number BYE, which the other side answers in the same
 * way. Then no MPI request between the two sides is left. */
/* Workers exchange messages with each other after open(), which posts a receive for each other rank. A worker
 * does not notice the death of another worker. The master reports the death to the code that uses a worker's
 * endpoint, and this code drops the dead worker. */
#include "transport/transport.h"

#include <math.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kilter/version.h"
#include "transport/launch_mpi.h"
#include "transport/liveness_mpi.h"
#include "transport/mpi_library.h"
#include "transport/transport_private.h"
#include "transport/wait_mpi.h"

enum { TAG_HEAD = 1, TAG_REST = 2 };

enum {
    LENGTH_BYTES = 8,
    EAGER_BYTES = 4096,
    SEAL_BYTES = 8,
    PIECE_BYTES = 1 << 30, /* largest piece in bytes, because MPI counts bytes in an int */
    /* greatest number of messages to one peer that are given to MPI at the same time; further messages wait
     * in a queue */
    WINDOW = 8,
};

#define SEAL 0x6b696c7465722121
#define BYE  UINT64_MAX
/* the BYE of a side that knows of a dead rank; MPI_Finalize might then wait for ever */
#define BYE_AFTER_FAILURE (UINT64_MAX - 1)
/* close() gives up after this many seconds without a message; a living peer that computes is silent, too */
#define FAREWELL_S 10.0
/* open() gives up after this many seconds, or after lost_after_s if lost_after_s is longer */
#define MEET_S 30.0
#define LOOK_S 0.005 /* seconds between two checks whether a connection to a dead rank was cut */
/* seconds to wait for more messages of a dead peer after its latest message */
#define LAST_WORDS_S 0.1
#define SPIN_S       50e-6 /* after a message, the next message often comes within this many seconds */

static const char ADDRESS[] = "rank ";

typedef struct parcel { /* a message that is being sent */
    struct parcel *next;
    size_t peer;
    /* bytes: size of `data`; requests: number of the message's MPI requests that are not complete */
    size_t bytes, requests;
    uint8_t data[]; /* length of the message (LENGTH_BYTES), then the message */
} parcel;

typedef enum standing {
    LIVE,
    DROPPED, /* this side has dropped the peer; messages from the peer are received and discarded */
    OVER,    /* the peer has sent BYE or is dead, so no receive is posted for it */
} standing;

typedef struct peer {
    standing standing;
    bool said_bye;
    bool used;    /* true: a message was sent to or received from this peer; only used if both are workers */
    bool greeted; /* true: the peer's first message has arrived and is in `greeting` */
    kl_message greeting;
    /* if the peer's connection to the failure detector was cut: time of the cut, or of the last message after
     * the cut; otherwise 0 */
    double cut_s;
    parcel *waiting, *last_waiting;
    size_t flying; /* number of messages to this peer that MPI is sending */
    uint8_t head[EAGER_BYTES];
    uint8_t *body; /* the message of which further pieces are being received; NULL: there is none */
    /* size: bytes of the message; got: bytes received so far; coming: bytes to receive, including the seal
     * at its end */
    size_t size, got, coming;
    /* beginnings (heads) of messages that arrived while an earlier message was still incomplete; only used in
     * a simulation */
    kl_buffer later;
    size_t later_at; /* offset in `later` of the first head that is not handled yet */
} peer;

typedef struct mpi {
    kl_transport transport;
    MPI_Comm comm;
    bool ends_mpi;
    int rank, ranks;
    size_t count;
    peer *peers; /* [count] */

    /* All requests, in this order: [count] receives, one for each peer; in a simulation, one receive for a
     * head from any rank; [flying] sends. The array has room for one more request. */
    MPI_Request *requests;
    size_t receives;
    uint8_t any_head[EAGER_BYTES];
    parcel **parcels; /* [flying] for each send, the message to which it belongs */
    size_t flying, flying_capacity;
    bool gaps; /* true: some sends are complete or abandoned, so their places in `parcels` are free */

    int *done; /* [done_capacity] numbers of the requests that the last check found complete */
    MPI_Status *statuses;
    size_t done_capacity;

    kl_event_queue ready;
    atomic_bool woken;
    bool out_of_memory; /* true: a message was lost because memory ran out, so every later call fails */
    kl_mpi_wait wait;
    bool waits; /* true: the endpoint has been waiting for messages since wait.traffic_s */
    bool near;  /* true: all peers are on this host and have doorbells */

    kl_liveness *lines; /* connections to the failure detector; NULL: there are none */
    double looked_s;    /* time of the last check for cut connections of the failure detector */
    size_t cut; /* number of dead peers (their connections were cut) from which messages may still come */
    bool rank_failed; /* true: a rank is dead and MPI does not know it */
    bool open;        /* true: other workers can reach this worker */
} mpi;

/* Return the rank of peers[i]; peers has no entry for this rank itself. As a kl_peer, rank r is r + 1, so
 * the master is 1. A worker has only the master as a peer before open(). */
static int rank_of(const mpi *m, size_t i) {
    return (int)i + ((int)i >= m->rank);
}

static size_t place_of(const mpi *m, int rank) {
    return (size_t)(rank - (rank > m->rank));
}

static kl_peer name_of(const mpi *m, size_t i) {
    return (kl_peer)rank_of(m, i) + 1;
}

static peer *peer_named(mpi *m, kl_peer name) {
    bool exists = name >= 1 && name <= (kl_peer)m->ranks && name != (kl_peer)m->rank + 1;
    size_t place = exists ? place_of(m, (int)name - 1) : m->count;
    return place < m->count ? &m->peers[place] : NULL;
}

static void tell(mpi *m, const kl_event *event) {
    m->out_of_memory |= !kl_event_queue_push(&m->ready, event);
}

static kilter_status mpi_error(int code, const char *doing, kilter_error *error) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return kl_fail(error, KILTER_ERR_MPI, "%s: MPI says: %.300s; start the program again", doing, text);
}

/* --- sending --- */

/* Return the number of bytes of the seal, which shows that a message of `size` bytes has arrived completely.
 * There is no seal if the message has only a head, or if ranks cannot die. */
static size_t seal_of(size_t size) {
    return kl_mpi_ranks_die && size > EAGER_BYTES - LENGTH_BYTES ? SEAL_BYTES : 0;
}

static void throw_waiting_away(peer *p) {
    while (p->waiting) {
        parcel *first = p->waiting;
        p->waiting = first->next;
        free(first);
    }
    p->last_waiting = NULL;
}

static void lose(mpi *m, size_t i) {
    peer *p = &m->peers[i];
    if (p->standing == LIVE)
        tell(m, &(kl_event){.kind = KL_EVENT_LEFT, .peer = name_of(m, i)});
    p->standing = OVER;
    p->said_bye = true;
    throw_waiting_away(p);
    m->requests[i] = MPI_REQUEST_NULL;
    MPI_Request *sends = m->requests + m->receives;
    for (size_t f = 0; f < m->flying; f++)
        if (sends[f] != MPI_REQUEST_NULL && m->parcels[f]->peer == i) {
            sends[f] = MPI_REQUEST_NULL;
            m->gaps = true;
        }
}

/* Record that a rank is dead and MPI does not know it. From now on, collective operations would hang. */
static void lose_dead(mpi *m, size_t i) {
    const char *hint = kl_mpi_hint();
    if (!m->rank_failed && m->rank == 0 && hint)
        fprintf(stderr, "rank %d is dead: %s\n", rank_of(m, i), hint);
    m->rank_failed = true;
    lose(m, i);
}

static bool reserve_flights(mpi *m, size_t more) {
    size_t needed = m->flying + more;
    if (needed <= m->flying_capacity)
        return true;
    size_t capacity = 2 * needed;
    MPI_Request *requests = realloc(m->requests, (m->receives + capacity + 1) * sizeof *requests);
    if (requests)
        m->requests = requests;
    parcel **parcels = realloc(m->parcels, capacity * sizeof *parcels);
    if (parcels)
        m->parcels = parcels;
    if (!requests || !parcels)
        return false;
    m->flying_capacity = capacity;
    return true;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Let MPI send a message piece by piece. false: MPI refused a piece. */
static bool launch(mpi *m, parcel *it) {
    size_t at = 0;
    while (at < it->bytes) {
        size_t piece = smaller(it->bytes - at, at ? PIECE_BYTES : EAGER_BYTES);
        MPI_Request request;
        if (MPI_Isend(it->data + at, (int)piece, MPI_BYTE, rank_of(m, it->peer), at ? TAG_REST : TAG_HEAD,
                      m->comm, &request) != MPI_SUCCESS)
            return false;
        m->requests[m->receives + m->flying] = request;
        m->parcels[m->flying++] = it;
        it->requests++;
        at += piece;
    }
    kl_bells_ring(m->wait.bells, (uint32_t)rank_of(m, it->peer));
    return true;
}

static void launch_waiting(mpi *m, size_t i) {
    peer *p = &m->peers[i];
    while (p->waiting && p->flying < WINDOW) {
        parcel *it = p->waiting;
        if (!reserve_flights(m, it->bytes / PIECE_BYTES + 2)) {
            m->out_of_memory = true;
            return;
        }
        p->waiting = it->next;
        if (!p->waiting)
            p->last_waiting = NULL;
        p->flying++;
        if (!launch(m, it)) {
            if (!it->requests) {
                p->flying--;
                free(it);
            }
            lose(m, i);
        }
    }
}

/* Queue a message to peers[i]. `length` is the message's size, or BYE. false: memory ran out. */
static bool queue(mpi *m, size_t i, uint64_t length, const void *data, size_t size) {
    parcel *it = size <= SIZE_MAX - sizeof(parcel) - LENGTH_BYTES - SEAL_BYTES
                     ? malloc(sizeof *it + LENGTH_BYTES + size + seal_of(size))
                     : NULL;
    if (!it)
        return false;
    *it = (parcel){.peer = i, .bytes = LENGTH_BYTES + size + seal_of(size)};
    kl_store_u64(it->data, length);
    if (size)
        memcpy(it->data + LENGTH_BYTES, data, size);
    if (seal_of(size) > 0)
        kl_store_u64(it->data + LENGTH_BYTES + size, SEAL);
    peer *p = &m->peers[i];
    if (p->last_waiting)
        p->last_waiting->next = it;
    else
        p->waiting = it;
    p->last_waiting = it;
    launch_waiting(m, i);
    return true;
}

static void say_bye(mpi *m, size_t i) {
    if (m->peers[i].said_bye)
        return;
    m->peers[i].said_bye = true;
    if (!queue(m, i, m->rank_failed ? BYE_AFTER_FAILURE : BYE, NULL, 0))
        m->out_of_memory = true;
}

/* Handle the end of send number `f`. After the last send of a message, free the message and send the next one
 * that waits. */
static void settle_send(mpi *m, size_t f, bool failed) {
    parcel *it = m->parcels[f];
    size_t i = it->peer;
    m->gaps = true;
    if (failed)
        lose(m, i);
    if (--it->requests == 0) {
        m->peers[i].flying--;
        free(it);
        launch_waiting(m, i);
    }
}

static void close_gaps(mpi *m) {
    MPI_Request *sends = m->requests + m->receives;
    size_t kept = 0;
    for (size_t f = 0; f < m->flying; f++)
        if (sends[f] != MPI_REQUEST_NULL) {
            sends[kept] = sends[f];
            m->parcels[kept++] = m->parcels[f];
        }
    m->flying = kept;
    m->gaps = false;
}

/* --- receiving --- */

static void post_head(mpi *m, size_t i) {
    if (MPI_Irecv(m->peers[i].head, EAGER_BYTES, MPI_BYTE, rank_of(m, i), TAG_HEAD, m->comm,
                  &m->requests[i]) != MPI_SUCCESS)
        lose(m, i);
}

static void post_any_head(mpi *m) {
    if (MPI_Irecv(m->any_head, EAGER_BYTES, MPI_BYTE, MPI_ANY_SOURCE, TAG_HEAD, m->comm,
                  &m->requests[m->count]) != MPI_SUCCESS)
        for (size_t i = 0; i < m->count; i++)
            lose(m, i);
}

static void post_rest(mpi *m, size_t i) {
    peer *p = &m->peers[i];
    int piece = (int)smaller(p->coming - p->got, PIECE_BYTES);
    if (MPI_Irecv(p->body + p->got, piece, MPI_BYTE, rank_of(m, i), TAG_REST, m->comm, &m->requests[i]) !=
        MPI_SUCCESS)
        lose(m, i);
    /* wake the sender, which may wait for this receive */
    kl_bells_ring(m->wait.bells, (uint32_t)rank_of(m, i));
}

static void hear_bye(mpi *m, size_t i) {
    peer *p = &m->peers[i];
    if (p->waiting) { /* discard waiting messages; a peer that has sent BYE reads nothing more except a BYE */
        throw_waiting_away(p);
        p->said_bye = false;
    }
    if (p->standing == LIVE)
        tell(m, &(kl_event){.kind = KL_EVENT_LEFT, .peer = name_of(m, i)});
    p->standing = OVER;
    say_bye(m, i);
}

static void hear_message(mpi *m, size_t i) {
    peer *p = &m->peers[i];
    if (p->coming != p->size && kl_load_u64(p->body + p->size) != SEAL) {
        lose_dead(m, i);
        return;
    }
    kl_message message = {.data = p->body, .size = p->size, .owner = p->body, .release = free};
    if (!p->greeted)
        p->greeting = message;
    else if (p->standing == LIVE)
        tell(m, &(kl_event){.kind = KL_EVENT_MESSAGE, .peer = name_of(m, i), .message = message});
    else
        free(p->body);
    p->greeted = true;
    p->body = NULL;
    if (kl_mpi_ranks_die)
        post_head(m, i);
}

static void hear_head(mpi *m, size_t i, size_t bytes) {
    peer *p = &m->peers[i];
    uint64_t length = bytes < LENGTH_BYTES ? 0 : kl_load_u64(p->head);
    p->used = true;
    if (length >= BYE_AFTER_FAILURE && bytes == LENGTH_BYTES) {
        m->rank_failed |= length == BYE_AFTER_FAILURE;
        hear_bye(m, i);
        return;
    }
    if (bytes < LENGTH_BYTES ||
        (length < EAGER_BYTES - LENGTH_BYTES ? bytes != LENGTH_BYTES + length : bytes != EAGER_BYTES)) {
        lose(m, i); /* the peer is treated as lost, because it uses another version of the protocol */
        return;
    }
    p->size = (size_t)length;
    p->got = bytes - LENGTH_BYTES;
    p->coming = p->size + seal_of(p->size);
    p->body = p->size <= SIZE_MAX - SEAL_BYTES ? malloc(p->size + SEAL_BYTES) : NULL;
    if (!p->body) {
        m->out_of_memory = true;
        return;
    }
    kl_store_u64(p->body + p->size, ~SEAL);
    memcpy(p->body, p->head + LENGTH_BYTES, p->got);
    if (p->got < p->coming)
        post_rest(m, i);
    else
        hear_message(m, i);
}

static void hear(mpi *m, size_t i, const MPI_Status *status) {
    peer *p = &m->peers[i];
    int bytes = 0;
    MPI_Get_count(status, MPI_BYTE, &bytes);
    if (p->standing == OVER)
        return;
    if (p->cut_s > 0)
        p->cut_s = kl_monotonic_s();
    if (!p->body) {
        hear_head(m, i, (size_t)bytes);
        return;
    }
    p->got += (size_t)bytes;
    /* wake the sender, which may wait until this piece has arrived */
    kl_bells_ring(m->wait.bells, (uint32_t)rank_of(m, i));
    if (p->got < p->coming)
        post_rest(m, i);
    else
        hear_message(m, i);
}

/* Handle the stored heads, which arrived before an earlier message was complete. Stop at a head whose message
 * has further pieces. */
static void hear_later(mpi *m, size_t i) {
    peer *p = &m->peers[i];
    while (!p->body && p->later_at < p->later.size) {
        kl_reader reader = kl_reader_of(p->later.data + p->later_at, p->later.size - p->later_at);
        size_t bytes;
        const uint8_t *head = kl_get_span(&reader, &bytes);
        memcpy(p->head, head, bytes);
        p->later_at += reader.at;
        if (p->standing != OVER)
            hear_head(m, i, bytes);
    }
    if (p->later_at == p->later.size) {
        kl_buffer_clear(&p->later);
        p->later_at = 0;
    }
}

/* Handle a head that was received with the receive for any sender. */
static void hear_any(mpi *m, const MPI_Status *status) {
    size_t i = place_of(m, status->MPI_SOURCE);
    peer *p = &m->peers[i];
    int bytes = 0;
    MPI_Get_count(status, MPI_BYTE, &bytes);
    if (p->body) {
        kl_put_span(&p->later, m->any_head, (size_t)bytes);
        m->out_of_memory |= p->later.failed;
    } else if (p->standing != OVER) {
        memcpy(p->head, m->any_head, (size_t)bytes);
        hear_head(m, i, (size_t)bytes);
    }
    post_any_head(m);
}

/* --- checking for complete requests --- */

static bool reserve_done(mpi *m) {
    size_t needed = m->receives + m->flying;
    if (needed <= m->done_capacity)
        return true;
    size_t capacity = 2 * needed;
    int *done = realloc(m->done, capacity * sizeof *done);
    if (done)
        m->done = done;
    MPI_Status *statuses = realloc(m->statuses, capacity * sizeof *statuses);
    if (statuses)
        m->statuses = statuses;
    if (done && statuses)
        m->done_capacity = capacity;
    return done && statuses;
}

/* Check for complete requests. *faulty: true if a request failed; its status then gives the error. */
static kilter_status look(mpi *m, bool for_ever, int *done, bool *faulty, kilter_error *error) {
    kl_mpi_sight sight = {.requests = m->requests,
                          .receives = (int)m->receives,
                          .sends = (int)m->flying,
                          .which = m->done,
                          .statuses = m->statuses};
    int code = kl_mpi_look(&m->wait, &sight, for_ever);
    *done = sight.done;
    *faulty = false;
    if (code == MPI_SUCCESS)
        return KILTER_OK;
    int class = code;
    MPI_Error_class(code, &class);
    *faulty = class == MPI_ERR_IN_STATUS;
    return *faulty ? KILTER_OK : mpi_error(code, "looking for messages of the other ranks", error);
}

static kilter_status end_wait(mpi *m) {
    if (m->waits)
        kl_mpi_waited(&m->wait);
    m->waits = false;
    return KILTER_OK;
}

static void note_traffic(mpi *m) {
    end_wait(m);
    kl_mpi_traffic(&m->wait);
}

static void rest(mpi *m, double most_s) {
    if (!m->waits)
        m->wait.counted_s = kl_monotonic_s(); /* the time before this call does not count as waiting */
    m->waits = true;
    kl_mpi_rest(&m->wait, m->near, most_s);
}

/* Handle complete receives and free complete sends. for_ever has the meaning that it has in kl_mpi_look(). */
static kilter_status progress(mpi *m, bool for_ever, kilter_error *error) {
    int done;
    bool faulty;
    if (!reserve_done(m))
        m->out_of_memory = true;
    if (m->out_of_memory)
        return kl_fail(
            error, KILTER_ERR_MEMORY,
            "exchanging messages with %zu ranks: memory ran out; use smaller messages or fewer ranks",
            m->count);
    kilter_status status = look(m, for_ever, &done, &faulty, error);
    if (status)
        return status;
    for (int d = 0; d < done; d++) {
        size_t at = (size_t)m->done[d];
        bool failed = faulty && m->statuses[d].MPI_ERROR != MPI_SUCCESS;
        if (at >= m->receives) {
            settle_send(m, at - m->receives, failed);
        } else if (at == m->count) {
            hear_any(m, &m->statuses[d]);
        } else if (failed) {
            if (!kl_mpi_says_dead(m->statuses[d].MPI_ERROR))
                m->rank_failed = true;
            lose(m, at);
        } else {
            hear(m, at, &m->statuses[d]);
            hear_later(m, at);
        }
    }
    if (m->gaps)
        close_gaps(m);
    if (done)
        note_traffic(m);
    return KILTER_OK;
}

/* Check whether connections of the failure detector were cut. A peer whose connection was cut is dead, but
 * its earlier messages may still come, so wait for these. */
static void look_at_lines(mpi *m) {
    double now_s = m->lines ? kl_monotonic_s() : 0;
    if (!m->lines || now_s - m->looked_s < LOOK_S)
        return;
    m->looked_s = now_s;
    for (size_t i; kl_liveness_cut(m->lines, &i); m->cut++)
        m->peers[i].cut_s = now_s;
    for (size_t i = 0; m->cut > 0 && i < m->count; i++) {
        peer *p = &m->peers[i];
        if (p->cut_s == 0 || (p->standing != OVER && now_s - p->cut_s < LAST_WORDS_S))
            continue;
        p->cut_s = 0;
        m->cut--;
        if (p->standing != OVER)
            lose_dead(m, i);
    }
    if (m->gaps)
        close_gaps(m);
}

/* --- the operations of the transport --- */

static kilter_status mpi_send(kl_transport *transport, kl_peer name, const void *data, size_t size,
                              kilter_error *error) {
    mpi *m = (mpi *)transport;
    peer *p = peer_named(m, name);
    if (!p || p->standing != LIVE || p->said_bye)
        return kl_cannot_send(KILTER_ERR_PEER, name, size, error);
    p->used = true;
    if (!queue(m, (size_t)(p - m->peers), size, data, size))
        return kl_cannot_send(KILTER_ERR_MEMORY, name, size, error);
    note_traffic(m); /* an answer may follow soon */
    return KILTER_OK;
}

static kilter_status mpi_poll(kl_transport *transport, double timeout_s, kl_event *event,
                              kilter_error *error) {
    mpi *m = (mpi *)transport;
    double deadline_s = kl_deadline_s(timeout_s);
    *event = (kl_event){.kind = KL_EVENT_NONE};
    for (;;) {
        if (atomic_load(&m->woken) && atomic_exchange(&m->woken, false))
            return end_wait(m);
        if (!m->ready.count) {
            kilter_status status = progress(m, timeout_s < 0, error);
            if (status)
                return status;
        }
        look_at_lines(m);
        if (kl_event_queue_pop(&m->ready, event) || timeout_s == 0)
            return KILTER_OK;
        double remaining_s = deadline_s - kl_monotonic_s();
        if (remaining_s <= 0)
            return end_wait(m);
        rest(m, remaining_s);
    }
}

static void mpi_drop(kl_transport *transport, kl_peer name) {
    mpi *m = (mpi *)transport;
    peer *p = peer_named(m, name);
    if (!p)
        return;
    kl_event_queue_forget(&m->ready, name);
    if (p->standing != LIVE)
        return;
    if (m->rank > 0 && p != &m->peers[0]) { /* do not wait for a BYE, because the other worker may be dead */
        p->standing = DROPPED;
        say_bye(m, (size_t)(p - m->peers));
        lose(m, (size_t)(p - m->peers));
        close_gaps(m);
        return;
    }
    p->standing = DROPPED;
    throw_waiting_away(p);
    say_bye(m, (size_t)(p - m->peers));
}

/* Make the other workers peers of this worker, too. false: memory ran out. */
static bool widen(mpi *m) {
    size_t more = (size_t)m->ranks - 1 - m->count;
    MPI_Request *requests =
        realloc(m->requests, (m->receives + more + m->flying_capacity + 1) * sizeof *requests);
    if (!requests)
        return false;
    memmove(requests + m->count + more, requests + m->count,
            (m->receives - m->count + m->flying) * sizeof *requests);
    m->requests = requests;
    m->receives += more;
    for (; more > 0; more--, m->count++) {
        m->requests[m->count] = MPI_REQUEST_NULL;
        m->peers[m->count].greeted = true;
    }
    return true;
}

/* Let other workers reach this worker: post a receive for each of the other workers. */
static kilter_status mpi_listen(kl_transport *transport, char address[KL_ADDRESS_BYTES],
                                kilter_error *error) {
    mpi *m = (mpi *)transport;
    if (m->rank == 0)
        return kl_fail(error, KILTER_ERR_USAGE, "listening for other workers: only a worker can do this");
    if (!m->open && !widen(m))
        return kl_fail(error, KILTER_ERR_MEMORY, "listening for other workers: memory ran out");
    for (size_t i = 1; i < m->count && !m->open && kl_mpi_ranks_die; i++)
        post_head(m, i);
    m->open = true;
    m->near = m->near && kl_bells_there(m->wait.bells) == (uint32_t)m->ranks;
    snprintf(address, KL_ADDRESS_BYTES, "%s%d", ADDRESS, m->rank);
    return KILTER_OK;
}

static kilter_status mpi_reach(kl_transport *transport, const char *address, kl_peer *peer,
                               kilter_error *error) {
    mpi *m = (mpi *)transport;
    char *end = NULL;
    bool ours = m->open && strncmp(address, ADDRESS, sizeof ADDRESS - 1) == 0;
    long rank = ours ? strtol(address + sizeof ADDRESS - 1, &end, 10) : 0;
    if (!ours || *end || rank <= 0 || rank >= m->ranks || rank == m->rank)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "reaching \"%.200s\": no worker of this farm has this address", address);
    *peer = (kl_peer)rank + 1;
    return KILTER_OK;
}

static void mpi_wake(kl_transport *transport) {
    mpi *m = (mpi *)transport;
    atomic_store(&m->woken, true);
    kl_bells_ring(m->wait.bells, (uint32_t)m->rank);
}

/* --- closing an endpoint --- */

/* Return whether this side must send BYE to a peer. Two workers that have exchanged no message do not send
 * BYE, because one of them may not have called open() and would not answer. */
static bool says_bye(const mpi *m, size_t i) {
    return m->rank == 0 || i == 0 || m->peers[i].used;
}

static bool all_said(const mpi *m) {
    for (size_t i = 0; i < m->count; i++)
        if (says_bye(m, i) && (m->peers[i].standing != OVER || m->peers[i].waiting))
            return false;
    return m->flying == 0;
}

/* Send BYE to all peers, and receive messages until all of them have sent BYE, too. */
static bool part(mpi *m) {
    for (size_t i = 0; i < m->count; i++) {
        if (m->peers[i].standing == LIVE)
            m->peers[i].standing = DROPPED;
        if (says_bye(m, i))
            say_bye(m, i);
    }
    kl_mpi_traffic(&m->wait);
    while (!all_said(m)) {
        if (progress(m, !kl_mpi_ranks_die, NULL) || kl_monotonic_s() - m->wait.traffic_s > FAREWELL_S)
            return false;
        look_at_lines(m);
        rest(m, HUGE_VAL);
    }
    return true;
}

static void free_all(mpi *m) {
    for (size_t i = 0; m->peers && i < m->count; i++) {
        throw_waiting_away(&m->peers[i]);
        free(m->peers[i].body);
        kl_message_release(&m->peers[i].greeting);
        kl_buffer_free(&m->peers[i].later);
    }
    kl_event_queue_free(&m->ready);
    free(m->peers);
    free(m->requests);
    free(m->parcels);
    free(m->done);
    free(m->statuses);
    free(m);
}

static void mpi_close(kl_transport *transport) {
    mpi *m = (mpi *)transport;
    bool parted = part(m), ends_mpi = m->ends_mpi, rank_failed = m->rank_failed;
    /* cancel the receives of living peers that did not send BYE in time */
    for (size_t i = 0; i < m->receives; i++)
        if (m->requests[i] != MPI_REQUEST_NULL) {
            MPI_Cancel(&m->requests[i]);
            MPI_Request_free(&m->requests[i]);
        }
    kl_mpi_wait_end(&m->wait);
    kl_liveness_close(m->lines);
    if (parted && !rank_failed) {
        MPI_Comm_free(&m->comm);
        free_all(m);
    } else {
        kl_mpi_keep(m);
    }
    if (ends_mpi)
        kl_mpi_end(rank_failed);
}

/* The operations of an endpoint. Only its own thread may use an endpoint with mpi_ops[0]. Several threads may
 * use an endpoint with mpi_ops[1], one after the other. */
static const kl_transport_ops mpi_ops[2] = {{.name = "mpi",
                                             .threads = false,
                                             .send = mpi_send,
                                             .poll = mpi_poll,
                                             .drop = mpi_drop,
                                             .wake = mpi_wake,
                                             .close = mpi_close,
                                             .open = mpi_listen,
                                             .reach = mpi_reach},
                                            {.name = "mpi",
                                             .threads = true,
                                             .send = mpi_send,
                                             .poll = mpi_poll,
                                             .drop = mpi_drop,
                                             .wake = mpi_wake,
                                             .close = mpi_close,
                                             .open = mpi_listen,
                                             .reach = mpi_reach}};

/* --- opening an endpoint --- */

static mpi *new_mpi(bool any_thread) {
    mpi *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->transport.ops = &mpi_ops[any_thread];
    MPI_Comm_rank(MPI_COMM_WORLD, &m->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &m->ranks);
    m->count = m->rank == 0 ? (size_t)m->ranks - 1 : 1;
    /* make room for all ranks, although a worker uses only peers[0] before open() */
    m->peers = calloc((size_t)m->ranks, sizeof *m->peers);
    m->receives = m->count + !kl_mpi_ranks_die;
    m->requests = malloc((m->receives + 1) * sizeof(MPI_Request));
    atomic_init(&m->woken, false);
    if (!m->peers || !m->requests) {
        free_all(m);
        return NULL;
    }
    for (size_t i = 0; i < m->count; i++) {
        m->requests[i] = MPI_REQUEST_NULL;
        m->peers[i].greeted = !kl_mpi_ranks_die;
        tell(m, &(kl_event){.kind = KL_EVENT_JOINED, .peer = name_of(m, i)});
    }
    return m;
}

/* --- the first messages, and the failure detector --- */

static bool met(const mpi *m) {
    for (size_t i = 0; i < m->count; i++)
        if (m->peers[i].standing == LIVE && !m->peers[i].greeted)
            return false;
    return true;
}

/* Wait for the first message of each peer. All ranks have just started MPI, so a peer whose message does not
 * come in time is dead. */
static kilter_status await_greetings(mpi *m, double patience_s, kilter_error *error) {
    double until_s = kl_monotonic_s() + patience_s;
    while (!met(m) && kl_monotonic_s() < until_s) {
        kilter_status status = progress(m, false, error);
        if (status != KILTER_OK)
            return status;
        look_at_lines(m);
        rest(m, LOOK_S);
    }
    for (size_t i = 0; i < m->count; i++)
        if (m->peers[i].standing == LIVE && !m->peers[i].greeted)
            lose_dead(m, i);
    return KILTER_OK;
}

/* Warn that some ranks are not connected to the failure detector. The farm still works until a rank dies. */
static void complain(size_t ranks, const char *why) {
    fprintf(stderr, "%zu rank%s not connected to the failure detector, so %s death will not be noticed: %s\n",
            ranks, ranks == 1 ? " is" : "s are", ranks == 1 ? "its" : "their", why);
}

/* Send the first message to peers[i]. It contains the token with which processes of one host open their
 * doorbells. If the failure detector works, it also contains the invitation to it. false: memory ran out. */
static bool invite(mpi *m, size_t i, uint64_t token) {
    kl_buffer invitation = {0};
    kl_put_u64(&invitation, token);
    if (m->lines)
        kl_liveness_invite(m->lines, i, &invitation);
    bool fits = !invitation.failed && queue(m, i, invitation.size, invitation.data, invitation.size);
    kl_buffer_free(&invitation);
    return fits;
}

static kilter_status meet_workers(mpi *m, double lost_after_s, kilter_error *error) {
    kilter_error why = {KILTER_OK, ""};
    if (kl_liveness_listen(m->count, lost_after_s, &m->lines, &why) != KILTER_OK)
        complain(m->count, why.text);
    uint64_t token = kl_token();
    uint32_t ranks = (uint32_t)m->count + 1;
    m->wait.bells = kl_bells_open(token, ranks, 0);
    for (size_t i = 0; i < m->count; i++)
        if (!invite(m, i, token))
            m->out_of_memory = true;
    kilter_status status = await_greetings(m, fmax(lost_after_s, MEET_S), error);
    m->near = kl_bells_there(m->wait.bells) == ranks;
    kl_bells_settle(m->wait.bells);
    size_t without = 0, first = 0;
    for (size_t i = m->count; i-- > 0;)
        if (m->lines && m->peers[i].greeting.size > 0) {
            without++;
            first = i;
        }
    if (without > 0)
        complain(without, (const char *)m->peers[first].greeting.data);
    return status;
}

static kilter_status meet_master(mpi *m, double lost_after_s, kilter_error *error) {
    kilter_error why = {KILTER_OK, ""};
    double patience_s = fmax(lost_after_s, MEET_S);
    kilter_status status = await_greetings(m, patience_s, error);
    const kl_message *invitation = &m->peers[0].greeting;
    if (status != KILTER_OK || m->peers[0].standing != LIVE)
        return status;
    const size_t token = sizeof(uint64_t);
    if (invitation->size >= token) {
        m->wait.bells = kl_bells_open(kl_load_u64(invitation->data), (uint32_t)m->ranks, (uint32_t)m->rank);
        m->near = kl_bells_is_there(m->wait.bells, 0);
        m->wait.may_pin = kl_bells_cores(m->wait.bells) > 1;
        m->wait.first = 1;
        if (!m->near) { /* do without doorbells, because the master is on another host */
            kl_bells_close(m->wait.bells);
            m->wait.bells = NULL;
        }
    }
    if (invitation->size > token)
        kl_liveness_connect((const uint8_t *)invitation->data + token, invitation->size - token, lost_after_s,
                            patience_s / 2, &m->lines, &why);
    size_t size = why.status == KILTER_OK ? 0 : strlen(why.text) + 1;
    if (!queue(m, 0, size, why.text, size))
        m->out_of_memory = true;
    return KILTER_OK;
}

static kilter_status meet(mpi *m, double lost_after_s, kilter_error *error) {
    if (!kl_mpi_ranks_die)
        return KILTER_OK;
    kilter_status status =
        m->rank == 0 ? meet_workers(m, lost_after_s, error) : meet_master(m, lost_after_s, error);
    for (size_t i = 0; i < m->count; i++)
        kl_message_release(&m->peers[i].greeting);
    return status;
}

/* Duplicate MPI_COMM_WORLD. This operation completes only when all ranks have called it. If the program
 * started MPI itself, some ranks may never call it, so the wait has a limit. SMPI has no MPI_Comm_idup(). */
static kilter_status duplicate_world(mpi *m, kilter_error *error) {
    static const char doing[] = "opening the farm's mpi transport";
    MPI_Request request = MPI_REQUEST_NULL;
    double patience_s;
    kilter_status status = kl_mpi_patience_s(&patience_s, error);
    if (status != KILTER_OK)
        return status;
    int code = kl_mpi_ranks_die ? MPI_Comm_idup(MPI_COMM_WORLD, &m->comm, &request)
                                : MPI_Comm_dup(MPI_COMM_WORLD, &m->comm);
    if (code != MPI_SUCCESS)
        return mpi_error(code, "duplicating MPI_COMM_WORLD", error);
    status = kl_mpi_ranks_die ? kl_mpi_await_ranks(&request, doing, patience_s, error) : KILTER_OK;
    if (status == KILTER_OK)
        MPI_Comm_set_errhandler(m->comm, MPI_ERRORS_RETURN);
    return status;
}

/* Open the endpoint of this rank. MPI must be running. */
static kilter_status open_endpoint(bool ends_mpi, bool any_thread, double lost_after_s, mpi **made,
                                   kilter_error *error) {
    mpi *m = new_mpi(any_thread);
    if (!m || m->out_of_memory || !reserve_done(m)) {
        if (m)
            free_all(m);
        return kl_fail(error, KILTER_ERR_MEMORY, "opening the mpi transport: memory ran out");
    }
    kilter_status status = duplicate_world(m, error);
    if (status != KILTER_OK) {
        kl_mpi_keep(m); /* the memory must stay, because MPI may still write the communicator into it */
        return status;
    }
    m->ends_mpi = ends_mpi;
    for (size_t i = 0; i < m->count && kl_mpi_ranks_die; i++)
        post_head(m, i);
    if (!kl_mpi_ranks_die)
        post_any_head(m);
    kl_mpi_wait_begin(&m->wait);
    m->wait.spin_s = SPIN_S;
    status = meet(m, lost_after_s > 0 ? lost_after_s : KL_LOST_AFTER_S, error);
    if (status == KILTER_OK)
        *made = m;
    else
        mpi_close(&m->transport);
    return status;
}

static kilter_status mpi_open(double lost_after_s, int *rank, int *size, kl_transport **transport,
                              kilter_error *error) {
    bool started;
    int provided = MPI_THREAD_SINGLE;
    kl_mpi_watchdog *watchdog;
    mpi *m = NULL;
    kilter_status status = kl_mpi_start(&started, &provided, &watchdog, error);
    if (status)
        return status;
    status = kl_mpi_check_world("opening the mpi transport", error);
    if (!status)
        status = open_endpoint(started, provided >= MPI_THREAD_MULTIPLE, lost_after_s, &m, error);
    kl_mpi_started(watchdog);
    if (status) {
        int finished = 0;
        MPI_Finalized(&finished);
        if (started && !finished)
            kl_mpi_end(false);
        return status;
    }
    *rank = m->rank;
    *size = m->ranks;
    *transport = &m->transport;
    return KILTER_OK;
}

const kl_mpi_library kl_mpi_library_linked = {.version = KILTER_VERSION, .open = mpi_open};
