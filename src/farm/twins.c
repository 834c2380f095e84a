/* Tasks that are at several workers: whose result comes first counts, and the others need not do them. */
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
    kl_twin *twins = kl_array_grow(m->twins, &m->twin_room, m->twin_count + 1, sizeof *twins);
    if (!twins)
        return false;
    m->twins = twins;
    m->twins[m->twin_count++] = *twin;
    return true;
}

/* The twin whose second chunk it is; NULL: it is no copy, or what it is a copy of is gone. */
static const kl_twin *twin_of_copy(const kl_master *m, uint64_t chunk) {
    for (size_t i = 0; i < m->twin_count; i++)
        if (m->twins[i].second == chunk)
            return &m->twins[i];
    return NULL;
}

bool kl_master_is_copy(const kl_master *m, const kl_chunk *chunk) {
    return twin_of_copy(m, chunk->id) != NULL;
}

kilter_status kl_master_copy(kl_master *m, const kl_chunk *chunk, uint64_t lo, uint64_t hi, member *to,
                             double finish_s, kilter_error *error) {
    const kl_twin *before = twin_of_copy(m, chunk->id);
    kl_twin twin = {.lo = lo,
                    .hi = hi,
                    .first = chunk->id, /* `chunk` may move when `to` gets another */
                    .copies = before ? before->copies + 1 : 1};
    kl_chunk copy;
    kilter_status status = kl_master_deal_span(m, to, (kl_span){lo, hi}, finish_s, &copy, error);
    if (status != KILTER_OK || copy.lo == copy.hi)
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

/* All of a twin's tasks are done: a worker that has not done them need not. */
static kilter_status call_off(kl_master *m, const kl_twin *twin, uint64_t id, kilter_error *error) {
    member *one;
    kl_chunk *chunk;
    if (!find_chunk(m, id, &one, &chunk) || chunk->hi != twin->hi || chunk->at == chunk->hi)
        return KILTER_OK;
    return kl_master_recall(m, one, chunk, twin->lo, error);
}

kilter_status kl_master_settle_twins(kl_master *m, kl_span tasks, kilter_error *error) {
    kilter_status status = KILTER_OK;
    for (size_t i = 0; i < m->twin_count && status == KILTER_OK;) {
        kl_twin twin = m->twins[i];
        if (twin.hi <= tasks.lo || twin.lo >= tasks.hi || !is_all_done(m, &twin)) {
            i++;
            continue;
        }
        m->twins[i] = m->twins[--m->twin_count];
        status = call_off(m, &twin, twin.first, error);
        if (status == KILTER_OK)
            status = call_off(m, &twin, twin.second, error);
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

uint64_t kl_master_alone_until(const kl_master *m, const kl_chunk *chunk) {
    uint64_t until = chunk->hi;
    for (size_t i = 0; i < m->twin_count; i++) {
        const kl_twin *t = &m->twins[i];
        if (t->second == chunk->id && t->copies >= KL_RESCUE_COPIES)
            return chunk->at;
        if (t->first == chunk->id && t->hi > chunk->at && t->lo < until)
            until = t->lo > chunk->at ? t->lo : chunk->at;
    }
    return until;
}

static kl_span common(kl_span a, kl_span b) {
    kl_span both = {a.lo > b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
    return both.lo < both.hi ? both : (kl_span){both.lo, both.lo};
}

static bool add_part(kl_master *m, kl_twin twin, uint64_t lo, uint64_t hi) {
    twin.lo = lo;
    twin.hi = hi;
    return lo >= hi || add_twin(m, &twin);
}

/* A copy gives up what is in `span`: a copy of it is one of `original` from now on. */
static bool pass_on(kl_master *m, const kl_twin *original, const kl_twin *copy, kl_span span) {
    kl_span passed =
        common(common(span, (kl_span){copy->lo, copy->hi}), (kl_span){original->lo, original->hi});
    kl_twin twin = *copy;
    twin.first = original->first;
    return add_part(m, twin, passed.lo, passed.hi);
}

/* What chunk `id` gives up: copies of it are copies of those that it is a copy of. */
static bool pass_all_on(kl_master *m, uint64_t id, kl_span span) {
    bool added = true;
    size_t count = m->twin_count; /* those added are not of this chunk */
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count && added && m->twins[i].first == id; k++) {
            kl_twin copy = m->twins[i], original = m->twins[k];
            added = original.second != id || pass_on(m, &original, &copy, span);
        }
    return added;
}

/* Somebody has one of these tasks in the chunk, and has not done it. */
static bool is_at(kl_master *m, uint64_t id, kl_span span) {
    member *one;
    kl_chunk *chunk;
    if (!find_chunk(m, id, &one, &chunk))
        return false;
    kl_span held = common(span, (kl_span){chunk->at, chunk->hi});
    return held.lo < held.hi;
}

/* Take `span` out of the i-th twin. */
static bool cut_out(kl_master *m, size_t i, kl_span span) {
    kl_twin t = m->twins[i];
    m->twins[i] = m->twins[--m->twin_count];
    return add_part(m, t, t.lo, t.hi < span.lo ? t.hi : span.lo) &&
           add_part(m, t, t.lo > span.hi ? t.lo : span.hi, t.hi);
}

kilter_status kl_master_part_twins(kl_master *m, uint64_t id, kl_span span, bool *at_other,
                                   kilter_error *error) {
    bool added = pass_all_on(m, id, span);
    *at_other = false;
    for (size_t i = 0; i < m->twin_count && added;) {
        kl_twin t = m->twins[i];
        kl_span shared = common(span, (kl_span){t.lo, t.hi});
        if ((t.first != id && t.second != id) || shared.lo == shared.hi) {
            i++;
            continue;
        }
        *at_other |= is_at(m, t.first == id ? t.second : t.first, shared);
        added = cut_out(m, i, span);
    }
    return added ? KILTER_OK
                 : kl_fail(error, KILTER_ERR_MEMORY, "taking tasks out of a chunk: memory ran out");
}
