/* The attending thread answers messages while the worker's own thread does a task: see kl_worker_attend().
 * Without this second thread, senders would wait for the end of a long task. The attending thread also
 * receives SIGTERM for the worker. */
/* Only one of the two threads may use the worker at a time: the thread that has the turn. The worker's thread
 * gives the turn away when a task begins, and takes the turn back when the task ends. Each of these two steps
 * costs one atomic operation. The worker's thread sleeps on the mutex only while the attending thread handles
 * messages. */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "farm/farm_private.h"

/* seconds between two checks for messages: BUSY_LOOK_S while a task runs, IDLE_LOOK_S while none runs */
static const double BUSY_LOOK_S = 10e-3, IDLE_LOOK_S = 0.1;

/* kl_attendant_stop() adds this number to the count of SIGTERMs, to tell the attending thread to end */
static const uint64_t END = (uint64_t)1 << 32;

enum { NOBODY, WORKER, ATTENDANT };

struct kl_attendant {
    kl_worker *worker;
    atomic_int turn;           /* NOBODY, or the thread that may use the worker now */
    pthread_mutex_t attending; /* locked by the attending thread while it has the turn and answers messages */
    pthread_t thread;
    clockid_t cpu; /* CPU clock of the worker's thread */
    int call;      /* an eventfd that counts SIGTERMs; END is added to it when the thread must end */
    kl_sigterm *sigterm;
};

static bool take_turn(kl_attendant *a, int thread) {
    int nobody = NOBODY;
    return atomic_compare_exchange_strong_explicit(&a->turn, &nobody, thread, memory_order_acquire,
                                                   memory_order_relaxed);
}

static void let_attend(void *self, bool begins) {
    kl_attendant *a = self;
    if (begins)
        atomic_store_explicit(&a->turn, NOBODY, memory_order_release);
    else
        while (!take_turn(a, WORKER)) {
            pthread_mutex_lock(&a->attending);
            pthread_mutex_unlock(&a->attending);
        }
}

static double worker_busy_s(void *self) {
    return kl_cpu_s(((kl_attendant *)self)->cpu);
}

/* Sleep at most `seconds`, or until another thread writes to the eventfd. Return the count that was read; 0:
 * no thread wrote. */
static uint64_t sleep_for(const kl_attendant *a, double seconds) {
    struct pollfd call = {.fd = a->call, .events = POLLIN};
    struct timespec rest = kl_timespec(seconds);
    uint64_t calls = 0;
    if (ppoll(&call, 1, &rest, NULL) <= 0 || read(a->call, &calls, sizeof calls) < 0)
        return 0;
    return calls;
}

/* If the worker is in a task, answer its messages. Return whether the worker is in a task. */
static bool attend(kl_attendant *a) {
    pthread_mutex_lock(&a->attending);
    bool busy = take_turn(a, ATTENDANT);
    if (busy) {
        kl_worker_attend(a->worker);
        atomic_store_explicit(&a->turn, NOBODY, memory_order_release);
    }
    pthread_mutex_unlock(&a->attending);
    return busy;
}

static void *attendant_main(void *arg) {
    kl_attendant *a = arg;
    bool busy = false;
    for (;;) {
        uint64_t calls = sleep_for(a, busy ? BUSY_LOOK_S : IDLE_LOOK_S);
        /* handle SIGTERM even if this thread must end, because a worker must not serve another master after
         * SIGTERM */
        if (calls % END > 0)
            kl_worker_leave(a->worker, "the worker was told to terminate (SIGTERM)");
        if (calls >= END)
            return NULL;
        busy = attend(a);
    }
}

kilter_status kl_attendant_start(kl_worker *worker, bool hears_sigterm, kl_attendant **attendant,
                                 kilter_error *error) {
    kl_attendant *a = calloc(1, sizeof *a);
    if (!a)
        return kl_fail(error, KILTER_ERR_MEMORY, "starting a worker's second thread: memory ran out");
    *a = (kl_attendant){.worker = worker, .cpu = kl_thread_cpu(), .call = eventfd(0, EFD_CLOEXEC)};
    atomic_init(&a->turn, WORKER);
    pthread_mutex_init(&a->attending, NULL);
    int code = a->call < 0 ? errno : kl_thread_start(&a->thread, attendant_main, a);
    if (code != 0) {
        if (a->call >= 0)
            close(a->call);
        pthread_mutex_destroy(&a->attending);
        free(a);
        return kl_fail(error, KILTER_ERR_SYSTEM, "starting a worker's second thread: %s", strerror(code));
    }
    kl_worker_let_attend(worker, &(kl_attendance){.works = let_attend, .busy_s = worker_busy_s, .self = a});
    if (hears_sigterm)
        a->sigterm = kl_sigterm_to(a->call);
    *attendant = a;
    return KILTER_OK;
}

void kl_attendant_stop(kl_attendant *a) {
    if (!a)
        return;
    kl_sigterm_restore(a->sigterm);
    while (write(a->call, &END, sizeof END) < 0 && errno == EINTR)
        ;
    pthread_join(a->thread, NULL);
    kl_worker_let_attend(a->worker, &(kl_attendance){0});
    pthread_mutex_destroy(&a->attending);
    close(a->call);
    free(a);
}
