/* The summary of a loop, and its failure. */
#include "loop/loop_mpi.h"
#include "transport/launch_mpi.h"

void kl_loop_summary_get(const kilter_loop *l, kilter_loop_summary *summary) {
    const kl_rank *k = &l->rank;
    const kl_totals *all = &k->meter.all;
    const kl_account *account = k->rounds.steer ? kl_steer_account(k->rounds.steer) : &(kl_account){0};
    *summary = (kilter_loop_summary){.executions = all->sweeps,
                                     .rounds = all->rounds,
                                     .moves = all->moves,
                                     .moved = all->moved,
                                     .block = k->flow.block,
                                     .depth = k->exchange.depth,
                                     .elapsed_s = all->elapsed_s,
                                     .waited_s = all->waited_s,
                                     .moving_s = all->moving_s,
                                     .gained_s = account->forecast_s,
                                     .came_s = account->came_s};
    summary->decision = k->rounds.decision[0] ? k->rounds.decision
                        : l->group.ranks == 1 ? "nothing moves: there is one rank"
                        : l->options.fixed    ? "nothing moves: the loop is fixed"
                                              : "no decision was made yet";
}

void kl_loop_break(kilter_loop *l) {
    kilter_loop_summary summary;
    if (l->phase == KL_BROKEN)
        return;
    l->phase = KL_BROKEN;
    kl_mpi_keep(l);
    kl_detector_ask(&l->detector, &l->failure);
    kl_detector_give_up(&l->detector, l->failure.text);
    kl_loop_summary_get(l, &summary);
    kl_loop_record_end(l, &summary, &l->failure,
                       NULL); /* now, because the program may exit without closing the loop */
}

kilter_status kl_loop_failed(kilter_loop *l, kilter_status status, kilter_error *error) {
    kl_loop_break(l);
    if (error)
        *error = l->failure;
    return l->failure.status ? l->failure.status : status;
}

kilter_status kl_loop_enter(kilter_loop *l, const char *call, kilter_error *error) {
    if (l->phase != KL_BROKEN && !l->calls_program)
        return KILTER_OK;
    if (l->phase != KL_BROKEN)
        kl_loop_misused(l, call, "a function that this loop calls must not call the loop");
    return kl_loop_failed(l, l->failure.status, error);
}

kilter_status kl_loop_misused(kilter_loop *l, const char *call, const char *what) {
    return kl_fail(&l->failure, KILTER_ERR_USAGE, "%s of loop '%s': %s", call, l->group.name, what);
}
