/* The report for programs. */
#include <inttypes.h>
#include <math.h>

#include "report/report.h"
#include "report/text.h"

/* One JSON value after another; `first`: nothing stands yet in the innermost object or array. */
typedef struct json {
    FILE *out;
    bool first;
} json;

static void put_text(json *j, const char *text) {
    fputc('"', j->out);
    for (const char *s = text; *s;) {
        size_t bytes = kl_utf8_bytes(s);
        unsigned char c = (unsigned char)*s;
        if (bytes == 0)
            fputs("\\ufffd", j->out);
        else if (c == '"' || c == '\\')
            fprintf(j->out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            fprintf(j->out, "\\u%04x", c);
        else
            fwrite(s, 1, bytes, j->out);
        s += bytes ? bytes : 1;
    }
    fputc('"', j->out);
}

static void key(json *j, const char *name) {
    if (!j->first)
        fputc(',', j->out);
    j->first = false;
    if (name) {
        put_text(j, name);
        fputc(':', j->out);
    }
}

static void open_with(json *j, const char *name, char bracket) {
    key(j, name);
    fputc(bracket, j->out);
    j->first = true;
}

static void close_with(json *j, char bracket) {
    fputc(bracket, j->out);
    j->first = false;
}

static void text(json *j, const char *name, const char *value) {
    key(j, name);
    if (value)
        put_text(j, value);
    else
        fputs("null", j->out);
}

static void number(json *j, const char *name, double value) {
    key(j, name);
    if (isfinite(value))
        fprintf(j->out, "%.17g", value);
    else
        fputs("null", j->out);
}

static void count(json *j, const char *name, uint64_t value) {
    key(j, name);
    fprintf(j->out, "%" PRIu64, value);
}

static void truth(json *j, const char *name, bool value) {
    key(j, name);
    fputs(value ? "true" : "false", j->out);
}

static void signed_count(json *j, const char *name, int64_t value) {
    key(j, name);
    fprintf(j->out, "%" PRId64, value);
}

static void print_run(json *j, const kl_report_run *run) {
    open_with(j, "run", '{');
    text(j, "program", run->program);
    text(j, "version", run->version);
    text(j, "transport", run->transport);
    text(j, "policy", run->policy);
    text(j, "host", run->host);
    signed_count(j, "pid", run->pid);
    number(j, "began_unix_s", run->began_unix_s);
    truth(j, "ended", run->ended);
    number(j, "ended_s", run->ended_s);
    count(j, "dropped_rows", run->dropped_rows);
    close_with(j, '}');
}

static void print_workers(json *j, const kl_report *report) {
    open_with(j, "workers", '[');
    for (size_t i = 0; i < report->worker_count; i++) {
        const kl_report_worker *w = &report->workers[i];
        open_with(j, NULL, '{');
        count(j, "worker", w->worker);
        text(j, "host", w->host);
        text(j, "binding", w->binding);
        signed_count(j, "pid", w->pid);
        number(j, "joined_s", w->joined_s);
        number(j, "left_s", w->left_s);
        text(j, "why", w->why);
        close_with(j, '}');
    }
    close_with(j, ']');
}

static void print_share(json *j, const kl_report_share *s) {
    open_with(j, NULL, '{');
    count(j, "worker", s->worker);
    count(j, "tasks", s->tasks);
    number(j, "task_share", s->task_share);
    number(j, "units", s->units);
    count(j, "chunks", s->chunks);
    count(j, "failed", s->failed);
    count(j, "lost_chunks", s->lost_chunks);
    number(j, "busy_s", s->busy_s);
    number(j, "busy_share", s->busy_share);
    number(j, "speed_relative", s->speed_relative);
    number(j, "task_s", s->task_s);
    number(j, "unit_s", s->unit_s);
    number(j, "unit_sd", s->unit_sd);
    close_with(j, '}');
}

static void print_iteration(json *j, const kl_report_iteration *it) {
    open_with(j, NULL, '{');
    count(j, "run", it->run);
    count(j, "tasks", it->tasks);
    number(j, "units", it->units);
    text(j, "policy", it->policy);
    count(j, "shared_bytes", it->shared_bytes);
    number(j, "began_s", it->began_s);
    truth(j, "ended", it->ended);
    number(j, "elapsed_s", it->elapsed_s);
    count(j, "tasks_done", it->tasks_done);
    count(j, "failed", it->failed);
    count(j, "chunks", it->chunks);
    count(j, "worker_count", it->workers);
    number(j, "bound_s", it->bound_s);
    number(j, "efficiency", it->efficiency);
    number(j, "equal_split_s", it->equal_split_s);
    number(j, "equal_split_efficiency", it->equal_split_efficiency);
    text(j, "decision", it->decision);
    text(j, "status", it->status);
    open_with(j, "workers", '[');
    for (size_t i = 0; i < it->share_count; i++)
        print_share(j, &it->shares[i]);
    close_with(j, ']');
    close_with(j, '}');
}

static void print_decisions(json *j, const kl_report *report) {
    open_with(j, "decisions", '[');
    for (size_t i = 0; i < report->decision_count; i++) {
        const kl_report_decision *d = &report->decisions[i];
        open_with(j, NULL, '{');
        text(j, "kind", d->kind);
        count(j, "decisions", d->decisions);
        count(j, "tasks", d->tasks);
        text(j, "last_reason", d->last_reason);
        count(j, "forecasts", d->forecasts);
        number(j, "late_s", d->late_s);
        number(j, "missed_s", d->missed_s);
        close_with(j, '}');
    }
    close_with(j, ']');
}

static void print_measurements(json *j, const kl_report *report) {
    open_with(j, "measurements", '[');
    for (size_t i = 0; i < report->measurement_count; i++) {
        const kl_report_measurement *m = &report->measurements[i];
        open_with(j, NULL, '{');
        text(j, "kind", m->kind);
        if (m->worker >= 0)
            signed_count(j, "worker", m->worker);
        else
            text(j, "worker", NULL);
        number(j, "at_s", m->at_s);
        number(j, "value", m->value);
        number(j, "sd", m->sd);
        count(j, "count", m->count);
        close_with(j, '}');
    }
    close_with(j, ']');
}

void kl_report_print_json(const kl_report *report, FILE *out) {
    json j = {.out = out, .first = true};
    open_with(&j, NULL, '{');
    text(&j, "record", report->path);
    print_run(&j, &report->run);
    print_workers(&j, report);
    open_with(&j, "iterations", '[');
    for (size_t i = 0; i < report->iteration_count; i++)
        print_iteration(&j, &report->iterations[i]);
    close_with(&j, ']');
    print_decisions(&j, report);
    print_measurements(&j, report);
    close_with(&j, '}');
    fputc('\n', out);
}
