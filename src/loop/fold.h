/* Private to the folder loop: combine the values of rows in the order of a fixed binary tree over all rows.
 * So the result does not depend on which ranks have the rows, even if the combining function rounds. */
#ifndef KL_FOLD_H
#define KL_FOLD_H

#include "base/base.h"

/* A segment: the rows lo … lo + 2^level − 1. Ranks send this struct without conversion. */
typedef struct kl_segment {
    uint64_t lo, level;
} kl_segment;

/* Combined values of rows. If all fields but the first three are zero, there are no rows. */
typedef struct kl_fold {
    uint64_t bytes; /* bytes of a row's value */
    /* Combine *left, the value of earlier rows, with *right, the value of later rows; set *left to the
     * combined value. */
    void (*combine)(void *left, const void *right, uint64_t bytes, void *user);
    void *user;
    kl_segment *segments; /* segments with their values, in rising order of rows */
    uint8_t *values;
    uint64_t count, segment_room, value_room;
} kl_fold;

/* Add a segment and its value. The segment must lie after all segments that were added before. If two
 * segments are the halves of a larger one, combine them. Return false if memory ran out. */
bool kl_fold_add(kl_fold *fold, kl_segment segment, const void *value);
/* Make room for `count` segments, which the caller then writes in any order. Return false if memory ran
 * out. */
bool kl_fold_reserve(kl_fold *fold, uint64_t count);
/* Append the segments of another fold, without combining any. Return false if memory ran out. */
bool kl_fold_append(kl_fold *fold, const kl_fold *from);
/* Add all segments of another fold, whatever their order. Return false if memory ran out. */
bool kl_fold_add_all(kl_fold *fold, const kl_fold *from);
/* Combine all segments, from the last to the first, and return the value. Return NULL if there are no
 * segments. */
const void *kl_fold_value(kl_fold *fold);
void kl_fold_free(kl_fold *fold);

#endif
