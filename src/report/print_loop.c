/* Print the report of a loop, as text and as JSON. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/fields.h"
#include "report/loop_print.h"
#include "report/text.h"

/* The table shows all moves of a loop with at most LIST_ALL moves. If there are more, it shows the first
 * LIST_FIRST and the last LIST_LAST. */
enum { LIST_ALL = 16, LIST_FIRST = 5, LIST_LAST = 8 };

/* ---- ranks ---- */

static const void *rank_at(const void *context, size_t row) {
    return &((const kl_report *)context)->loop->rank[row];
}

static void cell_rank(const void *context, size_t row, char *cell) {
    kl_cell(cell, "%" PRIu32, ((const kl_report *)context)->workers[row].worker);
}

static void cell_host(const void *context, size_t row, char *cell) {
    const char *host = ((const kl_report *)context)->workers[row].host;
    kl_printable(cell, KL_CELL_BYTES, host ? host : "", KL_CELL_COLUMNS);
}

static void cell_share(const void *context, size_t row, char *cell) {
    double n = (double)((const kl_report *)context)->loop->iterations;
    kl_cell_number(cell, "%.1f",
                   n > 0 ? 100 * (double)((const kl_report *)context)->loop->rank[row].iterations / n
                         : (double)NAN);
}

static void print_ranks(const kl_report *report, FILE *out) {
    static const kl_row_column columns[] = {{.column = {"rank", false, cell_rank}},
                                            {.column = {"host", true, cell_host}},
                                            KL_SHOW("iterations", COUNT, kl_report_rank, iterations),
                                            {.column = {"share %", false, cell_share}},
                                            KL_SHOW("rate /s", DIGITS, kl_report_rank, rate_per_s),
                                            KL_SHOW("believed /s", DIGITS, kl_report_rank, believed_per_s),
                                            KL_SHOW("done", COUNT, kl_report_rank, done),
                                            KL_SHOW_REAL("busy s", REAL, kl_report_rank, busy_s, 3, 1),
                                            KL_SHOW_REAL("waited s", REAL, kl_report_rank, waited_s, 3, 1),
                                            KL_SHOW_REAL("moving s", REAL, kl_report_rank, moving_s, 4, 1)};
    if (report->loop->ranks == 0)
        return;
    fputc('\n', out);
    kl_print_rows(out, columns, sizeof columns / sizeof *columns, rank_at, report, report->loop->ranks);
    fputc('\n', out);
}

/* ---- moves ---- */

typedef struct moves { /* the moves of a loop that are printed: all, or the first and last few with a gap
                          between them */
    const kl_report *report;
    const kl_report_decided *shown[LIST_ALL]; /* an entry that is NULL stands for the gap */
    size_t count;
} moves;

static moves moves_of(const kl_report *report) {
    moves m = {.report = report};
    const size_t all = report->loop->move_count;
    const kl_report_decided *move = kl_report_next_decided(report, "move", 0);
    for (size_t i = 0; move; i++) {
        if (all <= LIST_ALL || i < LIST_FIRST || i >= all - LIST_LAST)
            m.shown[m.count++] = move;
        else if (i == LIST_FIRST)
            m.shown[m.count++] = NULL;
        move = kl_report_next_decided(report, "move", (size_t)(move - report->decided) + 1);
    }
    return m;
}

static const void *move_at(const void *context, size_t row) {
    return ((const moves *)context)->shown[row];
}

/* Return the round in which a move was decided. Its fields now_s and then_s are the seconds of a sweep before
 * the move and, as forecast, after it. */
static const kl_report_round *round_at(const void *context, size_t row) {
    const kl_report_decided *move = move_at(context, row);
    return move ? kl_report_round_of(((const moves *)context)->report->loop, move->round) : NULL;
}

static void cell_round(const void *context, size_t row, char *cell) {
    const kl_report_decided *m = move_at(context, row);
    if (m)
        kl_cell(cell, "%" PRIu64, m->round);
    else
        kl_cell(cell, "…");
}

static void put_time(const kl_report_decided *m, double time_s, char *cell) {
    kl_cell(cell, "%s", m ? kl_time_words(time_s).text : "");
}

static void cell_now(const void *context, size_t row, char *cell) {
    const kl_report_round *round = round_at(context, row);
    put_time(move_at(context, row), round ? round->now_s : (double)NAN, cell);
}

static void cell_then(const void *context, size_t row, char *cell) {
    const kl_report_round *round = round_at(context, row);
    put_time(move_at(context, row), round ? round->then_s : (double)NAN, cell);
}

static void cell_outcome(const void *context, size_t row, char *cell) {
    const kl_report_decided *m = move_at(context, row);
    kl_cell(cell, "%s", m && m->refused ? "refused: no memory" : "");
}

static void print_moves(const kl_report *report, FILE *out) {
    static const kl_row_column columns[] = {{.column = {"move", false, cell_round}},
                                            KL_SHOW("at", TIME, kl_report_decided, at_s),
                                            KL_SHOW("iterations", COUNT, kl_report_decided, count),
                                            {.column = {"sweep", false, cell_now}},
                                            {.column = {"then", false, cell_then}},
                                            KL_SHOW("to gain", TIME, kl_report_decided, gain_s),
                                            KL_SHOW("gained", TIME, kl_report_decided, came_s),
                                            KL_SHOW("cost", TIME, kl_report_decided, spent_s),
                                            {.column = {"", true, cell_outcome}}};
    const moves m = moves_of(report);
    if (m.count == 0)
        return;
    fputc('\n', out);
    kl_print_rows(out, columns, sizeof columns / sizeof *columns, move_at, &m, m.count);
    fputc('\n', out);
}

/* ---- the report of a loop as text ---- */

static void print_gains(const kl_report *report, FILE *out) {
    const kl_report_loop *loop = report->loop;
    uint64_t refused = 0;
    for (size_t i = 0; i < report->decided_count; i++)
        refused += report->decided[i].refused;
    kl_say(out, "moves",
           refused ? "%llu carried out, which moved %llu iteration%s; some moves were refused"
                   : "%llu carried out, which moved %llu iteration%s",
           kl_ull(loop->moves), kl_ull(loop->moved), kl_plural(loop->moved));
    if (loop->moves > 0)
        kl_say(out, "gained",
               loop->ended
                   ? "forecast %s; measured %s against equal shares since the first move; moving took %s"
                   : "forecast %s; measured %s for these moves so far; moving took %s",
               kl_time_words(loop->gained_s).text, kl_time_words(loop->came_s).text,
               kl_time_words(loop->cost_s).text);
}

/* Print what the checkpoints cost. A checkpoint without bytes could not be written. */
static void print_saves(const kl_report *report, FILE *out) {
    uint64_t saves = 0, failed = 0, bytes = 0;
    double stopped_s = 0;
    const kl_report_decided *d = kl_report_next_decided(report, "save", 0), *last = NULL;
    for (; d; d = kl_report_next_decided(report, "save", (size_t)(d - report->decided) + 1)) {
        last = d;
        saves += d->count > 0;
        failed += d->count == 0;
        bytes += d->count;
        stopped_s += d->cost_s;
    }
    if (!last)
        return;
    kl_say(out, "saves", "%llu checkpoint%s with %s stopped the sweeps for %s", kl_ull(saves),
           kl_plural(saves), kl_bytes_words(bytes).text, kl_time_words(stopped_s).text);
    if (failed > 0)
        kl_say(out, "", "%llu more could not be written", kl_ull(failed));
    kl_say(out, "", "the last one at %s: %s", kl_time_words(last->at_s).text, last->reason);
}

void kl_loop_print_what(const kl_report *report, FILE *out) {
    const kl_report_loop *loop = report->loop;
    if (!loop->name) {
        kl_say(out, "loop", "it has not begun yet");
        return;
    }
    if (kl_is_kept(loop)) {
        kl_kept_print_what(report, out);
        return;
    }
    kl_say(out, "loop", "%s: %llu iteration%s, %s, on %u rank%s; %llu byte%s a row in %zu array%s%s",
           loop->name, kl_ull(loop->iterations), kl_plural(loop->iterations), loop->kind, loop->ranks,
           kl_plural(loop->ranks), kl_ull(loop->row_bytes), kl_plural(loop->row_bytes), loop->arrays,
           kl_plural(loop->arrays), loop->fixed ? "; fixed, nothing moves" : "");
}

void kl_loop_print_text(const kl_report *report, FILE *out) {
    const kl_report_loop *loop = report->loop;
    if (kl_is_kept(loop)) {
        kl_kept_print_text(report, out);
        return;
    }
    print_ranks(report, out);
    if (loop->ended)
        kl_say(out, "sweeps", "%" PRIu64 " in %s", loop->executions, kl_time_words(loop->elapsed_s).text);
    else
        kl_say(out, "sweeps", "at least %llu; the loop did not end", kl_ull(loop->executions));
    if (loop->round_count > 0)
        kl_say(out, "rounds", "%llu, at the end at least %s apart; %zu of them are in the record",
               kl_ull(loop->rounds), kl_time_words(loop->round[loop->round_count - 1].period_s).text,
               loop->round_count);
    else
        kl_say(out, "rounds", "%" PRIu64, loop->rounds);
    if (loop->block > 0)
        kl_say(out, "block", "%" PRIu64 " of %" PRIu64 " elements", loop->block, loop->inner);
    if (!loop->fixed)
        print_gains(report, out);
    print_moves(report, out);
    print_saves(report, out);
    if (loop->decision && *loop->decision)
        kl_say(out, "decision", "%s", loop->decision);
    if (loop->status && *loop->status && strcmp(loop->status, "done") != 0)
        kl_say(out, "status", "%s", loop->status);
}

/* ---- JSON ---- */

static void json_ranks(kl_json *j, const kl_report *report) {
    kl_json_open(j, "ranks", '[');
    for (uint32_t i = 0; i < report->loop->ranks; i++) {
        kl_json_open(j, NULL, '{');
        kl_json_count(j, "rank", report->workers[i].worker);
        kl_json_text(j, "host", report->workers[i].host);
        kl_row_json(j, &kl_rank_rows, &report->loop->rank[i]);
        kl_json_close(j, '}');
    }
    kl_json_close(j, ']');
}

static void json_rounds(kl_json *j, const kl_report_loop *loop) {
    kl_json_open(j, "rounds", '[');
    for (size_t i = 0; i < loop->round_count; i++) {
        kl_json_open(j, NULL, '{');
        kl_row_json(j, &kl_round_rows, &loop->round[i]);
        kl_json_open(j, "counts", '[');
        for (uint32_t r = 0; r < loop->ranks; r++)
            kl_json_count(j, NULL, loop->round[i].counts[r]);
        kl_json_close(j, ']');
        kl_json_close(j, '}');
    }
    kl_json_close(j, ']');
}

void kl_loop_print_json(kl_json *j, const kl_report *report) {
    const kl_report_loop *loop = report->loop;
    kl_json_open(j, "loop", '{');
    kl_row_json(j, &kl_loop_rows, loop);
    json_ranks(j, report);
    json_rounds(j, loop);
    kl_json_close(j, '}');
}
