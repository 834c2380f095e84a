/* Requests that `kilter tune`, `kilter drain` and `kilter run` send to the farm. The control thread receives
 * them, and the service thread answers them. */
#include <stdlib.h>

#include "farm/farm_private.h"

/* seconds that the control thread waits until the master shows its state */
static const double LOOK_PATIENCE_S = 0.2;
/* seconds that the control thread waits until the master has handled any other request */
static const double TAKE_PATIENCE_S = 1;

/* Get the master's state for the control thread. If the master does not answer soon, use its last known
 * state. */
static void fresh_state(kilter_farm *f, kl_farm_state *state) {
    struct timespec until = kl_time_after(LOOK_PATIENCE_S);
    pthread_mutex_lock(&f->lock);
    uint64_t shows = f->outside.shows;
    f->outside.look_wanted = true;
    kl_transport_wake(f->transport);
    while (f->outside.shows == shows && pthread_cond_timedwait(&f->outside.shown, &f->lock, &until) == 0)
        ;
    *state = f->outside.state;
    pthread_mutex_unlock(&f->lock);
}

static void look_from_outside(void *self, kl_control_state *shown) {
    kilter_farm *f = self;
    kl_farm_state state;
    fresh_state(f, &state);
    kl_tuning_show(&state, shown);
    snprintf(shown->program, sizeof shown->program, "%s", f->settings.name);
    snprintf(shown->transport, sizeof shown->transport, "%s", f->transport->ops->name);
}

static kilter_status set_from_outside(void *self, const kl_control_setting *setting,
                                      char answer[KL_CONTROL_ANSWER_BYTES], kilter_error *error) {
    kilter_farm *f = self;
    kl_farm_state state;
    kl_tuning tuning;
    fresh_state(f, &state);
    kilter_status status = kl_tuning_check(setting, &state, &tuning, answer, error);
    if (status != KILTER_OK)
        return status;
    pthread_mutex_lock(&f->lock);
    kl_tuning_merge(&f->outside.tuning, &tuning);
    pthread_mutex_unlock(&f->lock);
    kl_transport_wake(f->transport);
    return KILTER_OK;
}

static kilter_status let_take(kilter_farm *f, outside_request *request) {
    struct timespec until = kl_time_after(TAKE_PATIENCE_S);
    pthread_mutex_lock(&f->lock);
    f->outside.request = request;
    kl_transport_wake(f->transport);
    while (f->outside.request && pthread_cond_timedwait(&f->outside.shown, &f->lock, &until) == 0)
        ;
    bool taken = !f->outside.request;
    f->outside.request = NULL;
    pthread_mutex_unlock(&f->lock);
    if (!taken)
        return kl_fail(request->error, KILTER_ERR_PEER,
                       "the master has not handled the request within %g s; try again during a run",
                       TAKE_PATIENCE_S);
    return request->status;
}

static kilter_status drain_from_outside(void *self, const kl_control_drain *drain,
                                        char answer[KL_CONTROL_ANSWER_BYTES], kilter_error *error) {
    return let_take(self, &(outside_request){.drain = drain, .answer = answer, .error = error});
}

static kilter_status note_from_outside(void *self, const kl_decision *decision, kilter_error *error) {
    return let_take(self, &(outside_request){.note = decision, .error = error});
}

/* Open the farm's control socket. Without it, the farm works but cannot be watched. */
void kl_farm_open_control(kilter_farm *f) {
    kl_control_farm farm = {.look = look_from_outside,
                            .set = set_from_outside,
                            .drain = drain_from_outside,
                            .note = note_from_outside,
                            .self = f,
                            .name = getenv("KILTER_RUN")};
    if (f->outside.control)
        return;
    kilter_error error;
    if (kl_control_open(&farm, &f->outside.control, &error) != KILTER_OK)
        fprintf(stderr, "%s: kilter tune will not reach this run: %s\n", f->settings.name, error.text);
}

void kl_farm_close_control(kilter_farm *f) {
    kl_control_close(f->outside.control);
    f->outside.control = NULL;
}

/* Carry out a request of another process. Call this with the lock held, because the waiting thread may give
 * up, and then the request no longer exists. */
void kl_farm_take_request(kilter_farm *f) {
    outside_request *request = f->outside.request;
    if (!request)
        return;
    if (request->drain)
        request->status = kl_master_drain(f->master, request->drain, request->answer, request->error);
    if (request->note)
        kl_master_note(f->master, request->note);
    f->outside.request = NULL;
    pthread_cond_signal(&f->outside.shown);
}

/* Pass the farm's state to the threads that wait for it. Call this with the lock held. A master without a
 * service thread does nothing between two runs, so it passes its state at the end of each run. */
void kl_farm_show_state(kilter_farm *f, bool run_ended) {
    if (!f->outside.look_wanted && !(run_ended && !f->service.threaded))
        return;
    kl_master_state(f->master, &f->outside.state);
    f->outside.look_wanted = false;
    f->outside.shows++;
    pthread_cond_signal(&f->outside.shown);
}
