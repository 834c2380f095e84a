/* A whole farm in one thread under a simulated clock, for tests. The real master and workers take turns.
 * Their messages go through a hub in this process, which delays each message by simulated time. The same seed
 * gives exactly the same run. */
/* Every actor (master or worker) has its own time. The actor whose next event comes first has the next turn.
 * Later actions of other actors cannot affect this turn, because messages take time. */
/* A task moves its worker's time ahead of the other actors' times. When the worker then checks for messages,
 * the other actors may not have sent theirs yet. The worker gets these messages at its next check. If
 * farm->attended is set, the other actors first handle all earlier events, also during a long task. */
#ifndef KL_STEPPED_H
#define KL_STEPPED_H

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/engine.h"

/* The transport of an actor. Sending a message takes time of the sender. If farm->attended is set, the other
 * actors handle all earlier events before a worker checks for messages. */
typedef struct stepped_wire {
    kl_transport base;
    kl_transport *inner;
    struct stepped_farm *farm;
    struct stepped_actor *actor;
} stepped_wire;

typedef struct stepped_actor {
    double now_s;
    double speed;  /* seconds of work that the worker does in one second */
    double dies_s; /* HUGE_VAL: never */
    kl_transport *transport;
    stepped_wire wire;
    kl_worker_options options;
    kl_worker *worker; /* NULL: the worker has left or died */
    kl_peer endpoint;
    bool refuses; /* true: the worker's start function fails */
    bool killed;  /* true: the worker died in a task; the task's function sets this */
    bool moves;   /* true: the actor is having its turn */
    void *user;   /* a pointer for the test's own use */
} stepped_actor;

typedef struct stepped_farm {
    kl_inproc *hub;
    kl_inproc_stepped timing;
    stepped_actor master_actor;
    kl_master *master;
    stepped_actor *workers;
    uint32_t count;
    double send_s; /* seconds of the sender's time that sending a message takes */
    /* The test sets the fields from here up to `attempts` before it opens the farm. If `release` is true,
     * workers that are not needed are released. */
    bool release;
    bool whole_team; /* true: all workers are active, and none rests */
    /* number of active workers in the first run; 0: all connected workers */
    uint32_t seats;
    uint32_t room; /* number of workers that can still join after the farm is opened */
    bool attended; /* true: workers check for messages also during a task */
    /* called when a worker is lost, as kl_master_options.lost; its argument `self` is the member `user` */
    void (*lost)(void *self, uint64_t pid, bool missed, char *how, size_t size);
    /* a member that has sent no greeting after this many seconds is sent away; 0: never */
    double greeting_s;
    kl_organise organise;
    const kl_help *help;
    kl_reducer reducer;
    uint32_t attempts;
    /* called before a message is sent; if this function sets actor->killed, the message is not sent */
    void (*sends)(struct stepped_farm *farm, stepped_actor *actor, const void *data, size_t size);
    void *user;
    double task_s;        /* seconds that a task takes at speed 1, if its function is stepped_task() */
    uint64_t tasks;       /* number of tasks of the run, including those that were added */
    kilter_error failure; /* error of a turn that the master had within stepped_catch_up() */
} stepped_farm;

static inline void stepped_catch_up(stepped_farm *f, double now_s);

static kilter_status wire_send(kl_transport *t, kl_peer peer, const void *data, size_t size,
                               kilter_error *error) {
    stepped_wire *wire = (stepped_wire *)t;
    if (wire->farm->sends && wire->actor->worker && !wire->actor->killed)
        wire->farm->sends(wire->farm, wire->actor, data, size);
    if (wire->actor->killed)
        return kl_fail(error, KILTER_ERR_PEER, "this test killed the worker");
    wire->actor->now_s += wire->farm->send_s;
    return wire->inner->ops->send(wire->inner, peer, data, size, error);
}

static kilter_status wire_poll(kl_transport *t, double timeout_s, kl_event *event, kilter_error *error) {
    stepped_wire *wire = (stepped_wire *)t;
    if (wire->farm->attended && wire->actor->worker)
        stepped_catch_up(wire->farm, wire->actor->now_s);
    return kl_poll(wire->inner, timeout_s, event, error);
}

static void wire_drop(kl_transport *t, kl_peer peer) {
    kl_drop(((stepped_wire *)t)->inner, peer);
}

static void wire_wake(kl_transport *t) {
    kl_transport_wake(((stepped_wire *)t)->inner);
}

static void wire_close(kl_transport *t) {
    kl_transport_close(((stepped_wire *)t)->inner);
}

static kilter_status wire_open(kl_transport *t, char address[KL_ADDRESS_BYTES], kilter_error *error) {
    return kl_open_to_workers(((stepped_wire *)t)->inner, address, error);
}

static kilter_status wire_reach(kl_transport *t, const char *address, kl_peer *peer, kilter_error *error) {
    return kl_reach(((stepped_wire *)t)->inner, address, peer, error);
}

static inline void stepped_wire_up(stepped_farm *f, stepped_actor *a) {
    static const kl_transport_ops ops = {
        .name = "stepped",
        .send = wire_send,
        .poll = wire_poll,
        .drop = wire_drop,
        .wake = wire_wake,
        .close = wire_close,
        .open = wire_open,
        .reach = wire_reach,
    };
    a->wire = (stepped_wire){{&ops}, a->transport, f, a};
    a->transport = &a->wire.base;
}

static double actor_now_s(void *self) {
    return ((stepped_actor *)self)->now_s;
}

/* Return the present time of the actor with this endpoint. If no actor has it, return the time of the
 * master. */
static double endpoint_now_s(void *clock, kl_peer endpoint) {
    stepped_farm *f = clock;
    for (uint32_t i = endpoint < 2 ? f->count : 0; i < f->count; i++) {
        /* in most cases, the first index tried is the index of the actor */
        uint32_t at = (uint32_t)((endpoint - 2 + i) % f->count);
        if (f->workers[at].endpoint == endpoint)
            return f->workers[at].now_s;
    }
    return f->master_actor.now_s;
}

static int stepped_start(const kilter_worker *worker, void **state) {
    *state = worker->user;
    return ((stepped_actor *)worker->user)->refuses;
}

static const double STEPPED_LOOK_S = 10e-3; /* seconds between two checks for messages during a task */

/* Let the worker's time advance by the time of a task that takes work_s seconds at speed 1. Work functions
 * must call this, because simulated time passes only here. */
static inline void stepped_spend(void *state, double work_s) {
    stepped_actor *actor = state;
    double left_s = work_s / actor->speed;
    for (; left_s > STEPPED_LOOK_S && actor->wire.farm->attended; left_s -= STEPPED_LOOK_S) {
        actor->now_s += STEPPED_LOOK_S;
        kl_worker_attend(actor->worker);
    }
    actor->now_s += left_s;
}

/* Work function: take task_s seconds at speed 1, and return the task's index as result. */
static inline int stepped_task(const kilter_task *task, kilter_result *result, void *state) {
    stepped_spend(state, ((stepped_actor *)state)->wire.farm->task_s);
    return kilter_result_put(result, &task->index, sizeof task->index);
}

/* Count the results. This is the `done` function of a run. */
static inline void stepped_count(const kilter_outcome *outcome, void *user) {
    (void)outcome;
    ++*(uint64_t *)user;
}

static void stepped_introduce(void *self, kl_hello *hello) {
    char host[KL_HOST_BYTES];
    (void)self;
    kl_host_name(host);
    snprintf(hello->host, sizeof hello->host, "%.127s", host);
    hello->pid = (uint64_t)getpid();
}

/* Let one more worker join now. There must be room for it. */
static inline void stepped_join(stepped_farm *f, kilter_work_fn work) {
    stepped_actor *a = &f->workers[f->count++];
    a->now_s = f->master_actor.now_s;
    a->speed = 1;
    a->dies_s = HUGE_VAL;
    kilter_status status = kl_inproc_join(f->hub, &a->endpoint, &a->transport, NULL);
    assert(status == KILTER_OK);
    stepped_wire_up(f, a);
    a->options = (kl_worker_options){.work = work,
                                     .start = stepped_start,
                                     .user = a,
                                     .combine = f->reducer.combine,
                                     .program = "test",
                                     .binding = "",
                                     .introduce = stepped_introduce,
                                     .clock = {.now_s = actor_now_s, .self = a},
                                     .patience_s = -1};
    status = kl_worker_new(&a->options, a, a->transport, &a->worker, NULL);
    assert(status == KILTER_OK);
    if (f->attended)
        kl_worker_let_attend(a->worker, &(kl_attendance){.busy_s = actor_now_s, .self = a});
    (void)status;
}

static inline void stepped_open(stepped_farm *f, const char *policy, uint32_t workers, double latency_s,
                                kilter_work_fn work) {
    f->timing =
        (kl_inproc_stepped){.latency_s = latency_s, .per_byte_s = 8e-9, .now_s = endpoint_now_s, .clock = f};
    f->count = 0;
    f->workers = calloc((size_t)workers + f->room + 1, sizeof *f->workers);
    kilter_status status = kl_inproc_new(&f->timing, &f->hub, NULL);
    assert(status == KILTER_OK);
    status = kl_inproc_listen(f->hub, &f->master_actor.transport, NULL);
    assert(status == KILTER_OK);
    stepped_wire_up(f, &f->master_actor);
    kl_master_options master = {.policy = kl_policy_find(policy),
                                .program = "test",
                                .chooses = !f->whole_team,
                                .seats = f->seats,
                                .release = f->release,
                                .greeting_s = f->greeting_s,
                                .organise = f->organise,
                                .help = f->help,
                                .reducer = f->reducer,
                                .attempts = f->attempts,
                                .lost = f->lost,
                                .self = f->user};
    master.clock = (kl_clock){.now_s = actor_now_s, .self = &f->master_actor};
    kl_hello me;
    stepped_introduce(NULL, &me);
    memcpy(master.host, me.host, sizeof master.host);
    status = kl_master_new(&master, f->master_actor.transport, &f->master, NULL);
    assert(status == KILTER_OK);
    for (uint32_t i = 0; i < workers; i++)
        stepped_join(f, work);
    (void)status;
}

static inline double actor_next_s(const stepped_farm *f, const stepped_actor *a, bool has_work,
                                  kl_peer endpoint) {
    double event_s = kl_inproc_next_s(f->hub, endpoint);
    return has_work || event_s < a->now_s ? a->now_s : event_s;
}

static inline void worker_gone(stepped_actor *a) {
    kl_worker_free(a->worker);
    kl_transport_close(a->transport);
    a->worker = NULL;
}

/* Return the actor whose next event comes first, and set *first_s to the time of this event. */
static inline stepped_actor *stepped_next(stepped_farm *f, double *first_s) {
    stepped_actor *next = &f->master_actor;
    *first_s = fmin(actor_next_s(f, next, false, 1), kl_master_due_s(f->master));
    for (uint32_t i = 0; i < f->count; i++) {
        stepped_actor *a = &f->workers[i];
        if (!a->worker || a->moves)
            continue;
        double next_s = fmin(actor_next_s(f, a, kl_worker_has_work(a->worker), a->endpoint), a->dies_s);
        next_s = fmin(next_s, fmax(a->now_s, kl_worker_due_s(a->worker)));
        if (next_s < *first_s) {
            *first_s = next_s;
            next = a;
        }
    }
    return next;
}

static inline kilter_status stepped_move(stepped_farm *f, stepped_actor *next, double at_s,
                                         kilter_error *error) {
    if (next->now_s < at_s)
        next->now_s = at_s;
    if (next == &f->master_actor)
        return kl_master_turn(f->master, 0, error);
    next->moves = true;
    if (next->now_s >= next->dies_s || kl_worker_turn(next->worker, 0, NULL) != KILTER_OK || next->killed)
        worker_gone(next);
    next->moves = false;
    return KILTER_OK;
}

/* Let all actors handle the events that come before now_s. */
static inline void stepped_catch_up(stepped_farm *f, double now_s) {
    double first_s;
    kilter_error error;
    for (stepped_actor *next = stepped_next(f, &first_s); first_s < now_s; next = stepped_next(f, &first_s))
        if (stepped_move(f, next, first_s, &error) != KILTER_OK)
            f->failure = error;
}

/* Let the actor whose event comes first have one turn. */
static inline kilter_status stepped_turn(stepped_farm *f, kilter_error *error) {
    double first_s;
    stepped_actor *next = stepped_next(f, &first_s);
    assert(first_s < HUGE_VAL); /* if no actor has an event, all actors wait for each other */
    kilter_status status = stepped_move(f, next, first_s, error);
    if (status != KILTER_OK || f->failure.status == KILTER_OK)
        return status;
    if (error)
        *error = f->failure;
    status = f->failure.status;
    f->failure.status = KILTER_OK;
    return status;
}

/* Run the farm until all workers are ready for tasks or were refused. */
static inline void stepped_gather(stepped_farm *f) {
    while (kl_master_ready(f->master) + kl_master_refused(f->master) < f->count) {
        kilter_status status = stepped_turn(f, NULL);
        assert(status == KILTER_OK);
        (void)status;
    }
}

/* Add tasks as kilter_farm_add() does. The caller must keep the data of `inputs` until the run has ended. */
static inline kilter_status stepped_add(stepped_farm *f, uint64_t count, const kilter_bytes *inputs,
                                        const double *weights, kilter_error *error) {
    f->tasks += count;
    return kl_master_grow(f->master, count, inputs, weights, (kl_spans){0}, error);
}

/* Do a run, as kilter_farm_run() does. */
static inline kilter_status stepped_run(stepped_farm *f, const kilter_run *run, kilter_error *error) {
    kl_deliverer *deliverer;
    kilter_status status = kl_deliverer_new(run, f->reducer, &deliverer, error);
    assert(status == KILTER_OK);
    for (uint32_t i = 0; i < f->count; i++) /* the run must not begin before the present time of any worker */
        if (f->workers[i].now_s > f->master_actor.now_s)
            f->master_actor.now_s = f->workers[i].now_s;
    f->tasks = run->tasks;
    status = kl_master_begin(f->master, run, error);
    if (run->tasks == 0)
        kl_master_grown(f->master);
    while (status == KILTER_OK && kl_master_running(f->master)) {
        status = stepped_turn(f, error);
        kilter_status delivered = kl_deliver(deliverer, kl_master_take(f->master), error);
        status = status == KILTER_OK ? delivered : status;
        if (run->grows && kl_deliverer_given(deliverer) == f->tasks)
            kl_master_grown(f->master);
    }
    kl_deliverer_free(deliverer);
    return status;
}

static inline void stepped_close(stepped_farm *f) {
    kl_master_end(f->master);
    for (uint32_t i = 0; i < f->count; i++)
        if (f->workers[i].worker)
            worker_gone(&f->workers[i]);
    kl_master_free(f->master);
    kl_transport_close(f->master_actor.transport);
    kl_inproc_free(f->hub);
    free(f->workers);
    *f = (stepped_farm){0};
}

#endif
