/* Test the blocks of a pipeline: they must cover a row exactly once, and the chosen size must be nearly
 * the fastest one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "steer/steer.h"

static double random_01(uint64_t i) {
    return (double)(kl_mix64(i) >> 11) * 0x1p-53;
}

static void blocks_cover_a_row_once(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        kl_blocks b = {.elements = 1 + kl_mix64(seed) % 3000};
        b.block = 1 + kl_mix64(seed + 1) % b.elements;
        uint64_t most = kl_mix64(seed + 2) % 100;
        b.sizes = seed % 3 ? kl_blocks_sizes(b.elements, most) : 0;
        assert_true(b.sizes == 0 || UINT64_C(1) << (b.sizes - 1) <= most);
        uint64_t count = kl_blocks_count(&b), at = 0, tried = 0, tries[KL_SIZES] = {0};
        for (uint64_t i = 0; i < count; i++) {
            kl_span block = kl_blocks_at(&b, i), try;
            uint32_t size;
            bool is_try = kl_blocks_try(&b, block.lo, &size, &try);
            uint64_t length = is_try ? UINT64_C(1) << size : b.block;
            assert_true(block.lo == at && block.hi > at);
            assert_true(block.hi - block.lo == length || (i + 1 == count && block.hi - block.lo < length));
            assert_true(!is_try || (try.lo <= block.lo && block.hi <= try.hi));
            if (is_try && block.hi == try.hi) {
                tries[size]++;
                tried += try.hi - try.lo;
            }
            at = block.hi;
        }
        assert_true(at == b.elements && tried <= b.elements / 2);
        for (uint32_t k = 0; k < KL_SIZES; k++)
            assert_true(tries[k] == (k < b.sizes ? KL_TRIES : 0));
    }
    assert_int_equal(kl_blocks_sizes(UINT64_MAX / 4, UINT64_MAX), KL_SIZES);
}

/* A load begins or ends during the tries of block sizes. Check that each size still has at least one try
 * without load. */
static void a_load_meanwhile_is_taken_for_no_size(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        kl_blocks b = {.elements = 48 + kl_mix64(seed) % 3000, .block = 1};
        b.sizes = kl_blocks_sizes(b.elements, 1 + kl_mix64(seed + 1) % 100);
        uint64_t tried = kl_blocks_at(&b, kl_blocks_tried(&b)).lo;
        uint64_t change = tried / KL_TRIES + kl_mix64(seed + 2) % (tried - 2 * tried / KL_TRIES + 1);
        double least_s[KL_SIZES] = {0};
        for (uint64_t at = 0; at < tried;) {
            uint32_t size;
            kl_span try;
            assert_true(kl_blocks_try(&b, at, &size, &try));
            bool loaded = seed % 2 ? try.lo < change : try.hi > change;
            double each_s = loaded ? 2 : 1;
            least_s[size] = least_s[size] > 0 ? fmin(least_s[size], each_s) : each_s;
            at = try.hi;
        }
        for (uint32_t k = 0; k < b.sizes; k++)
            assert_true(least_s[k] == 1);
    }
}

/* Return a pipeline with a random body. If the block size doubles, the body's speed changes by a factor of
 * up to `change`. */
static kl_grain random_grain(uint64_t seed, double change) {
    kl_grain g = {.pipeline = {.ranks = 2 + kl_mix64(seed) % 63,
                               .elements = 48 + kl_mix64(seed + 1) % 3000,
                               .fixed_s = exp(10 * random_01(seed + 3) - 14),
                               .incr_s = exp(10 * random_01(seed + 4) - 20)}};
    double each_s = exp(12 * random_01(seed + 2) - 6) / (double)g.pipeline.elements / g.pipeline.ranks;
    g.sizes = kl_blocks_sizes(g.pipeline.elements, 64);
    for (uint32_t k = 0; k < g.sizes; k++) {
        g.element_s[k] = each_s;
        each_s *= pow(change, 2 * random_01(seed + 10 + k) - 1);
    }
    return g;
}

static void the_chosen_block_is_near_the_best(void **state) {
    (void)state;
    static const struct {
        double change, worst, mean;
    } rows[] = {{1, 1.0001, 1.0001}, {1.5, 1.06, 1.005}, {4, 1.06, 1.005}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double worst = 1, sum = 0;
        enum { SEEDS = 1000 };
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            kl_grain g = random_grain(100 * seed, rows[i].change);
            double least_s = INFINITY;
            for (uint64_t block = 1; block <= g.pipeline.elements; block++)
                least_s = fmin(least_s, kl_grain_elapsed_s(&g, block));
            uint64_t block = kl_grain_block(&g);
            assert_true(block >= 1 && block <= g.pipeline.elements);
            double ratio = kl_grain_elapsed_s(&g, block) / least_s;
            worst = fmax(worst, ratio);
            sum += ratio;
        }
        printf("time with the chosen block size over the time with the best: mean %.4f, worst %.4f\n",
               sum / SEEDS, worst);
        assert_true(worst < rows[i].worst && sum / SEEDS < rows[i].mean);
    }
}

static void the_body_alone_decides_where_bounds_cost_little(void **state) {
    (void)state;
    kl_grain g = {.pipeline = {.ranks = 2, .elements = 1000, .fixed_s = 1e-9},
                  .sizes = 5,
                  .element_s = {4e-6, 2e-6, 1e-6, 2e-6, 4e-6}};
    assert_int_equal(kl_grain_block(&g), 4);
    g.pipeline.fixed_s = 1;
    assert_int_equal(kl_grain_block(&g), 1000);
}

static void what_executions_take_sets_the_level(void **state) {
    (void)state;
    kl_grain g = {
        .pipeline = {.ranks = 4, .elements = 100, .fixed_s = 1e-6}, .sizes = 2, .element_s = {2, 1}};
    kl_grain_refresh(&g, 2, 300); /* 100 elements in blocks of 2 took 300 s */
    assert_true(g.element_s[0] == 6 && g.element_s[1] == 3);
    kl_grain_refresh(&g, 50, 100);
    assert_true(g.element_s[0] == 2 && g.element_s[1] == 1);
    kl_grain_refresh(&g, 50, 0);
    kl_grain_refresh(&g, 50, NAN);
    assert_true(g.element_s[0] == 2 && g.element_s[1] == 1);
    kl_grain nothing_tried = {.pipeline = {.ranks = 2, .elements = 5, .fixed_s = 1}};
    assert_int_equal(kl_grain_block(&nothing_tried), 5);
    kl_grain_refresh(&nothing_tried, 5, 10);
    assert_true(nothing_tried.sizes == 1 && nothing_tried.element_s[0] == 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_cover_a_row_once),
        cmocka_unit_test(a_load_meanwhile_is_taken_for_no_size),
        cmocka_unit_test(the_chosen_block_is_near_the_best),
        cmocka_unit_test(the_body_alone_decides_where_bounds_cost_little),
        cmocka_unit_test(what_executions_take_sets_the_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
