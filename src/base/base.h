/* Public header of the folder base: error messages, byte buffers, sets of indices, linear costs c + m·x.
 * All functions are pure. */
#ifndef KL_BASE_H
#define KL_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kilter/status.h"
#include "kilter/sum.h"

/* Fill `error` (may be NULL) and return `status`, so that a function can end with `return kl_fail(…)`. */
kilter_status kl_fail(kilter_error *error, kilter_status status, const char *format, ...) KILTER_PRINTF(3, 4);
/* Tell the static analyzer, which sees only one file at a time, that kl_fail() never returns KILTER_OK. */
#ifdef __clang_analyzer__
#define kl_fail(error, status, ...) ((kl_fail)(error, status, __VA_ARGS__), (status))
#endif

static inline unsigned long long kl_ull(uint64_t n) { /* convert a number for the format %llu */
    return n;
}

/* A byte buffer that grows. All zero: empty. After a failed allocation, `failed` is set and further appends
 * do nothing. So a series of appends needs only one check at the end. Integers and doubles are
 * little-endian. */
typedef struct kl_buffer {
    uint8_t *data;
    size_t size, capacity;
    bool failed;
    bool borrowed; /* true: `data` belongs to the caller; a buffer that needs more memory allocates its own */
} kl_buffer;

void kl_buffer_free(kl_buffer *buffer);  /* Free the memory of the buffer and set all its members to zero. */
void kl_buffer_clear(kl_buffer *buffer); /* set the size of the buffer to 0, but keep its memory */
void kl_put_bytes(kl_buffer *buffer, const void *data, size_t size);
void kl_put_u8(kl_buffer *buffer, uint8_t value);
void kl_put_u32(kl_buffer *buffer, uint32_t value);
void kl_put_u64(kl_buffer *buffer, uint64_t value);
void kl_put_f64(kl_buffer *buffer, double value);
void kl_put_span(kl_buffer *buffer, const void *data,
                 size_t size); /* append the length in 4 bytes, then the bytes; fails for more than 4 GiB */
void kl_set_u32(kl_buffer *buffer, size_t at, uint32_t value); /* overwrite the value at offset `at` */

/* A reader of bytes that the kl_put_* functions wrote. The bytes are not trusted: a read past their end sets
 * `bad`, and every later read gives 0. */
typedef struct kl_reader {
    const uint8_t *data;
    size_t size, at;
    bool bad;
} kl_reader;

kl_reader kl_reader_of(const void *data, size_t size);
/* return a pointer to the next `size` bytes; NULL: too few bytes are left */
const uint8_t *kl_get_bytes(kl_reader *reader, size_t size);
uint8_t kl_get_u8(kl_reader *reader);
uint32_t kl_get_u32(kl_reader *reader);
uint64_t kl_get_u64(kl_reader *reader);
double kl_get_f64(kl_reader *reader);
const uint8_t *kl_get_span(kl_reader *reader, size_t *size);
bool kl_reader_done(const kl_reader *reader); /* Return true if every byte was read and no read failed. */

/* Write and read a message's members in the order of a list, without padding. The list is a macro with the
 * type and name of each member.
 *
 *     #define POINT(X) X(f64, x) X(f64, y) X(label, name)
 *     … POINT(KL_PUT_MEMBER) …  with a kl_buffer *out and a const point *m
 *     … POINT(KL_GET_MEMBER) …  with a kl_reader *r and a point *m
 */
/* Some types of members in such a list. flag: a bool. time: a finite double that is not negative. text: a
 * char array; a text that does not fit, or that contains a NUL, is refused. label: a char array for a text on
 * a terminal; a label that does not fit is cut, and '?' replaces its control characters. */
#define KL_PUT_MEMBER(type, name) kl_put_##type(out, m->name);
#define KL_GET_MEMBER(type, name) kl_read_##type(r, &m->name, sizeof m->name);

void kl_put_text(kl_buffer *buffer, const char *text);
static inline void kl_put_label(kl_buffer *buffer, const char *text) {
    kl_put_text(buffer, text);
}
static inline void kl_put_flag(kl_buffer *buffer, bool value) {
    kl_put_u8(buffer, value);
}
static inline void kl_put_time(kl_buffer *buffer, double value) {
    kl_put_f64(buffer, value);
}
/* Read a text or a label into memory of `size` bytes. */
void kl_read_text(kl_reader *reader, void *text, size_t size);
void kl_read_label(kl_reader *reader, void *text, size_t size);
void kl_read_flag(kl_reader *reader, bool *value, size_t size);
void kl_read_time(kl_reader *reader, double *value, size_t size);
static inline void kl_read_u32(kl_reader *reader, uint32_t *value, size_t size) {
    (void)size;
    *value = kl_get_u32(reader);
}
static inline void kl_read_u64(kl_reader *reader, uint64_t *value, size_t size) {
    (void)size;
    *value = kl_get_u64(reader);
}
static inline void kl_read_f64(kl_reader *reader, double *value, size_t size) {
    (void)size;
    *value = kl_get_f64(reader);
}
/* Write or read a little-endian word of 8 bytes at an address that need not be aligned. */
void kl_store_u64(uint8_t *at, uint64_t value);
uint64_t kl_load_u64(const uint8_t *at);
void kl_copy_label(char *label, size_t size, const uint8_t *bytes,
                   size_t length); /* append a label; bytes NULL: an empty label */

/* Return the bytes at an address that is aligned for any type. This is `data` itself, or a copy in
 * `scratch`, which is valid until `scratch` is used again. NULL: memory ran out. */
const void *kl_aligned(kl_buffer *scratch, const void *data, size_t size);

/* Grow an array, so that it has room for at least `needed` elements of `each` bytes. *room is set to the
 * new number of elements. If memory runs out, return NULL and do not change the array. */
void *kl_array_grow(void *array, uint64_t *room, uint64_t needed, size_t each);

/* A variable whose type is a public struct, as this version of Kilter declares it. In a program that was
 * compiled with another version, the struct may be shorter or longer. */
typedef struct kl_struct {
    const char *name; /* name of the struct's type, for error messages */
    void *at;
    size_t bytes;
} kl_struct;
#define KL_STRUCT(type, variable) ((kl_struct){#type, &(variable), sizeof(variable)})

/* Copy a program's struct of `bytes` bytes to own.at; members that the program does not have become zero.
 * KILTER_ERR_USAGE: the program sets a member that this library does not have; own.at stays unchanged. */
kilter_status kl_struct_in(kl_struct own, const void *theirs, size_t bytes, kilter_error *error);
/* Copy own.at to a program's struct of `bytes` bytes, and no more; members that this library does not have
 * become zero. */
void kl_struct_out(void *theirs, size_t bytes, kl_struct own);

/* Pass a public struct to a function of the program, followed by zeros. A program compiled for a newer Kilter
 * then reads members that this library does not have as zero. KL_HAND(type, value) is the address of a
 * temporary copy of `value` with such zeros. KL_ROOMY(type) is a type with room for the zeros; use a variable
 * of it, zeroed once, for a struct that is passed often. */
enum { KL_LATER_BYTES = 64 };
#define KL_ROOMY(type)                                                                                       \
    struct {                                                                                                 \
        type it;                                                                                             \
        unsigned char later[KL_LATER_BYTES];                                                                 \
    }
#define KL_HAND(type, value) (&((KL_ROOMY(type)){.it = (value)}).it)

typedef struct kl_span { /* indices [lo, hi) */
    uint64_t lo, hi;
} kl_span;

typedef struct kl_ranges { /* a set of indices, as spans in any order; all zero: an empty set */
    kl_span *at;
    size_t count;
    uint64_t room;
} kl_ranges;

bool kl_ranges_add(kl_ranges *ranges, kl_span range); /* add the indices of `range`; false: memory ran out */
bool kl_ranges_add_all(kl_ranges *ranges, const kl_span *spans, size_t count);
/* number of indices in all spans; an index in two spans counts twice */
uint64_t kl_ranges_sum(const kl_ranges *ranges);
void kl_ranges_tidy(kl_ranges *ranges); /* sort the spans and join spans that touch or overlap */
/* Add to `rest` the indices that are in `all` and not in `gone`. `all` and `gone` must be sorted by
 * kl_ranges_tidy(). */
bool kl_ranges_without(const kl_ranges *all, const kl_ranges *gone, kl_ranges *rest);
void kl_ranges_free(kl_ranges *ranges);

/* A cost in seconds that is linear in x: fixed_s + per_unit_s·x. */
typedef struct kl_linear {
    double fixed_s, per_unit_s;
} kl_linear;

/* Return the random number that the generator splitmix64 has for the counter x. The number depends only on x,
 * not on numbers that were drawn before. */
uint64_t kl_mix64(uint64_t x);

/* Return a hash that is the same on every machine. It detects accidental changes, not deliberate ones. A
 * change within 8 aligned bytes always changes the hash; any other change is missed with probability 2^−64.
 * To hash several pieces, pass each hash as the seed of the next. */
uint64_t kl_hash(const void *data, size_t size, uint64_t seed);

/* Carry the excess of each digit into the next one, so that each digit's magnitude is at most 2^32. Then the
 * words of up to 2^29 such sums can be added without overflow. */
void kl_sum_tidy(kilter_sum *sum);

#endif
