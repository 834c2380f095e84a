/* A worker's tasks and their results.
 *
 *   queue     [ chunk 7: ######>········ ][ chunk 9 ]      > the task at hand; chunk 9 came while 7 was being
 * done segment             ^^^^              done, not sent yet
 *
 * The result of the task at hand is put together apart, so that another thread may send those before it. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/worker_private.h"

/* So much time in tasks is enough to tell which share of it was CPU time. */
static const double SHARE_S = 10e-3;

kilter_status kilter_result_put(kilter_result *result, const void *data, size_t size) {
    size_t have = result->buffer->size - result->at - 4;
    if (size > KL_WIRE_MOST_BYTES - have)
        return KILTER_ERR_RANGE;
    kl_put_bytes(result->buffer, data, size);
    return result->buffer->failed ? KILTER_ERR_MEMORY : KILTER_OK;
}

static void fail_with(kilter_result *result, const char *text) {
    result->buffer->size = result->at + 4;
    kl_put_bytes(result->buffer, text, strlen(text));
    result->failed = true;
}

int kilter_result_fail(kilter_result *result, const char *format, ...) {
    char text[KILTER_ERROR_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fail_with(result, text);
    return 1;
}

/* --- results --- */

bool kl_worker_has_results(const kl_worker *w) {
    return w->segments > 0 || w->segment.count > 0;
}

static void end_segment(kl_worker *w) {
    if (w->segment.count == 0)
        return;
    w->segment.ended_s = w->last_end_s;
    kl_wire_end_segment(&w->out, w->segment_at, &w->segment);
    w->segments++;
    w->segment = (kl_segment){0};
}

static void begin_segment(kl_worker *w, kl_buffer *out, const queued *chunk, double now_s) {
    if (out->size == 0)
        kl_wire_begin_results(out);
    w->segment = (kl_segment){.chunk = chunk->head.chunk, .lo = chunk->head.lo + chunk->at, .began_s = now_s};
    w->segment_at = out->size;
    kl_wire_begin_segment(out, &w->segment);
}

double kl_worker_core_delay_s(const kl_worker *w) {
    double run_s, delay_s, slices;
    return kl_core_read(&w->meter, &run_s, &delay_s, &slices) ? delay_s : 0;
}

/* What others had of the core since the last look, without that of waits; no more than tasks took beyond what
 * this thread computed. */
static void look_at_core(kl_worker *w) {
    double run_s, delay_s, slices;
    if (!kl_core_read(&w->meter, &run_s, &delay_s, &slices))
        return;
    double waits_s = w->since.waits_delay_s + w->since.waits * w->wait_delay_s;
    double lost_s = delay_s - w->since.core_delay_s - waits_s;
    double most_s = w->since.busy_s - (run_s - w->since.core_run_s);
    w->delay_s += fmax(0, fmin(lost_s, most_s));
    memset(&w->since, 0, sizeof w->since);
    w->since.core_run_s = run_s;
    w->since.core_delay_s = delay_s;
}

/* Not with each small message: asking takes as long as some of them do. */
static void look_at_cpu(kl_worker *w, kl_results_head *head) {
    if (w->options.tells_cpu && head->sent_s >= w->cpu_due_s) {
        w->cpu_s = kl_cpu_s(w->options.cpu);
        look_at_core(w);
        w->cpu_due_s = head->sent_s + KL_CPU_LOOK_S;
    }
    head->cpu_s = w->cpu_s;
    head->delay_s = w->delay_s;
}

kilter_status kl_worker_flush(kl_worker *w, bool more, kilter_error *error) {
    end_segment(w);
    if (w->out.size == 0)
        kl_wire_begin_results(&w->out);
    kl_results_head head = {.segments = w->segments, .more = more, .sent_s = kl_now_s(&w->options.clock)};
    look_at_cpu(w, &head);
    head.round_trip_s = w->round_trip_s;
    head.round_trip_bytes = w->round_trip_bytes;
    w->round_trip_s = w->round_trip_bytes = 0;
    kl_wire_end_results(&w->out, &head);
    kilter_status status = kl_worker_send(w, &w->out, error);
    if (more) {
        w->sent_at_s = w->asked_at_s = head.sent_s;
        w->sent_bytes = (double)w->out.size;
        w->asked = true;
    }
    kl_buffer_clear(&w->out);
    if (w->out.borrowed) /* it went with the message, if that was large */
        kl_lend(w->transport, w->master, 0, &w->out);
    w->segments = 0;
    return status;
}

static bool flush_is_due(const kl_worker *w) {
    return w->out.size >= KL_FLUSH_BYTES || w->last_end_s - w->first_result_s >= KL_FLUSH_S;
}

/* --- tasks --- */

/* Is so little left that the next chunk must be on its way now? But asking for it while working hides nothing
 * when what is left is shorter than sending a message: then the request goes with the last result. */
bool kl_worker_runs_low(const kl_worker *w) {
    const queued *chunk = w->first;
    if (w->task_s > 0 && (double)w->queued_tasks * w->task_s < KL_HIDES_NOTHING_S)
        return false;
    double lead_s = fmax(chunk->head.lead_s, KL_ANSWERS_AHEAD * w->answer_s);
    bool soon = w->task_s > 0 && (double)(w->queued_tasks - 1) * w->task_s <= lead_s;
    return !w->asked && (w->queued_tasks == 1 || soon);
}

/* Asking for CPU time costs more than a small task may. */
static void account_share(kl_worker *w, double seconds) {
    w->share_s += seconds;
    if (!w->attendance.busy_s || w->share_s < SHARE_S)
        return;
    double busy_s = w->attendance.busy_s(w->attendance.self);
    double share = fmin(1, (busy_s - w->share_busy_s) / w->share_s);
    w->usual_share += (share - w->usual_share) / (w->usual_share > 0 ? 8 : 1);
    w->share_busy_s = busy_s;
    w->share_s = 0;
}

static void account_task(kl_worker *w, double seconds, double weight, double now_s) {
    w->segment.count++;
    w->segment.busy_s += seconds;
    kl_stat_add(&w->segment.unit_s, seconds / weight, now_s);
    /* Enough to know when to ask; the master keeps the real statistics. */
    w->task_s += (seconds - w->task_s) / (w->task_s > 0 ? 8 : 1);
    w->last_end_s = now_s;
    w->since.busy_s += seconds;
    account_share(w, seconds);
}

/* What is wrong with the result, or with there being none. */
static void check_result(kl_worker *w, int code, kilter_result *result) {
    char text[100];
    if (code != 0 && !result->failed) {
        snprintf(text, sizeof text, "the work function returned %d", code);
        fail_with(result, text);
    }
    const size_t size = w->making.size - result->at - 4, wanted = (size_t)w->first->head.result_bytes;
    if (!result->failed && wanted > 0 && size != wanted) {
        snprintf(text, sizeof text, "its result has %zu bytes, those of this run have %zu", size, wanted);
        fail_with(result, text);
    }
    if (w->making.failed) { /* the result did not fit: that is this task's failure, not the worker's */
        w->making.failed = false;
        fail_with(result, "keeping its result: memory ran out");
    }
    kl_wire_end_result(&w->making, result->at, result->failed);
}

/* Put the result made to those that are ready. */
static void keep_result(kl_worker *w, const queued *chunk, const kilter_result *result, double began_s) {
    if (w->segment.count == 0)
        begin_segment(w, &w->out, chunk, began_s);
    size_t at = w->out.size;
    kl_put_bytes(&w->out, w->making.data + result->at, w->making.size - result->at);
    if (!w->out.failed)
        return;
    w->out.failed = false;
    w->out.size = at;
    kilter_result lost = {.buffer = &w->out, .at = kl_wire_begin_result(&w->out)};
    fail_with(&lost, "keeping its result: memory ran out");
    kl_wire_end_result(&w->out, lost.at, true);
}

static void swap_buffers(kl_buffer *a, kl_buffer *b) {
    kl_buffer kept = *a;
    *a = *b;
    *b = kept;
}

/* With the result of the next task, where the master can read it. */
static void begin_message(kl_worker *w, const queued *chunk, double began_s) {
    if (w->out.borrowed)
        swap_buffers(&w->out, &w->making);
    else if (!w->making.borrowed)
        kl_lend(w->transport, w->master, 0, &w->making);
    begin_segment(w, &w->making, chunk, began_s);
}

/* The next task of the first chunk is at hand from began_s on. */
static void begin_task(kl_worker *w, double began_s) {
    queued *chunk = w->first;
    w->task = (kilter_task){.index = chunk->head.lo + chunk->at, .run = chunk->head.run, .shared = w->shared};
    if (chunk->head.inputs)
        w->task.input.data = kl_get_span(&chunk->inputs, &w->task.input.size);
    if (w->task.input.size > 0)
        w->task.input.data = kl_aligned(&w->input, w->task.input.data, w->task.input.size);
    w->task_weight = chunk->head.weighted ? kl_get_f64(&chunk->weights) : 1;
    w->alone = w->out.size == 0; /* then it becomes the message, and large results are not copied */
    kl_buffer_clear(&w->making);
    if (w->alone)
        begin_message(w, chunk, began_s);
    w->result = (kilter_result){.buffer = &w->making, .at = kl_wire_begin_result(&w->making)};
    w->task_began_s = began_s;
    w->at_work = true;
}

int kl_worker_call(kl_worker *w) {
    const kilter_task *task = &w->task;
    if (task->input.size > 0 && !task->input.data)
        return kilter_result_fail(&w->result, "taking its input of %zu bytes: memory ran out",
                                  task->input.size);
    return w->options.work(KL_HAND(kilter_task, *task), &w->result, w->state);
}

/* The user's function runs while others may attend. */
static int call_attended(kl_worker *w) {
    if (!w->attendance.works)
        return kl_worker_call(w);
    w->attendance.works(w->attendance.self, true);
    int code = kl_worker_call(w);
    w->attendance.works(w->attendance.self, false);
    return code;
}

static void end_task(kl_worker *w, int code) {
    queued *chunk = w->first;
    double began_s = w->task_began_s;
    w->at_work = false;
    check_result(w, code, &w->result);
    bool first = !kl_worker_has_results(w);
    if (w->alone)
        swap_buffers(&w->out, &w->making);
    else
        keep_result(w, chunk, &w->result, began_s);
    double now_s = kl_now_s(&w->options.clock);
    if (first)
        w->first_result_s = now_s;
    chunk->at++;
    w->queued_tasks--;
    w->tasks_done++;
    if (w->limits.tasks_most > 0 && w->tasks_done >= w->limits.tasks_most)
        kl_worker_renew(w, "has done its %llu task%s", (unsigned long long)w->tasks_done,
                        w->tasks_done == 1 ? "" : "s");
    account_task(w, now_s - began_s, w->task_weight, now_s);
}

static void finish_chunk(kl_worker *w) {
    w->segment.last = true;
    end_segment(w);
    kl_worker_drop_first(w);
}

/* Ask for more, if it is time to, and begin the first chunk's next task. */
static kilter_status begin_next_task(kl_worker *w, kilter_error *error) {
    const kl_chunk_head *head = &w->first->head;
    if (w->first->at == 0 && head->shared != w->shared_hash)
        return kl_worker_refuse(w, error, "it has shared data %016llx, and was given tasks for %016llx",
                                (unsigned long long)w->shared_hash, (unsigned long long)head->shared);
    kilter_status status = kl_worker_runs_low(w) ? kl_worker_flush(w, true, error) : KILTER_OK;
    if (status == KILTER_OK)
        begin_task(w, w->last_end_s);
    return status;
}

kilter_status kl_worker_end_task(kl_worker *w, int code, kilter_error *error) {
    end_task(w, code);
    if (w->failure.status != KILTER_OK) {
        if (error)
            *error = w->failure;
        return w->failure.status;
    }
    if (w->first->at == w->first->head.count)
        finish_chunk(w);
    return flush_is_due(w) ? kl_worker_flush(w, !w->first && !w->asked, error) : KILTER_OK;
}

/* --- shared data --- */

static kilter_status take_shared(kl_worker *w, kl_message *m, kilter_error *error) {
    kilter_bytes bytes;
    uint64_t hash;
    kl_wire_get_shared(m->data, m->size, &hash, &bytes); /* it was well-formed when it came */
    if (kl_hash(bytes.data, bytes.size, 0) != hash)
        return kl_worker_refuse(w, error, "the shared data of %zu bytes that it got are not what was sent",
                                bytes.size);
    const void *before = bytes.data;
    bytes.data = kl_aligned(&w->moved, before, bytes.size);
    if (!bytes.data)
        return kl_fail(error, KILTER_ERR_MEMORY, "keeping %zu bytes of shared data: memory ran out",
                       bytes.size);
    kl_message_release(&w->shared_message);
    if (bytes.data == before) {
        w->shared_message = *m;
        *m = (kl_message){0};
        kl_buffer_free(&w->moved);
    }
    w->shared = bytes;
    w->shared_hash = hash;
    int code = w->options.shared ? w->options.shared(bytes, w->state) : 0;
    if (code != 0)
        return kl_worker_refuse(w, error, "its shared function returned %d", code);
    kl_worker_drop_first(w);
    return KILTER_OK;
}

kilter_status kl_worker_begin_next(kl_worker *w, kilter_error *error) {
    if (w->rested)
        w->last_end_s = kl_now_s(&w->options.clock);
    w->rested = false;
    if (!w->first->is_shared)
        return begin_next_task(w, error);
    kilter_status status = take_shared(w, &w->first->message, error);
    w->last_end_s = kl_now_s(&w->options.clock);
    return status;
}

kilter_status kl_worker_work(kl_worker *w, kilter_error *error) {
    double began_s = kl_now_s(&w->options.clock);
    kilter_status status;
    do {
        status = kl_worker_begin_next(w, error);
        if (status == KILTER_OK && w->at_work)
            status = kl_worker_end_task(w, call_attended(w), error);
    } while (status == KILTER_OK && w->first && !atomic_load(&w->leave_why) &&
             w->last_end_s - began_s < w->options.burst_s);
    return status;
}
