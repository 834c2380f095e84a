/* Measure the scheduler's quantum (time slice): two threads compete for a core, and one of them measures
 * its pauses. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "sys/sys.h"

enum { GAPS = 3 };

static const double MOST_S = 0.04; /* longest time that the measurement may take [s] */
static const double LEAST_GAP_S =
    2e-4; /* a pause shorter than this [s] is taken for an interrupt, and does not count */

typedef struct rival {
    int core;
    atomic_bool over;
} rival;

static bool stay_on(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

static void *want_core(void *arg) {
    rival *r = arg;
    if (stay_on(r->core))
        while (!atomic_load_explicit(&r->over, memory_order_relaxed))
            ;
    return NULL;
}

/* Compute until the measurement is over, and return the mean pause of this thread in seconds; 0: the thread
 * had no pause. */
static double watch(void) {
    double begun_s = kl_monotonic_s(), last_s = begun_s, sum_s = 0;
    int gaps = 0;
    while (gaps < GAPS && last_s - begun_s < MOST_S) {
        double now_s = kl_monotonic_s();
        if (now_s - last_s > LEAST_GAP_S) {
            sum_s += now_s - last_s;
            gaps++;
        }
        last_s = now_s;
    }
    return gaps > 0 ? sum_s / gaps : 0;
}

double kl_quantum_s(void) {
    cpu_set_t before;
    pthread_t thread;
    rival r = {.core = sched_getcpu()};
    double quantum_s = 0;
    atomic_init(&r.over, false);
    if (r.core < 0 || pthread_getaffinity_np(pthread_self(), sizeof before, &before) != 0 || !stay_on(r.core))
        return 0;
    if (pthread_create(&thread, NULL, want_core, &r) == 0) {
        quantum_s = watch();
        atomic_store(&r.over, true);
        pthread_join(thread, NULL);
    }
    pthread_setaffinity_np(pthread_self(), sizeof before, &before);
    return quantum_s;
}
