/* Get the times of the tasks of a recorded run. The time of a task is the mean over its chunk, converted to a
 * worker of mean speed. */
#include "report/reading.h"
#include "report/report.h"

typedef struct asking {
    kl_task_times_fn take;
    void *context;
    uint64_t chunks;
} asking;

static void take_chunk(void *context, sqlite3_stmt *row) {
    asking *a = context;
    a->chunks++;
    a->take(a->context, (uint64_t)sqlite3_column_int64(row, 0), (uint64_t)sqlite3_column_int64(row, 1),
            kl_record_real(row, 2));
}

kilter_status kl_report_task_times(const char *path, int64_t run, kl_task_times_fn take, void *context,
                                   kilter_error *error) {
    asking a = {take, context, 0};
    kilter_status status = kl_record_ask(
        path,
        "WITH done AS (SELECT lo, hi, busy_s, worker FROM chunk WHERE hi > lo AND busy_s > 0 AND run = "
        "coalesce(nullif(?1, -1), (SELECT max(run) FROM iteration WHERE ended_s IS NOT NULL AND tasks > "
        "0))), "
        "speed AS (SELECT worker, sum(hi - lo)/sum(busy_s) AS rate FROM done GROUP BY worker) "
        "SELECT lo, hi, busy_s/(hi - lo)*rate/(SELECT avg(rate) FROM speed) FROM done JOIN speed USING "
        "(worker) "
        "ORDER BY lo",
        run, take_chunk, &a, error);
    if (status == KILTER_OK && a.chunks == 0)
        return kl_fail(
            error, KILTER_ERR_INPUT,
            "taking task times from the run record '%s': no run in it has ended with its tasks done", path);
    return status;
}
