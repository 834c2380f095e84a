/* Requests, and what a rank does until they are complete: it looks, naps, and looks whether all live. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loop/loop_mpi.h"

enum {
    PIECE_BYTES = 1 << 30, /* MPI counts in int */
    EAGER_BYTES = 1 << 12, /* MPI may do with larger messages what takes both sides */
};

static const double REST_MOST_S = 0.005;

kilter_status kl_mpi_failed(int code, const char *doing, kilter_error *error) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    for (char *at = text; (at = strchr(at, '\n')); *at = ' ') /* MPICH's has several lines */
        ;
    return kl_fail(error, KILTER_ERR_MPI, "%s: MPI says: %.300s; start the program again", doing, text);
}

static kilter_status checked(int code, const char *doing, kilter_error *error) {
    return code == MPI_SUCCESS ? KILTER_OK : kl_mpi_failed(code, doing, error);
}

/* --- batches --- */

static bool reserve(kl_batch *b) {
    if (b->count + 2 <= b->capacity) /* kl_mpi_look() needs one more */
        return true;
    size_t capacity = 2 * b->count + 8;
    MPI_Request *requests = realloc(b->requests, capacity * sizeof(MPI_Request));
    if (requests)
        b->requests = requests;
    int *done = realloc(b->done, capacity * sizeof *done);
    if (done)
        b->done = done;
    MPI_Status *statuses = realloc(b->statuses, capacity * sizeof *statuses);
    if (statuses) {
        memset(statuses + b->count, 0, (capacity - b->count) * sizeof *statuses);
        b->statuses = statuses;
    }
    if (requests && done && statuses)
        b->capacity = capacity;
    return requests && done && statuses;
}

static kilter_status no_memory(kilter_error *error) {
    return kl_fail(error, KILTER_ERR_MEMORY, "exchanging rows of a loop: memory ran out");
}

static void begin_anew(kl_batch *b) {
    if (b->open > 0)
        return;
    b->count = b->receives = 0;
    b->collective = false;
}

static void put(kl_batch *b, MPI_Request request) {
    b->requests[b->count++] = request;
    b->open++;
}

/* Before the sends, whichever was posted first. */
static void put_receive(kl_batch *b, MPI_Request request) {
    put(b, request);
    b->requests[b->count - 1] = b->requests[b->receives];
    b->requests[b->receives++] = request;
}

kilter_status kl_batch_join(kl_batch *b, int code, MPI_Request request, kilter_error *error) {
    if (code != MPI_SUCCESS)
        return kl_mpi_failed(code, "asking all ranks of a loop", error);
    begin_anew(b);
    if (!reserve(b))
        return no_memory(error);
    put_receive(b, request);
    b->collective = true;
    return KILTER_OK;
}

static kilter_status receive_on(kilter_loop *l, MPI_Comm comm, kl_batch *b, void *to, size_t bytes, int from,
                                int tag, kilter_error *error) {
    begin_anew(b);
    for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
        MPI_Request request;
        int piece = bytes - at < PIECE_BYTES ? (int)(bytes - at) : PIECE_BYTES;
        if (!reserve(b))
            return no_memory(error);
        int code = MPI_Irecv((char *)to + at, piece, MPI_BYTE, from, tag, comm, &request);
        if (code != MPI_SUCCESS)
            return kl_mpi_failed(code, "receiving rows of a loop", error);
        put_receive(b, request);
    }
    if (bytes >= EAGER_BYTES) /* its sender may wait for that */
        kl_bells_ring(l->wait.bells, (uint32_t)from);
    return KILTER_OK;
}

kilter_status kl_batch_receive(kilter_loop *l, kl_batch *b, void *to, size_t bytes, int from, int tag,
                               kilter_error *error) {
    return receive_on(l, l->comm, b, to, bytes, from, tag, error);
}

kilter_status kl_batch_send_on(MPI_Comm comm, kl_batch *b, const void *data, size_t bytes, int to, int tag,
                               kilter_error *error) {
    begin_anew(b);
    for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
        MPI_Request request;
        int piece = bytes - at < PIECE_BYTES ? (int)(bytes - at) : PIECE_BYTES;
        if (!reserve(b))
            return no_memory(error);
        int code = MPI_Isend((const char *)data + at, piece, MPI_BYTE, to, tag, comm, &request);
        if (code != MPI_SUCCESS)
            return kl_mpi_failed(code, "sending rows of a loop", error);
        put(b, request);
    }
    return KILTER_OK;
}

kilter_status kl_batch_send(kilter_loop *l, kl_batch *b, const void *data, size_t bytes, int to, int tag,
                            kilter_error *error) {
    kilter_status status = kl_batch_send_on(l->comm, b, data, bytes, to, tag, error);
    kl_bells_ring(l->wait.bells, (uint32_t)to);
    return status;
}

#ifdef MPICH

/* What fails in one of several requests is nobody's error to MPICH, and MPI_COMM_SELF's handler or
 * MPI_COMM_WORLD's, which are the program's, would end the rank. */
typedef struct handlers {
    MPI_Errhandler self, world;
} handlers;

static handlers be_told(const kilter_loop *l) {
    handlers kept = {MPI_ERRHANDLER_NULL, MPI_ERRHANDLER_NULL};
    if (!l->outlives)
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

static handlers be_told(const kilter_loop *l) {
    (void)l;
    return 0;
}
static void restore(handlers *kept) {
    (void)kept;
}

#endif

/* A large message is over for its sender when the receiver has it. */
static void ring_senders(kilter_loop *l, const kl_batch *b, int done) {
    for (int i = 0; i < done && l->wait.bells; i++) {
        int bytes = 0;
        bool receive = (size_t)b->done[i] < b->receives;
        if (receive && MPI_Get_count(&b->statuses[i], MPI_BYTE, &bytes) == MPI_SUCCESS &&
            bytes >= EAGER_BYTES)
            kl_bells_ring(l->wait.bells, (uint32_t)b->statuses[i].MPI_SOURCE);
    }
}

static kilter_status look(kilter_loop *l, kl_batch *b, bool for_ever, int *done, kilter_error *error) {
    handlers kept = be_told(l);
    int code = b->collective
                   ? kl_mpi_look_collective(&l->wait, b->requests, for_ever, done)
                   : kl_mpi_look(&l->wait, b->requests, (int)b->receives, (int)(b->count - b->receives),
                                 for_ever, done, b->done, b->statuses);
    restore(&kept);
    if (code == MPI_ERR_IN_STATUS && !b->collective)
        for (int i = 0; i < *done; i++)
            if (b->statuses[i].MPI_ERROR != MPI_SUCCESS && b->statuses[i].MPI_ERROR != MPI_ERR_PENDING)
                code = b->statuses[i].MPI_ERROR;
    if (code != MPI_SUCCESS)
        return kl_mpi_failed(code, "awaiting the other ranks of a loop", error);
    b->open -= (size_t)*done;
    if (*done > 0 && !b->collective)
        ring_senders(l, b, *done);
    return KILTER_OK;
}

kilter_status kl_batch_look(kilter_loop *l, kl_batch *b, kilter_error *error) {
    int done;
    return b->open == 0 ? KILTER_OK : look(l, b, false, &done, error);
}

kilter_status kl_batch_await(kilter_loop *l, kl_batch *b, kilter_error *error) {
    kilter_status status = KILTER_OK;
    bool waited = false;
    while (b->open > 0 && status == KILTER_OK) {
        int done;
        status = look(l, b, !kl_mpi_ranks_die, &done, error);
        if (status != KILTER_OK || done > 0 || b->open == 0)
            continue;
        if (!waited)
            kl_mpi_traffic(&l->wait);
        waited = true;
        kl_loop_rest(l, !b->collective);
        status = kl_loop_look_for_deaths_at(l, l->wait.rested_s, error);
    }
    if (waited)
        kl_mpi_waited(&l->wait);
    return status;
}

void kl_loop_rest(kilter_loop *l, bool rings) {
    kl_mpi_rest(&l->wait, rings && l->near, kl_mpi_ranks_die ? REST_MOST_S : HUGE_VAL);
}

void kl_batch_free(kl_batch *b) {
    free(b->requests);
    free(b->done);
    free(b->statuses);
    *b = (kl_batch){0};
}

/* --- all ranks --- */

kilter_status kl_reports_share(kilter_loop *l, kl_batch *b, const void *mine, void *all, size_t bytes,
                               kilter_error *error) {
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, l->comm, &request);
    return kl_batch_join(b, code, request, error);
}

void kl_reports_spread(const kilter_loop *l, void *all, size_t bytes, size_t apart) {
    for (size_t r = l->ranks; r-- > 0;)
        memmove((char *)all + r * apart, (char *)all + r * bytes, bytes);
}

static kilter_status reduce_anywhere(kilter_loop *l, MPI_Comm comm, size_t count, MPI_Datatype type,
                                     MPI_Op op, kl_batch *batch, kilter_error *error) {
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_Iallreduce(MPI_IN_PLACE, l->shared, (int)count, type, op, comm, &request);
    kilter_status status = kl_batch_join(batch, code, request, error);
    return status == KILTER_OK ? kl_batch_await(l, batch, error) : status;
}

/* What is on its way up or down between a rank and another; each waits for all of it. */
static kilter_status pass_on(kilter_loop *l, MPI_Comm comm, kl_batch *batch, const void *values, size_t bytes,
                             int to, kilter_error *error) {
    kilter_status status = kl_batch_send_on(comm, batch, values, bytes, to, KL_TAG_REDUCE, error);
    kl_bells_ring(l->wait.bells, (uint32_t)to);
    return status;
}

/* Up a binary tree to rank 0 and down again, by messages whose receivers are rung: what MPI does by itself
 * wakes nobody. */
static kilter_status reduce_near(kilter_loop *l, MPI_Comm comm, size_t count, MPI_Datatype type, MPI_Op op,
                                 kl_batch *batch, kilter_error *error) {
    int below[2] = {2 * l->rank + 1, 2 * l->rank + 2}, above = (l->rank - 1) / 2;
    size_t bytes = count * sizeof *l->shared;
    kilter_status status = KILTER_OK;
    for (int i = 0; i < 2 && below[i] < (int)l->ranks && status == KILTER_OK; i++)
        status = receive_on(l, comm, batch, l->partial[i], bytes, below[i], KL_TAG_REDUCE, error);
    if (status == KILTER_OK)
        status = kl_batch_await(l, batch, error);
    for (int i = 0; i < 2 && below[i] < (int)l->ranks && status == KILTER_OK; i++)
        status = checked(MPI_Reduce_local(l->partial[i], l->shared, (int)count, type, op),
                         "adding up what the ranks of a loop say", error);
    if (status == KILTER_OK && l->rank > 0)
        status = pass_on(l, comm, batch, l->shared, bytes, above, error);
    if (status == KILTER_OK && l->rank > 0)
        status = kl_batch_await(l, batch, error);
    if (status == KILTER_OK && l->rank > 0)
        status = receive_on(l, comm, batch, l->shared, bytes, above, KL_TAG_REDUCE, error);
    if (status == KILTER_OK && l->rank > 0)
        status = kl_batch_await(l, batch, error);
    for (int i = 0; i < 2 && below[i] < (int)l->ranks && status == KILTER_OK; i++)
        status = pass_on(l, comm, batch, l->shared, bytes, below[i], error);
    return status == KILTER_OK ? kl_batch_await(l, batch, error) : status;
}

kilter_status kl_loop_reduce(kilter_loop *l, MPI_Comm comm, void *values, size_t count, MPI_Datatype type,
                             MPI_Op op, kilter_error *error) {
    kl_batch batch = {0};
    memcpy(l->shared, values, count * sizeof *l->shared);
    kilter_status status = (l->near ? reduce_near : reduce_anywhere)(l, comm, count, type, op, &batch, error);
    kl_batch_free(&batch);
    if (status == KILTER_OK)
        memcpy(values, l->shared, count * sizeof *l->shared);
    return status;
}

kilter_status kl_loop_least_on(kilter_loop *l, MPI_Comm comm, uint64_t *values, size_t count,
                               kilter_error *error) {
    return kl_loop_reduce(l, comm, values, count, MPI_UINT64_T, MPI_MIN, error);
}

kilter_status kl_loop_least(kilter_loop *l, uint64_t *values, size_t count, kilter_error *error) {
    return kl_loop_least_on(l, l->comm, values, count, error);
}

kilter_status kl_loop_most_f64(kilter_loop *l, double *values, size_t count, kilter_error *error) {
    return kl_loop_reduce(l, l->comm, values, count, MPI_DOUBLE, MPI_MAX, error);
}
