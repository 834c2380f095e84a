/* Compare the model of work in rounds (folder model) with simulated runs of a farm. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "model/model.h"
#include "sim/sim.h"

enum { PARTS_MAX = 4096 };
static const double LATENCY_S = 50e-6, ANSWER_S = 5e-6, BYTES_PER_S = 125e6, TASK_S = 1e-3;
static const double TASK_BYTES = 100, RESULT_BYTES = 100;

/* A policy for this test, which deals in rounds. Each round deals a fixed part of all tasks. Each worker gets
 * one chunk per round, in proportion to its speed. */
typedef struct dealing {
    const kl_rounds *rounds;
    const kl_cluster *cluster; /* the platform has two groups of hosts */
    double speed;              /* sum of the speeds of all workers */
} dealing;

/* Return which part of all tasks the present round deals. *left is set to the number of its tasks that are
 * not dealt yet. */
static double present_round(const kl_rounds *rounds, const kilter_policy_view *view, uint64_t *left) {
    uint64_t dealt = view->tasks - view->left, end = 0;
    for (size_t i = 0; i + 1 < rounds->count; i++) {
        end += (uint64_t)round(rounds->part[i] * rounds->tasks);
        if (end > dealt && end <= view->tasks) {
            *left = end - dealt;
            return rounds->part[i];
        }
    }
    *left = view->left;
    return rounds->part[rounds->count - 1];
}

static uint64_t choose(const kilter_policy_view *view, kilter_policy_reason *reason, void *user) {
    (void)reason;
    const dealing *d = user;
    const kl_host_group *groups = d->cluster->groups;
    uint64_t left;
    double part = present_round(d->rounds, view, &left);
    double speed = groups[view->asks->number >= groups[0].count].host.speed;
    uint64_t tasks = (uint64_t)fmax(1, round(part * speed / d->speed * d->rounds->tasks));
    return tasks < left ? tasks : left;
}

/* Return a random time of a task, uniformly distributed with the given σ/μ, which is at most 1/√3. */
static double task_s(void *self, uint64_t run, uint64_t index) {
    double cv = *(double *)self, random = (double)(kl_mix64(index ^ run << 40) >> 11) * 0x1p-53;
    return TASK_S * (1 + cv * sqrt(12) * (random - 0.5));
}

/* Return the mean seconds of a run. *work_s is set to the mean work of a run. */
static double simulated_s(const kl_cluster *cluster, const kl_rounds *rounds, double speed, double cv,
                          double *work_s) {
    enum { RUNS = 2 };
    dealing d = {.rounds = rounds, .cluster = cluster, .speed = speed};
    kilter_policy policy = {.name = "rounds", .choose = choose, .user = &d};
    kl_own_policies *own;
    kilter_error error;
    assert_int_equal(kl_own_policies_new((const kilter_policy *[]){&policy, NULL}, &own, &error), KILTER_OK);
    kl_sim_farm farm = {
        .cluster = cluster, .policy = kl_own_policies_find(own, "rounds"), .answer_s = ANSWER_S};
    kl_sim_run run = {.tasks = (uint64_t)rounds->tasks,
                      .task_s = task_s,
                      .self = &cv,
                      .task_bytes = TASK_BYTES,
                      .result_bytes = RESULT_BYTES};
    kl_sim *sim;
    assert_int_equal(kl_sim_new(&farm, &sim, &error), KILTER_OK);
    double sum_s = 0;
    *work_s = 0;
    for (int i = 0; i < RUNS; i++) {
        kl_sim_outcome outcome;
        if (kl_sim_run_next(sim, &run, &outcome, &error) != KILTER_OK)
            fail_msg("%s", error.text);
        sum_s += outcome.elapsed_s / RUNS;
        *work_s += outcome.work_s / RUNS;
    }
    kl_sim_free(sim);
    kl_own_policies_free(own);
    return sum_s;
}

static double error_of(uint32_t workers, double slow, double cv, size_t equal_parts) {
    kl_host_group groups[] = {{workers - workers / 2, {.speed = 1}}, {workers / 2, {.speed = slow}}};
    kl_cluster cluster = {.groups = groups,
                          .group_count = workers > 1 ? 2 : 1,
                          .workers = workers,
                          .master_apart = true,
                          .master = {.speed = 1},
                          .latency_s = LATENCY_S / 2, /* a message passes two links of this latency */
                          .bytes_per_s = BYTES_PER_S};
    double speed = groups[0].count + slow * groups[1].count, tasks = 200.0 * workers, part[PARTS_MAX], work_s;
    kl_farm_model m = {.message = {LATENCY_S, 1 / BYTES_PER_S},
                       .work_s = tasks * TASK_S,
                       .bytes = tasks * (TASK_BYTES + RESULT_BYTES),
                       .to_workers = TASK_BYTES / (TASK_BYTES + RESULT_BYTES)};
    kl_rounds rounds = {.part = part,
                        .count = equal_parts,
                        .tasks = tasks,
                        .task_sd_s = cv * TASK_S,
                        .answer_s = ANSWER_S,
                        .uneven = slow < 1};
    for (size_t i = 0; i < equal_parts; i++)
        part[i] = 1.0 / (double)equal_parts;
    if (equal_parts == 0)
        rounds.count = kl_model_daf_parts(&m, tasks, cv, workers, part, PARTS_MAX);
    double measured_s = simulated_s(&cluster, &rounds, speed, cv, &work_s);
    m.work_s = work_s;
    return kl_model_rounds_time_s(&m, workers, speed, &rounds) / measured_s - 1;
}

/* Check that the model has the errors that docs/explanation/model.md states. */
static void model_of_rounds_against_the_simulated_run(void **state) {
    (void)state;
    static const uint32_t numbers[] = {1, 2, 8, 25, 50, 200};
    static const double spreads[] = {0, 0.1, 0.5};
    static const size_t parts[] = {0, 8, 40};
    double sum = 0, largest = 0;
    uint32_t count = 0;
    for (size_t n = 0; n < 6; n++)
        for (size_t c = 0; c < 3; c++)
            for (size_t p = 0; p < 3; p++)
                for (int slow = 0; slow < 2; slow++) {
                    double error = error_of(numbers[n], slow ? 0.25 : 1, spreads[c], parts[p]);
                    sum += fabs(error);
                    largest = fmax(largest, fabs(error));
                    count++;
                }
    print_message("%u cases: mean error of the model %.2f %%, largest %.1f %%\n", count, 100 * sum / count,
                  100 * largest);
    assert_true(sum / count < 0.02);
    assert_true(largest < 0.11);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_of_rounds_against_the_simulated_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
