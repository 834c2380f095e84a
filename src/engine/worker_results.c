/* Send results that are ready, together with the request for the next chunk.
 *
 *   queue     [ chunk 7: ######>········ ][ chunk 9 ]      > is the task that the worker does now
 *   segment                ^^^^                            done tasks whose results are not sent
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/worker_private.h"

/* The answer time is the time from a request until its chunk arrives. The worker remembers the greatest
 * recent answer time, and multiplies it by ANSWER_MEMORY at each answer. An answer time above ANSWER_MOST_S
 * counts as ANSWER_MOST_S. */
static const double ANSWER_MEMORY = 0.9, ANSWER_MOST_S = 20e-3;
/* relative difference that the speeds of two clocks may have; it is twenty times the usual difference of
 * 50 millionths */
static const double CLOCKS_DIFFER = 1e-3;

/* --- sending --- */

static kilter_status send_kept(kl_worker *w, const kl_buffer *message, kilter_error *error) {
    kilter_status status = kl_send(w->transport, w->master, message, error);
    return status == KILTER_ERR_PEER ? KILTER_OK : status;
}

kilter_status kl_worker_post(kl_worker *w, kl_buffer *message, kilter_error *error) {
    kilter_status status = send_kept(w, message, error);
    kl_buffer_free(message);
    return status;
}

kilter_status kl_worker_send_text(kl_worker *w, kl_message_type type, const char *text, kilter_error *error) {
    kl_buffer out = {0};
    kl_wire_put_bytes(&out, type, text, strlen(text));
    return kl_worker_post(w, &out, error);
}

kilter_status kl_worker_refuse(kl_worker *w, kilter_error *error, const char *format, ...) {
    char why[WHY_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    kl_worker_send_text(w, KL_REFUSE, why, NULL);
    return kl_fail(error, KILTER_ERR_TASK, "worker %u leaves the farm: %s", w->index, why);
}

/* --- results --- */

double kl_worker_results_due_s(const kl_worker *w) {
    return w->hand.at_work && kl_has_results(&w->outbox) ? w->outbox.first_result_s + KL_FLUSH_S : HUGE_VAL;
}

void kl_begin_segment(outbox *o, kl_buffer *out, const queued *chunk, double now_s) {
    if (out->size == 0)
        kl_wire_begin_results(out);
    o->segment = (kl_segment){.chunk = chunk->head.chunk, .lo = chunk->head.lo + chunk->at, .began_s = now_s};
    o->segment_at = out->size;
    kl_wire_begin_segment(out, &o->segment);
}

void kl_end_segment(outbox *o) {
    if (o->segment.count == 0)
        return;
    o->segment.ended_s = o->last_end_s;
    kl_wire_end_segment(&o->out, o->segment_at, &o->segment);
    o->segments++;
    o->segment = (kl_segment){0};
}

/* --- requesting more chunks --- */

/* Measure the round trip of a request and its chunk, if the worker had no work meanwhile. The time for which
 * the request waited at the master is subtracted. If this waiting time is long, nothing is measured, because
 * the clocks of two hosts run at different speeds. */
static void note_round_trip(asking *a, const kl_chunk_head *head, size_t bytes, double now_s) {
    double took_s = now_s - a->asked_at_s - head->held_s;
    if (!head->quiet || !a->asked || !a->idle || a->bytes == 0 || took_s < CLOCKS_DIFFER * head->held_s)
        return;
    a->round_trip_s = took_s;
    a->round_trip_bytes = a->bytes + (double)bytes;
}

/* Store the time from a request until its chunk arrived, so that the next request is sent early enough.
 * This time may be long: if other threads use the master's core, an answer may take several time slices of
 * the scheduler. */
void kl_asking_answered(asking *a, const kl_chunk_head *head, size_t bytes, double now_s) {
    note_round_trip(a, head, bytes, now_s);
    /* an answer in another run does not count, because the program may have computed between the two runs */
    if (a->asked && head->run == a->run)
        a->answer_s = fmax(fmin(now_s - a->asked_at_s, ANSWER_MOST_S), ANSWER_MEMORY * a->answer_s);
    a->asked = false;
    a->run = head->run;
}

static kl_results_head make_head(kl_worker *w, bool more) {
    kl_results_head head = {.segments = w->outbox.segments, .more = more};
    head.sent_s = kl_now_s(&w->options->clock);
    if (w->core) {
        kl_core_use_look(w->core, head.sent_s);
        head.cpu_s = w->core->cpu_s;
        head.delay_s = w->core->delay_s;
    }
    head.round_trip_s = w->asking.round_trip_s;
    head.round_trip_bytes = w->asking.round_trip_bytes;
    return head;
}

kilter_status kl_worker_flush(kl_worker *w, bool more, kilter_error *error) {
    outbox *o = &w->outbox;
    kl_end_segment(o);
    if (o->out.size == 0)
        kl_wire_begin_results(&o->out);
    kl_results_head head = make_head(w, more);
    w->asking.round_trip_s = w->asking.round_trip_bytes = 0;
    kl_wire_end_results(&o->out, &head);
    kilter_status status = send_kept(w, &o->out, error);
    if (more) {
        w->asking.asked = true;
        w->asking.asked_at_s = head.sent_s;
        w->asking.bytes = (double)o->out.size;
    }
    kl_buffer_clear(&o->out);
    /* get another buffer from the transport, because the buffer that it lent was sent with a large message */
    if (o->out.borrowed)
        kl_lend(w->transport, w->master, 0, &o->out);
    o->segments = 0;
    return status;
}
