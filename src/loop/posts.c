#include "loop/posts.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNED = 16, COUNT_BITS = 48 };

static uint64_t room_of(const kl_post *p) {
    return sizeof *p + (p->bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

bool kl_posts_add(kl_posts *s, uint64_t pass, uint64_t from, uint64_t to, const void *data, uint64_t bytes) {
    static const uint8_t zeros[ALIGNED];
    kl_post p = {.to = to, .from = from, .bytes = bytes, .order = pass << COUNT_BITS | s->count};
    if (bytes > SIZE_MAX / 4)
        return false;
    size_t before = s->out.size;
    kl_put_bytes(&s->out, &p, sizeof p);
    kl_put_bytes(&s->out, data, bytes);
    kl_put_bytes(&s->out, zeros, room_of(&p) - sizeof p - bytes);
    if (s->out.failed) {
        s->out.size = before;
        s->out.failed = false;
        return false;
    }
    s->count++;
    return true;
}

uint32_t kl_posts_owner(const uint64_t *bounds, uint32_t ranks, uint64_t row) {
    uint32_t in = 0, out = ranks;
    while (out - in > 1) {
        uint32_t middle = in + (out - in) / 2;
        if (bounds[middle] <= row)
            in = middle;
        else
            out = middle;
    }
    return in;
}

static const kl_post *at(const kl_buffer *b, uint64_t offset) {
    return (const kl_post *)(const void *)(b->data + offset);
}

static bool resize(kl_buffer *b, uint64_t bytes) {
    if (bytes > b->capacity) {
        free(b->data);
        *b = (kl_buffer){.data = malloc(bytes)};
        b->capacity = b->data ? bytes : 0;
    }
    b->size = bytes <= b->capacity ? bytes : 0;
    return bytes <= b->capacity;
}

static bool list(kl_posts *s, const kl_post *p) {
    const kl_post **more = kl_array_grow(s->list, &s->room, s->listed + 1, sizeof *more);
    if (!more)
        return false;
    s->list = more;
    s->list[s->listed++] = p;
    return true;
}

/* Count the bytes for each other rank in `sends`, and list the messages that stay on this rank. *sum: bytes
 * for all other ranks together. */
static bool count(kl_posts *s, const uint64_t *bounds, uint32_t ranks, uint32_t rank, uint64_t *sum) {
    bool fits = true;
    memset(s->sends, 0, ranks * sizeof *s->sends);
    for (uint64_t i = 0; i < s->out.size && fits; i += room_of(at(&s->out, i))) {
        const kl_post *p = at(&s->out, i);
        uint32_t owner = kl_posts_owner(bounds, ranks, p->to);
        if (owner != rank)
            s->sends[owner] += room_of(p);
        else
            fits = list(s, p);
    }
    *sum = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        /* for now, receives[r] is the position at which the messages for rank r begin */
        s->receives[r] = *sum;
        *sum += s->sends[r];
    }
    return fits;
}

bool kl_posts_sort(kl_posts *s, const uint64_t *bounds, uint32_t ranks, uint32_t rank) {
    uint64_t sum;
    s->sends = s->sends ? s->sends : calloc(2 * (size_t)ranks, sizeof *s->sends);
    if (!s->sends)
        return false;
    s->receives = s->sends + ranks;
    if (!count(s, bounds, ranks, rank, &sum) || !resize(&s->sorted, sum))
        return false;
    for (uint64_t i = 0; i < s->out.size && sum > 0; i += room_of(at(&s->out, i))) {
        const kl_post *p = at(&s->out, i);
        uint32_t owner = kl_posts_owner(bounds, ranks, p->to);
        if (owner == rank)
            continue;
        memcpy(s->sorted.data + s->receives[owner], p, room_of(p));
        s->receives[owner] += room_of(p);
    }
    return true;
}

bool kl_posts_expect(kl_posts *s, uint32_t ranks) {
    uint64_t sum = 0;
    for (uint32_t r = 0; r < ranks; r++)
        sum += s->receives[r];
    return resize(&s->in, sum);
}

/* Sort messages by their rows, then by pass and number. Messages with the same rows and pass come from one
 * rank, which has numbered them. */
static int by_rows(const void *a, const void *b) {
    const kl_post *x = *(const kl_post *const *)a, *y = *(const kl_post *const *)b;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

bool kl_posts_arrange(kl_posts *s) {
    bool fits = true, sorted = true;
    for (uint64_t i = 0; i < s->in.size && fits; i += room_of(at(&s->in, i)))
        fits = list(s, at(&s->in, i));
    for (uint64_t i = 1; i < s->listed && sorted; i++)
        sorted = by_rows(&s->list[i - 1], &s->list[i]) < 0;
    if (!sorted)
        qsort(s->list, s->listed, sizeof(const kl_post *), by_rows);
    return fits;
}

void kl_posts_clear(kl_posts *s) {
    kl_buffer_clear(&s->out);
    kl_buffer_clear(&s->sorted);
    kl_buffer_clear(&s->in);
    s->count = s->listed = 0;
}

void kl_posts_free(kl_posts *s) {
    kl_buffer_free(&s->out);
    kl_buffer_free(&s->sorted);
    kl_buffer_free(&s->in);
    free(s->sends);
    free(s->list);
    *s = (kl_posts){0};
}
