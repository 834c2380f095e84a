#include "support.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

kilter_status(sp_fail)(kilter_error *error, kilter_status status, const char *format, ...) {
    if (error) {
        va_list args;
        va_start(args, format);
        error->status = status;
        vsnprintf(error->text, sizeof error->text, format, args);
        va_end(args);
    }
    return status;
}

uint64_t sp_mix64(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* --- writing bytes --- */

void sp_buffer_free(sp_buffer *buffer) {
    free(buffer->data);
    *buffer = (sp_buffer){0};
}

void sp_buffer_clear(sp_buffer *buffer) {
    buffer->size = 0;
    buffer->failed = false;
}

static bool reserve(sp_buffer *buffer, size_t more) {
    if (buffer->failed || more > SIZE_MAX / 4 - buffer->size)
        return buffer->failed = true, false;
    size_t needed = buffer->size + more;
    if (needed <= buffer->capacity)
        return true;
    uint8_t *data = realloc(buffer->data, 2 * needed + 64);
    if (!data)
        return buffer->failed = true, false;
    buffer->data = data;
    buffer->capacity = 2 * needed + 64;
    return true;
}

void sp_put_bytes(sp_buffer *buffer, const void *data, size_t size) {
    if (!reserve(buffer, size) || size == 0)
        return;
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
}

static void put_little(sp_buffer *buffer, uint64_t value, size_t bytes) {
    uint8_t text[8];
    for (size_t i = 0; i < bytes; i++)
        text[i] = (uint8_t)(value >> (8 * i));
    sp_put_bytes(buffer, text, bytes);
}

void sp_put_u8(sp_buffer *buffer, uint8_t value) {
    put_little(buffer, value, 1);
}

void sp_put_u32(sp_buffer *buffer, uint32_t value) {
    put_little(buffer, value, 4);
}

void sp_put_u64(sp_buffer *buffer, uint64_t value) {
    put_little(buffer, value, 8);
}

void sp_put_f64(sp_buffer *buffer, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    sp_put_u64(buffer, bits);
}

void sp_put_span(sp_buffer *buffer, const void *data, size_t size) {
    buffer->failed |= size > UINT32_MAX;
    sp_put_u32(buffer, (uint32_t)size);
    sp_put_bytes(buffer, data, size);
}

/* --- reading bytes --- */

sp_reader sp_reader_of(const void *data, size_t size) {
    return (sp_reader){.data = data, .size = size};
}

static const uint8_t *get_bytes(sp_reader *reader, size_t size) {
    if (reader->bad || size > reader->size - reader->at) {
        reader->bad = true;
        return NULL;
    }
    const uint8_t *bytes = reader->data + reader->at;
    reader->at += size;
    return bytes;
}

static uint64_t get_little(sp_reader *reader, size_t bytes) {
    const uint8_t *text = get_bytes(reader, bytes);
    uint64_t value = 0;
    for (size_t i = 0; text && i < bytes; i++)
        value |= (uint64_t)text[i] << (8 * i);
    return value;
}

uint8_t sp_get_u8(sp_reader *reader) {
    return (uint8_t)get_little(reader, 1);
}

uint32_t sp_get_u32(sp_reader *reader) {
    return (uint32_t)get_little(reader, 4);
}

uint64_t sp_get_u64(sp_reader *reader) {
    return get_little(reader, 8);
}

double sp_get_f64(sp_reader *reader) {
    uint64_t bits = sp_get_u64(reader);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

const uint8_t *sp_get_span(sp_reader *reader, size_t *size) {
    *size = sp_get_u32(reader);
    const uint8_t *bytes = get_bytes(reader, *size);
    if (!bytes)
        *size = 0;
    return bytes;
}

bool sp_reader_done(const sp_reader *reader) {
    return !reader->bad && reader->at == reader->size;
}
