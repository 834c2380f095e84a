/* Pin a thread to the core on which it runs. The system moves threads between cores, so that all of them get
 * about the same time. If other processes use a core, the ranks of a loop are slow in turn. Rows that follow
 * the ranks' speeds then come too late. */
#include "sys/pin.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "sys/sys.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards the values below */
static pid_t thread;                                      /* the pinned thread; 0: none */
static cpu_set_t before, only; /* cores of this thread: without the pin, and with it */

static bool forks; /* true: the pinned thread calls fork() now */

/* Give a thread of this process all its cores again. If the program has bound it meanwhile, it stays bound.
 */
static void give_cores(pid_t id) {
    cpu_set_t now;
    if (sched_getaffinity(id, sizeof now, &now) == 0 && CPU_EQUAL(&now, &only))
        sched_setaffinity(id, sizeof before, &before);
}

static void begin_fork(void) {
    pthread_mutex_lock(&mutex);
    forks = thread == gettid();
}

static void unlock(void) {
    pthread_mutex_unlock(&mutex);
}

static void unpin_child(void) {
    if (forks)
        give_cores(0);
    thread = 0;
    unlock();
}

static void watch_forks(void) {
    pthread_atfork(begin_fork, unlock, unpin_child);
}

static void lock(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&mutex);
}

bool kl_unpinned_cores(cpu_set_t *cores) {
    lock();
    bool pinned = thread == gettid();
    *cores = before;
    unlock();
    return pinned;
}

bool kl_all_my_cores(cpu_set_t *cores) {
    return kl_unpinned_cores(cores) || sched_getaffinity(0, sizeof *cores, cores) == 0;
}

static bool pin(int core) {
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

bool kl_core_pin(int core) {
    lock();
    bool pinned = pin(core);
    unlock();
    return pinned;
}

/* A thread that has ended is left alone: its number may belong to another process by now. */
void kl_core_unpin(void) {
    lock();
    if (thread != 0 && tgkill(getpid(), thread, 0) == 0)
        give_cores(thread);
    thread = 0;
    unlock();
}
