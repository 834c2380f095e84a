/* Messages between rows: the calls kilter_loop_post(), kilter_loop_deliver() and kilter_loop_owner(). */
#include "loop/loop_mpi.h"

int kilter_loop_owner(const kilter_loop *l, uint64_t row) {
    const kl_layout *layout = &l->rank.layout;
    if (l->options.scattered || l->bundle->calls_program || row >= layout->iterations)
        return -1;
    return (int)kl_posts_owner(layout->target, layout->ranks, row);
}

static const char SCATTERED[] = "in a scattered loop the ranks do not know where rows are";

/* --- posting --- */

kilter_status kilter_loop_post(kilter_loop *l, uint64_t from, uint64_t to, const void *data, uint64_t bytes,
                               kilter_error *error) {
    const char *wrong = NULL;
    kilter_status status = kl_loop_enter(l, "kilter_loop_post()", error);
    if (status != KILTER_OK)
        return status;
    if (l->options.scattered)
        wrong = SCATTERED;
    else if (from >= l->options.iterations || to >= l->options.iterations)
        wrong = "there is no such row";
    else if (kilter_loop_owner(l, from) != l->bundle->group.rank)
        wrong = "the row that the message comes from is on another rank";
    else if (!data && bytes > 0)
        wrong = "the pointer for the data is NULL";
    if (wrong)
        status = kl_loop_misused(l, "kilter_loop_post()", wrong);
    else if (!kl_posts_add(&l->posts, l->rank.rounds.passed - l->began_pass, from, to, data, bytes))
        status = kl_fail(&l->bundle->failure, KILTER_ERR_MEMORY,
                         "posting %llu bytes to row %llu of loop '%s': memory ran out", kl_ull(bytes),
                         kl_ull(to), l->name);
    return status == KILTER_OK ? KILTER_OK : kl_loop_failed(l, status, error);
}

/* --- delivery --- */

static kilter_status no_memory(const kilter_loop *l, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_MEMORY, "delivering messages between rows of loop '%s': memory ran out",
                   l->name);
}

/* Tell each rank how many bytes it will get from this rank. On one host the ranks use messages, which wake
 * the receivers. Otherwise they use a collective operation, which needs fewer messages. All ranks compare
 * their calls first, so that no rank is in a different collective operation. */
static kilter_status exchange_sizes_far(kilter_loop *l, kilter_error *error) {
    MPI_Request request = MPI_REQUEST_NULL;
    kilter_status status = kl_steps_meet(&l->bundle->steps, NULL, error);
    if (status != KILTER_OK)
        return status;
    int code = MPI_Ialltoall(l->posts.sends, 1, MPI_UINT64_T, l->posts.receives, 1, MPI_UINT64_T,
                             l->bundle->group.comm, &request);
    return kl_group_await(&l->bundle->group, code, request, error);
}

static kl_mail size_for(uint64_t *bytes, uint32_t peer) {
    return (kl_mail){.data = bytes, .bytes = sizeof *bytes, .peer = (int)peer, .tag = KL_TAG_COUNT};
}

static kilter_status exchange_sizes_near(kilter_loop *l, kilter_error *error) {
    kl_group *g = &l->bundle->group;
    kilter_status status = KILTER_OK;
    for (uint32_t r = 0; r < g->ranks && status == KILTER_OK; r++)
        if ((int)r != g->rank)
            status = kl_receive(g, &l->delivery, size_for(&l->posts.receives[r], r), error);
    for (uint32_t r = 0; r < g->ranks && status == KILTER_OK; r++)
        if ((int)r != g->rank)
            status = kl_send(g, &l->delivery, size_for(&l->posts.sends[r], r), error);
    return status == KILTER_OK ? kl_requests_await(g, &l->delivery, error) : status;
}

static kilter_status exchange_sizes(kilter_loop *l, kilter_error *error) {
    l->posts.receives[l->bundle->group.rank] = 0;
    if (l->bundle->group.ranks == 1)
        return KILTER_OK;
    return l->bundle->group.near ? exchange_sizes_near(l, error) : exchange_sizes_far(l, error);
}

static kilter_status exchange_data(kilter_loop *l, kilter_error *error) {
    kl_group *g = &l->bundle->group;
    kl_posts *s = &l->posts;
    kilter_status status = KILTER_OK;
    kl_mail mail = {.data = s->in.data, .tag = KL_TAG_POSTED};
    for (uint32_t r = 0; r < g->ranks && status == KILTER_OK; r++) {
        mail.peer = (int)r;
        mail.bytes = s->receives[r];
        if (mail.bytes > 0) {
            status = kl_receive(g, &l->delivery, mail, error);
            mail.data = (uint8_t *)mail.data + mail.bytes;
        }
    }
    mail.data = s->sorted.data;
    for (uint32_t r = 0; r < g->ranks && status == KILTER_OK; r++) {
        mail.peer = (int)r;
        mail.bytes = s->sends[r];
        if (mail.bytes > 0) {
            status = kl_send(g, &l->delivery, mail, error);
            mail.data = (uint8_t *)mail.data + mail.bytes;
        }
    }
    return status == KILTER_OK ? kl_requests_await(g, &l->delivery, error) : status;
}

static kilter_status hand_over(kilter_loop *l, kilter_loop_take take, void *user, kilter_error *error) {
    for (uint64_t i = 0; i < l->posts.listed; i++) {
        const kl_post *p = l->posts.list[i];
        l->bundle->calls_program = true;
        bool taken = take(p->to, p->from, kl_post_data(p), p->bytes, user);
        l->bundle->calls_program = false;
        if (l->bundle->phase == KL_BROKEN)
            return l->bundle->failure.status;
        if (!taken)
            return kl_fail(
                error, KILTER_ERR_TASK,
                "loop '%s': the program could not take a message of %llu bytes from row %llu to row "
                "%llu",
                l->name, kl_ull(p->bytes), kl_ull(p->from), kl_ull(p->to));
    }
    return KILTER_OK;
}

static kilter_status exchange(kilter_loop *l, kilter_error *error) {
    kilter_status status = exchange_sizes(l, error);
    if (status == KILTER_OK && !kl_posts_expect(&l->posts, l->rank.layout.ranks))
        status = no_memory(l, error);
    return status == KILTER_OK ? exchange_data(l, error) : status;
}

/* Sort the posted messages and exchange them. *waited_s: the seconds that the exchange took */
static kilter_status gather(kilter_loop *l, double *waited_s, kilter_error *error) {
    const kl_layout *layout = &l->rank.layout;
    kilter_status status =
        l->bundle->group.checks ? kl_steps_meet(&l->bundle->steps, NULL, error) : KILTER_OK;
    if (status == KILTER_OK && !kl_posts_sort(&l->posts, layout->bounds, layout->ranks, layout->rank))
        status = no_memory(l, error);
    double began_s = kl_loop_now_s(l);
    if (status == KILTER_OK)
        status = exchange(l, error);
    *waited_s = kl_loop_now_s(l) - began_s;
    return status == KILTER_OK && !kl_posts_arrange(&l->posts) ? no_memory(l, error) : status;
}

static kilter_status deliver(kilter_loop *l, kilter_loop_take take, void *user, kilter_error *error) {
    double began_s = kl_loop_now_s(l), waited_s;
    kilter_status status = gather(l, &waited_s, error);
    if (status == KILTER_OK)
        status = hand_over(l, take, user, error);
    if (status != KILTER_OK)
        return status;
    kl_posts_clear(&l->posts);
    kl_meter_delivery(&l->rank.meter, kl_loop_now_s(l) - began_s, waited_s);
    return KILTER_OK;
}

kilter_status kilter_loop_deliver(kilter_loop *l, kilter_loop_take take, void *user, kilter_error *error) {
    const char *wrong = NULL;
    kilter_status status = kl_loop_enter(l, "kilter_loop_deliver()", error);
    if (status != KILTER_OK)
        return status;
    if (l->bundle->phase == KL_WITHIN)
        wrong = "a sweep is under way; end it first";
    else if (l->options.scattered)
        wrong = SCATTERED;
    else if (!take)
        wrong = "the function that takes messages is NULL";
    if (wrong) {
        status = kl_loop_misused(l, "kilter_loop_deliver()", wrong);
    } else {
        kl_loop_step(l, KL_CALL_DELIVER);
        status = deliver(l, take, user, &l->bundle->failure);
    }
    return status == KILTER_OK ? KILTER_OK : kl_loop_failed(l, status, error);
}
