/* Open a record and query it. A record may come from anyone, so its content is not trusted. */
#include "report/reading.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/trace.h"

enum {
    BUSY_MS = 5000,          /* milliseconds to wait if a master that is finishing its record has locked it */
    OWN_VIEWS_STAY = 3035000 /* first version of SQLite in which a file's views can be disabled while
                                temporary views still work */
};

/* ---- opening the file of a record ---- */

kilter_status kl_no_record(const char *path, const char *why, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_INPUT, "reading the run record '%s': %s", path, why);
}

/* Check the file by its name, without opening it. If a master in this process writes the record, opening and
 * closing the file would drop the master's locks. */
static kilter_status check_file(const char *path, kilter_error *error) {
    struct stat info;
    if (stat(path, &info) != 0 || access(path, R_OK) != 0)
        return kl_no_record(path, strerror(errno), error);
    if (!S_ISREG(info.st_mode))
        return kl_no_record(path, "it is not a file; name a record", error);
    if (info.st_size == 0)
        return kl_no_record(path, "it is empty; the run has not begun, or could not begin", error);
    return KILTER_OK;
}

static bool has_log(const char *path) {
    char *log = sqlite3_mprintf("%s-wal", path);
    bool exists = !log || access(log, F_OK) == 0;
    sqlite3_free(log);
    return exists;
}

static int open_with(const char *format, const char *path, int flags, sqlite3 **db) {
    char *name = sqlite3_mprintf(format, path[0] == '/' ? "" : "./", path);
    int status = name ? sqlite3_open_v2(name, db, flags | SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL)
                      : SQLITE_NOMEM;
    sqlite3_free(name);
    if (status == SQLITE_OK)
        sqlite3_busy_timeout(*db, BUSY_MS);
    return status;
}

static int64_t pragma(sqlite3 *db, const char *sql) {
    sqlite3_stmt *statement = NULL;
    int64_t value = -1;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

/* Return the file's name as part of a URI, with '%', '?' and '#' escaped. */
static char *uri_name(const char *path) {
    static const char hex[] = "0123456789ABCDEF";
    char *name = malloc(3 * strlen(path) + 1), *to = name;
    for (; name && *path; path++) {
        bool plain = *path != '%' && *path != '?' && *path != '#';
        if (plain) {
            *to++ = *path;
        } else {
            *to++ = '%';
            *to++ = hex[(unsigned char)*path >> 4];
            *to++ = hex[*path & 15];
        }
    }
    if (name)
        *to = '\0';
    return name;
}

/* Open a record that has no log and lies on a read-only medium. The usual way fails on such a medium,
 * because SQLite tries to create the index of a log as a file beside the record. With immutable=1, SQLite
 * needs no such file. */
static int open_immutable(const char *path, sqlite3 **db) {
    char *name = uri_name(path);
    if (!name)
        return SQLITE_NOMEM;
    int status = open_with("file:%s%s?immutable=1", name, SQLITE_OPEN_URI, db);
    free(name);
    return status;
}

static bool wants_to_write(sqlite3 *db) {
    int code = sqlite3_errcode(db) & 0xff;
    return code == SQLITE_CANTOPEN || code == SQLITE_READONLY;
}

static int open_database(const char *path, sqlite3 **db) {
    int status = open_with("%s%s", path, 0, db);
    if (status == SQLITE_OK && pragma(*db, "PRAGMA schema_version") < 0 && wants_to_write(*db) &&
        !has_log(path)) {
        sqlite3_close(*db);
        *db = NULL;
        status = open_immutable(path, db);
    }
    return status;
}

/* Restrict SQLite to reading rows, even if the file was made to do harm. */
static int harden(sqlite3 *db) {
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    if (sqlite3_libversion_number() >= OWN_VIEWS_STAY)
        sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1 << 20);
    return sqlite3_exec(
        db, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY; BEGIN", NULL,
        NULL, NULL);
}

kilter_status kl_reading_failed(const kl_reading *r, const char *path, kilter_error *error) {
    int code = r->db ? sqlite3_errcode(r->db) & 0xff : SQLITE_NOMEM;
    if (r->memory || code == SQLITE_NOMEM)
        return kl_fail(error, KILTER_ERR_MEMORY, "reading the run record '%s': memory ran out", path);
    if (code == SQLITE_NOTADB)
        return kl_no_record(path, "it is not a run record", error);
    if (code == SQLITE_CANTOPEN || code == SQLITE_READONLY || code == SQLITE_BUSY)
        return kl_fail(error, KILTER_ERR_INPUT, "reading the run record '%s': %s; try again, or read a copy",
                       path, sqlite3_errmsg(r->db));
    return kl_fail(error, KILTER_ERR_INPUT, "reading the run record '%s': it is damaged or cut (%s)", path,
                   r->db ? sqlite3_errmsg(r->db) : "cannot be opened");
}

/* Make a temporary view `decision` with the columns of later formats. In a record of format 1, the costs and
 * outcomes of a loop's moves are in a separate table. */
static bool show_old_decisions(const kl_reading *r) {
    char sql[1024];
    const bool moves = kl_has_table(r, "move");
    snprintf(sql, sizeof sql,
             "CREATE TEMP VIEW decision AS SELECT d.id, d.at_s, d.run, %s AS round, d.chunk, d.kind, "
             "d.worker AS subject, d.count, d.forecast_s, d.gain_s, d.reason, %s FROM main.decision d %s",
             kl_has_column(r, "decision", "round") ? "d.round" : "NULL",
             moves ? "coalesce(m.cost_s, 0) AS cost_s, m.settled_s, m.came_s, m.spent_s, coalesce(m.refused, "
                     "0) AS refused"
                   : "0 AS cost_s, NULL AS settled_s, NULL AS came_s, NULL AS spent_s, 0 AS refused",
             moves ? "LEFT JOIN main.move m ON m.round = d.round AND d.kind = 'move'" : "");
    return sqlite3_exec(r->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static kilter_status check_format(const kl_reading *r, const char *path, kilter_error *error) {
    int64_t application = pragma(r->db, "PRAGMA application_id");
    if (sqlite3_errcode(r->db) != SQLITE_OK)
        return kl_reading_failed(r, path, error);
    int64_t format = pragma(r->db, "PRAGMA user_version");
    if (application != KL_RECORD_APPLICATION || format < 1)
        return kl_no_record(path, "it is an SQLite file, but not a run record", error);
    if (format > KL_RECORD_FORMAT)
        return kl_fail(
            error, KILTER_ERR_INPUT,
            "reading the run record '%s': it has format %lld and this program reads up to %d; use a "
            "newer kilter",
            path, (long long)format, KL_RECORD_FORMAT);
    if (format == 1 && kl_has_table(r, "decision") && !show_old_decisions(r))
        return kl_reading_failed(r, path, error);
    return KILTER_OK;
}

/* Check that the file's last page is complete, because SQLite reads missing bytes as zeros. If there is a
 * log, the complete page may be in it. */
static kilter_status check_last_page(const kl_reading *r, const char *path, kilter_error *error) {
    struct stat info;
    int64_t page_bytes = pragma(r->db, "PRAGMA page_size");
    if (page_bytes > 0 && stat(path, &info) == 0 && info.st_size % page_bytes != 0 && !has_log(path))
        return kl_no_record(path, "it is damaged or cut (its last page is not whole)", error);
    return KILTER_OK;
}

kilter_status kl_reading_open(kl_reading *r, const char *path, kilter_error *error) {
    kilter_status status = check_file(path, error);
    if (status != KILTER_OK)
        return status;
    if (open_database(path, &r->db) != SQLITE_OK || harden(r->db) != SQLITE_OK)
        return kl_reading_failed(r, path, error);
    status = check_format(r, path, error);
    return status == KILTER_OK ? check_last_page(r, path, error) : status;
}

kilter_status kl_record_ask(const char *path, const char *sql, int64_t number, kl_record_row_fn take,
                            void *context, kilter_error *error) {
    kl_reading r = {0};
    sqlite3_stmt *statement = NULL;
    kilter_status status = kl_reading_open(&r, path, error);
    if (status == KILTER_OK) {
        int step = sqlite3_prepare_v2(r.db, sql, -1, &statement, NULL);
        if (step == SQLITE_OK && sqlite3_bind_int64(statement, 1, number) == SQLITE_OK)
            while ((step = sqlite3_step(statement)) == SQLITE_ROW)
                take(context, statement);
        if (step != SQLITE_DONE)
            status = kl_reading_failed(&r, path, error);
    }
    sqlite3_finalize(statement);
    sqlite3_close(r.db);
    return status;
}

/* ---- columns ---- */

double kl_record_real(sqlite3_stmt *row, int column) {
    int type = sqlite3_column_type(row, column);
    return type == SQLITE_FLOAT || type == SQLITE_INTEGER ? sqlite3_column_double(row, column) : (double)NAN;
}

uint64_t kl_count_at(sqlite3_stmt *row, int column) {
    sqlite3_int64 value = sqlite3_column_int64(row, column);
    return value < 0 ? 0 : (uint64_t)value;
}

char *kl_text_at(kl_reading *r, sqlite3_stmt *row, int column) {
    const char *text = (const char *)sqlite3_column_text(row, column);
    char *copy = strndup(text ? text : "", KL_RECORD_TEXT_BYTES);
    r->memory |= !copy;
    return copy;
}

char *kl_text_or_null(kl_reading *r, sqlite3_stmt *row, int column) {
    return sqlite3_column_type(row, column) == SQLITE_NULL ? NULL : kl_text_at(r, row, column);
}

void *kl_grown(kl_reading *r, void *items, size_t count, size_t size) {
    if ((count & (count - 1)) !=
        0) /* there is room, because the array grows only when its length is 0, 1, 2, 4, … */
        return items;
    void *more = realloc(items, (count ? 2 * count : 1) * size);
    r->memory |= !more;
    return more;
}

bool kl_each_row(kl_reading *r, const char *sql, kl_row_fn take) {
    sqlite3_stmt *statement = NULL;
    int status = r->failed ? SQLITE_ERROR : sqlite3_prepare_v2(r->db, sql, -1, &statement, NULL);
    if (status == SQLITE_OK)
        while ((status = sqlite3_step(statement)) == SQLITE_ROW && !r->memory)
            take(r, statement);
    sqlite3_finalize(statement);
    r->failed |= status != SQLITE_DONE || r->memory;
    return !r->failed;
}

bool kl_has_table(const kl_reading *r, const char *name) {
    char sql[128];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '%s'",
             name);
    return pragma(r->db, sql) > 0;
}

bool kl_has_column(const kl_reading *r, const char *table, const char *name) {
    char sql[128];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM pragma_table_info('%s') WHERE name = '%s'", table, name);
    return pragma(r->db, sql) > 0;
}
