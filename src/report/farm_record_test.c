/* What a real farm records is what the report tells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "farm/farm.h"
#include "report/report.h"

static int work(const kilter_task *task, kilter_result *result, void *state) {
    (void)state;
    return task->index == 7 ? kilter_result_fail(result, "seven") : 0;
}

static void a_run_leaves_a_record_that_can_be_read(void **state) {
    (void)state;
    char *folder;
    assert_int_equal(kl_private_dir(&folder, NULL), KILTER_OK);
    char *path = kl_text("%s/run.kilter", folder);
    kilter_farm *farm;
    kilter_error error = {KILTER_OK, ""};
    kilter_farm_options options = {.work = work, .workers = 2, .record = path, .name = "recorded"};
    if (kilter_farm_open(&options, NULL, NULL, &farm, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    assert_int_not_equal(access(path, F_OK), 0); /* nothing before the first run */
    assert_int_equal(kilter_farm_run(farm, &(kilter_run){.tasks = 500}, &error), KILTER_ERR_TASK);
    assert_int_equal(kilter_farm_run(farm, &(kilter_run){.tasks = 5}, &error), KILTER_OK);
    assert_string_equal(kilter_farm_record(farm), path);
    kilter_farm_summary summary;
    kilter_farm_summary_get(farm, &summary);
    assert_true(summary.tasks == 5 && summary.failed == 0 && summary.chunks > 0 && summary.elapsed_s > 0);
    assert_true(summary.efficiency >= 0 && summary.efficiency <= 1);
    assert_non_null(strstr(summary.decision, "auto dealt 5 tasks"));
    assert_int_equal(kilter_farm_close(farm, NULL), KILTER_OK);

    kl_report *report;
    if (kl_report_read(path, &report, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    assert_int_equal(report->iteration_count, 2);
    assert_int_equal(report->iterations[0].tasks, 500);
    assert_int_equal(report->iterations[0].failed, 1);
    assert_int_equal(report->iterations[1].tasks, 5);
    kl_report_free(report);
    unlink(path);
    rmdir(folder);
    free(path);
    free(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_run_leaves_a_record_that_can_be_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
