#include "move/wire.h"

#include <math.h>
#include <string.h>

static const uint32_t MAGIC = 0x544c494b; /* "KILT" */

kl_message_type kl_wire_type(const void *data, size_t size) {
    const uint8_t *bytes = data;
    return size > 0 && bytes[0] >= KL_HELLO && bytes[0] <= KL_RENEW ? (kl_message_type)bytes[0]
                                                                    : (kl_message_type)0;
}

static kl_reader body_of(const void *data, size_t size) {
    kl_reader reader = kl_reader_of(data, size);
    kl_get_u8(&reader); /* the type, which the caller has looked at */
    return reader;
}

/* Zeros, so that what follows is aligned; see wire.h. */
enum { SHARED_GAP = 7, CHUNK_GAP = 10, RESULTS_GAP = 13 };

static void put_gap(kl_buffer *out, size_t size) {
    static const uint8_t zeros[16];
    kl_put_bytes(out, zeros, size);
}

static void put_text(kl_buffer *out, const char *text) {
    kl_put_span(out, text, strlen(text));
}

static void take_text(const uint8_t *bytes, size_t length, char *text, size_t size) {
    if (length >= size)
        length = size - 1;
    if (bytes)
        memcpy(text, bytes, length);
    text[length] = '\0';
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127) /* it will be printed on somebody's terminal */
            *c = '?';
}

static void get_text(kl_reader *reader, char *text, size_t size) {
    size_t length;
    const uint8_t *bytes = kl_get_span(reader, &length);
    take_text(bytes, length, text, size);
}

void kl_wire_put_hello(kl_buffer *out, const kl_hello *hello) {
    kl_put_u8(out, KL_HELLO);
    kl_put_u32(out, MAGIC);
    kl_put_u32(out, hello->version);
    kl_put_u64(out, hello->pid);
    put_text(out, hello->host);
    put_text(out, hello->binding);
    put_text(out, hello->program);
    put_text(out, hello->program_version);
    kl_put_u8(out, hello->attends);
}

bool kl_wire_get_hello(const void *data, size_t size, kl_hello *hello) {
    kl_reader r = body_of(data, size);
    if (kl_get_u32(&r) != MAGIC)
        return false;
    *hello = (kl_hello){.version = kl_get_u32(&r)};
    hello->pid = kl_get_u64(&r);
    get_text(&r, hello->host, sizeof hello->host);
    get_text(&r, hello->binding, sizeof hello->binding);
    get_text(&r, hello->program, sizeof hello->program);
    if (hello->version == KL_WIRE_VERSION) { /* another one need not say this */
        get_text(&r, hello->program_version, sizeof hello->program_version);
        hello->attends = kl_get_u8(&r);
    }
    /* another version may have more to say: it is refused by its number, not called malformed */
    return !r.bad && (kl_reader_done(&r) || hello->version != KL_WIRE_VERSION);
}

void kl_wire_put_welcome(kl_buffer *out, const kl_welcome *welcome) {
    kl_put_u8(out, KL_WELCOME);
    kl_put_u32(out, welcome->worker);
    kl_put_u64(out, welcome->tasks_most);
    kl_put_u64(out, welcome->memory_most);
}

bool kl_wire_get_welcome(const void *data, size_t size, kl_welcome *welcome) {
    kl_reader r = body_of(data, size);
    welcome->worker = kl_get_u32(&r);
    welcome->tasks_most = kl_get_u64(&r);
    welcome->memory_most = kl_get_u64(&r);
    return kl_reader_done(&r);
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
    take_text(kl_get_bytes(&r, length), length, text, capacity);
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

void kl_wire_put_part(kl_buffer *out, kl_message_type type, const kl_part *part) {
    kl_put_u8(out, (uint8_t)type);
    kl_put_u64(out, part->chunk);
    kl_put_u64(out, part->lo);
    kl_put_u64(out, part->hi);
}

bool kl_wire_get_part(const void *data, size_t size, kl_part *part) {
    kl_reader r = body_of(data, size);
    part->chunk = kl_get_u64(&r);
    part->lo = kl_get_u64(&r);
    part->hi = kl_get_u64(&r);
    return kl_reader_done(&r) && part->lo <= part->hi;
}

static bool positive(double x) {
    return isfinite(x) && x > 0;
}
static bool not_negative(double x) {
    return isfinite(x) && x >= 0;
}

void kl_wire_put_pulse(kl_buffer *out, const kl_pulse *pulse) {
    kl_put_u8(out, KL_PULSE);
    kl_put_u64(out, pulse->chunk);
    kl_put_u64(out, pulse->task);
    kl_put_f64(out, pulse->elapsed_s);
    kl_put_f64(out, pulse->cpu_s);
    kl_put_f64(out, pulse->usual_share);
    kl_put_u64(out, pulse->memory);
}

bool kl_wire_get_pulse(const void *data, size_t size, kl_pulse *pulse) {
    kl_reader r = body_of(data, size);
    pulse->chunk = kl_get_u64(&r);
    pulse->task = kl_get_u64(&r);
    pulse->elapsed_s = kl_get_f64(&r);
    pulse->cpu_s = kl_get_f64(&r);
    pulse->usual_share = kl_get_f64(&r);
    pulse->memory = kl_get_u64(&r);
    return kl_reader_done(&r) && not_negative(pulse->elapsed_s) && not_negative(pulse->cpu_s) &&
           not_negative(pulse->usual_share);
}

enum { WEIGHTED = 1, INPUTS = 2, QUIET = 4 };

void kl_wire_put_chunk(kl_buffer *out, const kl_chunk_head *head) {
    kl_put_u8(out, KL_CHUNK);
    kl_put_u64(out, head->run);
    kl_put_u64(out, head->chunk);
    kl_put_u64(out, head->lo);
    kl_put_u64(out, head->count);
    kl_put_u64(out, head->shared);
    kl_put_u64(out, head->result_bytes);
    kl_put_f64(out, head->lead_s);
    kl_put_f64(out, head->held_s);
    kl_put_u8(out, (uint8_t)((head->weighted ? WEIGHTED : 0) | (head->inputs ? INPUTS : 0) |
                             (head->quiet ? QUIET : 0)));
    put_gap(out, CHUNK_GAP);
}

static bool range_ok(uint64_t lo, uint64_t count) {
    return count > 0 && count <= UINT64_MAX - lo;
}

bool kl_wire_get_chunk(const void *data, size_t size, kl_chunk_head *head, kl_reader *weights,
                       kl_reader *inputs) {
    kl_reader r = body_of(data, size);
    *head = (kl_chunk_head){0};
    head->run = kl_get_u64(&r); /* one by one: the order inside an initialiser is the compiler's */
    head->chunk = kl_get_u64(&r);
    head->lo = kl_get_u64(&r);
    head->count = kl_get_u64(&r);
    head->shared = kl_get_u64(&r);
    head->result_bytes = kl_get_u64(&r);
    head->lead_s = kl_get_f64(&r);
    head->held_s = kl_get_f64(&r);
    uint8_t flags = kl_get_u8(&r);
    kl_get_bytes(&r, CHUNK_GAP);
    if (r.bad || (flags & ~(WEIGHTED | INPUTS | QUIET)) || !range_ok(head->lo, head->count) ||
        !not_negative(head->lead_s) || !not_negative(head->held_s))
        return false;
    head->weighted = flags & WEIGHTED;
    head->inputs = flags & INPUTS;
    head->quiet = flags & QUIET;
    *weights = r;
    for (uint64_t i = 0; head->weighted && i < head->count; i++)
        if (!positive(kl_get_f64(&r)))
            return false;
    *inputs = r;
    size_t length;
    for (uint64_t i = 0; head->inputs && i < head->count && !r.bad; i++)
        kl_get_span(&r, &length);
    return kl_reader_done(&r);
}

/* type, flags, number of segments; when it was sent, CPU time, a round trip's time and bytes */
enum {
    FLAGS_AT = 1,
    SEGMENTS_AT = 2,
    RESULTS_TIMES = 5,
    RESULTS_HEAD_BYTES = 6 + 8 * RESULTS_TIMES + RESULTS_GAP
};

void kl_wire_begin_results(kl_buffer *out) {
    kl_put_u8(out, KL_RESULTS);
    kl_put_u8(out, 0);
    kl_put_u32(out, 0);
    for (int i = 0; i < RESULTS_TIMES; i++)
        kl_put_f64(out, 0);
    put_gap(out, RESULTS_GAP);
}

static void put_segment_head(kl_buffer *out, const kl_segment *s) {
    kl_put_u64(out, s->chunk);
    kl_put_u64(out, s->lo);
    kl_put_u64(out, s->count);
    kl_put_u8(out, s->last);
    kl_put_f64(out, s->busy_s);
    kl_put_f64(out, s->began_s);
    kl_put_f64(out, s->ended_s);
    kl_put_f64(out, s->unit_s.mean);
    kl_put_f64(out, s->unit_s.m2);
    kl_put_f64(out, s->unit_s.min);
    kl_put_f64(out, s->unit_s.max);
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
    out->size = segment_at; /* the head is rewritten in its place, now that its numbers are known */
    put_segment_head(out, segment);
    out->size = end;
}

void kl_wire_end_results(kl_buffer *out, const kl_results_head *head) {
    if (out->failed)
        return;
    size_t end = out->size;
    out->data[FLAGS_AT] = head->more;
    out->size = SEGMENTS_AT;
    kl_put_u32(out, head->segments);
    kl_put_f64(out, head->sent_s);
    kl_put_f64(out, head->cpu_s);
    kl_put_f64(out, head->delay_s);
    kl_put_f64(out, head->round_trip_s);
    kl_put_f64(out, head->round_trip_bytes);
    out->size = end;
}

kl_reader kl_wire_read_results(const void *data, size_t size) {
    kl_reader reader = kl_reader_of(data, size);
    kl_get_bytes(&reader, RESULTS_HEAD_BYTES);
    return reader;
}

bool kl_wire_next_segment(kl_reader *r, kl_segment *s) {
    *s = (kl_segment){0};
    s->chunk = kl_get_u64(r);
    s->lo = kl_get_u64(r);
    s->count = kl_get_u64(r);
    uint8_t last = kl_get_u8(r);
    s->last = last;
    s->busy_s = kl_get_f64(r);
    s->began_s = kl_get_f64(r);
    s->ended_s = kl_get_f64(r);
    s->unit_s.count = s->count;
    s->unit_s.mean = kl_get_f64(r);
    s->unit_s.m2 = kl_get_f64(r);
    s->unit_s.min = kl_get_f64(r);
    s->unit_s.max = kl_get_f64(r);
    return !r->bad && last <= 1 && range_ok(s->lo, s->count) && not_negative(s->busy_s) &&
           not_negative(s->began_s) && not_negative(s->ended_s - s->began_s) &&
           not_negative(s->unit_s.mean) && not_negative(s->unit_s.m2) && not_negative(s->unit_s.min) &&
           not_negative(s->unit_s.max);
}

bool kl_wire_next_result(kl_reader *reader, bool *failed, kilter_bytes *bytes) {
    uint32_t length = kl_get_u32(reader);
    *failed = length & KL_FAILED;
    bytes->size = length & ~(uint32_t)KL_FAILED;
    bytes->data = kl_get_bytes(reader, bytes->size);
    bytes->size = reader->bad ? 0 : bytes->size;
    return !reader->bad;
}

static bool skip_results(kl_reader *reader, uint64_t count) {
    bool failed;
    kilter_bytes bytes;
    for (uint64_t i = 0; i < count; i++)
        if (!kl_wire_next_result(reader, &failed, &bytes))
            return false;
    return true;
}

bool kl_wire_check_results(const void *data, size_t size, kl_results_head *head) {
    kl_reader r = body_of(data, size);
    uint8_t flags = kl_get_u8(&r);
    *head = (kl_results_head){.more = flags & 1};
    head->segments = kl_get_u32(&r);
    head->sent_s = kl_get_f64(&r);
    head->cpu_s = kl_get_f64(&r);
    head->delay_s = kl_get_f64(&r);
    head->round_trip_s = kl_get_f64(&r);
    head->round_trip_bytes = kl_get_f64(&r);
    kl_get_bytes(&r, RESULTS_GAP);
    if (r.bad || flags > 1 || !not_negative(head->sent_s) || !not_negative(head->cpu_s) ||
        !not_negative(head->delay_s) || !not_negative(head->round_trip_s) ||
        !not_negative(head->round_trip_bytes))
        return false;
    kl_segment segment;
    for (uint32_t i = 0; i < head->segments; i++)
        if (!kl_wire_next_segment(&r, &segment) || segment.ended_s > head->sent_s ||
            !skip_results(&r, segment.count))
            return false;
    return kl_reader_done(&r);
}
