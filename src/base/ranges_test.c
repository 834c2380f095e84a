/* Compare sets of indices, for random spans, with plain arrays that hold one flag for each index. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

enum { MOST = 60 };

typedef struct flags {
    bool at[MOST];
} flags;

static kl_ranges some(uint64_t seed, flags *f) {
    kl_ranges r = {0};
    *f = (flags){0};
    for (uint64_t i = 0; i < kl_mix64(seed) % 8; i++) {
        kl_span span = {kl_mix64(seed + 2 * i + 1) % MOST, 0};
        span.hi = span.lo + kl_mix64(seed + 2 * i + 2) % (MOST - span.lo + 1);
        assert_true(kl_ranges_add(&r, span));
        for (uint64_t k = span.lo; k < span.hi; k++)
            f->at[k] = true;
    }
    return r;
}

static void assert_same(const kl_ranges *r, const flags *f) {
    flags found = {0};
    for (size_t i = 0; i < r->count; i++) {
        assert_true(r->at[i].lo < r->at[i].hi);
        if (i > 0) /* spans are sorted and do not touch each other */
            assert_true(r->at[i - 1].hi < r->at[i].lo);
        for (uint64_t k = r->at[i].lo; k < r->at[i].hi; k++)
            found.at[k] = true;
    }
    assert_memory_equal(&found, f, sizeof found);
}

static void tidy_ones_have_each_index_once(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < 500; seed++) {
        flags f;
        kl_ranges r = some(seed * 1000, &f);
        kl_ranges_tidy(&r);
        assert_same(&r, &f);
        uint64_t count = 0;
        for (size_t i = 0; i < MOST; i++)
            count += f.at[i];
        assert_int_equal(kl_ranges_sum(&r), count);
        kl_ranges_free(&r);
    }
}

static void what_is_gone_is_not_in_the_rest(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < 500; seed++) {
        flags all_flags, gone_flags;
        kl_ranges all = some(seed * 1000, &all_flags), gone = some(seed * 1000 + 500, &gone_flags),
                  rest = {0};
        kl_ranges_tidy(&all);
        kl_ranges_tidy(&gone);
        assert_true(kl_ranges_without(&all, &gone, &rest));
        for (size_t i = 0; i < MOST; i++)
            all_flags.at[i] = all_flags.at[i] && !gone_flags.at[i];
        assert_same(&rest, &all_flags);
        kl_ranges_free(&all);
        kl_ranges_free(&gone);
        kl_ranges_free(&rest);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tidy_ones_have_each_index_once),
        cmocka_unit_test(what_is_gone_is_not_in_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
