/* Print the report of a kept run: the decisions of its keeper, and their outcomes. */
#include <math.h>
#include <string.h>

#include "report/fields.h"
#include "report/loop_print.h"
#include "report/text.h"

/* The table shows all decisions if there are at most LIST_ALL. If there are more, it shows the first
 * LIST_FIRST and the last LIST_LAST. */
enum { LIST_ALL = 24, LIST_FIRST = 8, LIST_LAST = 12 };

bool kl_is_kept(const kl_report_loop *loop) {
    return loop->kind && strcmp(loop->kind, "kept") == 0;
}

static uint64_t count_of(const kl_report *report, const char *kind) {
    uint64_t count = 0;
    for (size_t i = 0; i < report->decided_count; i++)
        count += strcmp(report->decided[i].kind, kind) == 0;
    return count;
}

void kl_kept_print_sentence(const kl_report_loop *loop, FILE *out) {
    char name[4 * KL_CELL_COLUMNS + 1];
    kl_printable(name, sizeof name, loop->name, KL_CELL_COLUMNS);
    fprintf(out, "Run %s ", name);
    if (!loop->ended)
        fputs("is not over, or its keeper was killed.", out);
    else
        fprintf(out, "took %s and did %llu sweep%s: %s.", kl_time_words(loop->elapsed_s).text,
                kl_ull(loop->executions), kl_plural(loop->executions),
                loop->status ? loop->status : "it ended");
}

void kl_kept_print_what(const kl_report *report, FILE *out) {
    uint64_t attempts = count_of(report, "launch"), moves = count_of(report, "relocate"),
             failures = count_of(report, "restart");
    kl_say(out, "kept run", "%s: %llu attempt%s, %llu planned move%s, %llu failure%s, %u ranks wanted",
           report->loop->name, kl_ull(attempts), kl_plural(attempts), kl_ull(moves), kl_plural(moves),
           kl_ull(failures), kl_plural(failures), report->loop->ranks);
}

/* ---- the table of decisions ---- */

/* Return the decision that is shown in this row of the table; NULL: the row is the gap in a long list. */
static const kl_report_decided *decided_at(const kl_report *report, size_t row) {
    if (report->decided_count > LIST_ALL && row == LIST_FIRST)
        return NULL;
    if (report->decided_count > LIST_ALL && row > LIST_FIRST)
        row = report->decided_count - LIST_LAST + (row - LIST_FIRST - 1);
    return &report->decided[row];
}

static const void *row_at(const void *context, size_t row) {
    return decided_at(context, row);
}

static void cell_kind(const void *context, size_t row, char *cell) {
    const kl_report_decided *d = decided_at(context, row);
    kl_cell(cell, "%s", d ? d->kind : "…");
}

/* Write a time. The cell stays empty if the time is 0 or NAN, because there was no forecast or no outcome. */
static void put_time(double time_s, char *cell) {
    kl_cell(cell, "%s", isnan(time_s) || time_s == 0 ? "" : kl_time_words(time_s).text);
}

static void cell_gain(const void *context, size_t row, char *cell) {
    const kl_report_decided *d = decided_at(context, row);
    put_time(d ? d->gain_s : NAN, cell);
}

static void cell_cost(const void *context, size_t row, char *cell) {
    const kl_report_decided *d = decided_at(context, row);
    put_time(d ? d->cost_s : NAN, cell);
}

static void cell_came(const void *context, size_t row, char *cell) {
    const kl_report_decided *d = decided_at(context, row);
    put_time(d ? d->came_s : NAN, cell);
}

static void cell_spent(const void *context, size_t row, char *cell) {
    const kl_report_decided *d = decided_at(context, row);
    put_time(d ? d->spent_s : NAN, cell);
}

static void print_decisions(const kl_report *report, FILE *out) {
    static const kl_row_column columns[] = {
        KL_SHOW("at", TIME, kl_report_decided, at_s), {.column = {"decision", true, cell_kind}},
        {.column = {"to gain", false, cell_gain}},    {.column = {"to cost", false, cell_cost}},
        {.column = {"gained", false, cell_came}},     {.column = {"cost", false, cell_spent}}};
    size_t all = report->decided_count;
    if (all == 0)
        return;
    fputc('\n', out);
    kl_print_rows(out, columns, sizeof columns / sizeof *columns, row_at, report,
                  all <= LIST_ALL ? all : LIST_FIRST + 1 + LIST_LAST);
    fputc('\n', out);
}

/* Print the reasons of the decisions. They are sentences, so each has its own line. */
static void print_reasons(const kl_report *report, FILE *out) {
    size_t rows = report->decided_count <= LIST_ALL ? report->decided_count : LIST_FIRST + 1 + LIST_LAST;
    for (size_t row = 0; row < rows; row++) {
        const kl_report_decided *d = decided_at(report, row);
        if (d)
            kl_say(out, d->kind, "%s", d->reason);
    }
}

void kl_kept_print_text(const kl_report *report, FILE *out) {
    print_decisions(report, out);
    print_reasons(report, out);
    if (report->loop->status && *report->loop->status)
        kl_say(out, "status", "%s", report->loop->status);
}
