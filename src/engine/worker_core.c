/* The CPU time and the delay that a worker reports. The delay is the time for which the worker was ready
 * while other threads had its core. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/worker_private.h"

/* seconds between two readings of the CPU time, so that they cost little */
static const double LOOK_S = 1e-3;

enum { LATELY = 16 }; /* number of waits over which the mean delay is computed */

core_use *kl_core_use_new(const kl_worker_options *options, void *driver) {
    core_use *u = calloc(1, sizeof *u);
    if (u)
        *u = (core_use){.options = options, .driver = driver};
    return u;
}

void kl_core_use_clear(core_use *u) {
    *u = (core_use){.options = u->options, .driver = u->driver};
}

/* Add the delay since the last reading, without the delays at the ends of waits. The delay added is at most
 * the time in tasks minus the CPU time of this thread. */
static void look_at_core(core_use *u) {
    double run_s, delay_s;
    if (!u->options->core(u->driver, &run_s, &delay_s))
        return;
    double waits_s = u->since.waits_delay_s + u->since.waits * u->wait_delay_s;
    double lost_s = delay_s - u->since.core_delay_s - waits_s;
    double most_s = u->since.busy_s - (run_s - u->since.core_run_s);
    u->delay_s += fmax(0, fmin(lost_s, most_s));
    memset(&u->since, 0, sizeof u->since);
    u->since.core_run_s = run_s;
    u->since.core_delay_s = delay_s;
}

/* Read the CPU time if enough time has passed. Reading takes as long as a small message, so it is not done
 * for every message. */
void kl_core_use_look(core_use *u, double now_s) {
    if (now_s < u->due_s)
        return;
    u->cpu_s = u->options->cpu_s(u->driver);
    look_at_core(u);
    u->due_s = now_s + LOOK_S;
}

static double core_delay_s(const core_use *u) {
    double run_s, delay_s;
    return u->options->core(u->driver, &run_s, &delay_s) ? delay_s : 0;
}

/* Note that a wait for messages begins. The delay at the end of a wait does not belong to tasks. This delay
 * is measured only at some waits, which are called watched. At other waits, the mean of the measured delays
 * is assumed. */
void kl_core_use_begin_wait(core_use *u, double now_s) {
    u->watches = now_s >= u->watch_due_s;
    if (u->watches)
        u->before_s = core_delay_s(u);
    else
        u->since.waits++;
}

void kl_core_use_end_wait(core_use *u, double began_s) {
    if (!u->watches)
        return;
    double delay_s = core_delay_s(u) - u->before_s;
    u->watch_due_s = began_s + LOOK_S;
    u->watched += u->watched < LATELY;
    u->wait_delay_s += (delay_s - u->wait_delay_s) / u->watched;
    u->since.waits_delay_s += delay_s;
}
