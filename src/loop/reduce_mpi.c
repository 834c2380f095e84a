/* Reduce the rows of an array to one value by a function of the program. Each rank folds (combines) its rows,
 * and rank 0 folds the results of all ranks. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loop/fold.h"
#include "loop/loop_mpi.h"

void kilter_loop_least(void *left, const void *right, uint64_t bytes, void *user) {
    double *least = left;
    const double *other = right;
    (void)user;
    for (uint64_t i = 0; i < bytes / sizeof *least; i++)
        least[i] = fmin(least[i], other[i]);
}

void kilter_loop_most(void *left, const void *right, uint64_t bytes, void *user) {
    double *most = left;
    const double *other = right;
    (void)user;
    for (uint64_t i = 0; i < bytes / sizeof *most; i++)
        most[i] = fmax(most[i], other[i]);
}

static kilter_status no_memory(const kilter_loop *l, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_MEMORY, "reducing rows of loop '%s': memory ran out", l->name);
}

static bool fold_own(kilter_loop *l, const kl_array *array, kl_fold *fold) {
    kl_span own;
    bool fits = true;
    for (size_t k = 0; kl_loop_array_own(l, array, k, &own); k++)
        for (uint64_t i = own.lo; i < own.hi && fits; i++)
            fits = kl_fold_add(fold, (kl_segment){i, 0}, kl_row_at(array, i));
    return fits;
}

static kl_mail mail_of(int peer, void *data, size_t bytes) {
    return (kl_mail){.data = data, .bytes = bytes, .peer = peer, .tag = KL_TAG_GATHER};
}

/* Send the segments of a fold to rank 0. count: memory for the number of segments, which is sent first */
static kilter_status send_fold(kilter_loop *l, kl_fold *fold, uint64_t *count, kilter_error *error) {
    kl_group *g = &l->bundle->group;
    kl_requests *requests = kl_loop_requests(&l->rank.exchange.set);
    *count = fold->count;
    kilter_status status =
        requests ? kl_send(g, requests, mail_of(0, count, sizeof *count), error) : no_memory(l, error);
    if (status == KILTER_OK)
        status = kl_send(g, requests, mail_of(0, fold->segments, *count * sizeof *fold->segments), error);
    if (status == KILTER_OK)
        status = kl_send(g, requests, mail_of(0, fold->values, *count * fold->bytes), error);
    return status == KILTER_OK ? kl_requests_await(g, requests, error) : status;
}

static kilter_status receive_fold(kilter_loop *l, int from, kl_fold *all, uint64_t *count,
                                  kilter_error *error) {
    kl_group *g = &l->bundle->group;
    kl_requests *requests = kl_loop_requests(&l->rank.exchange.set);
    kilter_status status =
        requests ? kl_receive(g, requests, mail_of(from, count, sizeof *count), error) : no_memory(l, error);
    if (status == KILTER_OK)
        status = kl_requests_await(g, requests, error);
    if (status == KILTER_OK && !kl_fold_reserve(all, all->count + *count))
        status = no_memory(l, error);
    if (status != KILTER_OK)
        return status;
    kl_mail segments = mail_of(from, all->segments + all->count, *count * sizeof *all->segments);
    kl_mail values = mail_of(from, all->values + all->count * all->bytes, *count * all->bytes);
    status = kl_receive(g, requests, segments, error);
    if (status == KILTER_OK)
        status = kl_receive(g, requests, values, error);
    if (status == KILTER_OK)
        status = kl_requests_await(g, requests, error);
    all->count += *count;
    return status;
}

/* The memory of a reduction. It is not freed after a failure, because MPI may still use it. */
typedef struct reduction {
    kl_fold own, all; /* own: segments of this rank; all: on rank 0, segments of all ranks */
    uint64_t count;
    uint8_t *value; /* the result of the reduction, on each rank */
} reduction;

static void free_reduction(reduction *r) {
    kl_fold_free(&r->own);
    kl_fold_free(&r->all);
    free(r->value);
    free(r);
}

static reduction *new_reduction(size_t bytes, kilter_loop_combine combine, void *user) {
    reduction *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->own = r->all = (kl_fold){.bytes = bytes, .combine = combine, .user = user};
    r->value = malloc(bytes);
    if (r->value)
        return r;
    free_reduction(r);
    return NULL;
}

/* Fold the segments of all ranks on rank 0. */
static kilter_status fold_all(kilter_loop *l, reduction *r, kilter_error *error) {
    kilter_status status = KILTER_OK;
    kl_fold root = {.bytes = r->own.bytes, .combine = r->own.combine, .user = r->own.user};
    if (l->bundle->group.rank > 0)
        return send_fold(l, &r->own, &r->count, error);
    bool fits = kl_fold_append(&r->all, &r->own);
    for (int rank = 1; rank < (int)l->bundle->group.ranks && fits && status == KILTER_OK; rank++)
        status = receive_fold(l, rank, &r->all, &r->count, error);
    if (status == KILTER_OK)
        fits = fits && kl_fold_add_all(&root, &r->all);
    if (status == KILTER_OK && fits)
        memcpy(r->value, kl_fold_value(&root), r->own.bytes);
    kl_fold_free(&root);
    return fits ? status : no_memory(l, error);
}

static kilter_status reduce(kilter_loop *l, const kl_array *array, reduction *r, kilter_error *error) {
    kl_group *g = &l->bundle->group;
    MPI_Request request = MPI_REQUEST_NULL;
    l->bundle->calls_program = true;
    bool fits = r && fold_own(l, array, &r->own);
    kilter_status status = fits ? fold_all(l, r, error) : no_memory(l, error);
    l->bundle->calls_program = false;
    if (l->bundle->phase == KL_BROKEN)
        return l->bundle->failure.status;
    if (status != KILTER_OK || g->ranks == 1)
        return status;
    int code = MPI_Ibcast(r->value, (int)r->own.bytes, MPI_BYTE, 0, g->comm, &request);
    return kl_group_await(g, code, request, error);
}

static kilter_status check_reduction(kilter_loop *l, const kl_array *array, kilter_loop_combine combine,
                                     const void *result) {
    kilter_status status = kl_loop_check_collect(l, "kilter_loop_reduce()", array, result);
    if (status == KILTER_OK && !combine)
        status = kl_loop_misused(l, "kilter_loop_reduce()", "the function that combines values is NULL");
    if (status == KILTER_OK && array->bytes > INT_MAX)
        status = kl_loop_misused(l, "kilter_loop_reduce()", "a row has more than 2 GiB");
    return status;
}

kilter_status kilter_loop_reduce(kilter_loop *l, const void *base, kilter_loop_combine combine, void *user,
                                 void *result, kilter_error *error) {
    kilter_status status = kl_loop_enter(l, "kilter_loop_reduce()", error);
    if (status != KILTER_OK)
        return status;
    kl_bundle *b = l->bundle;
    const kl_array *array = kl_loop_array_at(l, base);
    reduction *r;
    status = check_reduction(l, array, combine, result);
    if (status == KILTER_OK) {
        kl_step(&b->steps, KL_CALL_REDUCE, kl_meter_sweep(&l->rank.meter), kl_loop_index_of(l, array), 0);
        status = kl_steps_meet(&b->steps, NULL, &b->failure);
    }
    if (status == KILTER_OK) {
        r = new_reduction(array->bytes, combine, user);
        status = reduce(l, array, r, &b->failure);
    }
    if (status != KILTER_OK)
        return kl_loop_failed(l, status, error);
    memcpy(result, r->value, array->bytes);
    free_reduction(r);
    return KILTER_OK;
}
