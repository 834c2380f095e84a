/* Rounds: in an execution that all ranks know, each posts a report when half of its rows are done, and goes
 * on; the answer, which each works out for itself from the reports of all, holds from the next execution
 * on. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop/loop_mpi.h"

enum { PROBES = 4, PROBE_BYTES = 1 << 16 };

static const double GUESSED_QUANTUM_S = 0.01;
static const double QUANTUM_AFTER_S = 10;   /* a quantum is measured within half a percent of that */
static const double UNEVEN = 1.5;           /* segments differ by more: all shall tell them */
static const double UNEVEN_AFTER_S = 0.01;  /* measured for so long */
static const double CPU_LEAST = 0.2;        /* of the time in the body: what counts */
static const double BLOCK_GAIN = 0.01;      /* less is no reason for other blocks */
static const double BOUNDARY_MOST_S = 1e-4; /* one that took longer, and twice a ping, was interrupted */
static const double BOUNDARY_H = 0.5;       /* in the old cost of boundaries */

static size_t report_bytes(const kilter_loop *l) {
    return l->round.whole ? sizeof(kl_rank_report) : offsetof(kl_rank_report, segments_s);
}

static kilter_status share_reports(kilter_loop *l, kilter_error *error) {
    kl_round *round = &l->round;
    return kl_reports_share(l, &round->batch, &round->mine, round->heard, report_bytes(l), error);
}

/* --- measuring messages, once --- */

static kilter_status time_reports(kilter_loop *l, double *best_s, kilter_error *error) {
    kilter_status status = KILTER_OK;
    *best_s = HUGE_VAL;
    for (int i = 0; i < PROBES && status == KILTER_OK; i++) {
        double began_s = kl_loop_now_s(l);
        status = share_reports(l, error);
        if (status == KILTER_OK)
            status = kl_batch_await(l, &l->round.batch, error);
        *best_s = fmin(*best_s, kl_loop_now_s(l) - began_s);
    }
    return status;
}

/* Everybody sends to the next rank, as they do at the bounds of their rows. */
static kilter_status time_neighbours(kilter_loop *l, uint8_t *data, size_t bytes, double *best_s,
                                     kilter_error *error) {
    kilter_status status = KILTER_OK;
    int ranks = (int)l->ranks, next = (l->rank + 1) % ranks, last = (l->rank + ranks - 1) % ranks;
    *best_s = HUGE_VAL;
    for (int i = 0; i < PROBES && status == KILTER_OK; i++) {
        double began_s = kl_loop_now_s(l);
        status = kl_batch_receive(l, &l->coming, data, bytes, last, KL_TAG_PROBE, error);
        if (status == KILTER_OK)
            status = kl_batch_send(l, &l->coming, data + PROBE_BYTES, bytes, next, KL_TAG_PROBE, error);
        if (status == KILTER_OK)
            status = kl_batch_await(l, &l->coming, error);
        *best_s = fmin(*best_s, kl_loop_now_s(l) - began_s);
    }
    return status;
}

/* Measured it costs more than a short loop could ever gain. */
static double first_quantum_s(const kilter_loop *l) {
    return l->clock.simulated ? kl_quantum_s() : GUESSED_QUANTUM_S;
}

void kl_loop_measure_quantum(kilter_loop *l) {
    if (l->wait.core.quantum_s > 0 && !l->wait.crowded)
        l->quantum_s = l->wait.core.quantum_s;
    if (l->quantum_s > 0 || l->clock.simulated || kl_loop_now_s(l) - l->opened_s < QUANTUM_AFTER_S)
        return;
    double quantum_s = kl_quantum_s();
    l->quantum_s = quantum_s > 0 ? quantum_s : GUESSED_QUANTUM_S;
}

static kilter_status measure_messages(kilter_loop *l, kilter_error *error) {
    double s[3] = {0, 0, 0};
    uint8_t *data = calloc(2, PROBE_BYTES);
    uint64_t fits = data != NULL;
    kilter_status status = kl_loop_least(l, &fits, 1, error);
    if (status == KILTER_OK && !fits)
        status = kl_fail(error, KILTER_ERR_MEMORY,
                         "measuring messages between the ranks of loop '%s': memory ran out", l->name);
    if (status == KILTER_OK)
        status = time_reports(l, &s[0], error);
    if (status == KILTER_OK)
        status = time_neighbours(l, data, 1, &s[1], error);
    if (status == KILTER_OK)
        status = time_neighbours(l, data, PROBE_BYTES, &s[2], error);
    if (status == KILTER_OK)
        status = kl_loop_most_f64(l, s, 3, error);
    if (status != KILTER_OK)
        return status; /* MPI may still write into the data */
    free(data);
    l->interact_s = s[0];
    l->link = (kl_linear){s[1], fmax(0, s[2] - s[1]) / PROBE_BYTES};
    l->period_s = kl_period_of(s[0], 0, first_quantum_s(l)).target_s;
    return status;
}

static double bytes_of_iteration(const kilter_loop *l) {
    double bytes = 0;
    for (size_t a = 0; a < l->array_count; a++)
        bytes += (double)l->arrays[a].rows.bytes;
    return bytes;
}

/* Nothing to decide: one rank, or a loop that is told everything. */
static bool is_settled(const kilter_loop *l) {
    return l->ranks == 1 || l->forced ||
           (l->options.fixed && (!kl_loop_pipelined(l) || l->options.block > 0));
}

/* What blocks cost until executions have shown it: a message is dearer than what a rank has to do for it. */
static void open_grain(kilter_loop *l) {
    double bytes = 0;
    for (size_t a = 0; a < l->array_count; a++)
        if (l->arrays[a].ghost > 0)
            bytes += (double)l->arrays[a].rows.bytes / (double)l->options.inner;
    l->grain.pipeline = (kl_pipeline){.ranks = l->ranks,
                                      .elements = l->options.inner,
                                      .fixed_s = l->link.fixed_s,
                                      .incr_s = l->link.per_unit_s * bytes};
    l->sizes_tried = kl_blocks_sizes(l->options.inner, l->block);
}

kilter_status kl_round_open(kilter_loop *l, kilter_error *error) {
    if (is_settled(l))
        return KILTER_OK;
    l->round.all = calloc(l->ranks, sizeof *l->round.all);
    l->round.heard = calloc(l->ranks, sizeof *l->round.heard);
    uint64_t fits = l->round.all && l->round.heard;
    kilter_status status = kl_loop_least(l, &fits, 1, error);
    if (status == KILTER_OK && fits)
        status = measure_messages(l, error);
    if (status != KILTER_OK)
        return status;
    kl_steer_options options = {
        .iterations = l->options.iterations,
        .ranks = l->ranks,
        .scattered = l->options.scattered && !l->options.fixed,
        .buffers = kl_loop_pipelined(l) && !l->options.fixed,
        .least = 1,
        .reach = l->ghost,
        .deepest = l->deepest,
        .interact_s = l->interact_s,
        .quantum_s = first_quantum_s(l),
        .move = {l->interact_s + l->link.fixed_s, l->link.per_unit_s * bytes_of_iteration(l)},
    };
    if (kl_loop_pipelined(l) && l->options.block == 0)
        open_grain(l);
    if (fits) /* filled while messages were timed */
        memset(l->round.heard, 0, l->ranks * sizeof *l->round.heard);
    l->steer = fits ? kl_steer_new(&options) : NULL;
    fits = l->steer != NULL;
    status = kl_loop_least(l, &fits, 1, error);
    if (status == KILTER_OK && !fits)
        return kl_fail(error, KILTER_ERR_MEMORY, "beginning loop '%s': memory ran out", l->name);
    return status;
}

/* --- reports --- */

/* The first iteration behind `lo` that is in another segment, or `end`. */
static uint64_t end_of_segment(kl_span own, uint64_t lo, uint64_t end) {
    uint32_t segment = kl_segment_of(own, lo);
    uint64_t in = lo, out = end;
    while (out - in > 1) {
        uint64_t middle = in + (out - in) / 2;
        if (kl_segment_of(own, middle) == segment)
            in = middle;
        else
            out = middle;
    }
    return out;
}

/* By the CPU's time, which does not count what others had of it: how they lie, not how long they are. */
static void measure_segments(kilter_loop *l, kl_span rows, double cpu_s) {
    kl_span own = {l->target[l->rank], l->target[l->rank + 1]};
    uint64_t count = rows.hi - rows.lo;
    if (own.hi - own.lo < KL_SEGMENTS || rows.lo < own.lo || rows.hi > own.hi)
        return;
    for (uint64_t lo = rows.lo; lo < rows.hi;) {
        uint32_t segment = kl_segment_of(own, lo);
        uint64_t hi = end_of_segment(own, lo, rows.hi);
        l->measured.segment_s[segment] += cpu_s * (double)(hi - lo) / (double)count;
        l->measured.segment_rows[segment] += (double)(hi - lo);
        lo = hi;
    }
}

void kl_measure_given(kilter_loop *l, double now_s) {
    if (!l->steer)
        return;
    l->given_s = now_s;
    l->given_cpu = l->by_pieces || l->wait.core.sleeps;
    l->given_busy_s = l->given_cpu ? kl_busy_s(&l->clock) : 0;
}

static void count_done(kilter_loop *l, kl_span rows, double part, double busy_s, double cpu_s) {
    double done = (double)(rows.hi - rows.lo) * part;
    l->measured.busy_s += busy_s;
    l->measured.rows += done;
    if (l->given_cpu) {
        l->measured.cpu_s += cpu_s;
        l->measured.cpu_rows += done;
    }
    if (done > 0)
        l->iteration_s = busy_s / done;
}

static double cpu_since_given_s(const kilter_loop *l) {
    return l->given_cpu ? kl_busy_s(&l->clock) - l->given_busy_s : 0;
}

static uint64_t own_of(const kilter_loop *l, kl_span rows) {
    uint64_t lo = l->target[l->rank], hi = l->target[l->rank + 1];
    lo = rows.lo > lo ? rows.lo : lo;
    hi = rows.hi < hi ? rows.hi : hi;
    return hi > lo ? hi - lo : 0;
}

void kl_measure(kilter_loop *l, kl_span rows, double now_s) {
    if (!l->steer)
        return;
    double cpu_s = cpu_since_given_s(l);
    count_done(l, rows, 1, now_s - l->given_s, cpu_s);
    l->measured.foreign += (double)(rows.hi - rows.lo - own_of(l, rows));
    if (l->by_pieces)
        measure_segments(l, rows, cpu_s);
}

/* On a core that others want, too, a rank that sleeps while it waits is often woken at once, and the time in
 * its body does not show what it would have to wait for if it had more to do. Its share of the core does. */
static double busy_s(const kilter_loop *l) {
    const kl_measured *m = &l->measured;
    const kl_core_share *core = &l->wait.core;
    if (!core->sleeps || l->wait.crowded || m->cpu_rows == 0)
        return m->busy_s;
    return fmax(m->busy_s, m->cpu_s / m->cpu_rows * m->rows / core->share);
}

/* The least of several tries: one that was interrupted is not. */
static void measure_try(kilter_loop *l, const kl_blocks *blocks, kl_span block, double body_s) {
    kl_span try;
    uint32_t size;
    if (!kl_blocks_try(blocks, block.lo, &size, &try))
        return;
    l->try_s = block.lo == try.lo ? body_s : l->try_s + body_s;
    kl_span own = kl_loop_own(l);
    double each_s = l->try_s / (double)((try.hi - try.lo) * (own.hi - own.lo)), *least_s = &l->tried_s[size];
    if (block.hi == try.hi)
        *least_s = *least_s > 0 ? fmin(*least_s, each_s) : each_s;
}

void kl_measure_block(kilter_loop *l, const kl_blocks *blocks, kl_span block) {
    double body_s = l->body_over_s - l->given_s;
    if (!l->steer)
        return;
    if (blocks->sizes > 0)
        measure_try(l, blocks, block, body_s);
    count_done(l, kl_loop_own(l), (double)(block.hi - block.lo) / (double)l->options.inner, body_s,
               cpu_since_given_s(l));
}

void kl_measure_boundary(kilter_loop *l) {
    double passed_s = l->given_s - l->body_over_s - l->absent_s;
    if (!l->steer || passed_s > fmax(BOUNDARY_MOST_S, 2 * l->link.fixed_s))
        return;
    l->measured.boundary_s += passed_s;
    l->measured.boundaries++;
}

/* A body that waits, for a disk or another processor, takes no CPU time: how that lies says nothing. */
static bool is_uneven(const kl_measured *m) {
    double least = HUGE_VAL, most = 0, cpu_s = 0;
    for (int i = 0; i < KL_SEGMENTS; i++) {
        if (m->segment_rows[i] == 0)
            return false;
        double each_s = m->segment_s[i] / m->segment_rows[i];
        least = fmin(least, each_s);
        most = fmax(most, each_s);
        cpu_s += m->segment_s[i];
    }
    return most > UNEVEN * least && cpu_s > UNEVEN_AFTER_S && cpu_s > CPU_LEAST * m->busy_s;
}

static uint64_t elements_of(const kilter_loop *l, kl_span blocks) {
    kl_blocks all = kl_loop_blocks(l);
    return blocks.lo < blocks.hi ? kl_blocks_at(&all, blocks.hi - 1).hi - kl_blocks_at(&all, blocks.lo).lo
                                 : 0;
}

static double part_done(const kilter_loop *l) {
    if (kl_loop_pipelined(l))
        return (double)elements_of(l, (kl_span){0, l->blocks_done}) / (double)l->options.inner;
    return l->all.hi > l->all.lo ? (double)l->rows_done / (double)(l->all.hi - l->all.lo) : 1;
}

static double part_of_pass(const kilter_loop *l) {
    if (!kl_loop_pipelined(l))
        return part_done(l);
    kl_span done = {l->pass.lo, l->blocks_done};
    return (double)elements_of(l, done) / (double)elements_of(l, l->pass);
}

static void fill_report(kilter_loop *l, double part) {
    kl_measured *m = &l->measured;
    kl_rank_report *report = &l->round.mine;
    double own = m->rows - m->foreign;
    *report = (kl_rank_report){
        .elapsed_s = kl_loop_now_s(l) - l->opened_s,
        .executions = m->executions + part,
        .busy_s = busy_s(l),
        .iterations = own < 1 ? own > 0 : (uint64_t)own,
        .lo = l->target[l->rank],
        .hi = l->target[l->rank + 1],
        .moving_s = m->moving_s,
        .moved = m->moved,
        .quantum_s = l->quantum_s,
        .share = l->wait.crowded ? 1 : l->wait.core.share, /* what other ranks take is no load */
        .boundary_s = m->boundaries > 0 ? m->boundary_s / m->boundaries : 0};
    if (report->iterations > 0) /* whole ones, in their time */
        report->busy_s *= (double)report->iterations / m->rows;
    l->uneven |= l->round.whole || is_uneven(m);
    report->segments = l->uneven;
    for (int i = 0; i < KL_SEGMENTS && l->uneven; i++)
        report->segments_s[i] = m->segment_rows[i] > 0 ? m->segment_s[i] / m->segment_rows[i] : 0;
    *m = (kl_measured){.executions = -part};
}

kilter_status kl_round_hook(kilter_loop *l, bool at_end, kilter_error *error) {
    kl_round *round = &l->round;
    if (!l->steer)
        return KILTER_OK;
    if (round->reported)
        return kl_batch_look(l, &round->batch, error);
    if (l->passed != round->at || (!at_end && part_of_pass(l) < 0.5))
        return KILTER_OK;
    kl_loop_measure_quantum(l);
    fill_report(l, part_done(l));
    round->reported = true;
    return share_reports(l, error);
}

/* --- answers --- */

static void set_depth(kilter_loop *l, uint64_t depth) {
    depth = depth < 1 ? 1 : depth < l->deepest ? depth : l->deepest;
    l->deepened |= depth != l->depth;
    l->depth = depth;
}

/* Any places at all: now and then a rank without rows, or with all of them, or a bound that stays; of a
 * deep loop any depth, and not in each execution, so that some exchanges are used to their end. */
static void force(kilter_loop *l) {
    uint64_t seed = kl_mix64(l->seed + l->passed), n = l->options.iterations, rest = n;
    if (l->deepest > 1 && seed % 4 > 0)
        return;
    l->moves = true;
    set_depth(l, 1 + (seed >> 8) % l->deepest);
    for (uint32_t r = 0; r + 1 < l->ranks; r++) {
        seed = kl_mix64(seed);
        uint64_t share = seed % 8 == 0   ? 0
                         : seed % 8 == 1 ? l->bounds[r + 1] - l->bounds[r]
                                         : (seed >> 8) % (2 * n / l->ranks + 2);
        share = share < rest ? share : rest;
        l->target[r + 1] = l->target[r] + share;
        rest -= share;
    }
}

/* The slowest rank's boundary, as all are passed at its pace. */
static void refresh_boundary(kilter_loop *l) {
    double *fixed_s = &l->grain.pipeline.fixed_s, most_s = 0;
    for (uint32_t r = 0; r < l->ranks; r++)
        most_s = fmax(most_s, l->round.all[r].boundary_s);
    if (most_s > 0)
        *fixed_s = l->summary.rounds > 1 ? (1 - BOUNDARY_H) * most_s + BOUNDARY_H * *fixed_s : most_s;
}

/* How long the slowest rank's body took in each size of blocks, with the rows it has now. */
static kilter_status learn_tries(kilter_loop *l, kilter_error *error) {
    kl_span own = kl_loop_own(l);
    for (uint32_t k = 0; k < l->sizes_tried; k++)
        l->grain.element_s[k] = l->tried_s[k] * (double)(own.hi - own.lo);
    l->grain.sizes = l->sizes_tried;
    return kl_loop_most_f64(l, l->grain.element_s, l->grain.sizes, error);
}

static void choose_block(kilter_loop *l) {
    uint64_t best = kl_grain_block(&l->grain);
    if (kl_grain_elapsed_s(&l->grain, best) < (1 - BLOCK_GAIN) * kl_grain_elapsed_s(&l->grain, l->block))
        l->block = best;
}

/* What blocks of many sizes took says nothing of one of them. */
kilter_status kl_round_tried(kilter_loop *l, kilter_error *error) {
    kilter_status status = learn_tries(l, error);
    if (status == KILTER_OK)
        choose_block(l);
    l->forecast_s = 0;
    return status;
}

kilter_status kl_round_blocks(kilter_loop *l, kilter_error *error) {
    if (l->execution == 1 && l->sizes_tried > 0 && l->grain.sizes == 0)
        return kl_round_tried(l, error);
    if (l->options.block > 0)
        return KILTER_OK;
    if (l->forced)
        l->block = 1 + kl_mix64(l->seed - l->execution) % l->options.inner;
    if (l->forecast_s > 0) {
        kl_grain_refresh(&l->grain, l->block, l->forecast_s);
        choose_block(l);
    }
    l->forecast_s = 0;
    return KILTER_OK;
}

void kl_loop_note(kilter_loop *l, const kl_steer_plan *plan) {
    int at = snprintf(l->decision, sizeof l->decision, "%s", plan->judgement.reason);
    if (l->refused > 0)
        snprintf(l->decision + at, sizeof l->decision - (size_t)at,
                 "; refused before, as a rank had no memory for its rows: %llu move%s",
                 (unsigned long long)l->refused, l->refused == 1 ? "" : "s");
}

void kl_loop_refused(kilter_loop *l, const char *reason) {
    l->refused++;
    snprintf(l->decision, sizeof l->decision, "%s", reason);
    kl_loop_record_refused(l, reason);
}

static void follow(kilter_loop *l, const kl_steer_plan *plan) {
    kl_loop_note(l, plan);
    l->forecast_s = l->options.fixed ? plan->body_now_s : plan->body_then_s;
    if (kl_loop_pipelined(l))
        refresh_boundary(l);
    if (l->options.fixed)
        return;
    set_depth(l, plan->depth);
    if (!plan->move)
        return;
    kl_steer_commit(l->steer);
    memcpy(l->target, kl_steer_shares(l->steer), (l->ranks + 1) * sizeof *l->target);
    l->moves = true;
    kl_measured *m = &l->measured; /* what is measured is about the new range */
    *m = (kl_measured){.executions = m->executions, .moving_s = m->moving_s, .moved = m->moved};
}

/* When what is left of the period has passed. Sooner where reports cost little, and after not more than half
 * as many passes as there were, as the next ones may take longer. */
static void set_next(kilter_loop *l, double left_s, const kl_steer_plan *plan) {
    kl_round *round = &l->round;
    const kl_rank_report *first = &round->heard[kl_steer_clock(l->ranks, round->heard)];
    double passed_s = first->elapsed_s - round->heard_s;
    l->execution_s = first->executions > 0 && passed_s > 0 ? passed_s / first->executions : 0;
    double pass_s = kl_loop_pipelined(l) ? l->execution_s / (double)l->passes : l->execution_s;
    uint64_t hooks = kl_period_hooks(left_s, pass_s), known = 1 + l->passed / 2;
    uint64_t most = kl_report_hooks(l->interact_s, pass_s);
    uint64_t lag = plan && plan->lag_s > 0 && pass_s > 0 ? (uint64_t)ceil(plan->lag_s / pass_s) : 0;
    round->heard_s = first->elapsed_s;
    hooks = hooks < known ? hooks : known;
    round->adds_up = most < hooks;
    round->at = l->passed - 1 + (hooks < most ? hooks : most);
    if (plan && plan->move) /* what is measured begins anew */
        round->at += lag;
    round->due = round->at + 1 + lag;
    round->reported = false;
}

static uint64_t rescaled(const kilter_loop *l, uint64_t pass, uint64_t passes_before) {
    if (pass <= l->passed)
        return pass;
    return l->passed + (uint64_t)ceil((double)(pass - l->passed) * (double)l->passes / (double)passes_before);
}

void kl_round_repass(kilter_loop *l, uint64_t passes_before) {
    kl_round *round = &l->round;
    if (passes_before == 0 || passes_before == l->passes)
        return;
    round->at = rescaled(l, round->at, passes_before);
    round->due = rescaled(l, round->due, passes_before);
    if (round->due <= round->at)
        round->due = round->at + 1;
}

void kl_report_add(kl_rank_report *sum, const kl_rank_report *last) {
    kl_rank_report before = *sum;
    *sum = *last;
    sum->executions += before.executions;
    sum->busy_s += before.busy_s;
    sum->iterations += before.iterations;
    sum->moving_s += before.moving_s;
    sum->moved += before.moved;
    if (last->boundary_s == 0)
        sum->boundary_s = before.boundary_s;
}

/* A rank that finds its iterations to differ says so at once; with what they take come the reports of the
 * next round, of all ranks. */
static void take_reports(kilter_loop *l) {
    kl_round *round = &l->round;
    kl_reports_spread(l, round->heard, report_bytes(l), sizeof *round->heard);
    for (uint32_t r = 0; r < l->ranks && !round->whole; r++)
        memset(round->heard[r].segments_s, 0, sizeof round->heard[r].segments_s);
    for (uint32_t r = 0; r < l->ranks; r++) {
        round->whole |= round->heard[r].segments > 0;
        kl_report_add(&round->all[r], &round->heard[r]);
    }
}

static kilter_status decide(kilter_loop *l, kilter_error *error) {
    kl_round *round = &l->round;
    kl_steer_plan plan;
    if (kl_loop_pipelined(l))
        kl_steer_refill(l->steer, (double)(l->ranks - 1) * (double)l->block / (double)l->options.inner);
    if (kl_steer_round(l->steer, round->all, &plan) != KILTER_OK)
        return kl_fail(error, KILTER_ERR_MEMORY, "balancing loop '%s': memory ran out", l->name);
    l->summary.rounds++;
    l->period_s = plan.period.target_s;
    round->asked_s = round->all[kl_steer_clock(l->ranks, round->all)].elapsed_s;
    set_next(l, l->period_s, &plan);
    follow(l, &plan);
    kl_loop_record_round(l, round->all, &plan);
    memset(round->all, 0, l->ranks * sizeof *round->all);
    return KILTER_OK;
}

/* The answer is waited for with the next exchange, as ranks wait for each other there anyway. */
static void put_off(kilter_loop *l) {
    uint64_t next = l->passed + (l->moves || l->deepened ? 0 : l->ahead), *due = &l->round.due;
    if (*due < next)
        *due = next;
    else
        *due += (l->depth - (*due - next) % l->depth) % l->depth;
}

kilter_status kl_round_answer(kilter_loop *l, kilter_error *error) {
    if (l->forced) {
        force(l);
        return KILTER_OK;
    }
    if (!l->round.reported || l->passed < l->round.due)
        return KILTER_OK;
    double began_s = kl_loop_now_s(l);
    kilter_status status = kl_batch_await(l, &l->round.batch, error);
    l->summary.waited_s += kl_loop_now_s(l) - began_s;
    if (status != KILTER_OK)
        return status;
    take_reports(l);
    uint32_t clock = kl_steer_clock(l->ranks, l->round.heard);
    double left_s = l->period_s - (l->round.heard[clock].elapsed_s - l->round.asked_s);
    if (!l->round.adds_up || left_s <= 0)
        status = decide(l, error);
    else
        set_next(l, left_s, NULL);
    put_off(l);
    return status;
}

kilter_status kl_round_close(kilter_loop *l, kilter_error *error) {
    kilter_status status = l->round.reported ? kl_batch_await(l, &l->round.batch, error) : KILTER_OK;
    l->round.reported = false;
    return status;
}
