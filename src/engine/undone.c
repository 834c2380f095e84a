/* The end of chunks. Tasks that are done are counted, and their results are queued for the user. Tasks that
 * their worker will not do are dealt again. A task that failed, or that may have killed its worker
 * (suspect), is dealt alone. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/master_private.h"

void kl_master_end_chunk(kl_master *m, member *one, size_t i, bool lost) {
    if (one->chunks[i].stale) /* write no row, because the chunk's row was written when its run ended */
        kl_balance_forget(&m->balance, &one->chunks[i]);
    else
        kl_balance_end_chunk(&m->balance, &one->chunks[i], lost);
    one->chunk_count--;
    memmove(one->chunks + i, one->chunks + i + 1, (one->chunk_count - i) * sizeof *one->chunks);
}

/* --- failures --- */

/* greatest number of failures that are recorded in a run; nobody who reads the record would look at more */
enum { FAILURES_RECORDED = 10000 };

void kl_master_record_failure(kl_master *m, const member *one, kl_trace_failure_row row) {
    const kl_ledger *ledger = &m->balance.ledger;
    if (m->run.failures_recorded++ >= FAILURES_RECORDED)
        return;
    row.run = m->run.number;
    row.attempt = kl_tally_of(&ledger->losses, row.task) + kl_tally_of(&ledger->failures, row.task);
    row.attempt += !row.lost; /* if the task was lost, the number of losses already contains this loss */
    row.worker = one->number;
    row.at_s = kl_now_s(&m->options.clock) - m->opened_s;
    row.code = row.signal = UINT64_MAX;
    if (row.lost)
        kl_read_end(row.text, &row.code, &row.signal);
    kl_trace_failure(m->trace, &row);
}

kilter_status kl_master_suspect(kl_master *m, const member *last, kl_span span, kilter_error *error) {
    kl_suspect *suspects =
        kl_array_grow(m->suspects.list, &m->suspects.room, m->suspects.count + 1, sizeof *suspects);
    if (!suspects)
        return kl_fail(error, KILTER_ERR_MEMORY, "getting back the tasks of a lost worker: memory ran out");
    m->suspects.list = suspects;
    m->suspects.list[m->suspects.count++] = (kl_suspect){span, last->number};
    m->suspects.tasks += span.hi - span.lo;
    return KILTER_OK;
}

/* Results with at least this many bytes stay in their message; smaller results are copied. */
static const size_t KEEP_BYTES = 16384;

kilter_status kl_master_deliver(kl_master *m, const member *one, kl_span tasks, kilter_bytes results,
                                kl_message *message, kilter_error *error) {
    const size_t size = results.size;
    const bool keep = message && size >= KEEP_BYTES;
    kl_delivery *delivery = malloc(sizeof *delivery + (keep ? 0 : size));
    if (!delivery)
        return kl_fail(error, KILTER_ERR_MEMORY, "taking in results: memory ran out");
    *delivery =
        (kl_delivery){.lo = tasks.lo, .count = tasks.hi - tasks.lo, .size = size, .worker = one->number};
    if (keep) {
        delivery->results = results.data;
        delivery->message = *message;
        *message = (kl_message){0};
    } else {
        memcpy(delivery->copy, results.data, size);
        delivery->results = delivery->copy;
    }
    kl_delivery_list list = {.first = delivery, .end = &delivery->next};
    kl_delivery_append(&m->results, &list);
    return KILTER_OK;
}

void kl_master_count_done(kl_master *m, kl_span tasks, uint64_t failures) {
    kl_ledger_do(&m->balance.ledger, tasks);
    m->run.done += tasks.hi - tasks.lo;
    m->run.finished += tasks.hi - tasks.lo;
    m->run.failed += failures;
}

/* --- suspects: tasks that may have killed their worker --- */

static kilter_status fail_task(kl_master *m, const member *last, uint64_t task, const char *why,
                               kilter_error *error) {
    kl_buffer out = {0};
    size_t at = kl_wire_begin_result(&out);
    kl_put_bytes(&out, why, strlen(why));
    kl_wire_end_result(&out, at, true);
    kilter_status status = out.failed
                               ? kl_fail(error, KILTER_ERR_MEMORY, "recording a failed task: memory ran out")
                               : kl_master_deliver(m, last, (kl_span){task, task + 1},
                                                   (kilter_bytes){out.data, out.size}, NULL, error);
    kl_buffer_free(&out);
    if (status == KILTER_OK)
        kl_master_count_done(m, (kl_span){task, task + 1}, 1);
    return status;
}

static kilter_status fail_lost(kl_master *m, const member *last, uint64_t task, kilter_error *error) {
    char why[400];
    uint32_t losses = kl_tally_of(&m->balance.ledger.losses, task);
    snprintf(why, sizeof why,
             "%u worker%s lost while doing this task, so it is not tried again; the last loss: %s", losses,
             losses == 1 ? " was" : "s were", m->members.last_loss);
    return fail_task(m, last, task, why, error);
}

bool kl_master_has_suspect(const kl_master *m, const member *one) {
    return one->chunk_count > 0 && !one->chunks[0].stale &&
           kl_tally_of(&m->balance.ledger.losses, one->chunks[0].at) > 0;
}

/* Return whether another worker could take the task. Such a worker takes part in this run, or waits for
 * tasks. */
static bool others_work(const kl_master *m, const member *one) {
    for (size_t i = 0; i < m->members.count; i++) {
        const member *other = &m->members.list[i];
        bool elsewhere = other->chunk_count > 0 && other->chunks[0].stale;
        if (other != one && other->stage == WORKING && !other->resting && !elsewhere)
            return true;
    }
    return false;
}

bool kl_master_take_suspect(kl_master *m, const member *to, uint64_t *task) {
    bool any = !others_work(m, to);
    for (size_t i = m->suspects.count; i-- > 0;) {
        kl_suspect *s = &m->suspects.list[i];
        if (!any && s->last == to->number)
            continue;
        *task = s->span.lo++;
        if (s->span.lo == s->span.hi)
            *s = m->suspects.list[--m->suspects.count];
        m->suspects.tasks--;
        return true;
    }
    return false;
}

/* --- tasks that fail and are tried again --- */

kilter_status kl_master_fail_attempt(kl_master *m, const member *one, const kl_chunk *chunk, uint64_t task,
                                     const char *why, kilter_error *error) {
    kl_span span = {task, task + 1};
    kl_span shared = kl_twins_first_shared(&m->twins, chunk->id, span);
    uint32_t failures = kl_tally_of(&m->balance.ledger.failures, task);
    bool final = shared.lo == shared.hi && failures >= m->run.limits.retries;
    if (kl_ledger_is_done(&m->balance.ledger, task))
        return KILTER_OK;
    kl_master_record_failure(m, one, (kl_trace_failure_row){.task = task, .final = final, .text = why});
    if (final)
        return fail_task(m, one, task, why, error);
    return kl_tally_add(&m->balance.ledger.failures, span) == KILTER_OK
               ? KILTER_OK
               : kl_fail(error, KILTER_ERR_MEMORY, "trying a task again: memory ran out");
}

/* --- tasks that workers return without having done them --- */

/* Deal tasks again that were all lost `losses` times and failed `failures` times. If the tasks were lost too
 * often, they fail. */
static kilter_status deal_again_alike(kl_master *m, const member *last, kl_span span, uint32_t losses,
                                      uint32_t failures, kilter_error *error) {
    kilter_status status = KILTER_OK;
    bool is_suspect = losses + failures > 0;
    if (!is_suspect && kl_bag_return(&m->balance.bag, span) != KILTER_OK)
        return kl_fail(error, KILTER_ERR_MEMORY, "taking returned tasks of a worker: memory ran out");
    if (is_suspect && losses < m->options.attempts)
        return kl_master_suspect(m, last, span, error);
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

/* greatest number of tasks that are recorded as possible cause of the loss of a worker */
enum { SUSPECTS_RECORDED = 16 };

/* Record that a worker was lost while it had the tasks `blamed`. is_shared: true if another worker has these
 * tasks, too, and may do them. */
static void record_losses(kl_master *m, const member *one, kl_span blamed, bool is_shared) {
    for (uint64_t task = blamed.lo; task < blamed.hi && task < blamed.lo + SUSPECTS_RECORDED; task++) {
        bool last = kl_tally_of(&m->balance.ledger.losses, task) >= m->options.attempts;
        kl_master_record_failure(
            m, one,
            (kl_trace_failure_row){
                .task = task, .lost = true, .final = last && !is_shared, .text = m->members.last_loss});
    }
}

/* Take back from the worker `one` the unfinished tasks of the span. The first *blamed of these tasks may have
 * killed the worker. Deal the tasks again, except for tasks that another worker has, too. */
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
                           "getting back the tasks of a lost worker: memory ran out");
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
    kl_balance_cut(&m->balance, chunk, from);
    while (!stale && rest.lo < rest.hi && status == KILTER_OK) {
        kl_span shared = kl_twins_first_shared(&m->twins, id, rest);
        status = take_back(m, one, (kl_span){rest.lo, shared.lo}, false, blamed, error);
        if (status == KILTER_OK)
            status = take_back(m, one, shared, true, blamed, error);
        rest.lo = shared.hi;
    }
    bool at_other;
    kilter_status parted = kl_master_part_twins(m, id, (kl_span){from, UINT64_MAX}, &at_other,
                                                status == KILTER_OK ? error : NULL);
    m->feeding.all = true;
    return status == KILTER_OK ? parted : status;
}

/* A lost worker may have begun more tasks than its results show, because results come several at a time. The
 * assumed number is BEGUN_LEAST, plus BEGUN_SAFETY times the number of tasks that fit into the time since
 * the last results. */
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
    /* continue even after an error, because a member that is gone must not keep a chunk */
    while (one->chunk_count > 0) {
        kilter_status given =
            kl_master_give_up(m, one, 0, one->chunks[0].at, &blamed, status == KILTER_OK ? error : NULL);
        kl_master_end_chunk(m, one, 0, true);
        status = status == KILTER_OK ? given : status;
    }
    return status;
}

void kl_master_end_chunks(kl_master *m) {
    for (size_t i = 0; i < m->members.count; i++) {
        member *one = &m->members.list[i];
        for (size_t k = 0; k < one->chunk_count; k++) {
            kl_chunk *chunk = &one->chunks[k];
            if (chunk->stale)
                continue;
            if (!(chunk->recalled_s > 0) || chunk->recalled_from > chunk->at)
                kl_master_recall(m, one, chunk, chunk->at, NULL);
            kl_balance_abandon(&m->balance, chunk);
        }
    }
    kl_twins_clear(&m->twins);
    m->suspects.count = 0;
    m->suspects.tasks = 0;
}
