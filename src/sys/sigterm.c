/* Turn SIGTERM and SIGINT into events that a thread can wait for. Blocking the signals would do this too,
 * but programs that a task starts would inherit blocked signals. So a signal handler writes to a file
 * descriptor. A handler has no argument, so the descriptor is a global variable. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "sys/sys.h"

struct kl_sigterm {
    struct sigaction term, interrupt; /* the signal handlers that the program had set */
};

/* three numbers: the descriptor for signals, the process that opened it, and the signal that arrived */
static atomic_int sigterm_fd = -1, sigterm_pid, interrupted;
/* time at which the signal arrived, on CLOCK_MONOTONIC; 0: none arrived yet */
static atomic_llong interrupted_ns;
/* a second signal within this many nanoseconds belongs to the same request */
static const long long SAME_NS = 1000000000;

static void end_by(int number) {
    signal(number, SIG_DFL);
    /* the signal is blocked in its own handler, so the raised signal ends the process only when the handler
     * returns */
    raise(number);
}

static void tell(void) {
    const uint64_t one = 1;
    int kept = errno;
    (void)!write(atomic_load(&sigterm_fd), &one, sizeof one);
    errno = kept;
}

/* Report the signal to the program. A child that a task forked inherits the handler and the descriptor. In
 * such a child, the signal ends the child, and the parent notices nothing. */
static void on_sigterm(int number) {
    if (getpid() == atomic_load(&sigterm_pid))
        tell();
    else
        end_by(number);
}

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Report the first signal to the program. Ignore a second one that comes soon after, because the sender
 * may signal both a process group and its member. */
static void on_interrupt(int number) {
    int first = 0;
    if (getpid() != atomic_load(&sigterm_pid)) {
        end_by(number);
    } else if (atomic_compare_exchange_strong(&interrupted, &first, number)) {
        atomic_store(&interrupted_ns, now_ns());
        tell();
    } else {
        long long since_ns = atomic_load(&interrupted_ns);
        if (since_ns != 0 && now_ns() - since_ns > SAME_NS)
            end_by(number);
    }
}

static bool is_ours(const struct sigaction *action) {
    return action->sa_handler == on_sigterm || action->sa_handler == on_interrupt;
}

/* Get the handler that the program has set. If it is Kilter's own handler, which a child inherits from its
 * parent, get SIG_DFL instead. */
static bool read_action(int number, struct sigaction *action) {
    bool read = sigaction(number, NULL, action) == 0;
    if (read && is_ours(action))
        *action = (struct sigaction){.sa_handler = SIG_DFL};
    return read;
}

/* Take the descriptor for signals. Return NULL if this process already has one, or if memory ran out. */
static kl_sigterm *take(int fd) {
    int none = -1;
    if (atomic_load(&sigterm_pid) != getpid())
        atomic_store(&sigterm_fd, -1);
    kl_sigterm *s = calloc(1, sizeof *s);
    if (!s || !read_action(SIGTERM, &s->term) || !read_action(SIGINT, &s->interrupt) ||
        !atomic_compare_exchange_strong(&sigterm_fd, &none, fd)) {
        free(s);
        return NULL;
    }
    atomic_store(&sigterm_pid, getpid());
    return s;
}

static void give_back(kl_sigterm *s) {
    /* a handler that runs at this moment then fails to write, which does no harm */
    atomic_store(&sigterm_fd, -1);
    free(s);
}

kl_sigterm *kl_sigterm_to(int fd) {
    const struct sigaction action = {.sa_handler = on_sigterm, .sa_flags = SA_RESTART};
    kl_sigterm *s = take(fd);
    if (s && s->term.sa_handler == SIG_IGN) {
        give_back(s);
        return NULL;
    }
    if (s)
        sigaction(SIGTERM, &action, NULL);
    return s;
}

static bool is_handled(const struct sigaction *action) {
    return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

kl_sigterm *kl_interrupts_to(int fd) {
    const struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
    kl_sigterm *s = take(fd);
    if (s && (is_handled(&s->term) || is_handled(&s->interrupt))) {
        give_back(s);
        return NULL;
    }
    if (!s)
        return NULL;
    atomic_store(&interrupted, 0);
    atomic_store(&interrupted_ns, 0);
    if (s->term.sa_handler == SIG_DFL)
        sigaction(SIGTERM, &action, NULL);
    if (s->interrupt.sa_handler == SIG_DFL)
        sigaction(SIGINT, &action, NULL);
    return s;
}

void kl_sigterm_again(kl_sigterm *s) {
    int number = atomic_load(&interrupted);
    if (!s || number == 0)
        return;
    signal(number, SIG_DFL);
    kill(getpid(), number);
}

int kl_interrupted_by(void) {
    return atomic_load(&interrupted);
}

static atomic_int worker_pid;

/* End this process by the signal if it is a child that a task forked; otherwise ignore the signal. */
static void leave_to_master(int number) {
    if (getpid() != atomic_load(&worker_pid))
        end_by(number);
}

void kl_leave_interrupts(void) {
    const struct sigaction nothing = {.sa_handler = leave_to_master, .sa_flags = SA_RESTART};
    struct sigaction before;
    atomic_store(&worker_pid, getpid());
    if (read_action(SIGINT, &before) && before.sa_handler == SIG_DFL)
        sigaction(SIGINT, &nothing, NULL);
}

/* Restore the program's handler, unless the program has set another one since. */
static void restore(int number, const struct sigaction *before) {
    struct sigaction now;
    if (sigaction(number, NULL, &now) == 0 && is_ours(&now))
        sigaction(number, before, NULL);
}

void kl_sigterm_restore(kl_sigterm *s) {
    if (!s)
        return;
    restore(SIGTERM, &s->term);
    restore(SIGINT, &s->interrupt);
    give_back(s);
}
