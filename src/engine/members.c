/* The members of the farm: how workers join, are identified, are measured, and are lost. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/master_private.h"

static void warn(const kl_master *m, const char *text, const char *more) {
    if (m->options.warn)
        m->options.warn(m->options.self, text, more);
}

static void note_loss(kl_master *m, const member *one, const char *why) {
    if (!one->host)
        snprintf(m->members.last_loss, sizeof m->members.last_loss, "an unidentified peer %s", why);
    else if (one->stage == GREETING)
        snprintf(m->members.last_loss, sizeof m->members.last_loss, "process %llu on %s %s",
                 (unsigned long long)one->pid, one->host, why);
    else
        snprintf(m->members.last_loss, sizeof m->members.last_loss, "worker %u (process %llu on %s) %s",
                 one->number, (unsigned long long)one->pid, one->host, why);
}

/* Return the number of unfinished tasks that the member has. */
static uint64_t unfinished_at(const kl_master *m, const member *one) {
    uint64_t count = 0;
    for (size_t i = 0; i < one->chunk_count; i++) {
        kl_span rest = {one->chunks[i].at, one->chunks[i].stale ? one->chunks[i].at : one->chunks[i].hi};
        while (rest.lo < rest.hi) {
            bool done;
            kl_span alike = kl_ledger_alike(&m->balance.ledger, rest, &done);
            count += done ? 0 : alike.hi - alike.lo;
            rest.lo = alike.hi;
        }
    }
    return count;
}

kilter_status kl_master_lose(kl_master *m, member *one, const char *why, bool is_lost, kilter_error *error) {
    uint64_t unfinished = unfinished_at(m, one);
    bool expected = one->stage == LEAVING && !is_lost;
    note_loss(m, one, why);
    if (is_lost)
        kl_master_note_lost_on(m, one);
    m->members.refused += !expected;
    m->members.greeting -= one->stage == GREETING;
    kilter_status status = kl_master_take_all_back(m, one, is_lost, error);
    if (one->stage == WORKING) {
        kl_balance_present(&m->balance, one->worker, false);
        m->members.ready--;
        m->members.resting -= one->resting;
        one->resting = false;
    }
    if (one->stage > STARTING)
        kl_trace_worker_left(m->trace, one->number, kl_now_s(&m->options.clock) - m->opened_s, why);
    m->members.probing -= one->stage == PROBING;
    m->members.leaving -= one->stage == LEAVING;
    one->stage = GONE;
    m->members.gone++;
    /* this worker will no longer report its CPU time, so the CPU time of the whole run is unknown */
    m->use.known = false;
    one->hungry = one->held = false;
    m->feeding.all = true;
    if (status == KILTER_OK)
        status = kl_run_peers_lose(m, one, is_lost, error);
    if (status == KILTER_OK)
        status = kl_master_wake_for_lost(m, error);
    if (m->run.running && !expected) {
        char text[64] = "";
        if (unfinished > 0)
            snprintf(text, sizeof text, "; other workers get its %llu unfinished task%s",
                     (unsigned long long)unfinished, unfinished == 1 ? "" : "s");
        warn(m, m->members.last_loss, text);
    }
    return status;
}

/* Handle that the member's connection has ended. */
kilter_status kl_master_lose_connection(kl_master *m, member *one, kilter_error *error) {
    char how[96] = "left";
    bool missed = one->stage == PROBING || one->stage == WORKING;
    bool sent_home = one->stage == LEAVING && unfinished_at(m, one) == 0;
    if (m->options.lost)
        m->options.lost(m->options.self, one->pid, missed, how, sizeof how);
    return kl_master_lose(m, one, sent_home ? one->sent_home : how, !sent_home, error);
}

/* Send the member away, and tell it the reason. */
kilter_status kl_master_expel(kl_master *m, member *one, const char *why, kilter_error *error) {
    kl_buffer end = {0};
    kl_wire_put_bytes(&end, KL_END, why, strlen(why));
    /* ignore an error of sending, because the member may be gone */
    kl_send(m->transport, one->peer, &end, NULL);
    kl_buffer_free(&end);
    kl_drop(m->transport, one->peer);
    kilter_status status = kl_master_lose(m, one, why, false, error);
    if (!m->run.running)
        warn(m, m->members.last_loss, "");
    return status;
}

kilter_status kl_master_expel_silent(kl_master *m, kilter_error *error) {
    double now_s = kl_now_s(&m->options.clock), next_s = HUGE_VAL;
    kilter_status status = KILTER_OK;
    /* keep the text about the last lost worker, because the loss of an unknown peer does not explain why a
     * run ends */
    char last_loss[sizeof m->members.last_loss];
    memcpy(last_loss, m->members.last_loss, sizeof last_loss);
    for (size_t i = 0; i < m->members.count && status == KILTER_OK; i++) {
        member *one = &m->members.list[i];
        double until_s = one->joined_s + m->options.greeting_s;
        if (one->stage == GREETING && now_s >= until_s)
            status = kl_master_expel(m, one, "sent no greeting, and was disconnected", error);
        else if (one->stage == GREETING)
            next_s = until_s < next_s ? until_s : next_s;
    }
    m->members.silent_s = next_s;
    memcpy(m->members.last_loss, last_loss, sizeof last_loss);
    return status;
}

static kilter_status send_or_lose(kl_master *m, member *one, const kl_buffer *message, kilter_error *error) {
    kilter_status status = kl_send(m->transport, one->peer, message, error);
    return status == KILTER_ERR_PEER ? kl_master_lose_connection(m, one, error) : status;
}

/* --- greeting --- */

/* The master measures the cost of messages with at most PROBED_AT_ONCE workers at the same time, so that
 * their messages do not delay each other. It measures nothing with workers that join meanwhile, because
 * messages cost the same for all workers. */
enum { PROBED_AT_ONCE = 4, LINKS_MEASURED = 4 };

/* Return whether the greeting names the master's program. A greeting has a shortened name without control
 * characters. Bring the master's name into the same form before the two names are compared. */
static bool is_this_program(const kl_master *m, const kl_hello *hello) {
    kl_hello own = {.version = KL_WIRE_VERSION}, got;
    snprintf(own.program, sizeof own.program, "%s", m->options.program);
    kl_buffer bytes = {0};
    kl_wire_put_hello(&bytes, &own);
    bool same = kl_wire_get_hello(bytes.data, bytes.size, &got) && strcmp(got.program, hello->program) == 0;
    kl_buffer_free(&bytes);
    return same;
}

/* Store the names that a worker's greeting contains. Return false if memory ran out. */
static bool note_names(member *one, const kl_hello *hello) {
    size_t host = strlen(hello->host) + 1, binding = strlen(hello->binding) + 1;
    one->host = malloc(host + binding);
    if (!one->host)
        return false;
    memcpy(one->host, hello->host, host);
    one->binding = memcpy(one->host + host, hello->binding, binding);
    one->pid = hello->pid;
    one->attends = hello->attends;
    return true;
}

kilter_status kl_master_on_hello(kl_master *m, member *one, const kl_message *message, kilter_error *error) {
    kl_hello hello;
    if (one->stage != GREETING || !kl_wire_get_hello(message->data, message->size, &hello))
        return kl_master_expel(m, one, "sent a malformed greeting", error);
    if (!note_names(one, &hello))
        return kl_fail(error, KILTER_ERR_MEMORY, "taking in a worker: memory ran out");
    if (hello.version != KL_WIRE_VERSION) {
        char why[96];
        snprintf(
            why, sizeof why,
            "speaks protocol version %u, but the master speaks version %d: use one Kilter version everywhere",
            hello.version, KL_WIRE_VERSION);
        return kl_master_expel(m, one, why, error);
    }
    /* refuse a worker of another program, because its results would be taken for results of this program */
    if (!is_this_program(m, &hello)) {
        char why[160];
        snprintf(why, sizeof why,
                 "runs program %.40s, but the master runs %.40s: use the same program name everywhere",
                 hello.program, m->options.program);
        return kl_master_expel(m, one, why, error);
    }
    if (strcmp(hello.program_version, m->options.program_version ? m->options.program_version : "") != 0) {
        char why[160];
        snprintf(why, sizeof why,
                 "runs program version '%.40s', but the master runs '%.40s': use one version everywhere",
                 hello.program_version, m->options.program_version ? m->options.program_version : "");
        return kl_master_expel(m, one, why, error);
    }
    kilter_status status = kl_balance_add_worker(&m->balance, &one->worker, error);
    if (status == KILTER_OK)
        status = kl_master_note_peer(m, one->worker, one->peer, error);
    if (status != KILTER_OK)
        return status;
    one->has_place = true;
    one->number = m->balance.views[one->worker].number;
    one->stage = STARTING;
    m->members.greeting--;
    kl_buffer welcome = {0};
    kl_wire_put_welcome(&welcome, &(kl_welcome){.worker = one->number,
                                                .tasks_most = m->options.limits.worker_tasks,
                                                .memory_most = m->options.limits.worker_memory});
    status = send_or_lose(m, one, &welcome, error);
    kl_buffer_free(&welcome);
    return status;
}

static kilter_status send_probe(kl_master *m, member *one, kilter_error *error) {
    static const uint8_t zeros[KL_PROBE_LARGE_BYTES];
    kl_buffer out = {0};
    uint32_t messages;
    size_t bytes = kl_probe_begin(&one->probe, &m->options.clock, &messages);
    kilter_status status = KILTER_OK;
    for (uint32_t i = 0; i < messages && status == KILTER_OK && one->stage == PROBING; i++) {
        kl_buffer_clear(&out);
        kl_wire_put_bytes(&out, KL_PROBE, zeros, bytes);
        status = send_or_lose(m, one, &out, error);
    }
    kl_buffer_free(&out);
    return status;
}

/* Return whether to measure the speed of the link with messages to this worker. Only the first LINKS_MEASURED
 * workers on other hosts are used for this, one after the other. */
static bool measures_link(const kl_master *m, const member *one) {
    return m->balance.traffic.links_measured < LINKS_MEASURED && m->members.probing == 1 &&
           strcmp(one->host, m->options.host) != 0;
}

static kilter_status start_working(kl_master *m, member *one, kilter_error *error) {
    one->stage = WORKING;
    m->members.ready++;
    kl_balance_present(&m->balance, one->worker, true);
    one->hungry = true;
    one->asked_s = kl_now_s(&m->options.clock);
    /* If the number of active workers is fixed and reached, a new worker rests. Otherwise it works at once,
     * because the time of its first chunk shows its speed. */
    bool fixed = m->staff.by_hand || m->run.number == 0 || m->staff.team.tried_from > 0;
    if (m->run.running && fixed && m->staff.seats > 0 && kl_master_active(m) > m->staff.seats)
        kl_master_rest(m, one);
    return kl_run_peers_ready(m, one, error);
}

kilter_status kl_master_on_ready(kl_master *m, member *one, const kl_message *message, kilter_error *error) {
    if (one->stage != STARTING || !kl_wire_get_plain(message->data, message->size))
        return kl_master_expel(m, one, "sent a malformed message", error);
    kl_master_record_worker(m, one);
    if (m->members.probing == PROBED_AT_ONCE) {
        return start_working(m, one, error);
    }
    one->stage = PROBING;
    m->members.probing++;
    return send_probe(m, one, error);
}

kilter_status kl_master_on_echo(kl_master *m, member *one, const kl_message *message, kilter_error *error) {
    if (one->stage != PROBING || !kl_probe_answered(&one->probe, message->size - 1, &m->options.clock))
        return kl_master_expel(m, one, "sent a malformed echo", error);
    if (kl_probe_done(&one->probe) && !one->probe.bursts)
        one->probe.bursts = measures_link(m, one);
    if (kl_probe_waits(&one->probe))
        return KILTER_OK;
    if (!kl_probe_done(&one->probe))
        return send_probe(m, one, error);
    if (one->probe.bursts)
        kl_balance_link_cost(&m->balance, kl_probe_byte_s(&one->probe));
    if (strcmp(one->host, m->options.host) == 0)
        kl_balance_near_cost(&m->balance, one->probe.small_s, one->probe.large_s);
    kl_balance_message_cost(&m->balance, KL_PROBE_SMALL_BYTES, one->probe.small_s / 2, true);
    kl_balance_message_cost(&m->balance, KL_PROBE_LARGE_BYTES, one->probe.large_s / 2, true);
    kl_master_record_message_cost(m, one->number);
    m->members.probing--;
    return start_working(m, one, error);
}

kilter_status kl_master_on_refuse(kl_master *m, member *one, const kl_message *message, kilter_error *error) {
    char text[120], why[160];
    kl_wire_get_text(message->data, message->size, text, sizeof text);
    snprintf(why, sizeof why, "cannot work: %s", text);
    return kl_master_expel(m, one, why, error);
}

/* Remove a worker that has announced that it leaves. It has returned the tasks that it had not begun. */
kilter_status kl_master_on_leave(kl_master *m, member *one, const kl_message *message, kilter_error *error) {
    char text[120], why[160];
    if (one->stage == GREETING)
        return kl_master_expel(m, one, "sent a malformed message", error);
    kl_wire_get_text(message->data, message->size, text, sizeof text);
    if (one->stage == LEAVING)
        snprintf(why, sizeof why, "%s", one->sent_home);
    else
        snprintf(why, sizeof why, "left: %s", text);
    kl_drop(m->transport, one->peer);
    return kl_master_lose(m, one, why, false, error);
}
