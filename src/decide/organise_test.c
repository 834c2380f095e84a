/* Test the choice between master and peers. A row has the measurements of earlier runs, and says who
 * should organise the next run. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decide/decide.h"

/* Return the measurements of a run with a master. Each chunk has one task, which takes task_s. The master
 * needs answer_s for each chunk. */
static kl_iteration by_master(uint32_t workers, uint64_t tasks, double task_s, double answer_s) {
    double work_s = task_s * (double)tasks, ideal_s = work_s / workers, master_s = answer_s * (double)tasks;
    kl_farm_model model = {.message = {.fixed_s = answer_s}, .work_s = work_s};
    return (kl_iteration){.tasks = tasks,
                          .chunks = tasks,
                          .workers = workers,
                          .answer_s = answer_s,
                          .model = model,
                          .task_mean_s = task_s,
                          .elapsed_s = 1.02 * (ideal_s > master_s ? ideal_s : master_s)};
}

static void the_faster_way_is_chosen(void **state) {
    (void)state;
    static const struct {
        uint32_t workers;
        uint64_t tasks;
        double task_s, answer_s, peers_s;
        bool peers;
    } rows[] = {
        {8, 8000, 10e-3, 10e-6, 0, false}, /* the master is nearly idle, so it organises the run */
        /* the master could keep only a hundred workers busy, so peers organise the run */
        {4000, 4000000, 1e-3, 10e-6, 0, true},
        /* an earlier run with peers took longer than with the master, so the master organises the run */
        {4000, 4000000, 1e-3, 10e-6, 60, false},
        /* an earlier run with peers was as fast as forecast, so peers organise the run */
        {4000, 4000000, 1e-3, 10e-6, 1.1, true},
        {1, 1000, 1e-6, 10e-6, 0, false}, /* a single worker has no peers, so the master organises the run */
        /* a peer would need more time to organise a task than to do it */
        {64, 64000, 1e-6, 1e-9, 0, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_iteration last = by_master(rows[i].workers, rows[i].tasks, rows[i].task_s, rows[i].answer_s);
        kl_organise_look look = {.wanted = KL_ORGANISE_AUTO,
                                 .workers = rows[i].workers,
                                 .tasks = rows[i].tasks,
                                 .last = &last,
                                 .task_s = rows[i].task_s,
                                 .by_master_s = last.elapsed_s,
                                 .by_peers_s = rows[i].peers_s};
        kl_decision d = kl_organise_choose(&look);
        assert_int_equal(d.kind, KL_DECIDES_ORGANISE);
        if ((d.count > 0) != rows[i].peers)
            fail_msg("row %d: %s", (int)i, d.reason);
        assert_true(d.forecast_s > 0 && d.gain_s >= 0 && d.reason[0]);
        assert_int_equal(d.count, rows[i].peers ? rows[i].workers : 0);
    }
}

/* The last run lost a third of its time. If the master was busy for a third of the run, the master is the
 * cause. If the master was nearly idle, it is not the cause. */
static void only_a_busy_master_is_blamed(void **state) {
    (void)state;
    const double answers_s[] = {100e-6, 5e-6};
    for (int i = 0; i < 2; i++) {
        kl_iteration last = by_master(300, 30000, 60e-3, answers_s[i]);
        last.elapsed_s = 1.5 * last.model.work_s / last.workers;
        kl_organise_look look = {
            .wanted = KL_ORGANISE_AUTO, .workers = 300, .tasks = 30000, .last = &last, .task_s = 60e-3};
        assert_int_equal(kl_organise_choose(&look).count, i == 0 ? 300 : 0);
    }
}

/* Peers save no time if the master is busy with sending the bytes of inputs and receiving the bytes of
 * results. The master counts as busy for at most the time of the run. */
static void peers_do_not_carry_the_bytes(void **state) {
    (void)state;
    kl_iteration last = by_master(32, 32000, 1e-3, 1e-3);
    kl_organise_look look = {
        .wanted = KL_ORGANISE_AUTO, .workers = 32, .tasks = 32000, .last = &last, .task_s = 1e-3};
    assert_int_equal(kl_organise_choose(&look).count, 32);
    last.model.bytes = 3e6 * 32000;
    assert_int_equal(kl_organise_choose(&look).count, 0);
    last.model.bytes = 0;
    /* the measured cost of the messages is more time than the whole run took */
    last.elapsed_s = 1.01 * last.model.work_s / 32;
    assert_int_equal(kl_organise_choose(&look).count, 0);
}

/* The last run took 748 ms, because the program used new memory. Its master was busy for a fifth of this
 * time. If an input has 100 kB or 1 MB, the master must be chosen. If it has 8 bytes, peers must be
 * chosen. */
static void a_master_busy_with_bytes_is_not_blamed(void **state) {
    (void)state;
    const double inputs_bytes[] = {8, 100e3, 1e6};
    for (int i = 0; i < 3; i++) {
        kl_iteration last = by_master(32, 171, 0.9e-3, 0.92e-3);
        last.elapsed_s = 0.748;
        last.model.bytes = inputs_bytes[i] * 171;
        kl_organise_look look = {
            .wanted = KL_ORGANISE_AUTO, .workers = 32, .tasks = 171, .last = &last, .task_s = 0.9e-3};
        assert_int_equal(kl_organise_choose(&look).count, i == 0 ? 32 : 0);
    }
}

/* Peers must be tried if runs with a master lose a tenth of their time for an unknown reason. If peers were
 * slower, they must be tried again only after many more runs. */
static void peers_are_tried_when_a_master_loses_time(void **state) {
    (void)state;
    kl_iteration last = by_master(32, 32000, 10e-3, 1e-6);
    last.elapsed_s = 1.1 * last.model.work_s / last.workers;
    double lost_s = kl_organise_lost_s(&last);
    assert_true(lost_s > 0.99 && lost_s < 1.01);
    kl_organise_look look = {.wanted = KL_ORGANISE_AUTO,
                             .workers = 32,
                             .tasks = 32000,
                             .last = &last,
                             .master_runs = 3,
                             .task_s = 10e-3,
                             .by_master_s = last.elapsed_s};
    static const struct {
        /* lost time of all runs with a master, in multiples of the time that the last run lost */
        double lost, peers_s;
        bool peers;
    } rows[] = {{0.4, 0, false}, {1, 0, true}, {1, 10.9, true}, {60, 12, false}, {65, 12, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        look.lost_s = rows[i].lost * lost_s;
        look.by_peers_s = rows[i].peers_s;
        if ((kl_organise_choose(&look).count > 0) != rows[i].peers)
            fail_msg("row %d: %s", (int)i, kl_organise_choose(&look).reason);
    }
    look.by_peers_s = 0;
    look.lost_s = 2 * lost_s;
    assert_int_equal(kl_organise_choose(&look).count, 32);
    look = (kl_organise_look){.wanted = KL_ORGANISE_AUTO,
                              .workers = 32,
                              .tasks = 32000,
                              .last = &last,
                              .master_runs = 1,
                              .task_s = 10e-3,
                              .by_master_s = last.elapsed_s,
                              .by_peers_s = 10.5};
    /* the master has organised one run, which was the farm's first */
    assert_int_equal(kl_organise_choose(&look).count, 0);
    last.elapsed_s *= 1e-3; /* the run is too short to measure peers */
    last.model.work_s *= 1e-3;
    last.chunks = 32;
    look = (kl_organise_look){.wanted = KL_ORGANISE_AUTO,
                              .workers = 32,
                              .tasks = 32000,
                              .last = &last,
                              .master_runs = 3,
                              .task_s = 10e-6,
                              .lost_s = 1};
    assert_int_equal(kl_organise_choose(&look).count, 0);
}

/* Peers copy results several times. So they must be neither tried nor chosen if results are large. On hosts
 * of their own, peers share the costs of copies. */
static void peers_do_not_copy_large_results(void **state) {
    (void)state;
    static const struct {
        double answer_s, lost_s, local, result_bytes;
        bool peers;
    } rows[] = {
        /* trials, because time was lost for an unknown reason */
        {1e-6, 9, 1, 8, true},
        {1e-6, 9, 1, 1000, true},
        {1e-6, 9, 1, 100e3, false},
        {1e-6, 9, 0, 100e3, true},
        /* the master is busy for most of the run */
        {400e-6, 0, 1, 8, true},
        {400e-6, 0, 1, 100e3, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_iteration last = by_master(32, 32000, 10e-3, rows[i].answer_s);
        last.elapsed_s = fmax(last.elapsed_s, 1.1 * last.model.work_s / last.workers);
        last.load.use = (kl_use){.cores = 2, .tasks = 32000, .local_tasks = rows[i].local * 32000};
        kl_organise_look look = {.wanted = KL_ORGANISE_AUTO,
                                 .workers = 32,
                                 .tasks = 32000,
                                 .result_bytes = rows[i].result_bytes * 32000,
                                 .last = &last,
                                 .master_runs = 3,
                                 .task_s = 10e-3,
                                 .by_master_s = last.elapsed_s,
                                 .lost_s = rows[i].lost_s};
        if ((kl_organise_choose(&look).count > 0) != rows[i].peers)
            fail_msg("row %d: %s", (int)i, kl_organise_choose(&look).reason);
    }
}

/* Each row has the times of three runs with a master, and the mean time of runs with peers. The mean of the
 * runs with a master must decide, and not the last of these runs. */
static void means_are_compared_and_not_the_last_runs(void **state) {
    (void)state;
    kl_iteration last = by_master(32, 32000, 10e-3, 1e-6);
    static const struct {
        double master_s[3], peers_s;
        bool peers;
    } rows[] = {{{12, 12, 9.9}, 10.5, true}, {{10, 10, 11}, 10.4, false}, {{10, 12, 12}, 10.6, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double mean_s = 0;
        for (int k = 0; k < 3; k++)
            mean_s = kl_organise_mean((uint64_t)k, mean_s, rows[i].master_s[k]);
        last.elapsed_s = rows[i].master_s[2];
        kl_organise_look look = {.wanted = KL_ORGANISE_AUTO,
                                 .workers = 32,
                                 .tasks = 32000,
                                 .last = &last,
                                 .master_runs = 3,
                                 .task_s = 10e-3,
                                 .by_master_s = mean_s,
                                 .by_peers_s = rows[i].peers_s};
        if ((kl_organise_choose(&look).count > 0) != rows[i].peers)
            fail_msg("row %d: %s", (int)i, kl_organise_choose(&look).reason);
    }
}

/* 32 workers lose time with a master. Fewer workers may be cheaper than peers, so the best number of workers
 * with a master is found first. */
static void fewer_workers_with_a_master_may_be_better(void **state) {
    (void)state;
    kl_iteration last = by_master(32, 32000, 1e-3, 1e-6);
    last.elapsed_s = 3 * last.model.work_s / last.workers;
    kl_organise_look look = {.wanted = KL_ORGANISE_AUTO,
                             .workers = 32,
                             .tasks = 32000,
                             .last = &last,
                             .master_runs = 3,
                             .task_s = 1e-3,
                             .by_master_s = last.elapsed_s,
                             .lost_s = 1};
    static const struct {
        /* workers: best number of workers with a master, 0: it is not chosen yet; time_s: time of a run with
         * this number */
        uint32_t workers;
        double time_s, peers_s;
        bool peers;
    } rows[] = {
        {0, 0, 0, true}, {32, 3, 0, true},   {4, 1.5, 0, false}, {4, 4, 0, true},
        {0, 0, 2, true}, {32, 3, 2.9, true}, {8, 3, 2.9, false}, {8, 3, 1.1, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        look.best_index = rows[i].workers * rows[i].time_s * rows[i].time_s;
        look.by_peers_s = rows[i].peers_s;
        kl_decision d = kl_organise_choose(&look);
        if ((d.count > 0) != rows[i].peers)
            fail_msg("row %d: %s", (int)i, d.reason);
        assert_true(rows[i].peers || strstr(d.reason, "another number of workers"));
    }
}

/* Peers were measured only with another number of workers. They must be tried again, but only after more time
 * is lost than for a first trial. They must not be tried if the last run had another number of workers. */
static void peers_are_tried_again_with_another_number(void **state) {
    (void)state;
    kl_iteration last = by_master(32, 32000, 10e-3, 1e-6);
    last.elapsed_s = 1.1 * last.model.work_s / last.workers;
    static const struct {
        uint32_t workers;
        bool tried, on_trial;
        double lost_s;
        bool peers;
    } rows[] = {{32, false, false, 1, true},
                {32, true, false, 1, false},
                {32, true, false, 9, true},
                {16, false, false, 9, false},
                {32, false, true, 9, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_organise_look look = {.wanted = KL_ORGANISE_AUTO,
                                 .workers = rows[i].workers,
                                 .tasks = 32000,
                                 .last = &last,
                                 .master_runs = 3,
                                 .task_s = 10e-3,
                                 .tried = rows[i].tried,
                                 .on_trial = rows[i].on_trial,
                                 .lost_s = rows[i].lost_s};
        if ((kl_organise_choose(&look).count > 0) != rows[i].peers)
            fail_msg("row %d: %s", (int)i, kl_organise_choose(&look).reason);
    }
}

/* 32 workers share 2 cores, so their run takes three times as long as on 32 cores. This would be the same
 * with peers. */
static void time_lost_to_shared_cores_is_no_reason(void **state) {
    (void)state;
    kl_iteration last = by_master(32, 12000, 1e-3, 1e-6);
    last.elapsed_s = 3 * last.model.work_s / last.workers;
    assert_true(kl_organise_lost_s(&last) > 0.6 * last.elapsed_s);
    last.load = (kl_load){.use = {.farm_s = 0.01,
                                  .local_s = 2 * last.elapsed_s - 0.01,
                                  .local_tasks = 12000,
                                  .tasks = 12000,
                                  .messages = 400,
                                  .cores = 2},
                          .workers = 32,
                          .chunks = 400,
                          .answer_s = 1e-5};
    kl_load_fit(&last.load, last.task_mean_s, last.elapsed_s);
    assert_true(kl_organise_lost_s(&last) < 0.05 * last.elapsed_s);
}

/* Workers whose tasks sleep wait for the master's busy thread on their core. With peers, no such thread would
 * be there. */
static void time_lost_to_the_masters_thread_is_a_reason(void **state) {
    (void)state;
    kl_iteration last = by_master(64, 1000, 1e-3, 1e-6);
    last.elapsed_s = 0.15 * last.tasks * 1e-3;
    last.load = (kl_load){
        .use =
            {.farm_s = 0.1, .local_s = 0.1, .local_tasks = 1000, .tasks = 1000, .messages = 1000, .cores = 2},
        .workers = 64,
        .chunks = 1000,
        .answer_s = 1e-4};
    kl_load_fit(&last.load, 1e-3, last.elapsed_s);
    assert_int_equal(kl_model_limit(&last.load, 64).what, KL_SHARED_CORE);
    double lost = kl_organise_lost_s(&last) / last.elapsed_s;
    assert_true(lost > 0.25 &&
                lost < 0.4); /* without the thread, the cores would need 0.1 s instead of 0.15 s */
}

static void peers_never_do_what_they_cannot(void **state) {
    (void)state;
    kl_iteration last = by_master(4000, 4000000, 1e-3, 10e-6);
    kl_organise_look look = {.wanted = KL_ORGANISE_AUTO,
                             .never = "a run that grows needs a master",
                             .workers = 4000,
                             .tasks = 4000000,
                             .last = &last,
                             .task_s = 1e-3};
    kl_decision d = kl_organise_choose(&look);
    assert_int_equal(d.count, 0);
    assert_non_null(strstr(d.reason, "grows"));
}

static void without_measurements_the_master_deals(void **state) {
    (void)state;
    kl_decision d =
        kl_organise_choose(&(kl_organise_look){.wanted = KL_ORGANISE_AUTO, .workers = 9, .tasks = 9});
    assert_int_equal(d.count, 0);
    assert_true(d.forecast_s == 0);
    d = kl_organise_choose(&(kl_organise_look){.wanted = KL_ORGANISE_PEERS, .workers = 9, .tasks = 9});
    assert_int_equal(d.count, 9);
    assert_non_null(strstr(d.reason, "by hand"));
}

/* A first run of 4 s and a second one of 2 s: the first one was learning, so only the second counts. After a
 * second run of 6 s, both count. A third or fourth run must be a fifth faster to count alone. */
static void first_runs_count_unless_a_later_one_is_faster(void **state) {
    (void)state;
    assert_true(kl_organise_mean_of_master(0, 0, 4) == 4);
    assert_true(kl_organise_mean_of_master(1, 4, 2) == 2);
    assert_true(kl_organise_mean_of_master(1, 4, 6) == 5);
    assert_true(kl_organise_mean_of_master(2, 5, 4.25) == 4.75); /* an ordinary difference of two runs */
    assert_true(kl_organise_mean_of_master(3, 5, 2) == 2);       /* the farm's memory is no longer new */
    assert_true(kl_organise_mean_of_master(4, 5, 2.5) == 4.5);
}

/* The mean of 8 runs of 1 s is 1 s. If all later runs take 2 s, the mean approaches 2 s. */
static void a_mean_follows_a_lasting_change(void **state) {
    (void)state;
    double mean_s = 0;
    for (uint64_t runs = 0; runs < 8; runs++)
        mean_s = kl_organise_mean(runs, mean_s, 1);
    assert_true(mean_s == 1);
    mean_s = kl_organise_mean(8, mean_s, 2);
    assert_true(mean_s == 1.125);
    for (uint64_t runs = 9; runs < 60; runs++)
        mean_s = kl_organise_mean(runs, mean_s, 2);
    assert_true(mean_s > 1.99);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_faster_way_is_chosen),
        cmocka_unit_test(only_a_busy_master_is_blamed),
        cmocka_unit_test(peers_do_not_carry_the_bytes),
        cmocka_unit_test(a_master_busy_with_bytes_is_not_blamed),
        cmocka_unit_test(peers_are_tried_when_a_master_loses_time),
        cmocka_unit_test(peers_do_not_copy_large_results),
        cmocka_unit_test(means_are_compared_and_not_the_last_runs),
        cmocka_unit_test(first_runs_count_unless_a_later_one_is_faster),
        cmocka_unit_test(a_mean_follows_a_lasting_change),
        cmocka_unit_test(fewer_workers_with_a_master_may_be_better),
        cmocka_unit_test(peers_are_tried_again_with_another_number),
        cmocka_unit_test(time_lost_to_shared_cores_is_no_reason),
        cmocka_unit_test(time_lost_to_the_masters_thread_is_a_reason),
        cmocka_unit_test(peers_never_do_what_they_cannot),
        cmocka_unit_test(without_measurements_the_master_deals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
