/* The driver of a rank, which carries out the rank's actions with MPI, and tells the rank the time. */
#include <stdlib.h>

#include "loop/loop_mpi.h"

static const double REST_MOST_S = 0.005, SIMULATED_REST_MOST_S = 1;

typedef kilter_status (*operation)(kilter_loop *l, const kl_action *a, kilter_error *error);

/* Return the MPI requests of a set of messages. Return NULL if memory ran out. */
kl_requests *kl_loop_requests(kl_set *set) {
    if (!set->requests)
        set->requests = calloc(1, sizeof *set->requests);
    return set->requests;
}

void kl_loop_forget(kl_set *set) {
    if (set->requests)
        kl_requests_free(set->requests);
    free(set->requests);
    set->requests = NULL;
}

/* Post sends before receives. Posting a receive may take long, because MPI then copies a large message whose
 * sender is ready. If receives came first, ranks that wait for this rank's rows would wait for this copy,
 * too. Wake all receivers at the end, because each wake-up waits until the processor has written the sent
 * data. */
static kilter_status post(kilter_loop *l, const kl_action *a, kilter_error *error) {
    kl_requests *requests = a->set->requests;
    kilter_status status = KILTER_OK;
    for (size_t i = a->receives; i < a->count && status == KILTER_OK; i++)
        status = kl_send(&l->bundle->group, requests, a->mails[i], error);
    for (size_t i = a->receives; i < a->count; i++)
        if (a->mails[i].silent)
            kl_bells_ring(l->bundle->group.wait.bells, (uint32_t)a->mails[i].peer);
    for (size_t i = 0; i < a->receives && status == KILTER_OK; i++)
        status = kl_receive(&l->bundle->group, requests, a->mails[i], error);
    return status;
}

static kilter_status share(kilter_loop *l, const kl_action *a, kilter_error *error) {
    return kl_group_share(&l->bundle->group, a->set->requests, a->mine, a->all, a->bytes, error);
}

static kilter_status look(kilter_loop *l, const kl_action *a, kilter_error *error) {
    return kl_requests_look(&l->bundle->group, a->set->requests, error);
}

static kilter_status read_clock(kilter_loop *l, const kl_action *a, kilter_error *error) {
    (void)l, (void)a, (void)error; /* kl_loop_drive() reads it */
    return KILTER_OK;
}

static kilter_status await(kilter_loop *l, const kl_action *a, kilter_error *error) {
    return kl_requests_await(&l->bundle->group, a->set->requests, error);
}

/* Sleep until a message comes, but only for a short time. In a simulation no rank dies, so the sleep may be
 * longer there. */
static kilter_status rest(kilter_loop *l, const kl_action *a, kilter_error *error) {
    (void)a;
    if (!l->rests)
        kl_mpi_traffic(&l->bundle->group.wait);
    l->rests = true;
    kl_mpi_rest(&l->bundle->group.wait, false, kl_mpi_ranks_die ? REST_MOST_S : SIMULATED_REST_MOST_S);
    return kl_group_look(&l->bundle->group, kl_loop_now_s(l), error);
}

static kilter_status forget(kilter_loop *l, const kl_action *a, kilter_error *error) {
    (void)l, (void)error;
    kl_loop_forget(a->set);
    return KILTER_OK;
}

/* Get memory for the rows that come to this rank. Their row content counts twice, because both the message
 * and the program's copy of the content need memory. */
static kl_room find_room(kilter_loop *l) {
    kl_content *c = &l->rank.content;
    const kl_layout *layout = &l->rank.layout;
    if (c->on && !c->packed)
        return KL_ROOM_UNPACKED;
    bool fits = kl_rows_fit(kl_layout_coming_bytes(layout) + 2 * kl_content_bytes(c, true)) &&
                kl_memory_take(&l->bundle->memory, kl_layout_next(layout)) &&
                kl_loop_make_parcels(c->parcels, c->count);
    return fits ? KL_ROOM_FITS : KL_ROOM_NONE;
}

/* Get memory for the rows that this rank will have after the move. Rows move only if all ranks get this
 * memory. If one rank does not get it, all ranks give it back. */
static kilter_status make_room(kilter_loop *l, const kl_action *a, kilter_error *error) {
    const kl_layout *layout = &l->rank.layout;
    double began_s = kl_loop_now_s(l);
    uint64_t room = find_room(l);
    double spent_s = kl_loop_now_s(l) - began_s;
    (void)a;
    kilter_status status = kl_group_least(&l->bundle->group, &room, 1, error);
    if (status != KILTER_OK)
        return status;
    if (room != KL_ROOM_FITS)
        kl_memory_give(&l->bundle->memory, layout->target, layout->bounds);
    kl_exchange_room_is(&l->rank.exchange, (kl_room)room, spent_s);
    return KILTER_OK;
}

static kilter_status give_back(kilter_loop *l, const kl_action *a, kilter_error *error) {
    (void)a, (void)error;
    kl_memory_give(&l->bundle->memory, l->rank.layout.bounds, l->rank.layout.target);
    return KILTER_OK;
}

static kilter_status take(kilter_loop *l, const kl_action *a, kilter_error *error) {
    bool fits = kl_rows_fit(a->bytes);
    (void)error;
    for (size_t i = 0; i < l->rank.layout.array_count; i++)
        for (size_t k = 0; k < a->ranges->count && fits; k++)
            fits = kl_rows_take(&l->bundle->memory.rows[i], a->ranges->at[k], NULL) == KILTER_OK;
    *(uint64_t *)a->all = fits && kl_loop_make_parcels(a->parcels, a->count);
    return KILTER_OK;
}

static kilter_status pack(kilter_loop *l, const kl_action *a, kilter_error *error) {
    (void)error;
    *(uint64_t *)a->all = kl_loop_pack(l, a->parcels, a->count);
    return KILTER_OK;
}

static kilter_status unpack(kilter_loop *l, const kl_action *a, kilter_error *error) {
    return kl_loop_unpack(l, a->parcels, a->count, error);
}

static kilter_status weigh(kilter_loop *l, const kl_action *a, kilter_error *error) {
    (void)error;
    *(uint64_t *)a->all = kl_loop_weigh(l, a->ranges);
    return KILTER_OK;
}

static kilter_status drop(kilter_loop *l, const kl_action *a, kilter_error *error) {
    (void)error;
    for (size_t i = 0; i < l->rank.layout.array_count; i++)
        for (size_t k = 0; k < a->ranges->count; k++)
            kl_rows_give(&l->bundle->memory.rows[i], a->ranges->at[k], a->kept->at, a->kept->count);
    return KILTER_OK;
}

static kilter_status find_most(kilter_loop *l, const kl_action *a, kilter_error *error) {
    return kl_group_most_f64(&l->bundle->group, a->values, a->count, error);
}

static kilter_status measure_quantum(kilter_loop *l, const kl_action *a, kilter_error *error) {
    (void)a, (void)error;
    kl_meter_quantum_is(&l->rank.meter, kl_quantum_s());
    return KILTER_OK;
}

static kilter_status end_round(kilter_loop *l, const kl_action *a, kilter_error *error) {
    (void)a, (void)error;
    /* scattered loops have no bounds; their rows may be unequal at any time */
    bool useful = l->rank.kind->anywhere || kl_layout_is_unequal(&l->rank.layout);
    kl_pin_round(&l->bundle->group.wait.pin, useful, kl_monotonic_s());
    kl_loop_record_round(l);
    return KILTER_OK;
}

static kilter_status record_refused(kilter_loop *l, const kl_action *a, kilter_error *error) {
    (void)error;
    kl_loop_record_refused(l, a->text);
    return KILTER_OK;
}

static kilter_status fail(kilter_loop *l, const kl_action *a, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_MEMORY, "%s loop '%s': memory ran out", a->text, l->name);
}

static kilter_status carry_out(kilter_loop *l, const kl_action *a, kilter_error *error) {
    static const operation operations[] = {[KL_POST] = post,
                                           [KL_SHARE] = share,
                                           [KL_LOOK] = look,
                                           [KL_CLOCK] = read_clock,
                                           [KL_AWAIT] = await,
                                           [KL_ROOM] = make_room,
                                           [KL_GIVE_BACK] = give_back,
                                           [KL_MOST] = find_most,
                                           [KL_TAKE] = take,
                                           [KL_DROP] = drop,
                                           [KL_PACK] = pack,
                                           [KL_UNPACK] = unpack,
                                           [KL_WEIGH] = weigh,
                                           [KL_REST] = rest,
                                           [KL_FORGET] = forget,
                                           [KL_QUANTUM] = measure_quantum,
                                           [KL_RECORD] = end_round,
                                           [KL_REFUSED] = record_refused,
                                           [KL_FAIL] = fail};
    if (a->set && !kl_loop_requests(a->set))
        return kl_fail(error, KILTER_ERR_MEMORY, "messages of loop '%s': memory ran out", l->name);
    kilter_status status = operations[a->act](l, a, error);
    /* The operation may call functions of the program. If such a function calls the loop, the loop fails. */
    if (status == KILTER_OK && l->bundle->phase == KL_BROKEN)
        status = l->bundle->failure.status;
    if (status == KILTER_OK && a->set)
        a->set->open = a->set->requests && a->set->requests->open > 0;
    return status;
}

/* Return the time after an action. now_s: the time that the driver knew before it. Reading the clock after
 * each action would cost a hundredth of a short sweep, so three cases avoid it. The rank may not need the
 * time. A wait has already read the clock. At the beginning of a sweep without moves, nothing needs the time.
 */
static double time_after(const kilter_loop *l, kl_loop_call call, double now_s) {
    const kl_action *a = &l->rank.action;
    kl_act act = a->act;
    if (a->untimed && !(act == KL_LOOK && a->set->open))
        return now_s;
    if (call == KL_LOOP_BEGIN && (act == KL_LOOK || act == KL_POST) && !l->rank.exchange.moving)
        return now_s;
    if (act == KL_AWAIT && !l->bundle->group.clock.simulated && l->bundle->group.wait.counted_s > now_s)
        return l->bundle->group.wait.counted_s;
    return kl_loop_now_s(l);
}

kilter_status kl_loop_drive(kilter_loop *l, kl_loop_call call, double *now_s, kilter_error *error) {
    kl_rank_call(&l->rank, call);
    for (;;) {
        const kl_action *action = kl_rank_act(&l->rank, *now_s);
        if (action->act <= KL_GIVE)
            break;
        kilter_status status = carry_out(l, action, error);
        if (status != KILTER_OK)
            return status;
        *now_s = time_after(l, call, *now_s);
    }
    /* the message for which the rank slept has arrived */
    if (l->rests)
        kl_mpi_waited(&l->bundle->group.wait);
    l->rests = false;
    return KILTER_OK;
}
