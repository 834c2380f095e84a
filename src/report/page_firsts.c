/* Write the number of the first task of each chunk. Most chunks begin with the task after the last task of
 * the chunk that was dealt before. So two columns of small numbers are enough: RANK has the order of the
 * chunks, and SKIP has the tasks that were skipped or repeated.
 */
#include <stdlib.h>

#include "report/page.h"

/* An entry of the list of chunks, which is sorted by the chunks' first tasks. */
typedef struct place {
    size_t at, run_at; /* index of the chunk, and of its run's first chunk */
} place;

void kl_page_put_varint(kl_buffer *to, uint64_t value) {
    for (; value >= 0x80; value >>= 7)
        kl_put_u8(to, (uint8_t)(0x80 | (value & 0x7f)));
    kl_put_u8(to, (uint8_t)value);
}

void kl_page_put_signed(kl_buffer *to, int64_t value) {
    kl_page_put_varint(to, value < 0 ? 2 * (uint64_t)(-(value + 1)) + 1 : 2 * (uint64_t)value);
}

#define KL_ORDER(a, b) (((a) > (b)) - ((a) < (b)))

static int by_began(const void *a, const void *b) {
    const kl_page_first *x = a, *y = b;
    return x->began != y->began ? KL_ORDER(x->began, y->began) : KL_ORDER(x->at, y->at);
}

static int by_task(const void *a, const void *b) {
    const kl_page_first *x = a, *y = b;
    int order = x->run != y->run ? KL_ORDER(x->run, y->run) : KL_ORDER(x->lo, y->lo);
    return order ? order : by_began(a, b);
}

/* ---- a Fenwick tree counts the chunks that were taken ---- */

static void take(uint64_t *tree, size_t count, size_t at) {
    for (at++; at <= count; at += at & -at)
        tree[at]++;
}

static uint64_t taken_before(const uint64_t *tree, size_t at) {
    uint64_t sum = 0;
    for (; at > 0; at -= at & -at)
        sum += tree[at];
    return sum;
}

/* ---- columns ---- */

/* Sort `firsts` by first task, and find the place of each chunk in this order. Before the call, `firsts` must
 * be sorted by the times at which the chunks began. */
static void find_places(kl_page_first *firsts, size_t count, place *places) {
    size_t run_at = 0;
    for (size_t i = 0; i < count; i++)
        firsts[i].at = i;
    qsort(firsts, count, sizeof *firsts, by_task);
    for (size_t i = 0; i < count; i++) {
        if (firsts[i].run != firsts[run_at].run)
            run_at = i;
        places[firsts[i].at] = (place){i, run_at};
    }
}

static void put_ranks(const place *places, size_t count, uint64_t *tree, kl_buffer *to) {
    for (size_t i = 0; i < count; i++) {
        const place *p = &places[i];
        uint64_t taken = taken_before(tree, p->at) - taken_before(tree, p->run_at);
        kl_page_put_varint(to, p->at - p->run_at - taken);
        take(tree, count, p->at);
    }
}

static void put_skips(const kl_page_first *firsts, size_t count, kl_buffer *to) {
    for (size_t i = 0; i < count; i++) {
        uint64_t end = i > 0 && firsts[i - 1].run == firsts[i].run ? firsts[i - 1].hi : 0;
        kl_page_put_signed(to, (int64_t)(firsts[i].lo - end));
    }
}

bool kl_page_put_firsts(kl_page_first *firsts, size_t count, kl_page_chunks *chunks) {
    if (count == 0)
        return true;
    place *places = calloc(count, sizeof *places);
    uint64_t *tree = calloc(count + 1, sizeof *tree);
    if (places && tree) {
        qsort(firsts, count, sizeof *firsts, by_began);
        find_places(firsts, count, places);
        put_ranks(places, count, tree, &chunks->column[KL_PAGE_RANK]);
        put_skips(firsts, count, &chunks->column[KL_PAGE_SKIP]);
    }
    bool made = places && tree;
    free(places);
    free(tree);
    return made;
}
