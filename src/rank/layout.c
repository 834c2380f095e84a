#include "rank/layout.h"

#include <stdlib.h>
#include <string.h>

bool kl_layout_init(kl_layout *l, uint64_t iterations, uint32_t rank, uint32_t ranks) {
    *l = (kl_layout){.iterations = iterations, .rank = rank, .ranks = ranks};
    l->bounds = calloc((size_t)ranks + 1, sizeof *l->bounds);
    l->target = calloc((size_t)ranks + 1, sizeof *l->target);
    if (!l->bounds || !l->target)
        return false;
    for (uint32_t r = 0; r < ranks; r++) /* the first iterations % ranks ranks have one row more */
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

void kl_layout_add(kl_layout *l, const kl_array *array) {
    l->arrays[l->array_count++] = *array;
    l->halo = array->halo > l->halo ? array->halo : l->halo;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

kl_span kl_common(kl_span a, kl_span b) {
    kl_span both = {larger(a.lo, b.lo), smaller(a.hi, b.hi)};
    return kl_is_empty(both) ? (kl_span){0, 0} : both;
}

kl_span kl_layout_with_halo(const kl_layout *l, kl_span own, uint64_t halo) {
    if (kl_is_empty(own))
        return (kl_span){0, 0};
    return (kl_span){own.lo > halo ? own.lo - halo : 0, own.hi + smaller(halo, l->iterations - own.hi)};
}

/* --- changes by the target --- */

uint64_t kl_layout_row_bytes(const kl_layout *l) {
    uint64_t bytes = 0;
    for (size_t a = 0; a < l->array_count; a++)
        bytes += l->arrays[a].bytes;
    return bytes;
}

uint64_t kl_layout_coming_bytes(const kl_layout *l) {
    uint64_t bytes = 0;
    for (size_t a = 0; a < l->array_count; a++) {
        kl_span had = kl_layout_with_room(l, kl_layout_own(l), a);
        kl_span has = kl_layout_with_room(l, kl_layout_next(l), a);
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

void kl_layout_settle(kl_layout *l, uint64_t sweep) {
    kl_span had = kl_layout_own(l), has = kl_layout_next(l);
    kl_layout_note_gone(l, (kl_gone){{had.lo, smaller(had.hi, larger(had.lo, has.lo))}, sweep, -1});
    kl_layout_note_gone(l, (kl_gone){{larger(had.lo, smaller(had.hi, has.hi)), had.hi}, sweep, -1});
    memcpy(l->bounds, l->target, (l->ranks + 1) * sizeof *l->bounds);
}

void kl_layout_note_gone(kl_layout *l, kl_gone gone) {
    if (!kl_is_empty(gone.rows))
        l->gone[l->gone_count++ % KL_GONE] = gone;
}
