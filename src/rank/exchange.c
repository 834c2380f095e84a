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
    free(x->copies);
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

/* --- listing the messages of an exchange --- */

/* List the rows of an array that a rank must have before a sweep or pass. In a pipeline, the halo on one side
 * arrives block by block, so it is usually not listed. But it is listed if rows move between two passes,
 * because some blocks of the halo are already done. A rank without rows of the loop needs no halos. */
static size_t list_needed(const kl_exchange *x, const kl_array *array, uint32_t rank,
                          kl_piece pieces[KL_PIECES]) {
    const kl_layout *l = x->layout;
    kl_span places = kl_range_of(l->lead->target, rank);
    bool has_rows = !kl_is_empty(kl_map_span(&l->map, places));
    uint64_t halo = has_rows ? array->halo + (x->depth - 1) * l->halo : 0, halos[2] = {halo, halo};
    if (x->by_blocks && !x->midway)
        halos[x->backward] = 0;
    return kl_array_pieces(array, kl_array_own(array, places), halos[0], halos[1], pieces);
}

static bool add_leg(kl_exchange *x, kl_mail mail) {
    if (mail.bytes == 0)
        return true;
    kl_mail *more = kl_array_grow(x->legs, &x->leg_room, x->leg_count + 1, sizeof *more);
    if (!more)
        return false;
    x->legs = more;
    x->legs[x->leg_count++] = mail;
    return true;
}

static bool add_copy(kl_exchange *x, kl_copy copy) {
    kl_copy *more = kl_array_grow(x->copies, &x->copy_room, x->copy_count + 1, sizeof *more);
    if (!more)
        return false;
    x->copies = more;
    x->copies[x->copy_count++] = copy;
    return true;
}

/* Add a piece of rows that this rank receives from a peer or sends to it. If the peer is this rank, copy the
 * piece instead. */
static bool add_piece(kl_exchange *x, uint32_t peer, const kl_array *array, const kl_piece *piece,
                      bool receives) {
    uint8_t *from = kl_row_at(array, piece->rows.lo);
    uint8_t *to = from + piece->shift * (int64_t)array->bytes;
    size_t bytes = (size_t)kl_length(piece->rows) * array->bytes;
    if (peer == x->layout->rank)
        return !receives || piece->shift == 0 || add_copy(x, (kl_copy){to, from, bytes});
    return add_leg(x, (kl_mail){.data = receives ? to : from,
                                .bytes = bytes,
                                .peer = (int)peer,
                                .tag = KL_TAG_ROWS,
                                .silent = true});
}

/* Add the rows of an array that this rank receives from a peer, or sends to it. */
static bool add_rows(kl_exchange *x, uint32_t peer, const kl_array *array, bool receives) {
    const kl_layout *l = x->layout;
    uint32_t to = receives ? l->rank : peer, from = receives ? peer : l->rank;
    kl_span there = kl_array_own(array, kl_range_of(l->lead->bounds, from));
    kl_piece pieces[KL_PIECES];
    size_t count = list_needed(x, array, to, pieces);
    bool fits = true;
    for (size_t i = 0; i < count; i++) {
        pieces[i].rows = kl_common(pieces[i].rows, there);
        if (!kl_is_empty(pieces[i].rows))
            fits &= add_piece(x, peer, array, &pieces[i], receives);
    }
    return fits;
}

/* Add all messages with rows: those that this rank receives, or those that it sends. Two ranks list the
 * messages between them in the same order: array after array, and for each array in the order of the
 * receiver's pieces. */
static bool add_all(kl_exchange *x, bool receives) {
    const kl_layout *l = x->layout;
    bool fits = true;
    for (size_t a = 0; a < l->array_count; a++)
        for (uint32_t r = 0; r < l->ranks; r++)
            fits &= add_rows(x, r, &l->arrays[a], receives);
    return fits;
}

/* Add the contents of rows that this rank receives, or sends. */
static bool add_parcels(kl_exchange *x, const kl_content *c, bool receives) {
    bool fits = true;
    for (uint64_t i = 0; i < c->count; i++) {
        const kl_parcel *p = &c->parcels[i];
        if (p->sends != receives)
            fits &= add_leg(x, (kl_mail){.data = p->data,
                                         .bytes = kl_parcel_bytes(p),
                                         .peer = p->peer,
                                         .tag = KL_TAG_CONTENT,
                                         .silent = true});
    }
    return fits;
}

static bool plan(kl_exchange *x, const kl_content *c) {
    x->leg_count = x->copy_count = 0;
    bool fits = add_all(x, true) && add_parcels(x, c, true);
    x->receives = x->leg_count;
    return fits && add_all(x, false) && add_parcels(x, c, false);
}

/* --- carrying out the exchange --- */

/* Return those of this rank's rows that the body can do before the exchange is complete. These are the rows
 * that were already on this rank, together with their halos. */
static kl_span inner_rows(const kl_exchange *x) {
    const kl_layout *l = x->layout, *lead = l->lead;
    kl_span stay = kl_common(kl_layout_own(lead), kl_layout_next(lead));
    if (kl_is_empty(stay))
        return (kl_span){0, 0};
    uint64_t sent = x->depth * l->reach, below = stay.lo > 0 || l->wraps ? sent : 0,
             above = stay.hi < lead->iterations || l->wraps ? sent : 0;
    if (kl_length(stay) <= below + above)
        return (kl_span){0, 0};
    return kl_map_span(&l->map, (kl_span){stay.lo + below, stay.hi - above});
}

static kl_act ask_for_room(kl_rank *k) {
    if (k->content.on)
        kl_meter_moving(&k->meter, k->now_s - k->content.began_s);
    return kl_ask(k, (kl_action){.act = KL_ROOM});
}

kl_act kl_exchange_room(kl_rank *k) {
    static const kl_stage with_content[] = {kl_content_pack, kl_content_post_sizes, kl_content_await_sizes,
                                            ask_for_room, NULL};
    kl_exchange *x = &k->exchange;
    x->refused = false;
    if (!x->moves)
        return KL_GO_ON;
    return k->content.on ? kl_rank_do(k, with_content) : ask_for_room(k);
}

void kl_exchange_room_is(kl_exchange *x, kl_room room, double spent_s) {
    x->meter->since.moving_s += spent_s;
    x->room = room;
    if (room == KL_ROOM_FITS)
        return;
    memcpy(x->layout->target, x->layout->bounds, (x->layout->ranks + 1) * sizeof *x->layout->target);
    x->moves = false;
    x->refused = true;
}

kl_act kl_exchange_post(kl_rank *k) {
    kl_exchange *x = &k->exchange;
    if (!x->moves)
        kl_content_clear(&k->content); /* the move may have been refused, so forget the content to be
                                          moved */
    if ((x->moves || x->deepened || !x->legs_stand) && !plan(x, &k->content))
        return kl_ask(k, (kl_action){.act = KL_FAIL, .text = "planning exchanges of"});
    x->legs_stand = !x->moves && !x->midway;
    x->deepened = false;
    x->ahead = x->depth - 1;
    x->inner = inner_rows(x);
    x->under_way = x->leg_count > 0 || x->moves;
    for (uint64_t i = 0; i < x->copy_count; i++)
        memcpy(x->copies[i].to, x->copies[i].from, x->copies[i].bytes);
    x->moving = x->moves;
    x->passing &= x->moving; /* if a move was refused, its further stages do not follow */
    if (x->leg_count == 0)
        return KL_GO_ON;
    return kl_ask(k, (kl_action){.act = KL_POST,
                                 .set = &x->set,
                                 .mails = x->legs,
                                 .receives = x->receives,
                                 .count = x->leg_count});
}

static void settle(kl_exchange *x, kl_content *c, double now_s) {
    double took_s = now_s - x->awaited_s;
    if (x->moving) {
        kl_meter *m = x->meter;
        m->since.moved_bytes += (double)kl_content_bytes(c, false) +
                                (double)(kl_layout_changing(x->layout) * kl_layout_row_bytes(x->layout));
        kl_content_clear(c);
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
    if (x->finishing == KL_ROWS_AWAITED && x->moving && k->content.count > 0) {
        x->finishing = KL_CONTENT_UNPACKED;
        return kl_ask(k, (kl_action){.act = KL_UNPACK,
                                     .parcels = k->content.parcels,
                                     .count = k->content.count,
                                     .again = true});
    }
    if (x->finishing != KL_MEMORY_GIVEN && x->moving) {
        x->finishing = KL_MEMORY_GIVEN;
        return kl_ask(k, (kl_action){.act = KL_GIVE_BACK, .again = true});
    }
    settle(x, &k->content, k->now_s);
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
