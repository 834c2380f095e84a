/* The service thread, which handles the master's events and deals chunks while the callback computes. If only
 * one thread may use the transport, there is no service thread, and the caller's thread also does the work of
 * the service thread. */
#include <math.h>
#include <string.h>

#include "farm/farm_private.h"

/* seconds between two checks for results that have been stored on disk, if there is no service thread */
static const double STORED_S = 0.02;

/* Cancel the run. unbegun: true if the run has not begun, because it waits for workers. */
static kilter_status cancel_run(kilter_farm *f, bool unbegun, kilter_error *error) {
    kilter_error why = {KILTER_OK, ""};
    char more[KILTER_ERROR_TEXT_BYTES];
    if (unbegun)
        return kl_fail(error, KILTER_ERR_CANCELLED, "the run was cancelled before it began");
    kilter_status status = kl_master_cancel(f->master, &why);
    if (status == KILTER_OK)
        return KILTER_OK;
    kl_farm_say_interrupt(f, more, sizeof more);
    return kl_fail(error, status, "%s%s", why.text, more);
}

/* Requests of other threads that the service thread carries out in its next turn. */
typedef struct orders {
    const kilter_run *request; /* a run that must begin now; NULL: there is none */
    kl_spans done;             /* spans of the run's tasks whose results are stored already */
    double spent_s;
    kl_grain_plan grain;
    kl_expectation expected;
    /* cancel: the run must be cancelled; unbegun: the run to cancel has not begun, because it
     * waits for workers */
    bool cancel, unbegun;
    bool was_running; /* true: a run was in progress, or was about to begin */
    kl_additions additions;
    bool grown;
    kl_trace *new_trace; /* a trace that the master must write to from now on; NULL: no change */
    kl_tuning tuning;
} orders;

static void take_request(kilter_farm *f, orders *o) {
    f->run.gathered |= !f->settings.listen || kl_master_ready(f->master) >= f->workers;
    bool deals = f->run.request && !kl_known_all(f->run.known, f->run.request->tasks);
    o->request = f->run.gathered || !deals ? f->run.request : NULL;
    /* a cancellation that comes before the request for a run is kept until the request comes */
    o->cancel = f->stop.cancelled && (f->run.request || kl_master_running(f->master));
    o->unbegun = o->cancel && f->run.request && !o->request;
    if (o->request || o->unbegun)
        f->run.request = NULL;
    f->stop.cancelled &= !o->cancel;
    if (!o->request)
        return;
    o->done = (kl_spans){f->run.known->spans, f->run.known->first};
    o->spent_s = f->run.spent_s;
    o->grain = f->plans.grain;
    o->expected = f->plans.expected;
    f->plans = (kl_plans){0}; /* the caller's plans were for this run, so forget them */
}

/* Copy the requests of other threads into `o`. Call this with the lock held. */
static void take_orders(kilter_farm *f, orders *o) {
    *o = (orders){0};
    kl_farm_answer_grain(f);
    take_request(f, o);
    if (!f->run.request)
        o->additions = kl_farm_take_additions(f, &o->grown);
    o->new_trace = f->record.told ? NULL : f->record.trace;
    f->record.told |= o->new_trace != NULL;
    o->tuning = f->outside.tuning;
    f->outside.tuning = (kl_tuning){0};
    kl_farm_take_request(f);
}

static kilter_status begin_run(kilter_farm *f, const orders *o, kilter_error *error) {
    kl_farm_begin_progress(f);
    kl_master_spent(f->master, o->spent_s);
    kl_master_note_grain(f->master, &o->grain);
    kl_master_note_expectation(f->master, &o->expected);
    kl_master_done_before(f->master, o->done);
    return kl_master_begin(f->master, o->request, error);
}

/* Carry out the requests of other threads, and handle one event. */
static kilter_status follow(kilter_farm *f, orders *o, double timeout_s, kilter_error *error) {
    kilter_status status = KILTER_OK;
    if (o->new_trace)
        kl_master_record(f->master, o->new_trace);
    /* ignore the status, because the settings were checked when they were requested */
    if (o->tuning.set)
        kl_master_tune(f->master, &o->tuning, NULL);
    if (o->request)
        status = begin_run(f, o, error);
    if (status == KILTER_OK)
        status = kl_farm_grow(f, &o->additions, o->grown, error);
    if (status == KILTER_OK && o->cancel)
        status = cancel_run(f, o->unbegun, error);
    if (status == KILTER_OK && (kl_master_running(f->master) || !o->was_running))
        status = kl_master_turn(f->master, timeout_s, error);
    return status;
}

/* Pass the result of a turn to the caller's thread. Call this with the lock held. */
static void hand_over(kilter_farm *f, bool was_running, kilter_status status, kilter_error *error) {
    bool running = kl_master_running(f->master);
    f->run.active = kl_master_active(f->master);
    kl_delivery_list results = kl_master_take(f->master);
    kilter_status taken = kl_farm_take_results(f, &results, status == KILTER_OK ? error : NULL);
    status = status == KILTER_OK ? taken : status;
    if (status != KILTER_OK) {
        f->run.failure = *error;
        /* an error outside a run, or one that leaves the run unfinished, breaks the farm */
        f->run.broken |= running || !was_running;
    }
    if ((was_running && !running) || status != KILTER_OK) {
        kl_farm_note_over(f);
        kl_master_summary(f->master, &f->run.summary);
        snprintf(f->run.decision, sizeof f->run.decision, "%s",
                 f->run.summary.decision ? f->run.summary.decision : "");
        f->run.summary.decision = f->run.decision;
    }
    kl_farm_show_state(f, f->run.ended);
    pthread_cond_signal(&f->news);
}

/* Return the seconds that a turn may wait for an event. */
static double patience_s(kilter_farm *f, double timeout_s) {
    double tend_s = kl_farm_tend_local(f);
    return tend_s < HUGE_VAL && (timeout_s < 0 || timeout_s > tend_s) ? tend_s : timeout_s;
}

void kl_farm_turn(kilter_farm *f, bool run_is_on) {
    orders o;
    double timeout_s = run_is_on ? kl_farm_progress_due_s(f) : -1;
    kilter_error error = {KILTER_OK, ""};
    pthread_mutex_lock(&f->lock);
    take_orders(f, &o);
    kl_master_unsafe(f->master, f->storing.tasks, kl_storing_holds(&f->storing));
    if (!f->service.threaded && f->storing.list.first && (timeout_s < 0 || timeout_s > STORED_S))
        timeout_s = STORED_S;
    pthread_mutex_unlock(&f->lock);
    o.was_running = kl_master_running(f->master) || o.request || o.unbegun;
    kilter_status status = follow(f, &o, patience_s(f, timeout_s), &error);
    kl_farm_show_progress(f, kl_master_running(f->master));
    pthread_mutex_lock(&f->lock);
    hand_over(f, o.was_running, status, &error);
    pthread_mutex_unlock(&f->lock);
}

static void *service_main(void *arg) {
    kilter_farm *f = arg;
    for (;;) {
        pthread_mutex_lock(&f->lock);
        bool stop = f->service.closing || f->run.broken;
        f->run.ended |= f->run.broken;
        pthread_cond_signal(&f->news);
        pthread_mutex_unlock(&f->lock);
        if (stop)
            return NULL;
        kl_farm_turn(f, kl_master_running(f->master));
    }
}

kilter_status kl_farm_start_service(kilter_farm *f, kilter_error *error) {
    if (!f->transport->ops->threads)
        return KILTER_OK;
    f->service.threaded = true; /* set this before the thread starts, because the thread reads it */
    int code = kl_thread_start(&f->service.thread, service_main, f);
    if (code != 0)
        f->service.threaded = false;
    return code == 0 ? KILTER_OK
                     : kl_fail(error, KILTER_ERR_SYSTEM, "starting the service thread: %s", strerror(code));
}

void kl_farm_end_service(kilter_farm *f) {
    pthread_mutex_lock(&f->lock);
    f->service.closing = true;
    pthread_mutex_unlock(&f->lock);
    if (!f->service.threaded)
        return;
    kl_transport_wake(f->transport);
    pthread_join(f->service.thread, NULL);
}
