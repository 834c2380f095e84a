/* Check that folding gives the same value wherever rows are split between ranks, even if the combining
 * function is not associative. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loop/fold.h"

/* hash: a value that depends on the shape of the tree; rows: number of rows that it covers */
typedef struct value {
    uint64_t hash, first, rows;
} value;

static void combine(void *left, const void *right, uint64_t bytes, void *user) {
    value *l = left;
    const value *r = right;
    assert_int_equal(bytes, sizeof *l);
    /* the two values belong to neighbouring rows, in rising order */
    assert_int_equal(r->first, l->first + l->rows);
    l->hash = kl_mix64(3 * l->hash + kl_mix64(r->hash));
    l->rows += r->rows;
    ++*(uint64_t *)user;
}

static kl_fold new_fold(uint64_t *calls) {
    return (kl_fold){.bytes = sizeof(value), .combine = combine, .user = calls};
}

static void add_rows(kl_fold *f, uint64_t lo, uint64_t hi) {
    for (uint64_t row = lo; row < hi; row++)
        assert_true(kl_fold_add(f, (kl_segment){row, 0}, &(value){kl_mix64(row), row, 1}));
}

static value whole(uint64_t n) {
    uint64_t calls = 0;
    kl_fold f = new_fold(&calls);
    add_rows(&f, 0, n);
    value all = *(const value *)kl_fold_value(&f);
    assert_int_equal(all.rows, n);
    assert_int_equal(calls, n - 1);
    kl_fold_free(&f);
    return all;
}

/* Fold the rows of each part, then collect and fold the segments of all parts. */
static value in_parts(uint64_t n, const uint64_t *bounds, const uint32_t *order, uint32_t parts) {
    uint64_t calls = 0;
    kl_fold all = new_fold(&calls), root = new_fold(&calls);
    for (uint32_t k = 0; k < parts; k++) {
        kl_fold part = new_fold(&calls);
        add_rows(&part, bounds[order[k]], bounds[order[k] + 1]);
        assert_true(part.count <= 128);
        assert_true(kl_fold_append(&all, &part));
        kl_fold_free(&part);
    }
    assert_true(kl_fold_add_all(&root, &all));
    value v = *(const value *)kl_fold_value(&root);
    assert_int_equal(calls, n - 1);
    kl_fold_free(&all);
    kl_fold_free(&root);
    return v;
}

static int rising(const void *a, const void *b) {
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return (one > other) - (one < other);
}

static void every_split_gives_the_same_value(void **state) {
    enum { PARTS = 9 };
    (void)state;
    for (uint64_t n = 1; n < 140; n += 1 + n / 20)
        for (uint64_t seed = 1; seed < 20; seed++) {
            uint64_t bounds[PARTS + 1] = {0}, random = seed;
            uint32_t order[PARTS];
            value expected = whole(n), v;
            for (uint32_t k = 1; k < PARTS; k++)
                bounds[k] = (random = kl_mix64(random)) % (n + 1);
            bounds[PARTS] = n;
            qsort(bounds, PARTS, sizeof *bounds, rising);
            for (uint32_t k = 0; k < PARTS; k++)
                order[k] = seed % 2 ? k : PARTS - 1 - k;
            v = in_parts(n, bounds, order, PARTS);
            assert_memory_equal(&v, &expected, sizeof v);
        }
}

static void nothing_has_no_value(void **state) {
    uint64_t calls = 0;
    kl_fold f = new_fold(&calls);
    (void)state;
    assert_null(kl_fold_value(&f));
    kl_fold_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_split_gives_the_same_value),
        cmocka_unit_test(nothing_has_no_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
