#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "forecast.h"

/* Where messages cost nothing and clusters share evenly, a benchmark forecasts itself. */
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
        assert_true(fabs(p.total_s - 1) < 1e-9); /* one evaluation: nothing for the master to solve */
    }
}

/* The clusters of the last of the samples towards so many scenarios. */
static int clusters_when(double master_s, const char *workers, uint64_t scenarios, uint64_t clusters) {
    sp_benchmark b = {.scenarios = 500,
                      .clusters = 200,
                      .candidates = 11,
                      .first_candidates = 5,
                      .workers = 2,
                      .elapsed_s = 10 * master_s + 1,
                      .farm_s = 1,
                      .work_s = 0.1};
    sp_options options = {.scenarios = scenarios, .clusters = clusters, .on = workers};
    sp_forecast f;
    assert_int_equal(sp_forecast_make(&options, &b, &f, NULL), KILTER_OK);
    assert_true(f.clusters >= 1 && (uint64_t)f.clusters <= scenarios);
    return f.clusters;
}

/* With auto they follow from the times and the workers described, as in a solve. */
static void clusters_are_those_of_the_solve(void **state) {
    (void)state;
    assert_int_equal(clusters_when(1, "40x1", 20000, 0), sp_clusters_for(20000));
    assert_int_equal(clusters_when(1, "40x1", 20000, 77), 77);
    assert_int_equal(clusters_when(0, NULL, 20000, SP_CLUSTERS_AUTO), 800); /* 1000: not 5 % better */
    assert_int_equal(clusters_when(0, "40x1", 20000, SP_CLUSTERS_AUTO), 800);
    assert_int_equal(clusters_when(100, "40x1", 20000, SP_CLUSTERS_AUTO), 25); /* the least of the master */
    assert_int_equal(clusters_when(0, NULL, 70, SP_CLUSTERS_AUTO), 70);        /* one sample: no times yet */
    for (double master_s = 0.001; master_s < 10; master_s *= 3) {
        int now = clusters_when(master_s, "40x1", 20000, SP_CLUSTERS_AUTO);
        assert_in_range(now, 25, 1000);
        assert_true(now >= clusters_when(3 * master_s, "40x1", 20000, SP_CLUSTERS_AUTO));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_benchmark_takes_what_it_took),
        cmocka_unit_test(clusters_are_those_of_the_solve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
