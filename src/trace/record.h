/* Private to the folder trace: the rows of a record, as the queue and SQLite need them, and the record's
 * file. */
#ifndef KL_TRACE_RECORD_H
#define KL_TRACE_RECORD_H

#include <sqlite3.h>
#include <string.h>

#include "trace/trace.h"

typedef enum kl_row_kind {
    KL_ROW_RUN,
    KL_ROW_RUN_AGAIN, /* the row of another master that continues the record */
    KL_ROW_SESSION,
    KL_ROW_RUN_ENDED,
    KL_ROW_SESSION_ENDED,
    KL_ROW_WORKER,
    KL_ROW_WORKER_LEFT,
    KL_ROW_ITERATION,
    KL_ROW_ITERATION_ENDED,
    KL_ROW_CHUNK,
    KL_ROW_MEASUREMENT,
    KL_ROW_DECISION,
    KL_ROW_FAILURE,
    KL_ROW_ORIGIN, /* this and the next three kinds occur only in a record that holds results */
    KL_ROW_CALL,
    KL_ROW_ADDITION,
    KL_ROW_RESULT,
    KL_ROW_LOOP, /* this and the kinds up to KL_ROW_RANK occur only in a loop's record */
    KL_ROW_LOOP_ENDED,
    KL_ROW_ARRAY,
    KL_ROW_ROUND,
    KL_ROW_SHARE,
    KL_ROW_SETTLED,
    KL_ROW_CAME,
    KL_ROW_REFUSED,
    KL_ROW_RANK,
    KL_ROW_WATCHED, /* this and all later kinds occur only in the record of a watched program */
    KL_ROW_WATCHED_RANK,
    KL_ROW_WATCHED_PLACE,
    KL_ROW_WATCHED_SLICE,
    KL_ROW_KINDS
} kl_row_kind;

/* Structs for rows whose values the kl_trace_* functions take as arguments. */
typedef struct kl_trace_worker_left_row {
    uint32_t worker;
    double left_s;
    const char *why;
} kl_trace_worker_left_row;

typedef struct kl_trace_session_row { /* runs and workers are counted from this master's first */
    double began_s;
    const char *host, *version, *transport, *policy, *program_version;
    int64_t pid;
    uint64_t first_run;
    uint32_t first_worker;
} kl_trace_session_row;

typedef struct kl_trace_run_end {
    double ended_s;
    uint64_t dropped_rows;
} kl_trace_run_end;

/* A kl_decision, and the time when it was made. */
typedef struct kl_trace_decision_row {
    double at_s;
    uint64_t run, round, chunk; /* round, chunk: UINT64_MAX: none */
    const char *kind;
    int64_t subject;
    uint64_t count;
    double forecast_s, gain_s, cost_s;
    const char *reason;
    kilter_bytes grounds;
} kl_trace_decision_row;

typedef struct kl_trace_refused_row {
    uint64_t round;
} kl_trace_refused_row;

/* The optional parts of a record. */
typedef struct kl_record_parts {
    bool results, loop, watched;
} kl_record_parts;

/* The type of a struct's member. It determines the column's type, and how the value is bound to a
 * statement. */
typedef enum kl_bind {
    KL_BIND_U32,
    KL_BIND_U64,
    KL_BIND_I64,
    KL_BIND_F64, /* NULL in the file if the value is NAN */
    KL_BIND_BOOL,
    KL_BIND_TEXT,        /* a NULL pointer: '' */
    KL_BIND_HOST,        /* a text; stored as the number of the host with this name */
    KL_BIND_F64_OR_NULL, /* 0 means not known, and is stored as NULL */
    KL_BIND_U64_OR_NULL, /* UINT64_MAX, none: NULL */
    KL_BIND_BYTES,       /* a kilter_bytes, which is not copied into the queue */
    KL_BIND_COPY,        /* a kilter_bytes, copied; empty: NULL */
    /* for this and all later types, the value is added to the last value of earlier masters */
    KL_BIND_TIME,
    KL_BIND_TIME_OR_NULL,   /* stored as NULL if 0, which means not known */
    KL_BIND_RUN,            /* a uint64_t */
    KL_BIND_WORKER,         /* a uint32_t */
    KL_BIND_WORKER_OR_NULL, /* an int64_t; −1 means the whole farm, and is stored as NULL */
    KL_BIND_SUM             /* the checksum of a kl_trace_result_row */
} kl_bind;

typedef struct kl_row_field {
    const char *column; /* NULL: end of the fields */
    kl_bind bind;
    size_t offset;
    const char *value; /* SQL expression, in which ? is the bound value; NULL: the bound value itself */
    /* true: the column is the table's key, or an update changes the rows that have this value */
    bool key;
} kl_row_field;

static inline bool kl_is_bound(const kl_row_field *field) {
    return !field->value || strchr(field->value, '?');
}

enum { KL_ROW_FIELDS_MAX = 32, KL_ROW_STATEMENTS = 2 };

typedef struct kl_row_shape {
    const char *table;
    enum { KL_VERB_INSERT, KL_VERB_REPLACE, KL_VERB_IGNORE, KL_VERB_UPDATE } verb;
    size_t size; /* size of the struct */
    /* true: there are many such rows, so they are dropped before memory runs short */
    bool bulk;
    kl_row_field fields[KL_ROW_FIELDS_MAX]; /* field i gives the value of parameter ?i+1 */
} kl_row_shape;

typedef struct kl_sql {
    char text[1024];
} kl_sql;

const kl_row_shape *kl_row_shape_of(kl_row_kind kind);
bool kl_row_is_in(kl_row_kind kind, kl_record_parts parts);
kl_sql kl_row_sql(kl_row_kind kind);
/* Return the statement that stores the row's host under a number; "": the row has no host. */
kl_sql kl_host_sql(kl_row_kind kind);
size_t kl_record_tables(void);
/* Return the statement that creates the table; "": the record does not have this table. */
kl_sql kl_record_table(size_t table, kl_record_parts parts);

/* Where earlier masters of a record stopped; zero for the first master. */
typedef struct kl_past {
    double ended_s; /* this master's times are added to this time */
    int64_t runs, workers;
    uint64_t calls;
} kl_past;

/* Check that the record can be continued, and read where earlier masters stopped. KILTER_ERR_RECORD: it is
 * another program's, or damaged. */
kilter_status kl_past_read(sqlite3 *db, const char *path, const kl_trace_run_row *run, kl_past *past,
                           kilter_error *error);
int kl_past_end(sqlite3 *db); /* Mark the last master's workers as left, and return SQLite's status. */
kilter_status kl_past_damaged(sqlite3 *db, const char *path,
                              kilter_error *error); /* fail with what SQLite says about the record */

/* The record's file. Only the thread that opened it uses it. */
typedef struct kl_record kl_record;

/* Create `path` with its tables and the run's row. If `path` exists, use a numbered name. After a failure,
 * no new file is left behind. With `resume` the record holds results, and an existing record that holds
 * results is continued. KILTER_ERR_RECORD, KILTER_ERR_MEMORY. */
kilter_status kl_record_open(const char *path, const kl_trace_run_row *run, bool resume, kl_record **record,
                             kilter_error *error);
const char *kl_record_path(const kl_record *record); /* return the file's name */
/* Return the number of calls that earlier masters of the record made. */
uint64_t kl_record_calls(const kl_record *record);
/* Return the checksum of a row of results, including its other columns. row->worker must be the number
 * that is stored. */
uint64_t kl_result_sum(const kl_trace_result_row *row);
/* Write a batch: begin, put each row, commit; after a failure: rollback. KILTER_ERR_RECORD. */
kilter_status kl_record_begin(kl_record *record, kilter_error *error);
kilter_status kl_record_put(kl_record *record, kl_row_kind kind, const void *row, kilter_error *error);
kilter_status kl_record_commit(kl_record *record, kilter_error *error);
void kl_record_rollback(kl_record *record);
/* Merge the log into the file if no reader has it open, and free the record. NULL: do nothing. */
void kl_record_close(kl_record *record);

#endif
