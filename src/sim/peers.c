/* Simulate peers in virtual time: carry out their actions, and compute how long each action takes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/heap.h"
#include "sim/sim.h"

/* seconds from the death of a peer until other peers learn of it */
static const double NOTICE_S = 0.05;
enum { ROOT = 0 };

/* A message that is under way or waits for its receiver. If `gone` is true, it tells the receiver that the
 * peer `from` is gone. */
typedef struct packet {
    struct packet *next;
    uint32_t from;
    bool gone;
    size_t size;
    uint8_t data[];
} packet;

typedef enum doing {
    ENDS,    /* the running task of the peer ends */
    ARRIVES, /* a packet arrives at the host of the peer */
    HEARS,   /* the peer has taken in a packet that had arrived */
    WAKES,
    JOINS,
    DIES,
    NOTICED, /* other peers learn that this peer has died */
} doing;

typedef struct seat { /* what the simulation knows about one peer */
    kl_node *engine;  /* the code of the peer; NULL: the peer is not present */
    kl_host host;
    double clock;  /* speed of the peer's own clock: seconds that it counts in one second */
    double dies_s; /* time at which the peer dies; INFINITY: it does not die */
    bool busy;
    uint64_t task; /* task: index of the running task; ends_s: time at which it ends */
    double ends_s;
    double attends_until_s; /* time until which the host handles messages */
    double link_free_s, wake_s, last_s;
    packet *first, *last; /* packets that wait until the running task has ended */
    uint64_t messages;
} seat;

typedef struct world {
    const kl_sim_peers *of;
    const kl_sim_run *run;
    kl_sim_peers_outcome *outcome;
    seat *seats;
    uint32_t count,
        there; /* count: number of all peers; there: number of peers that are present at the beginning */
    kl_heap heap;
    kl_node_actions actions;
    uint64_t sum; /* sum of the results that the root has counted */
    double now_s;
    bool over;
    kilter_error failure;
} world;

static void out_of_memory(world *w) {
    if (w->failure.status == KILTER_OK)
        kl_fail(&w->failure, KILTER_ERR_MEMORY, "simulating %u peers: memory ran out", (unsigned)w->count);
}

static void will(world *w, double at_s, uint32_t who, doing what, packet *p) {
    kl_happening one = {.at_s = at_s, .who = who, .what = (int)what, .thing = p};
    bool comes = at_s < INFINITY;
    if (comes && kl_heap_push(&w->heap, one))
        return;
    free(p);
    if (comes)
        out_of_memory(w);
}

/* --- messages --- */

static double way_s(const world *w, uint32_t a, uint32_t b) {
    const kl_cluster *c = w->of->cluster;
    return a == b ? 0 : c->near > 0 && a / c->near != b / c->near ? c->far_s : 2 * c->latency_s;
}

/* Let the host of a peer handle a message for message_s. This delays the running task. */
static void attend(world *w, seat *s, double at_s) {
    s->attends_until_s = kl_host_end_s(&s->host, fmax(s->attends_until_s, at_s), w->of->message_s);
    if (s->busy)
        s->ends_s = kl_host_end_s(&s->host, s->ends_s, w->of->message_s);
}

static packet *packet_new(world *w, uint32_t from, const void *data, size_t size) {
    packet *p = malloc(sizeof *p + size);
    if (!p) {
        out_of_memory(w);
        return NULL;
    }
    *p = (packet){.from = from, .size = size};
    if (size > 0)
        memcpy(p->data, data, size);
    return p;
}

static void send(world *w, uint32_t from, const kl_node_action *a, double at_s) {
    seat *s = &w->seats[from];
    packet *p = packet_new(w, from, w->actions.bytes.data + a->at, a->size);
    if (!p || a->peer >= w->count) {
        free(p);
        return;
    }
    attend(w, s, at_s);
    double bytes = (double)a->size + (double)a->task * (double)w->run->task_bytes;
    s->link_free_s = fmax(s->link_free_s, s->attends_until_s) + bytes / w->of->cluster->bytes_per_s;
    s->messages++;
    w->outcome->moved += a->task;
    will(w, s->link_free_s + way_s(w, from, a->peer), a->peer, ARRIVES, p);
}

/* Tell peer `to` that peer `gone` is dead. */
static void tell(world *w, uint32_t to, uint32_t gone) {
    packet *p = w->seats[to].engine ? packet_new(w, gone, NULL, 0) : NULL;
    if (!p)
        return;
    p->gone = true;
    will(w, fmax(w->now_s, w->seats[gone].dies_s + NOTICE_S), to, ARRIVES, p);
}

/* --- steps --- */

static double task_s(const world *w, uint64_t task) {
    return w->run->task_s ? w->run->task_s(w->run->self, 0, task) : w->run->even_s;
}

/* Add the result of a task to the sum. The result of a task is kl_mix64() of its index. */
static bool add_sums(void *self, kl_buffer *into, const void *value, size_t size) {
    (void)self;
    uint64_t sum = 0, more;
    if (size != sizeof more)
        return false;
    memcpy(&more, value, sizeof more);
    if (into->size > 0)
        memcpy(&sum, into->data, sizeof sum);
    sum += more;
    kl_buffer_clear(into);
    kl_put_bytes(into, &sum, sizeof sum);
    return !into->failed;
}

static void count(world *w, const kl_node_action *a) {
    uint64_t sum = 0;
    if (a->size > 0)
        memcpy(&sum, w->actions.bytes.data + a->at, sizeof sum);
    w->sum += sum;
}

static void step(world *w, uint32_t i, const kl_node_event *event, double at_s) {
    seat *s = &w->seats[i];
    s->last_s = fmax(s->last_s, at_s);
    kl_node_step(s->engine, event, s->last_s * s->clock, &w->actions);
    w->actions.wake_s /= s->clock;
    if (w->actions.failed)
        out_of_memory(w);
    for (size_t k = 0; k < w->actions.count; k++) {
        const kl_node_action *a = &w->actions.items[k];
        if (a->kind == KL_NODE_SEND) {
            send(w, i, a, s->last_s);
        } else if (a->kind == KL_NODE_BEGIN) {
            s->busy = true;
            s->task = a->task;
            s->ends_s = kl_host_end_s(&s->host, fmax(s->last_s, s->attends_until_s), task_s(w, a->task));
            will(w, s->ends_s, i, ENDS, NULL);
        } else if (a->kind == KL_NODE_COUNTS) {
            count(w, a);
        } else {
            w->over |= i == ROOT;
        }
    }
    if (w->actions.wake_s != s->wake_s)
        will(w, fmax(w->actions.wake_s, s->last_s), i, WAKES, NULL);
    s->wake_s = w->actions.wake_s;
}

static void hear(world *w, uint32_t i, packet *p, double at_s) {
    kl_node_event event = {
        .kind = p->gone ? KL_NODE_LOSES : KL_NODE_HEARS, .peer = p->from, .data = p->data, .size = p->size};
    step(w, i, &event, at_s);
    free(p);
}

/* Tell the sender of a packet that the receiver is not present. */
static void come_back(world *w, uint32_t i, packet *p) {
    if (!p->gone)
        tell(w, p->from, i);
    free(p);
}

static void wait_for_end(seat *s, packet *p) {
    p->next = NULL;
    if (s->first)
        s->last->next = p;
    else
        s->first = p;
    s->last = p;
}

static void arrives(world *w, uint32_t i, packet *p) {
    seat *s = &w->seats[i];
    if (!s->engine) {
        come_back(w, i, p);
    } else if (s->busy && !w->of->attends) {
        wait_for_end(s, p);
    } else {
        attend(w, s, w->now_s);
        will(w, s->attends_until_s, i, HEARS, p);
    }
}

static void hears(world *w, uint32_t i, packet *p) {
    seat *s = &w->seats[i];
    if (!s->engine)
        come_back(w, i, p);
    else if (s->busy && !w->of->attends)
        wait_for_end(s, p);
    else
        hear(w, i, p, w->now_s);
}

/* End the running task of a peer. The peer first handles the messages that arrived during the task. */
static void ends(world *w, uint32_t i) {
    seat *s = &w->seats[i];
    if (!s->engine)
        return;
    if (s->ends_s > w->now_s) { /* messages have delayed the task, so it ends later */
        will(w, s->ends_s, i, ENDS, NULL);
        return;
    }
    while (s->first) {
        packet *p = s->first;
        s->first = p->next;
        attend(w, s, w->now_s);
        hear(w, i, p, s->attends_until_s);
    }
    s->busy = false;
    w->outcome->executed++;
    uint64_t result = kl_mix64(s->task);
    kl_node_event ended = {.kind = KL_NODE_ENDED, .data = &result, .size = sizeof result};
    step(w, i, &ended, fmax(w->now_s, w->of->attends ? 0 : s->last_s));
}

static void wakes(world *w, uint32_t i) {
    seat *s = &w->seats[i];
    if (!s->engine || s->wake_s > w->now_s || (s->busy && !w->of->attends))
        return;
    s->wake_s = INFINITY;
    step(w, i, &(kl_node_event){.kind = KL_NODE_REACHED}, w->now_s);
}

/* --- peers join and die --- */

static void joins(world *w, uint32_t i) {
    if (w->seats[i].dies_s <= w->now_s)
        return;
    kl_span share = {0};
    if (i < w->there) {
        share.lo = w->run->tasks / w->there * i + w->run->tasks % w->there * i / w->there;
        share.hi = w->run->tasks / w->there * (i + 1) + w->run->tasks % w->there * (i + 1) / w->there;
    }
    kl_node_options options = {.number = i,
                               .peers = w->there,
                               .near = w->of->cluster->near,
                               .tasks = w->run->tasks,
                               .share = share,
                               .help = w->of->help,
                               .combine = {.add = add_sums},
                               .attends = w->of->attends,
                               .seed = w->of->seed};
    w->seats[i].engine = kl_node_new(&options);
    if (w->seats[i].engine)
        step(w, i, &(kl_node_event){.kind = KL_NODE_STARTS}, w->now_s);
    else
        out_of_memory(w);
}

static void dies(world *w, uint32_t i) {
    seat *s = &w->seats[i];
    if (i == ROOT && s->engine)
        kl_fail(&w->failure, KILTER_ERR_PEER,
                "peer 0, the root, died at %g s: %llu of %llu tasks were counted, the others are lost",
                w->now_s, kl_ull(kl_node_state_of(s->engine).committed), kl_ull(w->run->tasks));
    kl_node_free(s->engine);
    s->engine = NULL;
    s->busy = false;
    will(w, w->now_s + NOTICE_S, i, NOTICED, NULL);
}

/* Tell the descendants of peer i in the tree that `gone` is dead. On each path down, only the first living
 * peer is told. */
static void tell_below(world *w, uint32_t i, uint32_t gone) {
    for (uint64_t c = (uint64_t)i * KL_PEERS_BELOW + 1;
         c <= (uint64_t)i * KL_PEERS_BELOW + KL_PEERS_BELOW && c < w->count; c++)
        if (w->seats[c].engine)
            tell(w, (uint32_t)c, gone);
        else
            tell_below(w, (uint32_t)c, gone);
}

/* Tell the peers that were connected to a dead peer: its parent, its children, and the senders of messages
 * that it has not taken in. */
static void noticed(world *w, uint32_t i) {
    seat *s = &w->seats[i];
    uint32_t above = i;
    while (above > 0 && !w->seats[above].engine)
        above = (above - 1) / KL_PEERS_BELOW;
    tell(w, above, i);
    tell_below(w, i, i);
    while (s->first) {
        packet *p = s->first;
        s->first = p->next;
        come_back(w, i, p);
    }
}

static void happens(world *w, const kl_happening *one) {
    switch ((doing)one->what) {
    case ENDS:
        ends(w, one->who);
        break;
    case ARRIVES:
        arrives(w, one->who, one->thing);
        break;
    case HEARS:
        hears(w, one->who, one->thing);
        break;
    case WAKES:
        wakes(w, one->who);
        break;
    case JOINS:
        joins(w, one->who);
        break;
    case DIES:
        dies(w, one->who);
        break;
    case NOTICED:
        noticed(w, one->who);
        break;
    }
}

/* --- a run --- */

static int by_arrival(const void *a, const void *b) {
    const seat *x = a, *y = b;
    if (x->host.joins_s != y->host.joins_s)
        return x->host.joins_s < y->host.joins_s ? -1 : 1;
    return x->last_s < y->last_s ? -1 : x->last_s > y->last_s;
}

/* Make the peers' data from the platform. Peers are numbered in the order in which they join. */
static bool make_seats(world *w) {
    const kl_cluster *c = w->of->cluster;
    w->seats = calloc(c->workers, sizeof *w->seats);
    if (!w->seats)
        return false;
    for (uint32_t g = 0; g < c->group_count; g++)
        for (uint32_t k = 0; k < c->groups[g].count; k++) {
            const kl_host *h = &c->groups[g].host;
            double part = (double)(kl_mix64(w->of->seed + kl_mix64(w->count)) >> 11) * 0x1p-53;
            double dies_s =
                h->dies_by_s > 0 ? h->dies_from_s + part * (h->dies_by_s - h->dies_from_s) : INFINITY;
            w->seats[w->count] = (seat){.host = *h, .dies_s = dies_s, .wake_s = INFINITY, .last_s = w->count};
            w->there += !(h->joins_s > 0);
            w->count++;
        }
    qsort(w->seats, w->count, sizeof *w->seats, by_arrival);
    for (uint32_t i = 0; i < w->count; i++) {
        w->seats[i].last_s = 0;
        w->seats[i].clock = w->of->clock ? w->of->clock(w->of->self, i) : 1;
    }
    return w->there > 0;
}

static void close_world(world *w) {
    for (size_t i = 0; i < w->heap.count; i++)
        free(w->heap.items[i].thing);
    for (uint32_t i = 0; w->seats && i < w->count; i++) {
        kl_node_free(w->seats[i].engine);
        while (w->seats[i].first) {
            packet *p = w->seats[i].first;
            w->seats[i].first = p->next;
            free(p);
        }
    }
    kl_node_actions_free(&w->actions);
    free(w->heap.items);
    free(w->seats);
}

/* Return the shortest time that the run could take on these hosts. A host counts only while its peer is
 * present. */
static double bound_s(const world *w, double work_s) {
    kl_host_group *groups = calloc(w->count + 1, sizeof *groups);
    if (!groups)
        return 0;
    for (uint32_t i = 0; i < w->count; i++) {
        kl_host *h = &groups[i].host;
        groups[i].count = 1;
        *h = w->seats[i].host;
        if (h->joins_s > 0)
            h->profile = (kl_profile){.count = 2, .at_s = {0, h->joins_s}, .factor = {0, 1}};
        else if (w->seats[i].dies_s < INFINITY)
            h->profile = (kl_profile){.count = 1, .at_s = {w->seats[i].dies_s}, .factor = {0}};
    }
    double bound = kl_cluster_bound_s(&(kl_cluster){.groups = groups, .group_count = w->count}, 0, work_s);
    free(groups);
    return bound;
}

static void sum_up(world *w) {
    kl_sim_peers_outcome *o = w->outcome;
    kl_node_state state = kl_node_state_of(w->seats[ROOT].engine);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < w->run->tasks; i++) {
        o->work_s += task_s(w, i);
        sum += kl_mix64(i);
    }
    o->exact = w->sum == sum;
    for (uint32_t i = 0; i < w->count; i++) {
        o->messages += w->seats[i].messages;
        if (w->seats[i].messages > o->most_messages)
            o->most_messages = w->seats[i].messages;
    }
    o->elapsed_s = w->now_s;
    o->bound_s = bound_s(w, o->work_s);
    o->results = state.committed;
    o->twice = state.twice;
    o->adopted = state.adopted;
    o->rounds = state.rounds;
    o->deaths = state.deaths;
    o->peers = w->count;
}

kilter_status kl_sim_peers_run(const kl_sim_peers *peers, const kl_sim_run *run,
                               kl_sim_peers_outcome *outcome, kilter_error *error) {
    world w = {.of = peers, .run = run, .outcome = outcome};
    *outcome = (kl_sim_peers_outcome){0};
    if (!make_seats(&w))
        kl_fail(&w.failure, w.seats ? KILTER_ERR_RANGE : KILTER_ERR_MEMORY,
                w.seats ? "no peer is present at the start" : "simulating peers: memory ran out");
    for (uint32_t i = 0; w.failure.status == KILTER_OK && i < w.count; i++) {
        will(&w, w.seats[i].host.joins_s, i, JOINS, NULL);
        will(&w, w.seats[i].dies_s, i, DIES, NULL);
    }
    while (w.failure.status == KILTER_OK && !w.over) {
        if (w.heap.count == 0) {
            kl_fail(&w.failure, KILTER_ERR_RANGE, "no event is left, so the run cannot end");
            break;
        }
        kl_happening one = kl_heap_pop(&w.heap);
        w.now_s = one.at_s;
        happens(&w, &one);
    }
    if (w.failure.status == KILTER_OK)
        sum_up(&w);
    else if (error)
        *error = w.failure;
    close_world(&w);
    return w.failure.status;
}
