/* Simulate a farm in virtual time. This file chooses who acts next, the master or a worker, and computes how
 * long the action takes. Messages pass the master's link one after the other, so in each direction they
 * arrive in the order of sending. So the next event is the earliest of three: the master's next action; the
 * first message to a worker; the first event in the workers' heap. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "move/wire.h"
#include "sim/heap.h"
#include "sim/sim.h"

enum {
    MASTER = 1,      /* number of the master as workers know it; worker i is peer i + 1 for the master */
    FRAME_BYTES = 24 /* bytes that MPI and its transport add to a message: its length, and an envelope */
};

/* A message that is under way or waits for its receiver. */
typedef struct packet {
    struct packet *next;
    double at_s; /* time at which the message arrives */
    uint32_t worker;
    kl_event_kind kind;
    size_t size;
    uint8_t data[];
} packet;

/* A list of packets, in the order of arrival. */
typedef struct line {
    packet *first, *last;
} line;

static void line_add(line *l, packet *p) {
    p->next = NULL;
    if (l->last)
        l->last->next = p;
    else
        l->first = p;
    l->last = p;
}

/* Take the first packet of a line; NULL: there is none. */
static packet *line_take(line *l) {
    packet *p = l->first;
    l->first = p ? p->next : NULL;
    if (!l->first)
        l->last = NULL;
    return p;
}

static void line_free(line *l) {
    while (l->first)
        free(line_take(l));
}

/* --- the next events of workers --- */

typedef enum doing {
    ENDS_TASK,
    ATTENDS,  /* the worker checks for messages during a task */
    TAKES_IN, /* the worker takes in messages that have arrived, because its host runs again */
} doing;

/* --- the simulated farm --- */

typedef struct end { /* the master's or a worker's end of the transport */
    kl_transport base;
    kl_sim *sim;
} end;

typedef struct worker {
    end end;
    kl_worker *engine; /* the code of the worker; NULL: the worker is gone */
    const kl_host *host;
    line inbox;
    double began_s; /* time when the present task began */
    double ends_s;  /* time when the present task ends */
    double cpu_s;   /* CPU seconds of all earlier tasks of this worker */
} worker;

struct kl_sim {
    kl_sim_farm farm;
    kl_sim_run run; /* the run that is being simulated */
    uint64_t runs;
    end end;
    kl_master *master;
    kl_worker_options of_workers;
    worker *workers;
    uint32_t count;
    line to_master, to_workers;
    double out_free_s, in_free_s; /* times from which the master's link is free. out_free_s: for messages to
                                     workers; in_free_s: for messages from workers */
    kl_heap heap;
    double now_s;
    double master_s; /* time until which the master is busy */
    double stolen_s; /* if a busy worker shares the master's host: seconds of the master's work, at speed 1,
                        that have not delayed this worker yet */
    double opened_s; /* time at which the speed profiles of the hosts begin; INFINITY: the first run has not
                        begun */
    double busy_s;   /* seconds of this run for which the master was busy */
    uint64_t messages, results,
        executed;   /* numbers of messages, of results, and of executed tasks in this run */
    uint8_t *zeros; /* memory that stands for all inputs and results */
    kilter_error failure;
};

static void out_of_memory(kl_sim *s) {
    if (s->failure.status == KILTER_OK)
        kl_fail(&s->failure, KILTER_ERR_MEMORY, "simulating %u workers: memory ran out", (unsigned)s->count);
}

/* Return the time at which a host that begins at from_s has done the work. Before the first run, hosts have
 * full speed. The result is never before from_s, although rounding may give such a time. */
static double host_end_s(const kl_sim *s, const kl_host *host, double from_s, double work_s) {
    return s->opened_s < INFINITY
               ? fmax(from_s, s->opened_s + kl_host_end_s(host, from_s - s->opened_s, work_s))
               : from_s + work_s / host->speed;
}

static double host_work_s(const kl_sim *s, const kl_host *host, double from_s, double to_s) {
    return s->opened_s < INFINITY ? kl_host_work_s(host, from_s - s->opened_s, to_s - s->opened_s)
                                  : (to_s - from_s) * host->speed;
}

static void will_happen(kl_sim *s, double at_s, uint32_t worker, doing what) {
    if (at_s < INFINITY && !kl_heap_push(&s->heap, (kl_happening){.at_s = at_s, .who = worker, .what = what}))
        out_of_memory(s);
}

static bool is_at_task(const worker *w) {
    return w->engine && kl_worker_at_hand(w->engine);
}

static bool shares_the_masters_host(const kl_sim *s, const worker *w) {
    return w == s->workers && !s->farm.cluster->master_apart;
}

/* --- time --- */

static double master_now_s(void *self) {
    return ((const kl_sim *)self)->master_s;
}

static double worker_now_s(void *self) {
    return ((const kl_sim *)self)->now_s;
}

/* Let the master work. If a worker on the same host is busy, each of the two gets half of the speed. */
static void master_works(void *self, double work_s) {
    kl_sim *s = self;
    bool shared = !s->farm.cluster->master_apart && is_at_task(&s->workers[0]);
    double end_s =
        host_end_s(s, kl_cluster_master(s->farm.cluster), s->master_s, shared ? 2 * work_s : work_s);
    if (shared)
        s->stolen_s += work_s;
    s->busy_s += end_s - s->master_s;
    s->master_s = end_s;
}

/* Return the CPU seconds that the worker's thread has used. */
static double worker_busy_s(void *self) {
    const worker *w = self;
    const kl_sim *s = w->end.sim;
    return is_at_task(w) ? w->cpu_s + host_work_s(s, w->host, w->began_s, s->now_s) / w->host->speed
                         : w->cpu_s;
}

static void attended_elsewhere(void *self, bool begins) {
    (void)self, (void)begins;
}

/* --- messages --- */

static packet *packet_new(kl_sim *s, uint32_t worker, const void *data, size_t size) {
    packet *p = malloc(sizeof *p + size);
    if (!p) {
        out_of_memory(s);
        return NULL;
    }
    *p = (packet){.worker = worker, .kind = KL_EVENT_MESSAGE, .size = size};
    if (size > 0)
        memcpy(p->data, data, size);
    return p;
}

static double link_s(const kl_sim *s, size_t bytes) {
    return (double)(bytes + FRAME_BYTES) / s->farm.cluster->bytes_per_s;
}

static kilter_status send_down(kl_transport *t, kl_peer peer, const void *data, size_t size,
                               kilter_error *error) {
    kl_sim *s = ((end *)t)->sim;
    packet *p = packet_new(s, (uint32_t)(peer - MASTER - 1), data, size);
    if (!p)
        return kl_fail(error, KILTER_ERR_MEMORY, "%s", s->failure.text);
    if (kl_wire_type(data, size) == KL_CHUNK)
        master_works(s, s->farm.startup_s + s->farm.byte_s * (double)size);
    s->out_free_s = fmax(s->master_s, s->out_free_s) + link_s(s, size);
    if (s->farm.cluster->half_duplex)
        s->in_free_s = s->out_free_s;
    p->at_s = s->out_free_s + 2 * s->farm.cluster->latency_s;
    s->messages++;
    line_add(&s->to_workers, p);
    return KILTER_OK;
}

static void put_up(kl_sim *s, packet *p, double starts_s) {
    s->in_free_s = fmax(starts_s + 2 * s->farm.cluster->latency_s, s->in_free_s) + link_s(s, p->size);
    if (s->farm.cluster->half_duplex)
        s->out_free_s = s->in_free_s;
    p->at_s = s->in_free_s;
    line_add(&s->to_master, p);
}

static kilter_status send_up(kl_transport *t, kl_peer peer, const void *data, size_t size,
                             kilter_error *error) {
    const worker *w = (worker *)t;
    kl_sim *s = w->end.sim;
    packet *p = packet_new(s, (uint32_t)(w - s->workers), data, size);
    (void)peer;
    if (!p)
        return kl_fail(error, KILTER_ERR_MEMORY, "%s", s->failure.text);
    s->messages++;
    put_up(s, p, s->now_s + (kl_wire_type(data, size) == KL_RESULTS ? s->farm.startup_s : 0));
    return KILTER_OK;
}

/* Turn a packet into an event. The message of the event uses the packet's memory, which the receiver frees.
 */
static void hand_over(packet *p, kl_peer from, kl_event *event) {
    *event = (kl_event){.kind = p->kind, .peer = from};
    if (p->kind == KL_EVENT_MESSAGE)
        event->message = (kl_message){p->data, p->size, p, free};
    else
        free(p);
}

static kilter_status poll_master(kl_transport *t, double timeout_s, kl_event *event, kilter_error *error) {
    kl_sim *s = ((end *)t)->sim;
    (void)timeout_s, (void)error;
    *event = (kl_event){.kind = KL_EVENT_NONE};
    if (s->to_master.first && s->to_master.first->at_s <= s->master_s) {
        packet *p = line_take(&s->to_master);
        hand_over(p, p->worker + MASTER + 1, event);
    }
    return KILTER_OK;
}

static kilter_status poll_worker(kl_transport *t, double timeout_s, kl_event *event, kilter_error *error) {
    worker *w = (worker *)t;
    (void)timeout_s, (void)error;
    *event = (kl_event){.kind = KL_EVENT_NONE};
    if (w->inbox.first)
        hand_over(line_take(&w->inbox), MASTER, event);
    return KILTER_OK;
}

static void drop(kl_transport *t, kl_peer peer) {
    (void)t, (void)peer;
}

static void wake(kl_transport *t) {
    (void)t;
}

static const kl_transport_ops master_ops = {
    .name = "virtual", .send = send_down, .poll = poll_master, .drop = drop, .wake = wake, .close = wake};
static const kl_transport_ops worker_ops = {
    .name = "virtual", .send = send_up, .poll = poll_worker, .drop = drop, .wake = wake, .close = wake};

/* --- a worker --- */

static int do_task(const kilter_task *task, kilter_result *result, void *state) {
    kl_sim *s = state;
    (void)task;
    s->executed++;
    return kilter_result_put(result, s->zeros, s->run.result_bytes) != KILTER_OK;
}

static void introduce(void *driver, kl_hello *hello) {
    const worker *w = driver;
    const kl_sim *s = w->end.sim;
    char name[KL_SIM_HOST_BYTES] = "";
    if (s->farm.name_host)
        s->farm.name_host((uint32_t)(w - s->workers), name);
    memcpy(hello->host, name, sizeof name);
}

/* Seconds that a check for messages takes at speed 1. With 0, a host that has stopped could still check for
 * messages. */
static const double LOOK_S = 1e-6;

static void will_attend(kl_sim *s, worker *w) {
    double due_s = kl_worker_results_due_s(w->engine);
    if (due_s < w->ends_s)
        will_happen(s, host_end_s(s, w->host, due_s, LOOK_S), (uint32_t)(w - s->workers), ATTENDS);
}

static void begin_task(kl_sim *s, worker *w) {
    const kilter_task *task = kl_worker_at_hand(w->engine);
    double work_s = s->run.task_s ? s->run.task_s(s->run.self, task->run, task->index) : s->run.even_s;
    w->began_s = s->now_s;
    if (shares_the_masters_host(s, w))
        s->stolen_s = 0; /* the time that the master uses during this task is not known yet; is_made_up() adds
                            it at the end of the task */
    w->ends_s = host_end_s(s, w->host, s->now_s, work_s);
    will_happen(s, w->ends_s, (uint32_t)(w - s->workers), ENDS_TASK);
    will_attend(s, w);
}

/* Remove a worker that has left or has failed. */
static void lose(kl_sim *s, worker *w) {
    packet *p = packet_new(s, (uint32_t)(w - s->workers), NULL, 0);
    kl_worker_free(w->engine);
    w->engine = NULL;
    if (!p)
        return;
    p->kind = KL_EVENT_LEFT;
    put_up(s, p, s->now_s);
}

/* Let the worker take in messages. If it has no task at hand, it begins the next one. */
static void go_on(kl_sim *s, worker *w) {
    kilter_status status = kl_worker_between(w->engine, NULL);
    while (status == KILTER_OK && kl_worker_has_work(w->engine) && !is_at_task(w))
        status = kl_worker_begin_next(w->engine, NULL);
    if (status != KILTER_OK)
        lose(s, w);
    else if (is_at_task(w))
        begin_task(s, w);
}

/* Check for messages during a task. The first call of kl_worker_attend() only marks the task as begun, so it
 * is called two times. */
static void attend(kl_sim *s, worker *w) {
    kl_worker_attend(w->engine);
    kl_worker_attend(w->engine);
    will_attend(s, w);
}

/* Delay the end of a task by the time that the master has used on the same host. Return true if there was no
 * such time. */
static bool is_made_up(kl_sim *s, worker *w) {
    double stolen_s = shares_the_masters_host(s, w) ? s->stolen_s : 0;
    if (!(stolen_s > 0))
        return true;
    s->stolen_s = 0;
    w->ends_s = host_end_s(s, w->host, s->now_s, stolen_s);
    will_happen(s, w->ends_s, (uint32_t)(w - s->workers), ENDS_TASK);
    return false;
}

static void end_task(kl_sim *s, worker *w) {
    if (!is_made_up(s, w))
        return;
    w->cpu_s += host_work_s(s, w->host, w->began_s, s->now_s) / w->host->speed;
    if (kl_worker_end_task(w->engine, kl_worker_call(w->engine), NULL) != KILTER_OK)
        lose(s, w);
    else
        go_on(s, w);
}

static void happens(kl_sim *s, const kl_happening *one) {
    worker *w = &s->workers[one->who];
    bool at_task = is_at_task(w);
    if (!w->engine)
        return;
    if (one->what == ENDS_TASK)
        end_task(s, w);
    else if (at_task && (one->what == TAKES_IN || s->now_s >= kl_worker_results_due_s(w->engine)))
        attend(s, w);
    else if (!at_task && one->what == TAKES_IN)
        go_on(s, w);
}

static void arrives(kl_sim *s, packet *p) {
    worker *w = &s->workers[p->worker];
    if (!w->engine) {
        free(p);
        return;
    }
    line_add(&w->inbox, p);
    if (w->host->profile.count > 0)
        will_happen(s, host_end_s(s, w->host, s->now_s, LOOK_S), p->worker, TAKES_IN);
    else
        happens(s, &(kl_happening){.at_s = s->now_s, .who = p->worker, .what = TAKES_IN});
}

/* --- steps --- */

/* Return the time at which the master acts next; INFINITY: it waits for nothing, because no message is on its
 * way and no time is set. */
static double master_acts_s(const kl_sim *s) {
    double at_s = s->to_master.first ? s->to_master.first->at_s : INFINITY;
    return fmax(fmin(at_s, kl_master_due_s(s->master)), s->master_s);
}

static void master_acts(kl_sim *s) {
    kilter_error error;
    s->master_s = s->now_s;
    if (kl_master_turn(s->master, 0, &error) != KILTER_OK && s->failure.status == KILTER_OK)
        s->failure = error;
    for (kl_delivery_list list = kl_master_take(s->master); list.first;) {
        kl_delivery *gone = list.first;
        list.first = gone->next;
        s->results += gone->count;
        kl_delivery_free(gone);
    }
}

/* Handle the next event. At equal times, the master comes first, then messages to workers, then workers. */
static void step(kl_sim *s) {
    double master_s = master_acts_s(s), comes_s = s->to_workers.first ? s->to_workers.first->at_s : INFINITY;
    double task_s = s->heap.count > 0 ? s->heap.items[0].at_s : INFINITY;
    double first_s = fmin(master_s, fmin(comes_s, task_s));
    if (!(first_s < INFINITY)) {
        kl_fail(&s->failure, KILTER_ERR_RANGE, "no event is left, so the run cannot end");
        return;
    }
    s->now_s = first_s;
    if (master_s <= first_s) {
        master_acts(s);
    } else if (comes_s <= first_s) {
        arrives(s, line_take(&s->to_workers));
    } else {
        kl_happening one = kl_heap_pop(&s->heap);
        happens(s, &one);
    }
}

/* --- heartbeats --- */

/* A host sends no heartbeats while its speed is below this part of its full speed. */
static const double STOPPED = 1e-3;

static bool is_stopped(const kl_sim *s, const kl_host *host, double at_s) {
    return s->opened_s < INFINITY && kl_host_speed(host, at_s - s->opened_s) < STOPPED * host->speed;
}

/* Find the last heartbeat of a worker that has reached the master. Heartbeats are computed when the master
 * asks, because each hour of simulated time would have thousands of them. */
static bool heartbeat(void *self, kl_peer peer, kl_heartbeat *heartbeat, double *at_s) {
    const kl_sim *s = self;
    const worker *w = &s->workers[peer - MASTER - 1];
    double way_s = 2 * s->farm.cluster->latency_s, passed_s = s->master_s - way_s - w->began_s;
    if (!is_at_task(w))
        return false;
    for (double k = floor(passed_s / KL_HEARTBEAT_S); k > 0; k--) {
        double sent_s = w->began_s + k * KL_HEARTBEAT_S;
        if (is_stopped(s, w->host, sent_s))
            continue;
        *at_s = sent_s + way_s;
        *heartbeat = (kl_heartbeat){.elapsed_s = sent_s - w->began_s};
        heartbeat->cpu_s = host_work_s(s, w->host, w->began_s, sent_s) / w->host->speed;
        kl_worker_name_task(w->engine, heartbeat);
        return true;
    }
    return false;
}

/* --- making and freeing a simulation --- */

static kilter_status open_master(kl_sim *s, kilter_error *error) {
    s->end = (end){{&master_ops}, s};
    kl_master_options options = {.policy = s->farm.policy,
                                 .clock = {.now_s = master_now_s,
                                           .spend = master_works,
                                           .self = s,
                                           .simulated = true,
                                           .answer_s = s->farm.answer_s},
                                 .program = "simulation",
                                 .heartbeat = heartbeat,
                                 .self = s};
    kilter_status status = kl_master_new(&options, &s->end.base, &s->master, error);
    kl_tuning tuning = {.set = KL_TUNE_FACTOR, .factor = s->farm.factor};
    return status == KILTER_OK && s->farm.factor > 0 ? kl_master_tune(s->master, &tuning, error) : status;
}

static void say_joined(kl_sim *s, uint32_t i) {
    packet *to_master = packet_new(s, i, NULL, 0), *to_worker = packet_new(s, i, NULL, 0);
    if (!to_master || !to_worker)
        return;
    to_master->kind = to_worker->kind = KL_EVENT_JOINED;
    line_add(&s->to_master, to_master);
    line_add(&s->to_workers, to_worker);
}

static kilter_status open_worker(kl_sim *s, uint32_t i, kilter_error *error) {
    worker *w = &s->workers[i];
    w->end = (end){{&worker_ops}, s};
    kilter_status status = kl_worker_new(&s->of_workers, w, &w->end.base, &w->engine, error);
    if (status == KILTER_OK)
        kl_worker_let_attend(
            w->engine, &(kl_attendance){.works = attended_elsewhere, .busy_s = worker_busy_s, .self = w});
    say_joined(s, i);
    return status;
}

static kilter_status open_workers(kl_sim *s, kilter_error *error) {
    const kl_cluster *cluster = s->farm.cluster;
    kilter_status status = KILTER_OK;
    s->of_workers = (kl_worker_options){.work = do_task,
                                        .state = s,
                                        .program = "simulation",
                                        .binding = "",
                                        .introduce = introduce,
                                        .clock = {.now_s = worker_now_s, .self = s, .simulated = true},
                                        .patience_s = -1};
    for (uint32_t g = 0; g < cluster->group_count; g++)
        for (uint32_t k = 0; k < cluster->groups[g].count && status == KILTER_OK; k++) {
            s->workers[s->count].host = &cluster->groups[g].host;
            status = open_worker(s, s->count++, error);
        }
    while (status == KILTER_OK && s->failure.status == KILTER_OK && kl_master_ready(s->master) < s->count)
        step(s);
    if (status == KILTER_OK && s->failure.status != KILTER_OK && error)
        *error = s->failure;
    return status == KILTER_OK ? s->failure.status : status;
}

kilter_status kl_sim_new(const kl_sim_farm *farm, kl_sim **sim, kilter_error *error) {
    kl_sim *s = calloc(1, sizeof *s);
    worker *workers = calloc(farm->cluster->workers, sizeof *workers);
    if (!s || !workers) {
        free(s);
        free(workers);
        return kl_fail(error, KILTER_ERR_MEMORY, "simulating %u workers: memory ran out",
                       (unsigned)farm->cluster->workers);
    }
    *s = (kl_sim){.farm = *farm, .workers = workers, .opened_s = INFINITY};
    kilter_status status = open_master(s, error);
    if (status == KILTER_OK)
        status = open_workers(s, error);
    if (status == KILTER_OK)
        *sim = s;
    else
        kl_sim_free(s);
    return status;
}

void kl_sim_free(kl_sim *s) {
    if (!s)
        return;
    for (uint32_t i = 0; i < s->count; i++) {
        kl_worker_free(s->workers[i].engine);
        line_free(&s->workers[i].inbox);
    }
    kl_master_free(s->master);
    line_free(&s->to_master);
    line_free(&s->to_workers);
    free(s->workers);
    free(s->heap.items);
    free(s->zeros);
    free(s);
}

void kl_sim_record(kl_sim *s, kl_trace *trace) {
    kl_master_record(s->master, trace);
}

kl_decision kl_sim_way(const kl_sim *s, const kl_sim_run *run) {
    kilter_run next = {.tasks = run->tasks, .result_bytes = run->result_bytes};
    return kl_master_way(s->master, &next, KL_ORGANISE_AUTO);
}

void kl_sim_note_peers(kl_sim *s, uint64_t tasks, double elapsed_s) {
    kl_master_note_peers(s->master, tasks, elapsed_s);
}

void kl_sim_progress(const kl_sim *s, kl_progress *progress) {
    kl_master_progress(s->master, &(kl_telling){0}, progress);
}

double kl_sim_now_s(const kl_sim *s) {
    return s->master_s;
}

/* --- a run --- */

static double work_of(const kl_sim *s, uint64_t run) {
    double work_s = s->run.task_s ? 0 : s->run.even_s * (double)s->run.tasks;
    for (uint64_t i = 0; s->run.task_s && i < s->run.tasks; i++)
        work_s += s->run.task_s(s->run.self, run, i);
    return work_s;
}

/* Make the inputs of all tasks, which are the same block of zeros. NULL: tasks have no input, or memory ran
 * out. */
static kilter_bytes *make_inputs(kl_sim *s) {
    size_t most = s->run.task_bytes > s->run.result_bytes ? s->run.task_bytes : s->run.result_bytes;
    free(s->zeros);
    s->zeros = calloc(1, most + 1);
    kilter_bytes *inputs = s->run.task_bytes > 0 ? calloc(s->run.tasks, sizeof *inputs) : NULL;
    if (!s->zeros || (s->run.task_bytes > 0 && !inputs))
        out_of_memory(s);
    for (uint64_t i = 0; inputs && i < s->run.tasks; i++)
        inputs[i] = (kilter_bytes){s->zeros, s->run.task_bytes};
    return inputs;
}

static void run_until_done(kl_sim *s, const kilter_run *run) {
    if (s->failure.status == KILTER_OK)
        kl_master_begin(s->master, run, &s->failure);
    while (s->failure.status == KILTER_OK && kl_master_running(s->master))
        step(s);
}

kilter_status kl_sim_run_next(kl_sim *s, const kl_sim_run *run, kl_sim_outcome *outcome,
                              kilter_error *error) {
    s->run = *run;
    s->busy_s = 0;
    s->messages = s->results = s->executed = 0;
    if (s->opened_s == INFINITY || s->farm.renews)
        s->opened_s = s->master_s;
    double began_s = s->master_s;
    kilter_bytes *inputs = make_inputs(s);
    run_until_done(s, &(kilter_run){.tasks = run->tasks, .inputs = inputs});
    free(inputs);
    if (s->failure.status != KILTER_OK) {
        if (error)
            *error = s->failure;
        return s->failure.status;
    }
    kilter_farm_summary sum;
    kl_master_summary(s->master, &sum);
    *outcome = (kl_sim_outcome){.began_s = began_s - s->opened_s,
                                .elapsed_s = sum.elapsed_s,
                                .work_s = work_of(s, s->runs++),
                                .results = s->results,
                                .executed = s->executed,
                                .chunks = sum.chunks,
                                .messages = s->messages,
                                .master_busy_s = s->busy_s,
                                .workers = sum.workers};
    return KILTER_OK;
}
