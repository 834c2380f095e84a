/* Private to the folder loop: rows of an array at addresses that are computed in the same way on each rank.
 * Each rank has address space for the whole array, but memory only for the rows that it holds. */
#ifndef KL_ROWS_H
#define KL_ROWS_H

#include "base/base.h"

typedef struct kl_rows { /* The rows of an array on this rank. All zero: no rows. */
    uint8_t *base;       /* address of row 0; row i is at base + i·bytes */
    uint64_t n;
    size_t bytes;
    size_t page, reserved;
    size_t skew; /* bytes of the mapping before row 0 */
} kl_rows;

/* Reserve address space for n rows. KILTER_ERR_RANGE: the rows have more than 2^47 bytes; KILTER_ERR_MEMORY:
 * the system refuses. */
kilter_status kl_rows_reserve(kl_rows *rows, uint64_t n, size_t bytes, kilter_error *error);
/* Return whether there is memory for writing `bytes` bytes of rows. kl_rows_take() does not tell this,
 * because it fails only at limits of the process. If the memory of the host runs out, the system kills the
 * process that touches new memory. */
bool kl_rows_fit(uint64_t bytes);
/* Get memory for the rows of `range`. New pages are filled with zeros. After KILTER_ERR_MEMORY, some of the
 * rows may have memory; kl_rows_give() frees it. */
kilter_status kl_rows_take(kl_rows *rows, kl_span range, kilter_error *error);
/* Free the pages of `range` that hold no row of the `kept` ranges. */
void kl_rows_give(kl_rows *rows, kl_span range, const kl_span *kept, size_t kept_count);
void kl_rows_release(kl_rows *rows); /* Free all memory and address space, and set the struct to zeros. */

static inline uint8_t *kl_rows_mapping(const kl_rows *rows) {
    return rows->base - rows->skew;
}
static inline uint8_t *kl_rows_at(const kl_rows *rows, uint64_t i) {
    return rows->base + i * rows->bytes;
}

#endif
