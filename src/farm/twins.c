/* Tasks that are at two workers: whose result comes first counts, and the other need not do them. */
#include <stdlib.h>

#include "farm/master_private.h"

static bool find_chunk(kl_master *m, uint64_t id, member **one, kl_chunk **chunk) {
    for (size_t i = 0; i < m->member_count; i++)
        for (size_t k = 0; k < m->members[i].chunk_count; k++)
            if (m->members[i].chunks[k].id == id && !m->members[i].chunks[k].stale) {
                *one = &m->members[i];
                *chunk = &m->members[i].chunks[k];
                return true;
            }
    return false;
}

kilter_status kl_master_recall(kl_master *m, member *one, kl_chunk *chunk, uint64_t from,
                               kilter_error *error) {
    if (chunk->recalled_s > 0 && chunk->recalled_from <= from)
        return KILTER_OK; /* it is asked for more than that, and since then */
    kl_buffer out = {0};
    kl_wire_put_part(&out, KL_RECALL, &(kl_part){chunk->id, from, chunk->hi});
    chunk->recalled_s = kl_now_s(&m->options.clock);
    chunk->recalled_from = from;
    kilter_status status = kl_send(m->transport, one->peer, &out, error);
    kl_buffer_free(&out);
    return status == KILTER_ERR_PEER ? KILTER_OK : status; /* the transport tells soon that it is gone */
}

static bool add_twin(kl_master *m, const kl_twin *twin) {
    if (m->twin_count == m->twin_capacity) {
        size_t capacity = m->twin_capacity ? 2 * m->twin_capacity : 8;
        kl_twin *twins = realloc(m->twins, capacity * sizeof *twins);
        if (!twins)
            return false;
        m->twins = twins;
        m->twin_capacity = capacity;
    }
    m->twins[m->twin_count++] = *twin;
    return true;
}

kilter_status kl_master_copy(kl_master *m, const kl_chunk *chunk, uint64_t lo, uint64_t hi, member *to,
                             double finish_s, kilter_error *error) {
    kl_twin twin = {.lo = lo, .hi = hi, .first = chunk->id}; /* `chunk` may move when `to` gets another */
    kl_chunk copy;
    kilter_status status = kl_master_deal_span(m, to, (kl_span){lo, hi}, finish_s, &copy, error);
    if (status != KILTER_OK || to->stage == GONE)
        return status;
    twin.second = copy.id;
    m->copied = true;
    return add_twin(m, &twin)
               ? KILTER_OK
               : kl_fail(error, KILTER_ERR_MEMORY, "giving tasks to a second worker: memory ran out");
}

static bool is_all_done(const kl_master *m, const kl_twin *twin) {
    bool done;
    kl_span alike = kl_ledger_alike(&m->balance.ledger, (kl_span){twin->lo, twin->hi}, &done);
    return done && alike.hi == twin->hi;
}

/* Of the tasks that chunk `id` shares with another, all may be done: then the other need not do them. */
kilter_status kl_master_settle_twins(kl_master *m, uint64_t id, kilter_error *error) {
    kilter_status status = KILTER_OK;
    for (size_t i = 0; i < m->twin_count && status == KILTER_OK;) {
        kl_twin twin = m->twins[i];
        member *other;
        kl_chunk *chunk;
        if ((twin.first != id && twin.second != id) || !is_all_done(m, &twin)) {
            i++;
            continue;
        }
        m->twins[i] = m->twins[--m->twin_count];
        if (find_chunk(m, twin.first == id ? twin.second : twin.first, &other, &chunk) &&
            chunk->hi == twin.hi)
            status = kl_master_recall(m, other, chunk, twin.lo, error);
    }
    return status;
}

/* The first part of `span` that is at another worker, too, because of chunk `id`; empty: none. */
kl_span kl_master_first_shared(const kl_master *m, uint64_t id, kl_span span) {
    kl_span first = {span.hi, span.hi};
    for (size_t i = 0; i < m->twin_count; i++) {
        const kl_twin *t = &m->twins[i];
        uint64_t lo = t->lo > span.lo ? t->lo : span.lo, hi = t->hi < span.hi ? t->hi : span.hi;
        if ((t->first == id || t->second == id) && lo < hi && lo < first.lo)
            first = (kl_span){lo, hi};
    }
    return first;
}

/* Chunk `id` will not do `span`, its end: what is shared stays with the other alone. */
void kl_master_part_twins(kl_master *m, uint64_t id, kl_span span) {
    for (size_t i = 0; i < m->twin_count;) {
        kl_twin *t = &m->twins[i];
        if ((t->first == id || t->second == id) && t->hi > span.lo)
            t->hi = t->lo > span.lo ? t->lo : span.lo;
        if (t->lo == t->hi)
            m->twins[i] = m->twins[--m->twin_count];
        else
            i++;
    }
}

uint64_t kl_master_alone_until(const kl_master *m, const kl_chunk *chunk) {
    return kl_master_first_shared(m, chunk->id, (kl_span){chunk->at, chunk->hi}).lo;
}

/* Chunk `id` has not done this task of it, and will not: its twins leave it out. *at_other: a second worker
 * has it, and may do it. */
kilter_status kl_master_part_at(kl_master *m, uint64_t id, uint64_t task, bool *at_other,
                                kilter_error *error) {
    *at_other = false;
    for (size_t i = 0; i < m->twin_count; i++) {
        kl_twin t = m->twins[i];
        member *other;
        kl_chunk *chunk;
        if ((t.first != id && t.second != id) || task < t.lo || task >= t.hi)
            continue;
        *at_other = find_chunk(m, t.first == id ? t.second : t.first, &other, &chunk) && chunk->at <= task &&
                    task < chunk->hi;
        m->twins[i].hi = task;
        if (t.lo == task)
            m->twins[i] = m->twins[--m->twin_count];
        t.lo = task + 1;
        return t.lo == t.hi || add_twin(m, &t)
                   ? KILTER_OK
                   : kl_fail(error, KILTER_ERR_MEMORY, "trying a task again: memory ran out");
    }
    return KILTER_OK;
}
