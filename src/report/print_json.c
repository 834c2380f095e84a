/* Print the report of a record as JSON, for programs. */
#include "report/fields.h"
#include "report/loop_print.h"
#include "report/watched.h"

static void print_iterations(kl_json *j, const kl_report *report, bool workers) {
    kl_json_open(j, "iterations", '[');
    for (size_t i = 0; i < report->iteration_count; i++) {
        const kl_report_iteration *it = &report->iterations[i];
        kl_json_open(j, NULL, '{');
        kl_row_json(j, &kl_iteration_rows, it);
        if (workers)
            kl_rows_json(j, "workers", &kl_share_rows, it->shares, it->share_count);
        kl_json_close(j, '}');
    }
    kl_json_close(j, ']');
}

static void print_report(const kl_report *report, int digits, bool workers_of_runs, FILE *out) {
    kl_json j = {.out = out, .first = true, .digits = digits};
    kl_json_open(&j, NULL, '{');
    kl_json_text(&j, "record", report->path);
    kl_json_open(&j, "run", '{');
    kl_row_json(&j, &kl_run_rows, &report->run);
    kl_json_close(&j, '}');
    kl_rows_json(&j, "sessions", &kl_session_rows, report->sessions, report->session_count);
    kl_rows_json(&j, "workers", &kl_worker_rows, report->workers, report->worker_count);
    if (report->loop)
        kl_loop_print_json(&j, report);
    if (report->watched)
        kl_watched_print_json(&j, report->watched);
    print_iterations(&j, report, workers_of_runs);
    kl_rows_json(&j, "decisions", &kl_decision_rows, report->decisions, report->decision_count);
    kl_rows_json(&j, "decided", &kl_decided_rows, report->decided, report->decided_count);
    kl_rows_json(&j, "measurements", &kl_measurement_rows, report->measurements, report->measurement_count);
    kl_json_close(&j, '}');
    fputc('\n', out);
}

void kl_report_print_json(const kl_report *report, FILE *out) {
    print_report(report, 0, true, out);
}

void kl_report_print_for_page(const kl_report *report, int digits, FILE *out) {
    print_report(report, digits, false, out);
}
