/* Compute the time between decisions, the size of blocks, the work between reports, and the loss of time
 * under a changing load. */
#include <math.h>

#include "steer/steer.h"

static const double INTERACT_PART = 0.05; /* reports and decisions together may take this part of the time */
static const double REPORT_PART = 0.005;  /* reports between decisions may take this part of the time */
/* least seconds between two reports; a report costs more than its messages, because each MPI call between two
 * reports also checks whether a report has arrived */
static const double REPORTS_APART_S = 2e-3;
/* number of the scheduler's quanta (time slices) over which a rate is averaged */
static const double QUANTA = 10;
/* the time between two moves is at least the seconds that a move takes, divided by this value */
static const double WORKSCALE = 1;

kl_period kl_period_of(double interact_s, double movement_s, double quantum_s) {
    kl_period p = {.interact_s = interact_s, .movement_s = movement_s, .quantum_s = quantum_s};
    double bounds[] = {interact_s / INTERACT_PART, movement_s / WORKSCALE, quantum_s * QUANTA};
    for (int i = KL_PERIOD_INTERACT; i <= KL_PERIOD_QUANTUM; i++) {
        if (bounds[i] > p.target_s) {
            p.target_s = bounds[i];
            p.bound = (kl_bound_of_period)i;
        }
    }
    return p;
}

uint64_t kl_period_hooks(double left_s, double pass_s) {
    double hooks = pass_s > 0 ? left_s / pass_s : 1;
    return hooks < 1 ? 1 : hooks < 1e18 ? (uint64_t)hooks : (uint64_t)1e18;
}

uint64_t kl_report_hooks(double interact_s, double pass_s) {
    double apart_s = fmax(interact_s / REPORT_PART, REPORTS_APART_S);
    return pass_s > 0 ? kl_period_hooks(ceil(apart_s / pass_s), 1) : 1;
}

/* --- grain --- */

double kl_pipeline_elapsed_s(const kl_pipeline *p, double blocks) {
    double P = p->ranks, M = blocks;
    if (p->ranks == 1)
        return p->seq_s;
    return (M + P - 1) * p->seq_s / (P * M) +
           (M + P - 2) * (p->fixed_s + p->incr_s * (double)p->elements / M);
}

double kl_pipeline_efficiency(const kl_pipeline *p, double blocks) {
    return p->seq_s / (p->ranks * kl_pipeline_elapsed_s(p, blocks));
}

double kl_pipeline_best_blocks(const kl_pipeline *p) {
    double P = p->ranks, m = (double)p->elements;
    if (p->ranks == 1)
        return 1;
    double best = sqrt((p->seq_s * (1 - 1 / P) + p->incr_s * m * (P - 2)) / p->fixed_s);
    /* `best` is NaN if all costs are 0 */
    return best > m || isnan(best) ? m : best < 1 ? 1 : best;
}

static double with_block_s(const kl_pipeline *p, uint64_t block) {
    uint64_t blocks = (p->elements - 1) / block + 1;
    return kl_pipeline_elapsed_s(p, (double)blocks);
}

/* Return the best block size. M* (the best number of blocks) and m/M* need not be whole numbers. So compare
 * four candidates: M* rounded down and up, which matters if there are few blocks, and m/M* rounded down and
 * up. */
uint64_t kl_pipeline_block(const kl_pipeline *p) {
    double blocks = floor(kl_pipeline_best_blocks(p));
    uint64_t candidates[4], best = p->elements;
    for (int i = 0; i < 2; i++) {
        uint64_t whole = (uint64_t)blocks + (uint64_t)i, size = (uint64_t)((double)p->elements / blocks);
        candidates[i] = (p->elements - 1) / whole + 1;
        candidates[2 + i] = size + (uint64_t)i;
    }
    for (int i = 0; i < 4; i++) {
        uint64_t block = candidates[i] < p->elements ? candidates[i] : p->elements;
        if (with_block_s(p, block) < with_block_s(p, best))
            best = block;
    }
    return best;
}

uint64_t kl_doall_grain(uint64_t mine, double iteration_s, double period_s) {
    double fit = iteration_s > 0 ? period_s / iteration_s : 1;
    uint64_t grain = fit < 1 ? 1 : fit < (double)mine ? (uint64_t)fit : mine;
    return grain > 0 ? grain : 1;
}

/* --- the efficiency under a load that comes and goes --- */

/* Return the work per second of all ranks together. One rank has `speed`, the others have speed 1. The
 * shares were made for the case that this rank has the speed `speed_of_shares`. */
static double throughput(const kl_swing *s, double speed, double speed_of_shares) {
    double sum = s->ranks - 1 + speed_of_shares;
    double slow_s = speed_of_shares / sum / speed, others_s = s->ranks > 1 ? 1 / sum : 0;
    return 1 / (slow_s > others_s ? slow_s : others_s);
}

/* Return the work done in one half of a cycle of the load. At first the loop still has the shares of the
 * other half. Then rows move, and no work is done. After that it has the shares of this half. */
static double half_work(const kl_swing *s, double half_s, double react_s, double speed, double other) {
    double reacting_s = react_s < half_s ? react_s : half_s;
    double moving_s = s->move_s < half_s - reacting_s ? s->move_s : half_s - reacting_s;
    return reacting_s * throughput(s, speed, other) +
           (half_s - reacting_s - moving_s) * throughput(s, speed, speed);
}

static double available(const kl_swing *s) {
    return s->on_s * (s->ranks - 1 + s->speed) + s->off_s * s->ranks;
}

double kl_swing_efficiency(const kl_swing *s) {
    return (half_work(s, s->on_s, s->react_on_s, s->speed, 1) +
            half_work(s, s->off_s, s->react_off_s, 1, s->speed)) /
           available(s);
}

double kl_swing_unmoved(const kl_swing *s) {
    return (s->on_s * throughput(s, s->speed, 1) + s->off_s * throughput(s, 1, 1)) / available(s);
}
