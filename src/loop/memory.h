/* Private to the folder loop: memory for the rows of a loop's arrays. */
#ifndef KL_MEMORY_H
#define KL_MEMORY_H

#include "loop/rows.h"
#include "rank/rank.h"

typedef struct kl_memory {
    kl_layout *layout;
    kl_rows *rows; /* rows[i]: the rows of array i of the layout */
} kl_memory;

/* Make room for one more array in the list. Return false if memory ran out. */
bool kl_memory_grow(kl_memory *memory);
void kl_memory_free(kl_memory *memory);
/* Get memory for `room` rows before and after this rank's rows of the array. If memory ran out, change
 * nothing and return false. */
bool kl_memory_raise(kl_memory *memory, size_t array, uint64_t room);
/* Get memory for the rows `own` and their halos, in all arrays. If memory ran out, return false; some of the
 * memory may be allocated then. */
bool kl_memory_take(kl_memory *memory, kl_span own);
/* Free the memory that this rank needed with the bounds `gone`, but does not need with the bounds `kept`.
 * Bounds say which rows each rank has. */
void kl_memory_give(kl_memory *memory, const uint64_t *gone, const uint64_t *kept);
/* Give each array memory for its halo and for `more` further rows, on both sides of the rank's own rows. Free
 * memory beyond these rows. Return false if memory ran out. */
bool kl_memory_widen(kl_memory *memory, uint64_t more);

#endif
