/* Read the results that a record holds, while the writer of the record adds more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/record.h"

enum { BUSY_MS = 10000 };

struct kl_stored {
    char *path;
    sqlite3 *db;
    sqlite3_stmt *rows;
    kl_trace_call call;
    uint64_t tasks; /* number of tasks of the call, including tasks that were added */
};

static kilter_status fail_damaged(const char *path, const char *how, kilter_error *error) {
    return kl_fail(
        error, KILTER_ERR_RECORD,
        "reading results from the run record '%s': it is damaged (%s); restore a copy of it, or name another "
        "file",
        path, how);
}

static kilter_status open_database(kl_stored *s, kilter_error *error) {
    char *name = sqlite3_mprintf("%s%s", s->path[0] == '/' ? "" : "./", s->path);
    int status =
        name ? sqlite3_open_v2(name, &s->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) : SQLITE_NOMEM;
    sqlite3_free(name);
    if (status == SQLITE_OK) {
        sqlite3_busy_timeout(s->db, BUSY_MS);
        sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        status = sqlite3_exec(s->db, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0", NULL, NULL, NULL);
    }
    return status == SQLITE_OK ? KILTER_OK
                               : fail_damaged(s->path, s->db ? sqlite3_errmsg(s->db) : "no memory", error);
}

static kilter_status differs(const kl_stored *s, const char *what, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_USAGE,
                   "--resume: %s: run %llu has other %s than the stored run; start the program as it "
                   "was started then, %s",
                   s->path, kl_ull(s->call.call), what,
                   s->call.anyway ? "or name another file" : "name another file, or say --resume-anyway");
}

/* Return whether the call may have more tasks than before. `then` is the number of tasks that it had when its
 * results were stored. The stored results must belong to the first tasks of the call. This is not certain if
 * the program added tasks during the call. */
static bool may_have_more_tasks(const kl_stored *s, uint64_t then) {
    sqlite3_stmt *added = NULL;
    bool none =
        sqlite3_prepare_v2(s->db, "SELECT 1 FROM addition WHERE call = ?1", -1, &added, NULL) == SQLITE_OK &&
        sqlite3_bind_int64(added, 1, (int64_t)s->call.call) == SQLITE_OK &&
        sqlite3_step(added) == SQLITE_DONE;
    sqlite3_finalize(added);
    return none && s->call.anyway && s->call.tasks > then;
}

static kilter_status compare_row(const kl_stored *s, sqlite3_stmt *call, kilter_error *error) {
    const struct {
        uint64_t now;
        const char *name;
        bool may_differ;
    } parts[] = {{s->call.tasks, "tasks", may_have_more_tasks(s, (uint64_t)sqlite3_column_int64(call, 0))},
                 {s->call.inputs, "inputs", s->call.anyway},
                 {s->call.weights, "weights", s->call.anyway},
                 {s->call.shared, "shared data", s->call.anyway}};
    for (int i = 0; i < 4; i++)
        if ((uint64_t)sqlite3_column_int64(call, i) != parts[i].now && !parts[i].may_differ)
            return differs(s, parts[i].name, error);
    return KILTER_OK;
}

/* Compare a call of kilter_farm_run() with the same call in the record. It is no error if the record does not
 * have this call: the last master may have ended before it. */
static kilter_status compare(const kl_stored *s, kilter_error *error) {
    sqlite3_stmt *call = NULL;
    kilter_status status = KILTER_OK;
    int step = sqlite3_prepare_v2(s->db, "SELECT tasks, inputs, weights, shared FROM call WHERE call = ?1",
                                  -1, &call, NULL);
    if (step == SQLITE_OK && sqlite3_bind_int64(call, 1, (int64_t)s->call.call) == SQLITE_OK)
        step = sqlite3_step(call);
    if (step == SQLITE_ROW)
        status = compare_row(s, call, error);
    else if (step != SQLITE_DONE)
        status = fail_damaged(s->path, sqlite3_errmsg(s->db), error);
    sqlite3_finalize(call);
    return status;
}

/* Find the number of the newest row of results. */
static int last_row(const kl_stored *s, int64_t *id) {
    sqlite3_stmt *last = NULL;
    int status = sqlite3_prepare_v2(s->db, "SELECT max(id) FROM result", -1, &last, NULL);
    if (status == SQLITE_OK && (status = sqlite3_step(last)) == SQLITE_ROW)
        *id = sqlite3_column_int64(last, 0);
    sqlite3_finalize(last);
    return status;
}

/* Prepare the query for the stored results. Leave out rows that this master adds later. */
static kilter_status prepare(kl_stored *s, kilter_error *error) {
    const char *sql = s->call.in_order ? "SELECT lo, count, worker, results, sum FROM result "
                                         "WHERE call = ?1 AND id <= ?2 ORDER BY id"
                                       : "SELECT lo, count, worker, results, sum FROM result "
                                         "WHERE call = ?1 AND id <= ?2 ORDER BY lo, id";
    int64_t last = 0;
    if (last_row(s, &last) == SQLITE_ROW && sqlite3_prepare_v2(s->db, sql, -1, &s->rows, NULL) == SQLITE_OK &&
        sqlite3_bind_int64(s->rows, 1, (int64_t)s->call.call) == SQLITE_OK &&
        sqlite3_bind_int64(s->rows, 2, last) == SQLITE_OK)
        return KILTER_OK;
    return fail_damaged(s->path, sqlite3_errmsg(s->db), error);
}

kilter_status kl_stored_open(const char *path, const kl_trace_call *call, kl_stored **stored,
                             kilter_error *error) {
    kl_stored *s = calloc(1, sizeof *s);
    if (s)
        *s = (kl_stored){.path = strdup(path), .call = *call, .tasks = call->tasks};
    if (!s || !s->path) {
        free(s);
        return kl_fail(error, KILTER_ERR_MEMORY, "reading results from the run record '%s': memory ran out",
                       path);
    }
    kilter_status status = open_database(s, error);
    if (status == KILTER_OK)
        status = compare(s, error);
    if (status == KILTER_OK)
        status = prepare(s, error);
    if (status != KILTER_OK) {
        kl_stored_free(s);
        return status;
    }
    *stored = s;
    return KILTER_OK;
}

/* Read an addition of tasks. Return whether the added tasks directly follow all earlier tasks of the call. */
static bool take_addition(const kl_stored *s, sqlite3_stmt *rows, kl_trace_addition *a) {
    *a = (kl_trace_addition){.call = s->call.call,
                             .lo = (uint64_t)sqlite3_column_int64(rows, 0),
                             .tasks = (uint64_t)sqlite3_column_int64(rows, 1),
                             .inputs = (uint64_t)sqlite3_column_int64(rows, 2),
                             .weights = (uint64_t)sqlite3_column_int64(rows, 3)};
    return a->lo == s->tasks && a->tasks > 0 && a->tasks <= INT64_MAX - s->tasks;
}

static kilter_status take_additions(kl_stored *s, sqlite3_stmt *rows, kl_trace_addition **list, size_t *count,
                                    kilter_error *error) {
    uint64_t room = 0;
    int step;
    while ((step = sqlite3_step(rows)) == SQLITE_ROW) {
        kl_trace_addition *grown = kl_array_grow(*list, &room, *count + 1, sizeof *grown);
        if (!grown)
            return kl_fail(error, KILTER_ERR_MEMORY,
                           "reading results from the run record '%s': memory ran out", s->path);
        *list = grown;
        if (!take_addition(s, rows, &grown[*count]))
            return fail_damaged(s->path, "there are gaps between its added tasks, or they overlap", error);
        s->tasks += grown[(*count)++].tasks;
    }
    return step == SQLITE_DONE ? KILTER_OK : fail_damaged(s->path, sqlite3_errmsg(s->db), error);
}

kilter_status kl_stored_additions(kl_stored *s, kl_trace_addition **additions, size_t *count,
                                  kilter_error *error) {
    sqlite3_stmt *rows = NULL;
    kl_trace_addition *list = NULL;
    size_t found = 0;
    kilter_status status = KILTER_OK;
    if (sqlite3_prepare_v2(s->db,
                           "SELECT lo, tasks, inputs, weights FROM addition WHERE call = ?1 ORDER BY id", -1,
                           &rows, NULL) == SQLITE_OK &&
        sqlite3_bind_int64(rows, 1, (int64_t)s->call.call) == SQLITE_OK)
        status = take_additions(s, rows, &list, &found, error);
    else
        status = fail_damaged(s->path, sqlite3_errmsg(s->db), error);
    sqlite3_finalize(rows);
    if (status != KILTER_OK) {
        free(list);
        return status;
    }
    *additions = list;
    *count = found;
    return KILTER_OK;
}

/* Read a row of results, and check its checksum. */
static kilter_status take_row(const kl_stored *s, kl_trace_result_row *row, kilter_error *error) {
    int64_t lo = sqlite3_column_int64(s->rows, 0), count = sqlite3_column_int64(s->rows, 1),
            worker = sqlite3_column_int64(s->rows, 2);
    *row = (kl_trace_result_row){.call = s->call.call,
                                 .lo = (uint64_t)lo,
                                 .count = (uint64_t)count,
                                 .worker = (uint32_t)worker,
                                 .results = {.data = sqlite3_column_blob(s->rows, 3)}};
    row->results.size = (size_t)sqlite3_column_bytes(s->rows, 3);
    bool fits = lo >= 0 && count > 0 && worker >= 0 && worker <= UINT32_MAX && row->lo < s->tasks &&
                row->count <= s->tasks - row->lo;
    if (fits && (uint64_t)sqlite3_column_int64(s->rows, 4) == kl_result_sum(row))
        return KILTER_OK;
    char how[128];
    snprintf(how, sizeof how, "the results from task %lld of run %llu on are not what was written",
             (long long)lo, (unsigned long long)s->call.call);
    return fail_damaged(s->path, how, error);
}

kilter_status kl_stored_next(kl_stored *s, kl_trace_result_row *row, bool *got, kilter_error *error) {
    *got = false;
    int step = sqlite3_step(s->rows);
    if (step == SQLITE_DONE) {
        sqlite3_reset(s->rows);
        return KILTER_OK;
    }
    if ((step & 0xff) == SQLITE_NOMEM)
        return kl_fail(error, KILTER_ERR_MEMORY, "reading results from the run record '%s': memory ran out",
                       s->path);
    if (step != SQLITE_ROW)
        return fail_damaged(s->path, sqlite3_errmsg(s->db), error);
    *got = true;
    return take_row(s, row, error);
}

void kl_stored_free(kl_stored *s) {
    if (!s)
        return;
    sqlite3_finalize(s->rows);
    sqlite3_close(s->db);
    free(s->path);
    free(s);
}
