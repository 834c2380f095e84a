/* Read the record of an earlier farm, and find the number of workers with which a new farm should begin. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trace/record.h"

static kilter_status fail(const char *path, const char *why, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_USAGE, "--team %s: %s; name another record, or say auto", path, why);
}

/* Take the number of workers from a row, which has the program's name and this number. The number is NULL if
 * the farm was killed before it wrote one. */
static kilter_status take(sqlite3_stmt *row, const char *path, const char *program, uint32_t *workers,
                          kilter_error *error) {
    const char *of = (const char *)sqlite3_column_text(row, 0);
    char why[320];
    if (!of || strcmp(of, program) != 0) {
        snprintf(why, sizeof why, "it is a record of program '%.100s', but this program is '%.100s'",
                 of ? of : "", program);
        return fail(path, why, error);
    }
    int64_t number = sqlite3_column_int64(row, 1);
    *workers = number >= 1 && number <= UINT32_MAX ? (uint32_t)number : 0;
    return KILTER_OK;
}

kilter_status kl_record_team(const char *path, const char *program, uint32_t *workers, kilter_error *error) {
    static const char sql[] =
        "SELECT program, (SELECT count FROM decision WHERE kind IN ('team', 'workers') ORDER BY id DESC) "
        "FROM run";
    sqlite3 *db = NULL;
    sqlite3_stmt *row = NULL;
    kilter_status status;
    if (access(path, R_OK) != 0)
        return fail(path, strerror(errno), error);
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, sql, -1, &row, NULL) != SQLITE_OK)
        status = fail(path, db ? sqlite3_errmsg(db) : "memory ran out", error);
    else if (sqlite3_step(row) != SQLITE_ROW)
        status = fail(path, "it is not the run record of a farm, or it is damaged", error);
    else
        status = take(row, path, program, workers, error);
    sqlite3_finalize(row);
    sqlite3_close(db);
    return status;
}
