/* Copy all rows of an array to one rank (root), or from root to the ranks that have the rows. In scattered
 * loops root does not know the ranges of the other ranks. So each rank sends the number of its ranges, and
 * then the ranges. */
#include <stdlib.h>
#include <string.h>

#include "loop/loop_mpi.h"

typedef struct copying { /* A call that copies the rows of an array to root or from root. */
    const kl_array *array;
    int root;
    uint8_t *whole;    /* on root: memory of all rows */
    bool gathers;      /* true: rows are copied to root; false: from root */
    const char *doing; /* what the call does, for error messages */
} copying;

static kilter_status no_memory(const kilter_loop *l, const copying *c, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_MEMORY, "%s rows of loop '%s': memory ran out", c->doing, l->name);
}

static kl_mail mail_of(int peer, void *data, size_t bytes) {
    return (kl_mail){.data = data, .bytes = bytes, .peer = peer, .tag = KL_TAG_GATHER};
}

static kilter_status await(kilter_loop *l, kilter_status status, kilter_error *error) {
    kl_requests *requests = l->rank.exchange.set.requests;
    return status == KILTER_OK ? kl_requests_await(&l->bundle->group, requests, error) : status;
}

/* Send or receive the rows of a range, between root and rank `peer`. */
static kilter_status pass(kilter_loop *l, const copying *c, int peer, kl_span rows, kilter_error *error) {
    kl_group *g = &l->bundle->group;
    bool is_root = g->rank == c->root;
    uint8_t *base = is_root ? c->whole : c->array->base;
    kl_mail mail = mail_of(peer, base + rows.lo * c->array->bytes, (size_t)kl_length(rows) * c->array->bytes);
    return (is_root != c->gathers ? kl_send : kl_receive)(g, l->rank.exchange.set.requests, mail, error);
}

/* --- what ranks other than root do --- */

static kilter_status tell_ranges(kilter_loop *l, const copying *c, uint64_t *count, kl_ranges *own,
                                 kilter_error *error) {
    kl_group *g = &l->bundle->group;
    kl_requests *requests = l->rank.exchange.set.requests;
    *count = own->count;
    kilter_status status = kl_send(g, requests, mail_of(c->root, count, sizeof *count), error);
    if (status == KILTER_OK)
        status = kl_send(g, requests, mail_of(c->root, own->at, own->count * sizeof *own->at), error);
    return status;
}

static kilter_status copy_own(kilter_loop *l, const copying *c, kilter_error *error) {
    kl_ranges own = {0};
    kl_span range;
    uint64_t count;
    bool fits = true;
    for (size_t k = 0; kl_loop_array_own(l, c->array, k, &range); k++)
        fits &= kl_ranges_add(&own, range);
    if (!fits)
        return no_memory(l, c, error);
    kilter_status status = tell_ranges(l, c, &count, &own, error);
    for (size_t k = 0; k < own.count && status == KILTER_OK; k++)
        status = pass(l, c, c->root, own.at[k], error);
    status = await(l, status, error);
    if (status == KILTER_OK)
        kl_ranges_free(&own); /* not freed after a failure, because MPI may still read the ranges */
    return status;
}

/* --- root --- */

static kilter_status hear(kilter_loop *l, kl_mail mail, kilter_error *error) {
    kilter_status status = kl_receive(&l->bundle->group, l->rank.exchange.set.requests, mail, error);
    return await(l, status, error);
}

static kilter_status copy_of(kilter_loop *l, const copying *c, int rank, kilter_error *error) {
    /* receive into memory that stays allocated after a failure, because MPI may still write into it */
    uint64_t *shared = (uint64_t *)l->bundle->group.shared;
    kilter_status status = hear(l, mail_of(rank, shared, sizeof *shared), error);
    uint64_t count = *shared;
    if (status != KILTER_OK || count == 0)
        return status;
    kl_span *ranges = malloc(count * sizeof *ranges);
    if (!ranges)
        return no_memory(l, c, error);
    status = hear(l, mail_of(rank, ranges, count * sizeof *ranges), error);
    for (uint64_t k = 0; k < count && status == KILTER_OK; k++)
        status = pass(l, c, rank, ranges[k], error);
    status = await(l, status, error);
    if (status == KILTER_OK)
        free(ranges); /* not freed after a failure, because MPI may still write into the ranges */
    return status;
}

static void copy_here(kilter_loop *l, const copying *c) {
    size_t bytes = c->array->bytes;
    kl_span own;
    for (size_t k = 0; kl_loop_array_own(l, c->array, k, &own); k++) {
        uint8_t *here = kl_row_at(c->array, own.lo), *there = c->whole + own.lo * bytes;
        memcpy(c->gathers ? there : here, c->gathers ? here : there, (size_t)kl_length(own) * bytes);
    }
}

static kilter_status copy_all(kilter_loop *l, const copying *c, kilter_error *error) {
    kilter_status status = kl_loop_requests(&l->rank.exchange.set) ? KILTER_OK : no_memory(l, c, error);
    if (status != KILTER_OK || l->bundle->group.rank != c->root)
        return status == KILTER_OK ? copy_own(l, c, error) : status;
    copy_here(l, c);
    for (int r = 0; r < (int)l->bundle->group.ranks && status == KILTER_OK; r++)
        if (r != c->root)
            status = copy_of(l, c, r, error);
    return status;
}

/* --- the public calls to gather and scatter --- */

static kilter_status check(kilter_loop *l, const char *call, const copying *c) {
    const kl_group *g = &l->bundle->group;
    const void *whole = g->rank == c->root ? (const void *)c->whole : l; /* only root uses this pointer */
    kilter_status status = kl_loop_check_collect(l, call, c->array, whole);
    if (status == KILTER_OK && (c->root < 0 || c->root >= (int)g->ranks))
        status = kl_fail(&l->bundle->failure, KILTER_ERR_USAGE, "%s of loop '%s': there is no rank %d", call,
                         l->name, c->root);
    return status;
}

static kilter_status copy(kilter_loop *l, const char *call, const copying *c, kilter_error *error) {
    kl_bundle *b = l->bundle;
    kilter_status status = check(l, call, c);
    if (status == KILTER_OK) {
        kl_step(&b->steps, c->gathers ? KL_CALL_GATHER : KL_CALL_SCATTER, kl_meter_sweep(&l->rank.meter),
                kl_loop_index_of(l, c->array), c->root);
        status = kl_steps_meet(&b->steps, NULL, &b->failure);
    }
    if (status == KILTER_OK)
        status = copy_all(l, c, &b->failure);
    return status == KILTER_OK ? KILTER_OK : kl_loop_failed(l, status, error);
}

kilter_status kilter_loop_gather(kilter_loop *l, const void *base, int root, void *whole,
                                 kilter_error *error) {
    kilter_status status = kl_loop_enter(l, "kilter_loop_gather()", error);
    if (status != KILTER_OK)
        return status;
    const copying c = {kl_loop_array_at(l, base), root, whole, true, "gathering"};
    return copy(l, "kilter_loop_gather()", &c, error);
}

kilter_status kilter_loop_scatter(kilter_loop *l, void *base, int root, const void *whole,
                                  kilter_error *error) {
    kilter_status status = kl_loop_enter(l, "kilter_loop_scatter()", error);
    if (status != KILTER_OK)
        return status;
    const copying c = {kl_loop_array_at(l, base), root, (uint8_t *)(uintptr_t)whole, false, "scattering"};
    return copy(l, "kilter_loop_scatter()", &c, error);
}
