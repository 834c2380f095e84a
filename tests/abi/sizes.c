/* Use a farm with structs that are longer or shorter than the library's structs; see sizes_test.sh. Print
 * "kept" at the end. */
#include "sizes.h"

#include <kilter/kilter.h>

enum { TASKS = 100 };

static int started, chosen;

static int start(const kilter_worker *worker, void **state) {
    CHECK(worker->index == 0 && LATER_IS_ZERO(worker));
    *state = &started;
    started++;
    return 0;
}

static int work(const kilter_task *task, kilter_result *result, void *state) {
    CHECK(state == &started && task->index < TASKS && LATER_IS_ZERO(task));
    return kilter_result_put(result, &task->index, sizeof task->index);
}

static void done(const kilter_outcome *outcome, void *sum) {
    CHECK(outcome->status == KILTER_OK && outcome->result.size == sizeof(uint64_t) && LATER_IS_ZERO(outcome));
    uint64_t index;
    memcpy(&index, outcome->result.data, sizeof index);
    CHECK(index == outcome->index);
    *(uint64_t *)sum += index;
}

static uint64_t choose(const kilter_policy_view *view, kilter_policy_reason *reason, void *user) {
    GUARDED(kilter_policy_worker) worker;
    PREPARE_OUTPUT(worker);
    CHECK(user == &chosen && view->tasks == TASKS && LATER_IS_ZERO(view) && LATER_IS_ZERO(view->asks));
    CHECK(kilter_policy_worker_get(view, 0, &worker.it));
    CHECK(worker.it.number == view->asks->number && UNTOUCHED(worker) && LATER_IS_ZERO(&worker.it));
    kilter_policy_say(reason, "seven");
    chosen++;
    return 7;
}

static const kilter_policy policy = {.name = "seven", .choose = choose, .user = &chosen};
static const kilter_policy *const policies[] = {&policy, NULL};

static kilter_farm *open_farm(void) {
    GUARDED(kilter_farm_options) options;
    PREPARE_INPUT(options);
    options.it.work = work;
    options.it.start = start;
    options.it.workers = 1;
    options.it.transport = "inproc";
    options.it.record = "none";
#ifndef OLDER /* in the older version, kilter_farm_options ends before this member */
    options.it.policies = policies;
    options.it.policy = "seven";
#else
    (void)policies;
#endif
    kilter_farm *farm = NULL;
    kilter_error error = {KILTER_OK, ""};
    SET_LATER(&options.it, 1);
    if (KNOWS_LATER) {
        CHECK(kilter_farm_open(&options.it, NULL, NULL, &farm, &error) == KILTER_ERR_USAGE && !farm);
        CHECK(strstr(error.text, "kilter_farm_options: the program sets a member that this Kilter"));
    }
    SET_LATER(&options.it, 0);
    if (kilter_farm_open(&options.it, NULL, NULL, &farm, &error) != KILTER_OK)
        wrong(__FILE__, __LINE__, error.text);
    CHECK(UNTOUCHED(options));
    return farm;
}

static void run(kilter_farm *farm) {
    uint64_t sum = 0;
    kilter_error error = {KILTER_OK, ""};
    GUARDED(kilter_run) run;
    PREPARE_INPUT(run);
    run.it.tasks = TASKS;
    run.it.done = done;
    run.it.user = &sum;
    SET_LATER(&run.it, 1);
    if (KNOWS_LATER)
        CHECK(kilter_farm_run(farm, &run.it, &error) == KILTER_ERR_USAGE && sum == 0);
    SET_LATER(&run.it, 0);
    if (kilter_farm_run(farm, &run.it, &error) != KILTER_OK)
        wrong(__FILE__, __LINE__, error.text);
    CHECK(sum == TASKS * (TASKS - 1) / 2 && UNTOUCHED(run));

    GUARDED(kilter_farm_summary) summary;
    PREPARE_OUTPUT(summary);
    kilter_farm_summary_get(farm, &summary.it);
    CHECK(summary.it.tasks == TASKS && summary.it.failed == 0 && summary.it.workers == 1);
    CHECK(UNTOUCHED(summary) && LATER_IS_ZERO(&summary.it));
}

static void ask_for_a_grain(kilter_farm *farm) {
    GUARDED(kilter_grain_options) options;
    GUARDED(kilter_grain) grain;
    PREPARE_INPUT(options);
    PREPARE_OUTPUT(grain);
    options.it.most = TASKS;
    SET_LATER(&options.it, 1);
    if (KNOWS_LATER)
        CHECK(kilter_farm_grain(farm, &options.it, &grain.it, NULL) == KILTER_ERR_USAGE);
    SET_LATER(&options.it, 0);
    CHECK(kilter_farm_grain(farm, &options.it, &grain.it, NULL) == KILTER_OK);
    CHECK(grain.it.tasks >= 1 && grain.it.tasks <= TASKS);
    CHECK(UNTOUCHED(options) && UNTOUCHED(grain) && LATER_IS_ZERO(&grain.it));
}

static void expect(kilter_farm *farm) {
    GUARDED(kilter_expectation) expectation;
    PREPARE_INPUT(expectation);
    expectation.it.runs = 1;
    expectation.it.seconds = 1;
    SET_LATER(&expectation.it, 1);
    if (KNOWS_LATER)
        CHECK(kilter_farm_expect(farm, &expectation.it, NULL) == KILTER_ERR_USAGE);
    SET_LATER(&expectation.it, 0);
    CHECK(kilter_farm_expect(farm, &expectation.it, NULL) == KILTER_OK && UNTOUCHED(expectation));
}

static void predict(kilter_farm *farm) {
    const double speeds[] = {1, 2};
    GUARDED(kilter_program) program;
    GUARDED(kilter_prediction) prediction;
    PREPARE_OUTPUT(program);
    PREPARE_OUTPUT(prediction);
    CHECK(kilter_farm_program(farm, &program.it, NULL) == KILTER_OK);
    CHECK(program.it.tasks == TASKS && UNTOUCHED(program) && LATER_IS_ZERO(&program.it));
    SET_LATER(&program.it, 1);
    if (KNOWS_LATER)
        CHECK(kilter_predict(&program.it, speeds, 2, &prediction.it, NULL) == KILTER_ERR_USAGE);
    SET_LATER(&program.it, 0);
    program.it.work_s = 1;
    CHECK(kilter_predict(&program.it, speeds, 2, &prediction.it, NULL) == KILTER_OK);
    CHECK(prediction.it.total_s > 0 && UNTOUCHED(prediction) && LATER_IS_ZERO(&prediction.it));
}

int main(void) {
    kilter_farm *farm = open_farm();
    run(farm);
    ask_for_a_grain(farm);
    expect(farm);
    run(farm);
    predict(farm);
    CHECK(kilter_farm_close(farm, NULL) == KILTER_OK && started == 1);
#ifndef OLDER
    CHECK(chosen > 0);
#endif
    puts("kept");
    return 0;
}
