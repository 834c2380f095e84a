/* Private to room rank: where the rows of a loop lie. rank.h includes this header. */
#ifndef KL_LAYOUT_H
#define KL_LAYOUT_H

#include "base/base.h"

typedef struct kl_array {
    uint8_t *base; /* row i is at base + i·bytes */
    size_t bytes;  /* bytes of a row */
    uint64_t halo; /* number of rows that may be read on either side of the own rows */
    uint64_t room; /* number of rows with memory on either side of the own rows */
} kl_array;

typedef struct kl_gone { /* rows that have left this rank */
    kl_span rows;
    uint64_t sweep;
    int to; /* rank that got the rows; −1: the rank that the bounds give */
} kl_gone;

enum { KL_GONE = 64 };

typedef struct kl_layout {
    uint64_t iterations;
    uint32_t rank, ranks;
    uint64_t *bounds; /* bounds[ranks + 1] of the rows now; in scattered loops, before the first sweep */
    uint64_t *target; /* target[ranks + 1]: bounds of the rows after the next exchange */
    uint64_t halo;    /* the widest halo of any array */
    kl_array *arrays;
    size_t array_count;
    kl_gone gone[KL_GONE]; /* the last departures of rows; departure k is at k mod KL_GONE */
    uint64_t gone_count;
} kl_layout;

/* Begin with equal shares and without arrays. false: no memory; call kl_layout_free() even then. */
bool kl_layout_init(kl_layout *layout, uint64_t iterations, uint32_t rank, uint32_t ranks);
void kl_layout_free(kl_layout *layout);
bool kl_layout_grow(kl_layout *layout); /* make a place for one more array; false: memory ran out */
void kl_layout_add(kl_layout *layout, const kl_array *array);

static inline kl_span kl_range_of(const uint64_t *bounds, uint32_t rank) {
    return (kl_span){bounds[rank], bounds[rank + 1]};
}
static inline kl_span kl_layout_own(const kl_layout *l) {
    return kl_range_of(l->bounds, l->rank);
}
static inline kl_span kl_layout_next(const kl_layout *l) { /* the own rows after the next exchange */
    return kl_range_of(l->target, l->rank);
}
static inline bool kl_is_empty(kl_span s) {
    return s.lo >= s.hi;
}
static inline uint64_t kl_length(kl_span s) {
    return s.hi - s.lo;
}
static inline uint8_t *kl_row_at(const kl_array *array, uint64_t i) {
    return array->base + i * array->bytes;
}
kl_span kl_common(kl_span a, kl_span b);

/* Return `own` with `halo` rows on either side, as far as such rows exist; an empty range stays empty. */
kl_span kl_layout_with_halo(const kl_layout *layout, kl_span own, uint64_t halo);
/* Return `own` with all rows around it for which the array has memory. */
static inline kl_span kl_layout_with_room(const kl_layout *layout, kl_span own, size_t array) {
    return kl_layout_with_halo(layout, own, layout->arrays[array].room);
}
/* Return the bytes of a row in all arrays. */
uint64_t kl_layout_row_bytes(const kl_layout *layout);
/* Return the bytes of rows that the target adds to this rank. */
uint64_t kl_layout_coming_bytes(const kl_layout *layout);
/* Return the number of rows that come to this rank or leave it. */
uint64_t kl_layout_changing(const kl_layout *layout);
/* Return the number of rows that change ranks, on all ranks. */
uint64_t kl_layout_moving(const kl_layout *layout);
/* Make the target the new bounds. */
void kl_layout_settle(kl_layout *layout, uint64_t sweep);
void kl_layout_note_gone(kl_layout *layout, kl_gone gone);

#endif
