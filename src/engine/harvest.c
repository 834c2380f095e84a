/* Read, write and combine the values that peers send to the master. A value has a head, a sum of results, the
 * measurements of each worker (stats), and segments with results.
 *
 *     The head: u32 sum_bytes, u32 stats, u64 last. `last` is the offset of the last segment, 0: none.
 *     The sum, in runs that reduce: the combined results, padded to a multiple of 8 bytes.
 *     Measurements of each worker (stats), sorted by the worker's number: u32 worker, u64 tasks, and times.
 *     Segments: u64 lo, u32 worker, u32 count, u32 bytes, results. */
#include "engine/harvest.h"

#include <math.h>
#include <string.h>

enum {
    HEAD_BYTES = 16,
    LAST_AT = 8,     /* offset of the field `last` in the head of a value */
    STAT_BYTES = 44, /* worker, count, mean, m2, least, greatest */
    SEGMENT_BYTES = 20,
    COUNT_AT = 12, /* COUNT_AT, BYTES_AT: offsets of the fields `count` and `bytes` in a segment */
    BYTES_AT = 16,
};

static size_t padded(size_t bytes) {
    return (bytes + 7) / 8 * 8;
}

static void put_padding(kl_buffer *out, size_t bytes) {
    static const uint8_t zeros[8];
    kl_put_bytes(out, zeros, padded(bytes) - bytes);
}

static void put_stat(kl_buffer *out, const kl_harvest_stat *s) {
    kl_put_u32(out, s->worker);
    kl_put_u64(out, s->task_s.count);
    kl_put_f64(out, s->task_s.mean);
    kl_put_f64(out, s->task_s.m2);
    kl_put_f64(out, s->task_s.min);
    kl_put_f64(out, s->task_s.max);
}

static void put_segment(kl_buffer *out, const kl_harvest_segment *s) {
    kl_store_u64(out->data + LAST_AT, out->size);
    kl_put_u64(out, s->lo);
    kl_put_u32(out, s->worker);
    kl_put_u32(out, s->count);
    kl_put_span(out, s->results.data, s->results.size);
}

static void put_head(kl_buffer *out, size_t sum_bytes, uint32_t stats) {
    kl_put_u32(out, (uint32_t)sum_bytes);
    kl_put_u32(out, stats);
    kl_put_u64(out, 0);
}

void kl_harvest_task(kl_buffer *out, const kl_reaper *reaper, const kl_harvest_segment *task, double task_s) {
    kl_reader reader = kl_reader_of(task->results.data, task->results.size);
    bool failed;
    kilter_bytes result;
    kl_harvest_stat stat = {.worker = task->worker};
    kl_wire_next_result(&reader, &failed, &result);
    bool sums = reaper->sum_bytes > 0 && !failed;
    kl_stat_add(&stat.task_s, task_s, 0);
    kl_buffer_clear(out);
    put_head(out, sums ? result.size : 0, 1);
    if (sums) {
        kl_put_bytes(out, result.data, result.size);
        put_padding(out, result.size);
    }
    put_stat(out, &stat);
    if (!sums && !out->failed)
        put_segment(out, task);
}

/* --- reading --- */

static bool plausible(const kl_stat *s) {
    return s->count > 0 && isfinite(s->mean) && isfinite(s->m2) && isfinite(s->min) && isfinite(s->max) &&
           s->mean >= 0 && s->m2 >= 0 && s->min >= 0 && s->max >= s->min;
}

bool kl_harvest_next_stat(kl_harvest *h, kl_harvest_stat *stat) {
    kl_reader *r = &h->reader;
    if (h->stats == 0)
        return false;
    h->stats--;
    *stat = (kl_harvest_stat){.worker = kl_get_u32(r)};
    stat->task_s.count = kl_get_u64(r);
    stat->task_s.mean = kl_get_f64(r);
    stat->task_s.m2 = kl_get_f64(r);
    stat->task_s.min = kl_get_f64(r);
    stat->task_s.max = kl_get_f64(r);
    return !r->bad;
}

bool kl_harvest_next_segment(kl_harvest *h, kl_harvest_segment *segment) {
    kl_reader *r = &h->reader;
    if (r->at == r->size)
        return false;
    segment->lo = kl_get_u64(r);
    segment->worker = kl_get_u32(r);
    segment->count = kl_get_u32(r);
    segment->results.data = kl_get_span(r, &segment->results.size);
    return !r->bad;
}

static bool is_segment(const kl_harvest_segment *s) {
    kl_reader results = kl_reader_of(s->results.data, s->results.size);
    for (uint32_t i = 0; i < s->count; i++) {
        bool failed;
        kilter_bytes bytes;
        if (!kl_wire_next_result(&results, &failed, &bytes))
            return false;
    }
    return kl_reader_done(&results) && s->count > 0 && s->lo <= UINT64_MAX - s->count;
}

/* Read the head and the sum of a value. *last: offset of the last segment. */
static bool read_head(const void *value, size_t size, kl_harvest *h, uint64_t *last) {
    h->reader = kl_reader_of(value, size);
    kl_reader *r = &h->reader;
    h->sum.size = kl_get_u32(r);
    h->stats = kl_get_u32(r);
    *last = kl_get_u64(r);
    h->sum.data = kl_get_bytes(r, padded(h->sum.size));
    return !r->bad;
}

bool kl_harvest_read(const void *value, size_t size, size_t sum_bytes, kl_harvest *harvest) {
    uint64_t last, at = 0;
    kl_harvest_stat stat;
    kl_harvest_segment segment;
    if (!read_head(value, size, harvest, &last) || (harvest->sum.size > 0 && harvest->sum.size != sum_bytes))
        return false;
    kl_harvest check = *harvest;
    for (uint64_t before = 0; check.stats > 0; before = (uint64_t)stat.worker + 1)
        if (!kl_harvest_next_stat(&check, &stat) || !plausible(&stat.task_s) || stat.worker < before)
            return false;
    while (check.reader.at < check.reader.size) {
        at = check.reader.at;
        if (!kl_harvest_next_segment(&check, &segment) || !is_segment(&segment))
            return false;
    }
    return at == last;
}

/* --- combining --- */

/* Combine the result `more` with the sum at `sum`. false: memory ran out. */
static bool add_sum(kl_reaper *reaper, void *sum, kilter_bytes more) {
    const void *aligned = kl_aligned(&reaper->aligned, more.data, more.size);
    if (aligned)
        reaper->reducer.combine(sum, aligned, more.size, reaper->reducer.user);
    return aligned;
}

/* Add the segment to the value. If the segment's tasks follow the tasks of the value's last segment, append
 * the results to that last segment. */
static void add_segment(kl_buffer *into, const kl_harvest_segment *s) {
    uint64_t last = kl_load_u64(into->data + LAST_AT);
    kl_reader r = kl_reader_of(into->data + last, into->size - last);
    uint64_t lo = last > 0 ? kl_get_u64(&r) : 0;
    uint32_t worker = last > 0 ? kl_get_u32(&r) : 0, count = last > 0 ? kl_get_u32(&r) : 0;
    size_t bytes = into->size - last - SEGMENT_BYTES;
    if (last == 0 || worker != s->worker || lo + count != s->lo || bytes + s->results.size > UINT32_MAX / 4 ||
        count > UINT32_MAX - s->count) {
        put_segment(into, s);
        return;
    }
    kl_put_bytes(into, s->results.data, s->results.size);
    if (into->failed)
        return;
    kl_set_u32(into, (size_t)last + COUNT_AT, count + s->count);
    kl_set_u32(into, (size_t)last + BYTES_AT, (uint32_t)(bytes + s->results.size));
}

/* Add the measurements of a worker to the measurements of the same worker in `into`. false: `into` has no
 * measurements of this worker. */
static bool set_stat(kl_buffer *into, const kl_harvest_stat *more) {
    kl_harvest h;
    kl_harvest_stat stat;
    uint64_t last;
    read_head(into->data, into->size, &h, &last);
    for (size_t at = h.reader.at; kl_harvest_next_stat(&h, &stat); at = h.reader.at)
        if (stat.worker == more->worker) {
            size_t size = into->size;
            kl_stat_merge(&stat.task_s, &more->task_s);
            into->size = at;
            put_stat(into, &stat);
            into->size = size;
            return true;
        }
    return false;
}

/* Add the value `more` to `into` without moving memory. This is possible if `more` has measurements of only
 * one worker, and `into` has measurements of this worker, too. If `more` has a sum, `into` must also have a
 * sum. Return whether the addition was possible. *ok: false if memory ran out. */
static bool add_in_place(kl_reaper *reaper, kl_buffer *into, kl_harvest *more, bool *ok) {
    kl_harvest h, m = *more;
    kl_harvest_stat stat;
    uint64_t last;
    read_head(into->data, into->size, &h, &last);
    if (more->stats != 1 || (more->sum.size > 0 && h.sum.size == 0) || !kl_harvest_next_stat(&m, &stat) ||
        !set_stat(into, &stat))
        return false;
    *ok = more->sum.size == 0 || add_sum(reaper, into->data + HEAD_BYTES, more->sum);
    for (kl_harvest_segment s; *ok && kl_harvest_next_segment(&m, &s);)
        add_segment(into, &s);
    return true;
}

/* Merge the measurements of two values. Each value has its measurements sorted by worker. Return the number
 * of workers in the result. */
static uint32_t merge_stats(kl_buffer *out, kl_harvest *a, kl_harvest *b) {
    kl_harvest_stat x, y;
    bool has_x = kl_harvest_next_stat(a, &x), has_y = kl_harvest_next_stat(b, &y);
    uint32_t count = 0;
    for (; has_x || has_y; count++) {
        bool first = has_x && (!has_y || x.worker <= y.worker), same = has_x && has_y && x.worker == y.worker;
        if (same)
            kl_stat_merge(&x.task_s, &y.task_s);
        put_stat(out, first ? &x : &y);
        if (!first || same)
            has_y = kl_harvest_next_stat(b, &y);
        if (first)
            has_x = kl_harvest_next_stat(a, &x);
    }
    return count;
}

/* Write the combined sums of both values. false: memory ran out. */
static bool merge_sums(kl_reaper *reaper, kl_buffer *out, kilter_bytes a, kilter_bytes b) {
    kilter_bytes first = a.size > 0 ? a : b;
    if (first.size == 0)
        return true;
    kl_put_bytes(out, first.data, first.size);
    put_padding(out, first.size);
    return !out->failed && (a.size == 0 || b.size == 0 || add_sum(reaper, out->data + HEAD_BYTES, b));
}

static bool rebuild(kl_reaper *reaper, kl_buffer *into, kl_harvest *more) {
    kl_buffer *out = &reaper->scratch;
    kl_harvest h;
    uint64_t last;
    read_head(into->data, into->size, &h, &last);
    kl_buffer_clear(out);
    put_head(out, h.sum.size > 0 ? h.sum.size : more->sum.size, 0);
    if (!merge_sums(reaper, out, h.sum, more->sum))
        return false;
    uint32_t stats = merge_stats(out, &h, more);
    if (out->failed)
        return false;
    kl_set_u32(out, 4, stats);
    for (kl_harvest_segment s; !out->failed && kl_harvest_next_segment(&h, &s);)
        put_segment(out, &s);
    for (kl_harvest_segment s; !out->failed && kl_harvest_next_segment(more, &s);)
        add_segment(out, &s);
    if (out->failed)
        return false;
    kl_buffer kept = *into;
    *into = *out;
    *out = kept;
    return true;
}

bool kl_harvest_add(void *self, kl_buffer *into, const void *value, size_t size) {
    kl_reaper *reaper = self;
    kl_harvest more;
    bool ok = true;
    if (!kl_harvest_read(value, size, reaper->sum_bytes, &more))
        return false;
    if (into->size == 0)
        kl_put_bytes(into, value, size);
    else if (!add_in_place(reaper, into, &more, &ok))
        ok = rebuild(reaper, into, &more);
    return ok && !into->failed;
}

bool kl_harvest_check(void *self, const void *value, size_t size) {
    const kl_reaper *reaper = self;
    kl_harvest h;
    return kl_harvest_read(value, size, reaper->sum_bytes, &h);
}

void kl_reaper_free(kl_reaper *reaper) {
    kl_buffer_free(&reaper->scratch);
    kl_buffer_free(&reaper->aligned);
}
