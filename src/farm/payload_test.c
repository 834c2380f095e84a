/* Test large inputs, results and shared data, and results that are copied to the program's array. */
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
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "farm/farm_private.h"
#include "trace/record_test_helper.h"

enum { KILLS_MOST = 64, PIECES = 4 };

typedef struct board { /* memory shared by all processes */
    atomic_uint killed[KILLS_MOST];
    /* number of tasks, from task 0 on, that each kill the worker which begins them for the first time */
    uint32_t kills;
} board;

static board *new_board(uint32_t kills) {
    board *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(b != MAP_FAILED);
    b->kills = kills;
    return b;
}

static int start(const kilter_worker *worker, void **state) {
    *state = worker->user;
    return 0;
}

/* --- contents --- */

static size_t word_at(uint64_t seed, size_t at, size_t size, uint64_t *word) {
    *word = kl_mix64(seed ^ at / sizeof *word);
    return size - at < sizeof *word ? size - at : sizeof *word;
}

static void fill(uint8_t *bytes, uint64_t seed, size_t size) {
    uint64_t word;
    for (size_t at = 0, part; at < size; at += part) {
        part = word_at(seed, at, size, &word);
        memcpy(bytes + at, &word, part);
    }
}

static bool holds(const void *data, uint64_t seed, size_t size) {
    const uint8_t *bytes = data;
    uint64_t word;
    for (size_t at = 0, part; at < size; at += part) {
        part = word_at(seed, at, size, &word);
        if (memcmp(bytes + at, &word, part) != 0)
            return false;
    }
    return true;
}

enum { INPUT_SEED = 1000, SHARED_SEED = 2000 };

static bool fails(uint64_t task) {
    return task % 13 == 7;
}

static bool is_of_other_size(uint64_t task) {
    return task % 17 == 9;
}

/* Check the task's input and the shared data. The first number in the shared data is the size of the result.
 */
static int work(const kilter_task *task, kilter_result *result, void *state) {
    board *b = state;
    uint64_t size;
    memcpy(&size, task->shared.data, sizeof size);
    if (!holds((const uint8_t *)task->shared.data + sizeof size, SHARED_SEED,
               task->shared.size - sizeof size))
        return kilter_result_fail(result, "the task's shared data are damaged");
    if (!holds(task->input.data, INPUT_SEED + task->index, task->input.size))
        return kilter_result_fail(result, "the task's input is damaged");
    if (fails(task->index))
        return kilter_result_fail(result, "unlucky");
    size += is_of_other_size(task->index);
    uint8_t *bytes = malloc(size);
    if (!bytes)
        return 1;
    fill(bytes, task->index, size);
    size_t half = size / 2;
    int status = (int)kilter_result_put(result, bytes, half);
    if (task->index < b->kills && atomic_exchange(&b->killed[task->index], 1) == 0)
        raise(SIGKILL);
    if (status == 0)
        status = (int)kilter_result_put(result, bytes + half, size - half);
    free(bytes);
    return status;
}

/* --- a run --- */

typedef struct plan {
    uint64_t tasks;
    size_t result_bytes, input_bytes, shared_bytes;
    bool any_size; /* true: results may have any size, and the run has no `results` array */
} plan;

typedef struct taken {
    const plan *plan;
    const uint8_t *results;
    uint64_t count, failed;
} taken;

static void take(const kilter_outcome *o, void *user) {
    taken *t = user;
    size_t size = t->plan->result_bytes + is_of_other_size(o->index);
    bool failed = fails(o->index) || (!t->plan->any_size && is_of_other_size(o->index));
    t->count++;
    t->failed += failed;
    assert_int_equal(o->status, failed ? KILTER_ERR_TASK : KILTER_OK);
    if (failed) {
        char why[100];
        snprintf(why, sizeof why, "the task's result has %zu bytes, but results of this run have %zu", size,
                 t->plan->result_bytes);
        assert_string_equal(o->error, fails(o->index) ? "unlucky" : why);
        assert_int_equal(o->result.size, 0);
        return;
    }
    assert_int_equal(o->result.size, size);
    assert_true(holds(o->result.data, o->index, size));
    assert_int_equal((uintptr_t)o->result.data % _Alignof(max_align_t), 0);
    if (t->results) /* the result must be in the program's array before the callback is called */
        assert_memory_equal(t->results + o->index * size, o->result.data, size);
}

static uint8_t *new_results(const plan *p) {
    uint8_t *results = malloc(p->tasks * p->result_bytes + 1);
    assert_non_null(results);
    memset(results, 0xaa, p->tasks * p->result_bytes + 1);
    return results;
}

static bool is_untouched(const uint8_t *bytes, size_t size) {
    for (size_t at = 0; at < size; at++)
        if (bytes[at] != 0xaa)
            return false;
    return true;
}

static void check_results(const plan *p, const uint8_t *results) {
    const uint8_t *place = results;
    for (uint64_t i = 0; i < p->tasks; i++, place += p->result_bytes)
        if (!fails(i) && !is_of_other_size(i))
            assert_true(holds(place, i, p->result_bytes));
        else
            assert_true(is_untouched(place, p->result_bytes));
    assert_int_equal(*place, 0xaa);
}

static kilter_bytes *new_inputs(const plan *p) {
    kilter_bytes *inputs = calloc(p->tasks, sizeof *inputs);
    assert_non_null(inputs);
    for (uint64_t i = 0; i < p->tasks; i++) {
        uint8_t *bytes = malloc(p->input_bytes + 1);
        assert_non_null(bytes);
        fill(bytes, INPUT_SEED + i, p->input_bytes);
        inputs[i] = (kilter_bytes){bytes, p->input_bytes};
    }
    return inputs;
}

static void run_once(kilter_farm *farm, const plan *p, bool calls) {
    uint64_t bytes = p->result_bytes;
    uint8_t *shared = malloc(sizeof bytes + p->shared_bytes), *results = p->any_size ? NULL : new_results(p);
    kilter_bytes *inputs = new_inputs(p);
    taken t = {.plan = p, .results = results};
    assert_non_null(shared);
    memcpy(shared, &bytes, sizeof bytes);
    fill(shared + sizeof bytes, SHARED_SEED, p->shared_bytes);
    kilter_run run = {.tasks = p->tasks,
                      .inputs = inputs,
                      .shared = {shared, sizeof bytes + p->shared_bytes},
                      .done = calls ? take : NULL,
                      .user = &t,
                      .results = results,
                      .result_bytes = results ? p->result_bytes : 0};
    kilter_error error = {KILTER_OK, ""};
    kilter_status status = kilter_farm_run(farm, &run, &error);
    assert_int_equal(status, p->tasks > 7 ? KILTER_ERR_TASK : KILTER_OK);
    assert_true(!calls || t.count == p->tasks);
    if (results)
        check_results(p, results);
    for (uint64_t i = 0; i < p->tasks; i++)
        free((void *)inputs[i].data);
    free(inputs);
    free(shared);
    free(results);
}

static kilter_farm *open_farm(kilter_farm_options options) {
    kilter_farm *farm = NULL;
    kilter_error error;
    options.work = work;
    options.start = start;
    options.name = "payload_test";
    options.record = options.resume ? NULL : "none";
    if (kilter_farm_open(&options, NULL, NULL, &farm, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    return farm;
}

static const plan plans[] = {
    {.tasks = 5, .result_bytes = 1},
    {.tasks = 300, .result_bytes = 24, .input_bytes = 30},
    {.tasks = 100, .result_bytes = 5000, .input_bytes = 30000, .shared_bytes = 1 << 20},
    {.tasks = 60, .result_bytes = 16200, .input_bytes = 100001, .shared_bytes = 100000},
    {.tasks = 60, .result_bytes = 100000, .input_bytes = 70000},
    {.tasks = 30, .result_bytes = 1000003, .input_bytes = 1},
    {.tasks = 3, .result_bytes = 40000000, .input_bytes = 30000000, .shared_bytes = 20000000},
};
enum { PLANS = sizeof plans / sizeof *plans };

static void all_plans(kilter_farm *farm) {
    for (unsigned i = 0; i < PLANS; i++)
        for (int calls = 0; calls < 2; calls++) {
            plan p = plans[i];
            run_once(farm, &p, calls);
            p.any_size = true;
            run_once(farm, &p, calls);
        }
}

/* --- tests of large inputs and results --- */

static void every_transport_carries_all_of_it(void **state) {
    (void)state;
    board *b = new_board(0);
    const char *transports[] = {"zmq", "inproc"};
    for (unsigned t = 0; t < 2; t++) {
        kilter_farm *farm =
            open_farm((kilter_farm_options){.transport = transports[t], .workers = 3, .user = b});
        all_plans(farm);
        assert_int_equal(kilter_farm_close(farm, NULL), KILTER_OK);
    }
    munmap(b, sizeof *b);
}

/* Kill twelve workers in the middle of a result, while inputs and results of other workers are being sent. */
static void workers_that_are_killed_spoil_nothing(void **state) {
    (void)state;
    const plan p = {.tasks = 60, .result_bytes = 300000, .input_bytes = 200000, .shared_bytes = 100000};
    board *b = new_board(6);
    kilter_farm *farm = open_farm((kilter_farm_options){.workers = 3, .user = b});
    for (int round = 0; round < 2; round++) {
        for (unsigned i = 0; i < b->kills; i++)
            b->killed[i] = 0;
        run_once(farm, &p, true);
        for (unsigned i = 0; i < b->kills; i++)
            assert_int_equal(b->killed[i], 1);
    }
    assert_int_equal(kilter_farm_close(farm, NULL), KILTER_OK);
    munmap(b, sizeof *b);
}

/* Limit the address space, as ulimit -v does. The farm then shares no memory, but must still work. */
static void a_limited_address_space_changes_nothing(void **state) {
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit limit; /* set a limit that the process never reaches */
        assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
        limit.rlim_cur = limit.rlim_max == RLIM_INFINITY ? RLIM_INFINITY - 1 : limit.rlim_max;
        assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
        board *b = new_board(2);
        kilter_farm *farm = open_farm((kilter_farm_options){.workers = 2, .user = b});
        assert_null(farm->settings.arenas);
        run_once(farm, &plans[5], true);
        assert_int_equal(kilter_farm_close(farm, NULL), KILTER_OK);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void stored_results_come_into_the_array(void **state) {
    char *file = ((place *)*state)->file;
    board *b = new_board(0);
    for (int session = 0; session < 2; session++) {
        kilter_farm *farm = open_farm((kilter_farm_options){.workers = 2, .user = b, .resume = file});
        run_once(farm, &plans[2], true);
        run_once(farm, &plans[5], false);
        kilter_farm_summary summary;
        kilter_farm_summary_get(farm, &summary);
        assert_int_equal(summary.stored > 0, session > 0);
        assert_int_equal(kilter_farm_close(farm, NULL), KILTER_OK);
    }
    munmap(b, sizeof *b);
}

static void expect_refusal(kilter_farm *farm, const kilter_run *run, kilter_status status, const char *text) {
    kilter_error error = {KILTER_OK, ""};
    assert_int_equal(kilter_farm_run(farm, run, &error), status);
    assert_non_null(strstr(error.text, text));
}

static void an_array_has_places_of_some_size(void **state) {
    (void)state;
    board *b = new_board(0);
    uint8_t place[8];
    kilter_farm *farm = open_farm((kilter_farm_options){.transport = "inproc", .workers = 1, .user = b});
    expect_refusal(farm, &(kilter_run){.tasks = 1, .result_bytes = 8}, KILTER_ERR_USAGE, "without results");
    expect_refusal(farm, &(kilter_run){.tasks = 1, .results = place}, KILTER_ERR_RANGE, "result_bytes of 0");
    expect_refusal(farm, &(kilter_run){.tasks = 1, .results = place, .result_bytes = SIZE_MAX},
                   KILTER_ERR_RANGE, "give 1 to");
    run_once(farm, &plans[0], true);
    assert_int_equal(kilter_farm_close(farm, NULL), KILTER_OK);
    munmap(b, sizeof *b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_transport_carries_all_of_it),
        cmocka_unit_test(workers_that_are_killed_spoil_nothing),
        cmocka_unit_test(a_limited_address_space_changes_nothing),
        cmocka_unit_test_setup_teardown(stored_results_come_into_the_array, make_place, remove_place),
        cmocka_unit_test(an_array_has_places_of_some_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
