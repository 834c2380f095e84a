/* Door of room trace: the run record, one SQLite file a run, written by the master alone. Format:
 * docs/reference/record.md.
 *
 * Writing is off the critical path: the kl_trace_* calls copy a row into memory and return; a thread of its
 * own writes batches. What a slow disk cannot follow is dropped, and a failing one stops the recording, never
 * the run: kl_trace_close() reports both. A NULL trace takes every call and does nothing. */
#ifndef KL_TRACE_H
#define KL_TRACE_H

#include "decide/decide.h"
#include "kilter/run.h"

#define KL_TRACE_THREAD "kilter-trace" /* the name of that thread */

typedef struct kl_trace kl_trace;
typedef struct kl_stored kl_stored;

/* What the file says it is: SQLite's application_id ("Kltr") and user_version. */
enum { KL_RECORD_APPLICATION = 0x4b6c7472, KL_RECORD_FORMAT = 2 };

/* All times below: seconds since the farm or loop was opened (its clock's 0 is
 * kl_trace_run_row.began_unix_s). */
typedef struct kl_trace_run_row {
    const char *program, *version, *transport, *policy, *host;
    const char *program_version; /* NULL: "" */
    /* In a record with results: what started the program. NULL: "". A record is gone on with by the same. */
    const char *arguments, *build;
    bool anyway; /* not written: by another, too */
    double began_unix_s;
    int64_t pid;
    bool simulated;      /* not written: rows wait for the disk, as simulated time stands still meanwhile */
    const char *control; /* name of the socket for `kilter tune`; "": none */
    const char *folder;  /* the program's working folder; NULL: not known */
    bool loop;           /* not written: the run is a loop over ranks, whose rows are the last ones below */
} kl_trace_run_row;

typedef struct kl_trace_worker_row {
    uint32_t worker;
    const char *host, *binding; /* binding: "core 1", or "" */
    int64_t pid;
    double joined_s;
} kl_trace_worker_row;

typedef struct kl_trace_iteration_row { /* one kilter_farm_run() */
    uint64_t run, tasks;                /* tasks: to be done */
    double units;
    const char *policy;
    uint64_t shared_bytes;
    double began_s;
    uint64_t stored; /* tasks beside these whose results were in the record before */
} kl_trace_iteration_row;

typedef struct kl_trace_iteration_end {
    uint64_t run, failed, chunks;
    uint32_t workers;
    double ended_s, bound_s, equal_split_s;
    const char *decision, *status; /* status: "done", or why it ended early */
} kl_trace_iteration_end;

typedef struct kl_trace_chunk_row { /* written when the chunk is finished or lost */
    uint64_t run, chunk, lo, hi;    /* tasks [lo, hi) */
    uint32_t worker;
    double units, dealt_s, began_s, ended_s; /* began_s, ended_s: by the master's clock; 0: not known */
    double busy_s;                           /* with its tasks, and between them while there were more */
    uint64_t bytes_out, bytes_in, failed;
    bool lost;
} kl_trace_chunk_row;

typedef struct kl_trace_measurement_row {
    double at_s;
    int64_t worker;   /* −1: of the farm as a whole */
    const char *kind; /* "unit_s", "rate_units_per_s", "message_fixed_s", "message_per_byte_s",
                         "message_alone_s", "link_per_byte_s", "round_trip_s", "answer_s", "master_s" */
    double value, sd;
    uint64_t count;
} kl_trace_measurement_row;

/* When and where a decision was made. */
typedef struct kl_trace_moment {
    double now_s,
        opened_s;         /* opened_s: when farm or loop was opened, by the clock of now_s and of forecasts */
    uint64_t run;         /* of a loop: 0 */
    uint64_t chunk;       /* that it made; UINT64_MAX: none */
    uint64_t round;       /* of a loop; 0: in none */
    kilter_bytes grounds; /* kl_grounds_take(), copied; empty: it cannot be decided again */
} kl_trace_moment;

/* What came of the move decided in a round. */
typedef struct kl_trace_outcome {
    uint64_t round;
    double settled_s, came_s, spent_s;
} kl_trace_outcome;

typedef struct kl_trace_failure_row { /* a task did not succeed: one row for each attempt */
    uint64_t run, task;
    uint32_t attempt; /* 1: the first */
    uint32_t worker;
    double at_s;
    bool lost;             /* its worker was; else the task said so itself */
    bool final;            /* it is not tried again */
    uint64_t code, signal; /* the worker ended with; UINT64_MAX: not known */
    const char *text;
} kl_trace_failure_row;

/* Create `path`, or where that holds something already the first name numbered after it that is free:
 * a-2.kilter after a.kilter. KILTER_ERR_RECORD naming it when it cannot be written. */
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
const char *kl_trace_path(const kl_trace *trace); /* the file's name; NULL for a NULL trace */
/* Write what is left, mark the run ended at ended_s, free. KILTER_ERR_RECORD when rows could not be written.
 */
kilter_status kl_trace_close(kl_trace *trace, double ended_s, kilter_error *error);

/* --- a loop over ranks: its workers are the ranks --- */

typedef struct kl_trace_loop_row {
    const char *name, *kind; /* "doall", "scattered", "doacross" */
    uint64_t iterations, inner;
    uint32_t ranks;
    bool fixed;
} kl_trace_loop_row;

typedef struct kl_trace_loop_end {
    double ended_s, elapsed_s; /* elapsed_s: in executions */
    uint64_t executions, rounds;
    uint64_t moves, moved, block;    /* block: 0: the loop has none */
    double gained_s, came_s, cost_s; /* of all moves, as in kl_decision and kl_trace_outcome */
    const char *decision, *status;   /* status: "done", or why it ended early */
} kl_trace_loop_end;

typedef struct kl_trace_array_row {
    uint64_t array, row_bytes, ghost;
} kl_trace_array_row;

typedef struct kl_trace_round_row {
    uint64_t round, execution; /* execution: the one that was to begin, or under way (scattered) */
    double at_s, period_s;
    double now_s, then_s; /* an execution as it was, and with what was considered: forecasts; 0: not known */
    uint64_t block;
} kl_trace_round_row;

typedef struct kl_trace_share_row { /* of a rank in a round; what it did: since the round written before */
    uint64_t round;
    uint32_t rank;
    uint64_t lo, count; /* lo: UINT64_MAX: no one range */
    uint64_t done;
    double busy_s, moving_s, rate_per_s; /* rate_per_s: believed, iterations per second; 0: not known */
} kl_trace_share_row;

typedef struct kl_trace_rank_row { /* when the loop is closed */
    uint32_t rank;
    uint64_t iterations;
    double elapsed_s, waited_s, moving_s;
} kl_trace_rank_row;

void kl_trace_loop(kl_trace *trace, const kl_trace_loop_row *row);
void kl_trace_loop_ended(kl_trace *trace, const kl_trace_loop_end *row);
void kl_trace_array(kl_trace *trace, const kl_trace_array_row *row);
void kl_trace_round(kl_trace *trace, const kl_trace_round_row *row);
void kl_trace_share(kl_trace *trace, const kl_trace_share_row *row);
void kl_trace_settled(kl_trace *trace, const kl_trace_outcome *outcome); /* again: the last one counts */
void kl_trace_refused(kl_trace *trace, uint64_t round); /* the move of this round was not carried out */
void kl_trace_rank(kl_trace *trace, const kl_trace_rank_row *row);

/* --- a record that also holds results, so that another master can go on from them --- */

/* What one kilter_farm_run() is about: its number, and hashes of what it was given. */
typedef struct kl_trace_call {
    uint64_t call, tasks, inputs, weights, shared;
    bool grows; /* not written */
} kl_trace_call;

/* What one kilter_farm_add() added to it: tasks [lo, lo + tasks), and hashes. */
typedef struct kl_trace_addition {
    uint64_t call, lo, tasks, inputs, weights;
} kl_trace_addition;

typedef struct kl_trace_result_row { /* results of tasks [lo, lo + count), as kl_wire_next_result() reads them
                                      */
    uint64_t call, lo, count;
    uint32_t worker;
    kilter_bytes results;
} kl_trace_result_row;

/* Most bytes of one row of results: what SQLite takes, with room for the rest of the row. */
enum { KL_TRACE_RESULT_MOST_BYTES = 999000000 };

/* The first `results` rows of kl_trace_result() not told of yet are on the disk. Or, with `failure`: none
 * will be from now on; told once. Called in the trace's own thread. */
typedef void (*kl_trace_stored_fn)(void *context, uint64_t results, const kilter_error *failure);

/* As kl_trace_open(), but a record made by this very function before is gone on with: workers, runs and times
 * are counted on from what is in it. Nothing is dropped, and close() says that results are missing when they
 * are. KILTER_ERR_RECORD naming the file when it is another one's, damaged, or another master's just now. */
kilter_status kl_trace_resume(const char *path, const kl_trace_run_row *run, kl_trace_stored_fn stored,
                              void *context, kl_trace **trace, kilter_error *error);
/* Calls of earlier masters of this record: those from here on have nothing stored. */
uint64_t kl_trace_calls(const kl_trace *trace);
void kl_trace_call_begins(kl_trace *trace, const kl_trace_call *call);        /* before its first result */
void kl_trace_call_grows(kl_trace *trace, const kl_trace_addition *addition); /* before the first of these */
/* The row is copied, the results are not: they are the trace's until `stored` has told of them, or close().
 */
void kl_trace_result(kl_trace *trace, const kl_trace_result_row *row);
void kl_trace_hurry(kl_trace *trace); /* somebody waits for the results that are still to be stored */

/* What is stored of a call. KILTER_ERR_USAGE when the one in the record is about something else;
 * KILTER_ERR_RECORD when the record is damaged. */
kilter_status kl_stored_open(const char *path, const kl_trace_call *call, kl_stored **stored,
                             kilter_error *error);
/* What was added to it, in that order: *count of them, the caller's to free. KILTER_ERR_RECORD, _MEMORY. */
kilter_status kl_stored_additions(kl_stored *stored, kl_trace_addition **additions, size_t *count,
                                  kilter_error *error);
/* The next row by rising lo (of a run that grows: as they were stored), good until the next call; *got =
 * false: there is none, and the one after that is the first again. Rows may overlap. KILTER_ERR_RECORD when
 * it is not what was written. */
kilter_status kl_stored_next(kl_stored *stored, kl_trace_result_row *row, bool *got, kilter_error *error);
void kl_stored_free(kl_stored *stored);

/* How many workers a farm of `program` should begin with, as the record of an earlier one says; 0: it does
 * not say. KILTER_ERR_USAGE: it is another program's, or no record. */
kilter_status kl_record_team(const char *path, const char *program, uint32_t *workers, kilter_error *error);

/* --- the lock that the writer of a record holds on its file; the system ends it with the process, and with
 * those that it forked and that ran no other program --- */

bool kl_record_lock(int file); /* false: errno says why; EAGAIN: another has it */
void kl_record_unlock(int file);
bool kl_record_is_locked(int file); /* by another descriptor */

#endif
