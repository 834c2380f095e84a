/* Test the growth by tables under a fake clock. Each row describes a farm and its queue, and the actions that
 * must follow. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "growth/growth.h"

typedef struct world {
    kl_growth growth;
    kl_growth_farm farm;
    kl_growth_host hosts[8];
    double now_s;
    unsigned submitted, cancelled, released, gave_up, excluded;
    char last[KL_GROWTH_ID_BYTES], reason[KL_REASON_BYTES];
} world;

static world open_world(uint32_t jobs) {
    return (world){.growth.options = {.jobs = jobs, .tries = 3},
                   .farm = {.known = true, .running = true, .left = 1000}};
}

/* Carry out the actions. The queue accepts each job, and names the jobs 1, 2, 3, … */
static void take(world *w) {
    kl_growth_action a;
    while (kl_growth_take(&w->growth, &a)) {
        char id[KL_GROWTH_ID_BYTES];
        if (a.act == KL_GROWTH_SUBMIT) {
            snprintf(id, sizeof id, "%u", ++w->submitted);
            assert_true(kl_growth_submitted(&w->growth, id, w->now_s));
        }
        w->cancelled += a.act == KL_GROWTH_CANCEL;
        w->released += a.act == KL_GROWTH_RELEASE;
        if (a.act == KL_GROWTH_CANCEL || a.act == KL_GROWTH_RELEASE)
            memcpy(w->last, a.id, sizeof a.id);
        if (a.act != KL_GROWTH_DECIDED)
            continue;
        w->gave_up += a.decision.kind == KL_DECIDES_GIVE_UP;
        w->excluded += a.decision.kind == KL_DECIDES_EXCLUDE;
        memcpy(w->reason, a.decision.reason, sizeof w->reason);
        assert_int_not_equal(*a.decision.reason, 0);
    }
}

static void look(world *w, double after_s, const kl_growth_state *state) {
    w->now_s += after_s;
    w->farm.hosts = w->hosts;
    kl_growth_look(&w->growth, &w->farm, state, state ? 1 : 0, w->now_s);
    take(w);
}

/* Begin job `id` on the node. Its workers join and get tasks. */
static void work_on(world *w, const char *id, const char *node, uint32_t workers) {
    look(w, 1, &(kl_growth_state){.id = id, .stage = KL_GROWTH_RUNNING, .limit_s = 3600, .nodes = node});
    w->hosts[w->farm.count++] = (kl_growth_host){.name = node, .workers = workers, .working = workers};
    w->farm.workers += workers;
    look(w, 1, NULL);
}

static void end(world *w, const char *id) {
    look(w, 1, &(kl_growth_state){.id = id, .stage = KL_GROWTH_OVER});
}

/* Add a job that ran on the node and ended before the test looked at it. */
static void fail_on(world *w, const char *id, const char *node) {
    look(w, 1, &(kl_growth_state){.id = id, .stage = KL_GROWTH_OVER, .nodes = node});
}

static void jobs_up_to_the_limit_are_submitted(void **unused) {
    (void)unused;
    world w = open_world(3);
    for (int i = 0; i < 10; i++)
        look(&w, 1, NULL);
    assert_int_equal(w.submitted, 3);
    end(&w, "2");
    look(&w, 30, NULL); /* the pause that follows the failure of a job is over */
    assert_int_equal(w.submitted, 4);
    kl_growth_free(&w.growth);
}

static void a_farm_that_waits_for_workers_gets_one_job_after_another(void **unused) {
    (void)unused;
    world w = open_world(3);
    w.farm = (kl_growth_farm){.known = false};
    for (int i = 0; i < 20; i++)
        look(&w, 1, NULL);
    assert_int_equal(w.submitted, 1);
    look(&w, 1, &(kl_growth_state){.id = "1", .stage = KL_GROWTH_RUNNING, .nodes = "a"});
    look(&w, 11, NULL); /* 10 s after its first job started, the farm still waits for workers */
    assert_int_equal(w.submitted, 2);
    kl_growth_free(&w.growth);
}

typedef struct use_case {
    uint64_t left;
    double left_s;
    uint32_t workers, resting;
    bool running, useful;
} use_case;

/* Another job is submitted only if it is useful. The first job waited in the queue for 20 s, and its four
 * workers needed 1 s to join. */
static void a_job_must_be_useful(void **unused) {
    (void)unused;
    const use_case cases[] = {
        {1000, 0, 4, 0, true, true}, /* the time left is not known yet */
        {1000, 500, 4, 0, true, true},
        {1000, 25, 4, 0, true, true},
        {1000, 21, 4, 0, true, false}, /* the run ends before a new job could work */
        {1000, 5, 4, 0, true, false},
        {4, 500, 4, 0, true, false},     /* each task has a worker already, so a new worker would get none */
        {1000, 500, 4, 1, true, false},  /* one worker is not used by the farm, so no further one is needed */
        {1000, 500, 4, 0, false, false}, /* no run is in progress */
        {1000, 5, 0, 0, true, true},     /* no worker has a task */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w = open_world(1);
        look(&w, 0, NULL);
        look(&w, 19, NULL);
        work_on(&w, "1", "a", 4);
        assert_int_equal(w.submitted, 1);
        w.growth.options.jobs = 2;
        const use_case *c = &cases[i];
        w.farm.left = c->left;
        w.farm.left_s = c->left_s;
        w.farm.workers = c->workers;
        w.farm.resting = c->resting;
        w.farm.running = c->running;
        look(&w, 1, NULL);
        assert_int_equal(w.submitted, c->useful ? 2 : 1);
        kl_growth_free(&w.growth);
    }
}

static void jobs_that_are_coming_count(void **unused) {
    (void)unused;
    world w = open_world(100);
    w.growth.options.jobs = 1;
    look(&w, 0, NULL);
    work_on(&w, "1", "a", 4);
    w.growth.options.jobs = 100;
    w.farm.left = 14; /* 4 tasks have a worker, and 10 tasks keep three more jobs busy */
    for (int i = 0; i < 20; i++)
        look(&w, 1, NULL);
    assert_int_equal(w.submitted, 4);
    kl_growth_free(&w.growth);
}

static void a_waiting_job_is_cancelled_at_the_end(void **unused) {
    (void)unused;
    const use_case cases[] = {{1000, 100, 4, 0, true, true},
                              {1000, 0.5, 4, 0, true, false},
                              {3, 100, 4, 0, true, false},
                              {0, 0, 4, 0, false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w = open_world(2);
        look(&w, 0, NULL);
        look(&w, 0, NULL);
        work_on(&w, "1", "a", 4);
        assert_int_equal(w.submitted, 2);
        w.farm.left = cases[i].left;
        w.farm.left_s = cases[i].left_s;
        w.farm.running = cases[i].running;
        look(&w, 1, NULL);
        assert_int_equal(w.cancelled, cases[i].useful ? 0 : 1);
        if (!cases[i].useful)
            assert_string_equal(w.last, "2");
        w.farm.again_s = 100; /* from here on the program makes many runs */
        kl_growth_free(&w.growth);
    }
}

static void the_next_run_of_a_program_counts(void **unused) {
    (void)unused;
    world w = open_world(2);
    look(&w, 0, NULL);
    look(&w, 0, NULL);
    work_on(&w, "1", "a", 4);
    w.farm.left = 0;
    w.farm.running = false;
    w.farm.again_s = 100;
    look(&w, 1, NULL);
    assert_int_equal(w.cancelled, 0);
    kl_growth_free(&w.growth);
}

static void an_idle_job_is_released_after_the_time_that_a_new_one_takes(void **unused) {
    (void)unused;
    world w = open_world(1);
    look(&w, 0, NULL);
    look(&w, 29, NULL);
    work_on(&w, "1", "a", 4); /* the job waited in the queue for 30 s, and its workers joined 1 s later */
    w.farm.left = 3;
    w.hosts[0].idle = 3;
    look(&w, 100, NULL);
    assert_int_equal(w.released, 0); /* one of the job's four workers has a task */
    w.hosts[0].idle = 4;
    look(&w, 1, NULL);
    look(&w, 30, NULL);
    assert_int_equal(w.released, 0);
    look(&w, 2, NULL);
    assert_int_equal(w.released, 1);
    end(&w, "1");
    assert_int_equal(w.growth.failures, 0);
    kl_growth_free(&w.growth);
}

typedef struct margin_case {
    double margin_s, task_s,
        at_s; /* at_s: seconds before the job's limit of 3600 s at which its workers must leave */
} margin_case;

static void workers_leave_before_the_limit(void **unused) {
    (void)unused;
    const margin_case cases[] = {{0, 1, 30}, {0, 200, 400}, {60, 200, 60}, {0, 3000, 900}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w = open_world(1);
        w.growth.options.margin_s = cases[i].margin_s;
        look(&w, 0, NULL);
        work_on(&w, "1", "a", 4);
        w.farm.task_s = cases[i].task_s;
        look(&w, 3599 - cases[i].at_s - 1, NULL);
        assert_int_equal(w.released, 0);
        look(&w, 1, NULL);
        assert_int_equal(w.released, 1);
        w.farm.workers = w.farm.count = 0;
        end(&w, "1"); /* the job has ended, so the farm gets another job instead */
        look(&w, 10, NULL);
        assert_int_equal(w.submitted, 2);
        kl_growth_free(&w.growth);
    }
}

static void a_task_longer_than_a_job_ends_the_growth(void **unused) {
    (void)unused;
    world w = open_world(2);
    look(&w, 0, NULL);
    work_on(&w, "1", "a", 4);
    w.farm.task_s = 4000;
    look(&w, 1, NULL);
    assert_int_equal(w.gave_up, 1);
    unsigned submitted = w.submitted;
    end(&w, "1");
    look(&w, 1000, NULL);
    assert_int_equal(w.submitted, submitted);
    kl_growth_free(&w.growth);
}

static void one_bad_node_is_excluded_and_others_go_on(void **unused) {
    (void)unused;
    world w = open_world(2);
    look(&w, 0, NULL);
    look(&w, 0, NULL);
    fail_on(&w, "1", "bad");
    work_on(&w, "2", "good", 4);
    assert_int_equal(w.excluded, 0);
    look(&w, 10, NULL);
    fail_on(&w, "3", "bad");
    assert_int_equal(w.excluded, 1);
    assert_true(strstr(w.reason, "bad gets no more workers") == w.reason);
    look(&w, 10, NULL);
    assert_int_equal(w.submitted, 4);
    assert_int_equal(w.gave_up, 0);
    kl_growth_free(&w.growth);
}

static void a_success_between_two_failures_forgives_a_node(void **unused) {
    (void)unused;
    world w = open_world(1);
    look(&w, 0, NULL);
    fail_on(&w, "1", "a");
    look(&w, 10, NULL);
    work_on(&w, "2", "a", 1);
    w.farm.count = w.farm.workers = 0;
    end(&w, "2");
    look(&w, 10, NULL);
    fail_on(&w, "3", "a");
    assert_int_equal(w.excluded, 0);
    kl_growth_free(&w.growth);
}

static void failures_everywhere_end_the_growth(void **unused) {
    (void)unused;
    world w = open_world(1);
    const char *const nodes[] = {"a", "b", "c"};
    for (unsigned i = 0; i < 3; i++) {
        char id[16];
        look(&w, 100, NULL);
        snprintf(id, sizeof id, "%u", i + 1);
        assert_false(kl_growth_is_lost(&w.growth, &w.farm));
        fail_on(&w, id, nodes[i]);
    }
    assert_int_equal(w.gave_up, 1);
    assert_true(kl_growth_is_lost(&w.growth, &w.farm));
    look(&w, 1000, NULL);
    assert_int_equal(w.submitted, 3);
    kl_growth_free(&w.growth);
}

static void failures_while_others_work_do_not_end_it(void **unused) {
    (void)unused;
    world w = open_world(2);
    look(&w, 0, NULL);
    work_on(&w, "1", "good", 4);
    for (unsigned i = 2; i < 12; i++) {
        char id[16], node[16];
        look(&w, 1000, NULL);
        snprintf(id, sizeof id, "%u", i);
        snprintf(node, sizeof node, "n%u", i);
        w.growth.jobs[0].limit_s = 0;
        fail_on(&w, id, node);
    }
    assert_int_equal(w.gave_up, 0);
    kl_growth_free(&w.growth);
}

static void a_node_of_a_job_without_workers_is_counted(void **unused) {
    (void)unused;
    world w = open_world(1);
    for (unsigned i = 1; i <= 2; i++) {
        char id[16];
        snprintf(id, sizeof id, "%u", i);
        look(&w, 100, NULL);
        w.hosts[0] = (kl_growth_host){.name = "good", .workers = 2, .working = 2};
        w.farm.count = 1;
        w.farm.workers = 2;
        look(&w, 1, &(kl_growth_state){.id = id, .stage = KL_GROWTH_RUNNING, .nodes = "good,bad"});
        look(&w, 61, NULL);
        w.farm.workers = w.farm.count = 0;
        assert_int_equal(w.excluded, i - 1);
        end(&w, id);
    }
    for (uint64_t i = 0; i < w.growth.node_count; i++)
        assert_int_equal(w.growth.nodes[i].excluded, strcmp(w.growth.nodes[i].name, "bad") == 0);
    kl_growth_free(&w.growth);
}

static void a_job_without_workers_is_cancelled(void **unused) {
    (void)unused;
    world w = open_world(1);
    look(&w, 0, NULL);
    look(&w, 1, &(kl_growth_state){.id = "1", .stage = KL_GROWTH_RUNNING, .nodes = "a"});
    look(&w, 59, NULL);
    assert_int_equal(w.cancelled, 0);
    look(&w, 2, NULL);
    assert_int_equal(w.cancelled, 1);
    assert_int_equal(w.growth.failures, 1);
    end(&w, "1");
    assert_int_equal(w.growth.failures, 1);
    kl_growth_free(&w.growth);
}

static void a_job_whose_workers_have_other_names_stays(void **unused) {
    (void)unused;
    world w = open_world(1);
    look(&w, 0, NULL);
    look(&w, 1, &(kl_growth_state){.id = "1", .stage = KL_GROWTH_RUNNING, .nodes = "a,b"});
    w.hosts[w.farm.count++] = (kl_growth_host){.name = "a.site", .workers = 2, .working = 2};
    w.hosts[w.farm.count++] = (kl_growth_host){.name = "alias", .workers = 2, .working = 2};
    w.farm.workers = 4;
    look(&w, 1, NULL);
    assert_true(w.growth.jobs[0].joined);
    look(&w, 100, NULL);
    assert_int_equal(w.cancelled, 0);
    assert_int_equal(w.growth.nodes[0].failures, 0);
    kl_growth_free(&w.growth);
}

static void a_drained_host_gives_its_workers_back(void **unused) {
    (void)unused;
    world w = open_world(1);
    look(&w, 0, NULL);
    work_on(&w, "1", "a", 2);
    w.hosts[0].drained = true;
    look(&w, 1, NULL);
    assert_int_equal(w.excluded, 1);
    assert_int_equal(w.cancelled, 0); /* the job is not cancelled while its workers finish their tasks */
    w.hosts[0] = (kl_growth_host){.name = "a", .drained = true};
    w.farm.workers = 0;
    look(&w, 1, NULL);
    assert_int_equal(w.cancelled, 1);
    assert_int_equal(w.growth.failures, 0);
    end(&w, "1");
    look(&w, 10, NULL);
    assert_int_equal(w.submitted, 2);
    kl_growth_free(&w.growth);
}

static void a_host_where_workers_die_at_once_is_left(void **unused) {
    (void)unused;
    world w = open_world(1);
    look(&w, 0, NULL);
    work_on(&w, "1", "a", 2);
    w.hosts[0] = (kl_growth_host){.name = "a", .workers = 1, .lost = 1};
    look(&w, 1, NULL);
    assert_int_equal(w.excluded, 0);
    w.hosts[0].lost = 2;
    look(&w, 1, NULL);
    assert_int_equal(w.excluded, 1);
    assert_int_equal(w.cancelled, 1);
    kl_growth_free(&w.growth);
}

static void refused_options_end_the_growth_at_once_and_an_outage_does_not(void **unused) {
    (void)unused;
    world w = open_world(1);
    kl_growth_refused(&w.growth, "invalid partition", 0);
    take(&w);
    assert_int_equal(w.gave_up, 1);
    kl_growth_free(&w.growth);
    w = open_world(2);
    look(&w, 0, NULL);
    for (int i = 0; i < 8; i++)
        kl_growth_refused(&w.growth, "unable to contact the controller", w.now_s);
    take(&w);
    assert_int_equal(w.gave_up, 0);
    kl_growth_refused(&w.growth, "unable to contact the controller", w.now_s);
    take(&w);
    assert_int_equal(w.gave_up, 1);
    kl_growth_free(&w.growth);
}

/* Use hosts that are free at once instead of a queue. While no host is free, the growth must not ask for one.
 * It must release a host that is no longer fit. */
static void hosts_that_are_fit_get_workers_and_unfit_ones_are_left(void **unused) {
    (void)unused;
    world w = open_world(10);
    w.growth.options.hosts = true;
    w.farm = (kl_growth_farm){.known = false};
    look(&w, 1, NULL);
    assert_int_equal(w.submitted, 0);
    w.farm.free = 2;
    look(&w, 0.1, NULL);
    w.farm.free = 1;
    look(&w, 0.1, NULL);
    w.farm.free = 0;
    look(&w, 0.1, NULL);
    assert_int_equal(w.submitted, 2);
    work_on(&w, "1", "a", 1);
    look(&w, 1,
         &(kl_growth_state){.id = "1", .stage = KL_GROWTH_RUNNING, .nodes = "a", .unfit = "it is busy"});
    assert_int_equal(w.released, 1);
    assert_string_equal(w.last, "1");
    assert_string_equal(w.reason, "host 1 is released: it is busy");
    look(&w, 1, &(kl_growth_state){.id = "1", .stage = KL_GROWTH_OVER});
    assert_int_equal(w.gave_up, 0);
    kl_growth_free(&w.growth);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_up_to_the_limit_are_submitted),
        cmocka_unit_test(a_farm_that_waits_for_workers_gets_one_job_after_another),
        cmocka_unit_test(a_job_must_be_useful),
        cmocka_unit_test(jobs_that_are_coming_count),
        cmocka_unit_test(a_waiting_job_is_cancelled_at_the_end),
        cmocka_unit_test(the_next_run_of_a_program_counts),
        cmocka_unit_test(an_idle_job_is_released_after_the_time_that_a_new_one_takes),
        cmocka_unit_test(workers_leave_before_the_limit),
        cmocka_unit_test(a_task_longer_than_a_job_ends_the_growth),
        cmocka_unit_test(one_bad_node_is_excluded_and_others_go_on),
        cmocka_unit_test(a_success_between_two_failures_forgives_a_node),
        cmocka_unit_test(failures_everywhere_end_the_growth),
        cmocka_unit_test(failures_while_others_work_do_not_end_it),
        cmocka_unit_test(a_node_of_a_job_without_workers_is_counted),
        cmocka_unit_test(a_job_without_workers_is_cancelled),
        cmocka_unit_test(a_job_whose_workers_have_other_names_stays),
        cmocka_unit_test(a_drained_host_gives_its_workers_back),
        cmocka_unit_test(a_host_where_workers_die_at_once_is_left),
        cmocka_unit_test(hosts_that_are_fit_get_workers_and_unfit_ones_are_left),
        cmocka_unit_test(refused_options_end_the_growth_at_once_and_an_outage_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
