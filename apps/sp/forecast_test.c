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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_benchmark_takes_what_it_took),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
