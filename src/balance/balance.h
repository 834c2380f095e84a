/* Public header of the folder balance: the control loop. To deal a chunk, balance.c takes four steps:
 * measure, model, decide, move. The folder owns the measurements of workers and the bag of tasks that are
 * not dealt yet. It calls no user function and has no thread. */
#ifndef KL_BALANCE_H
#define KL_BALANCE_H

#include "decide/decide.h"
#include "move/move.h"
#include "sys/sys.h"
#include "trace/trace.h"

/* a list of spans of tasks, in rising order and without common tasks; all zero: an empty list */
typedef struct kl_spans {
    const kl_span *spans;
    size_t count;
} kl_spans;

/* The bag: the tasks of a run that are not dealt yet. Returned tasks are dealt first. All zero: empty. */
typedef struct kl_bag {
    kl_span *spans; /* spans[count − 1] is the span that is dealt next */
    size_t count;
    uint64_t room;
    double *prefix; /* prefix[i]: units of tasks [0, i), for i up to `tasks`; NULL: each task is 1 unit */
    uint64_t prefix_room;
    double scale; /* units for a weight of 1, chosen so that a task is 1 unit on average */
    uint64_t tasks, left;
    /* units: work of all tasks that were ever in the bag; left_units: work of the tasks that are in the bag
     * now */
    double units, left_units;
    /* in a series of runs: the tasks in the bag, sorted by the worker that did them in the last run */
    kl_homes homes;
} kl_bag;

/* An offer: consecutive tasks that a worker may be given next. */
typedef struct kl_offer {
    kl_span span;
    /* the worker that did the offered tasks in the last run; UINT32_MAX: the tasks come from bag.spans */
    uint32_t home;
    /* true: the span has fewer tasks than requested, because the bag's next tasks do not follow it */
    bool cut_short;
} kl_offer;

/* Fill the bag with all tasks that are not done already. The bag does not use the array `weights` later.
 * KILTER_ERR_RANGE: a weight is outside 1e-50 … 1e50; KILTER_ERR_MEMORY. */
kilter_status kl_bag_fill(kl_bag *bag, uint64_t tasks, const double *weights, kl_spans done,
                          kilter_error *error);
void kl_bag_free(kl_bag *bag);
/* Add `count` tasks, which are dealt after all others. weights: in the same unit as the weights of the
 * first tasks; NULL: 1 unit each. KILTER_ERR_MEMORY: nothing has changed. */
kilter_status kl_bag_grow(kl_bag *bag, uint64_t count, const double *weights, kl_spans done);
/* Check the weights of the tasks from `lo` on. KILTER_ERR_RANGE: a weight is outside 1e-50 … 1e50; the error
 * names the first such weight. */
kilter_status kl_weights_check(const double *weights, uint64_t lo, uint64_t count, kilter_error *error);
double kl_bag_units(const kl_bag *bag, kl_span span);
/* Sort the bag's tasks by the worker that did them in the last run of this series. Call this before the first
 * task is taken. series: number of the run's series; 0: the run is in no series. Error: KILTER_ERR_MEMORY. */
kilter_status kl_bag_sort(kl_bag *bag, uint64_t series, const kl_snapshot *snapshot);
/* Offer `count` tasks to `worker`. If tasks have weights, offer tasks that together have the fraction
 * count/bag->left of the work in the bag. An offer has at least 1 task, and its tasks are consecutive. */
kl_offer kl_bag_offer(const kl_bag *bag, const kl_dealer *dealer, const kl_snapshot *snapshot,
                      uint32_t worker, uint64_t count);
/* Take the tasks of an offer out of the bag. The caller may have shortened the offer at its end. */
void kl_bag_take(kl_bag *bag, const kl_offer *offer);
kilter_status kl_bag_return(kl_bag *bag, kl_span span); /* KILTER_ERR_MEMORY */

/* A rare event, such as the loss of a worker, happened `times` times to each of the tasks [lo, hi). */
typedef struct kl_counted { /* tasks [lo, hi) */
    uint64_t lo, hi;
    uint32_t times;
} kl_counted;

typedef struct kl_tally {
    /* the tasks to which the event happened, as spans in rising order; no task is in two spans */
    kl_counted *spans;
    size_t count;
    uint64_t room;
} kl_tally;

/* Add one event to each task of the span. KILTER_ERR_MEMORY: no event was added. */
kilter_status kl_tally_add(kl_tally *tally, kl_span span);
uint32_t kl_tally_of(const kl_tally *tally, uint64_t task);
/* Return the longest part at the beginning of the span in which all tasks have the same number of events. Set
 * *times to this number. */
kl_span kl_tally_alike(const kl_tally *tally, kl_span span, uint32_t *times);

/* The ledger: which tasks are done, and how often each task was lost, has failed or was recalled. All
 * zero: a run without tasks. */

typedef struct kl_ledger {
    uint64_t *done; /* one bit for each task: 1 if it is done */
    uint64_t tasks, done_count, words;
    kl_tally losses;   /* how many times a worker was lost while it held the task */
    kl_tally failures; /* how many times a task failed and was tried again */
    kl_tally recalls;  /* how many times a task was recalled from a worker */
} kl_ledger;

kilter_status kl_ledger_begin(kl_ledger *ledger, uint64_t tasks); /* KILTER_ERR_MEMORY */
/* KILTER_ERR_MEMORY: the ledger is unchanged */
kilter_status kl_ledger_grow(kl_ledger *ledger, uint64_t count);
void kl_ledger_free(kl_ledger *ledger);
bool kl_ledger_is_done(const kl_ledger *ledger, uint64_t task);
/* Return the longest part at the beginning of the span in which all tasks are done, or none is done. Set
 * *done to say which of the two. */
kl_span kl_ledger_alike(const kl_ledger *ledger, kl_span span, bool *done);
void kl_ledger_do(kl_ledger *ledger, kl_span span); /* Mark tasks as done. None of them may be done yet. */

/* A chunk that a worker has: tasks [lo, hi). The worker has reported the results of the tasks before `at`. */
typedef struct kl_chunk {
    uint64_t id, lo, hi, at;
    uint32_t worker; /* the place of the chunk's worker in the array of views */
    bool stale;      /* true: the chunk's run has ended, so reports about the chunk are not counted */
    /* time at which tasks of the chunk were recalled, while the worker has not answered yet; 0: no recall is
     * open */
    double recalled_s;
    uint64_t recalled_from;
    bool begun; /* true: the worker has reported that it has begun all tasks of the chunk */
    /* dealt_s: time when the chunk was sent; began_s: time when its first task began; ended_s: time when the
     * last reported task ended */
    double dealt_s, began_s, ended_s;
    /* busy_s: seconds that the reported tasks took; finish_s: forecast of the chunk's end, made when the
     * chunk was dealt (0: none) */
    double busy_s, finish_s;
    /* units of work of the chunk; if the chunk is stale: units of the task that the worker may still be
     * doing */
    double units;
    uint64_t bytes_out, bytes_in, failed;
    uint64_t counted; /* number of reported tasks that were not done before as tasks of another chunk */
} kl_chunk;

/* The workers' places in the array of views; see places.c. */
typedef struct kl_places {
    uint32_t next_number;
    /* places of workers that have left, in the order of leaving; the array has room for all places */
    uint32_t *gone;
    uint32_t gone_count;
} kl_places;

/* The measured cost of messages; see traffic.c. */
typedef struct kl_traffic {
    /* message: cost of recent messages, probes included; probed: cost of the probes alone */
    kl_msgcost message, probed;
    kl_linear now; /* the fixed cost of a message and the cost per byte that fit `message` best */
    /* least seconds per byte in a stream of messages to another host and back; 0: unknown */
    double link_byte_s;
    /* least CPU seconds per byte that the sender or the receiver spends on a message within the master's
     * host; 0: unknown */
    double copy_byte_s;
    /* least one-way seconds of a small probe (near_s) and of a large probe (near_large_s) within the master's
     * host; 0: unknown */
    double near_s, near_large_s;
    uint32_t links_measured;
    double free_s; /* forecast time at which the link will have sent all chunks that were dealt so far */
    /* CPU seconds that the master spends on a chunk; answer: since the farm was opened; answers: in the
     * present window of time; answers_before: in the previous window. Older windows are forgotten. The first
     * answers of a farm take longer, because they touch new memory. */
    kl_stat answer, answers, answers_before;
    kl_stat round_trip;
    /* CPU seconds that the master spends on a chunk of one task; woken: if the master slept before the
     * request came; awake: if the master did not sleep */
    kl_stat woken, awake;
} kl_traffic;

/* The tasks that ended last; see observed.c. The time left is forecast from them. */
enum { KL_OBSERVED = 512 };
typedef struct kl_observed {
    /* ring[].worker is the place of the task's worker in the array of views */
    kl_seen_task ring[KL_OBSERVED];
    uint32_t numbers[KL_OBSERVED]; /* numbers[i]: number of the worker that did the task ring[i] */
    uint64_t count; /* number of tasks stored so far; the next task goes to ring[count % KL_OBSERVED] */
} kl_observed;

/* Inputs and weights of the run's tasks; see data.c. */
typedef struct kl_run_data {
    const kilter_bytes *inputs; /* the user's array, or own_inputs if tasks were added during the run */
    const double *weights;
    /* own arrays of the inputs and weights of all tasks, used when tasks were added during the run */
    kilter_bytes *own_inputs;
    double *own_weights;
    uint64_t inputs_room, weights_room;
} kl_run_data;

/* Where rows of the record are written. All zero: nowhere. */
typedef struct kl_rows {
    kl_trace *trace;
    double opened_s;     /* the time from which the record counts its times */
    kl_grounds *grounds; /* the stored inputs of decisions; NULL: there was no memory for them */
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
    /* the same array as snapshot.workers, but writable; call kl_balance_view_changed() after each change */
    kl_worker_view *views;
    kl_crew *crew; /* snapshot.crew */
    kl_traffic traffic;
    kl_observed observed;
    kl_stat run_unit_s; /* seconds per unit of work of this run's tasks */
    /* work of a task in the last run for which the program stated the work; 0: there was no such run */
    double task_work;
    /* mean units of work per second of a worker that took part in the last run; the speeds in kl_iteration
     * are divided by this mean */
    double mean_rate;
    kl_run_data data;
    /* next_chunk: number of the next chunk; chunks: number of chunks dealt in the run; smallest, largest:
     * least and greatest number of tasks in a chunk of the run */
    uint64_t next_chunk, chunks, smallest, largest;
    kl_places places;
    kl_buffer buffer;
} kl_balance;

kilter_status kl_balance_init(kl_balance *balance, const kl_policy *policy, kl_clock clock,
                              kl_transport *transport, kilter_error *error);
void kl_balance_free(kl_balance *balance);

/* Write rows of the record to `trace` from now on. Also record the inputs of decisions from the next run
 * on. */
void kl_balance_record(kl_balance *balance, kl_trace *trace, double opened_s);

/* Add a worker, and set *worker to its place in the array of views. The worker gets a number that no worker
 * had before. Error: KILTER_ERR_MEMORY. */
kilter_status kl_balance_add_worker(kl_balance *balance, uint32_t *worker, kilter_error *error);
/* Call this after the view of `worker` has changed. */
void kl_balance_view_changed(kl_balance *balance, uint32_t worker);
/* Remove a worker that has left and whose chunks have ended. Its place may go to a new worker when the run
 * has ended, or when many more workers have left. */
void kl_balance_remove_worker(kl_balance *balance, uint32_t worker);
void kl_balance_present(kl_balance *balance, uint32_t worker, bool present);
/* Store that the worker rests: it stays connected but gets no tasks. resting = false: it gets tasks
 * again. */
void kl_balance_rest(kl_balance *balance, uint32_t worker, bool resting);
/* Store the one-way seconds of a message that was not delayed. probe: the message was sent to measure the
 * cost; false: it belonged to the run. */
void kl_balance_message_cost(kl_balance *balance, double bytes, double one_way_s, bool probe);

/* Store the seconds per byte of a stream of messages to another host. */
void kl_balance_link_cost(kl_balance *balance, double byte_s);
/* Store the round-trip times of a small and of a large probe with a worker on the master's host. */
void kl_balance_near_cost(kl_balance *balance, double small_s, double large_s);

/* Return the worker's units of work per second in the last run. If it took no part in that run, return its
 * present speed; 0: not known. */
double kl_balance_rate(const kl_balance *balance, uint32_t worker);

/* Store the CPU time that the master spent on one request. */
void kl_balance_answer_cost(kl_balance *balance, double busy_s);
/* Begin a new window for the master's times per chunk if the present window has enough of them. */
void kl_traffic_next_window(kl_traffic *traffic);
/* Return the CPU seconds that the master spends on a chunk, from the present window of time and the previous
 * one. */
kl_stat kl_traffic_answer(const kl_traffic *traffic);
/* Store that the master spent busy_s on a chunk of one task, after it had waited waited_s for the
 * request. */
void kl_balance_wake_cost(kl_balance *balance, double busy_s, double waited_s);
/* Return whether `woken` and `awake` have enough values for a mean. */
bool kl_traffic_wakes(const kl_traffic *traffic);

/* Use this policy from the next run on. factor: the policy's factor; 0: the policy chooses its factor.
 * KILTER_ERR_MEMORY: nothing has changed. */
kilter_status kl_balance_set_policy(kl_balance *balance, const kl_policy *policy, double factor,
                                    kilter_error *error);

/* Begin run `number`. done: tasks that are done already. The caller must keep the arrays in `run` until
 * the bag is empty and all chunks have ended. */
kilter_status kl_balance_begin(kl_balance *balance, uint64_t number, const kilter_run *run, kl_spans done,
                               kilter_error *error);
/* Add `count` tasks to the run; some may be done already. The caller must keep the inputs until the run's
 * chunks have ended. weights: in the unit of the run's weights; the caller may free the array. NULL: each
 * task has the mean weight of the run's first tasks. KILTER_ERR_MEMORY. */
kilter_status kl_balance_grow(kl_balance *balance, uint64_t count, const kilter_bytes *inputs,
                              const double *weights, kl_spans done, kilter_error *error);
/* A worker's request for tasks. */
typedef struct kl_request {
    uint32_t worker; /* the place of the worker that asks, in the array of views */
    kl_peer peer;
    double asked_s;
    bool again; /* true: the same request was considered before and got no tasks */
} kl_request;

/* Deal the worker its next chunk. *dealt = false: the worker gets no chunk now, because the bag is empty or
 * the policy lets the worker wait. KILTER_ERR_PEER: the worker has left, and nothing was dealt. */
kilter_status kl_balance_deal(kl_balance *balance, const kl_request *request, kl_chunk *chunk, bool *dealt,
                              kilter_error *error);
/* Handle a worker's report that `segment` of `chunk` is done, and update all measurements. The caller has
 * checked that the chunk has these tasks. offset_s: seconds to add to the worker's clock to get the
 * master's; bytes: size of the segment's results. */
void kl_balance_report(kl_balance *balance, kl_chunk *chunk, const kl_segment *segment, double offset_s,
                       uint64_t bytes, uint64_t failed);
/* Store the times that a peer measured for its tasks, whose results have `bytes` bytes in total. */
void kl_balance_peer_report(kl_balance *balance, uint32_t worker, const kl_stat *task_s, double bytes);
/* Take over a run that the workers organised themselves until now: put its tasks that are not in `done` into
 * the bag. KILTER_ERR_MEMORY. */
kilter_status kl_balance_take_over(kl_balance *balance, kl_spans done, kilter_error *error);
/* Give up the unreported tasks of a chunk whose run has ended, and write the chunk's row of the record. The
 * worker may still be doing the first of these tasks. This task counts as queued at the worker until
 * kl_balance_forget() is called. */
void kl_balance_abandon(kl_balance *balance, kl_chunk *chunk);
void kl_balance_forget(kl_balance *balance, const kl_chunk *chunk);
/* End the chunk at `from`: the worker will not do its tasks [from, hi). The caller decides what happens to
 * these tasks. */
void kl_balance_cut(kl_balance *balance, kl_chunk *chunk, uint64_t from);
/* Deal the worker these tasks, which are not in the bag. KILTER_ERR_PEER, KILTER_ERR_MEMORY: the tasks are
 * not dealt. */
kilter_status kl_balance_deal_span(kl_balance *balance, const kl_request *request, kl_span span,
                                   double finish_s, kl_chunk *chunk, kilter_error *error);
/* End the chunk and write its row of the record. lost: the chunk's worker is lost, or its run has ended. */
void kl_balance_end_chunk(kl_balance *balance, const kl_chunk *chunk, bool lost);
/* Decide what to do about late workers when no task is left to deal. */
void kl_balance_rescue(kl_balance *balance, const kl_board *board, kl_rescue *rescue);
kl_forecast kl_balance_forecast(kl_balance *balance);
typedef struct kl_left_look {
    uint64_t tasks, chain; /* tasks: number of tasks that are not done; chain: see the struct kl_left_ask */
    double report_s;       /* greatest seconds from the end of a task to the worker's report of it */
} kl_left_look;
/* Forecast the time until the tasks of `look` are done by the present workers. Return false if nothing is
 * measured yet. */
bool kl_balance_time_left(const kl_balance *balance, const kl_left_look *look, kl_left *left);
typedef struct kl_run_times {
    /* elapsed_s: seconds of the run; master_s: seconds that the master worked alone before the run [l_m in
     * docs/explanation/model.md] */
    double elapsed_s, master_s;
} kl_run_times;
/* Return the measurements of the last run, as input of the model. Each worker got shared_bytes bytes of
 * shared data. `speeds` is valid until the balance changes. */
kl_iteration kl_balance_iteration(kl_balance *balance, const kl_run_times *times, double shared_bytes,
                                  const kl_use *use);

/* Fill `look`, which is used to choose the number of tasks of the next run. Leave out the time that the
 * master works alone. work: work of the next run; 0: as in the last run. lanes: array for snapshot.present
 * lanes. */
void kl_balance_grain(kl_balance *balance, double work, kl_lane *lanes, kl_grain_look *look);

/* --- functions that the files of this folder share --- */

/* Store the times of tasks that a worker has reported together. */
void kl_observed_add(kl_observed *observed, const kl_worker_view *view, uint32_t place,
                     const kl_stat *unit_s);

/* Return whether the link is free, so that a chunk need not wait for earlier chunks. */
bool kl_traffic_is_quiet(const kl_traffic *traffic, double now_s);
/* Store that a chunk of this number of bytes was sent. */
void kl_traffic_sent(kl_traffic *traffic, uint64_t bytes, double now_s);
/* Add the inputs and weights of `count` tasks that follow the bag's tasks. Return false if memory ran
 * out. */
bool kl_run_data_add(kl_run_data *data, const kl_bag *bag, uint64_t count, const kilter_bytes *inputs,
                     const double *weights);

#endif
