/** A view of bytes: what tasks take and results hold. */
#ifndef KILTER_BYTES_H
#define KILTER_BYTES_H

#include <stddef.h>

/** Bytes somebody else owns. data may be NULL when size is 0. */
typedef struct kilter_bytes {
    const void *data;
    size_t size; /**< bytes */
} kilter_bytes;

#endif
