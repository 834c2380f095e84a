/* Farms whose workers organise a run among themselves, with real processes, threads and kills. As
 * `farm_peers_test SCHEDULES [FIRST]`, it runs this number of random schedules of kills. */
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

#include "base/cases_test_helper.h"
#include "farm/farm_private.h"

enum { TASKS = 1500, WORKERS_MOST = 32, KILLS_MOST = 4 };

/* A schedule of kills, in memory that all processes share. at[i]: number of tasks that were begun before the
 * i-th kill. The worker that begins the next task kills. */
typedef struct schedule {
    atomic_uint_fast64_t begun;
    atomic_uint started;     /* number of workers that have started */
    atomic_int pid[1024];    /* processes of the workers, in this order */
    uint64_t at[KILLS_MOST]; /* UINT64_MAX: no kill */
    uint64_t victim[KILLS_MOST];
    uint32_t killed;
    double spin_s; /* seconds of a task */
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
        return kilter_result_fail(result, "it got the input of another task");
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
    assert_int_equal(summary.chunks, 0); /* the master dealt nothing */
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

/* Run one schedule, which follows from the seed. Even seeds check each result, odd ones an exact sum. */
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

static void what_needs_a_master_is_an_error(void **state) {
    (void)state;
    new_plan();
    kilter_farm *farm = open_farm(1, "inproc", work);
    static const struct {
        kilter_run run;
        const char *names;
    } rows[] = {{{.tasks = 5, .grows = true}, "grows"},
                {{.tasks = 5, .series = 3}, "series"},
                {{.tasks = 5, .retries = 2}, "tried again"},
                {{.tasks = 5, .reduce = true}, "results"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kilter_error error = {KILTER_OK, ""};
        assert_int_equal(kilter_farm_run(farm, &rows[i].run, &error), KILTER_ERR_USAGE);
        assert_non_null(strstr(error.text, rows[i].names));
    }
    check_run(farm, &(kilter_run){.tasks = 5, .done = take}); /* the farm can still be used */
    kilter_farm_close(farm, NULL);
}

/* The same program, organised by a master, gives the same combination. */
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

/* --- the master's death --- */

static uint64_t dies_at; /* number of results after which the master is killed; 0: never */

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

static int series(uint64_t schedules, uint64_t first) {
    double began_s = kl_monotonic_s(), expected = expected_sum();
    for (uint64_t seed = first; seed < first + schedules; seed++) {
        printf("seed %llu\n", (unsigned long long)seed);
        fflush(stdout);
        run_schedule(seed, expected);
    }
    printf("%llu schedules: every task counted once; %.1f s\n", (unsigned long long)schedules,
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
        cmocka_unit_test(each_task_counts_once),           cmocka_unit_test(killed_workers_lose_nothing),
        cmocka_unit_test(what_needs_a_master_is_an_error), cmocka_unit_test(a_master_combines_as_well),
        cmocka_unit_test(the_next_master_continues),
    };
    const struct CMUnitTest long_series[] = {cmocka_unit_test(given_series)};
    given_schedules = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    given_first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    return given_schedules > 0 ? cmocka_run_group_tests(long_series, NULL, NULL)
                               : cmocka_run_group_tests(tests, NULL, NULL);
}
