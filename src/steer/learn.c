/* Learn speeds, costs and the time of movements from the reports of a round. */
#include <stdlib.h>
#include <string.h>

#include "steer/parts.h"

enum { BINS_MOST = 4096 };
static const double TRUST = 0.5;  /* weight of new costs of iterations */
static const double MOVE_H = 0.5; /* weight of earlier movements in the mean cost of a movement */
static const double LEAST_SIZE =
    0.25; /* size of rows, relative to the mean, below which their movement does not show its cost */

uint32_t kl_steer_clock(uint32_t ranks, const kl_rank_report *reports) {
    for (uint32_t r = 0; r < ranks; r++)
        if (reports[r].hi > reports[r].lo)
            return r;
    return 0;
}

/* Return the number of the last step's sweeps that were done before a movement; ranks measured only later
 * sweeps. */
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

/* Find the mean bytes of a row, and how far the rows of each rank differ from it. The seconds of moving a
 * mean row follow its bytes; the first report with bytes gives the first estimate. */
void kl_learn_bytes(kl_outlook *o, const kl_rank_report *reports) {
    double bytes = 0, rows = 0;
    for (uint32_t r = 0; r < o->options.ranks; r++) {
        double its = (double)(o->options.scattered ? o->here[r] : o->here[r + 1] - o->here[r]);
        bytes += reports[r].row_bytes > 0 ? its * reports[r].row_bytes : 0;
        rows += reports[r].row_bytes > 0 ? its : 0;
    }
    if (!(bytes > 0))
        return;
    o->per_move_s =
        o->mean_bytes > 0 ? o->per_move_s * (bytes / rows / o->mean_bytes) : o->options.byte_s * bytes / rows;
    o->mean_bytes = bytes / rows;
    for (uint32_t r = 0; r < o->options.ranks; r++)
        o->weight[r] = reports[r].row_bytes > 0 ? reports[r].row_bytes / o->mean_bytes : 1;
}

/* Return the number of rows that a rank moved; if sizes of rows change, as rows of mean size. */
static double moved_rows(const kl_outlook *o, const kl_rank_report *report) {
    bool sized = o->mean_bytes > 0 && report->moved_bytes > 0;
    return sized ? report->moved_bytes / o->mean_bytes : (double)report->moved;
}

/* Take the report of the rank that moved longest, because all ranks move rows at the same time. */
double kl_learn_movements(kl_outlook *o, const kl_rank_report *reports) {
    const kl_rank_report *longest = &reports[0];
    for (uint32_t r = 1; r < o->options.ranks; r++)
        if (reports[r].moving_s > longest->moving_s ||
            (reports[r].moving_s == longest->moving_s && reports[r].moved > longest->moved))
            longest = &reports[r];
    double spent_s = longest->moving_s > 0 ? longest->moving_s : 0,
           over_s = spent_s - o->options.move.fixed_s;
    double rows = moved_rows(o, longest);
    if (longest->moved > 0 && rows >= LEAST_SIZE * (double)longest->moved)
        o->per_move_s = (1 - MOVE_H) * (over_s > 0 ? over_s : 0) / rows + MOVE_H * o->per_move_s;
    if (o->moved)
        spent_s += o->refill * kl_sweep_s(o, o->here);
    o->moved = false;
    if (longest->moved > 0)
        o->movement_s = o->movement_s > 0 ? (1 - MOVE_H) * spent_s + MOVE_H * o->movement_s : spent_s;
    return spent_s;
}

/* Take the longest quantum of any rank, because all ranks wait for the least certain rate. */
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

/* Begin to learn costs. Forget the speeds, because a rank with an expensive range looked slow. */
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

/* Return the work per second in the body of a rank; 0: the rank measured nothing. */
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
