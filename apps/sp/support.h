/* What all of kilter-sp builds on: errors with words, byte buffers, random numbers, files written whole. */
#ifndef SP_SUPPORT_H
#define SP_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <kilter/status.h>

/* Fill `error` (NULL is fine) and return `status`, so that a function can end with `return sp_fail(…)`. */
kilter_status sp_fail(kilter_error *error, kilter_status status, const char *format, ...) KILTER_PRINTF(3, 4);
/* The analyzer sees one file at a time and would follow a failure as if it were a success. */
#ifdef __clang_analyzer__
#define sp_fail(error, status, ...) ((sp_fail)(error, status, __VA_ARGS__), (status))
#endif

/* A growing byte buffer. Zeroed is empty. After a failed allocation it is `failed` and ignores further
 * appends, so that a row of appends needs one check at the end. Integers and doubles are little-endian. */
typedef struct sp_buffer {
    uint8_t *data;
    size_t size, capacity;
    bool failed;
} sp_buffer;

void sp_buffer_free(sp_buffer *buffer);  /* leaves it zeroed */
void sp_buffer_clear(sp_buffer *buffer); /* keeps the memory */
void sp_put_bytes(sp_buffer *buffer, const void *data, size_t size);
void sp_put_u8(sp_buffer *buffer, uint8_t value);
void sp_put_u32(sp_buffer *buffer, uint32_t value);
void sp_put_u64(sp_buffer *buffer, uint64_t value);
void sp_put_f64(sp_buffer *buffer, double value);
/* u32 length, then the bytes; fails over 4 GiB */
void sp_put_span(sp_buffer *buffer, const void *data, size_t size);

/* Reads what sp_put_* wrote, from bytes nobody trusts: past the end it is `bad` and every further read gives
 * 0. */
typedef struct sp_reader {
    const uint8_t *data;
    size_t size, at;
    bool bad;
} sp_reader;

sp_reader sp_reader_of(const void *data, size_t size);
uint8_t sp_get_u8(sp_reader *reader);
uint32_t sp_get_u32(sp_reader *reader);
uint64_t sp_get_u64(sp_reader *reader);
double sp_get_f64(sp_reader *reader);
const uint8_t *sp_get_span(sp_reader *reader, size_t *size); /* NULL: it ends before */
bool sp_reader_done(const sp_reader *reader);                /* everything was read, and nothing was bad */

typedef struct sp_span { /* indices [lo, hi) */
    uint64_t lo, hi;
} sp_span;

/* splitmix64: a counter-based mixer for seeded random numbers that do not depend on the order of calls. */
uint64_t sp_mix64(uint64_t x);

/* A file that gets its new content whole, or stays as it was: what is written to `out` lies beside it until
 * the end. What is no plain file, or lies in a folder where no other can be made, is written in place. */
typedef struct sp_new_file {
    FILE *out;
    char *path, *part; /* part NULL: in place */
} sp_new_file;

kilter_status sp_new_file_open(const char *path, sp_new_file *file, kilter_error *error);
/* Put the file in its place, and free what was opened. KILTER_ERR_SYSTEM: it could not be written to the end,
 * and is as it was. */
kilter_status sp_new_file_end(sp_new_file *file, kilter_error *error);

#endif
