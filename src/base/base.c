#include "base/base.h"

#include <float.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

kilter_status(kl_fail)(kilter_error *error, kilter_status status, const char *format, ...) {
    if (error) {
        va_list args;
        va_start(args, format);
        error->status = status;
        vsnprintf(error->text, sizeof error->text, format, args);
        va_end(args);
    }
    return status;
}

const char *kilter_status_text(kilter_status status) {
    switch (status) {
#define TEXT(name, text)                                                                                     \
    case KILTER_##name:                                                                                      \
        return text;
        KILTER_STATUS_LIST(TEXT)
#undef TEXT
    }
    return "not a status of this version";
}

void kl_buffer_free(kl_buffer *buffer) {
    if (!buffer->borrowed)
        free(buffer->data);
    *buffer = (kl_buffer){0};
}

void kl_buffer_clear(kl_buffer *buffer) {
    buffer->size = 0;
    buffer->failed = false;
}

/* Change the size of a buffer's memory as realloc() does. Return NULL if memory ran out; the old bytes then
 * stay valid. */
static uint8_t *move_bytes(const kl_buffer *buffer, size_t capacity) {
    if (!buffer->borrowed)
        return realloc(buffer->data, capacity);
    uint8_t *data = malloc(capacity);
    if (data)
        memcpy(data, buffer->data, buffer->size);
    return data;
}

static bool reserve(kl_buffer *buffer, size_t more) {
    if (buffer->failed || more > SIZE_MAX / 2 - buffer->size) {
        buffer->failed = true;
        return false;
    }
    size_t needed = buffer->size + more;
    if (needed <= buffer->capacity)
        return true;
    size_t capacity = buffer->capacity * 2 > needed ? buffer->capacity * 2 : needed < 64 ? 64 : needed;
    uint8_t *data = move_bytes(buffer, capacity);
    if (!data) {
        buffer->failed = true;
        return false;
    }
    buffer->data = data;
    buffer->capacity = capacity;
    buffer->borrowed = false;
    return true;
}

void kl_put_bytes(kl_buffer *buffer, const void *data, size_t size) {
    if (!reserve(buffer, size) || size == 0)
        return;
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
}

void kl_put_u8(kl_buffer *buffer, uint8_t value) {
    kl_put_bytes(buffer, &value, 1);
}

static void store_u32(uint8_t *to, uint32_t value) {
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

void kl_put_u32(kl_buffer *buffer, uint32_t value) {
    uint8_t bytes[4];
    store_u32(bytes, value);
    kl_put_bytes(buffer, bytes, sizeof bytes);
}

void kl_store_u64(uint8_t *bytes, uint64_t value) {
    store_u32(bytes, (uint32_t)value);
    store_u32(bytes + 4, (uint32_t)(value >> 32));
}

void kl_put_u64(kl_buffer *buffer, uint64_t value) {
    uint8_t bytes[8];
    kl_store_u64(bytes, value);
    kl_put_bytes(buffer, bytes, sizeof bytes);
}

void kl_put_f64(kl_buffer *buffer, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    kl_put_u64(buffer, bits);
}

void kl_put_span(kl_buffer *buffer, const void *data, size_t size) {
    if (size > UINT32_MAX) {
        buffer->failed = true;
        return;
    }
    kl_put_u32(buffer, (uint32_t)size);
    kl_put_bytes(buffer, data, size);
}

void kl_set_u32(kl_buffer *buffer, size_t at, uint32_t value) {
    if (!buffer->failed && at + 4 <= buffer->size)
        store_u32(buffer->data + at, value);
}

kl_reader kl_reader_of(const void *data, size_t size) {
    return (kl_reader){.data = data, .size = size};
}

const uint8_t *kl_get_bytes(kl_reader *reader, size_t size) {
    if (reader->bad || size > reader->size - reader->at) {
        reader->bad = true;
        return NULL;
    }
    const uint8_t *bytes = reader->data + reader->at;
    reader->at += size;
    return bytes;
}

uint8_t kl_get_u8(kl_reader *reader) {
    const uint8_t *bytes = kl_get_bytes(reader, 1);
    return bytes ? bytes[0] : 0;
}

uint32_t kl_get_u32(kl_reader *reader) {
    const uint8_t *b = kl_get_bytes(reader, 4);
    return b ? (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24 : 0;
}

uint64_t kl_load_u64(const uint8_t *bytes) {
    return (uint64_t)bytes[0] | (uint64_t)bytes[1] << 8 | (uint64_t)bytes[2] << 16 |
           (uint64_t)bytes[3] << 24 | (uint64_t)bytes[4] << 32 | (uint64_t)bytes[5] << 40 |
           (uint64_t)bytes[6] << 48 | (uint64_t)bytes[7] << 56;
}

uint64_t kl_get_u64(kl_reader *reader) {
    const uint8_t *bytes = kl_get_bytes(reader, 8);
    return bytes ? kl_load_u64(bytes) : 0;
}

double kl_get_f64(kl_reader *reader) {
    uint64_t bits = kl_get_u64(reader);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

const uint8_t *kl_get_span(kl_reader *reader, size_t *size) {
    *size = kl_get_u32(reader);
    const uint8_t *bytes = kl_get_bytes(reader, *size);
    if (!bytes)
        *size = 0;
    return bytes;
}

bool kl_reader_done(const kl_reader *reader) {
    return !reader->bad && reader->at == reader->size;
}

void kl_put_text(kl_buffer *buffer, const char *text) {
    kl_put_span(buffer, text, strlen(text));
}

void kl_read_text(kl_reader *r, void *text, size_t size) {
    size_t length;
    const uint8_t *bytes = kl_get_span(r, &length);
    r->bad |= length >= size || (bytes && memchr(bytes, '\0', length));
    if (r->bad || !bytes)
        length = 0;
    else
        memcpy(text, bytes, length);
    ((char *)text)[length] = '\0';
}

void kl_copy_label(char *label, size_t size, const uint8_t *bytes, size_t length) {
    if (length >= size)
        length = size - 1;
    if (bytes)
        memcpy(label, bytes, length);
    label[bytes ? length : 0] = '\0';
    for (char *c = label; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
}

void kl_read_label(kl_reader *r, void *label, size_t size) {
    size_t length;
    const uint8_t *bytes = kl_get_span(r, &length);
    kl_copy_label(label, size, bytes, length);
}

void kl_read_flag(kl_reader *r, bool *value, size_t size) {
    (void)size;
    uint8_t byte = kl_get_u8(r);
    r->bad |= byte > 1;
    *value = byte == 1;
}

void kl_read_time(kl_reader *r, double *value, size_t size) {
    (void)size;
    *value = kl_get_f64(r);
    r->bad |= !(*value >= 0 && *value <= DBL_MAX);
}

void *kl_array_grow(void *array, uint64_t *room, uint64_t needed, size_t each) {
    if (array && needed <= *room)
        return array;
    uint64_t more = needed + needed / 2;
    void *grown = more <= SIZE_MAX / each ? realloc(array, (size_t)more * each) : NULL;
    if (grown)
        *room = more;
    return grown;
}

const void *kl_aligned(kl_buffer *scratch, const void *data, size_t size) {
    if ((uintptr_t)data % _Alignof(max_align_t) == 0)
        return data;
    kl_buffer_clear(scratch);
    kl_put_bytes(scratch, data, size);
    if (size == 0 && !scratch->failed)
        kl_put_u8(scratch, 0); /* allocate one byte, so that an empty buffer has an address */
    return scratch->failed ? NULL : scratch->data;
}

uint64_t kl_mix64(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Mix one word into one lane. Two different lanes stay different if the same word is mixed into both. Two
 * different words mixed into equal lanes give different lanes. So a difference in a single word of the data
 * always changes the result.
 */
static uint64_t stir(uint64_t lane, uint64_t word) {
    /* an odd multiplier maps different inputs to different results */
    lane = (lane ^ word) * 0x9e3779b97f4a7c15u;
    return lane ^ (lane >> 29);
}

/* Mix the data into four independent lanes, so that the processor can overlap the multiplications. */
uint64_t kl_hash(const void *data, size_t size, uint64_t seed) {
    const uint8_t *bytes = data;
    uint64_t lanes[4], hash = kl_mix64(seed ^ size);
    for (unsigned i = 0; i < 4; i++)
        lanes[i] = kl_mix64(hash + i);
    size_t at = 0;
    for (; size - at >= 32; at += 32)
        for (unsigned i = 0; i < 4; i++)
            lanes[i] = stir(lanes[i], kl_load_u64(bytes + at + 8 * (size_t)i));
    for (; size - at >= 8; at += 8)
        lanes[at / 8 % 4] = stir(lanes[at / 8 % 4], kl_load_u64(bytes + at));
    /* the last word is padded with zeros; `hash` already depends on `size`, so padding cannot be mistaken
     * for data */
    uint8_t rest[8] = {0};
    if (at < size)
        memcpy(rest, bytes + at, size - at);
    hash = stir(hash, kl_load_u64(rest));
    for (unsigned i = 0; i < 4; i++)
        hash = kl_mix64(hash ^ lanes[i]);
    return hash;
}
