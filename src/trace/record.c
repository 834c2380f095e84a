/* The file: its tables, its statements, and SQLite's manners. */
#include "trace/record.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BUSY_MS = 10000,    /* how long a batch waits for somebody else's transaction */
    UNWIND_MS = 2000,   /* how long closing waits for readers to be gone */
    UNWIND_STEP_MS = 20 /* how often it looks */
};

struct kl_record {
    char *path;
    sqlite3 *db;
    sqlite3_stmt *statements[KL_ROW_KINDS][KL_ROW_STATEMENTS_MAX];
    bool moved;
};

/* clang-format off */
#define FIELD(type, row, member) {KL_FIELD_##type, offsetof(row, member)}
#define SHAPE(row) .size = sizeof(row)

/* "OR REPLACE" and keys that nobody else gives: a row that comes twice must not end the recording. */
static const kl_row_shape shapes[KL_ROW_KINDS] = {
    [KL_ROW_RUN] = {SHAPE(kl_trace_run_row),
        .fields = {FIELD(TEXT, kl_trace_run_row, program), FIELD(TEXT, kl_trace_run_row, version),
                   FIELD(TEXT, kl_trace_run_row, transport), FIELD(TEXT, kl_trace_run_row, policy),
                   FIELD(TEXT, kl_trace_run_row, host), FIELD(F64, kl_trace_run_row, began_unix_s),
                   FIELD(I64, kl_trace_run_row, pid), FIELD(TEXT, kl_trace_run_row, control)},
        .field_count = 8,
        .sql = {"INSERT OR IGNORE INTO host(name) VALUES (?5)",
                "INSERT INTO run(program, version, transport, policy, host, began_unix_s, pid, control) "
                "VALUES (?1, ?2, ?3, ?4, (SELECT host FROM host WHERE name = ?5), ?6, ?7, ?8)"}},
    [KL_ROW_RUN_ENDED] = {SHAPE(kl_row_run_ended),
        .fields = {FIELD(F64, kl_row_run_ended, ended_s), FIELD(U64, kl_row_run_ended, dropped_rows)},
        .field_count = 2,
        .sql = {"UPDATE run SET ended_s = ?1, dropped_rows = ?2"}},
    [KL_ROW_WORKER] = {SHAPE(kl_trace_worker_row),
        .fields = {FIELD(U32, kl_trace_worker_row, worker), FIELD(TEXT, kl_trace_worker_row, host),
                   FIELD(TEXT, kl_trace_worker_row, binding), FIELD(I64, kl_trace_worker_row, pid),
                   FIELD(F64, kl_trace_worker_row, joined_s)},
        .field_count = 5,
        .sql = {"INSERT OR IGNORE INTO host(name) VALUES (?2)",
                "INSERT OR REPLACE INTO worker(worker, host, binding, pid, joined_s) "
                "VALUES (?1, (SELECT host FROM host WHERE name = ?2), ?3, ?4, ?5)"}},
    [KL_ROW_WORKER_LEFT] = {SHAPE(kl_row_worker_left),
        .fields = {FIELD(U32, kl_row_worker_left, worker), FIELD(F64, kl_row_worker_left, left_s),
                   FIELD(TEXT, kl_row_worker_left, why)},
        .field_count = 3,
        .sql = {"UPDATE worker SET left_s = ?2, why = ?3 WHERE worker = ?1"}},
    [KL_ROW_ITERATION] = {SHAPE(kl_trace_iteration_row),
        .fields = {FIELD(U64, kl_trace_iteration_row, run), FIELD(U64, kl_trace_iteration_row, tasks),
                   FIELD(F64, kl_trace_iteration_row, units), FIELD(TEXT, kl_trace_iteration_row, policy),
                   FIELD(U64, kl_trace_iteration_row, shared_bytes),
                   FIELD(F64, kl_trace_iteration_row, began_s)},
        .field_count = 6,
        .sql = {"INSERT OR REPLACE INTO iteration(run, tasks, units, policy, shared_bytes, began_s) "
                "VALUES (?1, ?2, ?3, ?4, ?5, ?6)"}},
    [KL_ROW_ITERATION_ENDED] = {SHAPE(kl_trace_iteration_end),
        .fields = {FIELD(U64, kl_trace_iteration_end, run), FIELD(U64, kl_trace_iteration_end, failed),
                   FIELD(U64, kl_trace_iteration_end, chunks), FIELD(U32, kl_trace_iteration_end, workers),
                   FIELD(F64, kl_trace_iteration_end, ended_s), FIELD(F64, kl_trace_iteration_end, bound_s),
                   FIELD(F64_OR_NULL, kl_trace_iteration_end, equal_split_s),
                   FIELD(TEXT, kl_trace_iteration_end, decision),
                   FIELD(TEXT, kl_trace_iteration_end, status)},
        .field_count = 9,
        .sql = {"UPDATE iteration SET failed = ?2, chunks = ?3, workers = ?4, ended_s = ?5, bound_s = ?6, "
                "equal_split_s = ?7, decision = ?8, status = ?9 WHERE run = ?1"}},
    [KL_ROW_CHUNK] = {SHAPE(kl_trace_chunk_row), .bulk = true,
        .fields = {FIELD(U64, kl_trace_chunk_row, run), FIELD(U64, kl_trace_chunk_row, chunk),
                   FIELD(U64, kl_trace_chunk_row, lo), FIELD(U64, kl_trace_chunk_row, hi),
                   FIELD(U32, kl_trace_chunk_row, worker), FIELD(F64, kl_trace_chunk_row, units),
                   FIELD(F64, kl_trace_chunk_row, dealt_s), FIELD(F64_OR_NULL, kl_trace_chunk_row, began_s),
                   FIELD(F64_OR_NULL, kl_trace_chunk_row, ended_s), FIELD(F64, kl_trace_chunk_row, busy_s),
                   FIELD(U64, kl_trace_chunk_row, bytes_out), FIELD(U64, kl_trace_chunk_row, bytes_in),
                   FIELD(U64, kl_trace_chunk_row, failed), FIELD(BOOL, kl_trace_chunk_row, lost)},
        .field_count = 14,
        .sql = {"INSERT INTO chunk(run, chunk, lo, hi, worker, units, dealt_s, began_s, ended_s, busy_s, "
                "bytes_out, bytes_in, failed, lost) "
                "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"}},
    [KL_ROW_MEASUREMENT] = {SHAPE(kl_trace_measurement_row), .bulk = true,
        .fields = {FIELD(F64, kl_trace_measurement_row, at_s),
                   FIELD(WORKER_OR_NULL, kl_trace_measurement_row, worker),
                   FIELD(TEXT, kl_trace_measurement_row, kind), FIELD(F64, kl_trace_measurement_row, value),
                   FIELD(F64, kl_trace_measurement_row, sd), FIELD(U64, kl_trace_measurement_row, count)},
        .field_count = 6,
        .sql = {"INSERT INTO measurement(at_s, worker, kind, value, sd, count) "
                "VALUES (?1, ?2, ?3, ?4, ?5, ?6)"}},
    [KL_ROW_DECISION] = {SHAPE(kl_trace_decision_row), .bulk = true,
        .fields = {FIELD(U64, kl_trace_decision_row, run), FIELD(U64_OR_NULL, kl_trace_decision_row, chunk),
                   FIELD(F64, kl_trace_decision_row, at_s),
                   FIELD(WORKER_OR_NULL, kl_trace_decision_row, worker),
                   FIELD(TEXT, kl_trace_decision_row, kind), FIELD(U64, kl_trace_decision_row, count),
                   FIELD(TEXT, kl_trace_decision_row, reason),
                   FIELD(F64_OR_NULL, kl_trace_decision_row, forecast_s),
                   FIELD(F64, kl_trace_decision_row, gain_s)},
        .field_count = 9,
        .sql = {"INSERT INTO decision(run, chunk, at_s, worker, kind, count, reason, forecast_s, gain_s) "
                "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"}},
};

/* Columns of chunk, measurement and decision grow at the end only and carry no index: a row costs least so.
 * A join finds its own index when it needs one. */
static const char *const tables[] = {
    "CREATE TABLE host(host INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "CREATE TABLE run(program TEXT NOT NULL, version TEXT NOT NULL, transport TEXT NOT NULL, "
        "policy TEXT NOT NULL, host INTEGER REFERENCES host, began_unix_s REAL, pid INTEGER NOT NULL, "
        "ended_s REAL, dropped_rows INTEGER NOT NULL DEFAULT 0, control TEXT)",
    "CREATE TABLE worker(worker INTEGER PRIMARY KEY, host INTEGER REFERENCES host, binding TEXT NOT NULL, "
        "pid INTEGER NOT NULL, joined_s REAL, left_s REAL, why TEXT)",
    "CREATE TABLE iteration(run INTEGER PRIMARY KEY, tasks INTEGER NOT NULL, units REAL, "
        "policy TEXT NOT NULL, shared_bytes INTEGER NOT NULL, began_s REAL, failed INTEGER, chunks INTEGER, "
        "workers INTEGER, ended_s REAL, bound_s REAL, equal_split_s REAL, decision TEXT, status TEXT)",
    "CREATE TABLE chunk(id INTEGER PRIMARY KEY, run INTEGER NOT NULL, chunk INTEGER NOT NULL, "
        "lo INTEGER NOT NULL, hi INTEGER NOT NULL, worker INTEGER NOT NULL, units REAL, dealt_s REAL, "
        "began_s REAL, ended_s REAL, busy_s REAL, bytes_out INTEGER NOT NULL, bytes_in INTEGER NOT NULL, "
        "failed INTEGER NOT NULL, lost INTEGER NOT NULL)",
    "CREATE TABLE measurement(id INTEGER PRIMARY KEY, at_s REAL, worker INTEGER, kind TEXT NOT NULL, "
        "value REAL, sd REAL, count INTEGER NOT NULL)",
    "CREATE TABLE decision(id INTEGER PRIMARY KEY, run INTEGER NOT NULL, chunk INTEGER, at_s REAL, "
        "worker INTEGER, kind TEXT NOT NULL, count INTEGER NOT NULL, reason TEXT NOT NULL, "
        "forecast_s REAL, gain_s REAL)",
};
/* clang-format on */

const kl_row_shape *kl_row_shape_of(kl_row_kind kind) {
    return &shapes[kind];
}

/* SQLite goes on writing into a file whose name is gone; nobody would find those rows. */
static bool has_moved(kl_record *record) {
    int moved = 0;
    if (sqlite3_file_control(record->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved)
        record->moved = true;
    return record->moved;
}

static kilter_status fail_moved(const kl_record *record, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_RECORD,
                   "writing the run record '%s': the file was moved or removed; leave it there until the run "
                   "ends",
                   record->path);
}

static kilter_status fail_exists(const char *path, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_RECORD,
                   "creating the run record '%s': it exists; name another file or remove it", path);
}

static kilter_status cannot(kl_record *record, const char *doing, kilter_error *error) {
    if (record->db && has_moved(record))
        return fail_moved(record, error);
    return kl_fail(error, KILTER_ERR_RECORD, "%s the run record '%s': %s; make room or name another file",
                   doing, record->path, sqlite3_errmsg(record->db));
}

static int exec(const kl_record *record, const char *sql) {
    return sqlite3_exec(record->db, sql, NULL, NULL, NULL);
}

/* Where SQLite sees two that wait for each other it does not wait itself; here one of them soon gives up. */
static int exec_patiently(const kl_record *record, const char *sql) {
    sqlite3_busy_timeout(record->db, 0);
    int status = exec(record, sql);
    for (int waited_ms = 0; status == SQLITE_BUSY && waited_ms < BUSY_MS; waited_ms += UNWIND_STEP_MS) {
        sqlite3_sleep(UNWIND_STEP_MS);
        status = exec(record, sql);
    }
    sqlite3_busy_timeout(record->db, BUSY_MS);
    return status;
}

/* An empty file is taken as it is: it may be the caller's way to reserve a name. */
static kilter_status reserve_file(const char *path, bool *created, kilter_error *error) {
    int file = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0) {
        close(file); /* before SQLite opens it: closing later would drop SQLite's locks */
        *created = true;
        return KILTER_OK;
    }
    struct stat info;
    if (errno == EEXIST && stat(path, &info) == 0) {
        if (S_ISREG(info.st_mode) && info.st_size == 0)
            return KILTER_OK;
        return fail_exists(path, error);
    }
    return kl_fail(error, KILTER_ERR_RECORD, "creating the run record '%s': %s; name another file", path,
                   strerror(errno));
}

static kilter_status open_database(kl_record *record, kilter_error *error) {
    /* With "./" in front no name is special to SQLite (":memory:", "file:…"). */
    char *name = sqlite3_mprintf("%s%s", record->path[0] == '/' ? "" : "./", record->path);
    if (!name)
        return kl_fail(error, KILTER_ERR_MEMORY, "creating the run record '%s': memory ran out",
                       record->path);
    int status = sqlite3_open_v2(name, &record->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    sqlite3_free(name);
    if (status != SQLITE_OK)
        return cannot(record, "creating", error);
    sqlite3_busy_timeout(record->db, BUSY_MS);
    return KILTER_OK;
}

/* Has another master, started at the same time, made it its own since we looked? */
static bool is_taken(const kl_record *record) {
    sqlite3_stmt *tables_there = NULL;
    bool taken =
        sqlite3_prepare_v2(record->db, "SELECT 1 FROM sqlite_master", -1, &tables_there, NULL) == SQLITE_OK &&
        sqlite3_step(tables_there) == SQLITE_ROW;
    sqlite3_finalize(tables_there);
    return taken;
}

static int create_tables(const kl_record *record) {
    const char *strict = sqlite3_libversion_number() >= 3037000 ? "STRICT" : "";
    char sql[1024];
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        snprintf(sql, sizeof sql, "%s %s", tables[i], strict);
        if (exec(record, sql) != SQLITE_OK)
            return sqlite3_errcode(record->db);
    }
    snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d", KL_RECORD_APPLICATION,
             KL_RECORD_FORMAT);
    return exec(record, sql);
}

static int prepare_statements(kl_record *record) {
    for (int kind = 0; kind < KL_ROW_KINDS; kind++)
        for (int i = 0; i < KL_ROW_STATEMENTS_MAX && shapes[kind].sql[i]; i++)
            if (sqlite3_prepare_v3(record->db, shapes[kind].sql[i], -1, SQLITE_PREPARE_PERSISTENT,
                                   &record->statements[kind][i], NULL) != SQLITE_OK)
                return sqlite3_errcode(record->db);
    return SQLITE_OK;
}

/* The tables come before WAL, so that they are in the file itself and not in the log beside it. The disk is
 * not waited for: a run need not begin later for the sake of a record that is still empty. */
static kilter_status fill(kl_record *record, const kl_trace_run_row *run, bool *taken, kilter_error *error) {
    if (exec(record, "PRAGMA synchronous = OFF") != SQLITE_OK ||
        exec_patiently(record, "BEGIN IMMEDIATE") != SQLITE_OK)
        return cannot(record, "creating", error);
    if ((*taken = is_taken(record)))
        return fail_exists(record->path, error);
    if (create_tables(record) != SQLITE_OK || prepare_statements(record) != SQLITE_OK)
        return cannot(record, "creating", error);
    kilter_status status = kl_record_put(record, KL_ROW_RUN, run, error);
    if (status == KILTER_OK)
        status = kl_record_commit(record, error);
    /* Where the file system cannot do WAL, SQLite stays with its journal: slower for readers, and as safe. */
    if (status == KILTER_OK &&
        exec_patiently(record, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL") != SQLITE_OK)
        status = cannot(record, "creating", error);
    return status;
}

static void free_record(kl_record *record) {
    for (int kind = 0; kind < KL_ROW_KINDS; kind++)
        for (int i = 0; i < KL_ROW_STATEMENTS_MAX; i++)
            sqlite3_finalize(record->statements[kind][i]);
    sqlite3_close(record->db);
    free(record->path);
    free(record);
}

kilter_status kl_record_create(const char *path, const kl_trace_run_row *run, kl_record **out,
                               kilter_error *error) {
    bool created = false, taken = false;
    kilter_status status = reserve_file(path, &created, error);
    if (status != KILTER_OK)
        return status;
    kl_record *record = calloc(1, sizeof *record);
    if (record)
        record->path = strdup(path);
    if (!record || !record->path) {
        free(record);
        if (created)
            unlink(path);
        return kl_fail(error, KILTER_ERR_MEMORY, "creating the run record '%s': memory ran out", path);
    }
    status = open_database(record, error);
    if (status == KILTER_OK)
        status = fill(record, run, &taken, error);
    if (status != KILTER_OK) {
        free_record(record);
        if (created && !taken) /* what another master has filled is not ours to remove */
            unlink(path);
        return status;
    }
    *out = record;
    return KILTER_OK;
}

kilter_status kl_record_begin(kl_record *record, kilter_error *error) {
    return exec(record, "BEGIN IMMEDIATE") == SQLITE_OK ? KILTER_OK : cannot(record, "writing", error);
}

static int bind_u64(sqlite3_stmt *statement, int at, uint64_t value) {
    return sqlite3_bind_int64(statement, at, value > INT64_MAX ? INT64_MAX : (sqlite3_int64)value);
}

static int bind_field(sqlite3_stmt *statement, int at, kl_field_type type, const void *value) {
    const char *text;
    switch (type) {
    case KL_FIELD_U32:
        return sqlite3_bind_int64(statement, at, *(const uint32_t *)value);
    case KL_FIELD_U64:
        return bind_u64(statement, at, *(const uint64_t *)value);
    case KL_FIELD_I64:
        return sqlite3_bind_int64(statement, at, *(const int64_t *)value);
    case KL_FIELD_F64:
        return sqlite3_bind_double(statement, at, *(const double *)value);
    case KL_FIELD_BOOL:
        return sqlite3_bind_int(statement, at, *(const bool *)value);
    case KL_FIELD_TEXT: /* the row outlives the step, so SQLite need not copy it */
        text = *(const char *const *)value;
        return sqlite3_bind_text(statement, at, text ? text : "", -1, SQLITE_STATIC);
    case KL_FIELD_F64_OR_NULL:
        return *(const double *)value == 0 ? sqlite3_bind_null(statement, at)
                                           : sqlite3_bind_double(statement, at, *(const double *)value);
    case KL_FIELD_U64_OR_NULL:
        return *(const uint64_t *)value == UINT64_MAX ? sqlite3_bind_null(statement, at)
                                                      : bind_u64(statement, at, *(const uint64_t *)value);
    case KL_FIELD_WORKER_OR_NULL:
        return *(const int64_t *)value < 0 ? sqlite3_bind_null(statement, at)
                                           : sqlite3_bind_int64(statement, at, *(const int64_t *)value);
    }
    return SQLITE_MISUSE;
}

static int carry_out(sqlite3_stmt *statement, const kl_row_shape *shape, const void *row) {
    int used = sqlite3_bind_parameter_count(statement); /* a statement may use the first few only */
    int status = SQLITE_OK;
    for (int i = 0; i < used && (size_t)i < shape->field_count && status == SQLITE_OK; i++)
        status =
            bind_field(statement, i + 1, shape->fields[i].type, (const char *)row + shape->fields[i].offset);
    if (status == SQLITE_OK)
        status = sqlite3_step(statement);
    sqlite3_reset(statement);
    return status;
}

kilter_status kl_record_put(kl_record *record, kl_row_kind kind, const void *row, kilter_error *error) {
    for (int i = 0; i < KL_ROW_STATEMENTS_MAX && shapes[kind].sql[i]; i++)
        if (carry_out(record->statements[kind][i], &shapes[kind], row) != SQLITE_DONE)
            return cannot(record, "writing", error);
    return KILTER_OK;
}

kilter_status kl_record_commit(kl_record *record, kilter_error *error) {
    if (exec(record, "COMMIT") != SQLITE_OK)
        return cannot(record, "writing", error);
    return has_moved(record) ? fail_moved(record, error) : KILTER_OK;
}

void kl_record_rollback(kl_record *record) {
    if (!sqlite3_get_autocommit(record->db))
        exec(record, "ROLLBACK");
}

/* Needs the file for itself. A reader that stays only means that the log stays beside the file. */
static void leave_wal(kl_record *record) {
    for (int waited_ms = 0; waited_ms < UNWIND_MS; waited_ms += UNWIND_STEP_MS) {
        int status = exec(record, "PRAGMA journal_mode = DELETE");
        if (status != SQLITE_BUSY && status != SQLITE_LOCKED)
            return;
        sqlite3_sleep(UNWIND_STEP_MS);
    }
}

void kl_record_close(kl_record *record) {
    if (!record)
        return;
    if (!record->moved)
        leave_wal(record);
    free_record(record);
}
