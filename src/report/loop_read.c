/* Reading what a loop's record holds beside a farm's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/reading.h"

static kl_report_loop *loop_of(const kl_reading *r) {
    return r->report->loop;
}

/* The ranks are those that stand in the record: its own word for their number may be anything. */
static void take_loop(kl_reading *r, sqlite3_stmt *row) {
    kl_report_loop *loop = loop_of(r);
    if (loop->name)
        return; /* one loop a file */
    *loop = (kl_report_loop){.name = kl_text_at(r, row, 0),
                             .kind = kl_text_at(r, row, 1),
                             .iterations = kl_count_at(row, 2),
                             .inner = kl_count_at(row, 3),
                             .ranks = (uint32_t)r->report->worker_count,
                             .fixed = sqlite3_column_int(row, 4),
                             .ended = sqlite3_column_type(row, 5) != SQLITE_NULL,
                             .ended_s = kl_record_real(row, 5),
                             .elapsed_s = kl_record_real(row, 6),
                             .executions = kl_count_at(row, 7),
                             .rounds = kl_count_at(row, 8),
                             .moves = kl_count_at(row, 9),
                             .moved = kl_count_at(row, 10),
                             .block = kl_count_at(row, 11),
                             .gained_s = kl_record_real(row, 12),
                             .came_s = kl_record_real(row, 13),
                             .cost_s = kl_record_real(row, 14),
                             .decision = kl_text_or_null(r, row, 15),
                             .status = kl_text_or_null(r, row, 16)};
    loop->rank = calloc(loop->ranks + 1, sizeof *loop->rank);
    r->memory |= !loop->rank;
    for (uint32_t i = 0; i < loop->ranks && loop->rank; i++)
        loop->rank[i] = (kl_report_rank){.rate_per_s = (double)NAN,
                                         .believed_per_s = (double)NAN,
                                         .elapsed_s = (double)NAN,
                                         .waited_s = (double)NAN,
                                         .moving_s = (double)NAN};
}

static void take_array(kl_reading *r, sqlite3_stmt *row) {
    kl_report_loop *loop = loop_of(r);
    loop->arrays = kl_count_at(row, 0);
    loop->row_bytes = kl_count_at(row, 1);
}

static void take_round(kl_reading *r, sqlite3_stmt *row) {
    kl_report_loop *loop = loop_of(r);
    kl_report_round *round;
    KL_APPEND(r, loop->round, loop->round_count, round);
    if (!round)
        return;
    *round = (kl_report_round){.round = kl_count_at(row, 0),
                               .execution = kl_count_at(row, 1),
                               .block = kl_count_at(row, 2),
                               .at_s = kl_record_real(row, 3),
                               .period_s = kl_record_real(row, 4),
                               .now_s = kl_record_real(row, 5),
                               .then_s = kl_record_real(row, 6),
                               .counts = calloc(loop->ranks + 1, sizeof *round->counts)};
    r->memory |= !round->counts;
}

static int by_round(const void *key, const void *item) {
    uint64_t round = *(const uint64_t *)key, other = ((const kl_report_round *)item)->round;
    return (round > other) - (round < other);
}

static kl_report_rank *rank_of(const kl_report_loop *loop, uint64_t rank) {
    return rank < loop->ranks ? &loop->rank[rank] : NULL;
}

/* Columns: round, rank, count, done, busy_s, rate_per_s; in the order of writing: the last one stands. */
static void take_share(kl_reading *r, sqlite3_stmt *row) {
    kl_report_loop *loop = loop_of(r);
    uint64_t number = kl_count_at(row, 0), done = kl_count_at(row, 3);
    kl_report_rank *rank = rank_of(loop, kl_count_at(row, 1));
    double busy_s = kl_record_real(row, 4);
    if (!rank)
        return;
    rank->iterations = kl_count_at(row, 2);
    rank->done += done;
    rank->busy_s += busy_s > 0 ? busy_s : 0;
    if (done > 0 && busy_s > 0)
        rank->rate_per_s = (double)done / busy_s;
    rank->believed_per_s = kl_record_real(row, 5);
    kl_report_round *round = loop->round_count > 0 ? bsearch(&number, loop->round, loop->round_count,
                                                             sizeof *loop->round, by_round)
                                                   : NULL;
    if (round)
        round->counts[rank - loop->rank] = rank->iterations;
}

static void take_move(kl_reading *r, sqlite3_stmt *row) {
    kl_report_loop *loop = loop_of(r);
    kl_report_move *move;
    KL_APPEND(r, loop->move, loop->move_count, move);
    if (move)
        *move = (kl_report_move){.round = kl_count_at(row, 0),
                                 .iterations = kl_count_at(row, 1),
                                 .at_s = kl_record_real(row, 2),
                                 .now_s = kl_record_real(row, 3),
                                 .then_s = kl_record_real(row, 4),
                                 .gain_s = kl_record_real(row, 5),
                                 .cost_s = kl_record_real(row, 6),
                                 .settled_s = kl_record_real(row, 7),
                                 .came_s = kl_record_real(row, 8),
                                 .spent_s = kl_record_real(row, 9),
                                 .refused = sqlite3_column_int(row, 10)};
}

static void take_decided(kl_reading *r, sqlite3_stmt *row) {
    kl_report_loop *loop = loop_of(r);
    kl_report_loop_decision *decided;
    KL_APPEND(r, loop->decided, loop->decided_count, decided);
    if (decided)
        *decided = (kl_report_loop_decision){.kind = kl_text_at(r, row, 0),
                                             .reason = kl_text_at(r, row, 1),
                                             .round = kl_count_at(row, 2),
                                             .count = kl_count_at(row, 3),
                                             .at_s = kl_record_real(row, 4),
                                             .gain_s = kl_record_real(row, 5)};
}

static void take_rank(kl_reading *r, sqlite3_stmt *row) {
    kl_report_rank *rank = rank_of(loop_of(r), kl_count_at(row, 0));
    if (!rank)
        return;
    rank->iterations = kl_count_at(row, 1);
    rank->elapsed_s = kl_record_real(row, 2);
    rank->waited_s = kl_record_real(row, 3);
    rank->moving_s = kl_record_real(row, 4);
}

static const struct {
    const char *sql;
    kl_row_fn take;
} queries[] = {
    {"SELECT name, kind, iterations, inner, fixed, ended_s, elapsed_s, executions, rounds, moves, moved, "
     "block, "
     "gained_s, came_s, cost_s, decision, status FROM loop ORDER BY loop",
     take_loop},
    {"SELECT count(*), total(row_bytes) FROM array", take_array},
    {"SELECT round, execution, block, at_s, period_s, now_s, then_s FROM round ORDER BY round", take_round},
    {"SELECT round, rank, count, done, busy_s, rate_per_s FROM share ORDER BY id", take_share},
    {"SELECT d.round, d.count, d.at_s, r.now_s, r.then_s, d.gain_s, d.cost_s, d.settled_s, d.came_s, "
     "d.spent_s, d.refused FROM decision d LEFT JOIN round r USING (round) WHERE d.kind = 'move' "
     "ORDER BY d.round, d.id",
     take_move},
    {"SELECT kind, reason, round, count, at_s, gain_s FROM decision ORDER BY id", take_decided},
    {"SELECT rank, iterations, elapsed_s, waited_s, moving_s FROM rank ORDER BY rank", take_rank},
};

static double or_zero(double value) {
    return isnan(value) ? 0 : value;
}

/* Of a loop that did not end, what the rows say. */
static void derive(kl_report_loop *loop) {
    if (loop->ended)
        return;
    const kl_report_round *last = loop->round_count > 0 ? &loop->round[loop->round_count - 1] : NULL;
    loop->rounds = last ? last->round : 0;
    loop->executions = last ? last->execution : 0;
    loop->block = last ? last->block : 0;
    loop->gained_s = loop->came_s = loop->cost_s = 0;
    for (size_t i = 0; i < loop->move_count; i++) {
        const kl_report_move *move = &loop->move[i];
        loop->moves += !move->refused;
        loop->moved += move->refused ? 0 : move->iterations;
        loop->gained_s += move->refused ? 0 : or_zero(move->gain_s);
        loop->came_s += or_zero(move->came_s);
        loop->cost_s += or_zero(move->spent_s);
    }
}

/* Of a loop whose first rows were not written yet nothing is known. */
bool kl_loop_read(kl_reading *r) {
    kl_report_loop *loop = r->report->loop = calloc(1, sizeof *loop);
    r->memory |= !loop;
    for (size_t i = 0; i < sizeof queries / sizeof *queries && loop; i++)
        if (!kl_each_row(r, queries[i].sql, queries[i].take))
            return false;
    if (loop)
        derive(loop);
    return loop != NULL;
}

void kl_loop_report_free(kl_report_loop *loop) {
    if (!loop)
        return;
    for (size_t i = 0; i < loop->round_count; i++)
        free(loop->round[i].counts);
    for (size_t i = 0; i < loop->decided_count; i++) {
        free(loop->decided[i].kind);
        free(loop->decided[i].reason);
    }
    free(loop->name);
    free(loop->kind);
    free(loop->decision);
    free(loop->status);
    free(loop->rank);
    free(loop->round);
    free(loop->move);
    free(loop->decided);
    free(loop);
}
