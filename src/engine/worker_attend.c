/* Handle the worker's messages during a long task, in a second thread. */
#include "engine/worker_private.h"

/* A worker that uses more than this part of the memory limit is replaced after its task. A worker that leaks
 * memory slowly is thus replaced before one of its tasks exceeds the limit and fails. */
static const double NEARLY_ALL = 0.9;
/* If the result of a running task no longer counts, the task may continue for END_PATIENCE_S seconds. Then
 * the worker's process ends. A master that closes waits equally long for its local workers. */
static const double END_PATIENCE_S = 5;

void kl_worker_let_attend(kl_worker *w, const kl_attendance *attendance) {
    w->attendance = *attendance;
    w->share.busy_s = attendance->busy_s ? attendance->busy_s(attendance->self) : 0;
    w->share.tasks_s = 0;
}

/* Return whether the worker still does the same task as in the last call. If it does another task now, store
 * which task this is. */
static bool is_still_at_it(kl_worker *w, double now_s) {
    attended *a = &w->attended;
    if (a->seen && a->task == w->hand.done)
        return true;
    *a = (attended){.seen = true, .task = w->hand.done, .since_s = now_s};
    a->busy_s = w->attendance.busy_s(w->attendance.self);
    a->heartbeat_due_s = w->hand.began_s + KL_HEARTBEAT_S;
    return false;
}

void kl_worker_name_task(const kl_worker *w, kl_heartbeat *heartbeat) {
    const queued *chunk = w->queue.first;
    heartbeat->chunk = chunk->head.chunk;
    heartbeat->task = chunk->head.lo + chunk->at;
    heartbeat->usual_share = w->share.usual;
}

/* Send a heartbeat. Assume that the task had its core all the time until this thread first saw the task. */
static kilter_status send_heartbeat(kl_worker *w, double now_s, uint64_t memory, kilter_error *error) {
    attended *a = &w->attended;
    kl_heartbeat heartbeat = {.elapsed_s = now_s - w->hand.began_s, .memory = memory};
    heartbeat.cpu_s = w->attendance.busy_s(w->attendance.self) - a->busy_s + (a->since_s - w->hand.began_s);
    kl_worker_name_task(w, &heartbeat);
    kl_buffer out = {0};
    kl_wire_put_heartbeat(&out, &heartbeat);
    a->heartbeat_due_s = now_s + KL_HEARTBEAT_S;
    return kl_worker_post(w, &out, error);
}

static uint64_t look_at_memory(kl_worker *w) {
    double most = (double)w->limits.memory_most;
    if (w->limits.memory_most == 0 || !w->options->memory)
        return 0;
    uint64_t now = w->options->memory(w->driver), taken = now > w->memory_before ? now - w->memory_before : 0;
    if ((double)taken > NEARLY_ALL * most)
        kl_renew(&w->leaving, "has taken %.0f MB of memory; the limit is %.0f MB", 1e-6 * (double)taken,
                 1e-6 * most);
    return taken;
}

/* Receive messages. Then send what must be sent now: returned tasks, results, a request, a heartbeat. */
static kilter_status attend(kl_worker *w, double now_s, uint64_t memory, kilter_error *error) {
    attended *a = &w->attended;
    kilter_status status = kl_worker_take_in(w, 0, error);
    bool over = !a->over && w->limits.memory_most > 0 && memory > w->limits.memory_most;
    bool leaves = kl_is_leaving(&w->leaving);
    bool ask = !leaves && !w->asking.asked && w->queue.tasks == 1;
    bool late = kl_has_results(&w->outbox) && now_s - w->outbox.first_result_s >= KL_FLUSH_S;
    if (status == KILTER_OK && leaves)
        status = kl_worker_give_all_back(w, error);
    if (status == KILTER_OK && (ask || late))
        status = kl_worker_flush(w, ask, error);
    if (status == KILTER_OK && (over || now_s >= a->heartbeat_due_s))
        status = send_heartbeat(w, now_s, memory, error);
    a->over |= over;
    return status;
}

void kl_worker_attend(kl_worker *w) {
    double now_s = kl_now_s(&w->options->clock);
    if (!w->hand.at_work)
        return;
    if (w->leaving.failed == KILTER_OK) {
        uint64_t memory = look_at_memory(w);
        kilter_error failure = {KILTER_OK, ""};
        if (is_still_at_it(w, now_s) && attend(w, now_s, memory, &failure) != KILTER_OK)
            kl_fail_in_task(&w->leaving, &failure, now_s);
    }
    if (w->leaving.failed != KILTER_OK) {
        /* give the task some time to end by itself, but not for ever, because its result no longer counts */
        double patience_s = w->leaving.dismissed ? 0 : w->orphan ? w->options->patience_s : END_PATIENCE_S;
        kilter_error why;
        if (kl_task_failure(&w->leaving, &why) != KILTER_OK && w->options->abandon && patience_s >= 0 &&
            now_s >= w->leaving.failed_s + patience_s)
            w->options->abandon(w->driver, &why, kl_is_renewal(&w->leaving));
    }
}
