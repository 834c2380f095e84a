/* Cancel the current run when the master gets Ctrl-C or SIGTERM. The run's error says how to continue.
 *
 *   handler ── an eventfd ──▶ a thread of this farm ── kilter_farm_cancel() ──▶ the service */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "farm/farm_private.h"

typedef struct kl_interrupt {
    kilter_farm *farm;
    pthread_t thread;
    int call; /* an eventfd that counts signals; END is added to it when the thread must end */
    kl_sigterm *signals;
} kl_interrupt;

static const uint64_t END = (uint64_t)1 << 32;

enum { COMMAND_BYTES = 380 }; /* an error message leaves out a command of this many bytes or more */

void kl_farm_set_on(kilter_farm *f, bool on) {
    pthread_mutex_lock(&f->lock);
    f->stop.on = on;
    f->stop.cancelled = on && f->stop.interrupted;
    pthread_mutex_unlock(&f->lock);
}

void kilter_farm_cancel(kilter_farm *f) {
    pthread_mutex_lock(&f->lock);
    f->stop.cancelled |= f->stop.on;
    if (f->stop.on)
        kl_transport_wake(f->transport);
    pthread_mutex_unlock(&f->lock);
}

/* Cancel the current run and each later run. Between two runs, let the signal end the program. */
static void interrupt(kl_interrupt *self) {
    kilter_farm *f = self->farm;
    pthread_mutex_lock(&f->lock);
    bool on = f->stop.on;
    f->stop.interrupted |= on;
    pthread_mutex_unlock(&f->lock);
    if (on)
        kilter_farm_cancel(f);
    else
        kl_sigterm_again(self->signals);
}

static void *hear(void *arg) {
    kl_interrupt *self = arg;
    for (;;) {
        uint64_t calls = 0;
        if (read(self->call, &calls, sizeof calls) < 0 && errno != EINTR)
            return NULL;
        if (calls >= END)
            return NULL;
        if (calls > 0)
            interrupt(self);
    }
}

/* Block the signals, then start the thread. The thread also reads signals that came before it started. */
static bool listen_to(kl_interrupt *self) {
    self->call = eventfd(0, EFD_CLOEXEC);
    self->signals = self->call >= 0 ? kl_interrupts_to(self->call) : NULL;
    if (self->signals && kl_thread_start(&self->thread, hear, self) == 0)
        return true;
    kl_sigterm_restore(self->signals);
    if (self->call >= 0)
        close(self->call);
    return false;
}

void kl_farm_open_interrupt(kilter_farm *f) {
    kl_interrupt *self = f->service.threaded ? calloc(1, sizeof *self) : NULL;
    if (!self)
        return;
    self->farm = f;
    if (listen_to(self))
        f->stop.listener = self;
    else
        free(self);
}

void kl_farm_close_interrupt(kilter_farm *f) {
    kl_interrupt *self = f->stop.listener;
    if (!self)
        return;
    f->stop.listener = NULL;
    kl_sigterm_restore(self->signals);
    while (write(self->call, &END, sizeof END) < 0 && errno == EINTR)
        ;
    pthread_join(self->thread, NULL);
    close(self->call);
    free(self);
}

void kl_farm_say_interrupt(kilter_farm *f, char *text, size_t size) {
    text[0] = '\0';
    pthread_mutex_lock(&f->lock);
    bool interrupted = f->stop.interrupted;
    pthread_mutex_unlock(&f->lock);
    if (!interrupted)
        return;
    if (!f->settings.resume) {
        snprintf(text, size, "; use --resume FILE to keep results");
        return;
    }
    /* under `kilter run`, do not name the program's own command line, because the user must repeat the
     * `kilter run` command */
    char *command = getenv("KILTER_RUN") ? NULL : kl_own_words(0);
    if (command && strlen(command) < COMMAND_BYTES)
        snprintf(text, size, "; the results so far are kept; to continue, repeat the command: %s", command);
    else
        snprintf(text, size, "; the results so far are kept; to continue, repeat the command");
    free(command);
}
