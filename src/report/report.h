/* Door of room report: a run record → what each worker did, and how near the run came to its bound.
 *
 * A record is read as it stands, in one snapshot: finished, still being written, or left by a killed master.
 * A number that is not known is NAN. */
#ifndef KL_REPORT_H
#define KL_REPORT_H

#include <stdio.h>

#include "base/base.h"

typedef struct kl_report_session { /* one master's part of a record; times as in the rest of it */
    double began_s, ended_s;       /* ended_s: NAN when it was killed, or still runs */
    uint64_t first_run;
} kl_report_session;

typedef struct kl_report_run {
    char *program, *version, *transport, *policy, *host;
    double began_unix_s;
    int64_t pid;
    bool ended;
    double ended_s;        /* since began_unix_s */
    uint64_t dropped_rows; /* missing from the record */
    char *control;         /* name of the socket for `kilter tune`; "": none, or the record is too old */
} kl_report_run;

typedef struct kl_report_worker {
    uint32_t worker;
    char *host, *binding;
    int64_t pid;
    double joined_s, left_s; /* left_s: NAN while it has not left */
    char *why;               /* it left; NULL while it has not */
} kl_report_worker;

/* What one worker did in one iteration. Chunks that were lost count in lost_chunks only. */
typedef struct kl_report_share {
    uint32_t worker;
    uint64_t tasks, chunks, failed, lost_chunks;
    double units, busy_s;
    double task_share;      /* of the tasks done, in [0, 1] */
    double busy_share;      /* busy_s over the iteration's elapsed_s */
    double speed_relative;  /* units per busy second over those of the fastest worker */
    double task_s;          /* busy_s per task */
    double unit_s, unit_sd; /* per unit; σ of single tasks where measured, else estimated from the chunks */
} kl_report_share;

typedef struct kl_report_iteration {
    uint64_t run, tasks; /* tasks: that were to be done */
    uint64_t stored;     /* beside them: done by an earlier master */
    double units;
    char *policy;
    uint64_t shared_bytes;
    bool ended;
    double began_s, elapsed_s; /* elapsed_s of one that did not end: until its last chunk */
    uint64_t failed, chunks;
    uint32_t workers; /* that did at least one task */
    double bound_s, efficiency;
    double equal_split_s, equal_split_efficiency; /* forecast */
    char *decision, *status;                      /* NULL when it did not end */
    uint64_t tasks_done;                          /* by the chunks in the record */
    double bytes_out, bytes_in;                   /* of these chunks, to the workers and back */
    kl_report_share *shares;                      /* shares[0 … share_count−1], by worker */
    size_t share_count;
} kl_report_iteration;

/* A decision about the farm or loop as a whole, as kl_decision. */
typedef struct kl_report_decided {
    char *kind, *reason;
    double at_s;
    uint64_t run, round; /* round: of a loop; 0: in none */
    int64_t subject;
    uint64_t count;
    double forecast_s, gain_s, cost_s; /* forecasts */
    double settled_s, came_s, spent_s; /* of a move: what came of it, until settled_s; NAN: not known */
    bool refused;                      /* of a move: a rank had no memory */
} kl_report_decided;

typedef struct kl_report_decision { /* all of a kind */
    char *kind;
    uint64_t decisions, tasks; /* tasks given */
    char *last_reason;
    double last_s;
    uint64_t forecasts;      /* whose chunk, iteration or, of "program", runs are known to have ended */
    double late_s, missed_s; /* means over them: ended − forecast, and its absolute value */
} kl_report_decision;

typedef struct kl_report_measurement { /* the latest of its kind */
    char *kind;
    int64_t worker; /* −1: of the farm as a whole */
    double at_s, value, sd;
    uint64_t count;
} kl_report_measurement;

/* A loop over ranks, which are the report's workers. */
typedef struct kl_report_rank { /* by rank; counts and times add up the rounds in the record */
    uint64_t iterations;        /* when it was last heard of */
    uint64_t done;
    double busy_s, rate_per_s;            /* rate_per_s: measured last; NAN: never */
    double believed_per_s;                /* filtered */
    double elapsed_s, waited_s, moving_s; /* NAN unless the loop was closed */
} kl_report_rank;

typedef struct kl_report_round {
    uint64_t round, execution, block;
    double at_s, period_s, now_s, then_s;
    uint64_t *counts; /* iterations of each rank when it reported; [ranks] */
} kl_report_round;

typedef struct kl_report_loop {
    char *name, *kind; /* "doall", "scattered", "doacross" */
    uint64_t iterations, inner, row_bytes, arrays;
    uint32_t ranks;
    bool fixed, ended; /* not ended: the rest is what the rounds and moves in the record say */
    double ended_s, elapsed_s;
    uint64_t executions, rounds, moves, moved, block;
    double gained_s, came_s, cost_s;
    char *decision, *status; /* NULL when it did not end */
    kl_report_rank *rank;    /* [ranks] */
    kl_report_round *round;  /* by round; not all are in the record */
    size_t round_count;
    size_t move_count; /* in the record, refused ones too */
} kl_report_loop;

/* The round of that number; NULL: it is not in the record. */
const kl_report_round *kl_report_round_of(const kl_report_loop *loop, uint64_t round);

typedef struct kl_report {
    char *path;
    kl_report_loop *loop; /* NULL: a farm's record */
    kl_report_run run;
    kl_report_session *sessions; /* more than one: the record was gone on with. None in old records */
    size_t session_count;
    kl_report_worker *workers; /* by worker */
    size_t worker_count;
    kl_report_iteration *iterations; /* by run */
    size_t iteration_count;
    kl_report_decision *decisions; /* by kind */
    size_t decision_count;
    kl_report_decided *decided; /* in the order they were made */
    size_t decided_count;
    kl_report_measurement *measurements; /* by kind, then worker */
    size_t measurement_count;
} kl_report;

/* What a list of records says of one. */
typedef struct kl_outline {
    char *program, *folder; /* folder: where it was started; "": not known */
    char *status; /* of the loop or the last run: "done", or why it ended early; NULL: it did not end */
    double began_unix_s;
    double elapsed_s; /* until it was closed, or until the last that is known of it; NAN: nothing is */
    bool ended;       /* it was closed */
    bool loop, results;
    uint64_t runs, tasks, failed; /* of a farm: all of its runs, their tasks, and the tasks that failed */
    uint64_t executions, rounds;  /* of a loop */
} kl_outline;

/* Costs no reading of chunks. Errors of kl_report_read(): nothing is to be freed then. */
kilter_status kl_outline_read(const char *path, kl_outline *outline, kilter_error *error);
void kl_outline_free(kl_outline *outline);

/* KILTER_ERR_INPUT naming the file when it cannot be read, is no record, is damaged or of a newer format;
 * KILTER_ERR_MEMORY. Writes nothing into the record. */
kilter_status kl_report_read(const char *path, kl_report **report, kilter_error *error);
/* The same, but for `run` alone, which is known from the first moment on and costs no reading of the rest. */
kilter_status kl_report_read_run(const char *path, kl_report **report, kilter_error *error);
void kl_report_free(kl_report *report);
/* The first of `kind` from decided[from] on; NULL: there is none. */
const kl_report_decided *kl_report_next_decided(const kl_report *report, const char *kind, size_t from);
/* The latest measurement of its kind of the farm as a whole; NAN: there is none. */
double kl_report_measured(const kl_report *report, const char *kind);
/* The chunks of an iteration as rounds of `workers` each, in the order they were dealt: the part of all units
 * done in each round, 0 left out; together 1. malloc'd; *count is 0 when nothing was done. Errors of
 * kl_report_read(). */
kilter_status kl_report_rounds(const char *path, uint64_t run, uint32_t workers, double **part, size_t *count,
                               kilter_error *error);

/* One line: the outcome in a sentence without symbols; and an empty line. */
void kl_report_print_sentence(const kl_report *report, FILE *out);
void kl_report_print_text(const kl_report *report, FILE *out); /* at most 110 columns, UTF-8 */
void kl_report_print_json(const kl_report *report, FILE *out); /* one object; not known is null */

/* Print each failure of a task there is in the record: a line for each attempt, or as JSON an array. Errors
 * of kl_report_read(). */
kilter_status kl_failures_print(const char *path, bool json, FILE *out, kilter_error *error);

/* Draw an iteration, or with run −1 all of them (of many, the last ones), as SVG: a row for each worker, of
 * very many some of them, with its chunks over time. Errors of kl_report_read(); KILTER_ERR_INPUT when there
 * is no such iteration or no chunk in it. Nothing is written then; whether all was, ferror(out) says. */
kilter_status kl_gantt_write(const char *path, int64_t run, FILE *out, kilter_error *error);

/* Tasks [lo, hi) took task_s each. */
typedef void (*kl_task_times_fn)(void *context, uint64_t lo, uint64_t hi, double task_s);

/* How long the tasks of iteration `run` took, of the last one that ended with −1: the chunks by their first
 * task, each with its mean, as it would have been on a worker of the mean speed. Errors of kl_report_read();
 * KILTER_ERR_INPUT when there is none. */
kilter_status kl_report_task_times(const char *path, int64_t run, kl_task_times_fn take, void *context,
                                   kilter_error *error);

typedef enum kl_replay_by {
    KL_REPLAY_LIST, /* all decisions, a line each */
    KL_REPLAY_ID,   /* the decision with this id */
    KL_REPLAY_TIME, /* the last decision made by this time [microseconds since the farm was opened] */
} kl_replay_by;

typedef struct kl_replay_choice {
    kl_replay_by by;
    int64_t number;
    bool json;
    const char *policy; /* decides again in place of the recorded one; NULL: none */
} kl_replay_choice;

/* Print the decisions of a record, or one of them, and what is decided again. The errors are those of
 * kl_report_read(), and KILTER_ERR_INPUT when there is no such decision or policy. After an error, part of
 * the text may be in `out`. */
kilter_status kl_replay_print(const char *path, const kl_replay_choice *choice, FILE *out,
                              kilter_error *error);

#endif
