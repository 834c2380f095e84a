#include "loop/layout.h"

#include <stdlib.h>
#include <string.h>

bool kl_layout_init(kl_layout *l, uint64_t iterations, uint32_t rank, uint32_t ranks) {
    *l = (kl_layout){.iterations = iterations, .rank = rank, .ranks = ranks};
    l->bounds = calloc((size_t)ranks + 1, sizeof *l->bounds);
    l->target = calloc((size_t)ranks + 1, sizeof *l->target);
    if (!l->bounds || !l->target)
        return false;
    for (uint32_t r = 0; r < ranks; r++) /* the first ranks have one more */
        l->bounds[r + 1] = l->bounds[r] + iterations / ranks + (r < iterations % ranks);
    memcpy(l->target, l->bounds, (ranks + 1) * sizeof *l->target);
    return true;
}

void kl_layout_free(kl_layout *l) {
    for (size_t a = 0; a < l->array_count; a++)
        kl_rows_release(&l->arrays[a].rows);
    free(l->arrays);
    free(l->bounds);
    free(l->target);
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

/* --- what the target changes --- */

uint64_t kl_layout_coming_bytes(const kl_layout *l) {
    uint64_t bytes = 0;
    for (size_t a = 0; a < l->array_count; a++) {
        const kl_array *array = &l->arrays[a];
        kl_span had = kl_layout_with_halo(l, kl_layout_own(l), array->room);
        kl_span has = kl_layout_with_halo(l, kl_layout_next(l), array->room);
        bytes += (kl_length(has) - kl_length(kl_common(had, has))) * array->rows.bytes;
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

/* --- memory for rows that come, and of those that have gone --- */

bool kl_layout_take(kl_layout *l, kl_span own) {
    bool fits = true;
    for (size_t a = 0; a < l->array_count && fits; a++) {
        kl_array *array = &l->arrays[a];
        fits = kl_rows_take(&array->rows, kl_layout_with_halo(l, own, array->room), NULL) == KILTER_OK;
    }
    return fits;
}

void kl_layout_give(kl_layout *l, const uint64_t *gone, const uint64_t *kept) {
    for (size_t a = 0; a < l->array_count; a++) {
        kl_array *array = &l->arrays[a];
        kl_span rest = kl_layout_with_halo(l, kl_range_of(kept, l->rank), array->room);
        kl_rows_give(&array->rows, kl_layout_with_halo(l, kl_range_of(gone, l->rank), array->room), &rest, 1);
    }
}

bool kl_layout_widen(kl_layout *l, uint64_t more) {
    for (size_t a = 0; a < l->array_count; a++) {
        kl_array *array = &l->arrays[a];
        kl_span kept = kl_layout_with_halo(l, kl_layout_own(l), array->halo + more);
        kl_rows_give(&array->rows, kl_layout_with_halo(l, kl_layout_own(l), array->room), &kept, 1);
        array->room = array->halo + more;
    }
    return kl_layout_take(l, kl_layout_own(l));
}

void kl_layout_settle(kl_layout *l, uint64_t sweep) {
    kl_span had = kl_layout_own(l), has = kl_layout_next(l);
    kl_layout_note_gone(l, (kl_gone){{had.lo, smaller(had.hi, larger(had.lo, has.lo))}, sweep, -1});
    kl_layout_note_gone(l, (kl_gone){{larger(had.lo, smaller(had.hi, has.hi)), had.hi}, sweep, -1});
    kl_layout_give(l, l->bounds, l->target);
    memcpy(l->bounds, l->target, (l->ranks + 1) * sizeof *l->bounds);
}

void kl_layout_note_gone(kl_layout *l, kl_gone gone) {
    if (!kl_is_empty(gone.rows))
        l->gone[l->gone_count++ % KL_GONE] = gone;
}
