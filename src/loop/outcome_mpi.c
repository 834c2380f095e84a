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
                                     .came_s = account->came_s,
                                     .saves = l->saver ? l->saver->saves : 0,
                                     .saving_s = l->saver ? l->saver->saving_s : 0};
    summary->decision = !kl_loop_leads(l)             ? "rows move with the loop that this loop follows"
                        : k->rounds.decision[0]       ? k->rounds.decision
                        : l->bundle->group.ranks == 1 ? "nothing moves: there is only one rank"
                        : l->options.fixed            ? "nothing moves: the loop is fixed"
                                                      : "no decision was made yet";
}

/* End the record when the loop fails, because the program may exit without closing the loop. */
static void end_record(kilter_loop *l) {
    kilter_loop_summary summary;
    kl_loop_summary_get(l->bundle->leader, &summary);
    kl_loop_record_end(l->bundle->leader, &summary, &l->bundle->failure, NULL);
}

/* The program may go on without closing the loop, and should then have all its cores. */
static void stop_pinning(kl_mpi_wait *wait) {
    wait->may_pin = false;
    kl_bells_unpin(wait->bells);
}

void kl_loop_break(kilter_loop *l) {
    kl_bundle *a = l->bundle;
    if (a->phase == KL_BROKEN)
        return;
    a->phase = KL_BROKEN;
    kl_mpi_keep(l);
    stop_pinning(&a->group.wait);
    kl_detector_ask(&a->detector, &a->failure);
    kl_detector_give_up(&a->detector, a->failure.text);
    end_record(l);
}

void kl_loop_end_together(kilter_loop *l) {
    l->bundle->phase = KL_BROKEN;
    kl_mpi_keep(l);
    stop_pinning(&l->bundle->group.wait);
    end_record(l);
}

kilter_status kl_loop_failed(kilter_loop *l, kilter_status status, kilter_error *error) {
    kl_loop_break(l);
    if (error)
        *error = l->bundle->failure;
    return l->bundle->failure.status ? l->bundle->failure.status : status;
}

kilter_status kl_loop_enter(kilter_loop *l, const char *call, kilter_error *error) {
    if (l->bundle->phase != KL_BROKEN && !l->bundle->calls_program)
        return KILTER_OK;
    if (l->bundle->phase != KL_BROKEN)
        kl_loop_misused(l, call, "a function that this loop calls must not call the loop");
    return kl_loop_failed(l, l->bundle->failure.status, error);
}

kilter_status kl_loop_misused(kilter_loop *l, const char *call, const char *what) {
    return kl_fail(&l->bundle->failure, KILTER_ERR_USAGE, "%s of loop '%s': %s", call, l->name, what);
}
