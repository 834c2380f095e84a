/* Release workers, because a user asked for it or because they are not needed. A released worker finishes
 * its task, returns its other tasks and leaves. It is not replaced. */
#include <stdio.h>
#include <string.h>

#include "engine/master_private.h"

typedef struct tally {
    uint32_t named;   /* number of connected workers that the request names */
    uint32_t leaving; /* number of workers that the request names and that are already leaving */
    uint32_t first;   /* number of the first worker that the request names */
    uint32_t stay;    /* number of ready workers that the request does not name, so they stay */
} tally;

static bool is_there(const member *one) {
    return one->stage > GREETING && one->stage < GONE;
}

static bool is_named(const member *one, const kl_control_drain *drain) {
    if (*drain->host)
        return strcmp(one->host, drain->host) == 0;
    bool named = drain->worker_count == 0;
    for (uint32_t i = 0; i < drain->worker_count && !named; i++)
        named = drain->workers[i] == one->number;
    return named;
}

static tally count(const kl_master *m, const kl_control_drain *drain) {
    tally t = {0};
    for (size_t i = 0; i < m->members.count; i++) {
        const member *one = &m->members.list[i];
        bool named = is_there(one) && is_named(one, drain);
        if (named && t.named++ == 0)
            t.first = one->number;
        t.leaving += named && one->stage == LEAVING;
        t.stay += !named && (one->stage == PROBING || one->stage == WORKING);
    }
    return t;
}

static bool has_worker(const kl_master *m, uint32_t worker) {
    for (size_t i = 0; i < m->members.count; i++)
        if (is_there(&m->members.list[i]) && m->members.list[i].number == worker)
            return true;
    return false;
}

static kilter_status check(const kl_master *m, const kl_control_drain *drain, const tally *t,
                           kilter_error *error) {
    for (uint32_t i = 0; i < drain->worker_count; i++)
        if (!has_worker(m, drain->workers[i]))
            return kl_fail(error, KILTER_ERR_RANGE, "there is no worker %u; kilter tune lists the workers",
                           drain->workers[i]);
    if (t->named == 0 && *drain->host)
        return kl_fail(error, KILTER_ERR_RANGE,
                       "there is no worker on host '%s'; kilter report shows the hosts", drain->host);
    if (t->named == 0)
        return kl_fail(error, KILTER_ERR_RANGE, "the farm has no worker to release");
    if (t->stay == 0 && t->leaving < t->named && !drain->all)
        return kl_fail(error, KILTER_ERR_RANGE,
                       "no worker would stay: %s, or give --all to release all workers",
                       m->options.may_join ? "let other workers join first" : "name fewer workers");
    return KILTER_OK;
}

void kl_master_send_home(kl_master *m, member *one, const char *why) {
    kl_buffer home = {0};
    kl_wire_put_plain(&home, KL_RELEASE);
    /* ignore an error, because the transport will report that this worker has gone */
    kl_send(m->transport, one->peer, &home, NULL);
    kl_buffer_free(&home);
    kl_master_note_leaving(m, one, why);
}

void kl_master_note_leaving(kl_master *m, member *one, const char *why) {
    if (one->stage == WORKING) {
        kl_balance_present(&m->balance, one->worker, false);
        m->members.ready--;
        m->members.resting -= one->resting;
    }
    m->members.probing -= one->stage == PROBING;
    one->stage = LEAVING;
    one->sent_home = why;
    one->hungry = one->held = one->resting = false;
    m->members.leaving++;
}

static void say(const kl_master *m, const tally *t, char answer[KL_CONTROL_ANSWER_BYTES]) {
    char who[64], stay[96];
    bool one = t->named == 1;
    if (one)
        snprintf(who, sizeof who, "worker %u", t->first);
    else
        snprintf(who, sizeof who, "%u workers", t->named);
    if (t->stay > 0)
        snprintf(stay, sizeof stay, "%u stay%s", t->stay, t->stay == 1 ? "s" : "");
    else
        snprintf(stay, sizeof stay, "nobody stays: %s",
                 m->options.may_join ? "the farm waits for others to join"
                                     : "a run that is not done when they leave cannot be finished");
    const char *now = t->leaving == t->named ? "already " : "";
    snprintf(answer, KL_CONTROL_ANSWER_BYTES, "%s %s%s when %s is done; %s", who, now,
             one ? "leaves" : "leave", one ? "its task" : "their task", stay);
}

kilter_status kl_master_drain(kl_master *m, const kl_control_drain *drain,
                              char answer[KL_CONTROL_ANSWER_BYTES], kilter_error *error) {
    tally t = count(m, drain);
    kilter_status status = check(m, drain, &t, error);
    if (status != KILTER_OK)
        return status;
    for (size_t i = 0; i < m->members.count; i++) {
        member *one = &m->members.list[i];
        if (is_there(one) && one->stage != LEAVING && is_named(one, drain))
            kl_master_send_home(m, one, "was released on request");
    }
    if (*drain->host)
        kl_master_note_drained(m, drain->host);
    status = kl_master_wake_for_lost(m, error);
    m->feeding.all = true;
    say(m, &t, answer);
    return status;
}
