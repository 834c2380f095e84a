/* The driver of a rank: carries out by MPI what room rank asks for, and tells the time. */
#include "loop/loop_mpi.h"

typedef kilter_status (*operation)(kilter_loop *l, const kl_action *a, kilter_error *error);

/* Post sends first: where a large message has been announced already, MPI copies all of it while its receive
 * is posted, and the ranks that wait for this rank's own rows would wait for that, too. Wake the receivers
 * together, as each ring waits until the processor has written what was sent. */
static kilter_status post(kilter_loop *l, const kl_action *a, kilter_error *error) {
    kl_requests *requests = &l->requests[a->set];
    kilter_status status = KILTER_OK;
    for (size_t i = a->receives; i < a->count && status == KILTER_OK; i++)
        status = kl_send(&l->group, requests, a->mails[i], error);
    for (size_t i = a->receives; i < a->count; i++)
        if (a->mails[i].silent)
            kl_bells_ring(l->group.wait.bells, (uint32_t)a->mails[i].peer);
    for (size_t i = 0; i < a->receives && status == KILTER_OK; i++)
        status = kl_receive(&l->group, requests, a->mails[i], error);
    return status;
}

static kilter_status share(kilter_loop *l, const kl_action *a, kilter_error *error) {
    kl_loop_rounds *r = &l->rank.rounds;
    return kl_group_share(&l->group, &l->requests[a->set], &r->mine, r->heard, kl_rounds_report_bytes(r),
                          error);
}

static kilter_status look(kilter_loop *l, const kl_action *a, kilter_error *error) {
    return kl_requests_look(&l->group, &l->requests[a->set], error);
}

static kilter_status await(kilter_loop *l, const kl_action *a, kilter_error *error) {
    return kl_requests_await(&l->group, &l->requests[a->set], error);
}

/* All ranks have room, or nothing moves. */
static kilter_status make_room(kilter_loop *l, const kl_action *a, kilter_error *error) {
    const kl_layout *layout = &l->rank.layout;
    double began_s = kl_loop_now_s(l);
    uint64_t fits =
        kl_rows_fit(kl_layout_coming_bytes(layout)) && kl_memory_take(&l->memory, kl_layout_next(layout));
    double spent_s = kl_loop_now_s(l) - began_s;
    (void)a;
    kilter_status status = kl_group_least(&l->group, &fits, 1, error);
    if (status != KILTER_OK)
        return status;
    if (!fits)
        kl_memory_give(&l->memory, layout->target, layout->bounds);
    kl_exchange_room_is(&l->rank.exchange, fits, spent_s);
    return KILTER_OK;
}

static kilter_status give_back(kilter_loop *l, const kl_action *a, kilter_error *error) {
    (void)a, (void)error;
    kl_memory_give(&l->memory, l->rank.layout.bounds, l->rank.layout.target);
    return KILTER_OK;
}

static kilter_status find_most(kilter_loop *l, const kl_action *a, kilter_error *error) {
    return kl_group_most_f64(&l->group, a->values, a->count, error);
}

static kilter_status measure_quantum(kilter_loop *l, const kl_action *a, kilter_error *error) {
    (void)a, (void)error;
    kl_meter_quantum_is(&l->rank.meter, kl_quantum_s());
    return KILTER_OK;
}

static kilter_status record(kilter_loop *l, const kl_action *a, kilter_error *error) {
    (void)a, (void)error;
    kl_loop_record_round(l);
    return KILTER_OK;
}

static kilter_status record_refused(kilter_loop *l, const kl_action *a, kilter_error *error) {
    (void)error;
    kl_loop_record_refused(l, a->text);
    return KILTER_OK;
}

static kilter_status fail(kilter_loop *l, const kl_action *a, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_MEMORY, "%s loop '%s': memory ran out", a->text, l->group.name);
}

kilter_status kl_loop_drive(kilter_loop *l, kl_loop_call call, double *now_s, kl_action *last,
                            kilter_error *error) {
    static const operation operations[] = {[KL_POST] = post,      [KL_SHARE] = share,
                                           [KL_LOOK] = look,      [KL_AWAIT] = await,
                                           [KL_ROOM] = make_room, [KL_GIVE_BACK] = give_back,
                                           [KL_MOST] = find_most, [KL_QUANTUM] = measure_quantum,
                                           [KL_RECORD] = record,  [KL_REFUSED] = record_refused,
                                           [KL_FAIL] = fail};
    kl_rank_call(&l->rank, call);
    for (;;) {
        *last = kl_rank_act(&l->rank, *now_s);
        if (last->act <= KL_GIVE)
            return KILTER_OK;
        kilter_status status = operations[last->act](l, last, error);
        if (status != KILTER_OK)
            return status;
        l->rank.open[last->set] = l->requests[last->set].open > 0;
        *now_s = kl_loop_now_s(l);
    }
}
