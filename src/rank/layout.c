#include "rank/layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* shares are clearly unequal if a rank has more than this multiple of an equal share */
static const double UNEQUAL = 1.1;

bool kl_layout_init(kl_layout *l, uint64_t iterations, uint32_t rank, uint32_t ranks) {
    *l = (kl_layout){
        .iterations = iterations, .rank = rank, .ranks = ranks, .lead = l, .map = {iterations, 1, 0}};
    l->bounds = calloc((size_t)ranks + 1, sizeof *l->bounds);
    l->target = calloc((size_t)ranks + 1, sizeof *l->target);
    if (!l->bounds || !l->target)
        return false;
    for (uint32_t r = 0; r < ranks; r++) /* each of the first (iterations % ranks) ranks has one row more */
        l->bounds[r + 1] = l->bounds[r] + iterations / ranks + (r < iterations % ranks);
    memcpy(l->target, l->bounds, (ranks + 1) * sizeof *l->target);
    return true;
}

void kl_layout_free(kl_layout *l) {
    free(l->arrays);
    free(l->bounds);
    free(l->target);
}

bool kl_layout_grow(kl_layout *l) {
    kl_array *more = realloc(l->arrays, (l->array_count + 1) * sizeof *more);
    if (more)
        l->arrays = more;
    return more != NULL;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

void kl_layout_add(kl_layout *l, const kl_array *array) {
    kl_array *added = &l->arrays[l->array_count++];
    *added = *array;
    if (added->map.stride == 0)
        added->map = l->map;
    kl_layout_widen(l, l->array_count - 1, added->halo);
}

void kl_layout_widen(kl_layout *l, size_t array, uint64_t halo) {
    kl_array *a = &l->arrays[array];
    a->halo = larger(a->halo, halo);
    l->halo = larger(l->halo, a->halo);
    l->reach = larger(l->reach, a->halo * a->map.stride);
    l->wraps |= a->periodic && a->halo > 0;
}

void kl_layout_follow(kl_layout *l, const kl_layout *lead, const kl_map *map) {
    l->lead = lead;
    l->map = *map;
    kl_layout_refresh(l);
}

bool kl_layout_refresh(kl_layout *l) {
    bool changed = l->changes != l->lead->changes;
    for (uint32_t r = 0; r <= l->ranks; r++)
        l->bounds[r] = l->target[r] =
            kl_map_span(&l->map, (kl_span){l->lead->bounds[r], l->lead->bounds[r]}).lo;
    l->changes = l->lead->changes;
    return changed;
}

kl_span kl_common(kl_span a, kl_span b) {
    kl_span both = {larger(a.lo, b.lo), smaller(a.hi, b.hi)};
    return kl_is_empty(both) ? (kl_span){0, 0} : both;
}

/* --- rows that follow the rows of a leading loop --- */

/* Return the first row whose place is at least `place`. A row's place is the row of the leading loop that it
 * follows. If there is no such row, return the number of rows. */
static uint64_t first_from(const kl_map *m, uint64_t place) {
    uint64_t row = place > m->offset ? (place - m->offset - 1) / m->stride + 1 : 0;
    return smaller(row, m->rows);
}

kl_span kl_map_span(const kl_map *m, kl_span places) {
    return (kl_span){first_from(m, places.lo), first_from(m, larger(places.lo, places.hi))};
}

/* Split the rows into pieces. A rank without rows of the array still reads halos, around the place where its
 * rows would be. */
size_t kl_array_pieces(const kl_array *a, kl_span own, uint64_t below, uint64_t above,
                       kl_piece pieces[KL_PIECES]) {
    int64_t n = (int64_t)a->map.rows, lo = (int64_t)own.lo - (int64_t)below,
            hi = (int64_t)own.hi + (int64_t)above;
    const int64_t shifts[KL_PIECES] = {0, -n, n};
    size_t count = 0;
    for (int i = 0; i < (a->periodic ? KL_PIECES : 1); i++) {
        int64_t first = (lo > shifts[i] ? lo : shifts[i]) - shifts[i],
                end = (hi < n + shifts[i] ? hi : n + shifts[i]) - shifts[i];
        if (first < end)
            pieces[count++] = (kl_piece){{(uint64_t)first, (uint64_t)end}, shifts[i]};
    }
    return count;
}

kl_span kl_array_with_room(const kl_array *a, kl_span own) {
    kl_span rows = kl_array_own(a, own);
    uint64_t edge = kl_array_edge(a), end = a->map.rows + 2 * edge;
    if (kl_is_empty(own))
        return (kl_span){0, 0};
    return (kl_span){rows.lo + edge - smaller(a->room, rows.lo + edge),
                     rows.hi + edge + smaller(a->room, end - rows.hi - edge)};
}

kl_span kl_layout_with_halo(const kl_layout *l, kl_span own, uint64_t halo) {
    if (kl_is_empty(own))
        return (kl_span){0, 0};
    return (kl_span){own.lo > halo ? own.lo - halo : 0, own.hi + smaller(halo, l->iterations - own.hi)};
}

/* --- effects of moving to the target bounds --- */

uint64_t kl_layout_row_bytes(const kl_layout *l) {
    uint64_t bytes = 0;
    for (size_t a = 0; a < l->array_count; a++)
        bytes += (l->arrays[a].bytes - 1) / l->arrays[a].map.stride + 1;
    return bytes;
}

uint64_t kl_layout_coming_bytes(const kl_layout *l) {
    uint64_t bytes = 0;
    for (size_t a = 0; a < l->array_count; a++) {
        kl_span had = kl_array_with_room(&l->arrays[a], kl_layout_own(l));
        kl_span has = kl_array_with_room(&l->arrays[a], kl_layout_next(l));
        bytes += (kl_length(has) - kl_length(kl_common(had, has))) * l->arrays[a].bytes;
    }
    return bytes;
}

uint64_t kl_layout_changing(const kl_layout *l) {
    kl_span had = kl_layout_own(l), has = kl_layout_next(l);
    return kl_length(had) + kl_length(has) - 2 * kl_length(kl_common(had, has));
}

uint64_t kl_layout_moving(const kl_layout *l) {
    uint64_t moved = 0;
    for (uint32_t r = 0; r < l->ranks; r++) {
        kl_span has = kl_range_of(l->target, r);
        moved += kl_length(has) - kl_length(kl_common(has, kl_range_of(l->bounds, r)));
    }
    return moved;
}

bool kl_layout_is_unequal(const kl_layout *l) {
    double equal = (double)l->iterations / l->ranks, limit = fmax(UNEQUAL * equal, ceil(equal));
    bool unequal = false;
    for (uint32_t r = 0; r < l->ranks; r++)
        unequal |= (double)kl_length(kl_range_of(l->target, r)) > limit;
    return unequal;
}

void kl_layout_settle(kl_layout *l, uint64_t sweep) {
    kl_span had = kl_layout_own(l), has = kl_layout_next(l);
    kl_layout_note_gone(l, (kl_gone){{had.lo, smaller(had.hi, larger(had.lo, has.lo))}, sweep, -1});
    kl_layout_note_gone(l, (kl_gone){{larger(had.lo, smaller(had.hi, has.hi)), had.hi}, sweep, -1});
    memcpy(l->bounds, l->target, (l->ranks + 1) * sizeof *l->bounds);
    l->changes++;
}

void kl_layout_note_gone(kl_layout *l, kl_gone gone) {
    if (!kl_is_empty(gone.rows))
        l->gone[l->gone_count++ % KL_GONE] = gone;
}
