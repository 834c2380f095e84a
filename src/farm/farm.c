/* The public farm's runs, and the two threads of a master.
 *
 *   the caller's thread    kilter_farm_run() ── callback, callback, … ──────────────▶ returns
 *                                │ request          ▲ results
 *   the service thread           ▼                  │
 *                          takes in events, deals chunks: answers workers while the callback computes
 *
 * Where the transport cannot be used from another thread, the caller's thread does both in turn. */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "farm/farm_private.h"

static const double PROGRESS_S = 0.5;    /* between two progress lines on a terminal */
static const double PROGRESS_LOG_S = 10; /* and elsewhere */
static const double STORED_S = 0.02;     /* without a service thread: between two looks at what is stored */

/* --- what it costs --- */

static const uint64_t RUNS_LOOKED_FOR_THREADS = 3; /* the first ones: then all are there */

/* Those that work for the farm beside the service thread; a program may have others. */
static void find_threads(kilter_farm *f) {
    enum { MOST = sizeof f->helper_cpu / sizeof *f->helper_cpu };
    f->helpers = kl_threads_named("ZMQbg/", f->helper_cpu, MOST);
    f->helpers += kl_threads_named(KL_TRACE_THREAD, f->helper_cpu + f->helpers, MOST - f->helpers);
}

bool kl_farm_used(void *farm, double *farm_s, double *callbacks_s) {
    kilter_farm *f = farm;
    if (!f->threaded || f->clock.simulated)
        return false;
    pthread_mutex_lock(&f->lock);
    bool in_use = f->in_use;
    *callbacks_s = in_use ? kl_cpu_s(f->user_cpu) : 0;
    uint64_t calls = f->calls;
    pthread_mutex_unlock(&f->lock);
    if (calls <= RUNS_LOOKED_FOR_THREADS)
        find_threads(f);
    *farm_s = kl_cpu_s(kl_thread_cpu());
    for (uint32_t i = 0; i < f->helpers; i++)
        *farm_s += kl_cpu_s(f->helper_cpu[i]);
    return in_use;
}

/* --- the service --- */

static void show_progress(kilter_farm *f) {
    double now_s = kl_now_s(&f->clock);
    bool terminal = isatty(STDERR_FILENO) == 1;
    if (!f->settings.options.progress || now_s < f->progress_at_s)
        return;
    f->progress_at_s = now_s + (terminal ? PROGRESS_S : PROGRESS_LOG_S);
    char text[320];
    kl_master_progress(f->master, text, sizeof text);
    fprintf(stderr, terminal ? "\r%s: %s\033[K" : "%s: %s\n", f->settings.name, text);
}

static void end_progress(const kilter_farm *f) {
    if (f->settings.options.progress && isatty(STDERR_FILENO) == 1)
        fprintf(stderr, "\r\033[K");
}

/* unbegun: it waited for workers. */
static kilter_status cancel_run(kilter_farm *f, bool unbegun, kilter_error *error) {
    kilter_error why = {KILTER_OK, ""};
    char more[KILTER_ERROR_TEXT_BYTES];
    if (unbegun)
        return kl_fail(error, KILTER_ERR_CANCELLED, "cancelled before it began");
    kilter_status status = kl_master_cancel(f->master, &why);
    if (status == KILTER_OK)
        return KILTER_OK;
    kl_farm_say_interrupt(f, more, sizeof more);
    return kl_fail(error, status, "%s%s", why.text, more);
}

/* What the other threads want of the next turn. */
typedef struct orders {
    const kilter_run *request; /* NULL: no run is to begin */
    kl_spans done;             /* of it */
    double spent_s;
    kl_grain_plan grain;
    kl_expectation expected;
    bool cancel, unbegun; /* unbegun: a run that waits for workers */
    bool was_running;     /* or is to begin */
    kl_additions additions;
    bool grown;
    kl_trace *new_trace; /* NULL: nothing new */
    kl_tuning tuning;
} orders;

static void take_request(kilter_farm *f, orders *o) {
    f->gathered |= !f->settings.listen || kl_master_ready(f->master) >= f->workers;
    bool deals = f->request && !kl_known_all(f->known, f->request->tasks);
    o->request = f->gathered || !deals ? f->request : NULL;
    /* what comes before there is a request is kept for it */
    o->cancel = f->cancelled && (f->request || kl_master_running(f->master));
    o->unbegun = o->cancel && f->request && !o->request;
    if (o->request || o->unbegun)
        f->request = NULL;
    f->cancelled &= !o->cancel;
    if (!o->request)
        return;
    o->done = (kl_spans){f->known->spans, f->known->first};
    o->spent_s = f->spent_s;
    o->grain = kl_farm_take_grain(f);
    o->expected = kl_farm_take_expectation(f);
}

/* Under the lock. */
static void take_orders(kilter_farm *f, orders *o) {
    *o = (orders){0};
    kl_farm_answer_grain(f);
    take_request(f, o);
    if (!f->request)
        o->additions = kl_farm_take_additions(f, &o->grown);
    o->new_trace = f->recorded ? NULL : f->trace;
    f->recorded |= o->new_trace != NULL;
    o->tuning = kl_farm_take_tuning(f);
    kl_farm_take_drain(f);
}

static kilter_status begin_run(kilter_farm *f, const orders *o, kilter_error *error) {
    kl_master_spent(f->master, o->spent_s);
    kl_master_note_grain(f->master, &o->grain);
    kl_master_note_expectation(f->master, &o->expected);
    kl_master_done_before(f->master, o->done);
    return kl_master_begin(f->master, o->request, error);
}

/* And take in one event. */
static kilter_status follow(kilter_farm *f, orders *o, double timeout_s, kilter_error *error) {
    kilter_status status = KILTER_OK;
    if (o->new_trace)
        kl_master_record(f->master, o->new_trace);
    if (o->tuning.set)
        kl_master_tune(f->master, &o->tuning, NULL); /* it was checked */
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

/* What came of it, to the caller's thread. Under the lock. */
static void hand_over(kilter_farm *f, bool was_running, kilter_status status, kilter_error *error) {
    bool running = kl_master_running(f->master);
    kl_delivery_list results = kl_master_take(f->master);
    kilter_status taken = kl_farm_take_results(f, &results, status == KILTER_OK ? error : NULL);
    status = status == KILTER_OK ? taken : status;
    if (status != KILTER_OK) {
        f->failure = *error;
        f->broken |= running || !was_running; /* not just the run is lost */
    }
    if ((was_running && !running) || status != KILTER_OK) {
        kl_farm_note_over(f);
        kl_master_summary(f->master, &f->summary);
        snprintf(f->decision, sizeof f->decision, "%s", f->summary.decision ? f->summary.decision : "");
        f->summary.decision = f->decision;
    }
    kl_farm_show_state(f, f->run_ended);
    pthread_cond_signal(&f->news);
}

/* How long it may wait for an event. */
static double patience_s(kilter_farm *f, double timeout_s) {
    double tend_s = kl_farm_tend_local(f);
    return tend_s < HUGE_VAL && (timeout_s < 0 || timeout_s > tend_s) ? tend_s : timeout_s;
}

static void service_turn(kilter_farm *f, double timeout_s) {
    orders o;
    kilter_error error = {KILTER_OK, ""};
    pthread_mutex_lock(&f->lock);
    take_orders(f, &o);
    kl_master_unsafe(f->master, f->unstored_tasks, kl_farm_holds(f));
    if (!f->threaded && f->unstored.first && (timeout_s < 0 || timeout_s > STORED_S))
        timeout_s = STORED_S;
    pthread_mutex_unlock(&f->lock);
    o.was_running = kl_master_running(f->master) || o.request || o.unbegun;
    kilter_status status = follow(f, &o, patience_s(f, timeout_s), &error);
    if (kl_master_running(f->master))
        show_progress(f);
    else if (o.was_running)
        end_progress(f);
    pthread_mutex_lock(&f->lock);
    hand_over(f, o.was_running, status, &error);
    pthread_mutex_unlock(&f->lock);
}

static void *service_main(void *arg) {
    kilter_farm *f = arg;
    for (;;) {
        pthread_mutex_lock(&f->lock);
        bool stop = f->closing || f->broken;
        f->run_ended |= f->broken;
        pthread_cond_signal(&f->news);
        pthread_mutex_unlock(&f->lock);
        if (stop)
            return NULL;
        service_turn(f, f->settings.options.progress && kl_master_running(f->master) ? PROGRESS_S : -1);
    }
}

kilter_status kl_farm_start_service(kilter_farm *f, kilter_error *error) {
    if (!f->transport->ops->threads)
        return KILTER_OK;
    sigset_t all, old; /* signals are the program's own threads' business */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    f->threaded = true; /* before the thread looks at it */
    int code = pthread_create(&f->service, NULL, service_main, f);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (code != 0)
        f->threaded = false;
    return code == 0 ? KILTER_OK
                     : kl_fail(error, KILTER_ERR_SYSTEM, "starting the service thread: %s", strerror(code));
}

/* --- running --- */

kilter_status kl_farm_begin_use(kilter_farm *f, const char *what, kilter_error *error) {
    pthread_mutex_lock(&f->lock);
    bool in_use = f->in_use;
    if (!in_use)
        f->user_cpu = kl_thread_cpu();
    f->in_use = true;
    pthread_mutex_unlock(&f->lock);
    return in_use ? kl_fail(error, KILTER_ERR_USAGE,
                            "%s: the farm's last run has not returned; call it after that, and not from the "
                            "callback",
                            what)
                  : KILTER_OK;
}

void kl_farm_end_use(kilter_farm *f) {
    pthread_mutex_lock(&f->lock);
    f->in_use = false;
    pthread_mutex_unlock(&f->lock);
}

/* The callback has all results there are so far, or will get no more. */
static void note_taken(kilter_farm *f, const kl_deliverer *deliverer, kilter_status status) {
    if (f->grows)
        kl_farm_note_growth(f, status != KILTER_OK || kl_deliverer_given(deliverer) == f->known->tasks);
}

static kilter_status check_limits(const kilter_farm *f, const kilter_run *run, kilter_error *error) {
    if (run->task_timeout_s != 0 && !(run->task_timeout_s >= KL_TIMEOUT_LEAST_S))
        return kl_fail(error, KILTER_ERR_RANGE,
                       "a task_timeout_s of %g: it is a number of seconds from %g on", run->task_timeout_s,
                       KL_TIMEOUT_LEAST_S);
    if (run->task_timeout_s > 0 && strcmp(f->transport->ops->name, "zmq") != 0)
        return kl_fail(
            error, KILTER_ERR_USAGE,
            "a run's task_timeout_s: workers of transport %s cannot be ended one by one; those of zmq can",
            f->transport->ops->name);
    return KILTER_OK;
}

static kilter_status check_results(const kilter_run *run, kilter_error *error) {
    if (!run->results && run->result_bytes > 0)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "a run's result_bytes of %zu without results: give the array they are copied to",
                       run->result_bytes);
    if (run->results && (run->result_bytes == 0 || run->result_bytes > KL_WIRE_MOST_BYTES))
        return kl_fail(error, KILTER_ERR_RANGE,
                       "a run's result_bytes of %zu: each place of results has from 1 to %d bytes",
                       run->result_bytes, KL_WIRE_MOST_BYTES);
    return KILTER_OK;
}

static kilter_status check_sizes(const kilter_run *run, kilter_error *error) {
    if (run->shared.size > KL_WIRE_MOST_BYTES)
        return kl_fail(error, KILTER_ERR_RANGE, "shared data of %zu bytes: at most %d can be sent",
                       run->shared.size, KL_WIRE_MOST_BYTES);
    for (uint64_t i = 0; run->inputs && i < run->tasks; i++)
        if (run->inputs[i].size > KL_WIRE_MOST_BYTES)
            return kl_fail(error, KILTER_ERR_RANGE,
                           "input of task %llu has %zu bytes: at most %d can be sent", (unsigned long long)i,
                           run->inputs[i].size, KL_WIRE_MOST_BYTES);
    return KILTER_OK;
}

/* Wait for results or the end of the run; true when it has ended and nothing is left to take. */
static bool next_results(kilter_farm *f, kl_delivery_list *list) {
    pthread_mutex_lock(&f->lock); /* the trace's thread may end the run, too */
    bool goes_on = !f->run_over && !f->run_ended;
    pthread_mutex_unlock(&f->lock);
    if (!f->threaded && goes_on)
        service_turn(f, f->settings.options.progress ? PROGRESS_S : -1);
    pthread_mutex_lock(&f->lock);
    while ((f->threaded || f->run_over) && !f->results.first && !f->run_ended)
        pthread_cond_wait(&f->news, &f->lock);
    *list = f->results;
    f->results = (kl_delivery_list){0};
    if (f->run_ended && f->run_ended_s == 0)
        f->run_ended_s = kl_busy_s(&f->clock);
    bool ended = f->run_ended && !list->first;
    if (ended && !f->threaded) { /* its last turn may have been before the last results were stored */
        kl_master_unsafe(f->master, f->unstored_tasks, false);
        kl_farm_show_state(f, true);
    }
    pthread_mutex_unlock(&f->lock);
    return ended;
}

/* What ended the run early, if anything did: the service thread notes it. */
static kilter_status tell_failure(kilter_farm *f, kilter_error *error) {
    pthread_mutex_lock(&f->lock);
    kilter_error failure = f->failure;
    pthread_mutex_unlock(&f->lock);
    return failure.status == KILTER_OK ? KILTER_OK : kl_fail(error, failure.status, "%s", failure.text);
}

/* Deal, and give the results to the callback as they come. */
static kilter_status carry_out(kilter_farm *f, const kilter_run *run, kl_known *known,
                               kl_deliverer *deliverer, kilter_error *error) {
    pthread_mutex_lock(&f->lock);
    f->grows = run->grows;
    f->misgrown = (kilter_error){KILTER_OK, ""};
    f->run_ended = f->broken; /* then nobody is there to take the request */
    f->run_over = f->grown = false;
    f->known = known;
    if (!f->broken) {
        f->failure = (kilter_error){KILTER_OK, ""};
        f->request = run;
        f->spent_s = f->run_ended_s > 0 ? fmax(0, kl_busy_s(&f->clock) - f->run_ended_s) : 0;
        f->run_ended_s = 0;
    }
    f->progress_at_s = kl_now_s(&f->clock) + PROGRESS_S;
    pthread_mutex_unlock(&f->lock);
    kl_transport_wake(f->transport);
    kilter_status status = kl_known_deliver(known, deliverer, error);
    note_taken(f, deliverer, status);
    for (kl_delivery_list list; !next_results(f, &list);) {
        kilter_status delivered = kl_deliver(deliverer, list, status == KILTER_OK ? error : NULL);
        status = status == KILTER_OK ? delivered : status;
        note_taken(f, deliverer, status);
    }
    f->grows = false;
    kl_farm_free_additions(f);
    if (status == KILTER_OK && f->misgrown.status != KILTER_OK)
        return kl_fail(error, f->misgrown.status, "%s", f->misgrown.text);
    return status == KILTER_OK ? tell_failure(f, error) : status;
}

static kilter_status run_in_use(kilter_farm *f, const kilter_run *run, kilter_error *error) {
    kl_deliverer *deliverer = NULL;
    kl_known known = {.tasks = run->tasks};
    kilter_status status = check_limits(f, run, error);
    if (status == KILTER_OK)
        status = check_results(run, error);
    if (status == KILTER_OK)
        status = check_sizes(run, error);
    if (status == KILTER_OK)
        status = kl_farm_start_record(f, error);
    if (status == KILTER_OK)
        status = kl_farm_look_up(f, run, &known, error);
    if (status == KILTER_OK)
        status = kl_deliverer_new(run, &deliverer, error);
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
                       "%llu of %llu tasks failed, the others are done; the first failure: %s",
                       (unsigned long long)failed, (unsigned long long)tasks, first);
    return status;
}

/* From now on it can be cancelled, or not any more. */
static void set_on(kilter_farm *f, bool on) {
    pthread_mutex_lock(&f->lock);
    f->on = on;
    f->cancelled = on && f->interrupted;
    pthread_mutex_unlock(&f->lock);
}

kilter_status kl_farm_run(kilter_farm *f, const kilter_run *run, kilter_error *error) {
    kilter_status status = kl_farm_begin_use(f, "starting a run", error);
    if (status != KILTER_OK)
        return status;
    set_on(f, true);
    status = run_in_use(f, run, error);
    set_on(f, false);
    kl_farm_end_use(f);
    return status;
}

void kilter_farm_cancel(kilter_farm *f) {
    pthread_mutex_lock(&f->lock);
    f->cancelled |= f->on;
    if (f->on)
        kl_transport_wake(f->transport);
    pthread_mutex_unlock(&f->lock);
}

void kl_farm_summary_get(const kilter_farm *farm, kilter_farm_summary *summary) {
    kilter_farm *f = (kilter_farm *)(uintptr_t)farm; /* const to the caller; the lock is not */
    pthread_mutex_lock(&f->lock);
    *summary = f->summary;
    pthread_mutex_unlock(&f->lock);
}

kilter_status kilter_farm_close(kilter_farm *f, kilter_error *error) {
    if (!f)
        return KILTER_OK;
    kilter_status status = kl_farm_begin_use(f, "closing", NULL);
    if (status != KILTER_OK)
        return kl_fail(error, status,
                       "closing the farm: a run has not returned; close it after that, and "
                       "not from the callback");
    kl_farm_close_control(f); /* nobody else uses the master now */
    kl_farm_close_interrupt(f);
    pthread_mutex_lock(&f->lock);
    f->closing = true;
    pthread_mutex_unlock(&f->lock);
    if (f->threaded) {
        kl_transport_wake(f->transport);
        pthread_join(f->service, NULL);
    }
    return kl_farm_tear_down(f, error);
}
