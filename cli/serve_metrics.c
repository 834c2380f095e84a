/* Print the metrics of kilter top --serve, in version 0.0.4 of Prometheus' text format. */
#include <inttypes.h>
#include <math.h>

#include "top.h"

/* Print the value of a label. The format requires that backslash, quote and newline are escaped. */
static void put_value(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text; text++)
        switch (*text) {
        case '\\':
        case '"':
            fprintf(out, "\\%c", *text);
            break;
        case '\n':
            fputs("\\n", out);
            break;
        default:
            fputc(*text, out);
        }
    fputc('"', out);
}

static void put_labels(FILE *out, const kl_top_run *run) {
    fputs("{program=", out);
    put_value(out, run->report->run.program);
    fputs(",record=", out);
    put_value(out, run->path);
}

static void put_head(FILE *out, const char *name, const char *help) {
    fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

/* A metric: its name, and the function that takes its value from a farm's state. */
typedef struct metric {
    const char *name, *help;
    double (*of)(const kl_control_state *s);
} metric;

static double tasks(const kl_control_state *s) {
    return (double)s->tasks;
}
static double done(const kl_control_state *s) {
    return (double)s->done;
}
static double present(const kl_control_state *s) {
    return (double)s->present;
}
static double resting(const kl_control_state *s) {
    return (double)s->resting;
}
static double running(const kl_control_state *s) {
    return s->running;
}
static double left(const kl_control_state *s) {
    return s->running ? s->left_s : (double)NAN;
}
static double left_low(const kl_control_state *s) {
    return s->running ? s->left_low_s : (double)NAN;
}
static double left_high(const kl_control_state *s) {
    return s->running ? s->left_high_s : (double)NAN;
}
static double elapsed(const kl_control_state *s) {
    return s->elapsed_s;
}
static double late(const kl_control_state *s) {
    return s->late_s;
}

static const metric metrics[] = {
    {"kilter_run_active", "1 while a run is in progress, 0 between two runs.", running},
    {"kilter_tasks", "Tasks of the present or last run.", tasks},
    {"kilter_tasks_done", "Tasks of the present or last run that are done.", done},
    {"kilter_workers", "Connected workers, without those that get no tasks at present.", present},
    {"kilter_workers_resting", "Connected workers that get no tasks at present.", resting},
    {"kilter_run_elapsed_seconds", "Time since the run began, or time of the last run.", elapsed},
    {"kilter_run_left_seconds", "Forecast of the time until the run ends.", left},
    {"kilter_run_left_low_seconds", "Lower end of the 90 % interval of the time until the run ends.",
     left_low},
    {"kilter_run_left_high_seconds", "Upper end of the 90 % interval of the time until the run ends.",
     left_high},
    {"kilter_late_task_seconds", "Time that the most delayed task has taken so far; 0: no task is late.",
     late},
};

/* Print the metric's line, but not if the number is not known. */
static void put_number(FILE *out, const metric *m, const kl_top_run *run) {
    double value = run->state ? m->of(run->state) : (double)NAN;
    if (!isfinite(value))
        return;
    fputs(m->name, out);
    put_labels(out, run);
    fprintf(out, "} %.17g\n", value);
}

static void put_speeds(FILE *out, const kl_top_run *run) {
    for (uint32_t i = 0; run->state && i < run->state->worker_count; i++) {
        const kl_control_worker *w = &run->state->workers[i];
        if (!isfinite(w->rate_units_per_s))
            continue;
        fputs("kilter_worker_units_per_second", out);
        put_labels(out, run);
        fprintf(out, ",worker=\"%" PRIu32 "\"} %.17g\n", w->worker, w->rate_units_per_s);
    }
}

static bool is_shown(const kl_top_run *run) {
    return run->report && run->looks_gone == 0;
}

static void put_loops(FILE *out, const kl_top *top) {
    put_head(out, "kilter_loop_sweeps", "Sweeps that a loop has done up to its last recorded round.");
    for (size_t i = 0; i < top->run_count; i++)
        if (is_shown(&top->runs[i]) && top->runs[i].report->loop) {
            fputs("kilter_loop_sweeps", out);
            put_labels(out, &top->runs[i]);
            fprintf(out, "} %" PRIu64 "\n", top->runs[i].report->loop->executions);
        }
}

void kl_top_metrics(const kl_top *top, FILE *out) {
    for (size_t m = 0; m < sizeof metrics / sizeof *metrics; m++) {
        put_head(out, metrics[m].name, metrics[m].help);
        for (size_t i = 0; i < top->run_count; i++)
            if (is_shown(&top->runs[i]))
                put_number(out, &metrics[m], &top->runs[i]);
    }
    put_head(out, "kilter_worker_units_per_second", "Speed of a worker, in units of work per second.");
    for (size_t i = 0; i < top->run_count; i++)
        if (is_shown(&top->runs[i]))
            put_speeds(out, &top->runs[i]);
    put_loops(out, top);
}
