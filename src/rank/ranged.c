/* Loops in which each rank has one range of rows, in the order of ranks. */
#include "rank/rank.h"

/* seconds; if this rank's rows take longer than this in a sweep, the body gets them in pieces */
static const double PIECES_FROM_S = 1e-3;

kl_act kl_ranged_settle(kl_rank *k) {
    if (!k->exchange.refused)
        return KL_GO_ON;
    if (k->rounds.steer && !k->rounds.forced) {
        kl_steer_refuse(k->rounds.steer);
        /* tell the steer the present bounds, because earlier stages of the refused move may have moved rows
         */
        kl_steer_place(k->rounds.steer, k->layout.bounds);
    }
    return kl_rounds_refused(
        k, k->exchange.room == KL_ROOM_UNPACKED
               ? "nothing moves: a row could not be packed (the program refused, or memory ran "
                 "out)"
               : "nothing moves: a rank has no memory for the rows planned for it");
}

/* --- begin --- */

static kl_act choose_pieces(kl_rank *k) {
    double own_s = k->meter.iteration_s * (double)kl_length(kl_layout_next(&k->layout));
    k->meter.by_pieces = k->rounds.steer && (k->meter.iteration_s == 0 || own_s > PIECES_FROM_S);
    return KL_GO_ON;
}

/* Check whether the halos have already arrived, which is usual if the ranks are in balance. If the halos have
 * arrived, the body gets all rows in one range. This costs less time than three ranges. */
static kl_act look_early(kl_rank *k) {
    return k->exchange.begins && !k->meter.waits_first ? kl_look(k, &k->exchange.set) : KL_GO_ON;
}

/* Return whether the body first gets the rows that need no halo, while the halos are on their way. This does
 * not help if ranks of one host share cores, because other ranks then use the time in which this rank
 * waits. In an ordered loop, the body must get all rows in one range. */
static bool overlaps(const kl_rank *k) {
    const kl_exchange *x = &k->exchange;
    return x->begins && x->set.open && !k->meter.waits_first && !k->options.ordered && !kl_is_empty(x->inner);
}

static kl_act split(kl_rank *k) {
    kl_work *w = &k->work;
    const kl_exchange *x = &k->exchange;
    kl_span all = kl_layout_with_halo(&k->layout, kl_layout_next(&k->layout), x->ahead * k->layout.halo);
    *w = (kl_work){.all = all, .edges = {all}};
    if (!overlaps(k))
        return KL_GO_ON;
    w->todo = x->inner;
    w->edges[0] = (kl_span){all.lo, x->inner.lo};
    w->edges[1] = (kl_span){x->inner.hi, all.hi};
    return KL_GO_ON;
}

/* Begin an exchange if one is due. The halos of one exchange may be enough for several sweeps. In each of
 * these sweeps except the last, the rank also does rows of its neighbours that its own rows read later. */
static kl_act exchange_if_due(kl_rank *k) {
    static const kl_stage exchange[] = {kl_exchange_room, kl_exchange_post, kl_ranged_settle, NULL};
    kl_exchange *x = &k->exchange;
    x->begins = kl_exchange_due(x);
    if (x->begins)
        return kl_rank_do(k, exchange);
    x->ahead--;
    return KL_GO_ON;
}

/* --- next --- */

static kl_act count_given(kl_rank *k) {
    kl_work *w = &k->work;
    if (!kl_is_empty(w->given)) {
        kl_meter_rows(&k->meter, kl_layout_next(&k->layout), w->given, k->now_s);
        w->done += kl_length(w->given);
        w->given = (kl_span){0, 0};
    }
    return KL_GO_ON;
}

/* Check whether the exchange is complete; the rows at the edges can only be done after that. When no other
 * rows are left to do, wait for the exchange. */
static kl_act look_at_exchange(kl_rank *k) {
    if (!kl_is_empty(k->work.todo))
        return kl_look(k, &k->exchange.set);
    return kl_exchange_finish(k);
}

static uint64_t piece(const kl_rank *k) {
    const kl_meter *m = &k->meter;
    uint64_t mine = kl_length(kl_layout_next(&k->layout));
    if (!m->by_pieces)
        return mine;
    uint64_t even = (mine + KL_SEGMENTS - 1) / KL_SEGMENTS;
    uint64_t most = m->iteration_s > 0 ? kl_doall_grain(mine, m->iteration_s, k->rounds.period_s) : even;
    return even < most ? even : most;
}

static kl_span take(kl_span *todo, uint64_t count, bool last) {
    kl_span taken = last ? (kl_span){todo->hi - count, todo->hi} : (kl_span){todo->lo, todo->lo + count};
    *(last ? &todo->hi : &todo->lo) = last ? taken.lo : taken.hi;
    return taken;
}

static kl_act give(kl_rank *k) {
    kl_work *w = &k->work;
    for (int i = 0; i < 2 && kl_is_empty(w->todo); i++) {
        w->todo = w->edges[i];
        w->edges[i] = (kl_span){0, 0};
    }
    if (kl_is_empty(w->todo))
        return kl_return(k);
    uint64_t count = kl_length(w->todo), most = piece(k);
    count = count < most ? count : most;
    w->given = take(&w->todo, count, k->options.backward);
    kl_meter_give(&k->meter, k->now_s);
    return kl_give(k, (kl_given){.rows = k->work.given});
}

/* --- end --- */

static bool is_done(const kl_rank *k) {
    return kl_is_empty(k->work.given) && k->work.done == kl_length(k->work.all);
}

static double part_done(const kl_rank *k) {
    uint64_t all = kl_length(k->work.all);
    return all > 0 ? (double)k->work.done / (double)all : 1;
}

static const kl_stage begin[] = {kl_rounds_answer, choose_pieces, exchange_if_due, look_early, split, NULL};
static const kl_stage next[] = {count_given, kl_rounds_hook, look_at_exchange, give, NULL};
/* The stages at the end of a sweep. A rank without rows reaches them before its exchange is complete, so the
 * first stage waits for the exchange. */
static const kl_stage end[] = {kl_exchange_finish, kl_rounds_hook_at_end, NULL};

const kl_kind kl_ranged = {
    .stages = {begin, next, end}, .is_done = is_done, .sweep_done = part_done, .pass_done = part_done};
