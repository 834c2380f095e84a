/* Ranges of rows, in any order. Private to room rank; the door includes it. */
#ifndef KL_RANGES_H
#define KL_RANGES_H

#include "base/base.h"

typedef struct kl_ranges { /* zeroed: none */
    kl_span *at;
    size_t count;
    uint64_t room;
} kl_ranges;

bool kl_ranges_add(kl_ranges *ranges, kl_span range); /* false: no memory */
uint64_t kl_ranges_sum(const kl_ranges *ranges);      /* rows in them */
void kl_ranges_tidy(kl_ranges *ranges);               /* in rising order; neighbours become one */
void kl_ranges_free(kl_ranges *ranges);

#endif
