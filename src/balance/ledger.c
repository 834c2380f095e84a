/* Which tasks are done: each is counted once, however often it was carried out. */
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
    return KILTER_OK;
}

void kl_ledger_free(kl_ledger *l) {
    free(l->done);
    free(l->blames);
    *l = (kl_ledger){0};
}

bool kl_ledger_is_done(const kl_ledger *l, uint64_t task) {
    return l->done[task / BITS] >> task % BITS & 1;
}

kl_span kl_ledger_alike(const kl_ledger *l, kl_span span, bool *done) {
    *done = kl_ledger_is_done(l, span.lo);
    uint64_t other = *done ? 0 : UINT64_MAX, at = span.lo + 1;
    while (at < span.hi) {
        if (at % BITS == 0 && l->done[at / BITS] == ~other) /* a whole word of them */
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

/* --- blame --- */

/* The first of `blames` that ends behind `task`. */
static size_t place_of(const kl_ledger *l, uint64_t task) {
    size_t low = 0, high = l->blame_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->blames[middle].hi <= task)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(kl_ledger *l, size_t place, kl_blame blame) {
    memmove(l->blames + place + 1, l->blames + place, (l->blame_count - place) * sizeof *l->blames);
    l->blames[place] = blame;
    l->blame_count++;
}

/* No blame lies on both sides of `task` any more. */
static void split_at(kl_ledger *l, uint64_t task) {
    size_t i = place_of(l, task);
    if (i == l->blame_count || l->blames[i].lo >= task)
        return;
    kl_blame before = l->blames[i];
    before.hi = task;
    l->blames[i].lo = task;
    insert(l, i, before);
}

static bool has_room(kl_ledger *l, size_t more) {
    if (l->blame_count + more <= l->blame_capacity)
        return true;
    size_t capacity = 2 * (l->blame_count + more);
    kl_blame *blames = realloc(l->blames, capacity * sizeof *blames);
    if (!blames)
        return false;
    l->blames = blames;
    l->blame_capacity = capacity;
    return true;
}

kilter_status kl_ledger_blame(kl_ledger *l, kl_span span) {
    size_t inside = place_of(l, span.hi) - place_of(l, span.lo) + 1;
    if (!has_room(l, 2 + inside + 1)) /* two splits, and the gaps between those it meets */
        return KILTER_ERR_MEMORY;
    split_at(l, span.lo);
    split_at(l, span.hi);
    size_t i = place_of(l, span.lo);
    for (uint64_t at = span.lo; at < span.hi; i++) {
        bool gap = i == l->blame_count || l->blames[i].lo > at;
        uint64_t end = i == l->blame_count || l->blames[i].lo > span.hi ? span.hi : l->blames[i].lo;
        if (gap)
            insert(l, i, (kl_blame){at, end, 1});
        else
            l->blames[i].losses++;
        at = l->blames[i].hi;
    }
    return KILTER_OK;
}

uint32_t kl_ledger_losses(const kl_ledger *l, uint64_t task) {
    size_t i = place_of(l, task);
    return i < l->blame_count && l->blames[i].lo <= task ? l->blames[i].losses : 0;
}
