/* Test farms in virtual time: every task must be done once, the times must equal those that are computed by
 * hand, and hosts may stop. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/sim.h"

static const double LATENCY_S =
    1e-3; /* latency of one link; a message between master and worker passes two links */

static kl_cluster cluster_of(kl_host_group *groups, uint32_t count) {
    kl_cluster cluster = {.groups = groups,
                          .group_count = count,
                          .master_apart = true,
                          .master = {.speed = 1},
                          .latency_s = LATENCY_S,
                          .bytes_per_s = INFINITY};
    for (uint32_t i = 0; i < count; i++)
        cluster.workers += groups[i].count;
    return cluster;
}

static kilter_status simulate(const kl_sim_farm *farm, const kl_sim_run *run, kl_sim_outcome *outcome,
                              kilter_error *error) {
    kl_sim *sim;
    assert_int_equal(kl_sim_new(farm, &sim, error), KILTER_OK);
    kilter_status status = kl_sim_run_next(sim, run, outcome, error);
    kl_sim_free(sim);
    return status;
}

static kl_sim_outcome outcome_of(const kl_cluster *cluster, const char *policy, const kl_sim_run *run) {
    kl_sim_farm farm = {.cluster = cluster, .policy = kl_policy_find(policy), .answer_s = 10e-6};
    kl_sim_outcome outcome;
    kilter_error error = {.text = ""};
    if (simulate(&farm, run, &outcome, &error) != KILTER_OK)
        fail_msg("%s: %s", policy, error.text);
    return outcome;
}

/* Return a task time from 0.1 to 10 ms. */
static double mixed_s(void *self, uint64_t run, uint64_t index) {
    (void)self;
    return 1e-4 * pow(100, (double)(kl_mix64(index + run * 977) >> 11) * 0x1p-53);
}

static void every_task_once_with_every_policy_and_size(void **state) {
    (void)state;
    static const uint64_t sizes[] = {0, 1, 2, 17, 1000};
    kl_host_group groups[] = {{3, {.speed = 1}},
                              {2, {.speed = 0.2}},
                              {1, {.speed = 1, .profile = {2, {0.01, 0.02}, {0, 1}, 0.04}}}};
    kl_cluster cluster = cluster_of(groups, 3);
    for (size_t p = 0; p < kl_policy_count(); p++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            kl_sim_run run = {.tasks = sizes[i], .task_s = mixed_s, .task_bytes = 100, .result_bytes = 8};
            kl_sim_outcome out = outcome_of(&cluster, kl_policy_name(kl_policy_at(p)), &run);
            assert_int_equal(out.results, sizes[i]);
            assert_true(out.executed >= out.results);
            assert_true(out.elapsed_s >= kl_cluster_bound_s(&cluster, 0, out.work_s) * (1 - 1e-9));
        }
}

static void the_same_again_to_the_bit(void **state) {
    (void)state;
    kl_host_group groups[] = {{4, {.speed = 1}}, {2, {.speed = 1, .profile = {1, {0.05}, {0.1}, 0}}}};
    kl_cluster cluster = cluster_of(groups, 2);
    kl_sim_run run = {.tasks = 500, .task_s = mixed_s};
    kl_sim_outcome first = outcome_of(&cluster, "auto", &run), second = outcome_of(&cluster, "auto", &run);
    assert_true(first.elapsed_s == second.elapsed_s);
    assert_int_equal(first.messages, second.messages);
}

/* One chunk must take the time of its message, of its tasks, and of the message with its results. */
static void one_chunk_takes_its_messages_and_its_work(void **state) {
    (void)state;
    kl_host_group groups[] = {{1, {.speed = 2}}};
    kl_cluster cluster = cluster_of(groups, 1);
    kl_sim_run run = {.tasks = 10, .even_s = 4e-3};
    kl_sim_outcome out = outcome_of(&cluster, "static", &run);
    assert_int_equal(out.chunks, 1);
    double expected_s = 2 * LATENCY_S + 10 * 4e-3 / 2 + 2 * LATENCY_S;
    assert_true(fabs(out.elapsed_s - expected_s) <
                50e-6); /* the master also needs some time to handle the two messages */
}

/* The master must be busy for each byte of a chunk. It copies inputs into chunks one after another, while
 * workers wait. */
static void a_byte_of_a_chunk_keeps_the_master_busy(void **state) {
    (void)state;
    static const struct {
        double byte_s;
        size_t task_bytes;
    } rows[] = {{0, 100000}, {1e-9, 0}, {1e-9, 100000}, {1e-8, 100000}};
    kl_host_group groups[] = {{2, {.speed = 1}}};
    kl_cluster cluster = cluster_of(groups, 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_sim_run run = {.tasks = 20, .even_s = 1e-3, .task_bytes = rows[i].task_bytes};
        kl_sim_farm farm = {
            .cluster = &cluster, .policy = kl_policy_find("static"), .byte_s = rows[i].byte_s};
        kl_sim_outcome outcome;
        assert_int_equal(simulate(&farm, &run, &outcome, NULL), KILTER_OK);
        double copies_s = rows[i].byte_s * 20 * (double)rows[i].task_bytes;
        assert_true(fabs(outcome.master_busy_s - copies_s) < 0.01 * copies_s + 1e-6);
        assert_true(fabs(outcome.elapsed_s - 14e-3 - copies_s) < 0.01 * copies_s + 50e-6);
    }
}

/* Return the seconds of the fourth run. factor 0: the farm searches for the factor, and the fourth run is the
 * second one that uses it. */
static double fourth_run_s(const kl_cluster *cluster, const char *policy, double factor,
                           const kl_sim_run *run) {
    kl_sim_farm farm = {
        .cluster = cluster, .policy = kl_policy_find(policy), .factor = factor, .answer_s = 10e-6};
    kl_sim *sim;
    kl_sim_outcome outcome;
    assert_int_equal(kl_sim_new(&farm, &sim, NULL), KILTER_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(kl_sim_run_next(sim, run, &outcome, NULL), KILTER_OK);
    kl_sim_free(sim);
    return outcome.elapsed_s;
}

/* The farm searches for a factor by short forecasts. This factor must be nearly as good as the best one found
 * by whole runs. This is tested for the policies FSC and DPF. */
static void a_searched_factor_is_nearly_as_good_as_the_best(void **state) {
    (void)state;
    static const struct {
        uint32_t fast, slow;
        double speed, latency_s, bytes_per_s;
        kl_sim_run run;
    } rows[] = {
        {8, 0, 1, 50e-6, 125e6, {.tasks = 4000, .even_s = 1e-3}},
        {7, 1, 0.3, 50e-6, 125e6, {.tasks = 4000, .even_s = 1e-3}},
        {12, 4, 0.5, 1e-3, INFINITY, {.tasks = 3000, .even_s = 2e-3}},
        {30,
         20,
         0.25,
         50e-6,
         12.5e6,
         {.tasks = 5000, .even_s = 5e-3, .task_bytes = 1000, .result_bytes = 1000}},
        {150, 50, 0.5, 50e-6, 125e6, {.tasks = 20000, .even_s = 5e-3, .task_bytes = 100}},
    };
    static const char *const policies[] = {"fsc", "dpf"};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int p = 0; p < 2; p++) {
            kl_host_group groups[] = {{rows[r].fast, {.speed = 1}}, {rows[r].slow, {.speed = rows[r].speed}}};
            kl_cluster cluster = cluster_of(groups, 2);
            cluster.latency_s = rows[r].latency_s, cluster.bytes_per_s = rows[r].bytes_per_s;
            double best_s = INFINITY, searched_s = fourth_run_s(&cluster, policies[p], 0, &rows[r].run);
            for (int tenths = 1; tenths <= 10; tenths++)
                best_s = fmin(best_s, fourth_run_s(&cluster, policies[p], tenths / 10.0, &rows[r].run));
            print_message("row %d, %s: %.4f\n", (int)r, policies[p], searched_s / best_s);
            if (searched_s > 1.05 * best_s)
                fail_msg("row %d, %s: %.4f s, best %.4f s", (int)r, policies[p], searched_s, best_s);
        }
}

static void bytes_take_their_time_on_the_masters_link(void **state) {
    (void)state;
    kl_host_group groups[] = {{4, {.speed = 1}}};
    kl_cluster cluster = cluster_of(groups, 1);
    cluster.bytes_per_s = 1e6;
    kl_sim_run run = {.tasks = 400, .even_s = 1e-6, .result_bytes = 10000};
    kl_sim_outcome out = outcome_of(&cluster, "ss", &run);
    assert_true(out.elapsed_s > 4.0 && out.elapsed_s < 4.2); /* sending 4 MB at 1 MB/s takes 4 s */
}

/* If the master computes on a worker's host, tasks there must take up to twice as long. */
static void a_master_on_a_workers_host_takes_its_time(void **state) {
    (void)state;
    kl_host_group groups[] = {{2, {.speed = 1}}};
    kl_cluster cluster = cluster_of(groups, 1);
    kl_sim_farm farm = {.cluster = &cluster, .policy = kl_policy_find("ss"), .answer_s = 5e-3};
    kl_sim_run run = {.tasks = 100, .even_s = 20e-3};
    kl_sim_outcome apart, together;
    assert_int_equal(simulate(&farm, &run, &apart, NULL), KILTER_OK);
    cluster.master_apart = false;
    assert_int_equal(simulate(&farm, &run, &together, NULL), KILTER_OK);
    assert_true(together.elapsed_s > 1.1 * apart.elapsed_s);
    assert_int_equal(together.results, 100);
}

/* If a host stops, its heartbeats stop, and other workers must get its tasks. */
static void tasks_of_a_host_that_stops_are_done_elsewhere(void **state) {
    (void)state;
    kl_host_group groups[] = {{3, {.speed = 1}}, {1, {.speed = 1, .profile = {1, {0.5}, {0}, 0}}}};
    kl_cluster cluster = cluster_of(groups, 2);
    kl_sim_run run = {.tasks = 40, .even_s = 0.1};
    kl_sim_outcome out = outcome_of(&cluster, "auto", &run);
    assert_int_equal(out.results, 40);
    assert_true(out.elapsed_s < 3);
}

static void a_run_that_cannot_end_says_so(void **state) {
    (void)state;
    kl_host_group groups[] = {{1, {.speed = 1}}, {1, {.speed = 1, .profile = {1, {0.5}, {0}, 0}}}};
    kl_cluster cluster = cluster_of(groups, 2);
    kl_sim_farm farm = {.cluster = &cluster, .policy = kl_policy_find("static")};
    kl_sim_run run = {.tasks = 40, .even_s = 0.1};
    kl_sim_outcome outcome;
    kilter_error error = {.text = ""};
    assert_int_equal(simulate(&farm, &run, &outcome, &error), KILTER_ERR_RANGE);
    assert_non_null(strstr(error.text, "cannot end"));
}

/* A later run must use the measurements of earlier runs, and be faster. */
static void speeds_are_known_from_the_second_run_on(void **state) {
    (void)state;
    kl_host_group groups[] = {{2, {.speed = 1}}, {2, {.speed = 0.1}}};
    kl_cluster cluster = cluster_of(groups, 2);
    kl_sim_farm farm = {.cluster = &cluster, .policy = kl_policy_find("awf-b")};
    kl_sim_run run = {.tasks = 100, .even_s = 10e-3};
    kl_sim_outcome first, third;
    kl_sim *sim;
    assert_int_equal(kl_sim_new(&farm, &sim, NULL), KILTER_OK);
    assert_int_equal(kl_sim_run_next(sim, &run, &first, NULL), KILTER_OK);
    assert_int_equal(kl_sim_run_next(sim, &run, &third, NULL), KILTER_OK);
    assert_int_equal(kl_sim_run_next(sim, &run, &third, NULL), KILTER_OK);
    kl_sim_free(sim);
    assert_true(third.elapsed_s < first.elapsed_s);
    assert_true(third.began_s > first.elapsed_s);
}

static void run_thrice(const kl_sim_farm *farm, const kl_sim_run *run) {
    kl_sim *sim;
    kilter_error error;
    assert_int_equal(kl_sim_new(farm, &sim, &error), KILTER_OK);
    for (int i = 0; i < 3; i++) {
        kl_sim_outcome out;
        if (kl_sim_run_next(sim, run, &out, &error) != KILTER_OK)
            fail_msg("answers of %g s, run %d: %s", farm->answer_s, i, error.text);
        assert_int_equal(out.results, run->tasks);
    }
    kl_sim_free(sim);
}

/* A result must not be sent before its task has ended. Times of events are sums, and rounding may make them a
 * little too early. */
static void tasks_that_take_no_time_are_counted_in_every_run(void **state) {
    (void)state;
    kl_host_group groups[] = {{1, {.speed = 1}}};
    kl_cluster cluster = cluster_of(groups, 1);
    cluster.master.speed = 0.1;
    cluster.latency_s = 0;
    cluster.bytes_per_s = 1e9;
    kl_sim_run run = {.tasks = 200};
    for (int i = 0; i < 20; i++)
        run_thrice(
            &(kl_sim_farm){.cluster = &cluster, .policy = kl_policy_find("ss"), .answer_s = 1e-5 + 1e-6 * i},
            &run);
}

/* All tasks end at the same time. When the first result arrives, no other task may get a speculative copy,
 * because the copy would keep a worker busy in the next run. */
static void equal_tasks_on_equal_workers_are_not_copied(void **state) {
    (void)state;
    kl_host_group groups[] = {{50, {.speed = 1}}};
    kl_cluster cluster = cluster_of(groups, 1);
    const char *const policies[] = {"ect", "auto"};
    for (int p = 0; p < 2; p++) {
        kl_sim *sim;
        kl_sim_farm farm = {.cluster = &cluster, .policy = kl_policy_find(policies[p]), .answer_s = 10e-6};
        assert_int_equal(kl_sim_new(&farm, &sim, NULL), KILTER_OK);
        for (int i = 0; i < 6; i++) {
            kl_sim_outcome out;
            assert_int_equal(kl_sim_run_next(sim, &(kl_sim_run){.tasks = 50, .even_s = 20}, &out, NULL),
                             KILTER_OK);
            assert_int_equal(out.executed, 50);
            assert_true(out.elapsed_s < 20.1);
        }
        kl_sim_free(sim);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_once_with_every_policy_and_size),
        cmocka_unit_test(the_same_again_to_the_bit),
        cmocka_unit_test(one_chunk_takes_its_messages_and_its_work),
        cmocka_unit_test(a_byte_of_a_chunk_keeps_the_master_busy),
        cmocka_unit_test(a_searched_factor_is_nearly_as_good_as_the_best),
        cmocka_unit_test(bytes_take_their_time_on_the_masters_link),
        cmocka_unit_test(a_master_on_a_workers_host_takes_its_time),
        cmocka_unit_test(tasks_of_a_host_that_stops_are_done_elsewhere),
        cmocka_unit_test(a_run_that_cannot_end_says_so),
        cmocka_unit_test(speeds_are_known_from_the_second_run_on),
        cmocka_unit_test(tasks_that_take_no_time_are_counted_in_every_run),
        cmocka_unit_test(equal_tasks_on_equal_workers_are_not_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
