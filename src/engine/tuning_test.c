/* Check the values that `kilter tune` shows and sets. Use tables of cases, and a farm of threads that is
 * tuned while it runs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "report/report.h"
#include "sys/sys.h"

static kl_farm_state a_farm(void) {
    return (kl_farm_state){.policy = kl_policy_find("auto"), .present = 3, .resting = 1};
}

/* --- settings --- */

typedef struct setting_case {
    kl_control_setting setting;
    const char *pending; /* name of the policy that waits for the next run; NULL: no policy waits */
    bool running;
    kilter_status status;
    unsigned set;
    const char *words;
} setting_case;

static void a_setting_is_taken_or_refused_as_a_whole(void **state) {
    (void)state;
    const unsigned all = KL_TUNE_POLICY | KL_TUNE_FACTOR | KL_TUNE_WORKERS;
    const setting_case cases[] = {
        {{.policy_given = true, .policy = "daf"}, NULL, false, KILTER_OK, KL_TUNE_POLICY, "next run"},
        {{.policy_given = true, .policy = "daf"}, NULL, true, KILTER_OK, KL_TUNE_POLICY, "run 0 continues"},
        {{.policy_given = true, .policy = "FSC"}, NULL, false, KILTER_OK, KL_TUNE_POLICY, "next run"},
        {{.policy_given = true, .policy = "frob"}, NULL, false, KILTER_ERR_USAGE, 0, "policy=frob"},
        {{.policy_given = true, .policy = ""}, NULL, false, KILTER_ERR_USAGE, 0, "no such policy"},
        {{.workers_given = true, .workers = 4}, NULL, false, KILTER_OK, KL_TUNE_WORKERS, "next run"},
        {{.workers_given = true, .workers = 0}, NULL, false, KILTER_OK, KL_TUNE_WORKERS, "next run"},
        {{.workers_given = true, .workers = 5},
         NULL,
         false,
         KILTER_ERR_RANGE,
         0,
         "workers=5: there are only 4"},
        {{.factor_given = true, .factor = 0.3}, NULL, false, KILTER_ERR_USAGE, 0, "auto has no factor"},
        {{.factor_given = true, .factor = 0.3}, "dpf", true, KILTER_OK, KL_TUNE_FACTOR, "next run"},
        {{.factor_given = true, .factor = 0.3}, "daf", true, KILTER_ERR_USAGE, 0, "daf has no factor"},
        {{true, true, false, "fsc", 1, 0},
         NULL,
         false,
         KILTER_OK,
         KL_TUNE_POLICY | KL_TUNE_FACTOR,
         "next run"},
        {{true, true, false, "fsc", 0, 0},
         NULL,
         false,
         KILTER_OK,
         KL_TUNE_POLICY | KL_TUNE_FACTOR,
         "next run"},
        {{true, true, false, "fsc", 1.5, 0}, NULL, false, KILTER_ERR_RANGE, 0, "factor=1.5"},
        {{true, true, false, "fsc", -0.1, 0}, NULL, false, KILTER_ERR_RANGE, 0, "above 0"},
        {{true, true, false, "fsc", NAN, 0}, NULL, false, KILTER_ERR_RANGE, 0, "above 0"},
        {{true, true, false, "ss", 0.5, 0}, NULL, false, KILTER_ERR_USAGE, 0, "ss has no factor"},
        {{true, true, true, "dpf", 0.5, 2}, NULL, false, KILTER_OK, all, "next run"},
        {{true, true, true, "dpf", 0.5, 9}, NULL, false, KILTER_ERR_RANGE, 0, "workers=9"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const setting_case *c = &cases[i];
        kl_farm_state farm = a_farm();
        farm.running = c->running;
        farm.pending.policy = kl_policy_find(c->pending);
        farm.pending.set = c->pending ? KL_TUNE_POLICY : 0;
        kl_tuning tuning = {.set = 99};
        char answer[KL_CONTROL_ANSWER_BYTES] = "";
        kilter_error error = {KILTER_OK, ""};
        assert_int_equal(kl_tuning_check(&c->setting, &farm, &tuning, answer, &error), c->status);
        assert_int_equal(tuning.set, c->status == KILTER_OK ? c->set : 99);
        if (!strstr(c->status == KILTER_OK ? answer : error.text, c->words))
            fail_msg("case %zu: '%s%s' lacks '%s'", i, answer, error.text, c->words);
    }
}

static void a_factor_alone_holds_from_the_next_batch_on(void **state) {
    (void)state;
    kl_farm_state farm = a_farm();
    farm.policy = kl_policy_find("fsc");
    kl_control_setting setting = {.factor_given = true, .factor = 0.4};
    kl_tuning tuning;
    char answer[KL_CONTROL_ANSWER_BYTES];
    assert_int_equal(kl_tuning_check(&setting, &farm, &tuning, answer, NULL), KILTER_OK);
    assert_true(tuning.set == KL_TUNE_FACTOR && tuning.factor == 0.4);
    assert_non_null(strstr(answer, "next batch"));
}

static void what_was_asked_for_later_wins(void **state) {
    (void)state;
    kl_tuning both = {.set = KL_TUNE_WORKERS | KL_TUNE_FACTOR, .workers = 3, .factor = 0.5};
    kl_tuning_merge(&both, &(kl_tuning){.set = KL_TUNE_WORKERS, .workers = 2});
    kl_tuning_merge(&both, &(kl_tuning){.set = KL_TUNE_POLICY, .policy = kl_policy_at(0)});
    assert_int_equal(both.set, KL_TUNE_WORKERS | KL_TUNE_FACTOR | KL_TUNE_POLICY);
    assert_true(both.workers == 2 && both.factor == 0.5 && both.policy == kl_policy_at(0));
}

/* --- values that `kilter tune` shows --- */

static void what_is_not_known_is_not_shown_as_a_number(void **state) {
    (void)state;
    kl_farm_state farm = a_farm();
    kl_control_state shown;
    kl_tuning_show(&farm, &shown);
    assert_true(isnan(shown.work_s) && isnan(shown.time_s) && isnan(shown.quality) && isnan(shown.answer_s));
    assert_true(isnan(shown.quality_bound) && isnan(shown.best_index));
    assert_int_equal(shown.measured_workers, 0);
    assert_int_equal(shown.present, 3);
    assert_string_equal(shown.waiting, "");
}

static void what_waits_is_shown_in_words(void **state) {
    (void)state;
    const struct {
        kl_tuning pending;
        const char *words;
    } cases[] = {
        {{.set = KL_TUNE_POLICY, .policy = kl_policy_find("daf")}, "policy daf"},
        {{.set = KL_TUNE_POLICY | KL_TUNE_FACTOR, .policy = kl_policy_find("dpf"), .factor = 0.25},
         "policy dpf with factor 0.25"},
        {{.set = KL_TUNE_POLICY | KL_TUNE_WORKERS, .policy = kl_policy_find("daf"), .workers = 1},
         "policy daf; 1 worker"},
        {{.set = KL_TUNE_WORKERS, .workers = 2}, "2 workers"},
        {{.set = KL_TUNE_WORKERS}, "the farm chooses the number of workers again"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kl_farm_state farm = a_farm();
        kl_control_state shown;
        farm.pending = cases[i].pending;
        kl_tuning_show(&farm, &shown);
        assert_string_equal(shown.waiting, cases[i].words);
    }
}

/* --- a farm of threads --- */

typedef struct tuned {
    kilter_farm *farm;
    char *folder, record[240];
    kl_tuner *tuner;
    kl_control_setting setting; /* the setting that the first callback of a run requests */
    bool once;
    char answer[KL_CONTROL_ANSWER_BYTES];
    kl_control_state seen;
} tuned;

static int square(const kilter_task *task, kilter_result *result, void *unused) {
    (void)unused;
    uint64_t square = task->index * task->index;
    return kilter_result_put(result, &square, sizeof square);
}

static void attach(tuned *t) {
    kl_report *report;
    assert_int_equal(kl_report_read_run(kilter_farm_record(t->farm), &report, NULL), KILTER_OK);
    assert_false(report->run.ended);
    assert_int_equal(kl_tuner_attach(report->run.control, 60, &t->tuner, NULL), KILTER_OK);
    kl_report_free(report);
}

/* Get the state and change settings from a callback of the run. The farm must answer during the callback,
 * because it has a thread for requests. */
static void look_and_set(const kilter_outcome *outcome, void *user) {
    tuned *t = user;
    (void)outcome;
    if (t->once)
        return;
    t->once = true;
    if (!t->tuner)
        attach(t);
    assert_int_equal(kl_tuner_set(t->tuner, &t->setting, t->answer, NULL), KILTER_OK);
    assert_int_equal(kl_tuner_look(t->tuner, &t->seen, NULL), KILTER_OK);
}

static uint32_t run_with(tuned *t, kl_control_setting setting) {
    kilter_farm_summary summary;
    kilter_run run = {.tasks = 3000, .done = look_and_set, .user = t};
    t->setting = setting;
    t->once = false;
    assert_int_equal(kilter_farm_run(t->farm, &run, NULL), KILTER_OK);
    kilter_farm_summary_get(t->farm, &summary);
    assert_int_equal(summary.tasks, 3000);
    return summary.workers;
}

static void a_farm_is_tuned_from_its_own_callback(void **state) {
    (void)state;
    tuned t = {0};
    assert_int_equal(kl_private_dir(&t.folder, NULL), KILTER_OK);
    snprintf(t.record, sizeof t.record, "%s/a.kilter", t.folder);
    kilter_farm_options options = {
        .work = square, .transport = "inproc", .workers = 3, .record = t.record, .name = "tuned"};
    assert_int_equal(kilter_farm_open(&options, NULL, NULL, &t.farm, NULL), KILTER_OK);
    run_with(&t, (kl_control_setting){.workers_given = true, .workers = 1});
    assert_non_null(strstr(t.answer, "next run"));
    assert_string_equal(t.seen.program, "tuned");
    assert_string_equal(t.seen.transport, "inproc");
    assert_int_equal(t.seen.tasks, 3000);
    assert_int_equal(t.seen.present + t.seen.resting, 3);
    assert_int_equal(run_with(&t, (kl_control_setting){.policy_given = true, .policy = "ss"}), 1);
    assert_int_equal(t.seen.resting, 2);
    assert_int_equal(t.seen.workers_set, 1);
    run_with(&t, (kl_control_setting){.workers_given = true, .workers = 0});
    assert_string_equal(t.seen.policy, "ss");
    /* requests must also be answered between two runs; then only the farm's service thread can do so */
    kl_control_setting factor = {.policy_given = true, .policy = "fsc", .factor_given = true, .factor = 0.5};
    assert_int_equal(kl_tuner_set(t.tuner, &factor, t.answer, NULL), KILTER_OK);
    run_with(&t, (kl_control_setting){.factor_given = true, .factor = 0.1});
    assert_string_equal(t.seen.policy, "fsc");
    assert_non_null(strstr(t.answer, "next batch"));
    assert_int_equal(kl_tuner_look(t.tuner, &t.seen, NULL), KILTER_OK);
    assert_true(t.seen.factor == 0.1 && !t.seen.running && t.seen.done == 3000);
    assert_int_equal(kilter_farm_close(t.farm, NULL), KILTER_OK);
    assert_int_equal(kl_tuner_look(t.tuner, &t.seen, NULL), KILTER_ERR_PEER);
    assert_true(kl_tuner_ended(t.tuner));
    kl_tuner_detach(t.tuner);
    unlink(t.record);
    rmdir(t.folder);
    free(t.folder);
}

/* Set a smaller number of workers in a farm that releases workers. The processes of the released workers
 * must end, and the farm must continue. */
static void released_processes_end(void **state) {
    (void)state;
    tuned t = {0};
    assert_int_equal(kl_private_dir(&t.folder, NULL), KILTER_OK);
    snprintf(t.record, sizeof t.record, "%s/a.kilter", t.folder);
    kilter_farm_options options = {
        .work = square, .workers = 3, .release = true, .record = t.record, .name = "tuned"};
    assert_int_equal(kilter_farm_open(&options, NULL, NULL, &t.farm, NULL), KILTER_OK);
    run_with(&t, (kl_control_setting){.workers_given = true, .workers = 1});
    for (int run = 0; run < 3; run++) {
        assert_int_equal(run_with(&t, (kl_control_setting){.workers_given = true, .workers = 0}), 1);
        assert_true(t.seen.present == 1 && t.seen.resting == 0);
    }
    assert_int_equal(kilter_farm_close(t.farm, NULL), KILTER_OK);
    kl_tuner_detach(t.tuner);
    kl_report *report;
    assert_int_equal(kl_report_read(t.record, &report, NULL), KILTER_OK);
    uint32_t left = 0;
    for (size_t i = 0; i < report->worker_count; i++)
        left += report->workers[i].why && strstr(report->workers[i].why, "released") != NULL;
    assert_int_equal(left, 2);
    kl_report_free(report);
    unlink(t.record);
    rmdir(t.folder);
    free(t.folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_setting_is_taken_or_refused_as_a_whole),
        cmocka_unit_test(a_factor_alone_holds_from_the_next_batch_on),
        cmocka_unit_test(what_was_asked_for_later_wins),
        cmocka_unit_test(what_is_not_known_is_not_shown_as_a_number),
        cmocka_unit_test(what_waits_is_shown_in_words),
        /* run this test, which starts worker processes, before the next test, which starts threads */
        cmocka_unit_test(released_processes_end),
        cmocka_unit_test(a_farm_is_tuned_from_its_own_callback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
