/* The task that the worker does, its result, and the shared data. The result is written to its own buffer,
 * so that another thread may send earlier results at the same time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/worker_private.h"

/* Seconds that sending a message takes. If less work than this is left, requesting tasks early does not
 * help. */
static const double HIDES_NOTHING_S = 10e-6;

/* A worker requests tasks when its remaining work takes less than this multiple of the greatest recent answer
 * time. The next chunk then arrives before the worker needs it. */
static const double ANSWERS_AHEAD = 1.5;

/* --- tasks --- */

/* Return whether the worker must request the next chunk now, because little work is left. If this work takes
 * less time than sending a message, the request goes with the last result instead. */
bool kl_worker_runs_low(const kl_worker *w) {
    double task_s = w->hand.task_s;
    uint64_t tasks = w->queue.tasks;
    if (task_s > 0 && (double)tasks * task_s < HIDES_NOTHING_S)
        return false;
    double lead_s = fmax(w->queue.first->head.lead_s, ANSWERS_AHEAD * w->asking.answer_s);
    bool soon = task_s > 0 && (double)(tasks - 1) * task_s <= lead_s;
    return !w->asking.asked && (tasks == 1 || soon);
}

static void account_task(kl_worker *w, double seconds, double now_s) {
    kl_segment *segment = &w->outbox.segment;
    hand *h = &w->hand;
    segment->count++;
    segment->busy_s += seconds;
    kl_stat_add(&segment->unit_s, seconds / h->weight, now_s);
    /* the worker uses this mean only to decide when to request tasks; the master keeps the statistics */
    h->task_s += (seconds - h->task_s) / (h->task_s > 0 ? 8 : 1);
    w->outbox.last_end_s = now_s;
    if (w->core)
        w->core->since.busy_s += seconds;
    kl_account_share(&w->share, &w->attendance, seconds);
}

/* Append the task's result to the results that are ready. If memory runs out, append a failure instead. */
static void keep_result(outbox *o, const queued *chunk, const hand *h) {
    if (o->segment.count == 0)
        kl_begin_segment(o, &o->out, chunk, h->began_s);
    size_t at = o->out.size;
    kl_put_bytes(&o->out, h->making.data + h->result.at, h->making.size - h->result.at);
    if (!o->out.failed)
        return;
    o->out.failed = false;
    o->out.size = at;
    kilter_result lost = {.buffer = &o->out, .at = kl_wire_begin_result(&o->out)};
    kl_fail_result(&lost, "storing the task's result: memory ran out");
    kl_wire_end_result(&o->out, lost.at, true);
}

static void swap_buffers(kl_buffer *a, kl_buffer *b) {
    kl_buffer kept = *a;
    *a = *b;
    *b = kept;
}

/* Make the first chunk's next task the task at hand. */
static void take_task(hand *h, queued *chunk, const shared_data *shared) {
    kilter_task *task = &h->handed.it;
    *task = (kilter_task){.index = chunk->head.lo + chunk->at, .run = chunk->head.run};
    if (shared)
        task->shared = shared->bytes;
    if (chunk->head.inputs)
        task->input.data = kl_get_span(&chunk->inputs, &task->input.size);
    if (task->input.size > 0)
        task->input.data = kl_aligned(&h->input, task->input.data, task->input.size);
    h->weight = chunk->head.weighted ? kl_get_f64(&chunk->weights) : 1;
}

static void begin_task(kl_worker *w) {
    hand *h = &w->hand;
    take_task(h, w->queue.first, w->shared);
    h->began_s = w->outbox.last_end_s;
    /* If no other results are ready, the buffer of this result becomes the message, without a copy. Results
     * of a peer's tasks do not go to the master, so they are never sent alone. */
    h->alone = w->outbox.out.size == 0 && !w->queue.first->is_peers;
    kl_buffer_clear(&h->making);
    if (h->alone) {
        /* Begin the message that contains only the task's result. Put the message into memory that the master
         * can read, if there is such memory. Otherwise use the larger of two buffers, so that only one buffer
         * grows. */
        kl_buffer *out = &w->outbox.out, *making = &w->hand.making;
        if (out->borrowed || (!making->borrowed && out->capacity > making->capacity))
            swap_buffers(out, making);
        if (!making->borrowed)
            kl_lend(w->transport, w->master, 0, making);
        kl_begin_segment(&w->outbox, making, w->queue.first, w->hand.began_s);
    }
    h->result = (kilter_result){.buffer = &h->making, .at = kl_wire_begin_result(&h->making)};
    h->at_work = true;
}

const kilter_task *kl_worker_at_hand(const kl_worker *w) {
    return w->hand.at_work ? &w->hand.handed.it : NULL;
}

int kl_worker_call(kl_worker *w) {
    const kilter_task *task = &w->hand.handed.it;
    if (task->input.size > 0 && !task->input.data)
        return kilter_result_fail(&w->hand.result, "taking the task's input of %zu bytes: memory ran out",
                                  task->input.size);
    return w->options->work(task, &w->hand.result, w->state);
}

/* Call the work function. Meanwhile, a second thread may handle messages. */
static int call_attended(kl_worker *w) {
    if (!w->attendance.works)
        return kl_worker_call(w);
    w->attendance.works(w->attendance.self, true);
    int code = kl_worker_call(w);
    w->attendance.works(w->attendance.self, false);
    return code;
}

static void end_task(kl_worker *w, int code) {
    hand *h = &w->hand;
    queued *chunk = w->queue.first;
    h->at_work = false;
    kl_check_result(h, code, (size_t)chunk->head.result_bytes);
    bool first = !kl_has_results(&w->outbox);
    if (h->alone)
        swap_buffers(&w->outbox.out, &h->making);
    else
        keep_result(&w->outbox, chunk, h);
    double now_s = kl_now_s(&w->options->clock);
    if (first)
        w->outbox.first_result_s = now_s;
    chunk->at++;
    w->queue.tasks--;
    h->done++;
    if (w->limits.tasks_most > 0 && h->done >= w->limits.tasks_most)
        kl_renew(&w->leaving, "has done its %llu task%s", (unsigned long long)h->done,
                 h->done == 1 ? "" : "s");
    account_task(w, now_s - h->began_s, now_s);
}

/* Request more tasks if it is time for that. Then begin the next task of the queue's first item. */
static kilter_status begin_next_task(kl_worker *w, kilter_error *error) {
    const queued *chunk = w->queue.first;
    uint64_t has = w->shared ? w->shared->hash : 0;
    if (chunk->at == 0 && chunk->head.shared != has)
        return kl_worker_refuse(
            w, error, "the worker has shared data %016llx, but its tasks are for shared data %016llx",
            (unsigned long long)has, (unsigned long long)chunk->head.shared);
    kilter_status status =
        !chunk->is_peers && kl_worker_runs_low(w) ? kl_worker_flush(w, true, error) : KILTER_OK;
    if (status == KILTER_OK)
        begin_task(w);
    return status;
}

kilter_status kl_worker_end_task(kl_worker *w, int code, kilter_error *error) {
    queue *q = &w->queue;
    if (q->first->is_peers)
        return kl_peering_end_task(w, code, error);
    end_task(w, code);
    if (w->leaving.failed != KILTER_OK)
        return kl_task_failure(&w->leaving, error);
    if (q->first->at == q->first->head.count) {
        w->outbox.segment.last = true;
        kl_end_segment(&w->outbox);
        kl_queue_remove(q, &q->first);
    }
    return kl_flush_is_due(&w->outbox) ? kl_worker_flush(w, !q->first && !w->asking.asked, error) : KILTER_OK;
}

/* --- shared data --- */

void kl_shared_data_free(shared_data *s) {
    if (!s)
        return;
    kl_message_release(&s->message);
    kl_buffer_free(&s->moved);
    free(s);
}

/* Store the shared data. Data that are aligned for any type stay in their message; other data are copied. */
static kilter_status keep_shared(shared_data *s, kl_message *m, kilter_bytes bytes, kilter_error *error) {
    const void *at = kl_aligned(&s->moved, bytes.data, bytes.size);
    if (!at)
        return kl_fail(error, KILTER_ERR_MEMORY, "keeping %zu bytes of shared data: memory ran out",
                       bytes.size);
    kl_message_release(&s->message);
    if (at == bytes.data) {
        s->message = *m;
        *m = (kl_message){0};
        kl_buffer_free(&s->moved);
    }
    s->bytes = (kilter_bytes){at, bytes.size};
    return KILTER_OK;
}

static kilter_status take_shared(kl_worker *w, kilter_error *error) {
    kl_message *m = &w->queue.first->message;
    kilter_bytes bytes;
    uint64_t hash;
    /* reading cannot fail, because the message was checked when it arrived */
    kl_wire_get_shared(m->data, m->size, &hash, &bytes);
    if (kl_hash(bytes.data, bytes.size, 0) != hash)
        return kl_worker_refuse(w, error, "the %zu bytes of shared data that it received are damaged",
                                bytes.size);
    w->shared = w->shared ? w->shared : calloc(1, sizeof *w->shared);
    if (!w->shared)
        return kl_fail(error, KILTER_ERR_MEMORY, "taking shared data: memory ran out");
    kilter_status status = keep_shared(w->shared, m, bytes, error);
    if (status != KILTER_OK)
        return status;
    w->shared->hash = hash;
    int code = w->options->shared ? w->options->shared(w->shared->bytes, w->state) : 0;
    if (code != 0)
        return kl_worker_refuse(w, error, "the worker's shared function returned %d", code);
    kl_queue_remove(&w->queue, &w->queue.first);
    return KILTER_OK;
}

/* --- beginning the queue's first item --- */

kilter_status kl_worker_begin_next(kl_worker *w, kilter_error *error) {
    if (w->queue.rested)
        w->outbox.last_end_s = kl_now_s(&w->options->clock);
    w->queue.rested = false;
    if (!w->queue.first->is_shared)
        return begin_next_task(w, error);
    kilter_status status = take_shared(w, error);
    w->outbox.last_end_s = kl_now_s(&w->options->clock);
    return status;
}

kilter_status kl_worker_work(kl_worker *w, kilter_error *error) {
    double began_s = kl_now_s(&w->options->clock);
    kilter_status status;
    do {
        status = kl_worker_begin_next(w, error);
        if (status == KILTER_OK && w->hand.at_work)
            status = kl_worker_end_task(w, call_attended(w), error);
    } while (status == KILTER_OK && w->queue.first && !kl_is_leaving(&w->leaving) &&
             w->outbox.last_end_s - began_s < w->options->burst_s);
    return status;
}
