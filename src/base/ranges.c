/* Sets of indices, as lists of spans. */
#include "base/base.h"

#include <stdlib.h>

bool kl_ranges_add(kl_ranges *s, kl_span range) {
    if (range.lo >= range.hi)
        return true;
    if (s->count > 0 && s->at[s->count - 1].hi == range.lo) {
        s->at[s->count - 1].hi = range.hi;
        return true;
    }
    kl_span *more = kl_array_grow(s->at, &s->room, s->count + 1, sizeof *more);
    if (!more)
        return false;
    s->at = more;
    s->at[s->count++] = range;
    return true;
}

bool kl_ranges_add_all(kl_ranges *s, const kl_span *spans, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!kl_ranges_add(s, spans[i]))
            return false;
    return true;
}

uint64_t kl_ranges_sum(const kl_ranges *s) {
    uint64_t sum = 0;
    for (size_t i = 0; i < s->count; i++)
        sum += s->at[i].hi - s->at[i].lo;
    return sum;
}

static int by_place(const void *a, const void *b) {
    const kl_span *x = a, *y = b;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

void kl_ranges_tidy(kl_ranges *s) {
    if (s->count > 1)
        qsort(s->at, s->count, sizeof *s->at, by_place);
    size_t kept = 0;
    for (size_t i = 1; i < s->count; i++) {
        if (s->at[kept].hi < s->at[i].lo)
            s->at[++kept] = s->at[i];
        else if (s->at[kept].hi < s->at[i].hi)
            s->at[kept].hi = s->at[i].hi;
    }
    s->count = s->count > 0 ? kept + 1 : 0;
}

bool kl_ranges_without(const kl_ranges *all, const kl_ranges *gone, kl_ranges *rest) {
    bool ok = true;
    size_t g = 0;
    for (size_t i = 0; i < all->count && ok; i++) {
        uint64_t at = all->at[i].lo, end = all->at[i].hi;
        while (g < gone->count && gone->at[g].hi <= at)
            g++;
        for (size_t k = g; k < gone->count && gone->at[k].lo < end && ok; k++) {
            ok = kl_ranges_add(rest, (kl_span){at, gone->at[k].lo});
            at = gone->at[k].hi;
        }
        ok = ok && kl_ranges_add(rest, (kl_span){at, end});
    }
    return ok;
}

void kl_ranges_free(kl_ranges *s) {
    free(s->at);
    *s = (kl_ranges){0};
}
