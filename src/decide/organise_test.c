/* The choice between master and peers: each row is what earlier runs have shown, and who organises the next.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decide/decide.h"

/* A run of `workers` workers by a master: tasks of task_s, chunks of one task, answer_s for each. */
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
        {8, 8000, 10e-3, 10e-6, 0, false},       /* the master is nearly idle */
        {4000, 4000000, 1e-3, 10e-6, 0, true},   /* it could feed a hundred */
        {4000, 4000000, 1e-3, 10e-6, 60, false}, /* peers have taken longer than it would */
        {4000, 4000000, 1e-3, 10e-6, 1.1, true}, /* peers have kept their forecast */
        {1, 1000, 1e-6, 10e-6, 0, false},        /* a single worker has no one to share with */
        {64, 64000, 1e-6, 1e-9, 0, false},       /* a peer's own work for a task is longer than the task */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_iteration last = by_master(rows[i].workers, rows[i].tasks, rows[i].task_s, rows[i].answer_s);
        kl_organise_look look = {.wanted = KL_ORGANISE_AUTO,
                                 .workers = rows[i].workers,
                                 .tasks = rows[i].tasks,
                                 .last = &last,
                                 .task_s = rows[i].task_s,
                                 .peers_s = rows[i].peers_s};
        kl_decision d = kl_organise_choose(&look);
        assert_int_equal(d.kind, KL_DECIDES_ORGANISE);
        if ((d.count > 0) != rows[i].peers)
            fail_msg("row %d: %s", (int)i, d.reason);
        assert_true(d.forecast_s > 0 && d.gain_s >= 0 && d.reason[0]);
        assert_int_equal(d.count, rows[i].peers ? rows[i].workers : 0);
    }
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_faster_way_is_chosen),
        cmocka_unit_test(peers_never_do_what_they_cannot),
        cmocka_unit_test(without_measurements_the_master_deals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
