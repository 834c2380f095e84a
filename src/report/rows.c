/* For each table of a record: the columns that a report reads, and the members of its JSON output, in this
 * order. */
#include "report/fields.h"

#define READ NULL /* marks a field that is not printed */

#define ROW kl_report_run
static const kl_field run_fields[] = {
    KL_FIELD(TEXT, program),
    KL_FIELD(TEXT, version),
    KL_FIELD(TEXT, transport),
    KL_FIELD(TEXT, policy),
    KL_FIELD_AS(TEXT, host, "name", "host"),
    KL_FIELD(SIGNED, pid),
    KL_FIELD(REAL, began_unix_s),
    KL_FIELD_AS(KNOWN, ended, "ended_s", "ended"),
    KL_FIELD(REAL, ended_s),
    KL_FIELD(COUNT, dropped_rows),
    {KL_FIELD_TEXT, offsetof(ROW, control), "control", READ, .later = true},
};
#undef ROW
const kl_rows kl_run_rows = KL_ROWS(kl_report_run, "run", "LEFT JOIN host USING (host)", run_fields);

#define ROW kl_report_session
static const kl_field session_fields[] = {KL_FIELD(REAL, began_s), KL_FIELD(REAL, ended_s),
                                          KL_FIELD(COUNT, first_run)};
#undef ROW
const kl_rows kl_session_rows = KL_ROWS(kl_report_session, "session", "ORDER BY session", session_fields);

#define ROW kl_report_worker
static const kl_field worker_fields[] = {KL_FIELD(NUMBER, worker),   KL_FIELD_AS(TEXT, host, "name", "host"),
                                         KL_FIELD(TEXT, binding),    KL_FIELD(SIGNED, pid),
                                         KL_FIELD(REAL, joined_s),   KL_FIELD(REAL, left_s),
                                         KL_FIELD(TEXT_OR_NULL, why)};
#undef ROW
const kl_rows kl_worker_rows =
    KL_ROWS(kl_report_worker, "worker", "LEFT JOIN host USING (host) ORDER BY worker", worker_fields);

#define ROW kl_report_iteration
static const kl_field iteration_fields[] = {
    KL_FIELD(COUNT, run),
    KL_FIELD(COUNT, tasks),
    KL_FIELD_LATER(COUNT, stored),
    KL_FIELD(REAL, units),
    KL_FIELD(TEXT, policy),
    KL_FIELD(COUNT, shared_bytes),
    KL_FIELD(REAL, began_s),
    KL_FIELD_AS(KNOWN, ended, "ended_s", "ended"),
    KL_FIELD_AS(REAL, elapsed_s, "ended_s - began_s", "elapsed_s"),
    KL_FIELD_AS(COUNT, tasks_done, NULL, "tasks_done"),
    KL_FIELD(COUNT, failed),
    KL_FIELD(COUNT, chunks),
    KL_FIELD_AS(NUMBER, workers, "workers", "worker_count"),
    KL_FIELD(REAL, bound_s),
    KL_FIELD_AS(REAL, efficiency, NULL, "efficiency"),
    KL_FIELD(REAL, equal_split_s),
    KL_FIELD_AS(REAL, equal_split_efficiency, NULL, "equal_split_efficiency"),
    KL_FIELD(TEXT_OR_NULL, decision),
    KL_FIELD(TEXT_OR_NULL, status),
};
#undef ROW
const kl_rows kl_iteration_rows = KL_ROWS(kl_report_iteration, "iteration", "ORDER BY run", iteration_fields);

#define ROW                 kl_report_share
#define DERIVED(type, name) KL_FIELD_AS(type, name, NULL, #name)
static const kl_field share_fields[] = {
    DERIVED(NUMBER, worker),       DERIVED(COUNT, tasks),  DERIVED(REAL, task_share),
    DERIVED(REAL, units),          DERIVED(COUNT, chunks), DERIVED(COUNT, failed),
    DERIVED(COUNT, lost_chunks),   DERIVED(REAL, busy_s),  DERIVED(REAL, busy_share),
    DERIVED(REAL, speed_relative), DERIVED(REAL, task_s),  DERIVED(REAL, unit_s),
    DERIVED(REAL, unit_sd)};
#undef ROW
const kl_rows kl_share_rows = KL_ROWS(kl_report_share, "", "", share_fields);

/* Only decisions about the whole farm or loop are read one by one. Other decisions are counted, because there
 * may be a million of them. */
#define ROW kl_report_decided
static const kl_field decided_fields[] = {
    KL_FIELD(TEXT, kind),       KL_FIELD(REAL, at_s),    KL_FIELD(COUNT, run),       KL_FIELD(COUNT, round),
    KL_FIELD(SUBJECT, subject), KL_FIELD(COUNT, count),  KL_FIELD(REAL, forecast_s), KL_FIELD(REAL, gain_s),
    KL_FIELD(REAL, cost_s),     KL_FIELD(TEXT, reason),  KL_FIELD(REAL, settled_s),  KL_FIELD(REAL, came_s),
    KL_FIELD(REAL, spent_s),    KL_FIELD(TRUTH, refused)};
#undef ROW
const kl_rows kl_decided_rows =
    KL_ROWS(kl_report_decided, "decision", "WHERE subject IS NULL ORDER BY id", decided_fields);

/* This query has max(id). SQLite then takes the other columns from the row with the greatest id, which is the
 * last decision of its kind. */
#define ROW kl_report_decision
static const kl_field decision_fields[] = {
    KL_FIELD(TEXT, kind),
    KL_FIELD_AS(COUNT, decisions, "count(*)", "decisions"),
    KL_FIELD_AS(COUNT, tasks, "sum(CASE WHEN chunk IS NULL THEN 0 ELSE count END)", "tasks"),
    KL_FIELD_AS(TEXT, last_reason, "reason", "last_reason"),
    KL_FIELD_AS(REAL, last_s, "at_s", READ),
    KL_FIELD_AS(COUNT, forecasts, NULL, "forecasts"),
    KL_FIELD_AS(REAL, late_s, "NULL", "late_s"),
    KL_FIELD_AS(REAL, missed_s, "NULL", "missed_s"),
};
#undef ROW
const kl_rows kl_decision_rows =
    KL_ROWS(kl_report_decision, "decision", "GROUP BY kind HAVING max(id) IS NOT NULL ORDER BY kind",
            decision_fields);

#define ROW kl_report_measurement
static const kl_field measurement_fields[] = {KL_FIELD(TEXT, kind), KL_FIELD(SUBJECT, worker),
                                              KL_FIELD(REAL, at_s), KL_FIELD(REAL, value),
                                              KL_FIELD(REAL, sd),   KL_FIELD(COUNT, count)};
#undef ROW
const kl_rows kl_measurement_rows =
    KL_ROWS(kl_report_measurement, "measurement",
            "GROUP BY kind, worker HAVING max(id) IS NOT NULL ORDER BY kind, worker", measurement_fields);

#define ROW kl_report_loop
static const kl_field loop_fields[] = {
    KL_FIELD(TEXT, name),
    KL_FIELD(TEXT, kind),
    KL_FIELD(COUNT, iterations),
    KL_FIELD(COUNT, inner),
    KL_FIELD_AS(COUNT, arrays, "(SELECT count(*) FROM array)", "arrays"),
    KL_FIELD_AS(COUNT, row_bytes, "(SELECT total(row_bytes) FROM array)", "row_bytes"),
    KL_FIELD(TRUTH, fixed),
    KL_FIELD_AS(KNOWN, ended, "ended_s", "ended"),
    KL_FIELD(REAL, ended_s),
    KL_FIELD(REAL, elapsed_s),
    KL_FIELD(COUNT, executions),
    KL_FIELD_AS(COUNT, rounds, "rounds", "round_count"),
    KL_FIELD_AS(COUNT, moves, "moves", "move_count"),
    KL_FIELD(COUNT, moved),
    KL_FIELD(COUNT, block),
    KL_FIELD(REAL, gained_s),
    KL_FIELD(REAL, came_s),
    KL_FIELD(REAL, cost_s),
    KL_FIELD(TEXT_OR_NULL, decision),
    KL_FIELD(TEXT_OR_NULL, status),
};
#undef ROW
const kl_rows kl_loop_rows = KL_ROWS(kl_report_loop, "loop", "ORDER BY loop", loop_fields);

#define ROW kl_report_rank
static const kl_field rank_fields[] = {DERIVED(COUNT, iterations),    DERIVED(COUNT, done),
                                       DERIVED(REAL, busy_s),         DERIVED(REAL, rate_per_s),
                                       DERIVED(REAL, believed_per_s), DERIVED(REAL, elapsed_s),
                                       DERIVED(REAL, waited_s),       DERIVED(REAL, moving_s)};
#undef ROW
const kl_rows kl_rank_rows = KL_ROWS(kl_report_rank, "", "", rank_fields);

#define ROW kl_report_round
static const kl_field round_fields[] = {
    KL_FIELD(COUNT, round), KL_FIELD(COUNT, execution), KL_FIELD(REAL, at_s),  KL_FIELD(REAL, period_s),
    KL_FIELD(REAL, now_s),  KL_FIELD(REAL, then_s),     KL_FIELD(COUNT, block)};
#undef ROW
const kl_rows kl_round_rows = KL_ROWS(kl_report_round, "round", "ORDER BY round", round_fields);

#define ROW kl_report_watched
static const kl_field watched_fields[] = {
    KL_FIELD(TEXT, mpi),
    KL_FIELD(TEXT, way),
    KL_FIELD(TEXT, reason),
    KL_FIELD(TEXT, status),
    KL_FIELD(SIGNED, exit_code),
    KL_FIELD(COUNT, other_calls),
    KL_FIELD(COUNT, spawned),
    KL_FIELD(COUNT, missing),
    KL_FIELD(NUMBER, ranks),
    KL_FIELD(REAL, elapsed_s),
    KL_FIELD(REAL, load_balance),
    KL_FIELD(REAL, communication),
    KL_FIELD(REAL, parallel),
    KL_FIELD(COUNT, iterations),
    KL_FIELD(COUNT, iteration_calls),
    KL_FIELD(REAL, iteration_s),
    KL_FIELD(REAL, alike),
    KL_FIELD(REAL, lost_constant),
    KL_FIELD(REAL, lost_slow),
    KL_FIELD(REAL, lost_fast),
    KL_FIELD_AS(REAL, even.least_s, "even_least_s", "even_least_s"),
    KL_FIELD_AS(REAL, even.most_s, "even_most_s", "even_most_s"),
    KL_FIELD_AS(REAL, follow.least_s, "follow_least_s", "follow_least_s"),
    KL_FIELD_AS(REAL, follow.most_s, "follow_most_s", "follow_most_s"),
    KL_FIELD(NUMBER, slowest),
    KL_FIELD(NUMBER, shared_ranks)};
#undef ROW
const kl_rows kl_watched_rows = KL_ROWS(kl_report_watched, "watched", "ORDER BY watched", watched_fields);

#define ROW kl_report_watched_rank
static const kl_field watched_rank_fields[] = {
    KL_FIELD(NUMBER, rank),     KL_FIELD(REAL, elapsed_s), KL_FIELD(REAL, useful_s), KL_FIELD(REAL, mpi_s),
    KL_FIELD(REAL, core_share), KL_FIELD(COUNT, calls),    KL_FIELD(TEXT, end)};
#undef ROW
const kl_rows kl_watched_rank_rows =
    KL_ROWS(kl_report_watched_rank, "watched_rank", "ORDER BY rank", watched_rank_fields);

#define ROW kl_report_watched_place
static const kl_field watched_place_fields[] = {KL_FIELD(TEXT, call), KL_FIELD(TEXT, place),
                                                KL_FIELD(COUNT, calls), KL_FIELD(REAL, mpi_s)};
#undef ROW
const kl_rows kl_watched_place_rows =
    KL_ROWS(kl_report_watched_place, "watched_place", "ORDER BY mpi_s DESC, id", watched_place_fields);

#define ROW kl_report_watched_slice
static const kl_field watched_slice_fields[] = {KL_FIELD(NUMBER, rank), KL_FIELD(REAL, began_s),
                                                KL_FIELD(REAL, length_s), KL_FIELD(REAL, useful_s)};
#undef ROW
const kl_rows kl_watched_slice_rows =
    KL_ROWS(kl_report_watched_slice, "watched_slice", "ORDER BY id", watched_slice_fields);
