/* The report of a loop, for people and for programs. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/loop_print.h"
#include "report/text.h"

enum { LIST_ALL = 16, LIST_FIRST = 5, LIST_LAST = 8 }; /* moves */

/* ---- ranks ---- */

static const kl_report_rank *rank_at(const void *context, size_t row) {
    return &((const kl_report *)context)->loop->rank[row];
}

static void cell_rank(const void *context, size_t row, char *cell) {
    kl_cell(cell, "%" PRIu32, ((const kl_report *)context)->workers[row].worker);
}

static void cell_host(const void *context, size_t row, char *cell) {
    const char *host = ((const kl_report *)context)->workers[row].host;
    kl_printable(cell, KL_CELL_BYTES, host ? host : "", KL_CELL_COLUMNS);
}

static void cell_iterations(const void *context, size_t row, char *cell) {
    kl_cell(cell, "%" PRIu64, rank_at(context, row)->iterations);
}

static void cell_share(const void *context, size_t row, char *cell) {
    double n = (double)((const kl_report *)context)->loop->iterations;
    kl_cell_number(cell, "%.1f", n > 0 ? 100 * (double)rank_at(context, row)->iterations / n : (double)NAN);
}

static void cell_rate(const void *context, size_t row, char *cell) {
    kl_cell(cell, "%s", kl_digits(rank_at(context, row)->rate_per_s).text);
}

static void cell_believed(const void *context, size_t row, char *cell) {
    kl_cell(cell, "%s", kl_digits(rank_at(context, row)->believed_per_s).text);
}

static void cell_done(const void *context, size_t row, char *cell) {
    kl_cell(cell, "%" PRIu64, rank_at(context, row)->done);
}

static void cell_busy(const void *context, size_t row, char *cell) {
    kl_cell_number(cell, "%.3f", rank_at(context, row)->busy_s);
}

static void cell_waited(const void *context, size_t row, char *cell) {
    kl_cell_number(cell, "%.3f", rank_at(context, row)->waited_s);
}

static void cell_moving(const void *context, size_t row, char *cell) {
    kl_cell_number(cell, "%.4f", rank_at(context, row)->moving_s);
}

static void print_ranks(const kl_report *report, FILE *out) {
    static const kl_column columns[] = {{"rank", false, cell_rank},
                                        {"host", true, cell_host},
                                        {"iterations", false, cell_iterations},
                                        {"share %", false, cell_share},
                                        {"rate /s", false, cell_rate},
                                        {"believed /s", false, cell_believed},
                                        {"done", false, cell_done},
                                        {"busy s", false, cell_busy},
                                        {"waited s", false, cell_waited},
                                        {"moving s", false, cell_moving}};
    if (report->loop->ranks == 0)
        return;
    fputc('\n', out);
    kl_print_table(out, columns, sizeof columns / sizeof *columns, report, report->loop->ranks);
    fputc('\n', out);
}

/* ---- moves ---- */

static size_t rows_of_moves(const kl_report_loop *loop) {
    return loop->move_count > LIST_ALL ? LIST_FIRST + 1 + LIST_LAST : loop->move_count;
}

/* NULL: the row that stands for those left out. */
static const kl_report_move *move_at(const void *context, size_t row) {
    const kl_report_loop *loop = context;
    if (loop->move_count <= LIST_ALL || row < LIST_FIRST)
        return &loop->move[row];
    return row == LIST_FIRST ? NULL : &loop->move[loop->move_count - (LIST_FIRST + 1 + LIST_LAST) + row];
}

static void cell_round(const void *context, size_t row, char *cell) {
    const kl_report_move *m = move_at(context, row);
    if (m)
        kl_cell(cell, "%" PRIu64, m->round);
    else
        kl_cell(cell, "…");
}

static void put_time(const void *context, size_t row, char *cell, double (*value)(const kl_report_move *)) {
    const kl_report_move *m = move_at(context, row);
    cell[0] = '\0';
    if (m)
        kl_cell(cell, "%s", kl_time_words(value(m)).text);
}

static double at_of(const kl_report_move *m) {
    return m->at_s;
}
static double now_of(const kl_report_move *m) {
    return m->now_s;
}
static double then_of(const kl_report_move *m) {
    return m->then_s;
}
static double gain_of(const kl_report_move *m) {
    return m->gain_s;
}
static double came_of(const kl_report_move *m) {
    return m->came_s;
}
static double spent_of(const kl_report_move *m) {
    return m->spent_s;
}

static void cell_at(const void *context, size_t row, char *cell) {
    put_time(context, row, cell, at_of);
}

static void cell_now(const void *context, size_t row, char *cell) {
    put_time(context, row, cell, now_of);
}

static void cell_then(const void *context, size_t row, char *cell) {
    put_time(context, row, cell, then_of);
}

static void cell_gain(const void *context, size_t row, char *cell) {
    put_time(context, row, cell, gain_of);
}

static void cell_came(const void *context, size_t row, char *cell) {
    put_time(context, row, cell, came_of);
}

static void cell_spent(const void *context, size_t row, char *cell) {
    put_time(context, row, cell, spent_of);
}

static void cell_moved(const void *context, size_t row, char *cell) {
    const kl_report_move *m = move_at(context, row);
    cell[0] = '\0';
    if (m)
        kl_cell(cell, "%" PRIu64, m->iterations);
}

static void cell_outcome(const void *context, size_t row, char *cell) {
    const kl_report_move *m = move_at(context, row);
    kl_cell(cell, "%s", m && m->refused ? "refused: no memory" : "");
}

static void print_moves(const kl_report_loop *loop, FILE *out) {
    static const kl_column columns[] = {
        {"move", false, cell_round},    {"at", false, cell_at},      {"iterations", false, cell_moved},
        {"execution", false, cell_now}, {"then", false, cell_then},  {"to gain", false, cell_gain},
        {"gained", false, cell_came},   {"cost", false, cell_spent}, {"", true, cell_outcome}};
    if (loop->move_count == 0)
        return;
    kl_print_table(out, columns, sizeof columns / sizeof *columns, loop, rows_of_moves(loop));
    fputc('\n', out);
}

/* ---- in words ---- */

static const kl_report_loop_decision *last_of(const kl_report_loop *loop, const char *kind, uint64_t *count) {
    const kl_report_loop_decision *last = NULL;
    *count = 0;
    for (size_t i = 0; i < loop->decided_count; i++)
        if (strcmp(loop->decided[i].kind, kind) == 0) {
            last = &loop->decided[i];
            ++*count;
        }
    return last;
}

static void print_last_of(const kl_report_loop *loop, const char *kind, const char *label, FILE *out) {
    uint64_t count;
    const kl_report_loop_decision *last = last_of(loop, kind, &count);
    if (last)
        kl_say(out, label, "%" PRIu64 ", the last one at %s%s%s", count, kl_time_words(last->at_s).text,
               *last->reason ? ": " : "", last->reason);
}

static void print_gains(const kl_report_loop *loop, FILE *out) {
    uint64_t refused = 0;
    for (size_t i = 0; i < loop->move_count; i++)
        refused += loop->move[i].refused;
    kl_say(out, "moves", "%" PRIu64 " carried out, %" PRIu64 " iteration%s changed hands%s", loop->moves,
           loop->moved, kl_plural(loop->moved), refused ? "; some were refused" : "");
    if (loop->moves > 0)
        kl_say(out, "gained", "%s was forecast, %s came of %s; moving took %s",
               kl_time_words(loop->gained_s).text, kl_time_words(loop->came_s).text,
               loop->ended ? "it, against equal shares from the first move on" : "these moves so far",
               kl_time_words(loop->cost_s).text);
}

void kl_loop_print_what(const kl_report *report, FILE *out) {
    const kl_report_loop *loop = report->loop;
    if (!loop->name) {
        kl_say(out, "loop", "nothing is known of it yet");
        return;
    }
    kl_say(out, "loop",
           "%s: %" PRIu64 " iteration%s, %s, on %" PRIu32 " rank%s; %" PRIu64 " byte%s a row in %zu "
           "array%s%s",
           loop->name, loop->iterations, kl_plural(loop->iterations), loop->kind, loop->ranks,
           kl_plural(loop->ranks), loop->row_bytes, kl_plural(loop->row_bytes), loop->arrays,
           kl_plural(loop->arrays), loop->fixed ? "; fixed, nothing moves" : "");
}

void kl_loop_print_text(const kl_report *report, FILE *out) {
    const kl_report_loop *loop = report->loop;
    print_ranks(report, out);
    if (loop->ended)
        kl_say(out, "executions", "%" PRIu64 " in %s", loop->executions, kl_time_words(loop->elapsed_s).text);
    else
        kl_say(out, "executions", "the loop did not end; %" PRIu64 " at least", loop->executions);
    if (loop->round_count > 0)
        kl_say(out, "rounds", "%" PRIu64 ", at least %s apart at last; %zu of them in the record",
               loop->rounds, kl_time_words(loop->round[loop->round_count - 1].period_s).text,
               loop->round_count);
    else
        kl_say(out, "rounds", "%" PRIu64, loop->rounds);
    if (loop->block > 0)
        kl_say(out, "block", "%" PRIu64 " of %" PRIu64 " elements", loop->block, loop->inner);
    if (!loop->fixed)
        print_gains(loop, out);
    if (loop->move_count > 0)
        fputc('\n', out);
    print_moves(loop, out);
    print_last_of(loop, "wait", "refusals", out);
    print_last_of(loop, "rest", "rests", out);
    print_last_of(loop, "refused", "no memory", out);
    print_last_of(loop, "block", "blocks", out);
    if (loop->decision && *loop->decision)
        kl_say(out, "decision", "%s", loop->decision);
    if (loop->status && *loop->status && strcmp(loop->status, "done") != 0)
        kl_say(out, "status", "%s", loop->status);
}

/* ---- JSON ---- */

static void json_ranks(kl_json *j, const kl_report *report) {
    kl_json_open(j, "ranks", '[');
    for (uint32_t i = 0; i < report->loop->ranks; i++) {
        const kl_report_rank *rank = &report->loop->rank[i];
        kl_json_open(j, NULL, '{');
        kl_json_count(j, "rank", report->workers[i].worker);
        kl_json_text(j, "host", report->workers[i].host);
        kl_json_count(j, "iterations", rank->iterations);
        kl_json_count(j, "done", rank->done);
        kl_json_number(j, "busy_s", rank->busy_s);
        kl_json_number(j, "rate_per_s", rank->rate_per_s);
        kl_json_number(j, "believed_per_s", rank->believed_per_s);
        kl_json_number(j, "elapsed_s", rank->elapsed_s);
        kl_json_number(j, "waited_s", rank->waited_s);
        kl_json_number(j, "moving_s", rank->moving_s);
        kl_json_close(j, '}');
    }
    kl_json_close(j, ']');
}

static void json_rounds(kl_json *j, const kl_report_loop *loop) {
    kl_json_open(j, "rounds", '[');
    for (size_t i = 0; i < loop->round_count; i++) {
        const kl_report_round *round = &loop->round[i];
        kl_json_open(j, NULL, '{');
        kl_json_count(j, "round", round->round);
        kl_json_count(j, "execution", round->execution);
        kl_json_number(j, "at_s", round->at_s);
        kl_json_number(j, "period_s", round->period_s);
        kl_json_number(j, "now_s", round->now_s);
        kl_json_number(j, "then_s", round->then_s);
        kl_json_count(j, "block", round->block);
        kl_json_open(j, "counts", '[');
        for (uint32_t r = 0; r < loop->ranks; r++)
            kl_json_count(j, NULL, round->counts[r]);
        kl_json_close(j, ']');
        kl_json_close(j, '}');
    }
    kl_json_close(j, ']');
}

static void json_moves(kl_json *j, const kl_report_loop *loop) {
    kl_json_open(j, "moves", '[');
    for (size_t i = 0; i < loop->move_count; i++) {
        const kl_report_move *move = &loop->move[i];
        kl_json_open(j, NULL, '{');
        kl_json_count(j, "round", move->round);
        kl_json_number(j, "at_s", move->at_s);
        kl_json_count(j, "iterations", move->iterations);
        kl_json_number(j, "now_s", move->now_s);
        kl_json_number(j, "then_s", move->then_s);
        kl_json_number(j, "gain_s", move->gain_s);
        kl_json_number(j, "cost_s", move->cost_s);
        kl_json_number(j, "settled_s", move->settled_s);
        kl_json_number(j, "came_s", move->came_s);
        kl_json_number(j, "spent_s", move->spent_s);
        kl_json_truth(j, "refused", move->refused);
        kl_json_close(j, '}');
    }
    kl_json_close(j, ']');
}

static void json_decided(kl_json *j, const kl_report_loop *loop) {
    kl_json_open(j, "decided", '[');
    for (size_t i = 0; i < loop->decided_count; i++) {
        const kl_report_loop_decision *decided = &loop->decided[i];
        kl_json_open(j, NULL, '{');
        kl_json_text(j, "kind", decided->kind);
        kl_json_number(j, "at_s", decided->at_s);
        kl_json_count(j, "round", decided->round);
        kl_json_count(j, "count", decided->count);
        kl_json_number(j, "gain_s", decided->gain_s);
        kl_json_text(j, "reason", decided->reason);
        kl_json_close(j, '}');
    }
    kl_json_close(j, ']');
}

void kl_loop_print_json(kl_json *j, const kl_report *report) {
    const kl_report_loop *loop = report->loop;
    kl_json_open(j, "loop", '{');
    kl_json_text(j, "name", loop->name);
    kl_json_text(j, "kind", loop->kind);
    kl_json_count(j, "iterations", loop->iterations);
    kl_json_count(j, "inner", loop->inner);
    kl_json_count(j, "arrays", loop->arrays);
    kl_json_count(j, "row_bytes", loop->row_bytes);
    kl_json_truth(j, "fixed", loop->fixed);
    kl_json_truth(j, "ended", loop->ended);
    kl_json_number(j, "ended_s", loop->ended_s);
    kl_json_number(j, "elapsed_s", loop->elapsed_s);
    kl_json_count(j, "executions", loop->executions);
    kl_json_count(j, "round_count", loop->rounds);
    kl_json_count(j, "move_count", loop->moves);
    kl_json_count(j, "moved", loop->moved);
    kl_json_count(j, "block", loop->block);
    kl_json_number(j, "gained_s", loop->gained_s);
    kl_json_number(j, "came_s", loop->came_s);
    kl_json_number(j, "cost_s", loop->cost_s);
    kl_json_text(j, "decision", loop->decision);
    kl_json_text(j, "status", loop->status);
    json_ranks(j, report);
    json_rounds(j, loop);
    json_moves(j, loop);
    json_decided(j, loop);
    kl_json_close(j, '}');
}
