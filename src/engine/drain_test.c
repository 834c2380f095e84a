/* Release workers by `kilter drain`, under a simulated clock. The right workers must leave, impossible
 * requests must be refused, and no task may be lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "engine/stepped.h"

enum { WORKERS = 5, TASKS = 300 };

static int work(const kilter_task *task, kilter_result *result, void *state) {
    stepped_spend(state, 1e-4 * (1 + (double)(kl_mix64(task->index) % 100)));
    return kilter_result_put(result, &task->index, sizeof task->index);
}

typedef struct scene {
    stepped_farm farm;
    uint8_t seen[TASKS];
    uint64_t count;
    uint64_t drain_at; /* workers are released after this number of results */
    kl_control_drain drain;
    kilter_status status; /* status that kl_master_drain() returned */
    char answer[KL_CONTROL_ANSWER_BYTES];
    kilter_error error;
} scene;

static void drain_now(scene *s) {
    s->status = kl_master_drain(s->farm.master, &s->drain, s->answer, &s->error);
}

static void take(const kilter_outcome *outcome, void *user) {
    scene *s = user;
    assert_int_equal(outcome->status, KILTER_OK);
    assert_memory_equal(outcome->result.data, &outcome->index, sizeof outcome->index);
    s->seen[outcome->index]++;
    if (s->count++ == s->drain_at)
        drain_now(s);
}

static void open_scene(scene *s, const char *policy) {
    *s = (scene){.drain_at = UINT64_MAX};
    stepped_open(&s->farm, policy, WORKERS, 50e-6, work);
    stepped_gather(&s->farm);
}

static kilter_status run(scene *s) {
    memset(s->seen, 0, sizeof s->seen);
    s->count = 0;
    return stepped_run(&s->farm, &(kilter_run){.tasks = TASKS, .done = take, .user = s}, &s->error);
}

static void check_all_done_once(const scene *s) {
    assert_int_equal(s->count, TASKS);
    for (uint64_t i = 0; i < TASKS; i++)
        assert_int_equal(s->seen[i], 1);
}

static uint32_t alive(const stepped_farm *f) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->count; i++)
        count += f->workers[i].worker != NULL;
    return count;
}

static uint32_t leaving(const scene *s) {
    kl_farm_state state;
    kl_master_state(s->farm.master, &state);
    return state.leaving;
}

static void wait_until_gone(scene *s, uint32_t stay) {
    while (alive(&s->farm) > stay || leaving(s) > 0)
        assert_int_equal(stepped_turn(&s->farm, NULL), KILTER_OK);
    assert_int_equal(kl_master_ready(s->farm.master), stay);
}

/* Check that the right workers have left, and that no task is suspected of having killed a worker. */
static void check_none_was_lost(const scene *s) {
    assert_int_equal(kl_master_refused(s->farm.master), 0);
    assert_non_null(strstr(kl_master_last_loss(s->farm.master), "was released on request"));
}

/* Release 1 to WORKERS − 1 workers at different moments of a run, under every policy. */
static void no_task_is_lost_by_it(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        scene s;
        open_scene(&s, kl_policy_name(kl_policy_at(seed % kl_policy_count())));
        s.drain_at = kl_mix64(seed) % TASKS;
        s.drain.worker_count = 1 + (uint32_t)(kl_mix64(seed + 1000) % (WORKERS - 1));
        uint32_t first = (uint32_t)(kl_mix64(seed + 2000) % WORKERS);
        for (uint32_t i = 0; i < s.drain.worker_count; i++)
            s.drain.workers[i] = (first + i) % WORKERS;
        assert_int_equal(run(&s), KILTER_OK);
        assert_int_equal(s.status, KILTER_OK);
        check_all_done_once(&s);
        s.drain_at = UINT64_MAX;
        wait_until_gone(&s, WORKERS - s.drain.worker_count);
        check_none_was_lost(&s);
        assert_int_equal(run(&s), KILTER_OK);
        check_all_done_once(&s);
        stepped_close(&s.farm);
    }
}

static void between_runs_they_go_as_well(void **state) {
    (void)state;
    scene s;
    open_scene(&s, "auto");
    s.drain = (kl_control_drain){.worker_count = 2, .workers = {4, 1}};
    drain_now(&s);
    assert_int_equal(s.status, KILTER_OK);
    assert_string_equal(s.answer, "2 workers leave when their task is done; 3 stay");
    wait_until_gone(&s, 3);
    assert_int_equal(run(&s), KILTER_OK);
    check_all_done_once(&s);
    drain_now(&s);
    assert_int_equal(s.status, KILTER_ERR_RANGE);
    assert_string_equal(s.error.text, "there is no worker 4; kilter tune lists the workers");
    stepped_close(&s.farm);
}

/* Release a worker at any moment while it joins. The worker may still send READY or ECHO, which does not
 * violate the protocol. */
static void at_any_moment_of_joining_they_may_be_sent_home(void **state) {
    (void)state;
    uint32_t sent = 0;
    for (int turns = 0; turns < 200; turns++) {
        scene s = {.drain_at = UINT64_MAX};
        stepped_open(&s.farm, "auto", WORKERS, 50e-6, work);
        for (int i = 0; i < turns && kl_master_ready(s.farm.master) < WORKERS; i++)
            assert_int_equal(stepped_turn(&s.farm, NULL), KILTER_OK);
        s.drain = (kl_control_drain){.all = true, .worker_count = 1, .workers = {turns % WORKERS}};
        drain_now(&s);
        uint32_t stay = s.status == KILTER_OK ? WORKERS - 1 : WORKERS;
        sent += s.status == KILTER_OK;
        while (kl_master_ready(s.farm.master) < stay || leaving(&s) > 0)
            assert_int_equal(stepped_turn(&s.farm, NULL), KILTER_OK);
        assert_int_equal(alive(&s.farm), stay);
        if (stay < WORKERS)
            check_none_was_lost(&s);
        assert_int_equal(run(&s), KILTER_OK);
        check_all_done_once(&s);
        stepped_close(&s.farm);
    }
    /* the test is of use only if in many cases the worker was still joining when it was released */
    assert_true(sent > 100);
}

static void who_leaves_already_is_not_sent_twice(void **state) {
    (void)state;
    scene s;
    open_scene(&s, "auto");
    s.drain = (kl_control_drain){.worker_count = 1, .workers = {2}};
    drain_now(&s);
    assert_string_equal(s.answer, "worker 2 leaves when its task is done; 4 stay");
    drain_now(&s);
    assert_int_equal(s.status, KILTER_OK);
    assert_string_equal(s.answer, "worker 2 already leaves when its task is done; 4 stay");
    kl_farm_state seen;
    kl_master_state(s.farm.master, &seen);
    assert_int_equal(seen.leaving, 1);
    assert_int_equal(seen.present, 4);
    assert_int_equal(seen.worker[2].doing, KL_WORKER_LEAVING);
    wait_until_gone(&s, 4);
    kl_master_state(s.farm.master, &seen);
    assert_int_equal(seen.listed, 4);
    stepped_close(&s.farm);
}

typedef struct refusal {
    kl_control_drain drain;
    const char *words;
} refusal;

static void what_cannot_be_is_refused_as_a_whole(void **state) {
    (void)state;
    char host[KL_HOST_BYTES];
    kl_host_name(host);
    refusal cases[] = {
        {{.worker_count = 2, .workers = {0, 5}}, "there is no worker 5"},
        {{.all = true, .worker_count = 1, .workers = {UINT32_MAX}}, "there is no worker 4294967295"},
        {{.host = "nowhere"}, "no worker on host 'nowhere'"},
        {{.all = true, .host = "nowhere"}, "no worker on host 'nowhere'"},
        {{.worker_count = 5, .workers = {0, 1, 2, 3, 4}},
         "no worker would stay: name fewer workers, or give --all"},
        /* the host of this case is set below; all workers are on it */
        {{.all = false}, "no worker would stay"},
    };
    snprintf(cases[5].drain.host, sizeof cases[5].drain.host, "%.127s", host);
    scene s;
    open_scene(&s, "auto");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        s.drain = cases[i].drain;
        drain_now(&s);
        assert_int_equal(s.status, KILTER_ERR_RANGE);
        assert_non_null(strstr(s.error.text, cases[i].words));
        assert_int_equal(kl_master_ready(s.farm.master), WORKERS);
    }
    assert_int_equal(run(&s), KILTER_OK);
    check_all_done_once(&s);
    stepped_close(&s.farm);
}

/* Release all workers. The run must fail and report the tasks that it could not finish, and so must the next
 * run. */
static void without_any_worker_a_run_fails(void **state) {
    (void)state;
    scene s;
    open_scene(&s, "auto");
    s.drain = (kl_control_drain){.all = true};
    s.drain_at = 20;
    assert_int_equal(run(&s), KILTER_ERR_NO_WORKER);
    assert_int_equal(s.status, KILTER_OK);
    assert_non_null(strstr(s.answer, "5 workers leave"));
    assert_non_null(strstr(s.answer, "nobody stays"));
    assert_non_null(strstr(s.error.text, "no worker is left"));
    for (uint64_t i = 0; i < TASKS; i++)
        assert_true(s.seen[i] <= 1);
    assert_int_equal(run(&s), KILTER_ERR_NO_WORKER);
    stepped_close(&s.farm);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_task_is_lost_by_it),
        cmocka_unit_test(between_runs_they_go_as_well),
        cmocka_unit_test(at_any_moment_of_joining_they_may_be_sent_home),
        cmocka_unit_test(who_leaves_already_is_not_sent_twice),
        cmocka_unit_test(what_cannot_be_is_refused_as_a_whole),
        cmocka_unit_test(without_any_worker_a_run_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
