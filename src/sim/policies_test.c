/* Simulate the policies on unequal and changing machines, and print the table of docs/reference/policies.md.
 * Simulations always give the same results, so exact bounds are checked. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "sim/sim.h"

typedef enum law { CONSTANT, UNIFORM, LOGNORMAL } law;

typedef struct sim_case {
    const char *name;
    uint32_t workers;
    uint64_t tasks;
    double task_s, cv; /* task_s: mean seconds of a task at speed 1; cv: σ/μ of these seconds */
    law law;
    /* Workers 0 … slow−1 run at slow_speed from change_s on. Until then, and otherwise, workers run at
     * speed 1. */
    uint32_t slow;
    double slow_speed, change_s;
    uint32_t runs; /* number of runs of the farm, of which only the last one is measured */
    uint64_t seed;
} sim_case;

typedef struct sim_result {
    double elapsed_s, efficiency;
    uint64_t chunks, done;
} sim_result;

static double random_of(uint64_t key) {
    return ((double)(kl_mix64(key) >> 11) + 0.5) * 0x1p-53;
}

static double task_s(void *self, uint64_t run, uint64_t i) {
    const sim_case *c = self;
    uint64_t key = kl_mix64(c->seed + run * 1000003) + 2 * i;
    if (c->law == UNIFORM)
        return c->task_s * (1 + c->cv * sqrt(3) * (2 * random_of(key) - 1));
    if (c->law == LOGNORMAL) {
        double s2 = log(1 + c->cv * c->cv);
        double normal = sqrt(-2 * log(random_of(key))) * cos(2 * 3.14159265358979323846 * random_of(key + 1));
        return c->task_s * exp(sqrt(s2) * normal - s2 / 2);
    }
    return c->task_s;
}

/* Make a cluster with a latency of 50 µs each way. The master has a host of its own, and needs 20 µs per
 * message. */
static kl_cluster cluster_of(const sim_case *c, kl_host_group groups[2]) {
    kl_host_group slow = {c->slow, {.speed = 1, .profile = {1, {c->change_s}, {c->slow_speed}, 0}}};
    groups[0] = slow;
    groups[1] = (kl_host_group){.count = c->workers - c->slow, .host = {.speed = 1}};
    return (kl_cluster){.groups = groups,
                        .group_count = 2,
                        .workers = c->workers,
                        .master_apart = true,
                        .master = {.speed = 1},
                        .latency_s = 25e-6,
                        .bytes_per_s = INFINITY};
}

static sim_result simulate(const sim_case *c, const char *policy, double factor) {
    kl_host_group groups[2];
    kl_cluster cluster = cluster_of(c, groups);
    kl_sim_farm farm = {
        .cluster = &cluster, .policy = kl_policy_find(policy), .factor = factor, .answer_s = 20e-6};
    kl_sim_run run = {.tasks = c->tasks, .task_s = task_s, .self = (void *)c};
    sim_result result = {0};
    kilter_error error = {.text = ""};
    kl_sim *sim;
    assert_int_equal(kl_sim_new(&farm, &sim, &error), KILTER_OK);
    for (uint32_t i = 0; i < c->runs; i++) {
        kl_sim_outcome outcome;
        if (kl_sim_run_next(sim, &run, &outcome, &error) != KILTER_OK)
            fail_msg("%s: %s", policy, error.text);
        result =
            (sim_result){.elapsed_s = outcome.elapsed_s, .chunks = outcome.chunks, .done = outcome.results};
        result.efficiency = kl_cluster_bound_s(&cluster, 0, outcome.work_s) / outcome.elapsed_s;
    }
    kl_sim_free(sim);
    return result;
}

/* A simulated case, and the least mean efficiency that the policy `auto` must reach in it. */
typedef struct row {
    sim_case what;
    double least;
} row;

static const row rows[] = {
    {{"2 workers 1:0.5, 1 ms", 2, 2000, 1e-3, 0, CONSTANT, 1, 0.5, 0, .runs = 1}, 0.99},
    {{"2 workers 1:0.5, 10 ms", 2, 2000, 1e-2, 0, CONSTANT, 1, 0.5, 0, .runs = 1}, 0.99},
    {{"2 workers 1:0.5, 1 ms, cv 0.8", 2, 2000, 1e-3, 0.8, LOGNORMAL, 1, 0.5, 0, .runs = 1}, 0.99},
    {{"16 equal, 1 ms, cv 1", 16, 8000, 1e-3, 1, LOGNORMAL, 0, 1, 0, .runs = 1}, 0.985},
    {{"8 + 8 at 25 %, 1 ms, cv 0.3", 16, 8000, 1e-3, 0.3, LOGNORMAL, 8, 0.25, 0, .runs = 1}, 0.99},
    {{"16, 4 of them at 10 % from 0.2 s on", 16, 8000, 1e-3, 0.3, LOGNORMAL, 4, 0.1, 0.2, .runs = 1}, 0.96},
    {{"16 equal, 20 ms, uniform, 800 tasks", 16, 800, 2e-2, 0.5, UNIFORM, 0, 1, 0, .runs = 1}, 0.97},
    {{"3 workers, 1 at 20 % speed, 7 tasks of 10 ms", 3, 7, 1e-2, 0, CONSTANT, 1, 0.2, 0, .runs = 1}, 0.6},
    {{"3 workers, 1 at 20 % speed, 7 tasks, third run", 3, 7, 1e-2, 0, CONSTANT, 1, 0.2, 0, .runs = 3}, 0.78},
    {{"2 workers, 100,000 x 1 us", 2, 100000, 1e-6, 0, CONSTANT, 0, 1, 0, .runs = 1}, 0.94},
};
enum { ROWS = sizeof rows / sizeof *rows, SEEDS = 3 };

static double mean_efficiency(const sim_case *c, const char *policy) {
    double sum = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        sim_case seeded = *c;
        seeded.seed = seed;
        sim_result r = simulate(&seeded, policy, 0);
        assert_int_equal(r.done, c->tasks);
        assert_true(r.efficiency > 0 && r.efficiency <= 1 + 1e-9);
        sum += r.efficiency;
    }
    return sum / SEEDS;
}

static void auto_keeps_its_promise_and_the_table(void **state) {
    (void)state;
    printf("%-46s", "efficiency");
    for (size_t p = 0; p < kl_policy_count(); p++)
        printf("%7s", kl_policy_name(kl_policy_at(p)));
    for (size_t i = 0; i < ROWS; i++) {
        printf("\n%-46s", rows[i].what.name);
        for (size_t p = 0; p < kl_policy_count(); p++) {
            double reached = mean_efficiency(&rows[i].what, kl_policy_name(kl_policy_at(p)));
            printf("%7.3f", reached);
            if (kl_policy_at(p) == kl_policy_find("auto") && reached < rows[i].least)
                fail_msg("%s: auto reaches %.4f, not %.3f", rows[i].what.name, reached, rows[i].least);
        }
    }
    printf("\n");
}

/* A thousand workers must not overload the master, which needs 20 µs per message. If each chunk were a single
 * task, the master would need 4 s. For the first chunks of all workers, it needs 40 ms of the run's 100
 * ms. */
static void a_thousand_workers_do_not_swamp_the_master(void **state) {
    (void)state;
    sim_case c = {"", 1000, 100000, 1e-3, 0.3, LOGNORMAL, 0, 1, 0, .runs = 1};
    sim_result r = simulate(&c, "auto", 0);
    assert_int_equal(r.done, c.tasks);
    assert_true(r.chunks < 8 * c.workers);
    assert_true(r.efficiency > 0.5);
}

static void work_too_short_for_the_clock_ends(void **state) {
    (void)state;
    sim_case c = {"", 4, 1000000, 0, 0, CONSTANT, 0, 1, 0, .runs = 1};
    for (size_t p = 0; p < kl_policy_count(); p++) {
        sim_case fewer = c;
        fewer.tasks = kl_policy_find("auto") == kl_policy_at(p) ? c.tasks : 1000;
        sim_result r = simulate(&fewer, kl_policy_name(kl_policy_at(p)), 0);
        assert_int_equal(r.done, fewer.tasks);
    }
    sim_result r = simulate(&c, "auto", 0);
    /* if each chunk were one task, the master alone would need 20 s */
    assert_true(r.elapsed_s < 0.1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_keeps_its_promise_and_the_table),
        cmocka_unit_test(a_thousand_workers_do_not_swamp_the_master),
        cmocka_unit_test(work_too_short_for_the_clock_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
