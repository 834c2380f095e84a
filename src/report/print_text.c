/* Print the report as text, for people. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "report/loop_print.h"
#include "report/print.h"
#include "report/report.h"
#include "report/text.h"
#include "report/watched.h"

enum {
    LIST_ALL = 12, /* lists of earlier runs, of workers that left, and of decisions about jobs are printed
                      whole up to this length */
    LIST_FIRST = 3,
    LIST_LAST = 6
};

/* ---- the table of workers ---- */

typedef struct shares {
    const kl_report *report;
    const kl_report_iteration *it;
    kl_report_share all;
} shares;

static shares shares_of(const kl_report *report, const kl_report_iteration *it) {
    shares s = {.report = report, .it = it};
    for (size_t i = 0; i < it->share_count; i++) {
        s.all.chunks += it->shares[i].chunks;
        s.all.failed += it->shares[i].failed;
        s.all.lost_chunks += it->shares[i].lost_chunks;
        s.all.busy_s += it->shares[i].busy_s;
    }
    s.all.tasks = it->tasks_done;
    s.all.task_share = 1;
    s.all.busy_share =
        it->elapsed_s > 0 ? s.all.busy_s / it->elapsed_s / (double)it->share_count : (double)NAN;
    return s;
}

/* Return whether this row, which follows the workers, has the sums. */
static bool is_sum(const shares *s, size_t row) {
    return row == s->it->share_count;
}

static const void *share_at(const void *context, size_t row) {
    const shares *s = context;
    return is_sum(s, row) ? &s->all : &s->it->shares[row];
}

static const kl_report_worker *worker_at(const shares *s, size_t row) {
    for (size_t i = 0; !is_sum(s, row) && i < s->report->worker_count; i++)
        if (s->report->workers[i].worker == s->it->shares[row].worker)
            return &s->report->workers[i];
    return NULL;
}

static void cell_worker(const void *context, size_t row, char *cell) {
    const shares *s = context;
    if (is_sum(s, row))
        kl_cell(cell, "all");
    else
        kl_cell(cell, "%" PRIu32, s->it->shares[row].worker);
}

static void cell_host(const void *context, size_t row, char *cell) {
    const kl_report_worker *worker = worker_at(context, row);
    kl_printable(cell, KL_CELL_BYTES, worker ? worker->host : "", KL_CELL_COLUMNS);
}

static void cell_binding(const void *context, size_t row, char *cell) {
    const kl_report_worker *worker = worker_at(context, row);
    kl_printable(cell, KL_CELL_BYTES, worker ? worker->binding : "", KL_CELL_COLUMNS);
}

static void print_shares(const kl_report *report, const kl_report_iteration *it, FILE *out) {
    bool weighted = it->units != (double)it->tasks;
    const kl_row_column columns[] = {
        {.column = {"worker", false, cell_worker}},
        {.column = {"host", true, cell_host}},
        {.column = {"bound to", true, cell_binding}},
        KL_SHOW("tasks", COUNT, kl_report_share, tasks),
        KL_SHOW_REAL("share %", REAL, kl_report_share, task_share, 1, 100),
        KL_SHOW("chunks", COUNT, kl_report_share, chunks),
        KL_SHOW("failed", ANY, kl_report_share, failed),
        KL_SHOW("lost", ANY, kl_report_share, lost_chunks),
        KL_SHOW_REAL("busy s", REAL, kl_report_share, busy_s, 3, 1),
        KL_SHOW_REAL("busy %", REAL, kl_report_share, busy_share, 1, 100),
        KL_SHOW_OWN("speed", REAL, kl_report_share, speed_relative, 2, 1),
        KL_SHOW_OWN(weighted ? "ms/unit" : "ms/task", DIGITS, kl_report_share, unit_s, 0, 1e3),
        KL_SHOW_OWN("± σ", DIGITS, kl_report_share, unit_sd, 0, 1e3)};
    shares s = shares_of(report, it);
    kl_print_rows(out, columns, sizeof columns / sizeof *columns, share_at, &s, it->share_count + 1);
}

/* ---- iterations ---- */

/* The table of earlier runs. If there are many, it has the first and last few with a gap between them. */
typedef struct earlier {
    const kl_report *report;
    size_t count; /* number of earlier runs */
} earlier;

/* Return the earlier run in this row of the table; NULL: the row is the gap. */
static const void *earlier_at(const void *context, size_t row) {
    const earlier *e = context;
    if (e->count > LIST_ALL && row >= LIST_FIRST) {
        if (row == LIST_FIRST)
            return NULL;
        row = e->count - LIST_LAST + (row - LIST_FIRST - 1);
    }
    return &e->report->iterations[row];
}

static void cell_run(const void *context, size_t row, char *cell) {
    const kl_report_iteration *it = earlier_at(context, row);
    if (it)
        kl_cell(cell, "%" PRIu64, it->run);
    else
        kl_cell(cell, "…");
}

static void cell_status(const void *context, size_t row, char *cell) {
    const kl_report_iteration *it = earlier_at(context, row);
    const char *status = !it ? "" : !it->ended ? "did not end" : it->status ? it->status : "";
    kl_printable(cell, KL_CELL_BYTES, status, KL_CELL_COLUMNS);
}

static void print_earlier(const kl_report *report, FILE *out) {
    static const kl_row_column columns[] = {
        {.column = {"run", false, cell_run}},
        KL_SHOW("tasks", COUNT, kl_report_iteration, tasks),
        KL_SHOW("workers", NUMBER, kl_report_iteration, workers),
        KL_SHOW("chunks", COUNT, kl_report_iteration, chunks),
        KL_SHOW("failed", COUNT, kl_report_iteration, failed),
        KL_SHOW_REAL("elapsed s", REAL, kl_report_iteration, elapsed_s, 3, 1),
        KL_SHOW_REAL("bound s", REAL, kl_report_iteration, bound_s, 3, 1),
        KL_SHOW_REAL("efficiency %", REAL, kl_report_iteration, efficiency, 1, 100),
        {.column = {"status", true, cell_status}}};
    earlier e = {.report = report, .count = report->iteration_count - 1};
    if (e.count == 0)
        return;
    fputc('\n', out);
    kl_print_rows(out, columns, sizeof columns / sizeof *columns, earlier_at, &e,
                  e.count <= LIST_ALL ? e.count : LIST_FIRST + 1 + LIST_LAST);
}

static void print_outcome(const kl_report_iteration *it, FILE *out) {
    if (!isnan(it->efficiency))
        kl_say(out, "efficiency",
               "%s of the bound, which is %s: every worker computes all the time at its real speed",
               kl_percent(it->efficiency).text, kl_time_words(it->bound_s).text);
    if (it->failed > 0)
        kl_say(out, "failed", "%" PRIu64 " task%s", it->failed, kl_plural(it->failed));
    if (it->status && *it->status && strcmp(it->status, "done") != 0)
        kl_say(out, "status", "%s", it->status);
    if (it->decision && *it->decision)
        kl_say(out, "decision", "%s", it->decision);
}

static void print_last(const kl_report *report, FILE *out) {
    if (report->iteration_count == 0)
        return;
    const kl_report_iteration *it = &report->iterations[report->iteration_count - 1];
    fputc('\n', out);
    if (it->ended)
        kl_say(out, "run", "%" PRIu64 ": %" PRIu64 " task%s in %s, %" PRIu64 " chunk%s, policy %s", it->run,
               it->tasks, kl_plural(it->tasks), kl_time_words(it->elapsed_s).text, it->chunks,
               kl_plural(it->chunks), it->policy);
    else
        kl_say(out, "run", "%llu: did not end; %llu of %llu task%s done, policy %s", kl_ull(it->run),
               kl_ull(it->tasks_done), kl_ull(it->tasks), kl_plural(it->tasks), it->policy);
    if (it->stored > 0)
        kl_say(out, "", "%llu further task%s were done by an earlier master", kl_ull(it->stored),
               kl_plural(it->stored));
    fputc('\n', out);
    if (it->share_count > 0) {
        print_shares(report, it, out);
        fputc('\n', out);
    }
    print_outcome(it, out);
}

/* ---- other parts of the report ---- */

static kl_words date_of(double unix_s) {
    kl_words w;
    time_t seconds = unix_s >= 0 && unix_s < 1e11 ? (time_t)unix_s : 0;
    struct tm local;
    if (seconds == 0 || !localtime_r(&seconds, &local) ||
        strftime(w.text, sizeof w.text, "%Y-%m-%d %H:%M:%S %z", &local) == 0)
        snprintf(w.text, sizeof w.text, "an unknown time");
    return w;
}

static void print_header(const kl_report *report, FILE *out) {
    const kl_report_run *run = &report->run;
    kl_say(out, "program", "%s, pid %" PRId64 " on %s, kilter %s", run->program, run->pid, run->host,
           run->version);
    if (run->ended)
        kl_say(out, "began", "%s, ended after %s", date_of(run->began_unix_s).text,
               kl_time_words(run->ended_s).text);
    else
        kl_say(out, "began", "%s; the run did not end (still running or killed)",
               date_of(run->began_unix_s).text);
    if (report->session_count > 1)
        kl_say(out, "masters", "%zu in succession; the last one began after %s", report->session_count,
               kl_time_words(report->sessions[report->session_count - 1].began_s).text);
    if (report->loop)
        kl_loop_print_what(report, out);
    else if (report->watched)
        kl_watched_print_what(report->watched, out);
    else
        kl_say(out, "dealt by", "%s over %s", run->policy, run->transport);
    kl_say(out, "record", "%s", report->path);
    if (run->dropped_rows > 0)
        kl_say(out, "", "incomplete: %llu row%s could not be written", kl_ull(run->dropped_rows),
               kl_plural(run->dropped_rows));
}

static void print_left(const kl_report *report, FILE *out) {
    size_t listed = 0, left = 0;
    for (size_t i = 0; i < report->worker_count; i++) {
        const kl_report_worker *w = &report->workers[i];
        if (!w->why)
            continue;
        if (++left <= LIST_ALL)
            kl_say(out, listed++ ? "" : "left", "%s %" PRIu32 " (%s) at %s: %s",
                   report->loop || report->watched ? "rank" : "worker", w->worker, w->host,
                   kl_time_words(w->left_s).text, *w->why ? w->why : "no reason given");
    }
    if (left > listed)
        kl_say(out, "", "and %zu more", left - listed);
}

/* For each kind of decision: how the report prints it. */
static const struct how {
    const char *kind, *label, *of; /* label: first word of the line, NULL: the decision is printed elsewhere;
                                      of: what the forecast is about, NULL: such decisions have no forecast */
    bool counted; /* true: print how many decisions of this kind there were, and when the last one was made */
} hows[] = {
    {"workers", "workers", "run", false},
    {"assign", "assign", "run", false},
    {"grain", "grain", "run", false},
    {"program", "program", "program", false},
    {"organise", "organised", "run", false},
    {"wait", "refusals", NULL, true},
    {"rest", "rests", NULL, true},
    {"refused", "no memory", NULL, true},
    {"block", "blocks", NULL, true},
    {"save", NULL, NULL, false},
    {"pin", NULL, NULL, false},
};

static const struct how *how_of(const kl_report_decision *d) {
    for (size_t i = 0; i < sizeof hows / sizeof *hows; i++)
        if (strcmp(d->kind, hows[i].kind) == 0)
            return &hows[i];
    return NULL;
}

static void print_decision(const kl_report_decision *d, FILE *out) {
    const struct how *how = how_of(d);
    const char *of = how ? how->of : "chunk";
    const char *reason = d->last_reason ? d->last_reason : "";
    if (how && how->counted)
        kl_say(out, how->label, "%llu, the last one at %s%s%s", kl_ull(d->decisions),
               kl_time_words(d->last_s).text, *reason ? ": " : "", reason);
    else if (how && how->label)
        kl_say(out, how->label, "%s", reason);
    if (of && d->forecasts > 0)
        kl_say(out, "forecasts", "%llu %s%s: off by %s on average, ended %s %s", kl_ull(d->forecasts), of,
               kl_plural(d->forecasts), kl_time_words(d->missed_s).text, kl_time_words(fabs(d->late_s)).text,
               d->late_s < 0 ? "early" : "late");
}

static void print_decisions(const kl_report *report, FILE *out) {
    char list[512] = "";
    for (size_t i = 0; i < report->decision_count; i++) {
        size_t at = strlen(list);
        snprintf(list + at, sizeof list - at, "%s%" PRIu64 " %.40s", i ? ", " : "",
                 report->decisions[i].decisions, report->decisions[i].kind);
    }
    if (*list)
        kl_say(out, "decisions", "%s", list);
    for (size_t i = 0; i < report->decision_count; i++)
        print_decision(&report->decisions[i], out);
}

static bool is_about_jobs(const kl_report_decided *d) {
    return strcmp(d->kind, "grow") == 0 || strcmp(d->kind, "shrink") == 0 ||
           strcmp(d->kind, "exclude") == 0 || strcmp(d->kind, "give-up") == 0;
}

/* Print the decisions of `kilter run --slurm` about jobs of the farm. If there are many, only the last ones
 * are printed. */
static void print_jobs(const kl_report *report, FILE *out) {
    size_t all = 0, at = 0;
    for (size_t i = 0; i < report->decided_count; i++)
        all += is_about_jobs(&report->decided[i]);
    for (size_t i = 0; i < report->decided_count; i++) {
        const kl_report_decided *d = &report->decided[i];
        if (is_about_jobs(d) && at++ + LIST_ALL >= all)
            kl_say(out, d->kind, "at %s: %s", kl_time_words(d->at_s).text, d->reason);
    }
    if (all > LIST_ALL)
        kl_say(out, "", "and %zu before", all - LIST_ALL);
}

static void print_messages(const kl_report *report, FILE *out) {
    double fixed_s = kl_report_measured(report, "message_fixed_s");
    double per_byte_s = kl_report_measured(report, "message_per_byte_s");
    double round_trip_s = kl_report_measured(report, "round_trip_s"),
           answer_s = kl_report_measured(report, "answer_s");
    char text[256] = "";
    if (!isnan(fixed_s))
        snprintf(text, sizeof text, "%s + %s a byte", kl_time_words(fixed_s).text,
                 kl_time_words(isnan(per_byte_s) ? 0 : per_byte_s).text);
    size_t at = strlen(text);
    if (!isnan(round_trip_s))
        snprintf(text + at, sizeof text - at, "%sround trip %s", at ? ", " : "",
                 kl_time_words(round_trip_s).text);
    at = strlen(text);
    if (!isnan(answer_s))
        snprintf(text + at, sizeof text - at, "%sanswered in %s", at ? ", " : "",
                 kl_time_words(answer_s).text);
    if (*text)
        kl_say(out, "messages", "%s", text);
}

void kl_report_print_text(const kl_report *report, FILE *out) {
    kl_report_print_sentence(report, out);
    print_header(report, out);
    if (report->loop)
        kl_loop_print_text(report, out);
    if (report->iteration_count > 0)
        print_earlier(report, out);
    if (report->watched)
        kl_watched_print_text(report, out);
    if (!report->loop)
        print_last(report, out);
    print_left(report, out);
    print_decisions(report, out);
    if (!report->loop)
        print_jobs(report, out);
    print_messages(report, out);
}
