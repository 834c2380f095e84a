/* Every task must be dealt once, whatever the policy, the number of tasks and of workers, and the order of
 * requests. Each decision must be the same when it is made again from the recorded inputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cases_test_helper.h"
#include "decide/decide.h"
#include "measure/crew_test_helper.h"

enum { MOST_WORKERS = 64, MOST_TASKS = 3 * MOST_WORKERS + 2, MOST_CHUNKS = 4 };

typedef enum asking { ROUND_ROBIN, RANDOM, GREEDY, ASKING_ORDERS } asking;

/* How the workers of a farm under test behave. */
typedef struct habit {
    asking order;
    bool measured;  /* true: workers report the times of their tasks */
    bool prior;     /* true: workers have rates from before the run */
    bool lagging;   /* true: reports come after random delays */
    bool late;      /* true: half of the workers join during the run */
    bool vanishing; /* true: workers leave during the run, and their tasks are dealt again */
    /* true: with `vanishing`, the tasks of a worker that leaves count as done, and are not dealt again */
    bool finished;
    bool warm; /* true: speeds and statistics are known from an earlier run */
} habit;

typedef struct farm {
    habit habit;
    uint64_t seed, draws;
    kl_dealer *dealer;
    kl_grounds *grounds;
    kl_again *again;
    kl_snapshot s;
    kl_crew *crew;
    kl_worker_view workers[MOST_WORKERS];
    double unit_s[MOST_WORKERS];
    uint64_t chunk[MOST_WORKERS][MOST_CHUNKS],
        chunks[MOST_WORKERS]; /* sizes of each worker's chunks, oldest first */
    uint64_t finished;
} farm;

static uint64_t draw(farm *f, uint64_t below) {
    return kl_mix64(f->seed * 0x10001 + f->draws++) % below;
}

static void set_left(farm *f, uint64_t left) {
    f->s.left = left;
    f->s.left_units = (double)left;
}

static uint64_t queued(const farm *f) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < f->s.slots; i++)
        sum += f->workers[i].queued_tasks;
    return sum;
}

static void set_up(farm *f, const kl_policy *policy, uint32_t workers, uint64_t tasks, habit habit,
                   uint64_t seed) {
    memset(f, 0, sizeof *f);
    f->habit = habit;
    f->seed = seed;
    f->s = (kl_snapshot){.tasks = tasks,
                         .units = (double)tasks,
                         .run = habit.warm,
                         .workers = f->workers,
                         .slots = workers,
                         .answer_s = 1e-5 * (double)draw(f, 5),
                         .message = {1e-5 * (double)draw(f, 3), 1e-9},
                         .task_bytes = 100,
                         .round_trip_s = 1e-4 * (double)draw(f, 3)};
    set_left(f, tasks);
    for (uint32_t i = 0; i < workers; i++) {
        f->unit_s[i] = 1e-4 * (double)(1 + draw(f, 50)) * (draw(f, 4) ? 1 : 20);
        f->workers[i].present = i == 0 || !habit.late || i % 2 == 0;
        f->s.present += f->workers[i].present;
        f->workers[i].prior_rate = habit.prior && draw(f, 4) ? 1e-3 / f->unit_s[i] : 0;
        if (habit.warm) {
            kl_pace_add(&f->workers[i].pace, 0.1, 0.1 / f->unit_s[i], 0.5);
            for (int k = 0; k < 3; k++)
                kl_stat_add(&f->workers[i].unit_s, f->unit_s[i] * (0.5 + k / 2.0), 0);
            kl_stat_merge(&f->s.unit_s, &f->workers[i].unit_s);
        }
    }
    f->dealer = kl_dealer_new(policy, NULL);
    /* one farm in four records its decisions, because recording doubles the time of the test */
    f->grounds = seed % 4 == 0 ? kl_grounds_new() : NULL;
    f->again = kl_again_new(NULL);
    assert_true(f->dealer && f->again);
    kl_dealer_write(f->dealer, f->grounds);
    f->s.crew = f->crew = crew_of(&f->s);
    assert_int_equal(kl_dealer_begin(f->dealer, &f->s), KILTER_OK);
}

static void tear_down(farm *f) {
    kl_dealer_free(f->dealer);
    kl_grounds_free(f->grounds);
    kl_again_free(f->again);
    kl_crew_free(f->crew);
}

static void update(farm *f, uint32_t i) {
    kl_crew_update(f->crew, f->workers, i);
    kl_grounds_changed(f->grounds, i);
}

/* End the oldest chunk of a worker: its tasks are done, or the chunk is lost and its tasks are dealt
 * again. */
static void end_chunk(farm *f, uint32_t i, bool lost) {
    kl_worker_view *w = &f->workers[i];
    uint64_t count = f->chunk[i][0];
    memmove(f->chunk[i], f->chunk[i] + 1, (MOST_CHUNKS - 1) * sizeof f->chunk[i][0]);
    f->chunks[i]--;
    w->queued_tasks -= count;
    w->queued_units = (double)w->queued_tasks;
    w->queued_at_s = f->s.now_s;
    update(f, i);
    if (lost) {
        set_left(f, f->s.left + count);
        return;
    }
    f->finished += count;
    if (!f->habit.measured)
        return;
    double seconds = f->unit_s[i] * (double)count * (0.5 + (double)draw(f, 100) / 100);
    f->s.now_s += seconds / f->s.present;
    kl_pace_add(&w->pace, seconds, (double)count, 0.5);
    kl_wap_add(&w->wap, seconds, (double)count);
    w->busy_s += seconds;
    w->units += (double)count;
    kl_stat_add(&w->unit_s, seconds / (double)count, f->s.now_s);
    kl_stat_add(&f->s.unit_s, seconds / (double)count, f->s.now_s);
    update(f, i);
    kl_crew_advance(f->crew, f->s.now_s);
}

static void come_and_go(farm *f) {
    uint32_t i = (uint32_t)draw(f, f->s.slots);
    if (f->habit.late && !f->workers[i].present && f->workers[i].chunks == 0 && draw(f, 4) == 0) {
        f->workers[i].present = true;
        f->s.present++;
        kl_dealer_changed(f->dealer);
    } else if (f->habit.vanishing && f->workers[i].present && f->s.present > 1 && draw(f, 16) == 0) {
        f->workers[i].present = false;
        f->s.present--;
        kl_dealer_changed(f->dealer);
        while (f->chunks[i])
            end_chunk(f, i, !f->habit.finished);
    }
    update(f, i);
}

/* Return a worker that gets tasks if it asks; fail if there is none. Call this while no worker holds tasks:
 * without such a worker, the farm would wait for ever. */
static uint32_t who_gets_something(const farm *f) {
    for (uint32_t i = 0; i < f->s.slots; i++) {
        kl_plan plan;
        kl_dealer_plan(f->dealer, &f->s, i, &plan);
        if (plan.decision.count)
            return i;
    }
    fail_msg("%s: no worker gets any of %d tasks; %d workers are present",
             kl_policy_name(kl_dealer_policy(f->dealer)), (int)f->s.left, (int)f->s.present);
    return 0;
}

static void decide_again(farm *f, const kl_plan *plan) {
    kl_answer answer;
    if (!f->grounds)
        return;
    kl_grounds_answers(f->grounds, &f->s, plan);
    const kl_recorded row = {kl_grounds_take(f->grounds), plan->decision};
    kl_again_decide(f->again, &row, &answer);
    if (kl_policy_find(kl_policy_name(kl_dealer_policy(f->dealer)))) {
        assert_null(answer.missing);
        assert_int_equal(answer.meant, plan->meant);
        answer.decision.subject = plan->decision.subject; /* this test does not use the workers' numbers */
        assert_memory_equal(&answer.decision, &plan->decision, sizeof answer.decision);
    } else {
        assert_non_null(strstr(answer.missing, "the decision's policy belongs to the program"));
    }
}

static bool ask(farm *f, uint32_t i) {
    kl_plan plan, again;
    kl_dealer_plan(f->dealer, &f->s, i, &plan);
    if (draw(f, 16) == 0) { /* plan once more: the first call must have changed nothing */
        kl_dealer_plan(f->dealer, &f->s, i, &again);
        assert_true(plan.decision.count == again.decision.count &&
                    strcmp(plan.decision.reason, again.decision.reason) == 0);
    }
    assert_true(plan.decision.count <= f->s.left && plan.decision.subject == i);
    assert_true(plan.meant == plan.decision.count && plan.decision.forecast_s >= 0 &&
                plan.decision.gain_s >= 0);
    assert_true(plan.decision.reason[0] != 0 && memchr(plan.decision.reason, 0, sizeof plan.decision.reason));
    decide_again(f, &plan);
    if (plan.decision.count == 0)
        return false;
    assert_int_equal(kl_dealer_commit(f->dealer, &f->s, &plan), KILTER_OK);
    set_left(f, f->s.left - plan.decision.count);
    kl_worker_view *w = &f->workers[i];
    w->chunks++;
    w->queued_tasks += plan.decision.count;
    w->queued_units = (double)w->queued_tasks;
    w->queued_at_s = f->s.now_s;
    update(f, i);
    f->chunk[i][f->chunks[i]++] = plan.decision.count;
    return true;
}

static uint32_t next_asking(farm *f, uint64_t turn) {
    uint32_t i = (uint32_t)turn;
    if (f->habit.order == RANDOM)
        i = (uint32_t)draw(f, f->s.slots);
    if (f->habit.order == GREEDY)
        i = turn % 3 ? 0 : (uint32_t)(turn / 3);
    for (i %= f->s.slots; !f->workers[i].present;)
        i = (i + 1) % f->s.slots;
    return i;
}

static void end_oldest_of(farm *f, uint32_t first) {
    for (uint32_t k = 0; k < f->s.slots; k++) {
        uint32_t i = (first + k) % f->s.slots;
        if (f->chunks[i]) {
            end_chunk(f, i, false);
            return;
        }
    }
}

static void deal_everything(const kl_policy *policy, uint32_t workers, uint64_t tasks, habit habit,
                            uint64_t seed) {
    farm f;
    set_up(&f, policy, workers, tasks, habit, seed);
    uint64_t bound = 200 + 40 * (tasks + workers), turn = 0;
    for (; f.finished < tasks && turn < bound; turn++) {
        if (habit.late || habit.vanishing)
            come_and_go(&f);
        uint32_t i = next_asking(&f, turn);
        /* A worker may hold at most two chunks, or MOST_CHUNKS − 1 with `lagging`. To make room for one more
         * chunk, its oldest chunks are reported before the request. */
        while (f.chunks[i] >= (habit.lagging ? MOST_CHUNKS - 1 : 2))
            end_chunk(&f, i, false);
        bool served = ask(&f, i);
        if (f.s.left > 0 && queued(&f) == 0)
            served = ask(&f, who_gets_something(&f));
        if (!served || (habit.lagging && draw(&f, 3) == 0))
            end_oldest_of(&f, habit.lagging ? (uint32_t)draw(&f, workers) : i);
    }
    if (f.finished != tasks || f.s.left != 0 || queued(&f) != 0)
        fail_msg("%s: %d of %d tasks finished, %d left, on %d workers", kl_policy_name(policy),
                 (int)f.finished, (int)tasks, (int)f.s.left, (int)workers);
    tear_down(&f);
}

static habit habit_of(uint64_t bits, asking order) {
    return (habit){.order = order,
                   .measured = bits & 1,
                   .prior = bits & 2,
                   .lagging = bits & 4,
                   .late = bits & 8,
                   .vanishing = bits & 16,
                   .finished = bits & 32,
                   .warm = bits & 64};
}

/* Three policies that belong to the program: one deals no task, one deals too many, and one follows no
 * rule. */
static uint64_t never(const kilter_policy_view *view, kilter_policy_reason *reason, void *user) {
    (void)view, (void)reason, (void)user;
    return 0;
}

static uint64_t too_many(const kilter_policy_view *view, kilter_policy_reason *reason, void *user) {
    (void)reason, (void)user;
    return view->left + 1 + view->chunks;
}

static uint64_t without_rule(const kilter_policy_view *view, kilter_policy_reason *reason, void *user) {
    (void)user;
    uint64_t lot = kl_mix64(view->left << 20 ^ view->chunks << 8 ^ view->asks->number) % 5;
    kilter_policy_say(reason, "a lot of %d", (int)lot);
    return lot == 4 ? view->left * 2 : lot;
}

static const kilter_policy own_never = {.name = "never", .choose = never},
                           own_too_many = {.name = "too-many", .choose = too_many},
                           own_without_rule = {.name = "without-rule", .choose = without_rule};
static const kilter_policy *const own_list[] = {&own_never, &own_too_many, &own_without_rule, NULL};
enum { OWN_COUNT = sizeof own_list / sizeof *own_list - 1 };

static kl_own_policies *own;

static size_t policy_count(void) {
    return kl_policy_count() + OWN_COUNT;
}

static const kl_policy *policy_at(size_t i) {
    size_t shipped = kl_policy_count();
    return i < shipped ? kl_policy_at(i) : kl_own_policies_find(own, own_list[i - shipped]->name);
}

static int take_own(void **state) {
    (void)state;
    return kl_own_policies_new(own_list, &own, NULL);
}

static int free_own(void **state) {
    (void)state;
    kl_own_policies_free(own);
    return 0;
}

/* Test up to 8 workers with every order of requests and several kinds of behaviour, and more workers with
 * one random kind. */
static void every_task_is_dealt_once(void **state) {
    (void)state;
    const uint32_t step = MOST_WORKERS / (uint32_t)kl_test_cases(8, MOST_WORKERS);
    for (size_t p = 0; p < policy_count(); p++)
        for (uint32_t workers = 1; workers <= (p < kl_policy_count() ? MOST_WORKERS : 8);
             workers += workers > 8 ? step : 1)
            for (uint64_t tasks = 0; tasks <= 3 * workers + 2; tasks++) {
                uint64_t seed = kl_mix64(p << 32 | workers << 16 | tasks);
                if (workers > 8) {
                    deal_everything(policy_at(p), workers, tasks,
                                    habit_of(seed, (seed >> 32) % ASKING_ORDERS), seed);
                    continue;
                }
                for (uint64_t k = 0; k < 4 * ASKING_ORDERS; k++)
                    deal_everything(policy_at(p), workers, tasks,
                                    habit_of(kl_mix64(seed + k), k % ASKING_ORDERS), seed + k);
            }
}

/* Deal many more tasks than there are workers, so that there are many batches. */
static void many_tasks_are_dealt_once(void **state) {
    (void)state;
    for (size_t p = 0; p < policy_count(); p++)
        for (uint64_t k = 0; k < 96; k++) {
            uint64_t seed = kl_mix64(p << 32 | k);
            deal_everything(policy_at(p), 1 + (uint32_t)(seed >> 8 & 15), seed >> 16 & 1023,
                            habit_of(k, k % ASKING_ORDERS), seed);
        }
}

/* Let one dealer deal the tasks of several runs in turn. */
static void runs_follow_each_other(void **state) {
    (void)state;
    for (size_t p = 0; p < policy_count(); p++) {
        farm f;
        set_up(&f, policy_at(p), 5, 100, (habit){.measured = true}, 4 * p);
        for (f.s.run = 0; f.s.run < 5; f.s.run++) {
            f.s.tasks = 100 - 7 * f.s.run;
            f.s.units = (double)f.s.tasks;
            f.finished = 0;
            set_left(&f, f.s.tasks);
            for (uint32_t i = 0; i < 5; i++) {
                f.workers[i].chunks = 0;
                f.workers[i].wap = (kl_wap){0};
                f.workers[i].busy_s = f.workers[i].units = 0;
            }
            kl_crew_look_again(f.crew, f.workers, f.s.now_s);
            assert_int_equal(kl_dealer_begin(f.dealer, &f.s), KILTER_OK);
            for (uint32_t turn = 0; f.finished < f.s.tasks && turn < 1000; turn++)
                if (!ask(&f, turn % 5) || f.chunks[turn % 5] > 1)
                    end_oldest_of(&f, turn % 5);
            assert_int_equal(f.finished, f.s.tasks);
        }
        tear_down(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_is_dealt_once),
        cmocka_unit_test(many_tasks_are_dealt_once),
        cmocka_unit_test(runs_follow_each_other),
    };
    return cmocka_run_group_tests(tests, take_own, free_own);
}
