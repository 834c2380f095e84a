/* Choose which workers are active in a run, and which workers rest. */
#include <stdlib.h>
#include <string.h>

#include "engine/master_private.h"

static void set_resting(kl_master *m, member *one, bool resting) {
    if (one->resting == resting)
        return;
    one->resting = resting;
    m->members.resting += resting ? 1 : UINT32_MAX; /* adding UINT32_MAX subtracts 1 */
    kl_balance_rest(&m->balance, one->worker, resting);
    m->feeding.all = true;
}

void kl_master_rest(kl_master *m, member *one) {
    set_resting(m, one, true);
}

typedef struct candidate {
    double rate;
    uint32_t sharing; /* number of faster workers that are bound to the same cores as this one */
    member *member;
} candidate;

static int faster_first(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->sharing != y->sharing)
        return x->sharing > y->sharing ? 1 : -1;
    if (x->rate != y->rate)
        return x->rate < y->rate ? 1 : -1;
    return (x->member->number > y->member->number) - (x->member->number < y->member->number);
}

/* List all workers that could work, the fastest first. Return their number. A worker of unknown speed counts
 * as if it had the mean speed of the other workers. */
static uint32_t rank(kl_master *m, candidate *list) {
    uint32_t count = 0, known = 0;
    double sum = 0;
    for (size_t i = 0; i < m->members.count; i++) {
        member *one = &m->members.list[i];
        if (one->stage != WORKING)
            continue;
        double rate = kl_balance_rate(&m->balance, one->worker);
        list[count++] = (candidate){.rate = rate, .member = one};
        sum += rate;
        known += rate > 0;
    }
    for (uint32_t i = 0; i < count; i++)
        if (!(list[i].rate > 0))
            list[i].rate = known ? sum / known : 1;
    qsort(list, count, sizeof *list, faster_first);
    return count;
}

/* Move a worker towards the end of the list if a faster worker is bound to the same cores. Two workers on the
 * same cores would slow each other down. */
static void spread(candidate *list, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const member *one = list[i].member;
        for (uint32_t k = i; k > 0 && *one->binding; k--) {
            const member *other = list[k - 1].member;
            if (strcmp(one->binding, other->binding) == 0 && strcmp(one->host, other->host) == 0) {
                list[i].sharing = list[k - 1].sharing + 1;
                break;
            }
        }
    }
    qsort(list, count, sizeof *list, faster_first);
}

kilter_status kl_master_seat(kl_master *m, kilter_error *error) {
    candidate *list = malloc((m->members.count + 1) * sizeof *list);
    if (!list)
        return kl_fail(error, KILTER_ERR_MEMORY, "choosing the workers of a run: memory ran out");
    uint32_t count = rank(m, list), seats = m->staff.seats ? m->staff.seats : count;
    if (seats < count)
        spread(list, count);
    for (uint32_t i = 0; i < count; i++)
        set_resting(m, list[i].member, i >= seats);
    free(list);
    return KILTER_OK;
}

static member *fastest_resting(const kl_master *m) {
    member *fastest = NULL;
    double most = 0;
    for (size_t i = 0; i < m->members.count; i++) {
        member *one = &m->members.list[i];
        double rate = one->resting ? kl_balance_rate(&m->balance, one->worker) : 0;
        if (one->resting && (!fastest || rate > most)) {
            fastest = one;
            most = rate;
        }
    }
    return fastest;
}

kilter_status kl_master_wake_for_lost(kl_master *m, kilter_error *error) {
    member *one;
    kilter_status status = KILTER_OK;
    while (kl_master_active(m) < m->staff.seats && (one = fastest_resting(m)) && status == KILTER_OK) {
        set_resting(m, one, false);
        status = kl_run_peers_ready(m, one, error);
    }
    return status;
}
