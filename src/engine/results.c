/* Handle the results that workers send, and the tasks that workers return without having done them. If
 * several workers send a result for a task, only the first result counts. */
#include <stdio.h>

#include "engine/master_private.h"

/* Record the tasks among `tasks` that failed. `reader` reads the results of all `tasks`. */
static void record_failures(kl_master *m, const member *one, kl_span tasks, kl_reader reader, bool final) {
    for (uint64_t task = tasks.lo; task < tasks.hi; task++) {
        bool failed;
        kilter_bytes bytes;
        char text[KILTER_ERROR_TEXT_BYTES];
        kl_wire_next_result(&reader, &failed, &bytes);
        if (!failed)
            continue;
        snprintf(text, sizeof text, "%.*s", (int)(bytes.size < sizeof text ? bytes.size : sizeof text - 1),
                 bytes.size > 0 ? (const char *)bytes.data : "");
        kl_master_record_failure(m, one, (kl_trace_failure_row){.task = task, .final = final, .text = text});
    }
}

/* Let a task that has failed be tried again. The task is the only one in `span`, and the reader `result`
 * reads its result. */
static kilter_status try_again(kl_master *m, const member *one, const kl_chunk *chunk, kl_span span,
                               kl_reader result, kilter_error *error) {
    bool at_other;
    record_failures(m, one, span, result, false);
    kilter_status status = kl_master_part_twins(m, chunk->id, span, &at_other, error);
    if (status == KILTER_OK && kl_tally_add(&m->balance.ledger.failures, span) != KILTER_OK)
        return kl_fail(error, KILTER_ERR_MEMORY, "trying a task again: memory ran out");
    return status == KILTER_OK && !at_other ? kl_master_suspect(m, one, span, error) : status;
}

/* --- taking results --- */

/* Return whether the segment contains results of this chunk, and begins with task `at`. */
static bool segment_fits(const kl_chunk *chunk, uint64_t at, const kl_segment *s) {
    return s->chunk == chunk->id && s->lo == at && s->count <= chunk->hi - at &&
           s->last == (at + s->count == chunk->hi);
}

/* Return whether the segments of a message are in the order in which workers do their chunks. The segments of
 * the oldest chunk must come first, then those of the next chunk. The message was checked before. */
static bool segments_fit(const member *one, const kl_message *message, uint32_t segments) {
    kl_reader reader = kl_wire_read_results(message->data, message->size);
    const kl_chunk *chunk = one->chunks, *end = chunk + one->chunk_count;
    uint64_t at = chunk < end ? chunk->at : 0;
    for (uint32_t i = 0; i < segments; i++) {
        kl_segment s;
        bool failed;
        kilter_bytes bytes;
        kl_wire_next_segment(&reader, &s);
        if (chunk == end || !segment_fits(chunk, at, &s))
            return false;
        at += s.count;
        if (s.last)
            at = ++chunk < end ? chunk->at : 0;
        for (uint64_t k = 0; k < s.count; k++)
            kl_wire_next_result(&reader, &failed, &bytes);
    }
    return true;
}

/* Let the reader skip the results of `tasks`. Return how many of these results are failures. */
static uint64_t read_results(kl_reader *reader, kl_span tasks) {
    uint64_t failures = 0;
    for (uint64_t i = tasks.lo; i < tasks.hi; i++) {
        bool failed;
        kilter_bytes bytes;
        kl_wire_next_result(reader, &failed, &bytes);
        failures += failed;
    }
    return failures;
}

/* Return the first of these tasks that has failed and must be tried again. If there is none, return
 * tasks.hi. */
static uint64_t first_retried(const kl_master *m, kl_span tasks, kl_reader results) {
    for (uint64_t task = tasks.lo; m->run.limits.retries > 0 && task < tasks.hi; task++) {
        bool failed;
        kilter_bytes bytes;
        kl_wire_next_result(&results, &failed, &bytes);
        if (failed && kl_tally_of(&m->balance.ledger.failures, task) < m->run.limits.retries)
            return task;
    }
    return tasks.hi;
}

/* None of these tasks was done before. Return the first part of them that can be handled together. This part
 * is either one failed task that must be tried again (*again becomes true), or all tasks before such a
 * task. */
static kl_span taken_alike(const kl_master *m, kl_span tasks, const kl_reader *results, bool *again) {
    uint64_t failed = first_retried(m, tasks, *results);
    *again = failed == tasks.lo && tasks.lo < tasks.hi;
    return (kl_span){tasks.lo, *again ? failed + 1 : failed};
}

/* A message with results, while the master takes its results. */
typedef struct intake {
    member *from;
    kl_reader reader;  /* reads the part of the message that is not handled yet */
    double offset_s;   /* seconds to add to a time of the worker's clock to get the master's time */
    kl_message *whole; /* the message, if it holds only one segment; otherwise NULL */
} intake;

/* Take the results of `tasks`. A result of a task that already has one is dropped. */
static kilter_status count_new(kl_master *m, intake *in, kl_span tasks, kl_chunk *chunk,
                               kilter_error *error) {
    kl_reader *reader = &in->reader;
    kilter_status status = KILTER_OK;
    while (tasks.lo < tasks.hi && status == KILTER_OK) {
        bool done = false, again = false;
        kl_span alike = m->twins.any ? kl_ledger_alike(&m->balance.ledger, tasks, &done) : tasks;
        if (!done)
            alike = taken_alike(m, alike, reader, &again);
        kl_reader before = *reader;
        uint64_t failures = read_results(reader, alike);
        if (alike.lo != tasks.lo || alike.hi != tasks.hi)
            in->whole = NULL;
        if (again) {
            status = try_again(m, in->from, chunk, alike, before, error);
        } else if (!done) {
            chunk->counted += alike.hi - alike.lo;
            kl_master_count_done(m, alike, failures);
            if (failures > 0)
                record_failures(m, in->from, alike, before, true);
            kilter_bytes results = {reader->data + before.at, reader->at - before.at};
            status = kl_master_deliver(m, in->from, alike, results, in->whole, error);
        }
        tasks.lo = alike.hi;
    }
    return status;
}

static kilter_status take_segment(kl_master *m, intake *in, const kl_segment *s, kilter_error *error) {
    member *one = in->from;
    kl_span tasks = {s->lo, s->lo + s->count};
    kl_chunk *chunk = &one->chunks[0];
    const uint64_t id = chunk->id;
    const bool counts = !chunk->stale;
    kl_reader ahead = in->reader;
    uint64_t failures = read_results(&ahead, tasks);
    kilter_status status = KILTER_OK;
    if (chunk->stale) {
        chunk->at += s->count;
        in->reader = ahead;
    } else {
        size_t bytes = ahead.at - in->reader.at;
        kl_balance_report(&m->balance, chunk, s, in->offset_s, bytes, failures);
        status = count_new(m, in, tasks, chunk, error);
    }
    if (s->last)
        kl_master_end_chunk(m, one, 0, false);
    if (counts && status == KILTER_OK)
        status = kl_master_settle_twins(m, id, tasks, error);
    return status;
}

kilter_status kl_master_on_results(kl_master *m, member *one, kl_message *message, kilter_error *error) {
    kl_results_head head;
    double now_s = kl_now_s(&m->options.clock);
    if ((one->stage != WORKING && one->stage != LEAVING) ||
        !kl_wire_check_results(message->data, message->size, &head) ||
        !segments_fit(one, message, head.segments))
        return kl_master_expel(m, one, "sent malformed results", error);
    kl_master_use_told(m, one, &head);
    if (head.round_trip_s > 0)
        kl_balance_message_cost(&m->balance, head.round_trip_bytes / 2, head.round_trip_s / 2, false);
    intake in = {.from = one,
                 .reader = kl_wire_read_results(message->data, message->size),
                 .offset_s = now_s - head.sent_s,
                 .whole = head.segments == 1 ? message : NULL};
    kilter_status status = KILTER_OK;
    for (uint32_t i = 0; i < head.segments && status == KILTER_OK; i++) {
        kl_segment s;
        /* check the segment again, because its worker may have changed a message in shared memory */
        if (!kl_wire_next_segment(&in.reader, &s) || one->chunk_count == 0 ||
            !segment_fits(&one->chunks[0], one->chunks[0].at, &s))
            return kl_master_expel(m, one, "sent malformed results", error);
        status = take_segment(m, &in, &s, error);
    }
    if (head.more && !one->hungry && one->stage == WORKING) {
        one->hungry = true;
        one->held = false;
        one->asked_s = now_s;
    }
    return status;
}

kilter_status kl_master_on_return(kl_master *m, member *one, const kl_message *message, kilter_error *error) {
    kl_part part;
    size_t i = 0;
    uint64_t blamed = 0;
    if (!kl_wire_get_part(message->data, message->size, &part))
        return kl_master_expel(m, one, "sent a malformed message", error);
    while (i < one->chunk_count && one->chunks[i].id != part.chunk)
        i++;
    if (i == one->chunk_count || part.hi != one->chunks[i].hi || part.lo < one->chunks[i].at)
        return kl_master_expel(m, one, "returned tasks that it does not have", error);
    kl_chunk *chunk = &one->chunks[i];
    chunk->begun = part.lo > chunk->recalled_from;
    chunk->recalled_s = 0;
    kilter_status status = KILTER_OK;
    if (part.lo < part.hi && !chunk->stale &&
        kl_tally_add(&m->balance.ledger.recalls, (kl_span){part.lo, part.hi}) != KILTER_OK)
        status = kl_fail(error, KILTER_ERR_MEMORY, "taking returned tasks of a worker: memory ran out");
    if (part.lo < part.hi && status == KILTER_OK)
        status = kl_master_give_up(m, one, i, part.lo, &blamed, error);
    if (one->chunks[i].at == one->chunks[i].hi)
        kl_master_end_chunk(m, one, i, false);
    return status;
}
