/* The supervisor of local workers: a process that is forked from its opener before the opener has threads.
 * It forks workers at any time, and reports how each of them ended.
 *
 *   opening process ──fork──▶ supervisor ──fork──▶ worker, worker, …
 *                      START number ─────▶ │
 *                    ◀───── STARTED, ENDED │            (SIGCHLD, waitpid)
 *
 * When the opener ends, the supervisor kills the workers and ends. If the opener died, the supervisor also
 * runs the opener's function for cleaning up. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/sys.h"

enum { START = 1, END_ONE, CLOSING, STARTED, NOT_STARTED, ENDED };

/* a message in either direction; the struct is sent as it is, because both processes run the same program */
typedef struct note {
    int32_t kind;
    uint32_t number;
    int32_t pid;
    int32_t status; /* for ENDED the status of waitpid(); for NOT_STARTED an errno */
} note;

struct kl_supervisor {
    pid_t pid;
    int fd;
    bool gone;
    uint32_t under_way; /* number of workers that run or are being started */
    /* [heard_count] messages received from the supervisor and not yet freed; the first `told` of these have
     * been delivered */
    note *heard;
    uint64_t heard_count, heard_capacity, told;
};

static const double START_PATIENCE_S = 10; /* seconds within which even a busy supervisor must answer */

/* --- functions that run in the supervisor process --- */

typedef struct child {
    pid_t pid;
    uint32_t number;
} child;

typedef struct house {
    int (*body)(void *arg, uint32_t number);
    void (*on_death)(void *arg);
    void *arg;
    /* true: the opener is closing the supervisor, so the end of the connection does not mean that the opener
     * died */
    bool closed;
    pid_t opener;
    int fd, signals;
    sigset_t mask; /* the opener's blocked signals and its handler of SIGCHLD; each worker gets both back */
    struct sigaction on_child;
    child *children;
    uint64_t count, capacity;
    uint32_t starting; /* number of the worker that is being started, for use in the new child */
} house;

static int be_child(void *self) {
    house *h = self;
    /* the new worker has no connection to the opener any more, because every private socket was closed in
     * it */
    close(h->signals);
    sigaction(SIGCHLD, &h->on_child, NULL);
    sigprocmask(SIG_SETMASK, &h->mask, NULL);
    return h->body(h->arg, h->starting);
}

static void tell(const house *h, const note *n) {
    while (send(h->fd, n, sizeof *n, MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}

static bool room_for_one(house *h) {
    child *children = kl_array_grow(h->children, &h->capacity, h->count + 1, sizeof *children);
    h->children = children ? children : h->children;
    return children;
}

static void start_one(house *h, uint32_t number) {
    pid_t pid;
    h->starting = number;
    errno = ENOMEM;
    if (!room_for_one(h) || kl_process_start(be_child, h, &pid, NULL) != KILTER_OK) {
        tell(h, &(note){.kind = NOT_STARTED, .number = number, .status = errno});
        return;
    }
    h->children[h->count++] = (child){pid, number};
    tell(h, &(note){.kind = STARTED, .number = number, .pid = pid});
}

/* Send the opener a message for each child that has ended. Return false when the opener is dead. */
static bool reap(house *h) {
    struct signalfd_siginfo signal;
    bool alive = true;
    while (read(h->signals, &signal, sizeof signal) > 0)
        alive &= signal.ssi_signo == SIGCHLD;
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        for (size_t i = 0; i < h->count; i++)
            if (h->children[i].pid == pid) {
                tell(h,
                     &(note){.kind = ENDED, .number = h->children[i].number, .pid = pid, .status = status});
                h->children[i] = h->children[--h->count];
                break;
            }
    return alive;
}

static const uint32_t EVERYBODY = UINT32_MAX;

static void end_children(const house *h, uint32_t number) {
    for (size_t i = 0; i < h->count; i++)
        if (number == EVERYBODY || h->children[i].number == number)
            kill(h->children[i].pid, SIGKILL);
}

/* Handle one request of the opener. Return false when the opener has closed the connection. */
static bool answer(house *h) {
    note n;
    ssize_t got = recv(h->fd, &n, sizeof n, 0);
    if (got == (ssize_t)sizeof n && n.kind == START)
        start_one(h, n.number);
    else if (got == (ssize_t)sizeof n && n.kind == END_ONE)
        end_children(h, n.number);
    h->closed |= got == (ssize_t)sizeof n && n.kind == CLOSING;
    return got > 0 || (got < 0 && errno == EINTR);
}

enum { ORPHANED_LOOKS = 100 };
static const double ORPHANED_LOOK_S = 0.01;

/* Return whether the opener is dead. Its closed connection is no proof, because a dying process closes its
 * files a moment before it is gone. A thread that opened the supervisor may also end while its process
 * lives. */
static bool is_orphaned(const house *h) {
    for (int look = 0; look < ORPHANED_LOOKS && getppid() == h->opener; look++)
        kl_nap_s(ORPHANED_LOOK_S);
    return getppid() != h->opener;
}

static int keep_house(void *self) {
    house *h = self;
    fcntl(h->fd, F_SETFD, FD_CLOEXEC); /* the workers must not inherit the supervisor's connection */
    sigset_t all, news;
    /* the system sends this signal when the opener dies; kl_process_start() set SIGKILL for this case, which
     * would prevent cleaning up */
    int death = SIGRTMAX;
    /* block all signals, because the program's handlers must not run here, and only the opener reacts to
     * Ctrl-C */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &h->mask);
    struct sigaction plain = {.sa_handler = SIG_DFL};
    /* if SIGCHLD were ignored, the exit status of workers would be lost */
    sigaction(SIGCHLD, &plain, &h->on_child);
    sigemptyset(&news);
    sigaddset(&news, SIGCHLD);
    sigaddset(&news, death);
    h->signals = signalfd(-1, &news, SFD_CLOEXEC | SFD_NONBLOCK);
    if (h->signals >= 0)
        prctl(PR_SET_PDEATHSIG, death);
    struct pollfd both[] = {{.fd = h->fd, .events = POLLIN}, {.fd = h->signals, .events = POLLIN}};
    for (bool open = h->signals >= 0; open;) {
        if (poll(both, 2, -1) < 0 && errno != EINTR)
            break;
        if (both[1].revents)
            open = reap(h);
        if (both[0].revents)
            open &= answer(h);
    }
    end_children(h, EVERYBODY);
    if (!h->closed && h->on_death && is_orphaned(h))
        h->on_death(h->arg);
    return 0;
}

/* --- functions that run in the process that opens the supervisor --- */

kilter_status kl_supervisor_open(int (*body)(void *arg, uint32_t number), void (*on_death)(void *arg),
                                 void *arg, kl_supervisor **supervisor, kilter_error *error) {
    int ends[2];
    kl_supervisor *n = calloc(1, sizeof *n);
    if (!n)
        return kl_fail(error, KILTER_ERR_MEMORY, "starting worker processes: memory ran out");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        int code = errno;
        free(n);
        return kl_fail(error, KILTER_ERR_SYSTEM, "starting worker processes: %s", strerror(code));
    }
    house h = {.body = body, .on_death = on_death, .arg = arg, .fd = ends[1], .opener = getpid()};
    fcntl(ends[1], F_SETFD, 0); /* the supervisor keeps its own end of this private socket */
    kilter_status status = kl_process_start(keep_house, &h, &n->pid, error);
    close(ends[1]);
    if (status != KILTER_OK) {
        close(ends[0]);
        free(n);
        return status;
    }
    n->fd = ends[0];
    *supervisor = n;
    return KILTER_OK;
}

/* Note that the supervisor has ended, and with it all its workers. */
static void be_gone(kl_supervisor *n) {
    n->gone = true;
    n->under_way = 0;
    n->heard_count = n->told = 0;
}

/* Receive messages from the supervisor, and store them until the caller asks. Return whether any arrived. */
static bool hear(kl_supervisor *n) {
    note *heard = kl_array_grow(n->heard, &n->heard_capacity, n->heard_count + 1, sizeof *heard);
    if (!heard)
        return false;
    n->heard = heard;
    note *got = &heard[n->heard_count];
    ssize_t size = recv(n->fd, got, sizeof *got, MSG_DONTWAIT);
    n->heard_count += size == (ssize_t)sizeof *got;
    if (size == 0)
        be_gone(n);
    return size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Wait until the full socket to the supervisor has room. Meanwhile read the supervisor's messages, because
 * it may be waiting for room itself. */
static bool await_room(kl_supervisor *n, double until_s) {
    struct pollfd one = {.fd = n->fd, .events = POLLIN | POLLOUT};
    struct timespec rest = kl_timespec(until_s - kl_monotonic_s());
    int ready = ppoll(&one, 1, &rest, NULL);
    if (ready < 0)
        return errno == EINTR;
    return ready > 0 && (!(one.revents & POLLIN) || hear(n));
}

kilter_status kl_supervisor_start(kl_supervisor *n, uint32_t number, kilter_error *error) {
    note start = {.kind = START, .number = number};
    double until_s = kl_monotonic_s() + START_PATIENCE_S;
    ssize_t sent = -1;
    for (bool goes_on = !n->gone; goes_on && sent < 0;) {
        sent = send(n->fd, &start, sizeof start, MSG_NOSIGNAL | MSG_DONTWAIT);
        goes_on = sent < 0 && (errno == EAGAIN || errno == EINTR) && await_room(n, until_s);
    }
    if (sent < 0)
        return kl_fail(error, KILTER_ERR_SYSTEM,
                       "starting worker process %u: the supervisor process is gone or stopped", number);
    n->under_way++;
    return KILTER_OK;
}

void kl_supervisor_end(kl_supervisor *n, uint32_t number) {
    note end = {.kind = END_ONE, .number = number};
    /* if this message is lost, the worker still ends when the connection is closed */
    (void)!send(n->fd, &end, sizeof end, MSG_NOSIGNAL | MSG_DONTWAIT);
}

uint32_t kl_supervisor_under_way(const kl_supervisor *n) {
    return n->under_way;
}

static void understand(kl_supervisor *n, const note *got, kl_child_news *child) {
    *child = (kl_child_news){.number = got->number, .pid = got->pid, .ended = got->kind != STARTED};
    n->under_way -= child->ended;
    if (got->kind == NOT_STARTED)
        snprintf(child->how, sizeof child->how, "could not be started: %s", strerror(got->status));
    else if (got->kind == ENDED)
        kl_describe_end(got->status, child->how, sizeof child->how);
}

bool kl_supervisor_next(kl_supervisor *n, double timeout_s, kl_child_news *child) {
    struct pollfd one = {.fd = n->fd, .events = POLLIN};
    struct timespec timeout = kl_timespec(timeout_s);
    if (n->told < n->heard_count) {
        understand(n, &n->heard[n->told++], child);
        if (n->told == n->heard_count)
            n->told = n->heard_count = 0;
        return true;
    }
    while (!n->gone) {
        note got;
        ssize_t size = ppoll(&one, 1, &timeout, NULL) > 0 ? recv(n->fd, &got, sizeof got, MSG_DONTWAIT) : -1;
        if (size == (ssize_t)sizeof got) {
            understand(n, &got, child);
            return true;
        }
        if (size < 0)
            return false; /* the time is over, or a signal interrupted the wait */
        be_gone(n);
    }
    return false;
}

void kl_supervisor_close(kl_supervisor *n, double patience_s) {
    if (!n)
        return;
    double until_s = kl_monotonic_s() + patience_s;
    kl_child_news unused;
    while (n->under_way > 0 && kl_monotonic_s() < until_s)
        kl_supervisor_next(n, until_s - kl_monotonic_s(), &unused);
    const note closing = {.kind = CLOSING};
    (void)!send(n->fd, &closing, sizeof closing, MSG_NOSIGNAL | MSG_DONTWAIT);
    /* the supervisor notices that the connection is closed; it ends the remaining workers and exits */
    close(n->fd);
    kl_process_finish(n->pid, 1);
    free(n->heard);
    free(n);
}
