/* Public header of the folder report: read a run record, and report what each worker did and how close
 * the run came to its bound. The record may be finished, may still be in use by a master, or may be
 * left by a killed master. The report shows the state of the record at one moment. A number that is not
 * known is NAN. */
#ifndef KL_REPORT_H
#define KL_REPORT_H

#include <stdio.h>

#include "base/base.h"
#include "watch/watch.h"

typedef struct kl_report_session { /* the part of a record that one master wrote */
    double began_s, ended_s;       /* ended_s: NAN if this master was killed or still runs */
    uint64_t first_run;
} kl_report_session;

typedef struct kl_report_run {
    char *program, *version, *transport, *policy, *host;
    double began_unix_s;
    int64_t pid;
    bool ended;
    double ended_s;        /* seconds from began_unix_s to the end of the run */
    uint64_t dropped_rows; /* number of rows that could not be written */
    /* name of the socket for `kilter tune`; "": there is no socket, or an earlier version of Kilter
     * made the record */
    char *control;
} kl_report_run;

typedef struct kl_report_worker {
    uint32_t worker;
    char *host, *binding;
    int64_t pid;
    double joined_s, left_s; /* seconds; left_s: NAN if the worker stayed to the end */
    char *why;               /* why the worker left; NULL: it did not leave */
} kl_report_worker;

/* The work of one worker in one run. Lost chunks count only in lost_chunks. */
typedef struct kl_report_share {
    uint32_t worker;
    uint64_t tasks, chunks, failed, lost_chunks;
    double units, busy_s;
    double task_share; /* part of all done tasks that this worker did, 0 … 1 */
    double busy_share; /* part of the run's time in which the worker was busy: busy_s divided by the run's
                          elapsed_s */
    /* units per busy second, divided by the units per busy second of the fastest worker */
    double speed_relative;
    double task_s; /* busy_s divided by the worker's number of tasks */
    /* unit_s: mean seconds per unit; unit_sd: standard deviation of the seconds per unit, measured on tasks
     * or estimated from chunks */
    double unit_s, unit_sd;
} kl_report_share;

typedef struct kl_report_iteration {
    uint64_t run, tasks; /* run: number of the run; tasks: number of tasks to execute in it */
    uint64_t stored; /* number of further tasks that were not executed, because an earlier master had stored
                        their results */
    double units;
    char *policy;
    uint64_t shared_bytes;
    bool ended;
    /* elapsed_s: seconds that the run took; if the run did not end: seconds until the end of
     * its last chunk */
    double began_s, elapsed_s;
    uint64_t failed, chunks;
    uint32_t workers; /* number of workers that did at least one task */
    double bound_s, efficiency;
    double equal_split_s, equal_split_efficiency; /* forecast seconds and efficiency of the run if all workers
                                                     had got equal parts of the work */
    char *decision, *status; /* decision: how the tasks were dealt, in words; status: how the run ended; both
                                NULL if it did not end */
    uint64_t tasks_done;     /* number of done tasks in the recorded chunks */
    /* for the recorded chunks; bytes_out: bytes sent to the workers; bytes_in: bytes received
     * from the workers */
    double bytes_out, bytes_in;
    kl_report_share *shares; /* shares[0 … share_count−1]: what each worker did, sorted by worker */
    size_t share_count;
} kl_report_iteration;

/* One decision about the whole farm or loop; the fields have the same meaning as in kl_decision. */
typedef struct kl_report_decided {
    char *kind, *reason;
    double at_s;
    uint64_t run, round; /* run: number of the run; round: number of the round of a loop, 0: the decision
                            belongs to no round */
    int64_t subject;
    uint64_t count;
    double forecast_s, gain_s, cost_s; /* values that were forecast when the decision was made */
    double settled_s, came_s, spent_s; /* outcome of a move, as measured until settled_s; NAN: not known */
    bool refused; /* true: the move was not carried out, because a rank had too little memory */
} kl_report_decided;

typedef struct kl_report_decision { /* all decisions of one kind together */
    char *kind;
    uint64_t decisions, tasks; /* tasks: number of tasks that these decisions dealt */
    char *last_reason;
    double last_s;
    uint64_t forecasts; /* number of forecasts that can be judged, because the forecast chunk, run or series
                           of runs has ended */
    double late_s, missed_s; /* late_s: mean of the actual end − the forecast end; missed_s: mean of the
                                absolute value of this difference */
} kl_report_decision;

typedef struct kl_report_measurement { /* the last measurement of one kind */
    char *kind;
    int64_t worker; /* number of the measured worker; −1: the whole farm */
    double at_s, value, sd;
    uint64_t count;
} kl_report_measurement;

/* A rank of a loop. In the other parts of the report, each rank counts as a worker. */
typedef struct kl_report_rank { /* counts and times are sums over the recorded rounds */
    uint64_t iterations;        /* number of iterations that the rank had in its last recorded round */
    uint64_t done;
    double busy_s, rate_per_s; /* rate_per_s: last measured iterations per second; NAN: never measured */
    double believed_per_s;     /* iterations per second, filtered from the measurements */
    double elapsed_s, waited_s, moving_s; /* seconds of the whole loop; NAN if the loop was not closed */
} kl_report_rank;

typedef struct kl_report_round {
    uint64_t round, execution, block;
    double at_s, period_s, now_s, then_s;
    uint64_t *counts; /* counts[rank]: number of iterations of each rank when the round was recorded */
} kl_report_round;

typedef struct kl_report_loop {
    char *name, *kind; /* kind: "doall", "scattered", "doacross", or "kept" for a kept run */
    uint64_t iterations, inner, row_bytes, arrays;
    uint32_t ranks;
    /* fixed: rows are never moved; ended: the loop was closed; otherwise the sums below are computed from the
     * recorded rounds and moves */
    bool fixed, ended;
    double ended_s, elapsed_s;
    uint64_t executions, rounds, moves, moved, block;
    double gained_s, came_s, cost_s;
    char *decision, *status; /* both are NULL if the loop did not end */
    kl_report_rank *rank;    /* [ranks] */
    kl_report_round *round;  /* sorted by number; the record may lack some rounds */
    size_t round_count;
    size_t move_count; /* number of recorded moves, including refused ones */
} kl_report_loop;

/* Return the round with this number; NULL: it is not in the record. */
const kl_report_round *kl_report_round_of(const kl_report_loop *loop, uint64_t round);

/* A rank of an MPI program that ran under `kilter watch`. In the other parts of the report, each rank counts
 * as a worker. The numbers here and below have the same meaning as in kl_watch_found. */
typedef struct kl_report_watched_rank {
    uint32_t rank;
    double elapsed_s, useful_s, mpi_s,
        core_share; /* core_share: part of its core that the rank got; NAN: not known */
    uint64_t calls;
    char *end;
} kl_report_watched_rank;

typedef struct kl_report_watched_place { /* a place in the program that calls MPI; the numbers are sums over
                                            all ranks */
    char *call, *place;
    uint64_t calls;
    double mpi_s;
} kl_report_watched_place;

typedef struct kl_report_watched_slice {
    uint32_t rank;
    double began_s, length_s, useful_s;
} kl_report_watched_slice;

typedef struct kl_report_watched {
    char *mpi, *way, *reason, *status; /* way: the method by which Kilter could help; NULL: the program was
                                          not watched to its end */
    int64_t exit_code;
    uint64_t other_calls, spawned, missing, iterations, iteration_calls;
    uint32_t ranks, slowest, shared_ranks;
    double elapsed_s, load_balance, communication, parallel, iteration_s, alike;
    double lost_constant, lost_slow, lost_fast;
    kl_watch_range even, follow;
    kl_report_watched_rank *rank;   /* sorted by rank */
    kl_report_watched_place *place; /* sorted by time in MPI, longest first */
    kl_report_watched_slice *slice;
    size_t rank_count, place_count, slice_count;
} kl_report_watched;

typedef struct kl_report {
    char *path;
    kl_report_loop *loop;       /* NULL: the record does not come from a loop */
    kl_report_watched *watched; /* NULL: the record does not come from a watched program */
    kl_report_run run;
    /* one session for each master that wrote the record; no sessions if an earlier version of Kilter made the
     * record */
    kl_report_session *sessions;
    size_t session_count;
    kl_report_worker *workers; /* all workers, sorted by their numbers */
    size_t worker_count;
    kl_report_iteration *iterations; /* all runs, sorted by their numbers */
    size_t iteration_count;
    kl_report_decision *decisions; /* all decisions of each kind together, sorted by kind */
    size_t decision_count;
    kl_report_decided *decided; /* decisions about the whole farm or loop, in the order of time */
    size_t decided_count;
    kl_report_measurement *measurements; /* last measurements, sorted by kind, then by worker */
    size_t measurement_count;
} kl_report;

/* A short summary of a record, for a list of records. */
typedef struct kl_outline {
    char *program, *folder; /* folder: where the program was started; "": not known */
    char *status; /* status of the loop, or of the farm's last run: "done", or why it ended early; NULL: it
                     did not end */
    double began_unix_s;
    double elapsed_s; /* seconds until the end, or until the last recorded event; NAN: not known */
    bool ended;       /* true: the farm or loop was closed, so the record is complete */
    bool loop, results, watched;
    uint64_t runs, tasks,
        failed; /* only for a farm; the numbers of runs, of tasks in all runs, and of tasks that failed */
    uint64_t executions, rounds; /* only for a loop; the numbers of sweeps and of rounds */
} kl_outline;

/* Read the summary of a record. This does not read all chunks. Errors are those of kl_report_read(). After an
 * error there is nothing to free. */
kilter_status kl_outline_read(const char *path, kl_outline *outline, kilter_error *error);
void kl_outline_free(kl_outline *outline);

/* Read a record without changing it. KILTER_ERR_INPUT: the file cannot be read, is not a record, is damaged,
 * or has a newer format; the error names it. KILTER_ERR_MEMORY: memory ran out. */
kilter_status kl_report_read(const char *path, kl_report **report, kilter_error *error);
/* Read only kl_report.run. The record must have the row of the table `run`. */
kilter_status kl_report_read_run(const char *path, kl_report **report, kilter_error *error);
void kl_report_free(kl_report *report);
/* Return the first decision of this kind from decided[from] on; NULL: there is none. */
const kl_report_decided *kl_report_next_decided(const kl_report *report, const char *kind, size_t from);
/* Return the last measurement of this kind for the whole farm; NAN: there is none. */
double kl_report_measured(const kl_report *report, const char *kind);
typedef struct kl_report_mean { /* mean of all measurements of one kind for the whole farm; NAN: none */
    const char *kind;
    double value;
} kl_report_mean;
/* Set each mean over the measurements of the runs from number runs[0] to runs[1]. Values below 0 do not
 * count. Errors are those of kl_report_read(). */
kilter_status kl_report_means(const char *path, const uint64_t runs[2], kl_report_mean *means, size_t count,
                              kilter_error *error);
/* Group the chunks of a run into rounds of `workers` chunks each, in the order in which they were dealt. Set
 * *part to an array with one element for each round in which tasks were done. An element is the part of all
 * done units that was done in its round. The caller frees the array. *count is its length, which may be 0.
 * Errors are those of kl_report_read(). */
kilter_status kl_report_rounds(const char *path, uint64_t run, uint32_t workers, double **part, size_t *count,
                               kilter_error *error);

/* Print the outcome as one sentence without symbols, followed by an empty line. */
void kl_report_print_sentence(const kl_report *report, FILE *out);
void kl_report_print_text(const kl_report *report,
                          FILE *out); /* Print the report for people, as UTF-8 text of at most 110 columns. */
void kl_report_print_json(
    const kl_report *report,
    FILE *out); /* Print the report as one JSON object; a value that is not known is null. */
/* Print the object of kl_report_print_json() for a page, with this number of digits in its numbers. Leave out
 * the workers of each run, because the page computes their sums from its chunks. */
void kl_report_print_for_page(const kl_report *report, int digits, FILE *out);

/* Print each recorded failure of a task, as a line for each attempt, or as a JSON array. Errors are those of
 * kl_report_read(). */
kilter_status kl_failures_print(const char *path, bool json, FILE *out, kilter_error *error);

/* Draw a run as SVG: a row for each worker, with its chunks over time. If there are many workers, only some
 * have a row. run −1: draw all runs; if there are many, only the last ones. KILTER_ERR_INPUT: there is no
 * such run, or no chunk in it. Further errors are those of kl_report_read(). After an error nothing has been
 * written. After success, the caller checks ferror(out). */
kilter_status kl_gantt_write(const char *path, int64_t run, FILE *out, kilter_error *error);

/* The contents of a page about a record. `data` consists of sections. Each section begins with its length, a
 * little-endian number of 4 bytes; then the section's bytes follow. The first section is a JSON object. The
 * other sections are the columns of KL_PAGE_COLUMNS. */
enum { KL_PAGE_SENTENCES = 3 };
typedef struct kl_page {
    char *title;                    /* title of the page: the name of the program */
    char *story[KL_PAGE_SENTENCES]; /* sentences about the outcome, without symbols; NULL: this sentence and
                                       those after it are missing */
    char *data;
    size_t size;
} kl_page;

/* The columns of a page; each chunk has a number in each column. Numbers are varints with 7 bits in each
 * byte, lowest bits first. A signed number n is stored as 2n, or as −2n − 1 if it is below 0. Chunks are
 * sorted by worker and time. Times are in ticks. In a loop, each rank has a chunk for each recorded round. */
#define KL_PAGE_COLUMNS(X)                                                                                   \
    X(GAP)    /* signed: ticks from the end of the worker's previous chunk to the beginning of this one */   \
    X(LENGTH) /* ticks */                                                                                    \
    X(IDLE)   /* ticks of the chunk in which no task ran */                                                  \
    X(TASKS)  /* number of tasks; in a loop, number of iterations */                                         \
    X(RANK)   /* number of chunks of the same run that begin later than this chunk but stand                 \
               * before it in SKIP. RANK itself is sorted by beginning; chunks that begin                    \
               * together are sorted by worker */                                                            \
    X(SKIP)   /* signed: number of the first task, minus the end of the chunk before it in this              \
               * column. For the first chunk of a run: number of the first task. A loop has the              \
               * number of the rank's iterations instead of a first task. This column is sorted by           \
               * run, then by first task, then as RANK is */                                                 \
    X(RUN)    /* signed: number of the run, minus that of the worker's previous chunk */                     \
    X(STATE)  /* 2 × number of failed tasks, plus 1 if the chunk was lost */                                \
    X(UNITS)  /* units, as multiples of `unit` in the JSON object; empty if each task is one unit */

/* Read a record into the contents of a page. Errors are those of kl_report_read(). */
kilter_status kl_page_read(const char *path, kl_page *page, kilter_error *error);
void kl_page_free(kl_page *page);
/* Write the record as trace events, in the JSON format that Perfetto and Chrome read. Errors are those of
 * kl_report_read(). After an error nothing has been written. */
kilter_status kl_trace_events_write(const char *path, FILE *out, kilter_error *error);
/* A function that opens a file for a table. If it fails, it sets the error and returns NULL. */
typedef FILE *(*kl_table_open_fn)(void *context, const char *table, kilter_error *error);
/* Write each table of a record as CSV into a file of its own. `open` opens a file, and `close` closes it. CSV
 * is RFC 4180 with a header line; NULL is an empty field, and a blob is hexadecimal. Errors are those of
 * `open`, `close` and kl_report_read(). */
typedef struct kl_table_files {
    kl_table_open_fn open;
    kilter_status (*close)(void *context, FILE *file, bool whole, kilter_error *error);
    void *context;
} kl_table_files;
kilter_status kl_tables_write(const char *path, const kl_table_files *files, kilter_error *error);

/* A function that takes the time of tasks: each of the tasks [lo, hi) took task_s seconds. */
typedef void (*kl_task_times_fn)(void *context, uint64_t lo, uint64_t hi, double task_s);

/* Pass the times of a run's tasks to `take`, one chunk after the other, in the order of their first tasks.
 * The time of a task is the mean over its chunk, converted to a worker of mean speed. run −1: the last run
 * that ended. KILTER_ERR_INPUT: there is no such run. Further errors are those of kl_report_read(). */
kilter_status kl_report_task_times(const char *path, int64_t run, kl_task_times_fn take, void *context,
                                   kilter_error *error);

typedef enum kl_replay_by {
    KL_REPLAY_LIST, /* print all decisions, one on each line */
    KL_REPLAY_ID,   /* print the decision whose id is `number` */
    KL_REPLAY_TIME, /* print the last decision that was made by the time `number` [microseconds since the farm
                       was opened] */
} kl_replay_by;

typedef struct kl_replay_choice {
    kl_replay_by by;
    int64_t number;
    bool json;
    const char
        *policy; /* a policy that decides instead of the recorded policy; NULL: the recorded policy decides */
} kl_replay_choice;

/* Print the decisions of a record, or one of them, and the same decisions made again. KILTER_ERR_INPUT: there
 * is no such decision or policy. Further errors are those of kl_report_read(). After an error, part of the
 * text may have been written. */
kilter_status kl_replay_print(const char *path, const kl_replay_choice *choice, FILE *out,
                              kilter_error *error);

#endif
