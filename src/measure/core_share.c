/* Estimate the share of its core that a thread gets, from the times that the system measures. */
#include "measure/measure.h"

static const double WINDOW_S = 0.01; /* least number of seconds between two samples */
/* seconds for which the thread must be ready before its share is computed: fifteen time slices of 4 ms */
static const double WATCHED_S = 0.06;
/* A core is watched if other threads had it for more than DELAYED_PART of the time in which this thread was
 * ready. It counts as shared if they had it for more than SHARED_PART of the time while it is watched. */
static const double DELAYED_PART = 0.05, SHARED_PART = 0.08;
/* A window is the time between two samples. The share is updated only from windows in which the thread was
 * ready for at least this part of the window. Then the thread used all the time that it could get. */
static const double READY_PART = 0.9;
static const double IDLE_S = 0.1; /* idle times of the core are compared over this number of seconds, because
                                     the system counts idle time in ticks of 0.01 s */
static const double IDLE_PART =
    0.1; /* the other threads count as gone if the core was idle for more than this part of the time */
static const double FIRST_HOLD_S = 0.1, LONGEST_HOLD_S = 5;
/* hold_s and spin_s (measure.h) grow each time they are used; when the thread has had the core alone for
 * CALM_S seconds, both are reset to 0 */
static const double CALM_S = 1;
static const double LEAST_QUANTUM_S =
    1e-3; /* shortest time slice in seconds that is assumed; no scheduler uses shorter ones */
/* a window in which the thread was ready for r seconds has the weight r/(r + MEMORY_S) in the share */
static const double MEMORY_S = 0.2;
static const double
    SLACK = 0.2,
    NO_SLACK = 0.1; /* the thread begins to sleep if its slack is above SLACK, and stops below NO_SLACK */
static const double MUCH_SLACK =
    0.8; /* if the slack of a single window is above this, the thread sleeps even before spins_until_s */
static const double SLACK_MEMORY = 0.3; /* weight of the newest window in the slack */
static const double FIRST_SPIN_S = 0.25, LONGEST_SPIN_S = 4;

bool kl_core_share_due(const kl_core_share *c, double now_s) {
    return now_s - c->last.now_s >= WINDOW_S;
}

bool kl_core_share_wants_idle(const kl_core_share *c, double now_s) {
    return c->mode == KL_CORE_SHARED && now_s - c->idle_from.now_s >= IDLE_S;
}

static void change_mode(kl_core_share *c, kl_core_mode mode, double now_s) {
    c->mode = mode;
    c->since_s = now_s;
    c->sleeps = false;
    c->watched = (kl_core_sample){.now_s = now_s};
    c->idle_from = (kl_core_sample){.idle_s = -1};
}

static double delay_part(double run_s, double delay_s) {
    return run_s + delay_s > 0 ? delay_s / (run_s + delay_s) : 0;
}

static void watch(kl_core_share *c, double run_s, double delay_s, double slices, double now_s) {
    kl_core_sample *w = &c->watched;
    w->run_s += run_s;
    w->delay_s += delay_s;
    w->slices += slices;
    if (w->run_s + w->delay_s < WATCHED_S)
        return;
    double part = delay_part(w->run_s, w->delay_s);
    bool shared = part > SHARED_PART;
    c->share = shared ? 1 - part : 1;
    if (shared && w->slices > 0) {
        /* Estimate the time slice as the shorter of two means: how long this thread keeps the core, and how
         * long the other threads keep it. This thread keeps it long if the others seldom want it. The slice
         * seems shorter if a thread gives up the core early. */
        double turn_s = (w->run_s < w->delay_s ? w->run_s : w->delay_s) / w->slices;
        double quantum_s = turn_s > LEAST_QUANTUM_S ? turn_s : LEAST_QUANTUM_S;
        c->quantum_s += (c->quantum_s > 0 ? 0.5 : 1) * (quantum_s - c->quantum_s);
    }
    if (shared) {
        double longer_s = c->hold_s < FIRST_HOLD_S ? FIRST_HOLD_S : 2 * c->hold_s;
        c->hold_s = longer_s < LONGEST_HOLD_S ? longer_s : LONGEST_HOLD_S;
    }
    change_mode(c, shared ? KL_CORE_SHARED : KL_CORE_OWN, now_s);
}

/* Update the slack, and start or stop sleeping. The slack is the part of the time in which the thread waits.
 * While it sleeps, waited_s would include late wake-ups, so the time in which it was not ready is used. */
static void follow_slack(kl_core_share *c, double ready_s, double waited_s, double window_s, double now_s) {
    double part = (c->sleeps ? window_s - ready_s : waited_s) / window_s;
    part = part < 0 ? 0 : part < 1 ? part : 1;
    c->slack += SLACK_MEMORY * (part - c->slack);
    if (c->sleeps && c->slack < NO_SLACK) {
        double longer_s = c->spin_s < FIRST_SPIN_S ? FIRST_SPIN_S : 2 * c->spin_s;
        c->sleeps = false;
        c->spin_s = longer_s < LONGEST_SPIN_S ? longer_s : LONGEST_SPIN_S;
        c->spins_until_s = now_s + c->spin_s;
    } else if (!c->sleeps && c->slack > SLACK && (now_s >= c->spins_until_s || part > MUCH_SLACK))
        c->sleeps = true;
}

static bool others_are_gone(kl_core_share *c, const kl_core_sample *s) {
    bool held = s->now_s - c->since_s > c->hold_s;
    if (s->idle_unknown)
        return held;
    if (s->idle_s < 0)
        return false;
    kl_core_sample from = c->idle_from;
    c->idle_from = *s;
    return held && from.idle_s >= 0 && s->idle_s - from.idle_s > IDLE_PART * (s->now_s - from.now_s);
}

void kl_core_share_add(kl_core_share *c, const kl_core_sample *s) {
    double window_s = s->now_s - c->last.now_s, run_s = s->run_s - c->last.run_s,
           delay_s = s->delay_s - c->last.delay_s, slices = s->slices - c->last.slices,
           waited_s = s->waited_s - c->last.waited_s;
    bool first = c->last.now_s == 0;
    c->last = *s;
    if (first) {
        c->share = 1;
        change_mode(c, KL_CORE_OWN, s->now_s);
        return;
    }
    if (c->mode == KL_CORE_OWN && s->now_s - c->since_s > CALM_S)
        c->hold_s = c->spin_s = 0;
    if (c->mode == KL_CORE_OWN && delay_part(run_s, delay_s) > DELAYED_PART)
        /* this window does not count: another thread may have wanted the core for a moment only */
        change_mode(c, KL_CORE_WATCHED, s->now_s);
    else if (c->mode == KL_CORE_WATCHED)
        watch(c, run_s, delay_s, slices, s->now_s);
    else if (c->mode == KL_CORE_SHARED) {
        /* A thread that sleeps uses less than its share. So the share is updated only from windows in which
         * the thread was ready nearly all the time. */
        double ready_s = run_s + delay_s, weight = ready_s / (ready_s + MEMORY_S);
        if (ready_s >= READY_PART * window_s)
            c->share += weight * (1 - delay_part(run_s, delay_s) - c->share);
    }
    if (c->mode != KL_CORE_OWN)
        follow_slack(c, run_s + delay_s, waited_s, window_s, s->now_s);
    c->sleeps &= c->mode == KL_CORE_SHARED;
    if (c->mode == KL_CORE_SHARED && others_are_gone(c, s))
        change_mode(c, KL_CORE_WATCHED, s->now_s);
}
