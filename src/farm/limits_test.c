/* Test farms with tasks that hang, fail, or use much memory. Each run must end, each task must have one
 * outcome, and ended workers must be replaced. `limits_test --join ENDPOINT` starts a worker. */
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

enum { TASKS = 24, VICTIM = 7, PROCESSES = 256 };

/* How a task behaves. The input of a task names one of these habits. */
typedef enum habit { SHORT, HANGS, SPINS, FAILS, EATS, LEAKS, TAKES_20_MS } habit;

typedef struct order { /* the input of a task */
    habit habit;
    /* number of executions in which the task has this habit; later executions are short; 0: the task has the
     * habit in all executions */
    uint32_t times;
    char shared[96]; /* name of a file with counts that all workers share */
} order;

typedef struct counts {
    atomic_uint begun[TASKS];
    atomic_int pid_at[TASKS]; /* for each task, the process number of the worker that began it last */
    atomic_uint started, stopped;
    atomic_uint used; /* number of used elements of `pid` and `tasks_of` */
    atomic_int pid[PROCESSES];
    atomic_uint tasks_of[PROCESSES]; /* for each process in `pid`, the number of tasks that it has done */
} counts;

typedef struct scene {
    counts *counts;
    char file[96];
    order orders[TASKS];
    kilter_bytes inputs[TASKS];
    uint32_t outcomes[TASKS], failed;
    char why[KILTER_ERROR_TEXT_BYTES];
} scene;

/* --- tasks --- */

static counts *map_counts(const char *file) {
    FILE *f = fopen(file, "r+");
    assert_non_null(f);
    void *memory = mmap(NULL, sizeof(counts), PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
    assert_true(memory != MAP_FAILED);
    fclose(f);
    return memory;
}

typedef struct life { /* the state of a worker */
    counts *counts;
    uint32_t number;
} life;

static int start(const kilter_worker *worker, void **state) {
    (void)worker;
    *state = calloc(1, sizeof(life));
    return 0;
}

static void stop(void *state) {
    life *l = state;
    if (l->counts)
        atomic_fetch_add(&l->counts->stopped, 1);
    free(l);
}

static void note_begin(life *l, const char *file, uint64_t task) {
    if (!l->counts) {
        l->counts = map_counts(file);
        l->number = atomic_fetch_add(&l->counts->started, 1) % PROCESSES;
        atomic_store(&l->counts->pid[l->number], getpid());
    }
    atomic_store(&l->counts->pid_at[task], getpid());
    atomic_fetch_add(&l->counts->tasks_of[l->number], 1);
    atomic_fetch_add(&l->counts->begun[task], 1);
}

static void eat(size_t bytes) {
    char *memory = malloc(bytes);
    for (size_t i = 0; memory && i < bytes; i += 4096)
        ((volatile char *)memory)[i] = 1;
}

static int misbehave(habit h, kilter_result *result) {
    switch (h) {
    case HANGS:
        for (;;)
            pause();
    case SPINS:
        for (volatile unsigned i = 0;; i++)
            ;
    case FAILS:
        return kilter_result_fail(result, "this task must fail now");
    case EATS:
        eat(600000000);
        for (;;)
            pause();
    case LEAKS:
        eat(40000000);
        kl_nap_s(0.25); /* sleep until the memory has been measured */
        break;
    case TAKES_20_MS:
        kl_nap_s(0.02);
        break;
    case SHORT:
        break;
    }
    return 0;
}

static int work(const kilter_task *task, kilter_result *result, void *state) {
    const order *o = task->input.data;
    life *l = state;
    note_begin(l, o->shared, task->index);
    if (o->times > 0 && atomic_load(&l->counts->begun[task->index]) > o->times)
        return 0;
    return misbehave(o->habit, result);
}

/* --- runs --- */

static void open_scene(scene *s, habit all, habit victim, uint32_t times) {
    *s = (scene){.file = "/tmp/kilter-limits-XXXXXX"};
    int file = mkstemp(s->file);
    assert_true(file >= 0 && ftruncate(file, sizeof(counts)) == 0);
    close(file);
    s->counts = map_counts(s->file);
    for (int i = 0; i < TASKS; i++) {
        s->orders[i] = (order){.habit = i == VICTIM ? victim : all, .times = times};
        snprintf(s->orders[i].shared, sizeof s->orders[i].shared, "%s", s->file);
        s->inputs[i] = (kilter_bytes){&s->orders[i], sizeof s->orders[i]};
    }
}

static void close_scene(scene *s) {
    unlink(s->file);
    munmap(s->counts, sizeof *s->counts);
}

static void note_outcome(const kilter_outcome *o, void *user) {
    scene *s = user;
    s->outcomes[o->index]++;
    s->failed += o->status != KILTER_OK;
    if (o->status != KILTER_OK)
        snprintf(s->why, sizeof s->why, "%s", o->error);
}

static kilter_farm *open_farm(kilter_farm_options options) {
    kilter_farm *farm = NULL;
    kilter_error error = {KILTER_OK, ""};
    options.work = work;
    options.start = start;
    options.stop = stop;
    options.name = "limits_test";
    options.record = "none";
    options.workers = options.workers ? options.workers : 2;
    if (kilter_farm_open(&options, NULL, NULL, &farm, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    return farm;
}

static kilter_run run_of(scene *s) {
    return (kilter_run){.tasks = TASKS, .inputs = s->inputs, .done = note_outcome, .user = s};
}

/* Check that each task has one outcome and that `failed` of them are failures. */
static void check_run(kilter_farm *farm, scene *s, uint32_t failed) {
    kilter_error error = {KILTER_OK, ""};
    kilter_run run = run_of(s);
    memset(s->outcomes, 0, sizeof s->outcomes);
    s->failed = 0;
    kilter_status status = kilter_farm_run(farm, &run, &error);
    if (status != (failed > 0 ? KILTER_ERR_TASK : KILTER_OK))
        fail_msg("status %d: %s", (int)status, error.text);
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(s->outcomes[i], 1);
    assert_int_equal(s->failed, failed);
}

static void run_once(scene *s, kilter_farm_options options, uint32_t failed) {
    kilter_farm *farm = open_farm(options);
    check_run(farm, s, failed);
    kilter_farm_close(farm, NULL);
}

/* --- time --- */

static void a_task_that_hangs_fails_and_the_others_are_done(void **state) {
    (void)state;
    static const habit habits[] = {HANGS, SPINS};
    for (uint32_t i = 0; i < 6; i++) { /* try both habits with one, two and three workers */
        scene s;
        open_scene(&s, SHORT, habits[i % 2], 0);
        run_once(&s, (kilter_farm_options){.task_timeout = "2", .workers = 1 + i / 2}, 1);
        assert_string_equal(s.why, "the task exceeded its time limit of 2 s");
        /* the task may have begun more than once, because idle workers may run copies of the task */
        uint32_t begun = s.counts->begun[VICTIM];
        assert_true(begun >= 1 && begun <= (i < 2 ? 1 : 1 + KL_RESCUE_COPIES));
        close_scene(&s);
    }
}

static void a_task_that_hangs_once_is_done_elsewhere(void **state) {
    (void)state;
    for (uint32_t workers = 1; workers <= 2; workers++) {
        scene s;
        open_scene(&s, SHORT, HANGS, 1);
        run_once(&s, (kilter_farm_options){.task_timeout = "2", .retries = 1, .workers = workers}, 0);
        assert_true(s.counts->begun[VICTIM] >= 2);
        close_scene(&s);
    }
}

static void the_forecast_says_how_long_a_task_may_take(void **state) {
    (void)state;
    scene s;
    open_scene(&s, TAKES_20_MS, HANGS, 0);
    run_once(&s, (kilter_farm_options){.task_timeout = "100x"}, 1);
    assert_non_null(strstr(s.why, "the task exceeded its time limit of "));
    close_scene(&s);
}

static void a_run_has_a_limit_of_its_own(void **state) {
    (void)state;
    scene s;
    open_scene(&s, SHORT, HANGS, 1);
    kilter_farm *farm = open_farm((kilter_farm_options){.task_timeout = "1000"});
    kilter_run run = run_of(&s);
    run.task_timeout_s = 2;
    run.retries = 1;
    assert_int_equal(kilter_farm_run(farm, &run, NULL), KILTER_OK);
    kilter_farm_close(farm, NULL);
    close_scene(&s);
}

static void a_limit_that_cannot_be_kept_is_refused(void **state) {
    (void)state;
    scene s;
    open_scene(&s, SHORT, SHORT, 0);
    kilter_farm *farm = open_farm((kilter_farm_options){.transport = "inproc"});
    kilter_run run = run_of(&s);
    run.task_timeout_s = 5;
    assert_int_equal(kilter_farm_run(farm, &run, NULL), KILTER_ERR_USAGE);
    run.task_timeout_s = 0.1;
    assert_int_equal(kilter_farm_run(farm, &run, NULL), KILTER_ERR_RANGE);
    check_run(farm, &s, 0);
    kilter_farm_close(farm, NULL);
    close_scene(&s);
}

static void cancel_at_once(const kilter_outcome *o, void *user) {
    (void)o;
    kilter_farm_cancel(*(kilter_farm **)user);
}

/* The only worker hangs in a task of a run that was cancelled. The next run must end this worker. */
static void a_task_that_nobody_waits_for_does_not_hold_the_next_run(void **state) {
    (void)state;
    scene s;
    open_scene(&s, SHORT, HANGS, 1);
    kilter_farm *farm = open_farm((kilter_farm_options){.task_timeout = "2", .workers = 1, .policy = "ss"});
    kilter_run run = run_of(&s);
    run.done = cancel_at_once;
    run.user = &farm;
    run.inputs = &s.inputs[VICTIM - 1];
    run.tasks = 2;
    while (s.counts->begun[1] == 0) /* wait until the second task, which hangs, has begun */
        assert_int_equal(kilter_farm_run(farm, &run, NULL), KILTER_ERR_CANCELLED);
    s.counts->begun[VICTIM] = 1;
    check_run(farm, &s, 0);
    kilter_farm_close(farm, NULL);
    close_scene(&s);
}

/* --- failures --- */

static void tasks_that_fail_are_tried_again(void **state) {
    (void)state;
    static const char *const transports[] = {"zmq", "inproc"};
    for (uint32_t i = 0; i < 8; i++) {
        scene s;
        uint32_t retries = 1 + i / 2 % 2;
        open_scene(&s, i < 4 ? SHORT : FAILS, FAILS, 2);
        /* the test counts executions, so it needs a policy that makes no speculative copies */
        kilter_farm_options options = {.policy = "ss", .retries = retries, .transport = transports[i % 2]};
        run_once(&s, options, retries == 2 ? 0 : i < 4 ? 1 : TASKS);
        assert_string_equal(s.why, retries == 2 ? "" : "this task must fail now");
        for (int task = 0; task < TASKS; task++)
            assert_int_equal(s.counts->begun[task], i < 4 && task != VICTIM ? 1 : 1 + retries);
        close_scene(&s);
    }
}

/* --- limits on memory, and workers that are replaced --- */

static void a_task_that_eats_memory_fails(void **state) {
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* skip the test with a sanitizer, because the sanitizer's own memory would count */
#endif
    scene s;
    open_scene(&s, SHORT, EATS, 0);
    run_once(&s, (kilter_farm_options){.worker_memory = "400M"}, 1);
    assert_non_null(strstr(s.why, "MB of memory; the limit is 400"));
    close_scene(&s);
}

static void a_worker_that_leaks_is_renewed_and_no_task_fails(void **state) {
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip();
#endif
    scene s;
    open_scene(&s, LEAKS, LEAKS, 0);
    run_once(&s, (kilter_farm_options){.worker_memory = "400M"}, 0);
    assert_true(s.counts->started > 2);
    close_scene(&s);
}

static void a_worker_does_so_many_tasks_and_then_another_one_comes(void **state) {
    (void)state;
    enum { MOST = 3 };
    scene s;
    open_scene(&s, SHORT, SHORT, 0);
    kilter_farm *farm = open_farm((kilter_farm_options){.worker_tasks = MOST});
    for (int run = 0; run < 3; run++)
        check_run(farm, &s, 0);
    kilter_farm_close(farm, NULL);
    assert_true(s.counts->started >= 3 * TASKS / MOST);
    assert_int_equal(s.counts->started, s.counts->stopped);
    for (uint32_t i = 0; i < s.counts->started; i++)
        assert_true(s.counts->tasks_of[i] <= MOST);
    close_scene(&s);
}

/* Replace each worker after every task. No replaced worker may count as lost, and no task may have more
 * attempts because its worker was replaced. */
static void renewals_cost_no_attempts(void **state) {
    (void)state;
    scene s;
    open_scene(&s, SHORT, SHORT, 0);
    kilter_farm *farm =
        open_farm((kilter_farm_options){.worker_tasks = 1, .workers = 8, .attempts = 1, .policy = "ss"});
    for (int run = 0; run < 8; run++)
        check_run(farm, &s, 0);
    kilter_farm_close(farm, NULL);
    close_scene(&s);
}

/* Memory that the master had when it forked a worker must not count as memory of the worker. */
static void what_a_worker_was_born_with_does_not_count(void **state) {
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip();
#endif
    enum { BYTES = 500000000 };
    scene s;
    char *memory = malloc(BYTES);
    memset(memory, 1, BYTES);
    open_scene(&s, SHORT, LEAKS, 0);
    run_once(&s, (kilter_farm_options){.worker_memory = "400M"}, 0);
    free(memory);
    close_scene(&s);
}

/* --- workers that the test starts itself --- */

static int be_a_worker(int argc, char **argv) {
    kilter_farm *farm;
    kilter_error error;
    kilter_farm_options options = {.work = work, .start = start, .stop = stop, .name = "limits_test"};
    kilter_status status = kilter_farm_open(&options, &argc, argv, &farm, &error);
    return status == KILTER_ENDED ? 0 : kilter_exit("limits_test", &error);
}

static pid_t start_worker(const char *endpoint) {
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "limits_test", "--join", endpoint, (char *)NULL);
        _exit(1);
    }
    return pid;
}

/* The address at which a master listens. It is a file in a folder that holds nothing else. */
typedef struct place {
    char *folder, endpoint[128];
} place;

static void open_place(place *p) {
    assert_int_equal(kl_private_dir(&p->folder, NULL), KILTER_OK);
    snprintf(p->endpoint, sizeof p->endpoint, "ipc://%s/m", p->folder);
}

static void close_place(place *p) {
    rmdir(p->folder);
    free(p->folder);
}

static void expect_good_end(pid_t pid) {
    int how;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

static void who_was_started_elsewhere_begins_anew(void **state) {
    (void)state;
    place p;
    scene s;
    open_place(&p);
    open_scene(&s, SHORT, HANGS, 1);
    pid_t pid = start_worker(p.endpoint);
    run_once(&s,
             (kilter_farm_options){
                 .listen = p.endpoint, .workers = 1, .task_timeout = "2", .retries = 1, .worker_tasks = 5},
             0);
    expect_good_end(pid);
    assert_true(s.counts->started >= TASKS / 5);
    for (uint32_t i = 0; i < s.counts->started; i++)
        assert_int_equal(s.counts->pid[i], pid);
    close_scene(&s);
    close_place(&p);
}

typedef struct canceller {
    kilter_farm *farm;
    scene *scene;
} canceller;

static void cancel_when_it_hangs(const kilter_outcome *o, void *user) {
    canceller *c = user;
    (void)o;
    while (atomic_load(&c->scene->counts->begun[1]) == 0)
        kl_nap_s(1e-3);
    kilter_farm_cancel(c->farm);
}

/* Close the farm while a task without a time limit hangs. The task's worker must end. */
static void who_hangs_ends_with_its_farm(void **state) {
    (void)state;
    place p;
    scene s;
    open_place(&p);
    open_scene(&s, HANGS, HANGS, 0);
    s.orders[0].habit = SHORT;
    pid_t pid = start_worker(p.endpoint);
    kilter_farm *farm = open_farm((kilter_farm_options){.listen = p.endpoint, .workers = 1, .policy = "ss"});
    kilter_run run = run_of(&s);
    run.done = cancel_when_it_hangs;
    canceller c = {farm, &s};
    run.user = &c;
    assert_int_equal(kilter_farm_run(farm, &run, NULL), KILTER_ERR_CANCELLED);
    kilter_farm_close(farm, NULL);
    expect_good_end(pid);
    close_scene(&s);
    close_place(&p);
}

typedef struct signal_hung {
    scene *scene;
    pid_t pids[2];
} signal_hung;

static void *tell_who_hangs_to_go(void *arg) {
    signal_hung *h = arg;
    while (atomic_load(&h->scene->counts->begun[VICTIM]) == 0)
        kl_nap_s(1e-3);
    /* send the signal only to the worker with the hanging task, because an idle worker would leave at once */
    for (int i = 0; i < 2; i++)
        if (atomic_load(&h->scene->counts->pid_at[VICTIM]) == h->pids[i])
            kill(h->pids[i], SIGTERM);
    return NULL;
}

/* Tell a worker in a hanging task to leave. The task's time limit must still end the worker first. */
static void who_was_told_to_go_is_still_ended_in_its_task(void **state) {
    (void)state;
    place p;
    scene s;
    open_place(&p);
    open_scene(&s, SHORT, HANGS, 1);
    pid_t pids[2] = {start_worker(p.endpoint), start_worker(p.endpoint)};
    kilter_farm *farm = open_farm(
        (kilter_farm_options){.listen = p.endpoint, .task_timeout = "2", .retries = 1, .policy = "ss"});
    signal_hung hung = {&s, {pids[0], pids[1]}};
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, tell_who_hangs_to_go, &hung), 0);
    check_run(farm, &s, 0);
    pthread_join(other, NULL);
    kilter_farm_close(farm, NULL);
    for (int i = 0; i < 2; i++)
        expect_good_end(pids[i]);
    close_scene(&s);
    close_place(&p);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_that_hangs_fails_and_the_others_are_done),
        cmocka_unit_test(a_task_that_hangs_once_is_done_elsewhere),
        cmocka_unit_test(the_forecast_says_how_long_a_task_may_take),
        cmocka_unit_test(a_run_has_a_limit_of_its_own),
        cmocka_unit_test(a_limit_that_cannot_be_kept_is_refused),
        cmocka_unit_test(a_task_that_nobody_waits_for_does_not_hold_the_next_run),
        cmocka_unit_test(tasks_that_fail_are_tried_again),
        cmocka_unit_test(a_task_that_eats_memory_fails),
        cmocka_unit_test(a_worker_that_leaks_is_renewed_and_no_task_fails),
        cmocka_unit_test(a_worker_does_so_many_tasks_and_then_another_one_comes),
        cmocka_unit_test(renewals_cost_no_attempts),
        cmocka_unit_test(what_a_worker_was_born_with_does_not_count),
        cmocka_unit_test(who_was_started_elsewhere_begins_anew),
        cmocka_unit_test(who_hangs_ends_with_its_farm),
        cmocka_unit_test(who_was_told_to_go_is_still_ended_in_its_task),
    };
    if (argc > 2)
        return be_a_worker(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
