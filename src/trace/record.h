/* Private to the folder trace: the rows of a record, as the queue and SQLite need them, and the file of the
 * record. */
#ifndef KL_TRACE_RECORD_H
#define KL_TRACE_RECORD_H

#include <sqlite3.h>
#include <string.h>

#include "trace/trace.h"

typedef enum kl_row_kind {
    KL_ROW_RUN,
    KL_ROW_RUN_AGAIN, /* the run's row again, for another master that continues the record */
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
    KL_ROW_ORIGIN, /* this kind and the next three are only in a record that holds results */
    KL_ROW_CALL,
    KL_ROW_ADDITION,
    KL_ROW_RESULT,
    KL_ROW_LOOP, /* this kind and the next ones up to KL_ROW_RANK are only in the record of a loop */
    KL_ROW_LOOP_ENDED,
    KL_ROW_ARRAY,
    KL_ROW_ROUND,
    KL_ROW_SHARE,
    KL_ROW_SETTLED,
    KL_ROW_CAME,
    KL_ROW_REFUSED,
    KL_ROW_RANK,
    KL_ROW_WATCHED, /* this kind and the next ones are only in the record of a watched program */
    KL_ROW_WATCHED_RANK,
    KL_ROW_WATCHED_PLACE,
    KL_ROW_WATCHED_SLICE,
    KL_ROW_KINDS
} kl_row_kind;

/* The kl_trace_* functions take the values of these rows as arguments, and store them in these structs. */
typedef struct kl_trace_worker_left_row {
    uint32_t worker;
    double left_s;
    const char *why;
} kl_trace_worker_left_row;

/* The start of a master that writes the record. This master's first run gets the number first_run, and its
 * first worker gets the number first_worker, as this master counts them. */
typedef struct kl_trace_session_row {
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

/* A decision (kl_decision), and the time when it was made. */
typedef struct kl_trace_decision_row {
    double at_s;
    uint64_t run, round, chunk; /* round, chunk: UINT64_MAX if the decision has none */
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

/* The optional parts that a record has. */
typedef struct kl_record_parts {
    bool results, loop, watched;
} kl_record_parts;

/* The type of a struct's member. It determines the type of the table's column, and how the value is bound to
 * a statement. */
typedef enum kl_bind {
    KL_BIND_U32,
    KL_BIND_U64,
    KL_BIND_I64,
    KL_BIND_F64, /* a double; NAN is stored as NULL */
    KL_BIND_BOOL,
    KL_BIND_TEXT,        /* a text; a NULL pointer is stored as '' */
    KL_BIND_HOST,        /* a text; the file stores the number of the host with this name */
    KL_BIND_F64_OR_NULL, /* a double; 0 (not known) is stored as NULL */
    KL_BIND_U64_OR_NULL, /* a uint64_t; UINT64_MAX (none) is stored as NULL */
    KL_BIND_BYTES,       /* a kilter_bytes, whose bytes are not copied into the queue */
    /* a kilter_bytes, whose bytes are copied into the queue; if it is empty, NULL is stored */
    KL_BIND_COPY,
    /* for KL_BIND_TIME to KL_BIND_WORKER_OR_NULL, the last value that earlier masters of the record wrote is
     * added to the value */
    KL_BIND_TIME,
    KL_BIND_TIME_OR_NULL,   /* a double; 0 (not known) is stored as NULL */
    KL_BIND_RUN,            /* a uint64_t */
    KL_BIND_WORKER,         /* a uint32_t */
    KL_BIND_WORKER_OR_NULL, /* an int64_t; −1 (the whole farm) is stored as NULL */
    KL_BIND_SUM             /* the checksum of a kl_trace_result_row */
} kl_bind;

typedef struct kl_row_field {
    const char *column; /* NULL marks the end of the fields */
    kl_bind bind;
    size_t offset;
    /* SQL expression for the column, in which ? is the bound value; NULL: the column gets the
     * bound value itself */
    const char *value;
    /* true: the column is the key of the table. In an update, this column selects the rows
     * that are changed. */
    bool key;
} kl_row_field;

static inline bool kl_is_bound(const kl_row_field *field) {
    return !field->value || strchr(field->value, '?');
}

enum { KL_ROW_FIELDS_MAX = 32, KL_ROW_STATEMENTS = 2 };

typedef struct kl_row_shape {
    const char *table;
    enum { KL_VERB_INSERT, KL_VERB_REPLACE, KL_VERB_UPDATE } verb;
    size_t size; /* size of the row's struct in bytes */
    /* true: a record has many such rows, so they are dropped first when too many rows wait */
    bool bulk;
    kl_row_field fields[KL_ROW_FIELDS_MAX]; /* field i is parameter ?i+1 of the statements */
} kl_row_shape;

typedef struct kl_sql {
    char text[1024];
} kl_sql;

const kl_row_shape *kl_row_shape_of(kl_row_kind kind);
bool kl_row_is_in(kl_row_kind kind, kl_record_parts parts);
kl_sql kl_row_sql(kl_row_kind kind);
/* Return the SQL statement that gives the row's host a number; "": the row has no host. */
kl_sql kl_host_sql(kl_row_kind kind);
size_t kl_record_tables(void);
/* Return the SQL statement that creates the table; "": a record with these parts does not have this table. */
kl_sql kl_record_table(size_t table, kl_record_parts parts);

/* Where the earlier masters of a record stopped. All zero for the first master. */
typedef struct kl_past {
    double ended_s; /* time at which this master begins; its own times are added to this time */
    int64_t runs, workers;
    uint64_t calls;
} kl_past;

/* Check that the record can be continued, and read where its earlier masters stopped. KILTER_ERR_RECORD: the
 * record belongs to another program, or is damaged. */
kilter_status kl_past_read(sqlite3 *db, const char *path, const kl_trace_run_row *run, kl_past *past,
                           kilter_error *error);
/* Record that the workers of the last master have left. Return SQLite's status. */
int kl_past_end(sqlite3 *db);
/* Fail with SQLite's message about the record. */
kilter_status kl_past_damaged(sqlite3 *db, const char *path, kilter_error *error);

/* The file of a record. Only the thread that opened it may use it. */
typedef struct kl_record kl_record;

/* Create the record `path`, with its tables and the first row. If the file exists, use a numbered name. After
 * a failure, no new file is left. resume: true if the record holds results; if it exists, it is then
 * continued. Errors: KILTER_ERR_RECORD, KILTER_ERR_MEMORY */
kilter_status kl_record_open(const char *path, const kl_trace_run_row *run, bool resume, kl_record **record,
                             kilter_error *error);
const char *kl_record_path(const kl_record *record); /* return the name of the record's file */
/* Return the number of calls of kilter_farm_run() that earlier masters of the record made. */
uint64_t kl_record_calls(const kl_record *record);
/* Return the checksum of a row of results, over the results and the other columns. row->worker must be the
 * worker's number in the file. */
uint64_t kl_result_sum(const kl_trace_result_row *row);
/* Write a batch of rows: kl_record_begin(), kl_record_put() for each row, kl_record_commit(). After a
 * failure, call kl_record_rollback(). A failure gives KILTER_ERR_RECORD. */
kilter_status kl_record_begin(kl_record *record, kilter_error *error);
kilter_status kl_record_put(kl_record *record, kl_row_kind kind, const void *row, kilter_error *error);
kilter_status kl_record_commit(kl_record *record, kilter_error *error);
void kl_record_rollback(kl_record *record);
/* Merge the log into the file, unless a reader has the file open. Then close the file and free the record.
 * NULL: do nothing. */
void kl_record_close(kl_record *record);

#endif
