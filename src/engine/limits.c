/* Limits on the time and memory of a task. A task that exceeds a limit fails. A task cannot be interrupted,
 * so the worker process that does it is ended and replaced. */
/* The message HEARTBEAT tells the master which task a worker does and for how long. It also says how much
 * memory the worker's process uses. If a limit is exceeded, the master sends RENEW, and kills the process if
 * it is local. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/master_private.h"

/* Return the usual seconds of a task of this weight at the worker. If the worker has done no task, return
 * the usual seconds at all workers. 0: unknown. */
static double usual_s(const kl_master *m, const member *one, const kl_chunk *chunk, uint64_t task) {
    double own_s = kl_pace_unit_s(&m->balance.views[one->worker].pace);
    double units = chunk->stale ? chunk->units : kl_bag_units(&m->balance.bag, (kl_span){task, task + 1});
    return units * (own_s > 0 ? own_s : m->balance.snapshot.unit_s.mean);
}

/* Return the chunk of the task in the worker's last heartbeat. NULL: the worker has already finished that
 * task. */
static const kl_chunk *chunk_at_hand(const member *one) {
    const kl_chunk *chunk = one->chunk_count > 0 ? one->chunks : NULL;
    const kl_heartbeat *p = &one->heartbeat;
    bool current =
        chunk && one->heartbeat_s > 0 && p->chunk == chunk->id && p->task >= chunk->at && p->task < chunk->hi;
    return current ? chunk : NULL;
}

static double limit_s(const kl_master *m, double task_usual_s) {
    if (m->run.limits.task_s > 0)
        return m->run.limits.task_s;
    return m->run.limits.task_times > 0 && task_usual_s > 0 ? m->run.limits.task_times * task_usual_s
                                                            : HUGE_VAL;
}

typedef enum excess { NONE, TIME, MEMORY } excess;

static excess excess_of(const kl_master *m, const member *one, const kl_chunk *chunk, double *most_s) {
    const kl_heartbeat *p = &one->heartbeat;
    *most_s = limit_s(m, usual_s(m, one, chunk, p->task));
    if (p->elapsed_s > *most_s)
        return TIME;
    return m->run.limits.worker_memory > 0 && p->memory > m->run.limits.worker_memory ? MEMORY : NONE;
}

static kilter_status end_worker(kl_master *m, member *one, uint64_t task, const char *why,
                                kilter_error *error) {
    char text[200];
    snprintf(text, sizeof text, "was ended in task %llu: %s", (unsigned long long)task, why);
    bool leaves = one->stage == LEAVING; /* do not replace a worker that is leaving */
    kl_buffer out = {0};
    kl_wire_put_bytes(&out, leaves ? KL_END : KL_RENEW, text, strlen(text));
    /* ignore an error of sending, because the process may be gone */
    kl_send(m->transport, one->peer, &out, NULL);
    kl_buffer_free(&out);
    kl_drop(m->transport, one->peer);
    if (m->options.renew && !leaves)
        m->options.renew(m->options.self, one->pid, true);
    return kl_master_lose(m, one, text, false, error);
}

kilter_status kl_master_check_hand(kl_master *m, member *one, kilter_error *error) {
    const kl_chunk *chunk = chunk_at_hand(one);
    char why[120];
    double most_s;
    excess what = chunk ? excess_of(m, one, chunk, &most_s) : NONE;
    if (what == NONE)
        return KILTER_OK;
    if (what == TIME)
        snprintf(why, 120, "the task exceeded its time limit of %.4g s", most_s);
    else
        snprintf(why, 120, "the task's worker took %.0f MB of memory; the limit is %.0f MB",
                 1e-6 * (double)one->heartbeat.memory, 1e-6 * (double)m->run.limits.worker_memory);
    uint64_t task = one->heartbeat.task;
    kilter_status status = chunk->stale ? KILTER_OK : kl_master_fail_attempt(m, one, chunk, task, why, error);
    return status == KILTER_OK ? end_worker(m, one, task, why, error) : status;
}

/* A worker asks to be replaced. Let it leave, and start a new worker. */
kilter_status kl_master_on_renewal(kl_master *m, member *one, const kl_message *message,
                                   kilter_error *error) {
    char text[120];
    bool may = m->options.limits.worker_tasks > 0 || m->options.limits.worker_memory > 0;
    if (one->stage != WORKING || !may)
        return kl_master_on_leave(m, one, message, error);
    kl_wire_get_text(message->data, message->size, text, sizeof text);
    if (m->options.renew)
        m->options.renew(m->options.self, one->pid, false);
    kl_master_note_leaving(m, one, "was replaced by a new worker");
    kl_drop(m->transport, one->peer);
    return kl_master_lose(m, one, text, false, error);
}

/* --- tasks that take far longer than usual --- */

static const double LATE_TIMES = 5, LATE_LEAST_S = 2;

kl_late kl_master_late(const kl_master *m) {
    kl_late latest = {0};
    for (size_t i = 0; i < m->members.count; i++) {
        const member *one = &m->members.list[i];
        const kl_chunk *chunk = one->stage == WORKING ? chunk_at_hand(one) : NULL;
        if (!chunk || chunk->stale)
            continue;
        kl_late late = {.task = one->heartbeat.task, .worker = one->number};
        late.elapsed_s = one->heartbeat.elapsed_s + kl_now_s(&m->options.clock) - one->heartbeat_s;
        late.usual_s = usual_s(m, one, chunk, late.task);
        bool is_late = late.usual_s > 0 && late.elapsed_s > fmax(LATE_LEAST_S, LATE_TIMES * late.usual_s);
        if (is_late && late.elapsed_s > latest.elapsed_s)
            latest = late;
    }
    return latest;
}
