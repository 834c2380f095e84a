/* Test worker processes that are stopped, are told to leave, must return tasks, or lose the connection to
 * their master. */
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
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "farm/farm_private.h"

enum { WORKERS = 2, TASKS = 100 };

/* Memory shared by all processes. */
typedef struct plot {
    atomic_uint started, begun, done, present;
    atomic_bool hold;   /* true: no task may end */
    atomic_int villain; /* process number of the worker that is stopped or told to leave; 0: not chosen yet */
    atomic_int master;
    char endpoint[128], folder[64];
    double wait_for_master_s;
    int (*work)(const kilter_task *task, kilter_result *result, void *state);
} plot;

static plot *new_plot(void) {
    plot *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *folder;
    assert_true(p != MAP_FAILED);
    assert_int_equal(kl_private_dir(&folder, NULL), KILTER_OK);
    snprintf(p->folder, sizeof p->folder, "%s", folder);
    snprintf(p->endpoint, sizeof p->endpoint, "ipc://%s/m", folder);
    free(folder);
    return p;
}

static void end_plot(plot *p) {
    unlink(p->endpoint + strlen("ipc://"));
    assert_int_equal(rmdir(p->folder), 0);
    munmap(p, sizeof *p);
}

static void wait_until(atomic_uint *count, unsigned least) {
    while (atomic_load(count) < least)
        kl_nap_s(1e-3);
}

static int start(const kilter_worker *worker, void **state) {
    plot *p = worker->user;
    atomic_fetch_add(&p->started, 1);
    *state = p;
    return 0;
}

static int answer(plot *p, const kilter_task *task, kilter_result *result) {
    while (atomic_load(&p->hold))
        kl_nap_s(1e-3);
    atomic_fetch_add(&p->done, 1);
    return kilter_result_put(result, &task->index, sizeof task->index) != KILTER_OK;
}

static int work(const kilter_task *task, kilter_result *result, void *state) {
    plot *p = state;
    atomic_fetch_add(&p->begun, 1);
    return answer(p, task, result);
}

static kilter_farm_options options_of(plot *p) {
    return (kilter_farm_options){.work = p->work ? p->work : work,
                                 .start = start,
                                 .user = p,
                                 .name = "serve_test",
                                 .record = "none",
                                 .policy = "ss",
                                 .lost_after_s = 0.5,
                                 .wait_for_master_s = p->wait_for_master_s};
}

/* exit codes of a worker process */
enum { ENDED = 0, ORPHANED = 3, ELSE = 4 };

static int be_worker(void *arg) {
    plot *p = arg;
    kilter_farm *farm;
    kilter_error error;
    kilter_farm_options options = options_of(p);
    options.join = p->endpoint;
    kilter_status status = kilter_farm_open(&options, NULL, NULL, &farm, &error);
    if (status == KILTER_ERR_PEER && strstr(error.text, "the master is gone and did not come back within"))
        return ORPHANED;
    return status == KILTER_ENDED ? ENDED : ELSE;
}

static pid_t start_process(int (*body)(void *arg), plot *p) {
    pid_t pid;
    assert_int_equal(kl_process_start(body, p, &pid, NULL), KILTER_OK);
    return pid;
}

static void expect_end(pid_t pid, int code) {
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code);
}

/* --- tests in which the test itself is the master --- */

typedef struct part {
    plot *plot;
    pid_t worker;
    kl_transport *transport;
    kl_peer peer;
    kl_buffer out;
} part;

static kl_message next_message(part *m, kl_message_type type) {
    for (;;) {
        kl_event event;
        assert_int_equal(kl_poll(m->transport, -1, &event, NULL), KILTER_OK);
        assert_int_not_equal(event.kind, KL_EVENT_LEFT);
        if (event.kind == KL_EVENT_JOINED)
            m->peer = event.peer;
        if (event.kind == KL_EVENT_MESSAGE && kl_wire_type(event.message.data, event.message.size) == type)
            return event.message;
        kl_message_release(&event.message);
    }
}

static void await(part *m, kl_message_type type) {
    kl_message message = next_message(m, type);
    kl_message_release(&message);
}

static void say(part *m) {
    assert_int_equal(kl_send(m->transport, m->peer, &m->out, NULL), KILTER_OK);
    kl_buffer_clear(&m->out);
}

static void meet(part *m, plot *p) {
    /* start the worker first, because the start forks, and this process must not have threads then */
    *m = (part){.plot = p, .worker = start_process(be_worker, p)};
    assert_int_equal(kl_zmq_listen(p->endpoint, &(kl_zmq_options){0}, NULL, &m->transport, NULL), KILTER_OK);
    await(m, KL_HELLO);
    kl_wire_put_welcome(&m->out, &(kl_welcome){0});
    say(m);
    await(m, KL_READY);
}

static void deal_ten(part *m) {
    kl_wire_put_chunk(&m->out, &(kl_chunk_head){.chunk = 1, .count = 10});
    say(m);
    wait_until(&m->plot->begun, 1);
}

static void expect_return(part *m, uint64_t lo) {
    kl_message message = next_message(m, KL_RETURN);
    kl_part returned;
    assert_true(kl_wire_get_part(message.data, message.size, &returned));
    assert_true(returned.chunk == 1 && returned.lo == lo && returned.hi == 10);
    kl_message_release(&message);
}

/* Receive the result of task 0, which is the last one of its chunk. */
static void expect_last_result(part *m) {
    for (;;) {
        kl_message message = next_message(m, KL_RESULTS);
        kl_results_head head;
        kl_segment segment = {0};
        assert_true(kl_wire_check_results(message.data, message.size, &head));
        kl_reader reader = kl_wire_read_results(message.data, message.size);
        if (head.segments > 0)
            kl_wire_next_segment(&reader, &segment);
        kl_message_release(&message);
        if (head.segments == 0)
            continue; /* skip a message without results, with which the worker asks for tasks */
        assert_true(segment.lo == 0 && segment.count == 1 && segment.last);
        return;
    }
}

static void part_with(part *m) {
    kl_buffer_free(&m->out);
    kl_transport_close(m->transport);
    end_plot(m->plot);
}

static void work_is_given_back_and_heartbeats_come_while_a_task_runs(void **state) {
    (void)state;
    part m;
    plot *p = new_plot();
    atomic_store(&p->hold, true);
    meet(&m, p);
    deal_ten(&m);
    kl_wire_put_part(&m.out, KL_RECALL, &(kl_part){1, 0, 10});
    say(&m);
    expect_return(&m, 1);
    kl_heartbeat heartbeat;
    kl_message message = next_message(&m, KL_HEARTBEAT);
    assert_true(kl_wire_get_heartbeat(message.data, message.size, &heartbeat));
    assert_true(heartbeat.chunk == 1 && heartbeat.task == 0 && heartbeat.elapsed_s > 0 &&
                heartbeat.cpu_s <= heartbeat.elapsed_s);
    kl_message_release(&message);
    assert_int_equal(p->done, 0);
    atomic_store(&p->hold, false);
    expect_last_result(&m);
    kl_wire_put_bytes(&m.out, KL_END, NULL, 0);
    say(&m);
    expect_end(m.worker, ENDED);
    assert_int_equal(p->begun, 1);
    part_with(&m);
}

static void expect_leave(part *m) {
    char text[80];
    kl_message message = next_message(m, KL_LEAVE);
    kl_wire_get_text(message.data, message.size, text, sizeof text);
    assert_non_null(strstr(text, "SIGTERM"));
    kl_message_release(&message);
    kl_event event; /* wait until the worker's connection has ended */
    do
        assert_int_equal(kl_poll(m->transport, -1, &event, NULL), KILTER_OK);
    while (event.kind != KL_EVENT_LEFT);
    expect_end(m->worker, ENDED);
}

/* Send SIGTERM when the worker has just lost its master, and is stopping the thread that handles messages
 * during tasks. */
static int be_told_to_go_between_two_masters(void *arg) {
    kl_inproc *hub;
    kl_transport *listener;
    (void)arg;
    assert_int_equal(kl_inproc_new(NULL, &hub, NULL), KILTER_OK);
    assert_int_equal(kl_inproc_listen(hub, &listener, NULL), KILTER_OK);
    bool heard = true;
    for (int i = 0; i < 20; i++) {
        kl_transport *transport;
        kl_peer endpoint;
        kl_worker *worker;
        kl_attendant *attendant;
        kl_worker_options options = {
            .work = work, .program = "test", .binding = "", .patience_s = -1, .clock = kl_clock_system()};
        assert_int_equal(kl_inproc_join(hub, &endpoint, &transport, NULL), KILTER_OK);
        assert_int_equal(kl_worker_new(&options, NULL, transport, &worker, NULL), KILTER_OK);
        assert_int_equal(kl_attendant_start(worker, true, &attendant, NULL), KILTER_OK);
        raise(SIGTERM);
        kl_attendant_stop(attendant);
        heard &= kl_worker_turn(worker, 0, NULL) == KILTER_ENDED;
        kl_worker_free(worker);
        kl_transport_close(transport);
    }
    kl_transport_close(listener);
    kl_inproc_free(hub);
    return heard ? ENDED : ELSE;
}

static void sigterm_is_not_lost_when_the_master_is(void **state) {
    (void)state;
    pid_t pid;
    assert_int_equal(kl_process_start(be_told_to_go_between_two_masters, NULL, &pid, NULL), KILTER_OK);
    expect_end(pid, ENDED);
}

static void sigterm_lets_the_task_at_hand_end(void **state) {
    (void)state;
    part m;
    plot *p = new_plot();
    atomic_store(&p->hold, true);
    meet(&m, p);
    deal_ten(&m);
    kill(m.worker, SIGTERM);
    expect_return(&m, 1);
    assert_int_equal(p->done, 0);
    kill(m.worker, SIGTERM); /* a second SIGTERM must change nothing */
    atomic_store(&p->hold, false);
    expect_last_result(&m);
    expect_leave(&m);
    assert_int_equal(p->begun, 1);
    part_with(&m);
}

static void sigterm_ends_an_idle_worker(void **state) {
    (void)state;
    part m;
    plot *p = new_plot();
    meet(&m, p);
    kill(m.worker, SIGTERM);
    expect_leave(&m);
    part_with(&m);
}

/* --- tests with real masters --- */

typedef struct tally {
    uint8_t seen[TASKS];
} tally;

static void see(const kilter_outcome *o, void *user) {
    assert_int_equal(o->status, KILTER_OK);
    ((tally *)user)->seen[o->index]++;
}

static void run(kilter_farm *farm) {
    tally t = {{0}};
    kilter_error error = {KILTER_OK, ""};
    if (kilter_farm_run(farm, &(kilter_run){.tasks = TASKS, .done = see, .user = &t}, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(t.seen[i], 1);
}

static kilter_farm *listen_as_master(plot *p) {
    kilter_farm *farm = NULL;
    kilter_error error;
    kilter_farm_options options = options_of(p);
    options.listen = p->endpoint;
    options.workers = WORKERS;
    if (kilter_farm_open(&options, NULL, NULL, &farm, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    return farm;
}

/* Return whether this worker is chosen: it is the first one that does task 17. */
static bool is_villain(plot *p, const kilter_task *task) {
    int nobody = 0;
    return task->index == 17 && atomic_compare_exchange_strong(&p->villain, &nobody, (int)getpid());
}

static int told_to_terminate(const kilter_task *task, kilter_result *result, void *state) {
    plot *p = state;
    atomic_fetch_add(&p->begun, 1);
    if (is_villain(p, task))
        kill(getpid(), SIGTERM);
    return answer(p, task, result);
}

static void a_worker_told_to_terminate_costs_no_task(void **state) {
    (void)state;
    const char *const policies[] = {"ss", "static", "auto"};
    for (int i = 0; i < 3; i++) {
        plot *p = new_plot();
        p->work = told_to_terminate;
        kilter_farm_options options = options_of(p);
        options.workers = WORKERS;
        options.policy = policies[i];
        kilter_farm *farm;
        assert_int_equal(kilter_farm_open(&options, NULL, NULL, &farm, NULL), KILTER_OK);
        run(farm);
        /* with `auto`, a task may begin more than once, because idle workers run copies of tasks */
        if (strcmp(policies[i], "auto") == 0)
            assert_true(p->begun >= TASKS);
        else
            assert_int_equal(p->begun,
                             TASKS); /* each task began only once, so no task was lost with the worker */
        run(farm);
        assert_int_equal(kilter_farm_close(farm, NULL), KILTER_OK);
        /* no worker was started a second time, because a worker that leaves is not replaced */
        assert_int_equal(p->started, WORKERS);
        end_plot(p);
    }
}

static int stopped_once(const kilter_task *task, kilter_result *result, void *state) {
    plot *p = state;
    atomic_fetch_add(&p->begun, 1);
    if (is_villain(p, task))
        raise(SIGSTOP);
    return answer(p, task, result);
}

/* Do a task, which does not end before all workers have a task. */
static int together(const kilter_task *task, kilter_result *result, void *state) {
    plot *p = state;
    if (task->run == 0)
        return stopped_once(task, result, state);
    atomic_fetch_or(&p->present, (int)getpid() == atomic_load(&p->villain) ? 1u : 2u);
    while (atomic_load(&p->present) != 3)
        kl_nap_s(1e-3);
    return answer(p, task, result);
}

static void a_worker_that_was_stopped_for_long_comes_back(void **state) {
    (void)state;
    plot *p = new_plot();
    p->work = together;
    pid_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        workers[i] = start_process(be_worker, p);
    kilter_farm *farm = listen_as_master(p);
    run(farm); /* in this run, the other worker must do the tasks of the stopped worker */
    kill(atomic_load(&p->villain), SIGCONT);
    run(farm); /* this run ends only if both workers take part in it */
    run(farm);
    assert_int_equal(kilter_farm_close(farm, NULL), KILTER_OK);
    for (int i = 0; i < WORKERS; i++)
        expect_end(workers[i], ENDED);
    assert_int_equal(p->started, WORKERS); /* no worker was started again, so the state of each was kept */
    end_plot(p);
}

static int kills_the_master(const kilter_task *task, kilter_result *result, void *state) {
    plot *p = state;
    atomic_fetch_add(&p->begun, 1);
    if (is_villain(p, task))
        kill(atomic_load(&p->master), SIGKILL);
    return answer(p, task, result);
}

static int be_master(void *arg) {
    plot *p = arg;
    atomic_store(&p->master, (int)getpid());
    kilter_farm *farm = listen_as_master(p);
    kilter_farm_run(farm, &(kilter_run){.tasks = TASKS}, NULL);
    return 0;
}

/* Start workers with a master that is killed in its first run. */
static void start_and_kill_master(plot *p, pid_t workers[WORKERS]) {
    int status;
    p->work = kills_the_master;
    for (int i = 0; i < WORKERS; i++)
        workers[i] = start_process(be_worker, p);
    pid_t master = start_process(be_master, p);
    assert_int_equal(waitpid(master, &status, 0), master);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void workers_wait_for_their_masters_return(void **state) {
    (void)state;
    plot *p = new_plot();
    pid_t workers[WORKERS];
    start_and_kill_master(p, workers);
    kilter_farm *farm = listen_as_master(p);
    run(farm);
    run(farm);
    assert_int_equal(kilter_farm_close(farm, NULL), KILTER_OK);
    for (int i = 0; i < WORKERS; i++)
        expect_end(workers[i], ENDED);
    assert_int_equal(p->started, WORKERS);
    end_plot(p);
}

static void workers_of_a_master_that_stays_away_end_and_say_so(void **state) {
    (void)state;
    plot *p = new_plot();
    p->wait_for_master_s = 0.5;
    pid_t workers[WORKERS];
    start_and_kill_master(p, workers);
    for (int i = 0; i < WORKERS; i++)
        expect_end(workers[i], ORPHANED);
    end_plot(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_given_back_and_heartbeats_come_while_a_task_runs),
        cmocka_unit_test(sigterm_is_not_lost_when_the_master_is),
        cmocka_unit_test(sigterm_lets_the_task_at_hand_end),
        cmocka_unit_test(sigterm_ends_an_idle_worker),
        cmocka_unit_test(a_worker_told_to_terminate_costs_no_task),
        cmocka_unit_test(a_worker_that_was_stopped_for_long_comes_back),
        cmocka_unit_test(workers_wait_for_their_masters_return),
        cmocka_unit_test(workers_of_a_master_that_stays_away_end_and_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
