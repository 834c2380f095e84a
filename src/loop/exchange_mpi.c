/* What each rank lacks of its target rows and their ghosts comes straight from whoever has it: ghost rows
 * and rows that move are the same thing, and both are on their way while inner rows are worked on. In a
 * pipeline rows go from neighbour to neighbour, in as many such exchanges as they have bounds to cross. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop/loop_mpi.h"

enum { DEEPEST = 32 };

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static bool is_empty(kl_span s) {
    return s.lo >= s.hi;
}

static kl_span common(kl_span a, kl_span b) {
    kl_span both = {larger(a.lo, b.lo), smaller(a.hi, b.hi)};
    return is_empty(both) ? (kl_span){0, 0} : both;
}

static kl_span range_of(const uint64_t *bounds, uint32_t rank) {
    return (kl_span){bounds[rank], bounds[rank + 1]};
}

kl_span kl_loop_with_ghosts(const kilter_loop *l, kl_span own, uint64_t ghost) {
    if (is_empty(own))
        return (kl_span){0, 0};
    return (kl_span){own.lo > ghost ? own.lo - ghost : 0,
                     own.hi + smaller(ghost, l->options.iterations - own.hi)};
}

/* What has to be there before an execution or pass. A pipeline's ghost row below comes block by block; the
 * blocks done come with rows that move between passes, as a body may look back at them. */
static kl_span needed(const kilter_loop *l, const kl_array *array, kl_span own) {
    kl_span all = kl_loop_with_ghosts(l, own, array->ghost + (l->depth - 1) * l->ghost);
    bool by_blocks = kl_loop_pipelined(l) && l->blocks_done == 0;
    return by_blocks && !is_empty(own) ? (kl_span){own.lo, all.hi} : all;
}

/* --- who sends what to whom --- */

static bool add(kl_legs *legs, int peer, size_t array, kl_span rows) {
    if (is_empty(rows))
        return true;
    if (legs->count == legs->capacity) {
        size_t capacity = 2 * legs->capacity + 8;
        kl_leg *more = realloc(legs->legs, capacity * sizeof *more);
        if (!more)
            return false;
        legs->legs = more;
        legs->capacity = capacity;
    }
    legs->legs[legs->count++] = (kl_leg){peer, array, rows};
    return true;
}

/* Between two ranks in the order of arrays, on either side. */
static kilter_status plan(kilter_loop *l, kilter_error *error) {
    kl_legs *legs = &l->legs;
    kl_span had = range_of(l->bounds, (uint32_t)l->rank), wanted = range_of(l->target, (uint32_t)l->rank);
    bool fits = true;
    legs->count = 0;
    for (size_t a = 0; a < l->array_count; a++)
        for (uint32_t q = 0; q < l->ranks; q++)
            if ((int)q != l->rank)
                fits &=
                    add(legs, (int)q, a, common(needed(l, &l->arrays[a], wanted), range_of(l->bounds, q)));
    legs->receives = legs->count;
    for (size_t a = 0; a < l->array_count; a++)
        for (uint32_t q = 0; q < l->ranks; q++)
            if ((int)q != l->rank)
                fits &= add(legs, (int)q, a, common(needed(l, &l->arrays[a], range_of(l->target, q)), had));
    if (!fits)
        return kl_fail(error, KILTER_ERR_MEMORY,
                       "planning what the ranks of loop '%s' exchange: memory ran out", l->name);
    return KILTER_OK;
}

void kl_legs_free(kl_legs *legs) {
    free(legs->legs);
    *legs = (kl_legs){0};
}

static kilter_status post_leg(kilter_loop *l, size_t nth, kilter_error *error) {
    const kl_leg *leg = &l->legs.legs[nth];
    const kl_rows *rows = &l->arrays[leg->array].rows;
    uint8_t *at = kl_rows_at(rows, leg->rows.lo);
    size_t bytes = (size_t)(leg->rows.hi - leg->rows.lo) * rows->bytes;
    return nth < l->legs.receives
               ? kl_batch_receive(l, &l->exchange, at, bytes, leg->peer, KL_TAG_ROWS, error)
               : kl_batch_send_on(l->comm, &l->exchange, at, bytes, leg->peer, KL_TAG_ROWS, error);
}

/* Sends come first: where a large message has been announced already, MPI copies all of it while its receive
 * is posted, and the ranks that wait for this rank's own rows would wait for that, too. They are rung
 * together, as each ring waits until the processor has written what was sent. */
static kilter_status post(kilter_loop *l, kilter_error *error) {
    kilter_status status = KILTER_OK;
    for (size_t i = l->legs.receives; i < l->legs.count && status == KILTER_OK; i++)
        status = post_leg(l, i, error);
    for (size_t i = l->legs.receives; i < l->legs.count; i++)
        kl_bells_ring(l->wait.bells, (uint32_t)l->legs.legs[i].peer);
    for (size_t i = 0; i < l->legs.receives && status == KILTER_OK; i++)
        status = post_leg(l, i, error);
    return status;
}

/* --- memory for rows that come, and of those that have gone --- */

static void give(kilter_loop *l, const uint64_t *gone, const uint64_t *kept) {
    for (size_t a = 0; a < l->array_count; a++) {
        kl_array *array = &l->arrays[a];
        kl_span rest = kl_loop_with_ghosts(l, range_of(kept, (uint32_t)l->rank), array->room);
        kl_span all = kl_loop_with_ghosts(l, range_of(gone, (uint32_t)l->rank), array->room);
        kl_rows_give(&array->rows, all, &rest, 1);
    }
}

static uint64_t bytes_that_come(const kilter_loop *l) {
    uint64_t bytes = 0;
    for (size_t a = 0; a < l->array_count; a++) {
        const kl_array *array = &l->arrays[a];
        kl_span had = kl_loop_with_ghosts(l, range_of(l->bounds, (uint32_t)l->rank), array->room);
        kl_span has = kl_loop_with_ghosts(l, range_of(l->target, (uint32_t)l->rank), array->room);
        kl_span stay = common(had, has);
        bytes += ((has.hi - has.lo) - (stay.hi - stay.lo)) * array->rows.bytes;
    }
    return bytes;
}

static bool take_room(kilter_loop *l, kl_span own) {
    bool fits = true;
    for (size_t a = 0; a < l->array_count && fits; a++) {
        kl_array *array = &l->arrays[a];
        fits = kl_rows_take(&array->rows, kl_loop_with_ghosts(l, own, array->room), NULL) == KILTER_OK;
    }
    return fits;
}

/* Where there is no memory for more, the ghost rows of each execution are brought by themselves. */
kilter_status kl_exchange_open(kilter_loop *l, kilter_error *error) {
    if (!l->options.deep || l->ghost == 0 || l->options.fixed)
        return KILTER_OK;
    for (size_t a = 0; a < l->array_count; a++)
        l->arrays[a].room += (DEEPEST - 1) * l->ghost;
    uint64_t fits = take_room(l, kl_loop_own(l));
    kilter_status status = kl_loop_least(l, &fits, 1, error);
    l->deepest = fits ? DEEPEST : 1;
    for (size_t a = 0; a < l->array_count && !fits; a++) {
        kl_array *array = &l->arrays[a];
        kl_span kept = kl_loop_with_ghosts(l, kl_loop_own(l), array->ghost);
        kl_rows_give(&array->rows, kl_loop_with_ghosts(l, kl_loop_own(l), array->room), &kept, 1);
        array->room = array->ghost;
    }
    return status;
}

/* All ranks have room, or nothing moves: *granted is the same everywhere. */
static kilter_status make_room(kilter_loop *l, bool *granted, kilter_error *error) {
    double began_s = kl_loop_now_s(l);
    uint64_t fits = kl_rows_fit(bytes_that_come(l)) && take_room(l, range_of(l->target, (uint32_t)l->rank));
    l->measured.moving_s += kl_loop_now_s(l) - began_s;
    kilter_status status = kl_loop_least(l, &fits, 1, error);
    *granted = fits;
    if (status == KILTER_OK && !fits)
        give(l, l->target, l->bounds);
    return status;
}

static uint64_t rows_changed(const kilter_loop *l) {
    kl_span had = range_of(l->bounds, (uint32_t)l->rank), has = range_of(l->target, (uint32_t)l->rank);
    kl_span stay = common(had, has);
    return (had.hi - had.lo) + (has.hi - has.lo) - 2 * (stay.hi - stay.lo);
}

static uint64_t rows_moved(const kilter_loop *l) { /* by all */
    uint64_t moved = 0;
    for (uint32_t q = 0; q < l->ranks; q++) {
        kl_span has = range_of(l->target, q), stay = common(has, range_of(l->bounds, q));
        moved += (has.hi - has.lo) - (stay.hi - stay.lo);
    }
    return moved;
}

static void refuse(kilter_loop *l) {
    memcpy(l->target, l->bounds, (l->ranks + 1) * sizeof *l->target);
    l->moves = false;
    if (l->steer && !l->forced) {
        kl_steer_refuse(l->steer);
        kl_steer_place(l->steer, l->bounds); /* a part of the way may be done */
    }
    kl_loop_refused(l, "nothing moves: a rank has no memory for the rows it should have had");
}

/* --- the exchange --- */

/* Own rows that were here before, and whose ghosts were: nobody sends or receives any of these. */
static kl_span inner_rows(const kilter_loop *l) {
    kl_span stay = common(range_of(l->bounds, (uint32_t)l->rank), range_of(l->target, (uint32_t)l->rank));
    if (is_empty(stay))
        return (kl_span){0, 0};
    uint64_t sent = l->depth * l->ghost, below = stay.lo > 0 ? sent : 0,
             above = stay.hi < l->options.iterations ? sent : 0;
    if (stay.hi - stay.lo <= below + above)
        return (kl_span){0, 0};
    return (kl_span){stay.lo + below, stay.hi - above};
}

kilter_status kl_exchange_begin(kilter_loop *l, kl_span *inner, kilter_error *error) {
    kilter_status status = KILTER_OK;
    bool granted = false;
    if (l->moves)
        status = make_room(l, &granted, error);
    if (status == KILTER_OK && l->moves && !granted)
        refuse(l);
    if (status == KILTER_OK && (l->moves || l->deepened || !l->legs_stand))
        status = plan(l, error);
    l->legs_stand = !l->moves && l->blocks_done == 0;
    l->deepened = false;
    if (status == KILTER_OK)
        status = post(l, error);
    *inner = inner_rows(l);
    l->exchanging = l->legs.count > 0 || l->moves;
    l->moving = l->moves;
    return status;
}

kilter_status kl_exchange_look(kilter_loop *l, kilter_error *error) {
    return l->exchanging ? kl_batch_look(l, &l->exchange, error) : KILTER_OK;
}

static void settle_move(kilter_loop *l) {
    uint64_t changed = rows_changed(l);
    l->summary.moves += !l->passing;
    l->summary.moved += rows_moved(l);
    l->measured.moved += changed;
    kl_span had = range_of(l->bounds, (uint32_t)l->rank), has = range_of(l->target, (uint32_t)l->rank);
    kl_loop_note_gone(l, (kl_span){had.lo, smaller(had.hi, larger(had.lo, has.lo))}, -1);
    kl_loop_note_gone(l, (kl_span){larger(had.lo, smaller(had.hi, has.hi)), had.hi}, -1);
    give(l, l->bounds, l->target);
    memcpy(l->bounds, l->target, (l->ranks + 1) * sizeof *l->bounds);
    l->moves = l->moving = false;
}

kilter_status kl_exchange_finish(kilter_loop *l, double *now_s, kilter_error *error) {
    if (!l->exchanging)
        return KILTER_OK;
    double began_s = *now_s;
    kilter_status status = kl_batch_await(l, &l->exchange, error);
    if (status != KILTER_OK)
        return status;
    bool moving = l->moving;
    if (moving)
        settle_move(l);
    *now_s = kl_loop_now_s(l);
    if (moving) {
        l->measured.moving_s += *now_s - began_s;
        l->summary.moving_s += *now_s - began_s;
    } else {
        l->summary.waited_s += *now_s - began_s;
    }
    l->exchanging = false;
    return KILTER_OK;
}

static bool differ(const kilter_loop *l, const uint64_t *a, const uint64_t *b) {
    return memcmp(a, b, (l->ranks + 1) * sizeof *a) != 0;
}

kilter_status kl_exchange_by_stages(kilter_loop *l, kilter_error *error) {
    kilter_status status = KILTER_OK;
    kl_span inner;
    memcpy(l->goal, l->target, (l->ranks + 1) * sizeof *l->goal);
    do {
        kl_bounds_stage(l->ranks, l->bounds, l->goal, l->target);
        l->passing = differ(l, l->target, l->goal);
        l->moves = differ(l, l->target, l->bounds);
        status = kl_exchange_begin(l, &inner, error);
        l->passing &= l->moving; /* or else it was refused */
        double now_s = kl_loop_now_s(l);
        if (status == KILTER_OK)
            status = kl_exchange_finish(l, &now_s, error);
    } while (status == KILTER_OK && l->passing);
    return status;
}
