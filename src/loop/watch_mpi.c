/* Who is dead, or has given up the loop: rank 0 has a lifeline to each of the others, and passes the word on.
 *
 *     a rank that dies        says nothing, the system cuts its line
 *     one that gives up       says why, and cuts it
 *     one that has closed     says that, and cuts it
 *     rank 0, of the others   says whose it was and why, and cuts all
 *
 * Rank 0 may compute for long while others wait for the dead: a thread of its own, which sleeps until a line
 * is cut and makes no calls of MPI, does this. The others look at their lines while they are in calls. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "loop/loop_mpi.h"

static const double LOOK_S = 0.005;    /* between two looks */
static const double LOST_AFTER_S = 10; /* of silence of a host */
static const double PAUSE_S = 0.001;   /* of the watch: whoever keeps its port busy keeps no core busy */
static const double NEWS_S = 2;        /* after an error of MPI's, that a rank is dead */

_Static_assert(sizeof(kl_last_words) <= KL_LAST_WORDS_BYTES, "last words are said in one piece");

struct kl_watch {        /* rank 0's */
    kl_lifelines *lines; /* the thread's */
    uint32_t ranks;
    pthread_t thread;
    int over;           /* an eventfd: readable when the watch is to end */
    atomic_bool closed; /* a rank has closed the loop */
    atomic_bool told;   /* all others have been told the words, and there are no lines any more */
    kl_last_words words;
};

/* --- rank 0's thread --- */

static void tell(kl_lifelines **lines, size_t others, const kl_last_words *words) {
    for (size_t i = 0; i < others; i++)
        kl_lifelines_say(*lines, i, words, sizeof *words);
    kl_lifelines_close(*lines);
    *lines = NULL;
}

/* What was said on the line of `rank`, which has been cut. */
static kl_last_words words_of(const kl_lifelines *lines, int rank) {
    kl_last_words words;
    if (!kl_lifelines_heard(lines, &words, sizeof words))
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
    struct pollfd polled[] = {{.fd = kl_lifelines_fd(w->lines), .events = POLLIN},
                              {.fd = w->over, .events = POLLIN}};
    size_t which;
    while (w->lines && (poll(polled, 2, -1) >= 0 || errno == EINTR) && !polled[1].revents) {
        while (w->lines && kl_lifelines_cut(w->lines, &which))
            take_leave(w, (int)which + 1);
        kl_nap_s(PAUSE_S);
    }
    return NULL;
}

/* --- its beginning and end --- */

static bool start_thread(struct kl_watch *w) {
    sigset_t all, old; /* signals are the program's own threads' business */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int code = pthread_create(&w->thread, NULL, watch, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return code == 0;
}

/* NULL: then nobody can connect. */
static struct kl_watch *new_watch(kl_lifelines *lines, uint32_t ranks) {
    struct kl_watch *w = calloc(1, sizeof *w);
    int over = eventfd(0, EFD_CLOEXEC);
    if (w)
        *w = (struct kl_watch){.lines = lines, .ranks = ranks, .over = over};
    if (w && over >= 0 && start_thread(w))
        return w;
    if (over >= 0)
        close(over);
    free(w);
    kl_lifelines_close(lines);
    return NULL;
}

/* Gives the lines that are left; NULL: all have been told already. */
static kl_lifelines *end_watch(struct kl_watch *w) {
    kl_lifelines *lines;
    eventfd_write(w->over, 1);
    pthread_join(w->thread, NULL);
    lines = w->lines;
    close(w->over);
    free(w);
    return lines;
}

/* --- leaving --- */

static void leave(kilter_loop *l, const kl_last_words *words) {
    if (l->watch)
        l->lines = end_watch(l->watch);
    l->watch = NULL;
    if (l->lines)
        tell(&l->lines, l->rank == 0 ? l->ranks - 1 : 1, words);
}

void kl_watch_give_up(kilter_loop *l) {
    kl_last_words words = {.rank = l->rank};
    memcpy(words.text, l->failure.text, sizeof words.text);
    leave(l, &words);
}

void kl_watch_close(kilter_loop *l) {
    leave(l, &(kl_last_words){.rank = l->rank, .closed = true});
}

/* --- looking --- */

/* true: l->words are why the loop ends, and there are no lines any more. *closed: somebody has closed it. */
static bool has_ended(kilter_loop *l, bool *closed) {
    size_t which;
    *closed = false;
    if (l->watch) {
        *closed = atomic_load(&l->watch->closed);
        if (!atomic_load(&l->watch->told))
            return false;
        l->words = l->watch->words;
        end_watch(l->watch);
        l->watch = NULL;
        return true;
    }
    if (!l->lines || !kl_lifelines_cut(l->lines, &which))
        return false;
    l->words = words_of(l->lines, 0);
    kl_lifelines_close(l->lines);
    l->lines = NULL;
    *closed = l->words.closed;
    return !*closed;
}

static kilter_status say_dead(const kilter_loop *l, kilter_error *error) {
    static const char advice[] = "end the program with exit() or MPI_Abort(), as MPI_Finalize() would wait "
                                 "for the dead, and start it again";
    if (l->words.text[0])
        return kl_fail(error, KILTER_ERR_PEER, "loop '%s' ends on all ranks, as rank %d has given it up: %s",
                       l->name, l->words.rank, l->words.text);
    return kl_fail(error, KILTER_ERR_PEER,
                   "loop '%s' ends on all ranks, as rank %d is dead, or has ended without closing it; %s",
                   l->name, l->words.rank, advice);
}

/* While lines are made, and when some are cut as they should be, time is all that tells. */
static kilter_status look(kilter_loop *l, double now_s, kilter_error *error) {
    bool closed;
    if (has_ended(l, &closed))
        return say_dead(l, error);
    if (closed && l->until_s == 0)
        l->until_s = now_s + l->patience_s;
    return l->until_s == 0 || now_s < l->until_s
               ? KILTER_OK
               : kl_fail(error, KILTER_ERR_PEER,
                         "loop '%s': a rank is dead, or has been silent for %g s, while the ranks open or "
                         "close the loop together; start again",
                         l->name, l->patience_s);
}

/* Some MPIs fail when a rank has died, before its line is seen to be cut. */
void kl_watch_ask(kilter_loop *l) {
    double now_s = kl_monotonic_s(), until_s = now_s + NEWS_S;
    for (; (l->watch || l->lines) && l->failure.status == KILTER_ERR_MPI && now_s < until_s;
         now_s = kl_monotonic_s())
        if (look(l, now_s, &l->failure) == KILTER_OK)
            kl_nap_s(1e-3);
}

kilter_status kl_loop_look_for_deaths_at(kilter_loop *l, double now_s, kilter_error *error) {
    if (!kl_mpi_ranks_die || now_s - l->looked_s < LOOK_S)
        return KILTER_OK;
    l->looked_s = now_s;
    kilter_status status = kl_steps_look(l, now_s, error);
    return status == KILTER_OK ? look(l, now_s, error) : status;
}

kilter_status kl_loop_look_for_deaths(kilter_loop *l, kilter_error *error) {
    return kl_loop_look_for_deaths_at(l, kl_monotonic_s(), error);
}

/* --- opening --- */

enum { INVITATION_BYTES = 1024 };

uint8_t *kl_watch_invitations(const kilter_loop *l) {
    return calloc(l->rank == 0 ? l->ranks : 1, INVITATION_BYTES);
}

static void write_invitation(const kl_lifelines *lines, uint32_t rank, uint8_t *invitations) {
    kl_buffer invitation = {0};
    kl_lifelines_invite(lines, rank - 1, &invitation);
    if (!invitation.failed && invitation.size + 4 <= INVITATION_BYTES) {
        uint32_t size = (uint32_t)invitation.size;
        memcpy(invitations + rank * INVITATION_BYTES, &size, 4);
        memcpy(invitations + rank * INVITATION_BYTES + 4, invitation.data, invitation.size);
    }
    kl_buffer_free(&invitation);
}

static void begin_watch(kilter_loop *l) {
    kl_lifelines *lines = NULL;
    if (kl_lifelines_listen(l->ranks - 1, LOST_AFTER_S, &lines, NULL) != KILTER_OK)
        return;
    for (uint32_t r = 1; r < l->ranks; r++)
        write_invitation(lines, r, l->invitations);
    l->watch = new_watch(lines, l->ranks);
}

static kilter_status share_invitations(kilter_loop *l, MPI_Comm comm, kilter_error *error) {
    kl_batch batch = {0};
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_Iscatter(l->invitations, INVITATION_BYTES, MPI_BYTE,
                            l->rank == 0 ? MPI_IN_PLACE : (void *)l->invitations, INVITATION_BYTES, MPI_BYTE,
                            0, comm, &request);
    kilter_status status = kl_batch_join(&batch, code, request, error);
    if (status == KILTER_OK)
        status = kl_batch_await(l, &batch, error);
    kl_batch_free(&batch);
    return status;
}

static void connect_line(kilter_loop *l) {
    uint32_t size;
    memcpy(&size, l->invitations, 4);
    if (size > 0 && size + 4 <= INVITATION_BYTES)
        kl_lifelines_connect(l->invitations + 4, size, LOST_AFTER_S, l->patience_s / 2, &l->lines, NULL);
}

static void complain(const kilter_loop *l, uint64_t ranks) {
    fprintf(stderr, "loop '%s': %llu ranks have no connection to rank 0: their death will not be noticed\n",
            l->name, (unsigned long long)ranks);
}

static kilter_status open_lines(kilter_loop *l, MPI_Comm comm, kilter_error *error) {
    l->until_s = kl_monotonic_s() + l->patience_s;
    if (l->rank == 0)
        begin_watch(l);
    kilter_status status = share_invitations(l, comm, error);
    if (status == KILTER_OK && l->rank > 0)
        connect_line(l);
    double without = l->rank > 0 && !l->lines;
    if (status == KILTER_OK)
        status = kl_loop_reduce(l, comm, &without, 1, MPI_DOUBLE, MPI_SUM, error);
    if (status == KILTER_OK && without > 0 && l->rank == 0)
        complain(l, (uint64_t)without);
    if (status == KILTER_OK && without == 0) /* else a death may not be noticed */
        l->until_s = 0;
    return status;
}

kilter_status kl_watch_open(kilter_loop *l, MPI_Comm comm, kilter_error *error) {
    kilter_status status = kl_mpi_ranks_die && l->ranks > 1 ? open_lines(l, comm, error) : KILTER_OK;
    if (status != KILTER_OK)
        return status; /* MPI may still write into the invitations */
    free(l->invitations);
    l->invitations = NULL;
    return KILTER_OK;
}
