/* Reading a record. The file may come from anywhere: nothing in it is believed. */
#include "report/report.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/fields.h"
#include "trace/trace.h"

enum {
    BUSY_MS = 5000,             /* a master that finishes its record holds it for a moment */
    TEXT_BYTES_MAX = 64 * 1024, /* no text of a record is longer */
    OWN_VIEWS_STAY = 3035000    /* from this SQLite on, refusing a file's views leaves temporary ones alone */
};

/* ---- the file ---- */

static kilter_status no_record(const char *path, const char *why, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_INPUT, "reading the run record '%s': %s", path, why);
}

/* Only by name: closing a descriptor of the file would drop the locks of a master in this very process. */
static kilter_status check_file(const char *path, kilter_error *error) {
    struct stat info;
    if (stat(path, &info) != 0 || access(path, R_OK) != 0)
        return no_record(path, strerror(errno), error);
    if (!S_ISREG(info.st_mode))
        return no_record(path, "it is not a file; name a record", error);
    if (info.st_size == 0)
        return no_record(path, "it is empty; the run has not begun, or could not", error);
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

/* '%' and '?' end a name in a URI. */
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

/* A record that was copied without its log, onto a medium that takes no new file, cannot be opened the usual
 * way: SQLite wants its index of the log. Without a log there is nothing to index. */
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

/* A file that only pretends to be a record must not make SQLite do more than look up rows. */
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
        return no_record(path, "it is not a run record", error);
    if (code == SQLITE_CANTOPEN || code == SQLITE_READONLY || code == SQLITE_BUSY)
        return kl_fail(error, KILTER_ERR_INPUT, "reading the run record '%s': %s; try again, or read a copy",
                       path, sqlite3_errmsg(r->db));
    return kl_fail(error, KILTER_ERR_INPUT, "reading the run record '%s': it is damaged or cut (%s)", path,
                   r->db ? sqlite3_errmsg(r->db) : "cannot be opened");
}

/* Records of format 1 kept the moves of a loop in a table of their own. A view of this connection shows their
 * decisions as those of today. */
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
        return no_record(path, "it is an SQLite file, but not a run record", error);
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

/* SQLite reads what is missing of the last page as zeros. In a log, that page may be whole. */
static kilter_status check_last_page(const kl_reading *r, const char *path, kilter_error *error) {
    struct stat info;
    int64_t page_bytes = pragma(r->db, "PRAGMA page_size");
    if (page_bytes > 0 && stat(path, &info) == 0 && info.st_size % page_bytes != 0 && !has_log(path))
        return no_record(path, "it is damaged or cut (its last page is not whole)", error);
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
    char *copy = strndup(text ? text : "", TEXT_BYTES_MAX);
    r->memory |= !copy;
    return copy;
}

char *kl_text_or_null(kl_reading *r, sqlite3_stmt *row, int column) {
    return sqlite3_column_type(row, column) == SQLITE_NULL ? NULL : kl_text_at(r, row, column);
}

void *kl_grown(kl_reading *r, void *items, size_t count, size_t size) {
    if ((count & (count - 1)) != 0) /* not full: it is at 0, 1, 2, 4, … */
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

/* ---- rows ---- */

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

static int by_run(const void *key, const void *item) {
    uint64_t run = *(const uint64_t *)key, other = ((const kl_report_iteration *)item)->run;
    return (run > other) - (run < other);
}

static kl_report_iteration *iteration_of(const kl_report *report, uint64_t run) {
    if (report->iteration_count == 0)
        return NULL;
    return bsearch(&run, report->iterations, report->iteration_count, sizeof *report->iterations, by_run);
}

/* Columns: run, worker, tasks, chunks, failed, lost, units, busy_s, Σ busy²/units, last ended_s,
 * bytes out and in, chunks of which something was done.
 * With chunk i of u_i units in b_i seconds, and m = Σb/Σu, the variance of a single unit is estimated by
 * Σ u_i (b_i/u_i − m)² / (k − 1) = (Σ b_i²/u_i − (Σb)²/Σu) / (k − 1). */
static void take_share(kl_reading *r, sqlite3_stmt *row) {
    kl_report_iteration *it = iteration_of(r->report, kl_count_at(row, 0));
    if (!it)
        return; /* its own row was dropped */
    kl_report_share *share;
    KL_APPEND(r, it->shares, it->share_count, share);
    if (!share)
        return;
    double units = kl_record_real(row, 6), busy_s = kl_record_real(row, 7);
    uint64_t tasks = kl_count_at(row, 2), chunks = kl_count_at(row, 12);
    double spread = kl_record_real(row, 8) - busy_s * busy_s / units;
    *share = (kl_report_share){
        .worker = (uint32_t)sqlite3_column_int64(row, 1),
        .tasks = tasks,
        .chunks = kl_count_at(row, 3),
        .failed = kl_count_at(row, 4),
        .lost_chunks = kl_count_at(row, 5),
        .units = units,
        .busy_s = busy_s,
        .task_s = tasks ? busy_s / (double)tasks : (double)NAN,
        .unit_s = units > 0 ? busy_s / units : (double)NAN,
        .unit_sd = chunks > 1 && units > 0 ? sqrt(fmax(spread, 0) / (double)(chunks - 1)) : (double)NAN};
    it->tasks_done += tasks;
    it->bytes_out += kl_record_real(row, 10);
    it->bytes_in += kl_record_real(row, 11);
    double ended_s = kl_record_real(row, 9);
    if (!it->ended && !(it->elapsed_s >= ended_s - it->began_s))
        it->elapsed_s = ended_s - it->began_s;
}

/* Columns: at_s, worker, sd. In order of time: the last one within an iteration stands. */
static void take_spread(kl_reading *r, sqlite3_stmt *row) {
    double at_s = kl_record_real(row, 0), sd = kl_record_real(row, 2);
    uint32_t worker = (uint32_t)sqlite3_column_int64(row, 1);
    kl_report_iteration *its = r->report->iterations;
    size_t low = 0, high = r->report->iteration_count; /* the last that began before */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (its[middle].began_s <= at_s)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = 0; low > 0 && i < its[low - 1].share_count; i++)
        if (its[low - 1].shares[i].worker == worker)
            its[low - 1].shares[i].unit_sd = sd;
}

static void take_forecasts(kl_reading *r, sqlite3_stmt *row) {
    const char *kind = (const char *)sqlite3_column_text(row, 0);
    for (size_t i = 0; kind && i < r->report->decision_count; i++) {
        kl_report_decision *d = &r->report->decisions[i];
        if (strncmp(d->kind, kind, TEXT_BYTES_MAX) != 0)
            continue;
        d->forecasts = kl_count_at(row, 1);
        d->late_s = kl_record_real(row, 2);
        d->missed_s = kl_record_real(row, 3);
    }
}

static const struct {
    const char *sql;
    kl_row_fn take;
} queries[] = {
    {"SELECT run, worker, sum(hi - lo), sum(NOT lost), sum(failed), sum(lost <> 0), total(units), "
     "total(busy_s), total(iif(units > 0, busy_s * busy_s / units, 0)), max(ended_s), total(bytes_out), "
     "total(bytes_in), sum(units > 0) "
     "FROM chunk GROUP BY run, worker ORDER BY run, worker",
     take_share},
    {"SELECT at_s, worker, sd FROM measurement WHERE kind = 'unit_s' AND worker IS NOT NULL AND count > 1 "
     "AND sd IS NOT NULL ORDER BY at_s, id",
     take_spread},
    {"SELECT d.kind, count(*), avg(c.ended_s - d.forecast_s), avg(abs(c.ended_s - d.forecast_s)) "
     "FROM decision d JOIN chunk c ON c.run = d.run AND c.chunk = d.chunk AND NOT c.lost "
     "WHERE d.forecast_s IS NOT NULL AND c.ended_s IS NOT NULL GROUP BY d.kind",
     take_forecasts},
    {"SELECT d.kind, count(*), avg(i.ended_s - d.forecast_s), avg(abs(i.ended_s - d.forecast_s)) "
     "FROM decision d JOIN iteration i USING (run) "
     "WHERE d.kind IN ('workers', 'assign', 'grain') AND d.forecast_s IS NOT NULL AND i.ended_s IS NOT NULL "
     "GROUP BY d.kind",
     take_forecasts},
    {"WITH p AS (SELECT kind, forecast_s, run, lead(run) OVER (ORDER BY run) AS next FROM decision "
     "WHERE kind = 'program'), came AS (SELECT p.kind, max(i.ended_s) - p.forecast_s AS late_s FROM p "
     "JOIN iteration i ON i.run >= p.run AND (i.run < p.next OR p.next IS NULL) "
     "WHERE p.next IS NOT NULL OR (SELECT ended_s FROM run) IS NOT NULL "
     "GROUP BY p.run HAVING count(*) = count(i.ended_s)) "
     "SELECT kind, count(*), avg(late_s), avg(abs(late_s)) FROM came GROUP BY kind",
     take_forecasts},
};

/* ---- what follows from the rows ---- */

static int by_worker(const void *a, const void *b) {
    uint32_t x = ((const kl_report_share *)a)->worker, y = ((const kl_report_share *)b)->worker;
    return (x > y) - (x < y);
}

/* Was it there while the iteration went on? */
static bool was_present(const kl_report_worker *w, const kl_report_iteration *it) {
    return !(w->left_s <= it->began_s) && !(w->joined_s > it->began_s + it->elapsed_s);
}

/* Workers that were given nothing get a row as well: that is what the reader looks for. */
static void add_idle(kl_reading *r, kl_report_iteration *it) {
    size_t busy = it->share_count, at = 0;
    for (size_t i = 0; i < r->report->worker_count; i++) {
        const kl_report_worker *w = &r->report->workers[i];
        while (at < busy && it->shares[at].worker < w->worker)
            at++;
        if ((at < busy && it->shares[at].worker == w->worker) || !was_present(w, it))
            continue;
        kl_report_share *share;
        KL_APPEND(r, it->shares, it->share_count, share);
        if (!share)
            return;
        *share = (kl_report_share){
            .worker = w->worker, .task_s = (double)NAN, .unit_s = (double)NAN, .unit_sd = (double)NAN};
    }
    if (it->share_count > busy)
        qsort(it->shares, it->share_count, sizeof *it->shares, by_worker);
}

static void derive_shares(kl_report_iteration *it) {
    double fastest = 0; /* units per busy second */
    for (size_t i = 0; i < it->share_count; i++)
        if (it->shares[i].busy_s > 0)
            fastest = fmax(fastest, it->shares[i].units / it->shares[i].busy_s);
    for (size_t i = 0; i < it->share_count; i++) {
        kl_report_share *s = &it->shares[i];
        s->task_share = it->tasks_done ? (double)s->tasks / (double)it->tasks_done : (double)NAN;
        s->busy_share = it->elapsed_s > 0 ? s->busy_s / it->elapsed_s : (double)NAN;
        s->speed_relative = s->busy_s > 0 && fastest > 0 ? s->units / s->busy_s / fastest : (double)NAN;
    }
}

static void derive(kl_reading *r) {
    for (size_t i = 0; i < r->report->iteration_count; i++) {
        kl_report_iteration *it = &r->report->iterations[i];
        add_idle(r, it);
        bool done = it->ended && it->bound_s > 0;
        it->efficiency = done && it->elapsed_s > 0 ? it->bound_s / it->elapsed_s : (double)NAN;
        it->equal_split_efficiency =
            done && it->equal_split_s > 0 ? it->bound_s / it->equal_split_s : (double)NAN;
        for (size_t k = 0; !it->ended && k < it->share_count; k++) {
            it->failed += it->shares[k].failed;
            it->chunks += it->shares[k].chunks;
            it->workers += it->shares[k].tasks > 0;
        }
        derive_shares(it);
    }
}

static void read_rows(kl_reading *r) {
    kl_report *p = r->report;
    p->workers = kl_rows_read(r, &kl_worker_rows, p->workers, &p->worker_count);
    p->iterations = kl_rows_read(r, &kl_iteration_rows, p->iterations, &p->iteration_count);
    p->decisions = kl_rows_read(r, &kl_decision_rows, p->decisions, &p->decision_count);
    p->decided = kl_rows_read(r, &kl_decided_rows, p->decided, &p->decided_count);
    p->measurements = kl_rows_read(r, &kl_measurement_rows, p->measurements, &p->measurement_count);
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        kl_each_row(r, queries[i].sql, queries[i].take);
    if (!r->failed && kl_has_table(r, "loop"))
        kl_loop_read(r);
}

/* Records of earlier versions have no sessions. */
static void read_run(kl_reading *r) {
    kl_report *p = r->report;
    kl_row_read(r, &kl_run_rows, &p->run);
    if (!r->failed && kl_has_table(r, "session"))
        p->sessions = kl_rows_read(r, &kl_session_rows, p->sessions, &p->session_count);
}

static kilter_status read_all(kl_reading *r, const char *path, bool run_only, kilter_error *error) {
    kilter_status status = kl_reading_open(r, path, error);
    if (status != KILTER_OK)
        return status;
    read_run(r);
    if (!run_only)
        read_rows(r);
    if (!r->failed && !r->report->run.program)
        return no_record(path, "it is damaged (no run in it)", error);
    if (!r->failed)
        derive(r);
    return r->failed || r->memory ? kl_reading_failed(r, path, error) : KILTER_OK;
}

static kilter_status read_record(const char *path, bool run_only, kl_report **report, kilter_error *error) {
    kl_reading r = {.report = calloc(1, sizeof(kl_report))};
    if (r.report)
        r.report->path = strdup(path);
    r.memory = !r.report || !r.report->path;
    kilter_status status =
        r.memory ? kl_reading_failed(&r, path, error) : read_all(&r, path, run_only, error);
    sqlite3_close(r.db);
    if (status != KILTER_OK) {
        kl_report_free(r.report);
        return status;
    }
    *report = r.report;
    return KILTER_OK;
}

kilter_status kl_report_read(const char *path, kl_report **report, kilter_error *error) {
    return read_record(path, false, report, error);
}

kilter_status kl_report_read_run(const char *path, kl_report **report, kilter_error *error) {
    return read_record(path, true, report, error);
}

/* ---- freeing ---- */

void kl_report_free(kl_report *report) {
    if (!report)
        return;
    free(report->path);
    kl_row_free(&kl_run_rows, &report->run);
    for (size_t i = 0; i < report->iteration_count; i++)
        free(report->iterations[i].shares);
    kl_rows_free(&kl_session_rows, report->sessions, report->session_count);
    kl_rows_free(&kl_worker_rows, report->workers, report->worker_count);
    kl_rows_free(&kl_iteration_rows, report->iterations, report->iteration_count);
    kl_rows_free(&kl_decision_rows, report->decisions, report->decision_count);
    kl_rows_free(&kl_decided_rows, report->decided, report->decided_count);
    kl_rows_free(&kl_measurement_rows, report->measurements, report->measurement_count);
    kl_loop_report_free(report->loop);
    free(report);
}

const kl_report_decided *kl_report_next_decided(const kl_report *report, const char *kind, size_t from) {
    for (size_t i = from; i < report->decided_count; i++)
        if (strcmp(report->decided[i].kind, kind) == 0)
            return &report->decided[i];
    return NULL;
}

double kl_report_measured(const kl_report *report, const char *kind) {
    for (size_t i = 0; i < report->measurement_count; i++)
        if (report->measurements[i].worker < 0 && strcmp(report->measurements[i].kind, kind) == 0)
            return report->measurements[i].value;
    return NAN;
}
