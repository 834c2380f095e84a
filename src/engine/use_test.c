/* Test which CPU time of workers counts in a run: reports contain totals since the start of a worker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "engine/master_private.h"

static bool used(void *self, double *farm_s, double *callbacks_s) {
    (void)self;
    *farm_s = *callbacks_s = 0;
    return true;
}

typedef struct scene {
    kl_master master;
    kl_worker_view view;
    member worker;
} scene;

/* Begin a run, organised by peers or not. As in the master, the last run's way is known until then. */
static void begin_run(scene *s, bool peers) {
    s->master.run.running = true;
    s->master.run.done = s->view.run_unit_s.count = 0;
    kl_master_use_begins(&s->master);
    s->master.peers.on = peers;
}

static void open_scene(scene *s) {
    static char host[] = "here";
    *s = (scene){.worker = {.has_place = true, .host = host}};
    s->master.options.used = used;
    snprintf(s->master.options.host, sizeof s->master.options.host, "%s", host);
    s->master.members.list = &s->worker;
    s->master.members.count = 1;
    s->master.balance.views = &s->view;
}

/* Let the worker report `tasks` more tasks, and the CPU seconds since its start. */
static void report(scene *s, uint64_t tasks, double cpu_s) {
    kl_master_use_told(&s->master, &s->worker, &(kl_results_head){.cpu_s = cpu_s, .delay_s = cpu_s / 10});
    s->view.run_unit_s.count += tasks;
    s->master.run.done += tasks;
}

/* Check the use of `tasks` tasks. 0: it is not known. */
static void check_use(const scene *s, double tasks, double each_s) {
    kl_use use = kl_master_use_so_far(&s->master);
    assert_true(use.tasks == tasks);
    assert_true(use.local_tasks == tasks);
    assert_true(fabs(use.local_s - tasks * each_s) < 1e-9);
    assert_true(fabs(use.delay_s - tasks * each_s / 10) < 1e-9);
}

static void each_run_counts_its_own_cpu_time(void **state) {
    (void)state;
    scene s;
    open_scene(&s);
    begin_run(&s, false);
    report(&s, 0, 5); /* before its first task, the worker used 5 s */
    report(&s, 10, 6);
    report(&s, 10, 7);
    check_use(&s, 20, 0.1);
    begin_run(&s, false);
    report(&s, 10, 9);
    check_use(&s, 10, 0.2);
}

/* After a run of peers, the first report contains the CPU time of both runs. So the CPU time of its tasks is
 * not known, and counts as that of the other tasks. */
static void tasks_of_unknown_cpu_time_count_like_others(void **state) {
    (void)state;
    scene s;
    open_scene(&s);
    begin_run(&s, false);
    report(&s, 10, 1);
    begin_run(&s, true);
    begin_run(&s, false);
    report(&s, 15, 50);
    check_use(&s, 0, 0);
    report(&s, 25, 52.5);
    report(&s, 35, 56);
    check_use(&s, 75, 0.1);
}

/* A worker reads its CPU time at most once a millisecond, so several reports may have the same one. */
static void reports_without_growth_leave_out_no_tasks(void **state) {
    (void)state;
    scene s;
    open_scene(&s);
    begin_run(&s, false);
    report(&s, 0, 1);
    for (int i = 0; i < 4; i++)
        report(&s, 5, 1);
    report(&s, 10, 4);
    check_use(&s, 30, 0.1);
}

static void too_few_known_tasks_show_nothing(void **state) {
    (void)state;
    scene s;
    open_scene(&s);
    begin_run(&s, false);
    report(&s, 75, 50);
    report(&s, 24, 60);
    check_use(&s, 0, 0);
    report(&s, 1, 60);
    check_use(&s, 100, 0.4);
}

/* If the master deals the rest of a run of peers, the next report contains their tasks, too. */
static void a_master_that_takes_over_counts_from_its_first_report(void **state) {
    (void)state;
    scene s;
    open_scene(&s);
    begin_run(&s, false);
    report(&s, 10, 1);
    begin_run(&s, false);
    s.view.run_unit_s.count = s.master.run.done = 20; /* tasks that the worker did as a peer */
    kl_master_use_anew(&s.master);
    report(&s, 10, 50);
    check_use(&s, 0, 0);
    report(&s, 20, 52);
    check_use(&s, 50, 0.1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_run_counts_its_own_cpu_time),
        cmocka_unit_test(tasks_of_unknown_cpu_time_count_like_others),
        cmocka_unit_test(reports_without_growth_leave_out_no_tasks),
        cmocka_unit_test(too_few_known_tasks_show_nothing),
        cmocka_unit_test(a_master_that_takes_over_counts_from_its_first_report)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
