#include "tune_print.h"

#include <inttypes.h>
#include <math.h>

#include "report/print.h"

/* most workers that are listed, so that the output fits on a terminal */
enum { LISTED_MOST = 16 };

static const char *const activities[KL_CONTROL_ACTIVITIES] = {
    [KL_CONTROL_STARTING] = "starting", [KL_CONTROL_BUSY] = "busy",       [KL_CONTROL_IDLE] = "waiting",
    [KL_CONTROL_RESTING] = "resting",   [KL_CONTROL_LEAVING] = "leaving",
};

/* ---- printing as text ---- */

static void print_iteration(const kl_control_state *s, FILE *out) {
    char left[KL_LEFT_BYTES];
    kl_left_words(s->left_low_s, s->left_high_s, left);
    if (s->running)
        kl_say(out, "run", "%" PRIu64 ": %" PRIu64 " of %" PRIu64 " tasks done after %s%s%s", s->run, s->done,
               s->tasks, kl_time_words(s->elapsed_s).text, *left ? "; " : "", left);
    else if (s->tasks > 0)
        kl_say(out, "run", "%llu ended after %s; the next run has not begun", (unsigned long long)s->run,
               kl_time_words(s->elapsed_s).text);
    else
        kl_say(out, "run", "no run has begun");
}

static void print_measured(const kl_control_state *s, FILE *out) {
    kl_say(out, "messages", "m_o %s + λ %s a byte, answered in %s", kl_time_words(s->message_fixed_s).text,
           kl_time_words(s->message_per_byte_s).text, kl_time_words(s->answer_s).text);
    if (s->measured_workers == 0) {
        kl_say(out, "work", "not measured: no run has ended yet");
        return;
    }
    kl_say(out, "work", "T_c %s, a task μ %s σ %s; V %s bytes, α %s of them to workers; l_m %s",
           kl_time_words(s->work_s).text, kl_time_words(s->task_mean_s).text,
           kl_time_words(s->task_sd_s).text, kl_digits(s->bytes).text, kl_percent(s->to_workers).text,
           kl_time_words(s->master_s).text);
}

static void print_modelled(const kl_control_state *s, FILE *out) {
    char feeds[64] = "any number";
    if (s->measured_workers == 0)
        return;
    if (s->capability < UINT32_MAX)
        snprintf(feeds, sizeof feeds, "at most %" PRIu64, s->capability);
    kl_say(out, "model", "T_t(%" PRIu64 ") %s, measured %s; E %s; P_i %s", s->measured_workers,
           kl_time_words(s->time_s).text, kl_time_words(s->measured_s).text, kl_percent(s->efficiency).text,
           kl_digits(s->index).text);
    if (s->best_workers > 0)
        kl_say(out, "best", "n = %llu: T_t %s, P_i %s; the master can feed %s",
               (unsigned long long)s->best_workers, kl_time_words(s->best_time_s).text,
               kl_digits(s->best_index).text, feeds);
    kl_say(out, "imbalance", "q %s, bound %s", kl_percent(s->quality).text,
           kl_percent(s->quality_bound).text);
}

static void print_tuning_points(const kl_control_state *s, FILE *out) {
    char factor[48] = "", leaving[48] = "", number[48] = "all present workers";
    if (s->factor > 0)
        snprintf(factor, sizeof factor, ", factor %g", s->factor);
    if (s->workers_set > 0)
        snprintf(number, sizeof number, "%" PRIu64 " set by hand", s->workers_set);
    else if (s->chooses)
        snprintf(number, sizeof number, "chosen by the farm");
    kl_say(out, "policy", "%s%s", s->policy, factor);
    if (s->leaving > 0)
        snprintf(leaving, sizeof leaving, ", %" PRIu64 " leaving", s->leaving);
    kl_say(out, "workers", "%" PRIu64 " at work, %" PRIu64 " resting%s; %s", s->present, s->resting, leaving,
           number);
    if (s->late_s > 0)
        kl_say(out, "late", "task %" PRIu64 ", at worker %" PRIu64 " for %s, usually %s", s->late_task,
               s->late_worker, kl_time_words(s->late_s).text, kl_time_words(s->late_usual_s).text);
    if (*s->waiting)
        kl_say(out, "waiting", "%s: from the next run on", s->waiting);
    if (*s->decision)
        kl_say(out, "decision", "%s", s->decision);
}

static const void *worker_at(const void *context, size_t row) {
    return &((const kl_control_state *)context)->workers[row];
}

static void cell_activity(const void *context, size_t row, char *cell) {
    kl_cell(cell, "%s", activities[((const kl_control_state *)context)->workers[row].activity]);
}

static void print_workers(const kl_control_state *s, FILE *out) {
    static const kl_row_column columns[] = {
        KL_SHOW("worker", NUMBER, kl_control_worker, worker),
        {.column = {"", true, cell_activity}},
        KL_SHOW_REAL("units/s", DIGITS, kl_control_worker, rate_units_per_s, 0, 1),
        KL_SHOW_REAL("busy s", REAL, kl_control_worker, busy_s, 3, 1),
        KL_SHOW("chunks", COUNT, kl_control_worker, chunks),
        KL_SHOW("queued", COUNT, kl_control_worker, queued_tasks)};
    uint32_t rows = s->worker_count < LISTED_MOST ? s->worker_count : LISTED_MOST;
    uint64_t there = s->present + s->resting + s->leaving;
    fputc('\n', out);
    if (rows > 0)
        kl_print_rows(out, columns, sizeof columns / sizeof *columns, worker_at, s, rows);
    if (there > rows)
        fprintf(out, "and %" PRIu64 " more\n", there - rows);
}

void kl_tune_print_text(const kl_control_state *s, FILE *out) {
    kl_say(out, "farm", "%s over %s, open for %s", s->program, s->transport, kl_time_words(s->at_s).text);
    print_iteration(s, out);
    print_measured(s, out);
    print_modelled(s, out);
    print_tuning_points(s, out);
    print_workers(s, out);
}

/* ---- as JSON ---- */

/* Print a count. Print null if the count has the value `null`, which means "none" or "not known". */
static void count_or_null(kl_json *j, const char *name, uint64_t value, uint64_t null) {
    if (value == null)
        kl_json_text(j, name, NULL);
    else
        kl_json_count(j, name, value);
}

static void put_counts(kl_json *j, const kl_control_state *s) {
    kl_json_count(j, "run", s->run);
    kl_json_count(j, "tasks", s->tasks);
    kl_json_count(j, "done", s->done);
    kl_json_count(j, "present", s->present);
    kl_json_count(j, "resting", s->resting);
    kl_json_count(j, "leaving", s->leaving);
    count_or_null(j, "measured_workers", s->measured_workers, 0);
    count_or_null(j, "capability", s->measured_workers ? s->capability : UINT32_MAX, UINT32_MAX);
    count_or_null(j, "best_workers", s->best_workers, 0);
    count_or_null(j, "workers_set", s->workers_set, 0);
    count_or_null(j, "late_task", s->late_s > 0 ? s->late_task : UINT64_MAX, UINT64_MAX);
    count_or_null(j, "late_worker", s->late_s > 0 ? s->late_worker : UINT64_MAX, UINT64_MAX);
}

static void put_workers(kl_json *j, const kl_control_state *s) {
    kl_json_open(j, "workers", '[');
    for (uint32_t i = 0; i < s->worker_count; i++) {
        const kl_control_worker *w = &s->workers[i];
        kl_json_open(j, NULL, '{');
        kl_json_count(j, "worker", w->worker);
        kl_json_text(j, "activity", activities[w->activity]);
        kl_json_number(j, "rate_units_per_s", w->rate_units_per_s);
        kl_json_number(j, "busy_s", w->busy_s);
        kl_json_count(j, "chunks", w->chunks);
        kl_json_count(j, "queued_tasks", w->queued_tasks);
        kl_json_close(j, '}');
    }
    kl_json_close(j, ']');
}

void kl_tune_print_json(const kl_control_state *s, FILE *out) {
    kl_json j = {.out = out, .first = true};
    kl_json_open(&j, NULL, '{');
    kl_json_text(&j, "program", s->program);
    kl_json_text(&j, "transport", s->transport);
    kl_json_truth(&j, "running", s->running);
    put_counts(&j, s);
#define PUT_NUMBER(name) kl_json_number(&j, #name, s->name);
    KL_CONTROL_NUMBERS(PUT_NUMBER)
    kl_json_text(&j, "policy", s->policy);
    kl_json_truth(&j, "chooses", s->chooses);
    kl_json_text(&j, "waiting", *s->waiting ? s->waiting : NULL);
    kl_json_text(&j, "decision", *s->decision ? s->decision : NULL);
    put_workers(&j, s);
    kl_json_close(&j, '}');
    fputc('\n', out);
}
