/* Check whether a record can be continued, and find out where its last master stopped. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/record.h"

static kilter_status fail(const char *path, const char *why, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_RECORD, "continuing the run record '%s': %s; name another file", path,
                   why);
}

static kilter_status fail_damaged(const char *path, const char *how, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_RECORD,
                   "continuing the run record '%s': it is damaged or cut (%s); restore a copy of it, or name "
                   "another file",
                   path, how);
}

kilter_status kl_past_damaged(sqlite3 *db, const char *path, kilter_error *error) {
    int code = sqlite3_errcode(db) & 0xff;
    if (code == SQLITE_NOTADB)
        return fail(path, "it is not a run record", error);
    if (code == SQLITE_CORRUPT)
        return fail_damaged(path, sqlite3_errmsg(db), error);
    return fail(path, sqlite3_errmsg(db), error);
}

enum { ANSWER_BYTES = 256 };

/* Read the first column of a query's first row as text; "" for NULL. false: there is no row, or SQLite
 * failed. */
static bool ask(sqlite3 *db, const char *sql, char answer[ANSWER_BYTES]) {
    sqlite3_stmt *statement = NULL;
    bool got = sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
               sqlite3_step(statement) == SQLITE_ROW;
    if (got) {
        const char *text = (const char *)sqlite3_column_text(statement, 0);
        snprintf(answer, ANSWER_BYTES, "%s", text ? text : "");
    }
    sqlite3_finalize(statement);
    return got;
}

/* Return the first column of a query's first row as text of any length; the caller frees it. NULL: there is
 * no row, the column is NULL, SQLite failed, or memory ran out. */
static char *ask_long(sqlite3 *db, const char *sql) {
    sqlite3_stmt *statement = NULL;
    char *answer = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(statement, 0);
        answer = text ? strdup(text) : NULL;
    }
    sqlite3_finalize(statement);
    return answer;
}

static int64_t ask_number(sqlite3 *db, const char *sql) {
    char answer[ANSWER_BYTES];
    return ask(db, sql, answer) ? strtoll(answer, NULL, 10) : -1;
}

static kilter_status check_format(sqlite3 *db, const char *path, kilter_error *error) {
    int64_t application = ask_number(db, "PRAGMA application_id"),
            format = ask_number(db, "PRAGMA user_version");
    if (application < 0 || format < 0)
        return kl_past_damaged(db, path, error);
    if (application != KL_RECORD_APPLICATION || format < 1)
        return fail(path, "it is an SQLite file, but not a run record", error);
    if (format > KL_RECORD_FORMAT)
        return fail(path, "a later version of Kilter made it; use that version", error);
    if (format < KL_RECORD_FORMAT)
        return fail(path, "an earlier version of Kilter made it; use that version", error);
    if (ask_number(db, "SELECT count(*) FROM sqlite_master WHERE name IN ('call', 'result')") != 2)
        return fail(path, "it holds no results, as it was not made with --resume", error);
    return KILTER_OK;
}

/* Return whether the file's last page is complete. SQLite would read missing bytes as zeros. If there is a
 * log (WAL), it may have the complete page. */
static bool last_page_is_whole(sqlite3 *db, const char *path) {
    struct stat info;
    int64_t page_bytes = ask_number(db, "PRAGMA page_size");
    char *log = sqlite3_mprintf("%s-wal", path);
    bool logged = !log || (stat(log, &info) == 0 && info.st_size > 0);
    sqlite3_free(log);
    return logged || page_bytes <= 0 || stat(path, &info) != 0 || info.st_size % page_bytes == 0;
}

static kilter_status check_whole(sqlite3 *db, const char *path, kilter_error *error) {
    char found[ANSWER_BYTES];
    if (!ask(db, "PRAGMA quick_check(1)", found))
        return kl_past_damaged(db, path, error);
    if (strcmp(found, "ok") != 0)
        return fail_damaged(path, found, error);
    if (!last_page_is_whole(db, path))
        return fail_damaged(path, "its last page is not whole", error);
    return KILTER_OK;
}

/* Fail if the record's value of `what` is not `own`, the value of this program. */
static kilter_status check_same(sqlite3 *db, const char *path, const char *sql, const char *what,
                                const char *own, kilter_error *error) {
    char found[ANSWER_BYTES], cut[ANSWER_BYTES], why[2 * ANSWER_BYTES + 64];
    if (!ask(db, sql, found))
        return fail_damaged(path, "no run in it", error);
    snprintf(cut, sizeof cut, "%s", own ? own : "");
    if (strcmp(found, cut) == 0)
        return KILTER_OK;
    snprintf(why, sizeof why, "its %s is '%s', but that of this program is '%s'", what, found, cut);
    return fail(path, why, error);
}

static kilter_status check_program(sqlite3 *db, const char *path, const kl_trace_run_row *run,
                                   kilter_error *error) {
    kilter_status status = check_same(db, path, "SELECT program FROM run", "program", run->program, error);
    if (status == KILTER_OK)
        status = check_same(db, path, "SELECT program_version FROM session ORDER BY session DESC",
                            "program version", run->program_version, error);
    return status;
}

/* Return a position shortly before the first difference of two texts, so that up to 10 equal bytes are shown
 * before it. */
static size_t first_difference(const char *a, const char *b) {
    static const size_t SHOWN_BEFORE = 10;
    size_t at = 0;
    while (a[at] && a[at] == b[at])
        at++;
    return at > SHOWN_BEFORE ? at - SHOWN_BEFORE : 0;
}

static kilter_status fail_origin(const char *path, const char *what, const char *then, const char *now,
                                 kilter_error *error) {
    size_t from = first_difference(then, now);
    const char *dots = from > 0 ? "…" : "";
    return kl_fail(error, KILTER_ERR_USAGE,
                   "start the program as it was started then, name another file, or say --resume-anyway: the "
                   "results were made with other %s: %s%.60s then, %s%.60s now (%s)",
                   what, dots, *then ? then + from : "none", dots, *now ? now + from : "none", path);
}

/* Return whether any earlier master of this record had these arguments and this build. All earlier masters
 * count, because the last one may have stored nothing. */
static bool has_origin(sqlite3 *db, const char *arguments, const char *build) {
    sqlite3_stmt *origin = NULL;
    bool found = sqlite3_prepare_v2(db, "SELECT 1 FROM origin WHERE arguments = ?1 AND build = ?2", -1,
                                    &origin, NULL) == SQLITE_OK &&
                 sqlite3_bind_text(origin, 1, arguments, -1, SQLITE_STATIC) == SQLITE_OK &&
                 sqlite3_bind_text(origin, 2, build, -1, SQLITE_STATIC) == SQLITE_OK &&
                 sqlite3_step(origin) == SQLITE_ROW;
    sqlite3_finalize(origin);
    return found;
}

/* Check that the stored results were made with this program's arguments and build, unless the user allows
 * results of other arguments or builds. */
static kilter_status check_origin(sqlite3 *db, const char *path, const kl_trace_run_row *run,
                                  kilter_error *error) {
    const char *arguments = run->arguments ? run->arguments : "", *build = run->build ? run->build : "";
    char *then = ask_long(db, "SELECT arguments FROM origin ORDER BY session"),
         *built = ask_long(db, "SELECT build FROM origin ORDER BY session");
    kilter_status status = KILTER_OK;
    if (!then || !built)
        status = fail_damaged(path, "its arguments and build are missing", error);
    else if (!run->anyway && !has_origin(db, arguments, build))
        status = strcmp(then, arguments) != 0
                     ? fail_origin(path, "arguments", then, arguments, error)
                     : fail_origin(path, "builds of the program", built, build, error);
    free(then);
    free(built);
    return status;
}

/* Check that the record has a row for each run, even for a run without stored results. */
static kilter_status check_calls(sqlite3 *db, const char *path, int64_t calls, kilter_error *error) {
    int64_t there = ask_number(db, "SELECT count(*) FROM call"),
            with_results = ask_number(db, "SELECT coalesce(max(call) + 1, 0) FROM result");
    if (there < 0 || with_results < 0)
        return kl_past_damaged(db, path, error);
    return there == calls && with_results <= calls ? KILTER_OK : fail_damaged(path, "it lacks a run", error);
}

static double ask_time(sqlite3 *db, const char *sql) {
    char answer[ANSWER_BYTES];
    return ask(db, sql, answer) ? strtod(answer, NULL) : NAN;
}

/* Return the time at which this master begins, in seconds since the record began. The time comes from the
 * clock, but is at least the last recorded time, because the clock may have been set back. */
static double time_to_go_on_from(sqlite3 *db, double now_unix_s) {
    double by_clock_s = now_unix_s - ask_time(db, "SELECT began_unix_s FROM run");
    double last_s =
        ask_time(db, "SELECT max(t) FROM (SELECT max(ended_s) AS t FROM chunk "
                     "UNION ALL SELECT max(at_s) FROM measurement UNION ALL SELECT max(at_s) FROM decision "
                     "UNION ALL SELECT max(max(began_s), coalesce(max(ended_s), 0)) FROM session)");
    return fmax(0, fmax(by_clock_s, last_s));
}

kilter_status kl_past_read(sqlite3 *db, const char *path, const kl_trace_run_row *run, kl_past *past,
                           kilter_error *error) {
    kilter_status status = check_format(db, path, error);
    if (status == KILTER_OK)
        status = check_whole(db, path, error);
    if (status == KILTER_OK)
        status = check_program(db, path, run, error);
    if (status == KILTER_OK)
        status = check_origin(db, path, run, error);
    if (status != KILTER_OK)
        return status;
    int64_t runs = ask_number(db, "SELECT coalesce(max(run) + 1, 0) FROM iteration");
    int64_t workers = ask_number(db, "SELECT coalesce(max(worker) + 1, 0) FROM worker");
    int64_t calls = ask_number(db, "SELECT coalesce(max(call) + 1, 0) FROM call");
    if (runs < 0 || workers < 0 || workers > INT32_MAX || calls < 0)
        return kl_past_damaged(db, path, error);
    *past = (kl_past){.ended_s = time_to_go_on_from(db, run->began_unix_s),
                      .runs = runs,
                      .workers = workers,
                      .calls = (uint64_t)calls};
    return check_calls(db, path, calls, error);
}

int kl_past_end(sqlite3 *db) {
    return sqlite3_exec(db,
                        "UPDATE worker SET why = 'its master ended', left_s = max(joined_s, "
                        "coalesce((SELECT max(ended_s) FROM chunk), 0)) WHERE left_s IS NULL",
                        NULL, NULL, NULL);
}
