/* Handle late workers at the end of a run, when no task is left to deal and another worker waits. The file
 * `decide/rescue.c` decides what to do about late workers. This file collects the data for such a decision,
 * and carries the decision out. */
#include <math.h>
#include <stdlib.h>

#include "engine/master_private.h"

enum { RESCUES_AT_ONCE = 16 }; /* greatest number of decisions on late workers until the next message comes */

/* --- collecting which worker has which tasks --- */

/* Return whether the chunk's next task may have killed a worker (suspect), or has failed. Such a task is not
 * copied. */
static bool is_suspect(const kl_master *m, const kl_chunk *chunk) {
    const kl_ledger *ledger = &m->balance.ledger;
    return chunk->at < chunk->hi &&
           kl_tally_of(&ledger->losses, chunk->at) + kl_tally_of(&ledger->failures, chunk->at) > 0;
}

/* Return the next tasks of the chunk that are not done and that no other worker has as a copy. */
static kl_span alone(const kl_master *m, const kl_chunk *chunk) {
    kl_span own = {chunk->at, chunk->stale ? chunk->at : kl_twins_alone_until(&m->twins, chunk)};
    bool done = m->twins.any;
    while (done && own.lo < own.hi) {
        kl_span alike = kl_ledger_alike(&m->balance.ledger, own, &done);
        if (done)
            own.lo = alike.hi;
        else
            own.hi = alike.hi;
    }
    return own;
}

static bool may_be_recalled(const kl_master *m, const kl_chunk *chunk) {
    return !chunk->stale && !chunk->begun && !kl_twins_is_copy(&m->twins, chunk->id) &&
           !(chunk->recalled_s > 0) && !is_suspect(m, chunk) &&
           kl_tally_of(&m->balance.ledger.recalls, chunk->at) < KL_RESCUE_RECALLS;
}

/* Return the number of tasks of the chunk that are recalled and that the worker has not returned or reported
 * yet. */
static uint64_t coming(const kl_master *m, const kl_chunk *chunk) {
    kl_span own = alone(m, chunk);
    uint64_t from = chunk->recalled_from > own.lo ? chunk->recalled_from : own.lo;
    return chunk->recalled_s > 0 && from < own.hi ? own.hi - from : 0;
}

/* Get the worker's heartbeat from the driver, if workers do not send heartbeats as messages. */
static void take_heartbeat(const kl_master *m, member *one) {
    double at_s;
    if (!m->options.heartbeat || !m->options.heartbeat(m->options.self, one->peer, &one->heartbeat, &at_s))
        return;
    one->heartbeat_s = at_s;
    one->heard_s = fmax(one->heard_s, at_s);
}

/* Return what the worker's last heartbeat says about the task that the worker does now. All zero: the
 * heartbeat was about another task. */
static kl_hand hand_of(const kl_master *m, member *one, const kl_chunk *first) {
    kl_hand hand = {0};
    if (!one->attends)
        return hand;
    take_heartbeat(m, one);
    hand.heard_s = one->heard_s;
    const kl_heartbeat *p = &one->heartbeat;
    if (!(one->heartbeat_s > 0) || p->chunk != first->id || p->task < first->at || !(p->elapsed_s > 0))
        return hand;
    hand.elapsed_s = p->elapsed_s + (one->heard_s - one->heartbeat_s);
    hand.share = p->usual_share > 0 ? p->cpu_s / p->elapsed_s / p->usual_share : 1;
    return hand;
}

static void held(const void *self, uint32_t worker, kl_held *held) {
    const kl_master *m = self;
    member *one = kl_master_member(m, worker);
    *held = (kl_held){.kept = 1};
    if (!one || one->nothing_alone)
        return;
    uint64_t all = 0;
    for (size_t i = 0; i < one->chunk_count; i++) {
        const kl_chunk *chunk = &one->chunks[i];
        kl_span own = alone(m, chunk);
        uint64_t tasks = own.hi - own.lo, back = coming(m, chunk);
        all += tasks;
        if (tasks == 0 || (is_suspect(m, chunk) && tasks == 1))
            continue;
        if (held->tasks == 0) {
            held->first_units = kl_bag_units(&m->balance.bag, (kl_span){own.lo, own.lo + 1});
            held->hand = hand_of(m, one, chunk);
        }
        if (back > 0 && held->asked_s == 0) {
            held->asked_s = chunk->recalled_s;
            held->kept = held->tasks + tasks - back;
        } else if (!may_be_recalled(m, chunk) && held->asked_s == 0) {
            held->kept = held->tasks + tasks;
        }
        held->tasks += tasks;
        held->units += kl_bag_units(&m->balance.bag, own);
    }
    /* nothing_alone stays true until this worker gets tasks, or until another worker gives up a copy */
    one->nothing_alone = all == 0;
}

static bool is_waiting(const kl_master *m, const member *one) {
    if (!one || !one->hungry || one->resting || one->stage != WORKING)
        return false;
    return !kl_master_has_suspect(m, one);
}

static bool waits(const void *self, uint32_t worker) {
    return is_waiting(self, kl_master_member(self, worker));
}

/* Say that no worker is free for a copy. This function replaces waits() if tasks may not be copied. */
static bool never_waits(const void *self, uint32_t worker) {
    (void)self;
    (void)worker;
    return false;
}

static bool any_waits(const kl_master *m) {
    for (size_t i = 0; i < m->members.count; i++)
        if (is_waiting(m, &m->members.list[i]))
            return true;
    return false;
}

static uint32_t count_waiting(const void *self) {
    const kl_master *m = self;
    uint32_t count = 0;
    for (size_t i = 0; i < m->members.count; i++)
        count += is_waiting(m, &m->members.list[i]);
    return count;
}

/* --- carrying out a decision --- */

static kl_chunk *chunk_of(const kl_master *m, const kl_asked *asked) {
    member *one = kl_master_member(m, asked->worker);
    for (size_t i = 0; one && i < one->chunk_count; i++)
        if (one->chunks[i].id == asked->chunk)
            return &one->chunks[i];
    return NULL;
}

/* Return how many units of work were recalled and may still be returned. Remove the recalls that were
 * answered from the list. */
static double coming_units(kl_master *m) {
    double units = 0;
    for (size_t i = 0; i < m->asked.count;) {
        const kl_chunk *chunk = chunk_of(m, &m->asked.list[i]);
        uint64_t tasks = chunk ? coming(m, chunk) : 0;
        if (tasks > 0) {
            uint64_t end = alone(m, chunk).hi;
            units += kl_bag_units(&m->balance.bag, (kl_span){end - tasks, end});
            i++;
        } else {
            m->asked.list[i] = m->asked.list[--m->asked.count];
        }
    }
    return units;
}

static kilter_status note_asked(kl_master *m, uint32_t worker, uint64_t chunk, kilter_error *error) {
    kl_asked *asked = kl_array_grow(m->asked.list, &m->asked.room, m->asked.count + 1, sizeof *asked);
    if (!asked)
        return kl_fail(error, KILTER_ERR_MEMORY, "recalling tasks: memory ran out");
    m->asked.list = asked;
    m->asked.list[m->asked.count++] = (kl_asked){worker, chunk};
    return KILTER_OK;
}

/* Recall the tasks that only this worker has, except for the first `keep` of them. */
static kilter_status recall(kl_master *m, member *one, uint64_t keep, kilter_error *error) {
    kilter_status status = KILTER_OK;
    for (size_t i = 0; i < one->chunk_count && status == KILTER_OK; i++) {
        kl_chunk *chunk = &one->chunks[i];
        kl_span own = alone(m, chunk);
        uint64_t tasks = own.hi - own.lo, kept = keep < tasks ? keep : tasks;
        keep -= kept;
        if (kept == tasks || !may_be_recalled(m, chunk))
            continue;
        status = note_asked(m, one->worker, chunk->id, error);
        if (status == KILTER_OK)
            status = kl_master_recall(m, one, chunk, own.lo + kept, error);
    }
    return status;
}

kilter_status kl_master_copy(kl_master *m, const kl_chunk *chunk, kl_span tasks, member *to, double finish_s,
                             kilter_error *error) {
    /* copy these values before dealing, which may move the memory of `chunk` */
    kl_twin twin = kl_twins_pair(&m->twins, chunk, tasks, to->worker);
    kl_chunk copy;
    kilter_status status = kl_master_deal_span(m, to, tasks, finish_s, &copy, error);
    if (status != KILTER_OK || copy.lo == copy.hi)
        return status;
    return kl_twins_add(&m->twins, &twin, copy.id, error);
}

/* Copy to `to` the last `tasks` tasks of a chunk that only `one` has. */
static kilter_status copy(kl_master *m, const member *one, member *to, uint64_t tasks, double finish_s,
                          kilter_error *error) {
    for (size_t i = one->chunk_count; i-- > 0;) {
        kl_span own = alone(m, &one->chunks[i]);
        if (own.lo == own.hi || is_suspect(m, &one->chunks[i]))
            continue;
        if (tasks < own.hi - own.lo)
            own.lo = own.hi - tasks;
        return kl_master_copy(m, &one->chunks[i], own, to, finish_s, error);
    }
    return KILTER_OK;
}

kilter_status kl_master_rescue(kl_master *m, kilter_error *error) {
    double began_s = kl_now_s(&m->options.clock);
    kl_board board = {
        .self = m, .held = held, .waits = m->options.once ? never_waits : waits, .waiting = count_waiting};
    kilter_status status = KILTER_OK;
    m->feeding.look_again_s = 0;
    if (!any_waits(m))
        return KILTER_OK;
    for (int i = 0; i < RESCUES_AT_ONCE && status == KILTER_OK; i++) {
        kl_rescue plan;
        board.coming_units = coming_units(m);
        kl_balance_rescue(&m->balance, &board, &plan);
        if (plan.decision.kind == KL_DECIDES_NOTHING)
            break;
        member *from = kl_master_member(m, (uint32_t)plan.decision.subject);
        status = plan.decision.kind == KL_DECIDES_RECALL
                     ? recall(m, from, plan.decision.count, error)
                     : copy(m, from, kl_master_member(m, plan.to), plan.decision.count,
                            plan.decision.forecast_s, error);
        kl_master_declare_answer(m);
    }
    double now_s = kl_now_s(&m->options.clock);
    m->feeding.look_again_s =
        now_s + kl_rescue_pause_s(&m->balance.snapshot, now_s - m->feeding.empty_s, now_s - began_s);
    return status;
}
