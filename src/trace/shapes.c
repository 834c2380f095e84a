/* Descriptions of the rows of a record. The tables, the SQL statements and the bound values follow from them.
 */
#include "trace/record.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
#define F(binding, row, member) {.column = #member, .bind = KL_BIND_##binding, .offset = offsetof(kl_trace_##row, member)}
#define FOUND(name, binding, member) {.column = (name), .bind = KL_BIND_##binding, .offset = offsetof(kl_trace_watched_row, found.member)}
#define KEY(binding, row, member) {#member, KL_BIND_##binding, offsetof(kl_trace_##row, member), NULL, true}
#define VALUE(name, binding, sql) {.column = (name), .bind = KL_BIND_##binding, .value = (sql)}
#define KEY_VALUE(name, binding, sql) {.column = (name), .bind = KL_BIND_##binding, .value = (sql), .key = true}
#define LAST_SESSION "(SELECT max(session) FROM session)"
#define ROW_OF(row, name, how) .table = (name), .verb = KL_VERB_##how, .size = sizeof(kl_trace_##row)

/* The rows of each kind. In a table with a unique key, a new row replaces a row with the same key. So a repeated row does not end the recording. The tables chunk, measurement and decision have no index, so that their rows cost least. New columns are added at the end of a table. */
static const kl_row_shape shapes[KL_ROW_KINDS] = {
    [KL_ROW_RUN] = {ROW_OF(run_row, "run", INSERT),
        .fields = {F(TEXT, run_row, program), F(TEXT, run_row, version), F(TEXT, run_row, transport),
                   F(TEXT, run_row, policy), F(HOST, run_row, host), F(F64, run_row, began_unix_s),
                   F(I64, run_row, pid), F(TEXT, run_row, control), F(TEXT, run_row, folder),
                   VALUE("dropped_rows", U64, "0")}},
    [KL_ROW_RUN_AGAIN] = {ROW_OF(run_row, "run", UPDATE),
        .fields = {F(TEXT, run_row, version), F(TEXT, run_row, transport), F(TEXT, run_row, policy),
                   F(HOST, run_row, host), F(I64, run_row, pid), F(TEXT, run_row, control),
                   VALUE("ended_s", F64, "NULL")}},
    [KL_ROW_ORIGIN] = {ROW_OF(run_row, "origin", INSERT),
        .fields = {KEY_VALUE("session", U64, LAST_SESSION), F(TEXT, run_row, arguments), F(TEXT, run_row, build)}},
    [KL_ROW_RUN_ENDED] = {ROW_OF(run_end, "run", UPDATE),
        .fields = {F(TIME, run_end, ended_s),
                   {"dropped_rows", KL_BIND_U64, offsetof(kl_trace_run_end, dropped_rows), "dropped_rows + ?", false}}},
    [KL_ROW_SESSION_ENDED] = {ROW_OF(run_end, "session", UPDATE),
        .fields = {F(TIME, run_end, ended_s), KEY_VALUE("session", U64, LAST_SESSION)}},
    [KL_ROW_SESSION] = {ROW_OF(session_row, "session", INSERT),
        .fields = {F(TIME, session_row, began_s), F(HOST, session_row, host), F(I64, session_row, pid), F(TEXT, session_row, version),
                   F(TEXT, session_row, transport), F(TEXT, session_row, policy), F(RUN, session_row, first_run),
                   F(WORKER, session_row, first_worker), F(TEXT, session_row, program_version)}},
    [KL_ROW_WORKER] = {ROW_OF(worker_row, "worker", REPLACE),
        .fields = {KEY(WORKER, worker_row, worker), F(HOST, worker_row, host), F(TEXT, worker_row, binding),
                   F(I64, worker_row, pid), F(TIME, worker_row, joined_s)}},
    [KL_ROW_WORKER_LEFT] = {ROW_OF(worker_left_row, "worker", UPDATE),
        .fields = {KEY(WORKER, worker_left_row, worker), F(TIME, worker_left_row, left_s), F(TEXT, worker_left_row, why)}},
    [KL_ROW_ITERATION] = {ROW_OF(iteration_row, "iteration", REPLACE),
        .fields = {KEY(RUN, iteration_row, run), F(U64, iteration_row, tasks), F(F64, iteration_row, units),
                   F(TEXT, iteration_row, policy), F(U64, iteration_row, shared_bytes),
                   F(TIME, iteration_row, began_s), F(U64, iteration_row, stored)}},
    [KL_ROW_ITERATION_ENDED] = {ROW_OF(iteration_end, "iteration", UPDATE),
        .fields = {KEY(RUN, iteration_end, run), F(U64, iteration_end, failed), F(U64, iteration_end, chunks),
                   F(U32, iteration_end, workers), F(TIME, iteration_end, ended_s), F(F64, iteration_end, bound_s),
                   F(F64_OR_NULL, iteration_end, equal_split_s), F(TEXT, iteration_end, decision),
                   F(TEXT, iteration_end, status)}},
    [KL_ROW_CHUNK] = {ROW_OF(chunk_row, "chunk", INSERT), .bulk = true,
        .fields = {F(RUN, chunk_row, run), F(U64, chunk_row, chunk), F(U64, chunk_row, lo), F(U64, chunk_row, hi),
                   F(WORKER, chunk_row, worker), F(F64, chunk_row, units), F(TIME, chunk_row, dealt_s),
                   F(TIME_OR_NULL, chunk_row, began_s), F(TIME_OR_NULL, chunk_row, ended_s),
                   F(F64, chunk_row, busy_s), F(U64, chunk_row, bytes_out), F(U64, chunk_row, bytes_in),
                   F(U64, chunk_row, failed), F(BOOL, chunk_row, lost)}},
    [KL_ROW_MEASUREMENT] = {ROW_OF(measurement_row, "measurement", INSERT), .bulk = true,
        .fields = {F(TIME, measurement_row, at_s), F(WORKER_OR_NULL, measurement_row, worker),
                   F(TEXT, measurement_row, kind), F(F64, measurement_row, value), F(F64, measurement_row, sd),
                   F(U64, measurement_row, count)}},
    [KL_ROW_DECISION] = {ROW_OF(decision_row, "decision", INSERT), .bulk = true,
        .fields = {F(TIME, decision_row, at_s), F(RUN, decision_row, run), F(U64_OR_NULL, decision_row, round),
                   F(U64_OR_NULL, decision_row, chunk), F(TEXT, decision_row, kind), F(WORKER_OR_NULL, decision_row, subject),
                   F(U64, decision_row, count), F(TIME_OR_NULL, decision_row, forecast_s), F(F64, decision_row, gain_s),
                   F(F64, decision_row, cost_s), F(TEXT, decision_row, reason), VALUE("refused", BOOL, "0"),
                   F(COPY, decision_row, grounds)}},
    [KL_ROW_SETTLED] = {ROW_OF(outcome, "decision", UPDATE), .bulk = true,
        .fields = {KEY(U64, outcome, round), KEY_VALUE("kind", TEXT, "'move'"), F(TIME, outcome, settled_s),
                   F(F64, outcome, came_s), F(F64, outcome, spent_s)}},
    [KL_ROW_CAME] = {ROW_OF(outcome, "decision", UPDATE),
        .fields = {KEY(U64, outcome, round), F(TIME, outcome, settled_s), F(F64, outcome, came_s),
                   F(F64, outcome, spent_s)}},
    [KL_ROW_REFUSED] = {ROW_OF(refused_row, "decision", UPDATE),
        .fields = {KEY(U64, refused_row, round), KEY_VALUE("kind", TEXT, "'move'"), VALUE("refused", BOOL, "1")}},
    [KL_ROW_FAILURE] = {ROW_OF(failure_row, "failure", INSERT), .bulk = true,
        .fields = {F(RUN, failure_row, run), F(U64, failure_row, task), F(U32, failure_row, attempt),
                   F(WORKER, failure_row, worker), F(TIME, failure_row, at_s), F(BOOL, failure_row, lost),
                   F(BOOL, failure_row, final), F(U64_OR_NULL, failure_row, code),
                   F(U64_OR_NULL, failure_row, signal), F(TEXT, failure_row, text)}},
    [KL_ROW_CALL] = {ROW_OF(call, "call", REPLACE),
        .fields = {KEY(U64, call, call), F(U64, call, tasks), F(I64, call, inputs), F(I64, call, weights),
                   F(I64, call, shared)}},
    [KL_ROW_ADDITION] = {ROW_OF(addition, "addition", INSERT),
        .fields = {F(U64, addition, call), F(U64, addition, lo), F(U64, addition, tasks), F(I64, addition, inputs),
                   F(I64, addition, weights)}},
    [KL_ROW_RESULT] = {ROW_OF(result_row, "result", INSERT),
        .fields = {F(U64, result_row, call), F(U64, result_row, lo), F(U64, result_row, count),
                   F(WORKER, result_row, worker), F(BYTES, result_row, results),
                   {.column = "sum", .bind = KL_BIND_SUM}}},
    [KL_ROW_LOOP] = {ROW_OF(loop_row, "loop", REPLACE),
        .fields = {KEY_VALUE("loop", U64, "0"), F(TEXT, loop_row, name), F(TEXT, loop_row, kind),
                   F(U64, loop_row, iterations), F(U64, loop_row, inner), F(U32, loop_row, ranks),
                   F(BOOL, loop_row, fixed)}},
    [KL_ROW_LOOP_ENDED] = {ROW_OF(loop_end, "loop", UPDATE),
        .fields = {F(TIME, loop_end, ended_s), F(F64, loop_end, elapsed_s), F(U64, loop_end, executions),
                   F(U64, loop_end, rounds), F(U64, loop_end, moves), F(U64, loop_end, moved),
                   F(U64, loop_end, block), F(F64, loop_end, gained_s), F(F64, loop_end, came_s),
                   F(F64, loop_end, cost_s), F(TEXT, loop_end, decision), F(TEXT, loop_end, status)}},
    [KL_ROW_ARRAY] = {ROW_OF(array_row, "array", REPLACE),
        .fields = {KEY(U64, array_row, array), F(U64, array_row, row_bytes), F(U64, array_row, ghost)}},
    [KL_ROW_ROUND] = {ROW_OF(round_row, "round", REPLACE), .bulk = true,
        .fields = {KEY(U64, round_row, round), F(U64, round_row, execution), F(TIME, round_row, at_s),
                   F(F64, round_row, period_s), F(F64_OR_NULL, round_row, now_s), F(F64_OR_NULL, round_row, then_s),
                   F(U64, round_row, block)}},
    [KL_ROW_SHARE] = {ROW_OF(share_row, "share", INSERT), .bulk = true,
        .fields = {F(U64, share_row, round), F(U32, share_row, rank), F(U64_OR_NULL, share_row, lo),
                   F(U64, share_row, count), F(U64, share_row, done), F(F64, share_row, busy_s),
                   F(F64, share_row, moving_s), F(F64_OR_NULL, share_row, rate_per_s)}},
    [KL_ROW_RANK] = {ROW_OF(rank_row, "rank", REPLACE),
        .fields = {KEY(U32, rank_row, rank), F(U64, rank_row, iterations), F(F64, rank_row, elapsed_s),
                   F(F64, rank_row, waited_s), F(F64, rank_row, moving_s)}},
    [KL_ROW_WATCHED] = {ROW_OF(watched_row, "watched", REPLACE),
        .fields = {KEY_VALUE("watched", U64, "0"), F(TEXT, watched_row, mpi), F(TEXT, watched_row, way), F(TEXT, watched_row, reason),
                   F(TEXT, watched_row, status), F(I64, watched_row, exit_code), F(U64, watched_row, other_calls),
                   F(U64, watched_row, spawned), F(U64, watched_row, missing), FOUND("ranks", U32, ranks), FOUND("elapsed_s", F64, elapsed_s),
                   FOUND("load_balance", F64, load_balance), FOUND("communication", F64, communication),
                   FOUND("parallel", F64, parallel), FOUND("iterations", U64, iterations),
                   FOUND("iteration_calls", U64, iteration_calls), FOUND("iteration_s", F64, iteration_s),
                   FOUND("alike", F64, alike), FOUND("lost_constant", F64, lost_constant),
                   FOUND("lost_slow", F64, lost_slow), FOUND("lost_fast", F64, lost_fast),
                   FOUND("even_least_s", F64, even.least_s), FOUND("even_most_s", F64, even.most_s),
                   FOUND("follow_least_s", F64, follow.least_s), FOUND("follow_most_s", F64, follow.most_s),
                   FOUND("slowest", U32, slowest), FOUND("shared_ranks", U32, shared_ranks)}},
    [KL_ROW_WATCHED_RANK] = {ROW_OF(watched_rank_row, "watched_rank", REPLACE),
        .fields = {KEY(U32, watched_rank_row, rank), F(F64, watched_rank_row, elapsed_s), F(F64, watched_rank_row, useful_s),
                   F(F64, watched_rank_row, mpi_s), F(F64, watched_rank_row, core_share), F(U64, watched_rank_row, calls),
                   F(TEXT, watched_rank_row, end)}},
    [KL_ROW_WATCHED_PLACE] = {ROW_OF(watched_place_row, "watched_place", INSERT),
        .fields = {F(TEXT, watched_place_row, call), F(TEXT, watched_place_row, place), F(U64, watched_place_row, calls),
                   F(F64, watched_place_row, mpi_s)}},
    [KL_ROW_WATCHED_SLICE] = {ROW_OF(watched_slice_row, "watched_slice", INSERT), .bulk = true,
        .fields = {F(U32, watched_slice_row, rank), F(F64, watched_slice_row, began_s), F(F64, watched_slice_row, length_s),
                   F(F64, watched_slice_row, useful_s)}},
};
/* clang-format on */

/* The tables of a record. own_key: name of the table's INTEGER PRIMARY KEY; NULL: the table has none. */
static const struct {
    const char *name, *own_key;
    enum { IN_ALL, WITH_RESULTS, OF_LOOPS, OF_WATCHED } part;
} tables[] = {
    {"run", NULL, IN_ALL},
    {"worker", NULL, IN_ALL},
    {"iteration", NULL, IN_ALL},
    {"chunk", "id", IN_ALL},
    {"measurement", "id", IN_ALL},
    {"decision", "id", IN_ALL},
    {"failure", "id", IN_ALL},
    {"session", "session", IN_ALL},
    {"origin", NULL, WITH_RESULTS},
    {"call", NULL, WITH_RESULTS},
    {"addition", "id", WITH_RESULTS},
    {"result", "id", WITH_RESULTS},
    {"loop", NULL, OF_LOOPS},
    {"array", NULL, OF_LOOPS},
    {"round", NULL, OF_LOOPS},
    {"share", "id", OF_LOOPS},
    {"rank", NULL, OF_LOOPS},
    {"watched", NULL, OF_WATCHED},
    {"watched_rank", NULL, OF_WATCHED},
    {"watched_place", "id", OF_WATCHED},
    {"watched_slice", "id", OF_WATCHED},
};
enum { TABLES = sizeof tables / sizeof *tables };

const kl_row_shape *kl_row_shape_of(kl_row_kind kind) {
    return &shapes[kind];
}

static bool table_is_in(size_t table, kl_record_parts parts) {
    switch (tables[table].part) {
    case WITH_RESULTS:
        return parts.results;
    case OF_LOOPS:
        return parts.loop;
    case OF_WATCHED:
        return parts.watched;
    default:
        return true;
    }
}

bool kl_row_is_in(kl_row_kind kind, kl_record_parts parts) {
    for (size_t i = 0; i < TABLES; i++)
        if (strcmp(tables[i].name, shapes[kind].table) == 0)
            return table_is_in(i, parts);
    return false;
}

/* ---- the SQL statements ---- */

static void add(kl_sql *sql, const char *text) {
    size_t at = strlen(sql->text);
    snprintf(sql->text + at, sizeof sql->text - at, "%s", text);
}

static void add_value(kl_sql *sql, const kl_row_field *field, size_t parameter) {
    const char *value = field->value                  ? field->value
                        : field->bind == KL_BIND_HOST ? "(SELECT host FROM host WHERE name = ?)"
                                                      : "?";
    const char *mark = strchr(value, '?');
    size_t at = strlen(sql->text);
    if (mark)
        snprintf(sql->text + at, sizeof sql->text - at, "%.*s?%zu%s", (int)(mark - value), value, parameter,
                 mark + 1);
    else
        add(sql, value);
}

static void add_insert(kl_sql *sql, const kl_row_shape *shape) {
    static const char *const verbs[] = {"INSERT", "INSERT OR REPLACE"};
    add(sql, verbs[shape->verb]);
    add(sql, " INTO ");
    add(sql, shape->table);
    for (size_t i = 0; shape->fields[i].column; i++) {
        add(sql, i ? ", " : "(");
        add(sql, shape->fields[i].column);
    }
    for (size_t i = 0; shape->fields[i].column; i++) {
        add(sql, i ? ", " : ") VALUES (");
        add_value(sql, &shape->fields[i], i + 1);
    }
    add(sql, ")");
}

/* Add "column = value" for each key field, or, if `keys` is false, for each other field. */
static void add_equations(kl_sql *sql, const kl_row_shape *shape, bool keys, const char *before,
                          const char *between) {
    bool first = true;
    for (size_t i = 0; shape->fields[i].column; i++) {
        if (shape->fields[i].key != keys)
            continue;
        add(sql, first ? before : between);
        add(sql, shape->fields[i].column);
        add(sql, " = ");
        add_value(sql, &shape->fields[i], i + 1);
        first = false;
    }
}

kl_sql kl_row_sql(kl_row_kind kind) {
    const kl_row_shape *shape = &shapes[kind];
    kl_sql sql = {.text = ""};
    if (shape->verb != KL_VERB_UPDATE) {
        add_insert(&sql, shape);
        return sql;
    }
    add(&sql, "UPDATE ");
    add(&sql, shape->table);
    add_equations(&sql, shape, false, " SET ", ", ");
    add_equations(&sql, shape, true, " WHERE ", " AND ");
    return sql;
}

kl_sql kl_host_sql(kl_row_kind kind) {
    kl_sql sql = {.text = ""};
    for (size_t i = 0; shapes[kind].fields[i].column; i++)
        if (shapes[kind].fields[i].bind == KL_BIND_HOST)
            snprintf(sql.text, sizeof sql.text, "INSERT OR IGNORE INTO host(name) VALUES (?%zu)", i + 1);
    return sql;
}

/* ---- the tables of the record ---- */

static const char *type_of(kl_bind bind) {
    switch (bind) {
    case KL_BIND_F64:
    case KL_BIND_F64_OR_NULL:
    case KL_BIND_TIME:
    case KL_BIND_TIME_OR_NULL:
        return "REAL";
    case KL_BIND_TEXT:
        return "TEXT";
    case KL_BIND_BYTES:
    case KL_BIND_COPY:
        return "BLOB";
    case KL_BIND_HOST:
        return "INTEGER REFERENCES host";
    default:
        return "INTEGER";
    }
}

/* Return whether an earlier field for the same table has the same column. */
static bool is_made(kl_row_kind kind, size_t field) {
    for (kl_row_kind k = 0; k <= kind; k++)
        for (size_t i = 0; strcmp(shapes[k].table, shapes[kind].table) == 0 && shapes[k].fields[i].column;
             i++)
            if ((k < kind || i < field) &&
                strcmp(shapes[k].fields[i].column, shapes[kind].fields[field].column) == 0)
                return true;
    return false;
}

static void add_columns(kl_sql *sql, kl_row_kind kind, const char *own_key, bool *first) {
    const kl_row_shape *shape = &shapes[kind];
    for (size_t i = 0; shape->fields[i].column; i++) {
        const kl_row_field *field = &shape->fields[i];
        bool key = field->key && shape->verb != KL_VERB_UPDATE;
        if (is_made(kind, i) || (own_key && strcmp(field->column, own_key) == 0))
            continue;
        add(sql, *first ? "" : ", ");
        add(sql, field->column);
        add(sql, " ");
        add(sql, type_of(field->bind));
        kl_bind bind = field->bind;
        bool may_be_null = shape->verb == KL_VERB_UPDATE || strcmp(type_of(bind), "REAL") == 0 ||
                           bind == KL_BIND_TEXT || bind == KL_BIND_HOST || bind == KL_BIND_COPY ||
                           bind == KL_BIND_U64_OR_NULL || bind == KL_BIND_WORKER_OR_NULL;
        add(sql, key ? " PRIMARY KEY" : may_be_null ? "" : " NOT NULL");
        *first = false;
    }
}

size_t kl_record_tables(void) {
    return TABLES;
}

kl_sql kl_record_table(size_t table, kl_record_parts parts) {
    kl_sql sql = {.text = ""};
    const char *own_key = tables[table].own_key;
    bool first = own_key == NULL;
    if (!table_is_in(table, parts))
        return sql;
    snprintf(sql.text, sizeof sql.text, "CREATE TABLE %s(%s%s", tables[table].name, own_key ? own_key : "",
             own_key ? " INTEGER PRIMARY KEY" : "");
    for (kl_row_kind kind = 0; kind < KL_ROW_KINDS; kind++)
        if (strcmp(shapes[kind].table, tables[table].name) == 0)
            add_columns(&sql, kind, own_key, &first);
    add(&sql, ")");
    return sql;
}

uint64_t kl_result_sum(const kl_trace_result_row *row) {
    uint64_t hash = kl_hash(row->results.data, row->results.size, row->call);
    hash = kl_mix64(hash ^ row->lo);
    hash = kl_mix64(hash ^ row->count);
    return kl_mix64(hash ^ row->worker);
}
