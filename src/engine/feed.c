/* Decide which of the workers that wait for tasks get some now. If the policy makes a worker wait, decide
 * when to try that worker again. */
#include <math.h>

#include "engine/master_private.h"

/* When no other task is left, deal the tasks that may have killed their worker (suspects). Each worker
 * without tasks gets one of them. */
static kilter_status feed_suspects(kl_master *m, kilter_error *error) {
    kilter_status status = KILTER_OK;
    for (size_t i = 0; i < m->members.count && status == KILTER_OK && m->suspects.count > 0; i++) {
        member *one = &m->members.list[i];
        kl_chunk chunk;
        uint64_t task;
        if (!one->hungry || one->resting || one->chunk_count > 0 || !kl_master_take_suspect(m, one, &task))
            continue;
        status = kl_master_deal_span(m, one, (kl_span){task, task + 1}, 0, &chunk, error);
        if (status == KILTER_OK && chunk.lo == chunk.hi)
            status = kl_master_deal_again(m, one, (kl_span){task, task + 1}, error);
        kl_master_declare_answer(m);
    }
    return status;
}

static bool can_be_fed(const kl_master *m, const member *one) {
    return one->hungry && !one->resting && !kl_master_has_suspect(m, one);
}

/* Deal to all workers that wait for tasks, including those that the policy made wait. */
static kilter_status feed_all(kl_master *m, kilter_error *error) {
    kilter_status status = KILTER_OK;
    bool held = false;
    double began_s = kl_now_s(&m->options.clock);
    m->feeding.all = false;
    for (size_t i = 0; i < m->members.count && status == KILTER_OK && m->balance.bag.left > 0; i++) {
        member *one = &m->members.list[i];
        if (can_be_fed(m, one)) {
            status = kl_master_deal(m, one, error);
            if (!one->hungry)
                kl_master_declare_answer(m);
        }
        held |= one->held;
    }
    double now_s = kl_now_s(&m->options.clock);
    m->feeding.look_again_s =
        held ? now_s + kl_held_pause_s(m->balance.snapshot.unit_s.mean, now_s - began_s) : 0;
    return status;
}

/* When all tasks have been dealt, deal tasks that may have killed their worker. Also recall or copy tasks of
 * late workers. asked: true if a worker has just requested tasks. */
static kilter_status end_game(kl_master *m, bool asked, bool look_again, kilter_error *error) {
    kilter_status status = m->suspects.count > 0 ? feed_suspects(m, error) : KILTER_OK;
    bool first = m->feeding.empty_s == 0;
    m->feeding.all = false;
    if (first)
        m->feeding.empty_s = kl_now_s(&m->options.clock);
    if (m->run.done == m->run.summary.tasks || !kl_policy_rescues(kl_dealer_policy(m->balance.dealer)))
        m->feeding.look_again_s = 0;
    else if (status == KILTER_OK && (first || asked || look_again))
        status = kl_master_rescue(m, error);
    return status;
}

/* Deal to the member `asking`, which has just requested tasks; NULL: no member has just done so. From time to
 * time, also deal to workers that the policy made wait. */
static kilter_status feed_from_bag(kl_master *m, member *asking, bool look_again, kilter_error *error) {
    bool any_queued = m->run.done + m->suspects.tasks + m->balance.bag.left < m->run.summary.tasks;
    m->feeding.empty_s = 0;
    if (m->feeding.all || look_again || !any_queued)
        return feed_all(m, error);
    if (!asking || asking->held || !can_be_fed(m, asking))
        return KILTER_OK;
    kilter_status status = kl_master_deal(m, asking, error);
    if (asking->held && m->feeding.look_again_s == 0)
        m->feeding.look_again_s =
            kl_now_s(&m->options.clock) + kl_held_pause_s(m->balance.snapshot.unit_s.mean, 0);
    return status;
}

kilter_status kl_master_feed(kl_master *m, member *asking, kilter_error *error) {
    bool look_again = m->feeding.look_again_s > 0 && kl_now_s(&m->options.clock) >= m->feeding.look_again_s;
    kilter_status status = m->balance.bag.left > 0 ? feed_from_bag(m, asking, look_again, error) : KILTER_OK;
    /* If all tasks have been dealt now, check for late workers at once. The workers with the last tasks may
     * have stopped, and then no further event comes. */
    return status == KILTER_OK && m->balance.bag.left == 0
               ? end_game(m, asking && asking->hungry && !asking->resting, look_again, error)
               : status;
}
