/* The rows of the record, and its tables. */
#include "trace/record.h"

/* clang-format off */
#define FIELD(type, row, member) {KL_FIELD_##type, offsetof(row, member)}
#define SHAPE(row) .size = sizeof(row)
#define RUN_FIELDS \
    .fields = {FIELD(TEXT, kl_trace_run_row, program), FIELD(TEXT, kl_trace_run_row, version), \
               FIELD(TEXT, kl_trace_run_row, transport), FIELD(TEXT, kl_trace_run_row, policy), \
               FIELD(TEXT, kl_trace_run_row, host), FIELD(F64, kl_trace_run_row, began_unix_s), \
               FIELD(I64, kl_trace_run_row, pid), FIELD(TEXT, kl_trace_run_row, control), \
               FIELD(TEXT, kl_trace_run_row, folder)}, \
    .field_count = 9

/* "OR REPLACE" and keys that nobody else gives: a row that comes twice must not end the recording. */
static const kl_row_shape shapes[KL_ROW_KINDS] = {
    [KL_ROW_RUN] = {SHAPE(kl_trace_run_row), RUN_FIELDS,
        .sql = {"INSERT OR IGNORE INTO host(name) VALUES (?5)",
                "INSERT INTO run(program, version, transport, policy, host, began_unix_s, pid, control, "
                "folder) VALUES (?1, ?2, ?3, ?4, (SELECT host FROM host WHERE name = ?5), ?6, ?7, ?8, ?9)"}},
    [KL_ROW_RUN_AGAIN] = {SHAPE(kl_trace_run_row), RUN_FIELDS,
        .sql = {"INSERT OR IGNORE INTO host(name) VALUES (?5)",
                "UPDATE run SET version = ?2, transport = ?3, policy = ?4, pid = ?7, control = ?8, "
                "host = (SELECT host FROM host WHERE name = ?5), ended_s = NULL"}},
    [KL_ROW_SESSION] = {SHAPE(kl_row_session),
        .fields = {FIELD(TIME, kl_row_session, began_s), FIELD(TEXT, kl_row_session, host),
                   FIELD(I64, kl_row_session, pid), FIELD(TEXT, kl_row_session, version),
                   FIELD(TEXT, kl_row_session, transport), FIELD(TEXT, kl_row_session, policy),
                   FIELD(RUN, kl_row_session, first_run), FIELD(WORKER, kl_row_session, first_worker),
                   FIELD(TEXT, kl_row_session, program_version)},
        .field_count = 9,
        .sql = {"INSERT INTO session(began_s, host, pid, version, transport, policy, first_run, first_worker, "
                "program_version) "
                "VALUES (?1, (SELECT host FROM host WHERE name = ?2), ?3, ?4, ?5, ?6, ?7, ?8, ?9)"}},
    [KL_ROW_RUN_ENDED] = {SHAPE(kl_row_run_ended),
        .fields = {FIELD(TIME, kl_row_run_ended, ended_s), FIELD(U64, kl_row_run_ended, dropped_rows)},
        .field_count = 2,
        .sql = {"UPDATE run SET ended_s = ?1, dropped_rows = dropped_rows + ?2",
                "UPDATE session SET ended_s = ?1 WHERE session = (SELECT max(session) FROM session)"}},
    [KL_ROW_WORKER] = {SHAPE(kl_trace_worker_row),
        .fields = {FIELD(WORKER, kl_trace_worker_row, worker), FIELD(TEXT, kl_trace_worker_row, host),
                   FIELD(TEXT, kl_trace_worker_row, binding), FIELD(I64, kl_trace_worker_row, pid),
                   FIELD(TIME, kl_trace_worker_row, joined_s)},
        .field_count = 5,
        .sql = {"INSERT OR IGNORE INTO host(name) VALUES (?2)",
                "INSERT OR REPLACE INTO worker(worker, host, binding, pid, joined_s) "
                "VALUES (?1, (SELECT host FROM host WHERE name = ?2), ?3, ?4, ?5)"}},
    [KL_ROW_WORKER_LEFT] = {SHAPE(kl_row_worker_left),
        .fields = {FIELD(WORKER, kl_row_worker_left, worker), FIELD(TIME, kl_row_worker_left, left_s),
                   FIELD(TEXT, kl_row_worker_left, why)},
        .field_count = 3,
        .sql = {"UPDATE worker SET left_s = ?2, why = ?3 WHERE worker = ?1"}},
    [KL_ROW_ITERATION] = {SHAPE(kl_trace_iteration_row),
        .fields = {FIELD(RUN, kl_trace_iteration_row, run), FIELD(U64, kl_trace_iteration_row, tasks),
                   FIELD(F64, kl_trace_iteration_row, units), FIELD(TEXT, kl_trace_iteration_row, policy),
                   FIELD(U64, kl_trace_iteration_row, shared_bytes),
                   FIELD(TIME, kl_trace_iteration_row, began_s), FIELD(U64, kl_trace_iteration_row, stored)},
        .field_count = 7,
        .sql = {"INSERT OR REPLACE INTO iteration(run, tasks, units, policy, shared_bytes, began_s, stored) "
                "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"}},
    [KL_ROW_ITERATION_ENDED] = {SHAPE(kl_trace_iteration_end),
        .fields = {FIELD(RUN, kl_trace_iteration_end, run), FIELD(U64, kl_trace_iteration_end, failed),
                   FIELD(U64, kl_trace_iteration_end, chunks), FIELD(U32, kl_trace_iteration_end, workers),
                   FIELD(TIME, kl_trace_iteration_end, ended_s), FIELD(F64, kl_trace_iteration_end, bound_s),
                   FIELD(F64_OR_NULL, kl_trace_iteration_end, equal_split_s),
                   FIELD(TEXT, kl_trace_iteration_end, decision),
                   FIELD(TEXT, kl_trace_iteration_end, status)},
        .field_count = 9,
        .sql = {"UPDATE iteration SET failed = ?2, chunks = ?3, workers = ?4, ended_s = ?5, bound_s = ?6, "
                "equal_split_s = ?7, decision = ?8, status = ?9 WHERE run = ?1"}},
    [KL_ROW_CHUNK] = {SHAPE(kl_trace_chunk_row), .bulk = true,
        .fields = {FIELD(RUN, kl_trace_chunk_row, run), FIELD(U64, kl_trace_chunk_row, chunk),
                   FIELD(U64, kl_trace_chunk_row, lo), FIELD(U64, kl_trace_chunk_row, hi),
                   FIELD(WORKER, kl_trace_chunk_row, worker), FIELD(F64, kl_trace_chunk_row, units),
                   FIELD(TIME, kl_trace_chunk_row, dealt_s), FIELD(TIME_OR_NULL, kl_trace_chunk_row, began_s),
                   FIELD(TIME_OR_NULL, kl_trace_chunk_row, ended_s), FIELD(F64, kl_trace_chunk_row, busy_s),
                   FIELD(U64, kl_trace_chunk_row, bytes_out), FIELD(U64, kl_trace_chunk_row, bytes_in),
                   FIELD(U64, kl_trace_chunk_row, failed), FIELD(BOOL, kl_trace_chunk_row, lost)},
        .field_count = 14,
        .sql = {"INSERT INTO chunk(run, chunk, lo, hi, worker, units, dealt_s, began_s, ended_s, busy_s, "
                "bytes_out, bytes_in, failed, lost) "
                "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"}},
    [KL_ROW_MEASUREMENT] = {SHAPE(kl_trace_measurement_row), .bulk = true,
        .fields = {FIELD(TIME, kl_trace_measurement_row, at_s),
                   FIELD(WORKER_OR_NULL, kl_trace_measurement_row, worker),
                   FIELD(TEXT, kl_trace_measurement_row, kind), FIELD(F64, kl_trace_measurement_row, value),
                   FIELD(F64, kl_trace_measurement_row, sd), FIELD(U64, kl_trace_measurement_row, count)},
        .field_count = 6,
        .sql = {"INSERT INTO measurement(at_s, worker, kind, value, sd, count) "
                "VALUES (?1, ?2, ?3, ?4, ?5, ?6)"}},
    [KL_ROW_DECISION] = {SHAPE(kl_row_decision), .bulk = true,
        .fields = {FIELD(TIME, kl_row_decision, at_s), FIELD(RUN, kl_row_decision, run),
                   FIELD(U64_OR_NULL, kl_row_decision, round), FIELD(U64_OR_NULL, kl_row_decision, chunk),
                   FIELD(TEXT, kl_row_decision, kind), FIELD(WORKER_OR_NULL, kl_row_decision, subject),
                   FIELD(U64, kl_row_decision, count), FIELD(TIME_OR_NULL, kl_row_decision, forecast_s),
                   FIELD(F64, kl_row_decision, gain_s), FIELD(F64, kl_row_decision, cost_s),
                   FIELD(TEXT, kl_row_decision, reason)},
        .field_count = 11,
        .sql = {"INSERT INTO decision(at_s, run, round, chunk, kind, subject, count, forecast_s, gain_s, cost_s, "
                "reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"}},
    [KL_ROW_FAILURE] = {SHAPE(kl_trace_failure_row), .bulk = true,
        .fields = {FIELD(RUN, kl_trace_failure_row, run), FIELD(U64, kl_trace_failure_row, task),
                   FIELD(U32, kl_trace_failure_row, attempt), FIELD(WORKER, kl_trace_failure_row, worker),
                   FIELD(TIME, kl_trace_failure_row, at_s), FIELD(BOOL, kl_trace_failure_row, lost),
                   FIELD(BOOL, kl_trace_failure_row, final),
                   FIELD(U64_OR_NULL, kl_trace_failure_row, code),
                   FIELD(U64_OR_NULL, kl_trace_failure_row, signal),
                   FIELD(TEXT, kl_trace_failure_row, text)},
        .field_count = 10,
        .sql = {"INSERT INTO failure(run, task, attempt, worker, at_s, lost, final, code, signal, text) "
                "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"}},
    [KL_ROW_ORIGIN] = {SHAPE(kl_trace_run_row),
        .fields = {FIELD(TEXT, kl_trace_run_row, arguments), FIELD(TEXT, kl_trace_run_row, build)},
        .field_count = 2,
        .sql = {"INSERT INTO origin(session, arguments, build) "
                "VALUES ((SELECT max(session) FROM session), ?1, ?2)"}},
    [KL_ROW_CALL] = {SHAPE(kl_trace_call),
        .fields = {FIELD(U64, kl_trace_call, call), FIELD(U64, kl_trace_call, tasks),
                   FIELD(I64, kl_trace_call, inputs), FIELD(I64, kl_trace_call, weights),
                   FIELD(I64, kl_trace_call, shared)},
        .field_count = 5,
        .sql = {"INSERT OR IGNORE INTO call(call, tasks, inputs, weights, shared) VALUES (?1, ?2, ?3, ?4, ?5)"}},
    [KL_ROW_ADDITION] = {SHAPE(kl_trace_addition),
        .fields = {FIELD(U64, kl_trace_addition, call), FIELD(U64, kl_trace_addition, lo),
                   FIELD(U64, kl_trace_addition, tasks), FIELD(I64, kl_trace_addition, inputs),
                   FIELD(I64, kl_trace_addition, weights)},
        .field_count = 5,
        .sql = {"INSERT INTO addition(call, lo, tasks, inputs, weights) VALUES (?1, ?2, ?3, ?4, ?5)"}},
    [KL_ROW_RESULT] = {SHAPE(kl_trace_result_row),
        .fields = {FIELD(U64, kl_trace_result_row, call), FIELD(U64, kl_trace_result_row, lo),
                   FIELD(U64, kl_trace_result_row, count), FIELD(WORKER, kl_trace_result_row, worker),
                   FIELD(BYTES, kl_trace_result_row, results), {KL_FIELD_SUM, 0}},
        .field_count = 6,
        .sql = {"INSERT INTO result(call, lo, count, worker, results, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"}},
    [KL_ROW_LOOP] = {SHAPE(kl_trace_loop_row),
        .fields = {FIELD(TEXT, kl_trace_loop_row, name), FIELD(TEXT, kl_trace_loop_row, kind),
                   FIELD(U64, kl_trace_loop_row, iterations), FIELD(U64, kl_trace_loop_row, inner),
                   FIELD(U32, kl_trace_loop_row, ranks), FIELD(BOOL, kl_trace_loop_row, fixed)},
        .field_count = 6,
        .sql = {"INSERT OR REPLACE INTO loop(loop, name, kind, iterations, inner, ranks, fixed) "
                "VALUES (0, ?1, ?2, ?3, ?4, ?5, ?6)"}},
    [KL_ROW_LOOP_ENDED] = {SHAPE(kl_trace_loop_end),
        .fields = {FIELD(TIME, kl_trace_loop_end, ended_s), FIELD(F64, kl_trace_loop_end, elapsed_s),
                   FIELD(U64, kl_trace_loop_end, executions), FIELD(U64, kl_trace_loop_end, rounds),
                   FIELD(U64, kl_trace_loop_end, moves), FIELD(U64, kl_trace_loop_end, moved),
                   FIELD(U64, kl_trace_loop_end, block), FIELD(F64, kl_trace_loop_end, gained_s),
                   FIELD(F64, kl_trace_loop_end, came_s), FIELD(F64, kl_trace_loop_end, cost_s),
                   FIELD(TEXT, kl_trace_loop_end, decision), FIELD(TEXT, kl_trace_loop_end, status)},
        .field_count = 12,
        .sql = {"UPDATE loop SET ended_s = ?1, elapsed_s = ?2, executions = ?3, rounds = ?4, moves = ?5, moved = ?6, "
                "block = ?7, gained_s = ?8, came_s = ?9, cost_s = ?10, decision = ?11, status = ?12"}},
    [KL_ROW_ARRAY] = {SHAPE(kl_trace_array_row),
        .fields = {FIELD(U64, kl_trace_array_row, array), FIELD(U64, kl_trace_array_row, row_bytes),
                   FIELD(U64, kl_trace_array_row, ghost)},
        .field_count = 3,
        .sql = {"INSERT OR REPLACE INTO array(array, row_bytes, ghost) VALUES (?1, ?2, ?3)"}},
    [KL_ROW_ROUND] = {SHAPE(kl_trace_round_row), .bulk = true,
        .fields = {FIELD(U64, kl_trace_round_row, round), FIELD(U64, kl_trace_round_row, execution),
                   FIELD(TIME, kl_trace_round_row, at_s), FIELD(F64, kl_trace_round_row, period_s),
                   FIELD(F64_OR_NULL, kl_trace_round_row, now_s),
                   FIELD(F64_OR_NULL, kl_trace_round_row, then_s), FIELD(U64, kl_trace_round_row, block)},
        .field_count = 7,
        .sql = {"INSERT OR REPLACE INTO round(round, execution, at_s, period_s, now_s, then_s, block) "
                "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"}},
    [KL_ROW_SHARE] = {SHAPE(kl_trace_share_row), .bulk = true,
        .fields = {FIELD(U64, kl_trace_share_row, round), FIELD(U32, kl_trace_share_row, rank),
                   FIELD(U64_OR_NULL, kl_trace_share_row, lo), FIELD(U64, kl_trace_share_row, count),
                   FIELD(U64, kl_trace_share_row, done), FIELD(F64, kl_trace_share_row, busy_s),
                   FIELD(F64, kl_trace_share_row, moving_s),
                   FIELD(F64_OR_NULL, kl_trace_share_row, rate_per_s)},
        .field_count = 8,
        .sql = {"INSERT INTO share(round, rank, lo, count, done, busy_s, moving_s, rate_per_s) "
                "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"}},
    [KL_ROW_SETTLED] = {SHAPE(kl_trace_outcome), .bulk = true,
        .fields = {FIELD(U64, kl_trace_outcome, round), FIELD(TIME, kl_trace_outcome, settled_s),
                   FIELD(F64, kl_trace_outcome, came_s), FIELD(F64, kl_trace_outcome, spent_s)},
        .field_count = 4,
        .sql = {"UPDATE decision SET settled_s = ?2, came_s = ?3, spent_s = ?4 WHERE round = ?1 AND kind = 'move'"}},
    [KL_ROW_REFUSED] = {SHAPE(kl_row_refused),
        .fields = {FIELD(U64, kl_row_refused, round)},
        .field_count = 1,
        .sql = {"UPDATE decision SET refused = 1 WHERE round = ?1 AND kind = 'move'"}},
    [KL_ROW_RANK] = {SHAPE(kl_trace_rank_row),
        .fields = {FIELD(U32, kl_trace_rank_row, rank), FIELD(U64, kl_trace_rank_row, iterations),
                   FIELD(F64, kl_trace_rank_row, elapsed_s), FIELD(F64, kl_trace_rank_row, waited_s),
                   FIELD(F64, kl_trace_rank_row, moving_s)},
        .field_count = 5,
        .sql = {"INSERT OR REPLACE INTO rank(rank, iterations, elapsed_s, waited_s, moving_s) "
                "VALUES (?1, ?2, ?3, ?4, ?5)"}},
};

/* Columns of chunk, measurement and decision grow at the end only and carry no index: a row costs least so.
 * A join finds its own index when it needs one. */
static const char *const tables[] = {
    "CREATE TABLE host(host INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "CREATE TABLE run(program TEXT NOT NULL, version TEXT NOT NULL, transport TEXT NOT NULL, "
        "policy TEXT NOT NULL, host INTEGER REFERENCES host, began_unix_s REAL, pid INTEGER NOT NULL, "
        "ended_s REAL, dropped_rows INTEGER NOT NULL DEFAULT 0, control TEXT, folder TEXT)",
    "CREATE TABLE worker(worker INTEGER PRIMARY KEY, host INTEGER REFERENCES host, binding TEXT NOT NULL, "
        "pid INTEGER NOT NULL, joined_s REAL, left_s REAL, why TEXT)",
    "CREATE TABLE iteration(run INTEGER PRIMARY KEY, tasks INTEGER NOT NULL, units REAL, "
        "policy TEXT NOT NULL, shared_bytes INTEGER NOT NULL, began_s REAL, failed INTEGER, chunks INTEGER, "
        "workers INTEGER, ended_s REAL, bound_s REAL, equal_split_s REAL, decision TEXT, status TEXT, "
        "stored INTEGER NOT NULL DEFAULT 0)",
    "CREATE TABLE chunk(id INTEGER PRIMARY KEY, run INTEGER NOT NULL, chunk INTEGER NOT NULL, "
        "lo INTEGER NOT NULL, hi INTEGER NOT NULL, worker INTEGER NOT NULL, units REAL, dealt_s REAL, "
        "began_s REAL, ended_s REAL, busy_s REAL, bytes_out INTEGER NOT NULL, bytes_in INTEGER NOT NULL, "
        "failed INTEGER NOT NULL, lost INTEGER NOT NULL)",
    "CREATE TABLE measurement(id INTEGER PRIMARY KEY, at_s REAL, worker INTEGER, kind TEXT NOT NULL, "
        "value REAL, sd REAL, count INTEGER NOT NULL)",
    "CREATE TABLE decision(id INTEGER PRIMARY KEY, at_s REAL, run INTEGER NOT NULL, round INTEGER, "
        "chunk INTEGER, kind TEXT NOT NULL, subject INTEGER, count INTEGER NOT NULL, forecast_s REAL, "
        "gain_s REAL, cost_s REAL, reason TEXT NOT NULL, settled_s REAL, came_s REAL, spent_s REAL, "
        "refused INTEGER NOT NULL DEFAULT 0)",
    "CREATE TABLE failure(id INTEGER PRIMARY KEY, run INTEGER NOT NULL, task INTEGER NOT NULL, "
        "attempt INTEGER NOT NULL, worker INTEGER NOT NULL, at_s REAL, lost INTEGER NOT NULL, "
        "final INTEGER NOT NULL, code INTEGER, "
        "signal INTEGER, text TEXT NOT NULL)",
    "CREATE TABLE session(session INTEGER PRIMARY KEY, began_s REAL, ended_s REAL, host INTEGER REFERENCES host, "
        "pid INTEGER NOT NULL, version TEXT NOT NULL, transport TEXT NOT NULL, policy TEXT NOT NULL, "
        "first_run INTEGER NOT NULL, first_worker INTEGER NOT NULL, program_version TEXT NOT NULL)",
    /* These four: only in a record that holds results. */
    "CREATE TABLE origin(session INTEGER PRIMARY KEY, arguments TEXT NOT NULL, build TEXT NOT NULL)",
    "CREATE TABLE call(call INTEGER PRIMARY KEY, tasks INTEGER NOT NULL, inputs INTEGER NOT NULL, "
        "weights INTEGER NOT NULL, shared INTEGER NOT NULL)",
    "CREATE TABLE addition(id INTEGER PRIMARY KEY, call INTEGER NOT NULL, lo INTEGER NOT NULL, "
        "tasks INTEGER NOT NULL, inputs INTEGER NOT NULL, weights INTEGER NOT NULL)",
    "CREATE TABLE result(id INTEGER PRIMARY KEY, call INTEGER NOT NULL, lo INTEGER NOT NULL, "
        "count INTEGER NOT NULL, worker INTEGER NOT NULL, results BLOB NOT NULL, sum INTEGER NOT NULL)",
    /* From here on: only in a loop's. */
    "CREATE TABLE loop(loop INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, "
        "iterations INTEGER NOT NULL, inner INTEGER NOT NULL, ranks INTEGER NOT NULL, fixed INTEGER NOT NULL, "
        "ended_s REAL, elapsed_s REAL, executions INTEGER, rounds INTEGER, moves INTEGER, moved INTEGER, "
        "block INTEGER, gained_s REAL, came_s REAL, cost_s REAL, decision TEXT, status TEXT)",
    "CREATE TABLE array(array INTEGER PRIMARY KEY, row_bytes INTEGER NOT NULL, ghost INTEGER NOT NULL)",
    "CREATE TABLE round(round INTEGER PRIMARY KEY, execution INTEGER NOT NULL, at_s REAL, period_s REAL, "
        "now_s REAL, then_s REAL, block INTEGER NOT NULL)",
    "CREATE TABLE share(id INTEGER PRIMARY KEY, round INTEGER NOT NULL, rank INTEGER NOT NULL, lo INTEGER, "
        "count INTEGER NOT NULL, done INTEGER NOT NULL, busy_s REAL, moving_s REAL, rate_per_s REAL)",
    "CREATE TABLE rank(rank INTEGER PRIMARY KEY, iterations INTEGER NOT NULL, elapsed_s REAL, waited_s REAL, "
        "moving_s REAL)",
};
enum { TABLES = sizeof tables / sizeof *tables, LOOP_TABLES = 5, RESULT_TABLES = 4 };
/* clang-format on */

const kl_row_shape *kl_row_shape_of(kl_row_kind kind) {
    return &shapes[kind];
}

bool kl_row_is_in(kl_row_kind kind, kl_record_parts parts) {
    return kind < KL_ROW_ORIGIN ? true : kind < KL_ROW_LOOP ? parts.results : parts.loop;
}

size_t kl_record_tables(void) {
    return TABLES;
}

const char *kl_record_table(size_t i, kl_record_parts parts) {
    const size_t first_of_loop = TABLES - LOOP_TABLES, first_of_results = first_of_loop - RESULT_TABLES;
    bool is_in = i < first_of_results ? true : i < first_of_loop ? parts.results : parts.loop;
    return is_in ? tables[i] : NULL;
}

uint64_t kl_result_sum(const kl_trace_result_row *row) {
    uint64_t hash = kl_hash(row->results.data, row->results.size, row->call);
    hash = kl_mix64(hash ^ row->lo);
    hash = kl_mix64(hash ^ row->count);
    return kl_mix64(hash ^ row->worker);
}
