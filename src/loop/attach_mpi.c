/* Attach arrays to a loop, and share them with aligned loops. The leader's layout lists the arrays of all
 * aligned loops, because their rows move together. */
#include <stdlib.h>

#include "loop/loop_mpi.h"

static size_t array_count(const kilter_loop *l) {
    return l->bundle->leader->rank.layout.array_count;
}

/* --- attaching a new array --- */

static kilter_status check_array(const kilter_loop *l, size_t bytes, uint64_t halo, void **base,
                                 kilter_error *error) {
    const char *wrong = NULL;
    if (bytes == 0)
        wrong = "rows must have at least 1 byte";
    else if (halo > 0 && l->options.scattered)
        wrong = "the arrays of a scattered loop have no ghost rows";
    else if (l->options.inner > 0 && (bytes % l->options.inner != 0 || halo > 1))
        wrong = "in a loop of kind KILTER_DOACROSS, bytes must be a multiple of inner, and ghost at most 1";
    else if (!base)
        wrong = "the pointer for the array's address is NULL";
    return wrong ? kl_fail(error, KILTER_ERR_RANGE, "attaching array %zu to loop '%s': %s", array_count(l),
                           l->name, wrong)
                 : KILTER_OK;
}

static kilter_status agree_on_array(kilter_loop *l, size_t bytes, uint64_t halo, void **base,
                                    kilter_error *error) {
    static const char *const names[] = {"bytes", "ghost", "base (NULL)", "loop"};
    const uint64_t values[] = {bytes, halo, base == NULL, l->number};
    const char *differs;
    kl_step(&l->bundle->steps, KL_CALL_ARRAY, kl_meter_sweep(&l->rank.meter), array_count(l), 0);
    kilter_status status = kl_steps_meet(&l->bundle->steps, NULL, error);
    if (status == KILTER_OK)
        status =
            kl_group_agree(&l->bundle->group, values, names, sizeof names / sizeof *names, &differs, error);
    if (status == KILTER_OK && differs)
        return kl_fail(
            error, KILTER_ERR_RANGE,
            "attaching array %zu to loop '%s': '%s' differs between ranks (here: bytes %zu, ghost %llu)",
            array_count(l), l->name, differs, bytes, kl_ull(halo));
    return status;
}

/* Reserve address space for all rows of the array, and get memory for the rows of this rank. */
static kilter_status get_rows(kilter_loop *l, const kl_array *array, kl_rows *rows, kilter_error *error) {
    kilter_error why = {KILTER_OK, "memory ran out on another rank"};
    kl_span own = kl_layout_own(l->rank.layout.lead);
    kilter_status status =
        kl_rows_reserve(rows, array->map.rows + 2 * kl_array_edge(array), array->bytes, &why);
    if (status == KILTER_OK)
        status = kl_rows_take(rows, kl_array_with_room(array, own), &why);
    uint64_t fits = status == KILTER_OK;
    status = kl_group_least(&l->bundle->group, &fits, 1, error);
    if (status != KILTER_OK || fits)
        return status;
    kl_rows_release(rows);
    return kl_fail(error, why.status == KILTER_OK ? KILTER_ERR_MEMORY : why.status, "loop '%s': %s", l->name,
                   why.text);
}

static kilter_status grow_lists(kilter_loop *l, kilter_error *error) {
    kl_bundle *a = l->bundle;
    uint64_t fits = kl_memory_grow(&a->memory) && kl_rank_grow(&a->leader->rank) &&
                    (kl_loop_leads(l) || kl_rank_grow(&l->rank));
    kilter_status status = kl_group_least(&a->group, &fits, 1, error);
    if (status == KILTER_OK && !fits)
        return kl_fail(error, KILTER_ERR_MEMORY, "attaching an array to loop '%s': memory ran out", l->name);
    return status;
}

/* Add the array to the lists of the loop and of its leader. Only sweeps of this loop update the array's
 * ghost rows. */
static void add(kilter_loop *l, kl_array array, const kl_rows *rows) {
    kilter_loop *leader = l->bundle->leader;
    kl_loop_record_array(leader, array.bytes, array.halo);
    l->bundle->memory.rows[array_count(l)] = *rows;
    if (!kl_loop_leads(l)) {
        kl_layout_add(&l->rank.layout, &array);
        array.halo = 0;
    }
    kl_layout_add(&leader->rank.layout, &array);
    kl_guard(leader);
}

static kilter_status attach(kilter_loop *l, size_t bytes, uint64_t halo, void **base, kilter_error *error) {
    kilter_status status = agree_on_array(l, bytes, halo, base, error);
    if (status == KILTER_OK)
        status = check_array(l, bytes, halo, base, error);
    if (status == KILTER_OK)
        status = grow_lists(l, error);
    if (status != KILTER_OK)
        return status;
    halo = halo < l->options.iterations ? halo : l->options.iterations;
    kl_rows rows = {0};
    kl_array array = {.bytes = bytes,
                      .halo = halo,
                      .room = halo,
                      .map = l->rank.layout.map,
                      .periodic = l->options.periodic};
    status = get_rows(l, &array, &rows, error);
    if (status != KILTER_OK)
        return status;
    *base = array.base = kl_rows_at(&rows, kl_array_edge(&array));
    add(l, array, &rows);
    return KILTER_OK;
}

/* End a call to attach or share an array. If all ranks refuse an argument, the loop does not change. Any
 * other failure ends the loop. */
static kilter_status conclude(kilter_loop *l, kilter_status status, const kilter_error *why,
                              kilter_error *error) {
    if (status == KILTER_OK)
        return KILTER_OK;
    if (status == KILTER_ERR_PEER || status == KILTER_ERR_MPI || status == KILTER_ERR_USAGE) {
        l->bundle->failure = *why;
        return kl_loop_failed(l, status, error);
    }
    if (error)
        *error = *why;
    return status;
}

kilter_status kilter_loop_array(kilter_loop *l, size_t bytes, uint64_t halo, void **base,
                                kilter_error *error) {
    kilter_error why = {KILTER_OK, ""};
    kilter_status status = kl_loop_enter(l, "kilter_loop_array()", error);
    if (status != KILTER_OK)
        return status;
    if (l->bundle->phase == KL_WITHIN || l->bundle->begun)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "attaching an array to loop '%s': it has begun; attach arrays before the first "
                       "kilter_loop_begin()",
                       l->name);
    if (l->bundle->resumed)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "attaching an array to loop '%s': kilter_loop_resumed() was called already, and could "
                       "not fill this array; attach arrays before that call",
                       l->name);
    status = attach(l, bytes, halo, base, &why);
    return conclude(l, status, &why, error);
}

/* --- arrays that several loops with the same ranges of rows use --- */

const kl_array *kl_loop_array_at(const kilter_loop *l, const void *base) {
    const kl_layout *layout = l->rank.layout.lead;
    for (size_t a = 0; a < layout->array_count; a++)
        if (layout->arrays[a].base == base)
            return &layout->arrays[a];
    return NULL;
}

size_t kl_loop_index_of(const kilter_loop *l, const kl_array *array) {
    return (size_t)(array - l->rank.layout.lead->arrays);
}

bool kl_loop_array_own(const kilter_loop *l, const kl_array *array, size_t nth, kl_span *range) {
    const kilter_loop *leader = l->bundle->leader;
    if (leader->rank.kind->anywhere)
        return kl_rank_own(&leader->rank, nth, range);
    *range = kl_array_own(array, kl_layout_own(&leader->rank.layout));
    return nth == 0 && !kl_is_empty(*range);
}

/* Return whether sweeps of this loop update ghost rows of the array already. */
static bool has(const kilter_loop *l, const kl_array *array) {
    const kl_layout *layout = &l->rank.layout;
    for (size_t a = 0; a < layout->array_count; a++)
        if (layout->arrays[a].base == array->base && layout->arrays[a].halo > 0)
            return true;
    return false;
}

static const char *wrong_share(const kilter_loop *l, const kl_array *array, uint64_t ghost) {
    if (!array)
        return "the argument is not the base of an array of this loop or of a loop aligned with it";
    if (ghost == 0)
        return "ghost must be at least 1; for its own rows, a loop does not need this call";
    if (l->options.scattered || l->options.deep)
        return "the loop is scattered or deep";
    if (has(l, array))
        return "the loop already has ghost rows of this array";
    if (l->options.inner > 0 && (array->bytes % l->options.inner != 0 || ghost > 1 ||
                                 !kl_is_same_map(&array->map, &l->rank.layout.map)))
        return "a loop of kind KILTER_DOACROSS can share an array only with ghost 1; the array's loop must "
               "have the same rows, and inner must divide the bytes of a row";
    return NULL;
}

static kilter_status agree_on_share(kilter_loop *l, size_t index, uint64_t ghost, kilter_error *error) {
    static const char *const names[] = {"base", "ghost", "loop"};
    const uint64_t values[] = {index, ghost, l->number};
    const char *differs;
    kl_step(&l->bundle->steps, KL_CALL_SHARE, kl_meter_sweep(&l->rank.meter), index, 0);
    kilter_status status = kl_steps_meet(&l->bundle->steps, NULL, error);
    if (status == KILTER_OK)
        status =
            kl_group_agree(&l->bundle->group, values, names, sizeof names / sizeof *names, &differs, error);
    if (status == KILTER_OK && differs)
        return kl_fail(error, KILTER_ERR_RANGE, "sharing an array with loop '%s': '%s' differs between ranks",
                       l->name, differs);
    return status;
}

static kilter_status share(kilter_loop *l, const kl_array *array, uint64_t ghost, kilter_error *error) {
    kl_bundle *a = l->bundle;
    size_t index = array ? kl_loop_index_of(l, array) : array_count(l);
    kilter_status status = agree_on_share(l, index, ghost, error);
    const char *wrong = wrong_share(l, array, ghost);
    if (status == KILTER_OK && wrong)
        return kl_fail(error, KILTER_ERR_RANGE, "sharing array %zu with loop '%s': %s", index, l->name,
                       wrong);
    if (status != KILTER_OK || !array)
        return status;
    ghost = ghost < array->map.rows ? ghost : array->map.rows;
    uint64_t fits = (kl_loop_leads(l) || kl_rank_grow(&l->rank)) && kl_memory_raise(&a->memory, index, ghost);
    status = kl_group_least(&a->group, &fits, 1, error);
    if (status == KILTER_OK && !fits)
        return kl_fail(error, KILTER_ERR_MEMORY, "sharing array %zu with loop '%s': memory ran out", index,
                       l->name);
    if (status != KILTER_OK)
        return status;
    kl_array shared = *array;
    shared.halo = ghost;
    if (kl_loop_leads(l))
        kl_layout_widen(&l->rank.layout, index, ghost);
    else
        kl_layout_add(&l->rank.layout, &shared);
    return KILTER_OK;
}

kilter_status kilter_loop_share(kilter_loop *l, const void *base, uint64_t ghost, kilter_error *error) {
    kilter_error why = {KILTER_OK, ""};
    kilter_status status = kl_loop_enter(l, "kilter_loop_share()", error);
    if (status != KILTER_OK)
        return status;
    if (l->bundle->phase == KL_WITHIN || l->bundle->begun)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "sharing an array with loop '%s': it has begun; share arrays before the first "
                       "kilter_loop_begin()",
                       l->name);
    status = share(l, kl_loop_array_at(l, base), ghost, &why);
    return conclude(l, status, &why, error);
}
