/* Choose the factor of the policies FSC and DPF (César et al. 2006). The next run is simulated with each of
 * the factors 0.1, 0.2, … 1, and the factor of the shortest run is chosen. The simulation assumes that all
 * tasks of a worker take the same time. The master handles one message at a time, and each direction of its
 * link carries one message at a time. */
#include <math.h>
#include <stdlib.h>

#include "decide/policy.h"

/* MOST_WORKERS: greatest number of simulated workers. If there are k times as many real workers, each
 * simulated worker stands for k of them. Tasks, the master's time and the link are scaled, so that the
 * master is as busy as in the real run. */
enum { MOST_WORKERS = 128, FACTORS = 10 };

/* bytes of a message without its tasks or results */
static const double HEAD_BYTES = 64;

typedef struct hand { /* a simulated worker */
    double task_s;    /* seconds that this worker takes for each task */
    /* time at which the worker's next message reaches the master's link; INFINITY: the worker sends no
     * further message */
    double message_s;
    double done_s; /* time at which the worker's last task ends */
    double bytes;  /* bytes of the worker's next message */
} hand;

/* A simulation of the next run with one factor. It works on copies of the dealer and the snapshot. */
typedef struct trial {
    kl_dealer dealer;
    /* the snapshot, in which the number of tasks is scaled to the simulated workers */
    kl_snapshot snapshot;
    double byte_s; /* seconds that a byte takes on the master's link */
    /* in_free_s, master_free_s, out_free_s: times from which the link to the master, the master, and the
     * link from the master are free */
    double in_free_s, master_free_s, out_free_s;
    uint32_t workers;
    hand hands[];
} trial;

/* Add one of every `step` present workers, with the mean time of its tasks. A worker without measurements
 * gets the mean of all workers. */
static void fill_hands(trial *t, const kl_snapshot *s, uint32_t step) {
    uint32_t seen = 0;
    for (uint32_t i = 0; i < s->slots; i++) {
        const kl_worker_view *v = &s->workers[i];
        if (!v->present || seen++ % step != 0)
            continue;
        double unit_s = v->unit_s.mean > 0 ? v->unit_s.mean : s->unit_s.mean;
        t->hands[t->workers++].task_s = unit_s * kl_task_units(s);
    }
}

/* Scale the run down to the number of simulated workers. */
static void scale(trial *t, const kl_snapshot *s) {
    double part = (double)t->workers / s->present;
    t->snapshot = *s;
    t->snapshot.present = t->workers;
    t->snapshot.tasks = (uint64_t)ceil(part * (double)s->tasks);
    t->snapshot.units = (double)t->snapshot.tasks;
    t->snapshot.answer_s = s->answer_s / part;
    t->byte_s = s->message.per_unit_s / part;
}

/* Begin a simulation: each worker asks for tasks at time 0. */
static void begin(trial *t, const kl_dealer *dealer, double factor) {
    t->dealer = (kl_dealer){.policy = dealer->policy, .factor = factor, .workers = t->workers};
    t->snapshot.left = t->snapshot.tasks;
    t->snapshot.left_units = t->snapshot.units;
    t->in_free_s = t->master_free_s = t->out_free_s = 0;
    for (uint32_t i = 0; i < t->workers; i++)
        t->hands[i] = (hand){.task_s = t->hands[i].task_s};
}

static uint32_t first_to_send(const trial *t) {
    uint32_t first = 0;
    for (uint32_t i = 1; i < t->workers; i++)
        if (t->hands[i].message_s < t->hands[first].message_s)
            first = i;
    return first;
}

static void receive(trial *t, const hand *h) {
    t->in_free_s = fmax(t->in_free_s, h->message_s) + h->bytes * t->byte_s;
    t->master_free_s = fmax(t->master_free_s, t->in_free_s) + t->snapshot.answer_s;
}

/* Send a worker its next chunk. The worker asks for the next chunk shortly before this chunk ends, at the
 * latest when it begins this chunk's last task. */
static void send_chunk(trial *t, uint32_t worker) {
    hand *h = &t->hands[worker];
    kl_snapshot *s = &t->snapshot;
    kl_look look = {.dealer = &t->dealer, .snapshot = s, .worker = worker, .workers = t->workers};
    double count = (double)kl_next_chunk(&look, &t->dealer.course);
    s->left -= (uint64_t)count;
    s->left_units = (double)s->left;
    t->out_free_s = fmax(t->out_free_s, t->master_free_s) + (HEAD_BYTES + count * s->task_bytes) * t->byte_s;
    double begins_s = fmax(t->out_free_s + s->message.fixed_s, h->done_s);
    h->done_s = begins_s + count * h->task_s;
    h->message_s = fmax(begins_s, h->done_s - fmax(kl_lead_s(s), h->task_s)) + s->message.fixed_s;
    h->bytes = HEAD_BYTES + count * s->result_bytes;
}

/* Let a worker send its last result when it has done its tasks, because there are no more tasks. Afterwards
 * it sends no messages. */
static void finish(const trial *t, hand *h) {
    double last_s = h->done_s + t->snapshot.message.fixed_s;
    h->message_s = h->message_s < last_s ? last_s : INFINITY;
    h->bytes = HEAD_BYTES + t->snapshot.result_bytes;
}

/* Simulate the run with a factor; return its seconds. */
static double time_with(trial *t, const kl_dealer *dealer, double factor) {
    begin(t, dealer, factor);
    for (;;) {
        uint32_t worker = first_to_send(t);
        hand *h = &t->hands[worker];
        if (isinf(h->message_s))
            return t->master_free_s;
        receive(t, h);
        if (t->snapshot.left > 0)
            send_chunk(t, worker);
        else
            finish(t, h);
    }
}

static void try_factors(trial *t, kl_dealer *dealer) {
    dealer->expected_s = INFINITY;
    for (int tenths = 1; tenths <= FACTORS; tenths++) {
        double factor = tenths / (double)FACTORS, time_s = time_with(t, dealer, factor);
        if (time_s < dealer->expected_s) { /* the first factor wins ties */
            dealer->expected_s = time_s;
            dealer->factor = factor;
        }
    }
}

kilter_status kl_search_factor(kl_dealer *dealer, const kl_snapshot *s) {
    uint32_t step = (s->present + MOST_WORKERS - 1) / MOST_WORKERS;
    trial *t = calloc(1, sizeof *t + (s->present / step + 1) * sizeof *t->hands);
    if (!t)
        return KILTER_ERR_MEMORY;
    fill_hands(t, s, step);
    scale(t, s);
    try_factors(t, dealer);
    free(t);
    return KILTER_OK;
}
