/* Future events, in order of time. Private to the folder sim. */
#ifndef KL_HEAP_H
#define KL_HEAP_H

#include "base/base.h"

typedef struct kl_happening {
    double at_s;
    uint32_t who;
    int what;      /* kind of the event: a number of the driver */
    uint64_t turn; /* set by kl_heap_push() */
    void *thing;   /* the driver's data of the event */
} kl_happening;

/* At equal times the event with the smallest `who` comes first, then the event that was pushed first. All
 * zero: empty. */
typedef struct kl_heap {
    kl_happening *items;
    size_t count;
    uint64_t room, turns;
} kl_heap;

bool kl_heap_push(kl_heap *heap, kl_happening one); /* false: no memory */
kl_happening kl_heap_pop(kl_heap *heap);            /* count > 0 */

#endif
