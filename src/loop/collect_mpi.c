/* Calls between two sweeps: the ranges of this rank, and sums over rows. */
#include "loop/loop_mpi.h"

bool kilter_loop_mine(kilter_loop *l, size_t nth, kilter_range *range) {
    kl_span own;
    if (kl_loop_enter(l, "kilter_loop_mine()", NULL) != KILTER_OK)
        return false;
    if (l->bundle->phase == KL_WITHIN) {
        kl_loop_misused(l, "kilter_loop_mine()", "a sweep is under way; end it first");
        kl_loop_break(l);
    }
    if (l->bundle->phase != KL_BETWEEN || !kl_rank_own(&l->rank, nth, &own))
        return false;
    *range = (kilter_range){own.lo, own.hi};
    return true;
}

kilter_status kl_loop_check_collect(kilter_loop *l, const char *call, const kl_array *array,
                                    const void *other) {
    const char *wrong = NULL;
    if (l->bundle->phase == KL_WITHIN)
        wrong = "a sweep is under way; end it first";
    else if (!array)
        wrong = "the argument is not the base of an attached array";
    else if (!other)
        wrong = "the pointer for the result is NULL";
    return wrong ? kl_loop_misused(l, call, wrong) : KILTER_OK;
}

static kilter_status sum_up(kilter_loop *l, const kl_array *array, double *sum, kilter_error *error) {
    kilter_sum all = {{0}, 0};
    kl_span own;
    for (size_t k = 0; kl_loop_array_own(l, array, k, &own); k++)
        for (uint64_t i = own.lo; i < own.hi; i++)
            kilter_sum_add(&all, *(const double *)(const void *)kl_row_at(array, i));
    kl_sum_tidy(&all);
    kilter_status status = kl_steps_meet(&l->bundle->steps, all.word, error);
    if (status == KILTER_OK)
        *sum = kilter_sum_value(&all);
    return status;
}

kilter_status kilter_loop_sum(kilter_loop *l, const double *values, double *sum, kilter_error *error) {
    kilter_status status = kl_loop_enter(l, "kilter_loop_sum()", error);
    if (status != KILTER_OK)
        return status;
    const kl_array *array = kl_loop_array_at(l, values);
    status = kl_loop_check_collect(l, "kilter_loop_sum()", array, sum);
    if (status == KILTER_OK && array->bytes != sizeof(double))
        status = kl_fail(&l->bundle->failure, KILTER_ERR_USAGE,
                         "kilter_loop_sum() of loop '%s': rows of the array have %zu bytes, not 8", l->name,
                         array->bytes);
    if (status == KILTER_OK) {
        kl_step(&l->bundle->steps, KL_CALL_SUM, kl_meter_sweep(&l->rank.meter), kl_loop_index_of(l, array),
                0);
        status = sum_up(l, array, sum, &l->bundle->failure);
    }
    return status == KILTER_OK ? KILTER_OK : kl_loop_failed(l, status, error);
}
