/* Requests of messages. Until they are complete, a rank tests them repeatedly, sleeps between the tests, and
 * checks for lost ranks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loop/group_mpi.h"

enum {
    PIECE_BYTES = 1 << 30, /* greatest size of a message that is given to MPI, which counts bytes in int */
    EAGER_BYTES = 1 << 12, /* MPI may transfer a larger message only while both ranks are in a call of MPI */
};

static const double REST_MOST_S = 0.005, LOOK_S = 0.005;

kilter_status kl_mpi_failed(int code, const char *doing, kilter_error *error) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    for (char *at = text; (at = strchr(at, '\n')); *at = ' ') /* MPICH's text has several lines; join
                                                                 them into one line */
        ;
    return kl_fail(error, KILTER_ERR_MPI, "%s: MPI says: %.300s; start the program again", doing, text);
}

/* --- requests --- */

static bool reserve(kl_requests *r) {
    if (r->count + 2 <= r->capacity) /* keep room for one request more, for kl_mpi_look() */
        return true;
    size_t capacity = 2 * r->count + 8;
    MPI_Request *requests = realloc(r->requests, capacity * sizeof(MPI_Request));
    if (requests)
        r->requests = requests;
    int *done = realloc(r->done, capacity * sizeof *done);
    if (done)
        r->done = done;
    MPI_Status *statuses = realloc(r->statuses, capacity * sizeof *statuses);
    if (statuses) {
        memset(statuses + r->count, 0, (capacity - r->count) * sizeof *statuses);
        r->statuses = statuses;
    }
    if (requests && done && statuses)
        r->capacity = capacity;
    return requests && done && statuses;
}

static kilter_status no_memory(kilter_error *error) {
    return kl_fail(error, KILTER_ERR_MEMORY, "exchanging rows of a loop: memory ran out");
}

static void begin_anew(kl_requests *r) {
    if (r->open > 0)
        return;
    r->count = r->receives = 0;
    r->collective = r->silent = false;
}

static void put(kl_requests *r, MPI_Request request) {
    r->requests[r->count++] = request;
    r->open++;
}

/* Insert a receive. Receives come before sends in the list, even if they are posted later. */
static void put_receive(kl_requests *r, MPI_Request request) {
    put(r, request);
    r->requests[r->count - 1] = r->requests[r->receives];
    r->requests[r->receives++] = request;
}

kilter_status kl_requests_join(kl_requests *r, int code, MPI_Request request, kilter_error *error) {
    if (code != MPI_SUCCESS)
        return kl_mpi_failed(code, "gathering reports of a loop", error);
    begin_anew(r);
    if (!reserve(r))
        return no_memory(error);
    put_receive(r, request);
    r->collective = r->silent = true;
    return KILTER_OK;
}

/* Post a message, in pieces if it is large. */
static kilter_status post(kl_group *g, kl_requests *r, const kl_mail *mail, bool sends, kilter_error *error) {
    MPI_Comm comm = mail->calls ? g->calls : g->comm;
    begin_anew(r);
    for (size_t at = 0; at < mail->bytes; at += PIECE_BYTES) {
        MPI_Request request;
        uint8_t *data = (uint8_t *)mail->data + at;
        int piece = mail->bytes - at < PIECE_BYTES ? (int)(mail->bytes - at) : PIECE_BYTES;
        if (!reserve(r))
            return no_memory(error);
        int code = sends ? MPI_Isend(data, piece, MPI_BYTE, mail->peer, mail->tag, comm, &request)
                         : MPI_Irecv(data, piece, MPI_BYTE, mail->peer, mail->tag, comm, &request);
        if (code != MPI_SUCCESS)
            return kl_mpi_failed(code, sends ? "sending rows of a loop" : "receiving rows of a loop", error);
        if (sends)
            put(r, request);
        else
            put_receive(r, request);
    }
    return KILTER_OK;
}

kilter_status kl_receive(kl_group *g, kl_requests *r, kl_mail mail, kilter_error *error) {
    kilter_status status = post(g, r, &mail, false, error);
    if (status == KILTER_OK && mail.bytes >= EAGER_BYTES) /* ring the sender's bell, because the sender may
                                                             sleep until this receive is posted */
        kl_bells_ring(g->wait.bells, (uint32_t)mail.peer);
    return status;
}

kilter_status kl_send(kl_group *g, kl_requests *r, kl_mail mail, kilter_error *error) {
    kilter_status status = post(g, r, &mail, true, error);
    if (!mail.silent)
        kl_bells_ring(g->wait.bells, (uint32_t)mail.peer);
    return status;
}

#ifdef MPICH

/* The program's error handlers of MPI_COMM_SELF and MPI_COMM_WORLD. If one of several requests fails, MPICH
 * calls one of these handlers, which would end the rank. So Kilter replaces both handlers while it checks
 * requests. */
typedef struct handlers {
    MPI_Errhandler self, world;
} handlers;

static handlers be_told(const kl_group *g) {
    handlers kept = {MPI_ERRHANDLER_NULL, MPI_ERRHANDLER_NULL};
    if (!g->outlives)
        return kept;
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &kept.self);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &kept.world);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    return kept;
}

static void restore(handlers *kept) {
    if (kept->self == MPI_ERRHANDLER_NULL)
        return;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, kept->self);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, kept->world);
    MPI_Errhandler_free(&kept->self);
    MPI_Errhandler_free(&kept->world);
}

#else

typedef char handlers;

static handlers be_told(const kl_group *g) {
    (void)g;
    return 0;
}
static void restore(handlers *kept) {
    (void)kept;
}

#endif

/* Wake the senders of large messages, because such a send completes only when the receiver has the
 * message. */
static void ring_senders(kl_group *g, const kl_requests *r, int done) {
    for (int i = 0; i < done && g->wait.bells; i++) {
        int bytes = 0;
        bool receive = (size_t)r->done[i] < r->receives;
        if (receive && MPI_Get_count(&r->statuses[i], MPI_BYTE, &bytes) == MPI_SUCCESS &&
            bytes >= EAGER_BYTES)
            kl_bells_ring(g->wait.bells, (uint32_t)r->statuses[i].MPI_SOURCE);
    }
}

static kilter_status look(kl_group *g, kl_requests *r, bool for_ever, int *done, kilter_error *error) {
    handlers kept = be_told(g);
    kl_mpi_sight sight = {.requests = r->requests,
                          .receives = (int)r->receives,
                          .sends = (int)(r->count - r->receives),
                          .which = r->done,
                          .statuses = r->statuses};
    int code = r->collective ? kl_mpi_look_collective(&g->wait, r->requests, for_ever, &sight.done)
                             : kl_mpi_look(&g->wait, &sight, for_ever);
    *done = sight.done;
    restore(&kept);
    if (code == MPI_ERR_IN_STATUS && !r->collective)
        for (int i = 0; i < *done; i++)
            if (r->statuses[i].MPI_ERROR != MPI_SUCCESS && r->statuses[i].MPI_ERROR != MPI_ERR_PENDING)
                code = r->statuses[i].MPI_ERROR;
    if (code != MPI_SUCCESS)
        return kl_mpi_failed(code, "awaiting the other ranks of a loop", error);
    r->open -= (size_t)*done;
    if (*done > 0 && !r->collective)
        ring_senders(g, r, *done);
    return KILTER_OK;
}

kilter_status kl_requests_look(kl_group *g, kl_requests *r, kilter_error *error) {
    int done;
    return r->open == 0 ? KILTER_OK : look(g, r, false, &done, error);
}

/* A message between two cores is often less than a microsecond late. Checking for it takes less time than
 * reading the clock, so check several times before reading the clock. If there are more ranks than cores,
 * check only once, because another rank may need the core. */
enum { LOOKS_AT_ONCE = 8 };

static kilter_status look_repeatedly(kl_group *g, kl_requests *r, int *done, kilter_error *error) {
    int looks = g->wait.shares_cores || g->wait.mpi_yields || !kl_mpi_ranks_die ? 1 : LOOKS_AT_ONCE;
    kilter_status status = KILTER_OK;
    *done = 0;
    for (int i = 0; i < looks && *done == 0 && r->open > 0 && status == KILTER_OK; i++)
        status = look(g, r, !kl_mpi_ranks_die, done, error);
    return status;
}

kilter_status kl_requests_await(kl_group *g, kl_requests *r, kilter_error *error) {
    kilter_status status = KILTER_OK;
    bool waited = false;
    while (r->open > 0 && status == KILTER_OK) {
        int done;
        status = look_repeatedly(g, r, &done, error);
        if (status != KILTER_OK || done > 0 || r->open == 0)
            continue;
        if (!waited)
            kl_mpi_traffic(&g->wait);
        waited = true;
        kl_group_rest(g, !r->silent);
        status = kl_group_look(g, g->wait.rested_s, error);
    }
    if (waited)
        kl_mpi_waited(&g->wait);
    return status;
}

void kl_group_rest(kl_group *g, bool rings) {
    kl_mpi_rest(&g->wait, rings && g->near, kl_mpi_ranks_die ? REST_MOST_S : HUGE_VAL);
}

kilter_status kl_group_look(kl_group *g, double now_s, kilter_error *error) {
    if (!kl_mpi_ranks_die || now_s - g->looked_s < LOOK_S)
        return KILTER_OK;
    g->looked_s = now_s;
    return g->look(g->loop, now_s, error);
}

void kl_requests_free(kl_requests *r) {
    free(r->requests);
    free(r->done);
    free(r->statuses);
    *r = (kl_requests){0};
}

/* --- operations of all ranks together --- */

kilter_status kl_group_await(kl_group *g, int code, MPI_Request request, kilter_error *error) {
    kl_requests requests = {0};
    kilter_status status = kl_requests_join(&requests, code, request, error);
    if (status == KILTER_OK)
        status = kl_requests_await(g, &requests, error);
    kl_requests_free(&requests);
    return status;
}

/* Number of ranks in a pair. Each of the two ranks sends one message to the other, and can wake the other by
 * a doorbell. With more than two ranks, MPI may forward messages through a rank. A sleeping rank would delay
 * these messages. */
enum { PAIR = 2 };

kilter_status kl_group_share(kl_group *g, kl_requests *r, const void *mine, void *all, size_t bytes,
                             kilter_error *error) {
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, g->comm, &request);
    kilter_status status = kl_requests_join(r, code, request, error);
    if (status == KILTER_OK && g->ranks == PAIR) {
        kl_bells_ring(g->wait.bells, (uint32_t)(1 - g->rank));
        r->silent = false;
    }
    return status;
}

static kilter_status reduce_anywhere(kl_group *g, const kl_reduction *how, kilter_error *error) {
    MPI_Request request = MPI_REQUEST_NULL;
    int code =
        MPI_Iallreduce(MPI_IN_PLACE, g->shared, (int)how->count, how->type, how->op, how->comm, &request);
    return kl_group_await(g, code, request, error);
}

/* --- a tree of ranks, in which each rank has up to two ranks below it --- */

static int below(const kl_group *g, int i) {
    return 2 * g->rank + 1 + i;
}

static bool has_below(const kl_group *g, int i) {
    return below(g, i) < (int)g->ranks;
}

static kilter_status add_below(kl_group *g, const kl_reduction *how, kl_requests *r, kl_mail mail,
                               kilter_error *error) {
    kilter_status status = KILTER_OK;
    for (int i = 0; i < 2 && has_below(g, i) && status == KILTER_OK; i++) {
        mail.data = g->partial[i];
        mail.peer = below(g, i);
        status = kl_receive(g, r, mail, error);
    }
    if (status == KILTER_OK)
        status = kl_requests_await(g, r, error);
    for (int i = 0; i < 2 && has_below(g, i) && status == KILTER_OK; i++) {
        int code = MPI_Reduce_local(g->partial[i], g->shared, (int)how->count, how->type, how->op);
        if (code != MPI_SUCCESS)
            status = kl_mpi_failed(code, "reducing values of a loop", error);
    }
    return status;
}

/* Send the partial result to the rank above in the tree, and wait for the total. */
static kilter_status ask_above(kl_group *g, kl_requests *r, kl_mail mail, kilter_error *error) {
    mail.peer = (g->rank - 1) / 2;
    kilter_status status = kl_send(g, r, mail, error);
    if (status == KILTER_OK)
        status = kl_requests_await(g, r, error);
    if (status == KILTER_OK)
        status = kl_receive(g, r, mail, error);
    return status == KILTER_OK ? kl_requests_await(g, r, error) : status;
}

kilter_status kl_group_hear(kl_group *g, kl_requests *r, kl_mail mail, kilter_error *error) {
    if (g->rank == 0)
        return KILTER_OK;
    mail.peer = (g->rank - 1) / 2;
    kilter_status status = kl_receive(g, r, mail, error);
    return status == KILTER_OK ? kl_requests_await(g, r, error) : status;
}

kilter_status kl_group_pass_on(kl_group *g, kl_requests *r, kl_mail mail, kilter_error *error) {
    kilter_status status = KILTER_OK;
    for (int i = 0; i < 2 && has_below(g, i) && status == KILTER_OK; i++) {
        mail.peer = below(g, i);
        status = kl_send(g, r, mail, error);
    }
    return status;
}

kilter_status kl_group_tell(kl_group *g, kl_requests *r, kl_mail mail, kilter_error *error) {
    kilter_status status = kl_group_hear(g, r, mail, error);
    if (status == KILTER_OK)
        status = kl_group_pass_on(g, r, mail, error);
    return status == KILTER_OK ? kl_requests_await(g, r, error) : status;
}

/* Reduce values up the tree to rank 0, and send the result down. The messages of this reduction wake their
 * receivers, unlike those of MPI's own reduction. */
static kilter_status reduce_near(kl_group *g, const kl_reduction *how, kilter_error *error) {
    kl_requests requests = {0};
    kl_mail mail = {.data = g->shared,
                    .bytes = how->count * sizeof *g->shared,
                    .tag = KL_TAG_REDUCE,
                    .calls = how->comm != g->comm};
    kilter_status status = add_below(g, how, &requests, mail, error);
    if (status == KILTER_OK && g->rank > 0)
        status = ask_above(g, &requests, mail, error);
    if (status == KILTER_OK)
        status = kl_group_pass_on(g, &requests, mail, error);
    if (status == KILTER_OK)
        status = kl_requests_await(g, &requests, error);
    kl_requests_free(&requests);
    return status;
}

kilter_status kl_group_reduce(kl_group *g, kl_reduction how, void *values, kilter_error *error) {
    memcpy(g->shared, values, how.count * sizeof *g->shared);
    kilter_status status = (g->near ? reduce_near : reduce_anywhere)(g, &how, error);
    if (status == KILTER_OK)
        memcpy(values, g->shared, how.count * sizeof *g->shared);
    return status;
}

kilter_status kl_group_least(kl_group *g, uint64_t *values, size_t count, kilter_error *error) {
    return kl_group_reduce(g, (kl_reduction){g->comm, MPI_UINT64_T, MPI_MIN, count}, values, error);
}

kilter_status kl_group_most_f64(kl_group *g, double *values, size_t count, kilter_error *error) {
    return kl_group_reduce(g, (kl_reduction){g->comm, MPI_DOUBLE, MPI_MAX, count}, values, error);
}

kilter_status kl_group_agree(kl_group *g, const uint64_t *values, const char *const *names, size_t count,
                             const char **differs, kilter_error *error) {
    enum { MOST = 24 };
    uint64_t both[2 * MOST];
    for (size_t i = 0; i < count; i++) {
        both[i] = values[i];
        both[count + i] = ~values[i];
    }
    *differs = NULL;
    kilter_status status = kl_group_least(g, both, 2 * count, error);
    for (size_t i = 0; i < count && status == KILTER_OK; i++)
        if (both[i] != ~both[count + i] && !*differs)
            *differs = names[i];
    return status;
}
