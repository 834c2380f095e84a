/* Test tables of situations in which tasks must be recalled or copied, and of situations in which they must
 * not. Worker 0 holds the tasks; three other workers wait. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "decide/decide.h"
#include "measure/crew_test_helper.h"

enum { WORKERS = 4 };
static const double NOW_S = 1000;

typedef struct situation {
    const char *name;
    double unit_s;   /* seconds per task at worker 0, lately */
    double others_s; /* seconds per task at each of the other workers, lately */
    double measured; /* number of tasks from which the speed of worker 0 was measured */
    double cv;       /* coefficient of variation of the tasks' times */
    double silent_s; /* seconds since worker 0 last reported */
    uint64_t tasks, kept;
    double asked_ago_s; /* seconds since tasks were recalled; 0: there was no recall */
    double first;       /* units of work of worker 0's first task; 0: 1 unit */
    /* The last heartbeat of worker 0. elapsed_s: age of its task, 0 if there are no heartbeats, below 0 if
     * none came since the task began; share: the task's share of a core; heard_ago_s: seconds since the
     * heartbeat came */
    double elapsed_s, share, heard_ago_s;
    uint64_t left;
    bool busy; /* true: no worker is free for a copy */
    kl_decision_kind act;
    uint64_t keep_least, keep_most;
    uint64_t copied;
} situation;

static const situation situations[] = {
    /* Situations in which worker 0 is slow. */
    {"worker 0 is slowed to a tenth and holds many tasks", 10e-3, 1e-3, 50, 0.3, 0, 10, 1,
     .act = KL_DECIDES_RECALL, .keep_least = 1, .keep_most = 1},
    {"worker 0 is half as fast as the others", 2e-3, 1e-3, 50, 0.3, 0, 20, 1, .act = KL_DECIDES_RECALL,
     .keep_least = 2, .keep_most = 4},
    {"worker 0 is silent for ten times the time of its tasks", 1e-3, 1e-3, 50, 0.3, 50e-3, 5, 1,
     .act = KL_DECIDES_RECALL, .keep_most = 1},
    {"tasks wait behind a long task", 1e-3, 1e-3, 50, 0.3, 100e-3, 2, 1, .elapsed_s = 100e-3, .share = 1,
     .act = KL_DECIDES_RECALL, .keep_most = 1},
    {"worker 0 does not answer a recall before its task ends", 10e-3, 1e-3, 50, 0.3, 50e-3, 10, 1,
     .asked_ago_s = 20e-3, .act = KL_DECIDES_COPY, .copied = 2},
    {"worker 0 does not answer a recall, although it could at any time", 1e-3, 1e-3, 50, 0.3, 250e-3, 10, 1,
     .asked_ago_s = 0.2, .elapsed_s = -1, .heard_ago_s = 0.25, .act = KL_DECIDES_COPY, .copied = 3},
    {"the last task runs a tenth as fast", 10e-3, 1e-3, 50, 0.3, 1e-3, 1, 1, .act = KL_DECIDES_COPY,
     .copied = 1},
    {"the last task gets a fifth of its core", 1, 1, 50, 0.3, 1.5, 1, 1, .elapsed_s = 1.5, .share = 0.2,
     .act = KL_DECIDES_COPY, .copied = 1},
    {"worker 0 has its last task and sent no heartbeat for 2 s", 0.3, 0.3, 50, 0.3, 2, 1, 1, .elapsed_s = 0.5,
     .share = 1, .heard_ago_s = 2, .act = KL_DECIDES_COPY, .copied = 1},
    {"worker 0 has a short task and sent no heartbeat for 2 s", 1e-3, 1e-3, 50, 0.3, 2, 1, 1, .elapsed_s = -1,
     .heard_ago_s = 2, .act = KL_DECIDES_COPY, .copied = 1},
    {"worker 0 kept tasks after a recall and sent no heartbeat for 2 s", 1e-3, 1e-3, 50, 0.3, 2, 6, 6,
     .elapsed_s = -1, .heard_ago_s = 2, .act = KL_DECIDES_COPY, .copied = 2},
    /* Situations in which worker 0 may be slow. */
    {"worker 0 is silent for 100 times the mean time of a task", 1e-3, 1e-3, 50, 0.3, 100e-3, 1, 1,
     .act = KL_DECIDES_COPY, .copied = 1},
    {"worker 0 is a third as fast and has just begun a task", 3e-3, 1e-3, 50, 0.3, 0.1e-3, 1, 1,
     .act = KL_DECIDES_COPY, .copied = 1},
    {"worker 0 is a tenth as fast, with two tasks that cannot be recalled", 10e-3, 1e-3, 50, 0.3, 1e-3, 2, 2,
     .act = KL_DECIDES_COPY, .copied = 1},
    {"worker 0 is a quarter as fast, in a task of 10 times the mean", 4e-3, 1e-3, 50, 0.9, 40e-3, 1, 1,
     .elapsed_s = 40e-3, .share = 1, .act = KL_DECIDES_COPY, .copied = 1},
    {"worker 0 may be in any of its tasks, also in a long one", 1e-3, 1e-3, 50, 0.3, 50e-3, 10, 1,
     .asked_ago_s = 20e-3, .act = KL_DECIDES_COPY, .copied = 1},
    {"all tasks of worker 0 are begun, or were moved often enough", 10e-3, 1e-3, 50, 0.3, 0, 10, 10,
     .act = KL_DECIDES_COPY, .copied = 1},
    /* Situations in which worker 0 is not slow. */
    {"a task takes 100 times the mean, with its usual share of the core", 10e-3, 10e-3, 50, 0.3, 1, 1, 1,
     .elapsed_s = 1, .share = 1, .act = KL_DECIDES_NOTHING},
    {"a task takes ten minutes, and heartbeats come", 1e-3, 1e-3, 50, 0.3, 600, 1, 1, .elapsed_s = 600,
     .share = 0.95, .heard_ago_s = 0.25, .act = KL_DECIDES_NOTHING},
    {"a task has 100 times the mean weight", 1e-3, 1e-3, 50, 0.3, 20e-3, 1, 1, .first = 100,
     .act = KL_DECIDES_NOTHING},
    {"other load slows worker 0 for 0.5 s", 1, 1, 50, 0.3, 0.5, 1, 1, .elapsed_s = 0.5, .share = 0.3,
     .act = KL_DECIDES_NOTHING},
    {"other load slows worker 0 for 0.5 s in a long task", 10, 10, 50, 0.3, 5, 1, 1, .elapsed_s = 5,
     .share = 0.93, .act = KL_DECIDES_NOTHING},
    {"one other program runs on the core of worker 0", 1, 1, 50, 0.3, 2, 1, 1, .elapsed_s = 2, .share = 0.52,
     .act = KL_DECIDES_NOTHING},
    {"the clock of worker 0 jumped ahead by an hour", 1, 1, 50, 0.3, 1.1, 1, 1, .elapsed_s = 3600,
     .share = 1e-4, .act = KL_DECIDES_NOTHING},
    {"the clock of worker 0 jumped back", 1, 1, 50, 0.3, 1.1, 1, 1, .elapsed_s = -3600, .share = -0.1,
     .act = KL_DECIDES_NOTHING},
    {"a report of worker 0 waits at the master", 1e-3, 1e-3, 50, 0.3, 5.3e-3, 5, 1,
     .act = KL_DECIDES_NOTHING},
    {"the delay of worker 0 is normal for such varying tasks", 1e-3, 1e-3, 50, 1, 7e-3, 5, 1,
     .act = KL_DECIDES_NOTHING},
    {"worker 0 was a third slower in three tasks, by chance", 1.5e-3, 1e-3, 3, 1, 0.1e-3, 1, 1,
     .act = KL_DECIDES_NOTHING},
    {"the tasks are too short to pay for the messages", 0.2e-3, 1e-3, 50, 0.3, 0, 3, 1,
     .act = KL_DECIDES_NOTHING},
    {"recalled a moment ago", 1e-3, 1e-3, 50, 0.3, 50e-3, 10, 1, .asked_ago_s = 1e-3,
     .act = KL_DECIDES_NOTHING},
    {"waiting workers can get other tasks", 10e-3, 1e-3, 50, 0.3, 0, 10, 1, .left = 100,
     .act = KL_DECIDES_NOTHING},
    {"no worker is free for a copy", 10e-3, 1e-3, 50, 0.3, 1e-3, 1, 1, .busy = true,
     .act = KL_DECIDES_NOTHING},
};

typedef struct world {
    const situation *what;
    kl_worker_view views[WORKERS];
    kl_snapshot s;
    uint64_t asked;
} world;

static void know(world *w, uint32_t worker, double unit_s, double tasks) {
    kl_worker_view *v = &w->views[worker];
    v->present = true;
    v->pace = (kl_pace){.seconds = unit_s * tasks, .units = tasks};
}

static void make_world(world *w, const situation *what) {
    *w = (world){.what = what};
    w->s = (kl_snapshot){.now_s = NOW_S,
                         .tasks = 1000,
                         .units = 1000,
                         .left = what->left,
                         .left_units = (double)what->left,
                         .workers = w->views,
                         .slots = WORKERS,
                         .present = WORKERS,
                         .answer_s = 10e-6,
                         .round_trip_s = 200e-6};
    for (int i = 0; i < 1000; i++)
        kl_stat_add(&w->s.unit_s, what->others_s * (1 + (i % 2 ? what->cv : -what->cv)), 0);
    kl_sizes_add(&w->s.sizes, &w->s.unit_s, 1 / what->others_s);
    for (uint32_t i = 1; i < WORKERS; i++)
        know(w, i, what->others_s, 50);
    know(w, 0, what->unit_s, what->measured);
    double first = what->first > 0 ? what->first : 1;
    w->views[0].queued_tasks = what->tasks;
    w->views[0].queued_units = first + (double)what->tasks - 1;
    w->views[0].queued_at_s = NOW_S - what->silent_s;
}

static void held(const void *self, uint32_t worker, kl_held *held) {
    const world *w = self;
    const situation *what = w->what;
    *held = (kl_held){0};
    if (worker > 0)
        return;
    held->tasks = what->tasks;
    held->units = w->views[0].queued_units;
    held->first_units = what->first > 0 ? what->first : 1;
    held->kept = what->kept;
    held->asked_s = what->asked_ago_s > 0 ? NOW_S - what->asked_ago_s : 0;
    if (what->elapsed_s != 0)
        held->hand = (kl_hand){NOW_S - what->heard_ago_s, fmax(what->elapsed_s, 0), what->share};
}

static bool waits(const void *self, uint32_t worker) {
    const world *w = self;
    return worker > 0 && !w->what->busy;
}

static uint32_t waiting(const void *self) {
    const world *w = self;
    return w->what->busy ? 0 : WORKERS - 1;
}

static kl_rescue choose(world *w) {
    kl_board board = {.self = w, .held = held, .waits = waits, .waiting = waiting};
    kl_crew *crew = crew_of(&w->s);
    kl_rescue rescue;
    kl_rescue_choose(&w->s, &board, &rescue);
    kl_crew_free(crew);
    return rescue;
}

static void what_is_slow_is_rescued_and_what_is_long_is_not(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof situations / sizeof *situations; i++) {
        const situation *what = &situations[i];
        world w;
        make_world(&w, what);
        kl_rescue r = choose(&w);
        if (r.decision.kind != what->act)
            fail_msg("%s: %d, not %d: %s", what->name, r.decision.kind, what->act, r.decision.reason);
        assert_true(r.decision.reason[0] != 0);
        if (r.decision.kind == KL_DECIDES_NOTHING)
            continue;
        assert_true(r.decision.subject == 0 && r.decision.forecast_s >= NOW_S && r.decision.gain_s >= 0);
        if (r.decision.kind == KL_DECIDES_COPY &&
            (r.decision.count != what->copied || r.to == 0 || r.to >= WORKERS))
            fail_msg("%s: %d tasks are given to worker %u", what->name, (int)r.decision.count,
                     (unsigned)r.to);
        if (r.decision.kind == KL_DECIDES_RECALL &&
            !(r.decision.count >= what->keep_least && r.decision.count <= what->keep_most))
            fail_msg("%s: keeps %d", what->name, (int)r.decision.count);
    }
}

enum { CROWD = 60 };

/* Answer as a board (kl_board), which knows the tasks that workers hold. Worker 0 holds a task that no other
 * worker has. All tasks of the other late workers are copied. */
static void held_by_the_first(const void *self, uint32_t worker, kl_held *held) {
    (void)self;
    *held = (kl_held){.tasks = worker == 0, .units = worker == 0, .first_units = 1, .kept = 1};
    held->hand = (kl_hand){.heard_s = NOW_S - 5};
}

static bool is_the_last(const void *self, uint32_t worker) {
    (void)self;
    return worker == CROWD - 1;
}

static uint32_t one_waits(const void *self) {
    (void)self;
    return 1;
}

static void who_holds_nothing_alone_hides_nobody(void **state) {
    (void)state;
    kl_worker_view views[CROWD];
    kl_snapshot s = {.now_s = NOW_S,
                     .tasks = 1000,
                     .units = 1000,
                     .workers = views,
                     .slots = CROWD,
                     .present = CROWD,
                     .answer_s = 10e-6,
                     .round_trip_s = 200e-6};
    for (int i = 0; i < 1000; i++)
        kl_stat_add(&s.unit_s, 1e-3, 0);
    for (uint32_t i = 0; i < CROWD; i++) {
        views[i] = (kl_worker_view){.present = true, .pace = {.seconds = 50e-3, .units = 50}};
        views[i].queued_tasks = i < CROWD - 1;
        views[i].queued_units = i < CROWD - 1;
        /* worker 0 has been silent for a shorter time than the others */
        views[i].queued_at_s = NOW_S - 5 - i;
    }
    kl_board board = {.held = held_by_the_first, .waits = is_the_last, .waiting = one_waits};
    kl_crew *crew = crew_of(&s);
    kl_rescue r;
    kl_rescue_choose(&s, &board, &r);
    kl_crew_free(crew);
    assert_true(r.decision.kind == KL_DECIDES_COPY && r.decision.subject == 0 && r.to == CROWD - 1);
}

/* Check plans in random situations. A plan must keep and copy no more tasks than the worker holds. It must
 * not recall tasks that cannot be recalled. */
static void plans_stay_within_what_is_there(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        double random[8];
        for (uint64_t k = 0; k < 8; k++)
            random[k] = (double)(kl_mix64(seed * 8 + k) >> 11) * 0x1p-53;
        situation what = {.unit_s = exp(10 * random[0] - 8),
                          .others_s = exp(10 * random[1] - 8),
                          .measured = 1 + 100 * random[2],
                          .cv = random[3],
                          .tasks = 1 + (uint64_t)(50 * random[4])};
        what.silent_s = 20 * random[5] * what.unit_s;
        what.kept = (uint64_t)(random[6] * (double)what.tasks);
        what.asked_ago_s = random[7] < 0.5 ? 0 : random[7];
        what.elapsed_s = random[2] < 0.3 ? 0 : 3 * random[6];
        what.share = random[7];
        world w;
        make_world(&w, &what);
        kl_rescue r = choose(&w);
        assert_true(r.decision.kind != KL_DECIDES_RECALL ||
                    (r.decision.count >= what.kept && r.decision.count < what.tasks &&
                     what.asked_ago_s == 0 && what.kept < what.tasks));
        assert_true(r.decision.kind != KL_DECIDES_COPY ||
                    (r.decision.count >= 1 && r.decision.count <= what.tasks && r.to != 0));
        assert_false(isnan(r.decision.gain_s) || isnan(r.decision.forecast_s));
    }
}

static void the_pause_grows_with_the_wait(void **state) {
    (void)state;
    world w;
    make_world(&w, &situations[0]);
    assert_true(kl_rescue_pause_s(&w.s, 0, 0) == 1e-3);
    assert_true(kl_rescue_pause_s(&w.s, 0, 1e-3) == 8e-3);
    assert_true(kl_rescue_pause_s(&w.s, 1600, 0) == 100);
    w.s.unit_s.mean = 3.2;
    assert_true(kl_rescue_pause_s(&w.s, 0, 0) == 0.1);
}

/* Tasks of 20 s run at the same time, and some have ended. Check that the tasks that still run, up to 10 %
 * late, are not copied, because they should end at any moment. */
static void a_task_that_should_just_end_is_waited_for(void **state) {
    (void)state;
    for (int ended = 1; ended < 200; ended *= 3)
        for (int step = -5; step <= 10; step++) {
            world w;
            make_world(&w, &(situation){.unit_s = 20,
                                        .others_s = 20,
                                        .silent_s = 20 * (1 + step / 100.0),
                                        .tasks = 1,
                                        .kept = 1});
            kl_stat equal = {0};
            for (int i = 0; i < ended; i++)
                kl_stat_add(&equal, 20, 0);
            w.s.sizes = (kl_sizes){0};
            kl_sizes_add(&w.s.sizes, &equal, 1.0 / 20);
            assert_int_equal(choose(&w).decision.kind, KL_DECIDES_NOTHING);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_slow_is_rescued_and_what_is_long_is_not),
        cmocka_unit_test(a_task_that_should_just_end_is_waited_for),
        cmocka_unit_test(who_holds_nothing_alone_hides_nobody),
        cmocka_unit_test(plans_stay_within_what_is_there),
        cmocka_unit_test(the_pause_grows_with_the_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
