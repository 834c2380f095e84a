/* Simulate looks at a run in progress. Workers must rest while the cores are busy without them, and work
 * again when cores become idle. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decide/decide.h"

/* A host with some cores and workers. A task computes for a part of its time, and sleeps for the rest. */
typedef struct world {
    uint32_t cores, workers, all;
    double task_s, cpu_s; /* task_s: seconds of a task that runs alone; cpu_s: CPU seconds of a task */
    double now_s, used_s; /* used_s: CPU seconds used so far in the run */
    double tasks;
    kl_glance glance;
} world;

static double rate_of(const world *w) { /* return the number of tasks per second */
    return kl_station_rate(&(kl_station){w->cpu_s, w->cores}, w->task_s - w->cpu_s, w->workers);
}

static kl_load load_of(const world *w) {
    kl_load load = {.use = {.farm_s = 1e-3 * w->used_s,
                            .local_s = w->used_s,
                            .local_tasks = w->tasks,
                            .tasks = w->tasks,
                            .messages = w->tasks,
                            .cores = w->cores},
                    .workers = w->workers,
                    .chunks = w->tasks / 4};
    load.use.delay_s = w->tasks * (w->workers / rate_of(w) - w->task_s);
    kl_load_fit(&load, w->workers / rate_of(w), w->tasks / rate_of(w));
    return load;
}

/* Continue the run until the next look is due, and look. Return whether the number of workers changed. */
static bool go_on(world *w) {
    double due_s = kl_glance_due_s(&w->glance, w->now_s), pause_s = due_s - w->now_s,
           done = rate_of(w) * pause_s;
    w->now_s = due_s;
    w->tasks += done;
    w->used_s += done * w->cpu_s;
    kl_load load = load_of(w);
    kl_sight sight = {.now_s = w->now_s,
                      .cpu_s = w->used_s,
                      .cores = w->cores,
                      .workers = w->workers,
                      .done = (uint64_t)w->tasks,
                      .load = &load};
    kl_glance_plan plan;
    assert_true(kl_glance_look(&w->glance, &sight, &plan));
    assert_true(plan.decision.count >= 1 && plan.decision.count <= w->all && plan.decision.reason[0]);
    assert_int_equal(plan.changed, plan.decision.count != w->workers);
    w->workers = plan.decision.count;
    return plan.changed;
}

static uint32_t changes(world *w, int looks) {
    uint32_t count = 0;
    for (int i = 0; i < looks; i++)
        count += go_on(w);
    return count;
}

static world world_of(uint32_t cores, uint32_t workers, double task_s, double cpu_part) {
    return (world){
        .cores = cores, .workers = workers, .all = workers, .task_s = task_s, .cpu_s = cpu_part * task_s};
}

static void who_computes_beside_all_cores_rests(void **state) {
    (void)state;
    for (uint32_t cores = 1; cores <= 8; cores *= 2)
        for (uint32_t workers = cores + 1; workers <= 64; workers += 1 + workers / 2) {
            world w = world_of(cores, workers, 1e-3, 1);
            double before = rate_of(&w);
            assert_int_equal(changes(&w, 10), 1);
            assert_true(w.workers >= cores && w.workers <= cores + cores / 8 + 1);
            assert_true(rate_of(&w) > 0.96 * before); /* the run must be nearly as fast with fewer workers */
        }
}

static void who_sleeps_goes_on(void **state) {
    (void)state;
    world w = world_of(2, 16, 1e-3, 0.05);
    assert_int_equal(changes(&w, 30), 0);
    w = world_of(4, 4, 1e-3, 1); /* there are no more workers than cores, so none rests */
    assert_int_equal(changes(&w, 30), 0);
}

/* If tasks sleep for half of their time, more workers than cores are useful, but fewer than all 32. */
static void some_more_than_cores_stay_where_tasks_sleep(void **state) {
    (void)state;
    world w = world_of(2, 32, 1e-3, 0.5);
    double before = rate_of(&w);
    changes(&w, 10);
    assert_in_range(w.workers, 3, 16);
    assert_true(rate_of(&w) > 0.96 * before);
}

static void all_work_again_when_tasks_sleep_later_on(void **state) {
    (void)state;
    world w = world_of(2, 8, 1e-3, 1);
    changes(&w, 5);
    assert_int_equal(w.workers, 2);
    w.task_s = 5e-3;
    w.cpu_s = 0.1e-3;
    assert_true(go_on(&w)); /* all workers must work again after the next look */
    assert_int_equal(w.workers, 8);
    w.task_s = w.cpu_s = 1e-3;
    /* letting workers rest failed one time, so no worker may rest again */
    assert_int_equal(changes(&w, 20), 0);
}

static void one_look_is_not_enough(void **state) {
    (void)state;
    world w = world_of(2, 8, 1e-3, 1);
    assert_false(go_on(&w));
    w.cpu_s = 0.05e-3;
    assert_int_equal(changes(&w, 10), 0);
}

static void nothing_known_changes_nothing(void **state) {
    (void)state;
    kl_glance glance = {0};
    kl_glance_plan plan;
    const kl_load unknown = {.task_s = 0};
    kl_sight sight = {.now_s = 1, .cpu_s = 8, .cores = 2, .workers = 8, .done = 1000, .load = &unknown};
    assert_false(kl_glance_look(&glance, &sight, &plan));
    assert_int_equal(plan.decision.count, 8);
    assert_false(plan.changed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_computes_beside_all_cores_rests),
        cmocka_unit_test(who_sleeps_goes_on),
        cmocka_unit_test(some_more_than_cores_stay_where_tasks_sleep),
        cmocka_unit_test(all_work_again_when_tasks_sleep_later_on),
        cmocka_unit_test(one_look_is_not_enough),
        cmocka_unit_test(nothing_known_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
