/* Public header of the folder report: read a run record, and report what each worker did and how close the
 * run came to its bound. A record is read in one snapshot. It may be finished, still being written, or
 * left by a killed master. A number that is not known is NAN. */
#ifndef KL_REPORT_H
#define KL_REPORT_H

#include <stdio.h>

#include "base/base.h"
#include "watch/watch.h"

typedef struct kl_report_session { /* one master's part of a record */
    double began_s, ended_s;       /* ended_s: NAN if the master was killed or still runs */
    uint64_t first_run;
} kl_report_session;

typedef struct kl_report_run {
    char *program, *version, *transport, *policy, *host;
    double began_unix_s;
    int64_t pid;
    bool ended;
    double ended_s;        /* seconds since began_unix_s */
    uint64_t dropped_rows; /* number of rows missing from the record */
    char *control;         /* name of the socket for `kilter tune`; "": none, or the record is too old */
} kl_report_run;

typedef struct kl_report_worker {
    uint32_t worker;
    char *host, *binding;
    int64_t pid;
    double joined_s, left_s; /* left_s: NAN if the worker has not left */
    char *why;               /* why the worker left; NULL: it has not */
} kl_report_worker;

/* The work of one worker in one run. Lost chunks count only in lost_chunks. */
typedef struct kl_report_share {
    uint32_t worker;
    uint64_t tasks, chunks, failed, lost_chunks;
    double units, busy_s;
    double task_share;     /* part of all done tasks, in [0, 1] */
    double busy_share;     /* busy_s divided by the run's elapsed_s */
    double speed_relative; /* units per busy second, divided by those of the fastest worker */
    double task_s;         /* busy_s divided by the number of tasks */
    double unit_s,
        unit_sd; /* seconds per unit: mean; standard deviation, measured directly or computed from chunks */
} kl_report_share;

typedef struct kl_report_iteration {
    uint64_t run, tasks; /* number of tasks to execute in this run */
    uint64_t stored;     /* further tasks, whose results an earlier master stored */
    double units;
    char *policy;
    uint64_t shared_bytes;
    bool ended;
    double began_s, elapsed_s; /* elapsed_s of a run that did not end: time until its last chunk */
    uint64_t failed, chunks;
    uint32_t workers; /* number of workers that did at least one task */
    double bound_s, efficiency;
    double equal_split_s, equal_split_efficiency; /* forecast */
    char *decision, *status;                      /* NULL if the run did not end */
    uint64_t tasks_done;                          /* number of tasks done in the recorded chunks */
    double bytes_out, bytes_in;                   /* bytes of these chunks to the workers and back */
    kl_report_share *shares;                      /* shares[0 … share_count−1], by worker */
    size_t share_count;
} kl_report_iteration;

/* A decision about the whole farm or loop, as in kl_decision. */
typedef struct kl_report_decided {
    char *kind, *reason;
    double at_s;
    uint64_t run, round; /* round of a loop; 0: none */
    int64_t subject;
    uint64_t count;
    double forecast_s, gain_s, cost_s; /* forecasts */
    double settled_s, came_s, spent_s; /* outcome of a move, measured until settled_s; NAN: not known */
    bool refused;                      /* true: the move was refused because a rank had no memory */
} kl_report_decided;

typedef struct kl_report_decision { /* all decisions of one kind */
    char *kind;
    uint64_t decisions, tasks; /* tasks: number of tasks that these decisions dealt */
    char *last_reason;
    double last_s;
    uint64_t forecasts;      /* number of forecasts of chunks, runs or series of runs that have ended */
    double late_s, missed_s; /* mean of end − forecast, and mean of its absolute value */
} kl_report_decision;

typedef struct kl_report_measurement { /* the last measurement of its kind */
    char *kind;
    int64_t worker; /* number of the worker; −1: the whole farm */
    double at_s, value, sd;
    uint64_t count;
} kl_report_measurement;

/* A loop over ranks, which are the report's workers. */
typedef struct kl_report_rank { /* sorted by rank; counts and times are sums over the recorded rounds */
    uint64_t iterations;        /* number of iterations of the rank in its last report */
    uint64_t done;
    double busy_s, rate_per_s;            /* rate_per_s: last measured rate; NAN: never measured */
    double believed_per_s;                /* filtered */
    double elapsed_s, waited_s, moving_s; /* NAN if the loop was not closed */
} kl_report_rank;

typedef struct kl_report_round {
    uint64_t round, execution, block;
    double at_s, period_s, now_s, then_s;
    uint64_t *counts; /* iterations of each rank when the round was reported; [ranks] */
} kl_report_round;

typedef struct kl_report_loop {
    char *name, *kind; /* "doall", "scattered", "doacross"; "kept" */
    uint64_t iterations, inner, row_bytes, arrays;
    uint32_t ranks;
    bool fixed, ended; /* not ended: the other members come from the recorded rounds and moves */
    double ended_s, elapsed_s;
    uint64_t executions, rounds, moves, moved, block;
    double gained_s, came_s, cost_s;
    char *decision, *status; /* NULL if the loop did not end */
    kl_report_rank *rank;    /* [ranks] */
    kl_report_round *round;  /* sorted by round; some may be missing */
    size_t round_count;
    size_t move_count; /* number of recorded moves, including refused ones */
} kl_report_loop;

/* Return the round with that number; NULL: it is not in the record. */
const kl_report_round *kl_report_round_of(const kl_report_loop *loop, uint64_t round);

/* An MPI program under `kilter watch`, whose ranks are the report's workers. The numbers have the same
 * meaning as in kl_watch_found. */
typedef struct kl_report_watched_rank {
    uint32_t rank;
    double elapsed_s, useful_s, mpi_s, core_share; /* core_share: NAN: not known */
    uint64_t calls;
    char *end;
} kl_report_watched_rank;

typedef struct kl_report_watched_place { /* a place in the program that calls MPI; sums over all ranks */
    char *call, *place;
    uint64_t calls;
    double mpi_s;
} kl_report_watched_place;

typedef struct kl_report_watched_slice {
    uint32_t rank;
    double began_s, length_s, useful_s;
} kl_report_watched_slice;

typedef struct kl_report_watched {
    char *mpi, *way, *reason, *status; /* way: NULL: the program was not watched to its end */
    int64_t exit_code;
    uint64_t other_calls, spawned, missing, iterations, iteration_calls;
    uint32_t ranks, slowest, shared_ranks;
    double elapsed_s, load_balance, communication, parallel, iteration_s, alike;
    double lost_constant, lost_slow, lost_fast;
    kl_watch_range even, follow;
    kl_report_watched_rank *rank;   /* sorted by rank */
    kl_report_watched_place *place; /* the place with most time in MPI comes first */
    kl_report_watched_slice *slice;
    size_t rank_count, place_count, slice_count;
} kl_report_watched;

typedef struct kl_report {
    char *path;
    kl_report_loop *loop;       /* NULL: the record is not a loop's */
    kl_report_watched *watched; /* NULL: the record is not a watched program's */
    kl_report_run run;
    kl_report_session *sessions; /* more than one: later masters continued the record. None: an old record */
    size_t session_count;
    kl_report_worker *workers; /* sorted by worker */
    size_t worker_count;
    kl_report_iteration *iterations; /* sorted by run */
    size_t iteration_count;
    kl_report_decision *decisions; /* sorted by kind */
    size_t decision_count;
    kl_report_decided *decided; /* in the order in which they were made */
    size_t decided_count;
    kl_report_measurement *measurements; /* sorted by kind, then worker */
    size_t measurement_count;
} kl_report;

/* The summary of a record in a list of records. */
typedef struct kl_outline {
    char *program, *folder; /* folder: where the program was started; "": not known */
    char
        *status; /* status of the loop or the last run: "done", or why it ended early; NULL: it did not end */
    double began_unix_s;
    double elapsed_s; /* seconds until the end or the last recorded event; NAN: not known */
    bool ended;       /* true: the farm or loop was closed */
    bool loop, results, watched;
    uint64_t runs, tasks, failed; /* for a farm: number of runs, of their tasks, and of failed tasks */
    uint64_t executions, rounds;  /* for a loop: number of sweeps and rounds */
} kl_outline;

/* Read the summary without reading chunks. Errors are those of kl_report_read(). After an error there is
 * nothing to free. */
kilter_status kl_outline_read(const char *path, kl_outline *outline, kilter_error *error);
void kl_outline_free(kl_outline *outline);

/* Read a record without writing to it. KILTER_ERR_INPUT, with the file's name: it cannot be read, is not a
 * record, is damaged, or has a newer format. KILTER_ERR_MEMORY. */
kilter_status kl_report_read(const char *path, kl_report **report, kilter_error *error);
/* Read only `run`, which must be recorded from its beginning, and nothing else. */
kilter_status kl_report_read_run(const char *path, kl_report **report, kilter_error *error);
void kl_report_free(kl_report *report);
/* Return the first decision of `kind` from decided[from] on; NULL: there is none. */
const kl_report_decided *kl_report_next_decided(const kl_report *report, const char *kind, size_t from);
/* Return the last measurement of this kind for the whole farm; NAN: there is none. */
double kl_report_measured(const kl_report *report, const char *kind);
/* Group the chunks of a run, in the order they were dealt, into rounds of `workers` chunks. Return each
 * round's part of all done units, without rounds that did nothing; the caller frees the array. *count is 0
 * if nothing was done. Errors are those of kl_report_read(). */
kilter_status kl_report_rounds(const char *path, uint64_t run, uint32_t workers, double **part, size_t *count,
                               kilter_error *error);

/* Print the outcome in a sentence without symbols, followed by an empty line. */
void kl_report_print_sentence(const kl_report *report, FILE *out);
void kl_report_print_text(const kl_report *report,
                          FILE *out); /* Print the report for people: UTF-8, at most 110 columns wide. */
void kl_report_print_json(
    const kl_report *report,
    FILE *out); /* Print the report as one JSON object; a value that is not known is null. */
/* Print the same object for a page, with this number of digits in its numbers. The workers of each run are
 * left out, because the page adds them up from its chunks. */
void kl_report_print_for_page(const kl_report *report, int digits, FILE *out);

/* Print each recorded failure of a task: one line per attempt, or a JSON array. Errors are those of
 * kl_report_read(). */
kilter_status kl_failures_print(const char *path, bool json, FILE *out, kilter_error *error);

/* Draw a run as SVG; run −1: all runs, or the last ones if there are many. Each worker has a row with its
 * chunks over time; if there are very many workers, only some have a row. Errors are those of
 * kl_report_read(), and KILTER_ERR_INPUT: no such run, or no chunk in it. After an error nothing has been
 * written. After success, check ferror(out). */
kilter_status kl_gantt_write(const char *path, int64_t run, FILE *out, kilter_error *error);

/* The contents of a page about a record. `data` is a sequence of sections. A section is its length in 4
 * bytes, little-endian, and its bytes. The first section is a JSON object; columns of chunks follow, see
 * KL_PAGE_COLUMNS. */
enum { KL_PAGE_SENTENCES = 3 };
typedef struct kl_page {
    char *title;                    /* name of the program */
    char *story[KL_PAGE_SENTENCES]; /* sentences on the outcome, without symbols; NULL: there is no further
                                       sentence */
    char *data;
    size_t size;
} kl_page;

/* A chunk has a number in each column. Numbers are varints with 7 bits in each byte, lowest bits first. A
 * signed number n is stored as 2n, or as −2n − 1 if it is below 0. Chunks are sorted by worker, then by
 * their beginning. Times are in ticks. In a loop, each rank has a chunk for each written round. */
#define KL_PAGE_COLUMNS(X)                                                                                   \
    X(GAP)    /* signed: ticks from the end of the worker's previous chunk to the beginning of this one */   \
    X(LENGTH) /* ticks */                                                                                    \
    X(IDLE)   /* ticks of the chunk's length in which no task ran */                                         \
    X(TASKS)  /* number of tasks; in a loop, number of iterations */                                         \
    X(RANK)   /* number of chunks of the same run that begin later but stand earlier in SKIP. Sorted by      \
               * beginning; chunks that begin together are sorted by worker */                               \
    X(SKIP)   /* signed: first task − end of the run's previous chunk, 0 before the first; for a loop, the \
               * rank's iterations. This column is sorted by run, then by first task, then as RANK is */     \
    X(RUN)    /* signed: number of the run, minus that of the worker's previous chunk */                     \
    X(STATE)  /* 1: the chunk was lost; plus 2 for each failed task */                                       \
    X(UNITS)  /* units, as multiples of `unit` in the JSON object; empty if each task is one unit */

/* Read the contents of a page. Errors are those of kl_report_read(). */
kilter_status kl_page_read(const char *path, kl_page *page, kilter_error *error);
void kl_page_free(kl_page *page);
/* Write the run as trace events, in the JSON format that Perfetto and Chrome read. Errors are those of
 * kl_report_read(). After an error nothing has been written. */
kilter_status kl_trace_events_write(const char *path, FILE *out, kilter_error *error);
/* Called once for each table: open a file for it, or return NULL after setting the error. */
typedef FILE *(*kl_table_open_fn)(void *context, const char *table, kilter_error *error);
/* Write each table of the record as CSV (RFC 4180, with a header line; NULL is an empty field, a blob is
 * hexadecimal) into a separate file, which `open` opens and `close` closes. Errors are those of these two
 * functions and of kl_report_read(). */
typedef struct kl_table_files {
    kl_table_open_fn open;
    kilter_status (*close)(void *context, FILE *file, bool whole, kilter_error *error);
    void *context;
} kl_table_files;
kilter_status kl_tables_write(const char *path, const kl_table_files *files, kilter_error *error);

/* Each of the tasks [lo, hi) took task_s seconds. */
typedef void (*kl_task_times_fn)(void *context, uint64_t lo, uint64_t hi, double task_s);

/* Pass the task times of a run to `take`. run −1: the last run that ended. Chunks come in order of their
 * first task. A time is the mean of a chunk, scaled to a worker of mean speed. Errors are those of
 * kl_report_read(), and KILTER_ERR_INPUT: no such run. */
kilter_status kl_report_task_times(const char *path, int64_t run, kl_task_times_fn take, void *context,
                                   kilter_error *error);

typedef enum kl_replay_by {
    KL_REPLAY_LIST, /* print all decisions, a line for each */
    KL_REPLAY_ID,   /* print the decision with this id */
    KL_REPLAY_TIME, /* print the last decision made by this time [microseconds since the farm was opened] */
} kl_replay_by;

typedef struct kl_replay_choice {
    kl_replay_by by;
    int64_t number;
    bool json;
    const char *policy; /* policy that decides instead of the recorded one; NULL: none */
} kl_replay_choice;

/* Print the decisions of a record, or one of them, and the decisions made again. Errors are those of
 * kl_report_read(), and KILTER_ERR_INPUT: no such decision or policy. After an error, `out` may contain
 * part of the text. */
kilter_status kl_replay_print(const char *path, const kl_replay_choice *choice, FILE *out,
                              kilter_error *error);

#endif
