#include "move/wire.h"

#include <math.h>
#include <string.h>

static const uint32_t MAGIC = 0x544c494b; /* "KILT" */

kl_message_type kl_wire_type(const void *data, size_t size) {
    const uint8_t *bytes = data;
    return size > 0 && bytes[0] >= KL_HELLO && bytes[0] <= KL_DISBAND ? (kl_message_type)bytes[0]
                                                                      : (kl_message_type)0;
}

static kl_reader body_of(const void *data, size_t size) {
    kl_reader reader = kl_reader_of(data, size);
    kl_get_u8(&reader); /* skip the type of the message, which the caller has checked */
    return reader;
}

/* Numbers of zero bytes in messages, which align the data after them; see wire.h. */
enum { SHARED_GAP = 7, CHUNK_GAP = 10, RESULTS_GAP = 13 };

static void put_gap(kl_buffer *out, size_t size) {
    static const uint8_t zeros[16];
    kl_put_bytes(out, zeros, size);
}

/* The members of each message, in the order in which they are written. */
/* clang-format off */
#define HELLO(X)   X(u64, pid) X(label, host) X(label, binding) X(label, program)
#define HELLO2(X)  X(label, program_version) X(flag, attends)
#define WELCOME(X) X(u32, worker) X(u64, tasks_most) X(u64, memory_most)
#define PART(X)    X(u64, chunk) X(u64, lo) X(u64, hi)
#define HEARTBEAT(X)   X(u64, chunk) X(u64, task) X(time, elapsed_s) X(time, cpu_s) X(time, usual_share) X(u64, memory)
#define CHUNK(X)   X(u64, run) X(u64, chunk) X(u64, lo) X(u64, count) X(u64, shared) X(u64, result_bytes) \
                   X(time, lead_s) X(time, held_s)
#define RESULTS(X) X(flag, more) X(u32, segments) X(time, sent_s) X(time, cpu_s) X(time, delay_s) \
                   X(time, round_trip_s) X(time, round_trip_bytes)
#define SEGMENT(X) X(u64, chunk) X(u64, lo) X(u64, count) X(flag, last) X(time, busy_s) X(time, began_s) \
                   X(f64, ended_s) X(time, unit_s.mean) X(time, unit_s.m2) X(time, unit_s.min) X(time, unit_s.max)
/* clang-format on */

void kl_wire_put_hello(kl_buffer *out, const kl_hello *hello) {
    kl_put_u8(out, KL_HELLO);
    kl_put_u32(out, MAGIC);
    kl_put_u32(out, hello->version);
    const kl_hello *m = hello;
    HELLO(KL_PUT_MEMBER)
    HELLO2(KL_PUT_MEMBER)
}

bool kl_wire_get_hello(const void *data, size_t size, kl_hello *m) {
    kl_reader body = body_of(data, size), *r = &body;
    if (kl_get_u32(r) != MAGIC)
        return false;
    *m = (kl_hello){.version = kl_get_u32(r)};
    HELLO(KL_GET_MEMBER)
    if (m->version == KL_WIRE_VERSION) { /* a message of another version may lack the members from here on */
        HELLO2(KL_GET_MEMBER)
    }
    /* A message of another version may have further members. Accept it here, so that the caller refuses it
     * because of its version, and not as malformed. */
    return !r->bad && (kl_reader_done(r) || m->version != KL_WIRE_VERSION);
}

void kl_wire_put_welcome(kl_buffer *out, const kl_welcome *m) {
    kl_put_u8(out, KL_WELCOME);
    WELCOME(KL_PUT_MEMBER)
}

bool kl_wire_get_welcome(const void *data, size_t size, kl_welcome *m) {
    kl_reader body = body_of(data, size), *r = &body;
    WELCOME(KL_GET_MEMBER)
    return kl_reader_done(r);
}

void kl_wire_put_plain(kl_buffer *out, kl_message_type type) {
    kl_put_u8(out, (uint8_t)type);
}

bool kl_wire_get_plain(const void *data, size_t size) {
    (void)data;
    return size == 1;
}

void kl_wire_put_bytes(kl_buffer *out, kl_message_type type, const void *bytes, size_t size) {
    kl_put_u8(out, (uint8_t)type);
    kl_put_bytes(out, bytes, size);
}

void kl_wire_get_text(const void *data, size_t size, char *text, size_t capacity) {
    kl_reader r = body_of(data, size);
    size_t length = r.size - r.at;
    kl_copy_label(text, capacity, kl_get_bytes(&r, length), length);
}

void kl_wire_put_shared(kl_buffer *out, const void *bytes, size_t size) {
    kl_put_u8(out, KL_SHARED);
    kl_put_u64(out, kl_hash(bytes, size, 0));
    put_gap(out, SHARED_GAP);
    kl_put_bytes(out, bytes, size);
}

bool kl_wire_get_shared(const void *data, size_t size, uint64_t *hash, kilter_bytes *bytes) {
    kl_reader r = body_of(data, size);
    *hash = kl_get_u64(&r);
    kl_get_bytes(&r, SHARED_GAP);
    bytes->size = r.size - r.at;
    bytes->data = kl_get_bytes(&r, bytes->size);
    return !r.bad;
}

void kl_wire_put_part(kl_buffer *out, kl_message_type type, const kl_part *m) {
    kl_put_u8(out, (uint8_t)type);
    PART(KL_PUT_MEMBER)
}

bool kl_wire_get_part(const void *data, size_t size, kl_part *m) {
    kl_reader body = body_of(data, size), *r = &body;
    PART(KL_GET_MEMBER)
    return kl_reader_done(r) && m->lo <= m->hi;
}

static bool positive(double x) {
    return isfinite(x) && x > 0;
}

void kl_wire_put_heartbeat(kl_buffer *out, const kl_heartbeat *m) {
    kl_put_u8(out, KL_HEARTBEAT);
    HEARTBEAT(KL_PUT_MEMBER)
}

bool kl_wire_get_heartbeat(const void *data, size_t size, kl_heartbeat *m) {
    kl_reader body = body_of(data, size), *r = &body;
    HEARTBEAT(KL_GET_MEMBER)
    return kl_reader_done(r);
}

enum { WEIGHTED = 1, INPUTS = 2, QUIET = 4 };

void kl_wire_put_chunk(kl_buffer *out, const kl_chunk_head *m) {
    kl_put_u8(out, KL_CHUNK);
    CHUNK(KL_PUT_MEMBER)
    kl_put_u8(out,
              (uint8_t)((m->weighted ? WEIGHTED : 0) | (m->inputs ? INPUTS : 0) | (m->quiet ? QUIET : 0)));
    put_gap(out, CHUNK_GAP);
}

static bool range_ok(uint64_t lo, uint64_t count) {
    return count > 0 && count <= UINT64_MAX - lo;
}

bool kl_wire_get_chunk(const void *data, size_t size, kl_chunk_head *m, kl_reader *weights,
                       kl_reader *inputs) {
    kl_reader body = body_of(data, size), *r = &body;
    *m = (kl_chunk_head){0};
    CHUNK(KL_GET_MEMBER)
    uint8_t flags = kl_get_u8(r);
    kl_get_bytes(r, CHUNK_GAP);
    if (r->bad || (flags & ~(WEIGHTED | INPUTS | QUIET)) || !range_ok(m->lo, m->count))
        return false;
    m->weighted = flags & WEIGHTED;
    m->inputs = flags & INPUTS;
    m->quiet = flags & QUIET;
    *weights = *r;
    for (uint64_t i = 0; m->weighted && i < m->count; i++)
        if (!positive(kl_get_f64(r)))
            return false;
    *inputs = *r;
    size_t length;
    for (uint64_t i = 0; m->inputs && i < m->count && !r->bad; i++)
        kl_get_span(r, &length);
    return kl_reader_done(r);
}

/* The head of RESULTS. RESULTS_MEMBERS_AT: offset of its members, which follow the type. RESULTS_HEAD_BYTES:
 * size of the head; a time has 8 bytes. */
enum { RESULTS_MEMBERS_AT = 1, RESULTS_HEAD_BYTES = 1 + 1 + 4 + 5 * 8 + RESULTS_GAP };

static void put_results_head(kl_buffer *out, const kl_results_head *m) {
    RESULTS(KL_PUT_MEMBER)
}

void kl_wire_begin_results(kl_buffer *out) {
    kl_put_u8(out, KL_RESULTS);
    put_results_head(out, &(kl_results_head){0});
    put_gap(out, RESULTS_GAP);
}

static void put_segment_head(kl_buffer *out, const kl_segment *m) {
    SEGMENT(KL_PUT_MEMBER)
}

void kl_wire_begin_segment(kl_buffer *out, const kl_segment *begun) {
    put_segment_head(out, begun);
}

size_t kl_wire_begin_result(kl_buffer *out) {
    size_t at = out->size;
    kl_put_u32(out, 0);
    return at;
}

void kl_wire_end_result(kl_buffer *out, size_t result_at, bool failed) {
    kl_set_u32(out, result_at, (uint32_t)(out->size - result_at - 4) | (failed ? KL_FAILED : 0));
}

void kl_wire_end_segment(kl_buffer *out, size_t segment_at, const kl_segment *segment) {
    if (out->failed)
        return;
    size_t end = out->size;
    out->size = segment_at; /* write the segment's head again, because its values are known only now */
    put_segment_head(out, segment);
    out->size = end;
}

void kl_wire_end_results(kl_buffer *out, const kl_results_head *head) {
    if (out->failed)
        return;
    size_t end = out->size;
    out->size = RESULTS_MEMBERS_AT;
    put_results_head(out, head);
    out->size = end;
}

kl_reader kl_wire_read_results(const void *data, size_t size) {
    kl_reader reader = kl_reader_of(data, size);
    kl_get_bytes(&reader, RESULTS_HEAD_BYTES);
    return reader;
}

bool kl_wire_next_segment(kl_reader *r, kl_segment *m) {
    *m = (kl_segment){0};
    SEGMENT(KL_GET_MEMBER)
    m->unit_s.count = m->count;
    return !r->bad && range_ok(m->lo, m->count) && m->ended_s >= m->began_s && isfinite(m->ended_s);
}

bool kl_wire_next_result(kl_reader *reader, bool *failed, kilter_bytes *bytes) {
    uint32_t length = kl_get_u32(reader);
    *failed = length & KL_FAILED;
    bytes->size = length & ~(uint32_t)KL_FAILED;
    bytes->data = kl_get_bytes(reader, bytes->size);
    bytes->size = reader->bad ? 0 : bytes->size;
    return !reader->bad;
}

/* The first number of a sum. Results begin with a length, which cannot have this value, so the number tells a
 * sum from results. */
static const uint32_t SUM_MARK = UINT32_MAX;

void kl_wire_put_sum(kl_buffer *out, const kl_ranges *tasks, kilter_bytes value) {
    kl_put_u32(out, SUM_MARK);
    kl_put_u32(out, (uint32_t)tasks->count);
    for (size_t i = 0; i < tasks->count; i++) {
        kl_put_u64(out, tasks->at[i].lo);
        kl_put_u64(out, tasks->at[i].hi);
    }
    kl_put_bytes(out, value.data, value.size);
}

kl_span kl_wire_sum_span(const kl_wire_sum *sum, uint32_t i) {
    kl_reader r = kl_reader_of(sum->at + i * sizeof(kl_span), sizeof(kl_span));
    uint64_t lo = kl_get_u64(&r);
    return (kl_span){lo, kl_get_u64(&r)};
}

bool kl_wire_read_sum(const void *data, size_t size, kl_wire_sum *sum) {
    kl_reader r = kl_reader_of(data, size);
    if (kl_get_u32(&r) != SUM_MARK)
        return false;
    sum->spans = kl_get_u32(&r);
    sum->at = kl_get_bytes(&r, sum->spans * sizeof(kl_span));
    sum->value.size = r.bad ? 0 : size - r.at;
    sum->value.data = kl_get_bytes(&r, sum->value.size);
    bool good = !r.bad && sum->spans > 0 && sum->value.size > 0;
    for (uint32_t i = 0; i < sum->spans && good; i++) {
        kl_span span = kl_wire_sum_span(sum, i);
        good = span.lo < span.hi;
    }
    return good;
}

static bool skip_results(kl_reader *reader, uint64_t count) {
    bool failed;
    kilter_bytes bytes;
    for (uint64_t i = 0; i < count; i++)
        if (!kl_wire_next_result(reader, &failed, &bytes))
            return false;
    return true;
}

bool kl_wire_check_results(const void *data, size_t size, kl_results_head *m) {
    kl_reader body = body_of(data, size), *r = &body;
    *m = (kl_results_head){0};
    RESULTS(KL_GET_MEMBER)
    kl_get_bytes(r, RESULTS_GAP);
    if (r->bad)
        return false;
    kl_segment segment;
    for (uint32_t i = 0; i < m->segments; i++)
        if (!kl_wire_next_segment(r, &segment) || segment.ended_s > m->sent_s ||
            !skip_results(r, segment.count))
            return false;
    return kl_reader_done(r);
}
