/* One execution: its rows, range by range or block by block. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "loop/loop_mpi.h"

enum { MOST_PASSES = 64, FORCED_PASSES = 4 };

static const double PIECES_FROM_S = 1e-3; /* own rows that take longer are given in pieces */

static bool is_empty(kl_span s) {
    return s.lo >= s.hi;
}

static kl_span target_of(const kilter_loop *l) {
    return (kl_span){l->target[l->rank], l->target[l->rank + 1]};
}

static kilter_status wrong_use(kilter_loop *l, const char *call, const char *what, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_USAGE, "%s of loop '%s': %s", call, l->name, what);
}

/* --- a pipeline's blocks, and its passes --- */

static kl_span block_at(const kilter_loop *l, uint64_t index) {
    kl_blocks blocks = kl_loop_blocks(l);
    return kl_blocks_at(&blocks, index);
}

static uint64_t block_count(const kilter_loop *l) {
    kl_blocks blocks = kl_loop_blocks(l);
    return kl_blocks_count(&blocks);
}

/* Blocks of other sizes than those that follow. */
static uint64_t tried_count(const kilter_loop *l) {
    kl_blocks blocks = kl_loop_blocks(l);
    return kl_blocks_tried(&blocks);
}

/* So that each takes a period, and the last rank has reported before the first one wants the answer. What is
 * tried is one of its own. */
static uint64_t passes(const kilter_loop *l) {
    uint64_t tried = tried_count(l), most = (block_count(l) - tried) / (2 * l->ranks), fit = MOST_PASSES;
    if (l->forced)
        return 1 + kl_mix64(l->seed + l->execution) % FORCED_PASSES;
    if (!l->steer || l->options.fixed || most == 0)
        return 1;
    if (l->execution_s > 0 && l->execution_s < MOST_PASSES * l->period_s)
        fit = (uint64_t)(l->execution_s / l->period_s);
    fit = fit < most ? fit : most;
    return fit > 0 ? fit + (tried > 0) : 1;
}

/* That which begins with block `lo`. */
static void set_pass(kilter_loop *l, uint64_t lo) {
    uint64_t blocks = block_count(l), tried = l->passes > 1 ? tried_count(l) : 0;
    uint64_t passes = l->passes > 1 ? l->passes - (tried > 0) : 1;
    uint64_t each = (blocks - tried + passes - 1) / passes;
    if (lo < tried)
        l->pass = (kl_span){lo, tried};
    else
        l->pass = (kl_span){lo, blocks - lo > each ? lo + each : blocks};
}

static bool is_last_pass(const kilter_loop *l) {
    return l->pass.hi == block_count(l);
}

/* Into the first own row's execution comes what the rows around it were before: all of it is there first. */
static kilter_status begin_pipeline(kilter_loop *l, kilter_error *error) {
    l->blocks_done = l->blocks_asked = 0;
    l->in_block = false;
    kilter_status status = kl_round_blocks(l, error);
    if (status != KILTER_OK)
        return status;
    uint64_t passes_before = l->passes;
    l->passes = passes(l);
    kl_round_repass(l, passes_before);
    set_pass(l, 0);
    return kl_exchange_by_stages(l, error);
}

/* Rows may move between two passes: whoever gets one gets it with the blocks done that are done everywhere.
 */
static kilter_status next_pass(kilter_loop *l, kilter_error *error) {
    l->blocks_done = l->blocks_asked = l->pass.hi; /* of a rank without rows, too */
    kilter_status status = kl_round_hook(l, true, error);
    l->passed++;
    if (status == KILTER_OK)
        status = kl_round_answer(l, error);
    if (status == KILTER_OK && l->pass.hi == tried_count(l)) {
        uint64_t passes_before = l->passes;
        status = kl_round_tried(l, error);
        l->passes = passes(l);
        kl_round_repass(l, passes_before);
    }
    if (status == KILTER_OK && l->moves)
        status = kl_batch_await(l, &l->going, error); /* out of rows that may go */
    if (status == KILTER_OK && l->moves)
        status = kl_exchange_by_stages(l, error);
    set_pass(l, l->pass.hi);
    return status;
}

/* --- begin --- */

static void split(kilter_loop *l, kl_span inner) {
    l->all = kl_loop_with_ghosts(l, target_of(l), l->ahead * l->ghost);
    l->todo = inner;
    if (is_empty(inner)) {
        l->todo = (kl_span){0, 0};
        l->edges[0] = l->all;
        l->edges[1] = (kl_span){0, 0};
    } else {
        l->edges[0] = (kl_span){l->all.lo, inner.lo};
        l->edges[1] = (kl_span){inner.hi, l->all.hi};
    }
}

/* What the last exchange brought is enough for `ahead` more executions. Each also does those rows of
 * neighbours that the later ones read. */
static kilter_status begin_rows(kilter_loop *l, kilter_error *error) {
    if (l->ahead > 0 && !l->moves && !l->deepened) {
        l->ahead--;
        split(l, (kl_span){0, 0});
        return KILTER_OK;
    }
    kl_span inner;
    kilter_status status = kl_exchange_begin(l, &inner, error);
    l->ahead = l->depth - 1;
    if (status == KILTER_OK)
        split(l, inner);
    return status;
}

static kilter_status begin(kilter_loop *l, kilter_error *error) {
    kilter_status status = KILTER_OK;
    bool scatters = l->options.scattered && !l->options.fixed && l->ranks > 1;
    if (l->execution == 0)
        status = kl_exchange_open(l, error);
    if (status == KILTER_OK && l->execution == 0)
        status = kl_round_open(l, error);
    if (status == KILTER_OK && scatters && !l->scatter)
        status = kl_scatter_open(l, error);
    if (scatters) {
        if (status == KILTER_OK)
            kl_scatter_begin(l);
        return status;
    }
    if (l->execution > 0)
        status = kl_round_answer(l, error);
    l->rows_done = 0;
    l->given = (kl_span){0, 0};
    kl_span own = target_of(l);
    l->by_pieces = l->steer && !kl_loop_pipelined(l) &&
                   (l->iteration_s == 0 || l->iteration_s * (double)(own.hi - own.lo) > PIECES_FROM_S);
    if (status == KILTER_OK && kl_loop_pipelined(l))
        return begin_pipeline(l, error);
    return status == KILTER_OK ? begin_rows(l, error) : status;
}

/* --- next, of a loop whose iterations are independent --- */

static uint64_t grain(const kilter_loop *l) {
    kl_span own = target_of(l);
    uint64_t mine = own.hi - own.lo;
    if (!l->by_pieces)
        return mine;
    uint64_t piece = (mine + KL_SEGMENTS - 1) / KL_SEGMENTS;
    uint64_t most = l->iteration_s > 0 ? kl_doall_grain(mine, l->iteration_s, l->period_s) : piece;
    return piece < most ? piece : most;
}

static void count_given(kilter_loop *l, double now_s) {
    if (is_empty(l->given))
        return;
    kl_measure(l, l->given, now_s);
    l->rows_done += l->given.hi - l->given.lo;
    l->given = (kl_span){0, 0};
}

static bool give(kilter_loop *l, kilter_range *range, double now_s) {
    if (is_empty(l->todo))
        return false;
    uint64_t count = l->todo.hi - l->todo.lo, most = grain(l);
    count = count < most ? count : most;
    l->given = (kl_span){l->todo.lo, l->todo.lo + count};
    l->todo.lo += count;
    *range = (kilter_range){l->given.lo, l->given.hi};
    kl_measure_given(l, now_s);
    return true;
}

/* The edges follow when the exchange is complete, which is at the latest when nothing else is left. *now_s: a
 * look at the clock, and another one if time was spent since. */
static kilter_status next(kilter_loop *l, double *now_s, kilter_error *error) {
    bool reported = l->round.reported;
    kilter_status status = kl_round_hook(l, false, error);
    if (l->round.reported != reported)
        *now_s = kl_loop_now_s(l);
    if (status == KILTER_OK && (l->lines || l->watch))
        status = kl_loop_look_for_deaths_at(l, *now_s, error);
    if (status == KILTER_OK && !is_empty(l->todo) && l->exchanging)
        status = kl_exchange_look(l, error);
    if (status == KILTER_OK && is_empty(l->todo))
        status = kl_exchange_finish(l, now_s, error);
    for (int i = 0; i < 2 && status == KILTER_OK && is_empty(l->todo); i++) {
        l->todo = l->edges[i];
        l->edges[i] = (kl_span){0, 0};
    }
    return status;
}

/* What is wrong here is told by the next end. */
static bool break_loop(kilter_loop *l) {
    kl_loop_break(l);
    return false;
}

static bool is_under_way(kilter_loop *l, const char *call, kilter_loop_kind kind, bool has_place) {
    if (l->phase == KL_BROKEN)
        return false;
    kilter_status status = KILTER_OK;
    if (l->options.kind != kind)
        status = wrong_use(l, call,
                           kind == KILTER_DOALL ? "its kind is KILTER_DOACROSS: call kilter_loop_next_block()"
                                                : "its kind is KILTER_DOALL: call kilter_loop_next()",
                           &l->failure);
    else if (l->phase != KL_WITHIN)
        status = wrong_use(l, call, "no execution is under way: call kilter_loop_begin() first", &l->failure);
    else if (!has_place)
        status = wrong_use(l, call, "NULL is no place for a range", &l->failure);
    return status == KILTER_OK ? true : break_loop(l);
}

bool kilter_loop_next(kilter_loop *l, kilter_range *range) {
    if (!is_under_way(l, "kilter_loop_next()", KILTER_DOALL, range != NULL))
        return false;
    bool got;
    if (l->scatter)
        return kl_scatter_next(l, range, &got, &l->failure) == KILTER_OK ? got : break_loop(l);
    double now_s = kl_loop_now_s(l);
    count_given(l, now_s);
    return next(l, &now_s, &l->failure) == KILTER_OK ? give(l, range, now_s) : break_loop(l);
}

/* --- next, of a pipeline --- */

/* The next rank with rows, downwards (−1) or upwards; −1: there is none. */
static int neighbour(const kilter_loop *l, int way) {
    int r = l->rank + way;
    while (r >= 0 && r < (int)l->ranks && l->bounds[r] == l->bounds[r + 1])
        r += way;
    return r < (int)l->ranks ? r : -1;
}

/* The part of `row` in a block, of each array with ghost rows. */
static kilter_status pass_block(kilter_loop *l, bool sends, int peer, uint64_t row, uint64_t index,
                                kilter_error *error) {
    kilter_status status = KILTER_OK;
    kl_span block = block_at(l, index);
    for (size_t a = 0; a < l->array_count && status == KILTER_OK; a++) {
        const kl_array *array = &l->arrays[a];
        size_t element = array->rows.bytes / l->options.inner,
               bytes = (size_t)(block.hi - block.lo) * element;
        if (array->ghost == 0)
            continue;
        uint8_t *at = kl_rows_at(&array->rows, row) + block.lo * element;
        status = sends ? kl_batch_send(l, &l->going, at, bytes, peer, KL_TAG_BLOCK, error)
                       : kl_batch_receive(l, &l->coming, at, bytes, peer, KL_TAG_BLOCK, error);
    }
    return status;
}

static kilter_status ask_for_block(kilter_loop *l, kilter_error *error) {
    int below = neighbour(l, -1);
    if (below < 0 || l->blocks_asked == l->pass.hi)
        return KILTER_OK;
    return pass_block(l, false, below, kl_loop_own(l).lo - 1, l->blocks_asked++, error);
}

/* The boundary of the block before is awaited; that of the next is asked for before the work begins. */
static kilter_status await_block(kilter_loop *l, kilter_error *error) {
    kilter_status status = l->blocks_asked == l->blocks_done ? ask_for_block(l, error) : KILTER_OK;
    if (status == KILTER_OK)
        status = kl_batch_look(l, &l->coming, error);
    l->absent_s = 0;
    if (status == KILTER_OK && l->coming.open > 0) {
        double began_s = kl_loop_now_s(l);
        status = kl_batch_await(l, &l->coming, error);
        l->absent_s = kl_loop_now_s(l) - began_s;
        l->summary.waited_s += l->absent_s;
    }
    return status == KILTER_OK ? ask_for_block(l, error) : status;
}

static kilter_status finish_block(kilter_loop *l, kilter_error *error) {
    if (!l->in_block)
        return KILTER_OK;
    kl_blocks blocks = kl_loop_blocks(l);
    kl_span own = kl_loop_own(l), block = kl_blocks_at(&blocks, l->blocks_done);
    int above = neighbour(l, 1);
    l->in_block = false;
    l->body_over_s = kl_loop_now_s(l);
    kl_measure_block(l, &blocks, block);
    kilter_status status =
        above < 0 ? KILTER_OK : pass_block(l, true, above, own.hi - 1, l->blocks_done, error);
    l->blocks_done++;
    if (status == KILTER_OK)
        status = kl_batch_look(l, &l->going, error);
    return status;
}

static bool give_block(kilter_loop *l, kilter_range *rows, kilter_range *inner) {
    kl_span own = kl_loop_own(l), block = block_at(l, l->blocks_done);
    *rows = (kilter_range){own.lo, own.hi};
    *inner = (kilter_range){block.lo, block.hi};
    l->in_block = true;
    kl_measure_given(l, kl_loop_now_s(l));
    if (l->blocks_done > 0)
        kl_measure_boundary(l);
    return true;
}

static bool has_passed(const kilter_loop *l) {
    return is_empty(kl_loop_own(l)) || l->blocks_done == l->pass.hi;
}

bool kilter_loop_next_block(kilter_loop *l, kilter_range *rows, kilter_range *inner) {
    if (!is_under_way(l, "kilter_loop_next_block()", KILTER_DOACROSS, rows && inner))
        return false;
    kilter_status status = finish_block(l, &l->failure);
    if (status == KILTER_OK)
        status = kl_round_hook(l, false, &l->failure);
    if (status == KILTER_OK)
        status = kl_loop_look_for_deaths_at(l, l->body_over_s, &l->failure);
    while (status == KILTER_OK && has_passed(l) && !is_last_pass(l))
        status = next_pass(l, &l->failure);
    if (status != KILTER_OK)
        return break_loop(l);
    if (has_passed(l))
        return false;
    if (await_block(l, &l->failure) != KILTER_OK)
        return break_loop(l);
    return give_block(l, rows, inner);
}

/* --- begin and end --- */

kilter_status kilter_loop_begin(kilter_loop *l, kilter_error *error) {
    if (l->phase == KL_BROKEN)
        return kl_loop_failed(l, l->failure.status, error);
    if (l->phase == KL_WITHIN)
        return kl_loop_failed(l,
                              wrong_use(l, "kilter_loop_begin()",
                                        "an execution is under way: call kilter_loop_end() first",
                                        &l->failure),
                              error);
    l->began_s = kl_loop_now_s(l);
    kl_mpi_look_at_core(&l->wait, l->began_s);
    kl_step(l, KL_CALL_BEGIN, 0, 0);
    kilter_status status = l->checks || l->execution == 0 ? kl_steps_meet(l, NULL, &l->failure) : KILTER_OK;
    if (status == KILTER_OK)
        status = begin(l, &l->failure);
    if (status != KILTER_OK)
        return kl_loop_failed(l, status, error);
    l->phase = KL_WITHIN;
    return KILTER_OK;
}

/* Nothing of the execution is left. */
static bool is_done(const kilter_loop *l) {
    if (l->scatter)
        return kl_scatter_is_done(l);
    if (kl_loop_pipelined(l))
        return is_last_pass(l) && has_passed(l) && !l->in_block;
    return is_empty(l->given) && l->rows_done == l->all.hi - l->all.lo;
}

static kilter_status end(kilter_loop *l, kilter_error *error) {
    if (l->phase != KL_WITHIN)
        return wrong_use(l, "kilter_loop_end()", "no execution is under way: call kilter_loop_begin() first",
                         error);
    double now_s = l->exchanging ? kl_loop_now_s(l) : 0; /* a rank without rows */
    kilter_status status = kl_exchange_finish(l, &now_s, error);
    if (status == KILTER_OK && !is_done(l))
        return wrong_use(l, "kilter_loop_end()",
                         "iterations of this rank are left: take ranges until there are no more", error);
    if (status == KILTER_OK && l->scatter)
        return kl_scatter_end(l, error);
    if (status == KILTER_OK)
        status = kl_batch_await(l, &l->going, error);
    return status == KILTER_OK ? kl_round_hook(l, true, error) : status;
}

kilter_status kilter_loop_end(kilter_loop *l, kilter_error *error) {
    kilter_status status = l->phase == KL_BROKEN ? l->failure.status : end(l, &l->failure);
    if (status != KILTER_OK)
        return kl_loop_failed(l, status, error);
    l->phase = KL_BETWEEN;
    l->execution++;
    l->passed++;
    l->measured.executions++;
    l->summary.executions++;
    l->summary.elapsed_s += kl_loop_now_s(l) - l->began_s;
    return KILTER_OK;
}
