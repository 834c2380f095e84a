/* Read the tables that only the record of a loop has. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/fields.h"

static kl_report_loop *loop_of(const kl_reading *r) {
    return r->report->loop;
}

/* Make an entry for each rank that has a row in the record. The recorded number of ranks is not used, because
 * it may be wrong. */
static void add_ranks(kl_reading *r) {
    kl_report_loop *loop = loop_of(r);
    loop->ranks = (uint32_t)r->report->worker_count;
    loop->rank = calloc(loop->ranks + 1, sizeof *loop->rank);
    r->memory |= !loop->rank;
    for (uint32_t i = 0; i < loop->ranks && loop->rank; i++)
        loop->rank[i] = (kl_report_rank){.rate_per_s = (double)NAN,
                                         .believed_per_s = (double)NAN,
                                         .elapsed_s = (double)NAN,
                                         .waited_s = (double)NAN,
                                         .moving_s = (double)NAN};
}

static int by_round(const void *key, const void *item) {
    uint64_t round = *(const uint64_t *)key, other = ((const kl_report_round *)item)->round;
    return (round > other) - (round < other);
}

const kl_report_round *kl_report_round_of(const kl_report_loop *loop, uint64_t round) {
    return loop->round_count > 0
               ? bsearch(&round, loop->round, loop->round_count, sizeof *loop->round, by_round)
               : NULL;
}

static kl_report_rank *rank_of(const kl_report_loop *loop, uint64_t rank) {
    return rank < loop->ranks ? &loop->rank[rank] : NULL;
}

/* Take a row of a query with the columns round, rank, count, done, busy_s, rate_per_s. Rows come in the order
 * of writing. A later row of a rank replaces the count and the rate of an earlier one. */
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
    const kl_report_round *round = kl_report_round_of(loop, number);
    if (round)
        round->counts[rank - loop->rank] = rank->iterations;
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

static double or_zero(double value) {
    return isnan(value) ? 0 : value;
}

/* Count the moves. If the loop was not closed, the record has no sums of the loop; compute them from the
 * recorded rounds and moves. */
static void derive(const kl_report *report, kl_report_loop *loop) {
    const kl_report_round *last = loop->round_count > 0 ? &loop->round[loop->round_count - 1] : NULL;
    if (!loop->ended) {
        loop->rounds = last ? last->round : 0;
        loop->executions = last ? last->execution : 0;
        loop->block = last ? last->block : 0;
        loop->gained_s = loop->came_s = loop->cost_s = 0;
    }
    for (size_t i = 0; i < report->decided_count; i++) {
        const kl_report_decided *move = &report->decided[i];
        if (strcmp(move->kind, "move") != 0)
            continue;
        loop->move_count++;
        if (loop->ended)
            continue;
        loop->moves += !move->refused;
        loop->moved += move->refused ? 0 : move->count;
        loop->gained_s += move->refused ? 0 : or_zero(move->gain_s);
        loop->came_s += or_zero(move->came_s);
        loop->cost_s += or_zero(move->spent_s);
    }
}

/* Read everything about the loop. If the table `loop` has no row, the loop has not begun. */
void kl_loop_read(kl_reading *r) {
    kl_report_loop *loop = r->report->loop = calloc(1, sizeof *loop);
    r->memory |= !loop;
    if (loop)
        kl_row_read(r, &kl_loop_rows, loop);
    if (!loop || !loop->name)
        return;
    add_ranks(r);
    loop->round = kl_rows_read(r, &kl_round_rows, loop->round, &loop->round_count);
    for (size_t i = 0; i < loop->round_count; i++) {
        loop->round[i].counts = calloc(loop->ranks + 1, sizeof *loop->round[i].counts);
        r->memory |= !loop->round[i].counts;
    }
    r->failed |= r->memory;
    kl_each_row(r, "SELECT round, rank, count, done, busy_s, rate_per_s FROM share ORDER BY id", take_share);
    kl_each_row(r, "SELECT rank, iterations, elapsed_s, waited_s, moving_s FROM rank ORDER BY rank",
                take_rank);
    derive(r->report, loop);
}

void kl_loop_report_free(kl_report_loop *loop) {
    if (!loop)
        return;
    for (size_t i = 0; i < loop->round_count; i++)
        free(loop->round[i].counts);
    kl_row_free(&kl_loop_rows, loop);
    free(loop->rank);
    kl_rows_free(&kl_round_rows, loop->round, loop->round_count);
    free(loop);
}
