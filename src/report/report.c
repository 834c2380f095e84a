/* Read a run record into a kl_report. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/fields.h"

static int by_run(const void *key, const void *item) {
    uint64_t run = *(const uint64_t *)key, other = ((const kl_report_iteration *)item)->run;
    return (run > other) - (run < other);
}

static kl_report_iteration *iteration_of(const kl_report *report, uint64_t run) {
    if (report->iteration_count == 0)
        return NULL;
    return bsearch(&run, report->iterations, report->iteration_count, sizeof *report->iterations, by_run);
}

/* Take a row of a query with these columns: run, worker, tasks, chunks, failed, lost, units, busy_s, Σ
 * busy²/units, last ended_s, bytes out, bytes in, k. Here k is the number of chunks with at least one done
 * task. Chunk i has u_i units and takes b_i seconds; the mean time of a unit is m = Σb/Σu. The variance of
 * the time of one unit is estimated: Σ u_i (b_i/u_i − m)² / (k − 1) = (Σ b_i²/u_i − (Σb)²/Σu) / (k − 1). */
static void take_share(kl_reading *r, sqlite3_stmt *row) {
    kl_report_iteration *it = iteration_of(r->report, kl_count_at(row, 0));
    if (!it)
        return; /* the record has no row for this run */
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

/* Take a row of a query with the columns at_s, worker, sd (standard deviation). Rows are sorted by time, and
 * the last value in each run counts. */
static void take_spread(kl_reading *r, sqlite3_stmt *row) {
    double at_s = kl_record_real(row, 0), sd = kl_record_real(row, 2);
    uint32_t worker = (uint32_t)sqlite3_column_int64(row, 1);
    kl_report_iteration *its = r->report->iterations;
    size_t low = 0,
           high = r->report->iteration_count; /* search for the last run that began at this time or before */
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
        if (strncmp(d->kind, kind, KL_RECORD_TEXT_BYTES) != 0)
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
     "WHERE d.kind IN ('workers', 'assign', 'grain', 'organise') AND d.forecast_s IS NOT NULL AND i.ended_s "
     "IS NOT NULL "
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

/* ---- values that are computed from the rows ---- */

static int by_worker(const void *a, const void *b) {
    uint32_t x = ((const kl_report_share *)a)->worker, y = ((const kl_report_share *)b)->worker;
    return (x > y) - (x < y);
}

/* Add a row for each worker that did no task, because people look for it in the report. */
static void add_idle(kl_reading *r, kl_report_iteration *it) {
    size_t busy = it->share_count, at = 0;
    for (size_t i = 0; i < r->report->worker_count; i++) {
        const kl_report_worker *w = &r->report->workers[i];
        while (at < busy && it->shares[at].worker < w->worker)
            at++;
        bool was_away = w->left_s <= it->began_s || w->joined_s > it->began_s + it->elapsed_s;
        if ((at < busy && it->shares[at].worker == w->worker) || was_away)
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
    double fastest = 0; /* units per busy second of the fastest worker so far */
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
    if (!r->failed && kl_has_table(r, "watched"))
        kl_watched_read(r);
}

kilter_status kl_reading_report(kl_reading *r, const char *path, bool run_only, kilter_error *error) {
    r->report = calloc(1, sizeof *r->report);
    if (r->report)
        r->report->path = strdup(path);
    r->memory = !r->report || !r->report->path;
    kilter_status status = r->memory ? kl_reading_failed(r, path, error) : kl_reading_open(r, path, error);
    kl_report *p = r->report;
    if (status != KILTER_OK || !p)
        return status;
    /* records of earlier versions have no table of sessions */
    kl_row_read(r, &kl_run_rows, &p->run);
    if (!r->failed && kl_has_table(r, "session"))
        p->sessions = kl_rows_read(r, &kl_session_rows, p->sessions, &p->session_count);
    if (!run_only)
        read_rows(r);
    if (!r->failed && !r->report->run.program)
        return kl_no_record(path, "it is damaged (no run in it)", error);
    if (!r->failed)
        derive(r);
    return r->failed || r->memory ? kl_reading_failed(r, path, error) : KILTER_OK;
}

static kilter_status read_record(const char *path, bool run_only, kl_report **report, kilter_error *error) {
    kl_reading r = {0};
    kilter_status status = kl_reading_report(&r, path, run_only, error);
    sqlite3_close(r.db);
    if (status == KILTER_OK)
        *report = r.report;
    else
        kl_report_free(r.report);
    return status;
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
    kl_watched_report_free(report->watched);
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
