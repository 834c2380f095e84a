/* What comes back from workers: results, each task's counted once, and tasks they will not do. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/master_private.h"

static void remove_chunk(member *one, size_t i) {
    one->chunk_count--;
    memmove(one->chunks + i, one->chunks + i + 1, (one->chunk_count - i) * sizeof *one->chunks);
}

static void end_chunk(kl_master *m, member *one, size_t i, bool lost) {
    if (one->chunks[i].stale) /* its row stands in the record */
        kl_balance_forget(&m->balance, one->worker, &one->chunks[i]);
    else
        kl_balance_end_chunk(&m->balance, one->worker, &one->chunks[i], lost);
    remove_chunk(one, i);
}

/* --- failures --- */

enum { FAILURES_RECORDED = 10000 }; /* of a run; more would tell nobody anything */

static void record_failure(kl_master *m, const member *one, kl_trace_failure_row row) {
    const kl_ledger *ledger = &m->balance.ledger;
    if (m->failures_recorded++ >= FAILURES_RECORDED)
        return;
    row.run = m->runs;
    row.attempt = kl_tally_of(&ledger->losses, row.task) + kl_tally_of(&ledger->failures, row.task);
    row.attempt += !row.lost; /* a loss is noted already */
    row.worker = one->number;
    row.at_s = kl_now_s(&m->options.clock) - m->opened_s;
    row.code = row.signal = UINT64_MAX;
    if (row.lost)
        kl_read_end(row.text, &row.code, &row.signal);
    kl_trace_failure(m->trace, &row);
}

/* Of the results of `tasks`, where the reader stands. */
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
        record_failure(m, one, (kl_trace_failure_row){.task = task, .final = final, .text = text});
    }
}

static kilter_status suspect(kl_master *m, const member *last, kl_span span, kilter_error *error) {
    kl_suspect *suspects =
        kl_array_grow(m->suspects, &m->suspect_room, m->suspect_count + 1, sizeof *suspects);
    if (!suspects)
        return kl_fail(error, KILTER_ERR_MEMORY, "taking back the tasks of a lost worker: memory ran out");
    m->suspects = suspects;
    m->suspects[m->suspect_count++] = (kl_suspect){span, last->number};
    m->suspect_tasks += span.hi - span.lo;
    return KILTER_OK;
}

/* The one task of the span has failed, where `result` stands. */
static kilter_status try_again(kl_master *m, const member *one, const kl_chunk *chunk, kl_span span,
                               kl_reader result, kilter_error *error) {
    bool at_other;
    record_failures(m, one, span, result, false);
    kilter_status status = kl_master_part_twins(m, chunk->id, span, &at_other, error);
    if (status == KILTER_OK && kl_tally_add(&m->balance.ledger.failures, span) != KILTER_OK)
        return kl_fail(error, KILTER_ERR_MEMORY, "trying a task again: memory ran out");
    return status == KILTER_OK && !at_other ? suspect(m, one, span, error) : status;
}

/* --- results --- */

/* Does it go on with the chunk at task `at`? */
static bool segment_fits(const kl_chunk *chunk, uint64_t at, const kl_segment *s) {
    return s->chunk == chunk->id && s->lo == at && s->count <= chunk->hi - at &&
           s->last == (at + s->count == chunk->hi);
}

/* Do all segments of a checked message, one after the other, continue the oldest chunk this worker has and
 * then the next? A worker does them in that order. Nothing is changed. */
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

/* Larger messages are kept instead of copied, when they hold nothing but one segment. */
static const size_t KEEP_BYTES = 16384;

/* Queue the results between `from` and where `reader` stands. Takes the message over when it is worth it. */
static kilter_status deliver_later(kl_master *m, const member *one, kl_span tasks, const kl_reader *reader,
                                   size_t from, kl_message *message, bool alone, kilter_error *error) {
    size_t size = reader->at - from;
    bool keep = alone && size >= KEEP_BYTES;
    kl_delivery *delivery = malloc(sizeof *delivery + (keep ? 0 : size));
    if (!delivery)
        return kl_fail(error, KILTER_ERR_MEMORY, "taking in results: memory ran out");
    *delivery =
        (kl_delivery){.lo = tasks.lo, .count = tasks.hi - tasks.lo, .size = size, .worker = one->number};
    if (keep) {
        delivery->results = reader->data + from;
        delivery->message = *message;
        *message = (kl_message){0};
    } else {
        memcpy(delivery->copy, reader->data + from, size);
        delivery->results = delivery->copy;
    }
    kl_delivery_list list = {.first = delivery, .end = &delivery->next};
    kl_delivery_append(&m->results, &list);
    return KILTER_OK;
}

/* Read past the results of `tasks`, and count the failures among them. */
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

static void count_done(kl_master *m, kl_span tasks, uint64_t failures) {
    kl_ledger_do(&m->balance.ledger, tasks);
    m->done += tasks.hi - tasks.lo;
    m->finished += tasks.hi - tasks.lo;
    m->failed += failures;
}

/* The first of the tasks, whose results stand there, that has failed and is to be tried again; hi: none. */
static uint64_t first_retried(const kl_master *m, kl_span tasks, kl_reader results) {
    for (uint64_t task = tasks.lo; m->limits.retries > 0 && task < tasks.hi; task++) {
        bool failed;
        kilter_bytes bytes;
        kl_wire_next_result(&results, &failed, &bytes);
        if (failed && kl_tally_of(&m->balance.ledger.failures, task) < m->limits.retries)
            return task;
    }
    return tasks.hi;
}

/* The longest run of these tasks, none of them done, that is treated the same way; *again: it is one that
 * failed and is tried again. */
static kl_span taken_alike(const kl_master *m, kl_span tasks, const kl_reader *results, bool *again) {
    uint64_t failed = first_retried(m, tasks, *results);
    *again = failed == tasks.lo && tasks.lo < tasks.hi;
    return (kl_span){tasks.lo, *again ? failed + 1 : failed};
}

/* The results of `tasks`, of which some may be there already: the first one counts. */
static kilter_status count_new(kl_master *m, const member *one, kl_span tasks, kl_chunk *chunk,
                               kl_reader *reader, kl_message *message, bool alone, kilter_error *error) {
    kilter_status status = KILTER_OK;
    while (tasks.lo < tasks.hi && status == KILTER_OK) {
        bool done = false, again = false;
        kl_span alike = m->copied ? kl_ledger_alike(&m->balance.ledger, tasks, &done) : tasks;
        if (!done)
            alike = taken_alike(m, alike, reader, &again);
        size_t from = reader->at;
        kl_reader before = *reader;
        uint64_t failures = read_results(reader, alike);
        alone &= alike.lo == tasks.lo && alike.hi == tasks.hi;
        if (again) {
            status = try_again(m, one, chunk, alike, before, error);
        } else if (!done) {
            chunk->counted += alike.hi - alike.lo;
            count_done(m, alike, failures);
            if (failures > 0)
                record_failures(m, one, alike, before, true);
            status = deliver_later(m, one, alike, reader, from, message, alone, error);
        }
        tasks.lo = alike.hi;
    }
    return status;
}

/* It was checked; but a message that lies where its worker can write to may have changed since. */
static bool next_segment(const member *one, kl_reader *reader, kl_segment *s) {
    return kl_wire_next_segment(reader, s) && one->chunk_count > 0 &&
           segment_fits(&one->chunks[0], one->chunks[0].at, s);
}

static kilter_status take_segment(kl_master *m, member *one, const kl_segment *s, kl_reader *reader,
                                  double offset_s, kl_message *message, bool alone, kilter_error *error) {
    kl_span tasks = {s->lo, s->lo + s->count};
    kl_chunk *chunk = &one->chunks[0];
    const uint64_t id = chunk->id;
    const bool counts = !chunk->stale;
    kl_reader ahead = *reader;
    uint64_t failures = read_results(&ahead, tasks);
    kilter_status status = KILTER_OK;
    if (chunk->stale) {
        chunk->at += s->count;
        *reader = ahead;
    } else {
        kl_balance_report(&m->balance, one->worker, chunk, s, offset_s, ahead.at - reader->at, failures);
        status = count_new(m, one, tasks, chunk, reader, message, alone, error);
    }
    if (s->last)
        end_chunk(m, one, 0, false);
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
    kl_reader reader = kl_wire_read_results(message->data, message->size);
    kilter_status status = KILTER_OK;
    for (uint32_t i = 0; i < head.segments && status == KILTER_OK; i++) {
        kl_segment s;
        if (!next_segment(one, &reader, &s))
            return kl_master_expel(m, one, "sent malformed results", error);
        status = take_segment(m, one, &s, &reader, now_s - head.sent_s, message, head.segments == 1, error);
    }
    if (head.more && !one->hungry && one->stage == WORKING) {
        one->hungry = true;
        one->held = false;
        one->asked_s = now_s;
    }
    return status;
}

/* --- tasks that may cost a worker its life --- */

static kilter_status fail_task(kl_master *m, const member *last, uint64_t task, const char *why,
                               kilter_error *error) {
    kl_buffer out = {0};
    size_t at = kl_wire_begin_result(&out);
    kl_put_bytes(&out, why, strlen(why));
    kl_wire_end_result(&out, at, true);
    kl_reader whole = kl_reader_of(out.data, out.size);
    whole.at = out.size;
    kilter_status status = out.failed ? kl_fail(error, KILTER_ERR_MEMORY, "giving a task up: memory ran out")
                                      : deliver_later(m, last, (kl_span){task, task + 1}, &whole, 0,
                                                      &(kl_message){0}, false, error);
    kl_buffer_free(&out);
    if (status == KILTER_OK)
        count_done(m, (kl_span){task, task + 1}, 1);
    return status;
}

static kilter_status fail_lost(kl_master *m, const member *last, uint64_t task, kilter_error *error) {
    char why[400];
    uint32_t losses = kl_tally_of(&m->balance.ledger.losses, task);
    snprintf(why, sizeof why, "%u worker%s lost with it, it is not tried again; the last: %s", losses,
             losses == 1 ? " was" : "s were", m->last_loss);
    return fail_task(m, last, task, why, error);
}

bool kl_master_has_suspect(const kl_master *m, const member *one) {
    return one->chunk_count > 0 && !one->chunks[0].stale &&
           kl_tally_of(&m->balance.ledger.losses, one->chunks[0].at) > 0;
}

/* Does anybody else work on this run, or wait for some of it? */
static bool others_work(const kl_master *m, const member *one) {
    for (size_t i = 0; i < m->member_count; i++) {
        const member *other = &m->members[i];
        bool elsewhere = other->chunk_count > 0 && other->chunks[0].stale;
        if (other != one && other->stage == WORKING && !other->resting && !elsewhere)
            return true;
    }
    return false;
}

bool kl_master_take_suspect(kl_master *m, const member *to, uint64_t *task) {
    bool any = !others_work(m, to);
    for (size_t i = m->suspect_count; i-- > 0;) {
        kl_suspect *s = &m->suspects[i];
        if (!any && s->last == to->number)
            continue;
        *task = s->span.lo++;
        if (s->span.lo == s->span.hi)
            *s = m->suspects[--m->suspect_count];
        m->suspect_tasks--;
        return true;
    }
    return false;
}

/* --- tasks that fail, and are tried again --- */

kilter_status kl_master_fail_attempt(kl_master *m, const member *one, const kl_chunk *chunk, uint64_t task,
                                     const char *why, kilter_error *error) {
    kl_span span = {task, task + 1};
    kl_span shared = kl_master_first_shared(m, chunk->id, span);
    uint32_t failures = kl_tally_of(&m->balance.ledger.failures, task);
    bool final = shared.lo == shared.hi && failures >= m->limits.retries;
    if (kl_ledger_is_done(&m->balance.ledger, task))
        return KILTER_OK;
    record_failure(m, one, (kl_trace_failure_row){.task = task, .final = final, .text = why});
    if (final)
        return fail_task(m, one, task, why, error);
    return kl_tally_add(&m->balance.ledger.failures, span) == KILTER_OK
               ? KILTER_OK
               : kl_fail(error, KILTER_ERR_MEMORY, "trying a task again: memory ran out");
}

/* --- tasks that come back undone --- */

/* Each of them was lost, and has failed, equally often. */
static kilter_status deal_again_alike(kl_master *m, const member *last, kl_span span, uint32_t losses,
                                      uint32_t failures, kilter_error *error) {
    kilter_status status = KILTER_OK;
    bool is_suspect = losses + failures > 0;
    if (!is_suspect && kl_balance_return(&m->balance, span) != KILTER_OK)
        return kl_fail(error, KILTER_ERR_MEMORY, "taking back tasks of a worker: memory ran out");
    if (is_suspect && losses < m->options.attempts)
        return suspect(m, last, span, error);
    for (uint64_t task = span.lo; is_suspect && task < span.hi && status == KILTER_OK; task++)
        status = fail_lost(m, last, task, error);
    return status;
}

kilter_status kl_master_deal_again(kl_master *m, const member *last, kl_span span, kilter_error *error) {
    kilter_status status = KILTER_OK;
    while (span.lo < span.hi && status == KILTER_OK) {
        uint32_t losses, failures;
        kl_span alike = kl_tally_alike(&m->balance.ledger.losses, span, &losses);
        alike = kl_tally_alike(&m->balance.ledger.failures, alike, &failures);
        status = deal_again_alike(m, last, alike, losses, failures, error);
        span.lo = alike.hi;
    }
    return status;
}

enum { SUSPECTS_RECORDED = 16 }; /* of tasks in a row that a lost worker may have begun */

/* is_shared: another worker has them, too, and may do them. */
static void record_losses(kl_master *m, const member *one, kl_span blamed, bool is_shared) {
    for (uint64_t task = blamed.lo; task < blamed.hi && task < blamed.lo + SUSPECTS_RECORDED; task++) {
        bool last = kl_tally_of(&m->balance.ledger.losses, task) >= m->options.attempts;
        record_failure(m, one,
                       (kl_trace_failure_row){
                           .task = task, .lost = true, .final = last && !is_shared, .text = m->last_loss});
    }
}

/* `one` will not do it. Of what is not done the first *blamed tasks may have cost it its life; and unless
 * another worker has it, too, it is dealt again. */
static kilter_status take_back(kl_master *m, const member *one, kl_span span, bool is_shared,
                               uint64_t *blamed, kilter_error *error) {
    kilter_status status = KILTER_OK;
    while (span.lo < span.hi && status == KILTER_OK) {
        bool done;
        kl_span alike = kl_ledger_alike(&m->balance.ledger, span, &done);
        span.lo = alike.hi;
        if (done)
            continue;
        uint64_t tasks = alike.hi - alike.lo, begun = *blamed < tasks ? *blamed : tasks;
        *blamed -= begun;
        if (begun > 0 && kl_tally_add(&m->balance.ledger.losses, (kl_span){alike.lo, alike.lo + begun}))
            return kl_fail(error, KILTER_ERR_MEMORY,
                           "taking back the tasks of a lost worker: memory ran out");
        record_losses(m, one, (kl_span){alike.lo, alike.lo + begun}, is_shared);
        if (!is_shared)
            status = kl_master_deal_again(m, one, alike, error);
    }
    return status;
}

kilter_status kl_master_give_up(kl_master *m, member *one, size_t i, uint64_t from, uint64_t *blamed,
                                kilter_error *error) {
    kl_chunk *chunk = &one->chunks[i];
    kl_span rest = {from, chunk->hi};
    uint64_t id = chunk->id;
    bool stale = chunk->stale;
    kilter_status status = KILTER_OK;
    kl_balance_cut(&m->balance, one->worker, chunk, from);
    while (!stale && rest.lo < rest.hi && status == KILTER_OK) {
        kl_span shared = kl_master_first_shared(m, id, rest);
        status = take_back(m, one, (kl_span){rest.lo, shared.lo}, false, blamed, error);
        if (status == KILTER_OK)
            status = take_back(m, one, shared, true, blamed, error);
        rest.lo = shared.hi;
    }
    bool at_other;
    kilter_status parted = kl_master_part_twins(m, id, (kl_span){from, UINT64_MAX}, &at_other,
                                                status == KILTER_OK ? error : NULL);
    m->feed_all = true;
    return status == KILTER_OK ? parted : status;
}

/* So many tasks may have been begun since the last report: its results come in batches. */
static const double BEGUN_SAFETY = 4, BEGUN_LEAST = 8;

static uint64_t maybe_begun(const kl_master *m, const member *one) {
    const kl_worker_view *v = &m->balance.views[one->worker];
    double unit_s = kl_pace_unit_s(&v->pace);
    double silent_s = kl_now_s(&m->options.clock) - v->queued_at_s + KL_FLUSH_S;
    double begun = unit_s > 0 ? BEGUN_LEAST + BEGUN_SAFETY * silent_s / unit_s : INFINITY;
    return begun < 1e18 ? (uint64_t)begun : UINT64_MAX;
}

kilter_status kl_master_take_all_back(kl_master *m, member *one, bool is_lost, kilter_error *error) {
    kilter_status status = KILTER_OK;
    uint64_t blamed = is_lost && one->chunk_count > 0 ? maybe_begun(m, one) : 0;
    while (one->chunk_count > 0) { /* also after a failure: nothing may stay with one that is gone */
        kilter_status given =
            kl_master_give_up(m, one, 0, one->chunks[0].at, &blamed, status == KILTER_OK ? error : NULL);
        end_chunk(m, one, 0, true);
        status = status == KILTER_OK ? given : status;
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
        return kl_master_expel(m, one, "gave back tasks that it does not have", error);
    kl_chunk *chunk = &one->chunks[i];
    chunk->begun = part.lo > chunk->recalled_from;
    chunk->recalled_s = 0;
    kilter_status status = KILTER_OK;
    if (part.lo < part.hi && !chunk->stale &&
        kl_tally_add(&m->balance.ledger.recalls, (kl_span){part.lo, part.hi}) != KILTER_OK)
        status = kl_fail(error, KILTER_ERR_MEMORY, "taking back tasks of a worker: memory ran out");
    if (part.lo < part.hi && status == KILTER_OK)
        status = kl_master_give_up(m, one, i, part.lo, &blamed, error);
    if (one->chunks[i].at == one->chunks[i].hi)
        end_chunk(m, one, i, false);
    return status;
}

void kl_master_end_chunks(kl_master *m) {
    for (size_t i = 0; i < m->member_count; i++) {
        member *one = &m->members[i];
        for (size_t k = 0; k < one->chunk_count; k++) {
            kl_chunk *chunk = &one->chunks[k];
            if (chunk->stale)
                continue;
            if (!(chunk->recalled_s > 0) || chunk->recalled_from > chunk->at)
                kl_master_recall(m, one, chunk, chunk->at, NULL);
            kl_balance_abandon(&m->balance, one->worker, chunk);
        }
    }
    kl_twins_clear(&m->twins);
    m->suspect_count = 0;
    m->suspect_tasks = 0;
    m->copied = false;
}
