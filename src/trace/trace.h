/* Public header of the folder trace: the run record, an SQLite file for each run, which only the master
 * writes. Its format is described in docs/reference/record.md. The kl_trace_* functions copy a row into
 * memory and return; a separate thread writes the rows in batches. If the disk is too slow, rows are dropped.
 * If the disk fails, recording stops, but the run continues. Both are reported by kl_trace_close(). If the
 * trace is NULL, the functions do nothing. */
#ifndef KL_TRACE_H
#define KL_TRACE_H

#include "decide/decide.h"
#include "kilter/run.h"
#include "watch/watch.h"

#define KL_TRACE_THREAD "kilter-trace" /* name of the thread that writes the record */

typedef struct kl_trace kl_trace;
typedef struct kl_stored kl_stored;

/* Type and format of the file in SQLite's header: application_id ("Kltr") and user_version. */
enum { KL_RECORD_APPLICATION = 0x4b6c7472, KL_RECORD_FORMAT = 2 };

/* The first row of a record. Times of all rows are in seconds since the farm or loop was opened, at
 * began_unix_s. */
typedef struct kl_trace_run_row {
    const char *program, *version, *transport, *policy, *host;
    const char *program_version; /* NULL: "" */
    /* for a record with results: how the program was started and built; NULL: "". A program that was started
     * or built differently cannot continue the record. */
    const char *arguments, *build;
    /* not stored; true: a program that was started or built differently may continue the record */
    bool anyway;
    double began_unix_s;
    int64_t pid;
    /* not stored; true: adding a row waits for the disk if necessary, because the run's simulated time stands
     * still meanwhile */
    bool simulated;
    const char *control; /* name of the socket for `kilter tune`; "": none */
    const char *folder;  /* working folder of the program; NULL: not known */
    /* not stored; true: the run is a loop over ranks */
    bool loop;
    bool watched; /* not stored; true: the run is an MPI program under `kilter watch` */
} kl_trace_run_row;

typedef struct kl_trace_worker_row {
    uint32_t worker;
    const char *host, *binding; /* binding: "core 1", or "" */
    int64_t pid;
    double joined_s;
} kl_trace_worker_row;

typedef struct kl_trace_iteration_row { /* one call of kilter_farm_run() */
    uint64_t run, tasks;                /* run: number of the run; tasks: number of tasks to execute in it */
    double units;
    const char *policy;
    uint64_t shared_bytes;
    double began_s;
    uint64_t stored; /* number of further tasks of the run, whose results an earlier master stored */
} kl_trace_iteration_row;

typedef struct kl_trace_iteration_end {
    uint64_t run, failed, chunks;
    uint32_t workers;
    double ended_s, bound_s, equal_split_s;
    const char *decision, *status; /* status: "done", or why it ended early */
} kl_trace_iteration_end;

typedef struct kl_trace_chunk_row { /* a chunk, recorded when it has ended or is lost */
    uint64_t run, chunk, lo, hi;    /* tasks [lo, hi) */
    uint32_t worker;
    /* units: work of the chunk. The other three are times by the master's clock, or 0 if not known. dealt_s:
     * when the chunk was sent; began_s: when its first task began; ended_s: when its last task ended */
    double units, dealt_s, began_s, ended_s;
    double busy_s; /* seconds spent on the chunk's tasks, including the gaps between two tasks */
    uint64_t bytes_out, bytes_in, failed;
    bool lost;
} kl_trace_chunk_row;

typedef struct kl_trace_measurement_row {
    double at_s;
    int64_t worker;   /* number of the worker; −1: the farm as a whole */
    const char *kind; /* "unit_s", "rate_units_per_s", "message_fixed_s", "message_per_byte_s",
                         "message_alone_s", "link_per_byte_s", "copy_per_byte_s", "near_message_s",
                         "round_trip_s", "answer_s", "master_s" */
    double value, sd;
    uint64_t count;
} kl_trace_measurement_row;

/* When a decision was made, and in which run, chunk or round. */
typedef struct kl_trace_moment {
    /* now_s: present time; opened_s: time when the farm or loop was opened; both by the clock that forecasts
     * use */
    double now_s, opened_s;
    uint64_t run;   /* number of the run; 0 in a loop */
    uint64_t chunk; /* number of the chunk that the decision deals; UINT64_MAX: none */
    uint64_t round; /* number of the round of a loop; 0: none */
    /* the inputs of the decision, from kl_grounds_take(), which are copied; if they are empty, the decision
     * cannot be made again later */
    kilter_bytes grounds;
} kl_trace_moment;

/* The outcome of the move that was decided in a round. */
typedef struct kl_trace_outcome {
    uint64_t round;
    double settled_s, came_s, spent_s;
} kl_trace_outcome;

typedef struct kl_trace_failure_row { /* a failed attempt to do a task */
    uint64_t run, task;
    uint32_t attempt; /* number of the attempt; the first is 1 */
    uint32_t worker;
    double at_s;
    bool lost;             /* true: the worker died during the task; false: the task reported its failure */
    bool final;            /* true: there will be no further attempt */
    uint64_t code, signal; /* exit code and signal with which the worker ended; UINT64_MAX: not known */
    const char *text;
} kl_trace_failure_row;

/* Create a record named `path`. If the name exists, the first free numbered name is used: a-2.kilter after
 * a.kilter. KILTER_ERR_RECORD: the file cannot be written; the error names it. */
kilter_status kl_trace_open(const char *path, const kl_trace_run_row *run, kl_trace **trace,
                            kilter_error *error);
void kl_trace_worker(kl_trace *trace, const kl_trace_worker_row *row);
void kl_trace_worker_left(kl_trace *trace, uint32_t worker, double left_s, const char *why);
void kl_trace_iteration(kl_trace *trace, const kl_trace_iteration_row *row);
void kl_trace_iteration_ended(kl_trace *trace, const kl_trace_iteration_end *row);
void kl_trace_chunk(kl_trace *trace, const kl_trace_chunk_row *row);
void kl_trace_measurement(kl_trace *trace, const kl_trace_measurement_row *row);
void kl_trace_decision(kl_trace *trace, const kl_trace_moment *when, const kl_decision *decision);
void kl_trace_failure(kl_trace *trace, const kl_trace_failure_row *row);
/* Return the name of the record's file; NULL if the trace is NULL. */
const char *kl_trace_path(const kl_trace *trace);
/* Write the waiting rows and the end of the run, and free the trace. KILTER_ERR_RECORD: the
 * record lacks rows. */
kilter_status kl_trace_close(kl_trace *trace, double ended_s, kilter_error *error);

/* --- rows of a loop over ranks, in whose record ranks are called workers --- */

typedef struct kl_trace_loop_row {
    const char *name,
        *kind; /* kind is "doall", "scattered" or "doacross"; or "kept" for a run under a keeper */
    uint64_t iterations, inner;
    uint32_t ranks;
    bool fixed;
} kl_trace_loop_row;

typedef struct kl_trace_loop_end {
    double ended_s, elapsed_s; /* ended_s: time of the end; elapsed_s: seconds that sweeps took */
    uint64_t executions, rounds;
    /* moves: number of moves; moved: number of iterations that moves gave to other ranks; block: elements in
     * a block, 0: the loop is not a pipeline */
    uint64_t moves, moved, block;
    /* sums over all moves; the values have the same meaning as in kl_decision and kl_trace_outcome */
    double gained_s, came_s, cost_s;
    const char *decision, *status; /* status: "done", or why it ended early */
} kl_trace_loop_end;

typedef struct kl_trace_array_row {
    uint64_t array, row_bytes, ghost;
} kl_trace_array_row;

typedef struct kl_trace_round_row {
    /* execution: number of the sweep that was about to begin; in a scattered loop, number of the sweep
     * that was running */
    uint64_t round, execution;
    double at_s, period_s;
    /* forecast seconds of a sweep, or 0 if not known. now_s: with the present shares; then_s: with the shares
     * that were considered */
    double now_s, then_s;
    uint64_t block;
} kl_trace_round_row;

/* the share of a rank; done, busy_s and moving_s are counted since the last row of this rank */
typedef struct kl_trace_share_row {
    uint64_t round;
    uint32_t rank;
    /* lo: first iteration; count: number of iterations; lo = UINT64_MAX: the share is not one range */
    uint64_t lo, count;
    uint64_t done;
    double busy_s, moving_s, rate_per_s; /* rate_per_s: estimated iterations per second; 0: not known */
} kl_trace_share_row;

typedef struct kl_trace_rank_row { /* a rank's sums over the whole loop, recorded when the loop is closed */
    uint32_t rank;
    uint64_t iterations;
    double elapsed_s, waited_s, moving_s;
} kl_trace_rank_row;

void kl_trace_loop(kl_trace *trace, const kl_trace_loop_row *row);
void kl_trace_loop_ended(kl_trace *trace, const kl_trace_loop_end *row);
void kl_trace_array(kl_trace *trace, const kl_trace_array_row *row);
void kl_trace_round(kl_trace *trace, const kl_trace_round_row *row);
void kl_trace_share(kl_trace *trace, const kl_trace_share_row *row);
/* Record the outcome of the move of rows that was decided in a round. If this function is called several
 * times for a round, the last outcome counts. */
void kl_trace_settled(kl_trace *trace, const kl_trace_outcome *outcome);
/* Record the outcome of a decision about a kept run, in whose record each decision is a round of its own. */
void kl_trace_came(kl_trace *trace, const kl_trace_outcome *outcome);
/* Record that the move of this round was refused, so that it was not carried out. */
void kl_trace_refused(kl_trace *trace, uint64_t round);
void kl_trace_rank(kl_trace *trace, const kl_trace_rank_row *row);

/* --- rows of an MPI program under `kilter watch`, in whose record ranks are called workers --- */

typedef struct kl_trace_watched_row {
    const char *mpi, *way, *reason, *status; /* status: "done", or which ranks did not end as they should */
    int64_t exit_code;
    uint64_t other_calls, spawned; /* other_calls: number of MPI calls by further threads; spawned: number of
                                      processes that MPI_Comm_spawn started */
    uint64_t missing;              /* number of ranks that left no file */
    kl_watch_found found;
} kl_trace_watched_row;

typedef struct kl_trace_watched_rank_row {
    uint32_t rank;
    double elapsed_s, useful_s, mpi_s,
        core_share; /* core_share: part of its core that the rank got; NAN: not known */
    uint64_t calls;
    const char *end; /* how the rank ended: "finalized", "aborted" or "did not finalize" */
} kl_trace_watched_rank_row;

typedef struct kl_trace_watched_place_row { /* a place in the program that calls MPI; the numbers are sums
                                               over all ranks */
    const char *call, *place;
    uint64_t calls;
    double mpi_s;
} kl_trace_watched_place_row;

typedef struct kl_trace_watched_slice_row {
    uint32_t rank;
    double began_s, length_s, useful_s;
} kl_trace_watched_slice_row;

void kl_trace_watched(kl_trace *trace, const kl_trace_watched_row *row);
void kl_trace_watched_rank(kl_trace *trace, const kl_trace_watched_rank_row *row);
void kl_trace_watched_place(kl_trace *trace, const kl_trace_watched_place_row *row);
void kl_trace_watched_slice(kl_trace *trace, const kl_trace_watched_slice_row *row);

/* --- rows of a record that also holds results, so that another master can continue the run --- */

/* A call of kilter_farm_run(): its number, and hashes of its arguments. */
typedef struct kl_trace_call {
    uint64_t call, tasks, inputs, weights, shared;
    /* not stored; true: kl_stored_next() returns results in the order of storing, because the run grows or
     * combines its results */
    bool in_order;
    /* not stored; true: kl_stored_open() accepts a call with other inputs, weights and shared data, and with
     * further tasks */
    bool anyway;
} kl_trace_call;

/* A call of kilter_farm_add(): the added tasks [lo, lo + tasks), and hashes of its arguments. */
typedef struct kl_trace_addition {
    uint64_t call, lo, tasks, inputs, weights;
} kl_trace_addition;

/* Results of the tasks [lo, lo + count), in the form that kl_wire_next_result() reads. If the run combines
 * its results: the sum over `count` tasks from task lo on, in the form that kl_wire_read_sum() reads. */
typedef struct kl_trace_result_row {
    uint64_t call, lo, count;
    uint32_t worker;
    kilter_bytes results;
} kl_trace_result_row;

/* Greatest number of bytes of results in a row: SQLite's limit for a row, minus room for the other columns.
 */
enum { KL_TRACE_RESULT_MOST_BYTES = 999000000 };

/* A function that is called when results are stored: the next `results` rows that were given to
 * kl_trace_result() are on the disk now. If `failure` is not NULL, it says why no further row will be stored.
 * A failure is reported only once. The thread that writes the record calls the function. */
typedef void (*kl_trace_stored_fn)(void *context, uint64_t results, const kilter_error *failure);

/* Open a record like kl_trace_open(), but for results. If the file exists and was made by this function, the
 * record is continued. New times, and new numbers of runs and workers, then begin after the last ones in the
 * file. No results are dropped, and kl_trace_close() reports missing results. KILTER_ERR_RECORD: the record
 * belongs to another program, is damaged, or another master uses it; the error names the file. */
kilter_status kl_trace_resume(const char *path, const kl_trace_run_row *run, kl_trace_stored_fn stored,
                              void *context, kl_trace **trace, kilter_error *error);
/* Return the number of calls of kilter_farm_run() that earlier masters of this record made. Later calls have
 * no stored results. */
uint64_t kl_trace_calls(const kl_trace *trace);
/* Record a call of kilter_farm_run(). This must come before its first result. */
void kl_trace_call_begins(kl_trace *trace, const kl_trace_call *call);
/* Record an addition of tasks. This must come before the first result of these tasks. */
void kl_trace_call_grows(kl_trace *trace, const kl_trace_addition *addition);
/* Store results. Their bytes are not copied, so they must stay valid until the function kl_trace_stored_fn
 * has reported them, or until kl_trace_close(). */
void kl_trace_result(kl_trace *trace, const kl_trace_result_row *row);
void kl_trace_hurry(kl_trace *trace); /* Store the waiting results at once. */

/* Open the stored results of a call. KILTER_ERR_USAGE: the call in the record had other arguments;
 * KILTER_ERR_RECORD: the record is damaged. */
kilter_status kl_stored_open(const char *path, const kl_trace_call *call, kl_stored **stored,
                             kilter_error *error);
/* Get the list of all additions of tasks to the call, in the order in which they were made. Set *count to
 * their number. The caller frees the array. Errors: KILTER_ERR_RECORD, KILTER_ERR_MEMORY */
kilter_status kl_stored_additions(kl_stored *stored, kl_trace_addition **additions, size_t *count,
                                  kilter_error *error);
/* Read the next row of results, which is valid until the next call. Rows are sorted by lo, or, if the call
 * asks for it, by the order of storing. They may overlap. *got = false: there are no more rows, and the next
 * call begins again with the first. KILTER_ERR_RECORD: the checksum is wrong. */
kilter_status kl_stored_next(kl_stored *stored, kl_trace_result_row *row, bool *got, kilter_error *error);
void kl_stored_free(kl_stored *stored);

/* Read the record of an earlier farm, and find the number of workers with which a farm of `program` should
 * begin. *workers = 0: the record does not say. KILTER_ERR_USAGE: the record belongs to another program, or
 * is not a record. */
kilter_status kl_record_team(const char *path, const char *program, uint32_t *workers, kilter_error *error);

/* --- the lock that the writer of a record holds on the file; the system releases it when the process and its
 * forked children have ended or run another program --- */

/* Lock the file. false: errno says why it is not locked; EAGAIN: another process has locked it. */
bool kl_record_lock(int file);
void kl_record_unlock(int file);
bool kl_record_is_locked(int file); /* return whether the file is locked through another descriptor */

#endif
