/* Private to the folder rank: on which ranks the rows of a loop are. rank.h includes this header. Loops
 * may be aligned: one of them leads, and the rows of the others follow the leader's rows. */
#ifndef KL_LAYOUT_H
#define KL_LAYOUT_H

#include "base/base.h"

/* A map: row k of a loop or of an array is on the same rank as row stride·k + offset of the leading loop.
 * The number of that row is called the place of row k. */
typedef struct kl_map {
    uint64_t rows, stride, offset;
} kl_map;

typedef struct kl_array {
    uint8_t *base; /* address of row 0; row i is at base + i·bytes */
    size_t bytes;  /* bytes of a row */
    uint64_t halo; /* number of rows that the program may read on either side of this rank's rows */
    uint64_t room; /* number of rows on either side of this rank's rows for which there is memory */
    /* tells which rows of the leading loop the array's rows follow; all zero: the map of the loop itself is
     * used */
    kl_map map;
    bool periodic; /* true: the first row and the last row are neighbours; halos are at −1, −2, … and n, n +
                      1, … */
} kl_array;

/* Adjacent rows that a rank needs. Row i is copied to the address of row i + shift. */
typedef struct kl_piece {
    kl_span rows;
    int64_t shift; /* 0, except in halos beyond the ends of a periodic array */
} kl_piece;
enum { KL_PIECES = 3 }; /* greatest number of pieces of one range with its halos */

typedef struct kl_gone { /* Rows that have left this rank. */
    kl_span rows;
    uint64_t sweep;
    int to; /* rank that got the rows; −1: find it by the bounds */
} kl_gone;

enum { KL_GONE = 64 };

typedef struct kl_layout {
    uint64_t iterations;
    uint32_t rank, ranks;
    /* bounds[0 … ranks]: rank r now has the rows from bounds[r] to bounds[r + 1] − 1; in scattered loops,
     * this holds only before the first sweep */
    uint64_t *bounds;
    uint64_t *target;             /* target[0 … ranks]: bounds of the rows after the next exchange */
    uint64_t halo;                /* greatest number of halo rows of any array */
    uint64_t reach;               /* the widest halo of any array, measured in rows of the leading loop */
    bool wraps;                   /* true: there is a periodic array with a halo */
    const struct kl_layout *lead; /* the layout of the leading loop; this layout if the loop itself leads */
    kl_map map;                   /* tells which rows of the leading loop this loop's rows follow */
    uint64_t changes;             /* number of changes of the leader's bounds that this loop has taken over */
    kl_array *arrays;
    size_t array_count;
    kl_gone gone[KL_GONE]; /* the last moves of rows away from this rank; move k is gone[k mod KL_GONE] */
    uint64_t gone_count;
} kl_layout;

/* Begin with equal shares and without arrays. false: memory ran out; call kl_layout_free() even then. */
bool kl_layout_init(kl_layout *layout, uint64_t iterations, uint32_t rank, uint32_t ranks);
void kl_layout_free(kl_layout *layout);
bool kl_layout_grow(kl_layout *layout); /* Make room for one more array. Return false if memory ran out. */
void kl_layout_add(kl_layout *layout, const kl_array *array);
/* Let the loop read at least `halo` rows of an array on either side of its rank's rows. */
void kl_layout_widen(kl_layout *layout, size_t array, uint64_t halo);
/* Make the loop's rows follow the rows of a leading loop with the layout `lead`. The leading loop must exist
 * longer than this loop. `map` tells which row each row follows. */
void kl_layout_follow(kl_layout *layout, const kl_layout *lead, const kl_map *map);
/* Take over the bounds of the leading loop. Return whether the leader's rows have moved. Even then, this
 * loop's own bounds may be the same as before. */
bool kl_layout_refresh(kl_layout *layout);

static inline kl_span kl_range_of(const uint64_t *bounds, uint32_t rank) {
    return (kl_span){bounds[rank], bounds[rank + 1]};
}
static inline kl_span kl_layout_own(const kl_layout *l) {
    return kl_range_of(l->bounds, l->rank);
}
/* Return the rows that this rank will have after the next exchange. */
static inline kl_span kl_layout_next(const kl_layout *l) {
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
static inline bool kl_is_same_map(const kl_map *a, const kl_map *b) {
    return a->rows == b->rows && a->stride == b->stride && a->offset == b->offset;
}
/* Return the rows that follow a range of the leading loop's rows. If there are none, return an empty range at
 * the first row that follows a later row of the leading loop. */
kl_span kl_map_span(const kl_map *map, kl_span places);
/* Return the rows of an array that follow a range of the leading loop's rows. */
static inline kl_span kl_array_own(const kl_array *array, kl_span places) {
    return kl_map_span(&array->map, places);
}
/* Return the number of rows before row 0 for which the array has address space. There are as many after the
 * last row. */
static inline uint64_t kl_array_edge(const kl_array *array) {
    return array->periodic ? array->map.rows : 0;
}
/* Return the array rows that a rank keeps in memory when it owns the rows `own` of the leading loop. Indices
 * in the result are shifted: 0 is the first row with address space, kl_array_edge() rows before row 0. */
kl_span kl_array_with_room(const kl_array *array, kl_span own);
/* Split the rows `own` of an array, with `below` rows before them and `above` rows after them, into pieces
 * that are adjacent in memory. Return the number of pieces. */
size_t kl_array_pieces(const kl_array *array, kl_span own, uint64_t below, uint64_t above,
                       kl_piece pieces[KL_PIECES]);

/* Return `own`, extended by `halo` rows on either side as far as such rows exist. An empty range stays
 * empty. */
kl_span kl_layout_with_halo(const kl_layout *layout, kl_span own, uint64_t halo);
/* Return the mean number of bytes in all arrays for one row of the leading loop. */
uint64_t kl_layout_row_bytes(const kl_layout *layout);
/* Return the bytes of the rows that come to this rank when the rows move to the target. */
uint64_t kl_layout_coming_bytes(const kl_layout *layout);
/* Return the number of rows that come to this rank or leave it when the rows move to the target. */
uint64_t kl_layout_changing(const kl_layout *layout);
/* Return the number of rows, on all ranks, that change their rank when the rows move to the target. */
uint64_t kl_layout_moving(const kl_layout *layout);
/* Return whether a rank will have clearly more rows than with equal shares. */
bool kl_layout_is_unequal(const kl_layout *layout);
/* Make the target bounds the present bounds, after rows have moved. sweep: number of the current sweep. */
void kl_layout_settle(kl_layout *layout, uint64_t sweep);
void kl_layout_note_gone(kl_layout *layout, kl_gone gone);

#endif
