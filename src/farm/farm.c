/* Runs of a farm, and the two threads of a master: the caller's thread and the service thread. If only one
 * thread may use the transport, there is no service thread, and the caller's thread also does the work of
 * the service thread. */
#include <math.h>
#include <string.h>

#include "farm/farm_private.h"

/* Note that the callback has received all results so far. Check whether the callback can still add tasks
 * to the run. */
static void note_taken(kilter_farm *f, const kl_deliverer *deliverer, kilter_status status) {
    if (f->growth.grows)
        kl_farm_note_growth(f, status != KILTER_OK || kl_deliverer_given(deliverer) == f->run.known->tasks);
}

static kilter_status check_limits(const kilter_farm *f, const kilter_run *run, kilter_error *error) {
    if (run->task_timeout_s != 0 && !(run->task_timeout_s >= KL_TIMEOUT_LEAST_S))
        return kl_fail(error, KILTER_ERR_RANGE,
                       "a task_timeout_s of %g: give a number of seconds, at least %g", run->task_timeout_s,
                       KL_TIMEOUT_LEAST_S);
    if (run->task_timeout_s > 0 && strcmp(f->transport->ops->name, "zmq") != 0)
        return kl_fail(
            error, KILTER_ERR_USAGE,
            "a run's task_timeout_s needs the transport zmq: transport %s cannot end a single worker",
            f->transport->ops->name);
    return KILTER_OK;
}

static kilter_status check_results(const kilter_run *run, kilter_error *error) {
    if (!run->results && run->result_bytes > 0)
        return kl_fail(
            error, KILTER_ERR_USAGE,
            "a run's result_bytes of %zu without results: give the array that results are copied to",
            run->result_bytes);
    if (run->results && (run->result_bytes == 0 || run->result_bytes > KL_WIRE_MOST_BYTES))
        return kl_fail(error, KILTER_ERR_RANGE, "a run's result_bytes of %zu: give 1 to %d bytes",
                       run->result_bytes, KL_WIRE_MOST_BYTES);
    return KILTER_OK;
}

/* Return the number of workers for the next run. For the first run, count workers that are not connected yet.
 */
static uint32_t workers_of_run(kilter_farm *f) {
    pthread_mutex_lock(&f->lock);
    uint32_t active = f->run.active;
    pthread_mutex_unlock(&f->lock);
    return f->run.ended_s > 0 || active > f->workers ? active : f->workers;
}

static kilter_status check_organised(kilter_farm *f, const kilter_run *run, kilter_error *error) {
    const char *how = f->settings.organise;
    bool peers = how && strcmp(how, "peers") == 0;
    const char *never = peers ? kl_master_never_peers(f->master, run, workers_of_run(f)) : NULL;
    if (never)
        return kl_fail(error, KILTER_ERR_USAGE, "--organise peers: %s; give --organise auto", never);
    if (!run->reduce)
        return KILTER_OK;
    if (!f->settings.options.combine || !run->results)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "a run with `reduce`, but without %s: give the function that combines two results, "
                       "and memory for their combination",
                       f->settings.options.combine ? "results" : "the farm's combine");
    return KILTER_OK;
}

static kilter_status check_sizes(const kilter_run *run, kilter_error *error) {
    if (run->shared.size > KL_WIRE_MOST_BYTES)
        return kl_fail(error, KILTER_ERR_RANGE, "shared data of %zu bytes: at most %d bytes can be sent",
                       run->shared.size, KL_WIRE_MOST_BYTES);
    for (uint64_t i = 0; run->inputs && i < run->tasks; i++)
        if (run->inputs[i].size > KL_WIRE_MOST_BYTES)
            return kl_fail(error, KILTER_ERR_RANGE,
                           "input of task %llu has %zu bytes: at most %d bytes can be sent",
                           (unsigned long long)i, run->inputs[i].size, KL_WIRE_MOST_BYTES);
    return KILTER_OK;
}

/* Wait for results or for the end of the run. Return true if the run has ended and all its results are
 * taken. */
static bool next_results(kilter_farm *f, kl_delivery_list *list) {
    /* take the lock, because the thread that writes the trace may also end the run */
    pthread_mutex_lock(&f->lock);
    bool goes_on = !f->run.over && !f->run.ended;
    pthread_mutex_unlock(&f->lock);
    if (!f->service.threaded && goes_on)
        kl_farm_turn(f, true);
    pthread_mutex_lock(&f->lock);
    while ((f->service.threaded || f->run.over) && !f->run.results.first && !f->run.ended)
        pthread_cond_wait(&f->news, &f->lock);
    *list = f->run.results;
    f->run.results = (kl_delivery_list){0};
    if (f->run.ended && f->run.ended_s == 0)
        f->run.ended_s = kl_busy_s(&f->clock);
    bool ended = f->run.ended && !list->first;
    /* show the state once more, because the last results may have been stored after the master's last turn */
    if (ended && !f->service.threaded) {
        kl_master_unsafe(f->master, f->storing.tasks, false);
        kl_farm_show_state(f, true);
    }
    pthread_mutex_unlock(&f->lock);
    return ended;
}

/* Return the error that ended the run early, as the service thread has stored it. KILTER_OK: no error
 * ended it early. */
static kilter_status tell_failure(kilter_farm *f, kilter_error *error) {
    pthread_mutex_lock(&f->lock);
    kilter_error failure = f->run.failure;
    pthread_mutex_unlock(&f->lock);
    return failure.status == KILTER_OK ? KILTER_OK : kl_fail(error, failure.status, "%s", failure.text);
}

/* Ask the service thread to begin the run, and pass results to the callback as they arrive. */
static kilter_status carry_out(kilter_farm *f, const kilter_run *run, kl_known *known,
                               kl_deliverer *deliverer, kilter_error *error) {
    pthread_mutex_lock(&f->lock);
    f->growth.grows = run->grows;
    f->growth.wrong = (kilter_error){KILTER_OK, ""};
    /* the run has ended already if the farm is broken, because then no service thread takes the request */
    f->run.ended = f->run.broken;
    f->run.over = f->growth.grown = false;
    f->run.known = known;
    if (!f->run.broken) {
        f->run.failure = (kilter_error){KILTER_OK, ""};
        f->run.request = run;
        f->run.spent_s = f->run.ended_s > 0 ? fmax(0, kl_busy_s(&f->clock) - f->run.ended_s) : 0;
        f->run.ended_s = 0;
    }
    pthread_mutex_unlock(&f->lock);
    kl_transport_wake(f->transport);
    kilter_status status = kl_known_deliver(known, deliverer, error);
    note_taken(f, deliverer, status);
    for (kl_delivery_list list; !next_results(f, &list);) {
        kilter_status delivered = kl_deliver(deliverer, list, status == KILTER_OK ? error : NULL);
        status = status == KILTER_OK ? delivered : status;
        note_taken(f, deliverer, status);
    }
    f->growth.grows = false;
    kl_farm_free_additions(f);
    if (status == KILTER_OK && f->growth.wrong.status != KILTER_OK)
        return kl_fail(error, f->growth.wrong.status, "%s", f->growth.wrong.text);
    return status == KILTER_OK ? tell_failure(f, error) : status;
}

static kilter_status run_in_use(kilter_farm *f, const kilter_run *run, kilter_error *error) {
    kl_deliverer *deliverer = NULL;
    kl_known known = {.tasks = run->tasks};
    kilter_status status = check_limits(f, run, error);
    if (status == KILTER_OK)
        status = check_results(run, error);
    if (status == KILTER_OK)
        status = check_organised(f, run, error);
    if (status == KILTER_OK)
        status = check_sizes(run, error);
    if (status == KILTER_OK)
        status = kl_farm_start_record(f, error);
    if (status == KILTER_OK)
        status = kl_farm_look_up(f, run, &known, error);
    if (status == KILTER_OK)
        status = kl_deliverer_new(run, kl_farm_reducer(f), &deliverer, error);
    if (status == KILTER_OK)
        status = carry_out(f, run, &known, deliverer, error);
    uint64_t tasks = known.tasks;
    kl_known_free(&known);
    if (!deliverer)
        return status;
    char first[256];
    uint64_t failed = kl_deliverer_failed(deliverer, first, sizeof first);
    kl_deliverer_free(deliverer);
    if (status == KILTER_OK && failed > 0)
        return kl_fail(error, KILTER_ERR_TASK,
                       "%llu of %llu tasks failed; the others are done; the first failure: %s",
                       (unsigned long long)failed, (unsigned long long)tasks, first);
    return status;
}

kilter_status kl_farm_run(kilter_farm *f, const kilter_run *run, kilter_error *error) {
    kilter_status status = kl_farm_begin_use(f, "starting a run", error);
    if (status != KILTER_OK)
        return status;
    kl_farm_set_on(f, true);
    status = run_in_use(f, run, error);
    kl_farm_set_on(f, false);
    kl_farm_end_use(f);
    return status;
}

void kl_farm_summary_get(const kilter_farm *farm, kilter_farm_summary *summary) {
    /* `farm` is const for the caller, but its lock must be changed */
    kilter_farm *f = (kilter_farm *)(uintptr_t)farm;
    pthread_mutex_lock(&f->lock);
    *summary = f->run.summary;
    pthread_mutex_unlock(&f->lock);
}
