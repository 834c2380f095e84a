/* A worker of a farm: its beginning and end, its messages, and what it does next. worker_private.h lists the
 * files of the worker. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/worker_private.h"

/* while a worker without a master waits, it checks at this interval (in seconds) whether it has waited too
 * long */
static const double LOOK_S = 0.1;

/* --- making and freeing a worker --- */

kilter_status kl_worker_new(const kl_worker_options *options, void *driver, kl_transport *transport,
                            kl_worker **worker, kilter_error *error) {
    kl_worker *w = calloc(1, sizeof *w);
    core_use *core = options->cpu_s ? kl_core_use_new(options, driver) : NULL;
    /* put zeros behind the struct, because a program for a newer Kilter may read more members */
    kilter_worker *self = options->start ? calloc(1, sizeof *self + KL_LATER_BYTES) : NULL;
    if (!w || (options->cpu_s && !core) || (options->start && !self)) {
        free(w);
        free(core);
        free(self);
        return kl_fail(error, KILTER_ERR_MEMORY, "starting a worker: memory ran out");
    }
    *w =
        (kl_worker){.options = options, .driver = driver, .transport = transport, .core = core, .self = self};
    kl_queue_open(&w->queue);
    w->state = options->state;
    w->waiting_since_s = kl_now_s(&options->clock);
    *worker = w;
    return KILTER_OK;
}

static void forget_data(kl_worker *w) {
    kl_queue_clear(&w->queue);
    kl_shared_data_free(w->shared);
    w->shared = NULL;
}

void kl_worker_free(kl_worker *w) {
    if (!w)
        return;
    if (w->started && w->options->stop)
        w->options->stop(w->state);
    forget_data(w);
    kl_leaving_free(&w->leaving);
    kl_buffer_free(&w->hand.input);
    kl_buffer_free(&w->hand.making);
    kl_buffer_free(&w->outbox.out);
    kl_peering_free(w->peers);
    free(w->core);
    free(w->self);
    free(w);
}

bool kl_worker_has_work(const kl_worker *w) {
    return w->queue.first != NULL;
}

double kl_worker_due_s(const kl_worker *w) {
    return kl_peering_due_s(w);
}

bool kl_worker_is_orphan(const kl_worker *w) {
    return w->orphan;
}

/* Empty the buffer. If its memory belongs to the master that was lost, free the memory. */
static void empty(kl_buffer *buffer) {
    if (buffer->borrowed)
        kl_buffer_free(buffer);
    kl_buffer_clear(buffer);
}

void kl_worker_adopt(kl_worker *w, kl_transport *transport) {
    kl_peering_free(w->peers);
    w->peers = NULL;
    forget_data(w);
    empty(&w->outbox.out);
    empty(&w->hand.making);
    kl_leaving_adopt(&w->leaving);
    if (w->core)
        kl_core_use_clear(w->core);
    w->outbox = (outbox){.out = w->outbox.out};
    w->hand = (hand){
        .making = w->hand.making, .input = w->hand.input, .done = w->hand.done, .task_s = w->hand.task_s};
    w->asking = (asking){0};
    w->share = (task_share){0};
    w->attended = (attended){0};
    w->attendance = (kl_attendance){0};
    w->transport = transport;
    w->master = KL_NO_PEER;
    w->limits = (kl_welcome){0};
    w->memory_before = 0;
    w->ready = w->orphan = false;
    w->waiting_since_s = kl_now_s(&w->options->clock);
}

/* --- messages --- */

static kilter_status say_hello(kl_worker *w, kilter_error *error) {
    const kl_worker_options *o = w->options;
    kl_hello hello = {.version = KL_WIRE_VERSION, .attends = w->attendance.works != NULL};
    if (o->introduce)
        o->introduce(w->driver, &hello);
    snprintf(hello.binding, sizeof hello.binding, "%s", o->binding);
    snprintf(hello.program, sizeof hello.program, "%s", o->program);
    snprintf(hello.program_version, sizeof hello.program_version, "%s",
             o->program_version ? o->program_version : "");
    kl_buffer out = {0};
    kl_wire_put_hello(&out, &hello);
    return kl_worker_post(w, &out, error);
}

static kilter_status malformed(kilter_error *error) {
    return kl_fail(
        error, KILTER_ERR_PEER,
        "a message of the master cannot be read: start master and workers from the same version of Kilter");
}

static int start(kl_worker *w) {
    if (w->started || !w->options->start)
        return 0;
    *w->self = (kilter_worker){.index = w->index, .user = w->options->user};
    return w->options->start(w->self, &w->state);
}

static kilter_status on_welcome(kl_worker *w, const kl_message *m, kilter_error *error) {
    if (w->ready || !kl_wire_get_welcome(m->data, m->size, &w->limits))
        return malformed(error);
    w->index = w->limits.worker;
    w->memory_before = w->options->memory ? w->options->memory(w->driver) : 0;
    int code = start(w);
    if (code != 0)
        return kl_worker_refuse(w, error, "the worker's start function returned %d", code);
    w->started = w->ready = true;
    w->asking.asked = true; /* the message READY also requests a chunk */
    kl_buffer out = {0};
    kl_wire_put_plain(&out, KL_READY);
    return kl_worker_post(w, &out, error);
}

static kilter_status on_probe(kl_worker *w, const kl_message *m, kilter_error *error) {
    kl_buffer out = {0};
    kl_wire_put_bytes(&out, KL_ECHO, m->data + 1, m->size - 1);
    return kl_worker_post(w, &out, error);
}

static kilter_status on_shared(kl_worker *w, kl_message *m, kilter_error *error) {
    kilter_bytes bytes;
    uint64_t hash;
    if (!w->ready || !kl_wire_get_shared(m->data, m->size, &hash, &bytes))
        return malformed(error);
    queued *item = calloc(1, sizeof *item);
    if (!item)
        return kl_fail(error, KILTER_ERR_MEMORY, "taking shared data: memory ran out");
    /* do not measure the round trip, because this message comes before the chunk that was requested */
    w->asking.bytes = 0;
    item->is_shared = true;
    kl_queue_put(&w->queue, item, m);
    return KILTER_OK;
}

static kilter_status on_chunk(kl_worker *w, kl_message *m, kilter_error *error) {
    queued *chunk = calloc(1, sizeof *chunk);
    if (!chunk)
        return kl_fail(error, KILTER_ERR_MEMORY, "taking a chunk: memory ran out");
    if (!w->ready || !kl_wire_get_chunk(m->data, m->size, &chunk->head, &chunk->weights, &chunk->inputs)) {
        free(chunk);
        return malformed(error);
    }
    kl_peering_stop(w, chunk->head.run);
    kl_asking_answered(&w->asking, &chunk->head, m->size, kl_now_s(&w->options->clock));
    w->queue.tasks += chunk->head.count;
    kl_queue_put(&w->queue, chunk, m);
    return KILTER_OK;
}

static kilter_status on_recall(kl_worker *w, const kl_message *m, kilter_error *error) {
    kl_part part;
    if (!w->ready || !kl_wire_get_part(m->data, m->size, &part))
        return malformed(error);
    return kl_worker_on_recall(w, &part, error);
}

static kilter_status on_end(kl_worker *w, const kl_message *m, kilter_error *error) {
    char why[160];
    kl_wire_get_text(m->data, m->size, why, sizeof why);
    w->leaving.dismissed = *why;
    return *why ? kl_fail(error, KILTER_ERR_PEER, "worker %u was sent away by the master, because it %s",
                          w->index, why)
                : kl_fail(error, KILTER_ENDED, "the farm is closed");
}

static kilter_status on_release(kl_worker *w, const kl_message *m, kilter_error *error) {
    if (!kl_wire_get_plain(m->data, m->size))
        return malformed(error);
    atomic_store(&w->leaving.why, "the farm does not need it");
    return KILTER_OK;
}

/* Handle RENEW: the result of the task at hand no longer counts, and a new worker replaces this one. */
static kilter_status on_renew(kl_worker *w, const kl_message *m, kilter_error *error) {
    char why[WHY_BYTES];
    kl_wire_get_text(m->data, m->size, why, sizeof why);
    kl_renew(&w->leaving, "%s", why);
    w->leaving.dismissed = true;
    return kl_fail(error, KILTER_ENDED, "a new worker replaces worker %u, which %s", w->index, why);
}

static kilter_status on_message(kl_worker *w, kl_peer from, kl_message *m, kilter_error *error) {
    if (from != w->master)
        return kl_peering_message(w, from, m, error);
    switch (kl_wire_type(m->data, m->size)) {
    case KL_WELCOME:
        return on_welcome(w, m, error);
    case KL_PROBE:
        return on_probe(w, m, error);
    case KL_SHARED:
        return on_shared(w, m, error);
    case KL_CHUNK:
        return on_chunk(w, m, error);
    case KL_RECALL:
        return on_recall(w, m, error);
    case KL_RELEASE:
        return on_release(w, m, error);
    case KL_RENEW:
        return on_renew(w, m, error);
    case KL_END:
        return on_end(w, m, error);
    case KL_OPEN:
    case KL_PEERS:
    case KL_NOTE:
    case KL_PEER:
    case KL_GONE:
    case KL_INPUTS:
    case KL_DISBAND:
        return kl_peering_message(w, from, m, error);
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
        /* do nothing if there is a master, because the new peer is then another worker */
        if (w->master != KL_NO_PEER)
            break;
        w->master = event->peer;
        status = say_hello(w, error);
        break;
    case KL_EVENT_LEFT:
        if (event->peer != w->master) {
            status = kl_peering_left(w, event->peer, error);
            break;
        }
        w->orphan = true;
        status = kl_fail(error, KILTER_ERR_PEER, "the master is gone: worker %u ends", w->index);
        break;
    case KL_EVENT_MESSAGE:
        status = on_message(w, event->peer, &event->message, error);
        kl_message_release(&event->message);
        break;
    }
    return status;
}

/* --- turns of the worker --- */

static kilter_status wait_for(kl_worker *w, double timeout_s, kl_event *event, kilter_error *error) {
    if (!w->core)
        return kl_poll(w->transport, timeout_s, event, error);
    double now_s = kl_now_s(&w->options->clock);
    kl_core_use_begin_wait(w->core, now_s);
    kilter_status status = kl_poll(w->transport, timeout_s, event, error);
    kl_core_use_end_wait(w->core, now_s);
    return status;
}

static kilter_status leave(kl_worker *w, kilter_error *error) {
    const char *why = atomic_load(&w->leaving.why);
    bool has_master = w->master != KL_NO_PEER;
    kilter_status status = has_master ? kl_worker_give_all_back(w, error) : KILTER_OK;
    if (status == KILTER_OK && kl_has_results(&w->outbox))
        status = kl_worker_flush(w, false, error);
    if (status == KILTER_OK && has_master)
        status = kl_worker_send_text(w, kl_is_renewal(&w->leaving) ? KL_RENEW : KL_LEAVE, why, error);
    return status == KILTER_OK ? kl_fail(error, KILTER_ENDED, "worker %u leaves: %s", w->index, why) : status;
}

kilter_status kl_worker_take_in(kl_worker *w, double timeout_s, kilter_error *error) {
    kilter_status status = KILTER_OK;
    while (status == KILTER_OK) {
        kl_event event;
        status = w->queue.first || timeout_s == 0 ? kl_poll(w->transport, 0, &event, error)
                                                  : wait_for(w, timeout_s, &event, error);
        if (status != KILTER_OK || event.kind == KL_EVENT_NONE)
            break;
        timeout_s = 0;
        status = on_event(w, &event, error);
        /* measure no round trip from now on, because the next messages may have waited while the worker
         * handled this one */
        w->asking.idle = false;
    }
    return status == KILTER_OK ? kl_peering_look(w, error) : status;
}

static kilter_status check_patience(const kl_worker *w, kilter_error *error) {
    double waited_s = kl_now_s(&w->options->clock) - w->waiting_since_s;
    if (w->master != KL_NO_PEER || w->options->patience_s < 0 || waited_s < w->options->patience_s)
        return KILTER_OK;
    if (w->started)
        return kl_fail(error, KILTER_ERR_PEER,
                       "the master is gone and did not come back within %g s: worker %u ends",
                       w->options->patience_s, w->index);
    return kl_fail(error, KILTER_ERR_PEER,
                   "no master answered within %g s: check that it runs and that the address is right",
                   w->options->patience_s);
}

/* Return whether the worker should send a message with its results now. It should if its queue is empty, or
 * was empty until the next chunk arrived. But if it must request another chunk at once, the results wait for
 * the message with this request. */
static bool is_to_report(const kl_worker *w, bool ran_dry) {
    if (!w->queue.first)
        return w->ready && (!w->asking.asked || kl_has_results(&w->outbox));
    return ran_dry && kl_has_results(&w->outbox) && (w->queue.first->is_shared || !kl_worker_runs_low(w));
}

static kilter_status settle(kl_worker *w, bool ran_dry, kilter_error *error) {
    if (kl_is_leaving(&w->leaving))
        return leave(w, error);
    if (is_to_report(w, ran_dry))
        return kl_worker_flush(w, !w->queue.first && !w->asking.asked, error);
    return check_patience(w, error);
}

static kilter_status turn(kl_worker *w, double timeout_s, kilter_error *error) {
    kilter_status status = KILTER_OK;
    w->asking.idle = !w->queue.first;
    if (w->queue.first && !kl_is_leaving(&w->leaving)) {
        status = kl_worker_work(w, error);
        timeout_s = 0;
    } else if (w->master == KL_NO_PEER && w->options->patience_s >= 0 &&
               (timeout_s < 0 || timeout_s > LOOK_S)) {
        timeout_s = LOOK_S;
    } else if (!w->queue.first) {
        double until_s = kl_peering_due_s(w) - kl_now_s(&w->options->clock);
        timeout_s = until_s >= HUGE_VAL || (timeout_s >= 0 && timeout_s <= until_s) ? timeout_s
                    : until_s > 0                                                   ? until_s
                                                                                    : 0;
    }
    bool ran_dry = !w->queue.first;
    if (status == KILTER_OK)
        status = kl_worker_take_in(w, timeout_s, error);
    return status == KILTER_OK ? settle(w, ran_dry, error) : status;
}

kilter_status kl_worker_between(kl_worker *w, kilter_error *error) {
    bool ran_dry = !w->queue.first;
    kilter_status status = kl_worker_take_in(w, 0, error);
    if (status == KILTER_OK)
        status = settle(w, ran_dry, error);
    w->asking.idle = !w->queue.first;
    return status;
}

kilter_status kl_worker_turn(kl_worker *w, double timeout_s, kilter_error *error) {
    kilter_error failure = {KILTER_OK, ""};
    kilter_status status = turn(w, timeout_s, &failure);
    /* tell the master the reason for which the worker ends */
    if (status == KILTER_ERR_MEMORY && w->master != KL_NO_PEER)
        kl_worker_send_text(w, KL_REFUSE, failure.text, NULL);
    if (status != KILTER_OK && error)
        *error = failure;
    return status;
}
