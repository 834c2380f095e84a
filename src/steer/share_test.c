/* Test shares, bounds, and transfers between old and new shares: check sums, order and optimality for random
 * rates and costs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "steer/steer.h"

enum { MOST = 64 };

static double random_01(uint64_t i) {
    return (double)(kl_mix64(i) >> 11) * 0x1p-53;
}

static uint64_t sum_of(uint32_t ranks, const uint64_t *shares) {
    uint64_t sum = 0;
    for (uint32_t r = 0; r < ranks; r++)
        sum += shares[r];
    return sum;
}

/* --- shares --- */

static void shares_are_by_largest_remainder(void **state) {
    (void)state;
    static const struct {
        uint64_t n;
        uint32_t ranks;
        double rates[4];
        uint64_t least, shares[4];
    } rows[] = {
        {10, 2, {1, 1}, 0, {5, 5}},
        {10, 4, {1, 1, 1, 1}, 0, {3, 3, 2, 2}}, /* if ranks have equal rates, the lower rank gets more */
        {10, 3, {1, 2, 3}, 0, {2, 3, 5}},       /* 1.67, 3.33, 5 */
        {2, 4, {1, 1, 1, 1}, 0, {1, 1, 0, 0}},
        {1, 3, {1, 5, 1}, 0, {0, 1, 0}},
        {100, 4, {1, 1, 1, 0}, 0, {34, 33, 33, 0}},
        {100, 4, {1, 1, 1, 0}, 1, {33, 33, 33, 1}},
        {100, 4, {1e-9, 1, 1, 1}, 4, {4, 32, 32, 32}},
        {100, 3, {1e-9, 1e-9, 1}, 10, {10, 10, 80}},
        {5,
         4,
         {0, 0, 0, 1},
         9,
         {1, 1, 1, 2}}, /* n is too small for 9 iterations on each rank, so the minimum is n/ranks */
        {3,
         4,
         {0, 0, 0, 7},
         1,
         {0, 0, 0, 3}},          /* there are fewer iterations than ranks, so there is no minimum */
        {7, 1, {1e300}, 1, {7}}, /* a single rank gets all iterations */
        {12, 3, {1e308, 1e308, 1e308}, 0, {4, 4, 4}} /* the sum of the rates exceeds the range of double */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t shares[4];
        assert_int_equal(kl_shares(rows[i].n, rows[i].ranks, rows[i].rates, rows[i].least, shares),
                         KILTER_OK);
        for (uint32_t r = 0; r < rows[i].ranks; r++)
            assert_int_equal(shares[r], rows[i].shares[r]);
    }
}

static void rates_that_are_none_are_refused(void **state) {
    (void)state;
    const double wrong[][2] = {{0, 0}, {1, -1}, {NAN, 1}, {INFINITY, 1}, {1, -INFINITY}};
    kl_costs costs;
    assert_int_equal(kl_costs_init(&costs, 10, 5), KILTER_OK);
    for (int uneven = 0; uneven < 2; uneven++) {
        costs.cost[0] += 0.25 * uneven;
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            uint64_t shares[2] = {77, 78}, bounds[3] = {77, 78, 79};
            assert_int_equal(kl_shares(10, 2, wrong[i], 0, shares), KILTER_ERR_RANGE);
            assert_int_equal(kl_bounds(&costs, 2, wrong[i], 0, bounds), KILTER_ERR_RANGE);
            assert_true(shares[0] == 77 && shares[1] == 78 && bounds[0] == 77 && bounds[1] == 78);
        }
    }
    kl_costs_free(&costs);
}

static uint64_t random_n(uint64_t seed) {
    uint64_t n = kl_mix64(seed) >> (kl_mix64(seed + 1) % 64);
    return n > 0 ? n : 1;
}

static uint32_t random_rates(uint64_t seed, double *rates) {
    uint32_t ranks = 1 + kl_mix64(seed + 2) % MOST;
    double spread = 20 * random_01(seed + 3);
    for (uint32_t r = 0; r < ranks; r++)
        rates[r] = kl_mix64(seed * 131 + r) % 11 == 0 ? 0 : exp(spread * (random_01(seed * 131 + r) - 0.5));
    rates[kl_mix64(seed + 4) % ranks] = 1;
    return ranks;
}

static void shares_add_up_and_follow_the_rates(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < 20000; seed++) {
        double rates[MOST], sum = 0;
        uint64_t shares[MOST], n = random_n(seed), least = kl_mix64(seed + 9) % 3;
        uint32_t ranks = random_rates(seed, rates);
        assert_int_equal(kl_shares(n, ranks, rates, least, shares), KILTER_OK);
        assert_true(sum_of(ranks, shares) == n);
        for (uint32_t r = 0; r < ranks; r++)
            sum += rates[r];
        for (uint32_t r = 0; r < ranks; r++) {
            assert_true(shares[r] >= (least < n / ranks ? least : n / ranks));
            if (least == 0 && n < (uint64_t)1 << 50)
                assert_true(fabs((double)shares[r] - (double)n * rates[r] / sum) < 1.01);
            /* a faster rank must not get fewer iterations, and neither must the lower one of two equally
             * fast ranks */
            for (uint32_t q = 0; q < ranks; q++)
                if (rates[q] > rates[r] || (rates[q] == rates[r] && q < r))
                    assert_true(shares[q] >= shares[r]);
        }
    }
}

static void equal_shares_are_those_of_equal_rates(void **state) {
    (void)state;
    double ones[MOST];
    for (int i = 0; i < MOST; i++)
        ones[i] = 3.7;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        uint64_t equal[MOST], shares[MOST], n = random_n(seed) >> 12;
        uint32_t ranks = 1 + seed % MOST;
        kl_equal_shares(n, ranks, equal);
        assert_int_equal(kl_shares(n, ranks, ones, 0, shares), KILTER_OK);
        assert_memory_equal(equal, shares, ranks * sizeof *shares);
    }
}

/* --- costs of iterations along their index --- */

static double time_of(const kl_costs *costs, const double *speeds, const uint64_t *bounds, uint32_t r) {
    return kl_costs_work(costs, (kl_span){bounds[r], bounds[r + 1]}) / speeds[r];
}

static void random_costs(uint64_t seed, kl_costs *costs) {
    for (uint32_t k = 0; k < costs->bins; k++)
        costs->cost[k] = 0.1 + 3 * random_01(seed * 977 + k);
}

static void bounds_make_forecast_times_equal_but_for_an_iteration(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < 3000; seed++) {
        double speeds[MOST], total = 0;
        uint64_t bounds[MOST + 1], n = 1 + kl_mix64(seed) % 100000;
        uint32_t ranks = random_rates(seed, speeds);
        kl_costs costs;
        assert_int_equal(kl_costs_init(&costs, n, 1 + kl_mix64(seed + 5) % 500), KILTER_OK);
        random_costs(seed, &costs);
        assert_int_equal(kl_bounds(&costs, ranks, speeds, 0, bounds), KILTER_OK);
        assert_int_equal(bounds[0], 0);
        assert_true(bounds[ranks] == n);
        for (uint32_t r = 0; r < ranks; r++)
            total += speeds[r];
        double due_s = kl_costs_work(&costs, (kl_span){0, n}) / total, dearest = 3.2;
        for (uint32_t r = 0; r < ranks; r++) {
            assert_true(bounds[r] <= bounds[r + 1]);
            double over = kl_costs_work(&costs, (kl_span){bounds[r], bounds[r + 1]}) - due_s * speeds[r];
            assert_true(fabs(over) <= dearest);
        }
        uint64_t least = 1 + kl_mix64(seed + 6) % 5, floor_each = least < n / ranks ? least : n / ranks;
        assert_int_equal(kl_bounds(&costs, ranks, speeds, least, bounds), KILTER_OK);
        for (uint32_t r = 0; r < ranks; r++)
            assert_true(bounds[r + 1] - bounds[r] >= floor_each);
        assert_true(bounds[0] == 0 && bounds[ranks] == n);
        kl_costs_free(&costs);
    }
}

static void alike_iterations_have_the_bounds_of_shares(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < 500; seed++) {
        double speeds[MOST];
        uint64_t bounds[MOST + 1], shares[MOST], by_shares[MOST + 1], n = 1 + kl_mix64(seed) % 5000;
        uint32_t ranks = random_rates(seed, speeds);
        kl_costs costs, none = {.n = n};
        assert_int_equal(kl_costs_init(&costs, n, 100), KILTER_OK);
        assert_int_equal(kl_shares(n, ranks, speeds, 1, shares), KILTER_OK);
        kl_bounds_of_shares(ranks, shares, by_shares);
        assert_int_equal(kl_bounds(&costs, ranks, speeds, 1, bounds), KILTER_OK);
        assert_memory_equal(bounds, by_shares, (ranks + 1) * sizeof *bounds);
        assert_int_equal(kl_bounds(&none, ranks, speeds, 1, bounds), KILTER_OK);
        assert_memory_equal(bounds, by_shares, (ranks + 1) * sizeof *bounds);
        kl_costs_free(&costs);
    }
}

/* Set the seconds per iteration that rank r measures in the parts of its range, if the true costs are
 * `truth` and the ranks have `speeds`. */
static void measure(const kl_costs *truth, const double *speeds, const uint64_t *bounds, uint32_t r,
                    double *segments_s) {
    double length = (double)(bounds[r + 1] - bounds[r]) / KL_SEGMENTS, count[KL_SEGMENTS] = {0};
    memset(segments_s, 0, KL_SEGMENTS * sizeof *segments_s);
    kl_span range = {bounds[r], bounds[r + 1]};
    for (uint64_t i = range.lo; i < range.hi; i++) {
        uint32_t s = kl_segment_of(range, i);
        assert_true(s < KL_SEGMENTS && (double)(i - range.lo) >= s * length - 1e-6);
        segments_s[s] += kl_costs_work(truth, (kl_span){i, i + 1}) / speeds[r];
        count[s]++;
    }
    for (int s = 0; s < KL_SEGMENTS; s++)
        segments_s[s] = count[s] > 0 ? segments_s[s] / count[s] : 0;
}

static double slowest_over_mean(const kl_costs *truth, const double *speeds, const uint64_t *bounds,
                                uint32_t ranks) {
    double most = 0, work = 0, total = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        most = fmax(most, time_of(truth, speeds, bounds, r));
        work += kl_costs_work(truth, (kl_span){bounds[r], bounds[r + 1]});
        total += speeds[r];
    }
    return most / (work / total);
}

/* Costs and speeds are both unknown at first. The costs at bounds, and moves of bounds, make it possible to
 * distinguish costs from speeds. Check that the loop ends in balance. */
static void what_ranks_measure_ends_in_balance(void **state) {
    (void)state;
    enum { RANKS = 6, N = 3000 };
    for (uint64_t seed = 1; seed < 60; seed++) {
        double speeds[RANKS], found[RANKS], segments_s[RANKS][KL_SEGMENTS];
        uint64_t bounds[RANKS + 1], shares[RANKS];
        kl_costs truth, costs;
        assert_int_equal(kl_costs_init(&truth, N, 30), KILTER_OK);
        assert_int_equal(kl_costs_init(&costs, N, 16 * RANKS), KILTER_OK);
        double slope = 4 * random_01(seed), bump = 3 * random_01(seed + 100);
        for (uint32_t k = 0; k < truth.bins; k++)
            truth.cost[k] = 1 + slope * k / truth.bins + bump * exp(-pow((k - 18.0) / 4, 2));
        for (int r = 0; r < RANKS; r++)
            speeds[r] = seed % 2 ? 1 : 0.5 + random_01(seed * 7 + r);
        kl_equal_shares(N, RANKS, shares);
        kl_bounds_of_shares(RANKS, shares, bounds);
        for (int round = 0; round < 12; round++) {
            for (uint32_t r = 0; r < RANKS; r++)
                measure(&truth, speeds, bounds, r, segments_s[r]);
            if (round == 0)
                kl_costs_join(&costs, RANKS, bounds, (const double(*)[KL_SEGMENTS])segments_s);
            for (uint32_t r = 0; r < RANKS; r++)
                kl_costs_learn(&costs, (kl_span){bounds[r], bounds[r + 1]}, segments_s[r], 1);
            for (uint32_t r = 0; r < RANKS; r++)
                found[r] = kl_costs_work(&costs, (kl_span){bounds[r], bounds[r + 1]}) /
                           time_of(&truth, speeds, bounds, r);
            assert_true(fabs(kl_costs_work(&costs, (kl_span){0, N}) - N) < 1e-6 * N);
            assert_int_equal(kl_bounds(&costs, RANKS, found, 1, bounds), KILTER_OK);
            assert_true(slowest_over_mean(&truth, speeds, bounds, RANKS) < 1.2);
        }
        assert_true(slowest_over_mean(&truth, speeds, bounds, RANKS) < 1.03);
        kl_costs_free(&truth);
        kl_costs_free(&costs);
    }
}

/* Costs rise along each rank's range and fall back at each bound. If costs were assumed equal on both sides
 * of a bound, each rank would seem two times as fast as the rank below. */
static void costs_that_jump_at_bounds_are_no_speeds(void **state) {
    (void)state;
    static const uint32_t sizes[] = {5, 16, 64, 1200};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint32_t ranks = sizes[i];
        uint64_t each = 100, *bounds = calloc(ranks + 1, sizeof *bounds);
        double(*segments_s)[KL_SEGMENTS] = calloc(ranks, sizeof *segments_s);
        double *speeds = calloc(ranks, sizeof *speeds);
        kl_costs costs;
        assert_int_equal(kl_costs_init(&costs, each * ranks, 16 * ranks), KILTER_OK);
        for (uint32_t r = 0; r < ranks; r++) {
            bounds[r + 1] = each * (r + 1);
            speeds[r] = 1;
            for (int s = 0; s < KL_SEGMENTS; s++)
                segments_s[r][s] = 1 + (s + 0.5) / KL_SEGMENTS;
        }
        kl_costs_join(&costs, ranks, bounds, (const double(*)[KL_SEGMENTS])segments_s);
        for (uint32_t r = 0; r < ranks; r++)
            kl_costs_learn(&costs, (kl_span){bounds[r], bounds[r + 1]}, segments_s[r], 1);
        assert_int_equal(kl_bounds(&costs, ranks, speeds, 1, bounds), KILTER_OK);
        for (uint32_t r = 0; r <= ranks; r++)
            assert_true(bounds[r] + 1 >= each * r && bounds[r] <= each * r + 1);
        kl_costs_free(&costs);
        free(bounds);
        free(segments_s);
        free(speeds);
    }
}

static void what_was_not_measured_is_not_learnt(void **state) {
    (void)state;
    kl_costs costs;
    double nothing[KL_SEGMENTS] = {0, NAN, INFINITY, -1}, alike[KL_SEGMENTS];
    for (int s = 0; s < KL_SEGMENTS; s++)
        alike[s] = 3e-6;
    assert_int_equal(kl_costs_init(&costs, 1000, 50), KILTER_OK);
    kl_costs_learn(&costs, (kl_span){0, 500}, nothing, 1);
    /* a range that ends outside the loop must be ignored */
    kl_costs_learn(&costs, (kl_span){0, 5000}, alike, 1);
    kl_costs_learn(&costs, (kl_span){7, 7}, alike, 1);
    kl_costs_learn(&costs, (kl_span){3, 5}, alike, 1);
    for (uint32_t k = 0; k < costs.bins; k++)
        assert_true(fabs(costs.cost[k] - 1) < 1e-12);
    kl_costs_free(&costs);
}

/* --- transfers between ranks --- */

static void random_shares(uint64_t seed, uint32_t ranks, uint64_t n, uint64_t *shares) {
    double rates[MOST];
    for (uint32_t r = 0; r < ranks; r++)
        rates[r] = kl_mix64(seed * 31 + r) % 4 == 0 ? 0 : random_01(seed * 31 + r);
    rates[0] += 1e-3;
    assert_int_equal(kl_shares(n, ranks, rates, 0, shares), KILTER_OK);
}

static void transfers_are_few_and_move_no_more_than_needed(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 5000; seed++) {
        uint32_t ranks = 1 + seed % MOST;
        uint64_t before[MOST], after[MOST], n = kl_mix64(seed) % 3000, surplus = 0, moved = 0;
        kl_transfer transfers[MOST];
        random_shares(seed * 2, ranks, n, before);
        random_shares(seed * 2 + 1, ranks, n, after);
        for (uint32_t r = 0; r < ranks; r++)
            surplus += before[r] > after[r] ? before[r] - after[r] : 0;
        size_t count = kl_transfers(ranks, before, after, transfers);
        assert_true(count <= ranks - 1);
        for (size_t i = 0; i < count; i++) {
            assert_true(transfers[i].count > 0 && transfers[i].from != transfers[i].to);
            /* the transfers must lead from `before` to `after` */
            before[transfers[i].from] -= transfers[i].count;
            before[transfers[i].to] += transfers[i].count;
            moved += transfers[i].count;
        }
        assert_true(moved == surplus);
        assert_memory_equal(before, after, ranks * sizeof *before);
    }
}

static uint32_t rank_of(const uint64_t *bounds, uint64_t i) {
    uint32_t r = 0;
    while (i >= bounds[r + 1])
        r++;
    return r;
}

static uint64_t largest_share(uint32_t ranks, const uint64_t *bounds) {
    uint64_t most = 0;
    for (uint32_t r = 0; r < ranks; r++)
        most = bounds[r + 1] - bounds[r] > most ? bounds[r + 1] - bounds[r] : most;
    return most;
}

/* Move from random bounds to others in stages. Some ranks have no rows, or all rows. Rows must move only to
 * neighbours, and the number of stages must be the least possible. */
static void bounds_go_to_their_place_by_neighbours(void **state) {
    (void)state;
    enum { N = 60, RANKS = 7 };
    for (uint64_t seed = 0; seed < 3000; seed++) {
        uint32_t ranks = 1 + seed % RANKS, furthest = 0, stages = 0;
        uint64_t shares[RANKS], at[RANKS + 1], after[RANKS + 1], next[RANKS + 1];
        random_shares(seed * 2, ranks, N, shares);
        kl_bounds_of_shares(ranks, shares, at);
        random_shares(seed * 2 + 1, ranks, N, shares);
        kl_bounds_of_shares(ranks, shares, after);
        uint64_t largest = largest_share(ranks, at);
        for (uint64_t i = 0; i < N; i++) {
            uint32_t from = rank_of(at, i), to = rank_of(after, i), way = from > to ? from - to : to - from;
            furthest = way > furthest ? way : furthest;
        }
        while (memcmp(at, after, (ranks + 1) * sizeof *at) != 0) {
            kl_bounds_stage(ranks, at, after, next);
            assert_true(next[0] == 0 && next[ranks] == N);
            for (uint64_t i = 0; i < N; i++) {
                uint32_t from = rank_of(at, i), to = rank_of(next, i);
                assert_true(from == to || from + 1 == to || to + 1 == from);
            }
            for (uint32_t r = 0; r < ranks; r++) {
                assert_true(next[r] <= next[r + 1]);
                assert_true(next[r + 1] - next[r] <= (shares[r] > largest ? shares[r] : largest));
            }
            memcpy(at, next, sizeof at);
            assert_true(++stages <= furthest);
        }
        assert_true(stages == furthest);
        kl_bounds_stage(ranks, at, after, next);
        assert_memory_equal(next, after, (ranks + 1) * sizeof *next);
    }
}

/* Compare kl_flow_busiest() with a count of the rows that cross each bound. */
static void the_busiest_rank_is_counted_over_its_bounds(void **state) {
    (void)state;
    enum { N = 60, RANKS = 7 };
    for (uint64_t seed = 0; seed < 300; seed++) {
        uint32_t ranks = 1 + seed % RANKS;
        uint64_t shares[RANKS], before[RANKS + 1], after[RANKS + 1], busiest = 0;
        random_shares(seed * 2, ranks, N, shares);
        kl_bounds_of_shares(ranks, shares, before);
        random_shares(seed * 2 + 1, ranks, N, shares);
        kl_bounds_of_shares(ranks, shares, after);
        for (uint32_t r = 0; r < ranks; r++) {
            uint64_t passed = 0;
            for (uint64_t i = 0; i < N; i++)
                passed +=
                    ((before[r] <= i) != (after[r] <= i)) + ((before[r + 1] <= i) != (after[r + 1] <= i));
            busiest = passed > busiest ? passed : busiest;
        }
        assert_true(busiest == kl_flow_busiest(ranks, before, after));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_by_largest_remainder),
        cmocka_unit_test(rates_that_are_none_are_refused),
        cmocka_unit_test(shares_add_up_and_follow_the_rates),
        cmocka_unit_test(equal_shares_are_those_of_equal_rates),
        cmocka_unit_test(bounds_make_forecast_times_equal_but_for_an_iteration),
        cmocka_unit_test(alike_iterations_have_the_bounds_of_shares),
        cmocka_unit_test(what_ranks_measure_ends_in_balance),
        cmocka_unit_test(costs_that_jump_at_bounds_are_no_speeds),
        cmocka_unit_test(what_was_not_measured_is_not_learnt),
        cmocka_unit_test(transfers_are_few_and_move_no_more_than_needed),
        cmocka_unit_test(bounds_go_to_their_place_by_neighbours),
        cmocka_unit_test(the_busiest_rank_is_counted_over_its_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
