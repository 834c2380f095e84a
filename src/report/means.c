/* Means over the measurements of several runs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/reading.h"
#include "report/report.h"

typedef struct means {
    kl_report_mean *list;
    size_t count;
} means;

static void take_mean(void *context, sqlite3_stmt *row) {
    const means *m = context;
    const char *kind = (const char *)sqlite3_column_text(row, 0);
    for (size_t i = 0; i < m->count; i++)
        if (kind && strcmp(kind, m->list[i].kind) == 0)
            m->list[i].value = kl_record_real(row, 1);
}

kilter_status kl_report_means(const char *path, const uint64_t runs[2], kl_report_mean *list, size_t count,
                              kilter_error *error) {
    means m = {list, count};
    char sql[512];
    for (size_t i = 0; i < count; i++)
        list[i].value = (double)NAN;
    snprintf(sql, sizeof sql,
             "SELECT kind, avg(value) FROM measurement WHERE (worker IS NULL OR worker < 0)"
             " AND typeof(value) IN ('real', 'integer') AND value >= 0"
             " AND at_s >= (SELECT began_s FROM iteration WHERE run = ?1)"
             " AND at_s < ifnull((SELECT min(began_s) FROM iteration WHERE run > %lld), 9e999) GROUP BY kind",
             (long long)runs[1]);
    return kl_record_ask(path, sql, (int64_t)runs[0], take_mean, &m, error);
}
