/* Door of room balance: the control loop. One hand-out of work is snapshot → forecast → plan → receipt;
 * balance.c has the four steps under each other. It owns what is measured of the workers and the bag of tasks
 * not dealt yet; it knows no user callback and no thread. */
#ifndef KL_BALANCE_H
#define KL_BALANCE_H

#include "decide/decide.h"
#include "move/move.h"
#include "sys/sys.h"
#include "trace/trace.h"

typedef struct kl_spans { /* by rising lo, none of which touch; zeroed is none */
    const kl_span *spans;
    size_t count;
} kl_spans;

/* The tasks nobody has been given. Dealt from the front; what comes back from a lost worker is dealt first.
 * Zeroed is empty. */
typedef struct kl_bag {
    kl_span *spans; /* spans[count − 1] is dealt next */
    size_t count;
    uint64_t room;
    double *prefix; /* prefix[i]: units of tasks [0, i), tasks + 1 entries; NULL: each is 1 */
    uint64_t prefix_room;
    double scale; /* units per weight: a task is 1 unit on average, whatever the user weighs in */
    uint64_t tasks, left;
    double units, left_units; /* units: those that were to be dealt */
    kl_homes homes; /* in a series the tasks wait here, until one comes back, but those added; it outlives the
                       run */
} kl_bag;

/* What a worker could be given next. */
typedef struct kl_offer {
    kl_span span;
    uint32_t home;  /* from which it is; UINT32_MAX: from bag.spans */
    bool cut_short; /* no more lie together */
} kl_offer;

/* With all tasks but those that are done already. KILTER_ERR_RANGE for a weight outside 1e-50 … 1e50;
 * KILTER_ERR_MEMORY. The weights are not kept. */
kilter_status kl_bag_fill(kl_bag *bag, uint64_t tasks, const double *weights, kl_spans done,
                          kilter_error *error);
void kl_bag_free(kl_bag *bag);
/* `count` more tasks, dealt after all that are there; with weights in the unit of the first ones, or NULL:
 * each is 1 unit. KILTER_ERR_MEMORY: nothing has changed. */
kilter_status kl_bag_grow(kl_bag *bag, uint64_t count, const double *weights, kl_spans done);
/* KILTER_ERR_RANGE names the first of the tasks from `lo` on whose weight is outside 1e-50 … 1e50. */
kilter_status kl_weights_check(const double *weights, uint64_t lo, uint64_t count, kilter_error *error);
double kl_bag_units(const kl_bag *bag, kl_span span);
/* The run is one of a series (0: of none). Once, before anything is taken. KILTER_ERR_MEMORY. */
kilter_status kl_bag_sort(kl_bag *bag, uint64_t series, const kl_snapshot *snapshot);
/* `count` tasks for `worker`; with weights: as many as hold the same share of what is left. At least 1 task,
 * at most those that lie together. */
kl_offer kl_bag_offer(const kl_bag *bag, const kl_dealer *dealer, const kl_snapshot *snapshot,
                      uint32_t worker, uint64_t count);
void kl_bag_take(kl_bag *bag, const kl_offer *offer);   /* whose span may have become shorter at its end */
kilter_status kl_bag_return(kl_bag *bag, kl_span span); /* KILTER_ERR_MEMORY */

/* How often something happened to tasks, where it seldom does. Zeroed: never. */
typedef struct kl_counted { /* tasks [lo, hi) */
    uint64_t lo, hi;
    uint32_t times;
} kl_counted;

typedef struct kl_tally {
    kl_counted *spans; /* by rising lo, no task in two of them */
    size_t count;
    uint64_t room;
} kl_tally;

kilter_status kl_tally_add(kl_tally *tally, kl_span span); /* once more; KILTER_ERR_MEMORY: it is not noted */
uint32_t kl_tally_of(const kl_tally *tally, uint64_t task);
/* The tasks from span.lo on, at least one, to which it happened equally often. */
kl_span kl_tally_alike(const kl_tally *tally, kl_span span, uint32_t *times);

/* Which tasks are done, and what became of others. Zeroed: a run of no tasks. */

typedef struct kl_ledger {
    uint64_t *done; /* a bit a task */
    uint64_t tasks, done_count, words;
    kl_tally losses;   /* they were at workers that were lost, and may be to blame */
    kl_tally failures; /* they failed, and were to be tried again */
    kl_tally recalls;  /* they were taken back from workers that went on */
} kl_ledger;

kilter_status kl_ledger_begin(kl_ledger *ledger, uint64_t tasks); /* KILTER_ERR_MEMORY */
kilter_status kl_ledger_grow(kl_ledger *ledger, uint64_t count);  /* KILTER_ERR_MEMORY: nothing has changed */
void kl_ledger_free(kl_ledger *ledger);
bool kl_ledger_is_done(const kl_ledger *ledger, uint64_t task);
/* The tasks from span.lo on, at least one, that are all done, or all not. */
kl_span kl_ledger_alike(const kl_ledger *ledger, kl_span span, bool *done);
void kl_ledger_do(kl_ledger *ledger, kl_span span); /* none of them is done yet */

/* A chunk at a worker: tasks [lo, hi), of which those before `at` are reported. */
typedef struct kl_chunk {
    uint64_t id, lo, hi, at;
    uint32_t worker;   /* its place */
    bool stale;        /* its run has ended: whatever comes is not counted */
    double recalled_s; /* it was asked back from recalled_from on, and no answer has come; 0: it is not */
    uint64_t recalled_from;
    bool begun;                       /* all of it, the worker says */
    double dealt_s, began_s, ended_s; /* ended_s: of the last task reported */
    double busy_s, finish_s;          /* finish_s: forecast when it was dealt; 0: none */
    double units;                     /* of it; of a stale one: of the task its worker is still at */
    uint64_t bytes_out, bytes_in, failed;
    uint64_t counted; /* reported tasks that nobody had done before */
} kl_chunk;

/* The workers' places; places.c */
typedef struct kl_places {
    uint32_t next_number;
    uint32_t *gone; /* places of those that are gone, the first one gone first; room for all places */
    uint32_t gone_count;
} kl_places;

/* The cost of messages; traffic.c */
typedef struct kl_traffic {
    kl_msgcost message, probed; /* of the traffic lately, probes included; of the probes alone */
    kl_linear now;              /* fit of `message` */
    double link_byte_s; /* the least time of a byte in a stream to another host and back; 0: unknown */
    uint32_t links_measured;
    double free_s; /* when the chunks sent so far should have left */
    kl_stat answer, round_trip;
} kl_traffic;

/* Inputs and weights of the run's tasks; data.c */
typedef struct kl_run_data {
    const kilter_bytes *inputs; /* the user's unless the run has grown */
    const double *weights;
    kilter_bytes *own_inputs; /* of a run that has grown, those it began with first */
    double *own_weights;
    uint64_t inputs_room, weights_room;
} kl_run_data;

/* Where rows go. Zeroed: nowhere. */
typedef struct kl_rows {
    kl_trace *trace;
    double opened_s;     /* the record counts from here */
    kl_grounds *grounds; /* what decisions are made from; NULL: memory ran out */
} kl_rows;

typedef struct kl_balance {
    kl_clock clock;
    kl_transport *transport;
    kl_rows rows;
    kl_dealer *dealer;
    kl_bag bag;
    kl_ledger ledger;
    uint64_t shared_hash;  /* of the shared data in force; 0: none */
    uint64_t result_bytes; /* of each task of the run; 0: any number */
    kl_snapshot snapshot;
    kl_worker_view *views; /* snapshot.workers, writable: the crew is told of every change */
    kl_crew *crew;         /* snapshot.crew */
    kl_traffic traffic;
    kl_stat run_unit_s; /* seconds per unit of this run's tasks */
    double task_work;   /* of a task of the last run, as its program counts; 0: it never did */
    double mean_rate;   /* of those that took part in the last run, for kl_iteration.speeds */
    kl_run_data data;
    uint64_t next_chunk, chunks, smallest, largest; /* of the run; smallest and largest in tasks */
    kl_places places;
    kl_buffer buffer;
} kl_balance;

kilter_status kl_balance_init(kl_balance *balance, const kl_policy *policy, kl_clock clock,
                              kl_transport *transport, kilter_error *error);
void kl_balance_free(kl_balance *balance);

/* Rows go to `trace` from now on, and what decisions are made from does from the next run on. */
void kl_balance_record(kl_balance *balance, kl_trace *trace, double opened_s);

/* A worker joined. *worker is its place among the views; its view says what number it is called by, which
 * nobody had before. KILTER_ERR_MEMORY. */
kilter_status kl_balance_add_worker(kl_balance *balance, uint32_t *worker, kilter_error *error);
/* Call this after the view of `worker` has changed. */
void kl_balance_view_changed(kl_balance *balance, uint32_t worker);
/* It is gone, with its chunks ended. Its place is another's when its part in the run is not needed any more:
 * when the run has ended, or many more are gone. */
void kl_balance_remove_worker(kl_balance *balance, uint32_t worker);
void kl_balance_present(kl_balance *balance, uint32_t worker, bool present);
/* Not wanted now, though it could work; or wanted again. */
void kl_balance_rest(kl_balance *balance, uint32_t worker, bool resting);
/* An exchange that waited for nobody, of the probe or of the traffic: one of its two messages. */
void kl_balance_message_cost(kl_balance *balance, double bytes, double one_way_s, bool probe);

void kl_balance_link_cost(kl_balance *balance, double byte_s); /* of a byte in a stream to another host */

/* Units per second: over the worker's last run, or lately if it had no part in it; 0: not known. */
double kl_balance_rate(const kl_balance *balance, uint32_t worker);

void kl_balance_answer_cost(kl_balance *balance, double busy_s); /* the master's CPU time for one request */

/* From the next run on. KILTER_ERR_MEMORY: nothing has changed. */
kilter_status kl_balance_set_policy(kl_balance *balance, const kl_policy *policy, double factor,
                                    kilter_error *error);

/* Run `number` begins, with tasks that are done already. The run's arrays are used until its bag is empty and
 * its chunks have ended. */
kilter_status kl_balance_begin(kl_balance *balance, uint64_t number, const kilter_run *run, kl_spans done,
                               kilter_error *error);
/* The run has `count` tasks more, of which some may be done already. Inputs are the user's until the run's
 * chunks have ended; weights are in the unit of the run's and not kept, NULL: each counts as the mean of the
 * first ones. KILTER_ERR_MEMORY. */
kilter_status kl_balance_grow(kl_balance *balance, uint64_t count, const kilter_bytes *inputs,
                              const double *weights, kl_spans done, kilter_error *error);
/* A worker asks for work. */
typedef struct kl_request {
    uint32_t worker; /* its place */
    kl_peer peer;
    double asked_s;
    bool again; /* another look at a request that was held back before */
} kl_request;

/* Deal the worker its next chunk. *dealt = false: nothing for it now (the bag is empty, or the policy holds
 * back). On KILTER_ERR_PEER the worker is gone and nothing was dealt. */
kilter_status kl_balance_deal(kl_balance *balance, const kl_request *request, kl_chunk *chunk, bool *dealt,
                              kilter_error *error);
/* A worker reports `segment` of `chunk` finished (already checked to fit); updates chunk and everything
 * measured. offset_s: what to add to the worker's clock to get ours. bytes: of the segment's results. */
void kl_balance_report(kl_balance *balance, kl_chunk *chunk, const kl_segment *segment, double offset_s,
                       uint64_t bytes, uint64_t failed);
/* The run has ended without the rest of the chunk, of which the row is written. Its worker may still be `at`
 * a task: it counts as having this one to do until kl_balance_forget(), so that nobody waits for it as for
 * one that is free. */
void kl_balance_abandon(kl_balance *balance, kl_chunk *chunk);
void kl_balance_forget(kl_balance *balance, const kl_chunk *chunk);
/* The worker will not do [from, hi) of the chunk: it ends there. What is to become of them is the caller's.
 */
void kl_balance_cut(kl_balance *balance, kl_chunk *chunk, uint64_t from);
/* Deal the worker these tasks, which are not in the bag. KILTER_ERR_PEER, _MEMORY: they are not dealt. */
kilter_status kl_balance_deal_span(kl_balance *balance, const kl_request *request, kl_span span,
                                   double finish_s, kl_chunk *chunk, kilter_error *error);
/* The chunk ended; lost: with its worker, or its run. The record gets its row. */
void kl_balance_end_chunk(kl_balance *balance, const kl_chunk *chunk, bool lost);
/* Nothing is left to deal: what is to be done about workers that end late? */
void kl_balance_rescue(kl_balance *balance, const kl_board *board, kl_rescue *rescue);
kl_forecast kl_balance_forecast(kl_balance *balance);
typedef struct kl_run_times {
    double elapsed_s, master_s; /* the run's; the master's own before it [l_m] */
} kl_run_times;
/* What the run that has ended showed. shared_bytes: of shared data that it sent to each worker, which makes a
 * worker's start dearer. `speeds` is good until the balance changes. */
kl_iteration kl_balance_iteration(kl_balance *balance, const kl_run_times *times, double shared_bytes,
                                  const kl_use *use);

/* For the choice of the next run's number of tasks, all but t_M: of the last run and those present now.
 * work: of the next run; 0: as the last one's. lanes: room for snapshot.present. */
void kl_balance_grain(kl_balance *balance, double work, kl_lane *lanes, kl_grain_look *look);

/* --- what its files share --- */

/* A chunk sent now would leave at once. */
bool kl_traffic_is_quiet(const kl_traffic *traffic, double now_s);
void kl_traffic_sent(kl_traffic *traffic, uint64_t bytes, double now_s); /* of chunks */
/* `count` tasks more, after those of the bag. false: memory ran out. */
bool kl_run_data_add(kl_run_data *data, const kl_bag *bag, uint64_t count, const kilter_bytes *inputs,
                     const double *weights);

#endif
