#include "loop/exchange_mpi.h"

#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 32 };

bool kl_exchange_init(kl_exchange *x, kl_group *group, kl_layout *layout, kl_meter *meter) {
    *x = (kl_exchange){.group = group, .layout = layout, .meter = meter, .deepest = 1, .depth = 1};
    x->goal = calloc((size_t)layout->ranks + 1, sizeof *x->goal);
    return x->goal != NULL;
}

void kl_exchange_free(kl_exchange *x) {
    kl_requests_free(&x->requests);
    free(x->legs);
    free(x->goal);
}

/* Where there is no memory for more, the halos of each sweep are brought by themselves. */
kilter_status kl_exchange_open(kl_exchange *x, kilter_error *error) {
    kl_layout *layout = x->layout;
    if (layout->halo == 0)
        return KILTER_OK;
    uint64_t fits = kl_layout_widen(layout, (DEEPEST - 1) * layout->halo);
    kilter_status status = kl_group_least(x->group, &fits, 1, error);
    x->deepest = fits ? DEEPEST : 1;
    if (!fits)
        kl_layout_widen(layout, 0);
    return status;
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

/* --- who sends what to whom --- */

/* The rows that must be here before a sweep or pass. Rows that move between passes come with the blocks that
 * are done, as a body may look back at them. */
static kl_span needed(const kl_exchange *x, const kl_array *array, kl_span own) {
    kl_span all = kl_layout_with_halo(x->layout, own, array->halo + (x->depth - 1) * x->layout->halo);
    return x->by_blocks && !x->midway && !kl_is_empty(own) ? (kl_span){own.lo, all.hi} : all;
}

static bool add(kl_exchange *x, int peer, size_t array, kl_span rows) {
    if (kl_is_empty(rows))
        return true;
    if (x->leg_count == x->leg_capacity) {
        size_t capacity = 2 * x->leg_capacity + 8;
        kl_leg *more = realloc(x->legs, capacity * sizeof *more);
        if (!more)
            return false;
        x->legs = more;
        x->leg_capacity = capacity;
    }
    x->legs[x->leg_count++] = (kl_leg){peer, array, rows};
    return true;
}

/* Between two ranks legs are in the order of arrays, on either side. */
static bool add_all(kl_exchange *x, bool receives) {
    const kl_layout *l = x->layout;
    bool fits = true;
    for (size_t a = 0; a < l->array_count; a++)
        for (uint32_t r = 0; r < l->ranks; r++) {
            uint32_t to = receives ? l->rank : r, from = receives ? r : l->rank;
            kl_span wanted = needed(x, &l->arrays[a], kl_range_of(l->target, to));
            if (r != l->rank)
                fits &= add(x, (int)r, a, kl_common(wanted, kl_range_of(l->bounds, from)));
        }
    return fits;
}

static kilter_status plan(kl_exchange *x, kilter_error *error) {
    x->leg_count = 0;
    bool fits = add_all(x, true);
    x->receives = x->leg_count;
    fits &= add_all(x, false);
    return fits ? KILTER_OK
                : kl_fail(error, KILTER_ERR_MEMORY,
                          "planning what the ranks of loop '%s' exchange: memory ran out", x->group->name);
}

static kilter_status post_leg(kl_exchange *x, size_t nth, kilter_error *error) {
    const kl_leg *leg = &x->legs[nth];
    const kl_rows *rows = &x->layout->arrays[leg->array].rows;
    kl_mail mail = {.data = kl_rows_at(rows, leg->rows.lo),
                    .bytes = (size_t)kl_length(leg->rows) * rows->bytes,
                    .peer = leg->peer,
                    .tag = KL_TAG_ROWS,
                    .silent = true};
    return (nth < x->receives ? kl_receive : kl_send)(x->group, &x->requests, mail, error);
}

/* Post sends first: where a large message has been announced already, MPI copies all of it while its receive
 * is posted, and the ranks that wait for this rank's own rows would wait for that, too. Wake the receivers
 * together, as each ring waits until the processor has written what was sent. */
static kilter_status post(kl_exchange *x, kilter_error *error) {
    kilter_status status = KILTER_OK;
    for (size_t i = x->receives; i < x->leg_count && status == KILTER_OK; i++)
        status = post_leg(x, i, error);
    for (size_t i = x->receives; i < x->leg_count; i++)
        kl_bells_ring(x->group->wait.bells, (uint32_t)x->legs[i].peer);
    for (size_t i = 0; i < x->receives && status == KILTER_OK; i++)
        status = post_leg(x, i, error);
    return status;
}

/* --- the exchange --- */

/* All ranks have room, or nothing moves. */
static kilter_status make_room(kl_exchange *x, kilter_error *error) {
    kl_layout *layout = x->layout;
    double began_s = kl_group_now_s(x->group);
    uint64_t fits =
        kl_rows_fit(kl_layout_coming_bytes(layout)) && kl_layout_take(layout, kl_layout_next(layout));
    x->meter->since.moving_s += kl_group_now_s(x->group) - began_s;
    kilter_status status = kl_group_least(x->group, &fits, 1, error);
    if (status != KILTER_OK || fits)
        return status;
    kl_layout_give(layout, layout->target, layout->bounds);
    memcpy(layout->target, layout->bounds, (layout->ranks + 1) * sizeof *layout->target);
    x->moves = false;
    x->refused = true;
    return KILTER_OK;
}

/* Own rows that were here before, and whose halos were: nobody sends or receives any of these. */
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

kilter_status kl_exchange_begin(kl_exchange *x, kl_span *inner, kilter_error *error) {
    x->refused = false;
    kilter_status status = x->moves ? make_room(x, error) : KILTER_OK;
    if (status == KILTER_OK && (x->moves || x->deepened || !x->legs_stand))
        status = plan(x, error);
    x->legs_stand = !x->moves && !x->midway;
    x->deepened = false;
    x->ahead = x->depth - 1;
    if (status == KILTER_OK)
        status = post(x, error);
    *inner = inner_rows(x);
    x->under_way = x->leg_count > 0 || x->moves;
    x->moving = x->moves;
    return status;
}

kilter_status kl_exchange_look(kl_exchange *x, kilter_error *error) {
    return x->under_way ? kl_requests_look(x->group, &x->requests, error) : KILTER_OK;
}

static void settle_move(kl_exchange *x) {
    kl_meter *m = x->meter;
    m->all.moves += !x->passing;
    m->all.moved += kl_layout_moving(x->layout);
    m->since.moved += kl_layout_changing(x->layout);
    kl_layout_settle(x->layout, kl_meter_sweep(m));
    x->moves = false;
}

kilter_status kl_exchange_finish(kl_exchange *x, double *now_s, kilter_error *error) {
    if (!x->under_way)
        return KILTER_OK;
    double began_s = *now_s;
    kilter_status status = kl_requests_await(x->group, &x->requests, error);
    if (status != KILTER_OK)
        return status;
    if (x->moving)
        settle_move(x);
    *now_s = kl_group_now_s(x->group);
    if (x->moving)
        kl_meter_moving(x->meter, *now_s - began_s);
    else
        x->meter->all.waited_s += *now_s - began_s;
    x->under_way = x->moving = false;
    return KILTER_OK;
}

kilter_status kl_exchange_by_stages(kl_exchange *x, kilter_error *error) {
    const kl_layout *l = x->layout;
    size_t bytes = (l->ranks + 1) * sizeof *x->goal;
    kilter_status status = KILTER_OK;
    memcpy(x->goal, l->target, bytes);
    do {
        kl_span inner;
        kl_bounds_stage(l->ranks, l->bounds, x->goal, l->target);
        x->passing = memcmp(l->target, x->goal, bytes) != 0;
        x->moves = memcmp(l->target, l->bounds, bytes) != 0;
        status = kl_exchange_begin(x, &inner, error);
        x->passing &= x->moving; /* or else it was refused */
        double now_s = kl_group_now_s(x->group);
        if (status == KILTER_OK)
            status = kl_exchange_finish(x, &now_s, error);
    } while (status == KILTER_OK && x->passing);
    return status;
}
