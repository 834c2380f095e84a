/* Print the prediction as a table and as JSON. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "predict.h"
#include "report/print.h"

/* ---- printing as text ---- */

static kl_words input_words(const kl_number *n, int input) {
    kl_words w;
    if (input == KL_IN_ALPHA)
        return kl_percent(n->value);
    if (input == KL_IN_BYTES)
        snprintf(w.text, sizeof w.text, "%.10g bytes", n->value);
    else if (input == KL_IN_TASKS)
        snprintf(w.text, sizeof w.text, "%.10g", n->value);
    else
        return kl_time_words(n->value);
    return w;
}

static void print_inputs(const kl_basis *b, FILE *out) {
    static const char *const what[KL_INPUTS] = {"to compute, on one worker",
                                                "in messages",
                                                "of them to the workers",
                                                "to start a message",
                                                "a byte",
                                                "of the master alone",
                                                "of the master for each chunk of several rounds",
                                                "tasks",
                                                "a task",
                                                "spread of a task"};
    for (int i = 0; i < KL_INPUTS; i++)
        if (b->in[i].from)
            kl_say(out, kl_inputs[i].symbol, "%s %s (%s)", input_words(&b->in[i], i).text, what[i],
                   b->in[i].from);
    if (b->speeds)
        kl_say(out, "workers", "%u, the fastest first, together %.6g times as fast as one worker (%s)",
               b->speed_count, b->speeds[b->speed_count - 1], b->speeds_from);
    if (!isfinite(b->in[KL_IN_TASKS].value))
        kl_say(out, "rounds", "not known; give --tasks or --task-mean-s");
    else
        kl_say(out, "rounds", "%s",
               b->part_count ? "chunks are dealt as in the recorded run" : "chunks are dealt as by DAF");
}

static kl_words off_by(double model_s, double measured_s) {
    kl_words w;
    snprintf(w.text, sizeof w.text, "%+.1f %%", 100 * (model_s / measured_s - 1));
    return w;
}

static void print_measured(const kl_basis *b, FILE *out) {
    for (size_t i = 0; i < b->measured_count; i++) {
        const kl_measured *m = &b->measured[i];
        if (m->run != b->run)
            continue;
        kl_point p = kl_predict_measured(b, KL_ASYNCHRONOUS, m->workers);
        kl_say(out, "measured",
               "%s on %u workers; predicted, asynchronous: %s in one round (%s), %s in several (%s)",
               kl_time_words(m->time_s).text, m->workers, kl_time_words(p.time_s).text,
               off_by(p.time_s, m->time_s).text, kl_time_words(p.rounds_time_s).text,
               off_by(p.rounds_time_s, m->time_s).text);
    }
    if (fabs(b->beyond - 1) >= 0.005)
        kl_say(out, "corrected",
               "forecasts for several rounds are multiplied by %.3g, the factor by which the last runs "
               "differed from the model",
               b->beyond);
}

static void print_program(const kl_program_prediction *p, FILE *out) {
    const kilter_prediction *all = &p->all;
    if (p->iterations == 0)
        return;
    kl_say(out, "program", "%s for %.10g iterations on %u workers, %u of them used; bound %s",
           kl_time_words(all->total_s).text, p->iterations, p->workers, all->workers,
           kl_time_words(all->bound_s).text);
    kl_say(out, "",
           "each iteration: %s for the master alone, %s for the workers, %s for messages; each task goes to "
           "the worker that completes it first",
           kl_time_words(all->master_s).text, kl_time_words(all->workers_s).text,
           kl_time_words(all->messages_s).text);
    if (p->measured_runs > 0)
        kl_say(out, "", "the record's own %zu runs: %s measured, %s predicted (%s)", p->measured_runs,
               kl_time_words(p->measured_s).text, kl_time_words(p->recorded.total_s).text,
               off_by(p->recorded.total_s, p->measured_s).text);
}

static void print_limit(const kl_verdict *v, FILE *out) {
    const kl_limit *l = &v->enough.limit;
    if (!l->known)
        kl_say(out, "limit",
               "not known: a record measures shared resources only for its own work and workers");
    else if (l->what == KL_SHARED_NOTHING)
        kl_say(out, "limit", "the tasks themselves: nothing that workers share slows them down");
    else if (l->what == KL_SHARED_CORES)
        kl_say(out, "limit", "%s: %.0f %% busy, %.0f %% of that with sending and receiving",
               kl_shared_name(l->what), 100 * l->used, 100 * l->sending);
    else
        kl_say(out, "limit", "%s: %.0f %% busy", kl_shared_name(l->what), 100 * l->used);
}

/* Print the first line of the output, a sentence without symbols. */
static void print_sentence(const kl_prediction *p, FILE *out) {
    const kl_point *enough = &p->verdict.enough;
    const kl_protocol *sent = &p->protocols[KL_ASYNCHRONOUS];
    if (enough->workers == 0)
        fprintf(out, "Up to %u worker%s %s worth using: the run then takes %s; it is fastest with %u: %s.\n",
                sent->best.workers, sent->best.workers == 1 ? "" : "s",
                sent->best.workers == 1 ? "is" : "are", kl_time_words(sent->best.time_s).text,
                sent->fastest.workers, kl_time_words(sent->fastest.time_s).text);
    else
        fprintf(out, "With %u worker%s the run takes %s (%.0f %% interval: %s to %s); %s.\n", enough->workers,
                enough->workers == 1 ? "" : "s", kl_time_words(enough->rounds_time_s).text, 100 * KL_SURE,
                kl_time_words(enough->within.low_s).text, kl_time_words(enough->within.high_s).text,
                p->verdict.is_most ? "fewer workers are slower" : "more are at most 3 % faster");
}

/* A change of machine or program is only printed if it reduces the time to less than this fraction of the
 * time without the change. */
static const double TELLING = 0.97;

static void print_verdict(const kl_prediction *p, FILE *out) {
    if (p->verdict.enough.workers == 0)
        return;
    print_limit(&p->verdict, out);
    const char *title = "what if";
    for (int i = 0; i < KL_WHAT_IFS; i++) {
        const kl_point *other = &p->what_if[i].verdict.enough;
        if (!p->what_if[i].key || !(other->rounds_time_s < TELLING * p->verdict.enough.rounds_time_s))
            continue;
        kl_say(out, title, "%s: %s with %u", p->what_if[i].words, kl_time_words(other->rounds_time_s).text,
               other->workers);
        title = "";
    }
}

typedef struct table {
    const kl_prediction *prediction;
    const kl_protocol *protocol;
    double unit; /* printed units per second, such as 1000 for ms */
} table;

static const void *point_at(const void *context, size_t row) {
    return &((const table *)context)->protocol->points[row];
}

static void cell_speed(const void *context, size_t row, char *cell) {
    const table *t = context;
    cell[0] = '\0';
    if (t->prediction->basis->speeds)
        kl_cell(cell, "%.2f", t->protocol->points[row].speed);
}

static void add_note(char *cell, bool applies, const char *note) {
    if (applies) {
        size_t at = strlen(cell);
        snprintf(cell + at, KL_CELL_BYTES - at, "%s%s", at ? ", " : "", note);
    }
}

static void cell_note(const void *context, size_t row, char *cell) {
    const kl_basis *b = ((const table *)context)->prediction->basis;
    const kl_protocol *p = ((const table *)context)->protocol;
    uint32_t n = p->points[row].workers;
    cell[0] = '\0';
    add_note(cell, n == p->best.workers, "best");
    add_note(cell, n == p->fastest.workers, "fastest");
    add_note(cell, n == p->rounds_best.workers && n != p->best.workers, "best ×");
    add_note(cell, n == p->rounds_fastest.workers && n != p->fastest.workers, "fastest ×");
    add_note(cell, n == p->capability, "capability");
    add_note(cell, n == b->workers && !b->speeds, "measured");
}

/* Choose the unit of time by the shortest time, so that this time is printed with enough digits. */
static const char *time_unit(const kl_protocol *p, double *per_s) {
    double shortest_s = p->fastest.time_s;
    *per_s = shortest_s >= 1 ? 1 : shortest_s >= 1e-3 ? 1e3 : 1e6;
    return shortest_s >= 1 ? "s" : shortest_s >= 1e-3 ? "ms" : "µs";
}

static void print_protocol(const kl_prediction *prediction, const kl_protocol *p, FILE *out) {
    table t = {.prediction = prediction, .protocol = p};
    const char *unit = time_unit(p, &t.unit);
    char time[32], index[32], rounds_time[32], rounds_index[32], feeds[64];
    snprintf(time, sizeof time, "T_t %s", unit);
    snprintf(index, sizeof index, "P_i %s", unit);
    snprintf(rounds_time, sizeof rounds_time, "× T_t %s", unit);
    snprintf(rounds_index, sizeof rounds_index, "× P_i %s", unit);
    const kl_row_column columns[] = {KL_SHOW("n", NUMBER, kl_point, workers),
                                     {.column = {"speed", false, cell_speed}},
                                     KL_SHOW_REAL(time, KNOWN, kl_point, time_s, 4, t.unit),
                                     KL_SHOW_REAL("E %", KNOWN, kl_point, efficiency, 1, 100),
                                     KL_SHOW_REAL(index, KNOWN, kl_point, index_s, 4, t.unit),
                                     KL_SHOW_REAL(rounds_time, KNOWN, kl_point, rounds_time_s, 4, t.unit),
                                     KL_SHOW_REAL("× E %", KNOWN, kl_point, rounds_efficiency, 1, 100),
                                     KL_SHOW_REAL(rounds_index, KNOWN, kl_point, rounds_index_s, 4, t.unit),
                                     KL_SHOW_REAL("q ≤ %", KNOWN, kl_point, quality_bound, 1, 100),
                                     {.column = {"", true, cell_note}}};
    if (p->capability == UINT32_MAX)
        snprintf(feeds, sizeof feeds, "the master can feed any n in the table");
    else
        snprintf(feeds, sizeof feeds, "the master can feed %u", p->capability);
    fputc('\n', out);
    kl_say(out, p->name, "best n = %u (lowest P_i), fastest n = %u (lowest T_t); %s", p->best.workers,
           p->fastest.workers, feeds);
    if (p->rounds_best.workers > 0)
        kl_say(out, "", "several rounds (×): best n = %u, fastest n = %u", p->rounds_best.workers,
               p->rounds_fastest.workers);
    fputc('\n', out);
    kl_print_rows(out, columns, sizeof columns / sizeof *columns, point_at, &t, p->count);
}

/* Print the expected time: the time with several rounds if it is known, otherwise the time with one round. */
static void cell_expected(const void *context, size_t row, char *cell) {
    const table *t = context;
    const kl_point *p = point_at(context, row);
    double time_s = isfinite(p->rounds_time_s) ? p->rounds_time_s : p->time_s;
    cell[0] = '\0';
    if (isfinite(time_s))
        kl_cell(cell, "%.4f", time_s * t->unit);
}

static void cell_expected_efficiency(const void *context, size_t row, char *cell) {
    const kl_point *p = point_at(context, row);
    double share = isfinite(p->rounds_time_s) ? p->rounds_efficiency : p->efficiency;
    cell[0] = '\0';
    if (isfinite(share))
        kl_cell(cell, "%.1f", 100 * share);
}

static void cell_plain_note(const void *context, size_t row, char *cell) {
    const kl_basis *b = ((const table *)context)->prediction->basis;
    const kl_protocol *p = ((const table *)context)->protocol;
    uint32_t n = p->points[row].workers;
    bool rounds = p->rounds_best.workers > 0;
    cell[0] = '\0';
    add_note(cell, n == (rounds ? p->rounds_best : p->best).workers, "pays best");
    add_note(cell, n == (rounds ? p->rounds_fastest : p->fastest).workers, "fastest");
    add_note(cell, n == b->workers && !b->speeds, "measured");
}

/* Print the table of times and efficiencies, without symbols. */
static void print_plain(const kl_prediction *prediction, FILE *out) {
    const kl_protocol *p = &prediction->protocols[KL_ASYNCHRONOUS];
    table t = {.prediction = prediction, .protocol = p};
    char time[32];
    snprintf(time, sizeof time, "time %s", time_unit(p, &t.unit));
    const kl_row_column columns[] = {KL_SHOW("workers", NUMBER, kl_point, workers),
                                     {.column = {"speed", false, cell_speed}},
                                     {.column = {time, false, cell_expected}},
                                     {.column = {"efficiency %", false, cell_expected_efficiency}},
                                     {.column = {"", true, cell_plain_note}}};
    fputc('\n', out);
    kl_print_rows(out, columns, sizeof columns / sizeof *columns, point_at, &t, p->count);
    fputs("\n--verbose also prints the model's numbers, and other ways to send tasks\n", out);
}

void kl_prediction_print_text(const kl_prediction *p, bool verbose, FILE *out) {
    const kl_basis *b = p->basis;
    print_sentence(p, out);
    if (verbose || b->record || p->verdict.enough.workers > 0 || p->program.iterations > 0)
        fputc('\n', out);
    print_verdict(p, out);
    if (b->record)
        kl_say(out, "record", "%s, run %" PRIu64 " of %s on %u workers", b->record, b->run, b->program,
               b->workers);
    if (b->cut)
        kl_say(out, "part",
               "the run %s%s: %.0f of its %.0f tasks were done, and the others are assumed to be similar",
               *b->cut ? "ended early: " : "was cut off, or still goes on", b->cut, b->done, b->tasks);
    if (verbose)
        print_inputs(b, out);
    print_measured(b, out);
    print_program(&p->program, out);
    if (p->out_of_tasks)
        kl_say(out, "", "at most %u workers, one for each task", p->most);
    if (!verbose)
        print_plain(p, out);
    for (uint32_t i = 0; verbose && i < KL_PROTOCOLS; i++)
        print_protocol(p, &p->protocols[i], out);
}

/* ---- as JSON ---- */

static void put_inputs(kl_json *j, const kl_basis *b) {
    kl_json_open(j, "inputs", '{');
    for (int i = 0; i < KL_INPUTS; i++) {
        kl_json_open(j, kl_inputs[i].key, '{');
        kl_json_number(j, "value", b->in[i].value);
        kl_json_text(j, "from", b->in[i].from);
        kl_json_close(j, '}');
    }
    kl_json_close(j, '}');
}

static void put_cut(kl_json *j, const kl_basis *b) {
    if (!b->cut) {
        kl_json_text(j, "cut", NULL);
        return;
    }
    kl_json_open(j, "cut", '{');
    kl_json_text(j, "status", *b->cut ? b->cut : NULL);
    kl_json_number(j, "tasks_done", b->done);
    kl_json_number(j, "tasks", b->tasks);
    kl_json_close(j, '}');
}

static void put_measured(kl_json *j, const kl_basis *b) {
    kl_json_open(j, "measured", '[');
    for (size_t i = 0; i < b->measured_count; i++) {
        const kl_measured *m = &b->measured[i];
        kl_point p = kl_predict_measured(b, KL_ASYNCHRONOUS, m->workers);
        kl_json_open(j, NULL, '{');
        kl_json_count(j, "run", m->run);
        kl_json_count(j, "workers", m->workers);
        kl_json_number(j, "time_s", m->time_s);
        kl_json_number(j, "predicted_s", p.time_s);
        kl_json_number(j, "predicted_rounds_s", p.rounds_time_s);
        kl_json_close(j, '}');
    }
    kl_json_close(j, ']');
}

static void put_program(kl_json *j, const kl_program_prediction *p) {
    if (p->iterations == 0)
        return;
    kl_json_open(j, "program", '{');
    kl_json_number(j, "iterations", p->iterations);
    kl_json_count(j, "workers", p->workers);
    kl_json_count(j, "workers_used", p->all.workers);
    kl_json_number(j, "total_s", p->all.total_s);
    kl_json_number(j, "bound_s", p->all.bound_s);
    kl_json_number(j, "master_s", p->all.master_s);
    kl_json_number(j, "workers_s", p->all.workers_s);
    kl_json_number(j, "messages_s", p->all.messages_s);
    kl_json_number(j, "measured_s", p->measured_runs ? p->measured_s : (double)NAN);
    kl_json_number(j, "measured_predicted_s", p->measured_runs ? p->recorded.total_s : (double)NAN);
    kl_json_close(j, '}');
}

static void put_point(kl_json *j, const char *name, const kl_point *p) {
    kl_json_open(j, name, '{');
    kl_json_count(j, "workers", p->workers);
    kl_json_number(j, "speed", p->speed);
    kl_json_number(j, "time_s", p->time_s);
    kl_json_number(j, "efficiency", p->efficiency);
    kl_json_number(j, "index_s", p->index_s);
    kl_json_number(j, "rounds_time_s", p->rounds_time_s);
    kl_json_number(j, "low_s", p->within.low_s);
    kl_json_number(j, "high_s", p->within.high_s);
    kl_json_text(j, "limit", p->limit.what == KL_SHARED_NOTHING ? NULL : kl_shared_name(p->limit.what));
    kl_json_number(j, "limit_times", p->limit.times);
    kl_json_number(j, "limit_used", p->limit.used);
    kl_json_number(j, "limit_sending", p->limit.sending);
    kl_json_number(j, "rounds_efficiency", p->rounds_efficiency);
    kl_json_number(j, "rounds_index_s", p->rounds_index_s);
    kl_json_number(j, "quality_bound", p->quality_bound);
    kl_json_close(j, '}');
}

static void put_point_if_known(kl_json *j, const char *name, const kl_point *p) {
    if (p->workers > 0)
        put_point(j, name, p);
    else
        kl_json_text(j, name, NULL);
}

static void put_verdict(kl_json *j, const kl_prediction *p) {
    const kl_verdict *v = &p->verdict;
    put_point_if_known(j, "enough", &v->enough);
    kl_json_number(j, "probability", KL_SURE);
    kl_json_open(j, "what_if", '{');
    for (int i = 0; i < KL_WHAT_IFS; i++)
        if (p->what_if[i].key)
            put_point(j, p->what_if[i].key, &p->what_if[i].verdict.enough);
    kl_json_close(j, '}');
}

static void put_protocol(kl_json *j, const kl_protocol *p) {
    kl_json_open(j, p->name, '{');
    if (p->capability == UINT32_MAX)
        kl_json_text(j, "capability", NULL);
    else
        kl_json_count(j, "capability", p->capability);
    put_point(j, "best", &p->best);
    put_point(j, "fastest", &p->fastest);
    put_point_if_known(j, "rounds_best", &p->rounds_best);
    put_point_if_known(j, "rounds_fastest", &p->rounds_fastest);
    kl_json_open(j, "rows", '[');
    for (size_t i = 0; i < p->count; i++)
        put_point(j, NULL, &p->points[i]);
    kl_json_close(j, ']');
    kl_json_close(j, '}');
}

void kl_prediction_print_json(const kl_prediction *p, FILE *out) {
    const kl_basis *b = p->basis;
    kl_json j = {.out = out, .first = true};
    kl_json_open(&j, NULL, '{');
    kl_json_text(&j, "record", b->record);
    if (b->record)
        kl_json_count(&j, "run", b->run);
    else
        kl_json_text(&j, "run", NULL);
    put_cut(&j, b);
    put_inputs(&j, b);
    kl_json_text(&j, "speeds_from", b->speeds_from);
    kl_json_text(&j, "rounds", isnan(b->in[KL_IN_TASKS].value) ? NULL : b->part_count ? "recorded" : "daf");
    kl_json_count(&j, "max_workers", p->most);
    put_verdict(&j, p);
    put_measured(&j, b);
    put_program(&j, &p->program);
    for (uint32_t i = 0; i < KL_PROTOCOLS; i++)
        put_protocol(&j, &p->protocols[i]);
    kl_json_close(&j, '}');
    fputc('\n', out);
}
