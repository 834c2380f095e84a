/* The keeper's state machine: events go in, actions come out. */
#include <math.h>
#include <stdlib.h>

#include "keeper/keeper_private.h"

static const double WAKE_S =
    0.5; /* seconds until the driver must call kl_keeper_step() again, even if nothing happens */
static const double LOOK_PATIENCE_S =
    20; /* seconds after which the keeper no longer expects the result of a measurement */
static const double KILL_AGAIN_S = 5; /* seconds between two kills while processes remain */
static const double KILL_PATIENCE_S =
    30; /* if processes still live this many seconds after the first kill, they cannot be ended */
static const double QUEUE_PATIENCE_S =
    300; /* like KILL_PATIENCE_S, but in a queue, which may need minutes to end a job */
static const double SLOWER =
    1.15; /* hosts are measured early if sweeps take more than this multiple of their shortest time so far */
static const double LOOKS_APART_S = 5; /* seconds between two early measurements if sweeps are no slower than
                                          before; if sweeps take f times as long, this time is divided by f */
static const double LOOKS_LEAST_S = 1; /* least number of seconds between two early measurements */

bool kl_keeper_init(kl_keeper *k, const kl_keeper_options *options) {
    *k = (kl_keeper){.options = *options, .costs = {.doubt = 1}};
    k->options.least = options->least > 0 ? options->least : 1;
    k->options.tries = options->tries > 0 ? options->tries : 1;
    return true;
}

void kl_keeper_free(kl_keeper *k) {
    free(k->hosts);
    *k = (kl_keeper){.state = KL_KEEPER_NEW};
}

double kl_keeper_wake_s(const kl_keeper *k) {
    return k->now_s + WAKE_S;
}

static void take_hosts(kl_keeper *k) {
    k->looks = false;
    if (k->state == KL_KEEPER_LOOKING || k->state == KL_KEEPER_WAITING)
        kl_keeper_begin_attempt(k);
    else if (k->state == KL_KEEPER_RUNNING)
        kl_keeper_consider(k);
}

/* Measure hosts earlier if sweeps have become slower, because other hosts may be faster now. The slower a
 * sweep is, the more a late measurement costs. */
static void look_early(kl_keeper *k) {
    double slower = k->watch.best_sweep_s > 0 ? k->watch.sweep_s / k->watch.best_sweep_s : 0;
    if (slower > SLOWER)
        k->look_s = fmin(k->look_s, k->looked_s + fmax(LOOKS_APART_S / slower, LOOKS_LEAST_S));
}

/* Handle the report of a program that was asked to stop, but could not save. The program continues. A person
 * can still end the run: a second request to stop kills the program. */
static void take_refusal(kl_keeper *k, const kl_keeper_report *r) {
    uint64_t number = k->tally.attempt * KL_KEEPER_NUMBERS + k->asked;
    if (k->state != KL_KEEPER_SAVING || r->answered < number || r->stopped || r->done)
        return;
    kl_keeper_decide(k, KL_DECIDES_STAY, "the program could not save, and continues: %.200s",
                     r->error ? r->error : "");
    k->promise.number = 0;
    if (k->cause == KL_KEEPER_FOR_LIMIT)
        k->limit_s = 0; /* do not ask the program to save before this time limit again */
    k->cause = KL_KEEPER_NO_CAUSE;
    kl_keeper_set(k, KL_KEEPER_RUNNING);
}

static void take_report(kl_keeper *k, const kl_keeper_report *report) {
    bool runs = k->state >= KL_KEEPER_STARTING && k->state <= KL_KEEPER_KILLING;
    if (!runs || report->attempt != k->tally.attempt)
        return;
    bool first = kl_keeper_watch_report(k, report);
    if (first) {
        kl_keeper_tally_first(k);
        kl_keeper_promise_began(k);
    }
    if (k->state == KL_KEEPER_STARTING)
        kl_keeper_set(k, KL_KEEPER_RUNNING);
    take_refusal(k, report);
    if (first && k->state == KL_KEEPER_RUNNING && (k->wish.move || k->wish.drain))
        kl_keeper_look(k, true);
    look_early(k);
}

/* Return whether there are hosts without ranks, which can be measured. If a queue chooses the hosts, assume
 * that there are. */
static bool has_others(const kl_keeper *k) {
    for (uint64_t i = 0; i < k->count; i++)
        if (k->hosts[i].ranks == 0)
            return true;
    return k->options.queued;
}

static void mind_hang(kl_keeper *k) {
    double limit_s = kl_keeper_hang_s(k);
    if (limit_s == 0 || k->watch.quiet_s <= limit_s)
        return;
    kl_keeper_decide(k, KL_DECIDES_RESTART,
                     "no sweep has ended in %s, and the limit is %s, so Kilter kills the program",
                     kl_say_s(k->watch.quiet_s).text, kl_say_s(limit_s).text);
    kl_keeper_kill(k, k->state == KL_KEEPER_SAVING ? k->cause : KL_KEEPER_FOR_HANG);
}

static void mind_running(kl_keeper *k) {
    mind_hang(k);
    if (k->state == KL_KEEPER_RUNNING)
        kl_keeper_mind_limit(k);
    if (k->state == KL_KEEPER_RUNNING && !k->looks && k->now_s >= k->look_s && has_others(k))
        kl_keeper_look(k, true);
}

static void mind_killing(kl_keeper *k) {
    double patience_s = k->options.queued ? QUEUE_PATIENCE_S : KILL_PATIENCE_S;
    if (k->now_s - k->since_s > patience_s)
        kl_keeper_over(k, KL_KEEPER_GAVE_UP, "given up: the processes of attempt %llu cannot be ended",
                       kl_ull(k->tally.attempt));
    else if (k->now_s - k->watch.killed_s > KILL_AGAIN_S)
        kl_keeper_kill_again(k);
}

/* Do what is due at the present time. */
static void mind_time(kl_keeper *k) {
    if (k->looks && k->now_s - k->looked_s > LOOK_PATIENCE_S)
        take_hosts(k);
    if (k->state == KL_KEEPER_NEW)
        kl_keeper_look_for_hosts(k, KL_KEEPER_NO_CAUSE);
    else if (k->state == KL_KEEPER_WAITING && !k->looks && k->now_s >= k->look_s)
        kl_keeper_look(k, false);
    else if (k->state == KL_KEEPER_RUNNING)
        mind_running(k);
    else if (k->state == KL_KEEPER_STARTING || k->state == KL_KEEPER_SAVING)
        mind_hang(k);
    else if (k->state == KL_KEEPER_KILLING)
        mind_killing(k);
}

/* Store whether the attempt waits in a queue, is suspended, or cannot report. In these states, a silent
 * program does not count as hanging. The wait in the queue is not counted as time for the launch. */
static void take_queue(kl_keeper *k, bool pending) {
    if (k->pending && !pending && !k->watch.reported)
        k->watch.started_s = k->now_s;
    k->pending = pending;
}

static bool take_event(kl_keeper *k, const kl_keeper_event *event) {
    switch (event->kind) {
    case KL_KEEPER_HOSTS:
        if (!kl_keeper_take_views(k, event->views, event->count))
            return false;
        take_hosts(k);
        return true;
    case KL_KEEPER_REPORT:
        take_report(k, event->report);
        return true;
    case KL_KEEPER_ENDED:
        kl_keeper_take_end(k, &event->end);
        return true;
    case KL_KEEPER_LIMIT:
        k->limit_s = event->limit_s;
        return true;
    case KL_KEEPER_QUEUE:
        take_queue(k, event->pending);
        return true;
    case KL_KEEPER_MOVE:
    case KL_KEEPER_DRAIN:
    case KL_KEEPER_STOP:
        kl_keeper_take_wish(k, event);
        return true;
    case KL_KEEPER_TIME:
    case KL_KEEPER_EVENTS:
        break;
    }
    return true;
}

bool kl_keeper_step(kl_keeper *k, const kl_keeper_event *event, double now_s) {
    double passed_s = now_s - k->now_s;
    if (k->state == KL_KEEPER_NEW)
        passed_s = 0;
    k->now_s = now_s;
    if (k->state >= KL_KEEPER_STARTING && k->state <= KL_KEEPER_SAVING && !k->pending)
        kl_keeper_watch_time(k, passed_s);
    bool good = take_event(k, event);
    if (k->state != KL_KEEPER_IS_OVER)
        mind_time(k);
    return good;
}
