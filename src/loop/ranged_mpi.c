/* Loops whose ranks have one range of rows each, in the order of ranks. */
#include "loop/loop_mpi.h"

static const double PIECES_FROM_S = 1e-3; /* own rows that take longer are given in pieces */

bool kl_ranged_own(const kilter_loop *l, size_t nth, kl_span *range) {
    *range = kl_layout_own(&l->layout);
    return nth == 0 && !kl_is_empty(*range);
}

void kl_ranged_settle(kilter_loop *l) {
    if (!l->exchange.refused)
        return;
    if (l->rounds.steer && !l->rounds.forced) {
        kl_steer_refuse(l->rounds.steer);
        kl_steer_place(l->rounds.steer, l->layout.bounds); /* a part of the way may be done */
    }
    kl_rounds_refused(l, "nothing moves: a rank has no memory for the rows it should have had");
}

/* --- begin --- */

static void split(kl_work *w, kl_span all, kl_span inner) {
    *w = (kl_work){.all = all, .edges = {all}};
    if (kl_is_empty(inner))
        return;
    w->todo = inner;
    w->edges[0] = (kl_span){all.lo, inner.lo};
    w->edges[1] = (kl_span){inner.hi, all.hi};
}

/* The last exchange may be for several sweeps. Each then also does those rows of neighbours that the later
 * ones read. */
static kilter_status begin(kilter_loop *l, kilter_error *error) {
    kl_exchange *x = &l->exchange;
    kl_span inner = {0, 0};
    kilter_status status = kl_rounds_answer(l, error);
    double own_s = l->meter.iteration_s * (double)kl_length(kl_layout_next(&l->layout));
    l->meter.by_pieces = l->rounds.steer && (l->meter.iteration_s == 0 || own_s > PIECES_FROM_S);
    if (status == KILTER_OK && kl_exchange_due(x)) {
        status = kl_exchange_begin(x, &inner, error);
        kl_ranged_settle(l);
    } else {
        x->ahead--;
    }
    kl_span all = kl_layout_with_halo(&l->layout, kl_layout_next(&l->layout), x->ahead * l->layout.halo);
    split(&l->work, all, inner);
    return status;
}

/* --- next --- */

static uint64_t piece(const kilter_loop *l) {
    const kl_meter *m = &l->meter;
    uint64_t mine = kl_length(kl_layout_next(&l->layout));
    if (!m->by_pieces)
        return mine;
    uint64_t even = (mine + KL_SEGMENTS - 1) / KL_SEGMENTS;
    uint64_t most = m->iteration_s > 0 ? kl_doall_grain(mine, m->iteration_s, l->rounds.period_s) : even;
    return even < most ? even : most;
}

static void count_given(kilter_loop *l, double now_s) {
    kl_work *w = &l->work;
    if (kl_is_empty(w->given))
        return;
    kl_meter_rows(&l->meter, kl_layout_next(&l->layout), w->given, now_s);
    w->done += kl_length(w->given);
    w->given = (kl_span){0, 0};
}

static bool give(kilter_loop *l, kl_given *given, double now_s) {
    kl_work *w = &l->work;
    if (kl_is_empty(w->todo))
        return false;
    uint64_t count = kl_length(w->todo), most = piece(l);
    count = count < most ? count : most;
    given->rows = w->given = (kl_span){w->todo.lo, w->todo.lo + count};
    w->todo.lo += count;
    kl_meter_give(&l->meter, now_s);
    return true;
}

/* The edges follow when the exchange is complete, which is at the latest when nothing else is left. *now_s: a
 * look at the clock, and another one if time was spent since. */
static kilter_status look(kilter_loop *l, double *now_s, kilter_error *error) {
    kl_work *w = &l->work;
    bool reported = l->rounds.reported;
    kilter_status status = kl_rounds_hook(l, false, error);
    if (l->rounds.reported != reported)
        *now_s = kl_loop_now_s(l);
    if (status == KILTER_OK && kl_detector_works(&l->detector))
        status = kl_group_look(&l->group, *now_s, error);
    if (status == KILTER_OK && !kl_is_empty(w->todo))
        return kl_exchange_look(&l->exchange, error);
    if (status == KILTER_OK)
        status = kl_exchange_finish(&l->exchange, now_s, error);
    for (int i = 0; i < 2 && status == KILTER_OK && kl_is_empty(w->todo); i++) {
        w->todo = w->edges[i];
        w->edges[i] = (kl_span){0, 0};
    }
    return status;
}

static kilter_status next(kilter_loop *l, kl_given *given, bool *got, kilter_error *error) {
    double now_s = kl_loop_now_s(l);
    count_given(l, now_s);
    kilter_status status = look(l, &now_s, error);
    *got = status == KILTER_OK && give(l, given, now_s);
    return status;
}

/* --- end --- */

static bool is_done(const kilter_loop *l) {
    return kl_is_empty(l->work.given) && l->work.done == kl_length(l->work.all);
}

static double part_done(const kilter_loop *l) {
    uint64_t all = kl_length(l->work.all);
    return all > 0 ? (double)l->work.done / (double)all : 1;
}

/* A rank without rows may not have finished the exchange. */
static kilter_status end(kilter_loop *l, kilter_error *error) {
    double now_s = l->exchange.under_way ? kl_loop_now_s(l) : 0;
    kilter_status status = kl_exchange_finish(&l->exchange, &now_s, error);
    return status == KILTER_OK ? kl_rounds_hook(l, true, error) : status;
}

const kl_kind kl_ranged = {.own = kl_ranged_own,
                           .begin = begin,
                           .next = next,
                           .is_done = is_done,
                           .end = end,
                           .sweep_done = part_done,
                           .pass_done = part_done};
