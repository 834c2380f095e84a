/* Private to the folder sim: a heap of future events, sorted by time. */
#ifndef KL_HEAP_H
#define KL_HEAP_H

#include "base/base.h"

typedef struct kl_happening {
    double at_s;
    uint32_t who;
    int what;      /* kind of the event; the driver defines the kinds */
    uint64_t turn; /* number that kl_heap_push() gives: events of equal time and `who` come in this order */
    void *thing;   /* data of the driver that belong to the event */
} kl_happening;

/* At equal times, the event with the smallest `who` comes first, then the event that was pushed first. If all
 * fields are zero, the heap is empty. */
typedef struct kl_heap {
    kl_happening *items;
    size_t count;
    uint64_t room, turns;
} kl_heap;

bool kl_heap_push(kl_heap *heap, kl_happening one); /* add an event; false: memory ran out */
kl_happening kl_heap_pop(kl_heap *heap); /* remove the first event and return it; there must be one */

#endif
