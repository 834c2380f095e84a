/* Tasks that several workers have. Only the first result of such a task counts, and then the other workers
 * need not do the task. */
#include <stdlib.h>
#include <string.h>

#include "engine/master_private.h"

enum { FIRST, SECOND, SIDES };
static const uint64_t NONE = UINT64_MAX;

/* --- lists of pairs of chunks with the same tasks (twins) --- */

/* Each twin is in two lists: the list of its first chunk and the list of its second chunk. A link in such a
 * list is a number. It says which twin comes next, and to which of the twin's two chunks the list belongs. */

static kl_twin *twin_at(const kl_twins *t, uint64_t link) {
    return &t->list[link / SIDES];
}

static uint64_t *bucket_of(const kl_twins *t, uint64_t chunk) {
    return &t->buckets[kl_mix64(chunk) & (t->bucket_count - 1)];
}

static void hang(kl_twins *t, uint64_t i) {
    for (uint64_t side = 0; side < SIDES; side++) {
        uint64_t *bucket = bucket_of(t, t->list[i].chunk[side]);
        t->list[i].next[side] = *bucket;
        *bucket = SIDES * i + side;
    }
}

static void unhang(kl_twins *t, uint64_t i) {
    for (uint64_t side = 0; side < SIDES; side++) {
        uint64_t *link = bucket_of(t, t->list[i].chunk[side]);
        while (*link != SIDES * i + side)
            link = &twin_at(t, *link)->next[*link % SIDES];
        *link = t->list[i].next[side];
    }
}

static void remove_twin(kl_twins *t, uint64_t i) {
    unhang(t, i);
    if (i == --t->count)
        return;
    unhang(t, t->count);
    t->list[i] = t->list[t->count];
    hang(t, i);
}

static bool spread(kl_twins *t, uint64_t bucket_count) {
    uint64_t *buckets = realloc(t->buckets, bucket_count * sizeof *buckets);
    if (!buckets)
        return false;
    t->buckets = buckets;
    t->bucket_count = bucket_count;
    memset(buckets, 0xff, bucket_count * sizeof *buckets); /* set each bucket to NONE */
    for (uint64_t i = 0; i < t->count; i++)
        hang(t, i);
    return true;
}

/* Make room for `more` pairs of chunks (twins). */
static bool reserve(kl_twins *t, uint64_t more) {
    kl_twin *list = kl_array_grow(t->list, &t->room, t->count + more, sizeof *list);
    uint64_t buckets = t->bucket_count ? t->bucket_count : 16;
    if (!list)
        return false;
    t->list = list;
    while (buckets < SIDES * (t->count + more))
        buckets *= 2;
    return buckets == t->bucket_count || spread(t, buckets);
}

static bool add_twin(kl_twins *t, const kl_twin *twin) {
    if (!reserve(t, 1))
        return false;
    t->list[t->count] = *twin;
    hang(t, t->count++);
    return true;
}

/* Follow a list of pairs (twins) from `link` on. Return the first link that belongs to this chunk. NONE:
 * there is none. */
static uint64_t link_of(const kl_twins *t, uint64_t link, uint64_t chunk) {
    while (link != NONE && twin_at(t, link)->chunk[link % SIDES] != chunk)
        link = twin_at(t, link)->next[link % SIDES];
    return link;
}

static uint64_t first_link(const kl_twins *t, uint64_t chunk) {
    return t->count > 0 ? link_of(t, *bucket_of(t, chunk), chunk) : NONE;
}

static uint64_t next_link(const kl_twins *t, uint64_t link) {
    const kl_twin *twin = twin_at(t, link);
    return link_of(t, twin->next[link % SIDES], twin->chunk[link % SIDES]);
}

void kl_twins_clear(kl_twins *t) {
    t->count = 0;
    t->any = false;
    if (t->buckets)
        memset(t->buckets, 0xff, t->bucket_count * sizeof *t->buckets);
}

void kl_twins_free(kl_twins *t) {
    free(t->list);
    free(t->buckets);
    *t = (kl_twins){0};
}

/* --- recalling and removing tasks that several workers have --- */

static bool find_chunk(const kl_master *m, const kl_twin *twin, int side, member **one, kl_chunk **chunk) {
    *one = kl_master_member(m, twin->worker[side]);
    for (size_t k = 0; *one && k < (*one)->chunk_count; k++) {
        *chunk = &(*one)->chunks[k];
        if ((*chunk)->id == twin->chunk[side] && !(*chunk)->stale)
            return true;
    }
    return false;
}

kilter_status kl_master_recall(kl_master *m, member *one, kl_chunk *chunk, uint64_t from,
                               kilter_error *error) {
    /* send no recall if an earlier recall that is not answered yet includes these tasks */
    if (chunk->recalled_s > 0 && chunk->recalled_from <= from)
        return KILTER_OK;
    kl_buffer out = {0};
    kl_wire_put_part(&out, KL_RECALL, &(kl_part){chunk->id, from, chunk->hi});
    chunk->recalled_s = kl_now_s(&m->options.clock);
    chunk->recalled_from = from;
    kilter_status status = kl_send(m->transport, one->peer, &out, error);
    kl_buffer_free(&out);
    /* it is no error if the worker is gone, because the transport will report that */
    return status == KILTER_ERR_PEER ? KILTER_OK : status;
}

/* Return the pair of chunks (twin) in which this chunk is the copy. NULL: the chunk is not a copy, or its
 * original is gone. */
static const kl_twin *twin_of_copy(const kl_twins *t, uint64_t chunk) {
    uint64_t link = first_link(t, chunk);
    while (link != NONE && link % SIDES != SECOND)
        link = next_link(t, link);
    return link != NONE ? twin_at(t, link) : NULL;
}

bool kl_twins_is_copy(const kl_twins *t, uint64_t chunk) {
    return twin_of_copy(t, chunk) != NULL;
}

kl_twin kl_twins_pair(const kl_twins *t, const kl_chunk *chunk, kl_span tasks, uint32_t to) {
    const kl_twin *before = twin_of_copy(t, chunk->id);
    return (kl_twin){.lo = tasks.lo,
                     .hi = tasks.hi,
                     .chunk = {chunk->id},
                     .worker = {chunk->worker, to},
                     .copies = before ? before->copies + 1 : 1};
}

kilter_status kl_twins_add(kl_twins *t, kl_twin *twin, uint64_t copy, kilter_error *error) {
    twin->chunk[SECOND] = copy;
    t->any = true;
    return add_twin(t, twin)
               ? KILTER_OK
               : kl_fail(error, KILTER_ERR_MEMORY, "giving tasks to a second worker: memory ran out");
}

static bool is_all_done(const kl_master *m, const kl_twin *twin) {
    bool done;
    kl_span alike = kl_ledger_alike(&m->balance.ledger, (kl_span){twin->lo, twin->hi}, &done);
    return done && alike.hi == twin->hi;
}

/* The tasks of this pair of chunks are all done. Recall them from the worker that has the chunk number `side`
 * of the pair. Do nothing if this worker has done them, too. */
static kilter_status call_off(kl_master *m, const kl_twin *twin, int side, kilter_error *error) {
    member *one;
    kl_chunk *chunk;
    if (!find_chunk(m, twin, side, &one, &chunk) || chunk->hi != twin->hi || chunk->at == chunk->hi)
        return KILTER_OK;
    return kl_master_recall(m, one, chunk, twin->lo, error);
}

/* Find a pair of chunks (twin) that this chunk belongs to. The pair must have some of these tasks, and all
 * its tasks must be done. Return the chunk's link to this pair. NONE: there is none. */
static uint64_t link_to_settle(const kl_master *m, uint64_t chunk, kl_span tasks) {
    for (uint64_t link = first_link(&m->twins, chunk); link != NONE; link = next_link(&m->twins, link)) {
        const kl_twin *t = twin_at(&m->twins, link);
        if (t->hi > tasks.lo && t->lo < tasks.hi && is_all_done(m, t))
            return link;
    }
    return NONE;
}

kilter_status kl_master_settle_twins(kl_master *m, uint64_t chunk, kl_span tasks, kilter_error *error) {
    kilter_status status = KILTER_OK;
    for (uint64_t link; status == KILTER_OK && (link = link_to_settle(m, chunk, tasks)) != NONE;) {
        kl_twin twin = *twin_at(&m->twins, link);
        remove_twin(&m->twins, link / SIDES);
        for (int side = 0; side < SIDES && status == KILTER_OK; side++)
            status = call_off(m, &twin, side, error);
        if (status == KILTER_OK) /* handle the chunks that were copied from this copy, too */
            status = kl_master_settle_twins(m, twin.chunk[1 - link % SIDES], tasks, error);
    }
    return status;
}

/* A twin is a pair of chunks with the same tasks. Return the first part of `span` that another worker has,
 * too, through a twin of chunk `id`. Empty: there is none. */
kl_span kl_twins_first_shared(const kl_twins *twins, uint64_t id, kl_span span) {
    kl_span first = {span.hi, span.hi};
    for (uint64_t link = first_link(twins, id); link != NONE; link = next_link(twins, link)) {
        const kl_twin *t = twin_at(twins, link);
        uint64_t lo = t->lo > span.lo ? t->lo : span.lo, hi = t->hi < span.hi ? t->hi : span.hi;
        if (lo < hi && lo < first.lo)
            first = (kl_span){lo, hi};
    }
    return first;
}

uint64_t kl_twins_alone_until(const kl_twins *twins, const kl_chunk *chunk) {
    uint64_t until = chunk->hi;
    for (uint64_t link = first_link(twins, chunk->id); link != NONE; link = next_link(twins, link)) {
        const kl_twin *t = twin_at(twins, link);
        if (link % SIDES == SECOND && t->copies >= KL_RESCUE_COPIES)
            return chunk->at;
        if (link % SIDES == FIRST && t->hi > chunk->at && t->lo < until)
            until = t->lo > chunk->at ? t->lo : chunk->at;
    }
    return until;
}

static kl_span common(kl_span a, kl_span b) {
    kl_span both = {a.lo > b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
    return both.lo < both.hi ? both : (kl_span){both.lo, both.lo};
}

static bool add_part(kl_twins *t, kl_twin twin, uint64_t lo, uint64_t hi) {
    twin.lo = lo;
    twin.hi = hi;
    return lo >= hi || add_twin(t, &twin);
}

/* A worker gives up the tasks in `span` of its copy. Let copies that were made from this copy count as copies
 * of the original chunk. */
static bool pass_on(kl_twins *t, const kl_twin *original, const kl_twin *copy, kl_span span) {
    kl_span passed =
        common(common(span, (kl_span){copy->lo, copy->hi}), (kl_span){original->lo, original->hi});
    kl_twin twin = *copy;
    twin.chunk[FIRST] = original->chunk[FIRST];
    twin.worker[FIRST] = original->worker[FIRST];
    return add_part(t, twin, passed.lo, passed.hi);
}

/* The worker of chunk `id` gives up the tasks in `span`. Chunk `id` may be a copy, and some of these tasks
 * may have been copied from it. Let the later copies count as copies of the chunks from which `id` was
 * copied. */
static bool pass_all_on(kl_twins *t, uint64_t id, kl_span span) {
    uint64_t links = 0;
    for (uint64_t link = first_link(t, id); link != NONE; link = next_link(t, link))
        links++;
    /* Reserve memory first, because getting more memory may reorder the list that the loops follow. The new
     * twins are not in this list. */
    bool added = links < 2 || reserve(t, links * links);
    for (uint64_t c = first_link(t, id); c != NONE && added; c = next_link(t, c))
        for (uint64_t o = first_link(t, id); c % SIDES == FIRST && o != NONE && added; o = next_link(t, o)) {
            kl_twin copy = *twin_at(t, c), original = *twin_at(t, o);
            added = o % SIDES != SECOND || pass_on(t, &original, &copy, span);
        }
    return added;
}

/* Return whether the worker that has the chunk number `side` of the pair still has to do a task in the
 * span. */
static bool is_at(const kl_master *m, const kl_twin *twin, int side, kl_span span) {
    member *one;
    kl_chunk *chunk;
    if (!find_chunk(m, twin, side, &one, &chunk))
        return false;
    kl_span held = common(span, (kl_span){chunk->at, chunk->hi});
    return held.lo < held.hi;
}

/* Find a pair of chunks (twin) that this chunk belongs to and that has some of these tasks. Return the
 * chunk's link to this pair. NONE: there is none. */
static uint64_t link_to_part(const kl_twins *t, uint64_t chunk, kl_span span) {
    for (uint64_t link = first_link(t, chunk); link != NONE; link = next_link(t, link))
        if (twin_at(t, link)->lo < span.hi && twin_at(t, link)->hi > span.lo)
            return link;
    return NONE;
}

kilter_status kl_master_part_twins(kl_master *m, uint64_t id, kl_span span, bool *at_other,
                                   kilter_error *error) {
    kl_twins *twins = &m->twins;
    bool added = pass_all_on(twins, id, span);
    *at_other = false;
    for (uint64_t link; added && (link = link_to_part(twins, id, span)) != NONE;) {
        kl_twin t = *twin_at(twins, link);
        *at_other |= is_at(m, &t, 1 - (int)(link % SIDES), common(span, (kl_span){t.lo, t.hi}));
        remove_twin(twins, link / SIDES);
        /* each of the two workers may now have tasks that no other worker has */
        for (int side = 0; side < SIDES; side++) {
            member *one = kl_master_member(m, t.worker[side]);
            if (one)
                one->nothing_alone = false;
        }
        added = add_part(twins, t, t.lo, t.hi < span.lo ? t.hi : span.lo) &&
                add_part(twins, t, t.lo > span.hi ? t.lo : span.hi, t.hi);
    }
    return added ? KILTER_OK
                 : kl_fail(error, KILTER_ERR_MEMORY, "taking tasks out of a chunk: memory ran out");
}
