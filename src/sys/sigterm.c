/* SIGTERM as something a thread can wait for. A handler has no argument, and blocking the signal instead
 * would block it in every program a task starts; so the descriptor it writes to is the one thing in the
 * library that hangs from no handle. A process has one SIGTERM. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "sys/sys.h"

struct kl_sigterm {
    struct sigaction before;
};

static atomic_int sigterm_fd = -1, sigterm_pid;

/* A child that a task forked has this handler and the descriptor, too: it is to die of the signal, and nobody
 * else is meant. */
static void on_sigterm(int number) {
    const uint64_t one = 1;
    int kept = errno;
    if (getpid() != atomic_load(&sigterm_pid)) {
        signal(number, SIG_DFL);
        raise(number); /* comes when this returns */
        return;
    }
    (void)!write(atomic_load(&sigterm_fd), &one, sizeof one);
    errno = kept;
}

kl_sigterm *kl_sigterm_to(int fd) {
    const struct sigaction action = {.sa_handler = on_sigterm, .sa_flags = SA_RESTART};
    int none = -1;
    kl_sigterm *s = malloc(sizeof *s);
    if (!s || sigaction(SIGTERM, NULL, &s->before) != 0 || s->before.sa_handler == SIG_IGN ||
        !atomic_compare_exchange_strong(&sigterm_fd, &none, fd)) {
        free(s);
        return NULL;
    }
    atomic_store(&sigterm_pid, getpid());
    sigaction(SIGTERM, &action, NULL);
    return s;
}

void kl_sigterm_restore(kl_sigterm *s) {
    if (!s)
        return;
    sigaction(SIGTERM, &s->before, NULL);
    atomic_store(&sigterm_fd, -1); /* one that is being handled now writes there, which does nothing */
    free(s);
}
