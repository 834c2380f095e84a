/* Record which tasks are done. A task counts once, however often it was executed. */
#include <stdlib.h>
#include <string.h>

#include "balance/balance.h"

enum { BITS = 64 };

kilter_status kl_ledger_begin(kl_ledger *l, uint64_t tasks) {
    kl_ledger_free(l);
    uint64_t words = tasks / BITS + 1;
    if (words > SIZE_MAX / sizeof *l->done || !(l->done = calloc((size_t)words, sizeof *l->done)))
        return KILTER_ERR_MEMORY;
    l->tasks = tasks;
    l->words = words;
    return KILTER_OK;
}

kilter_status kl_ledger_grow(kl_ledger *l, uint64_t count) {
    uint64_t words = (l->tasks + count) / BITS + 1;
    if (words > l->words) {
        uint64_t room = l->words;
        uint64_t *done = kl_array_grow(l->done, &room, words, sizeof *done);
        if (!done)
            return KILTER_ERR_MEMORY;
        memset(done + l->words, 0, (size_t)(room - l->words) * sizeof *done);
        l->done = done;
        l->words = room;
    }
    l->tasks += count;
    return KILTER_OK;
}

void kl_ledger_free(kl_ledger *l) {
    free(l->done);
    free(l->losses.spans);
    free(l->failures.spans);
    free(l->recalls.spans);
    *l = (kl_ledger){0};
}

bool kl_ledger_is_done(const kl_ledger *l, uint64_t task) {
    return l->done[task / BITS] >> task % BITS & 1;
}

kl_span kl_ledger_alike(const kl_ledger *l, kl_span span, bool *done) {
    *done = kl_ledger_is_done(l, span.lo);
    uint64_t other = *done ? 0 : UINT64_MAX, at = span.lo + 1;
    while (at < span.hi) {
        /* skip a whole word of 64 tasks if its bits are all equal */
        if (at % BITS == 0 && l->done[at / BITS] == ~other)
            at += BITS;
        else if (kl_ledger_is_done(l, at) == *done)
            at++;
        else
            break;
    }
    return (kl_span){span.lo, at < span.hi ? at : span.hi};
}

void kl_ledger_do(kl_ledger *l, kl_span span) {
    l->done_count += span.hi - span.lo;
    for (uint64_t i = span.lo; i < span.hi;) {
        if (i % BITS == 0 && span.hi - i >= BITS) {
            l->done[i / BITS] = UINT64_MAX;
            i += BITS;
        } else {
            l->done[i / BITS] |= (uint64_t)1 << i % BITS;
            i++;
        }
    }
}

/* --- counts --- */

/* Return the index of the first span that ends after `task`. */
static size_t place_of(const kl_tally *t, uint64_t task) {
    size_t low = 0, high = t->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->spans[middle].hi <= task)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(kl_tally *t, size_t place, kl_counted added) {
    memmove(t->spans + place + 1, t->spans + place, (t->count - place) * sizeof *t->spans);
    t->spans[place] = added;
    t->count++;
}

/* Split a span at `task`, so that no span has tasks on both sides. */
static void split_at(kl_tally *t, uint64_t task) {
    size_t i = place_of(t, task);
    if (i == t->count || t->spans[i].lo >= task)
        return;
    kl_counted before = t->spans[i];
    before.hi = task;
    t->spans[i].lo = task;
    insert(t, i, before);
}

static bool has_room(kl_tally *t, size_t more) {
    kl_counted *spans = kl_array_grow(t->spans, &t->room, t->count + more, sizeof *spans);
    t->spans = spans ? spans : t->spans;
    return spans;
}

kilter_status kl_tally_add(kl_tally *t, kl_span span) {
    size_t inside = place_of(t, span.hi) - place_of(t, span.lo) + 1;
    if (!has_room(t, 2 + inside + 1)) /* room for two splits, and for one new span beside each old span */
        return KILTER_ERR_MEMORY;
    split_at(t, span.lo);
    split_at(t, span.hi);
    size_t i = place_of(t, span.lo);
    for (uint64_t at = span.lo; at < span.hi; i++) {
        bool gap = i == t->count || t->spans[i].lo > at;
        uint64_t end = i == t->count || t->spans[i].lo > span.hi ? span.hi : t->spans[i].lo;
        if (gap)
            insert(t, i, (kl_counted){at, end, 1});
        else
            t->spans[i].times++;
        at = t->spans[i].hi;
    }
    return KILTER_OK;
}

kl_span kl_tally_alike(const kl_tally *t, kl_span span, uint32_t *times) {
    size_t i = place_of(t, span.lo);
    bool inside = i < t->count && t->spans[i].lo <= span.lo;
    uint64_t end = i == t->count ? span.hi : inside ? t->spans[i].hi : t->spans[i].lo;
    *times = inside ? t->spans[i].times : 0;
    return (kl_span){span.lo, end < span.hi ? end : span.hi};
}

uint32_t kl_tally_of(const kl_tally *t, uint64_t task) {
    uint32_t times;
    kl_tally_alike(t, (kl_span){task, task + 1}, &times);
    return times;
}
