/* The functions that the program calls in a sweep. */
#include "loop/loop_mpi.h"

/* Get memory for as many halo rows as the loop may want. Without this memory, each sweep needs an
 * exchange. */
static kilter_status get_deep(kilter_loop *l, kilter_error *error) {
    const kl_layout *layout = &l->rank.layout;
    if (layout->halo == 0)
        return KILTER_OK;
    uint64_t fits = kl_memory_widen(&l->bundle->memory, (KL_DEEPEST - 1) * layout->halo);
    kilter_status status = kl_group_least(&l->bundle->group, &fits, 1, error);
    l->rank.exchange.deepest = fits ? KL_DEEPEST : 1;
    if (!fits)
        kl_memory_widen(&l->bundle->memory, 0);
    return status;
}

static kilter_status open_first(kilter_loop *l, kilter_error *error) {
    kilter_status status = l->options.deep && !l->options.fixed ? get_deep(l, error) : KILTER_OK;
    if (status == KILTER_OK && !l->bundle->begun)
        status = kl_loop_settle(l->bundle->leader, error);
    l->bundle->begun = true;
    return status == KILTER_OK ? kl_loop_open_rounds(l, error) : status;
}

/* Begin a sweep. If all ranks must meet before the sweep (to compare calls or to save), do this first, and
 * read the time again. */
static kilter_status meet_and_begin(kilter_loop *l, kilter_error *error) {
    bool first = kl_meter_sweep(&l->rank.meter) == 0, meets = l->bundle->group.checks || first;
    kilter_status status = meets ? kl_steps_meet(&l->bundle->steps, NULL, error) : KILTER_OK;
    if (status == KILTER_OK && first)
        status = open_first(l, error);
    if (status == KILTER_OK)
        status = kl_loop_save_if_due(l, error);
    kl_loop_progress_begin(l);
    double now_s = meets || l->saver ? kl_loop_now_s(l) : l->began_s;
    return status == KILTER_OK ? kl_loop_drive(l, KL_LOOP_BEGIN, &now_s, error) : status;
}

kilter_status kilter_loop_begin(kilter_loop *l, kilter_error *error) {
    kilter_status status = kl_loop_enter(l, "kilter_loop_begin()", error);
    if (status != KILTER_OK)
        return status;
    if (l->bundle->phase == KL_WITHIN)
        return kl_loop_failed(
            l,
            kl_loop_misused(l, "kilter_loop_begin()", "a sweep is under way: call kilter_loop_end() first"),
            error);
    if (l->posts.count > 0)
        return kl_loop_failed(l,
                              kl_loop_misused(l, "kilter_loop_begin()",
                                              "posted messages are left: call kilter_loop_deliver() first"),
                              error);
    l->began_s = kl_loop_now_s(l);
    l->began_pass = l->rank.rounds.passed;
    kl_mpi_look_at_core(&l->bundle->group.wait, l->began_s);
    kl_loop_step(l, KL_CALL_BEGIN);
    status = meet_and_begin(l, &l->bundle->failure);
    if (status == KILTER_ERR_STOPPED) { /* this is not a failure of the loop, which can still be closed */
        if (error)
            *error = l->bundle->failure;
        return status;
    }
    if (status != KILTER_OK)
        return kl_loop_failed(l, status, error);
    l->bundle->phase = KL_WITHIN;
    l->bundle->sweeps = l;
    return KILTER_OK;
}

static const char *misuse(const kilter_loop *l, kilter_loop_kind kind, bool has_place) {
    if (l->options.kind != kind)
        return kind == KILTER_DOALL ? "the loop's kind is KILTER_DOACROSS: call kilter_loop_next_block()"
                                    : "the loop's kind is KILTER_DOALL: call kilter_loop_next()";
    if (!kl_loop_sweeps(l))
        return "no sweep of this loop is under way: call kilter_loop_begin() first";
    return has_place ? NULL : "the pointer for a range is NULL";
}

static kilter_status drive_next(kilter_loop *l, kilter_error *error) {
    kl_meter *m = &l->rank.meter;
    double now_s = kl_loop_now_s(l);
    if (m->tells_cpu)
        m->cpu_s = kl_busy_s(&l->bundle->group.clock);
    kilter_status status = kl_group_look(&l->bundle->group, now_s, error);
    if (status == KILTER_OK)
        status = kl_loop_drive(l, KL_LOOP_NEXT, &now_s, error);
    if (m->tells_cpu && status == KILTER_OK && l->rank.action.act == KL_GIVE)
        m->given_cpu_s = kl_busy_s(&l->bundle->group.clock);
    return status;
}

/* Give rows to the body if the call is correct. If not, the next kilter_loop_end() returns the failure. */
static bool next(kilter_loop *l, const char *call, const char *wrong, kl_given *given) {
    const kl_action *last = &l->rank.action;
    if (kl_loop_enter(l, call, NULL) != KILTER_OK)
        return false;
    if (wrong)
        kl_loop_misused(l, call, wrong);
    if (wrong || drive_next(l, &l->bundle->failure) != KILTER_OK) {
        kl_loop_break(l);
        return false;
    }
    *given = last->given;
    return last->act == KL_GIVE;
}

bool kilter_loop_next(kilter_loop *l, kilter_range *range) {
    kl_given given;
    if (!next(l, "kilter_loop_next()", misuse(l, KILTER_DOALL, range), &given))
        return false;
    *range = (kilter_range){given.rows.lo, given.rows.hi};
    return true;
}

bool kilter_loop_next_block(kilter_loop *l, kilter_range *rows, kilter_range *inner) {
    kl_given given;
    if (!next(l, "kilter_loop_next_block()", misuse(l, KILTER_DOACROSS, rows && inner), &given))
        return false;
    *rows = (kilter_range){given.rows.lo, given.rows.hi};
    *inner = (kilter_range){given.inner.lo, given.inner.hi};
    return true;
}

static kilter_status end(kilter_loop *l, double *now_s) {
    const char *wrong = NULL;
    if (!kl_loop_sweeps(l))
        wrong = "no sweep of this loop is under way: call kilter_loop_begin() first";
    else if (!l->rank.kind->is_done(&l->rank))
        wrong = "iterations of this rank are left: take ranges until there are no more";
    if (wrong)
        return kl_loop_misused(l, "kilter_loop_end()", wrong);
    *now_s = kl_loop_now_s(l);
    return kl_loop_drive(l, KL_LOOP_END, now_s, &l->bundle->failure);
}

kilter_status kilter_loop_end(kilter_loop *l, kilter_error *error) {
    double now_s = 0;
    kilter_status status = kl_loop_enter(l, "kilter_loop_end()", error);
    if (status != KILTER_OK)
        return status;
    status = end(l, &now_s);
    if (status != KILTER_OK)
        return kl_loop_failed(l, status, error);
    l->bundle->phase = KL_BETWEEN;
    kl_rank_end_sweep(&l->rank, now_s - l->began_s);
    return KILTER_OK;
}
