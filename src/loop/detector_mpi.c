/* Each rank has a connection to rank 0, called its line. When the system cuts a dead rank's line, rank 0
 * tells all other ranks. A thread of rank 0 watches the lines, because rank 0 may compute for a long time
 * while others wait for a dead rank. The thread sleeps until a line is cut, and makes no MPI calls. Other
 * ranks check their lines during calls of the loop. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "loop/detector_mpi.h"

/* a host counts as lost after this number of seconds without a sign of life */
static const double LOST_AFTER_S = 10;
/* seconds of sleep after each poll; without a sleep, a stranger who sends to the port could keep a core
 * busy */
static const double PAUSE_S = 0.001;
/* seconds to wait, after an error of MPI, for the report that a rank is dead */
static const double NEWS_S = 2;

_Static_assert(sizeof(kl_last_words) <= KL_LAST_WORDS_BYTES,
               "the last message on a line must fit into one piece");

struct kl_watch {       /* The thread of rank 0 that watches the lines (connections) to the other ranks. */
    kl_liveness *lines; /* lines to the other ranks; while the thread runs, only the thread uses them */
    uint32_t ranks;
    pthread_t thread;
    int over;           /* an eventfd that becomes readable when the thread must end */
    atomic_bool closed; /* true: a rank has closed the loop */
    atomic_bool told;   /* true: the last message was sent to all other ranks, and the lines were closed */
    kl_last_words words;
};

/* --- rank 0's thread --- */

static void tell(kl_liveness **lines, size_t others, const kl_last_words *words) {
    for (size_t i = 0; i < others; i++)
        kl_liveness_say(*lines, i, words, sizeof *words);
    kl_liveness_close(*lines);
    *lines = NULL;
}

/* Return the last message of `rank`, whose connection (line) was cut. */
static kl_last_words words_of(const kl_liveness *lines, int rank) {
    kl_last_words words;
    if (!kl_liveness_heard(lines, &words, sizeof words))
        return (kl_last_words){.rank = rank};
    words.text[sizeof words.text - 1] = '\0';
    return words;
}

static void take_leave(struct kl_watch *w, int rank) {
    kl_last_words words = words_of(w->lines, rank);
    if (words.closed) {
        atomic_store(&w->closed, true);
        return;
    }
    w->words = words;
    tell(&w->lines, w->ranks - 1, &words);
    atomic_store(&w->told, true);
}

static void *watch(void *self) {
    struct kl_watch *w = self;
    struct pollfd polled[] = {{.fd = kl_liveness_fd(w->lines), .events = POLLIN},
                              {.fd = w->over, .events = POLLIN}};
    size_t which;
    while (w->lines && (poll(polled, 2, -1) >= 0 || errno == EINTR) && !polled[1].revents) {
        while (w->lines && kl_liveness_cut(w->lines, &which))
            take_leave(w, (int)which + 1);
        kl_nap_s(PAUSE_S);
    }
    return NULL;
}

/* --- beginning and end of the thread that watches the lines --- */

/* Start the thread that watches rank 0's connections (lines). If it cannot start, close them and return
 * NULL. */
static struct kl_watch *new_watch(kl_liveness *lines, uint32_t ranks) {
    struct kl_watch *w = calloc(1, sizeof *w);
    int over = eventfd(0, EFD_CLOEXEC);
    if (w)
        *w = (struct kl_watch){.lines = lines, .ranks = ranks, .over = over};
    if (w && over >= 0 && kl_thread_start(&w->thread, watch, w) == 0)
        return w;
    if (over >= 0)
        close(over);
    free(w);
    kl_liveness_close(lines);
    return NULL;
}

/* End the thread that watches rank 0's connections (lines), and return the connections. If the thread has
 * told all ranks a last message, it has closed the connections; return NULL then. */
static kl_liveness *end_watch(struct kl_watch *w) {
    kl_liveness *lines;
    eventfd_write(w->over, 1);
    pthread_join(w->thread, NULL);
    lines = w->lines;
    close(w->over);
    free(w);
    return lines;
}

/* --- leaving the loop --- */

static void leave(kl_detector *d, const kl_last_words *words) {
    if (d->watch)
        d->lines = end_watch(d->watch);
    d->watch = NULL;
    if (d->lines)
        tell(&d->lines, d->group->rank == 0 ? d->group->ranks - 1 : 1, words);
}

void kl_detector_give_up(kl_detector *d, const char *why) {
    kl_last_words words = {.rank = d->group->rank};
    snprintf(words.text, sizeof words.text, "%s", why);
    leave(d, &words);
}

void kl_detector_close(kl_detector *d) {
    leave(d, &(kl_last_words){.rank = d->group->rank, .closed = true});
}

/* --- checking for lost ranks --- */

/* Return whether the loop ends. If so, d->words says why, and the connections to other ranks are closed.
 * *closed: whether a rank has closed the loop. */
static bool has_ended(kl_detector *d, bool *closed) {
    size_t which;
    *closed = false;
    if (d->watch) {
        *closed = atomic_load(&d->watch->closed);
        if (!atomic_load(&d->watch->told))
            return false;
        d->words = d->watch->words;
        end_watch(d->watch);
        d->watch = NULL;
        return true;
    }
    if (!d->lines || !kl_liveness_cut(d->lines, &which))
        return false;
    d->words = words_of(d->lines, 0);
    kl_liveness_close(d->lines);
    d->lines = NULL;
    *closed = d->words.closed;
    return !*closed;
}

static kilter_status say_dead(const kl_detector *d, kilter_error *error) {
    static const char advice[] = "end the program with exit() or MPI_Abort(), because MPI_Finalize() would "
                                 "wait for the dead rank; then start it again";
    if (d->words.text[0])
        return kl_fail(error, KILTER_ERR_PEER, "loop '%s' ends on all ranks, because rank %d has failed: %s",
                       d->group->name, d->words.rank, d->words.text);
    return kl_fail(
        error, KILTER_ERR_PEER,
        "loop '%s' ends on all ranks, because rank %d is dead, or has ended without closing the loop; %s",
        d->group->name, d->words.rank, advice);
}

/* Check whether a rank is dead. While ranks connect to rank 0, and after some connections were closed
 * normally, only a rank's silence shows its death. */
kilter_status kl_detector_look(kl_detector *d, double now_s, kilter_error *error) {
    bool closed;
    if (has_ended(d, &closed))
        return say_dead(d, error);
    if (closed && d->until_s == 0)
        d->until_s = now_s + d->patience_s;
    return d->until_s == 0 || now_s < d->until_s
               ? KILTER_OK
               : kl_fail(error, KILTER_ERR_PEER,
                         "loop '%s': a rank is dead, or has been silent for %g s, while the ranks open or "
                         "close the loop together; start the program again",
                         d->group->name, d->patience_s);
}

/* Wait for the report of a death. Some MPIs report an error before Kilter sees that the connection to the
 * dead rank is cut. */
void kl_detector_ask(kl_detector *d, kilter_error *failure) {
    double now_s = kl_monotonic_s(), until_s = now_s + NEWS_S;
    for (; kl_detector_works(d) && failure->status == KILTER_ERR_MPI && now_s < until_s;
         now_s = kl_monotonic_s())
        if (kl_detector_look(d, now_s, failure) == KILTER_OK)
            kl_nap_s(1e-3);
}

/* --- connecting all ranks with rank 0 --- */

enum { INVITATION_BYTES = 1024 };

bool kl_detector_init(kl_detector *d, kl_group *g) {
    *d = (kl_detector){.group = g, .invitations = calloc(g->rank == 0 ? g->ranks : 1, INVITATION_BYTES)};
    return d->invitations != NULL;
}

void kl_detector_free(kl_detector *d) {
    free(d->invitations);
}

static void write_invitation(const kl_liveness *lines, uint32_t rank, uint8_t *invitations) {
    kl_buffer invitation = {0};
    kl_liveness_invite(lines, rank - 1, &invitation);
    if (!invitation.failed && invitation.size + 4 <= INVITATION_BYTES) {
        uint32_t size = (uint32_t)invitation.size;
        memcpy(invitations + rank * INVITATION_BYTES, &size, 4);
        memcpy(invitations + rank * INVITATION_BYTES + 4, invitation.data, invitation.size);
    }
    kl_buffer_free(&invitation);
}

static void begin_watch(kl_detector *d) {
    kl_liveness *lines = NULL;
    if (kl_liveness_listen(d->group->ranks - 1, LOST_AFTER_S, &lines, NULL) != KILTER_OK)
        return;
    for (uint32_t r = 1; r < d->group->ranks; r++)
        write_invitation(lines, r, d->invitations);
    d->watch = new_watch(lines, d->group->ranks);
}

static kilter_status share_invitations(kl_detector *d, MPI_Comm comm, kilter_error *error) {
    MPI_Request request = MPI_REQUEST_NULL;
    void *mine = d->group->rank == 0 ? MPI_IN_PLACE : (void *)d->invitations;
    int code = MPI_Iscatter(d->invitations, INVITATION_BYTES, MPI_BYTE, mine, INVITATION_BYTES, MPI_BYTE, 0,
                            comm, &request);
    return kl_group_await(d->group, code, request, error);
}

static kilter_status open_lines(kl_detector *d, MPI_Comm comm, kilter_error *error) {
    d->until_s = kl_monotonic_s() + d->patience_s;
    if (d->group->rank == 0)
        begin_watch(d);
    kilter_status status = share_invitations(d, comm, error);
    if (status == KILTER_OK && d->group->rank > 0) {
        uint32_t size;
        memcpy(&size, d->invitations, 4);
        if (size > 0 && size + 4 <= INVITATION_BYTES)
            kl_liveness_connect(d->invitations + 4, size, LOST_AFTER_S, d->patience_s / 2, &d->lines, NULL);
    }
    double without = d->group->rank > 0 && !d->lines;
    if (status == KILTER_OK)
        status = kl_group_reduce(d->group, (kl_reduction){comm, MPI_DOUBLE, MPI_SUM, 1}, &without, error);
    if (status == KILTER_OK && without > 0 && d->group->rank == 0)
        fprintf(stderr,
                "loop '%s': %.0f ranks have no connection to rank 0, so their death will not be noticed\n",
                d->group->name, without);
    if (status == KILTER_OK && without == 0) /* all are connected, so silence no longer counts as death */
        d->until_s = 0;
    return status;
}

kilter_status kl_detector_open(kl_detector *d, MPI_Comm comm, kilter_error *error) {
    kilter_status status = kl_mpi_ranks_die && d->group->ranks > 1 ? open_lines(d, comm, error) : KILTER_OK;
    if (status != KILTER_OK)
        return status; /* after a failure the invitations are not freed, because MPI may still write into
                          them */
    free(d->invitations);
    d->invitations = NULL;
    return KILTER_OK;
}
