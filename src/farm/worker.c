/* The worker: takes chunks, does their tasks one by one, sends results back, and asks for more before it runs
 * dry.
 *
 *   queue     [ chunk 7: ######>········ ][ chunk 9 ]      > the task at hand; chunk 9 came while 7 was being
 * done segment             ^^^^              done, not sent yet
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "farm/farm.h"
#include "play/play.h"

static const double CLOCKS_DIFFER = 1e-3; /* 50 millionths, twentyfold */

/* A chunk that has come: its message, and how far it is done. */
typedef struct queued {
    struct queued *next;
    kl_message message;
    kl_chunk_head head;
    kl_reader weights, inputs;
    uint64_t at; /* tasks of it done */
} queued;

struct kl_worker {
    kl_worker_options options;
    kl_transport *transport;
    kl_peer master;
    kilter_worker self;
    void *state;
    bool started;
    double waiting_since_s; /* for a master */

    queued *first, **end;
    uint64_t queued_tasks; /* not begun */
    bool asked;            /* for a chunk that has not come yet */
    double asked_at_s;
    double sent_at_s, sent_bytes;          /* of the message that asked; bytes 0: it tells no round trip */
    bool idle;                             /* waits for messages, and does nothing else */
    double round_trip_s, round_trip_bytes; /* for the next results */
    uint64_t asked_run;                    /* the run that was on then */
    double answer_s;                       /* from asking to having the chunk, the longest lately */
    double task_s;                         /* a task's time lately; 0: not known */
    uint64_t shared_hash;                  /* of the shared data in force; 0: none */
    kl_buffer shared, input;               /* shared data in force; scratch for an input that must be moved */

    kl_buffer out; /* results to be sent */
    uint32_t segments;
    size_t segment_at;
    kl_segment segment;    /* the one being filled; count 0: none */
    double first_result_s; /* when the first result in `out` was there */
    double last_end_s;
};

struct kilter_result {
    kl_buffer *buffer;
    size_t at; /* where the task's result begins */
    bool failed;
};

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

kilter_status kl_worker_new(const kl_worker_options *options, kl_transport *transport, kl_worker **worker,
                            kilter_error *error) {
    kl_worker *w = calloc(1, sizeof *w);
    if (!w)
        return kl_fail(error, KILTER_ERR_MEMORY, "starting a worker: memory ran out");
    w->options = *options;
    w->transport = transport;
    w->end = &w->first;
    w->self.user = options->user;
    w->waiting_since_s = kl_now_s(&options->clock);
    *worker = w;
    return KILTER_OK;
}

static void drop_first(kl_worker *w) {
    queued *done = w->first;
    w->first = done->next;
    if (!w->first)
        w->end = &w->first;
    kl_message_release(&done->message);
    free(done);
}

void kl_worker_free(kl_worker *w) {
    if (!w)
        return;
    if (w->started && w->options.stop)
        w->options.stop(w->state);
    while (w->first)
        drop_first(w);
    kl_buffer_free(&w->shared);
    kl_buffer_free(&w->input);
    kl_buffer_free(&w->out);
    free(w);
}

bool kl_worker_has_work(const kl_worker *w) {
    return w->first != NULL;
}

/* --- results --- */

static void end_segment(kl_worker *w) {
    if (w->segment.count == 0)
        return;
    w->segment.ended_s = w->last_end_s;
    kl_wire_end_segment(&w->out, w->segment_at, &w->segment);
    w->segments++;
    w->segment = (kl_segment){0};
}

static void begin_segment(kl_worker *w, const queued *chunk, double now_s) {
    if (w->out.size == 0)
        kl_wire_begin_results(&w->out);
    w->segment = (kl_segment){.chunk = chunk->head.chunk, .lo = chunk->head.lo + chunk->at, .began_s = now_s};
    w->segment_at = w->out.size;
    kl_wire_begin_segment(&w->out, &w->segment);
}

/* Send what is done; with `more`, ask for the next chunk in the same message. */
static kilter_status flush(kl_worker *w, bool more, kilter_error *error) {
    end_segment(w);
    if (w->out.size == 0)
        kl_wire_begin_results(&w->out);
    kl_results_head head = {.segments = w->segments, .more = more, .sent_s = kl_now_s(&w->options.clock)};
    head.round_trip_s = w->round_trip_s;
    head.round_trip_bytes = w->round_trip_bytes;
    w->round_trip_s = w->round_trip_bytes = 0;
    kl_wire_end_results(&w->out, &head);
    kilter_status status = kl_send(w->transport, w->master, &w->out, error);
    if (more) {
        w->sent_at_s = head.sent_s;
        w->sent_bytes = (double)w->out.size;
    }
    kl_buffer_clear(&w->out);
    w->segments = 0;
    if (more) {
        w->asked = true;
        w->asked_at_s = w->last_end_s;
    }
    return status;
}

/* --- tasks --- */

/* Is so little left that the next chunk must be on its way now? But asking for it while working hides nothing
 * when what is left is shorter than sending a message: then the request goes with the last result. */
static bool running_low(const kl_worker *w, const queued *chunk) {
    if (w->task_s > 0 && (double)w->queued_tasks * w->task_s < KL_HIDES_NOTHING_S)
        return false;
    double lead_s = fmax(chunk->head.lead_s, KL_ANSWERS_AHEAD * w->answer_s);
    bool soon = w->task_s > 0 && (double)(w->queued_tasks - 1) * w->task_s <= lead_s;
    return !w->asked && (w->queued_tasks == 1 || soon);
}

static void account_task(kl_worker *w, double seconds, double weight, double now_s) {
    w->segment.count++;
    w->segment.busy_s += seconds;
    kl_stat_add(&w->segment.unit_s, seconds / weight, now_s);
    /* Enough to know when to ask; the master keeps the real statistics. */
    w->task_s += (seconds - w->task_s) / (w->task_s > 0 ? 8 : 1);
    w->last_end_s = now_s;
}

static void do_task(kl_worker *w, queued *chunk, double began_s) {
    if (w->segment.count == 0)
        begin_segment(w, chunk, began_s);
    kilter_task task = {.index = chunk->head.lo + chunk->at, .run = chunk->head.run};
    task.shared = (kilter_bytes){w->shared.data, w->shared.size};
    if (chunk->head.inputs)
        task.input.data = kl_get_span(&chunk->inputs, &task.input.size);
    if (task.input.size > 0)
        task.input.data = kl_aligned(&w->input, task.input.data, task.input.size);
    double weight = chunk->head.weighted ? kl_get_f64(&chunk->weights) : 1;

    kilter_result result = {.buffer = &w->out, .at = kl_wire_begin_result(&w->out)};
    bool lacking = task.input.size > 0 && !task.input.data;
    int code = lacking ? kilter_result_fail(&result, "taking its input of %zu bytes: memory ran out",
                                            task.input.size)
                       : w->options.work(&task, &result, w->state);
    if (code != 0 && !result.failed) {
        char text[64];
        snprintf(text, sizeof text, "the work function returned %d", code);
        fail_with(&result, text);
    }
    if (w->out.failed) { /* the result did not fit: that is this task's failure, not the worker's */
        w->out.failed = false;
        fail_with(&result, "keeping its result: memory ran out");
    }
    kl_wire_end_result(&w->out, result.at, result.failed);
    double now_s = kl_now_s(&w->options.clock);
    chunk->at++;
    w->queued_tasks--;
    account_task(w, now_s - began_s, weight, now_s);
}

static void finish_chunk(kl_worker *w) {
    w->segment.last = true;
    end_segment(w);
    drop_first(w);
}

static bool flush_is_due(const kl_worker *w) {
    return w->out.size >= KL_FLUSH_BYTES || w->last_end_s - w->first_result_s >= KL_FLUSH_S;
}

/* Do tasks until it is time to look for messages again. */
static kilter_status work(kl_worker *w, kilter_error *error) {
    double began_s = kl_now_s(&w->options.clock);
    kilter_status status = KILTER_OK;
    w->last_end_s = began_s;
    do {
        queued *chunk = w->first;
        if (running_low(w, chunk) && (status = flush(w, true, error)) != KILTER_OK)
            break;
        bool first = w->out.size == 0;
        do_task(w, chunk, w->last_end_s);
        if (first)
            w->first_result_s = w->last_end_s;
        if (chunk->at == chunk->head.count)
            finish_chunk(w);
        if (!w->first || flush_is_due(w))
            status = flush(w, !w->first && !w->asked, error);
    } while (status == KILTER_OK && w->first && w->last_end_s - began_s < w->options.burst_s);
    return status;
}

/* --- messages --- */

static kilter_status send_plain(kl_worker *w, kl_message_type type, const char *text, kilter_error *error) {
    kl_buffer out = {0};
    if (text)
        kl_wire_put_bytes(&out, type, text, strlen(text));
    else
        kl_wire_put_plain(&out, type);
    kilter_status status = kl_send(w->transport, w->master, &out, error);
    kl_buffer_free(&out);
    return status;
}

/* Tell the master why this worker cannot work; it goes on without us. */
static kilter_status refuse(kl_worker *w, kilter_error *error, const char *format, ...) KILTER_PRINTF(3, 4);
static kilter_status refuse(kl_worker *w, kilter_error *error, const char *format, ...) {
    char text[128];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    send_plain(w, KL_REFUSE, text, NULL);
    return kl_fail(error, KILTER_ERR_TASK, "worker %u leaves the farm: %s", w->self.index, text);
}

static kilter_status say_hello(kl_worker *w, kilter_error *error) {
    kl_hello hello = {.version = KL_WIRE_VERSION, .pid = (uint64_t)getpid()};
    char host[KL_HOST_BYTES];
    kl_host_name(host);
    snprintf(hello.host, sizeof hello.host, "%.*s", (int)sizeof hello.host - 1, host);
    snprintf(hello.binding, sizeof hello.binding, "%s", w->options.binding);
    snprintf(hello.program, sizeof hello.program, "%s", w->options.program);
    snprintf(hello.program_version, sizeof hello.program_version, "%s",
             w->options.program_version ? w->options.program_version : "");
    kl_buffer out = {0};
    kl_wire_put_hello(&out, &hello);
    kilter_status status = kl_send(w->transport, w->master, &out, error);
    kl_buffer_free(&out);
    return status;
}

static kilter_status malformed(kilter_error *error) {
    return kl_fail(error, KILTER_ERR_PEER,
                   "a message of the master cannot be read: start master and workers from the same version");
}

static kilter_status on_welcome(kl_worker *w, const kl_message *m, kilter_error *error) {
    if (w->started || !kl_wire_get_welcome(m->data, m->size, &w->self.index))
        return malformed(error);
    int code = w->options.start ? w->options.start(&w->self, &w->state) : 0;
    if (code != 0)
        return refuse(w, error, "its start function returned %d", code);
    w->started = true;
    w->asked = true; /* being ready is asking */
    return send_plain(w, KL_READY, NULL, error);
}

static kilter_status on_probe(kl_worker *w, const kl_message *m, kilter_error *error) {
    kl_buffer out = {0};
    kl_wire_put_bytes(&out, KL_ECHO, m->data + 1, m->size - 1);
    kilter_status status = kl_send(w->transport, w->master, &out, error);
    kl_buffer_free(&out);
    return status;
}

static kilter_status on_shared(kl_worker *w, const kl_message *m, kilter_error *error) {
    if (!w->started)
        return malformed(error);
    w->sent_bytes = 0; /* the chunk asked for is behind this message */
    uint64_t hash;
    kilter_bytes sent;
    if (!kl_wire_get_shared(m->data, m->size, &hash, &sent))
        return malformed(error);
    if (hash != kl_hash(sent.data, sent.size, 0))
        return refuse(w, error, "the shared data of %zu bytes that it got is not what was sent", sent.size);
    kl_buffer_clear(&w->shared);
    kl_put_bytes(&w->shared, sent.data, sent.size);
    if (w->shared.failed) {
        w->shared.failed = false;
        return refuse(w, error, "memory for %zu bytes of shared data ran out", sent.size);
    }
    w->shared_hash = hash;
    kilter_bytes bytes = {w->shared.data, w->shared.size};
    int code = w->options.shared ? w->options.shared(bytes, w->state) : 0;
    return code != 0 ? refuse(w, error, "its shared function returned %d", code) : KILTER_OK;
}

/* A chunk that comes while nothing else is to be done tells what messages cost. Two clocks differ by some
 * millionths of the time that the request lay at the master: that must not matter. */
static void note_round_trip(kl_worker *w, const kl_chunk_head *head, size_t bytes) {
    double took_s = kl_now_s(&w->options.clock) - w->sent_at_s - head->held_s;
    if (!head->quiet || !w->asked || !w->idle || w->sent_bytes == 0 || took_s < CLOCKS_DIFFER * head->held_s)
        return;
    w->round_trip_s = took_s;
    w->round_trip_bytes = w->sent_bytes + (double)bytes;
}

/* Where others use the master's core, an answer may take some scheduling quanta: the next request goes out
 * that much earlier. */
static void note_answer(kl_worker *w, uint64_t run) {
    double took_s = kl_now_s(&w->options.clock) - w->asked_at_s;
    if (w->asked && run == w->asked_run) /* else it was the user who took his time */
        w->answer_s = fmax(fmin(took_s, KL_ANSWER_MOST_S), KL_ANSWER_MEMORY * w->answer_s);
    w->asked = false;
    w->asked_run = run;
}

static kilter_status on_chunk(kl_worker *w, kl_message *m, kilter_error *error) {
    queued *chunk = calloc(1, sizeof *chunk);
    if (!chunk)
        return kl_fail(error, KILTER_ERR_MEMORY, "taking a chunk: memory ran out");
    if (!w->started || !kl_wire_get_chunk(m->data, m->size, &chunk->head, &chunk->weights, &chunk->inputs)) {
        free(chunk);
        return malformed(error);
    }
    if (chunk->head.shared != w->shared_hash) {
        uint64_t meant = chunk->head.shared;
        free(chunk);
        return refuse(w, error, "it has shared data %016llx, and was given tasks for %016llx",
                      (unsigned long long)w->shared_hash, (unsigned long long)meant);
    }
    note_round_trip(w, &chunk->head, m->size);
    chunk->message = *m;
    *m = (kl_message){0};
    *w->end = chunk;
    w->end = &chunk->next;
    w->queued_tasks += chunk->head.count;
    note_answer(w, chunk->head.run);
    return KILTER_OK;
}

static kilter_status on_end(const kl_worker *w, const kl_message *m, kilter_error *error) {
    char why[160];
    kl_wire_get_text(m->data, m->size, why, sizeof why);
    return *why ? kl_fail(error, KILTER_ERR_PEER, "the master sent worker %u away: it %s", w->self.index, why)
                : kl_fail(error, KILTER_ENDED, "the farm is closed");
}

/* --- giving back --- */

static kilter_status say_return(kl_worker *w, uint64_t chunk, uint64_t lo, uint64_t hi, kilter_error *error) {
    kl_buffer out = {0};
    kl_wire_put_part(&out, KL_RETURN, &(kl_part){chunk, lo, hi});
    kilter_status status = kl_send(w->transport, w->master, &out, error);
    kl_buffer_free(&out);
    return status;
}

static void unlink_chunk(kl_worker *w, queued **at) {
    queued *gone = *at;
    *at = gone->next;
    if (w->end == &gone->next)
        w->end = at;
    kl_message_release(&gone->message);
    free(gone);
}

/* What is not begun of this chunk, but tasks before `from`, goes back. What is done of it is sent before, so
 * that both sides see the chunk end at the same task. */
static kilter_status give_back(kl_worker *w, queued **at, uint64_t from, kilter_error *error) {
    queued *chunk = *at;
    uint64_t begun = chunk->head.lo + chunk->at, hi = chunk->head.lo + chunk->head.count,
             id = chunk->head.chunk;
    uint64_t lo = from > begun ? from : begun;
    lo = lo < hi ? lo : hi;
    kilter_status status = KILTER_OK;
    w->queued_tasks -= hi - lo;
    chunk->head.count = lo - chunk->head.lo;
    if (lo == begun) { /* which ends it here, without another result */
        if (w->out.size > 0)
            status = flush(w, false, error);
        unlink_chunk(w, at);
    }
    return status == KILTER_OK ? say_return(w, id, lo, hi, error) : status;
}

static kilter_status on_recall(kl_worker *w, const kl_message *m, kilter_error *error) {
    kl_part part;
    if (!w->started || !kl_wire_get_part(m->data, m->size, &part))
        return malformed(error);
    queued **at = &w->first;
    while (*at && (*at)->head.chunk != part.chunk)
        at = &(*at)->next;
    if (!*at)
        return KILTER_OK; /* it is done, and its results are under way */
    kilter_status status = give_back(w, at, part.lo, error);
    return status == KILTER_OK && !w->first && !w->asked ? flush(w, true, error) : status;
}

static kilter_status leave(kl_worker *w, const char *why, kilter_error *error) {
    kilter_status status = KILTER_OK;
    while (w->first && status == KILTER_OK)
        status = give_back(w, &w->first, 0, error);
    return status == KILTER_OK ? send_plain(w, KL_LEAVE, why, error) : status;
}

static kilter_status on_release(kl_worker *w, const kl_message *m, kilter_error *error) {
    if (!kl_wire_get_plain(m->data, m->size))
        return malformed(error);
    kilter_status status = leave(w, "the farm can do without it", error);
    return status == KILTER_OK
               ? kl_fail(error, KILTER_ENDED, "the farm can do without worker %u", w->self.index)
               : status;
}

static kilter_status on_message(kl_worker *w, kl_message *m, kilter_error *error) {
    switch (kl_wire_type(m->data, m->size)) {
    case KL_WELCOME:
        return on_welcome(w, m, error);
    case KL_PROBE:
        return on_probe(w, m, error);
    case KL_SHARED:
        return on_shared(w, m, error);
    case KL_CHUNK:
        return on_chunk(w, m, error);
    case KL_END:
        return on_end(w, m, error);
    case KL_RECALL:
        return on_recall(w, m, error);
    case KL_RELEASE:
        return on_release(w, m, error);
    default:
        return malformed(error);
    }
}

static kilter_status on_event(kl_worker *w, kl_event *event, kilter_error *error) {
    kilter_status status = KILTER_OK;
    switch (event->kind) {
    case KL_EVENT_NONE:
        break;
    case KL_EVENT_JOINED:
        w->master = event->peer;
        status = say_hello(w, error);
        break;
    case KL_EVENT_LEFT:
        status = kl_fail(error, KILTER_ERR_PEER, "the master is gone: worker %u ends", w->self.index);
        break;
    case KL_EVENT_MESSAGE:
        status = on_message(w, &event->message, error);
        kl_message_release(&event->message);
        break;
    }
    return status;
}

static kilter_status check_patience(const kl_worker *w, kilter_error *error) {
    double waited_s = kl_now_s(&w->options.clock) - w->waiting_since_s;
    if (w->master != KL_NO_PEER || w->options.patience_s < 0 || waited_s < w->options.patience_s)
        return KILTER_OK;
    return kl_fail(error, KILTER_ERR_PEER,
                   "no master answered within %.0f s: check that it runs and that the address is right",
                   w->options.patience_s);
}

kilter_status kl_worker_turn(kl_worker *w, double timeout_s, kilter_error *error) {
    kilter_status status = KILTER_OK;
    w->idle = !w->first;
    if (w->first) {
        status = work(w, error);
        timeout_s = 0;
    } else if (w->master == KL_NO_PEER && w->options.patience_s >= 0 && (timeout_s < 0 || timeout_s > 0.1)) {
        timeout_s = 0.1; /* to notice when patience ends */
    }
    while (status == KILTER_OK) {
        kl_event event;
        status = kl_poll(w->transport, w->first ? 0 : timeout_s, &event, error);
        if (status != KILTER_OK || event.kind == KL_EVENT_NONE)
            break;
        timeout_s = 0;
        status = on_event(w, &event, error);
        w->idle = false; /* what comes now may have waited */
    }
    return status == KILTER_OK ? check_patience(w, error) : status;
}
