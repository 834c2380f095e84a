/* The report for people. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "report/report.h"
#include "report/text.h"

enum {
    WIDTH = 110,
    LABEL = 14,        /* columns of the words in front of a line */
    TEXT_BYTES = 4096, /* a line before it is wrapped */
    CELL_BYTES = 160,
    CELL_COLUMNS = 32, /* of a cell that holds text of the user's */
    COLUMNS_MAX = 16,
    NARROWEST = 4, /* how far a text column shrinks to keep the table within WIDTH */
    LIST_ALL = 12, /* as many earlier iterations, or workers that left, are listed in full */
    LIST_FIRST = 3,
    LIST_LAST = 6
};

/* ---- words ---- */

/* Bytes of the first `columns` characters of `text`, or of what stands before its first space. */
static size_t word_bytes(const char *text, size_t columns, size_t *taken) {
    size_t bytes = 0;
    *taken = 0;
    while (text[bytes] && text[bytes] != ' ' && *taken < columns) {
        size_t one = kl_utf8_bytes(text + bytes);
        bytes += one ? one : 1;
        ++*taken;
    }
    return bytes;
}

/* Words that do not fit go on below the first; one wider than a line is broken. */
static void wrap(FILE *out, const char *label, const char *text) {
    size_t at = LABEL, columns;
    bool glued = true; /* to what stands before */
    fprintf(out, "%-*s", LABEL, label);
    while (*text) {
        size_t bytes = word_bytes(text, WIDTH - LABEL, &columns);
        if (at > LABEL && at + !glued + columns > WIDTH) {
            fprintf(out, "\n%*s", LABEL, "");
            at = LABEL;
        }
        bool space = at > LABEL && !glued;
        fprintf(out, "%s%.*s", space ? " " : "", (int)bytes, text);
        at += columns + space;
        size_t spaces = strspn(text + bytes, " ");
        glued = spaces == 0;
        text += bytes + spaces;
    }
    fputc('\n', out);
}

static void say(FILE *out, const char *label, const char *format, ...) KILTER_PRINTF(3, 4);
static void say(FILE *out, const char *label, const char *format, ...) {
    char text[TEXT_BYTES], fit[TEXT_BYTES + 8];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    kl_printable(fit, sizeof fit, text, TEXT_BYTES / 4);
    wrap(out, label, fit);
}

typedef struct words {
    char text[32];
} words;

/* Four digits of a number. */
static words digits_of(double value) {
    words w;
    double size = fabs(value);
    int decimals = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4;
    if (isnan(value))
        snprintf(w.text, sizeof w.text, "-");
    else if (size != 0 && (size < 0.01 || size >= 1e9))
        snprintf(w.text, sizeof w.text, "%.3g", value);
    else
        snprintf(w.text, sizeof w.text, "%.*f", decimals, value);
    return w;
}

/* A time with the unit that suits it. */
static words time_of(double seconds) {
    words w;
    double size = fabs(seconds);
    if (isnan(seconds))
        snprintf(w.text, sizeof w.text, "-");
    else if (size >= 7200)
        snprintf(w.text, sizeof w.text, "%.0f h %02.0f min", trunc(seconds / 3600),
                 trunc(fmod(size, 3600) / 60));
    else if (size >= 120)
        snprintf(w.text, sizeof w.text, "%.0f min %02.0f s", trunc(seconds / 60), trunc(fmod(size, 60)));
    else if (size >= 1 || size == 0)
        snprintf(w.text, sizeof w.text, "%.2f s", seconds);
    else if (size >= 1e-3)
        snprintf(w.text, sizeof w.text, "%.3g ms", 1e3 * seconds);
    else if (size >= 1e-6)
        snprintf(w.text, sizeof w.text, "%.3g µs", 1e6 * seconds);
    else
        snprintf(w.text, sizeof w.text, "%.3g ns", 1e9 * seconds);
    return w;
}

static words percent_of(double share) {
    words w;
    snprintf(w.text, sizeof w.text, isnan(share) ? "-" : "%.1f %%", 100 * share);
    return w;
}

static const char *plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

/* ---- tables ---- */

/* What stands in a row of a table, NUL-terminated, in CELL_BYTES. */
typedef void (*cell_fn)(const void *context, size_t row, char *cell);

typedef struct column {
    const char *head;
    bool text; /* to the left, and shrinks */
    cell_fn cell;
} column;

/* A column with nothing in it is left out: its width is 0. */
static void measure(const column *columns, size_t count, const void *context, size_t rows, size_t *width) {
    char cell[CELL_BYTES];
    for (size_t c = 0; c < count; c++) {
        width[c] = 0;
        for (size_t row = 0; row < rows; row++) {
            columns[c].cell(context, row, cell);
            size_t needed = kl_utf8_columns(cell);
            width[c] = needed > width[c] ? needed : width[c];
        }
        size_t head = kl_utf8_columns(columns[c].head);
        if (width[c] > 0 && width[c] < head)
            width[c] = head;
    }
}

static size_t total_width(const size_t *width, size_t count) {
    size_t total = 0;
    for (size_t c = 0; c < count; c++)
        total += width[c] ? width[c] + 2 : 0;
    return total ? total - 2 : 0;
}

static void shrink(const column *columns, size_t count, size_t *width) {
    while (total_width(width, count) > WIDTH) {
        size_t widest = count;
        for (size_t c = 0; c < count; c++)
            if (columns[c].text && width[c] > NARROWEST && (widest == count || width[c] > width[widest]))
                widest = c;
        if (widest == count)
            return;
        width[widest]--;
    }
}

/* At `at` of a line of TEXT_BYTES; gives where the next cell begins. */
static size_t put_cell(char *line, size_t at, const char *text, size_t width, bool left) {
    char fit[CELL_BYTES + 8];
    kl_printable(fit, sizeof fit, text, width);
    int pad = (int)(width - kl_utf8_columns(fit));
    int bytes = snprintf(line + at, TEXT_BYTES - at, "%s%*s%s%*s", at ? "  " : "", left ? 0 : pad, "", fit,
                         left ? pad : 0, "");
    return at + (size_t)bytes < TEXT_BYTES ? at + (size_t)bytes : TEXT_BYTES - 1;
}

static void print_table(FILE *out, const column *columns, size_t count, const void *context, size_t rows) {
    size_t width[COLUMNS_MAX];
    char cell[CELL_BYTES];
    measure(columns, count, context, rows, width);
    shrink(columns, count, width);
    for (size_t row = 0; row <= rows; row++) { /* the heads are row 0 */
        char line[TEXT_BYTES];
        size_t at = 0;
        for (size_t c = 0; c < count; c++) {
            if (width[c] == 0)
                continue;
            if (row > 0)
                columns[c].cell(context, row - 1, cell);
            at = put_cell(line, at, row == 0 ? columns[c].head : cell, width[c], columns[c].text);
        }
        while (at > 0 && line[at - 1] == ' ')
            at--;
        fprintf(out, "%.*s\n", (int)at, line);
    }
}

static void put(char *cell, const char *format, ...) KILTER_PRINTF(2, 3);
static void put(char *cell, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(cell, CELL_BYTES, format, args);
    va_end(args);
}

static void put_number(char *cell, const char *format, double value) KILTER_PRINTF(2, 0);
static void put_number(char *cell, const char *format, double value) {
    if (isnan(value))
        put(cell, "-");
    else
        snprintf(cell, CELL_BYTES, format, value);
}

/* ---- what each worker did ---- */

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
    s.all.busy_share =
        it->elapsed_s > 0 ? s.all.busy_s / it->elapsed_s / (double)it->share_count : (double)NAN;
    return s;
}

/* The row below the workers' is their sum. */
static bool is_sum(const shares *s, size_t row) {
    return row == s->it->share_count;
}

static const kl_report_share *share_at(const shares *s, size_t row) {
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
        put(cell, "all");
    else
        put(cell, "%" PRIu32, share_at(s, row)->worker);
}

static void cell_host(const void *context, size_t row, char *cell) {
    const kl_report_worker *worker = worker_at(context, row);
    kl_printable(cell, CELL_BYTES, worker ? worker->host : "", CELL_COLUMNS);
}

static void cell_binding(const void *context, size_t row, char *cell) {
    const kl_report_worker *worker = worker_at(context, row);
    kl_printable(cell, CELL_BYTES, worker ? worker->binding : "", CELL_COLUMNS);
}

static void cell_tasks(const void *context, size_t row, char *cell) {
    put(cell, "%" PRIu64, share_at(context, row)->tasks);
}

static void cell_task_share(const void *context, size_t row, char *cell) {
    const shares *s = context;
    put_number(cell, "%.1f", is_sum(s, row) ? 100.0 : 100 * share_at(s, row)->task_share);
}

static void cell_chunks(const void *context, size_t row, char *cell) {
    put(cell, "%" PRIu64, share_at(context, row)->chunks);
}

/* Nothing, in every row, when the sum is 0. */
static void put_if_any(char *cell, uint64_t sum, uint64_t count) {
    cell[0] = '\0';
    if (sum > 0)
        put(cell, "%" PRIu64, count);
}

static void cell_failed(const void *context, size_t row, char *cell) {
    const shares *s = context;
    put_if_any(cell, s->all.failed, share_at(s, row)->failed);
}

static void cell_lost(const void *context, size_t row, char *cell) {
    const shares *s = context;
    put_if_any(cell, s->all.lost_chunks, share_at(s, row)->lost_chunks);
}

static void cell_busy_s(const void *context, size_t row, char *cell) {
    put_number(cell, "%.3f", share_at(context, row)->busy_s);
}

static void cell_busy_share(const void *context, size_t row, char *cell) {
    put_number(cell, "%.1f", 100 * share_at(context, row)->busy_share);
}

static void cell_speed(const void *context, size_t row, char *cell) {
    cell[0] = '\0';
    if (!is_sum(context, row))
        put_number(cell, "%.2f", share_at(context, row)->speed_relative);
}

static void cell_unit(const void *context, size_t row, char *cell) {
    cell[0] = '\0';
    if (!is_sum(context, row))
        put(cell, "%s", digits_of(1e3 * share_at(context, row)->unit_s).text);
}

static void cell_sd(const void *context, size_t row, char *cell) {
    cell[0] = '\0';
    if (!is_sum(context, row))
        put(cell, "%s", digits_of(1e3 * share_at(context, row)->unit_sd).text);
}

static void print_shares(const kl_report *report, const kl_report_iteration *it, FILE *out) {
    bool weighted = it->units != (double)it->tasks;
    const column columns[] = {{"worker", false, cell_worker},
                              {"host", true, cell_host},
                              {"bound to", true, cell_binding},
                              {"tasks", false, cell_tasks},
                              {"share %", false, cell_task_share},
                              {"chunks", false, cell_chunks},
                              {"failed", false, cell_failed},
                              {"lost", false, cell_lost},
                              {"busy s", false, cell_busy_s},
                              {"busy %", false, cell_busy_share},
                              {"speed", false, cell_speed},
                              {weighted ? "ms/unit" : "ms/task", false, cell_unit},
                              {"± σ", false, cell_sd}};
    shares s = shares_of(report, it);
    print_table(out, columns, sizeof columns / sizeof *columns, &s, it->share_count + 1);
}

/* ---- iterations ---- */

/* Row → iteration: the earlier ones, or their first and last few with a gap between. */
typedef struct earlier {
    const kl_report *report;
    size_t count; /* of earlier iterations */
} earlier;

static size_t earlier_rows(const earlier *e) {
    return e->count <= LIST_ALL ? e->count : LIST_FIRST + 1 + LIST_LAST;
}

/* NULL: the gap. */
static const kl_report_iteration *earlier_at(const earlier *e, size_t row) {
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
        put(cell, "%" PRIu64, it->run);
    else
        put(cell, "…");
}

/* The gap has nothing in its cells. */
static void put_count_of(const kl_report_iteration *it, uint64_t count, char *cell) {
    cell[0] = '\0';
    if (it)
        put(cell, "%" PRIu64, count);
}

static void put_of(const kl_report_iteration *it, const char *format, double value, char *cell)
    KILTER_PRINTF(2, 0);
static void put_of(const kl_report_iteration *it, const char *format, double value, char *cell) {
    cell[0] = '\0';
    if (it)
        put_number(cell, format, value);
}

static void cell_run_tasks(const void *context, size_t row, char *cell) {
    const kl_report_iteration *it = earlier_at(context, row);
    put_count_of(it, it ? it->tasks : 0, cell);
}

static void cell_run_chunks(const void *context, size_t row, char *cell) {
    const kl_report_iteration *it = earlier_at(context, row);
    put_count_of(it, it ? it->chunks : 0, cell);
}

static void cell_run_failed(const void *context, size_t row, char *cell) {
    const kl_report_iteration *it = earlier_at(context, row);
    put_count_of(it, it ? it->failed : 0, cell);
}

static void cell_run_workers(const void *context, size_t row, char *cell) {
    const kl_report_iteration *it = earlier_at(context, row);
    put_count_of(it, it ? it->workers : 0, cell);
}

static void cell_elapsed(const void *context, size_t row, char *cell) {
    const kl_report_iteration *it = earlier_at(context, row);
    put_of(it, "%.3f", it ? it->elapsed_s : 0, cell);
}

static void cell_bound(const void *context, size_t row, char *cell) {
    const kl_report_iteration *it = earlier_at(context, row);
    put_of(it, "%.3f", it ? it->bound_s : 0, cell);
}

static void cell_efficiency(const void *context, size_t row, char *cell) {
    const kl_report_iteration *it = earlier_at(context, row);
    put_of(it, "%.1f", it ? 100 * it->efficiency : 0, cell);
}

static void cell_equal_split(const void *context, size_t row, char *cell) {
    const kl_report_iteration *it = earlier_at(context, row);
    put_of(it, "%.1f", it ? 100 * it->equal_split_efficiency : 0, cell);
}

static void cell_status(const void *context, size_t row, char *cell) {
    const kl_report_iteration *it = earlier_at(context, row);
    const char *status = !it ? "" : !it->ended ? "did not end" : it->status ? it->status : "";
    kl_printable(cell, CELL_BYTES, status, CELL_COLUMNS);
}

static void print_earlier(const kl_report *report, FILE *out) {
    static const column columns[] = {{"run", false, cell_run},
                                     {"tasks", false, cell_run_tasks},
                                     {"workers", false, cell_run_workers},
                                     {"chunks", false, cell_run_chunks},
                                     {"failed", false, cell_run_failed},
                                     {"elapsed s", false, cell_elapsed},
                                     {"bound s", false, cell_bound},
                                     {"efficiency %", false, cell_efficiency},
                                     {"equal split %", false, cell_equal_split},
                                     {"status", true, cell_status}};
    earlier e = {.report = report, .count = report->iteration_count - 1};
    if (e.count == 0)
        return;
    fputc('\n', out);
    print_table(out, columns, sizeof columns / sizeof *columns, &e, earlier_rows(&e));
}

static void print_outcome(const kl_report_iteration *it, FILE *out) {
    if (!isnan(it->efficiency))
        say(out, "efficiency",
            "%s of the bound: %s, had every worker computed all the time at its real speed",
            percent_of(it->efficiency).text, time_of(it->bound_s).text);
    if (!isnan(it->equal_split_efficiency))
        say(out, "equal split", "%s of the bound: %s is the forecast for equal parts dealt up front",
            percent_of(it->equal_split_efficiency).text, time_of(it->equal_split_s).text);
    if (it->failed > 0)
        say(out, "failed", "%" PRIu64 " task%s", it->failed, plural(it->failed));
    if (it->status && *it->status && strcmp(it->status, "done") != 0)
        say(out, "status", "%s", it->status);
    if (it->decision && *it->decision)
        say(out, "decision", "%s", it->decision);
}

static void print_last(const kl_report *report, FILE *out) {
    if (report->iteration_count == 0) {
        fputs("\nNo tasks were dealt.\n", out);
        return;
    }
    const kl_report_iteration *it = &report->iterations[report->iteration_count - 1];
    fputc('\n', out);
    if (it->ended)
        say(out, "run", "%" PRIu64 ": %" PRIu64 " task%s in %s, %" PRIu64 " chunk%s, policy %s", it->run,
            it->tasks, plural(it->tasks), time_of(it->elapsed_s).text, it->chunks, plural(it->chunks),
            it->policy);
    else
        say(out, "run", "%" PRIu64 ": did not end; %" PRIu64 " of %" PRIu64 " task%s done, policy %s",
            it->run, it->tasks_done, it->tasks, plural(it->tasks), it->policy);
    fputc('\n', out);
    if (it->share_count > 0) {
        print_shares(report, it, out);
        fputc('\n', out);
    }
    print_outcome(it, out);
}

/* ---- the rest ---- */

static words date_of(double unix_s) {
    words w;
    time_t seconds = unix_s >= 0 && unix_s < 1e11 ? (time_t)unix_s : 0;
    struct tm local;
    if (seconds == 0 || !localtime_r(&seconds, &local) ||
        strftime(w.text, sizeof w.text, "%Y-%m-%d %H:%M:%S %z", &local) == 0)
        snprintf(w.text, sizeof w.text, "an unknown time");
    return w;
}

static void print_header(const kl_report *report, FILE *out) {
    const kl_report_run *run = &report->run;
    say(out, "program", "%s, pid %" PRId64 " on %s, kilter %s", run->program, run->pid, run->host,
        run->version);
    if (run->ended)
        say(out, "began", "%s, ended after %s", date_of(run->began_unix_s).text, time_of(run->ended_s).text);
    else
        say(out, "began", "%s; the run did not end (still running or killed)",
            date_of(run->began_unix_s).text);
    say(out, "dealt by", "%s over %s", run->policy, run->transport);
    say(out, "record", "%s", report->path);
    if (run->dropped_rows > 0)
        say(out, "", "incomplete: %" PRIu64 " row%s could not be written", run->dropped_rows,
            plural(run->dropped_rows));
}

static void print_left(const kl_report *report, FILE *out) {
    size_t listed = 0, left = 0;
    for (size_t i = 0; i < report->worker_count; i++) {
        const kl_report_worker *w = &report->workers[i];
        if (!w->why)
            continue;
        if (++left <= LIST_ALL)
            say(out, listed++ ? "" : "left", "worker %" PRIu32 " (%s) at %s: %s", w->worker, w->host,
                time_of(w->left_s).text, *w->why ? w->why : "no reason given");
    }
    if (left > listed)
        say(out, "", "and %zu more", left - listed);
}

static void print_decisions(const kl_report *report, FILE *out) {
    char list[512] = "";
    for (size_t i = 0; i < report->decision_count; i++) {
        size_t at = strlen(list);
        snprintf(list + at, sizeof list - at, "%s%" PRIu64 " %.40s", i ? ", " : "",
                 report->decisions[i].decisions, report->decisions[i].kind);
    }
    if (*list)
        say(out, "decisions", "%s", list);
    for (size_t i = 0; i < report->decision_count; i++) {
        const kl_report_decision *d = &report->decisions[i];
        if (d->forecasts > 0)
            say(out, "forecasts", "%" PRIu64 " chunk%s: off by %s on average, ended %s %s", d->forecasts,
                plural(d->forecasts), time_of(d->missed_s).text, time_of(fabs(d->late_s)).text,
                d->late_s < 0 ? "early" : "late");
    }
}

static double measured(const kl_report *report, const char *kind) {
    for (size_t i = 0; i < report->measurement_count; i++)
        if (report->measurements[i].worker < 0 && strcmp(report->measurements[i].kind, kind) == 0)
            return report->measurements[i].value;
    return NAN;
}

static void print_messages(const kl_report *report, FILE *out) {
    double fixed_s = measured(report, "message_fixed_s");
    double per_byte_s = measured(report, "message_per_byte_s");
    double round_trip_s = measured(report, "round_trip_s"), answer_s = measured(report, "answer_s");
    char text[256] = "";
    if (!isnan(fixed_s))
        snprintf(text, sizeof text, "%s + %s a byte", time_of(fixed_s).text,
                 time_of(isnan(per_byte_s) ? 0 : per_byte_s).text);
    size_t at = strlen(text);
    if (!isnan(round_trip_s))
        snprintf(text + at, sizeof text - at, "%sround trip %s", at ? ", " : "", time_of(round_trip_s).text);
    at = strlen(text);
    if (!isnan(answer_s))
        snprintf(text + at, sizeof text - at, "%sanswered in %s", at ? ", " : "", time_of(answer_s).text);
    if (*text)
        say(out, "messages", "%s", text);
}

void kl_report_print_text(const kl_report *report, FILE *out) {
    print_header(report, out);
    if (report->iteration_count > 0)
        print_earlier(report, out);
    print_last(report, out);
    print_left(report, out);
    print_decisions(report, out);
    print_messages(report, out);
}
