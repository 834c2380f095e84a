/* Means over the measurements of several runs. */
#include <math.h>
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

kilter_status kl_report_means(const char *path, uint64_t first, kl_report_mean *list, size_t count,
                              kilter_error *error) {
    means m = {list, count};
    for (size_t i = 0; i < count; i++)
        list[i].value = (double)NAN;
    return kl_record_ask(path,
                         "SELECT kind, avg(value) FROM measurement WHERE (worker IS NULL OR worker < 0) AND "
                         "at_s >= (SELECT began_s FROM iteration WHERE run = ?1) GROUP BY kind",
                         (int64_t)first, take_mean, &m, error);
}
