/* What the policies come to on unequal and changing machines, simulated; prints the table of
 * docs/policies.md. The simulation is deterministic, so its figures may be held to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "decide/dealer_sim.h"

#define LAN .latency_s = 50e-6, .answer_s = 20e-6, .chunk_s = 10e-6

/* least: mean efficiency that AUTO is held to. */
typedef struct row {
    sim_case what;
    double least;
} row;

static const row rows[] = {
    {{"2 workers 1:0.5, 1 ms", 2, 2000, 1e-3, 0, SIM_CONSTANT, 1, 0.5, 0, LAN}, 0.99},
    {{"2 workers 1:0.5, 10 ms", 2, 2000, 1e-2, 0, SIM_CONSTANT, 1, 0.5, 0, LAN}, 0.99},
    {{"2 workers 1:0.5, 1 ms, cv 0.8", 2, 2000, 1e-3, 0.8, SIM_LOGNORMAL, 1, 0.5, 0, LAN}, 0.99},
    {{"16 equal, 1 ms, cv 1", 16, 8000, 1e-3, 1, SIM_LOGNORMAL, 0, 1, 0, LAN}, 0.985},
    {{"8 + 8 at 25 %, 1 ms, cv 0.3", 16, 8000, 1e-3, 0.3, SIM_LOGNORMAL, 8, 0.25, 0, LAN}, 0.99},
    {{"4 of 16 drop to 10 % at 0.2 s", 16, 8000, 1e-3, 0.3, SIM_LOGNORMAL, 4, 0.1, 0.2, LAN}, 0.96},
    {{"16 equal, 50 x 20 ms each, uniform", 16, 800, 2e-2, 0.5, SIM_UNIFORM, 0, 1, 0, LAN}, 0.97},
    {{"7 x 10 ms on 3, one at 20 %", 3, 7, 1e-2, 0, SIM_CONSTANT, 1, 0.2, 0, LAN}, 0.6},
    {{"the same, third run", 3, 7, 1e-2, 0, SIM_CONSTANT, 1, 0.2, 0, LAN, .runs = 3}, 0.78},
    {{"2 workers, 100,000 x 1 us", 2, 100000, 1e-6, 0, SIM_CONSTANT, 0, 1, 0, LAN}, 0.94},
};
enum { ROWS = sizeof rows / sizeof *rows, SEEDS = 3 };

static double mean_efficiency(const sim_case *c, const char *policy) {
    double sum = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        sim_case seeded = *c;
        seeded.seed = seed;
        sim_result r = sim_play(&seeded, policy, 0);
        assert_int_equal(r.done, c->tasks);
        assert_true(r.efficiency > 0 && r.efficiency <= 1 + 1e-9);
        sum += r.efficiency;
    }
    return sum / SEEDS;
}

static void auto_keeps_its_promise_and_the_table(void **state) {
    (void)state;
    printf("%-36s", "efficiency");
    for (size_t p = 0; p < kl_policy_count(); p++)
        printf("%7s", kl_policy_name(kl_policy_at(p)));
    for (size_t i = 0; i < ROWS; i++) {
        printf("\n%-36s", rows[i].what.name);
        double last = 0;
        for (size_t p = 0; p < kl_policy_count(); p++)
            printf("%7.3f", last = mean_efficiency(&rows[i].what, kl_policy_name(kl_policy_at(p))));
        if (last < rows[i].least)
            fail_msg("%s: auto reaches %.4f, not %.3f", rows[i].what.name, last, rows[i].least);
    }
    printf("\n");
}

/* The master needs 20 us a message: single tasks would take it 2 s. */
static void a_thousand_workers_do_not_swamp_the_master(void **state) {
    (void)state;
    sim_case c = {"", 1000, 100000, 1e-3, 0.3, SIM_LOGNORMAL, 0, 1, 0, LAN};
    sim_result r = sim_play(&c, "auto", 0);
    assert_int_equal(r.done, c.tasks);
    assert_true(r.chunks < 8 * c.workers);
    assert_true(r.efficiency > 0.5);
}

static void work_too_short_for_the_clock_ends(void **state) {
    (void)state;
    sim_case c = {"", 4, 1000000, 0, 0, SIM_CONSTANT, 0, 1, 0, LAN};
    for (size_t p = 0; p < kl_policy_count(); p++) {
        sim_case fewer = c;
        fewer.tasks = kl_policy_find("auto") == kl_policy_at(p) ? c.tasks : 1000;
        sim_result r = sim_play(&fewer, kl_policy_name(kl_policy_at(p)), 0);
        assert_int_equal(r.done, fewer.tasks);
    }
    sim_result r = sim_play(&c, "auto", 0);
    assert_true(r.elapsed_s < 0.1); /* 0 s of work: single tasks would take the master 20 s */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_keeps_its_promise_and_the_table),
        cmocka_unit_test(a_thousand_workers_do_not_swamp_the_master),
        cmocka_unit_test(work_too_short_for_the_clock_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
