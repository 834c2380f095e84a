/* Loops whose rows follow the rows of another loop (the leader), and that share its ranks, messages and
 * arrays. */
#include <stdlib.h>

#include "loop/loop_mpi.h"

/* Compare the arguments of all ranks before the loop gets a handle. */
static kilter_status agree_on_handle(kl_bundle *a, bool given, bool fits, kilter_error *error) {
    uint64_t all[] = {given, fits};
    kilter_status status = kl_steps_meet(&a->steps, NULL, error);
    if (status == KILTER_OK)
        status = kl_group_least(&a->group, all, 2, error);
    if (status == KILTER_OK && !all[0])
        return kl_fail(error, KILTER_ERR_RANGE,
                       "opening a loop that follows loop '%s': a rank gave NULL as the pointer for the loop",
                       a->leader->name);
    if (status == KILTER_OK && !all[1])
        return kl_fail(error, KILTER_ERR_MEMORY,
                       "opening a loop that follows loop '%s': memory ran out on a rank", a->leader->name);
    return status;
}

static kilter_status agree(kilter_loop *l, kilter_error *error) {
    kilter_status status = kl_loop_agree_on_options(l, error);
    const char *wrong = kl_loop_wrong_option(&l->options);
    if (status == KILTER_OK && wrong)
        return kl_fail(error, KILTER_ERR_RANGE, "opening loop '%s': %s", l->name, wrong);
    return status;
}

static void join(kilter_loop *l) {
    const kl_rank *leader = &l->bundle->leader->rank;
    kl_meter *m = &l->rank.meter;
    m->opened_s = leader->meter.opened_s;
    m->shares_cores = leader->meter.shares_cores;
    m->cores_left = leader->meter.cores_left;
    m->seldom = leader->meter.seldom;
    m->pin = leader->meter.pin;
    m->waits_first = leader->meter.waits_first;
    l->rank.looks_yield = leader->looks_yield;
    l->number = ++l->bundle->opened;
    l->bundle->followers++;
}

/* Open a loop that follows another loop (the leader). If all ranks refuse the options, the leader does not
 * change. */
static kilter_status open_follower(kl_bundle *a, const kilter_loop_options *options, kilter_loop **loop,
                                   kilter_error *why) {
    kilter_loop *l = loop ? kl_loop_new_handle(options, a) : NULL;
    kilter_status status = agree_on_handle(a, loop != NULL, l != NULL, why);
    if (status == KILTER_OK && l)
        status = agree(l, why);
    if (status != KILTER_OK || !l) {
        if (l)
            kl_loop_free_handle(l);
        return status;
    }
    join(l);
    *loop = l;
    return KILTER_OK;
}

kilter_status kl_loop_follow(const kilter_loop_options *options, kilter_loop **loop, kilter_error *error) {
    kilter_loop *leader = options->follows;
    kl_bundle *a = leader->bundle;
    kilter_error why = {KILTER_OK, ""};
    kilter_status status = kl_loop_enter(leader, "kilter_loop_open()", error);
    if (status != KILTER_OK)
        return status;
    if (a->phase == KL_WITHIN || a->begun)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "opening a loop that follows loop '%s': it has begun; open the loop before the first "
                       "kilter_loop_begin()",
                       leader->name);
    kl_loop_step(leader, KL_CALL_FOLLOW);
    status = open_follower(a, options, loop, &why);
    if (status == KILTER_ERR_RANGE || status == KILTER_ERR_MEMORY || status == KILTER_OK) {
        if (error && status != KILTER_OK)
            *error = why;
        return status;
    }
    a->failure = why;
    return kl_loop_failed(leader, status, error);
}

kilter_status kl_loop_unfollow(kilter_loop *l, kilter_error *error) {
    kl_bundle *a = l->bundle;
    kl_requests *reports = l->rank.rounds.set.requests;
    kl_loop_step(l, KL_CALL_CLOSE);
    kilter_status status = reports ? kl_requests_await(&a->group, reports, &a->failure) : KILTER_OK;
    if (status == KILTER_OK)
        status = kl_steps_meet(&a->steps, NULL, &a->failure);
    if (status != KILTER_OK)
        return kl_loop_failed(l, status, error);
    a->followers--;
    kl_loop_free_handle(l);
    return KILTER_OK;
}
