#include "loop/fold.h"

#include <stdlib.h>
#include <string.h>

static uint8_t *value_at(const kl_fold *f, uint64_t index) {
    return f->values + index * f->bytes;
}

bool kl_fold_reserve(kl_fold *f, uint64_t count) {
    kl_segment *segments = kl_array_grow(f->segments, &f->segment_room, count, sizeof *segments);
    if (!segments)
        return false;
    f->segments = segments;
    uint8_t *values = kl_array_grow(f->values, &f->value_room, count, (size_t)f->bytes);
    if (!values)
        return false;
    f->values = values;
    return true;
}

static void combine_last(kl_fold *f) {
    f->count--;
    f->combine(value_at(f, f->count - 1), value_at(f, f->count), f->bytes, f->user);
}

/* Return whether the last two segments are the halves of a larger segment. */
static bool are_halves(const kl_fold *f) {
    if (f->count < 2)
        return false;
    const kl_segment *left = &f->segments[f->count - 2], *right = left + 1;
    uint64_t rows = UINT64_C(1) << left->level;
    return left->level == right->level && left->lo % (2 * rows) == 0 && right->lo == left->lo + rows;
}

bool kl_fold_add(kl_fold *f, kl_segment segment, const void *value) {
    if (!kl_fold_reserve(f, f->count + 1))
        return false;
    f->segments[f->count] = segment;
    memcpy(value_at(f, f->count++), value, f->bytes);
    while (are_halves(f)) {
        combine_last(f);
        f->segments[f->count - 1].level++;
    }
    return true;
}

bool kl_fold_append(kl_fold *f, const kl_fold *from) {
    if (from->count == 0)
        return true;
    if (!kl_fold_reserve(f, f->count + from->count))
        return false;
    memcpy(f->segments + f->count, from->segments, from->count * sizeof *f->segments);
    memcpy(value_at(f, f->count), from->values, from->count * from->bytes);
    f->count += from->count;
    return true;
}

typedef struct place { /* the place of a segment, for sorting */
    uint64_t lo, index;
} place;

static int by_rows(const void *a, const void *b) {
    uint64_t one = ((const place *)a)->lo, other = ((const place *)b)->lo;
    return (one > other) - (one < other);
}

bool kl_fold_add_all(kl_fold *f, const kl_fold *from) {
    place *order = malloc((from->count + 1) * sizeof *order);
    bool fits = order != NULL;
    for (uint64_t i = 0; i < from->count && fits; i++)
        order[i] = (place){from->segments[i].lo, i};
    if (fits)
        qsort(order, from->count, sizeof *order, by_rows);
    for (uint64_t i = 0; i < from->count && fits; i++)
        fits = kl_fold_add(f, from->segments[order[i].index], value_at(from, order[i].index));
    free(order);
    return fits;
}

const void *kl_fold_value(kl_fold *f) {
    while (f->count > 1)
        combine_last(f);
    return f->count > 0 ? f->values : NULL;
}

void kl_fold_free(kl_fold *f) {
    free(f->segments);
    free(f->values);
    f->segments = NULL;
    f->values = NULL;
    f->count = f->segment_room = f->value_room = 0;
}
