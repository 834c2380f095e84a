/* Messages of runs that are organised by peers, as bytes. */
#include <string.h>

#include "move/wire.h"

/* clang-format off */
#define PEERS(X)  X(u64, run) X(u64, tasks) X(u32, number) X(u32, peers) X(u64, shared) X(u64, result_bytes) \
                  X(flag, reduces) X(flag, inputs) X(text, policy) X(u64, seed) X(text, signals)
#define NOTE(X)   X(u64, run) X(u32, from) X(u32, worker)
#define WHERE(X)  X(u64, run) X(u32, number) X(u32, worker) X(text, address)
#define WANTED(X) X(u64, run) X(u64, lo) X(u64, hi)
/* clang-format on */

static kl_reader body_of(const void *data, size_t size) {
    kl_reader reader = kl_reader_of(data, size);
    kl_get_u8(&reader); /* skip the type of the message, which the caller has checked */
    return reader;
}

void kl_wire_put_peers(kl_buffer *out, const kl_peers_head *m, const kl_ranges *tasks) {
    kl_put_u8(out, KL_PEERS);
    PEERS(KL_PUT_MEMBER)
    for (size_t i = 0; i < tasks->count; i++) {
        kl_put_u64(out, tasks->at[i].lo);
        kl_put_u64(out, tasks->at[i].hi);
    }
}

bool kl_wire_get_peers(const void *data, size_t size, kl_peers_head *m, kl_ranges *tasks) {
    kl_reader body = body_of(data, size), *r = &body;
    PEERS(KL_GET_MEMBER)
    bool ok = !r->bad && m->number > 0;
    while (ok && !kl_reader_done(r)) {
        kl_span span = {kl_get_u64(r), kl_get_u64(r)};
        ok = !r->bad && span.lo < span.hi && span.hi <= m->tasks && kl_ranges_add(tasks, span);
    }
    return ok;
}

void kl_wire_put_note(kl_buffer *out, const kl_note_head *m, const void *note, size_t size) {
    kl_put_u8(out, KL_NOTE);
    NOTE(KL_PUT_MEMBER)
    kl_put_bytes(out, note, size);
}

bool kl_wire_get_note(const void *data, size_t size, kl_note_head *m, kilter_bytes *note) {
    kl_reader body = body_of(data, size), *r = &body;
    NOTE(KL_GET_MEMBER)
    note->size = r->size - r->at;
    note->data = kl_get_bytes(r, note->size);
    return !r->bad;
}

void kl_wire_put_where(kl_buffer *out, kl_message_type type, const kl_where *m) {
    kl_put_u8(out, (uint8_t)type);
    WHERE(KL_PUT_MEMBER)
}

bool kl_wire_get_where(const void *data, size_t size, kl_where *m) {
    kl_reader body = body_of(data, size), *r = &body;
    WHERE(KL_GET_MEMBER)
    return kl_reader_done(r);
}

void kl_wire_put_number(kl_buffer *out, kl_message_type type, uint64_t number) {
    kl_put_u8(out, (uint8_t)type);
    kl_put_u64(out, number);
}

bool kl_wire_get_number(const void *data, size_t size, uint64_t *number) {
    kl_reader body = body_of(data, size);
    *number = kl_get_u64(&body);
    return kl_reader_done(&body);
}

void kl_wire_put_wanted(kl_buffer *out, kl_message_type type, const kl_wanted *m) {
    kl_put_u8(out, (uint8_t)type);
    WANTED(KL_PUT_MEMBER)
}

bool kl_wire_get_wanted(const void *data, size_t size, kl_wanted *m) {
    kl_reader body = body_of(data, size), *r = &body;
    WANTED(KL_GET_MEMBER)
    return kl_reader_done(r) && m->lo < m->hi;
}

bool kl_wire_get_inputs(const void *data, size_t size, kl_wanted *m, kl_reader *inputs) {
    kl_reader body = body_of(data, size), *r = &body;
    WANTED(KL_GET_MEMBER)
    if (r->bad || m->lo >= m->hi || m->hi - m->lo > size)
        return false;
    *inputs = *r;
    for (uint64_t i = m->lo; i < m->hi; i++) {
        size_t bytes;
        kl_get_span(r, &bytes);
    }
    return kl_reader_done(r);
}
