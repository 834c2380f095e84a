/* Summarise a record, for a list of records. Only a few of its rows are read. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/reading.h"

static void take_run(kl_reading *r, sqlite3_stmt *row) {
    kl_outline *o = r->outline;
    if (o->program)
        return; /* only the first row counts; a valid record has no other row */
    o->program = kl_text_at(r, row, 0);
    o->began_unix_s = kl_record_real(row, 1);
    o->elapsed_s = kl_record_real(row, 2);
    o->ended = sqlite3_column_type(row, 2) != SQLITE_NULL;
    o->folder = kl_text_at(r, row, 3);
}

static void take_last(kl_reading *r, sqlite3_stmt *row) {
    if (!r->outline->ended)
        r->outline->elapsed_s = kl_record_real(row, 0);
}

static void take_runs(kl_reading *r, sqlite3_stmt *row) {
    r->outline->runs = kl_count_at(row, 0);
    r->outline->tasks = kl_count_at(row, 1);
    r->outline->failed = kl_count_at(row, 2);
}

static void take_status(kl_reading *r, sqlite3_stmt *row) {
    r->outline->status = kl_text_or_null(r, row, 0);
}

static void take_loop(kl_reading *r, sqlite3_stmt *row) {
    r->outline->executions = kl_count_at(row, 0);
    r->outline->rounds = kl_count_at(row, 1);
    r->outline->status = kl_text_or_null(r, row, 2);
}

static void take_watched(kl_reading *r, sqlite3_stmt *row) {
    r->outline->executions = kl_count_at(row, 0);
    r->outline->status = kl_text_or_null(r, row, 1);
}

/* Read the numbers of runs and tasks of a farm, and the latest time at which a chunk ended. A chunk is
 * recorded when it ends, so this time is in one of the last 1000 rows of the table `chunk`. */
static bool read_farm(kl_reading *r) {
    return kl_each_row(r, "SELECT count(*), sum(tasks), sum(failed) FROM iteration", take_runs) &&
           kl_each_row(r, "SELECT status FROM iteration ORDER BY run DESC LIMIT 1", take_status) &&
           kl_each_row(r, "SELECT max(ended_s) FROM (SELECT ended_s FROM chunk ORDER BY id DESC LIMIT 1000)",
                       take_last);
}

static bool read_loop(kl_reading *r) {
    return kl_each_row(r,
                       "SELECT coalesce(executions, (SELECT max(execution) FROM round)), "
                       "coalesce(rounds, (SELECT max(round) FROM round)), status FROM loop LIMIT 1",
                       take_loop) &&
           kl_each_row(r, "SELECT max(at_s) FROM round", take_last);
}

static bool read_rows(kl_reading *r) {
    bool has_folder = kl_has_column(r, "run", "folder");
    kl_outline *o = r->outline;
    o->loop = kl_has_table(r, "loop");
    o->results = kl_has_table(r, "result");
    o->watched = kl_has_table(r, "watched");
    return kl_each_row(r,
                       has_folder ? "SELECT program, began_unix_s, ended_s, folder FROM run"
                                  : "SELECT program, began_unix_s, ended_s, '' FROM run",
                       take_run) &&
           (o->loop      ? read_loop(r)
            : o->watched ? kl_each_row(r, "SELECT iterations, status FROM watched", take_watched)
                         : read_farm(r));
}

kilter_status kl_outline_read(const char *path, kl_outline *outline, kilter_error *error) {
    kl_reading r = {.outline = outline};
    *outline = (kl_outline){.elapsed_s = (double)NAN};
    kilter_status status = kl_reading_open(&r, path, error);
    if (status == KILTER_OK && !read_rows(&r))
        status = kl_reading_failed(&r, path, error);
    else if (status == KILTER_OK && !outline->program)
        status = kl_no_record(path, "it is damaged (no run in it)", error);
    sqlite3_close(r.db);
    if (status != KILTER_OK)
        kl_outline_free(outline);
    return status;
}

void kl_outline_free(kl_outline *outline) {
    free(outline->program);
    free(outline->folder);
    free(outline->status);
    *outline = (kl_outline){0};
}
