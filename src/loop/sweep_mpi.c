/* One sweep of a loop, as the program sees it. */
#include "loop/loop_mpi.h"

static kilter_status open_first(kilter_loop *l, kilter_error *error) {
    kilter_status status =
        l->options.deep && !l->options.fixed ? kl_exchange_open(&l->exchange, error) : KILTER_OK;
    return status == KILTER_OK ? kl_rounds_open(l, error) : status;
}

kilter_status kilter_loop_begin(kilter_loop *l, kilter_error *error) {
    uint64_t sweep = kl_meter_sweep(&l->meter);
    if (l->phase == KL_BROKEN)
        return kl_loop_failed(l, l->failure.status, error);
    if (l->phase == KL_WITHIN)
        return kl_loop_failed(
            l,
            kl_loop_misused(l, "kilter_loop_begin()", "a sweep is under way: call kilter_loop_end() first"),
            error);
    l->began_s = kl_loop_now_s(l);
    kl_mpi_look_at_core(&l->group.wait, l->began_s);
    kl_step(&l->steps, KL_CALL_BEGIN, sweep, 0, 0);
    kilter_status status = KILTER_OK;
    if (l->group.checks || sweep == 0)
        status = kl_steps_meet(&l->steps, NULL, &l->failure);
    if (status == KILTER_OK && sweep == 0)
        status = open_first(l, &l->failure);
    if (status == KILTER_OK)
        status = l->kind->begin(l, &l->failure);
    if (status != KILTER_OK)
        return kl_loop_failed(l, status, error);
    l->phase = KL_WITHIN;
    return KILTER_OK;
}

static const char *misuse(const kilter_loop *l, kilter_loop_kind kind, bool has_place) {
    if (l->options.kind != kind)
        return kind == KILTER_DOALL ? "its kind is KILTER_DOACROSS: call kilter_loop_next_block()"
                                    : "its kind is KILTER_DOALL: call kilter_loop_next()";
    if (l->phase != KL_WITHIN)
        return "no sweep is under way: call kilter_loop_begin() first";
    return has_place ? NULL : "NULL is no place for a range";
}

/* Give work, if nothing is wrong with the call. The next kilter_loop_end() returns a failure. */
static bool next(kilter_loop *l, const char *call, const char *wrong, kl_given *given) {
    bool got = false;
    if (l->phase == KL_BROKEN)
        return false;
    kilter_status status =
        wrong ? kl_loop_misused(l, call, wrong) : l->kind->next(l, given, &got, &l->failure);
    if (status != KILTER_OK)
        kl_loop_break(l);
    return status == KILTER_OK && got;
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

static kilter_status end(kilter_loop *l) {
    const char *wrong = NULL;
    if (l->phase != KL_WITHIN)
        wrong = "no sweep is under way: call kilter_loop_begin() first";
    else if (!l->kind->is_done(l))
        wrong = "iterations of this rank are left: take ranges until there are no more";
    return wrong ? kl_loop_misused(l, "kilter_loop_end()", wrong) : l->kind->end(l, &l->failure);
}

kilter_status kilter_loop_end(kilter_loop *l, kilter_error *error) {
    kilter_status status = l->phase == KL_BROKEN ? l->failure.status : end(l);
    if (status != KILTER_OK)
        return kl_loop_failed(l, status, error);
    l->phase = KL_BETWEEN;
    l->rounds.passed++;
    l->meter.since.sweeps++;
    l->meter.all.executions++;
    l->meter.all.elapsed_s += kl_loop_now_s(l) - l->began_s;
    return KILTER_OK;
}
