/* Test the functions of kilter.h with real workers: processes over zmq, threads over inproc, and masters
 * that listen. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "farm/farm_private.h"

/* --- a task whose result contains the data that the task got --- */

typedef struct shared_counts { /* memory shared by all worker processes */
    atomic_uint_fast64_t started, done, stopped;
    atomic_int pid;
} shared_counts;

static shared_counts *new_counts(void) {
    void *memory =
        mmap(NULL, sizeof(shared_counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

typedef struct worker_state {
    shared_counts *counts;
    uint32_t index;
    uint64_t tasks, shared;
} worker_state;

static int start(const kilter_worker *worker, void **state) {
    worker_state *s = calloc(1, sizeof *s);
    s->counts = worker->user;
    s->index = worker->index;
    atomic_fetch_add(&s->counts->started, 1);
    *state = s;
    return 0;
}

static int take_shared(kilter_bytes shared, void *state) {
    memcpy(&((worker_state *)state)->shared, shared.data, sizeof(uint64_t));
    return 0;
}

static void stop(void *state) {
    worker_state *s = state;
    atomic_fetch_add(&s->counts->stopped, 1);
    free(s);
}

typedef struct answer {
    uint64_t index, run, input, shared, tasks_of_worker;
} answer;

static int work(const kilter_task *task, kilter_result *result, void *state) {
    worker_state *s = state;
    answer a = {.index = task->index, .run = task->run, .shared = s->shared, .tasks_of_worker = ++s->tasks};
    if (task->input.size == sizeof a.input)
        memcpy(&a.input, task->input.data, sizeof a.input);
    if (task->index % 97 == 13)
        return kilter_result_fail(result, "unlucky %d", 13);
    atomic_fetch_add(&s->counts->done, 1);
    kilter_result_put(result, &a.index, 2 * sizeof(uint64_t)); /* write the result in two pieces */
    return kilter_result_put(result, &a.input, sizeof a - 2 * sizeof(uint64_t)) != KILTER_OK;
}

/* --- checking the results --- */

typedef struct tally {
    uint64_t tasks, run, shared, failed, sum_of_inputs, most_of_a_worker, next;
    uint8_t *seen;
    bool wrong, out_of_order;
} tally;

static void count_outcome(const kilter_outcome *o, void *user) {
    tally *t = user;
    answer a = {0};
    t->seen[o->index]++;
    t->out_of_order |= o->index != t->next;
    t->next = o->index + 1;
    if (o->status == KILTER_ERR_TASK) {
        t->failed++;
        t->wrong |= o->index % 97 != 13 || strcmp(o->error, "unlucky 13") != 0 || o->result.size != 0;
        return;
    }
    t->wrong |= o->result.size != sizeof a;
    memcpy(&a, o->result.data, o->result.size < sizeof a ? o->result.size : sizeof a);
    t->wrong |= a.index != o->index || a.run != t->run || a.shared != t->shared;
    t->sum_of_inputs += a.input;
    t->most_of_a_worker = a.tasks_of_worker > t->most_of_a_worker ? a.tasks_of_worker : t->most_of_a_worker;
}

static kilter_farm *open_farm(kilter_farm_options options, const char *record) {
    kilter_farm *farm = NULL;
    kilter_error error = {KILTER_OK, ""};
    options.record = record;
    options.name = "farm_test";
    if (kilter_farm_open(&options, NULL, NULL, &farm, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    return farm;
}

static kilter_farm_options counting(shared_counts *counts, uint32_t workers) {
    return (kilter_farm_options){.work = work,
                                 .start = start,
                                 .shared = take_shared,
                                 .stop = stop,
                                 .user = counts,
                                 .workers = workers};
}

static uint64_t unlucky_below(uint64_t tasks) {
    return tasks > 13 ? (tasks - 14) / 97 + 1 : 0;
}

/* Make one run and check its results. Return the greatest number of tasks that one worker has done in all
 * runs so far. */
static uint64_t check_run(kilter_farm *farm, uint64_t tasks, uint64_t run_number, kilter_order order) {
    tally t = {.tasks = tasks, .run = run_number, .shared = 7000 + run_number};
    uint64_t *inputs = calloc(tasks + 1, sizeof *inputs), sum = 0;
    kilter_bytes *spans = calloc(tasks + 1, sizeof *spans);
    t.seen = calloc(tasks + 1, 1);
    for (uint64_t i = 0; i < tasks; i++) {
        inputs[i] = i * i;
        spans[i] = (kilter_bytes){&inputs[i], sizeof inputs[i]};
        sum += i % 97 == 13 ? 0 : i * i;
    }
    kilter_run run = {.tasks = tasks, .inputs = spans, .order = order, .done = count_outcome, .user = &t};
    run.shared = (kilter_bytes){&t.shared, sizeof t.shared};
    kilter_error error = {KILTER_OK, ""};
    kilter_status status = kilter_farm_run(farm, &run, &error);
    assert_int_equal(status, unlucky_below(tasks) ? KILTER_ERR_TASK : KILTER_OK);
    if (unlucky_below(tasks))
        assert_non_null(strstr(error.text, "unlucky 13"));
    assert_int_equal(t.failed, unlucky_below(tasks));
    assert_false(t.wrong);
    assert_false(order == KILTER_BY_INDEX && t.out_of_order);
    assert_int_equal(t.sum_of_inputs, sum);
    for (uint64_t i = 0; i < tasks; i++)
        assert_int_equal(t.seen[i], 1);
    free(inputs);
    free(spans);
    free(t.seen);
    return t.most_of_a_worker;
}

static void check_farm(const char *transport, uint32_t workers) {
    shared_counts *counts = new_counts();
    kilter_farm_options options = counting(counts, workers);
    options.transport = transport;
    kilter_farm *farm = open_farm(options, "none");
    assert_int_equal(counts->started, workers);
    uint64_t sizes[] = {300, 0, 1, 12, 1000};
    uint64_t most = 0;
    for (uint64_t r = 0; r < 5; r++)
        most = check_run(farm, sizes[r], r, r % 2 ? KILTER_BY_ARRIVAL : KILTER_BY_INDEX);
    /* a worker counts its tasks over all runs, because its state is kept between runs */
    if (workers == 1)
        assert_true(most >= 1000 + 12 + 1 + 300 - 20);
    assert_int_equal(kilter_farm_close(farm, NULL), KILTER_OK);
    assert_int_equal(counts->stopped, workers);
    munmap(counts, sizeof *counts);
}

static void processes_do_every_task_once(void **state) {
    (void)state;
    for (uint32_t workers = 1; workers <= 13; workers += 4)
        check_farm("zmq", workers);
}

static void threads_do_every_task_once(void **state) {
    (void)state;
    for (uint32_t workers = 1; workers <= 13; workers += 4)
        check_farm("inproc", workers);
}

static void farms_live_side_by_side(void **state) {
    (void)state;
    shared_counts *counts = new_counts();
    /* first open the farm whose workers are processes, because this process must not have threads
     * when it forks */
    kilter_farm *one = open_farm(counting(counts, 2), "none");
    kilter_farm_options threads = counting(counts, 2);
    threads.transport = "inproc";
    kilter_farm *two = open_farm(threads, "none");
    check_run(one, 100, 0, KILTER_BY_INDEX);
    check_run(two, 50, 0, KILTER_BY_ARRIVAL);
    check_run(one, 30, 1, KILTER_BY_ARRIVAL);
    kilter_farm_close(two, NULL);
    check_run(one, 100, 2, KILTER_BY_INDEX);
    kilter_farm_close(one, NULL);
    munmap(counts, sizeof *counts);
}

/* --- workers that continue while the master's callback computes --- */

typedef struct busy_master {
    shared_counts *counts;
    uint64_t tasks;
    bool waited, starved;
} busy_master;

static int count_only(const kilter_task *task, kilter_result *result, void *state) {
    (void)task, (void)result;
    atomic_fetch_add(&((worker_state *)state)->counts->done, 1);
    return 0;
}

/* In the callback of the first result, wait until every task is done. The wait ends only if the master
 * answers workers during the callback. */
static void wait_for_all(const kilter_outcome *outcome, void *user) {
    (void)outcome;
    busy_master *m = user;
    kl_clock clock = kl_clock_system();
    double began_s = kl_now_s(&clock);
    while (!m->waited && atomic_load(&m->counts->done) < m->tasks) {
        usleep(1000);
        m->waited = m->starved = kl_now_s(&clock) - began_s > 60;
    }
    m->waited = true;
}

static void workers_are_answered_while_the_callback_computes(void **state) {
    (void)state;
    const char *const transports[] = {"zmq", "inproc"};
    for (int i = 0; i < 2; i++) {
        busy_master m = {.counts = new_counts(), .tasks = 500};
        kilter_farm_options options = counting(m.counts, 2);
        options.work = count_only;
        options.transport = transports[i];
        options.policy = "ss";
        kilter_farm *farm = open_farm(options, "none");
        kilter_run run = {.tasks = m.tasks, .done = wait_for_all, .user = &m};
        assert_int_equal(kilter_farm_run(farm, &run, NULL), KILTER_OK);
        assert_false(m.starved);
        kilter_farm_close(farm, NULL);
        munmap(m.counts, sizeof *m.counts);
    }
}

/* --- tests in which workers die --- */

/* Do a task. Worker 1 kills itself in its third task, and other workers must do its tasks. */
static int third_task_is_fatal(const kilter_task *task, kilter_result *result, void *state) {
    worker_state *s = state;
    if (s->index == 1 && ++s->shared == 3)
        raise(SIGKILL);
    return kilter_result_put(result, &task->index, sizeof task->index) != KILTER_OK;
}

static void see(const kilter_outcome *o, void *user) {
    ((uint8_t *)user)[o->index]++;
}

static void a_killed_worker_loses_no_task(void **state) {
    (void)state;
    for (size_t p = 0; p < kl_policy_count(); p++) {
        shared_counts *counts = new_counts();
        uint8_t seen[400] = {0};
        kilter_farm_options options = counting(counts, 3);
        options.work = third_task_is_fatal;
        options.policy = kl_policy_name(kl_policy_at(p));
        kilter_farm *farm = open_farm(options, "none");
        kilter_error error = {KILTER_OK, ""};
        if (kilter_farm_run(farm, &(kilter_run){.tasks = 400, .done = see, .user = seen}, &error) !=
            KILTER_OK)
            fail_msg("%s: %s", options.policy, error.text);
        for (int i = 0; i < 400; i++)
            assert_int_equal(seen[i], 1);
        kilter_farm_close(farm, NULL);
        munmap(counts, sizeof *counts);
    }
}

/* Do a task. Workers 0 and 1 each die one time. Only their replacements can finish the run. */
static int first_two_workers_die(const kilter_task *task, kilter_result *result, void *state) {
    if (((worker_state *)state)->index < 2)
        raise(SIGKILL);
    return kilter_result_put(result, &task->index, sizeof task->index) != KILTER_OK;
}

/* A worker that was killed must be replaced, even if the farm has no other worker. */
static void a_killed_worker_is_replaced(void **state) {
    (void)state;
    for (uint32_t workers = 1; workers <= 2; workers++) {
        shared_counts *counts = new_counts();
        uint8_t seen[100] = {0};
        kilter_farm_options options = counting(counts, workers);
        options.work = first_two_workers_die;
        kilter_farm *farm = open_farm(options, "none");
        kilter_error error = {KILTER_OK, ""};
        if (kilter_farm_run(farm, &(kilter_run){.tasks = 100, .done = see, .user = seen}, &error) !=
            KILTER_OK)
            fail_msg("%s", error.text);
        for (int i = 0; i < 100; i++)
            assert_int_equal(seen[i], 1);
        assert_true(counts->started >= 3);
        kilter_farm_close(farm, NULL);
        munmap(counts, sizeof *counts);
    }
}

/* Do a task. The first worker that begins the last task stops itself. */
static int last_task_stops(const kilter_task *task, kilter_result *result, void *state) {
    int nobody = 0;
    if (task->index == 99 &&
        atomic_compare_exchange_strong(&((worker_state *)state)->counts->pid, &nobody, getpid()))
        raise(SIGSTOP);
    return kilter_result_put(result, &task->index, sizeof task->index) != KILTER_OK;
}

/* The last task must be copied to the other worker, although the stopped worker counts as lost only after an
 * hour. */
static void the_last_task_of_a_stopped_worker_is_done_by_another(void **state) {
    (void)state;
    shared_counts *counts = new_counts();
    uint8_t seen[100] = {0};
    kilter_farm_options options = counting(counts, 2);
    options.work = last_task_stops;
    options.lost_after_s = 3600;
    kilter_farm *farm = open_farm(options, "none");
    kilter_error error = {KILTER_OK, ""};
    if (kilter_farm_run(farm, &(kilter_run){.tasks = 100, .done = see, .user = seen}, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    for (int i = 0; i < 100; i++)
        assert_int_equal(seen[i], 1);
    kill(counts->pid, SIGCONT); /* the stopped worker continues; its result comes late and must be ignored */
    uint8_t again[50] = {0};
    assert_int_equal(kilter_farm_run(farm, &(kilter_run){.tasks = 50, .done = see, .user = again}, NULL),
                     KILTER_OK);
    for (int i = 0; i < 50; i++)
        assert_int_equal(again[i], 1);
    kilter_farm_close(farm, NULL);
    munmap(counts, sizeof *counts);
}

static int fatal(const kilter_task *task, kilter_result *result, void *state) {
    (void)task, (void)result, (void)state;
    raise(SIGKILL);
    return 0;
}

/* Do a task. Two of the tasks kill each worker that begins them. */
static int two_are_fatal(const kilter_task *task, kilter_result *result, void *state) {
    worker_state *s = state;
    atomic_fetch_add(&s->counts->done, task->index == 17 || task->index == 60);
    if (task->index == 17)
        raise(SIGABRT);
    if (task->index == 60)
        _exit(3);
    return kilter_result_put(result, &task->index, sizeof task->index) != KILTER_OK;
}

typedef struct fates {
    uint8_t seen[100];
    char why[2][400];
    uint64_t failed;
} fates;

static void see_fate(const kilter_outcome *o, void *user) {
    fates *f = user;
    f->seen[o->index]++;
    if (o->status == KILTER_ERR_TASK && f->failed++ < 2)
        snprintf(f->why[o->index == 60], sizeof f->why[0], "%s", o->error);
}

static void a_task_that_kills_its_workers_fails_and_the_run_goes_on(void **state) {
    (void)state;
    for (uint32_t attempts = 1; attempts <= 5; attempts += 2) {
        shared_counts *counts = new_counts();
        kilter_farm_options options = counting(counts, 2);
        options.work = two_are_fatal;
        options.attempts = attempts;
        kilter_farm *farm = open_farm(options, "none");
        fates f = {0};
        kilter_error error = {KILTER_OK, ""};
        kilter_run run = {.tasks = 100, .done = see_fate, .user = &f};
        assert_int_equal(kilter_farm_run(farm, &run, &error), KILTER_ERR_TASK);
        for (int i = 0; i < 100; i++)
            assert_int_equal(f.seen[i], 1);
        /* count executions only if tasks have several attempts; with one attempt, each task of a dead
         * worker's chunk may have been the fatal one */
        if (attempts > 1) {
            assert_non_null(strstr(error.text, "2 of 100 tasks failed"));
            assert_int_equal(f.failed, 2);
            assert_non_null(strstr(f.why[0], "was killed by signal 6"));
            assert_non_null(strstr(f.why[1], "exited with code 3"));
            /* an attempt may have ended before this fatal task began, because the other fatal task of the
             * same chunk killed the worker */
            uint64_t begun = counts->done;
            assert_true(begun >= 2 * (attempts - 1) && begun <= 2 * attempts);
        }
        kilter_farm_close(farm, NULL);
        munmap(counts, sizeof *counts);
    }
}

static int ends_the_supervisor(const kilter_task *task, kilter_result *result, void *state) {
    (void)task, (void)result, (void)state;
    kill(getppid(), SIGKILL); /* kill the supervisor, with which all workers end */
    pause();
    return 0;
}

static void when_all_workers_are_dead_the_run_ends(void **state) {
    (void)state;
    kilter_farm *farm = open_farm((kilter_farm_options){.work = ends_the_supervisor, .workers = 2}, "none");
    kilter_error error;
    assert_int_equal(kilter_farm_run(farm, &(kilter_run){.tasks = 10}, &error), KILTER_ERR_NO_WORKER);
    assert_non_null(strstr(error.text, "10 of 10 tasks are not done"));
    assert_int_equal(kilter_farm_run(farm, &(kilter_run){.tasks = 10}, &error), KILTER_ERR_NO_WORKER);
    kilter_farm_close(farm, NULL);
}

/* Start a worker. The first process lives, and each of its replacements dies when it starts. */
static int second_dies_at_start(const kilter_worker *worker, void **state) {
    if (atomic_load(&((shared_counts *)worker->user)->started) > 0)
        raise(SIGKILL);
    return start(worker, state);
}

static void a_run_whose_last_replacement_does_not_come_ends(void **state) {
    (void)state;
    shared_counts *counts = new_counts();
    kilter_farm_options options = counting(counts, 1);
    options.work = fatal;
    options.start = second_dies_at_start;
    kilter_farm *farm = open_farm(options, "none");
    kilter_error error;
    assert_int_equal(kilter_farm_run(farm, &(kilter_run){.tasks = 10}, &error), KILTER_ERR_NO_WORKER);
    assert_non_null(strstr(error.text, "no worker is left, but 10 of 10 tasks are not done"));
    kilter_farm_close(farm, NULL);
    munmap(counts, sizeof *counts);
}

/* Let a task kill all its workers. It kills more workers in a row than the farm replaces, so the run must
 * end with an error. */
static void a_run_that_only_kills_its_workers_ends(void **state) {
    (void)state;
    kilter_farm *farm =
        open_farm((kilter_farm_options){.work = fatal, .workers = 1, .attempts = 1000}, "none");
    kilter_error error;
    assert_int_equal(kilter_farm_run(farm, &(kilter_run){.tasks = 1}, &error), KILTER_ERR_NO_WORKER);
    assert_non_null(strstr(error.text, "was killed by signal 9"));
    kilter_farm_close(farm, NULL);
}

/* Run a task; the worker that begins the first one sends itself SIGSTOP. */
static int first_task_freezes(const kilter_task *task, kilter_result *result, void *state) {
    int nobody = 0;
    if (atomic_compare_exchange_strong(&((worker_state *)state)->counts->pid, &nobody, getpid()))
        raise(SIGSTOP);
    return kilter_result_put(result, &task->index, sizeof task->index) != KILTER_OK;
}

static void a_frozen_worker_is_killed_and_replaced(void **state) {
    (void)state;
    shared_counts *counts = new_counts();
    uint8_t seen[20] = {0};
    kilter_farm_options options = counting(counts, 1);
    options.work = first_task_freezes;
    options.lost_after_s = 1;
    kilter_farm *farm = open_farm(options, "none");
    kilter_error error = {KILTER_OK, ""};
    if (kilter_farm_run(farm, &(kilter_run){.tasks = 20, .done = see, .user = seen}, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    for (int i = 0; i < 20; i++)
        assert_int_equal(seen[i], 1);
    assert_int_equal(kill(counts->pid, 0), -1); /* the process of the stopped worker must be gone */
    kilter_farm_close(farm, NULL);
    munmap(counts, sizeof *counts);
}

/* --- cores --- */

static int note_cores(const kilter_worker *worker, void **state) {
    cpu_set_t mine;
    if (sched_getaffinity(0, sizeof mine, &mine) != 0)
        return 1;
    ((shared_counts *)worker->user)->pid = CPU_COUNT(&mine);
    return start(worker, state);
}

static void workers_have_as_many_cores_as_is_said(void **state) {
    (void)state;
    static const char *const ways[] = {"none", "core", "auto", "1", "1000"};
    cpu_set_t mine;
    assert_int_equal(sched_getaffinity(0, sizeof mine, &mine), 0);
    int units = CPU_COUNT(&mine), cores = (int)kl_core_count(), core_units = units / cores;
    int expected[] = {units, core_units, units, core_units, units};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        shared_counts *counts = new_counts();
        kilter_farm_options options = counting(counts, 1);
        options.start = note_cores;
        options.bind = ways[i];
        kilter_farm *farm = open_farm(options, "none");
        assert_int_equal(counts->pid, expected[i]);
        kilter_farm_close(farm, NULL);
        munmap(counts, sizeof *counts);
    }
}

/* --- tests in which runs are cancelled --- */

static int short_nap(const kilter_task *task, kilter_result *result, void *state) {
    kl_nap_s(1e-3);
    if (state)
        atomic_fetch_add(&((worker_state *)state)->counts->done, 1);
    return kilter_result_put(result, &task->index, sizeof task->index) != KILTER_OK;
}

typedef struct canceller {
    kilter_farm *farm;
    uint64_t given, at;
    atomic_uint seen; /* 1: a result has arrived; another thread waits for this value */
} canceller;

static void cancel_at(const kilter_outcome *o, void *user) {
    canceller *c = user;
    (void)o;
    atomic_store(&c->seen, 1);
    if (++c->given == c->at)
        kilter_farm_cancel(c->farm);
}

static void *cancel_when_begun(void *user) {
    canceller *c = user;
    while (atomic_load(&c->seen) == 0)
        kl_nap_s(1e-4);
    kilter_farm_cancel(c->farm);
    return NULL;
}

/* Cancel a run from its callback and from another thread, and cancel while no run is in progress. The farm
 * must work afterwards. */
static void a_cancelled_run_ends_and_the_farm_goes_on(void **state) {
    (void)state;
    static const char *const transports[] = {"zmq", "inproc"};
    for (int t = 0; t < 2; t++) {
        kilter_error error;
        canceller c = {.at = 5};
        c.farm = open_farm((kilter_farm_options){.work = short_nap, .workers = 2, .transport = transports[t]},
                           "none");
        kilter_farm_cancel(c.farm); /* cancelling must have no effect while no run is in progress */
        for (int way = 0; way < 2; way++) {
            pthread_t other;
            c.given = 0;
            c.seen = 0;
            if (way == 1) {
                c.at = 0;
                assert_int_equal(pthread_create(&other, NULL, cancel_when_begun, &c), 0);
            }
            kilter_run run = {.tasks = 1000000, .done = cancel_at, .user = &c};
            assert_int_equal(kilter_farm_run(c.farm, &run, &error), KILTER_ERR_CANCELLED);
            assert_non_null(strstr(error.text, "cancelled with "));
            assert_non_null(strstr(error.text, " of 1000000 tasks done"));
            if (way == 1)
                pthread_join(other, NULL);
            uint8_t seen[20] = {0};
            assert_int_equal(
                kilter_farm_run(c.farm, &(kilter_run){.tasks = 20, .done = see, .user = seen}, &error),
                KILTER_OK);
            for (int i = 0; i < 20; i++)
                assert_int_equal(seen[i], 1);
        }
        kilter_farm_close(c.farm, NULL);
    }
}

static void *wake_often(void *user) {
    canceller *c = user;
    for (; atomic_load(&c->seen) == 0; kl_nap_s(1e-6))
        kl_transport_wake(c->farm->transport);
    return NULL;
}

/* Cancel a run at a random moment after the call of kilter_farm_run() and before the service thread gets the
 * request. */
static void no_cancelling_is_lost_before_a_run_is_asked_for(void **state) {
    (void)state;
    canceller c = {0};
    pthread_t other;
    c.farm = open_farm((kilter_farm_options){.work = short_nap, .workers = 1, .transport = "inproc"}, "none");
    pthread_mutex_lock(&c.farm->lock);
    c.farm->stop.interrupted = true;
    pthread_mutex_unlock(&c.farm->lock);
    assert_int_equal(pthread_create(&other, NULL, wake_often, &c), 0);
    /* enough inputs that a cancellation can come while kilter_farm_run() checks them */
    enum { INPUTS = 300000 };
    kilter_bytes *inputs = calloc(INPUTS, sizeof *inputs);
    kilter_run run = {.tasks = INPUTS, .inputs = inputs};
    for (int i = 0; i < 20; i++)
        assert_int_equal(kilter_farm_run(c.farm, &run, NULL), KILTER_ERR_CANCELLED);
    free(inputs);
    atomic_store(&c.seen, 1);
    pthread_join(other, NULL);
    kilter_farm_close(c.farm, NULL);
}

/* Act as a program whose first run is ended by a signal. The program then tries another run. */
static int interrupted_program(shared_counts *counts) {
    kilter_farm_options options = counting(counts, 2);
    options.work = short_nap;
    setpgid(0, 0);
    kilter_farm *farm = open_farm(options, "none");
    kilter_error error;
    for (int run = 0; run < 2; run++)
        if (kilter_farm_run(farm, &(kilter_run){.tasks = 1000000}, &error) != KILTER_ERR_CANCELLED ||
            !strstr(error.text, "use --resume FILE to keep results"))
            return 1;
    kilter_farm_close(farm, NULL);
    counts->pid = 1;
    while (counts->pid == 1) /* without an open farm, the signal has its usual effect */
        pause();
    return 2;
}

static void signals_end_the_run_and_then_the_program(void **state) {
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM};
    for (int i = 0; i < 2; i++) {
        shared_counts *counts = new_counts();
        pid_t pid = fork();
        if (pid == 0)
            _exit(interrupted_program(counts));
        while (counts->done == 0)
            kl_nap_s(1e-3);
        /* send SIGINT to the workers as well, as Ctrl-C does */
        kill(signals[i] == SIGINT ? -pid : pid, signals[i]);
        int how;
        while (counts->pid == 0 && waitpid(pid, &how, WNOHANG) == 0)
            kl_nap_s(1e-3);
        assert_int_equal(counts->pid, 1);
        kill(pid, signals[i]);
        assert_int_equal(waitpid(pid, &how, 0), pid);
        assert_true(WIFSIGNALED(how) && WTERMSIG(how) == signals[i]);
        munmap(counts, sizeof *counts);
    }
}

static int killed_program(shared_counts *counts, const char *folder) {
    setenv("TMPDIR", folder, 1);
    unsetenv("XDG_RUNTIME_DIR");
    kilter_farm_options options = counting(counts, 2);
    options.work = short_nap;
    kilter_farm *farm = open_farm(options, "none");
    return kilter_farm_run(farm, &(kilter_run){.tasks = 1000000}, NULL);
}

static void a_killed_master_leaves_no_folder(void **state) {
    (void)state;
    char folder[] = "/tmp/kilter-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    shared_counts *counts = new_counts();
    pid_t pid = fork();
    if (pid == 0)
        _exit(killed_program(counts, folder));
    while (counts->done == 0)
        kl_nap_s(1e-3);
    assert_int_equal(rmdir(folder), -1);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    while (rmdir(folder) != 0)
        kl_nap_s(1e-3);
    munmap(counts, sizeof *counts);
}

static int refuse(const kilter_worker *worker, void **state) {
    (void)worker, (void)state;
    return 9;
}

static int die_at_start(const kilter_worker *worker, void **state) {
    (void)worker, (void)state;
    raise(SIGKILL);
    return 0;
}

static void workers_that_cannot_start_are_named(void **state) {
    (void)state;
    kilter_farm *farm;
    kilter_error error;
    kilter_farm_options options = {.work = fatal, .start = refuse, .workers = 2, .record = "none"};
    assert_int_equal(kilter_farm_open(&options, NULL, NULL, &farm, &error), KILTER_ERR_NO_WORKER);
    assert_non_null(strstr(error.text, "start function returned 9"));
    options.start = die_at_start;
    assert_int_equal(kilter_farm_open(&options, NULL, NULL, &farm, &error), KILTER_ERR_NO_WORKER);
    assert_non_null(strstr(error.text, "none of 2 workers could start"));
}

/* --- tests with a master that listens for workers --- */

typedef struct joiner {
    const char *endpoint;
    shared_counts *counts;
} joiner;

static int join_process(void *arg) {
    const joiner *j = arg;
    kilter_farm *farm;
    kilter_error error;
    kilter_farm_options options = counting(j->counts, 0);
    options.join = j->endpoint;
    options.name = "farm_test";
    return kilter_farm_open(&options, NULL, NULL, &farm, &error) == KILTER_ENDED ? 0 : 1;
}

static void workers_join_a_master_that_listens(void **state) {
    (void)state;
    char *folder, endpoint[128];
    assert_int_equal(kl_private_dir(&folder, NULL), KILTER_OK);
    snprintf(endpoint, sizeof endpoint, "ipc://%s/m", folder);
    joiner j = {.endpoint = endpoint, .counts = new_counts()};
    pid_t pids[3];
    for (int i = 0; i < 3; i++) /* start the workers before their master is started */
        assert_int_equal(kl_process_start(join_process, &j, &pids[i], NULL), KILTER_OK);
    kilter_farm_options options = counting(j.counts, 3);
    options.listen = endpoint;
    kilter_farm *farm = open_farm(options, "none");
    check_run(farm, 200, 0, KILTER_BY_INDEX);
    kilter_farm_close(farm, NULL);
    for (int i = 0; i < 3; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_int_equal(j.counts->stopped, 3);
    rmdir(folder);
    free(folder);
    munmap(j.counts, sizeof *j.counts);
}

static int join_as_another_program(void *arg) {
    const joiner *j = arg;
    kilter_farm *farm;
    kilter_error error;
    kilter_farm_options options = counting(j->counts, 0);
    options.join = j->endpoint;
    options.name = "another";
    if (kilter_farm_open(&options, NULL, NULL, &farm, &error) != KILTER_ERR_PEER)
        return 1;
    return strstr(error.text, "runs program another, but the master runs farm_test") ? 0 : 2;
}

/* Refuse a worker that runs another program, because its results would be taken for results of this program.
 */
static void another_program_is_sent_away_and_told_why(void **state) {
    (void)state;
    char *folder, endpoint[128];
    assert_int_equal(kl_private_dir(&folder, NULL), KILTER_OK);
    snprintf(endpoint, sizeof endpoint, "ipc://%s/m", folder);
    joiner j = {.endpoint = endpoint, .counts = new_counts()};
    kl_transport *transport;
    kl_master *master;
    pid_t pid;
    int status;
    /* first start the worker's process, because the start forks, and this process must not have threads then
     */
    assert_int_equal(kl_process_start(join_as_another_program, &j, &pid, NULL), KILTER_OK);
    assert_int_equal(kl_zmq_listen(endpoint, &(kl_zmq_options){0}, NULL, &transport, NULL), KILTER_OK);
    kl_master_options of_master = {.policy = kl_policy_find("auto"),
                                   .clock = kl_clock_system(),
                                   .program = "farm_test",
                                   .may_join = true};
    assert_int_equal(kl_master_new(&of_master, transport, &master, NULL), KILTER_OK);
    while (kl_master_refused(master) == 0)
        assert_int_equal(kl_master_turn(master, -1, NULL), KILTER_OK);
    assert_int_equal(kl_master_ready(master), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(j.counts->stopped, 0);
    kl_master_end(master);
    kl_master_free(master);
    kl_transport_close(transport);
    rmdir(folder);
    free(folder);
    munmap(j.counts, sizeof *j.counts);
}

/* --- bad input --- */

static void a_farm_with_bad_options_opens_nothing(void **state) {
    (void)state;
    const struct {
        kilter_farm_options options;
        const char *says;
    } rows[] = {
        {{.work = work, .record = "/no/such/folder/file"}, "/no/such/folder/file"},
        {{.work = work, .record = "/tmp"}, "is not a regular file"},
        {{.work = work, .policy = "nonsense"}, "nonsense"},
        {{.work = work, .listen = "nonsense"}, "nonsense"},
        {{0}, "options.work"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        kilter_farm *farm = NULL;
        kilter_error error;
        assert_int_equal(kilter_farm_open(&rows[i].options, NULL, NULL, &farm, &error), KILTER_ERR_USAGE);
        assert_non_null(strstr(error.text, rows[i].says));
        assert_null(farm);
    }
}

static void a_run_with_bad_weights_leaves_the_farm_usable(void **state) {
    (void)state;
    shared_counts *counts = new_counts();
    kilter_farm *farm = open_farm(counting(counts, 2), "none");
    double weights[] = {1, 2, -3};
    kilter_error error;
    assert_int_equal(kilter_farm_run(farm, &(kilter_run){.tasks = 3, .weights = weights}, &error),
                     KILTER_ERR_RANGE);
    assert_non_null(strstr(error.text, "task 2"));
    check_run(farm, 50, 0, KILTER_BY_INDEX);
    kilter_farm_close(farm, NULL);
    munmap(counts, sizeof *counts);
}

/* --- the record, the summary, the memory --- */

typedef struct descriptors {
    int socket, file;
    /* inode of the socket. A worker may have another file under the socket's descriptor number. */
    ino_t of_socket;
} descriptors;

static int has_the_file_only(const kilter_worker *worker, void **state) {
    (void)state;
    const descriptors *open = worker->user;
    struct stat found;
    bool has_socket = fstat(open->socket, &found) == 0 && found.st_ino == open->of_socket;
    return has_socket || fcntl(open->file, F_GETFD) < 0;
}

static int nothing(const kilter_task *task, kilter_result *result, void *state) {
    (void)task, (void)result, (void)state;
    return 0;
}

/* Sockets, such as those of another farm in the same program, must be closed in a worker. Files that are no
 * sockets must stay open. */
static void workers_do_not_keep_private_sockets_open(void **state) {
    (void)state;
    descriptors open_now = {.socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
                            .file = open("/dev/null", O_RDONLY | O_CLOEXEC)};
    struct stat found;
    assert_true(open_now.file >= 0 && fstat(open_now.socket, &found) == 0);
    open_now.of_socket = found.st_ino;
    kilter_farm *farm = open_farm(
        (kilter_farm_options){.work = nothing, .start = has_the_file_only, .user = &open_now, .workers = 1},
        "none");
    assert_int_equal(kilter_farm_close(farm, NULL), KILTER_OK);
    close(open_now.socket);
    close(open_now.file);
}

typedef struct intruder {
    kilter_farm *farm;
    kilter_status run, close;
} intruder;

static void run_and_close(const kilter_outcome *o, void *user) {
    intruder *i = user;
    if (o->index != 0)
        return;
    i->run = kilter_farm_run(i->farm, &(kilter_run){.tasks = 3}, NULL);
    i->close = kilter_farm_close(i->farm, NULL);
}

static void a_callback_can_neither_run_nor_close_its_farm(void **state) {
    (void)state;
    shared_counts *counts = new_counts();
    intruder i = {.farm = open_farm(counting(counts, 2), "none")};
    const kilter_run run = {.tasks = 10, .done = run_and_close, .user = &i};
    for (int again = 0; again < 2; again++) {
        i.run = i.close = KILTER_OK;
        assert_int_equal(kilter_farm_run(i.farm, &run, NULL), KILTER_OK);
        assert_int_equal(i.run, KILTER_ERR_USAGE);
        assert_int_equal(i.close, KILTER_ERR_USAGE);
    }
    assert_int_equal(kilter_farm_close(i.farm, NULL), KILTER_OK);
    assert_int_equal(counts->stopped, 2);
    munmap(counts, sizeof *counts);
}

static void a_farm_that_never_ran_leaves_nothing(void **state) {
    (void)state;
    shared_counts *counts = new_counts();
    char *folder, path[128];
    assert_int_equal(kl_private_dir(&folder, NULL), KILTER_OK);
    snprintf(path, sizeof path, "%s/run.kilter", folder);
    kilter_farm *farm = open_farm(counting(counts, 1), path);
    kilter_farm_summary summary;
    kilter_farm_summary_get(farm, &summary);
    assert_true(summary.tasks == 0 && summary.elapsed_s == 0);
    assert_int_equal(kilter_farm_close(farm, NULL), KILTER_OK);
    assert_int_equal(rmdir(folder), 0); /* this succeeds only if the folder is empty */
    assert_int_equal(kilter_farm_close(NULL, NULL), KILTER_OK);
    free(folder);
    munmap(counts, sizeof *counts);
}

/* Reset the peak of memory use, so that memory that earlier tests used does not count. */
static void forget_peak(void) {
    FILE *f = fopen("/proc/self/clear_refs", "w");
    assert_non_null(f);
    fputs("5", f);
    fclose(f);
}

/* Run `body` in a separate process, and return its result as the exit code. */
static int apart(int (*body)(void)) {
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(body());
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int chatter(const kilter_task *task, kilter_result *result, void *state) {
    (void)state;
    printf("task %llu\n", (unsigned long long)task->index);
    fprintf(stderr, "task %llu\n", (unsigned long long)task->index);
    fflush(stdout);
    return kilter_result_put(result, &task->index, sizeof task->index);
}

static int run_without_streams(void) {
    for (int stream = 0; stream < 3; stream++)
        close(stream);
    kilter_farm_options options = {.work = chatter, .workers = 2, .record = "none"};
    kilter_farm *farm;
    if (kilter_farm_open(&options, NULL, NULL, &farm, NULL) != KILTER_OK)
        return 1;
    int code = kilter_farm_run(farm, &(kilter_run){.tasks = 500}, NULL) == KILTER_OK ? 0 : 2;
    /* writing to the standard output must fail, because the output is closed */
    if (write(STDOUT_FILENO, "x", 1) == 1)
        code = 3;
    kilter_farm_close(farm, NULL);
    return code;
}

static void what_is_printed_to_a_closed_stream_hits_no_socket(void **state) {
    (void)state;
    assert_int_equal(apart(run_without_streams), 0);
}

static int open_with_few_files(void) {
    struct rlimit few = {40, 40};
    setrlimit(RLIMIT_NOFILE, &few);
    kilter_farm_options options = {.work = chatter, .workers = 200, .record = "none"};
    kilter_farm *farm;
    kilter_error error;
    if (kilter_farm_open(&options, NULL, NULL, &farm, &error) != KILTER_ERR_USAGE)
        return 1;
    return strstr(error.text, "ulimit -n") ? 0 : 2;
}

static void too_many_workers_for_the_limit_of_files_are_an_error(void **state) {
    (void)state;
    assert_int_equal(apart(open_with_few_files), 0);
}

/* Set a limit on open files that is a little above what the farm needs. Then run the farm. */
static int run_with_few_files(void) {
    struct rlimit few = {64, 64};
    setrlimit(RLIMIT_NOFILE, &few);
    kilter_farm_options options = {.work = chatter, .workers = 2, .record = "none"};
    kilter_farm *farm;
    kilter_error error;
    if (kilter_farm_open(&options, NULL, NULL, &farm, &error) != KILTER_OK)
        return 1;
    if (kilter_farm_run(farm, &(kilter_run){.tasks = 10}, &error) != KILTER_OK)
        return 2;
    return kilter_farm_close(farm, NULL) == KILTER_OK ? 0 : 3;
}

static int open_with_little_memory(void) {
    unsigned long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (!statm || fscanf(statm, "%lu", &pages) != 1)
        return 1;
    fclose(statm);
    /* limit the address space to what is in use now, and 20 MB for the stacks of two threads */
    rlim_t bytes = pages * (rlim_t)sysconf(_SC_PAGESIZE) + (20 << 20);
    setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes});
    kilter_farm_options options = {.work = chatter, .workers = 1, .record = "none"};
    kilter_farm *farm;
    kilter_error error;
    if (kilter_farm_open(&options, NULL, NULL, &farm, &error) != KILTER_ERR_SYSTEM)
        return 2;
    return strstr(error.text, "ulimit -v") ? 0 : 3;
}

static void limits_are_asked_for_first(void **state) {
    (void)state;
    assert_int_equal(apart(run_with_few_files), 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    /* run this part only without a sanitizer, because a sanitizer uses the whole address space */
    assert_int_equal(apart(open_with_little_memory), 0);
#else
    (void)open_with_little_memory;
#endif
}

static double peak_bytes(void) {
    char line[256];
    double kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "VmHWM: %lf", &kib) != 1)
        ;
    if (f)
        fclose(f);
    return 1024 * kib;
}

/* Return the bytes of memory that the master needs per task. All results wait at the master, because none is
 * delivered until all tasks are done. */
static double bytes_per_task(const char *policy, uint64_t tasks) {
    busy_master m = {.counts = new_counts(), .tasks = tasks + 100};
    kilter_farm_options options = counting(m.counts, 2);
    options.work = count_only;
    options.policy = policy;
    kilter_farm *farm = open_farm(options, "none");
    kilter_farm_run(farm, &(kilter_run){.tasks = 100}, NULL);
    forget_peak();
    double before = peak_bytes();
    kilter_run run = {.tasks = tasks, .order = KILTER_BY_INDEX, .done = wait_for_all, .user = &m};
    assert_int_equal(kilter_farm_run(farm, &run, NULL), KILTER_OK);
    double grown = peak_bytes() - before;
    assert_false(m.starved);
    kilter_farm_close(farm, NULL);
    munmap(m.counts, sizeof *m.counts);
    print_message("%s: %.1f bytes a task\n", policy, grown / (double)tasks);
    return grown / (double)tasks;
}

static void a_million_tasks_fit_in_little_memory(void **state) {
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* skip the test with a sanitizer, which does not reuse freed memory */
#endif
    assert_true(bytes_per_task("auto", 1000000) < 200);
    assert_true(bytes_per_task("ss", 100000) <
                200); /* each result is a message of its own, which needs the most memory */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        /* run this test first: later, a new thread could reuse the stack of an ended thread, and memory would
         * not run out */
        cmocka_unit_test(limits_are_asked_for_first),
        cmocka_unit_test(processes_do_every_task_once),
        cmocka_unit_test(threads_do_every_task_once),
        cmocka_unit_test(farms_live_side_by_side),
        cmocka_unit_test(workers_are_answered_while_the_callback_computes),
        cmocka_unit_test(a_killed_worker_loses_no_task),
        cmocka_unit_test(a_killed_worker_is_replaced),
        cmocka_unit_test(the_last_task_of_a_stopped_worker_is_done_by_another),
        cmocka_unit_test(a_task_that_kills_its_workers_fails_and_the_run_goes_on),
        cmocka_unit_test(when_all_workers_are_dead_the_run_ends),
        cmocka_unit_test(a_run_whose_last_replacement_does_not_come_ends),
        cmocka_unit_test(a_run_that_only_kills_its_workers_ends),
        cmocka_unit_test(a_frozen_worker_is_killed_and_replaced),
        cmocka_unit_test(workers_have_as_many_cores_as_is_said),
        cmocka_unit_test(a_cancelled_run_ends_and_the_farm_goes_on),
        cmocka_unit_test(no_cancelling_is_lost_before_a_run_is_asked_for),
        cmocka_unit_test(signals_end_the_run_and_then_the_program),
        cmocka_unit_test(a_killed_master_leaves_no_folder),
        cmocka_unit_test(what_is_printed_to_a_closed_stream_hits_no_socket),
        cmocka_unit_test(too_many_workers_for_the_limit_of_files_are_an_error),
        cmocka_unit_test(workers_that_cannot_start_are_named),
        cmocka_unit_test(workers_join_a_master_that_listens),
        cmocka_unit_test(another_program_is_sent_away_and_told_why),
        cmocka_unit_test(a_farm_with_bad_options_opens_nothing),
        cmocka_unit_test(a_run_with_bad_weights_leaves_the_farm_usable),
        cmocka_unit_test(workers_do_not_keep_private_sockets_open),
        cmocka_unit_test(a_callback_can_neither_run_nor_close_its_farm),
        cmocka_unit_test(a_farm_that_never_ran_leaves_nothing),
        cmocka_unit_test(a_million_tasks_fit_in_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
