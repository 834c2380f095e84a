/* Public header of the folder balance: the control loop. To deal a chunk, balance.c takes four steps:
 * measure, model, decide, move. The folder owns the measurements of workers and the bag of tasks that are
 * not dealt yet. It calls no user function and has no thread. */
#ifndef KL_BALANCE_H
#define KL_BALANCE_H

#include "decide/decide.h"
#include "move/move.h"
#include "sys/sys.h"
#include "trace/trace.h"

typedef struct kl_spans { /* a list of spans by rising `lo` that do not touch each other; all zero: empty */
    const kl_span *spans;
    size_t count;
} kl_spans;

/* The tasks of a run that are not dealt. Returned tasks are dealt first. All zero: empty. */
typedef struct kl_bag {
    kl_span *spans; /* spans[count − 1] is dealt next */
    size_t count;
    uint64_t room;
    double *prefix; /* prefix[i]: units of tasks [0, i), for i up to `tasks`; NULL: each task is 1 unit */
    uint64_t prefix_room;
    double scale; /* units for a weight of 1, chosen so that a task is 1 unit on average */
    uint64_t tasks, left;
    double units, left_units; /* units of all tasks that were ever in the bag, and of the tasks in it now */
    /* in a series: the tasks in the bag, sorted by the worker that did them in the last run */
    kl_homes homes;
} kl_bag;

/* Tasks that a worker may be given next. */
typedef struct kl_offer {
    kl_span span;
    /* the worker whose home the span belongs to; UINT32_MAX: the span comes from bag.spans */
    uint32_t home;
    /* true: the span has fewer tasks than requested, because the next ones are not consecutive */
    bool cut_short;
} kl_offer;

/* Fill the bag with all tasks that are not done already. The weights are not kept. KILTER_ERR_RANGE: a weight
 * is outside 1e-50 … 1e50; KILTER_ERR_MEMORY. */
kilter_status kl_bag_fill(kl_bag *bag, uint64_t tasks, const double *weights, kl_spans done,
                          kilter_error *error);
void kl_bag_free(kl_bag *bag);
/* Add `count` tasks, which are dealt after all others. weights: in the same unit as the weights of the
 * first tasks; NULL: 1 unit each. KILTER_ERR_MEMORY: nothing has changed. */
kilter_status kl_bag_grow(kl_bag *bag, uint64_t count, const double *weights, kl_spans done);
/* Check weights of the tasks from `lo` on. KILTER_ERR_RANGE names the first weight outside 1e-50 … 1e50. */
kilter_status kl_weights_check(const double *weights, uint64_t lo, uint64_t count, kilter_error *error);
double kl_bag_units(const kl_bag *bag, kl_span span);
/* Give the bag the number of the run's series; 0: none. Call this once, before any task is taken.
 * KILTER_ERR_MEMORY. */
kilter_status kl_bag_sort(kl_bag *bag, uint64_t series, const kl_snapshot *snapshot);
/* Offer `count` tasks to `worker`. If tasks have weights, offer the same part of the remaining units
 * instead. An offer has at least 1 task, and its tasks are consecutive. */
kl_offer kl_bag_offer(const kl_bag *bag, const kl_dealer *dealer, const kl_snapshot *snapshot,
                      uint32_t worker, uint64_t count);
/* Take an offer, whose end may have been cut off. */
void kl_bag_take(kl_bag *bag, const kl_offer *offer);
kilter_status kl_bag_return(kl_bag *bag, kl_span span); /* KILTER_ERR_MEMORY */

/* For each of the tasks [lo, hi), how many times a rare event happened to it. */
typedef struct kl_counted { /* tasks [lo, hi) */
    uint64_t lo, hi;
    uint32_t times;
} kl_counted;

typedef struct kl_tally {
    kl_counted *spans; /* the tasks to which the event happened, by rising lo; no task is in two spans */
    size_t count;
    uint64_t room;
} kl_tally;

/* Count one more event for each task of the span. KILTER_ERR_MEMORY: not counted. */
kilter_status kl_tally_add(kl_tally *tally, kl_span span);
uint32_t kl_tally_of(const kl_tally *tally, uint64_t task);
/* Return the longest part at the beginning of the span in which all tasks have the same count. */
kl_span kl_tally_alike(const kl_tally *tally, kl_span span, uint32_t *times);

/* The ledger: which tasks are done, and how often each task was lost, has failed or was recalled. All
 * zero: a run without tasks. */

typedef struct kl_ledger {
    uint64_t *done; /* one bit for each task: 1 if it is done */
    uint64_t tasks, done_count, words;
    kl_tally losses;   /* how many times a task's worker was lost while it had the task */
    kl_tally failures; /* how many times a task failed and was tried again */
    kl_tally recalls;  /* how many times a task was recalled from a worker */
} kl_ledger;

kilter_status kl_ledger_begin(kl_ledger *ledger, uint64_t tasks); /* KILTER_ERR_MEMORY */
kilter_status kl_ledger_grow(kl_ledger *ledger, uint64_t count);  /* KILTER_ERR_MEMORY: nothing has changed */
void kl_ledger_free(kl_ledger *ledger);
bool kl_ledger_is_done(const kl_ledger *ledger, uint64_t task);
/* Return the longest part at the beginning of the span in which all tasks are done, or none is. */
kl_span kl_ledger_alike(const kl_ledger *ledger, kl_span span, bool *done);
void kl_ledger_do(kl_ledger *ledger, kl_span span); /* Mark tasks as done. None of them may be done yet. */

/* A chunk that a worker has: tasks [lo, hi). The results of tasks before `at` have been reported. */
typedef struct kl_chunk {
    uint64_t id, lo, hi, at;
    uint32_t worker; /* the worker's place */
    bool stale;      /* true: the chunk's run has ended, so its reports are not counted */
    /* time of the recall that the worker has not answered; 0: there is none */
    double recalled_s;
    uint64_t recalled_from;
    bool begun; /* true: the worker has said that it has begun all tasks */
    /* times when the chunk was sent, when its first task began, and when the last reported task ended */
    double dealt_s, began_s, ended_s;
    /* seconds of the reported tasks; forecast of the chunk's end, made when it was dealt (0: none) */
    double busy_s, finish_s;
    /* units of the chunk; if the chunk is stale: units of the task that its worker may still be doing */
    double units;
    uint64_t bytes_out, bytes_in, failed;
    uint64_t counted; /* number of reported tasks that were not done before */
} kl_chunk;

/* The workers' places in the views; places.c */
typedef struct kl_places {
    uint32_t next_number;
    /* places of workers that have left, in the order of leaving; the array has room for all places */
    uint32_t *gone;
    uint32_t gone_count;
} kl_places;

/* The cost of messages; traffic.c */
typedef struct kl_traffic {
    kl_msgcost message,
        probed;    /* cost of recent messages including the probe's, and of the probe's messages alone */
    kl_linear now; /* the fixed cost and the cost per byte that fit `message` best */
    /* least seconds for a byte in a stream of messages to another host and back; 0: unknown */
    double link_byte_s;
    /* least CPU seconds of one side for a byte of a message on the master's host; 0: unknown */
    double copy_byte_s;
    double near_s,
        near_large_s; /* least one-way seconds of a small and of a large probe on that host; 0: unknown */
    uint32_t links_measured;
    double free_s; /* time at which the link should have sent all chunks so far */
    /* CPU seconds of the master for a chunk: since the farm was opened, lately, and before that. A farm's
     * first answers take longer, because they touch new memory. */
    kl_stat answer, answers, answers_before;
    kl_stat round_trip;
    /* master's CPU seconds for a chunk of one task: after it slept for the message, and if it was awake */
    kl_stat woken, awake;
} kl_traffic;

/* The tasks that ended last, from which the time left is forecast; observed.c */
enum { KL_OBSERVED = 512 };
typedef struct kl_observed {
    kl_seen_task ring[KL_OBSERVED]; /* worker: place of the worker */
    uint32_t numbers[KL_OBSERVED];  /* number of that worker */
    uint64_t count; /* number of tasks so far; the next one is stored at count % KL_OBSERVED */
} kl_observed;

/* Inputs and weights of the run's tasks; data.c */
typedef struct kl_run_data {
    const kilter_bytes *inputs; /* the user's array; own_inputs after tasks were added */
    const double *weights;
    kilter_bytes *own_inputs; /* arrays that hold all tasks after tasks were added */
    double *own_weights;
    uint64_t inputs_room, weights_room;
} kl_run_data;

/* Where rows are recorded. All zero: nowhere. */
typedef struct kl_rows {
    kl_trace *trace;
    double opened_s;     /* time at which the record's times begin */
    kl_grounds *grounds; /* the stored inputs of decisions; NULL: memory ran out */
} kl_rows;

typedef struct kl_balance {
    kl_clock clock;
    kl_transport *transport;
    kl_rows rows;
    kl_dealer *dealer;
    kl_bag bag;
    kl_ledger ledger;
    uint64_t shared_hash;  /* hash of the present shared data; 0: there are no shared data */
    uint64_t result_bytes; /* bytes of each result of the run; 0: any size */
    kl_snapshot snapshot;
    kl_worker_view *views; /* snapshot.workers, but writable; tell the crew of each change */
    kl_crew *crew;         /* snapshot.crew */
    kl_traffic traffic;
    kl_observed observed;
    kl_stat run_unit_s; /* seconds per unit of this run's tasks */
    /* work of a task in the last run whose work the program gave; 0: there was no such run */
    double task_work;
    /* mean units per second of the workers that took part in the last run; kl_iteration.speeds are
     * multiples of it */
    double mean_rate;
    kl_run_data data;
    /* number of the next chunk; number of chunks in the run; least and greatest number of tasks in one of
     * them */
    uint64_t next_chunk, chunks, smallest, largest;
    kl_places places;
    kl_buffer buffer;
} kl_balance;

kilter_status kl_balance_init(kl_balance *balance, const kl_policy *policy, kl_clock clock,
                              kl_transport *transport, kilter_error *error);
void kl_balance_free(kl_balance *balance);

/* Write rows to `trace` from now on, and the inputs of decisions from the next run on. */
void kl_balance_record(kl_balance *balance, kl_trace *trace, double opened_s);

/* Add a worker. *worker is its place among the views; its view holds its number, which no worker had before.
 * KILTER_ERR_MEMORY. */
kilter_status kl_balance_add_worker(kl_balance *balance, uint32_t *worker, kilter_error *error);
/* Call this after the view of `worker` has changed. */
void kl_balance_view_changed(kl_balance *balance, uint32_t worker);
/* Remove a worker that is gone and whose chunks have ended. Another worker may get its place when the run has
 * ended, or when many more workers are gone. */
void kl_balance_remove_worker(kl_balance *balance, uint32_t worker);
void kl_balance_present(kl_balance *balance, uint32_t worker, bool present);
/* Store that the worker rests: it could work, but gets no tasks. resting = false: it gets tasks again. */
void kl_balance_rest(kl_balance *balance, uint32_t worker, bool resting);
/* Take in the one-way seconds of a message that nothing else delayed. probe: it was one of the probe's
 * messages; false: one of the run's. */
void kl_balance_message_cost(kl_balance *balance, double bytes, double one_way_s, bool probe);

/* Take in the seconds per byte of a stream of messages to another host. */
void kl_balance_link_cost(kl_balance *balance, double byte_s);
/* Take in the round-trip times of a small and of a large probe with a worker on the master's host. */
void kl_balance_near_cost(kl_balance *balance, double small_s, double large_s);

/* Return the worker's units per second in the last run. If it took no part in that run, return its present
 * pace; 0: not known. */
double kl_balance_rate(const kl_balance *balance, uint32_t worker);

/* Take in the master's CPU time for one request. */
void kl_balance_answer_cost(kl_balance *balance, double busy_s);
/* Begin a new window of answers if the present one is long enough. */
void kl_traffic_next_window(kl_traffic *traffic);
/* Return the CPU seconds of the master for a chunk, over this window and the last one. */
kl_stat kl_traffic_answer(const kl_traffic *traffic);
/* Note that such a chunk had one task, and that the master had waited waited_s for the message. */
void kl_balance_wake_cost(kl_balance *balance, double busy_s, double waited_s);
/* Return whether woken and awake contain enough answers for a mean. */
bool kl_traffic_wakes(const kl_traffic *traffic);

/* Use this policy from the next run on. factor: partition factor; 0: the policy chooses it.
 * KILTER_ERR_MEMORY: nothing has changed. */
kilter_status kl_balance_set_policy(kl_balance *balance, const kl_policy *policy, double factor,
                                    kilter_error *error);

/* Begin run `number`. done: tasks that are done already. The caller must keep the arrays in `run` until
 * the bag is empty and all chunks have ended. */
kilter_status kl_balance_begin(kl_balance *balance, uint64_t number, const kilter_run *run, kl_spans done,
                               kilter_error *error);
/* Add `count` tasks to the run; some may be done already. The inputs must stay until the run's chunks have
 * ended. weights: in the unit of the run's weights; they are not kept. NULL: each task has the mean weight
 * of the run's first tasks. KILTER_ERR_MEMORY. */
kilter_status kl_balance_grow(kl_balance *balance, uint64_t count, const kilter_bytes *inputs,
                              const double *weights, kl_spans done, kilter_error *error);
/* A worker's request for tasks. */
typedef struct kl_request {
    uint32_t worker; /* the worker's place */
    kl_peer peer;
    double asked_s;
    bool again; /* true: the policy gave this request no tasks when it was considered before */
} kl_request;

/* Deal the worker its next chunk. *dealt = false: it gets none now, because the bag is empty, or the
 * policy lets the worker wait. KILTER_ERR_PEER: the worker is gone, and nothing was dealt. */
kilter_status kl_balance_deal(kl_balance *balance, const kl_request *request, kl_chunk *chunk, bool *dealt,
                              kilter_error *error);
/* Take in a worker's report that `segment` of `chunk` is done. The caller has checked that the chunk has
 * these tasks. Update the chunk and all measurements. offset_s: seconds to add to the worker's clock to get
 * the master's; bytes: size of the segment's results. */
void kl_balance_report(kl_balance *balance, kl_chunk *chunk, const kl_segment *segment, double offset_s,
                       uint64_t bytes, uint64_t failed);
/* Take in the times that a peer measured for its tasks, whose results have `bytes` bytes in total. */
void kl_balance_peer_report(kl_balance *balance, uint32_t worker, const kl_stat *task_s, double bytes);
/* Take over a run that the workers organised themselves until now: put its tasks that are not in `done` into
 * the bag. KILTER_ERR_MEMORY. */
kilter_status kl_balance_take_over(kl_balance *balance, kl_spans done, kilter_error *error);
/* Give up the rest of a chunk whose run has ended, and write its row. The worker may still be doing task
 * `at`. Until kl_balance_forget(), this task counts as queued at the worker. */
void kl_balance_abandon(kl_balance *balance, kl_chunk *chunk);
void kl_balance_forget(kl_balance *balance, const kl_chunk *chunk);
/* End the chunk at `from`: the worker will not do its tasks [from, hi). The caller decides what happens to
 * them. */
void kl_balance_cut(kl_balance *balance, kl_chunk *chunk, uint64_t from);
/* Deal the worker these tasks, which are not in the bag. KILTER_ERR_PEER, KILTER_ERR_MEMORY: the tasks are
 * not dealt. */
kilter_status kl_balance_deal_span(kl_balance *balance, const kl_request *request, kl_span span,
                                   double finish_s, kl_chunk *chunk, kilter_error *error);
/* End the chunk and write its row. lost: its worker is lost, or its run has ended. */
void kl_balance_end_chunk(kl_balance *balance, const kl_chunk *chunk, bool lost);
/* Decide what to do about late workers when no task is left to deal. */
void kl_balance_rescue(kl_balance *balance, const kl_board *board, kl_rescue *rescue);
kl_forecast kl_balance_forecast(kl_balance *balance);
typedef struct kl_left_look {
    uint64_t tasks, chain; /* number of tasks that are not done; chain: as in kl_left_ask */
    double report_s;       /* workers report a task within this time after its end */
} kl_left_look;
/* Forecast the time until these tasks are done by the present workers. false: nothing is known. */
bool kl_balance_time_left(const kl_balance *balance, const kl_left_look *look, kl_left *left);
typedef struct kl_run_times {
    /* seconds of the run; seconds of the master's own work before it [l_m] */
    double elapsed_s, master_s;
} kl_run_times;
/* Return the measurements of the last run, as input of the model. Each worker got shared_bytes bytes of
 * shared data. `speeds` is valid until the balance changes. */
kl_iteration kl_balance_iteration(kl_balance *balance, const kl_run_times *times, double shared_bytes,
                                  const kl_use *use);

/* Set all of `look` except t_M, to choose the number of tasks of the next run. work: the next run's work;
 * 0: as in the last run. lanes: array with room for snapshot.present lanes. */
void kl_balance_grain(kl_balance *balance, double work, kl_lane *lanes, kl_grain_look *look);

/* --- shared by the room's files --- */

/* Take in tasks that a worker has reported together. */
void kl_observed_add(kl_observed *observed, const kl_worker_view *view, uint32_t place,
                     const kl_stat *unit_s);

/* Return whether a chunk that is sent now leaves at once. */
bool kl_traffic_is_quiet(const kl_traffic *traffic, double now_s);
/* Take in that a chunk of this number of bytes was sent. */
void kl_traffic_sent(kl_traffic *traffic, uint64_t bytes, double now_s);
/* Add the inputs and weights of `count` tasks, which come after the bag's tasks. false: memory ran out. */
bool kl_run_data_add(kl_run_data *data, const kl_bag *bag, uint64_t count, const kilter_bytes *inputs,
                     const double *weights);

#endif
