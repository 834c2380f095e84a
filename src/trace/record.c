/* The file of a record: its tables, its SQL statements, and how SQLite is used. */
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

#include "sys/sys.h"

enum {
    NUMBER_MOST = 9999, /* greatest number that is appended to a name that exists */
    /* milliseconds for which a batch waits until another process has ended its transaction */
    BUSY_MS = 10000,
    UNWIND_MS = 2000,   /* milliseconds for which closing waits until readers have closed the file */
    UNWIND_STEP_MS = 20 /* milliseconds between two attempts to close while readers have the file open */
};

struct kl_record {
    char *path;
    sqlite3 *db;
    sqlite3_stmt *statements[KL_ROW_KINDS][KL_ROW_STATEMENTS];
    bool moved;
    kl_record_parts parts;
    int lock; /* descriptor of the file, which holds the lock that keeps other masters out; −1: none */
    kl_past past;
};

/* Return whether the file was moved or removed. SQLite would still write to it, but nobody would find the
 * rows. */
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

static kilter_status fail_memory(const char *path, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_MEMORY, "creating the run record '%s': memory ran out", path);
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

/* Execute `sql` again and again while the database is busy. If two processes would wait for each other,
 * SQLite returns at once instead of waiting. Trying again helps, because one of the two soon gives up. */
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

/* Refuse to continue a file that other users may write, because they could have changed it. */
static kilter_status check_owner(const char *path, const struct stat *info, kilter_error *error) {
    if (info->st_uid != geteuid())
        return kl_fail(
            error, KILTER_ERR_RECORD,
            "continuing the run record '%s': it belongs to another user; copy it, or name another file",
            path);
    if ((info->st_mode & 022) != 0)
        return kl_fail(
            error, KILTER_ERR_RECORD,
            "continuing the run record '%s': other users may write it; run chmod go-w on it, or name another "
            "file",
            path);
    return KILTER_OK;
}

/* Check SQLite's log files like the record itself, because SQLite takes over their contents. */
static kilter_status check_logs(const char *path, kilter_error *error) {
    static const char *const endings[] = {"-wal", "-journal"};
    kilter_status status = KILTER_OK;
    for (size_t i = 0; i < sizeof endings / sizeof *endings && status == KILTER_OK; i++) {
        struct stat info;
        char *name = sqlite3_mprintf("%s%s", path, endings[i]);
        if (name && stat(name, &info) == 0)
            status = check_owner(name, &info, error);
        sqlite3_free(name);
    }
    return status;
}

/* Lock a new file, or an empty one with which a user may have reserved the name. *taken is set if the file is
 * not empty, or if another master has locked it. The size is checked before the file is opened, because this
 * process may itself be writing that record. Opening and closing the file would then drop SQLite's locks. */
static kilter_status claim_file(kl_record *record, bool *created, bool *taken, kilter_error *error) {
    struct stat info = {.st_size = 0};
    record->lock = open(record->path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    *created = record->lock >= 0;
    if (!*created && errno == EEXIST && stat(record->path, &info) == 0) {
        if (!S_ISREG(info.st_mode))
            return kl_fail(error, KILTER_ERR_RECORD,
                           "creating the run record '%s': it exists and is not a regular file; name a file",
                           record->path);
        *taken = info.st_size > 0;
        if (*taken)
            return KILTER_OK;
        record->lock = open(record->path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    }
    if (record->lock < 0)
        return kl_fail(error, KILTER_ERR_RECORD, "creating the run record '%s': %s; name another file",
                       record->path, strerror(errno));
    /* any other error means that the file system has no locks */
    bool others = !kl_record_lock(record->lock) && errno == EAGAIN;
    *taken = others || fstat(record->lock, &info) != 0 || info.st_size > 0;
    *created &= !*taken;
    return KILTER_OK;
}

/* Return the name with a number before its ending: "a-2.kilter" for "a.kilter". */
static char *numbered_name(const char *path, unsigned number) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    int stem = (int)(dot && dot > name ? (size_t)(dot - path) : strlen(path));
    return number == 1 ? strdup(path) : kl_text("%.*s-%u%s", stem, path, number, path + stem);
}

/* Lock the file `path`. If it is taken, lock the first numbered name that is free. */
static kilter_status claim_free_file(kl_record *record, const char *path, bool *created,
                                     kilter_error *error) {
    for (unsigned number = 1; number <= NUMBER_MOST; number++) {
        bool taken = false;
        free(record->path);
        record->path = numbered_name(path, number);
        if (!record->path)
            return fail_memory(path, error);
        kilter_status status = claim_file(record, created, &taken, error);
        if (status != KILTER_OK || !taken)
            return status;
        if (record->lock >= 0)
            close(record->lock);
        record->lock = -1;
    }
    return kl_fail(error, KILTER_ERR_RECORD,
                   "creating the run record '%s': it and the %d numbered names after it exist; name "
                   "another file",
                   path, NUMBER_MOST - 1);
}

static kilter_status lock_file(kl_record *record, bool *created, kilter_error *error) {
    struct stat info;
    record->lock = open(record->path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    *created = record->lock >= 0;
    if (!*created && errno == EEXIST)
        record->lock = open(record->path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (record->lock < 0 || fstat(record->lock, &info) != 0)
        return kl_fail(error, KILTER_ERR_RECORD, "opening the run record '%s': %s; name another file",
                       record->path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return kl_fail(error, KILTER_ERR_RECORD,
                       "opening the run record '%s': it is not a regular file; name a file", record->path);
    if (!*created && (check_owner(record->path, &info, error) != KILTER_OK ||
                      check_logs(record->path, error) != KILTER_OK))
        return KILTER_ERR_RECORD;
    if (info.st_size == 1) /* a file of one byte is refused, because SQLite would take it for an empty file */
        return kl_fail(error, KILTER_ERR_RECORD,
                       "continuing the run record '%s': it is not a run record; name another file",
                       record->path);
    if (!kl_record_lock(record->lock)) {
        *created = false; /* another master has the file, so this process must not remove it */
        return kl_fail(error, KILTER_ERR_RECORD, "opening the run record '%s': %s", record->path,
                       errno == EAGAIN
                           ? "another master is writing it; let that master end, or name another file"
                           : strerror(errno));
    }
    return KILTER_OK;
}

static kilter_status open_database(kl_record *record, kilter_error *error) {
    /* Put "./" before the name, so that SQLite does not treat it as special, like ":memory:" or "file:…". */
    char *name = sqlite3_mprintf("%s%s", record->path[0] == '/' ? "" : "./", record->path);
    if (!name)
        return fail_memory(record->path, error);
    int status = sqlite3_open_v2(name, &record->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    sqlite3_free(name);
    if (status != SQLITE_OK)
        return cannot(record, "creating", error);
    sqlite3_busy_timeout(record->db, BUSY_MS);
    return KILTER_OK;
}

/* Find out whether the file has tables. A file without tables is new, or another master has just locked it.
 */
static int look_for_tables(const kl_record *record, bool *there) {
    sqlite3_stmt *tables = NULL;
    int status = sqlite3_prepare_v2(record->db, "SELECT 1 FROM sqlite_master", -1, &tables, NULL);
    if (status == SQLITE_OK)
        status = sqlite3_step(tables);
    *there = status == SQLITE_ROW;
    sqlite3_finalize(tables);
    return status == SQLITE_ROW || status == SQLITE_DONE ? SQLITE_OK : status;
}

static int create_tables(const kl_record *record) {
    const char *strict = sqlite3_libversion_number() >= 3037000 ? "STRICT" : "";
    char sql[sizeof(kl_sql) + 8];
    if (exec(record, "CREATE TABLE host(host INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)") != SQLITE_OK)
        return sqlite3_errcode(record->db);
    for (size_t i = 0; i < kl_record_tables(); i++) {
        const kl_sql table = kl_record_table(i, record->parts);
        snprintf(sql, sizeof sql, "%s %s", table.text, strict);
        if (*table.text && exec(record, sql) != SQLITE_OK)
            return sqlite3_errcode(record->db);
    }
    if (record->parts.results && exec(record, "CREATE INDEX result_of_task ON result(call, lo)") != SQLITE_OK)
        return sqlite3_errcode(record->db);
    if (record->parts.loop &&
        exec(record, "CREATE INDEX move_of_round ON decision(round) WHERE kind = 'move'") != SQLITE_OK)
        return sqlite3_errcode(record->db);
    snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d", KL_RECORD_APPLICATION,
             KL_RECORD_FORMAT);
    return exec(record, sql);
}

static int prepare_statements(kl_record *record) {
    for (kl_row_kind kind = 0; kind < KL_ROW_KINDS; kind++) {
        const kl_sql sql[KL_ROW_STATEMENTS] = {kl_host_sql(kind), kl_row_sql(kind)};
        for (int i = 0; i < KL_ROW_STATEMENTS && kl_row_is_in(kind, record->parts); i++)
            if (sqlite3_prepare_v3(record->db, sql[i].text, -1, SQLITE_PREPARE_PERSISTENT,
                                   &record->statements[kind][i], NULL) != SQLITE_OK)
                return sqlite3_errcode(record->db);
    }
    return SQLITE_OK;
}

/* Create the tables and the first row. This is done before the log (WAL) is used, so that the file itself has
 * the tables. */
static kilter_status create(kl_record *record, const kl_trace_run_row *run, kilter_error *error) {
    if (create_tables(record) != SQLITE_OK || prepare_statements(record) != SQLITE_OK)
        return cannot(record, "creating", error);
    return kl_record_put(record, KL_ROW_RUN, run, error);
}

static kilter_status go_on(kl_record *record, const kl_trace_run_row *run, kilter_error *error) {
    kilter_status status = kl_past_read(record->db, record->path, run, &record->past, error);
    if (status != KILTER_OK)
        return status;
    /* records of earlier versions lack this column; if it exists, the statement fails without harm */
    exec(record, "ALTER TABLE decision ADD COLUMN grounds BLOB");
    if (prepare_statements(record) != SQLITE_OK || kl_past_end(record->db) != SQLITE_OK)
        return cannot(record, "continuing", error);
    return kl_record_put(record, KL_ROW_RUN_AGAIN, run, error);
}

static kilter_status begin_session(kl_record *record, const kl_trace_run_row *run, kilter_error *error) {
    const kl_trace_session_row session = {.host = run->host,
                                          .version = run->version,
                                          .transport = run->transport,
                                          .policy = run->policy,
                                          .program_version = run->program_version,
                                          .pid = run->pid};
    kilter_status status = kl_record_put(record, KL_ROW_SESSION, &session, error);
    if (status == KILTER_OK && record->parts.results)
        status = kl_record_put(record, KL_ROW_ORIGIN, run, error);
    return status == KILTER_OK ? kl_record_commit(record, error) : status;
}

/* Write the first rows of a new record, or continue a record. A record without results does not wait for the
 * disk, so that the run begins earlier. */
static kilter_status fill(kl_record *record, const kl_trace_run_row *run, bool *taken, kilter_error *error) {
    const char *wait = record->parts.results ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = OFF";
    const char *log = record->parts.results ? "PRAGMA journal_mode = WAL"
                                            : "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL";
    if (exec(record, wait) != SQLITE_OK || exec_patiently(record, "BEGIN IMMEDIATE") != SQLITE_OK ||
        look_for_tables(record, taken) != SQLITE_OK)
        return record->parts.results ? kl_past_damaged(record->db, record->path, error)
                                     : cannot(record, "creating", error);
    if (*taken && !record->parts.results)
        return kl_fail(error, KILTER_ERR_RECORD,
                       "creating the run record '%s': another program writes it; name another file",
                       record->path);
    kilter_status status = *taken ? go_on(record, run, error) : create(record, run, error);
    if (status == KILTER_OK)
        status = begin_session(record, run, error);
    /* On a file system without WAL, SQLite uses its journal. This is slower for readers but equally safe. */
    if (status == KILTER_OK && exec_patiently(record, log) != SQLITE_OK)
        status = cannot(record, "creating", error);
    return status;
}

static void free_record(kl_record *record) {
    for (int kind = 0; kind < KL_ROW_KINDS; kind++)
        for (int i = 0; i < KL_ROW_STATEMENTS; i++)
            sqlite3_finalize(record->statements[kind][i]);
    sqlite3_close(record->db);
    /* close this descriptor after SQLite has closed the file, because closing the descriptor drops SQLite's
     * locks */
    if (record->lock >= 0) {
        kl_record_unlock(record->lock);
        close(record->lock);
    }
    free(record->path);
    free(record);
}

static kilter_status new_record(const char *path, kl_record_parts parts, kl_record **record,
                                kilter_error *error) {
    kl_record *r = calloc(1, sizeof *r);
    if (r)
        *r = (kl_record){.path = strdup(path), .parts = parts, .lock = -1};
    if (!r || !r->path) {
        free(r);
        return fail_memory(path, error);
    }
    *record = r;
    return KILTER_OK;
}

kilter_status kl_record_open(const char *path, const kl_trace_run_row *run, bool resume, kl_record **out,
                             kilter_error *error) {
    bool created = false, taken = false;
    kl_record *record = NULL;
    const kl_record_parts parts = {.results = resume, .loop = run->loop, .watched = run->watched};
    kilter_status status = new_record(path, parts, &record, error);
    if (status != KILTER_OK)
        return status;
    status = resume ? lock_file(record, &created, error) : claim_free_file(record, path, &created, error);
    if (status == KILTER_OK)
        status = open_database(record, error);
    if (status == KILTER_OK)
        status = fill(record, run, &taken, error);
    if (status != KILTER_OK) {
        if (created && !taken) /* a file that another master has filled must not be removed */
            unlink(record->path);
        free_record(record);
        return status;
    }
    *out = record;
    return KILTER_OK;
}

const char *kl_record_path(const kl_record *record) {
    return record->path;
}

uint64_t kl_record_calls(const kl_record *record) {
    return record->past.calls;
}

kilter_status kl_record_begin(kl_record *record, kilter_error *error) {
    return exec(record, "BEGIN IMMEDIATE") == SQLITE_OK ? KILTER_OK : cannot(record, "writing", error);
}

static int bind_u64(sqlite3_stmt *statement, int at, uint64_t value) {
    return sqlite3_bind_int64(statement, at, value > INT64_MAX ? INT64_MAX : (sqlite3_int64)value);
}

static int bind_bytes(sqlite3_stmt *statement, int at, const kilter_bytes *bytes) {
    return sqlite3_bind_blob64(statement, at, bytes->size ? bytes->data : "", bytes->size, SQLITE_STATIC);
}

/* Bind a field that is stored as it is. */
static int bind_plain(sqlite3_stmt *statement, int at, kl_bind bind, const void *value) {
    const char *text;
    switch (bind) {
    case KL_BIND_U32:
        return sqlite3_bind_int64(statement, at, *(const uint32_t *)value);
    case KL_BIND_U64:
        return bind_u64(statement, at, *(const uint64_t *)value);
    case KL_BIND_I64:
        return sqlite3_bind_int64(statement, at, *(const int64_t *)value);
    case KL_BIND_F64:
        return sqlite3_bind_double(statement, at, *(const double *)value);
    case KL_BIND_BOOL:
        return sqlite3_bind_int(statement, at, *(const bool *)value);
    case KL_BIND_HOST:
    /* SQLite need not copy the text, because the row exists until the statement has been carried out */
    case KL_BIND_TEXT:
        text = *(const char *const *)value;
        return sqlite3_bind_text(statement, at, text ? text : "", -1, SQLITE_STATIC);
    case KL_BIND_F64_OR_NULL:
        return *(const double *)value == 0 ? sqlite3_bind_null(statement, at)
                                           : sqlite3_bind_double(statement, at, *(const double *)value);
    case KL_BIND_U64_OR_NULL:
        return *(const uint64_t *)value == UINT64_MAX ? sqlite3_bind_null(statement, at)
                                                      : bind_u64(statement, at, *(const uint64_t *)value);
    case KL_BIND_BYTES: /* empty bytes are not stored as NULL */
        return bind_bytes(statement, at, value);
    case KL_BIND_COPY:
        return ((const kilter_bytes *)value)->size ? bind_bytes(statement, at, value)
                                                   : sqlite3_bind_null(statement, at);
    case KL_BIND_TIME:
    case KL_BIND_TIME_OR_NULL:
    case KL_BIND_RUN:
    case KL_BIND_WORKER:
    case KL_BIND_WORKER_OR_NULL:
    case KL_BIND_SUM:
        break; /* see bind_field() */
    }
    return SQLITE_MISUSE;
}

/* Bind a field. Times and numbers of this session are added to the last values of earlier sessions. */
static int bind_field(const kl_past *past, sqlite3_stmt *statement, int at, kl_bind bind, const void *value) {
    kl_trace_result_row result;
    switch (bind) {
    case KL_BIND_TIME:
        return sqlite3_bind_double(statement, at, past->ended_s + *(const double *)value);
    case KL_BIND_TIME_OR_NULL:
        return *(const double *)value == 0
                   ? sqlite3_bind_null(statement, at)
                   : sqlite3_bind_double(statement, at, past->ended_s + *(const double *)value);
    case KL_BIND_RUN:
        return bind_u64(statement, at, past->runs + *(const uint64_t *)value);
    case KL_BIND_WORKER:
        return sqlite3_bind_int64(statement, at, past->workers + *(const uint32_t *)value);
    case KL_BIND_WORKER_OR_NULL:
        return *(const int64_t *)value < 0
                   ? sqlite3_bind_null(statement, at)
                   : sqlite3_bind_int64(statement, at, past->workers + *(const int64_t *)value);
    case KL_BIND_SUM:
        result = *(const kl_trace_result_row *)value;
        result.worker += (uint32_t)past->workers;
        return sqlite3_bind_int64(statement, at, (int64_t)kl_result_sum(&result));
    default:
        return bind_plain(statement, at, bind, value);
    }
}

static int carry_out(const kl_past *past, sqlite3_stmt *statement, const kl_row_field *fields,
                     const void *row) {
    int used =
        sqlite3_bind_parameter_count(statement); /* some statements use only the first fields of the row */
    int status = SQLITE_OK;
    for (int i = 0; i < used && status == SQLITE_OK; i++)
        if (kl_is_bound(&fields[i]))
            status = bind_field(past, statement, i + 1, fields[i].bind, (const char *)row + fields[i].offset);
    if (status == SQLITE_OK)
        status = sqlite3_step(statement);
    sqlite3_reset(statement);
    return status;
}

kilter_status kl_record_put(kl_record *record, kl_row_kind kind, const void *row, kilter_error *error) {
    for (int i = 0; i < KL_ROW_STATEMENTS; i++) {
        sqlite3_stmt *statement = record->statements[kind][i];
        if (statement &&
            carry_out(&record->past, statement, kl_row_shape_of(kind)->fields, row) != SQLITE_DONE)
            return cannot(record, "writing", error);
    }
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

/* Merge the log (WAL) into the file. This needs exclusive access, so if readers do not close the file in
 * time, the log stays. */
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
