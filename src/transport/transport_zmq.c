/* Messages over libzmq: a ROUTER at the master, a DEALER at each worker.
 *
 * A message is one frame. The kind of a frame is its last byte, so that the content begins at the frame's
 * beginning and needs no copy. A large message is a series of frames, FIRST PART … LAST. Between two of these
 * frames libzmq can send its heartbeats, however slow the link is. A connection has these frames:
 *
 *     worker                         master
 *       | ---------- HELLO -----------> |     JOINED
 *       | <-------- WELCOME ----------- |     (JOINED at the worker)
 *       | <---- DATA … in both … -----> |     MESSAGE
 *       | <------- STILL_THERE -------- |     (none: the master tests the connection)
 *       | ----------- BYE ------------> |     LEFT      (or the other way round; a BYE is answered with BYE)
 */
/* A worker that was forked from its master says so in its HELLO. The master's WELCOME then names the arenas
 * that both share. The contents of a large message between the two are then in an arena (shared memory,
 * arena.h). Only one frame, of the kind LIES, is sent, which tells where in the arena the message lies. */
/* Workers reach each other in the same way as they reach the master. A worker has a ROUTER for workers that
 * reach it, and a DEALER for each worker that it reaches. */
/* The endpoints with these sockets are called the worker's mesh. The worker's endpoint to the master also
 * checks the mesh for events. A worker knows only the workers' keys, so its ROUTER uses these keys, too. */
/* A side that dies sends no BYE. Then the socket's monitor reports the end of the connection, and LEFT
 * follows all messages that had arrived. Each DEALER makes one connection only: if libzmq reconnected by
 * itself, a worker could continue its conversation with a restarted master. */
#include "transport/transport.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include "transport/arena.h"
#include "transport/transport_private.h"
#include "transport/zmq_curve.h"
#include "transport/zmq_endpoint.h"
#include "transport/zmq_peers.h"

enum {
    DATA = 'd',
    HELLO = 'h',
    WELCOME = 'w',
    BYE = 'b',
    STILL_THERE = 's',
    FIRST = 'f',
    PART = 'p',
    LAST = 'l',
    LIES = 'r'
};

/* the digit 2 is the version of Kilter's protocol */
static const char hello[] = {'k', 'i', 'l', 't', 'e', 'r', '2', HELLO};
static const char welcome[] = {'k', 'i', 'l', 't', 'e', 'r', '2', WELCOME};
enum {
    /* bytes of the protocol version at the beginning of HELLO and WELCOME; details may follow it */
    VERSION_BYTES = sizeof hello - 1,
    /* bytes of the details in a forked worker's HELLO: the arenas' token and the worker's process number */
    FORKED_BYTES = 16,
    PAIR_BYTES = 4, /* size in bytes of the number of the worker's pair of arenas, which WELCOME contains */
};

enum {
    /* greatest numbers of bytes of a message, and of one part of a message. A part must be so short that even
       a slow link carries it before the receiver counts the sender as lost. */
    MESSAGE_BYTES_MAX = 1 << 30,
    PART_BYTES = 256 * 1024,
    FRAME_BYTES_MAX = PART_BYTES + 1,
    CONNECT_MS = 5000,
    /* six days in milliseconds; libzmq may add as much again, and the sum must fit into an int */
    NEVER_MS = 500000000,
    BACKLOG = 1024,
    /* look() returns after this many frames without an event, so that the clock is checked */
    FRAMES_PER_LOOK = 1024,
    /* the monitor's reports are read after this many frames, even if more frames wait */
    FRAMES_PER_REPORT = 64,
};
/* number of open files that a few connections between workers need */
enum { FILES_OF_MESH = 64 };
/* seconds for which a master that closes waits for the workers' BYE; a worker waits for lost_after_s */
#define MASTER_LINGER_S 2.0
#define HANDSHAKE_S     60.0 /* a handshake takes at most this number of seconds, and at most lost_after_s */
#define COMPLAIN_S      60.0 /* smallest number of seconds between two reports about strangers */
#define FIRST_RETRY_S   0.01
#define LONGEST_RETRY_S 0.5
#define UNUSED_S        1.0 /* unused memory of arenas is freed after this many seconds */
/* two peers (rivals) may claim one connection; seconds between two tests of which of them is connected */
#define ASK_AGAIN_S 0.001

enum {
    THE_MASTER = 1,
    HANDSHAKES_MAX = 3, /* number of failed handshakes in a row after which the key counts as wrong */
};

typedef struct kl_retry { /* at_s: time of the next attempt to connect; pause_s: seconds between attempts */
    double at_s, pause_s;
} kl_retry;

typedef enum stage { SEEKING, JOINED, OVER } stage;

typedef struct endpoint endpoint;

/* The endpoints by which a worker exchanges messages with other workers. The upper bits of a peer's name
 * are the number of its endpoint: 1 is the listener, and `FIRST_DIALLED` + i is dialled[i]. */
typedef struct mesh {
    void *context;
    endpoint *listener;
    endpoint **dialled; /* endpoints to workers that this one has reached; NULL: that worker is gone */
    size_t count;
    uint64_t room;
    int events_fd; /* epoll descriptor of the sockets of all endpoints of the mesh */
} mesh;

enum { NAME_BITS = 33, LISTENER = 1, FIRST_DIALLED = 2, SOCKETS_MAX = 1 << 15 };

/* what an endpoint has if it is a part of the mesh of another endpoint */
typedef struct in_mesh {
    bool is_part;  /* false: the endpoint is not a part of a mesh */
    int events_fd; /* the mesh's descriptor; -1: the sockets are not watched */
    /* true: messages may wait. libzmq reports them only once, so the endpoint is checked until none is left
     */
    bool unheard;
} in_mesh;

struct endpoint {
    kl_transport transport;
    bool is_master, is_tcp, closing;
    in_mesh in_mesh;
    mesh *mesh; /* the endpoints to other workers; NULL: other workers cannot reach this worker */
    char *address;
    kl_zmq_options options; /* options of the endpoint, with its own copy of the key */
    void *context, *socket, *monitor;
    int wake_fd;
    atomic_bool woken;
    kl_event_queue ready;
    unsigned unreported; /* number of frames received since the monitor's reports were last read */
    bool out_of_memory;

    kl_zmq_peers peers; /* peers of a master; only a master uses the fields from `peers` to `complain_at_s` */
    void *gate;         /* handler of access control, for tcp only */
    unsigned strangers; /* number of strangers since the last report about them */
    double complain_at_s;

    stage stage; /* only a worker uses the fields from `stage` on */
    bool lost, refused;
    /* true: the other side answered, but the handshake failed. libzmq then reports the end of the connection
     * as another failure, which must not reset failed_handshakes. */
    bool was_answered;
    unsigned failed_handshakes; /* number of failed handshakes without a success between them */
    unsigned dialled;
    kl_retry retry;
    kl_buffer parts;  /* the parts received so far of a message from the master */
    kl_arena *arena;  /* arena for large messages to the master; NULL: there is none */
    double trim_at_s; /* time at which unused memory of the arenas is freed; 0: the arenas take no memory */
};

typedef struct frame {
    uint32_t id; /* at the master: the routing id of the sender */
    zmq_msg_t body;
    bool whole; /* true: the libzmq message consists of this frame alone, as every message of Kilter does */
} frame;

/* Return the name of the peer with this routing id. libzmq counts the ids up from a random number. */
static kl_peer name_of(uint32_t id) {
    return (kl_peer)id + 1;
}

static uint32_t id_of(kl_peer name) {
    return (uint32_t)(name - 1);
}

/* Return the endpoint of the mesh that has this peer, and set *inner to the peer's name at that endpoint.
 * NULL: the mesh does not have the peer. */
static endpoint *part_with(const endpoint *e, kl_peer name, kl_peer *inner) {
    uint64_t number = name >> NAME_BITS;
    *inner = name & (((kl_peer)1 << NAME_BITS) - 1);
    if (!e->mesh || number == 0)
        return NULL;
    if (number == LISTENER)
        return e->mesh->listener;
    return number - FIRST_DIALLED < e->mesh->count ? e->mesh->dialled[number - FIRST_DIALLED] : NULL;
}

/* Return whether messages may be sent to the peer. To a worker that this worker has reached, messages may be
 * sent even before that worker has answered. */
static bool is_live(const endpoint *e, kl_peer name) {
    if (!e->is_master)
        return name == THE_MASTER &&
               (e->stage == JOINED || (e->in_mesh.is_part && e->stage == SEEKING && e->socket));
    return name != KL_NO_PEER && name <= name_of(UINT32_MAX) &&
           kl_zmq_peers_get(&e->peers, id_of(name)) == KL_ZMQ_LIVE;
}

static void tell(endpoint *e, const kl_event *event) {
    e->out_of_memory |= !kl_event_queue_push(&e->ready, event);
}

/* --- sending frames --- */

/* Send one part of a message and return 0 or an errno. This function and send_frame() never wait, because
 * the limit on queued messages is off. */
static int send_part(endpoint *e, zmq_msg_t *part, int flags) {
    while (zmq_msg_send(part, e->socket, flags | ZMQ_DONTWAIT) < 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

static int send_address(endpoint *e, uint32_t id) {
    const uint8_t address[5] = {0, (uint8_t)(id >> 24), (uint8_t)(id >> 16), (uint8_t)(id >> 8), (uint8_t)id};
    while (zmq_send(e->socket, address, sizeof address, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

/* Send the message part `body`, and close it whether it was sent or not. id: at the master, the receiver's
 * routing id. */
static int send_frame(endpoint *e, uint32_t id, zmq_msg_t *body) {
    int code = e->is_master ? send_address(e, id) : 0;
    if (!code)
        code = send_part(e, body, 0);
    if (code)
        zmq_msg_close(body);
    return code;
}

static int say(endpoint *e, uint32_t id, const void *bytes, size_t size) {
    zmq_msg_t body;
    if (zmq_msg_init_size(&body, size) != 0) {
        e->out_of_memory = true;
        return ENOMEM;
    }
    memcpy(zmq_msg_data(&body), bytes, size);
    return send_frame(e, id, &body);
}

/* Send the bytes as one frame, and free them. */
static int say_all(endpoint *e, uint32_t id, kl_buffer *bytes) {
    int code = bytes->failed ? ENOMEM : say(e, id, bytes->data, bytes->size);
    e->out_of_memory |= bytes->failed;
    kl_buffer_free(bytes);
    return code;
}

static int say_bye(endpoint *e, uint32_t id) {
    const char bye = BYE;
    return say(e, id, &bye, 1);
}

/* Send `size` bytes, followed by a byte for the kind of the frame. */
static int send_kind(endpoint *e, uint32_t id, const uint8_t *data, size_t size, char kind) {
    zmq_msg_t body;
    if (zmq_msg_init_size(&body, size + 1) != 0)
        return ENOMEM;
    uint8_t *bytes = zmq_msg_data(&body);
    if (size)
        memcpy(bytes, data, size);
    bytes[size] = (uint8_t)kind;
    return send_frame(e, id, &body);
}

/* Return the arena that is shared with the peer; NULL: there is none. */
static kl_arena *arena_of(const endpoint *e, uint32_t id) {
    return e->is_master ? kl_zmq_peers_slot(&e->peers, id)->arena : e->arena;
}

static int send_place(endpoint *e, uint32_t id, const kl_arena_place *place) {
    kl_buffer bytes = {0};
    kl_put_u32(&bytes, place->slot);
    kl_put_u64(&bytes, place->at);
    kl_put_u64(&bytes, place->size);
    kl_put_u8(&bytes, LIES);
    int code = say_all(e, id, &bytes);
    if (code)
        kl_arena_take_back(arena_of(e, id), place);
    return code;
}

/* Send a message through the arena if possible, otherwise in frames. If a later frame cannot be sent, the
 * receiver discards the incomplete message when the next one begins. */
static int send_message(endpoint *e, uint32_t id, const uint8_t *data, size_t size) {
    kl_arena_place place;
    kl_arena *arena = size >= KL_ARENA_LEAST_BYTES ? arena_of(e, id) : NULL;
    if (arena && kl_arena_put(arena, data, size, &place)) {
        e->trim_at_s = kl_monotonic_s() + UNUSED_S;
        return send_place(e, id, &place);
    }
    if (size <= PART_BYTES)
        return send_kind(e, id, data, size, DATA);
    int code = send_kind(e, id, data, PART_BYTES, FIRST);
    size_t at = PART_BYTES;
    for (; !code && size - at > PART_BYTES; at += PART_BYTES)
        code = send_kind(e, id, data + at, PART_BYTES, PART);
    return code ? code : send_kind(e, id, data + at, size - at, LAST);
}

static kilter_status send_bytes(kl_transport *transport, kl_peer name, const void *data, size_t size,
                                kilter_error *error) {
    endpoint *e = (endpoint *)transport;
    unsigned long long number = name;
    if (size >= MESSAGE_BYTES_MAX)
        return kl_fail(error, KILTER_ERR_RANGE,
                       "sending %zu bytes to peer %llu: a message must have less than %d; send it in parts",
                       size, number, MESSAGE_BYTES_MAX);
    kl_peer inner;
    endpoint *part = part_with(e, name, &inner);
    if (part) {
        part->in_mesh.unheard = true;
        return send_bytes(&part->transport, inner, data, size, error);
    }
    int code = is_live(e, name) ? send_message(e, id_of(name), data, size) : EHOSTUNREACH;
    if (code == ENOMEM || code == EHOSTUNREACH)
        return kl_cannot_send(code == ENOMEM ? KILTER_ERR_MEMORY : KILTER_ERR_PEER, name, size, error);
    return code ? kl_fail(error, KILTER_ERR_SYSTEM, "sending %zu bytes to peer %llu: %s", size, number,
                          zmq_strerror(code))
                : KILTER_OK;
}

static void lend(kl_transport *transport, kl_peer name, size_t size, kl_buffer *buffer) {
    endpoint *e = (endpoint *)transport;
    kl_arena *arena = is_live(e, name) ? arena_of(e, id_of(name)) : NULL;
    if (arena && (size == 0 || size >= KL_ARENA_LEAST_BYTES))
        kl_arena_lend(arena, size, buffer);
    else if (buffer->borrowed)
        kl_buffer_free(buffer);
}

/* --- reports of the socket's monitor --- */

enum {
    FAILED_HANDSHAKES = ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                        ZMQ_EVENT_HANDSHAKE_FAILED_AUTH
};

static void hear_report(endpoint *e, uint16_t what, int fd) {
    if (e->is_master) {
        if (what == ZMQ_EVENT_ACCEPTED)
            kl_zmq_peers_opened(&e->peers, fd);
        else if (what == ZMQ_EVENT_DISCONNECTED)
            kl_zmq_peers_closed(&e->peers, fd);
        else if (what & FAILED_HANDSHAKES)
            e->strangers++;
        return;
    }
    e->lost = true; /* a worker's monitor reports only failures, and the worker has only one connection */
    if (what & FAILED_HANDSHAKES) {
        e->failed_handshakes++;
        e->was_answered = true;
        /* the failure below means that no process accepts connections at the address; it says nothing
         * about the key */
    } else if (what != ZMQ_EVENT_DISCONNECTED && !e->was_answered)
        e->failed_handshakes = 0;
}

/* Report the number of strangers since the last report, if that report was long enough ago. Some programs
 * try every port that is open to the world. A worker with a wrong key counts as a stranger, too. */
static void complain_of_strangers(endpoint *e) {
    double now_s = kl_monotonic_s();
    if (!e->strangers || !e->options.complain || now_s < e->complain_at_s)
        return;
    char sentence[512];
    snprintf(
        sentence, sizeof sentence,
        "%u connection%s to \"%.100s\" did not show this farm's key and %s refused; a worker needs a copy of "
        "%.200s",
        e->strangers, e->strangers == 1 ? "" : "s", e->address, e->strangers == 1 ? "was" : "were",
        e->options.key->file);
    e->options.complain(e->options.complain_to, sentence);
    e->strangers = 0;
    e->complain_at_s = now_s + COMPLAIN_S;
}

static bool something_is_cut(const endpoint *e) {
    return e->is_master ? e->peers.cut_count > 0 : e->lost;
}

static void read_reports(endpoint *e) {
    e->unreported = 0;
    while (e->monitor) {
        zmq_msg_t part;
        zmq_msg_init(&part);
        if (zmq_msg_recv(&part, e->monitor, ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(&part);
            if (errno == EINTR)
                continue;
            return;
        }
        uint16_t what = 0;
        int32_t value = 0;
        if (zmq_msg_more(&part) && zmq_msg_size(&part) == sizeof what + sizeof value) {
            memcpy(&what, zmq_msg_data(&part), sizeof what);
            memcpy(&value, (char *)zmq_msg_data(&part) + sizeof what, sizeof value);
            hear_report(e, what, value);
        } /* the report's second part, the address, is not used */
        zmq_msg_close(&part);
    }
}

/* --- receiving frames --- */

static int kind_of(const frame *f) {
    size_t size = zmq_msg_size(&f->body);
    const uint8_t *bytes = zmq_msg_data((zmq_msg_t *)&f->body);
    return f->whole && size ? bytes[size - 1] : 0;
}

static void release_frame(void *owner) {
    zmq_msg_close(owner);
    free(owner);
}

static void hand_up(endpoint *e, frame *f, kl_peer from) {
    zmq_msg_t *owner = malloc(sizeof *owner);
    if (!owner) {
        e->out_of_memory = true;
        return;
    }
    zmq_msg_init(owner);
    zmq_msg_move(owner, &f->body);
    tell(e, &(kl_event){.kind = KL_EVENT_MESSAGE,
                        .peer = from,
                        .message = {.data = zmq_msg_data(owner),
                                    .size = zmq_msg_size(owner) - 1,
                                    .owner = owner,
                                    .release = release_frame}});
}

static bool hand_up_lying(endpoint *e, frame *f, kl_arena *arena, kl_peer from) {
    kl_reader r = kl_reader_of(zmq_msg_data(&f->body), zmq_msg_size(&f->body) - 1);
    kl_arena_place place;
    kl_event event = {.kind = KL_EVENT_MESSAGE, .peer = from};
    place.slot = kl_get_u32(&r);
    place.at = kl_get_u64(&r);
    place.size = kl_get_u64(&r);
    if (!arena || !kl_reader_done(&r) || !kl_arena_get(arena, &place, &event.message))
        return false;
    tell(e, &event);
    return true;
}

/* Handle a frame that carries a message of `from`, or a part of such a message. Return false if the frame
 * carries neither, or if the part does not continue the previous parts. */
static bool take_in(endpoint *e, frame *f, kl_buffer *parts, kl_peer from) {
    int kind = kind_of(f);
    size_t size = zmq_msg_size(&f->body) - 1;
    if (kind == LIES)
        return hand_up_lying(e, f, arena_of(e, f->id), from);
    bool begins = kind == FIRST || kind == DATA, goes_on = kind == PART || kind == LAST;
    if (!begins && !(goes_on && parts->size && size < MESSAGE_BYTES_MAX - parts->size))
        return false;
    if (begins)
        kl_buffer_free(parts);
    if (kind == DATA) {
        hand_up(e, f, from);
        return true;
    }
    kl_put_bytes(parts, zmq_msg_data(&f->body), size);
    e->out_of_memory |= parts->failed;
    if (kind == LAST && !parts->failed) {
        kl_message whole = {.data = parts->data, .size = parts->size, .owner = parts->data, .release = free};
        tell(e, &(kl_event){.kind = KL_EVENT_MESSAGE, .peer = from, .message = whole});
        *parts = (kl_buffer){0};
    }
    return true;
}

/* Let libzmq handle what its I/O thread has reported. Then the socket knows which peers are gone. */
static void notice_who_is_gone(endpoint *e) {
    int unused;
    size_t size = sizeof unused;
    zmq_getsockopt(e->socket, ZMQ_EVENTS, &unused, &size);
}

/* Return whether the frame is equal to `plain`, except for `size` more bytes before its last byte, the kind.
 */
static bool says_with(const frame *f, const char *plain, size_t size) {
    const uint8_t *bytes = zmq_msg_data((zmq_msg_t *)&f->body);
    return f->whole && zmq_msg_size(&f->body) == VERSION_BYTES + size + 1 &&
           memcmp(bytes, plain, VERSION_BYTES) == 0 &&
           bytes[VERSION_BYTES + size] == (uint8_t)plain[VERSION_BYTES];
}

/* Return the bytes of the frame between the version and the last byte, the kind. */
static kl_reader details_of(const frame *f) {
    const uint8_t *bytes = zmq_msg_data((zmq_msg_t *)&f->body);
    return kl_reader_of(bytes + VERSION_BYTES, zmq_msg_size(&f->body) - VERSION_BYTES - 1);
}

/* Return an arena for messages to a worker that was forked with these arenas. NULL: the worker was not
 * forked with them, or no pair is free. */
static kl_arena *arena_for(const endpoint *e, const frame *f) {
    if (!e->options.arenas || !says_with(f, hello, FORKED_BYTES))
        return NULL;
    kl_reader r = details_of(f);
    uint64_t token = kl_get_u64(&r), pid = kl_get_u64(&r);
    return token == kl_arenas_token(e->options.arenas) ? kl_arena_to_worker(e->options.arenas, pid) : NULL;
}

static int say_welcome(endpoint *e, uint32_t id, const kl_arena *arena) {
    kl_buffer bytes = {0};
    kl_put_bytes(&bytes, welcome, VERSION_BYTES);
    if (arena)
        kl_put_u32(&bytes, kl_arena_pair(arena));
    kl_put_u8(&bytes, WELCOME);
    return say_all(e, id, &bytes);
}

/* Handle the first frame of a connection. HELLO makes the sender a peer. A sender of any other frame gets
 * BYE and is ignored from then on. */
static void meet(endpoint *e, frame *f) {
    if (e->closing)
        return; /* do not answer: the worker will notice anyway that this master closes */
    bool ours = says_with(f, hello, 0) || says_with(f, hello, FORKED_BYTES);
    kl_arena *arena = arena_for(e, f);
    read_reports(e);
    notice_who_is_gone(e);
    bool reachable = (ours ? say_welcome(e, f->id, arena) : say_bye(e, f->id)) == 0;
    kl_zmq_peers_add(&e->peers, f->id, ours ? KL_ZMQ_LIVE : KL_ZMQ_IGNORED, zmq_msg_get(&f->body, ZMQ_SRCFD),
                     reachable);
    if (kl_zmq_peers_get(&e->peers, f->id) == KL_ZMQ_UNKNOWN)
        kl_arena_close(arena, true);
    else
        kl_zmq_peers_slot(&e->peers, f->id)->arena = arena;
    if (ours)
        tell(e, &(kl_event){.kind = KL_EVENT_JOINED, .peer = name_of(f->id)});
}

static void hear_as_master(endpoint *e, frame *f) {
    kl_zmq_standing standing = kl_zmq_peers_get(&e->peers, f->id);
    if (standing == KL_ZMQ_UNKNOWN) {
        meet(e, f);
    } else if (standing == KL_ZMQ_LIVE &&
               !take_in(e, f, &kl_zmq_peers_slot(&e->peers, f->id)->parts, name_of(f->id))) {
        /* the frame is BYE, or it is garbage, which is treated as BYE */
        if (!e->closing)
            say_bye(e, f->id);
        kl_zmq_peers_ignore(&e->peers, f->id, kind_of(f) == BYE);
        tell(e, &(kl_event){.kind = KL_EVENT_LEFT, .peer = name_of(f->id)});
    }
}

static bool is_welcome(endpoint *e, const frame *f) {
    if (says_with(f, welcome, 0))
        return true;
    if (!e->options.arenas || !says_with(f, welcome, PAIR_BYTES))
        return false;
    kl_reader r = details_of(f);
    e->arena = kl_arena_to_master(e->options.arenas, kl_get_u32(&r));
    /* without its end of the arenas (shared memory) the worker cannot continue, because the master will send
     * messages through them */
    e->out_of_memory |= !e->arena;
    return true;
}

static void hear_as_worker(endpoint *e, frame *f) {
    if (e->stage == SEEKING && is_welcome(e, f)) {
        e->stage = JOINED;
        if (!e->in_mesh.is_part)
            tell(e, &(kl_event){.kind = KL_EVENT_JOINED, .peer = THE_MASTER});
    } else if (e->stage == SEEKING && kind_of(f) == BYE) {
        e->refused = !e->in_mesh.is_part;
        e->lost |= e->in_mesh.is_part;
    } else if (e->stage == JOINED && kind_of(f) != STILL_THERE && !take_in(e, f, &e->parts, THE_MASTER)) {
        if (!e->closing)
            say_bye(e, 0);
        e->stage = OVER;
        tell(e, &(kl_event){.kind = KL_EVENT_LEFT, .peer = THE_MASTER});
    }
}

/* Receive one part of a libzmq message. Return 1 if a part was received, 0 if none is there. */
static int receive_part(endpoint *e, zmq_msg_t *part) {
    zmq_msg_init(part);
    while (zmq_msg_recv(part, e->socket, ZMQ_DONTWAIT) < 0) {
        if (errno == EINTR)
            continue;
        zmq_msg_close(part);
        return 0;
    }
    return 1;
}

/* Discard the remaining parts of a libzmq message. All parts arrive together, so no wait is needed. */
static void throw_parts_away(endpoint *e) {
    zmq_msg_t part;
    for (bool more = true; more;) {
        if (!receive_part(e, &part))
            return;
        more = zmq_msg_more(&part);
        zmq_msg_close(&part);
    }
}

/* Read the sender's routing id from a message. false: the id is not one that this ROUTER assigned. Assigned
 * ids have 5 bytes, and Kilter's workers never choose their own. */
static bool read_id(const zmq_msg_t *part, uint32_t *id) {
    const uint8_t *b = zmq_msg_data((zmq_msg_t *)part);
    if (zmq_msg_size(part) != 5 || b[0] != 0)
        return false;
    *id = (uint32_t)b[1] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 8 | b[4];
    return true;
}

/* Receive one frame and handle it. false: no frame is there. */
static bool hear_next(endpoint *e) {
    frame f = {0};
    zmq_msg_t address;
    bool known = true;
    if (e->is_master) {
        if (!receive_part(e, &address))
            return false;
        known = zmq_msg_more(&address) && read_id(&address, &f.id);
        if (!known && zmq_msg_more(&address))
            throw_parts_away(e);
        zmq_msg_close(&address);
        if (!known)
            return true;
    }
    if (!receive_part(e, &f.body))
        return false;
    f.whole = !zmq_msg_more(&f.body);
    if (!f.whole)
        throw_parts_away(e);
    if (e->is_master)
        hear_as_master(e, &f);
    else
        hear_as_worker(e, &f);
    zmq_msg_close(&f.body);
    return true;
}

/* --- a worker's connection --- */

static void set(void *socket, int option, int value) {
    zmq_setsockopt(socket, option, &value, sizeof value);
}

static void set_up(void *socket, double lost_after_s, bool ipv6) {
    set(socket, ZMQ_SNDHWM, 0);
    set(socket, ZMQ_RCVHWM, 0);
    /* libzmq probes the peer after a third of this time, and the peer must answer in the remaining time */
    int lost_after_ms = (int)(1e3 * lost_after_s);
    set(socket, ZMQ_HEARTBEAT_IVL, lost_after_ms / 3);
    set(socket, ZMQ_HEARTBEAT_TIMEOUT, lost_after_ms - lost_after_ms / 3);
    set(socket, ZMQ_TCP_MAXRT, lost_after_ms);
    set(socket, ZMQ_HANDSHAKE_IVL, (int)(1e3 * fmin(lost_after_s, HANDSHAKE_S)));
    set(socket, ZMQ_CONNECT_TIMEOUT, CONNECT_MS);
    set(socket, ZMQ_RECONNECT_IVL, NEVER_MS);
    set(socket, ZMQ_BACKLOG, BACKLOG);
    /* this option is for a ROUTER; a DEALER refuses it, which does no harm */
    set(socket, ZMQ_ROUTER_MANDATORY, 1);
    set(socket, ZMQ_IPV6, ipv6);
    int64_t longest = FRAME_BYTES_MAX + KL_CURVE_BYTES;
    zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &longest, sizeof longest);
}

/* Open the socket's monitor for `reports`. The queue of reports has no limit; with a limit, libzmq's I/O
 * thread could block. */
static bool watch(endpoint *e, int reports) {
    char name[64];
    snprintf(name, sizeof name, "inproc://monitor-%u-%016llx", e->dialled, (unsigned long long)kl_token());
    if (zmq_socket_monitor(e->socket, name, reports) != 0)
        return false;
    e->monitor = zmq_socket(e->context, ZMQ_PAIR);
    if (!e->monitor)
        return false;
    set(e->monitor, ZMQ_RCVHWM, 0);
    set(e->monitor, ZMQ_LINGER, 0);
    return zmq_connect(e->monitor, name) == 0;
}

static bool make_socket(endpoint *e, int reports) {
    e->socket = zmq_socket(e->context, e->is_master ? ZMQ_ROUTER : ZMQ_DEALER);
    if (!e->socket)
        return false;
    set_up(e->socket, e->options.lost_after_s, strchr(e->address, '[') != NULL);
    set(e->socket, ZMQ_LINGER, 0); /* see close_endpoint() for the reasons */
    if (e->options.key && !kl_zmq_set_key(e->socket, e->options.key, e->is_master))
        return false;
    return watch(e, reports);
}

static int fd_of(void *socket) {
    int fd = -1;
    size_t size = sizeof fd;
    if (socket)
        zmq_getsockopt(socket, ZMQ_FD, &fd, &size);
    return fd;
}

/* Change how the mesh of this endpoint watches the endpoint's sockets. operation: EPOLL_CTL_ADD or
 * EPOLL_CTL_DEL */
static bool set_watch(endpoint *e, int operation) {
    void *const sockets[] = {e->socket, e->monitor, e->gate};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = e};
    bool ok = true;
    for (size_t i = 0; i < sizeof sockets / sizeof *sockets; i++)
        if (sockets[i])
            ok &= epoll_ctl(e->in_mesh.events_fd, operation, fd_of(sockets[i]), &event) == 0;
    return ok;
}

static bool join_mesh(endpoint *e, const mesh *m) {
    e->in_mesh.events_fd = m->events_fd;
    e->in_mesh.unheard = true;
    return set_watch(e, EPOLL_CTL_ADD);
}

static void drop_socket(endpoint *e) {
    if (e->in_mesh.events_fd >= 0)
        set_watch(e, EPOLL_CTL_DEL); /* closing is not enough if a forked process has the descriptors, too */
    if (e->socket)
        zmq_socket_monitor(e->socket, NULL, 0);
    if (e->monitor)
        zmq_close(e->monitor);
    if (e->socket)
        zmq_close(e->socket);
    e->socket = e->monitor = NULL;
}

static void say_hello(endpoint *e) {
    kl_buffer bytes = {0};
    kl_put_bytes(&bytes, hello, VERSION_BYTES);
    if (e->options.arenas) {
        kl_put_u64(&bytes, kl_arenas_token(e->options.arenas));
        kl_put_u64(&bytes, (uint64_t)getpid());
    }
    kl_put_u8(&bytes, HELLO);
    say_all(e, 0, &bytes);
}

static kilter_status dial(endpoint *e, kilter_error *error) {
    e->dialled++;
    e->lost = e->refused = e->was_answered = false;
    if (!make_socket(e, ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED | ZMQ_EVENT_CONNECT_RETRIED |
                            FAILED_HANDSHAKES)) {
        int code = errno;
        drop_socket(e);
        return kl_fail(error, KILTER_ERR_SYSTEM, "joining \"%.200s\": making a socket: %s", e->address,
                       zmq_strerror(code));
    }
    if (zmq_connect(e->socket, e->address) != 0) {
        int code = errno;
        drop_socket(e);
        return kl_fail(error, KILTER_ERR_USAGE, "joining \"%.200s\": %s; give the master's endpoint",
                       e->address, zmq_strerror(code));
    }
    say_hello(e);
    return KILTER_OK;
}

static void lose_master(endpoint *e) {
    e->lost = false;
    if (e->stage == SEEKING && !e->in_mesh.is_part) {
        drop_socket(e);
        e->retry.at_s = kl_monotonic_s() + e->retry.pause_s;
        e->retry.pause_s = fmin(2 * e->retry.pause_s, LONGEST_RETRY_S);
        return;
    }
    if (e->stage != OVER)
        tell(e, &(kl_event){.kind = KL_EVENT_LEFT, .peer = THE_MASTER});
    e->stage = OVER;
    drop_socket(e);
}

static kilter_status redial_when_due(endpoint *e, kilter_error *error) {
    if (e->is_master || e->stage != SEEKING)
        return KILTER_OK;
    if (e->refused) {
        drop_socket(e);
        e->refused = false;
        e->retry.at_s = kl_monotonic_s() + LONGEST_RETRY_S;
        return kl_fail(error, KILTER_ERR_PEER,
                       "joining \"%.200s\": the master there uses another protocol version; use the same "
                       "Kilter on both sides",
                       e->address);
    }
    if (e->is_tcp && e->failed_handshakes >= HANDSHAKES_MAX) {
        e->failed_handshakes = 0;
        e->retry.pause_s = LONGEST_RETRY_S;
        return kl_fail(
            error, KILTER_ERR_PEER,
            "joining \"%.200s\": the program that listens there refuses the key of %.200s, or takes "
            "too long to answer; give --key a copy of the key file the master names",
            e->address, e->options.key->file);
    }
    return e->socket || kl_monotonic_s() < e->retry.at_s ? KILTER_OK : dial(e, error);
}

/* --- waiting for events --- */

static bool can_be_reached(void *self, uint32_t id) {
    const char question = STILL_THERE;
    return say(self, id, &question, 1) == 0;
}

static void settle_rivals(endpoint *e) {
    if (!e->peers.rival_count)
        return;
    notice_who_is_gone(e);
    kl_zmq_peers_settle(&e->peers, can_be_reached, e);
}

/* Report LEFT for each peer whose connection has ended and whose messages are all read. */
static void part_with_cut(endpoint *e) {
    if (!e->is_master) {
        if (e->lost)
            lose_master(e);
        return;
    }
    uint32_t id;
    kl_zmq_standing standing;
    while (kl_zmq_peers_forget_cut(&e->peers, &id, &standing))
        if (standing == KL_ZMQ_LIVE)
            tell(e, &(kl_event){.kind = KL_EVENT_LEFT, .peer = name_of(id)});
}

/* Receive frames until there is an event or nothing more to read. A closed connection is handled when the
 * socket is empty the next time, because all its messages are read by then. Return false if more frames may
 * wait. */
static bool look(endpoint *e) {
    for (unsigned frames = 0; !e->ready.count || something_is_cut(e);) {
        if (e->socket && hear_next(e)) {
            if (++frames >= FRAMES_PER_LOOK && !e->ready.count)
                return false;
            if (++e->unreported >= FRAMES_PER_REPORT)
                read_reports(e);
            continue;
        }
        part_with_cut(e);
        read_reports(e);
        settle_rivals(e);
        if (e->gate)
            kl_zmq_gate_serve(e->gate, e->options.key);
        if (!something_is_cut(e))
            return true;
    }
    return true;
}

/* Report the events of one endpoint of the mesh as events of the worker's own endpoint. */
static void take_events(endpoint *e, endpoint *part, uint64_t number) {
    kl_event event;
    while (kl_event_queue_pop(&part->ready, &event)) {
        event.peer |= (kl_peer)number << NAME_BITS;
        tell(e, &event);
    }
    e->out_of_memory |= part->out_of_memory || part->peers.failed;
}

static void free_endpoint(endpoint *e);

/* Mark the endpoints of the mesh whose descriptors report events as unheard. false: there may be more of
 * them. */
static bool find_unheard(mesh *m) {
    enum { MOST = 64 };
    struct epoll_event found[MOST];
    int count = epoll_wait(m->events_fd, found, MOST, 0);
    for (int i = 0; i < count; i++)
        ((endpoint *)found[i].data.ptr)->in_mesh.unheard = true;
    return count < MOST;
}

/* Check an endpoint of the mesh if it may have events. false: more frames may wait. */
static bool look_at_part(endpoint *e, endpoint *part, uint64_t number) {
    bool rivals = part->peers.rival_count > 0;
    if (!part->in_mesh.unheard && !rivals)
        return true;
    bool all = look(part);
    part->in_mesh.unheard =
        !all || rivals || part->ready.count > 0; /* look() returns after the first event */
    take_events(e, part, number);
    return all;
}

/* Check the endpoints of the mesh that may have events; before a sleep, check all. A worker does this after
 * each task, and there may be many endpoints. false: more frames may wait. */
static bool look_at_mesh(endpoint *e, bool before_sleep) {
    mesh *m = e->mesh;
    if (!m || e->ready.count > 0)
        return true;
    bool all = find_unheard(m);
    m->listener->in_mesh.unheard |= before_sleep;
    all &= look_at_part(e, m->listener, LISTENER);
    for (size_t i = 0; i < m->count; i++) {
        endpoint *part = m->dialled[i];
        if (!part)
            continue;
        part->in_mesh.unheard |= before_sleep;
        all &= look_at_part(e, part, FIRST_DIALLED + i);
        if (part->stage == OVER) {
            m->dialled[i] = NULL;
            free_endpoint(part);
        }
    }
    return all;
}

/* Sleep until a descriptor of the endpoint or of its mesh is readable. */
static void sleep_on_fds(const endpoint *e, const struct timespec *rest) {
    const int numbers[] = {e->wake_fd, fd_of(e->socket), fd_of(e->monitor), fd_of(e->gate),
                           e->mesh ? e->mesh->events_fd : -1};
    enum { COUNT = sizeof numbers / sizeof *numbers };
    struct pollfd fds[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        fds[i] = (struct pollfd){.fd = numbers[i], .events = POLLIN};
    ppoll(fds, COUNT, rest, NULL);
}

/* Sleep until something may have happened. The caller must have read all sockets until they were empty,
 * because their descriptors report only later events. */
static void sleep_until(endpoint *e, double deadline_s) {
    if (!e->is_master && e->stage == SEEKING && !e->socket)
        deadline_s = fmin(deadline_s, e->retry.at_s);
    if (e->trim_at_s > 0 && kl_monotonic_s() >= e->trim_at_s) {
        bool all = !e->arena || kl_arena_trim(e->arena);
        for (size_t i = 0; i < e->peers.slot_count; i++)
            if (e->peers.slots[i].standing == KL_ZMQ_LIVE && e->peers.slots[i].arena)
                all &= kl_arena_trim(e->peers.slots[i].arena);
        e->trim_at_s = all ? 0 : kl_monotonic_s() + UNUSED_S;
    }
    if (e->trim_at_s > 0)
        deadline_s = fmin(deadline_s, e->trim_at_s);
    if (e->peers.rival_count || (e->mesh && e->mesh->listener->peers.rival_count))
        deadline_s = fmin(deadline_s, kl_monotonic_s() + ASK_AGAIN_S);
    struct timespec rest = kl_timespec(deadline_s - kl_monotonic_s());
    sleep_on_fds(e, &rest);
}

/* Reset the wake after it has ended a poll(). The flag `woken` is set before the descriptor is written, and
 * cleared after it is read. So each wake ends exactly one poll(). */
static void sleep_over(endpoint *e) {
    uint64_t count;
    while (read(e->wake_fd, &count, sizeof count) < 0 && (errno == EAGAIN || errno == EINTR)) {
        struct pollfd written = {.fd = e->wake_fd, .events = POLLIN};
        poll(&written, 1, -1);
    }
    atomic_exchange(&e->woken, false);
}

static kilter_status poll_event(kl_transport *transport, double timeout_s, kl_event *event,
                                kilter_error *error) {
    endpoint *e = (endpoint *)transport;
    double deadline_s = kl_deadline_s(timeout_s);
    *event = (kl_event){.kind = KL_EVENT_NONE};
    for (;;) {
        if (atomic_load(&e->woken)) {
            sleep_over(e);
            return KILTER_OK;
        }
        kilter_status status = redial_when_due(e, error);
        if (status)
            return status;
        bool all_heard = look(e);
        all_heard &= look_at_mesh(e, timeout_s != 0);
        complain_of_strangers(e);
        if (kl_event_queue_pop(&e->ready, event))
            return KILTER_OK;
        if (e->out_of_memory || e->peers.failed)
            return kl_fail(error, KILTER_ERR_MEMORY, "receiving messages at \"%.200s\": memory ran out",
                           e->address);
        if (timeout_s == 0 || kl_monotonic_s() >= deadline_s)
            return KILTER_OK;
        if (!e->refused && all_heard)
            sleep_until(e, deadline_s);
    }
}

static void drop_peer(kl_transport *transport, kl_peer name) {
    endpoint *e = (endpoint *)transport;
    kl_event_queue_forget(&e->ready, name);
    kl_peer inner;
    endpoint *part = part_with(e, name, &inner);
    if (part) {
        part->in_mesh.unheard = true;
        drop_peer(&part->transport, inner);
        return;
    }
    if (!is_live(e, name))
        return;
    say_bye(e, id_of(name));
    if (e->is_master)
        kl_zmq_peers_ignore(&e->peers, id_of(name), false);
    else
        e->stage = OVER;
}

static void wake_up(kl_transport *transport) {
    endpoint *e = (endpoint *)transport;
    const uint64_t one = 1;
    if (!atomic_exchange(&e->woken, true))
        while (write(e->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
            ;
}

/* --- closing --- */

/* Read until all peers have sent BYE. By then all messages to the peers have arrived. */
static void hear_the_others_out(endpoint *e) {
    double deadline_s = kl_monotonic_s() + (e->is_master ? MASTER_LINGER_S : e->options.lost_after_s);
    for (;;) {
        bool all_heard = look(e);
        kl_event event;
        while (kl_event_queue_pop(&e->ready, &event)) {
            kl_message_release(&event.message);
            all_heard = false; /* continue reading, because look() returns after the first event */
        }
        bool waits = e->is_master ? e->peers.live > 0 : e->stage == JOINED;
        if (!waits || e->out_of_memory || e->peers.failed || kl_monotonic_s() >= deadline_s)
            return;
        if (all_heard)
            sleep_until(e, deadline_s);
    }
}

static void free_mesh(mesh *m) {
    if (!m)
        return;
    if (m->listener && m->listener->socket)
        kl_zmq_stops_listening(m->listener->address);
    free_endpoint(m->listener);
    for (size_t i = 0; i < m->count; i++)
        free_endpoint(m->dialled[i]);
    while (m->context && zmq_ctx_term(m->context) != 0 && errno == EINTR)
        ;
    if (m->events_fd >= 0)
        close(m->events_fd);
    free(m->dialled);
    free(m);
}

static void free_endpoint(endpoint *e) {
    if (!e)
        return;
    free_mesh(e->mesh);
    drop_socket(e);
    if (e->gate)
        zmq_close(e->gate);
    while (!e->in_mesh.is_part && e->context && zmq_ctx_term(e->context) != 0 && errno == EINTR)
        ;
    if (e->wake_fd >= 0)
        close(e->wake_fd);
    kl_zmq_peers_free(&e->peers);
    kl_arena_close(e->arena, true);
    kl_event_queue_free(&e->ready);
    kl_buffer_free(&e->parts);
    free((void *)e->options.key);
    free(e->address);
    free(e);
}

/* Close the endpoint without waiting in libzmq (linger), for three reasons. A TCP socket that is closed with
 * unread data discards the data that it still has to send. A DEALER whose peer has just closed keeps its BYE
 * and lingers for nothing. A lingering socket whose peer closes aborts the process at its next heartbeat
 * (libzmq 4.3: "Assertion failed: !_io_error"). */
static void close_endpoint(kl_transport *transport) {
    endpoint *e = (endpoint *)transport;
    e->closing = true;
    free_mesh(e->mesh); /* close the connections to other workers, which notice this */
    e->mesh = NULL;
    if (e->is_master)
        kl_zmq_stops_listening(e->address);
    if (!e->is_master && e->stage == JOINED)
        say_bye(e, 0);
    for (size_t i = 0; e->is_master && i < e->peers.slot_count; i++)
        if (e->peers.slots[i].standing == KL_ZMQ_LIVE)
            say_bye(e, e->peers.slots[i].id);
    hear_the_others_out(e);
    free_endpoint(e);
}

static kilter_status open_to_workers(kl_transport *transport, char address[KL_ADDRESS_BYTES],
                                     kilter_error *error);
static kilter_status reach(kl_transport *transport, const char *address, kl_peer *peer, kilter_error *error);

static const kl_transport_ops zmq_ops = {.name = "zmq",
                                         .threads = true,
                                         .send = send_bytes,
                                         .poll = poll_event,
                                         .drop = drop_peer,
                                         .wake = wake_up,
                                         .close = close_endpoint,
                                         .lend = lend,
                                         .open = open_to_workers,
                                         .reach = reach};

/* --- opening --- */

static kilter_status copy_key(endpoint *e, const kl_key *key, kilter_error *error) {
    if (!key)
        return kl_fail(error, KILTER_ERR_USAGE, "opening \"%.200s\": tcp needs a key", e->address);
    kl_key *copy = malloc(sizeof *copy);
    if (!copy)
        return kl_fail(error, KILTER_ERR_MEMORY, "opening \"%.200s\": memory ran out", e->address);
    *copy = *key;
    e->options.key = copy;
    return KILTER_OK;
}

/* Numbers of threads that the system must allow: two threads of libzmq, which aborts if it cannot start them,
 * and the threads of the farm. */
enum { MASTER_THREADS = 6, WORKER_THREADS = 3 };

/* Make an endpoint without a socket. shared: the libzmq context of the mesh to which the endpoint belongs;
 * NULL: make a context for this endpoint alone. */
static kilter_status new_endpoint(const char *address, const kl_zmq_options *options, bool is_master,
                                  void *shared, endpoint **made, kilter_error *error) {
    kilter_status status = kl_zmq_check(address, error);
    if (!status)
        status = is_master ? kl_zmq_may_listen(address, error) : kl_zmq_may_join(address, error);
    if (status)
        return status;
    endpoint *e = calloc(1, sizeof *e);
    char *copy = strdup(address);
    if (!e || !copy) {
        free(e);
        free(copy);
        return kl_fail(error, KILTER_ERR_MEMORY, "opening \"%.200s\": memory ran out", address);
    }
    *e = (endpoint){.transport = {&zmq_ops},
                    .is_master = is_master,
                    .is_tcp = strncmp(address, "tcp:", 4) == 0,
                    .address = copy,
                    .options = *options,
                    .retry = {.pause_s = FIRST_RETRY_S},
                    .in_mesh = {.is_part = shared, .events_fd = -1},
                    .wake_fd = shared ? -1 : eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    e->options.key = NULL;
    if (!(e->options.lost_after_s > 0))
        e->options.lost_after_s = KL_LOST_AFTER_S;
    atomic_init(&e->woken, false);
    if (!shared)
        status = kl_allow_threads(is_master ? MASTER_THREADS : WORKER_THREADS, error);
    if (!status && e->is_tcp)
        status = copy_key(e, options->key, error);
    e->context = shared ? shared : e->wake_fd < 0 || status ? NULL : zmq_ctx_new();
    if (!e->context && !status)
        status = kl_fail(error, KILTER_ERR_SYSTEM, "opening \"%.200s\": %s; close files or raise their limit",
                         address, zmq_strerror(errno));
    if (status) {
        free_endpoint(e);
        return status;
    }
    *made = e;
    return KILTER_OK;
}

static kilter_status bind_endpoint(endpoint *e, char **bound, kilter_error *error) {
    bool ready = !e->is_tcp || (e->gate = kl_zmq_gate_open(e->context));
    if (!ready ||
        !make_socket(e, ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED | (e->is_tcp ? FAILED_HANDSHAKES : 0)))
        return kl_fail(error, KILTER_ERR_SYSTEM, "listening at \"%.200s\": making a socket: %s", e->address,
                       zmq_strerror(errno));
    if (zmq_bind(e->socket, e->address) != 0)
        return kl_zmq_cannot_listen(e->address, errno, error);
    char last[1024];
    size_t size = sizeof last;
    if (zmq_getsockopt(e->socket, ZMQ_LAST_ENDPOINT, last, &size) != 0)
        return kl_fail(error, KILTER_ERR_SYSTEM, "listening at \"%.200s\": getting the port: %s", e->address,
                       zmq_strerror(errno));
    if (bound && !(*bound = strdup(last)))
        return kl_fail(error, KILTER_ERR_MEMORY, "listening at \"%.200s\": memory ran out", e->address);
    return KILTER_OK;
}

/* Give the endpoint to the caller, or free it if it could not be opened. */
static kilter_status finish(endpoint *e, kilter_status status, kl_transport **transport) {
    if (status)
        free_endpoint(e);
    else
        *transport = &e->transport;
    return status;
}

kilter_status kl_zmq_listen(const char *address, const kl_zmq_options *options, char **bound,
                            kl_transport **transport, kilter_error *error) {
    endpoint *e;
    kilter_status status = new_endpoint(address, options, true, NULL, &e, error);
    return status ? status : finish(e, bind_endpoint(e, bound, error), transport);
}

kilter_status kl_zmq_join(const char *address, const kl_zmq_options *options, kl_transport **transport,
                          kilter_error *error) {
    endpoint *e;
    kilter_status status = new_endpoint(address, options, false, NULL, &e, error);
    return status ? status : finish(e, dial(e, error), transport);
}

/* --- functions for workers that reach each other --- */

/* Return the options of an endpoint of the mesh. In the mesh, the workers' keys are also used as
 * the server's keys. */
static kl_zmq_options part_options(const endpoint *e, kl_key *key) {
    kl_zmq_options options = {.lost_after_s = e->options.lost_after_s, .key = e->options.key ? key : NULL};
    if (!e->options.key)
        return options;
    *key = *e->options.key;
    memcpy(key->server_public, key->worker_public, sizeof key->server_public);
    memcpy(key->server_secret, key->worker_secret, sizeof key->server_secret);
    return options;
}

static kilter_status open_mesh(endpoint *e, mesh *m, kilter_error *error) {
    char at[KL_ADDRESS_BYTES];
    char *bound = NULL;
    kl_key key;
    kl_zmq_options options = part_options(e, &key);
    if ((m->events_fd = epoll_create1(EPOLL_CLOEXEC)) < 0)
        return kl_fail(error, KILTER_ERR_SYSTEM, "listening for other workers: %s", strerror(errno));
    if (kl_allow_threads(WORKER_THREADS, error) != KILTER_OK)
        return KILTER_ERR_SYSTEM;
    m->context = zmq_ctx_new();
    if (!m->context || zmq_ctx_set(m->context, ZMQ_MAX_SOCKETS, SOCKETS_MAX) != 0)
        return kl_fail(error, KILTER_ERR_SYSTEM, "listening for other workers: %s", zmq_strerror(errno));
    kilter_status status = kl_zmq_address_of_worker(e->address, at, error);
    if (!status)
        status = kl_allow_files(FILES_OF_MESH, error);
    if (!status)
        status = new_endpoint(at, &options, true, m->context, &m->listener, error);
    if (!status)
        status = bind_endpoint(m->listener, &bound, error);
    if (status)
        return status;
    free(m->listener->address);
    m->listener->address = bound;
    if (!join_mesh(m->listener, m))
        return kl_fail(error, KILTER_ERR_SYSTEM, "listening for other workers: watching the sockets: %s",
                       strerror(errno));
    return KILTER_OK;
}

static kilter_status open_to_workers(kl_transport *transport, char address[KL_ADDRESS_BYTES],
                                     kilter_error *error) {
    endpoint *e = (endpoint *)transport;
    if (e->is_master)
        return kl_fail(error, KILTER_ERR_USAGE, "listening for other workers: only a worker can do this");
    if (!e->mesh) {
        mesh *m = calloc(1, sizeof *m);
        kilter_status status =
            m ? open_mesh(e, m, error)
              : kl_fail(error, KILTER_ERR_MEMORY, "listening for other workers: memory ran out");
        if (status) {
            free_mesh(m);
            return status;
        }
        e->mesh = m;
    }
    snprintf(address, KL_ADDRESS_BYTES, "%s", e->mesh->listener->address);
    return KILTER_OK;
}

static kilter_status reach(kl_transport *transport, const char *address, kl_peer *peer, kilter_error *error) {
    endpoint *e = (endpoint *)transport, *part = NULL;
    mesh *m = e->mesh;
    if (!m)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "reaching \"%.200s\": call open() first, so that other workers can reach this worker",
                       address);
    kl_key key;
    kl_zmq_options options = part_options(e, &key);
    endpoint **more = kl_array_grow(m->dialled, &m->room, m->count + 1, sizeof *more);
    if (!more)
        return kl_fail(error, KILTER_ERR_MEMORY, "reaching \"%.200s\": memory ran out", address);
    m->dialled = more;
    kilter_status status = kl_allow_files(FILES_OF_MESH, error);
    if (!status)
        status = new_endpoint(address, &options, false, m->context, &part, error);
    if (!status)
        status = dial(part, error);
    if (!status && !join_mesh(part, m))
        status = kl_fail(error, KILTER_ERR_SYSTEM, "reaching \"%.200s\": watching the sockets: %s", address,
                         strerror(errno));
    if (status) {
        free_endpoint(part);
        return status;
    }
    *peer = ((kl_peer)(FIRST_DIALLED + m->count) << NAME_BITS) | THE_MASTER;
    m->dialled[m->count++] = part;
    return KILTER_OK;
}
