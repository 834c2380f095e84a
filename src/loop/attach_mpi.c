/* Attach arrays to a loop. */
#include <stdlib.h>

#include "loop/loop_mpi.h"

static kilter_status check_array(const kilter_loop *l, size_t bytes, uint64_t halo, void **base,
                                 kilter_error *error) {
    const char *wrong = NULL;
    if (bytes == 0)
        wrong = "rows must have at least 1 byte";
    else if (halo > 0 && l->options.scattered)
        wrong = "a scattered loop's arrays have no ghost rows";
    else if (l->options.inner > 0 && (bytes % l->options.inner != 0 || halo > 1))
        wrong = "in a loop of kind KILTER_DOACROSS bytes must be a multiple of inner, and ghost at most 1";
    else if (!base)
        wrong = "the pointer for its address is NULL";
    return wrong ? kl_fail(error, KILTER_ERR_RANGE, "attaching array %zu to loop '%s': %s",
                           l->rank.layout.array_count, l->group.name, wrong)
                 : KILTER_OK;
}

static kilter_status agree_on_array(kilter_loop *l, size_t bytes, uint64_t halo, void **base,
                                    kilter_error *error) {
    static const char *const names[] = {"bytes", "ghost", "base (NULL)"};
    const uint64_t values[] = {bytes, halo, base == NULL};
    const char *differs;
    kl_step(&l->steps, KL_CALL_ARRAY, kl_meter_sweep(&l->rank.meter), l->rank.layout.array_count, 0);
    kilter_status status = kl_steps_meet(&l->steps, NULL, error);
    if (status == KILTER_OK)
        status = kl_group_agree(&l->group, values, names, sizeof names / sizeof *names, &differs, error);
    if (status == KILTER_OK && differs)
        return kl_fail(
            error, KILTER_ERR_RANGE,
            "attaching array %zu to loop '%s': '%s' differs between ranks (here: bytes %zu, ghost %llu)",
            l->rank.layout.array_count, l->group.name, differs, bytes, (unsigned long long)halo);
    return status;
}

static kilter_status get_rows(kilter_loop *l, size_t bytes, uint64_t halo, kl_rows *rows,
                              kilter_error *error) {
    kilter_error why = {KILTER_OK, "another rank has no memory for its rows"};
    kilter_status status = kl_rows_reserve(rows, l->options.iterations, bytes, &why);
    if (status == KILTER_OK)
        status = kl_rows_take(
            rows, kl_layout_with_halo(&l->rank.layout, kl_layout_own(&l->rank.layout), halo), &why);
    uint64_t fits = status == KILTER_OK;
    status = kl_group_least(&l->group, &fits, 1, error);
    if (status != KILTER_OK || fits)
        return status;
    kl_rows_release(rows);
    return kl_fail(error, why.status == KILTER_OK ? KILTER_ERR_MEMORY : why.status, "loop '%s': %s",
                   l->group.name, why.text);
}

static kilter_status attach(kilter_loop *l, size_t bytes, uint64_t halo, void **base, kilter_error *error) {
    kilter_status status = agree_on_array(l, bytes, halo, base, error);
    if (status == KILTER_OK)
        status = check_array(l, bytes, halo, base, error);
    if (status != KILTER_OK)
        return status;
    halo = halo < l->options.iterations ? halo : l->options.iterations;
    kl_rows rows = {0};
    uint64_t fits = kl_memory_grow(&l->memory) && kl_rank_grow(&l->rank);
    status = kl_group_least(&l->group, &fits, 1, error);
    if (status == KILTER_OK && !fits)
        return kl_fail(error, KILTER_ERR_MEMORY, "attaching an array to loop '%s': memory ran out",
                       l->group.name);
    if (status == KILTER_OK)
        status = get_rows(l, bytes, halo, &rows, error);
    if (status != KILTER_OK)
        return status;
    kl_loop_record_array(l, bytes, halo);
    l->memory.rows[l->rank.layout.array_count] = rows;
    kl_layout_add(&l->rank.layout, &(kl_array){rows.base, bytes, halo, halo});
    *base = rows.base;
    kl_guard(l);
    return KILTER_OK;
}

/* Attach an array. An argument that all ranks refuse does not change the loop; other failures end it. */
kilter_status kilter_loop_array(kilter_loop *l, size_t bytes, uint64_t halo, void **base,
                                kilter_error *error) {
    kilter_status status = kl_loop_enter(l, "kilter_loop_array()", error);
    if (status != KILTER_OK)
        return status;
    if (l->phase == KL_WITHIN || kl_meter_sweep(&l->rank.meter) > 0)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "attaching an array to loop '%s': it has begun; attach arrays before the first "
                       "kilter_loop_begin()",
                       l->group.name);
    kilter_error why = {KILTER_OK, ""};
    status = attach(l, bytes, halo, base, &why);
    if (status == KILTER_OK)
        return KILTER_OK;
    if (status == KILTER_ERR_PEER || status == KILTER_ERR_MPI || status == KILTER_ERR_USAGE) {
        l->failure = why;
        return kl_loop_failed(l, status, error);
    }
    if (error)
        *error = why;
    return status;
}
