/* The worker: takes chunks, asks for more before it runs dry, gives back what it is asked for, and leaves.
 * Its tasks are in tasks.c. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/worker_private.h"

static const double CLOCKS_DIFFER = 1e-3; /* 50 millionths, twentyfold */
static const double LOOK_S = 0.1;         /* while there is no master, to notice when patience ends */

/* --- life --- */

kilter_status kl_worker_new(const kl_worker_options *options, kl_transport *transport, kl_worker **worker,
                            kilter_error *error) {
    kl_worker *w = calloc(1, sizeof *w);
    if (!w)
        return kl_fail(error, KILTER_ERR_MEMORY, "starting a worker: memory ran out");
    w->options = *options;
    w->transport = transport;
    w->end = &w->first;
    w->self.user = options->user;
    w->meter = (kl_core_meter){-1, -1};
    if (options->tells_cpu)
        kl_core_meter_open_thread(&w->meter);
    w->waiting_since_s = kl_now_s(&options->clock);
    *worker = w;
    return KILTER_OK;
}

static void remove_queued(kl_worker *w, queued **place) {
    queued *gone = *place;
    *place = gone->next;
    if (!*place)
        w->end = place;
    kl_message_release(&gone->message);
    free(gone);
}

void kl_worker_drop_first(kl_worker *w) {
    remove_queued(w, &w->first);
}

static void drop_all(kl_worker *w) {
    while (w->first)
        kl_worker_drop_first(w);
    w->queued_tasks = 0;
}

void kl_worker_free(kl_worker *w) {
    if (!w)
        return;
    if (w->started && w->options.stop)
        w->options.stop(w->state);
    drop_all(w);
    kl_core_meter_close(&w->meter);
    kl_message_release(&w->shared_message);
    kl_buffer_free(&w->moved);
    kl_buffer_free(&w->input);
    kl_buffer_free(&w->making);
    kl_buffer_free(&w->out);
    free(w);
}

bool kl_worker_has_work(const kl_worker *w) {
    return w->first != NULL;
}

bool kl_worker_is_orphan(const kl_worker *w) {
    return w->orphan;
}

void kl_worker_adopt(kl_worker *w, kl_transport *transport) {
    drop_all(w);
    kl_message_release(&w->shared_message);
    kl_worker kept = {.options = w->options,
                      .transport = transport,
                      .self = w->self,
                      .state = w->state,
                      .started = w->started,
                      .task_s = w->task_s,
                      .tasks_done = w->tasks_done,
                      .meter = w->meter,
                      .moved = w->moved,
                      .input = w->input,
                      .making = w->making,
                      .out = w->out};
    if (kept.out.borrowed) /* of the master that is gone */
        kl_buffer_free(&kept.out);
    if (kept.making.borrowed)
        kl_buffer_free(&kept.making);
    atomic_init(&kept.leave_why, atomic_load(&w->leave_why));
    memcpy(kept.renewal, w->renewal, sizeof kept.renewal);
    *w = kept;
    w->end = &w->first;
    kl_buffer_clear(&w->out);
    w->waiting_since_s = kl_now_s(&w->options.clock);
}

const char *kl_worker_renewal(const kl_worker *w) {
    const char *why = atomic_load(&w->leave_why);
    return *w->renewal && (!why || why == w->renewal) ? w->renewal : NULL; /* a SIGTERM outranks a renewal */
}

void kl_worker_renew(kl_worker *w, const char *format, ...) {
    const char *none = NULL;
    va_list args;
    if (*w->renewal)
        return;
    va_start(args, format);
    vsnprintf(w->renewal, sizeof w->renewal, format, args);
    va_end(args);
    atomic_compare_exchange_strong(&w->leave_why, &none, w->renewal);
}

void kl_worker_leave(kl_worker *w, const char *why) {
    atomic_store(&w->leave_why, why);
    kl_transport_wake(w->transport);
}

/* --- messages --- */

kilter_status kl_worker_send(kl_worker *w, const kl_buffer *message, kilter_error *error) {
    kilter_status status = kl_send(w->transport, w->master, message, error);
    return status == KILTER_ERR_PEER ? KILTER_OK : status;
}

static kilter_status send_text(kl_worker *w, kl_message_type type, const char *text, kilter_error *error) {
    kl_buffer out = {0};
    kl_wire_put_bytes(&out, type, text, strlen(text));
    kilter_status status = kl_worker_send(w, &out, error);
    kl_buffer_free(&out);
    return status;
}

kilter_status kl_worker_refuse(kl_worker *w, kilter_error *error, const char *format, ...) {
    char why[128];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    send_text(w, KL_REFUSE, why, NULL);
    return kl_fail(error, KILTER_ERR_TASK, "worker %u leaves the farm: %s", w->self.index, why);
}

static kilter_status say_hello(kl_worker *w, kilter_error *error) {
    kl_hello hello = {.version = KL_WIRE_VERSION, .attends = w->attendance.works != NULL};
    if (w->options.introduce)
        w->options.introduce(w->options.self, &hello);
    snprintf(hello.binding, sizeof hello.binding, "%s", w->options.binding);
    snprintf(hello.program, sizeof hello.program, "%s", w->options.program);
    snprintf(hello.program_version, sizeof hello.program_version, "%s",
             w->options.program_version ? w->options.program_version : "");
    kl_buffer out = {0};
    kl_wire_put_hello(&out, &hello);
    kilter_status status = kl_worker_send(w, &out, error);
    kl_buffer_free(&out);
    return status;
}

static kilter_status malformed(kilter_error *error) {
    return kl_fail(error, KILTER_ERR_PEER,
                   "a message of the master cannot be read: start master and workers from the same version");
}

static kilter_status on_welcome(kl_worker *w, const kl_message *m, kilter_error *error) {
    if (w->ready || !kl_wire_get_welcome(m->data, m->size, &w->limits))
        return malformed(error);
    w->self.index = w->limits.worker;
    w->memory_before = kl_process_memory();
    int code = !w->started && w->options.start ? w->options.start(&w->self, &w->state) : 0;
    if (code != 0)
        return kl_worker_refuse(w, error, "its start function returned %d", code);
    w->started = w->ready = true;
    w->asked = true; /* being ready is asking */
    kl_buffer out = {0};
    kl_wire_put_plain(&out, KL_READY);
    kilter_status status = kl_worker_send(w, &out, error);
    kl_buffer_free(&out);
    return status;
}

static kilter_status on_probe(kl_worker *w, const kl_message *m, kilter_error *error) {
    kl_buffer out = {0};
    kl_wire_put_bytes(&out, KL_ECHO, m->data + 1, m->size - 1);
    kilter_status status = kl_worker_send(w, &out, error);
    kl_buffer_free(&out);
    return status;
}

static void put_in_queue(kl_worker *w, queued *item, kl_message *m) {
    item->message = *m;
    *m = (kl_message){0};
    w->rested = w->rested || !w->first;
    *w->end = item;
    w->end = &item->next;
}

static kilter_status on_shared(kl_worker *w, kl_message *m, kilter_error *error) {
    kilter_bytes bytes;
    uint64_t hash;
    if (!w->ready || !kl_wire_get_shared(m->data, m->size, &hash, &bytes))
        return malformed(error);
    queued *item = calloc(1, sizeof *item);
    if (!item)
        return kl_fail(error, KILTER_ERR_MEMORY, "taking shared data: memory ran out");
    w->sent_bytes = 0; /* the chunk asked for is behind this message */
    item->is_shared = true;
    put_in_queue(w, item, m);
    return KILTER_OK;
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
    if (!w->ready || !kl_wire_get_chunk(m->data, m->size, &chunk->head, &chunk->weights, &chunk->inputs)) {
        free(chunk);
        return malformed(error);
    }
    note_round_trip(w, &chunk->head, m->size);
    w->queued_tasks += chunk->head.count;
    note_answer(w, chunk->head.run);
    put_in_queue(w, chunk, m);
    return KILTER_OK;
}

/* --- giving back --- */

/* Of the chunk at `place`, give back what is not begun from task `keep` on. What was done of it goes first.
 */
static kilter_status give_back(kl_worker *w, queued **place, uint64_t keep, kilter_error *error) {
    queued *chunk = *place;
    bool at_hand = w->at_work && chunk == w->first;
    kl_part part = {.chunk = chunk->head.chunk, .hi = chunk->head.lo + chunk->head.count};
    part.lo = chunk->head.lo + chunk->at + at_hand;
    if (part.lo < keep)
        part.lo = keep < part.hi ? keep : part.hi;
    kilter_status status = kl_worker_has_results(w) ? kl_worker_flush(w, false, error) : KILTER_OK;
    if (status != KILTER_OK)
        return status;
    kl_buffer out = {0};
    kl_wire_put_part(&out, KL_RETURN, &part);
    status = kl_worker_send(w, &out, error);
    kl_buffer_free(&out);
    w->queued_tasks -= part.hi - part.lo;
    chunk->head.count = part.lo - chunk->head.lo;
    if (chunk->at == chunk->head.count)
        remove_queued(w, place);
    return status;
}

static kilter_status on_recall(kl_worker *w, const kl_message *m, kilter_error *error) {
    kl_part part;
    if (!w->ready || !kl_wire_get_part(m->data, m->size, &part))
        return malformed(error);
    queued **place = &w->first;
    while (*place && ((*place)->is_shared || (*place)->head.chunk != part.chunk))
        place = &(*place)->next;
    return *place ? give_back(w, place, part.lo, error) : KILTER_OK; /* else its results are under way */
}

static kilter_status give_all_back(kl_worker *w, kilter_error *error) {
    kilter_status status = KILTER_OK;
    queued **place = w->at_work ? &w->first->next : &w->first;
    if (w->at_work && w->first->at + 1 < w->first->head.count)
        status = give_back(w, &w->first, 0, error);
    while (*place && status == KILTER_OK)
        if ((*place)->is_shared)
            remove_queued(w, place);
        else
            status = give_back(w, place, 0, error);
    return status;
}

static kilter_status leave(kl_worker *w, kilter_error *error) {
    const char *why = atomic_load(&w->leave_why);
    kilter_status status = w->master != KL_NO_PEER ? give_all_back(w, error) : KILTER_OK;
    if (status == KILTER_OK && kl_worker_has_results(w))
        status = kl_worker_flush(w, false, error);
    if (status == KILTER_OK && w->master != KL_NO_PEER)
        status = send_text(w, kl_worker_renewal(w) ? KL_RENEW : KL_LEAVE, why, error);
    return status == KILTER_OK ? kl_fail(error, KILTER_ENDED, "worker %u leaves: %s", w->self.index, why)
                               : status;
}

/* --- events --- */

static kilter_status on_end(kl_worker *w, const kl_message *m, kilter_error *error) {
    char why[160];
    kl_wire_get_text(m->data, m->size, why, sizeof why);
    w->dismissed = *why;
    return *why ? kl_fail(error, KILTER_ERR_PEER, "the master sent worker %u away: it %s", w->self.index, why)
                : kl_fail(error, KILTER_ENDED, "the farm is closed");
}

static kilter_status on_release(kl_worker *w, const kl_message *m, kilter_error *error) {
    if (!kl_wire_get_plain(m->data, m->size))
        return malformed(error);
    atomic_store(&w->leave_why, "the farm can do without it");
    return KILTER_OK;
}

/* What is at hand counts no more. */
static kilter_status on_renew(kl_worker *w, const kl_message *m, kilter_error *error) {
    char why[sizeof w->renewal];
    kl_wire_get_text(m->data, m->size, why, sizeof why);
    kl_worker_renew(w, "%s", why);
    w->dismissed = true;
    return kl_fail(error, KILTER_ENDED, "worker %u begins anew: %s", w->self.index, why);
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
    case KL_RECALL:
        return on_recall(w, m, error);
    case KL_RELEASE:
        return on_release(w, m, error);
    case KL_RENEW:
        return on_renew(w, m, error);
    case KL_END:
        return on_end(w, m, error);
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
        w->orphan = true;
        status = kl_fail(error, KILTER_ERR_PEER, "the master is gone: worker %u ends", w->self.index);
        break;
    case KL_EVENT_MESSAGE:
        status = on_message(w, &event->message, error);
        kl_message_release(&event->message);
        break;
    }
    return status;
}

/* --- turns --- */

enum { LATELY = 16 };

static void note_wait(kl_worker *w, double delay_s) {
    w->watched += w->watched < LATELY;
    w->wait_delay_s += (delay_s - w->wait_delay_s) / w->watched;
    w->since.waits_delay_s += delay_s;
}

/* A wait for messages is no part of a task, nor is what others had of the core at its end. That is looked at
 * for a wait now and then, and the others are taken to be alike. */
static kilter_status wait_for(kl_worker *w, double timeout_s, kl_event *event, kilter_error *error) {
    double now_s = kl_now_s(&w->options.clock);
    bool watched = w->options.tells_cpu && now_s >= w->watch_due_s;
    double before_s = watched ? kl_worker_core_delay_s(w) : 0;
    kilter_status status = kl_poll(w->transport, timeout_s, event, error);
    if (!watched) {
        w->since.waits++;
        return status;
    }
    w->watch_due_s = now_s + KL_CPU_LOOK_S;
    note_wait(w, kl_worker_core_delay_s(w) - before_s);
    return status;
}

/* Take in what has come; wait for it up to timeout_s when there is nothing to do. */
static kilter_status take_in(kl_worker *w, double timeout_s, kilter_error *error) {
    kilter_status status = KILTER_OK;
    while (status == KILTER_OK) {
        kl_event event;
        status = w->first || timeout_s == 0 ? kl_poll(w->transport, 0, &event, error)
                                            : wait_for(w, timeout_s, &event, error);
        if (status != KILTER_OK || event.kind == KL_EVENT_NONE)
            break;
        timeout_s = 0;
        status = on_event(w, &event, error);
        w->idle = false; /* what comes now may have waited */
    }
    return status;
}

static kilter_status check_patience(const kl_worker *w, kilter_error *error) {
    double waited_s = kl_now_s(&w->options.clock) - w->waiting_since_s;
    if (w->master != KL_NO_PEER || w->options.patience_s < 0 || waited_s < w->options.patience_s)
        return KILTER_OK;
    if (w->started)
        return kl_fail(error, KILTER_ERR_PEER,
                       "the master is gone and did not come back within %g s: worker %u ends",
                       w->options.patience_s, w->self.index);
    return kl_fail(error, KILTER_ERR_PEER,
                   "no master answered within %g s: check that it runs and that the address is right",
                   w->options.patience_s);
}

/* Who runs dry reports. But if more had come by then and asks for the next chunk at once, one message is
 * enough for both. */
static bool is_to_report(const kl_worker *w, bool ran_dry) {
    if (!w->first)
        return w->ready && (!w->asked || kl_worker_has_results(w));
    return ran_dry && kl_worker_has_results(w) && (w->first->is_shared || !kl_worker_runs_low(w));
}

static kilter_status settle(kl_worker *w, bool ran_dry, kilter_error *error) {
    if (atomic_load(&w->leave_why))
        return leave(w, error);
    if (is_to_report(w, ran_dry))
        return kl_worker_flush(w, !w->first && !w->asked, error);
    return check_patience(w, error);
}

static kilter_status turn(kl_worker *w, double timeout_s, kilter_error *error) {
    kilter_status status = KILTER_OK;
    w->idle = !w->first;
    if (w->first && !atomic_load(&w->leave_why)) {
        status = kl_worker_work(w, error);
        timeout_s = 0;
    } else if (w->master == KL_NO_PEER && w->options.patience_s >= 0 &&
               (timeout_s < 0 || timeout_s > LOOK_S)) {
        timeout_s = LOOK_S;
    }
    bool ran_dry = !w->first;
    if (status == KILTER_OK)
        status = take_in(w, timeout_s, error);
    return status == KILTER_OK ? settle(w, ran_dry, error) : status;
}

const kilter_task *kl_worker_at_hand(const kl_worker *w) {
    return w->at_work ? &w->task : NULL;
}

kilter_status kl_worker_between(kl_worker *w, kilter_error *error) {
    bool ran_dry = !w->first;
    kilter_status status = take_in(w, 0, error);
    if (status == KILTER_OK)
        status = settle(w, ran_dry, error);
    w->idle = !w->first;
    return status;
}

kilter_status kl_worker_turn(kl_worker *w, double timeout_s, kilter_error *error) {
    kilter_error failure = {KILTER_OK, ""};
    kilter_status status = turn(w, timeout_s, &failure);
    if (status == KILTER_ERR_MEMORY &&
        w->master != KL_NO_PEER) /* who dies of it in silence leaves others guessing */
        send_text(w, KL_REFUSE, failure.text, NULL);
    if (status != KILTER_OK && error)
        *error = failure;
    return status;
}

/* --- attending --- */

void kl_worker_let_attend(kl_worker *w, const kl_attendance *attendance) {
    w->attendance = *attendance;
    w->share_busy_s = attendance->busy_s ? attendance->busy_s(attendance->self) : 0;
    w->share_s = 0;
}

/* Is this still the task that was seen the last time? Else it is from now on. */
static bool is_still_at_it(kl_worker *w, double now_s) {
    attended *a = &w->attended;
    if (a->seen && a->task == w->tasks_done)
        return true;
    *a = (attended){.seen = true, .task = w->tasks_done, .since_s = now_s};
    a->busy_s = w->attendance.busy_s(w->attendance.self);
    a->pulse_due_s = w->task_began_s + KL_PULSE_S;
    return false;
}

void kl_worker_name_task(const kl_worker *w, kl_pulse *pulse) {
    pulse->chunk = w->first->head.chunk;
    pulse->task = w->first->head.lo + w->first->at;
    pulse->usual_share = w->usual_share;
}

/* Before it was seen the task had its core, as far as anybody knows. */
static kilter_status send_pulse(kl_worker *w, double now_s, uint64_t memory, kilter_error *error) {
    attended *a = &w->attended;
    kl_pulse pulse = {.elapsed_s = now_s - w->task_began_s,
                      .cpu_s = w->attendance.busy_s(w->attendance.self) - a->busy_s +
                               (a->since_s - w->task_began_s),
                      .usual_share = w->usual_share,
                      .memory = memory};
    kl_worker_name_task(w, &pulse);
    kl_buffer out = {0};
    kl_wire_put_pulse(&out, &pulse);
    kilter_status status = kl_worker_send(w, &out, error);
    kl_buffer_free(&out);
    a->pulse_due_s = now_s + KL_PULSE_S;
    return status;
}

/* A worker with more than this part of its limit is replaced after its task, so that a slow leak fails no
 * task. */
static const double NEARLY_ALL = 0.9;

static uint64_t look_at_memory(kl_worker *w) {
    if (w->limits.memory_most == 0)
        return 0;
    uint64_t now = kl_process_memory(), taken = now > w->memory_before ? now - w->memory_before : 0;
    if ((double)taken > NEARLY_ALL * (double)w->limits.memory_most)
        kl_worker_renew(w, "has taken %.0f MB of memory, and may take %.0f", 1e-6 * (double)taken,
                        1e-6 * (double)w->limits.memory_most);
    return taken;
}

/* What is done between tasks, but for doing one. */
static kilter_status attend(kl_worker *w, double now_s, uint64_t memory, kilter_error *error) {
    attended *a = &w->attended;
    kilter_status status = take_in(w, 0, error);
    bool over = !a->over && w->limits.memory_most > 0 && memory > w->limits.memory_most;
    bool leaves = atomic_load(&w->leave_why);
    bool ask = !leaves && !w->asked && w->queued_tasks == 1;
    bool late = kl_worker_has_results(w) && now_s - w->first_result_s >= KL_FLUSH_S;
    if (status == KILTER_OK && leaves)
        status = give_all_back(w, error);
    if (status == KILTER_OK && (ask || late))
        status = kl_worker_flush(w, ask, error);
    if (status == KILTER_OK && (over || now_s >= a->pulse_due_s))
        status = send_pulse(w, now_s, memory, error);
    a->over |= over;
    return status;
}

static const double END_PATIENCE_S = 5; /* as long as a master waits for its local workers */

/* The task at hand counts no more. It may end by itself, but not for ever. */
static void leave_task(const kl_worker *w, double now_s) {
    double patience_s = w->dismissed ? 0 : w->orphan ? w->options.patience_s : END_PATIENCE_S;
    if (w->failure.status != KILTER_OK && w->options.abandon && patience_s >= 0 &&
        now_s >= w->failed_s + patience_s)
        w->options.abandon(w->options.self, &w->failure, kl_worker_renewal(w) != NULL);
}

double kl_worker_results_due_s(const kl_worker *w) {
    return w->at_work && kl_worker_has_results(w) ? w->first_result_s + KL_FLUSH_S : HUGE_VAL;
}

void kl_worker_attend(kl_worker *w) {
    double now_s = kl_now_s(&w->options.clock);
    if (!w->at_work)
        return;
    if (w->failure.status != KILTER_OK) {
        leave_task(w, now_s);
        return;
    }
    uint64_t memory = look_at_memory(w);
    if (!is_still_at_it(w, now_s))
        return;
    kilter_error failure = {KILTER_OK, ""};
    if (attend(w, now_s, memory, &failure) != KILTER_OK)
        w->failure = failure;
    w->failed_s = now_s;
    leave_task(w, now_s);
}
