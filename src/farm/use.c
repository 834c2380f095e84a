/* Note which thread uses the farm, and measure how much CPU time the farm's own threads and the caller use.
 */
#include "farm/farm_private.h"

/* The farm searches for its own threads about twice in a run. It stops after this number of searches, because
 * no thread of the farm starts later. */
static const uint32_t MOST_SEARCHES = 6;

bool kl_farm_used(void *farm, double *farm_s, double *callbacks_s) {
    kilter_farm *f = farm;
    if (!f->service.threaded || f->clock.simulated)
        return false;
    pthread_mutex_lock(&f->lock);
    bool in_use = f->usage.in_use;
    *callbacks_s = in_use ? kl_cpu_s(f->usage.cpu) : 0;
    pthread_mutex_unlock(&f->lock);
    kl_usage *u = &f->usage;
    if (u->searches < MOST_SEARCHES) {
        u->searches++;
        /* find the threads that belong to the farm by their names, because the program may have other
         * threads */
        enum { MOST = sizeof u->helper_cpu / sizeof *u->helper_cpu };
        u->helpers = kl_threads_named("ZMQbg/", u->helper_cpu, MOST);
        u->helpers += kl_threads_named(KL_TRACE_THREAD, u->helper_cpu + u->helpers, MOST - u->helpers);
    }
    *farm_s = kl_cpu_s(kl_thread_cpu());
    for (uint32_t i = 0; i < u->helpers; i++)
        *farm_s += kl_cpu_s(u->helper_cpu[i]);
    return in_use;
}

kilter_status kl_farm_begin_use(kilter_farm *f, const char *what, kilter_error *error) {
    pthread_mutex_lock(&f->lock);
    bool in_use = f->usage.in_use;
    if (!in_use)
        f->usage.cpu = kl_thread_cpu();
    f->usage.in_use = true;
    pthread_mutex_unlock(&f->lock);
    return in_use ? kl_fail(error, KILTER_ERR_USAGE,
                            "%s: the farm's last run has not returned; call this after the run, and not from "
                            "the callback",
                            what)
                  : KILTER_OK;
}

void kl_farm_end_use(kilter_farm *f) {
    pthread_mutex_lock(&f->lock);
    f->usage.in_use = false;
    pthread_mutex_unlock(&f->lock);
}
