/* Messages between endpoints of one process.
 *
 * Every endpoint has an inbox, and a sender puts an item into the receiver's inbox. Two lanes, one for each
 * direction, connect a worker and the master, or two workers of which one has reached the other. The fields
 * of a lane:
 *
 *     open     true: the lane accepts items
 *     last_s   time of the last item
 *     left     the event that tells the receiver that the lane is closed
 *     known    true: JOINED was delivered, and LEFT was not; used only by the receiver's thread
 *
 * The receiver's lock protects the first three fields. */
/* Take the hub's lock before an inbox's lock, and never hold the locks of two inboxes at the same time. */
#include "transport/transport.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "transport/transport_private.h"

enum { MASTER = 1 };

typedef struct item {
    struct item *next;
    double visible_s; /* time at which the item becomes visible to the receiver; only stepped hubs use this */
    kl_event_kind kind;
    kl_peer from;
    size_t size;
    uint8_t data[];
} item;

typedef struct lane {
    bool open, known;
    double last_s;
    item *left; /* the event LEFT, allocated in advance, so that closing the lane needs no memory */
} lane;

typedef struct side_lane { /* a lane (one direction of a connection) from another worker */
    struct side_lane *next;
    kl_peer from;
    lane lane;
} side_lane;

typedef struct endpoint {
    kl_transport transport;
    kl_inproc *hub;
    kl_peer number;
    lane to_master, to_worker; /* the two directions of the connection between a worker and its master */
    side_lane *sides;          /* connections from other workers to this one; `lock` protects the list */
    bool closed;               /* true: the endpoint is closed; protected by the hub's lock */

    pthread_mutex_t lock;
    pthread_cond_t arrival;
    item *first, *last; /* queue of items, sorted by visible_s, then by order of sending */
    bool woken;
} endpoint;

struct kl_inproc {
    const kl_inproc_stepped *stepped; /* the clock of a stepped hub; NULL: the hub is for threads */
    pthread_mutex_t lock;
    /* the endpoints, indexed by their number minus MASTER; the first is NULL until the master listens */
    endpoint **endpoints;
    uint64_t count, capacity;
};

/* --- functions for an endpoint's inbox --- */

static item *new_item(kl_event_kind kind, kl_peer from, const void *data, size_t size) {
    item *it = size <= SIZE_MAX - sizeof(item) ? malloc(sizeof *it + size) : NULL;
    if (!it)
        return NULL;
    *it = (item){.kind = kind, .from = from, .size = size};
    if (size)
        memcpy(it->data, data, size);
    return it;
}

static void insert(endpoint *to, item *it) {
    if (!to->last || to->last->visible_s <= it->visible_s) {
        if (to->last)
            to->last->next = it;
        else
            to->first = it;
        to->last = it;
        return;
    }
    item **place = &to->first;
    while ((*place)->visible_s <= it->visible_s)
        place = &(*place)->next;
    it->next = *place;
    *place = it;
}

static void remove_items_of(endpoint *e, kl_peer peer) {
    item **place = &e->first;
    e->last = NULL;
    while (*place) {
        item *it = *place;
        if (it->from == peer) {
            *place = it->next;
            free(it);
        } else {
            e->last = it;
            place = &it->next;
        }
    }
}

/* Return the lane that leads from one endpoint to the other. NULL: both are workers, and they have not
 * reached each other. */
static lane *lane_from(endpoint *from, endpoint *to) {
    if (to->number == MASTER || from->number == MASTER)
        return to->number == MASTER ? &from->to_master : &to->to_worker;
    pthread_mutex_lock(&to->lock);
    side_lane *side = to->sides;
    while (side && side->from != from->number)
        side = side->next;
    pthread_mutex_unlock(&to->lock);
    return side ? &side->lane : NULL;
}

/* Return the time at which an item that `from` sends now reaches its receiver; 0 in a hub for threads. */
static double arrival_s(const endpoint *from, size_t size) {
    const kl_inproc_stepped *s = from->hub->stepped;
    if (!s)
        return 0;
    return s->now_s(s->clock, from->number) + s->latency_s + s->per_byte_s * (double)size;
}

static void append(endpoint *to, lane *way, item *it, double at_s) {
    it->visible_s = way->last_s = fmax(at_s, way->last_s);
    insert(to, it);
    pthread_cond_signal(&to->arrival);
}

/* Put the item into the inbox of `to`. If the lane to it is closed, free the item instead. */
static void deliver(endpoint *to, lane *way, item *it, double at_s) {
    pthread_mutex_lock(&to->lock);
    bool open = way->open;
    if (open)
        append(to, way, it, at_s);
    pthread_mutex_unlock(&to->lock);
    if (!open)
        free(it);
}

static endpoint *find(kl_inproc *hub, kl_peer number) {
    pthread_mutex_lock(&hub->lock);
    endpoint *e = number >= MASTER && number - MASTER < hub->count ? hub->endpoints[number - MASTER] : NULL;
    pthread_mutex_unlock(&hub->lock);
    return e;
}

/* Return the endpoint with this number if `e` is or was connected with it. */
static endpoint *peer_of(endpoint *e, kl_peer number) {
    endpoint *other = number != e->number ? find(e->hub, number) : NULL;
    return other && lane_from(other, e) && lane_from(e, other) ? other : NULL;
}

/* --- the operations of the transport --- */

static kilter_status inproc_send(kl_transport *transport, kl_peer peer, const void *data, size_t size,
                                 kilter_error *error) {
    endpoint *from = (endpoint *)transport;
    endpoint *to = peer_of(from, peer);
    if (!to || !lane_from(to, from)->known)
        return kl_cannot_send(KILTER_ERR_PEER, peer, size, error);
    item *it = new_item(KL_EVENT_MESSAGE, from->number, data, size);
    if (!it)
        return kl_cannot_send(KILTER_ERR_MEMORY, peer, size, error);
    deliver(to, lane_from(from, to), it, arrival_s(from, size));
    return KILTER_OK;
}

/* Take the first item out of the inbox, but only if it is visible at now_s. Call this with e->lock held. */
static item *take(endpoint *e, double now_s) {
    item *it = e->first;
    if (!it || it->visible_s > now_s)
        return NULL;
    e->first = it->next;
    if (!e->first)
        e->last = NULL;
    return it;
}

static item *wait_for_item(endpoint *e, double timeout_s) {
    struct timespec until = timeout_s > 0 ? kl_time_after(timeout_s) : (struct timespec){0};
    item *it = NULL;
    pthread_mutex_lock(&e->lock);
    while (!e->woken && !(it = take(e, 0))) {
        if (timeout_s < 0)
            pthread_cond_wait(&e->arrival, &e->lock);
        else if (timeout_s == 0 || pthread_cond_timedwait(&e->arrival, &e->lock, &until) == ETIMEDOUT) {
            /* look once more, because an item may have arrived at the deadline */
            it = e->woken ? NULL : take(e, 0);
            break;
        }
    }
    e->woken = false;
    pthread_mutex_unlock(&e->lock);
    return it;
}

static item *item_now(endpoint *e) {
    double now_s = e->hub->stepped->now_s(e->hub->stepped->clock, e->number);
    pthread_mutex_lock(&e->lock);
    item *it = e->woken ? NULL : take(e, now_s);
    e->woken = false;
    pthread_mutex_unlock(&e->lock);
    return it;
}

static kilter_status inproc_poll(kl_transport *transport, double timeout_s, kl_event *event,
                                 kilter_error *error) {
    (void)error;
    endpoint *e = (endpoint *)transport;
    item *it = e->hub->stepped ? item_now(e) : wait_for_item(e, timeout_s);
    *event = (kl_event){.kind = KL_EVENT_NONE};
    if (!it)
        return KILTER_OK;
    event->kind = it->kind;
    event->peer = it->from;
    if (it->kind == KL_EVENT_MESSAGE) {
        event->message = (kl_message){.data = it->data, .size = it->size, .owner = it, .release = free};
        return KILTER_OK;
    }
    lane_from(peer_of(e, it->from), e)->known = it->kind == KL_EVENT_JOINED;
    free(it);
    return KILTER_OK;
}

/* Close both lanes between `e` and `peer`, and let the peer get LEFT. */
static void part(endpoint *e, endpoint *peer) {
    lane *in = lane_from(peer, e);
    pthread_mutex_lock(&e->lock);
    in->open = false;
    remove_items_of(e, peer->number);
    pthread_mutex_unlock(&e->lock);
    in->known = false;

    lane *way = lane_from(e, peer);
    double at_s = arrival_s(e, 0);
    pthread_mutex_lock(&peer->lock);
    if (way->open) { /* append the event `left`, the last item that this lane delivers */
        append(peer, way, way->left, at_s);
        way->left = NULL;
        way->open = false;
    }
    pthread_mutex_unlock(&peer->lock);
}

static void inproc_drop(kl_transport *transport, kl_peer peer) {
    endpoint *e = (endpoint *)transport;
    endpoint *other = peer_of(e, peer);
    if (other)
        part(e, other);
}

static void inproc_wake(kl_transport *transport) {
    endpoint *e = (endpoint *)transport;
    pthread_mutex_lock(&e->lock);
    e->woken = true;
    pthread_cond_signal(&e->arrival);
    pthread_mutex_unlock(&e->lock);
}

/* Close all lanes of the endpoint. The endpoint itself stays in the hub, because other threads may be
 * reading it. */
static void inproc_close(kl_transport *transport) {
    endpoint *e = (endpoint *)transport;
    kl_inproc *hub = e->hub;
    pthread_mutex_lock(&hub->lock);
    e->closed = true;
    for (size_t i = 0; i < hub->count; i++)
        if (hub->endpoints[i] && hub->endpoints[i] != e && lane_from(e, hub->endpoints[i]))
            part(e, hub->endpoints[i]);
    pthread_mutex_unlock(&hub->lock);
}

static kilter_status inproc_open(kl_transport *transport, char address[KL_ADDRESS_BYTES],
                                 kilter_error *error);
static kilter_status inproc_reach(kl_transport *transport, const char *address, kl_peer *peer,
                                  kilter_error *error);

static const kl_transport_ops inproc_ops = {.name = "inproc",
                                            .threads = true,
                                            .send = inproc_send,
                                            .poll = inproc_poll,
                                            .drop = inproc_drop,
                                            .wake = inproc_wake,
                                            .close = inproc_close,
                                            .open = inproc_open,
                                            .reach = inproc_reach};

/* --- functions for the hub --- */

kilter_status kl_inproc_new(const kl_inproc_stepped *stepped, kl_inproc **hub, kilter_error *error) {
    kl_inproc *h = calloc(1, sizeof *h);
    endpoint **endpoints = calloc(8, sizeof(endpoint *));
    if (!h || !endpoints) {
        free(h);
        free(endpoints);
        return kl_fail(error, KILTER_ERR_MEMORY, "making a hub for inproc endpoints: memory ran out");
    }
    h->stepped = stepped;
    h->endpoints = endpoints;
    h->capacity = 8;
    h->count = 1; /* the first place is kept for the master, which may come later */
    pthread_mutex_init(&h->lock, NULL);
    *hub = h;
    return KILTER_OK;
}

static void free_endpoint(endpoint *e) {
    if (!e)
        return;
    while (e->first) {
        item *it = e->first;
        e->first = it->next;
        free(it);
    }
    while (e->sides) {
        side_lane *side = e->sides;
        e->sides = side->next;
        free(side->lane.left);
        free(side);
    }
    free(e->to_master.left);
    free(e->to_worker.left);
    pthread_cond_destroy(&e->arrival);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

void kl_inproc_free(kl_inproc *hub) {
    if (!hub)
        return;
    for (size_t i = 0; i < hub->count; i++)
        free_endpoint(hub->endpoints[i]);
    free(hub->endpoints);
    pthread_mutex_destroy(&hub->lock);
    free(hub);
}

static endpoint *new_endpoint(kl_inproc *hub, kl_peer number) {
    endpoint *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    *e = (endpoint){.transport = {&inproc_ops}, .hub = hub, .number = number};
    kl_cond_init(&e->arrival);
    pthread_mutex_init(&e->lock, NULL);
    return e;
}

static bool open_lane(endpoint *from, endpoint *to, double at_s) {
    lane *way = lane_from(from, to);
    item *joined = new_item(KL_EVENT_JOINED, from->number, NULL, 0);
    item *left = new_item(KL_EVENT_LEFT, from->number, NULL, 0);
    if (!joined || !left) {
        free(joined);
        free(left);
        return false;
    }
    pthread_mutex_lock(&to->lock);
    free(way->left); /* free the event for the end of the lane, if the lane was open before */
    way->left = left;
    way->open = true;
    append(to, way, joined, at_s);
    pthread_mutex_unlock(&to->lock);
    return true;
}

/* Connect a worker and the master. Each gets JOINED one message time after the present time of `later`,
 * which is the endpoint that opened last. Call this with the hub's lock held. */
static bool tie(endpoint *master, endpoint *worker, const endpoint *later) {
    double at_s = arrival_s(later, 0);
    return open_lane(master, worker, at_s) && open_lane(worker, master, at_s);
}

/* --- functions for workers that reach each other --- */

static const char ADDRESS[] = "worker ";

static kilter_status inproc_open(kl_transport *transport, char address[KL_ADDRESS_BYTES],
                                 kilter_error *error) {
    const endpoint *e = (const endpoint *)transport;
    if (e->number == MASTER)
        return kl_fail(error, KILTER_ERR_USAGE, "listening for other workers: only a worker can do this");
    snprintf(address, KL_ADDRESS_BYTES, "%s%llu", ADDRESS, (unsigned long long)e->number);
    return KILTER_OK;
}

/* Make lanes between two workers, unless they have lanes already. The new lanes are closed. false: memory
 * ran out. */
static bool add_sides(endpoint *a, endpoint *b) {
    if (lane_from(a, b))
        return true;
    side_lane *to_a = calloc(1, sizeof *to_a), *to_b = calloc(1, sizeof *to_b);
    if (!to_a || !to_b) {
        free(to_a);
        free(to_b);
        return false;
    }
    to_a->from = b->number;
    to_b->from = a->number;
    pthread_mutex_lock(&a->lock);
    to_a->next = a->sides;
    a->sides = to_a;
    pthread_mutex_unlock(&a->lock);
    pthread_mutex_lock(&b->lock);
    to_b->next = b->sides;
    b->sides = to_b;
    pthread_mutex_unlock(&b->lock);
    return true;
}

/* Open both lanes between `e` and the worker that it reaches. `e` may send at once; the other worker gets
 * JOINED. false: memory ran out. */
static bool open_sides(endpoint *e, endpoint *other) {
    lane *in = lane_from(other, e);
    item *left = new_item(KL_EVENT_LEFT, other->number, NULL, 0);
    if (!left || !open_lane(e, other, arrival_s(e, 0))) {
        free(left);
        return false;
    }
    pthread_mutex_lock(&e->lock);
    in->left = left;
    in->open = in->known = true;
    pthread_mutex_unlock(&e->lock);
    return true;
}

/* Connect to another worker. If that worker has closed already, LEFT comes for it at once. */
static kilter_status inproc_reach(kl_transport *transport, const char *address, kl_peer *peer,
                                  kilter_error *error) {
    endpoint *e = (endpoint *)transport;
    char *end = NULL;
    bool ours = strncmp(address, ADDRESS, sizeof ADDRESS - 1) == 0;
    kl_peer number = ours ? strtoull(address + sizeof ADDRESS - 1, &end, 10) : KL_NO_PEER;
    endpoint *other = ours && !*end && number > MASTER && number != e->number ? find(e->hub, number) : NULL;
    if (!other || e->number == MASTER)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "reaching \"%.200s\": no worker of this farm has this address", address);
    pthread_mutex_lock(&e->hub->lock);
    bool fits = add_sides(e, other);
    lane *in = lane_from(other, e);
    pthread_mutex_lock(&e->lock);
    bool is_open = fits && in->open, fresh = fits && !in->open && !in->left;
    if (is_open)
        in->known = true; /* the other worker has reached this one before, so no JOINED is needed */
    pthread_mutex_unlock(&e->lock);
    if (fresh)
        fits = open_sides(e, other);
    if (fits && other->closed)
        part(other, e);
    pthread_mutex_unlock(&e->hub->lock);
    if (!fits)
        return kl_fail(error, KILTER_ERR_MEMORY, "reaching \"%.200s\": memory ran out", address);
    *peer = number;
    return KILTER_OK;
}

static kilter_status out_of_memory(const char *what, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_MEMORY, "making an inproc %s: memory ran out", what);
}

kilter_status kl_inproc_listen(kl_inproc *hub, kl_transport **transport, kilter_error *error) {
    endpoint *master = new_endpoint(hub, MASTER);
    if (!master)
        return out_of_memory("master", error);
    pthread_mutex_lock(&hub->lock);
    if (hub->endpoints[0]) {
        pthread_mutex_unlock(&hub->lock);
        free_endpoint(master);
        return kl_fail(error, KILTER_ERR_USAGE,
                       "making an inproc master: this hub already had a master; make another hub");
    }
    hub->endpoints[0] = master;
    bool tied = true;
    for (size_t i = 1; i < hub->count && tied; i++)
        if (!hub->endpoints[i]->closed)
            tied = tie(master, hub->endpoints[i], master);
    pthread_mutex_unlock(&hub->lock);
    if (!tied) {
        inproc_close(&master->transport);
        return out_of_memory("master", error);
    }
    *transport = &master->transport;
    return KILTER_OK;
}

/* Make room for one more endpoint in the hub. Call this with the hub's lock held. */
static bool reserve(kl_inproc *hub) {
    endpoint **more = kl_array_grow(hub->endpoints, &hub->capacity, hub->count + 1, sizeof *more);
    hub->endpoints = more ? more : hub->endpoints;
    return more;
}

kilter_status kl_inproc_join(kl_inproc *hub, kl_peer *number, kl_transport **transport, kilter_error *error) {
    endpoint *worker = new_endpoint(hub, 0);
    if (!worker)
        return out_of_memory("worker", error);
    pthread_mutex_lock(&hub->lock);
    worker->number = MASTER + hub->count;
    endpoint *master = hub->endpoints[0];
    bool joined = reserve(hub) && (!master || master->closed || tie(master, worker, worker));
    if (joined)
        hub->endpoints[hub->count++] = worker;
    pthread_mutex_unlock(&hub->lock);
    if (!joined) {
        free_endpoint(worker);
        return out_of_memory("worker", error);
    }
    if (number)
        *number = worker->number;
    *transport = &worker->transport;
    return KILTER_OK;
}

double kl_inproc_next_s(const kl_inproc *hub, kl_peer number) {
    endpoint *e = find((kl_inproc *)hub, number);
    if (!e)
        return HUGE_VAL;
    pthread_mutex_lock(&e->lock);
    double next_s = e->first ? e->first->visible_s : HUGE_VAL;
    pthread_mutex_unlock(&e->lock);
    return next_s;
}
