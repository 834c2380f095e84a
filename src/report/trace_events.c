/* Write a record as trace events: one process, and a thread for each worker. The format is "Trace Event
 * Format", the JSON that chrome://tracing and Perfetto read. Times are in microseconds. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "report/print.h"
#include "report/reading.h"
#include "report/report.h"

enum { FARM_THREAD = 0 }; /* thread number of the farm itself; worker w has thread number w + 1 */

typedef struct events {
    kl_reading r;
    kl_json j;
} events;

typedef void (*put_fn)(events *e, sqlite3_stmt *row);

/* Begin an event. The caller adds the last member, "args", and closes the event. */
static void open_event(events *e, const char *phase, const char *name, double at_s, uint64_t thread) {
    kl_json *j = &e->j;
    kl_json_open(j, NULL, '{');
    kl_json_text(j, "ph", phase);
    kl_json_text(j, "name", name);
    kl_json_count(j, "pid", 1);
    kl_json_count(j, "tid", thread);
    kl_json_number(j, "ts", isfinite(at_s) ? 1e6 * at_s : 0);
    if (*phase == 'i')
        kl_json_text(j, "s",
                     thread == FARM_THREAD ? "p"
                                           : "t"); /* scope of the mark: the whole process, or one thread */
}

static void open_args(events *e) {
    kl_json_open(&e->j, "args", '{');
}

static void close_event(events *e) {
    kl_json_close(&e->j, '}');
    kl_json_close(&e->j, '}');
}

static void put_name(events *e, const char *what, uint64_t thread, const char *name) {
    open_event(e, "M", what, 0, thread);
    open_args(e);
    kl_json_text(&e->j, "name", name);
    close_event(e);
}

static void put_names(events *e) {
    const kl_report *report = e->r.report;
    put_name(e, "process_name", FARM_THREAD, report->run.program);
    put_name(e, "thread_name", FARM_THREAD, "decisions");
    for (size_t i = 0; i < report->worker_count; i++) {
        const kl_report_worker *w = &report->workers[i];
        char name[256];
        snprintf(name, sizeof name, "%s %" PRIu32 "%s%s", report->loop ? "rank" : "worker", w->worker,
                 *w->host ? " on " : "", w->host);
        put_name(e, "thread_name", (uint64_t)w->worker + 1, name);
    }
}

/* Columns: worker, run, lo, hi, began_s, ended_s, busy_s, units, failed, lost. */
static void put_chunk(events *e, sqlite3_stmt *row) {
    char name[64];
    uint64_t lo = kl_count_at(row, 2), hi = kl_count_at(row, 3);
    double began_s = kl_record_real(row, 4), ended_s = kl_record_real(row, 5);
    snprintf(name, sizeof name, "tasks %" PRIu64 "-%" PRIu64, lo, hi > lo ? hi - 1 : lo);
    open_event(e, "X", name, began_s, kl_count_at(row, 0) + 1);
    kl_json_text(&e->j, "cat", sqlite3_column_int(row, 9) ? "lost" : "chunk");
    kl_json_number(&e->j, "dur", ended_s > began_s ? 1e6 * (ended_s - began_s) : 0);
    open_args(e);
    kl_json_count(&e->j, "run", kl_count_at(row, 1));
    kl_json_count(&e->j, "tasks", hi > lo ? hi - lo : 0);
    kl_json_number(&e->j, "busy_s", kl_record_real(row, 6));
    kl_json_number(&e->j, "units", kl_record_real(row, 7));
    kl_json_count(&e->j, "failed", kl_count_at(row, 8));
    close_event(e);
}

/* Columns: at_s, subject, kind, count, forecast_s, gain_s, cost_s, came_s, reason. */
static void put_decision(events *e, sqlite3_stmt *row) {
    static const char *const numbers[] = {"count", "forecast_s", "gain_s", "cost_s", "came_s"};
    bool whole = sqlite3_column_type(row, 1) == SQLITE_NULL;
    open_event(e, "i", (const char *)sqlite3_column_text(row, 2), kl_record_real(row, 0),
               whole ? FARM_THREAD : kl_count_at(row, 1) + 1);
    kl_json_text(&e->j, "cat", "decision");
    open_args(e);
    for (int i = 0; i < 5; i++)
        kl_json_number(&e->j, numbers[i], kl_record_real(row, 3 + i));
    kl_json_text(&e->j, "reason", (const char *)sqlite3_column_text(row, 8));
    close_event(e);
}

/* Columns: at_s, worker, task, attempt, text. */
static void put_failure(events *e, sqlite3_stmt *row) {
    char name[64];
    snprintf(name, sizeof name, "task %" PRIu64 " failed", kl_count_at(row, 2));
    open_event(e, "i", name, kl_record_real(row, 0), kl_count_at(row, 1) + 1);
    kl_json_text(&e->j, "cat", "failure");
    open_args(e);
    kl_json_count(&e->j, "attempt", kl_count_at(row, 3));
    kl_json_text(&e->j, "text", (const char *)sqlite3_column_text(row, 4));
    close_event(e);
}

/* Show the share of a rank in a round as values over time. A bar is not possible: the record says how long a
 * rank computed in a round, but not when. Columns: at_s, rank, iterations, iterations per second, computing
 * [part of the time]. */
static void put_share(events *e, sqlite3_stmt *row) {
    static const char *const values[] = {"iterations", "iterations/s", "computing"};
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s, rank %" PRIu64, values[i], kl_count_at(row, 1));
        open_event(e, "C", name, kl_record_real(row, 0), FARM_THREAD);
        open_args(e);
        kl_json_number(&e->j, values[i], kl_record_real(row, 2 + i));
        close_event(e);
    }
}

static void put_rows(events *e, const char *table, const char *sql, put_fn put) {
    sqlite3_stmt *statement = NULL;
    int step = SQLITE_ERROR;
    if (e->r.failed || !kl_has_table(&e->r, table))
        return;
    if (sqlite3_prepare_v2(e->r.db, sql, -1, &statement, NULL) == SQLITE_OK)
        while ((step = sqlite3_step(statement)) == SQLITE_ROW)
            put(e, statement);
    e->r.failed |= step != SQLITE_DONE;
    sqlite3_finalize(statement);
}

static void put_all(events *e) {
    kl_json_open(&e->j, NULL, '{');
    kl_json_text(&e->j, "displayTimeUnit", "ms");
    kl_json_open(&e->j, "traceEvents", '[');
    put_names(e);
    put_rows(e, "chunk",
             "SELECT worker, run, lo, hi, began_s, ended_s, busy_s, units, failed, lost FROM chunk "
             "WHERE began_s IS NOT NULL ORDER BY began_s, id",
             put_chunk);
    put_rows(e, "share",
             "SELECT r.at_s, s.rank, s.count, s.rate_per_s, s.busy_s / (r.at_s - "
             "coalesce(lag(r.at_s) OVER (PARTITION BY s.rank ORDER BY r.at_s), 0)) "
             "FROM share s JOIN round r USING (round) ORDER BY r.at_s, s.rank",
             put_share);
    put_rows(e, "decision",
             "SELECT at_s, subject, kind, count, forecast_s, gain_s, cost_s, came_s, reason FROM decision "
             "ORDER BY id",
             put_decision);
    put_rows(e, "failure", "SELECT at_s, worker, task, attempt, text FROM failure ORDER BY id", put_failure);
    kl_json_close(&e->j, ']');
    kl_json_close(&e->j, '}');
    fputc('\n', e->j.out);
}

kilter_status kl_trace_events_write(const char *path, FILE *out, kilter_error *error) {
    events e = {.j = {.out = out, .first = true}};
    kilter_status status = kl_reading_report(&e.r, path, false, error);
    if (status == KILTER_OK)
        put_all(&e);
    if (status == KILTER_OK && e.r.failed)
        status = kl_reading_failed(&e.r, path, error);
    sqlite3_close(e.r.db);
    kl_report_free(e.r.report);
    return status;
}
