#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "decide/decide.h"
#include "forecast.h"
#include "solve_farm.h"

/* If messages cost nothing and clusters can be distributed evenly, the predicted time of the benchmark equals
 * its measured time. */
static void a_benchmark_takes_what_it_took(void **state) {
    (void)state;
    for (int candidates = 2; candidates < 40; candidates++) {
        sp_benchmark b = {.scenarios = 1000,
                          .clusters = 12,
                          .candidates = candidates,
                          .workers = 3,
                          .elapsed_s = 2 + 0.5 * candidates,
                          .farm_s = 0.5 * candidates,
                          .work_s = 1.5};
        kilter_prediction p;
        assert_int_equal(sp_forecast_sample(&b, b.scenarios, b.clusters, candidates, &p, NULL), KILTER_OK);
        assert_true(fabs(p.total_s - b.elapsed_s) < 1e-9);
        assert_int_equal(sp_forecast_sample(&b, 2000, b.clusters, 1, &p, NULL), KILTER_OK);
        /* with one candidate, only the start is evaluated, so the master solves nothing */
        assert_true(fabs(p.total_s - 1) < 1e-9);
    }
}

/* Return a benchmark of 500 scenarios in which the master takes master_s seconds and the farm takes one
 * second. */
static sp_benchmark benchmark_of(int candidates, double master_s) {
    return (sp_benchmark){.scenarios = 500,
                          .clusters = 200,
                          .candidates = candidates,
                          .first_clusters = 50,
                          .first_candidates = 5,
                          .workers = 2,
                          .elapsed_s = master_s + 1,
                          .farm_s = 1,
                          .work_s = 0.1};
}

/* Return the number of clusters that the forecast assumes for the last sample, which has `scenarios`
 * scenarios. */
static int clusters_when(double master_s, const char *workers, uint64_t scenarios, uint64_t clusters) {
    sp_benchmark b = benchmark_of(11, 10 * master_s);
    sp_options options = {.scenarios = scenarios, .clusters = clusters, .on = workers};
    sp_forecast f;
    assert_int_equal(sp_forecast_make(&options, &b, &f, NULL), KILTER_OK);
    assert_true(f.clusters >= 1 && (uint64_t)f.clusters <= scenarios);
    return f.clusters;
}

/* With --clusters auto, the number of clusters depends on the measured times and the described workers, as in
 * a solve.
 */
static void clusters_are_those_of_the_solve(void **state) {
    (void)state;
    assert_int_equal(clusters_when(1, "40x1", 20000, 0), sp_clusters_for(20000));
    assert_int_equal(clusters_when(1, "40x1", 20000, 77), 77);
    /* 1000 clusters would not be 5 % better than 800 */
    assert_int_equal(clusters_when(0, NULL, 20000, SP_CLUSTERS_AUTO), 800);
    assert_int_equal(clusters_when(0, "40x1", 20000, SP_CLUSTERS_AUTO), 800);
    assert_int_equal(clusters_when(100, "40x1", 20000, SP_CLUSTERS_AUTO),
                     25); /* the master's time dominates, so auto chooses the least number, 25 */
    /* a single sample has no earlier sample that measured times, so the number of clusters is not changed */
    assert_int_equal(clusters_when(0, NULL, 70, SP_CLUSTERS_AUTO), 70);
    for (double master_s = 0.001; master_s < 10; master_s *= 3) {
        int now = clusters_when(master_s, "40x1", 20000, SP_CLUSTERS_AUTO);
        assert_in_range(now, 25, 1000);
        assert_true(now >= clusters_when(3 * master_s, "40x1", 20000, SP_CLUSTERS_AUTO));
    }
}

static double between(uint64_t *seed, double least, double most) {
    *seed = kl_mix64(*seed);
    return least * pow(most / least, (double)(*seed >> 11) * 0x1p-53);
}

/* Return the number of clusters that the farm chooses with real workers; the farm's public interface cannot
 * choose for described workers.
 */
static uint64_t clusters_of_the_farm(const sp_benchmark *b, uint64_t scenarios, uint64_t before) {
    kl_lane lanes[16] = {{0}};
    for (uint32_t i = 0; i < b->workers; i++)
        lanes[i].rate = 1;
    kl_grain_look look = {
        .model = {.master = {.per_unit_s = (b->elapsed_s - b->farm_s) / (b->candidates - 1) / b->clusters},
                  .round_trip_s = b->program.round_trip_s,
                  .update_s = b->program.update_s,
                  .task_s = b->program.task_message_s},
        .lanes = lanes,
        .lane_count = b->workers,
        .work_units = b->work_s * (double)scenarios / (double)b->scenarios,
        .tasks = before,
        .least_seen = before,
        .most_seen = before};
    kl_grain_question question = {.least = SP_AUTO_LEAST,
                                  .most = scenarios < SP_AUTO_MOST ? scenarios : SP_AUTO_MOST,
                                  .runs = sp_candidates_with};
    kl_grain_plan plan;
    assert_int_equal(kl_grain_choose(&look, &question, &plan), KILTER_OK);
    return plan.decision.count;
}

/* The forecast and the farm must choose the same number of clusters. A sample of 500 to 4999 scenarios
 * follows one smaller sample, whose clusters are known. */
static void predict_and_the_farm_choose_alike(void **state) {
    (void)state;
    uint64_t seed = 1, different = 0, moved = 0;
    for (int i = 0; i < 400; i++) {
        uint64_t scenarios = (uint64_t)between(&seed, 500, 4999);
        sp_benchmark b = {.scenarios = 500,
                          .clusters = 200,
                          .candidates = 11,
                          .first_clusters = 50,
                          .first_candidates = 5,
                          .workers = (uint32_t)between(&seed, 1, 16),
                          .farm_s = 1,
                          .work_s = between(&seed, 0.001, 1),
                          .program = {.round_trip_s = between(&seed, 1e-6, 1e-2),
                                      .update_s = between(&seed, 1e-7, 1e-3),
                                      .task_message_s = between(&seed, 1e-8, 1e-5)}};
        b.elapsed_s = 1 + between(&seed, 1e-3, 10);
        sp_options options = {.scenarios = scenarios, .clusters = SP_CLUSTERS_AUTO};
        sp_forecast f;
        assert_int_equal(sp_forecast_make(&options, &b, &f, NULL), KILTER_OK);
        uint64_t before = (uint64_t)sp_clusters_for(scenarios / 10);
        different += (uint64_t)f.clusters != clusters_of_the_farm(&b, scenarios, before);
        moved += (uint64_t)f.clusters != before;
    }
    assert_int_equal(different, 0);
    assert_true(moved > 50);
}

/* More clusters need fewer candidates, by sp_candidates_after(). */
static void candidates_follow_the_clusters(void **state) {
    (void)state;
    sp_benchmark b = benchmark_of(22, 1);
    double last = HUGE_VAL;
    for (uint64_t clusters = 25; clusters <= 1600; clusters *= 2) {
        sp_options options = {.scenarios = 20000, .clusters = clusters};
        sp_forecast f;
        assert_int_equal(sp_forecast_make(&options, &b, &f, NULL), KILTER_OK);
        assert_true(f.candidates < last);
        assert_true(fabs(f.candidates -
                         22 * sp_candidates_with(clusters, NULL) / sp_candidates_with(200, NULL)) < 1e-9);
        last = f.candidates;
        options.candidates = 30;
        assert_int_equal(sp_forecast_make(&options, &b, &f, NULL), KILTER_OK);
        assert_true(f.candidates == 30);
    }
    /* at least one candidate is needed, because the start is evaluated */
    assert_true(sp_candidates_after(1, 25, 1000) == 1);
    assert_true(sp_candidates_after(22, 200, 200) == 22);
}

/* --- the list of samples to solve, from small to large --- */

static void check_ladder(const sp_stages *asked, const sp_stages *expected) {
    sp_stages stages = sp_stages_through(asked);
    assert_int_equal(stages.count, expected->count);
    for (int i = 0; i < stages.count; i++)
        assert_int_equal(stages.scenarios[i], expected->scenarios[i]);
}

static void samples_asked_for_have_smaller_ones_before_them(void **state) {
    (void)state;
    const struct {
        sp_stages asked, ladder;
    } rows[] = {
        {{{5000, 10000}, 2}, {{50, 500, 5000, 10000}, 4}},
        {{{49}, 1}, {{49}, 1}},
        {{{7, 499}, 2}, {{7, 499}, 2}},
        {{{7, 10000}, 2}, {{7, 100, 1000, 10000}, 4}},
        {{{60, 1000, 100000}, 3}, {{60, 1000, 10000, 100000}, 4}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_ladder(&rows[i].asked, &rows[i].ladder);
    for (int count = 1; count <= SP_STAGES_MAX;
         count++) { /* the list of samples fits into its array, and ends with the requested sample */
        sp_stages asked = {.count = count};
        for (int i = 0; i < count; i++)
            asked.scenarios[i] = 1000000000 - (uint64_t)(count - 1 - i) * 50000000;
        sp_stages stages = sp_stages_through(&asked);
        assert_true(stages.count >= count && stages.count <= SP_STAGES_MAX);
        for (int i = 0; i < count; i++)
            assert_int_equal(stages.scenarios[stages.count - count + i], asked.scenarios[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_asked_for_have_smaller_ones_before_them),
        cmocka_unit_test(a_benchmark_takes_what_it_took),
        cmocka_unit_test(predict_and_the_farm_choose_alike),
        cmocka_unit_test(candidates_follow_the_clusters),
        cmocka_unit_test(clusters_are_those_of_the_solve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
