/* SIGTERM, and SIGINT, as something a thread can wait for. A handler has no argument, and blocking the signal
 * instead would block it in every program a task starts; so the descriptor it writes to is the one thing in
 * the library that hangs from no handle. A process has one SIGTERM. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "sys/sys.h"

struct kl_sigterm {
    bool interrupts; /* SIGINT, too */
    struct sigaction term, interrupt;
};

static atomic_int sigterm_fd = -1, sigterm_pid, interrupted; /* interrupted: by this signal */

static void end_by(int number) {
    signal(number, SIG_DFL);
    raise(number); /* comes when the handler returns */
}

static void tell(void) {
    const uint64_t one = 1;
    int kept = errno;
    (void)!write(atomic_load(&sigterm_fd), &one, sizeof one);
    errno = kept;
}

/* A child that a task forked has this handler and the descriptor, too: it is to die of the signal, and nobody
 * else is meant. */
static void on_sigterm(int number) {
    if (getpid() == atomic_load(&sigterm_pid))
        tell();
    else
        end_by(number);
}

static void on_interrupt(int number) {
    int first = 0;
    if (getpid() == atomic_load(&sigterm_pid) && atomic_compare_exchange_strong(&interrupted, &first, number))
        tell();
    else
        end_by(number);
}

/* Of the descriptor, if nobody has it. */
static kl_sigterm *take(int fd) {
    int none = -1;
    kl_sigterm *s = calloc(1, sizeof *s);
    if (!s || sigaction(SIGTERM, NULL, &s->term) != 0 || sigaction(SIGINT, NULL, &s->interrupt) != 0 ||
        s->term.sa_handler == SIG_IGN || !atomic_compare_exchange_strong(&sigterm_fd, &none, fd)) {
        free(s);
        return NULL;
    }
    atomic_store(&sigterm_pid, getpid());
    atomic_store(&interrupted, 0);
    return s;
}

kl_sigterm *kl_sigterm_to(int fd) {
    const struct sigaction action = {.sa_handler = on_sigterm, .sa_flags = SA_RESTART};
    kl_sigterm *s = take(fd);
    if (s)
        sigaction(SIGTERM, &action, NULL);
    return s;
}

kl_sigterm *kl_interrupts_to(int fd) {
    const struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
    kl_sigterm *s = take(fd);
    if (s && (s->term.sa_handler != SIG_DFL || s->interrupt.sa_handler != SIG_DFL)) {
        atomic_store(&sigterm_fd, -1);
        free(s);
        return NULL;
    }
    if (s) {
        s->interrupts = true;
        sigaction(SIGTERM, &action, NULL);
        sigaction(SIGINT, &action, NULL);
    }
    return s;
}

void kl_sigterm_again(kl_sigterm *s) {
    int number = atomic_load(&interrupted);
    if (!s || number == 0)
        return;
    signal(number, SIG_DFL);
    kill(getpid(), number);
}

static void do_nothing(int number) {
    (void)number;
}

void kl_leave_interrupts(void) {
    const struct sigaction nothing = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};
    struct sigaction before;
    if (sigaction(SIGINT, NULL, &before) == 0 &&
        (before.sa_handler == SIG_DFL || before.sa_handler == on_interrupt))
        sigaction(SIGINT, &nothing, NULL);
}

void kl_sigterm_restore(kl_sigterm *s) {
    if (!s)
        return;
    sigaction(SIGTERM, &s->term, NULL);
    if (s->interrupts)
        sigaction(SIGINT, &s->interrupt, NULL);
    atomic_store(&sigterm_fd, -1); /* one that is being handled now writes there, which does nothing */
    free(s);
}
