/* Learn from the reports of a round: the ranks' speeds, the costs of iterations, and the time that moves
 * take. */
#include <stdlib.h>
#include <string.h>

#include "steer/parts.h"

enum { BINS_MOST = 4096 };
/* weight of newly measured costs of iterations, in their mean with earlier ones */
static const double TRUST = 0.5;
/* a move may show in the reports of this number of rounds, because ranks report in the middle of sweeps */
enum { SEEN_ROUNDS = 3 };
static const double MOVE_H = 0.5; /* weight of earlier moves in the mean cost of a move */
/* the first guess of the cost of a row counts as much as a measured move of this fraction of all rows */
static const double GUESS_PART = 0.01;
/* a move shows the cost of a row only if its rows have at least this fraction of the mean size */
static const double LEAST_SIZE = 0.25;

uint32_t kl_steer_clock(uint32_t ranks, const kl_rank_report *reports) {
    for (uint32_t r = 0; r < ranks; r++)
        if (reports[r].hi > reports[r].lo)
            return r;
    return 0;
}

/* Return how many of the sweeps since the last report were done before a move. The ranks' measurements leave
 * these sweeps out. */
static double before_movement(const kl_outlook *o, const kl_rank_report *reports) {
    double done = 0, of = 0;
    for (uint32_t r = 0; r < o->options.ranks; r++)
        if (reports[r].iterations > 0) {
            done += (double)reports[r].iterations;
            of += (double)(reports[r].hi - reports[r].lo);
        }
    double before = o->sweeps - (of > 0 ? done / of : 0);
    return o->moved && !o->options.scattered && before > 0 ? before : 0;
}

void kl_learn_step(kl_outlook *o, const kl_rank_report *reports) {
    const kl_rank_report *clock = &reports[kl_steer_clock(o->options.ranks, reports)];
    o->step_s = clock->elapsed_s > o->now_s ? clock->elapsed_s - o->now_s : 0;
    o->now_s += o->step_s;
    o->sweeps = clock->executions > 0 ? clock->executions : 0;
    o->as_before = before_movement(o, reports);
}

/* Rescale the stored numbers of moved rows when the mean size of a row changes. If the cost of a row is still
 * a guess, compute it anew from the bytes of a row. */
static void scale_moving(kl_outlook *o, double mean_bytes) {
    kl_moving *m = &o->moving;
    if (o->mean_bytes > 0) {
        double part = o->mean_bytes / mean_bytes;
        o->per_move_s /= part;
        m->past_rows *= part;
        m->rows *= part;
    } else {
        o->per_move_s = o->options.byte_s * mean_bytes;
        m->past_s = m->past_rows * o->per_move_s;
    }
}

/* Learn the mean bytes of a row over all ranks. Learn for each rank the mean bytes of its rows, divided by
 * the mean over all ranks. Change the seconds for moving a row of mean size in proportion to its bytes.
 * Estimate these seconds from the bytes when a report first gives the bytes of rows. */
void kl_learn_bytes(kl_outlook *o, const kl_rank_report *reports) {
    double bytes = 0, rows = 0;
    for (uint32_t r = 0; r < o->options.ranks; r++) {
        double its = (double)(o->options.scattered ? o->here[r] : o->here[r + 1] - o->here[r]);
        bytes += reports[r].row_bytes > 0 ? its * reports[r].row_bytes : 0;
        rows += reports[r].row_bytes > 0 ? its : 0;
    }
    if (!(bytes > 0))
        return;
    scale_moving(o, bytes / rows);
    o->mean_bytes = bytes / rows;
    for (uint32_t r = 0; r < o->options.ranks; r++)
        o->weight[r] = reports[r].row_bytes > 0 ? reports[r].row_bytes / o->mean_bytes : 1;
}

/* Return the number of rows that a rank moved. If the size of rows changes, a row counts by its size
 * relative to the mean. */
static double moved_rows(const kl_outlook *o, const kl_rank_report *report) {
    bool sized = o->mean_bytes > 0 && report->moved_bytes > 0;
    return sized ? report->moved_bytes / o->mean_bytes : (double)report->moved;
}

/* Return whether the time of sweeps shows the cost of a move. It does not in a pipeline and in a scattered
 * loop, because ranks do not compute at the same time there. */
static bool shows_excess(const kl_outlook *o) {
    return !o->options.scattered && !o->options.buffers && o->refill == 0;
}

void kl_moving_init(kl_outlook *o) {
    double rows = kl_larger(1, GUESS_PART * (double)o->options.iterations);
    o->per_move_s = o->options.move.per_unit_s;
    o->moving.rounds = SEEN_ROUNDS;
    o->moving.past_rows = rows;
    o->moving.past_s = rows * o->per_move_s;
}

static double rows_s(const kl_outlook *o) {
    return kl_larger(0, o->moving.spent_s - o->options.move.fixed_s);
}

void kl_moving_begin(kl_outlook *o) {
    kl_moving *m = &o->moving;
    if (m->rows > 0) {
        m->past_rows += m->rows;
        m->past_s += rows_s(o);
    }
    if (m->told) {
        m->past_rows *= MOVE_H;
        m->past_s *= MOVE_H;
        m->past_movement_s = o->movement_s;
    }
    m->told = false;
    m->rounds = 0;
    m->rows = m->excess_s = m->spent_s = 0;
    memset(m->reported_s, 0, o->options.ranks * sizeof *m->reported_s);
}

bool kl_moving_open(const kl_outlook *o) {
    return shows_excess(o) && !o->moving.told && o->moving.rounds < SEEN_ROUNDS;
}

static double most_of(const double *values, uint32_t ranks) {
    double most = 0;
    for (uint32_t r = 0; r < ranks; r++)
        most = kl_larger(most, values[r]);
    return most;
}

/* Add the reports of a round to the measured cost of the last move. Return the seconds that the move has cost
 * since the last round. Ranks report in the middle of sweeps, so the seconds of a move and its rows may come
 * in different reports. */
static double add_step(kl_outlook *o, const kl_rank_report *reports) {
    kl_moving *m = &o->moving;
    double most_rows = 0, before_s = m->spent_s;
    for (uint32_t r = 0; r < o->options.ranks; r++) {
        double rows = moved_rows(o, &reports[r]);
        if (rows >= LEAST_SIZE * (double)reports[r].moved)
            most_rows = kl_larger(most_rows, rows);
        m->told |= reports[r].moved > 0;
        m->reported_s[r] += kl_larger(0, reports[r].moving_s);
    }
    m->rows += most_rows;
    double reported_s = most_of(m->reported_s, o->options.ranks);
    m->spent_s = reported_s;
    if (shows_excess(o)) {
        m->excess_s += o->step_s - kl_computed_s(o);
        m->spent_s = kl_larger(before_s, kl_smaller(reported_s, m->excess_s));
    }
    return m->spent_s - before_s;
}

static bool anybody_moved(const kl_outlook *o, const kl_rank_report *reports) {
    for (uint32_t r = 0; r < o->options.ranks; r++)
        if (reports[r].moved > 0 || reports[r].moving_s > 0)
            return true;
    return false;
}

double kl_learn_movements(kl_outlook *o, const kl_rank_report *reports) {
    kl_moving *m = &o->moving;
    if (!shows_excess(o) && anybody_moved(o, reports)) /* the measurement begins as soon as a part of a move
                                                          has been made */
        kl_moving_begin(o);
    if (m->rounds++ >= SEEN_ROUNDS)
        return 0;
    double spent_s = add_step(o, reports), refill_s = o->moved ? o->refill * kl_sweep_s(o, o->here) : 0;
    o->moved = false;
    if (m->rows > 0)
        o->per_move_s = (m->past_s + rows_s(o)) / (m->past_rows + m->rows);
    if (m->told) {
        double all_s = m->spent_s + refill_s, past_s = m->past_movement_s;
        o->movement_s = past_s > 0 ? (1 - MOVE_H) * all_s + MOVE_H * past_s : all_s;
    }
    return spent_s + refill_s;
}

/* Learn the length of the scheduler's time slice (quantum). Use the longest time slice of all ranks, so that
 * the rates of all ranks are measured over enough time slices. */
void kl_learn_quantum(kl_outlook *o, const kl_rank_report *reports) {
    double longest_s = 0;
    for (uint32_t r = 0; r < o->options.ranks; r++)
        longest_s = reports[r].quantum_s > longest_s ? reports[r].quantum_s : longest_s;
    if (longest_s > 0)
        o->options.quantum_s = longest_s;
}

static bool tells_costs(const kl_rank_report *report) {
    for (int i = 0; i < KL_SEGMENTS; i++)
        if (report->segments && report->segments_s[i] > 0)
            return true;
    return false;
}

static bool anybody_tells_costs(const kl_outlook *o, const kl_rank_report *reports) {
    for (uint32_t r = 0; r < o->options.ranks; r++)
        if (tells_costs(&reports[r]))
            return true;
    return false;
}

kilter_status kl_forget_loads(kl_outlook *o) {
    uint64_t round = o->loads.round;
    kl_loads_free(&o->loads);
    kilter_status status = kl_loads_init(&o->loads, o->options.ranks);
    o->loads.round = round;
    return status;
}

/* Begin to learn the costs of iterations. Forget the ranks' speeds: until now, a rank with expensive
 * iterations looked like a slow rank. */
static kilter_status begin_costs(kl_outlook *o, const kl_rank_report *reports) {
    const uint32_t ranks = o->options.ranks;
    uint64_t bins = (uint64_t)KL_SEGMENTS * ranks;
    double(*segments_s)[KL_SEGMENTS] = malloc(ranks * sizeof *segments_s);
    kilter_status status = segments_s ? KILTER_OK : KILTER_ERR_MEMORY;
    if (status == KILTER_OK)
        status =
            kl_costs_init(&o->costs, o->options.iterations, bins < BINS_MOST ? (uint32_t)bins : BINS_MOST);
    for (uint32_t r = 0; r < ranks && status == KILTER_OK; r++)
        memcpy(segments_s[r], reports[r].segments_s, sizeof *segments_s);
    if (status == KILTER_OK) {
        kl_costs_join(&o->costs, ranks, o->here, (const double(*)[KL_SEGMENTS])segments_s);
        for (uint32_t r = 0; r < ranks; r++)
            kl_costs_learn(&o->costs, (kl_span){reports[r].lo, reports[r].hi}, reports[r].segments_s, 1);
        status = kl_forget_loads(o);
    }
    free(segments_s);
    return status;
}

kilter_status kl_learn_costs(kl_outlook *o, const kl_rank_report *reports) {
    if (o->options.scattered)
        return KILTER_OK;
    if (!o->costs.cost)
        return anybody_tells_costs(o, reports) ? begin_costs(o, reports) : KILTER_OK;
    for (uint32_t r = 0; r < o->options.ranks; r++)
        if (reports[r].segments)
            kl_costs_learn(&o->costs, (kl_span){reports[r].lo, reports[r].hi}, reports[r].segments_s, TRUST);
    return KILTER_OK;
}

/* Return the work per second that a rank did in the body; 0: the rank has measured nothing. */
static double rate_of(const kl_outlook *o, const kl_rank_report *report) {
    if (!(report->busy_s > 0) || report->iterations == 0)
        return 0;
    kl_span range = {report->lo, report->hi};
    double each = 1;
    if (!o->options.scattered && range.lo < range.hi && range.hi <= o->options.iterations)
        each = kl_costs_work(&o->costs, range) / (double)(range.hi - range.lo);
    return (double)report->iterations * each / report->busy_s;
}

bool kl_learn_speeds(kl_outlook *o, const kl_rank_report *reports) {
    for (uint32_t r = 0; r < o->options.ranks; r++)
        o->scratch[r] = rate_of(o, &reports[r]);
    return kl_loads_measure(&o->loads, o->scratch);
}
