/* A decision from a record, and what came before it. Queries name the columns that are printed. */
#include <inttypes.h>

#include "report/print.h"
#include "report/reading.h"
#include "report/text.h"

typedef struct printer {
    FILE *out;
    bool json;
    kl_json array;
    const char *title; /* of the section, until its first row is printed; then NULL */
} printer;

/* Rows that are printed together. In the query ?1 is the number of the decision. */
typedef struct section {
    const char *name, *title, *sql;
    bool of_loop; /* the tables are in records of loops only */
} section;

#define DECISION_COLUMNS                                                                                     \
    "id, at_s, run, round, chunk, kind, subject, count, forecast_s, gain_s, cost_s, reason"
#define OF_DECISION " FROM decision d WHERE d.id = ?1"
#define BEFORE      "(SELECT coalesce(max(at_s), 0) FROM decision WHERE id < d.id)"

static const section list = {"decisions", "decisions",
                             "SELECT " DECISION_COLUMNS " FROM decision WHERE ?1 = 0 ORDER BY id", false};

/* A chunk stands in the record with the tasks that were counted, so tasks given back are not in hand here. */
static const section sections[] = {
    {"decision", "the decision", "SELECT " DECISION_COLUMNS OF_DECISION, false},
    {"outcome", "what came of it",
     "SELECT c.worker, c.hi - c.lo AS tasks, c.began_s, c.ended_s, c.ended_s - d.forecast_s AS late_s, "
     "c.lost "
     "FROM decision d JOIN chunk c ON c.run = d.run AND c.chunk = d.chunk WHERE d.id = ?1 ORDER BY c.id",
     false},
    {"progress", "the run at that moment",
     "SELECT i.run, i.policy, i.tasks, d.at_s - i.began_s AS elapsed_s, "
     "(SELECT coalesce(sum(hi - lo), 0) FROM chunk WHERE run = d.run AND ended_s <= d.at_s AND NOT lost) "
     "AS finished FROM decision d JOIN iteration i ON i.run = d.run WHERE d.id = ?1",
     false},
    /* Several decisions may have the same time: chunks are in hand that were numbered before the decision. */
    {"workers", "the workers at that moment",
     "WITH d AS MATERIALIZED (SELECT run, at_s, (SELECT min(l.chunk) FROM decision l "
     "WHERE l.run = d.run AND l.id >= d.id) AS next_chunk" OF_DECISION ") "
     "SELECT w.worker, h.name AS host, "
     "coalesce(sum(c.hi - c.lo) FILTER (WHERE c.ended_s <= d.at_s AND NOT c.lost), 0) AS finished, "
     "coalesce(sum(c.hi - c.lo) FILTER (WHERE c.ended_s > d.at_s), 0) AS in_hand, "
     "sum(c.busy_s) FILTER (WHERE c.ended_s <= d.at_s) / sum(c.units) FILTER (WHERE c.ended_s <= d.at_s) "
     "AS unit_s FROM d JOIN worker w ON w.joined_s <= d.at_s AND coalesce(w.left_s > d.at_s, 1) "
     "LEFT JOIN host h ON h.host = w.host "
     "LEFT JOIN chunk c ON c.worker = w.worker AND c.run = d.run AND c.dealt_s <= d.at_s "
     "AND coalesce(c.chunk < d.next_chunk, 1) GROUP BY w.worker ORDER BY w.worker",
     false},
    {"shares", "the ranks in that round",
     "SELECT s.rank, s.lo, s.count, s.done, s.busy_s, s.rate_per_s FROM decision d "
     "JOIN share s ON s.round = d.round WHERE d.id = ?1 ORDER BY s.rank",
     true},
    {"events", "since the decision before",
     "SELECT c.ended_s AS at_s, CASE WHEN c.lost THEN 'lost' ELSE 'finished' END AS event, c.worker, "
     "c.chunk, c.hi - c.lo AS tasks FROM decision d JOIN chunk c ON c.run = d.run "
     "AND c.ended_s > " BEFORE " AND c.ended_s <= d.at_s WHERE d.id = ?1 "
     "UNION ALL SELECT w.joined_s, 'joined', w.worker, NULL, NULL FROM decision d "
     "JOIN worker w ON w.joined_s > " BEFORE " AND w.joined_s <= d.at_s WHERE d.id = ?1 "
     "UNION ALL SELECT w.left_s, 'left', w.worker, NULL, NULL FROM decision d "
     "JOIN worker w ON w.left_s > " BEFORE " AND w.left_s <= d.at_s WHERE d.id = ?1 ORDER BY 1",
     false},
};

static void print_member(kl_json *j, sqlite3_stmt *row, int column) {
    const char *name = sqlite3_column_name(row, column);
    switch (sqlite3_column_type(row, column)) {
    case SQLITE_INTEGER:
        kl_json_signed(j, name, sqlite3_column_int64(row, column));
        break;
    case SQLITE_FLOAT:
        kl_json_number(j, name, sqlite3_column_double(row, column));
        break;
    default:
        kl_json_text(j, name, (const char *)sqlite3_column_text(row, column));
    }
}

static void print_word(FILE *out, sqlite3_stmt *row, int column) {
    enum { COLUMNS = 200 };
    char text[4 * COLUMNS + 1];
    const char *name = sqlite3_column_name(row, column);
    if (sqlite3_column_type(row, column) == SQLITE_NULL)
        return;
    if (sqlite3_column_type(row, column) == SQLITE_FLOAT) {
        fprintf(out, "  %s %.6f", name, sqlite3_column_double(row, column));
        return;
    }
    const char *from = (const char *)sqlite3_column_text(row, column);
    kl_printable(text, sizeof text, from ? from : "", COLUMNS);
    fprintf(out, "  %s %s", name, text);
}

static void print_row(void *context, sqlite3_stmt *row) {
    printer *p = context;
    if (p->title && !p->json)
        fprintf(p->out, "%s:\n", p->title);
    p->title = NULL;
    if (p->json)
        kl_json_open(&p->array, NULL, '{');
    for (int i = 0; i < sqlite3_column_count(row); i++)
        if (p->json)
            print_member(&p->array, row, i);
        else
            print_word(p->out, row, i);
    if (p->json)
        kl_json_close(&p->array, '}');
    else
        fputc('\n', p->out);
}

static void note_id(void *context, sqlite3_stmt *row) {
    *(int64_t *)context = sqlite3_column_int64(row, 0);
}

static kilter_status print_section(printer *p, const char *path, const section *s, int64_t id,
                                   kilter_error *error) {
    int64_t there = 1;
    kilter_status status = KILTER_OK;
    if (s->of_loop)
        status = kl_record_ask(path, "SELECT count(*) FROM sqlite_master WHERE name = 'share' AND ?1 = 0", 0,
                               note_id, &there, error);
    p->title = s->title;
    if (p->json)
        kl_json_open(&p->array, s->name, '[');
    if (status == KILTER_OK && there)
        status = kl_record_ask(path, s->sql, id, print_row, p, error);
    if (p->json)
        kl_json_close(&p->array, ']');
    return status;
}

/* Which decision? Times count as printed, to the microsecond. */
static kilter_status find(const char *path, const kl_replay_choice *choice, int64_t *id,
                          kilter_error *error) {
    const char *by_id = "SELECT id FROM decision WHERE id = ?1";
    const char *by_time =
        "SELECT id FROM decision WHERE at_s <= (?1 + 0.5) / 1e6 ORDER BY at_s DESC, id DESC "
        "LIMIT 1";
    bool time = choice->by == KL_REPLAY_TIME;
    *id = -1;
    kilter_status status = kl_record_ask(path, time ? by_time : by_id, choice->number, note_id, id, error);
    if (status != KILTER_OK || *id >= 0)
        return status;
    return time ? kl_fail(error, KILTER_ERR_INPUT,
                          "reading the run record '%s': nothing was decided by then; without --at, "
                          "kilter replay lists the decisions",
                          path)
                : kl_fail(error, KILTER_ERR_INPUT,
                          "reading the run record '%s': there is no decision %" PRId64, path, choice->number);
}

kilter_status kl_replay_print(const char *path, const kl_replay_choice *choice, FILE *out,
                              kilter_error *error) {
    printer p = {.out = out, .json = choice->json, .array = {.out = out, .first = true}};
    int64_t id = 0;
    bool all = choice->by == KL_REPLAY_LIST;
    kilter_status status = all ? KILTER_OK : find(path, choice, &id, error);
    const section *s = all ? &list : sections;
    size_t count = all ? 1 : sizeof sections / sizeof *sections;
    if (p.json)
        kl_json_open(&p.array, NULL, '{');
    for (size_t i = 0; i < count && status == KILTER_OK; i++)
        status = print_section(&p, path, &s[i], id, error);
    if (p.json) {
        kl_json_close(&p.array, '}');
        fputc('\n', out);
    } else if (all && p.title && status == KILTER_OK)
        fputs("no decisions\n", out);
    return status;
}
