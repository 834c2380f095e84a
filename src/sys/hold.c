/* Hold a thread on the core on which it runs. The system moves threads between cores so that all of them get
 * about the same time. If other processes use one of the cores, each rank of a loop is then slow in turn, and
 * rows that follow the ranks' speeds come too late. */
#include "sys/hold.h"

#include <pthread.h>
#include <unistd.h>

#include "sys/sys.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards the values below */
static pid_t thread;                                      /* the held thread; 0: none */
static cpu_set_t before, only; /* cores of this thread: without the hold, and with it */

bool kl_allowed_cores(cpu_set_t *cores) {
    pthread_mutex_lock(&mutex);
    bool held = thread == gettid();
    *cores = before;
    pthread_mutex_unlock(&mutex);
    return held || sched_getaffinity(0, sizeof *cores, cores) == 0;
}

static bool hold(int core) {
    if (thread != 0 || core < 0 || core >= CPU_SETSIZE || sched_getaffinity(0, sizeof before, &before) != 0 ||
        !CPU_ISSET((size_t)core, &before))
        return false;
    CPU_ZERO(&only);
    CPU_SET((size_t)core, &only);
    if (sched_setaffinity(0, sizeof only, &only) != 0)
        return false;
    thread = gettid();
    return true;
}

bool kl_core_hold(int core) {
    pthread_mutex_lock(&mutex);
    bool held = hold(core);
    pthread_mutex_unlock(&mutex);
    return held;
}

void kl_core_release(void) {
    cpu_set_t now;
    pthread_mutex_lock(&mutex);
    /* if the program has bound the thread itself meanwhile, this stays so */
    if (thread != 0 && sched_getaffinity(thread, sizeof now, &now) == 0 && CPU_EQUAL(&now, &only))
        sched_setaffinity(thread, sizeof before, &before);
    thread = 0;
    pthread_mutex_unlock(&mutex);
}
