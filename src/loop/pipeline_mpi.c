/* Loops whose iterations need the one before: the ranks work as a pipeline, block by block. A sweep has one
 * pass or several, between which rows may move. */
#include <math.h>

#include "loop/loop_mpi.h"

enum { MOST_PASSES = 64, FORCED_PASSES = 4 };

static const double BLOCK_GAIN = 0.01;      /* less is no reason for other blocks */
static const double BOUNDARY_MOST_S = 1e-4; /* one that took longer, and twice a ping, was interrupted */
static const double BOUNDARY_H = 0.5;       /* in the old cost of boundaries */

/* --- blocks --- */

/* Return the blocks of the sweep that is under way, or begins now. */
static kl_blocks blocks_of(const kilter_loop *l) {
    return (kl_blocks){l->options.inner, l->flow.block,
                       kl_meter_sweep(&l->meter) == 0 ? l->flow.sizes_tried : 0};
}

static kl_span block_at(const kilter_loop *l, uint64_t index) {
    kl_blocks blocks = blocks_of(l);
    return kl_blocks_at(&blocks, index);
}

static uint64_t block_count(const kilter_loop *l) {
    kl_blocks blocks = blocks_of(l);
    return kl_blocks_count(&blocks);
}

/* Count the blocks that are tried, in other sizes than those that follow. */
static uint64_t tried_count(const kilter_loop *l) {
    kl_blocks blocks = blocks_of(l);
    return kl_blocks_tried(&blocks);
}

static double elements_in(const kilter_loop *l, kl_span blocks) {
    return kl_is_empty(blocks) ? 0 : (double)(block_at(l, blocks.hi - 1).hi - block_at(l, blocks.lo).lo);
}

static double sweep_done(const kilter_loop *l) {
    return elements_in(l, (kl_span){0, l->flow.done}) / (double)l->options.inner;
}

static double pass_done(const kilter_loop *l) {
    return elements_in(l, (kl_span){l->flow.pass.lo, l->flow.done}) / elements_in(l, l->flow.pass);
}

/* --- which blocks are best --- */

/* Until sweeps have shown what blocks cost: a message is dearer than what a rank has to do for it. */
static void prepare(kilter_loop *l) {
    double bytes = 0;
    if (l->options.block > 0)
        return;
    for (size_t a = 0; a < l->layout.array_count; a++)
        if (l->layout.arrays[a].halo > 0)
            bytes += (double)l->layout.arrays[a].rows.bytes / (double)l->options.inner;
    l->flow.grain.pipeline = (kl_pipeline){.ranks = l->group.ranks,
                                           .elements = l->options.inner,
                                           .fixed_s = l->rounds.link.fixed_s,
                                           .incr_s = l->rounds.link.per_unit_s * bytes};
    l->flow.sizes_tried = kl_blocks_sizes(l->options.inner, l->flow.block);
}

/* All ranks pass boundaries at the pace of the slowest one. */
static void learn(kilter_loop *l) {
    double *fixed_s = &l->flow.grain.pipeline.fixed_s, most_s = 0;
    for (uint32_t r = 0; r < l->group.ranks; r++)
        most_s = fmax(most_s, l->rounds.all[r].boundary_s);
    if (most_s > 0)
        *fixed_s = l->meter.all.rounds > 0 ? (1 - BOUNDARY_H) * most_s + BOUNDARY_H * *fixed_s : most_s;
    kl_steer_refill(l->rounds.steer,
                    (double)(l->group.ranks - 1) * (double)l->flow.block / (double)l->options.inner);
}

static void choose_block(kl_flow *f) {
    uint64_t best = kl_grain_block(&f->grain);
    if (kl_grain_elapsed_s(&f->grain, best) < (1 - BLOCK_GAIN) * kl_grain_elapsed_s(&f->grain, f->block))
        f->block = best;
}

/* Choose a block by how long the slowest rank's body took in each size that was tried, with the rows it has
 * now. What blocks of many sizes took together says nothing of one of them. */
static kilter_status use_tries(kilter_loop *l, kilter_error *error) {
    kl_flow *f = &l->flow;
    double own = (double)kl_length(kl_layout_own(&l->layout));
    f->grain.sizes = f->sizes_tried;
    for (uint32_t k = 0; k < f->sizes_tried; k++)
        f->grain.element_s[k] = f->tried_s[k] * own;
    kilter_status status = kl_group_most_f64(&l->group, f->grain.element_s, f->grain.sizes, error);
    if (status == KILTER_OK)
        choose_block(f);
    l->rounds.forecast_s = 0;
    return status;
}

/* Before a sweep. */
static kilter_status set_block(kilter_loop *l, kilter_error *error) {
    kl_flow *f = &l->flow;
    kl_loop_rounds *r = &l->rounds;
    if (kl_meter_sweep(&l->meter) == 1 && f->sizes_tried > 0 && f->grain.sizes == 0)
        return use_tries(l, error);
    if (l->options.block > 0)
        return KILTER_OK;
    if (r->forced)
        f->block = 1 + kl_mix64(r->seed - kl_meter_sweep(&l->meter)) % l->options.inner;
    if (r->forecast_s > 0) {
        kl_grain_refresh(&f->grain, f->block, r->forecast_s);
        choose_block(f);
    }
    r->forecast_s = 0;
    return KILTER_OK;
}

/* The least of several tries: one that was interrupted is not. */
static void measure_try(kilter_loop *l, const kl_blocks *blocks, kl_span block, double body_s) {
    kl_flow *f = &l->flow;
    kl_span try;
    uint32_t size;
    if (!kl_blocks_try(blocks, block.lo, &size, &try))
        return;
    f->try_s = block.lo == try.lo ? body_s : f->try_s + body_s;
    uint64_t elements = kl_length(try) * kl_length(kl_layout_own(&l->layout));
    double each_s = f->try_s / (double)elements, *least_s = &f->tried_s[size];
    if (block.hi == try.hi)
        *least_s = *least_s > 0 ? fmin(*least_s, each_s) : each_s;
}

static void measure_block(kilter_loop *l, const kl_blocks *blocks, kl_span block) {
    kl_meter *m = &l->meter;
    double body_s = l->flow.body_over_s - m->given_s;
    double rows = (double)kl_length(kl_layout_own(&l->layout));
    if (!m->on)
        return;
    if (blocks->sizes > 0)
        measure_try(l, blocks, block, body_s);
    kl_meter_count(m, rows * ((double)kl_length(block) / (double)l->options.inner), body_s);
}

static void measure_boundary(kl_meter *m, const kl_flow *f, const kl_linear *link) {
    double passed_s = m->given_s - f->body_over_s - f->absent_s;
    if (!m->on || passed_s > fmax(BOUNDARY_MOST_S, 2 * link->fixed_s))
        return;
    m->since.boundary_s += passed_s;
    m->since.boundaries++;
}

/* --- passes --- */

/* Each takes a period, and the last rank has reported before the first one wants the answer. What is tried is
 * a pass of its own. */
static uint64_t passes(const kilter_loop *l) {
    const kl_loop_rounds *r = &l->rounds;
    uint64_t tried = tried_count(l), most = (block_count(l) - tried) / (2 * l->group.ranks),
             fit = MOST_PASSES;
    if (r->forced)
        return 1 + kl_mix64(r->seed + kl_meter_sweep(&l->meter)) % FORCED_PASSES;
    if (!r->steer || l->options.fixed || most == 0)
        return 1;
    if (r->sweep_s > 0 && r->sweep_s < MOST_PASSES * r->period_s)
        fit = (uint64_t)(r->sweep_s / r->period_s);
    fit = fit < most ? fit : most;
    return fit > 0 ? fit + (tried > 0) : 1;
}

/* The pass that begins with block `lo`. */
static void set_pass(kilter_loop *l, uint64_t lo) {
    uint64_t blocks = block_count(l), count = l->rounds.passes, tried = count > 1 ? tried_count(l) : 0;
    uint64_t others = count > 1 ? count - (tried > 0) : 1, each = (blocks - tried + others - 1) / others;
    uint64_t hi = lo < tried ? tried : blocks - lo > each ? lo + each : blocks;
    l->flow.pass = (kl_span){lo, hi};
}

static bool is_last_pass(const kilter_loop *l) {
    return l->flow.pass.hi == block_count(l);
}

static bool has_passed(const kilter_loop *l) {
    return kl_is_empty(kl_layout_own(&l->layout)) || l->flow.done == l->flow.pass.hi;
}

static kilter_status exchange(kilter_loop *l, kilter_error *error) {
    l->exchange.by_blocks = true;
    l->exchange.midway = l->flow.done > 0;
    kilter_status status = kl_exchange_by_stages(&l->exchange, error);
    kl_ranged_settle(l);
    return status;
}

/* The rows around the first own row are here before its first block is given. */
static kilter_status begin(kilter_loop *l, kilter_error *error) {
    kl_flow *f = &l->flow;
    kilter_status status = kl_rounds_answer(l, error);
    f->done = f->asked = 0;
    f->in_block = false;
    if (status == KILTER_OK)
        status = set_block(l, error);
    if (status != KILTER_OK)
        return status;
    kl_rounds_repass(&l->rounds, passes(l));
    set_pass(l, 0);
    return exchange(l, error);
}

/* Rows may move between two passes: a rank gets each with the blocks done that are done everywhere. */
static kilter_status next_pass(kilter_loop *l, kilter_error *error) {
    kl_flow *f = &l->flow;
    f->done = f->asked = f->pass.hi; /* of a rank without rows, too */
    kilter_status status = kl_rounds_hook(l, true, error);
    l->rounds.passed++;
    if (status == KILTER_OK)
        status = kl_rounds_answer(l, error);
    if (status == KILTER_OK && f->pass.hi == tried_count(l)) {
        status = use_tries(l, error);
        kl_rounds_repass(&l->rounds, passes(l));
    }
    if (status == KILTER_OK && l->exchange.moves)
        status = kl_requests_await(&l->group, &f->going, error); /* out of rows that may go */
    if (status == KILTER_OK && l->exchange.moves)
        status = exchange(l, error);
    set_pass(l, f->pass.hi);
    return status;
}

/* --- next --- */

/* The next rank with rows, downwards (−1) or upwards; −1: there is none. */
static int neighbour(const kl_layout *l, int way) {
    int r = (int)l->rank + way;
    while (r >= 0 && r < (int)l->ranks && l->bounds[r] == l->bounds[r + 1])
        r += way;
    return r < (int)l->ranks ? r : -1;
}

/* Send the part in a block of the last own row upwards, or receive that of the row before the own ones, of
 * each array with a halo. */
static kilter_status pass_block(kilter_loop *l, bool sends, int peer, uint64_t index, kilter_error *error) {
    kl_span own = kl_layout_own(&l->layout), block = block_at(l, index);
    kilter_status status = KILTER_OK;
    for (size_t a = 0; a < l->layout.array_count && status == KILTER_OK; a++) {
        const kl_array *array = &l->layout.arrays[a];
        size_t element = array->rows.bytes / l->options.inner;
        if (array->halo == 0)
            continue;
        kl_mail mail = {.data =
                            kl_rows_at(&array->rows, sends ? own.hi - 1 : own.lo - 1) + block.lo * element,
                        .bytes = (size_t)kl_length(block) * element,
                        .peer = peer,
                        .tag = KL_TAG_BLOCK};
        status = sends ? kl_send(&l->group, &l->flow.going, mail, error)
                       : kl_receive(&l->group, &l->flow.coming, mail, error);
    }
    return status;
}

static kilter_status ask_for_block(kilter_loop *l, kilter_error *error) {
    int below = neighbour(&l->layout, -1);
    if (below < 0 || l->flow.asked == l->flow.pass.hi)
        return KILTER_OK;
    return pass_block(l, false, below, l->flow.asked++, error);
}

/* Wait for the boundary of the block before. That of the next one is asked for before the work begins. */
static kilter_status await_block(kilter_loop *l, kilter_error *error) {
    kl_flow *f = &l->flow;
    kilter_status status = f->asked == f->done ? ask_for_block(l, error) : KILTER_OK;
    if (status == KILTER_OK)
        status = kl_requests_look(&l->group, &f->coming, error);
    f->absent_s = 0;
    if (status == KILTER_OK && f->coming.open > 0) {
        double began_s = kl_loop_now_s(l);
        status = kl_requests_await(&l->group, &f->coming, error);
        f->absent_s = kl_loop_now_s(l) - began_s;
        l->meter.all.waited_s += f->absent_s;
    }
    return status == KILTER_OK ? ask_for_block(l, error) : status;
}

static kilter_status finish_block(kilter_loop *l, kilter_error *error) {
    kl_flow *f = &l->flow;
    if (!f->in_block)
        return KILTER_OK;
    kl_blocks blocks = blocks_of(l);
    int above = neighbour(&l->layout, 1);
    f->in_block = false;
    f->body_over_s = kl_loop_now_s(l);
    measure_block(l, &blocks, kl_blocks_at(&blocks, f->done));
    kilter_status status = above < 0 ? KILTER_OK : pass_block(l, true, above, f->done, error);
    f->done++;
    return status == KILTER_OK ? kl_requests_look(&l->group, &f->going, error) : status;
}

static void give_block(kilter_loop *l, kl_given *given) {
    *given = (kl_given){kl_layout_own(&l->layout), block_at(l, l->flow.done)};
    l->flow.in_block = true;
    kl_meter_give(&l->meter, kl_loop_now_s(l));
    if (l->flow.done > 0)
        measure_boundary(&l->meter, &l->flow, &l->rounds.link);
}

static kilter_status next(kilter_loop *l, kl_given *given, bool *got, kilter_error *error) {
    kilter_status status = finish_block(l, error);
    if (status == KILTER_OK)
        status = kl_rounds_hook(l, false, error);
    if (status == KILTER_OK)
        status = kl_group_look(&l->group, l->flow.body_over_s, error);
    while (status == KILTER_OK && has_passed(l) && !is_last_pass(l))
        status = next_pass(l, error);
    *got = status == KILTER_OK && !has_passed(l);
    if (*got)
        status = await_block(l, error);
    if (*got && status == KILTER_OK)
        give_block(l, given);
    return status;
}

/* --- end --- */

static bool is_done(const kilter_loop *l) {
    return is_last_pass(l) && has_passed(l) && !l->flow.in_block;
}

static kilter_status end(kilter_loop *l, kilter_error *error) {
    kilter_status status = kl_requests_await(&l->group, &l->flow.going, error);
    return status == KILTER_OK ? kl_rounds_hook(l, true, error) : status;
}

static void free_flow(kilter_loop *l) {
    kl_requests_free(&l->flow.coming);
    kl_requests_free(&l->flow.going);
}

const kl_kind kl_pipelined = {.buffers = true,
                              .close = free_flow,
                              .prepare = prepare,
                              .learn = learn,
                              .own = kl_ranged_own,
                              .begin = begin,
                              .next = next,
                              .is_done = is_done,
                              .end = end,
                              .sweep_done = sweep_done,
                              .pass_done = pass_done};
