/* Compare kl_busiest(), which computes the rows that the busiest rank sends and receives, with a count row by
 * row. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "steer/parts.h"

enum { MOST = 7, ROWS = 60, CASES = 4000 };

static uint64_t seed;

static uint64_t draw(uint64_t below) {
    seed = kl_mix64(seed);
    return (seed >> 20) % below;
}

static int rising(const void *a, const void *b) {
    return *(const uint64_t *)a < *(const uint64_t *)b ? -1 : *(const uint64_t *)a > *(const uint64_t *)b;
}

static void draw_bounds(uint32_t ranks, kl_place *bounds) {
    bounds[0] = 0;
    bounds[ranks] = ROWS;
    for (uint32_t r = 1; r < ranks; r++)
        bounds[r] = draw(ROWS + 1);
    qsort(bounds, ranks + 1, sizeof *bounds, rising);
}

static uint32_t owner(const kl_place *bounds, uint64_t row) {
    uint32_t r = 0;
    while (row >= bounds[r + 1])
        r++;
    return r;
}

/* Add up, row by row, the weights of the rows that cross each bound. Return the greatest sum over the two
 * bounds of a rank. */
static double count(const kl_outlook *o, const kl_place *before, const kl_place *after) {
    double passes[MOST + 1] = {0}, most = 0;
    for (uint64_t row = 0; row < ROWS; row++) {
        uint32_t from = owner(before, row), to = owner(after, row);
        for (uint32_t bound = from < to ? from + 1 : to + 1; bound <= (from < to ? to : from); bound++)
            passes[bound] += o->weight[from];
    }
    for (uint32_t r = 0; r < o->options.ranks; r++)
        most = fmax(most, passes[r] + passes[r + 1]);
    return most;
}

static void rows_count_by_their_bytes(void **state) {
    (void)state;
    for (int i = 0; i < CASES; i++) {
        kl_place before[MOST + 1], after[MOST + 1];
        double weight[MOST];
        kl_outlook o = {.options.ranks = 1 + (uint32_t)draw(MOST), .mean_bytes = 1, .weight = weight};
        for (uint32_t r = 0; r < MOST; r++)
            weight[r] = (double)draw(100) / 16;
        draw_bounds(o.options.ranks, before);
        draw_bounds(o.options.ranks, after);
        assert_true(fabs(kl_busiest(&o, before, after) - count(&o, before, after)) < 1e-9);
    }
}

static void equal_rows_count_as_rows(void **state) {
    (void)state;
    for (int i = 0; i < CASES; i++) {
        kl_place before[MOST + 1], after[MOST + 1];
        double weight[MOST] = {1, 1, 1, 1, 1, 1, 1};
        kl_outlook o = {.options = {.ranks = 1 + (uint32_t)draw(MOST)}, .weight = weight};
        draw_bounds(o.options.ranks, before);
        draw_bounds(o.options.ranks, after);
        for (int scattered = 0; scattered < 2; scattered++) {
            for (uint32_t r = 0; r < o.options.ranks && scattered; r++) { /* scattered loops have no bounds,
                                                                             so convert bounds to numbers of
                                                                             rows for each rank */
                before[r] = before[r + 1] - before[r];
                after[r] = after[r + 1] - after[r];
            }
            o.options.scattered = scattered;
            o.mean_bytes = 0;
            double plain = kl_busiest(&o, before, after);
            o.mean_bytes = 1;
            assert_true(fabs(kl_busiest(&o, before, after) - plain) < 1e-9);
        }
    }
}

/* Check that the forecast for moving a row doubles when the bytes of a row double. */
static void the_cost_of_moving_follows_the_bytes(void **state) {
    (void)state;
    kl_place here[] = {0, 30, ROWS}, after[] = {0, 20, ROWS};
    double weight[2], reported_s[2] = {0};
    kl_outlook o = {.options = {.ranks = 2, .iterations = ROWS, .byte_s = 1e-6, .buffers = true},
                    .here = here,
                    .weight = weight,
                    .moving.reported_s = reported_s};
    kl_moving_init(&o);
    kl_rank_report reports[2] = {{.row_bytes = 1000}, {.row_bytes = 1000}};
    kl_learn_bytes(&o, reports);
    assert_true(fabs(o.per_move_s - 1e-3) < 1e-9); /* a row of 1000 bytes takes 1e-3 s, at 1e-6 s per byte */
    double first_s = kl_move_s(&o, after);
    reports[0].row_bytes = reports[1].row_bytes = 2000;
    kl_learn_bytes(&o, reports);
    assert_true(fabs(kl_move_s(&o, after) / first_s - 2) < 1e-9);
    reports[0].row_bytes = 4000; /* only the rows of rank 0, which would move, become larger again */
    kl_learn_bytes(&o, reports);
    assert_true(fabs(kl_move_s(&o, after) / first_s - 4) < 1e-9);
    reports[0] = (kl_rank_report){.moved = 10, .moved_bytes = 30000, .moving_s = 1, .row_bytes = 4000};
    kl_learn_movements(&o, reports);
    /* measured: 10 rows in 1 s; first guess: 1e-3 s for a row of 1000 bytes, which counts as a third of a
     * present row */
    assert_true(fabs(o.per_move_s - (1 + 1e-3) / (10 + 1.0 / 3)) < 1e-9);
}

/* Check that moving nearly empty rows does not change the known cost of a row. Such rows do not show this
 * cost, because the messages take most of the time. */
static void moves_of_small_rows_teach_nothing(void **state) {
    (void)state;
    kl_place here[] = {0, 30, ROWS};
    double weight[2], reported_s[2] = {0};
    kl_outlook o = {.options = {.ranks = 2, .byte_s = 1e-9, .buffers = true},
                    .here = here,
                    .weight = weight,
                    .moving.reported_s = reported_s};
    kl_moving_init(&o);
    kl_rank_report reports[2] = {{.row_bytes = 10000}, {.row_bytes = 10000}};
    kl_learn_bytes(&o, reports);
    double before_s = o.per_move_s;
    reports[0] = (kl_rank_report){.moved = 100, .moved_bytes = 6400, .moving_s = 2e-4};
    kl_learn_movements(&o, reports);
    assert_true(o.per_move_s == before_s);
    assert_true(o.movement_s == 2e-4);
    reports[0].moved_bytes = 1e6;
    kl_learn_movements(&o, reports);
    assert_true(fabs(o.per_move_s - (2e-4 + before_s / 2) / (100 + 0.5)) < 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_count_by_their_bytes),
        cmocka_unit_test(equal_rows_count_as_rows),
        cmocka_unit_test(the_cost_of_moving_follows_the_bytes),
        cmocka_unit_test(moves_of_small_rows_teach_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
