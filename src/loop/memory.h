/* Memory of the rows of a loop's arrays. Private to room loop. */
#ifndef KL_MEMORY_H
#define KL_MEMORY_H

#include "loop/rows.h"
#include "rank/rank.h"

typedef struct kl_memory {
    kl_layout *layout;
    kl_rows *rows; /* of each of its arrays */
} kl_memory;

/* Have a place for the rows of one more array. false: no memory */
bool kl_memory_grow(kl_memory *memory);
void kl_memory_free(kl_memory *memory);
/* Make room for `own` and what is around it, in all arrays. false: no memory, some room may be there */
bool kl_memory_take(kl_memory *memory, kl_span own);
/* Give back the room of this rank in `gone` that it does not need in `kept`. Both: bounds. */
void kl_memory_give(kl_memory *memory, const uint64_t *gone, const uint64_t *kept);
/* Have room for `more` rows on either side, or, if that is 0, for halos only. false: no memory */
bool kl_memory_widen(kl_memory *memory, uint64_t more);

#endif
