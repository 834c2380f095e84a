/* Test kilter_predict(): compare its result with a time from the paper of Buaklee et al. (2002), and check
 * properties that must hold for any workers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "kilter/predict.h"

enum { MOST = 50 };

/* An example from the paper of Buaklee et al. (2002): the program SSN with N = 10,000 scenarios in T = 200
 * tasks. Table 3 of the paper gives 5.51 min on 50 equal workers. */
static const kilter_program ssn = {
    .tasks = 200, .iterations = 38, .work_s = 50 * 6.44, .master_s = 79.46 / 38};

static kilter_prediction predict(const kilter_program *program, const double *speeds, uint32_t workers) {
    kilter_prediction p;
    kilter_error error;
    if (kilter_predict(program, speeds, workers, &p, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    return p;
}

static void equal_workers_are_the_papers(void **state) {
    (void)state;
    double speeds[MOST];
    for (int i = 0; i < MOST; i++)
        speeds[i] = 1;
    kilter_prediction p = predict(&ssn, speeds, MOST);
    char text[16];
    snprintf(text, sizeof text, "%.2f", p.total_s / 60);
    assert_string_equal(text, "5.51");
    assert_int_equal(p.workers, MOST);
    assert_true(fabs(p.workers_s - 6.44) < 1e-9 && fabs(p.total_s - p.bound_s) < 1e-9 && p.messages_s == 0);
}

static double random_01(uint64_t seed) {
    return (double)(kl_mix64(seed) >> 11) * 0x1p-53;
}

/* Check that the predicted total time is not below its lower bound. The predicted time of the workers must
 * not be above the time of the fastest worker alone. One more worker must not lengthen the workers' time, and
 * doubled speeds must halve this time. */
static void any_workers(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        double speeds[MOST];
        uint32_t workers = 1 + (uint32_t)(kl_mix64(seed) % (MOST - 1));
        for (uint32_t i = 0; i < MOST; i++)
            speeds[i] = 1 + 9 * random_01(seed * MOST + i);
        kilter_program program = ssn;
        program.tasks = 1 + kl_mix64(seed ^ 5) % 400;
        kilter_prediction p = predict(&program, speeds, workers),
                          more = predict(&program, speeds, workers + 1);
        assert_true(p.total_s >= p.bound_s * (1 - 1e-12) && p.workers >= 1 && p.workers <= workers);
        assert_true(more.workers_s <= p.workers_s * (1 + 1e-12));
        double fastest = 0;
        for (uint32_t i = 0; i < workers; i++)
            fastest = fmax(fastest, speeds[i]);
        /* all workers together must not take longer than the fastest worker alone */
        assert_true(p.workers_s <= program.work_s / fastest * (1 + 1e-12));
        for (uint32_t i = 0; i < workers; i++)
            speeds[i] *= 2;
        assert_true(fabs(predict(&program, speeds, workers).workers_s - p.workers_s / 2) <
                    1e-9 * p.workers_s);
    }
}

static void messages_are_added_to_every_run(void **state) {
    (void)state;
    kilter_program program = ssn;
    double speeds[] = {1, 1, 0.0001};
    program.round_trip_s = 0.5;
    program.update_s = 0.01;
    program.task_message_s = 0.001;
    program.master_task_s = 0.02;
    kilter_prediction p = predict(&program, speeds, 3);
    assert_int_equal(p.workers, 2); /* only two workers are used, because the third is too slow to help */
    assert_true(fabs(p.messages_s - (0.5 + 2 * 0.01 + 200 * 0.001)) < 1e-9);
    assert_true(fabs(p.master_s - (79.46 / 38 + 200 * 0.02)) < 1e-9);
    assert_true(fabs(p.total_s - (38 * p.master_s + 39 * (p.workers_s + p.messages_s))) < 1e-6);
}

static void what_cannot_be_is_refused(void **state) {
    (void)state;
    kilter_prediction p = {.total_s = 7};
    kilter_error error;
    double speeds[] = {1, 0}, wrong[] = {-1, NAN, INFINITY};
    kilter_program program = ssn;
    assert_int_equal(kilter_predict(&program, speeds, 2, &p, &error), KILTER_ERR_RANGE);
    assert_non_null(strstr(error.text, "worker 1 has speed 0"));
    assert_int_equal(kilter_predict(&program, speeds, 0, &p, &error), KILTER_ERR_RANGE);
    program.tasks = 0;
    assert_int_equal(kilter_predict(&program, speeds, 1, &p, &error), KILTER_ERR_RANGE);
    for (int i = 0; i < 3; i++) {
        program = ssn;
        program.update_s = wrong[i];
        assert_int_equal(kilter_predict(&program, speeds, 1, &p, &error), KILTER_ERR_RANGE);
        assert_non_null(strstr(error.text, "the time to take in a worker's results is"));
    }
    assert_true(p.total_s == 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_workers_are_the_papers),
        cmocka_unit_test(any_workers),
        cmocka_unit_test(messages_are_added_to_every_run),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
