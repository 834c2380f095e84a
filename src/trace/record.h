/* Private to room trace: the shape of a row, as the queue copies it and SQLite binds it, and the file. */
#ifndef KL_TRACE_RECORD_H
#define KL_TRACE_RECORD_H

#include <sqlite3.h>

#include "trace/trace.h"

typedef enum kl_row_kind {
    KL_ROW_RUN,
    KL_ROW_RUN_AGAIN, /* another master goes on with the record */
    KL_ROW_SESSION,
    KL_ROW_RUN_ENDED,
    KL_ROW_WORKER,
    KL_ROW_WORKER_LEFT,
    KL_ROW_ITERATION,
    KL_ROW_ITERATION_ENDED,
    KL_ROW_CHUNK,
    KL_ROW_MEASUREMENT,
    KL_ROW_DECISION,
    KL_ROW_FAILURE,
    KL_ROW_ORIGIN, /* these four: only in a record that holds results */
    KL_ROW_CALL,
    KL_ROW_ADDITION,
    KL_ROW_RESULT,
    KL_ROW_LOOP, /* from here on: only in a loop's */
    KL_ROW_LOOP_ENDED,
    KL_ROW_ARRAY,
    KL_ROW_ROUND,
    KL_ROW_SHARE,
    KL_ROW_SETTLED,
    KL_ROW_REFUSED,
    KL_ROW_RANK,
    KL_ROW_KINDS
} kl_row_kind;

/* Rows that kl_trace_* takes as arguments rather than as a struct. */
typedef struct kl_row_worker_left {
    uint32_t worker;
    double left_s;
    const char *why;
} kl_row_worker_left;

typedef struct kl_row_session { /* the numbers: of this master, before they are counted on */
    double began_s;
    const char *host, *version, *transport, *policy, *program_version;
    int64_t pid;
    uint64_t first_run;
    uint32_t first_worker;
} kl_row_session;

typedef struct kl_row_run_ended {
    double ended_s;
    uint64_t dropped_rows;
} kl_row_run_ended;

/* A kl_decision, and when it was made. */
typedef struct kl_row_decision {
    double at_s;
    uint64_t run, round, chunk; /* round, chunk: UINT64_MAX: none */
    const char *kind;
    int64_t subject;
    uint64_t count;
    double forecast_s, gain_s, cost_s;
    const char *reason;
} kl_row_decision;

typedef struct kl_row_refused {
    uint64_t round;
} kl_row_refused;

/* What a record holds beside what all do. */
typedef struct kl_record_parts {
    bool results, loop;
} kl_record_parts;

typedef enum kl_field_type {
    KL_FIELD_U32,
    KL_FIELD_U64,
    KL_FIELD_I64,
    KL_FIELD_F64, /* not a number: NULL */
    KL_FIELD_BOOL,
    KL_FIELD_TEXT,           /* a NULL pointer: '' */
    KL_FIELD_F64_OR_NULL,    /* 0, not known: NULL */
    KL_FIELD_U64_OR_NULL,    /* UINT64_MAX, none: NULL */
    KL_FIELD_BYTES,          /* a kilter_bytes, not copied into the queue */
    KL_FIELD_TIME,           /* from here on: counted on from earlier masters of the record */
    KL_FIELD_TIME_OR_NULL,   /* 0, not known: NULL */
    KL_FIELD_RUN,            /* a uint64_t */
    KL_FIELD_WORKER,         /* a uint32_t */
    KL_FIELD_WORKER_OR_NULL, /* an int64_t; −1, the farm as a whole: NULL */
    KL_FIELD_SUM             /* over a kl_trace_result_row */
} kl_field_type;

typedef struct kl_field {
    kl_field_type type;
    size_t offset;
} kl_field;

enum { KL_ROW_FIELDS_MAX = 16, KL_ROW_STATEMENTS_MAX = 2 };

typedef struct kl_row_shape {
    size_t size;                        /* of the struct */
    kl_field fields[KL_ROW_FIELDS_MAX]; /* field i is parameter ?i+1 of each statement */
    size_t field_count;
    const char *sql[KL_ROW_STATEMENTS_MAX]; /* carried out in this order; NULL: none */
    bool bulk;                              /* so many that some may be dropped before memory runs short */
} kl_row_shape;

const kl_row_shape *kl_row_shape_of(kl_row_kind kind);
bool kl_row_is_in(kl_row_kind kind, kl_record_parts parts);
size_t kl_record_tables(void);
const char *kl_record_table(size_t i, kl_record_parts parts); /* how table i is made; NULL: it is not in it */

/* What earlier masters of a record came to; zero for the first. */
typedef struct kl_past {
    double ended_s; /* from here on times are counted */
    int64_t runs, workers;
    uint64_t calls;
} kl_past;

/* Is the record of this program, and whole? KILTER_ERR_RECORD. */
kilter_status kl_past_read(sqlite3 *db, const char *path, const kl_trace_run_row *run, kl_past *past,
                           kilter_error *error);
int kl_past_end(sqlite3 *db); /* its workers have left; SQLite's status */
kilter_status kl_past_damaged(sqlite3 *db, const char *path, kilter_error *error); /* says what SQLite says */

/* The file. Used by the one thread that opened it. */
typedef struct kl_record kl_record;

/* Create `path`, or where that exists a name numbered after it, with the tables and the run's row; on failure
 * nothing is left behind that was not there before. With `resume` it is to hold results, and one that does
 * already is gone on with. KILTER_ERR_RECORD, KILTER_ERR_MEMORY. */
kilter_status kl_record_open(const char *path, const kl_trace_run_row *run, bool resume, kl_record **record,
                             kilter_error *error);
const char *kl_record_path(const kl_record *record); /* the file's name */
uint64_t kl_record_calls(const kl_record *record);   /* of earlier masters */
/* Over everything that is stored with a result; `worker` as it is stored. */
uint64_t kl_result_sum(const kl_trace_result_row *row);
/* A batch: begin, put …, commit. After a failure of either: rollback. KILTER_ERR_RECORD. */
kilter_status kl_record_begin(kl_record *record, kilter_error *error);
kilter_status kl_record_put(kl_record *record, kl_row_kind kind, const void *row, kilter_error *error);
kilter_status kl_record_commit(kl_record *record, kilter_error *error);
void kl_record_rollback(kl_record *record);
/* Make it a single file again if no reader holds it open, and free it. NULL does nothing. */
void kl_record_close(kl_record *record);

#endif
