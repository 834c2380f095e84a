#include <stdlib.h>
#include <string.h>

#include "rank/rank.h"

bool kl_exchange_init(kl_exchange *x, kl_layout *layout, kl_meter *meter) {
    *x = (kl_exchange){.layout = layout, .meter = meter, .deepest = 1, .depth = 1};
    x->goal = calloc((size_t)layout->ranks + 1, sizeof *x->goal);
    return x->goal != NULL;
}

void kl_exchange_free(kl_exchange *x) {
    free(x->legs);
    free(x->goal);
}

void kl_exchange_aim(kl_exchange *x, const uint64_t *target) {
    memmove(x->layout->target, target, (x->layout->ranks + 1) * sizeof *target);
    x->moves = true;
}

void kl_exchange_deepen(kl_exchange *x, uint64_t depth) {
    depth = depth < 1 ? 1 : depth < x->deepest ? depth : x->deepest;
    x->deepened |= depth != x->depth;
    x->depth = depth;
}

/* --- the messages of an exchange --- */

/* Return the rows of an array that must be on this rank before a sweep or pass. Rows that move between passes
 * arrive complete, with the blocks that are done, because a body may read these blocks. */
static kl_span needed(const kl_exchange *x, const kl_array *array, kl_span own) {
    kl_span all = kl_layout_with_halo(x->layout, own, array->halo + (x->depth - 1) * x->layout->halo);
    return x->by_blocks && !x->midway && !kl_is_empty(own) ? (kl_span){own.lo, all.hi} : all;
}

static bool add(kl_exchange *x, int peer, const kl_array *array, kl_span rows) {
    if (kl_is_empty(rows))
        return true;
    kl_mail *more = kl_array_grow(x->legs, &x->leg_room, x->leg_count + 1, sizeof *more);
    if (!more)
        return false;
    x->legs = more;
    x->legs[x->leg_count++] = (kl_mail){.data = kl_row_at(array, rows.lo),
                                        .bytes = (size_t)kl_length(rows) * array->bytes,
                                        .peer = peer,
                                        .tag = KL_TAG_ROWS,
                                        .silent = true};
    return true;
}

/* Add the messages that this rank receives, or sends. Two ranks list the messages between them in the same
 * order, which is that of the arrays. */
static bool add_all(kl_exchange *x, bool receives) {
    const kl_layout *l = x->layout;
    bool fits = true;
    for (size_t a = 0; a < l->array_count; a++)
        for (uint32_t r = 0; r < l->ranks; r++) {
            uint32_t to = receives ? l->rank : r, from = receives ? r : l->rank;
            kl_span wanted = needed(x, &l->arrays[a], kl_range_of(l->target, to));
            if (r != l->rank)
                fits &= add(x, (int)r, &l->arrays[a], kl_common(wanted, kl_range_of(l->bounds, from)));
        }
    return fits;
}

static bool plan(kl_exchange *x) {
    x->leg_count = 0;
    bool fits = add_all(x, true);
    x->receives = x->leg_count;
    return fits & add_all(x, false);
}

/* --- the exchange --- */

/* Return the own rows that were on this rank before with their halos. None of them is sent or received. */
static kl_span inner_rows(const kl_exchange *x) {
    const kl_layout *l = x->layout;
    kl_span stay = kl_common(kl_layout_own(l), kl_layout_next(l));
    if (kl_is_empty(stay))
        return (kl_span){0, 0};
    uint64_t sent = x->depth * l->halo, below = stay.lo > 0 ? sent : 0,
             above = stay.hi < l->iterations ? sent : 0;
    if (kl_length(stay) <= below + above)
        return (kl_span){0, 0};
    return (kl_span){stay.lo + below, stay.hi - above};
}

kl_act kl_exchange_room(kl_rank *k) {
    kl_exchange *x = &k->exchange;
    x->refused = false;
    return x->moves ? kl_ask(k, (kl_action){.act = KL_ROOM}) : KL_GO_ON;
}

void kl_exchange_room_is(kl_exchange *x, bool fits, double spent_s) {
    x->meter->since.moving_s += spent_s;
    if (fits)
        return;
    memcpy(x->layout->target, x->layout->bounds, (x->layout->ranks + 1) * sizeof *x->layout->target);
    x->moves = false;
    x->refused = true;
}

kl_act kl_exchange_post(kl_rank *k) {
    kl_exchange *x = &k->exchange;
    if ((x->moves || x->deepened || !x->legs_stand) && !plan(x))
        return kl_ask(k, (kl_action){.act = KL_FAIL, .text = "planning exchanges of"});
    x->legs_stand = !x->moves && !x->midway;
    x->deepened = false;
    x->ahead = x->depth - 1;
    x->inner = inner_rows(x);
    x->under_way = x->leg_count > 0 || x->moves;
    x->moving = x->moves;
    x->passing &= x->moving; /* the move may have been refused */
    if (x->leg_count == 0)
        return KL_GO_ON;
    return kl_ask(k, (kl_action){.act = KL_POST,
                                 .set = &x->set,
                                 .mails = x->legs,
                                 .receives = x->receives,
                                 .count = x->leg_count});
}

static void settle(kl_exchange *x, double now_s) {
    double took_s = now_s - x->awaited_s;
    if (x->moving) {
        kl_meter *m = x->meter;
        m->all.moves += !x->passing;
        m->all.moved += kl_layout_moving(x->layout);
        m->since.moved += kl_layout_changing(x->layout);
        kl_layout_settle(x->layout, kl_meter_sweep(m));
        x->moves = false;
        kl_meter_moving(x->meter, took_s);
    } else {
        x->meter->all.waited_s += took_s;
    }
    x->under_way = x->moving = false;
    x->finishing = KL_ROWS_COME;
}

kl_act kl_exchange_finish(kl_rank *k) {
    kl_exchange *x = &k->exchange;
    if (!x->under_way)
        return KL_GO_ON;
    if (x->finishing == KL_ROWS_COME) {
        x->finishing = KL_ROWS_AWAITED;
        x->awaited_s = k->now_s;
        if (x->set.open)
            return kl_ask(k, (kl_action){.act = KL_AWAIT, .set = &x->set, .again = true});
    }
    if (x->finishing == KL_ROWS_AWAITED && x->moving) {
        x->finishing = KL_MEMORY_GIVEN;
        return kl_ask(k, (kl_action){.act = KL_GIVE_BACK, .again = true});
    }
    settle(x, k->now_s);
    return KL_GO_ON;
}

void kl_exchange_aim_by_stages(kl_exchange *x) {
    memcpy(x->goal, x->layout->target, (x->layout->ranks + 1) * sizeof *x->goal);
    x->passing = true;
}

void kl_exchange_next_stage(kl_exchange *x) {
    const kl_layout *l = x->layout;
    size_t bytes = (l->ranks + 1) * sizeof *x->goal;
    kl_bounds_stage(l->ranks, l->bounds, x->goal, l->target);
    x->passing = memcmp(l->target, x->goal, bytes) != 0;
    x->moves = memcmp(l->target, l->bounds, bytes) != 0;
}
