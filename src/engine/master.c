/* The beginning and end of a master, the messages that it receives, and its turns. */
#include <math.h>
#include <stdlib.h>

#include "engine/master_private.h"

/* a master that closes looks for new members for at most this many seconds, even if events keep coming */
static const double NEWLY_COME_S = 0.1;

kl_delivery_list kl_master_take(kl_master *m) {
    kl_delivery_list taken = m->results;
    m->results = (kl_delivery_list){0};
    return taken;
}

/* --- making and freeing a master --- */

enum { ATTEMPTS = 5 }; /* default of kl_master_options.attempts */

kilter_status kl_master_new(const kl_master_options *options, kl_transport *transport, kl_master **master,
                            kilter_error *error) {
    kl_master *m = calloc(1, sizeof *m);
    if (!m)
        return kl_fail(error, KILTER_ERR_MEMORY, "opening the farm: memory ran out");
    m->options = *options;
    m->transport = transport;
    m->staff.chooses = options->chooses;
    m->staff.seats = options->seats;
    if (m->options.attempts == 0)
        m->options.attempts = ATTEMPTS;
    m->opened_s = kl_now_s(&options->clock);
    kilter_status status = kl_balance_init(&m->balance, options->policy, options->clock, transport, error);
    if (status != KILTER_OK) {
        free(m);
        return status;
    }
    *master = m;
    return KILTER_OK;
}

void kl_master_free(kl_master *m) {
    if (!m)
        return;
    for (size_t i = 0; i < m->members.count; i++)
        kl_member_free(&m->members.list[i]);
    free(m->members.list);
    free(m->members.peers);
    free(m->members.troubles);
    free(m->asked.list);
    kl_twins_free(&m->twins);
    free(m->suspects.list);
    while (m->results.first) {
        kl_delivery *next = m->results.first->next;
        kl_delivery_free(m->results.first);
        m->results.first = next;
    }
    kl_buffer_free(&m->shared.message);
    kl_run_peers_free(&m->peers);
    kl_balance_free(&m->balance);
    free(m);
}

/* --- messages and other events --- */

static kilter_status on_heartbeat(kl_master *m, member *one, const kl_message *message, kilter_error *error) {
    kl_heartbeat heartbeat;
    if (one->stage < WORKING || !kl_wire_get_heartbeat(message->data, message->size, &heartbeat))
        return kl_master_expel(m, one, "sent a malformed message", error);
    one->heartbeat = heartbeat;
    one->heartbeat_s = one->heard_s;
    return kl_master_check_hand(m, one, error);
}

static kilter_status on_message(kl_master *m, member *one, kl_message *message, kilter_error *error) {
    kl_message_type type = kl_wire_type(message->data, message->size);
    /* ignore this message, because the worker sent it before it knew that it has to leave */
    if (one->stage == LEAVING && (type == KL_READY || type == KL_ECHO))
        return KILTER_OK;
    switch (type) {
    case KL_HELLO:
        return kl_master_on_hello(m, one, message, error);
    case KL_READY:
        return kl_master_on_ready(m, one, message, error);
    case KL_ECHO:
        return kl_master_on_echo(m, one, message, error);
    case KL_REFUSE:
        return kl_master_on_refuse(m, one, message, error);
    case KL_RETURN:
        return kl_master_on_return(m, one, message, error);
    case KL_LEAVE:
        return kl_master_on_leave(m, one, message, error);
    case KL_RENEW:
        return kl_master_on_renewal(m, one, message, error);
    case KL_HEARTBEAT:
        return on_heartbeat(m, one, message, error);
    case KL_RESULTS:
        return kl_master_on_results(m, one, message, error);
    case KL_ADDRESS:
    case KL_NOTE:
    case KL_WHERE:
    case KL_WANT:
        return kl_master_on_peer_message(m, one, message, error);
    default:
        return kl_master_expel(m, one, "sent a message that this version of Kilter does not know", error);
    }
}

static kilter_status on_event(kl_master *m, kl_event *event, kilter_error *error) {
    if (event->kind == KL_EVENT_NONE)
        return KILTER_OK;
    if (event->kind == KL_EVENT_JOINED)
        return kl_master_add(m, event->peer, error);
    member *one = kl_master_find(m, event->peer);
    if (event->kind == KL_EVENT_LEFT)
        return one ? kl_master_lose_connection(m, one, error) : KILTER_OK;
    if (one)
        one->heard_s = kl_now_s(&m->options.clock);
    kilter_status status = one ? on_message(m, one, &event->message, error) : KILTER_OK;
    kl_message_release(&event->message);
    return status;
}

/* --- turns of the master, and its end --- */

static double work_due_s(const kl_master *m) {
    if (kl_master_is_abandoned(m))
        return 0;
    if (!m->run.running || m->run.holds || m->peers.on)
        return HUGE_VAL;
    return m->feeding.all ? 0 : m->feeding.look_again_s > 0 ? m->feeding.look_again_s : HUGE_VAL;
}

/* Return the time at which the master disconnects the next member that has sent no greeting. */
static double silent_due_s(const kl_master *m) {
    return m->members.greeting > 0 && m->options.greeting_s > 0 ? m->members.silent_s : HUGE_VAL;
}

double kl_master_due_s(const kl_master *m) {
    return fmin(fmin(work_due_s(m), kl_run_peers_due_s(m)), silent_due_s(m));
}

/* The master has dealt one chunk in its answer to a message. Store the time that this took. left: number of
 * tasks that were not dealt before this answer. */
static void note_answer(kl_master *m, double busy_s, double waited_s, uint64_t left) {
    kl_balance_answer_cost(&m->balance, busy_s);
    if (m->options.clock.busy_s && m->balance.bag.left + 1 == left)
        kl_balance_wake_cost(&m->balance, busy_s, waited_s);
}

static kilter_status turn(kl_master *m, double timeout_s, kilter_error *error) {
    double until_s = fmax(0, kl_master_due_s(m) - kl_now_s(&m->options.clock));
    if (timeout_s < 0 || timeout_s > until_s)
        timeout_s = until_s < HUGE_VAL ? until_s : -1;
    kl_event event;
    double began_s = kl_busy_s(&m->options.clock), polled_s = kl_now_s(&m->options.clock);
    uint64_t chunks = m->balance.chunks, left = m->balance.bag.left;
    kilter_status status = kl_poll(m->transport, timeout_s, &event, error);
    double waited_s = kl_now_s(&m->options.clock) - polled_s;
    if (!m->options.clock.busy_s)
        /* measure from here on, because the measured time must not include the wait for the event */
        began_s = kl_now_s(&m->options.clock);
    m->use.messages += event.kind == KL_EVENT_MESSAGE;
    if (event.kind == KL_EVENT_MESSAGE)
        kl_master_declare_answer(m);
    if (status == KILTER_OK)
        status = on_event(m, &event, error);
    if (status == KILTER_OK && event.kind == KL_EVENT_NONE && kl_now_s(&m->options.clock) >= silent_due_s(m))
        status = kl_master_expel_silent(m, error);
    if (status == KILTER_OK)
        status = kl_master_glance(m, error);
    if (status == KILTER_OK)
        status = kl_run_peers_look(m, error);
    if (status == KILTER_OK && m->run.running && !m->run.holds && !m->peers.on)
        status =
            kl_master_feed(m, event.kind == KL_EVENT_MESSAGE ? kl_master_find(m, event.peer) : NULL, error);
    if (m->run.running && event.kind == KL_EVENT_MESSAGE && m->balance.chunks == chunks + 1)
        note_answer(m, kl_busy_s(&m->options.clock) - began_s, waited_s, left);
    if (status == KILTER_OK)
        kl_master_end_if_done(m);
    return status == KILTER_OK ? kl_master_check_workers(m, error) : status;
}

/* Have one turn of the master. Set *error only if the turn fails. A message that cannot be sent to a lost
 * worker also sets an error, but is not a failure of the turn. */
kilter_status kl_master_turn(kl_master *m, double timeout_s, kilter_error *error) {
    kilter_error failure = {KILTER_OK, ""};
    kilter_status status = turn(m, timeout_s, &failure);
    if (status != KILTER_OK && error)
        *error = failure;
    return status;
}

/* Tell new members that the farm ends. Otherwise a new worker would see only that its connection has ended,
 * and would wait for the master to come back. */
static void end_the_newly_come(kl_master *m, const kl_buffer *end) {
    double until_s = kl_now_s(&m->options.clock) + NEWLY_COME_S;
    kl_event event;
    for (int silent = 0; silent < 2 && kl_now_s(&m->options.clock) < until_s;) {
        if (kl_poll(m->transport, 0, &event, NULL) != KILTER_OK)
            return;
        if (event.kind == KL_EVENT_JOINED)
            kl_send(m->transport, event.peer, end, NULL);
        /* the first event NONE may come from kl_transport_wake(), so end only at the second one */
        silent = event.kind == KL_EVENT_NONE ? silent + 1 : 0;
        kl_message_release(&event.message);
    }
}

void kl_master_end(kl_master *m) {
    kl_buffer end = {0};
    kl_wire_put_bytes(&end, KL_END, NULL, 0);
    for (size_t i = 0; i < m->members.count; i++) {
        member *one = &m->members.list[i];
        if (one->stage != GONE)
            kl_send(m->transport, one->peer, &end,
                    NULL); /* ignore an error of sending, because the member may be gone */
        if (one->stage == LEAVING)
            kl_trace_worker_left(m->trace, one->number, kl_now_s(&m->options.clock) - m->opened_s,
                                 one->sent_home);
    }
    end_the_newly_come(m, &end);
    kl_buffer_free(&end);
}
