/* Public header of the folder trace: the run record, an SQLite file for each run, which only the master
 * writes. Format: docs/reference/record.md. The kl_trace_* calls copy a row into memory and return; a
 * separate thread writes batches. If the disk is too slow, rows are dropped. If the disk fails, recording
 * stops, but the run goes on. kl_trace_close() reports both. If the trace is NULL, every call is accepted
 * and does nothing. */
#ifndef KL_TRACE_H
#define KL_TRACE_H

#include "decide/decide.h"
#include "kilter/run.h"
#include "watch/watch.h"

#define KL_TRACE_THREAD "kilter-trace" /* the name of the writing thread */

typedef struct kl_trace kl_trace;
typedef struct kl_stored kl_stored;

/* The file's type and format in SQLite's header: application_id ("Kltr") and user_version. */
enum { KL_RECORD_APPLICATION = 0x4b6c7472, KL_RECORD_FORMAT = 2 };

/* Times of all rows are seconds since the farm or loop was opened, at kl_trace_run_row.began_unix_s. */
typedef struct kl_trace_run_row {
    const char *program, *version, *transport, *policy, *host;
    const char *program_version; /* NULL: "" */
    /* In a record with results: how the program was started and built; NULL: "". A program that was
     * started or built differently cannot continue the record. */
    const char *arguments, *build;
    /* not written; true: a program that was started or built in another way may continue the record */
    bool anyway;
    double began_unix_s;
    int64_t pid;
    /* not written; true: calls wait for the disk, because the run's simulated time stands still meanwhile */
    bool simulated;
    const char *control; /* name of the socket for `kilter tune`; "": none */
    const char *folder;  /* working folder of the program; NULL: not known */
    /* not written; true: the run is a loop over ranks, whose rows are described below */
    bool loop;
    bool watched; /* not written; true: the run is an MPI program under `kilter watch` */
} kl_trace_run_row;

typedef struct kl_trace_worker_row {
    uint32_t worker;
    const char *host, *binding; /* binding: "core 1", or "" */
    int64_t pid;
    double joined_s;
} kl_trace_worker_row;

typedef struct kl_trace_iteration_row { /* one kilter_farm_run() */
    uint64_t run, tasks;                /* tasks: number of tasks to execute in this run */
    double units;
    const char *policy;
    uint64_t shared_bytes;
    double began_s;
    uint64_t stored; /* number of further tasks, whose results are stored already */
} kl_trace_iteration_row;

typedef struct kl_trace_iteration_end {
    uint64_t run, failed, chunks;
    uint32_t workers;
    double ended_s, bound_s, equal_split_s;
    const char *decision, *status; /* status: "done", or why it ended early */
} kl_trace_iteration_end;

typedef struct kl_trace_chunk_row { /* written when the chunk has ended or is lost */
    uint64_t run, chunk, lo, hi;    /* tasks [lo, hi) */
    uint32_t worker;
    /* times when the chunk was sent, when its first task began, and when its last task ended, by the master's
     * clock; 0: not known */
    double units, dealt_s, began_s, ended_s;
    double busy_s; /* seconds spent on the chunk's tasks, including the gaps between two queued tasks */
    uint64_t bytes_out, bytes_in, failed;
    bool lost;
} kl_trace_chunk_row;

typedef struct kl_trace_measurement_row {
    double at_s;
    int64_t worker;   /* −1: the farm as a whole */
    const char *kind; /* "unit_s", "rate_units_per_s", "message_fixed_s", "message_per_byte_s",
                         "message_alone_s", "link_per_byte_s", "copy_per_byte_s", "near_message_s",
                         "round_trip_s", "answer_s", "master_s" */
    double value, sd;
    uint64_t count;
} kl_trace_measurement_row;

/* When and where a decision was made. */
typedef struct kl_trace_moment {
    /* present time; time at which the farm or loop was opened, by the clock of now_s and of forecasts */
    double now_s, opened_s;
    uint64_t run;   /* 0 in a loop */
    uint64_t chunk; /* number of the chunk that the decision made; UINT64_MAX: none */
    uint64_t round; /* round of a loop; 0: none */
    /* the result of kl_grounds_take(), which is copied; empty: the decision cannot be made again later */
    kilter_bytes grounds;
} kl_trace_moment;

/* The outcome of the move that was decided in a round. */
typedef struct kl_trace_outcome {
    uint64_t round;
    double settled_s, came_s, spent_s;
} kl_trace_outcome;

typedef struct kl_trace_failure_row { /* an attempt at a task that failed */
    uint64_t run, task;
    uint32_t attempt; /* 1 for the first attempt */
    uint32_t worker;
    double at_s;
    bool lost;             /* true: the worker was lost; false: the task reported its failure */
    bool final;            /* true: the task is not tried again */
    uint64_t code, signal; /* exit code and signal of the worker; UINT64_MAX: not known */
    const char *text;
} kl_trace_failure_row;

/* Create a record named `path`. If the name exists, use the first free numbered name: a-2.kilter after
 * a.kilter. KILTER_ERR_RECORD, with the file's name: it cannot be written. */
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
const char *
kl_trace_path(const kl_trace *trace); /* Return the name of the file; NULL if the trace is NULL. */
/* Write the remaining rows and the run's end, and free the trace. KILTER_ERR_RECORD: rows are missing. */
kilter_status kl_trace_close(kl_trace *trace, double ended_s, kilter_error *error);

/* --- a loop over ranks: the ranks are its workers --- */

typedef struct kl_trace_loop_row {
    const char *name, *kind; /* "doall", "scattered", "doacross"; "kept": a run under a keeper */
    uint64_t iterations, inner;
    uint32_t ranks;
    bool fixed;
} kl_trace_loop_row;

typedef struct kl_trace_loop_end {
    double ended_s, elapsed_s; /* time of the end; seconds within sweeps */
    uint64_t executions, rounds;
    /* number of moves; iterations that were moved; elements in a block, 0: the loop is not a pipeline */
    uint64_t moves, moved, block;
    /* sums over all moves, of values as in kl_decision and kl_trace_outcome */
    double gained_s, came_s, cost_s;
    const char *decision, *status; /* status: "done", or why it ended early */
} kl_trace_loop_end;

typedef struct kl_trace_array_row {
    uint64_t array, row_bytes, ghost;
} kl_trace_array_row;

typedef struct kl_trace_round_row {
    /* execution: number of the sweep that was about to begin; in a scattered loop, of the sweep in
     * progress */
    uint64_t round, execution;
    double at_s, period_s;
    /* forecast seconds of a sweep with the present shares, and with the considered shares; 0: not known */
    double now_s, then_s;
    uint64_t block;
} kl_trace_round_row;

typedef struct kl_trace_share_row { /* done, busy_s and moving_s count since the rank's last row */
    uint64_t round;
    uint32_t rank;
    /* first iteration and number of iterations; lo = UINT64_MAX: the share is not one range */
    uint64_t lo, count;
    uint64_t done;
    double busy_s, moving_s, rate_per_s; /* rate_per_s: estimated iterations per second; 0: not known */
} kl_trace_share_row;

typedef struct kl_trace_rank_row { /* written when the loop is closed */
    uint32_t rank;
    uint64_t iterations;
    double elapsed_s, waited_s, moving_s;
} kl_trace_rank_row;

void kl_trace_loop(kl_trace *trace, const kl_trace_loop_row *row);
void kl_trace_loop_ended(kl_trace *trace, const kl_trace_loop_end *row);
void kl_trace_array(kl_trace *trace, const kl_trace_array_row *row);
void kl_trace_round(kl_trace *trace, const kl_trace_round_row *row);
void kl_trace_share(kl_trace *trace, const kl_trace_share_row *row);
/* Record the outcome of a move. After several calls for a round, the last outcome counts. */
void kl_trace_settled(kl_trace *trace, const kl_trace_outcome *outcome);
/* Record the outcome of a decision of a kept run. In its record each decision has a separate round. */
void kl_trace_came(kl_trace *trace, const kl_trace_outcome *outcome);
/* Record that the move of this round was not carried out. */
void kl_trace_refused(kl_trace *trace, uint64_t round);
void kl_trace_rank(kl_trace *trace, const kl_trace_rank_row *row);

/* --- an MPI program under `kilter watch`: its ranks are the workers --- */

typedef struct kl_trace_watched_row {
    const char *mpi, *way, *reason, *status; /* status: "done", or which ranks did not end as they should */
    int64_t exit_code;
    uint64_t other_calls,
        spawned; /* number of calls of further threads; number of processes that MPI_Comm_spawn started */
    uint64_t missing; /* number of ranks that left no file */
    kl_watch_found found;
} kl_trace_watched_row;

typedef struct kl_trace_watched_rank_row {
    uint32_t rank;
    double elapsed_s, useful_s, mpi_s, core_share; /* core_share: NAN: not known */
    uint64_t calls;
    const char *end; /* "finalized", "aborted", "did not finalize" */
} kl_trace_watched_rank_row;

typedef struct kl_trace_watched_place_row { /* a place that calls MPI; sums over all ranks */
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

/* --- a record that also holds results, so that another master can continue --- */

/* One kilter_farm_run(): its number, and hashes of its arguments. */
typedef struct kl_trace_call {
    uint64_t call, tasks, inputs, weights, shared;
    /* not written; true: the rows are wanted in the order of storing, because the run grows or combines its
     * results */
    bool in_order;
} kl_trace_call;

/* One kilter_farm_add(): the added tasks [lo, lo + tasks), and hashes of its arguments. */
typedef struct kl_trace_addition {
    uint64_t call, lo, tasks, inputs, weights;
} kl_trace_addition;

/* results of tasks [lo, lo + count), in the form that kl_wire_next_result() reads; or a sum of `count` tasks
 * from task lo on, in the form that kl_wire_read_sum() reads */
typedef struct kl_trace_result_row {
    uint64_t call, lo, count;
    uint32_t worker;
    kilter_bytes results;
} kl_trace_result_row;

/* Greatest number of bytes of results in one row: SQLite's limit for a row, minus room for the other
 * columns. */
enum { KL_TRACE_RESULT_MOST_BYTES = 999000000 };

/* Reports that the next `results` rows given to kl_trace_result() are on the disk. failure: no further row
 * will be stored; reported once. The writing thread calls this. */
typedef void (*kl_trace_stored_fn)(void *context, uint64_t results, const kilter_error *failure);

/* Do the same as kl_trace_open(), but continue a record that this function made before: its workers, runs and
 * times are counted on. No row is dropped; kl_trace_close() reports missing results. KILTER_ERR_RECORD naming
 * the file: it is another program's, damaged, or in use by another master. */
kilter_status kl_trace_resume(const char *path, const kl_trace_run_row *run, kl_trace_stored_fn stored,
                              void *context, kl_trace **trace, kilter_error *error);
/* Return the number of calls that earlier masters of this record made. Later calls have no stored results. */
uint64_t kl_trace_calls(const kl_trace *trace);
/* Record a call, before its first result. */
void kl_trace_call_begins(kl_trace *trace, const kl_trace_call *call);
/* Record an addition, before the first result of its tasks. */
void kl_trace_call_grows(kl_trace *trace, const kl_trace_addition *addition);
/* Store results. The row is copied, but the results are not: keep them until `stored` has reported them, or
 * until kl_trace_close(). */
void kl_trace_result(kl_trace *trace, const kl_trace_result_row *row);
void kl_trace_hurry(kl_trace *trace); /* Store the waiting results at once. */

/* Open the stored results of a call. KILTER_ERR_USAGE: the record's call had other arguments;
 * KILTER_ERR_RECORD: the record is damaged. */
kilter_status kl_stored_open(const char *path, const kl_trace_call *call, kl_stored **stored,
                             kilter_error *error);
/* Get the additions to the call in their order, and their number in *count. The caller frees the array.
 * KILTER_ERR_RECORD, _MEMORY. */
kilter_status kl_stored_additions(kl_stored *stored, kl_trace_addition **additions, size_t *count,
                                  kilter_error *error);
/* Read the next row of results, which is valid until the next call. The rows come by rising lo, or in the
 * order of storing if the call asks for it. They may overlap. *got = false: there are no more rows, and
 * the next call starts from the first row. KILTER_ERR_RECORD: the checksum is wrong. */
kilter_status kl_stored_next(kl_stored *stored, kl_trace_result_row *row, bool *got, kilter_error *error);
void kl_stored_free(kl_stored *stored);

/* Read from an earlier farm's record the number of workers with which a farm of `program` should begin; 0:
 * the record has none. KILTER_ERR_USAGE: it is another program's, or not a record. */
kilter_status kl_record_team(const char *path, const char *program, uint32_t *workers, kilter_error *error);

/* --- the lock that a record's writer holds on the file. The system releases the lock when the process and
 * its forked children have ended or run another program --- */

/* Lock the file; false: errno says why; EAGAIN: another process has the lock. */
bool kl_record_lock(int file);
void kl_record_unlock(int file);
bool kl_record_is_locked(int file); /* return whether the lock is held through another descriptor */

#endif
