/* Door of room balance: the control loop. Dealing a chunk takes four steps, which follow each other in
 * balance.c: snapshot → forecast → plan → receipt. The room owns the measurements of workers and the bag of
 * tasks not dealt yet. It calls no user function and has no thread. */
#ifndef KL_BALANCE_H
#define KL_BALANCE_H

#include "decide/decide.h"
#include "move/move.h"
#include "sys/sys.h"
#include "trace/trace.h"

typedef struct kl_spans { /* a list of spans by rising lo that do not touch each other; zeroed: it is empty */
    const kl_span *spans;
    size_t count;
} kl_spans;

/* The tasks that no worker has. They are dealt from the front; tasks returned from a lost worker are dealt
 * first. Zeroed: empty. */
typedef struct kl_bag {
    kl_span *spans; /* spans[count − 1] is dealt next */
    size_t count;
    uint64_t room;
    double *prefix; /* prefix[i]: units of tasks [0, i), for i up to `tasks`; NULL: each task is 1 unit */
    uint64_t prefix_room;
    double scale; /* units per weight, so that a task is 1 unit on average */
    uint64_t tasks, left;
    double units, left_units; /* units: units of all tasks that were ever in the bag */
    kl_homes homes;           /* in a series: tasks not dealt yet, by the worker that did them last */
} kl_bag;

/* Tasks that a worker could be given next. */
typedef struct kl_offer {
    kl_span span;
    /* the worker's home that the span is taken from; UINT32_MAX: it is taken from bag.spans */
    uint32_t home;
    bool cut_short; /* true: the span has fewer tasks than asked for, because no more are consecutive */
} kl_offer;

/* Fill the bag with all tasks that are not done already. The weights are not kept. KILTER_ERR_RANGE: a weight
 * is outside 1e-50 … 1e50; KILTER_ERR_MEMORY. */
kilter_status kl_bag_fill(kl_bag *bag, uint64_t tasks, const double *weights, kl_spans done,
                          kilter_error *error);
void kl_bag_free(kl_bag *bag);
/* Add `count` tasks, which are dealt after all others. weights: in the unit of the first ones; NULL: 1 unit
 * each. KILTER_ERR_MEMORY: nothing has changed. */
kilter_status kl_bag_grow(kl_bag *bag, uint64_t count, const double *weights, kl_spans done);
/* Check weights of the tasks from `lo` on. KILTER_ERR_RANGE names the first weight outside 1e-50 … 1e50. */
kilter_status kl_weights_check(const double *weights, uint64_t lo, uint64_t count, kilter_error *error);
double kl_bag_units(const kl_bag *bag, kl_span span);
/* Tell the series of the run, 0: none. Call this once, before any task is taken. KILTER_ERR_MEMORY. */
kilter_status kl_bag_sort(kl_bag *bag, uint64_t series, const kl_snapshot *snapshot);
/* Offer `count` tasks to `worker`; with weights: as many as have the same part of the units left. An offer
 * has at least 1 task, and all its tasks are consecutive. */
kl_offer kl_bag_offer(const kl_bag *bag, const kl_dealer *dealer, const kl_snapshot *snapshot,
                      uint32_t worker, uint64_t count);
/* Take an offer, whose span may have been cut at its end. */
void kl_bag_take(kl_bag *bag, const kl_offer *offer);
kilter_status kl_bag_return(kl_bag *bag, kl_span span); /* KILTER_ERR_MEMORY */

/* A count, for each task, of something that seldom happens. Zeroed: it never happened. */
typedef struct kl_counted { /* tasks [lo, hi) */
    uint64_t lo, hi;
    uint32_t times;
} kl_counted;

typedef struct kl_tally {
    kl_counted *spans; /* counts by rising lo; no task is in two of them */
    size_t count;
    uint64_t room;
} kl_tally;

/* Count once more for each task of the span. KILTER_ERR_MEMORY: not counted. */
kilter_status kl_tally_add(kl_tally *tally, kl_span span);
uint32_t kl_tally_of(const kl_tally *tally, uint64_t task);
/* Return the tasks from span.lo on, at least one, that have the same count. */
kl_span kl_tally_alike(const kl_tally *tally, kl_span span, uint32_t *times);

/* Which tasks are done, and how often the other tasks were lost, failed or were recalled. Zeroed: a run of no
 * tasks. */

typedef struct kl_ledger {
    uint64_t *done; /* one bit for each task: it is done */
    uint64_t tasks, done_count, words;
    kl_tally losses;   /* number of times that a task's worker was lost, perhaps because of the task */
    kl_tally failures; /* number of times that a task failed and was to be tried again */
    kl_tally recalls;  /* number of times that a task was recalled from a worker */
} kl_ledger;

kilter_status kl_ledger_begin(kl_ledger *ledger, uint64_t tasks); /* KILTER_ERR_MEMORY */
kilter_status kl_ledger_grow(kl_ledger *ledger, uint64_t count);  /* KILTER_ERR_MEMORY: nothing has changed */
void kl_ledger_free(kl_ledger *ledger);
bool kl_ledger_is_done(const kl_ledger *ledger, uint64_t task);
/* Return the tasks from span.lo on, at least one, that are all done or all not done. */
kl_span kl_ledger_alike(const kl_ledger *ledger, kl_span span, bool *done);
void kl_ledger_do(kl_ledger *ledger, kl_span span); /* Mark tasks as done. None of them may be done yet. */

/* A chunk at a worker: tasks [lo, hi). The tasks before `at` are reported. */
typedef struct kl_chunk {
    uint64_t id, lo, hi, at;
    uint32_t worker; /* the worker's place */
    bool stale;      /* true: the chunk's run has ended, so its reports are not counted */
    /* time of the unanswered recall of the tasks from recalled_from on; 0: there is none */
    double recalled_s;
    uint64_t recalled_from;
    bool begun;                       /* true: the worker says that it has begun all tasks */
    double dealt_s, began_s, ended_s; /* ended_s: time when the last reported task ended */
    /* finish_s: forecast of the end, made when the chunk was dealt; 0: none */
    double busy_s, finish_s;
    /* units of the chunk; if it is stale: units of the task that its worker still does */
    double units;
    uint64_t bytes_out, bytes_in, failed;
    uint64_t counted; /* number of reported tasks that no worker had done before */
} kl_chunk;

/* The workers' places; places.c */
typedef struct kl_places {
    uint32_t next_number;
    /* places of workers that are gone, in the order of leaving; the array has room for all places */
    uint32_t *gone;
    uint32_t gone_count;
} kl_places;

/* The cost of messages; traffic.c */
typedef struct kl_traffic {
    kl_msgcost message, probed; /* cost of recent messages, with probes; cost of the probes alone */
    kl_linear now;              /* fit of `message` */
    double link_byte_s; /* least seconds for a byte in a stream to another host and back; 0: unknown */
    /* least CPU seconds of one side for a byte of a message on the master's host; 0: unknown */
    double copy_byte_s;
    double near_s; /* least seconds of a small message on the master's host, one way; 0: unknown */
    uint32_t links_measured;
    double free_s; /* time at which the link should be free, after the chunks sent so far */
    kl_stat answer, round_trip;
} kl_traffic;

/* Inputs and weights of the run's tasks; data.c */
typedef struct kl_run_data {
    const kilter_bytes *inputs; /* the user's array; own_inputs if the run has grown */
    const double *weights;
    kilter_bytes *own_inputs; /* arrays of a run that has grown: its first tasks come first */
    double *own_weights;
    uint64_t inputs_room, weights_room;
} kl_run_data;

/* Destination of the record's rows. Zeroed: none. */
typedef struct kl_rows {
    kl_trace *trace;
    double opened_s;     /* time that is 0 in the record */
    kl_grounds *grounds; /* the data from which decisions are made; NULL: memory ran out */
} kl_rows;

typedef struct kl_balance {
    kl_clock clock;
    kl_transport *transport;
    kl_rows rows;
    kl_dealer *dealer;
    kl_bag bag;
    kl_ledger ledger;
    uint64_t shared_hash;  /* hash of the present shared data; 0: there are none */
    uint64_t result_bytes; /* bytes of each result of the run; 0: any size */
    kl_snapshot snapshot;
    kl_worker_view *views; /* snapshot.workers, writable; each change is told to the crew */
    kl_crew *crew;         /* snapshot.crew */
    kl_traffic traffic;
    kl_stat run_unit_s; /* seconds per unit of this run's tasks */
    /* work of a task in the last run, as its program gave it; 0: the program has never given any */
    double task_work;
    /* mean units per second of the workers that took part in the last run; for kl_iteration.speeds */
    double mean_rate;
    kl_run_data data;
    /* chunks: their number in the run; smallest and largest: tasks in a chunk */
    uint64_t next_chunk, chunks, smallest, largest;
    kl_places places;
    kl_buffer buffer;
} kl_balance;

kilter_status kl_balance_init(kl_balance *balance, const kl_policy *policy, kl_clock clock,
                              kl_transport *transport, kilter_error *error);
void kl_balance_free(kl_balance *balance);

/* Write rows to `trace` from now on, and the data from which decisions are made from the next run on. */
void kl_balance_record(kl_balance *balance, kl_trace *trace, double opened_s);

/* Add a worker. *worker is its place among the views; its view has its number, which no worker had before.
 * KILTER_ERR_MEMORY. */
kilter_status kl_balance_add_worker(kl_balance *balance, uint32_t *worker, kilter_error *error);
/* Call this after the view of `worker` has changed. */
void kl_balance_view_changed(kl_balance *balance, uint32_t worker);
/* Remove a worker that is gone and whose chunks have ended. Another worker gets its place when the run has
 * ended, or when many more workers are gone. */
void kl_balance_remove_worker(kl_balance *balance, uint32_t worker);
void kl_balance_present(kl_balance *balance, uint32_t worker, bool present);
/* Note that the worker is able to work but not used now, or is used again. */
void kl_balance_rest(kl_balance *balance, uint32_t worker, bool resting);
/* Note the cost of a message whose exchange waited for nothing. probe: it was one of the probe's messages,
 * and not of the traffic. */
void kl_balance_message_cost(kl_balance *balance, double bytes, double one_way_s, bool probe);

/* seconds for a byte in a stream to another host */
void kl_balance_link_cost(kl_balance *balance, double byte_s);
/* CPU seconds of one side for a byte of a message on the master's host, 0: not measured; and seconds of a
 * small message there, one way */
void kl_balance_near_cost(kl_balance *balance, double byte_s, double small_s);

/* Return units per second: over the worker's last run or, if it took no part in that run, its present pace;
 * 0: not known. */
double kl_balance_rate(const kl_balance *balance, uint32_t worker);

/* Return the master's CPU time for one request. */
void kl_balance_answer_cost(kl_balance *balance, double busy_s);

/* Use this policy from the next run on. KILTER_ERR_MEMORY: nothing has changed. */
kilter_status kl_balance_set_policy(kl_balance *balance, const kl_policy *policy, double factor,
                                    kilter_error *error);

/* Begin run `number`. done: tasks that are done already. The run's arrays are used until its bag is empty and
 * its chunks have ended. */
kilter_status kl_balance_begin(kl_balance *balance, uint64_t number, const kilter_run *run, kl_spans done,
                               kilter_error *error);
/* Add `count` tasks to the run; some may be done already. The inputs must stay until the run's chunks have
 * ended. weights: in the unit of the run's, not kept; NULL: each task counts as the mean of the first ones.
 * KILTER_ERR_MEMORY. */
kilter_status kl_balance_grow(kl_balance *balance, uint64_t count, const kilter_bytes *inputs,
                              const double *weights, kl_spans done, kilter_error *error);
/* A worker's request for tasks. */
typedef struct kl_request {
    uint32_t worker; /* the worker's place */
    kl_peer peer;
    double asked_s;
    bool again; /* true: the request was held back before */
} kl_request;

/* Deal the worker its next chunk. *dealt = false: it gets nothing now, because the bag is empty or the policy
 * holds back. KILTER_ERR_PEER: the worker is gone, and nothing was dealt. */
kilter_status kl_balance_deal(kl_balance *balance, const kl_request *request, kl_chunk *chunk, bool *dealt,
                              kilter_error *error);
/* Take in a worker's report that `segment` of `chunk` is done; the caller has checked that it lies in the
 * chunk. Update the chunk and all measurements. offset_s: seconds to add to the worker's clock to get ours;
 * bytes: size of the segment's results. */
void kl_balance_report(kl_balance *balance, kl_chunk *chunk, const kl_segment *segment, double offset_s,
                       uint64_t bytes, uint64_t failed);
/* Take in what a peer measured: the time of each of its tasks, which had `bytes` bytes of results together.
 */
void kl_balance_peer_report(kl_balance *balance, uint32_t worker, const kl_stat *task_s, double bytes);
/* Deal the run's tasks that are not in `done`: until now, the workers have organised themselves.
 * KILTER_ERR_MEMORY. */
kilter_status kl_balance_take_over(kl_balance *balance, kl_spans done, kilter_error *error);
/* Give up the rest of a chunk whose run has ended; its row is already written. The worker may still be doing
 * task `at`. Until kl_balance_forget(), it counts as having this task to do, and not as free. */
void kl_balance_abandon(kl_balance *balance, kl_chunk *chunk);
void kl_balance_forget(kl_balance *balance, const kl_chunk *chunk);
/* End the chunk at `from`: the worker will not do its tasks [from, hi). The caller decides what happens to
 * them. */
void kl_balance_cut(kl_balance *balance, kl_chunk *chunk, uint64_t from);
/* Deal the worker these tasks, which are not in the bag. KILTER_ERR_PEER, KILTER_ERR_MEMORY: they are not
 * dealt. */
kilter_status kl_balance_deal_span(kl_balance *balance, const kl_request *request, kl_span span,
                                   double finish_s, kl_chunk *chunk, kilter_error *error);
/* End the chunk and write its row. lost: its worker is lost, or its run has ended. */
void kl_balance_end_chunk(kl_balance *balance, const kl_chunk *chunk, bool lost);
/* Decide what to do about workers that end late, when no task is left to deal. */
void kl_balance_rescue(kl_balance *balance, const kl_board *board, kl_rescue *rescue);
kl_forecast kl_balance_forecast(kl_balance *balance);
typedef struct kl_run_times {
    /* seconds of the run; seconds of the master's own work before the run [l_m] */
    double elapsed_s, master_s;
} kl_run_times;
/* Return what the ended run showed. shared_bytes: size of the shared data sent to each worker, for the cost
 * of its start. `speeds` is valid until the balance changes. */
kl_iteration kl_balance_iteration(kl_balance *balance, const kl_run_times *times, double shared_bytes,
                                  const kl_use *use);

/* Fill in `look` for the choice of the next run's number of tasks, all but t_M. work: of the next run; 0: as
 * in the last one. lanes: room for snapshot.present. */
void kl_balance_grain(kl_balance *balance, double work, kl_lane *lanes, kl_grain_look *look);

/* --- shared by the room's files --- */

/* Return whether a chunk that was sent now would leave at once. */
bool kl_traffic_is_quiet(const kl_traffic *traffic, double now_s);
/* Note that chunks with this number of bytes were sent. */
void kl_traffic_sent(kl_traffic *traffic, uint64_t bytes, double now_s);
/* Add `count` tasks after those of the bag. false: memory ran out. */
bool kl_run_data_add(kl_run_data *data, const kl_bag *bag, uint64_t count, const kilter_bytes *inputs,
                     const double *weights);

#endif
