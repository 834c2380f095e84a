/* Compare the decisions of each policy with tables of situations and expected decisions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "decide/decide.h"
#include "measure/crew_test_helper.h"

static void the_registry_is_complete(void **state) {
    (void)state;
    const char *names[] = {"static", "ss",    "fsc", "gss", "tss", "fac2", "wf",
                           "awf-b",  "awf-c", "af",  "dpf", "daf", "auto", "ect"};
    assert_int_equal(kl_policy_count(), sizeof names / sizeof *names);
    for (size_t i = 0; i < kl_policy_count(); i++) {
        assert_string_equal(kl_policy_name(kl_policy_at(i)), names[i]);
        assert_ptr_equal(kl_policy_find(names[i]), kl_policy_at(i));
        assert_true(strlen(kl_policy_summary(kl_policy_at(i))) > 20);
        assert_null(strchr(kl_policy_summary(kl_policy_at(i)), '\n'));
    }
    assert_ptr_equal(kl_policy_find("AWF-b"), kl_policy_find("awf-b"));
    assert_null(kl_policy_find("awf"));
    assert_null(kl_policy_find("static2"));
    assert_null(kl_policy_find(""));
    assert_null(kl_policy_find(NULL));
    assert_null(kl_policy_at(kl_policy_count()));
    kl_dealer_free(NULL);
}

enum { MOST = 8 };

/* A farm under test: its workers, and the snapshot from which chunks are planned. */
typedef struct world {
    kl_worker_view workers[MOST];
    kl_snapshot s;
} world;

static void make_world(world *w, uint32_t workers, uint64_t tasks, uint64_t left) {
    *w = (world){0};
    w->s = (kl_snapshot){.tasks = tasks,
                         .units = (double)tasks,
                         .left = left,
                         .left_units = (double)left,
                         .workers = w->workers,
                         .slots = workers,
                         .present = workers};
    for (uint32_t i = 0; i < workers; i++)
        w->workers[i].present = true;
}

static void know(world *w, uint32_t worker, double unit_s, double cv) {
    kl_worker_view *v = &w->workers[worker];
    v->pace = (kl_pace){0};
    kl_pace_add(&v->pace, 1, 1 / unit_s, 1);
    kl_wap_add(&v->wap, 1, 1 / unit_s);
    for (int i = 0; i < 1000; i++)
        kl_stat_add(&v->unit_s, unit_s * (1 + (i % 2 ? cv : -cv)), 0);
    kl_stat_merge(&w->s.unit_s, &v->unit_s);
}

static kl_plan plan_for(const kl_dealer *dealer, world *w, uint32_t worker) {
    kl_plan plan;
    kl_crew *crew = crew_of(&w->s);
    kl_dealer_plan(dealer, &w->s, worker, &plan);
    kl_crew_free(crew);
    return plan;
}

static void commit(kl_dealer *dealer, world *w, const kl_plan *plan) {
    kl_crew *crew = crew_of(&w->s);
    assert_int_equal(kl_dealer_commit(dealer, &w->s, plan), KILTER_OK);
    kl_crew_free(crew);
}

static uint64_t deal(kl_dealer *dealer, world *w, uint32_t worker) {
    kl_plan plan = plan_for(dealer, w, worker);
    commit(dealer, w, &plan);
    w->s.left -= plan.decision.count;
    w->s.left_units = (double)w->s.left;
    w->workers[worker].chunks += plan.decision.count > 0;
    return plan.decision.count;
}

/* For 4 workers and 1000 tasks, the chunks must have the published sizes. */
static void chunks_are_those_published(void **state) {
    (void)state;
    static const struct {
        const char *policy;
        uint64_t tasks, chunks[14];
    } rows[] = {
        {"static", 10, {3, 3, 2, 2, 0}},
        {"ss", 3, {1, 1, 1, 0}},
        {"fsc", 1000, {63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63}},
        {"gss", 1000, {250, 188, 141, 106, 79, 59, 45, 33, 25, 19, 14, 11, 8, 6}},
        {"tss", 1000, {125, 116, 108, 100, 91, 83, 75, 67, 58, 50, 42, 34, 25, 17}},
        {"fac2", 1000, {125, 125, 125, 125, 63, 63, 63, 63, 31, 31, 31, 31, 16, 16}},
        {"wf", 1000, {125, 125, 125, 125, 63, 63, 63, 63, 31, 31, 31, 31, 16, 16}},
        {"awf-c", 1000, {125, 110, 96, 84, 74, 64, 56, 49, 43, 38, 33, 29, 25, 22}},
        {"dpf", 1000, {62, 62, 62, 62, 47, 47, 47, 47, 35, 35, 35, 35, 26, 26}},
        {"daf", 1000, {125, 125, 125, 125, 62, 62, 62, 62, 31, 31, 31, 31, 16, 16}},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        world w;
        make_world(&w, 4, rows[r].tasks, rows[r].tasks);
        kl_dealer *dealer = kl_dealer_new(kl_policy_find(rows[r].policy), NULL);
        assert_int_equal(kl_dealer_begin(dealer, &w.s), KILTER_OK);
        for (uint32_t k = 0; k < 14; k++) {
            if (k > 0 && rows[r].chunks[k] == 0)
                break;
            uint64_t count = deal(dealer, &w, k % 4);
            if (count != rows[r].chunks[k])
                fail_msg("%s chunk %d: %d, not %d", rows[r].policy, (int)k, (int)count,
                         (int)rows[r].chunks[k]);
        }
        kl_dealer_free(dealer);
    }
}

static void settings_change_the_factor(void **state) {
    (void)state;
    static const struct {
        const char *policy;
        double factor;
        uint64_t first;
    } rows[] = {{"fsc", 0.5, 125}, {"fsc", 1, 250}, {"dpf", 1, 250},
                {"dpf", 0.1, 25},  {"dpf", -3, 62}, {"dpf", 7, 62}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        world w;
        make_world(&w, 4, 1000, 1000);
        kl_policy_settings settings = {rows[r].factor};
        kl_dealer *dealer = kl_dealer_new(kl_policy_find(rows[r].policy), &settings);
        kl_dealer_begin(dealer, &w.s);
        assert_int_equal(deal(dealer, &w, 0), rows[r].first);
        kl_dealer_free(dealer);
    }
}

static void weights_follow_what_is_known(void **state) {
    (void)state;
    world w;
    make_world(&w, 4, 1000, 1000);
    /* WF must deal equal chunks in the first batch, then compute weights from the workers' paces, and keep
     * them. */
    kl_dealer *dealer = kl_dealer_new(kl_policy_find("wf"), NULL);
    kl_dealer_begin(dealer, &w.s);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(deal(dealer, &w, i), 125);
    for (uint32_t i = 0; i < 4; i++)
        know(&w, i, i ? 1e-3 : 0.25e-3, 0); /* speeds 4 : 1 : 1 : 1, mean 7/4 */
    assert_int_equal(deal(dealer, &w, 0), 143);
    know(&w, 1, 1e-5, 0);
    assert_int_equal(deal(dealer, &w, 1), 36);
    kl_dealer_free(dealer);
    /* With speeds of an earlier run, WF must use weights from the first batch on. */
    make_world(&w, 4, 1000, 1000);
    w.workers[0].prior_rate = 4;
    for (uint32_t i = 1; i < 4; i++)
        w.workers[i].prior_rate = 1;
    const char *both[] = {"wf", "awf-b", "awf-c"};
    for (int i = 0; i < 3; i++) {
        dealer = kl_dealer_new(kl_policy_find(both[i]), NULL);
        kl_dealer_begin(dealer, &w.s);
        kl_plan plan = plan_for(dealer, &w, 0);
        assert_int_equal(plan.decision.count, 286);
        plan = plan_for(dealer, &w, 1);
        assert_int_equal(plan.decision.count, 72);
        kl_dealer_free(dealer);
    }
    /* If a worker becomes slower within a batch, AWF-B must keep its weight, and AWF-C must lower it. */
    for (int each = 0; each < 2; each++) {
        make_world(&w, 4, 1000, 1000);
        for (uint32_t i = 0; i < 4; i++)
            know(&w, i, 1e-3, 0);
        dealer = kl_dealer_new(kl_policy_find(each ? "awf-c" : "awf-b"), NULL);
        kl_dealer_begin(dealer, &w.s);
        assert_int_equal(deal(dealer, &w, 0), 125);
        for (int k = 0; k < 20; k++)
            kl_wap_add(&w.workers[1].wap, 1, 10); /* worker 1 becomes ten times slower */
        if (each)
            assert_in_range(deal(dealer, &w, 1), 1, 60);
        else
            assert_int_equal(deal(dealer, &w, 1), 125);
        kl_dealer_free(dealer);
    }
}

/* By DAF's equations (1) and (2), each of N chunks has 1/(x·N) of the remaining tasks. With N = 8 workers and
 * σ/μ = 0.5, x is 2 in the first batch and 3 in later batches. */
static void daf_cuts_by_its_equations(void **state) {
    (void)state;
    world w;
    make_world(&w, 8, 4800, 4800);
    w.s.run = 1;
    for (uint32_t i = 0; i < 8; i++)
        know(&w, i, 1e-3, 0.5);
    kl_dealer *dealer = kl_dealer_new(kl_policy_find("daf"), NULL);
    kl_dealer_begin(dealer, &w.s);
    for (uint32_t k = 0; k < 8; k++)
        assert_in_range(deal(dealer, &w, k), 299, 300); /* the first chunks have 4800/(2·8) tasks or one less;
                                                           the sample's σ/μ is slightly above 0.5 */
    for (uint32_t k = 0; k < 8; k++)
        assert_in_range(deal(dealer, &w, k), 99, 100); /* 2400/(3·8) tasks */
    for (uint32_t k = 0; k < 8; k++)
        assert_in_range(deal(dealer, &w, k), 66, 67); /* 1600/(3·8) tasks */
    kl_dealer_free(dealer);
    /* The master needs 1 ms for an answer. Chunks below 7 ms would leave a worker without tasks, so the
     * run must end with N equal chunks. */
    make_world(&w, 8, 160, 160);
    w.s.run = 1;
    w.s.answer_s = 1e-3;
    for (uint32_t i = 0; i < 8; i++)
        know(&w, i, 1e-3, 0.5);
    dealer = kl_dealer_new(kl_policy_find("daf"), NULL);
    kl_dealer_begin(dealer, &w.s);
    for (uint32_t k = 0; k < 8; k++)
        assert_in_range(deal(dealer, &w, k), 9, 10); /* 160/(2·8) tasks */
    for (uint32_t k = 0; k < 8; k++)
        assert_in_range(deal(dealer, &w, k), 10, 11); /* the last chunks have 88/8 tasks, because chunks of
                                                         88/(3·8) tasks would be below 7 ms */
    assert_int_equal(w.s.left, 0);
    kl_dealer_free(dealer);
}

static void af_is_the_published_formula(void **state) {
    (void)state;
    world w;
    make_world(&w, 2, 1000, 1000);
    know(&w, 0, 1e-3, 0.5);
    know(&w, 1, 2e-3, 0.5);
    kl_dealer *dealer = kl_dealer_new(kl_policy_find("af"), NULL);
    kl_dealer_begin(dealer, &w.s);
    double d = 0, rates = 0;
    for (int i = 0; i < 2; i++) {
        double sd = kl_stat_sd(&w.workers[i].unit_s), mean = w.workers[i].unit_s.mean;
        d += sd * sd / mean;
        rates += 1 / mean;
    }
    double t = 1 / rates, r = 1000, mean = w.workers[1].unit_s.mean;
    double chunk = (d + 2 * t * r - sqrt(d * d + 4 * d * t * r)) / (2 * mean);
    assert_int_equal(deal(dealer, &w, 1), (uint64_t)floor(chunk));
    kl_dealer_free(dealer);
}

/* Let the workers of a farm with policy STATIC ask for tasks again, leave and come back. */
static void static_deals_one_part_each_and_the_rest_to_who_asks(void **state) {
    (void)state;
    world w;
    make_world(&w, 4, 100, 100);
    kl_dealer *dealer = kl_dealer_new(kl_policy_find("static"), NULL);
    kl_dealer_begin(dealer, &w.s);
    assert_int_equal(deal(dealer, &w, 0), 25);
    assert_int_equal(deal(dealer, &w, 0), 0); /* worker 0 asks again before the others have got their parts */
    assert_int_equal(deal(dealer, &w, 1), 25);
    /* workers 2 and 3, which have not asked for their parts, leave */
    w.workers[2].present = w.workers[3].present = false;
    w.s.present = 2;
    assert_int_equal(deal(dealer, &w, 1), 25);
    w.workers[3].present = true; /* worker 3 comes back, so the last part must wait for it */
    w.s.present = 3;
    assert_int_equal(deal(dealer, &w, 1), 0);
    assert_int_equal(deal(dealer, &w, 3), 25);
    kl_dealer_free(dealer);
}

typedef struct auto_row {
    const char *name;
    uint32_t workers;
    uint64_t left;
    double unit_s[MOST]; /* unit_s[i]: seconds per unit of work of worker i; 0: not known */
    double queued[MOST];
    double now_s; /* seconds since the workers' queued tasks were queued */
    double answer_s, round_trip_s, task_bytes;
    uint64_t chunks; /* number of chunks that the asking worker got before */
    uint32_t asks;
    uint64_t least, most;
    const char *reason;
} auto_row;

static const auto_row auto_rows[] = {
    {"first probe", 2, 2000, {0}, {0}, 0, 0, 0, 0, 0, 0, 1, 1, "probe 1"},
    {"second probe", 2, 2000, {0}, {1}, 0, 0, 0, 0, 1, 0, 2, 2, "probe 2"},
    {"probes have few tasks even after 20 chunks", 2, 80, {0}, {0}, 0, 0, 0, 0, 20, 0, 10, 10, "probe"},
    {"with few tasks left, wait for the result of the probe",
     3,
     4,
     {0},
     {1},
     0,
     0,
     0,
     0,
     1,
     0,
     0,
     0,
     "waits for its first task, which shows its pace"},
    {"if the pace is known, the overhead decides the chunk size",
     2,
     20000,
     {1e-3, 1e-3},
     {0},
     0,
     10e-6,
     0,
     0,
     9,
     0,
     10,
     10,
     "dealing costs 20 us"},
    {"chunks of cheaper tasks are larger",
     2,
     2000000,
     {1e-5, 1e-5},
     {0},
     0,
     10e-6,
     0,
     0,
     9,
     0,
     999,
     1001,
     "dealing costs"},
    {"long tasks are dealt one at a time", 2, 100, {1, 1}, {0}, 0, 10e-6, 0, 0, 9, 0, 1, 1, "dealing costs"},
    {"the time of messages on the link counts as overhead",
     2,
     2000000,
     {1e-5, 1e-5},
     {0},
     0,
     10e-6,
     1e-3,
     0,
     9,
     0,
     50000,
     51000,
     "dealing"},
    {"a slow worker gets fewer tasks",
     2,
     20000,
     {4e-3, 1e-3},
     {0},
     0,
     40e-6,
     0,
     0,
     9,
     0,
     10,
     10,
     "dealing costs"},
    {"with few tasks left, a chunk is a quarter of the share",
     2,
     20,
     {1e-4, 1e-4},
     {0},
     0,
     10e-6,
     0,
     0,
     9,
     0,
     2,
     2,
     "quarter"},
    {"a faster worker's share is larger, in proportion to its speed",
     2,
     44,
     {1e-4, 1e-3},
     {0},
     0,
     10e-6,
     0,
     0,
     9,
     0,
     9,
     10,
     "quarter"},
    {"chunks are long enough for the master to serve all workers",
     8,
     400,
     {1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3},
     {0},
     0,
     5e-3,
     0,
     0,
     9,
     0,
     50,
     50,
     "so that the master can serve 8 workers"},
    {"the link is the limit", 4, 4000, {1e-3, 1e-3, 1e-3, 1e-3}, {0}, 0, 1e-5, 0, 1e6, 9, 0, 10, 10, "link"},
    {"the last task is withheld from a slow worker",
     2,
     1,
     {10, 1e-1},
     {0, 1},
     0,
     0,
     0,
     0,
     9,
     0,
     0,
     0,
     "withheld"},
    {"a slow worker gets the last task if the other worker has none",
     2,
     1,
     {10, 1e-1},
     {0, 0},
     0,
     0,
     0,
     0,
     9,
     1,
     1,
     1,
     "of work"},
    {"the only worker gets the last task", 1, 1, {10}, {5}, 0, 0, 0, 0, 9, 0, 1, 1, "of work"},
    {"the last task is withheld from a busy worker if the idle one is equally fast",
     2,
     1,
     {1, 1},
     {1, 0},
     0,
     0,
     0,
     0,
     9,
     0,
     0,
     0,
     "withheld"},
    {"tasks are dealt if the other worker is overdue",
     2,
     3,
     {1, 1},
     {0, 1},
     30,
     0,
     0,
     0,
     9,
     0,
     1,
     1,
     "of work"},
    {"a worker of unknown pace gets a probe if the other pace is known",
     2,
     1000,
     {0, 1e-3},
     {0},
     0,
     10e-6,
     0,
     0,
     0,
     0,
     1,
     1,
     "probe"},
};

static void auto_decides_by_the_table(void **state) {
    (void)state;
    for (size_t r = 0; r < sizeof auto_rows / sizeof *auto_rows; r++) {
        const auto_row *row = &auto_rows[r];
        world w;
        make_world(&w, row->workers, row->left, row->left);
        w.s.now_s = row->now_s;
        w.s.answer_s = row->answer_s;
        w.s.round_trip_s = row->round_trip_s;
        w.s.task_bytes = row->task_bytes;
        w.s.message.per_unit_s = 1e-9;
        w.s.unit_s.count = 1000000;
        for (uint32_t i = 0; i < row->workers; i++) {
            if (row->unit_s[i] > 0)
                know(&w, i, row->unit_s[i], 0);
            w.workers[i].queued_units = row->queued[i];
            w.workers[i].queued_tasks = (uint64_t)row->queued[i];
        }
        w.workers[row->asks].chunks = row->chunks;
        kl_dealer *dealer = kl_dealer_new(kl_policy_find("auto"), NULL);
        kl_dealer_begin(dealer, &w.s);
        kl_plan plan = plan_for(dealer, &w, row->asks);
        if (plan.decision.count < row->least || plan.decision.count > row->most ||
            !strstr(plan.decision.reason, row->reason))
            fail_msg("%s: %d tasks (%s)", row->name, (int)plan.decision.count, plan.decision.reason);
        assert_true((plan.decision.forecast_s > 0) ==
                    (plan.decision.count > 0 && row->unit_s[row->asks] > 0));
        kl_dealer_free(dealer);
    }
}

/* AUTO must deal at most four times the number of measured tasks. Otherwise a worker whose first task took
 * almost no time would get all tasks at once. */
static void auto_trusts_a_pace_as_far_as_it_was_seen(void **state) {
    (void)state;
    for (uint64_t measured = 1; measured <= 1000; measured *= 10) {
        world w;
        make_world(&w, 2, 1000000, 1000000);
        know(&w, 0, 1e-9, 0);
        w.s.unit_s.count = measured;
        kl_dealer *dealer = kl_dealer_new(kl_policy_find("auto"), NULL);
        kl_dealer_begin(dealer, &w.s);
        assert_int_equal(plan_for(dealer, &w, 0).decision.count, 4 * measured);
        kl_dealer_free(dealer);
    }
}

static void plans_say_when_and_what_they_gain(void **state) {
    (void)state;
    world w;
    make_world(&w, 2, 1000, 1000);
    /* with an equal part of the tasks, worker 0 takes 2 s; with the best distribution, both workers end in
     * 0.8 s */
    know(&w, 0, 4e-3, 0);
    know(&w, 1, 1e-3, 0);
    w.s.now_s = 7;
    w.workers[0].queued_at_s = w.workers[1].queued_at_s = 7;
    kl_dealer *dealer = kl_dealer_new(kl_policy_find("gss"), NULL);
    kl_dealer_begin(dealer, &w.s);
    kl_plan plan = plan_for(dealer, &w, 0);
    assert_true(fabs(plan.decision.forecast_s - 9) < 1e-6 && fabs(plan.decision.gain_s - 1.2) < 1e-6 &&
                plan.meant == 500);
    plan = plan_for(dealer, &w, 1);
    assert_true(fabs(plan.decision.forecast_s - 7.5) < 1e-6 && fabs(plan.decision.gain_s - 1.2) < 1e-6);
    kl_dealer_free(dealer);
}

static void who_is_not_here_gets_nothing(void **state) {
    (void)state;
    world w;
    make_world(&w, 2, 10, 10);
    w.workers[1].present = false;
    w.s.present = 1;
    for (size_t p = 0; p < kl_policy_count(); p++) {
        kl_dealer *dealer = kl_dealer_new(kl_policy_at(p), NULL);
        kl_dealer_begin(dealer, &w.s);
        kl_plan plan = plan_for(dealer, &w, 1);
        assert_int_equal(plan.decision.count, 0);
        plan = plan_for(dealer, &w, 99);
        assert_int_equal(plan.decision.count, 0);
        commit(dealer, &w, &plan);
        assert_ptr_equal(kl_dealer_policy(dealer), kl_policy_at(p));
        kl_dealer_free(dealer);
    }
}

/* Check DAF's equations (1) and (2), its last N chunks, and batches of fewer tasks than workers. 8 workers
 * ask for chunks in turn. They report no times meanwhile, so σ/μ does not change. */
static void daf_follows_its_equations(void **state) {
    (void)state;
    static const struct {
        double cv, answer_s; /* a task takes 1 ms */
        uint64_t tasks;
        struct {
            uint64_t chunks, tasks;
        } batches[8];
    } rows[] = {
        /* by equation (1), x is 1 in the first batch, so this batch holds all tasks */
        {0, 0, 1000, {{8, 125}}},
        /* x is 2 in the first batch, then 3. A chunk has 1/(8·x) of the remaining tasks: 62 = 1000/16, 21 =
         * 504/24, 14 = 336/24, 9 = 224/24, 6 = 152/24, 4 = 104/24, 3 = 72/24 */
        {0.5, 0, 1000, {{8, 62}, {8, 21}, {8, 14}, {8, 9}, {8, 6}, {8, 4}, {8, 3}, {8, 2}}},
        /* x is 3 in the first batch, then 4 */
        {1, 0, 1000, {{8, 41}, {8, 21}, {8, 15}, {8, 12}, {8, 9}, {8, 6}, {8, 5}, {8, 4}}},
        /* The lower limit of a chunk is 7·0.002/0.001 = 14 tasks. By the equations, the chunks of
         * the third batch have 14 tasks. Chunks of the fourth batch would have 9, which is below the limit.
         * So the last 8 chunks must have 224/8 = 28 tasks each. */
        {0.5, 2e-3, 1000, {{8, 62}, {8, 21}, {8, 14}, {8, 28}}},
        /* After the first batch, 64 − 8·4 = 32 tasks are left. By equation (2) a chunk would have 1 task, but
         * the lower limit is 1.75. The last 8 chunks must then have 32/8 = 4 tasks each. */
        {0.5, 2.5e-4, 64, {{8, 4}, {8, 4}}},
        /* if there are fewer tasks than workers, each chunk is one task */
        {0.5, 0, 5, {{5, 1}}},
        {0, 0, 11, {{8, 1}, {3, 1}}},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        world w;
        make_world(&w, 8, rows[r].tasks, rows[r].tasks);
        for (uint32_t i = 0; i < 8; i++)
            know(&w, i, 1e-3, 0);
        w.s.run = 1;
        w.s.unit_s = (kl_stat){1000, 1e-3, 999 * 1e-6 * rows[r].cv * rows[r].cv, 0, 1, 0};
        w.s.answer_s = rows[r].answer_s;
        kl_dealer *dealer = kl_dealer_new(kl_policy_find("daf"), NULL);
        assert_int_equal(kl_dealer_begin(dealer, &w.s), KILTER_OK);
        uint32_t asks = 0;
        for (size_t b = 0; b < 8 && rows[r].batches[b].chunks > 0; b++)
            for (uint64_t k = 0; k < rows[r].batches[b].chunks; k++) {
                uint64_t count = deal(dealer, &w, asks++ % 8);
                if (count != rows[r].batches[b].tasks)
                    fail_msg("row %d, batch %d, chunk %d: %d tasks, not %d", (int)r, (int)b, (int)k,
                             (int)count, (int)rows[r].batches[b].tasks);
            }
        kl_dealer_free(dealer);
    }
}

/* From the third run on, the policy's factor is chosen by a search, unless the user has set it. Each row has
 * a situation for which the range of the best factor is known. */
static void fsc_and_dpf_search_from_the_third_run_on(void **state) {
    (void)state;
    static const struct {
        const char *policy;
        uint64_t run;
        double set, slow, answer_s, least, most; /* the chosen factor must be within [least, most] */
    } rows[] = {
        {"fsc", 0, 0, 1, 1e-5, 0.25, 0.25},
        {"fsc", 1, 0, 1, 1e-5, 0.25, 0.25},
        {"dpf", 1, 0, 1, 1e-5, 0.25, 0.25},
        /* all workers are equal, so all factors give the same forecast, and the first factor wins */
        {"fsc", 2, 0, 1, 1e-5, 0.1, 0.1},
        {"fsc", 2, 0, 0.3, 1e-5, 0.1, 0.3}, /* one worker is slow, so chunks must be small */
        {"dpf", 2, 0, 0.3, 1e-5, 0.1, 0.7},
        {"fsc", 2, 0, 0.3, 1, 1, 1}, /* the master needs 1 s for a chunk, so chunks must be large */
        {"fsc", 2, 0.7, 0.3, 1e-5, 0.7, 0.7},
        {"dpf", 5, 0.4, 1, 1e-5, 0.4, 0.4},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        world w;
        make_world(&w, 8, 4000, 4000);
        for (uint32_t i = 0; i < 8; i++)
            know(&w, i, i ? 1e-3 : 1e-3 / rows[r].slow, 0);
        w.s.run = rows[r].run;
        w.s.answer_s = rows[r].answer_s;
        w.s.message = (kl_linear){1e-4, 1e-8};
        kl_policy_settings settings = {rows[r].set};
        kl_dealer *dealer = kl_dealer_new(kl_policy_find(rows[r].policy), &settings);
        assert_int_equal(kl_dealer_begin(dealer, &w.s), KILTER_OK);
        double factor = kl_dealer_factor(dealer);
        if (factor < rows[r].least || factor > rows[r].most)
            fail_msg("row %d: factor %g is not from %g to %g", (int)r, factor, rows[r].least, rows[r].most);
        kl_plan plan;
        kl_crew *crew = crew_of(&w.s);
        kl_dealer_plan(dealer, &w.s, 0, &plan);
        kl_crew_free(crew);
        bool searched = rows[r].run >= 2 && rows[r].set == 0;
        if (!!strstr(plan.decision.reason, "the run should end soonest") != searched)
            fail_msg("row %d: %s", (int)r, plan.decision.reason);
        kl_dealer_free(dealer);
    }
}

/* A dealer without a record computes no gains that its policy does not need. Check that it decides the same
 * as a dealer that computes them. */
static void decisions_do_not_depend_on_gains(void **state) {
    (void)state;
    uint32_t without_gain = 0;
    for (size_t p = 0; p < kl_policy_count(); p++) {
        world w;
        make_world(&w, 4, 1000, 1000);
        for (uint32_t i = 0; i < 4; i++)
            know(&w, i, 1e-3 * (1 + i), 0.1);
        kl_dealer *full = kl_dealer_new(kl_policy_at(p), NULL), *brief = kl_dealer_new(kl_policy_at(p), NULL);
        kl_dealer_write(brief, NULL);
        assert_int_equal(kl_dealer_begin(full, &w.s), KILTER_OK);
        assert_int_equal(kl_dealer_begin(brief, &w.s), KILTER_OK);
        for (uint32_t k = 0; k < 40; k++) {
            kl_plan plan = plan_for(full, &w, k % 4), other = plan_for(brief, &w, k % 4);
            commit(brief, &w, &other);
            assert_int_equal(deal(full, &w, k % 4), plan.decision.count);
            without_gain += other.decision.gain_s < plan.decision.gain_s;
            const kl_decision *a = &plan.decision, *b = &other.decision;
            assert_true(b->kind == a->kind && b->subject == a->subject && b->count == a->count);
            assert_true(b->forecast_s == a->forecast_s && b->cost_s == a->cost_s &&
                        other.meant == plan.meant);
            assert_string_equal(b->reason, a->reason);
        }
        kl_dealer_free(full);
        kl_dealer_free(brief);
    }
    assert_true(without_gain > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_registry_is_complete),
        cmocka_unit_test(chunks_are_those_published),
        cmocka_unit_test(settings_change_the_factor),
        cmocka_unit_test(daf_follows_its_equations),
        cmocka_unit_test(fsc_and_dpf_search_from_the_third_run_on),
        cmocka_unit_test(weights_follow_what_is_known),
        cmocka_unit_test(daf_cuts_by_its_equations),
        cmocka_unit_test(af_is_the_published_formula),
        cmocka_unit_test(static_deals_one_part_each_and_the_rest_to_who_asks),
        cmocka_unit_test(auto_decides_by_the_table),
        cmocka_unit_test(auto_trusts_a_pace_as_far_as_it_was_seen),
        cmocka_unit_test(decisions_do_not_depend_on_gains),
        cmocka_unit_test(plans_say_when_and_what_they_gain),
        cmocka_unit_test(who_is_not_here_gets_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
