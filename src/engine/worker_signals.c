/* Calls for help and offers of help, as small files in a folder that all workers of a run share. Only these
 * signals are in the folder. A late peer gives its tasks away in a message, so a fault of the folder loses
 * no task. */
#include <math.h>
#include <stdio.h>

#include "engine/worker_private.h"

/* Least seconds between two checks of the folder. Frequent checks would cost much, because files in a network
 * folder are slow. The paper on these signals (Galyuk et al. 2007) uses the same pause. */
static const double PAUSE_S = 0.1;

static signalling *signals_of(const kl_worker *w) {
    return &w->peers->signals;
}

static const char *folder_of(const kl_worker *w) {
    return w->peers->run.signals;
}

kilter_status kl_signals_begin(kl_worker *w, kilter_error *error) {
    const kl_signal_folder *files = w->options->signals;
    kilter_error why = {KILTER_OK, ""};
    if (!*folder_of(w) || signals_of(w)->on)
        return KILTER_OK;
    if (!files)
        return kl_worker_refuse(w, error, "the worker cannot use a shared folder, but the run has one");
    if (files->check(w->driver, folder_of(w), &why) != KILTER_OK)
        return kl_worker_refuse(w, error, "%.200s", why.text);
    *signals_of(w) = (signalling){
        .on = true, .call = {.run = w->peers->run.run, .peer = w->peers->run.number}, .due_s = -HUGE_VAL};
    return KILTER_OK;
}

static void drop_call(kl_worker *w) {
    char name[KL_SIGNAL_BYTES];
    kl_signal_name(&signals_of(w)->call, name);
    w->options->signals->drop(w->driver, folder_of(w), name);
    signals_of(w)->called = false;
}

void kl_signals_end(kl_worker *w) {
    if (signals_of(w)->called)
        drop_call(w);
    *signals_of(w) = (signalling){0};
}

double kl_signals_due_s(const kl_worker *w) {
    return signals_of(w)->on ? signals_of(w)->due_s : HUGE_VAL;
}

/* Write a signal to the folder as a file. false: the file cannot be written. */
static bool put(kl_worker *w, const kl_signal *signal) {
    char name[KL_SIGNAL_BYTES], text[KL_SIGNAL_BYTES];
    kilter_bytes bytes = {text, kl_signal_put(signal, text)};
    kl_signal_name(signal, name);
    return w->options->signals->put(w->driver, folder_of(w), name, bytes);
}

bool kl_signals_act(kl_worker *w, const kl_node_action *a) {
    signalling *s = signals_of(w);
    kl_signal offer = {.offers = true,
                       .run = s->call.run,
                       .peer = s->call.peer,
                       .to = a->peer,
                       .left = (uint64_t)a->left,
                       .rate = a->rate};
    if (a->kind == KL_NODE_OFFERS)
        return put(w, &offer);
    if (a->kind == KL_NODE_SEEKS) {
        s->seeks = true;
    } else {
        s->calls = a->task > 0;
        s->call.left = (uint64_t)a->left;
        s->call.rate = a->rate;
    }
    return true;
}

void kl_signals_look(kl_worker *w) {
    signalling *s = signals_of(w);
    s->due_s = kl_now_s(&w->options->clock) + PAUSE_S;
    /* if the call for help cannot be written now, the next check tries again */
    if (s->calls && !s->called)
        s->called = put(w, &s->call);
    else if (!s->calls && s->called)
        drop_call(w);
}

/* Take a signal that has the same kind and the same receiver as `like`. Remove a file that is not a valid
 * signal. */
static bool take(kl_worker *w, const kl_signal *like, kl_signal *signal) {
    char prefix[KL_SIGNAL_BYTES], text[KL_SIGNAL_BYTES], claim[16];
    size_t size;
    kl_signal_prefix(like, prefix);
    snprintf(claim, sizeof claim, "%u", like->peer);
    while (w->options->signals->take(w->driver, folder_of(w), prefix, claim, text, &size))
        if (kl_signal_get(text, size, signal) && signal->offers == like->offers && signal->run == like->run &&
            signal->to == like->to)
            return true;
    return false;
}

bool kl_signals_next(kl_worker *w, kl_node_event *event) {
    signalling *s = signals_of(w);
    kl_signal offers = {.offers = true, .run = s->call.run, .peer = s->call.peer, .to = s->call.peer}, got;
    if (s->on && take(w, &offers, &got)) {
        s->calls = s->called = false; /* do not call again, because a helper has taken the call */
        *event = (kl_node_event){.kind = KL_NODE_OFFERED, .peer = got.peer, .rate = got.rate};
        return true;
    }
    bool idle = !w->queue.first && w->peers->task == UINT64_MAX;
    if (!s->on || !s->seeks || !idle || !take(w, &s->call, &got))
        return false;
    s->seeks = false;
    *event = (kl_node_event){.kind = KL_NODE_FOUND, .peer = got.peer};
    return true;
}
