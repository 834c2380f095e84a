/* Test farms whose workers organise a run among themselves, with real processes, threads and kills. The
 * command `farm_peers_test SCHEDULES [FIRST]` is not a test. It runs SCHEDULES random schedules of kills,
 * with the seeds FIRST, FIRST + 1, … (default of FIRST: 1). */
#include <arpa/inet.h>
#include <netinet/in.h>
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
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cases_test_helper.h"
#include "farm/farm_private.h"

enum { TASKS = 1500, WORKERS_MOST = 32, KILLS_MOST = 4 };

/* A schedule of kills, in memory that all processes share. at[i]: number of tasks that begin before the i-th
 * kill. The worker that begins the next task kills a worker. */
typedef struct schedule {
    atomic_uint_fast64_t begun;
    atomic_uint started;     /* number of workers that have started */
    atomic_int pid[1024];    /* process numbers of the workers, in the order in which they started */
    uint64_t at[KILLS_MOST]; /* number of tasks that begin before each kill; UINT64_MAX: no kill */
    uint64_t victim[KILLS_MOST];
    uint32_t killed;
    atomic_int is_cut; /* 1: a worker was chosen to be stopped; cut_s is the time of the choice */
    atomic_int cut;    /* process number of the worker that was stopped; 0: none is stopped yet */
    atomic_int mended; /* 1: the stopped worker was continued */
    double cut_s;
    double spin_s; /* unit of the tasks' times in seconds: a task takes 0, 1 or 2 units */
} schedule;

static schedule *plan;

static uint64_t value_of(uint64_t task) {
    return kl_mix64(task);
}

static int start(const kilter_worker *worker, void **state) {
    (void)worker;
    *state = plan;
    unsigned place = atomic_fetch_add(&plan->started, 1);
    if (place < 1024)
        atomic_store(&plan->pid[place], (int)getpid());
    return 0;
}

static void kill_one(uint64_t begun) {
    for (int i = 0; i < KILLS_MOST; i++) {
        unsigned started = atomic_load(&plan->started);
        if (plan->at[i] != begun || started == 0)
            continue;
        int pid = atomic_load(&plan->pid[plan->victim[i] % (started < 1024 ? started : 1024)]);
        if (pid > 0)
            kill(pid, SIGKILL);
    }
}

static int work(const kilter_task *task, kilter_result *result, void *state) {
    (void)state;
    double until_s = kl_monotonic_s() + plan->spin_s * (double)(task->index % 3);
    kill_one(atomic_fetch_add(&plan->begun, 1));
    while (kl_monotonic_s() < until_s)
        ;
    uint64_t value = value_of(task->index);
    if (task->input.size > 0 && *(const uint64_t *)task->input.data != task->index)
        return kilter_result_fail(result, "the task got the input of another task");
    return kilter_result_put(result, &value, sizeof value);
}

static int sum_work(const kilter_task *task, kilter_result *result, void *state) {
    (void)state;
    kilter_sum sum = {0};
    kill_one(atomic_fetch_add(&plan->begun, 1));
    double until_s = kl_monotonic_s() + plan->spin_s * (double)(task->index % 3);
    while (kl_monotonic_s() < until_s)
        ;
    kilter_sum_add(&sum, 1.0 / (double)(1 + task->index));
    return kilter_result_put(result, &sum, sizeof sum);
}

static void join(void *into, const void *value, size_t bytes, void *user) {
    (void)bytes;
    (void)user;
    kilter_sum_join(into, value);
}

static uint8_t seen[TASKS];
static uint64_t wrong;

static void take(const kilter_outcome *o, void *user) {
    (void)user;
    uint64_t value = value_of(o->index);
    seen[o->index]++;
    wrong +=
        o->status != KILTER_OK || o->result.size != sizeof value || memcmp(o->result.data, &value, 8) != 0;
}

static void new_plan(void) {
    plan = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(plan != MAP_FAILED);
    for (int i = 0; i < KILLS_MOST; i++)
        plan->at[i] = UINT64_MAX;
    plan->spin_s = 2e-4;
    memset(seen, 0, sizeof seen);
    wrong = 0;
}

static kilter_farm *open_farm(uint32_t workers, const char *transport, kilter_work_fn fn) {
    kilter_farm *farm = NULL;
    kilter_error error = {KILTER_OK, ""};
    kilter_farm_options options = {.work = fn,
                                   .start = start,
                                   .combine = join,
                                   .workers = workers,
                                   .team = "all",
                                   .transport = transport,
                                   .organise = "peers",
                                   .attempts = 1000,
                                   .record = "none"};
    if (kilter_farm_open(&options, NULL, NULL, &farm, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    return farm;
}

static void check_run(kilter_farm *farm, const kilter_run *run) {
    kilter_error error = {KILTER_OK, ""};
    if (kilter_farm_run(farm, run, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    kilter_farm_summary summary;
    kilter_farm_summary_get(farm, &summary);
    /* the workers organised the run themselves, so the master dealt no chunk */
    assert_int_equal(summary.chunks, 0);
    assert_true(strstr(summary.decision, "organised") != NULL);
}

static void each_task_counts_once(void **state) {
    static const char *const transports[] = {"zmq", "inproc"};
    uint64_t numbers[TASKS];
    kilter_bytes inputs[TASKS];
    (void)state;
    for (uint64_t i = 0; i < TASKS; i++) {
        numbers[i] = i;
        inputs[i] = (kilter_bytes){&numbers[i], sizeof numbers[i]};
    }
    for (int i = 0; i < 4; i++) {
        new_plan();
        kilter_farm *farm = open_farm(1 + 2 * (uint32_t)i, transports[i % 2], work);
        check_run(farm, &(kilter_run){.tasks = TASKS, .done = take, .inputs = i > 1 ? inputs : NULL});
        check_run(farm, &(kilter_run){.tasks = TASKS, .done = take, .order = KILTER_BY_INDEX});
        kilter_farm_close(farm, NULL);
        for (int k = 0; k < TASKS; k++)
            assert_int_equal(seen[k], 2);
        assert_int_equal(wrong, 0);
    }
}

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Run one schedule of kills, which follows from the seed. With an even seed, each result is checked. With an
 * odd seed, the exact sum of the results is checked. */
static void run_schedule(uint64_t seed, double expected) {
    uint64_t draws = kl_mix64(seed);
    new_plan();
    plan->killed = 1 + (uint32_t)(draws % KILLS_MOST);
    for (uint32_t i = 0; i < plan->killed; i++) {
        plan->at[i] =
            i > 0 && kl_mix64(draws + i) % 3 == 0 ? plan->at[i - 1] + 1 : kl_mix64(draws + 9 + i) % TASKS;
        plan->victim[i] = kl_mix64(draws + 99 + i);
    }
    kilter_farm *farm = open_farm(8 + (uint32_t)(kl_mix64(draws + 7) % 25), NULL, seed % 2 ? sum_work : work);
    kilter_sum sum = {0};
    kilter_run sums = {.tasks = TASKS, .reduce = true, .results = &sum, .result_bytes = sizeof sum};
    kilter_run each = {.tasks = TASKS, .done = take};
    check_run(farm, seed % 2 ? &sums : &each);
    kilter_farm_close(farm, NULL);
    double got = kilter_sum_value(&sum);
    for (int k = 0; k < TASKS && seed % 2 == 0; k++)
        if (seen[k] != 1)
            fail_msg("seed %llu: task %d counted %u times", (unsigned long long)seed, k, seen[k]);
    assert_int_equal(wrong, 0);
    if (seed % 2)
        assert_true(bits_of(got) == bits_of(expected));
    munmap(plan, sizeof *plan);
}

static double expected_sum(void) {
    kilter_sum sum = {0};
    for (uint64_t i = 0; i < TASKS; i++)
        kilter_sum_add(&sum, 1.0 / (double)(1 + i));
    return kilter_sum_value(&sum);
}

static void killed_workers_lose_nothing(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= kl_test_cases(3, 12); seed++)
        run_schedule(seed, expected_sum());
}

/* --- Ctrl-C --- */

static void ignore(const kilter_outcome *o, void *user) {
    (void)o;
    (void)user;
}

/* Run a farm in a process that a signal ends. Return 0 if the run ended with the status for cancelled runs.
 */
static int cancelled_program(const char *transport) {
    kilter_error error = {KILTER_OK, ""};
    setpgid(0, 0);
    kilter_farm *farm = open_farm(3, transport, work);
    kilter_status status = kilter_farm_run(farm, &(kilter_run){.tasks = 1000000, .done = ignore}, &error);
    kilter_status closed = kilter_farm_close(farm, NULL);
    return status != KILTER_ERR_CANCELLED || closed != KILTER_OK;
}

/* Send SIGINT to the master and the workers, as a terminal does. */
static void ctrl_c_cancels_a_run_of_peers(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        int how = 0;
        new_plan();
        pid_t child = fork();
        if (child == 0)
            _exit(cancelled_program(i == 0 ? "zmq" : "inproc"));
        while (atomic_load(&plan->begun) < 100)
            kl_nap_s(1e-3);
        kill(-child, SIGINT);
        assert_true(waitpid(child, &how, 0) == child && WIFEXITED(how) && WEXITSTATUS(how) == 0);
        munmap(plan, sizeof *plan);
    }
}

/* --- a peer that reports a wrong rate --- */

enum { HONEST = 2, JOINED_TASKS = 400 };
static const double LOST_S = 0.5;

static char folder[] = "/tmp/kilter-peers-XXXXXX", key_file[64], endpoint[64];

/* Return the time of a clock that runs a thousand times too slowly. A worker with this clock seems to be a
 * thousand times faster than it is. */
static double slow_clock_s(void *self) {
    (void)self;
    return 1e-3 * kl_monotonic_s();
}

/* Act as a worker whose clock is a thousand times too slow. This worker reports a rate that is a thousand
 * times too high. */
static void lie(const kl_key *key) {
    kl_transport *transport;
    kl_worker *worker;
    kl_zmq_options link = {.key = key};
    kl_worker_options options = {.work = work,
                                 .start = start,
                                 .program = "peers",
                                 .binding = "",
                                 .introduce = kl_worker_introduce,
                                 .clock = {.now_s = slow_clock_s},
                                 .patience_s = -1};
    bool good = kl_zmq_join(endpoint, &link, &transport, NULL) == KILTER_OK &&
                kl_worker_new(&options, NULL, transport, &worker, NULL) == KILTER_OK;
    while (good && kl_worker_turn(worker, 1e-3, NULL) == KILTER_OK)
        ;
    _exit(0);
}

static void join_honestly(kilter_work_fn fn) {
    kilter_farm *farm;
    kilter_farm_options options = {
        .work = fn, .start = start, .join = endpoint, .key = key_file, .name = "peers", .record = "none"};
    options.lost_after_s = LOST_S;
    kilter_farm_open(&options, NULL, NULL, &farm, NULL);
    _exit(0);
}

/* Make a key, and choose a port that is free now. */
static void choose_endpoint(kl_key *key) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(bind(fd, (struct sockaddr *)&at, size) == 0 &&
                getsockname(fd, (struct sockaddr *)&at, &size) == 0);
    close(fd);
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%d", ntohs(at.sin_port));
    snprintf(folder, sizeof folder, "/tmp/kilter-peers-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(key_file, sizeof key_file, "%s/key", folder);
    assert_int_equal(kl_key_read_or_make(key_file, key, NULL), KILTER_OK);
}

static kilter_farm *open_listening(kilter_work_fn fn) {
    kilter_farm *farm = NULL;
    kilter_error error = {KILTER_OK, ""};
    kilter_farm_options options = {.work = fn,
                                   .start = start,
                                   .workers = 1 + HONEST,
                                   .listen = endpoint,
                                   .key = key_file,
                                   .organise = "peers",
                                   .name = "peers",
                                   .lost_after_s = LOST_S,
                                   .record = "none"};
    if (kilter_farm_open(&options, NULL, NULL, &farm, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    return farm;
}

static void two_runs_count_each_task_once(kilter_farm *farm, kilter_done_fn done) {
    for (int run = 1; run <= 2; run++) {
        check_run(farm, &(kilter_run){.tasks = JOINED_TASKS, .done = done});
        for (int i = 0; i < JOINED_TASKS; i++)
            assert_int_equal(seen[i], run);
    }
    assert_int_equal(wrong, 0);
    kilter_farm_close(farm, NULL);
}

static void await_children(const pid_t *children) {
    for (int i = 0, how; i < 1 + HONEST; i++)
        assert_true(waitpid(children[i], &how, 0) == children[i]);
    unlink(key_file);
    assert_int_equal(rmdir(folder), 0);
    munmap(plan, sizeof *plan);
}

static void a_peer_that_lies_about_its_rate_changes_no_result(void **state) {
    kl_key key;
    pid_t children[1 + HONEST];
    (void)state;
    new_plan();
    choose_endpoint(&key);
    for (int i = 0; i < 1 + HONEST; i++)
        if ((children[i] = fork()) == 0)
            (i == 0 ? lie(&key) : join_honestly(work));
    two_runs_count_each_task_once(open_listening(work), take);
    await_children(children);
}

/* --- a peer that is cut off from the others --- */

enum { CUT_AT = 50 };

/* Do a task. The first worker that begins a task after CUT_AT tasks have begun stops itself. From then on, it
 * neither sends nor receives anything. */
static int work_until_cut(const kilter_task *task, kilter_result *result, void *state) {
    if (atomic_load(&plan->begun) >= CUT_AT && atomic_exchange(&plan->is_cut, 1) == 0) {
        plan->cut_s = kl_monotonic_s();
        atomic_store(&plan->cut, (int)getpid());
        raise(SIGSTOP);
    }
    return work(task, result, state);
}

/* Take a result. If a worker stopped itself more than 0.5·LOST_S seconds ago, let this worker continue. */
static void take_and_mend(const kilter_outcome *o, void *user) {
    int pid = atomic_load(&plan->cut);
    take(o, user);
    if (pid > 0 && kl_monotonic_s() > plan->cut_s + 0.5 * LOST_S && atomic_exchange(&plan->mended, 1) == 0)
        kill(pid, SIGCONT);
}

static void a_peer_that_was_cut_off_changes_no_result(void **state) {
    kl_key key;
    pid_t children[1 + HONEST];
    (void)state;
    new_plan();
    choose_endpoint(&key);
    for (int i = 0; i < 1 + HONEST; i++)
        if ((children[i] = fork()) == 0)
            join_honestly(work_until_cut);
    two_runs_count_each_task_once(open_listening(work_until_cut), take_and_mend);
    assert_true(atomic_load(&plan->cut) > 0 && atomic_load(&plan->mended) == 1);
    await_children(children);
}

static void what_needs_a_master_is_an_error(void **state) {
    (void)state;
    new_plan();
    kilter_farm *farm = open_farm(1, "inproc", work);
    static const struct {
        kilter_run run;
        const char *names;
    } rows[] = {{{.tasks = 5, .grows = true}, "grows"},
                {{.tasks = 5, .series = 3}, "series"},
                {{.tasks = 5, .retries = 2}, "retrying"},
                {{.tasks = 5, .reduce = true}, "results"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kilter_error error = {KILTER_OK, ""};
        assert_int_equal(kilter_farm_run(farm, &rows[i].run, &error), KILTER_ERR_USAGE);
        assert_non_null(strstr(error.text, rows[i].names));
    }
    check_run(farm, &(kilter_run){.tasks = 5, .done = take}); /* the farm must still be usable */
    kilter_farm_close(farm, NULL);
}

/* Check that a run organised by the master combines results to the same sum. */
static void a_master_combines_as_well(void **state) {
    (void)state;
    new_plan();
    double expected = expected_sum();
    kilter_farm *farm = NULL;
    kilter_error error;
    kilter_farm_options options = {.work = sum_work,
                                   .start = start,
                                   .combine = join,
                                   .workers = 2,
                                   .organise = "master",
                                   .record = "none"};
    kilter_sum sum = {0};
    assert_int_equal(kilter_farm_open(&options, NULL, NULL, &farm, &error), KILTER_OK);
    assert_int_equal(
        kilter_farm_run(
            farm, &(kilter_run){.tasks = TASKS, .reduce = true, .results = &sum, .result_bytes = sizeof sum},
            &error),
        KILTER_OK);
    kilter_farm_close(farm, NULL);
    double got = kilter_sum_value(&sum);
    assert_memory_equal(&got, &expected, sizeof got);
}

/* --- the death of the master --- */

static uint64_t dies_at; /* the master is killed after it has taken this number of results; 0: never */

static void take_and_die(const kilter_outcome *o, void *user) {
    uint64_t *got = user;
    take(o, NULL);
    if (++*got == dies_at)
        raise(SIGKILL);
}

static kilter_status run_stored(const char *file, uint64_t *got, kilter_farm_summary *summary) {
    kilter_farm *farm;
    kilter_error error = {KILTER_OK, ""};
    kilter_farm_options options = {
        .work = work, .start = start, .workers = 3, .organise = "peers", .resume = file, .name = "peers"};
    kilter_status status = kilter_farm_open(&options, NULL, NULL, &farm, &error);
    if (status == KILTER_OK)
        status =
            kilter_farm_run(farm, &(kilter_run){.tasks = TASKS, .done = take_and_die, .user = got}, &error);
    if (status != KILTER_OK)
        fail_msg("%s", error.text);
    kilter_farm_summary_get(farm, summary);
    return kilter_farm_close(farm, NULL);
}

static void the_next_master_continues(void **state) {
    (void)state;
    char folder[] = "/tmp/kilter-peers-XXXXXX", file[64];
    kilter_farm_summary summary;
    uint64_t got = 0;
    int how = 0;
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/run.kilter", folder);
    new_plan();
    dies_at = 200;
    pid_t child = fork();
    if (child == 0) {
        run_stored(file, &got, &summary);
        _exit(0);
    }
    assert_true(waitpid(child, &how, 0) == child && WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    dies_at = 0;
    assert_int_equal(run_stored(file, &got, &summary), KILTER_OK);
    assert_int_equal(got, TASKS);
    assert_true(summary.stored >= 200);
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(seen[i], 1);
    assert_int_equal(wrong, 0);
    unlink(file);
    assert_int_equal(rmdir(folder), 0);
}

/* A value in two parts. The first part is the same for every order of combining; the second part depends on
 * the order. */
typedef struct total {
    kilter_sum exact;
    double rough;
} total;

/* sum: combination of all values so far; after[i]: the member `rough` of `sum` after value number i was
 * combined with it */
typedef struct totals {
    total sum;
    uint32_t combined, dies_at; /* dies_at: number of values after which the master is killed; 0: never */
    double after[TASKS];
} totals;

static totals *masters;

static int total_work(const kilter_task *task, kilter_result *result, void *state) {
    total one = {.rough = 1.0 / (double)(1 + task->index)};
    (void)state;
    atomic_fetch_add(&plan->begun, 1);
    for (double until_s = kl_monotonic_s() + plan->spin_s; kl_monotonic_s() < until_s;)
        ;
    kilter_sum_add(&one.exact, one.rough);
    return kilter_result_put(result, &one, sizeof one);
}

static void join_totals(void *into, const void *value, size_t bytes, void *user) {
    total *sum = into;
    const total *more = value;
    (void)bytes;
    (void)user;
    kilter_sum_join(&sum->exact, &more->exact);
    sum->rough += more->rough;
    if (sum != &masters->sum)
        return;
    masters->after[masters->combined++] = sum->rough;
    if (masters->combined == masters->dies_at)
        raise(SIGKILL);
}

static kilter_status run_total(const char *file, bool reduces, kilter_error *error) {
    kilter_farm *farm;
    kilter_farm_options options = {.work = total_work,
                                   .start = start,
                                   .combine = join_totals,
                                   .workers = 3,
                                   .organise = "peers",
                                   .resume = file,
                                   .name = "total"};
    kilter_run run = {.tasks = TASKS, .done = ignore};
    if (reduces)
        run = (kilter_run){
            .tasks = TASKS, .reduce = true, .results = &masters->sum, .result_bytes = sizeof(total)};
    masters->sum = (total){0};
    masters->combined = 0;
    kilter_status status = kilter_farm_open(&options, NULL, NULL, &farm, error);
    if (status != KILTER_OK)
        return status;
    status = kilter_farm_run(farm, &run, error);
    kilter_farm_close(farm, NULL);
    return status;
}

/* Run a master that is killed after it has combined some stored values. */
static void killed_total(const char *file, uint32_t dies_at) {
    int how = 0;
    masters->dies_at = dies_at;
    pid_t child = fork();
    if (child == 0) {
        run_total(file, true, &(kilter_error){KILTER_OK, ""});
        _exit(0);
    }
    assert_true(waitpid(child, &how, 0) == child && WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    masters->dies_at = 0;
}

static void a_stored_sum_is_continued_with_the_same_bits(void **state) {
    char folder[] = "/tmp/kilter-peers-XXXXXX", file[64];
    kilter_error error = {KILTER_OK, ""};
    double before[2], expected = expected_sum();
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/run.kilter", folder);
    new_plan();
    masters = mmap(NULL, sizeof *masters, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(masters != MAP_FAILED);
    killed_total(file, 1);
    killed_total(file, 2);
    memcpy(before, masters->after, sizeof before);
    assert_int_equal(run_total(file, false, &error), KILTER_ERR_USAGE);
    assert_non_null(strstr(error.text, "combined its results in an earlier start"));
    atomic_store(&plan->begun, 0);
    if (run_total(file, true, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    assert_memory_equal(before, masters->after, sizeof before);
    assert_true(bits_of(kilter_sum_value(&masters->sum.exact)) == bits_of(expected));
    assert_true(atomic_load(&plan->begun) <
                TASKS); /* tasks whose results were stored must not be done again */
    munmap(masters, sizeof *masters);
    unlink(file);
    assert_int_equal(rmdir(folder), 0);
}

static int series(uint64_t schedules, uint64_t first) {
    double began_s = kl_monotonic_s(), expected = expected_sum();
    for (uint64_t seed = first; seed < first + schedules; seed++) {
        printf("seed %llu\n", (unsigned long long)seed);
        fflush(stdout);
        run_schedule(seed, expected);
    }
    printf("%llu schedules of kills: every task counted once; %.1f s\n", (unsigned long long)schedules,
           kl_monotonic_s() - began_s);
    return 0;
}

static uint64_t given_schedules, given_first;

static void given_series(void **state) {
    (void)state;
    series(given_schedules, given_first);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_task_counts_once),
        cmocka_unit_test(killed_workers_lose_nothing),
        cmocka_unit_test(what_needs_a_master_is_an_error),
        cmocka_unit_test(a_master_combines_as_well),
        cmocka_unit_test(the_next_master_continues),
        cmocka_unit_test(a_stored_sum_is_continued_with_the_same_bits),
        cmocka_unit_test(a_peer_that_lies_about_its_rate_changes_no_result),
        cmocka_unit_test(a_peer_that_was_cut_off_changes_no_result),
        cmocka_unit_test(ctrl_c_cancels_a_run_of_peers),
    };
    const struct CMUnitTest long_series[] = {cmocka_unit_test(given_series)};
    given_schedules = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    given_first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    return given_schedules > 0 ? cmocka_run_group_tests(long_series, NULL, NULL)
                               : cmocka_run_group_tests(tests, NULL, NULL);
}
