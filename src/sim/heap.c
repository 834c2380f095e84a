#include "sim/heap.h"

static bool before(const kl_happening *a, const kl_happening *b) {
    if (a->at_s != b->at_s)
        return a->at_s < b->at_s;
    return a->who < b->who || (a->who == b->who && a->turn < b->turn);
}

bool kl_heap_push(kl_heap *h, kl_happening one) {
    kl_happening *items = kl_array_grow(h->items, &h->room, h->count + 1, sizeof *items);
    if (!items)
        return false;
    h->items = items;
    one.turn = h->turns++;
    size_t i = h->count++;
    for (; i > 0 && before(&one, &h->items[(i - 1) / 2]); i = (i - 1) / 2)
        h->items[i] = h->items[(i - 1) / 2];
    h->items[i] = one;
    return true;
}

kl_happening kl_heap_pop(kl_heap *h) {
    kl_happening top = h->items[0], last = h->items[--h->count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= h->count)
            break;
        if (child + 1 < h->count && before(&h->items[child + 1], &h->items[child]))
            child++;
        if (!before(&h->items[child], &last))
            break;
        h->items[i] = h->items[child];
        i = child;
    }
    h->items[i] = last;
    return top;
}
