/* Compare the farm's own choices with fixed choices, in a fork-join program whose workers come and go.
 * Master and workers are real, but time is simulated, so that the result is the same on every machine. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "engine/stepped.h"

enum { ITERATIONS = 40, FIRST = 5, MOST = 50 };

static const double WORK_S = 2, MASTER_TASK_S = 20e-6, LATENCY_S = 50e-6;

/* Change the workers before a run: up to four workers of speeds 1 to 7 join, until the farm has grown from 5
 * to 50 workers. After two thirds of the runs, half of the workers die. */
static void come_and_go(stepped_farm *f, int iteration) {
    for (int k = 0; k < 4 && iteration > 3 && f->count < MOST; k++) {
        stepped_join(f, stepped_task);
        f->workers[f->count - 1].speed = 1 + (f->count - 1) % 7;
    }
    if (iteration == 2 * ITERATIONS / 3)
        for (uint32_t i = 0; i < f->count; i += 2)
            f->workers[i].dies_s = f->master_actor.now_s;
}

static uint64_t ask(stepped_farm *f, double alone_s) {
    kl_grain_look look;
    kl_grain_plan plan;
    kl_grain_question question = {.least = 1, .most = 2000};
    assert_int_equal(kl_master_grain(f->master, alone_s, WORK_S, &look), KILTER_OK);
    assert_int_equal(kl_grain_choose(&look, &question, &plan), KILTER_OK);
    free((void *)(uintptr_t)look.lanes);
    return plan.decision.count;
}

/* Return how many seconds the program takes for all its runs. tasks: number of tasks of each run; 0: the farm
 * chooses the number. */
static double program_s(const char *policy, uint64_t tasks) {
    stepped_farm f = {.room = MOST - FIRST, .whole_team = true};
    stepped_open(&f, policy, FIRST, LATENCY_S, stepped_task);
    for (uint32_t i = 0; i < FIRST; i++)
        f.workers[i].speed = 1 + i % 7;
    stepped_gather(&f);
    double began_s = f.master_actor.now_s, alone_s = 0;
    for (int i = 0; i < ITERATIONS; i++) {
        come_and_go(&f, i);
        uint64_t done = 0, made = tasks ? tasks : ask(&f, alone_s);
        kilter_run run = {.tasks = made, .done = stepped_count, .user = &done, .work = WORK_S};
        f.task_s = WORK_S / (double)made;
        kl_master_spent(f.master, alone_s);
        if (stepped_run(&f, &run, NULL) != KILTER_OK || done != made)
            fail_msg("%s: %d of %d tasks in iteration %d", policy, (int)done, (int)made, i);
        alone_s = MASTER_TASK_S * (double)made;
        f.master_actor.now_s += alone_s;
    }
    double elapsed_s = f.master_actor.now_s - began_s;
    stepped_close(&f);
    return elapsed_s;
}

static void no_fixed_choice_is_better_by_a_twentieth(void **state) {
    (void)state;
    static const uint64_t tasks[] = {25, 50, 100, 200, 300, 400, 600, 800};
    const char *const policies[] = {"static", "ss"};
    double adaptive_s = program_s("ect", 0);
    printf("adaptive %.3f s;", adaptive_s);
    for (size_t p = 0; p < sizeof policies / sizeof *policies; p++)
        for (size_t t = 0; t < sizeof tasks / sizeof *tasks; t++) {
            double fixed_s = program_s(policies[p], tasks[t]);
            printf(" %s %d: %.3f", policies[p], (int)tasks[t], fixed_s);
            if (adaptive_s > 1.05 * fixed_s)
                fail_msg("%s with %d tasks: %.3f s, adaptive %.3f s", policies[p], (int)tasks[t], fixed_s,
                         adaptive_s);
        }
    printf("\n");
}

static void run_of(stepped_farm *f, uint64_t tasks, double work_units) {
    uint64_t done = 0;
    kilter_run run = {.tasks = tasks, .done = stepped_count, .user = &done, .work = work_units};
    f->task_s = 0.01;
    kl_master_spent(f->master, 1e-3);
    assert_int_equal(stepped_run(f, &run, NULL), KILTER_OK);
    assert_int_equal(done, tasks);
}

static kl_grain_look look_of(stepped_farm *f, double work_units) {
    kl_grain_look look;
    assert_int_equal(kl_master_grain(f->master, 1e-3, work_units, &look), KILTER_OK);
    free((void *)(uintptr_t)look.lanes);
    return look;
}

static void asking_again_gives_the_same_answer(void **state) {
    (void)state;
    stepped_farm f = {.whole_team = true};
    stepped_open(&f, "ss", 3, 20e-3, stepped_task);
    stepped_gather(&f);
    run_of(&f, 40, 0);
    assert_true(look_of(&f, 0).lost_s > 0);
    run_of(&f, 11, 0);
    double lost_s = look_of(&f, 0).lost_s;
    for (int i = 0; i < 5; i++)
        assert_true(look_of(&f, 0).lost_s == lost_s);
    stepped_close(&f);
}

static void tasks_of_a_run_without_work_are_as_those_before(void **state) {
    (void)state;
    stepped_farm f = {.whole_team = true};
    stepped_open(&f, "ect", 3, LATENCY_S, stepped_task);
    stepped_gather(&f);
    run_of(&f, 40, 200);
    run_of(&f, 30, 0);
    assert_true(fabs(look_of(&f, 600).work_units - 120) < 1e-9);
    stepped_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_fixed_choice_is_better_by_a_twentieth),
        cmocka_unit_test(asking_again_gives_the_same_answer),
        cmocka_unit_test(tasks_of_a_run_without_work_are_as_those_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
