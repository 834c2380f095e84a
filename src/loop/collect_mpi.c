/* Return own ranges, sum rows and gather rows between two sweeps. */
#include <stdlib.h>
#include <string.h>

#include "loop/loop_mpi.h"

bool kilter_loop_mine(kilter_loop *l, size_t nth, kilter_range *range) {
    kl_span own;
    if (kl_loop_enter(l, "kilter_loop_mine()", NULL) != KILTER_OK)
        return false;
    if (l->phase == KL_WITHIN) {
        kl_loop_misused(l, "kilter_loop_mine()", "a sweep is under way; end it first");
        kl_loop_break(l);
    }
    if (l->phase != KL_BETWEEN || !kl_rank_own(&l->rank, nth, &own))
        return false;
    *range = (kilter_range){own.lo, own.hi};
    return true;
}

static const kl_array *array_at(const kilter_loop *l, const void *base) {
    const kl_layout *layout = &l->rank.layout;
    for (size_t a = 0; a < layout->array_count; a++)
        if (layout->arrays[a].base == base)
            return &layout->arrays[a];
    return NULL;
}

static size_t index_of(const kilter_loop *l, const kl_array *array) {
    return (size_t)(array - l->rank.layout.arrays);
}

static kilter_status check(kilter_loop *l, const char *call, const kl_array *array, const void *to) {
    const char *wrong = NULL;
    if (l->phase == KL_WITHIN)
        wrong = "a sweep is under way; end it first";
    else if (!array)
        wrong = "the argument is not the base of an attached array";
    else if (!to)
        wrong = "the pointer for the result is NULL";
    return wrong ? kl_loop_misused(l, call, wrong) : KILTER_OK;
}

static kilter_status sum_up(kilter_loop *l, const double *values, double *sum, kilter_error *error) {
    kilter_sum all = {{0}, 0};
    kl_span own;
    for (size_t k = 0; kl_rank_own(&l->rank, k, &own); k++)
        for (uint64_t i = own.lo; i < own.hi; i++)
            kilter_sum_add(&all, values[i]);
    kl_sum_tidy(&all);
    kilter_status status = kl_steps_meet(&l->steps, all.word, error);
    if (status == KILTER_OK)
        *sum = kilter_sum_value(&all);
    return status;
}

kilter_status kilter_loop_sum(kilter_loop *l, const double *values, double *sum, kilter_error *error) {
    kilter_status status = kl_loop_enter(l, "kilter_loop_sum()", error);
    if (status != KILTER_OK)
        return status;
    const kl_array *array = array_at(l, values);
    status = check(l, "kilter_loop_sum()", array, sum);
    if (status == KILTER_OK && array->bytes != sizeof(double))
        status = kl_fail(&l->failure, KILTER_ERR_USAGE,
                         "kilter_loop_sum() of loop '%s': rows of the array have %zu bytes, not 8",
                         l->group.name, array->bytes);
    if (status == KILTER_OK) {
        kl_step(&l->steps, KL_CALL_SUM, kl_meter_sweep(&l->rank.meter), index_of(l, array), 0);
        status = sum_up(l, values, sum, &l->failure);
    }
    return status == KILTER_OK ? KILTER_OK : kl_loop_failed(l, status, error);
}

/* --- gathering: the number of ranges, the ranges, and their rows --- */

static kilter_status no_memory(const kilter_loop *l, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_MEMORY, "gathering rows of loop '%s': memory ran out", l->group.name);
}

static kl_mail mail_of(int peer, void *data, size_t bytes) {
    return (kl_mail){.data = data, .bytes = bytes, .peer = peer, .tag = KL_TAG_GATHER};
}

static kilter_status send_own(kilter_loop *l, const kl_array *array, int root, kilter_error *error) {
    kl_group *g = &l->group;
    kl_requests *requests = kl_loop_requests(&l->rank.exchange.set);
    kl_ranges own = {0};
    kl_span range;
    bool fits = true;
    for (size_t k = 0; kl_rank_own(&l->rank, k, &range); k++)
        fits &= kl_ranges_add(&own, range);
    if (!fits)
        return no_memory(l, error);
    uint64_t count = own.count;
    kilter_status status = kl_send(g, requests, mail_of(root, &count, sizeof count), error);
    if (status == KILTER_OK)
        status = kl_send(g, requests, mail_of(root, own.at, own.count * sizeof *own.at), error);
    for (size_t k = 0; k < own.count && status == KILTER_OK; k++) {
        size_t bytes = (size_t)kl_length(own.at[k]) * array->bytes;
        status = kl_send(g, requests, mail_of(root, kl_row_at(array, own.at[k].lo), bytes), error);
    }
    if (status == KILTER_OK)
        status = kl_requests_await(g, requests, error);
    if (status == KILTER_OK)
        kl_ranges_free(&own); /* after a failure MPI may still read these ranges */
    return status;
}

static kilter_status receive(kilter_loop *l, kl_mail mail, kilter_error *error) {
    kilter_status status = kl_receive(&l->group, l->rank.exchange.set.requests, mail, error);
    return status == KILTER_OK ? kl_requests_await(&l->group, l->rank.exchange.set.requests, error) : status;
}

static kilter_status receive_from(kilter_loop *l, size_t row_bytes, int rank, uint8_t *whole,
                                  kilter_error *error) {
    kl_requests *requests = kl_loop_requests(&l->rank.exchange.set);
    kilter_status status = receive(l, mail_of(rank, l->group.shared, sizeof *l->group.shared), error);
    uint64_t count = (uint64_t)l->group.shared[0];
    if (status != KILTER_OK || count == 0)
        return status;
    kl_span *ranges = malloc(count * sizeof *ranges);
    if (!ranges)
        return no_memory(l, error);
    status = receive(l, mail_of(rank, ranges, count * sizeof *ranges), error);
    for (uint64_t k = 0; k < count && status == KILTER_OK; k++) {
        size_t bytes = (size_t)kl_length(ranges[k]) * row_bytes;
        status =
            kl_receive(&l->group, requests, mail_of(rank, whole + ranges[k].lo * row_bytes, bytes), error);
    }
    if (status == KILTER_OK)
        status = kl_requests_await(&l->group, requests, error);
    if (status == KILTER_OK)
        free(ranges); /* after a failure MPI may still write into these ranges */
    return status;
}

static kilter_status gather(kilter_loop *l, const kl_array *array, int root, uint8_t *whole,
                            kilter_error *error) {
    kl_span own;
    if (l->group.rank != root)
        return send_own(l, array, root, error);
    for (size_t k = 0; kl_rank_own(&l->rank, k, &own); k++)
        memcpy(whole + own.lo * array->bytes, kl_row_at(array, own.lo),
               (size_t)kl_length(own) * array->bytes);
    kilter_status status = KILTER_OK;
    for (int r = 0; r < (int)l->group.ranks && status == KILTER_OK; r++)
        if (r != root)
            status = receive_from(l, array->bytes, r, whole, error);
    return status;
}

kilter_status kilter_loop_gather(kilter_loop *l, const void *base, int root, void *whole,
                                 kilter_error *error) {
    kilter_status status = kl_loop_enter(l, "kilter_loop_gather()", error);
    if (status != KILTER_OK)
        return status;
    const kl_array *array = array_at(l, base);
    const void *to = l->group.rank == root ? whole : l; /* other ranks do not use this pointer */
    status = check(l, "kilter_loop_gather()", array, to);
    if (status == KILTER_OK && (root < 0 || root >= (int)l->group.ranks))
        status = kl_fail(&l->failure, KILTER_ERR_USAGE,
                         "kilter_loop_gather() of loop '%s': there is no rank %d", l->group.name, root);
    if (status == KILTER_OK) {
        kl_step(&l->steps, KL_CALL_GATHER, kl_meter_sweep(&l->rank.meter), index_of(l, array), root);
        status = kl_steps_meet(&l->steps, NULL, &l->failure);
    }
    if (status == KILTER_OK)
        status = gather(l, array, root, whole, &l->failure);
    return status == KILTER_OK ? KILTER_OK : kl_loop_failed(l, status, error);
}
