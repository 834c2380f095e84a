/* Loops whose iterations depend on the previous iteration: the ranks work as a pipeline, block by block. A
 * sweep has one or several passes, and rows may move between passes. A pipeline that runs backwards begins
 * with the last row and its last elements, and its blocks are numbered from there. */
#include <math.h>

#include "rank/rank.h"

enum { MOST_PASSES = 64, FORCED_PASSES = 4 };

/* change the block size only if the new size saves more than this fraction of the time */
static const double BLOCK_GAIN = 0.01;
/* The time for passing on a boundary is not counted if it exceeds both this number of seconds and the fixed
 * time of two messages. The rank was then probably interrupted. */
static const double BOUNDARY_MOST_S = 1e-4;
/* weight of the old mean when the mean seconds for passing on the boundary of a block are updated */
static const double BOUNDARY_H = 0.5;

/* --- blocks --- */

/* Return how the elements of a row are cut into blocks in the current sweep. */
static kl_blocks blocks_of(const kl_rank *k) {
    return (kl_blocks){k->options.inner, k->flow.block,
                       kl_meter_sweep(&k->meter) == 0 ? k->flow.sizes_tried : 0};
}

static kl_span block_at(const kl_rank *k, uint64_t index) {
    kl_blocks blocks = blocks_of(k);
    return kl_blocks_at(&blocks, index);
}

static uint64_t block_count(const kl_rank *k) {
    kl_blocks blocks = blocks_of(k);
    return kl_blocks_count(&blocks);
}

/* Return the number of blocks in which block sizes are tried. These blocks are at the beginning of the first
 * sweep; later sweeps have none. */
static uint64_t tried_count(const kl_rank *k) {
    kl_blocks blocks = blocks_of(k);
    return kl_blocks_tried(&blocks);
}

static double elements_in(const kl_rank *k, kl_span blocks) {
    return kl_is_empty(blocks) ? 0 : (double)(block_at(k, blocks.hi - 1).hi - block_at(k, blocks.lo).lo);
}

static double sweep_done(const kl_rank *k) {
    return elements_in(k, (kl_span){0, k->flow.done}) / (double)k->options.inner;
}

static double pass_done(const kl_rank *k) {
    return elements_in(k, (kl_span){k->flow.pass.lo, k->flow.done}) / elements_in(k, k->flow.pass);
}

/* --- choosing the block size --- */

/* Prepare the choice of the block size. Set up the cost model of a pipeline from the measured messages, and
 * choose the sizes to try in the first sweep. */
static void prepare(kl_rank *k) {
    double bytes = 0;
    if (k->options.block > 0)
        return;
    for (size_t a = 0; a < k->layout.array_count; a++)
        if (k->layout.arrays[a].halo > 0)
            bytes += (double)k->layout.arrays[a].bytes / (double)k->options.inner;
    k->flow.grain.pipeline = (kl_pipeline){.ranks = k->layout.ranks,
                                           .elements = k->options.inner,
                                           .fixed_s = k->rounds.link.fixed_s,
                                           .incr_s = k->rounds.link.per_unit_s * bytes};
    k->flow.sizes_tried = kl_blocks_sizes(k->options.inner, k->flow.block);
}

/* Learn how long it takes to pass the boundary of a block on to the next rank. The longest time of any rank
 * counts, because the slowest rank sets the pace of the pipeline. */
static void learn(kl_rank *k) {
    double *fixed_s = &k->flow.grain.pipeline.fixed_s, most_s = 0;
    for (uint32_t r = 0; r < k->layout.ranks; r++)
        most_s = fmax(most_s, k->rounds.all[r].boundary_s);
    if (most_s > 0)
        *fixed_s = k->meter.all.rounds > 0 ? (1 - BOUNDARY_H) * most_s + BOUNDARY_H * *fixed_s : most_s;
    kl_steer_refill(k->rounds.steer,
                    (double)(k->layout.ranks - 1) * (double)k->flow.block / (double)k->options.inner);
}

static void choose_block(kl_flow *f) {
    uint64_t best = kl_grain_block(&f->grain);
    if (kl_grain_elapsed_s(&f->grain, best) < (1 - BLOCK_GAIN) * kl_grain_elapsed_s(&f->grain, f->block))
        f->block = best;
}

/* Choose the best of the tried block sizes. For each size, the slowest rank's time for its present rows
 * counts. The measured time of the whole sweep cannot be used, because its blocks had several sizes. */
static kl_act compare_tries(kl_rank *k) {
    kl_flow *f = &k->flow;
    double own = (double)kl_length(kl_layout_own(&k->layout));
    f->compares = !f->compares;
    if (!f->compares) { /* the times that the slowest rank needs with each size have arrived */
        choose_block(f);
        k->rounds.forecast_s = 0;
        return KL_GO_ON;
    }
    f->grain.sizes = f->sizes_tried;
    for (uint32_t i = 0; i < f->sizes_tried; i++)
        f->grain.element_s[i] = f->tried_s[i] * own;
    return kl_ask(
        k, (kl_action){.act = KL_MOST, .values = f->grain.element_s, .count = f->grain.sizes, .again = true});
}

/* Choose the blocks of a sweep before it begins. */
static kl_act set_block(kl_rank *k) {
    kl_flow *f = &k->flow;
    kl_loop_rounds *r = &k->rounds;
    if (f->compares || (kl_meter_sweep(&k->meter) == 1 && f->sizes_tried > 0 && f->grain.sizes == 0))
        return compare_tries(k);
    if (k->options.block > 0)
        return KL_GO_ON;
    if (r->forced)
        f->block = 1 + kl_mix64(r->seed - kl_meter_sweep(&k->meter)) % k->options.inner;
    if (r->forecast_s > 0) {
        kl_grain_refresh(&f->grain, f->block, r->forecast_s);
        choose_block(f);
    }
    r->forecast_s = 0;
    return KL_GO_ON;
}

/* Store the time of a block with which a block size is tried. If a size is tried several times, keep the
 * least time, because a try that was interrupted takes longer. */
static void measure_try(kl_rank *k, const kl_blocks *blocks, kl_span block, double body_s) {
    kl_flow *f = &k->flow;
    kl_span try;
    uint32_t size;
    if (!kl_blocks_try(blocks, block.lo, &size, &try))
        return;
    f->try_s = block.lo == try.lo ? body_s : f->try_s + body_s;
    uint64_t elements = kl_length(try) * kl_length(kl_layout_own(&k->layout));
    double each_s = f->try_s / (double)elements, *least_s = &f->tried_s[size];
    if (block.hi == try.hi)
        *least_s = *least_s > 0 ? fmin(*least_s, each_s) : each_s;
}

static void measure_block(kl_rank *k, const kl_blocks *blocks, kl_span block) {
    kl_meter *m = &k->meter;
    double body_s = k->flow.body_over_s - m->given_s;
    double rows = (double)kl_length(kl_layout_own(&k->layout));
    if (!m->on)
        return;
    if (blocks->sizes > 0)
        measure_try(k, blocks, block, body_s);
    kl_meter_count(m, rows * ((double)kl_length(block) / (double)k->options.inner), body_s);
}

static void measure_boundary(kl_meter *m, const kl_flow *f, const kl_linear *link) {
    double passed_s = m->given_s - f->body_over_s - f->absent_s;
    if (!m->on || passed_s > fmax(BOUNDARY_MOST_S, 2 * link->fixed_s))
        return;
    m->since.boundary_s += passed_s;
    m->since.boundaries++;
}

/* Read the clock if the last action has left the time unknown. */
static kl_act read_clock(kl_rank *k) {
    return k->meter.on && k->action.untimed ? kl_ask_briefly(k, KL_CLOCK, NULL) : KL_GO_ON;
}

/* --- passes --- */

/* Return the number of passes in a sweep. A pass takes about as long as the period between two reports. It
 * has enough blocks for the report of the last rank to arrive before the first rank needs it. The blocks in
 * which sizes are tried are a pass of their own. */
static uint64_t passes(const kl_rank *k) {
    const kl_loop_rounds *r = &k->rounds;
    uint64_t tried = tried_count(k), most = (block_count(k) - tried) / (2 * k->layout.ranks),
             fit = MOST_PASSES;
    if (r->forced)
        return 1 + kl_mix64(r->seed + kl_meter_sweep(&k->meter)) % FORCED_PASSES;
    if (!r->steer || k->options.fixed || most == 0)
        return 1;
    if (r->sweep_s > 0 && r->sweep_s < MOST_PASSES * r->period_s)
        fit = (uint64_t)(r->sweep_s / r->period_s);
    fit = fit < most ? fit : most;
    return fit > 0 ? fit + (tried > 0) : 1;
}

/* Set the blocks of the pass that begins with block `lo`. */
static void set_pass(kl_rank *k, uint64_t lo) {
    uint64_t blocks = block_count(k), count = k->rounds.passes, tried = count > 1 ? tried_count(k) : 0;
    uint64_t others = count > 1 ? count - (tried > 0) : 1, each = (blocks - tried + others - 1) / others;
    uint64_t hi = lo < tried ? tried : blocks - lo > each ? lo + each : blocks;
    k->flow.pass = (kl_span){lo, hi};
}

static bool is_last_pass(const kl_rank *k) {
    return k->flow.pass.hi == block_count(k);
}

static bool has_passed(const kl_rank *k) {
    return kl_is_empty(kl_layout_own(&k->layout)) || k->flow.done == k->flow.pass.hi;
}

/* Exchange halos, and move rows in stages. In each stage, rows cross only one bound between ranks. */
static kl_act exchange_stages(kl_rank *k) {
    static const kl_stage one[] = {kl_exchange_room, kl_exchange_post, kl_exchange_finish, NULL};
    if (!k->exchange.passing)
        return kl_ranged_settle(k);
    kl_exchange_next_stage(&k->exchange);
    return kl_rank_do_and_repeat(k, one);
}

static kl_act exchange(kl_rank *k) {
    static const kl_stage stages[] = {exchange_stages, NULL};
    k->exchange.by_blocks = true;
    k->exchange.midway = k->flow.done > 0;
    kl_exchange_aim_by_stages(&k->exchange);
    return kl_rank_do(k, stages);
}

static kl_act begin_blocks(kl_rank *k) {
    k->flow.done = k->flow.asked = 0;
    k->flow.in_block = false;
    return KL_GO_ON;
}

/* Begin the first pass. The ghost rows next to the rank's first row arrive before the program gets its first
 * block. */
static kl_act begin_passes(kl_rank *k) {
    kl_rounds_repass(&k->rounds, passes(k));
    set_pass(k, 0);
    return exchange(k);
}

/* --- between two passes: rows may move, and arrive with all the blocks that were done in earlier passes ---
 */

static kl_act end_pass(kl_rank *k) {
    k->flow.done = k->flow.asked = k->flow.pass.hi; /* a rank without rows has not counted its blocks */
    return kl_rounds_hook_at_end(k);
}

static kl_act count_pass(kl_rank *k) {
    k->rounds.passed++;
    return KL_GO_ON;
}

static kl_act use_tries(kl_rank *k) {
    if (k->flow.pass.hi != tried_count(k))
        return KL_GO_ON;
    kl_act act = compare_tries(k);
    if (!k->flow.compares)
        kl_rounds_repass(&k->rounds, passes(k));
    return act;
}

/* If rows are to move, first wait until all boundaries that this rank has sent have arrived. Until then, the
 * rows with these boundaries must stay in memory. */
static kl_act await_sent_if_rows_move(kl_rank *k) {
    if (!k->exchange.moves)
        return KL_GO_ON;
    return kl_ask(k, (kl_action){.act = KL_AWAIT, .set = &k->flow.going});
}

static kl_act exchange_if_rows_move(kl_rank *k) {
    return k->exchange.moves ? exchange(k) : KL_GO_ON;
}

static kl_act begin_pass(kl_rank *k) {
    set_pass(k, k->flow.pass.hi);
    return KL_GO_ON;
}

static kl_act next_pass(kl_rank *k) {
    static const kl_stage stages[] = {read_clock,
                                      end_pass,
                                      count_pass,
                                      kl_rounds_answer,
                                      use_tries,
                                      await_sent_if_rows_move,
                                      exchange_if_rows_move,
                                      begin_pass,
                                      NULL};
    if (!has_passed(k) || is_last_pass(k))
        return KL_GO_ON;
    return kl_rank_do_and_repeat(k, stages);
}

/* --- next --- */

/* Return the rank that comes before this rank (way −1) or after it (way 1) in the order of the pipeline; −1:
 * there is no such rank. */
static int neighbour(const kl_rank *k, int way) {
    const kl_layout *l = &k->layout;
    way = k->options.backward ? -way : way;
    int r = (int)l->rank + way;
    while (r >= 0 && r < (int)l->ranks && l->bounds[r] == l->bounds[r + 1])
        r += way;
    return r < (int)l->ranks ? r : -1;
}

/* Return the elements of a block, in the order of memory. */
static kl_span elements_of(const kl_rank *k, uint64_t index) {
    kl_span block = block_at(k, index);
    uint64_t inner = k->options.inner;
    return k->options.backward ? (kl_span){inner - block.hi, inner - block.lo} : block;
}

/* Return the row at the boundary between two ranks. If `sends` is true, this is the row of this rank that the
 * next rank of the pipeline reads. Otherwise it is the row of the previous rank that this rank reads. */
static uint64_t boundary_row(const kl_rank *k, bool sends) {
    kl_span own = kl_layout_own(&k->layout);
    if (sends)
        return k->options.backward ? own.lo : own.hi - 1;
    return k->options.backward ? own.hi : own.lo - 1;
}

/* Send the boundary of a block to the next rank of the pipeline, or receive one from the previous rank. The
 * boundary is a part of the row boundary_row(), in each array with a halo. */
static kl_act pass_block(kl_rank *k, bool sends, int peer, uint64_t index) {
    kl_span block = elements_of(k, index);
    uint64_t row = boundary_row(k, sends);
    kl_mail *mails = sends ? k->flow.sent : k->flow.wanted;
    size_t count = 0;
    for (size_t a = 0; a < k->layout.array_count; a++) {
        const kl_array *array = &k->layout.arrays[a];
        size_t element = array->bytes / k->options.inner;
        if (array->halo == 0)
            continue;
        mails[count++] = (kl_mail){.data = kl_row_at(array, row) + block.lo * element,
                                   .bytes = (size_t)kl_length(block) * element,
                                   .peer = peer,
                                   .tag = KL_TAG_BLOCK};
    }
    if (count == 0)
        return KL_GO_ON;
    k->action.mails = mails;
    k->action.receives = sends ? 0 : count;
    k->action.count = count;
    return kl_ask_briefly(k, KL_POST, sends ? &k->flow.going : &k->flow.coming);
}

static kl_act finish_block(kl_rank *k) {
    kl_flow *f = &k->flow;
    if (!f->in_block)
        return KL_GO_ON;
    kl_blocks blocks = blocks_of(k);
    int after = neighbour(k, 1);
    f->in_block = false;
    f->body_over_s = k->now_s;
    measure_block(k, &blocks, kl_blocks_at(&blocks, f->done++));
    return after < 0 ? KL_GO_ON : pass_block(k, true, after, f->done - 1);
}

/* Check the sent blocks, even if such a check gives the core away. The first rank makes no other checks, and
 * MPI sends a large block only while it is called. */
static kl_act look_at_sent(kl_rank *k) {
    return k->flow.going.open ? kl_ask_briefly(k, KL_LOOK, &k->flow.going) : KL_GO_ON;
}

static kl_act ask_for_block(kl_rank *k) {
    int before = neighbour(k, -1);
    if (before < 0 || k->flow.asked == k->flow.pass.hi)
        return KL_GO_ON;
    return pass_block(k, false, before, k->flow.asked++);
}

/* Request the boundary of this block from the previous rank, unless it was requested already. */
static kl_act ask_for_this_block(kl_rank *k) {
    if (has_passed(k))
        return kl_return(k);
    return k->flow.asked == k->flow.done ? ask_for_block(k) : KL_GO_ON;
}

/* Check for the boundary before a wait for it begins. If a check would give the core away, only read the
 * clock. */
static kl_act look_for_block(kl_rank *k) {
    kl_set *coming = &k->flow.coming;
    k->flow.absent_s = 0;
    return coming->open ? kl_ask_briefly(k, k->looks_yield ? KL_CLOCK : KL_LOOK, coming) : KL_GO_ON;
}

static kl_act await_block(kl_rank *k) {
    k->flow.since_s = k->now_s;
    if (!k->flow.coming.open)
        return KL_GO_ON;
    return kl_ask(k, (kl_action){.act = KL_AWAIT, .set = &k->flow.coming});
}

/* Request the boundary of the next block from the previous rank, before the body begins its work. */
static kl_act ask_for_next_block(kl_rank *k) {
    k->flow.absent_s = k->now_s - k->flow.since_s;
    k->meter.all.waited_s += k->flow.absent_s;
    return ask_for_block(k);
}

static kl_act give_block(kl_rank *k) {
    k->flow.in_block = true;
    kl_meter_give(&k->meter, k->now_s);
    if (k->flow.done > 0)
        measure_boundary(&k->meter, &k->flow, &k->rounds.link);
    return kl_give(k, (kl_given){kl_layout_own(&k->layout), elements_of(k, k->flow.done)});
}

/* --- end --- */

static bool is_done(const kl_rank *k) {
    return is_last_pass(k) && has_passed(k) && !k->flow.in_block;
}

static kl_act await_sent(kl_rank *k) {
    return kl_ask(k, (kl_action){.act = KL_AWAIT, .set = &k->flow.going});
}

static const kl_stage begin[] = {kl_rounds_answer, begin_blocks, set_block, begin_passes, NULL};
static const kl_stage next[] = {finish_block,
                                look_at_sent,
                                kl_rounds_hook,
                                next_pass,
                                ask_for_this_block,
                                look_for_block,
                                await_block,
                                ask_for_next_block,
                                read_clock,
                                give_block,
                                NULL};
static const kl_stage end[] = {await_sent, kl_rounds_hook_at_end, NULL};

const kl_kind kl_pipelined = {.buffers = true,
                              .stages = {begin, next, end},
                              .prepare = prepare,
                              .learn = learn,
                              .is_done = is_done,
                              .sweep_done = sweep_done,
                              .pass_done = pass_done};
