/* The report for programs. */
#include "report/loop_print.h"
#include "report/print.h"
#include "report/report.h"

static void print_run(kl_json *j, const kl_report_run *run) {
    kl_json_open(j, "run", '{');
    kl_json_text(j, "program", run->program);
    kl_json_text(j, "version", run->version);
    kl_json_text(j, "transport", run->transport);
    kl_json_text(j, "policy", run->policy);
    kl_json_text(j, "host", run->host);
    kl_json_signed(j, "pid", run->pid);
    kl_json_number(j, "began_unix_s", run->began_unix_s);
    kl_json_truth(j, "ended", run->ended);
    kl_json_number(j, "ended_s", run->ended_s);
    kl_json_count(j, "dropped_rows", run->dropped_rows);
    kl_json_close(j, '}');
}

static void print_sessions(kl_json *j, const kl_report *report) {
    kl_json_open(j, "sessions", '[');
    for (size_t i = 0; i < report->session_count; i++) {
        kl_json_open(j, NULL, '{');
        kl_json_number(j, "began_s", report->sessions[i].began_s);
        kl_json_number(j, "ended_s", report->sessions[i].ended_s);
        kl_json_count(j, "first_run", report->sessions[i].first_run);
        kl_json_close(j, '}');
    }
    kl_json_close(j, ']');
}

static void print_workers(kl_json *j, const kl_report *report) {
    kl_json_open(j, "workers", '[');
    for (size_t i = 0; i < report->worker_count; i++) {
        const kl_report_worker *w = &report->workers[i];
        kl_json_open(j, NULL, '{');
        kl_json_count(j, "worker", w->worker);
        kl_json_text(j, "host", w->host);
        kl_json_text(j, "binding", w->binding);
        kl_json_signed(j, "pid", w->pid);
        kl_json_number(j, "joined_s", w->joined_s);
        kl_json_number(j, "left_s", w->left_s);
        kl_json_text(j, "why", w->why);
        kl_json_close(j, '}');
    }
    kl_json_close(j, ']');
}

static void print_share(kl_json *j, const kl_report_share *s) {
    kl_json_open(j, NULL, '{');
    kl_json_count(j, "worker", s->worker);
    kl_json_count(j, "tasks", s->tasks);
    kl_json_number(j, "task_share", s->task_share);
    kl_json_number(j, "units", s->units);
    kl_json_count(j, "chunks", s->chunks);
    kl_json_count(j, "failed", s->failed);
    kl_json_count(j, "lost_chunks", s->lost_chunks);
    kl_json_number(j, "busy_s", s->busy_s);
    kl_json_number(j, "busy_share", s->busy_share);
    kl_json_number(j, "speed_relative", s->speed_relative);
    kl_json_number(j, "task_s", s->task_s);
    kl_json_number(j, "unit_s", s->unit_s);
    kl_json_number(j, "unit_sd", s->unit_sd);
    kl_json_close(j, '}');
}

static void print_iteration(kl_json *j, const kl_report_iteration *it) {
    kl_json_open(j, NULL, '{');
    kl_json_count(j, "run", it->run);
    kl_json_count(j, "tasks", it->tasks);
    kl_json_count(j, "stored", it->stored);
    kl_json_number(j, "units", it->units);
    kl_json_text(j, "policy", it->policy);
    kl_json_count(j, "shared_bytes", it->shared_bytes);
    kl_json_number(j, "began_s", it->began_s);
    kl_json_truth(j, "ended", it->ended);
    kl_json_number(j, "elapsed_s", it->elapsed_s);
    kl_json_count(j, "tasks_done", it->tasks_done);
    kl_json_count(j, "failed", it->failed);
    kl_json_count(j, "chunks", it->chunks);
    kl_json_count(j, "worker_count", it->workers);
    kl_json_number(j, "bound_s", it->bound_s);
    kl_json_number(j, "efficiency", it->efficiency);
    kl_json_number(j, "equal_split_s", it->equal_split_s);
    kl_json_number(j, "equal_split_efficiency", it->equal_split_efficiency);
    kl_json_text(j, "decision", it->decision);
    kl_json_text(j, "status", it->status);
    kl_json_open(j, "workers", '[');
    for (size_t i = 0; i < it->share_count; i++)
        print_share(j, &it->shares[i]);
    kl_json_close(j, ']');
    kl_json_close(j, '}');
}

static void print_decisions(kl_json *j, const kl_report *report) {
    kl_json_open(j, "decisions", '[');
    for (size_t i = 0; i < report->decision_count; i++) {
        const kl_report_decision *d = &report->decisions[i];
        kl_json_open(j, NULL, '{');
        kl_json_text(j, "kind", d->kind);
        kl_json_count(j, "decisions", d->decisions);
        kl_json_count(j, "tasks", d->tasks);
        kl_json_text(j, "last_reason", d->last_reason);
        kl_json_count(j, "forecasts", d->forecasts);
        kl_json_number(j, "late_s", d->late_s);
        kl_json_number(j, "missed_s", d->missed_s);
        kl_json_close(j, '}');
    }
    kl_json_close(j, ']');
}

static void print_measurements(kl_json *j, const kl_report *report) {
    kl_json_open(j, "measurements", '[');
    for (size_t i = 0; i < report->measurement_count; i++) {
        const kl_report_measurement *m = &report->measurements[i];
        kl_json_open(j, NULL, '{');
        kl_json_text(j, "kind", m->kind);
        if (m->worker >= 0)
            kl_json_signed(j, "worker", m->worker);
        else
            kl_json_text(j, "worker", NULL);
        kl_json_number(j, "at_s", m->at_s);
        kl_json_number(j, "value", m->value);
        kl_json_number(j, "sd", m->sd);
        kl_json_count(j, "count", m->count);
        kl_json_close(j, '}');
    }
    kl_json_close(j, ']');
}

void kl_report_print_json(const kl_report *report, FILE *out) {
    kl_json j = {.out = out, .first = true};
    kl_json_open(&j, NULL, '{');
    kl_json_text(&j, "record", report->path);
    print_run(&j, &report->run);
    print_sessions(&j, report);
    print_workers(&j, report);
    if (report->loop)
        kl_loop_print_json(&j, report);
    kl_json_open(&j, "iterations", '[');
    for (size_t i = 0; i < report->iteration_count; i++)
        print_iteration(&j, &report->iterations[i]);
    kl_json_close(&j, ']');
    print_decisions(&j, report);
    print_measurements(&j, report);
    kl_json_close(&j, '}');
    fputc('\n', out);
}
