/* Draw the screen of kilter top as lines of text, and handle its keys. These functions do not use a
 * terminal. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "decide/decide.h"
#include "report/print.h"
#include "top.h"

enum { RUNS_LISTED = 8, WORKERS_LEAST = 3 };

typedef struct page {
    kl_top_line *lines;
    size_t count, rows, columns;
} page;

/* ---- lines ---- */

/* Cut a text after `columns` characters, and replace control characters in it. */
static void fit(char *text, size_t columns) {
    size_t seen = 0;
    for (char *s = text; *s; s++) {
        bool continues = ((unsigned char)*s & 0xc0) == 0x80;
        if (!continues && seen++ == columns) {
            *s = '\0';
            return;
        }
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            *s = '?';
    }
}

KILTER_PRINTF(3, 4) static void put(page *p, kl_top_look look, const char *format, ...) {
    kl_top_line line = {.look = look};
    va_list args;
    va_start(args, format);
    // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): the line before initializes it
    vsnprintf(line.text, sizeof line.text, format, args);
    va_end(args);
    fit(line.text, p->columns);
    if (p->count < p->rows)
        p->lines[p->count++] = line;
}

/* ---- a line for each run ---- */

static void loop_progress(const kl_report_loop *loop, char words[KL_TOP_WORD_BYTES]) {
    snprintf(words, KL_TOP_WORD_BYTES, "%" PRIu64 " sweeps, %" PRIu64 " moves, %u ranks", loop->executions,
             loop->moves, loop->ranks);
}

static void farm_progress(const kl_control_state *s, char words[KL_TOP_WORD_BYTES]) {
    char left[KL_LEFT_BYTES];
    kl_left_words(s->left_low_s, s->left_high_s, left);
    if (s->running)
        snprintf(words, KL_TOP_WORD_BYTES, "run %" PRIu64 ": %" PRIu64 "/%" PRIu64 " tasks, %s%s%s", s->run,
                 s->done, s->tasks, kl_time_words(s->elapsed_s).text, *left ? "; " : "", left);
    else
        snprintf(words, KL_TOP_WORD_BYTES, "between two runs, open for %s", kl_time_words(s->at_s).text);
}

void kl_top_progress(const kl_top_run *run, char words[KL_TOP_WORD_BYTES]) {
    *words = '\0';
    if (run->report && run->report->loop && run->report->loop->name)
        loop_progress(run->report->loop, words);
    else if (run->state && run->looks_gone == 0)
        farm_progress(run->state, words);
}

static void put_run(page *p, const kl_top_run *run, bool chosen) {
    char words[KL_TOP_WORD_BYTES];
    kl_top_progress(run, words);
    kl_shown program = kl_shown_name(run->report ? run->report->run.program : run->path);
    put(p,
        *run->word ? KL_TOP_WARNING
        : chosen   ? KL_TOP_CHOSEN
                   : KL_TOP_PLAIN,
        "%s %s %.20s  %s%s%s", chosen ? ">" : " ", run->report && run->report->loop ? "loop" : "farm",
        program.text, run->word, *run->word && *words ? "; " : "", words);
}

static void put_runs(page *p, const kl_top *top) {
    size_t first = top->run >= RUNS_LISTED ? top->run - RUNS_LISTED + 1 : 0;
    put(p, KL_TOP_TITLE, "kilter top: %zu run%s", top->run_count, top->run_count == 1 ? "" : "s");
    for (size_t i = first; i < top->run_count && i < first + RUNS_LISTED; i++)
        put_run(p, &top->runs[i], i == top->run);
    if (top->run_count > first + RUNS_LISTED)
        put(p, KL_TOP_PLAIN, "  and %zu more", top->run_count - first - RUNS_LISTED);
    if (top->run_count == 0)
        put(p, KL_TOP_PLAIN, "Nothing is running. Runs appear here when they begin.");
}

/* ---- the part about the chosen run ---- */

static const char *const activities[KL_CONTROL_ACTIVITIES] = {
    [KL_CONTROL_STARTING] = "starting", [KL_CONTROL_BUSY] = "busy",       [KL_CONTROL_IDLE] = "waiting",
    [KL_CONTROL_RESTING] = "resting",   [KL_CONTROL_LEAVING] = "leaving",
};

static void put_farm(page *p, const kl_control_state *s) {
    char waiting[128] = "";
    if (*s->waiting)
        snprintf(waiting, sizeof waiting, "; from the next run on: %s", s->waiting);
    put(p, KL_TOP_PLAIN, "policy %s%s; %" PRIu64 " workers, %" PRIu64 " resting, %" PRIu64 " leaving",
        s->policy, waiting, s->present, s->resting, s->leaving);
    if (s->late_s > 0)
        put(p, KL_TOP_WARNING, "late: task %" PRIu64 " at worker %" PRIu64 " for %s, usually %s",
            s->late_task, s->late_worker, kl_time_words(s->late_s).text, kl_time_words(s->late_usual_s).text);
}

static void put_farm_row(page *p, const kl_top_run *run, uint32_t i, bool chosen) {
    const kl_control_worker *w = &run->state->workers[i];
    put(p, chosen ? KL_TOP_CHOSEN : KL_TOP_PLAIN, "%s %6u  %-8s  %10s  %9s  %8" PRIu64 "  %6" PRIu64,
        chosen ? ">" : " ", w->worker, activities[w->activity], kl_digits(w->rate_units_per_s).text,
        kl_time_words(w->busy_s).text, w->chunks, w->queued_tasks);
}

static void put_loop_row(page *p, const kl_top_run *run, uint32_t i, bool chosen) {
    const kl_report_worker *w = &run->report->workers[i];
    const kl_report_rank *r = &run->report->loop->rank[i];
    put(p, chosen ? KL_TOP_CHOSEN : KL_TOP_PLAIN, "%s %6u  %-16.16s  %10" PRIu64 "  %10s  %9s",
        chosen ? ">" : " ", w->worker, kl_shown_name(w->host).text, r->iterations,
        kl_digits(r->rate_per_s).text, kl_time_words(r->busy_s).text);
}

static bool is_loop(const kl_top_run *run) {
    return run->report && run->report->loop;
}

static uint32_t row_count(const kl_top_run *run) {
    if (!run ||
        (run->looks_gone > 0 && !is_loop(run))) /* after the end of a farm, its last state is out of date */
        return 0;
    return is_loop(run) ? run->report->loop->ranks : run->state ? run->state->worker_count : 0;
}

/* Draw rows of the table of workers. The chosen row is always among them. */
static void put_rows(page *p, const kl_top *top, const kl_top_run *run, size_t most) {
    uint32_t count = row_count(run);
    size_t first = top->row >= most ? top->row - most + 1 : 0;
    put(p, KL_TOP_TITLE, "%s",
        is_loop(run) ? "    rank  host              iterations      rate/s       busy"
                     : "  worker            units per s       busy    chunks  queued");
    for (size_t i = first; i < count && i < first + most; i++)
        (is_loop(run) ? put_loop_row : put_farm_row)(p, run, (uint32_t)i, i == top->row);
    if (count > first + most)
        put(p, KL_TOP_PLAIN, "  and %zu more", count - first - most);
}

static size_t decision_count(const kl_top_run *run) {
    size_t count = 0;
    for (size_t i = 0; i < KL_TOP_DECISIONS; i++)
        count += *run->decisions[i] != '\0';
    return count;
}

static void put_chosen(page *p, const kl_top *top, size_t below) {
    const kl_top_run *run = kl_top_chosen(top);
    if (!run)
        return;
    put(p, KL_TOP_PLAIN, "%s", "");
    if (run->state && run->looks_gone == 0)
        put_farm(p, run->state);
    size_t decisions = decision_count(run), used = p->count + below + decisions + 4;
    if (row_count(run) > 0)
        put_rows(p, top, run, p->rows > used + WORKERS_LEAST ? p->rows - used : WORKERS_LEAST);
    if (decisions > 0)
        put(p, KL_TOP_TITLE, "decisions");
    for (size_t i = KL_TOP_DECISIONS - decisions; i < KL_TOP_DECISIONS; i++)
        put(p, KL_TOP_PLAIN, "  %s", run->decisions[i]);
}

/* ---- the last lines, with questions and keys ---- */

static void put_question(page *p, const kl_top *top) {
    switch (top->mode) {
    case KL_TOP_WATCHING:
        put(p, KL_TOP_PLAIN, "%s", top->message);
        break;
    case KL_TOP_DRAINING:
        put(p, KL_TOP_WARNING, "Let worker %" PRId64 " finish its task and leave? y: yes, other keys: no",
            kl_top_worker(top));
        break;
    case KL_TOP_ENDING:
        put(p, KL_TOP_WARNING, "Stop this run cleanly? Its program then ends. y: yes, other keys: no");
        break;
    case KL_TOP_CHOOSING:
        put(p, KL_TOP_WARNING,
            "Policy from the next run on: %s. Up, down: choose, Enter: set, Escape: cancel",
            kl_policy_name(kl_policy_at(top->policy)));
        break;
    }
}

size_t kl_top_screen(const kl_top *top, size_t columns, size_t rows, kl_top_line *lines) {
    enum { BELOW = 2 };
    page p = {.lines = lines, .rows = rows < KL_TOP_ROWS_MOST ? rows : KL_TOP_ROWS_MOST};
    p.columns = columns < KL_TOP_COLUMNS_MOST ? columns : KL_TOP_COLUMNS_MOST;
    size_t whole = p.rows;
    p.rows = whole > BELOW ? whole - BELOW : 0; /* leave room for the last lines */
    put_runs(&p, top);
    put_chosen(&p, top, 0);
    while (p.count < p.rows)
        put(&p, KL_TOP_PLAIN, "%s", "");
    p.rows = whole;
    put_question(&p, top);
    put(&p, KL_TOP_TITLE, "q: quit  Tab: next run  up, down: worker  d: drain worker  p: policy  e: end run");
    return p.count;
}

/* ---- keys ---- */

kl_top_run *kl_top_chosen(const kl_top *top) {
    return top->run < top->run_count ? &top->runs[top->run] : NULL;
}

int64_t kl_top_worker(const kl_top *top) {
    const kl_top_run *run = kl_top_chosen(top);
    if (!run || is_loop(run) || top->row >= row_count(run))
        return -1;
    return run->state->workers[top->row].worker;
}

/* Begin to ask the user a question, if the chosen run is a farm that answers. */
static kl_top_action ask(kl_top *top, kl_top_mode mode) {
    const kl_top_run *run = kl_top_chosen(top);
    const char *why = !run                  ? "No run is chosen."
                      : run->looks_gone > 0 ? "This run has ended."
                      : is_loop(run)        ? "A loop cannot be steered from here."
                      : !run->tuner         ? "This farm does not answer."
                      : mode == KL_TOP_DRAINING && kl_top_worker(top) < 0 ? "No worker is chosen."
                                                                          : NULL;
    snprintf(top->message, sizeof top->message, "%s", why ? why : "");
    top->mode = why ? KL_TOP_WATCHING : mode;
    return KL_TOP_NOTHING;
}

static kl_top_action press_watching(kl_top *top, int key) {
    uint32_t rows = row_count(kl_top_chosen(top));
    switch (key) {
    case 'q':
        return KL_TOP_QUIT;
    case KL_KEY_UP:
        top->row -= top->row > 0;
        return KL_TOP_NOTHING;
    case KL_KEY_DOWN:
        top->row += top->row + 1 < rows;
        return KL_TOP_NOTHING;
    case KL_KEY_NEXT:
        top->run = top->run_count > 0 ? (top->run + 1) % top->run_count : 0;
        top->row = 0;
        return KL_TOP_NOTHING;
    case 'd':
        return ask(top, KL_TOP_DRAINING);
    case 'p':
        return ask(top, KL_TOP_CHOOSING);
    case 'e':
        return ask(top, KL_TOP_ENDING);
    default:
        return KL_TOP_NOTHING;
    }
}

static kl_top_action press_choosing(kl_top *top, int key) {
    size_t count = kl_policy_count();
    if (key == KL_KEY_DOWN || key == 'p')
        top->policy = (top->policy + 1) % count;
    else if (key == KL_KEY_UP)
        top->policy = (top->policy + count - 1) % count;
    else
        top->mode = KL_TOP_WATCHING;
    return key == KL_KEY_ENTER ? KL_TOP_POLICY : KL_TOP_NOTHING;
}

kl_top_action kl_top_press(kl_top *top, int key) {
    kl_top_mode mode = top->mode;
    if (mode == KL_TOP_WATCHING)
        return press_watching(top, key);
    if (mode == KL_TOP_CHOOSING)
        return press_choosing(top, key);
    top->mode = KL_TOP_WATCHING;
    if (key != 'y')
        return KL_TOP_NOTHING;
    return mode == KL_TOP_DRAINING ? KL_TOP_DRAIN : KL_TOP_END;
}
