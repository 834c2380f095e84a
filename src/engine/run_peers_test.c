/* Test runs that workers organise among themselves as peers. The master and the workers run in simulated
 * time. Workers die, some of them just before they send a certain message. Check that every task counts
 * once. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cases_test_helper.h"
#include "engine/master_private.h"
#include "engine/stepped.h"
#include "engine/worker_private.h"

enum {
    MOST_TASKS = 3000,
    MOST_WORKERS = 24,
    NOTE_AT = 17 /* offset of a note (message between peers) in the bytes that are sent */
};

typedef struct world {
    stepped_farm farm;
    uint64_t seed, draws;
    uint8_t seen[MOST_TASKS];
    uint64_t failed;
    uint32_t kills; /* number of workers that may still be killed */
    int kind;       /* kind of the messages before which workers are killed; 0: any kind */
    /* true: after the first kill, workers are killed when they answer the count of surviving peers
     * (census) */
    bool census;
    uint64_t odds; /* one in `odds` messages of this kind kills its sender */
    uint32_t killed;
    bool fails; /* true: every 100th task fails */
} world;

static uint64_t draw(world *w, uint64_t below) {
    return kl_mix64(w->seed * 1000003 + ++w->draws) % below;
}

static uint64_t value_of(uint64_t task) {
    return kl_mix64(task + 7);
}

static int work(const kilter_task *task, kilter_result *result, void *state) {
    stepped_actor *a = state;
    world *w = a->wire.farm->user;
    double mean_s = w->farm.task_s;
    uint64_t value = value_of(task->index);
    stepped_spend(state, mean_s * (0.5 + (double)(value % 1000) / 1000));
    assert_int_equal(task->shared.size, sizeof w->seed);
    assert_memory_equal(task->shared.data, &w->seed, sizeof w->seed);
    if (task->input.size > 0)
        assert_memory_equal(task->input.data, &task->index, sizeof task->index);
    if (w->fails && task->index % 100 == 99)
        return kilter_result_fail(result, "task %llu cannot be done", (unsigned long long)task->index);
    return kilter_result_put(result, &value, sizeof value);
}

static void take(const kilter_outcome *o, void *user) {
    world *w = user;
    assert_true(o->index < MOST_TASKS);
    w->seen[o->index]++;
    if (o->status == KILTER_OK) {
        uint64_t value = value_of(o->index);
        assert_int_equal(o->result.size, sizeof value);
        assert_memory_equal(o->result.data, &value, sizeof value);
    }
    w->failed += o->status != KILTER_OK;
}

static void sum(void *into, const void *value, size_t bytes, void *user) {
    (void)user;
    assert_int_equal(bytes, sizeof(uint64_t));
    *(uint64_t *)into += *(const uint64_t *)value;
}

/* Kinds of messages that a peer sends when it requests, gives and takes tasks, reports results, and passes
 * on reports. */
enum { ASK = 1, GIFT = 4, GOT = 5, COPIED = 8, HURRY = 12, LATE = 13, SAVE = 15, CALL = 16, REPORT = 17 };

/* Return whether this message may kill its sender. In a message, the kind is followed by the number of the
 * last census that the sender knows. */
static bool may_kill(const world *w, const uint8_t *note) {
    if (w->census && w->killed > 0)
        return note[0] == REPORT && (note[1] > 0 || note[2] > 0);
    return w->kind == 0 || note[0] == w->kind;
}

/* Kill the worker `a`, which is about to send a message, if the message is of the chosen kind. */
static void kill_some(stepped_farm *f, stepped_actor *a, const void *data, size_t size) {
    world *w = f->user;
    const uint8_t *bytes = data;
    bool is_note = size > NOTE_AT + 2 && bytes[0] == KL_NOTE;
    if (!is_note || w->kills == 0 || !may_kill(w, bytes + NOTE_AT) || draw(w, w->odds) > 0)
        return;
    a->killed = true;
    w->kills--;
    w->killed++;
}

static void open_world(world *w, uint64_t seed, uint32_t workers, const char *help) {
    *w = (world){.seed = seed, .odds = 1};
    w->farm = (stepped_farm){.organise = KL_ORGANISE_PEERS,
                             .help = kl_help_find(help),
                             .reducer = {.combine = sum},
                             /* a large limit, so that the master never deals the tasks itself because
                              * workers died */
                             .attempts = 1000,
                             .attended = seed % 2,
                             .room = MOST_WORKERS,
                             .whole_team = true,
                             .sends = kill_some,
                             .user = w,
                             .task_s = 1e-3};
    stepped_open(&w->farm, "auto", workers, 1e-5, work);
    for (uint32_t i = 1; i < workers; i++)
        w->farm.workers[i].speed = pow(10, (double)draw(w, 200) / 100 - 1);
    stepped_gather(&w->farm);
}

static uint32_t living(const world *w) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->farm.count; i++)
        count += w->farm.workers[i].worker != NULL;
    return count;
}

/* Do a run, and let a new worker join when all workers are dead. Check that every task counts once. */
static void run(world *w, uint64_t tasks, bool reduce) {
    kilter_error error = {KILTER_OK, ""};
    stepped_farm *f = &w->farm;
    uint64_t total = 0, expected = 0, failures = w->fails ? tasks / 100 : 0;
    kl_deliverer *deliverer;
    kilter_run what = {.tasks = tasks, .shared = {&w->seed, sizeof w->seed}, .done = take, .user = w};
    if (reduce)
        what = (kilter_run){.tasks = tasks,
                            .shared = what.shared,
                            .done = take,
                            .user = w,
                            .reduce = true,
                            .results = &total,
                            .result_bytes = sizeof total};
    memset(w->seen, 0, sizeof w->seen);
    w->failed = 0;
    assert_int_equal(kl_deliverer_new(&what, f->reducer, &deliverer, NULL), KILTER_OK);
    kilter_status status = kl_master_begin(f->master, &what, &error);
    for (uint64_t turns = 0; status == KILTER_OK && kl_master_running(f->master); turns++) {
        assert_true(turns < 50000000);
        f->master->options.may_join = true;
        if (living(w) == 0 || (living(w) < 3 && w->kills > 0 && f->count < MOST_WORKERS))
            stepped_join(f, work);
        status = stepped_turn(f, &error);
        if (status == KILTER_OK)
            status = kl_deliver(deliverer, kl_master_take(f->master), &error);
    }
    if (status != KILTER_OK)
        fail_msg("seed %d: %s", (int)w->seed, error.text);
    assert_int_equal(kl_deliverer_given(deliverer), tasks);
    kl_deliverer_free(deliverer);
    assert_int_equal(w->failed, failures);
    assert_int_equal(f->master->peers.twice, 0);
    for (uint64_t i = 0; i < tasks; i++) {
        bool fails = w->fails && i % 100 == 99;
        expected += fails ? 0 : value_of(i);
        if (w->seen[i] != (!reduce || fails))
            fail_msg("seed %d: task %d counted %d times", (int)w->seed, (int)i, w->seen[i]);
    }
    assert_int_equal(total, reduce ? expected : 0);
}

static void every_task_counts_once_with_each_policy(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < kl_test_cases(40, 400); seed++) {
        world w;
        size_t policies = 0;
        while (kl_help_at(policies))
            policies++;
        open_world(&w, seed, 1 + (uint32_t)(kl_mix64(seed) % 8), kl_help_at(seed % policies)->name);
        w.fails = seed % 3 == 0;
        for (int i = 0; i < 3; i++)
            run(&w, draw(&w, seed % 5 == 0 ? 20 : MOST_TASKS), i == 1);
        stepped_close(&w.farm);
    }
}

static void deaths_at_chosen_messages_lose_nothing(void **state) {
    (void)state;
    static const int kinds[] = {ASK, GIFT, GOT, COPIED, HURRY, LATE, SAVE, CALL, REPORT, 0};
    uint32_t killed[sizeof kinds / sizeof *kinds] = {0};
    for (uint64_t seed = 0; seed < kl_test_cases(100, 2000); seed++) {
        world w;
        size_t k = seed % (sizeof kinds / sizeof *kinds);
        open_world(&w, seed, 3 + (uint32_t)(kl_mix64(seed) % 18), "help");
        w.kind = kinds[k];
        /* if every message of the kind kills, several workers die within one round of messages */
        w.kills = 1 + (uint32_t)draw(&w, 4);
        w.odds = 1 + draw(&w, w.kind == 0 ? 60 : 4);
        run(&w, 200 + draw(&w, MOST_TASKS - 200), seed % 4 == 3);
        killed[k] += w.killed;
        stepped_close(&w.farm);
    }
    /* CALL and COPIED do not always occur, because CALL needs 18 peers and COPIED needs a straggler */
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        assert_true(killed[k] > 0 || kinds[k] == CALL || kinds[k] == COPIED);
}

/* One worker dies while it gives, takes or reports tasks. Others die when they answer the count of surviving
 * peers (census) that follows. */
static void deaths_in_a_census_lose_nothing(void **state) {
    (void)state;
    static const int kinds[] = {GIFT, GOT, REPORT};
    uint32_t killed = 0;
    uint64_t cases = kl_test_cases(20, 200);
    for (uint64_t seed = 0; seed < cases; seed++) {
        world w;
        open_world(&w, seed, 5 + (uint32_t)(kl_mix64(seed) % 16), "help");
        w.kind = kinds[seed % 3];
        w.census = true;
        w.kills = 2 + (uint32_t)draw(&w, 3);
        run(&w, 500 + draw(&w, MOST_TASKS - 500), seed % 4 == 3);
        killed += w.killed > 1;
        stepped_close(&w.farm);
    }
    assert_true(killed > cases / 2);
}

static void workers_that_die_at_random_times_lose_nothing(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < kl_test_cases(40, 1000); seed++) {
        world w;
        open_world(&w, seed, 4 + (uint32_t)(kl_mix64(seed) % 12), "help");
        uint64_t tasks = 500 + draw(&w, 2000);
        for (uint32_t i = 1; i < w.farm.count; i++)
            if (draw(&w, 3) > 0)
                w.farm.workers[i].dies_s =
                    w.farm.master_actor.now_s + (double)draw(&w, 1000) * 1e-3 * (double)tasks * 4e-4;
        run(&w, tasks, seed % 2);
        stepped_close(&w.farm);
    }
}

static void inputs_come_from_the_master(void **state) {
    (void)state;
    world w;
    uint64_t numbers[1000];
    kilter_bytes inputs[1000];
    open_world(&w, 5, 5, "help");
    for (uint64_t i = 0; i < 1000; i++) {
        numbers[i] = i;
        inputs[i] = (kilter_bytes){&numbers[i], sizeof numbers[i]};
    }
    kilter_error error;
    kilter_run what = {
        .tasks = 1000, .shared = {&w.seed, sizeof w.seed}, .inputs = inputs, .done = take, .user = &w};
    assert_int_equal(stepped_run(&w.farm, &what, &error), KILTER_OK);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(w.seen[i], 1);
    assert_true(w.farm.master->peers.on);
    stepped_close(&w.farm);
}

/* Bytes of an input; each byte depends on the task's number. With this length, only some inputs are aligned
 * in their message. */
enum { INPUT_BYTES = 11 };

static int work_long(const kilter_task *task, kilter_result *result, void *state) {
    uint8_t expected[INPUT_BYTES];
    stepped_farm *f = ((stepped_actor *)state)->wire.farm;
    /* number of tasks after which the run is cancelled; 0: the run is not cancelled */
    uint64_t *left = f->user;
    stepped_spend(state, 5e-3);
    if (*left > 0 && --*left == 0)
        assert_int_equal(kl_master_cancel(f->master, NULL), KILTER_ERR_CANCELLED);
    stepped_spend(state, 35e-3);
    assert_int_equal(task->input.size, INPUT_BYTES);
    memset(expected, (int)(task->index % 251), INPUT_BYTES);
    assert_memory_equal(task->input.data, expected, INPUT_BYTES);
    return kilter_result_put(result, &task->index, sizeof task->index);
}

static void count_seen(const kilter_outcome *o, void *user) {
    ((uint8_t *)user)[o->index]++;
}

/* Cancel the first of two runs in the middle of its tasks. The tasks still read their inputs after that. */
static void a_cancelled_run_leaves_inputs_to_its_tasks(void **state) {
    (void)state;
    enum { TASKS = 300 };
    static uint8_t numbers[TASKS][INPUT_BYTES];
    kilter_bytes inputs[TASKS];
    for (int i = 0; i < TASKS; i++) {
        memset(numbers[i], i % 251, INPUT_BYTES);
        inputs[i] = (kilter_bytes){numbers[i], INPUT_BYTES};
    }
    for (uint64_t seed = 0; seed < kl_test_cases(24, 600); seed++) {
        uint8_t seen[TASKS] = {0};
        uint64_t left = 1 + kl_mix64(seed) % 100;
        kilter_run run = {.tasks = TASKS, .inputs = inputs, .done = count_seen, .user = seen};
        stepped_farm f = {.organise = KL_ORGANISE_PEERS,
                          .help = kl_help_find(seed % 2 ? "sos" : "steal"),
                          .attempts = 1000,
                          .attended = seed % 3 > 0,
                          .whole_team = true,
                          .user = &left};
        stepped_open(&f, "auto", 1 + (uint32_t)(seed % 4), 1e-5, work_long);
        stepped_gather(&f);
        assert_int_equal(kl_master_begin(f.master, &run, NULL), KILTER_OK);
        while (kl_master_running(f.master))
            assert_int_equal(stepped_turn(&f, NULL), KILTER_OK);
        for (kl_delivery *d = kl_master_take(f.master).first, *next; d; d = next) {
            next = d->next;
            kl_delivery_free(d);
        }
        assert_int_equal(stepped_run(&f, &run, NULL), KILTER_OK);
        for (int i = 0; i < TASKS; i++)
            assert_int_equal(seen[i], 1);
        stepped_close(&f);
    }
}

/* Do a task. Task 77 kills every worker that begins it. The master must then take over, and the task must
 * fail. */
static int deadly(const kilter_task *task, kilter_result *result, void *state) {
    if (task->index == 77) {
        ((stepped_actor *)state)->killed = true;
        return 1;
    }
    return work(task, result, state);
}

static void a_task_that_kills_fails_and_the_others_count(void **state) {
    (void)state;
    world w = {.seed = 3, .odds = 1};
    w.farm = (stepped_farm){.organise = KL_ORGANISE_PEERS,
                            .attempts = 2,
                            .room = 40,
                            .whole_team = true,
                            .user = &w,
                            .task_s = 1e-3};
    stepped_open(&w.farm, "auto", 3, 1e-5, deadly);
    stepped_gather(&w.farm);
    kilter_error error;
    kl_deliverer *deliverer;
    kilter_run what = {.tasks = 500, .shared = {&w.seed, sizeof w.seed}, .done = take, .user = &w};
    w.farm.master->options.may_join = true;
    assert_int_equal(kl_deliverer_new(&what, (kl_reducer){0}, &deliverer, NULL), KILTER_OK);
    assert_int_equal(kl_master_begin(w.farm.master, &what, &error), KILTER_OK);
    while (kl_master_running(w.farm.master)) {
        if (living(&w) < 2)
            stepped_join(&w.farm, deadly);
        assert_int_equal(stepped_turn(&w.farm, &error), KILTER_OK);
        assert_int_equal(kl_deliver(deliverer, kl_master_take(w.farm.master), &error), KILTER_OK);
    }
    kl_deliverer_free(deliverer);
    for (uint64_t i = 0; i < 500; i++)
        assert_int_equal(w.seen[i], 1);
    assert_int_equal(w.failed, 1);
    assert_false(w.farm.master->peers.on);
    stepped_close(&w.farm);
}

/* --- large inputs and results --- */

enum { LARGE = 3 << 20, LARGE_TASKS = 40 };

static int work_large(const kilter_task *task, kilter_result *result, void *state) {
    const uint8_t *bytes = task->input.data;
    stepped_spend(state, 1e-3);
    assert_int_equal(task->input.size, LARGE);
    assert_true(bytes[0] == task->index && bytes[LARGE - 1] == task->index);
    return kilter_result_put(result, &task->index, sizeof task->index);
}

/* Check that the master answers a request for 64 inputs with as many inputs as fit into 16 MiB. */
static void inputs_come_in_messages_of_limited_size(void **state) {
    (void)state;
    uint8_t *all = malloc((size_t)LARGE * LARGE_TASKS), seen[LARGE_TASKS] = {0};
    kilter_bytes inputs[LARGE_TASKS];
    assert_non_null(all);
    for (int i = 0; i < LARGE_TASKS; i++) {
        memset(all + (size_t)LARGE * (size_t)i, i, LARGE);
        inputs[i] = (kilter_bytes){all + (size_t)LARGE * (size_t)i, LARGE};
    }
    stepped_farm f = {.organise = KL_ORGANISE_PEERS, .attempts = 5, .whole_team = true};
    stepped_open(&f, "auto", 1, 1e-5, work_large);
    stepped_gather(&f);
    kilter_run run = {.tasks = LARGE_TASKS, .inputs = inputs, .done = count_seen, .user = seen};
    kl_deliverer *deliverer;
    uint64_t most = 0;
    assert_int_equal(kl_deliverer_new(&run, (kl_reducer){0}, &deliverer, NULL), KILTER_OK);
    assert_int_equal(kl_master_begin(f.master, &run, NULL), KILTER_OK);
    while (kl_master_running(f.master)) {
        assert_int_equal(stepped_turn(&f, NULL), KILTER_OK);
        assert_int_equal(kl_deliver(deliverer, kl_master_take(f.master), NULL), KILTER_OK);
        const peering *p = f.workers[0].worker ? f.workers[0].worker->peers : NULL;
        most = p && p->block.message.size > most ? p->block.message.size : most;
    }
    kl_deliverer_free(deliverer);
    for (int i = 0; i < LARGE_TASKS; i++)
        assert_int_equal(seen[i], 1);
    assert_true(most > (16u << 20) - LARGE && most < (16u << 20) + 4096);
    stepped_close(&f);
    free(all);
}

/* A peer may send the results of 13 peers in one message. If the results of 13 equal parts of a run exceed
 * 256 MiB, the run needs a master, unless its results are combined. */
static void large_results_need_a_master(void **state) {
    (void)state;
    world w;
    for (uint32_t workers = 1; workers <= 20; workers += 19) {
        open_world(&w, 1, workers, "help");
        uint64_t most = (256u << 20) / 1024 * (workers > 13 ? workers : 13) / 13;
        kilter_run fits = {.tasks = most, .result_bytes = 1024},
                   not = {.tasks = most + 13, .result_bytes = 1024};
        assert_null(kl_master_never_peers(w.farm.master, &fits, workers));
        assert_non_null(strstr(kl_master_never_peers(w.farm.master, &not, workers), "results are large"));
        not .reduce = true;
        assert_null(kl_master_never_peers(w.farm.master, &not, workers));
        stepped_close(&w.farm);
    }
}

static int work_kilobyte(const kilter_task *task, kilter_result *result, void *state) {
    const uint8_t bytes[1024] = {(uint8_t)task->index};
    stepped_spend(state, 1e-3);
    return kilter_result_put(result, bytes, sizeof bytes);
}

/* decisions that a farm would make during a run. of_few: for another such run; of_many: for many more tasks
 */
typedef struct ways {
    kl_master *master;
    bool looked;
    kl_decision of_few, of_many;
} ways;

static void look_at_ways(const kilter_outcome *o, void *user) {
    ways *w = user;
    (void)o;
    if (w->looked) /* the last results may come after the run is noted */
        return;
    w->looked = true;
    w->of_few = kl_master_way(w->master, &(kilter_run){.tasks = LARGE_TASKS}, KL_ORGANISE_AUTO);
    w->of_many = kl_master_way(w->master, &(kilter_run){.tasks = 1 << 20}, KL_ORGANISE_AUTO);
}

/* If a program does not fix the size of results, their size in the last run counts, also while the next run
 * begins. Time that the first two runs lose is no reason to try peers. */
static void a_later_run_is_judged_by_the_runs_before_it(void **state) {
    (void)state;
    stepped_farm f = {.organise = KL_ORGANISE_AUTO, .attempts = 5, .whole_team = true};
    stepped_open(&f, "auto", 2, 1e-5, work_kilobyte);
    stepped_gather(&f);
    ways w = {.master = f.master};
    kilter_run run = {.tasks = LARGE_TASKS, .done = look_at_ways, .user = &w};
    for (int i = 0; i < 3; i++) {
        w.looked = false;
        assert_int_equal(stepped_run(&f, &run, NULL), KILTER_OK);
        assert_true((strstr(w.of_many.reason, "results are large") != NULL) == (i > 0));
        assert_null(strstr(w.of_few.reason, "results are large"));
        assert_true((f.master->organising.lost_s > 0) == (i == 2));
    }
    stepped_close(&f);
}

/* --- workers that leave during a run of peers --- */

/* Ask some workers to leave, at random times. Check that other workers do their tasks, and that no worker
 * counts as dead. */
static void workers_that_leave_lose_nothing_and_are_no_deaths(void **state) {
    (void)state;
    uint32_t left = 0;
    for (uint64_t seed = 0; seed < kl_test_cases(20, 400); seed++) {
        world w;
        kilter_error error = {KILTER_OK, ""};
        open_world(&w, seed, 4 + (uint32_t)(kl_mix64(seed) % 8), "help");
        uint64_t tasks = 400 + draw(&w, 1000), turns = 0;
        kilter_run what = {.tasks = tasks, .shared = {&w.seed, sizeof w.seed}, .done = take, .user = &w};
        kl_deliverer *deliverer;
        assert_int_equal(kl_deliverer_new(&what, w.farm.reducer, &deliverer, NULL), KILTER_OK);
        assert_int_equal(kl_master_begin(w.farm.master, &what, &error), KILTER_OK);
        for (; kl_master_running(w.farm.master); turns++) {
            stepped_actor *a = &w.farm.workers[turns / 40 % w.farm.count];
            if (turns % 40 == 39 && turns / 40 < w.farm.count - 2 && a->worker)
                kl_worker_leave(a->worker, "this test asks the worker to leave");
            if (stepped_turn(&w.farm, &error) != KILTER_OK)
                fail_msg("seed %d: %s", (int)seed, error.text);
            assert_int_equal(kl_deliver(deliverer, kl_master_take(w.farm.master), &error), KILTER_OK);
            /* other peers may report a leaving worker as gone before the master gets the worker's own
             * message */
            assert_true(w.farm.master->peers.deaths <=
                        w.farm.count - living(&w) - w.farm.master->members.gone);
        }
        kl_deliverer_free(deliverer);
        for (uint64_t i = 0; i < tasks; i++)
            assert_int_equal(w.seen[i], 1);
        left += w.farm.count - living(&w);
        stepped_close(&w.farm);
    }
    assert_true(left > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_counts_once_with_each_policy),
        cmocka_unit_test(deaths_at_chosen_messages_lose_nothing),
        cmocka_unit_test(deaths_in_a_census_lose_nothing),
        cmocka_unit_test(workers_that_die_at_random_times_lose_nothing),
        cmocka_unit_test(inputs_come_from_the_master),
        cmocka_unit_test(a_cancelled_run_leaves_inputs_to_its_tasks),
        cmocka_unit_test(a_task_that_kills_fails_and_the_others_count),
        cmocka_unit_test(inputs_come_in_messages_of_limited_size),
        cmocka_unit_test(large_results_need_a_master),
        cmocka_unit_test(a_later_run_is_judged_by_the_runs_before_it),
        cmocka_unit_test(workers_that_leave_lose_nothing_and_are_no_deaths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
