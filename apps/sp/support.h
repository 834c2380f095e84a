/* Basics for all of kilter-sp: error messages, byte buffers, random numbers, and files. */
#ifndef SP_SUPPORT_H
#define SP_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <kilter/status.h>

/* Fill in `error`, which may be NULL, and return `status`, so that a function can end with `return
 * sp_fail(…)`. */
kilter_status sp_fail(kilter_error *error, kilter_status status, const char *format, ...) KILTER_PRINTF(3, 4);
/* Clang's analyzer sees one source file at a time. This macro tells the analyzer which status sp_fail()
 * returns. */
#ifdef __clang_analyzer__
#define sp_fail(error, status, ...) ((sp_fail)(error, status, __VA_ARGS__), (status))
#endif

/* A growing byte buffer. If all members are zero, the buffer is empty. After a failed allocation, `failed` is
 * true and the buffer ignores further appends, so one check after the last append is enough. Integers and
 * doubles are little-endian. */
typedef struct sp_buffer {
    uint8_t *data;
    size_t size, capacity;
    bool failed;
} sp_buffer;

void sp_buffer_free(sp_buffer *buffer);  /* free the memory and leave the buffer zeroed */
void sp_buffer_clear(sp_buffer *buffer); /* empty the buffer but keep the memory */
void sp_put_bytes(sp_buffer *buffer, const void *data, size_t size);
void sp_put_u8(sp_buffer *buffer, uint8_t value);
void sp_put_u32(sp_buffer *buffer, uint32_t value);
void sp_put_u64(sp_buffer *buffer, uint64_t value);
void sp_put_f64(sp_buffer *buffer, double value);
/* Append the length as a u32, then the bytes. A length above 4 GiB sets `failed`. */
void sp_put_span(sp_buffer *buffer, const void *data, size_t size);

/* A reader of bytes as sp_put_* writes them; the bytes are not trusted. A read past the end sets `bad`, and
 * every further read returns 0. */
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
const uint8_t *sp_get_span(sp_reader *reader,
                           size_t *size);     /* return NULL if the bytes end before the span does */
bool sp_reader_done(const sp_reader *reader); /* true: all bytes were read, and no read failed */

typedef struct sp_span { /* indices [lo, hi) */
    uint64_t lo, hi;
} sp_span;

/* Mix bits with splitmix64, for seeded random numbers that do not depend on the order of calls. */
uint64_t sp_mix64(uint64_t x);

/* A file that is replaced as a whole or not at all. Until the file is replaced, `out` writes to a temporary
 * file in the same folder. Files that are not regular, and files in folders without write permission, are
 * written in place. */
typedef struct sp_new_file {
    FILE *out;
    char *path, *part; /* part: path of the temporary file; NULL: the file is written in place */
} sp_new_file;

kilter_status sp_new_file_open(const char *path, sp_new_file *file, kilter_error *error);
/* Replace the file by what was written, and free the struct. KILTER_ERR_SYSTEM: writing failed, and the old
 * file is unchanged. */
kilter_status sp_new_file_end(sp_new_file *file, kilter_error *error);

#endif
