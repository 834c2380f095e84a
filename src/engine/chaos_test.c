/* Let workers die, leave, join late, return tasks and get copies, all at random. Check that each task
 * counts once, with the right result. Also test tasks that kill every worker that begins them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/cases_test_helper.h"
#include "engine/master_private.h"
#include "engine/stepped.h"

enum { MOST_TASKS = 400, FATAL = 2 };

typedef struct chaos {
    stepped_farm farm;
    uint64_t seed, draws;
    /* tasks: number of tasks of the current run; run: number of the current run; salt: factor that makes its
     * results differ from the results of other runs */
    uint64_t tasks, run, salt;
    uint64_t series;            /* number of the series of runs that the current run belongs to; 0: none */
    uint64_t fatal[FATAL];      /* tasks that kill their worker; UINT64_MAX: none */
    uint32_t begun[MOST_TASKS]; /* for each task: how many times it was begun in this run */
    uint8_t seen[MOST_TASKS];   /* for each task: how many of its results were counted */
    /* for each task: 1 if it was suspected in this run of killing its worker */
    uint8_t suspected[MOST_TASKS];
    bool fails;                 /* true: a task fails up to two times, and is then tried again */
    uint8_t failed[MOST_TASKS]; /* for each task: how many times it failed in this run */
    /* failures: number of failed attempts in all runs; ended: number of workers that were ended because a
     * task took too long */
    uint64_t failures, ended;
    char why[FATAL][400]; /* for each task that kills its workers: the error of its outcome */
    /* numbers over all runs: recalls of tasks, copies of tasks, and tasks that were begun again */
    uint64_t recalled, copied, again;
} chaos;

static uint64_t draw(chaos *c, uint64_t below) {
    return kl_mix64(c->seed * 0x10001 + c->draws++) % below;
}

static bool once_in(chaos *c, uint64_t times) {
    return draw(c, times) == 0;
}

static int work(const kilter_task *task, kilter_result *result, void *state) {
    stepped_actor *actor = state;
    chaos *c = actor->user;
    stepped_spend(state, 1e-4 * (1 + (double)(kl_mix64(task->index) % 100)));
    /* count only tasks of the current run; a worker may still do tasks of the last run if it does not know
     * that the last run has ended */
    if (task->run == c->run)
        c->begun[task->index]++;
    for (int i = 0; i < FATAL; i++)
        actor->killed |= task->index == c->fatal[i];
    if (c->fails && task->run == c->run && c->failed[task->index] < kl_mix64(task->index + c->run) % 3) {
        c->failed[task->index]++;
        c->failures++;
        return kilter_result_fail(result, "this task must fail now");
    }
    uint64_t salt;
    memcpy(&salt, task->shared.data, sizeof salt);
    uint64_t answer[] = {task->index * salt, task->run};
    return kilter_result_put(result, answer, sizeof answer);
}

static void count(const kilter_outcome *o, void *user) {
    chaos *c = user;
    uint64_t answer[2];
    assert_true(o->index < c->tasks);
    c->seen[o->index]++;
    for (int i = 0; i < FATAL; i++)
        if (o->index == c->fatal[i]) {
            assert_int_equal(o->status, KILTER_ERR_TASK);
            snprintf(c->why[i], sizeof c->why[i], "%s", o->error);
            return;
        }
    assert_int_equal(o->status, KILTER_OK);
    assert_int_equal(o->result.size, sizeof answer);
    memcpy(answer, o->result.data, sizeof answer);
    assert_true(answer[0] == o->index * c->salt && answer[1] == c->run);
}

static void open_chaos(chaos *c, uint64_t seed, const char *policy, uint32_t workers) {
    *c = (chaos){.seed = seed, .fatal = {UINT64_MAX, UINT64_MAX}};
    stepped_open(&c->farm, policy, workers, 50e-6, work);
    for (uint32_t i = 0; i < workers; i++)
        c->farm.workers[i].user = c;
}

/* --- random events --- */

static member *any_member(chaos *c) {
    kl_master *m = c->farm.master;
    member *one = m->members.count > 0 ? &m->members.list[draw(c, m->members.count)] : NULL;
    return one && one->stage == WORKING ? one : NULL;
}

static void recall_some(chaos *c) {
    member *one = any_member(c);
    if (!one || one->chunk_count == 0)
        return;
    kl_chunk *chunk = &one->chunks[draw(c, one->chunk_count)];
    if (chunk->stale || chunk->recalled_s > 0)
        return;
    uint64_t from = chunk->at + draw(c, chunk->hi - chunk->at + 1);
    assert_int_equal(kl_master_recall(c->farm.master, one, chunk, from, NULL), KILTER_OK);
    c->recalled++;
}

/* Copy the last tasks of a chunk to another worker. These tasks have no copies yet. */
static void copy_some(chaos *c) {
    member *one = any_member(c), *to = any_member(c);
    if (!one || !to || one == to || one->chunk_count == 0)
        return;
    const kl_chunk *chunk = &one->chunks[draw(c, one->chunk_count)];
    uint64_t hi = kl_twins_alone_until(&c->farm.master->twins, chunk);
    if (chunk->stale || hi == chunk->at)
        return;
    uint64_t lo = chunk->at + draw(c, hi - chunk->at);
    assert_int_equal(kl_master_copy(c->farm.master, chunk, (kl_span){lo, hi}, to, 0, NULL), KILTER_OK);
    c->copied++;
}

/* Return any worker but the first one, which never leaves. */
static stepped_actor *any_other(chaos *c) {
    return &c->farm.workers[1 + draw(c, c->farm.count - 1)];
}

static void kill_one(chaos *c) {
    stepped_actor *a = any_other(c);
    a->dies_s = fmin(a->dies_s, fmax(a->now_s, c->farm.master_actor.now_s) + 1e-4 * (double)draw(c, 100));
}

static void send_one_home(chaos *c) {
    kl_control_drain drain = {.worker_count = 1, .workers = {1 + (uint32_t)draw(c, c->farm.count - 1)}};
    char answer[KL_CONTROL_ANSWER_BYTES];
    /* ignore the status, because the worker may be gone and sending then fails */
    kl_master_drain(c->farm.master, &drain, answer, NULL);
}

/* End a worker as the master does when a task takes too long. */
static void end_one(chaos *c) {
    kl_master *m = c->farm.master;
    member *one = &m->members.list[draw(c, m->members.count)];
    bool is_there = one->stage == WORKING || one->stage == LEAVING;
    if (!is_there || one->number == 0 || one->chunk_count == 0)
        return;
    kl_limits kept = m->run.limits;
    m->run.limits.task_s = 1;
    one->heartbeat = (kl_heartbeat){.chunk = one->chunks[0].id, .task = one->chunks[0].at, .elapsed_s = 2};
    one->heartbeat_s = c->farm.master_actor.now_s;
    assert_int_equal(kl_master_check_hand(m, one, NULL), KILTER_OK);
    assert_int_equal(one->stage, GONE);
    m->run.limits = kept;
    c->ended++;
}

/* --- checking where each task is --- */

static void count_span(uint8_t *places, kl_span span) {
    for (uint64_t i = span.lo; i < span.hi; i++)
        places[i]++;
}

/* Check that each unfinished task either waits to be dealt, in exactly one list, or is at workers. A task
 * must not have more copies at workers than the limit allows. */
static void check_places(const chaos *c) {
    const kl_master *m = c->farm.master;
    uint8_t waiting[MOST_TASKS] = {0}, at_workers[MOST_TASKS] = {0};
    for (size_t i = 0; i < m->balance.bag.count; i++)
        count_span(waiting, m->balance.bag.spans[i]);
    const kl_homes *homes = &m->balance.bag.homes;
    for (uint32_t h = 0; kl_homes_in_use(homes) && h <= homes->places; h++)
        for (size_t i = homes->home[h].first; i < homes->home[h].end; i++)
            count_span(waiting, homes->spans[i]);
    for (size_t i = 0; i < m->suspects.count; i++)
        count_span(waiting, m->suspects.list[i].span);
    for (size_t i = 0; i < m->members.count; i++)
        for (size_t k = 0; k < m->members.list[i].chunk_count; k++)
            if (!m->members.list[i].chunks[k].stale)
                count_span(at_workers,
                           (kl_span){m->members.list[i].chunks[k].at, m->members.list[i].chunks[k].hi});
    uint64_t done = 0;
    for (uint64_t i = 0; i < c->tasks; i++) {
        bool is_done = kl_ledger_is_done(&m->balance.ledger, i);
        done += is_done;
        assert_true(waiting[i] ? waiting[i] == 1 && at_workers[i] == 0 && !is_done
                               : is_done || (at_workers[i] >= 1 && at_workers[i] <= 1 + KL_RESCUE_COPIES));
    }
    assert_int_equal(done, m->run.done);
}

static void something_happens(chaos *c) {
    if (once_in(c, 4))
        check_places(c);
    if (once_in(c, 8))
        recall_some(c);
    if (once_in(c, 8))
        copy_some(c);
    if (once_in(c, 600))
        kill_one(c);
    if (once_in(c, 600))
        send_one_home(c);
    if (c->fails && once_in(c, 300))
        end_one(c);
}

/* --- runs --- */

/* Do a run as stepped_run() does, and call `meanwhile` (may be NULL) after each turn. */
static void run(chaos *c, uint64_t tasks, kilter_order order, void (*meanwhile)(chaos *c),
                kilter_error *error) {
    stepped_farm *f = &c->farm;
    c->tasks = tasks;
    c->salt = 1 + draw(c, 1000000);
    memset(c->seen, 0, sizeof c->seen);
    memset(c->begun, 0, sizeof c->begun);
    memset(c->suspected, 0, sizeof c->suspected);
    memset(c->failed, 0, sizeof c->failed);
    const kilter_run what = {.tasks = tasks,
                             .shared = {&c->salt, sizeof c->salt},
                             .order = order,
                             .done = count,
                             .user = c,
                             .series = c->series};
    kl_deliverer *deliverer;
    assert_int_equal(kl_deliverer_new(&what, (kl_reducer){0}, &deliverer, NULL), KILTER_OK);
    kilter_status status = kl_master_begin(f->master, &what, error);
    while (status == KILTER_OK && kl_master_running(f->master)) {
        status = stepped_turn(f, error);
        if (status == KILTER_OK)
            status = kl_deliver(deliverer, kl_master_take(f->master), error);
        if (meanwhile && kl_master_running(f->master))
            meanwhile(c);
    }
    if (status != KILTER_OK)
        fail_msg("seed %d: %s", (int)c->seed, error->text);
    kl_deliverer_free(deliverer);
    for (uint64_t i = 0; i < tasks; i++) {
        assert_int_equal(c->seen[i], 1);
        c->again += c->begun[i] > 1;
    }
    c->run++;
}

static void each_task_counts_once_whatever_happens(void **state) {
    (void)state;
    const uint64_t seeds = kl_test_cases(60, 300);
    uint64_t recalled = 0, copied = 0, again = 0, gone = 0, failures = 0, ended = 0;
    for (uint64_t seed = 0; seed < seeds; seed++) {
        chaos c;
        const kl_policy *policy = kl_policy_at(seed % kl_policy_count());
        open_chaos(&c, seed, kl_policy_name(policy), 2 + (uint32_t)(kl_mix64(seed) % 7));
        /* allow many attempts, so that no task fails because its workers died for other reasons */
        c.farm.master->options.attempts = 1000;
        c.farm.master->options.limits.retries = 1000;
        c.fails = seed % 3 == 0;
        for (uint32_t i = 1; i < c.farm.count; i++) { /* some workers join late, and some are slow */
            c.farm.workers[i].now_s = 1e-3 * (double)draw(&c, 500);
            c.farm.workers[i].speed = pow(10, (double)draw(&c, 300) / 100 - 2);
        }
        while (kl_master_ready(c.farm.master) == 0)
            assert_int_equal(stepped_turn(&c.farm, NULL), KILTER_OK);
        kilter_error error = {KILTER_OK, ""};
        c.series = seed / kl_policy_count() % 2; /* in half of the cases, the runs belong to a series */
        uint64_t tasks = draw(&c, MOST_TASKS);
        for (int i = 0; i < 4; i++)
            run(&c, c.series ? tasks : draw(&c, MOST_TASKS),
                once_in(&c, 2) ? KILTER_BY_INDEX : KILTER_BY_ARRIVAL, something_happens, &error);
        recalled += c.recalled;
        copied += c.copied;
        again += c.again;
        failures += c.failures;
        ended += c.ended;
        for (uint32_t i = 0; i < c.farm.count; i++)
            gone += c.farm.workers[i].worker == NULL;
        stepped_close(&c.farm);
    }
    uint64_t many = 10 * seeds / 3;
    /* every kind of event must have happened often */
    assert_true(recalled > many && copied > many && again > many && gone > seeds / 3);
    assert_true(failures > many && ended > seeds / 10);
}

/* --- tasks that kill their workers --- */

/* Check that a suspect, which is a task that may have killed its worker, is the only task of its worker. A
 * suspect must stay alone even while other tasks return and are dealt again. With two tasks at the worker,
 * the wrong one could be blamed for its death. */
static void check_suspects_are_alone(chaos *c) {
    const kl_master *m = c->farm.master;
    if (once_in(c, 3))
        recall_some(c);
    for (size_t i = 0; i < m->suspects.count; i++)
        memset(c->suspected + m->suspects.list[i].span.lo, 1,
               m->suspects.list[i].span.hi - m->suspects.list[i].span.lo);
    for (size_t i = 0; i < m->members.count; i++)
        for (size_t k = 0; k < m->members.list[i].chunk_count; k++) {
            const kl_chunk *chunk = &m->members.list[i].chunks[k];
            if (c->suspected[chunk->at])
                assert_true(m->members.list[i].chunk_count == 1 && chunk->hi - chunk->at == 1);
        }
}

static void a_task_that_kills_fails_and_all_others_are_done(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < kl_test_cases(40, 120); seed++) {
        chaos c;
        uint32_t attempts = 2 + (uint32_t)(seed % 4);
        const kl_policy *policy = kl_policy_at(seed % kl_policy_count());
        open_chaos(&c, seed, kl_policy_name(policy), FATAL * attempts + 1);
        c.farm.master->options.attempts = attempts;
        stepped_gather(&c.farm);
        c.fatal[0] = draw(&c, 200);
        c.fatal[1] = 200 + draw(&c, 200);
        kilter_error error = {KILTER_OK, ""};
        run(&c, MOST_TASKS, seed % 3 ? KILTER_BY_ARRIVAL : KILTER_BY_INDEX, check_suspects_are_alone, &error);
        for (int i = 0; i < FATAL; i++) {
            char expected[80];
            snprintf(expected, sizeof expected,
                     "%u worker%s lost while doing this task, so it is not tried again", attempts,
                     attempts == 1 ? " was" : "s were");
            assert_non_null(strstr(c.why[i], expected));
            /* one of the attempts may have ended before this task began, because another fatal task killed
             * the worker first */
            uint32_t begun = c.begun[c.fatal[i]];
            assert_true(begun >= attempts - 1 && begun <= attempts);
        }
        kilter_farm_summary sum;
        kl_master_summary(c.farm.master, &sum);
        assert_int_equal(sum.failed, FATAL);
        assert_true(kl_master_ready(c.farm.master) >= 1);
        stepped_close(&c.farm);
    }
}

/* --- the first result of a task counts --- */

/* One worker takes very long for its first task, and another worker does a copy of its chunk. Check that the
 * slow worker's tasks are recalled, and that the run does not wait for the slow worker. */
static void what_another_has_done_is_not_waited_for(void **state) {
    (void)state;
    chaos c;
    open_chaos(&c, 1, "static", 3);
    stepped_gather(&c.farm);
    c.farm.workers[0].speed = 1e-4;
    c.farm.workers[2].speed = 0.1;
    stepped_farm *f = &c.farm;
    uint8_t *seen = c.seen;
    c.tasks = 60;
    c.salt = 3;
    const kilter_run what = {.tasks = 60, .shared = {&c.salt, sizeof c.salt}, .done = count, .user = &c};
    kl_deliverer *deliverer;
    assert_int_equal(kl_deliverer_new(&what, (kl_reducer){0}, &deliverer, NULL), KILTER_OK);
    assert_int_equal(kl_master_begin(f->master, &what, NULL), KILTER_OK);
    member *slow = &f->master->members.list[0], *fast = &f->master->members.list[1];
    while (!(slow->chunk_count == 1 && fast->hungry && fast->chunk_count == 0))
        assert_int_equal(stepped_turn(f, NULL), KILTER_OK);
    kl_chunk chunk = slow->chunks[0];
    assert_int_equal(chunk.hi - chunk.at, 20);
    double began_s = f->master_actor.now_s;
    assert_int_equal(
        kl_master_copy(f->master, &slow->chunks[0], (kl_span){chunk.at, chunk.hi}, fast, 0, NULL), KILTER_OK);
    bool asked_back = false;
    while (kl_master_running(f->master)) {
        assert_int_equal(stepped_turn(f, NULL), KILTER_OK);
        assert_int_equal(kl_deliver(deliverer, kl_master_take(f->master), NULL), KILTER_OK);
        asked_back |= kl_master_running(f->master) && slow->chunks[0].recalled_s > 0;
    }
    kl_deliverer_free(deliverer);
    assert_true(asked_back);
    /* the slow worker would need far longer for its tasks */
    assert_true(f->master_actor.now_s - began_s < 10 * 20 * 0.0101);
    for (int i = 0; i < 60; i++)
        assert_int_equal(seen[i], 1);
    c.run++;
    /* the slow worker is still at its first task */
    assert_int_equal(f->master->members.list[0].chunk_count, 1);
    kilter_error error = {KILTER_OK, ""};
    /* check that a late result of the last run does not count in this run */
    run(&c, 100, KILTER_BY_ARRIVAL, NULL, &error);
    stepped_close(f);
}

/* --- a task that takes far longer than usual --- */

static void a_late_task_is_named(void **state) {
    (void)state;
    chaos c;
    char text[320];
    open_chaos(&c, 1, "ss", 2);
    stepped_gather(&c.farm);
    kl_master *m = c.farm.master;
    c.tasks = 100;
    const kilter_run what = {.tasks = 100, .shared = {&c.salt, sizeof c.salt}};
    assert_int_equal(kl_master_begin(m, &what, NULL), KILTER_OK);
    while (m->run.done < 50 || m->members.list[1].chunk_count == 0)
        assert_int_equal(stepped_turn(&c.farm, NULL), KILTER_OK);
    assert_true(kl_master_late(m).elapsed_s == 0);
    member *one = &m->members.list[1];
    uint64_t task = one->chunks[0].at;
    one->heartbeat = (kl_heartbeat){.chunk = one->chunks[0].id, .task = task, .elapsed_s = 70};
    one->heartbeat_s = c.farm.master_actor.now_s;
    kl_late late = kl_master_late(m);
    assert_true(late.task == task && late.worker == one->number && late.elapsed_s == 70);
    assert_true(late.usual_s > 1e-4 && late.usual_s < 1e-2);
    char expected[80];
    kl_progress progress;
    snprintf(expected, sizeof expected, " · task %d at worker %u for 70 s, usually %.1f ms", (int)task,
             one->number, 1e3 * late.usual_s);
    kl_master_progress(m, &(kl_telling){.things = "task"}, &progress);
    kl_progress_print(&progress, 0, text, sizeof text);
    assert_non_null(strstr(text, expected));
    one->heartbeat.task++; /* the worker has begun its next task */
    assert_true(kl_master_late(m).elapsed_s == 0);
    stepped_close(&c.farm);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_task_counts_once_whatever_happens),
        cmocka_unit_test(a_task_that_kills_fails_and_all_others_are_done),
        cmocka_unit_test(a_late_task_is_named),
        cmocka_unit_test(what_another_has_done_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
