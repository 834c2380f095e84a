/* What is asked of a loop between two executions. */
#include <stdlib.h>
#include <string.h>

#include "loop/loop_mpi.h"
#include "loop/sum.h"

bool kl_loop_own_at(const kilter_loop *l, size_t nth, kl_span *range) {
    if (l->scatter) {
        const kl_spans *own = kl_scatter_own(l);
        if (nth < own->count)
            *range = own->at[nth];
        return nth < own->count;
    }
    *range = kl_loop_own(l);
    return nth == 0 && range->lo < range->hi;
}

bool kilter_loop_mine(kilter_loop *l, size_t nth, kilter_range *range) {
    kl_span own;
    if (l->phase == KL_WITHIN) {
        kl_fail(&l->failure, KILTER_ERR_USAGE,
                "kilter_loop_mine() of loop '%s': an execution is under way; end it first", l->name);
        kl_loop_break(l);
    }
    if (l->phase != KL_BETWEEN || !kl_loop_own_at(l, nth, &own))
        return false;
    *range = (kilter_range){own.lo, own.hi};
    return true;
}

static const kl_array *array_at(const kilter_loop *l, const void *base) {
    for (size_t a = 0; a < l->array_count; a++)
        if (l->arrays[a].rows.base == base)
            return &l->arrays[a];
    return NULL;
}

static size_t index_of(const kilter_loop *l, const kl_array *array) {
    return (size_t)(array - l->arrays);
}

static kilter_status check(kilter_loop *l, const char *call, const kl_array *array, const void *to,
                           kilter_error *error) {
    if (l->phase == KL_WITHIN)
        return kl_fail(error, KILTER_ERR_USAGE, "%s of loop '%s': an execution is under way; end it first",
                       call, l->name);
    if (!array)
        return kl_fail(error, KILTER_ERR_USAGE, "%s of loop '%s': that is not the base of an attached array",
                       call, l->name);
    if (!to)
        return kl_fail(error, KILTER_ERR_USAGE, "%s of loop '%s': NULL is no place for the result", call,
                       l->name);
    return KILTER_OK;
}

static kilter_status sum_up(kilter_loop *l, const double *values, double *sum, kilter_error *error) {
    kl_sum all = {{0}, 0};
    kl_span own;
    for (size_t k = 0; kl_loop_own_at(l, k, &own); k++)
        for (uint64_t i = own.lo; i < own.hi; i++)
            kl_sum_add(&all, values[i]);
    kl_sum_tidy(&all);
    kilter_status status = kl_steps_meet(l, all.word, error);
    if (status == KILTER_OK)
        *sum = kl_sum_value(&all);
    return status;
}

kilter_status kilter_loop_sum(kilter_loop *l, const double *values, double *sum, kilter_error *error) {
    if (l->phase == KL_BROKEN)
        return kl_loop_failed(l, l->failure.status, error);
    const kl_array *array = array_at(l, values);
    kilter_status status = check(l, "kilter_loop_sum()", array, sum, &l->failure);
    if (status == KILTER_OK && array->rows.bytes != sizeof(double))
        status = kl_fail(&l->failure, KILTER_ERR_USAGE,
                         "kilter_loop_sum() of loop '%s': rows of the array have %zu bytes, not 8", l->name,
                         array->rows.bytes);
    if (status == KILTER_OK) {
        kl_step(l, KL_CALL_SUM, index_of(l, array), 0);
        status = sum_up(l, values, sum, &l->failure);
    }
    return status == KILTER_OK ? KILTER_OK : kl_loop_failed(l, status, error);
}

/* How many ranges, which, and their rows. */
static kilter_status send_own(kilter_loop *l, const kl_rows *rows, int root, kilter_error *error) {
    kl_batch *batch = &l->exchange;
    kl_spans own = {0};
    kl_span range;
    bool fits = true;
    for (size_t k = 0; kl_loop_own_at(l, k, &range); k++)
        fits &= kl_spans_add(&own, range);
    if (!fits)
        return kl_fail(error, KILTER_ERR_MEMORY, "gathering rows of loop '%s': memory ran out", l->name);
    uint64_t count = own.count;
    kilter_status status = kl_batch_send(l, batch, &count, sizeof count, root, KL_TAG_GATHER, error);
    if (status == KILTER_OK)
        status = kl_batch_send(l, batch, own.at, own.count * sizeof *own.at, root, KL_TAG_GATHER, error);
    for (size_t k = 0; k < own.count && status == KILTER_OK; k++)
        status =
            kl_batch_send(l, batch, kl_rows_at(rows, own.at[k].lo),
                          (size_t)(own.at[k].hi - own.at[k].lo) * rows->bytes, root, KL_TAG_GATHER, error);
    if (status == KILTER_OK)
        status = kl_batch_await(l, batch, error);
    if (status == KILTER_OK)
        kl_spans_free(&own); /* else MPI may still read it */
    return status;
}

static kilter_status receive(kilter_loop *l, void *to, size_t bytes, int from, kilter_error *error) {
    kilter_status status = kl_batch_receive(l, &l->exchange, to, bytes, from, KL_TAG_GATHER, error);
    return status == KILTER_OK ? kl_batch_await(l, &l->exchange, error) : status;
}

static kilter_status receive_from(kilter_loop *l, size_t row_bytes, int rank, uint8_t *whole,
                                  kilter_error *error) {
    kilter_status status = receive(l, l->shared, sizeof *l->shared, rank, error);
    uint64_t count = (uint64_t)l->shared[0];
    if (status != KILTER_OK || count == 0)
        return status;
    kl_span *ranges = malloc(count * sizeof *ranges);
    if (!ranges)
        return kl_fail(error, KILTER_ERR_MEMORY, "gathering rows of loop '%s': memory ran out", l->name);
    status = receive(l, ranges, count * sizeof *ranges, rank, error);
    for (uint64_t k = 0; k < count && status == KILTER_OK; k++)
        status =
            kl_batch_receive(l, &l->exchange, whole + ranges[k].lo * row_bytes,
                             (size_t)(ranges[k].hi - ranges[k].lo) * row_bytes, rank, KL_TAG_GATHER, error);
    if (status == KILTER_OK)
        status = kl_batch_await(l, &l->exchange, error);
    if (status == KILTER_OK)
        free(ranges); /* else MPI may still write into it */
    return status;
}

static kilter_status gather(kilter_loop *l, const kl_rows *rows, int root, uint8_t *whole,
                            kilter_error *error) {
    kl_span own;
    if (l->rank != root)
        return send_own(l, rows, root, error);
    for (size_t k = 0; kl_loop_own_at(l, k, &own); k++)
        memcpy(whole + own.lo * rows->bytes, kl_rows_at(rows, own.lo),
               (size_t)(own.hi - own.lo) * rows->bytes);
    kilter_status status = KILTER_OK;
    for (int r = 0; r < (int)l->ranks && status == KILTER_OK; r++)
        if (r != root)
            status = receive_from(l, rows->bytes, r, whole, error);
    return status;
}

kilter_status kilter_loop_gather(kilter_loop *l, const void *base, int root, void *whole,
                                 kilter_error *error) {
    if (l->phase == KL_BROKEN)
        return kl_loop_failed(l, l->failure.status, error);
    const kl_array *array = array_at(l, base);
    const void *to = l->rank == root ? whole : l; /* elsewhere not looked at */
    kilter_status status = check(l, "kilter_loop_gather()", array, to, &l->failure);
    if (status == KILTER_OK && (root < 0 || root >= (int)l->ranks))
        status = kl_fail(&l->failure, KILTER_ERR_USAGE,
                         "kilter_loop_gather() of loop '%s': there is no rank %d", l->name, root);
    if (status == KILTER_OK) {
        kl_step(l, KL_CALL_GATHER, index_of(l, array), root);
        status = kl_steps_meet(l, NULL, &l->failure);
    }
    if (status == KILTER_OK)
        status = gather(l, &array->rows, root, whole, &l->failure);
    return status == KILTER_OK ? KILTER_OK : kl_loop_failed(l, status, error);
}

void kl_loop_summary_get(const kilter_loop *l, kilter_loop_summary *summary) {
    *summary = l->summary;
    summary->depth = l->depth;
    summary->block = kl_loop_pipelined(l) ? l->block : 0;
    summary->gained_s = l->steer ? kl_steer_account(l->steer)->forecast_s : 0;
    summary->came_s = l->steer ? kl_steer_account(l->steer)->came_s : 0;
    summary->decision = l->decision[0]     ? l->decision
                        : l->ranks == 1    ? "nothing moves: there is one rank"
                        : l->options.fixed ? "nothing moves: the loop is fixed"
                                           : "nothing was decided yet";
}
