/* Test the choice of the number of workers. Check when the number changes, and which number is reached in the
 * end. In some tests, workers cost time that the model does not know of. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decide/decide.h"

static double random_01(uint64_t i) {
    return (double)(kl_mix64(i) >> 11) * 0x1p-53;
}

/* --- a simulated farm, whose iterations take a known time with n workers --- */

enum { MOST = 200 };

typedef struct world {
    kl_farm_model model; /* the model of the simulated farm, which is also the measured one */
    double cv;           /* coefficient of variation of the tasks' times */
    uint64_t tasks;
    uint32_t most, now;
    double speeds[MOST];
    double wrong_s; /* seconds that each resting worker adds to an iteration, unknown to the model */
    double each_s;  /* seconds that each working worker adds to an iteration, unknown to the model */
    double noise;   /* relative error of the measured time of an iteration */
    uint64_t run;
} world;

static world world_of(uint32_t most, uint64_t tasks, double work_s, double fixed_s) {
    world w = {
        .model = {.message = {fixed_s, 0}, .work_s = work_s}, .tasks = tasks, .most = most, .now = most};
    for (uint32_t i = 0; i < most; i++)
        w.speeds[i] = i + 1.0;
    return w;
}

static double index_of(const world *w, uint32_t workers) {
    return kl_model_index_with(&w->model, workers, workers);
}

static uint32_t best_of(const world *w, uint32_t most) {
    return kl_model_best_of(&w->model, kl_speeds_listed(w->speeds), most);
}

static kl_iteration iterate(world *w) {
    kl_iteration it = {.run = w->run++, .tasks = w->tasks, .model = w->model, .workers = w->now};
    it.speeds = kl_speeds_listed(w->speeds);
    it.most = w->most;
    it.task_mean_s = w->model.work_s / (double)w->tasks;
    it.task_sd_s = w->cv * it.task_mean_s;
    it.elapsed_s = kl_model_time_with_s(&w->model, w->now, w->now) - w->model.master_s +
                   w->wrong_s * (w->most - w->now) + w->each_s * w->now;
    it.elapsed_s *= 1 + w->noise * (random_01(w->run * 77) - 0.5);
    return it;
}

/* Do one iteration, and return the decision that follows. */
static kl_team_plan step(world *w, kl_team *team) {
    kl_iteration it = iterate(w);
    kl_team_plan plan;
    kl_team_choose(team, &it, &plan);
    kl_team_commit(team, &it, &plan);
    assert_true(plan.decision.count >= 1 && plan.decision.count <= w->most);
    assert_true(plan.decision.reason[0] != '\0'); /* each decision must have a reason */
    if (plan.verdict == KL_TEAM_NOTHING || plan.verdict == KL_TEAM_REFUSED)
        assert_int_equal(plan.decision.count, w->now);
    w->now = plan.decision.count;
    return plan;
}

static uint32_t changes_in(world *w, kl_team *team, int iterations) {
    uint32_t changes = 0;
    for (int i = 0; i < iterations; i++)
        changes += step(w, team).verdict >= KL_TEAM_CHANGED;
    return changes;
}

/* --- properties --- */

static void it_ends_at_the_smallest_index_that_can_be_fed_and_balanced(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        world w = world_of(1 + kl_mix64(seed) % MOST, 100 + kl_mix64(seed + 1) % 100000,
                           exp(8 * random_01(seed * 5) - 4), exp(8 * random_01(seed * 5 + 1) - 12));
        w.model.message.per_unit_s = 1e-9;
        w.model.bytes = exp(20 * random_01(seed * 5 + 2));
        w.model.to_workers = random_01(seed * 5 + 3);
        w.model.master_s = seed % 3 ? 0 : 0.01 * w.model.work_s;
        w.cv = random_01(seed * 5 + 4);
        kl_iteration it = iterate(&w);
        uint32_t limit = kl_team_balanceable(&it), fed = kl_model_capability(&w.model);
        uint32_t most = limit < w.most ? limit : w.most, best = best_of(&w, most);
        double present = index_of(&w, w.now), least = index_of(&w, best);
        kl_team team = {0};
        uint32_t changes = changes_in(&w, &team, 15);
        if (fabs(least / present - 0.95) < 1e-9)
            continue;
        assert_int_equal(changes, least < 0.95 * present);
        assert_int_equal(w.now, changes ? best : w.most);
        assert_true(w.now == w.most || w.now <= fed);
    }
}

static void one_or_two_odd_iterations_change_nothing(void **state) {
    (void)state;
    for (int odd = 1; odd <= 4; odd++) {
        world w = world_of(16, 10000, 1, 1e-6);
        kl_team team = {0};
        assert_int_equal(changes_in(&w, &team, 10), 0);
        w.model.message.fixed_s = 1e-2;
        uint32_t changes = changes_in(&w, &team, odd);
        assert_int_equal(changes, odd >= KL_TEAM_PERSISTS);
        w.model.message.fixed_s = 1e-6;
        if (changes == 0)
            assert_int_equal(changes_in(&w, &team, 10), 0);
    }
}

/* 500 tasks of 1 ms run on 32 workers, and each iteration is faster than the previous one. The number of
 * workers must not change while iterations get faster. */
static void what_is_seen_while_iterations_get_faster_does_not_count(void **state) {
    (void)state;
    world w = world_of(32, 500, 0.5, 1e-5);
    kl_team team = {0};
    for (int i = 0; i < 10; i++) {
        w.each_s = 4e-3 * pow(0.5, i);
        kl_team_plan plan = step(&w, &team);
        if (plan.verdict == KL_TEAM_CHANGED)
            fail_msg("iteration %d: %s", i, plan.decision.reason);
    }
}

/* The times of iterations go up and down by a third. All of them show that fewer workers are much better, so
 * the number of workers must change soon. */
static void noise_does_not_hide_what_all_iterations_show(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        world w = world_of(32, 500, 0.02, 1e-5);
        kl_team team = {0};
        w.run = 1000 * seed;
        w.each_s = 2e-3;
        w.noise = 0.7;
        if (changes_in(&w, &team, 8) == 0)
            fail_msg("seed %d", (int)seed);
    }
}

static void the_least_of_what_was_seen_is_done(void **state) {
    (void)state;
    const double costs_s[] = {3e-3, 1e-2, 1e-2};
    world w = world_of(64, 10000, 1, 0);
    kl_team team = {0};
    uint32_t nearest = 0;
    kl_team_plan plan = {0};
    for (int i = 0; i < 3; i++) {
        w.model.message.fixed_s = costs_s[i];
        uint32_t best = best_of(&w, w.most);
        nearest = best > nearest ? best : nearest;
        plan = step(&w, &team);
    }
    assert_int_equal(plan.verdict, KL_TEAM_CHANGED);
    assert_int_equal(plan.decision.count, nearest);
}

static void noise_does_not_make_it_waver(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        world w = world_of(2 + seed % 100, 10000, 1, exp(8 * random_01(seed) - 12));
        w.noise = 0.04;
        w.run = seed * 1000;
        kl_team team = {0};
        assert_true(changes_in(&w, &team, 300) <= 3);
        uint32_t best = best_of(&w, w.most);
        assert_true(index_of(&w, w.now) < 1.12 * index_of(&w, best));
    }
}

static void they_come_back_when_work_grows(void **state) {
    (void)state;
    world w = world_of(32, 10000, 0.1, 1e-3);
    kl_team team = {0};
    changes_in(&w, &team, 10);
    assert_true(w.now < 16);
    w.model.work_s = 100;
    kl_team_plan plan = {0};
    for (int i = 0; i < 3; i++)
        plan = step(&w, &team);
    assert_int_equal(plan.verdict, KL_TEAM_CHANGED);
    assert_int_equal(w.now, 32);
    assert_true(plan.decision.gain_s > 0);
}

/* Each resting worker costs time that the model does not know. Each trial of fewer workers then fails. Check
 * that trials become rarer. */
static void what_does_not_pay_is_undone_and_not_soon_tried_again(void **state) {
    (void)state;
    world w = world_of(32, 10000, 0.5, 1e-3);
    w.wrong_s = 0.02;
    kl_team team = {0};
    uint32_t changed = 0, back = 0;
    for (int i = 0; i < 400; i++) {
        kl_team_plan plan = step(&w, &team);
        changed += plan.verdict == KL_TEAM_CHANGED;
        back += plan.verdict == KL_TEAM_BACK;
        if (plan.verdict == KL_TEAM_BACK)
            assert_int_equal(w.now, 32);
        if (plan.verdict == KL_TEAM_CHANGED) {
            for (int k = 0; k < 2; k++)
                assert_int_equal(step(&w, &team).verdict, KL_TEAM_NOTHING); /* the new number of workers must
                                                                               stay while it is on trial */
            i += 2;
        }
    }
    assert_true(changed == back && back >= 3 && back <= 6);
}

/* Workers slow each other down, which the model does not know. Check that fewer workers are tried, and that
 * the final number is nearly the best one. */
static void fewer_are_tried_where_much_is_lost_to_what_is_not_known(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        world w = world_of(8 + kl_mix64(seed) % 56, 10000, 1, 1e-6);
        w.each_s = exp(4 * random_01(seed)) * 1e-4;
        double least = INFINITY;
        for (uint32_t n = 1; n <= w.most; n++)
            least = fmin(least, n * pow(1.0 / n + w.each_s * n, 2));
        kl_team team = {0};
        uint32_t changes = changes_in(&w, &team, 16);
        double reached = w.now * pow(1.0 / w.now + w.each_s * w.now, 2);
        assert_true(changes <= 4);
        if (reached > 1.1 * least)
            fail_msg("seed %d: %u of %u workers, whose index is %.3f times the least one", (int)seed, w.now,
                     w.most, reached / least);
    }
}

static void where_imbalance_stays_fewer_are_tried_late(void **state) {
    (void)state;
    world w = world_of(16, 10000, 0.1, 1e-3);
    kl_team team = {0};
    int iterations = 0;
    for (; w.now == 16 && iterations < 100; iterations++) {
        kl_iteration it = iterate(&w);
        kl_team_plan plan;
        it.uneven_s = 0.1;
        it.elapsed_s += it.uneven_s;
        kl_team_choose(&team, &it, &plan);
        kl_team_commit(&team, &it, &plan);
        w.now = plan.decision.count;
    }
    assert_int_equal(iterations, 6);
}

/* Each iteration loses a fixed time. Check that the mean cost hardly rises, because fewer workers are kept
 * only if the run is not slower with them. */
static void what_is_lost_whatever_the_number_makes_no_iteration_dearer_for_long(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        world w = world_of(4 + kl_mix64(seed) % 60, 10000, 1, 1e-6);
        double lost_s = exp(5 * random_01(seed)) * 1e-3;
        kl_team team = {0};
        double first = 0, sum = 0;
        for (int i = 0; i < 100; i++) {
            kl_iteration it = iterate(&w);
            kl_team_plan plan;
            it.elapsed_s += lost_s;
            double index = w.now * it.elapsed_s * it.elapsed_s;
            first = i == 0 ? index : first;
            sum += index / first;
            kl_team_choose(&team, &it, &plan);
            kl_team_commit(&team, &it, &plan);
            w.now = plan.decision.count;
        }
        assert_true(sum / 100 < 1.05);
    }
}

static void fast_ones_that_rest_take_the_place_of_slow_ones(void **state) {
    (void)state;
    world w = world_of(4, 10000, 1, 0);
    w.now = 2;
    /* the speeds are 3, 3, 1 and 1, relative to the mean speed of the two active workers; speeds[n−1] is the
     * sum of the n greatest speeds */
    for (uint32_t n = 1; n <= 4; n++)
        w.speeds[n - 1] = n <= 2 ? 3 * n : 6 + (n - 2);
    w.model.message.fixed_s = 0.02;
    kl_team team = {0};
    kl_team_plan plan = {0};
    for (int i = 0; i < 3; i++)
        plan = step(&w, &team);
    assert_int_equal(plan.verdict, KL_TEAM_CHANGED);
    assert_int_equal(plan.way, KL_TEAM_OTHERS);
    assert_non_null(strstr(plan.decision.reason, "2 faster workers"));
}

static void slightly_faster_ones_keep_resting(void **state) {
    (void)state;
    static const double speeds[] = {1.02, 1.08, 1.6}; /* relative to the active workers */
    for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++) {
        world w = world_of(4, 10000, 1, 0);
        w.now = 2;
        for (uint32_t n = 1; n <= 4; n++)
            w.speeds[n - 1] = n <= 2 ? speeds[i] * n : 2 * speeds[i] + (n - 2);
        w.model.message.fixed_s = 0.02;
        w.most = 2;
        kl_team team = {0};
        kl_team_plan plan = {0};
        bool changed = false;
        for (int k = 0; k < 3; k++) {
            plan = step(&w, &team);
            changed |= plan.verdict == KL_TEAM_CHANGED;
        }
        assert_int_equal(changed, i == 2);
        assert_int_equal(strstr(plan.decision.reason, "not below 80 %") != NULL, i == 1);
    }
}

/* --- correcting the model by times measured with other numbers of workers --- */

/* A farm in which each task needs a resource of the master, which one task at a time can use. */
typedef struct truth {
    /* task_s: seconds of a task that runs alone; shared_s: seconds for which the task holds the resource,
     * which one task at a time can use */
    double task_s, shared_s;
    double growth; /* each doubling of the number of workers multiplies shared_s by this factor */
    uint64_t tasks;
} truth;

static double true_s(const truth *t, uint32_t n) {
    kl_station station = {t->shared_s * pow(t->growth, log2(n)), 1};
    return (double)t->tasks / kl_station_rate(&station, fmax(0, t->task_s - station.task_s), n);
}

/* Return the master's measurements of a run with n workers. The time for which tasks hold the resource counts
 * as CPU time of the program's callbacks. */
static kl_iteration measured(const truth *t, uint32_t n, uint32_t most, uint64_t run, const double *speeds) {
    double tasks = (double)t->tasks, shared_s = t->shared_s * pow(t->growth, log2(n));
    kl_iteration it = {.run = run, .tasks = t->tasks, .chunks = t->tasks, .workers = n, .most = most};
    it.speeds = kl_speeds_listed(speeds);
    it.elapsed_s = true_s(t, n);
    it.task_mean_s = t->task_s;
    it.answer_s = 1e-9;
    it.model = (kl_farm_model){.message = {1e-9, 0}, .work_s = tasks * t->task_s};
    it.load = (kl_load){.workers = n, .chunks = tasks, .answer_s = 1e-9};
    it.load.use = (kl_use){.cores = 64, .tasks = tasks, .messages = tasks, .farm_s = 2e-9 * tasks};
    it.load.use.callbacks_s = shared_s * tasks;
    kl_load_fit(&it.load, t->task_s, it.elapsed_s);
    return it;
}

/* A choice is made again from what was recorded of it. */
static void a_recorded_choice_is_made_again(void **state) {
    (void)state;
    double speeds[MOST];
    for (uint32_t i = 0; i < MOST; i++)
        speeds[i] = i + 1.0;
    const truth t = {1e-3, 2e-4, 1.2, 4000};
    const kl_team team = {0};
    kl_iteration it = measured(&t, 20, 60, 0, speeds), other = it;
    it.load.wait_s = 1e-3;
    kl_team_plan plan, without;
    kl_buffer bytes = {0};
    kl_grounds_team(&bytes, &team, &it, &plan);
    kl_team_choose(&team, &other, &without);
    assert_true(plan.decision.gain_s != without.decision.gain_s); /* the wait matters for this choice */
    kl_answer answer;
    kl_again *again = kl_again_new(NULL);
    kl_again_decide(again, &(kl_recorded){{bytes.data, bytes.size}, plan.decision}, &answer);
    assert_null(answer.missing);
    assert_int_equal(answer.decision.count, plan.decision.count);
    assert_true(answer.decision.gain_s == plan.decision.gain_s);
    kl_again_free(again);
    kl_buffer_free(&bytes);
}

static double least_index(const truth *t, uint32_t most) {
    double least = INFINITY;
    for (uint32_t n = 1; n <= most; n++)
        least = fmin(least, n * pow(true_s(t, n), 2));
    return least;
}

/* With more workers, each task holds the master's resource for longer, which the model does not know. Check
 * that a good number of workers is found anyway. */
static void measured_numbers_lead_to_a_good_one(void **state) {
    (void)state;
    double speeds[MOST], sum = 0;
    int count = 0;
    for (uint32_t i = 0; i < MOST; i++)
        speeds[i] = i + 1.0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        truth t = {1e-3, 1e-3 * exp(-4 * random_01(3 * seed)), 1 + 0.5 * random_01(3 * seed + 1), 4000};
        uint32_t most = 4 + kl_mix64(seed) % 60, now = most;
        kl_team team = {0};
        for (uint64_t run = 0; run < 60; run++) {
            kl_iteration it = measured(&t, now, most, run, speeds);
            kl_team_plan plan;
            kl_team_choose(&team, &it, &plan);
            kl_team_commit(&team, &it, &plan);
            now = (uint32_t)plan.decision.count;
            assert_in_range(now, 1, most);
            if (run == 22) {
                double index = now * pow(true_s(&t, now), 2) / least_index(&t, most);
                sum += index;
                count++;
                if (index > 1.3)
                    fail_msg("seed %d: %u of %u workers have %.2f times the least index", (int)seed, now,
                             most, index);
            }
        }
    }
    if (sum / count > 1.04)
        fail_msg("the mean index is %.3f times the least one", sum / count);
}

/* A change did not pay, so two numbers of workers were measured. Check that the next number tried lies
 * between these two. */
static void after_a_failure_a_number_in_between_is_tried(void **state) {
    (void)state;
    world w = world_of(32, 10000, 0.5, 1e-3);
    kl_team team = {0};
    uint32_t tried = 0;
    for (int i = 0; i < 40 && tried == 0; i++) {
        uint32_t before = w.now;
        kl_team_plan plan = step(&w, &team);
        if (plan.verdict == KL_TEAM_CHANGED) {
            tried = w.now;
            /* with this number of workers the run takes twice as long */
            w.wrong_s = 0.06 / (before - tried);
        }
    }
    while (step(&w, &team).verdict != KL_TEAM_BACK)
        ;
    w.wrong_s = 0;
    for (int i = 0; i < 6; i++)
        if (step(&w, &team).verdict == KL_TEAM_CHANGED)
            break;
    if (w.now <= tried || w.now >= 32)
        fail_msg("%u workers tried after %u did not pay", w.now, tried);
}

/* --- numbers of workers that are considered and refused --- */

static void what_is_refused_says_why(void **state) {
    (void)state;
    const struct {
        uint32_t most, now;
        uint64_t tasks;
        double work_s, fixed_s, cv, idle_s, uneven_s;
        kl_team_verdict verdict;
        const char *says;
    } rows[] = {
        {16, 16, 10000, 10, 1e-5, 0.5, 0, 0, KL_TEAM_NOTHING, ""},
        {16, 16, 10000, 0.1, 1e-3, 0.1, 0, 0, KL_TEAM_REFUSED, "seen in 1 of 3 iterations"},
        {16, 16, 10000, 0.1, 1e-3, 0.1, 0.1, 0, KL_TEAM_REFUSED, "seen in 1 of 3 iterations"},
        {16, 16, 10000, 0.1, 1e-3, 0.1, 0.1, 0.1, KL_TEAM_REFUSED,
         "seen in 1 of 6 iterations, because as much time is lost to imbalance"},
        {16, 8, 10000, 10, 1e-5, 0.1, 0.5, 0.5, KL_TEAM_REFUSED, "% of the time is lost to imbalance"},
        {16, 8, 10000, 10, 1e-5, 0.1, 0.5, 0, KL_TEAM_REFUSED, "% of the time is lost to unknown causes"},
        {16, 16, 10000, 0.1, 1e-3, 0.1, 0.1, 0.04, KL_TEAM_REFUSED, "seen in 1 of 3 iterations"},
        {16, 8, 20, 10, 1e-5, 0.1, 0, 0, KL_TEAM_REFUSED, "stays at 8 workers: 10 would have index"},
        {64, 8, 20, 10, 1e-5, 1.5, 0, 0, KL_TEAM_REFUSED, "no more than 2 can be kept busy to the end"},
        {16, 8, 16, 10, 1e-5, 0.1, 0, 0, KL_TEAM_REFUSED, "no more than 8 can be kept busy to the end"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        world w = world_of(rows[i].most, rows[i].tasks, rows[i].work_s, rows[i].fixed_s);
        w.now = rows[i].now;
        w.cv = rows[i].cv;
        kl_iteration it = iterate(&w);
        it.elapsed_s += rows[i].idle_s;
        it.uneven_s = rows[i].uneven_s;
        kl_team team = {0};
        kl_team_plan plan;
        kl_team_choose(&team, &it, &plan);
        if (plan.verdict != rows[i].verdict || !strstr(plan.decision.reason, rows[i].says))
            fail_msg("row %zu: %d, \"%s\"", i, plan.verdict, plan.decision.reason);
        assert_true(strlen(plan.decision.reason) < KL_REASON_BYTES - 1);
    }
}

static void more_workers_are_harder_to_balance(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        world w = world_of(MOST, 10 + kl_mix64(seed) % 5000, 10, exp(6 * random_01(seed) - 10));
        uint32_t before = MOST;
        for (w.cv = 0; w.cv < 4; w.cv += 0.25) {
            kl_iteration it = iterate(&w);
            uint32_t can = kl_team_balanceable(&it);
            assert_true(can >= 1 && can <= before && (can == 1 || 2 * (uint64_t)can <= w.tasks));
            before = can;
        }
    }
}

static void of_an_iteration_that_showed_nothing_nothing_is_made(void **state) {
    (void)state;
    const kl_iteration none = {0};
    kl_team team = {0};
    kl_team_plan plan;
    kl_team_choose(&team, &none, &plan);
    kl_team_commit(&team, &none, &plan);
    assert_int_equal(plan.verdict, KL_TEAM_NOTHING);
    world w = world_of(1, 10, 1, 1e-3);
    assert_int_equal(changes_in(&w, &team, 10), 0);
}

/* 50 workers have 1 s of work in total, and each message takes 1 ms. If the master works during this
 * millisecond, fewer workers are best. If the message only travels, all 50 workers are best. */
static void the_way_of_a_message_is_nobodys_time(void **state) {
    (void)state;
    for (int occupied = 0; occupied <= 1; occupied++) {
        kl_team team = {0};
        world w = world_of(50, 10000, 1, occupied ? 1e-3 : 1e-5);
        for (int i = 0; i < 3 * KL_TEAM_PERSISTS; i++) {
            kl_iteration it = iterate(&w);
            it.way_s = occupied ? 0 : 2e-3;
            it.elapsed_s += it.way_s;
            kl_team_plan plan;
            kl_team_choose(&team, &it, &plan);
            kl_team_commit(&team, &it, &plan);
            w.now = plan.decision.count;
        }
        if (occupied ? w.now >= 30 : w.now != 50)
            fail_msg("%s: %u workers", occupied ? "occupied" : "under way", w.now);
    }
}

/* 2 workers do 4,000 tasks of 1 ms. Each chunk is one task. The workers wait 3 of every 4 ms for the next
 * chunk. Both workers must stay, because one worker would take twice as long. */
static void workers_that_wait_for_each_chunk_are_not_too_many(void **state) {
    (void)state;
    kl_team team = {0};
    world w = world_of(2, 4000, 4, 1e-5);
    for (int i = 0; i < 3 * KL_TEAM_PERSISTS; i++) {
        kl_iteration it = iterate(&w);
        it.chunks = it.tasks;
        it.way_s = 4e-3;
        it.elapsed_s = 4000.0 / w.now * 4e-3;
        kl_team_plan plan;
        kl_team_choose(&team, &it, &plan);
        kl_team_commit(&team, &it, &plan);
        w.now = (uint32_t)plan.decision.count;
        assert_int_equal(w.now, 2);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_ends_at_the_smallest_index_that_can_be_fed_and_balanced),
        cmocka_unit_test(one_or_two_odd_iterations_change_nothing),
        cmocka_unit_test(what_is_seen_while_iterations_get_faster_does_not_count),
        cmocka_unit_test(noise_does_not_hide_what_all_iterations_show),
        cmocka_unit_test(the_least_of_what_was_seen_is_done),
        cmocka_unit_test(noise_does_not_make_it_waver),
        cmocka_unit_test(they_come_back_when_work_grows),
        cmocka_unit_test(what_does_not_pay_is_undone_and_not_soon_tried_again),
        cmocka_unit_test(fewer_are_tried_where_much_is_lost_to_what_is_not_known),
        cmocka_unit_test(where_imbalance_stays_fewer_are_tried_late),
        cmocka_unit_test(what_is_lost_whatever_the_number_makes_no_iteration_dearer_for_long),
        cmocka_unit_test(fast_ones_that_rest_take_the_place_of_slow_ones),
        cmocka_unit_test(slightly_faster_ones_keep_resting),
        cmocka_unit_test(measured_numbers_lead_to_a_good_one),
        cmocka_unit_test(after_a_failure_a_number_in_between_is_tried),
        cmocka_unit_test(what_is_refused_says_why),
        cmocka_unit_test(more_workers_are_harder_to_balance),
        cmocka_unit_test(a_recorded_choice_is_made_again),
        cmocka_unit_test(of_an_iteration_that_showed_nothing_nothing_is_made),
        cmocka_unit_test(the_way_of_a_message_is_nobodys_time),
        cmocka_unit_test(workers_that_wait_for_each_chunk_are_not_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
