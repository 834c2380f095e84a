/* Print a recorded decision, its inputs, and the same decision made again. Each printed value is named by the
 * column of the query from which it comes. */
#include <inttypes.h>
#include <math.h>

#include "report/again.h"
#include "report/print.h"
#include "report/reading.h"
#include "report/text.h"

/* Decisions of one kind that were not made again: their number, and the reason for the first of them. */
typedef struct left_out {
    uint64_t count;
    const char *why;
} left_out;

typedef struct printer {
    FILE *out;
    bool json;
    kl_json array;
    const char *title; /* title of the section that is being printed; NULL after its first row */
    kl_again *again;
    const char
        *instead; /* policy that decides instead of the recorded one; NULL: the recorded policy decides */
    int64_t id;   /* id of the decision to print; −1: all decisions */
    kl_again_verdict verdict; /* result of making this decision again */
    uint64_t decisions, made_again, same;
    left_out left_out[KL_DECISION_KINDS + 1];
} printer;

/* A section of the output: the rows of a query, in which ?1 is the id of the decision. */
typedef struct section {
    const char *name, *title, *sql;
    bool of_loop; /* true: the query is possible only for the record of a loop */
} section;

#define OF_DECISION " FROM decision d WHERE d.id = ?1"
#define BEFORE      "(SELECT coalesce(max(at_s), 0) FROM decision WHERE id < d.id)"

/* The sections. A recorded chunk has only tasks whose results counted, so tasks that were recalled from it do
 * not appear. */
static const section sections[] = {
    {"decision", "the decision", "SELECT " KL_DECISION_COLUMNS OF_DECISION, false},
    {"outcome", "the outcome",
     "SELECT c.worker, c.hi - c.lo AS tasks, c.began_s, c.ended_s, c.ended_s - d.forecast_s AS late_s, "
     "c.lost "
     "FROM decision d JOIN chunk c ON c.run = d.run AND c.chunk = d.chunk WHERE d.id = ?1 ORDER BY c.id",
     false},
    {"progress", "the run at that moment",
     "SELECT i.run, i.policy, i.tasks, d.at_s - i.began_s AS elapsed_s, "
     "(SELECT coalesce(sum(hi - lo), 0) FROM chunk WHERE run = d.run AND ended_s <= d.at_s AND NOT lost) "
     "AS finished FROM decision d JOIN iteration i ON i.run = d.run WHERE d.id = ?1",
     false},
    /* Find the chunks that workers had at this moment: their numbers are below the number of the decision's
       chunk. Comparing times is not enough, because several decisions may have the same time. */
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
    {"events", "events since the previous decision",
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

static void begin_row(printer *p) {
    if (p->title && !p->json)
        fprintf(p->out, "%s:\n", p->title);
    p->title = NULL;
    if (p->json)
        kl_json_open(&p->array, NULL, '{');
}

static void print_columns(printer *p, sqlite3_stmt *row, int count) {
    for (int i = 0; i < count; i++)
        if (p->json)
            print_member(&p->array, row, i);
        else
            print_word(p->out, row, i);
}

static void end_row(printer *p) {
    if (p->json)
        kl_json_close(&p->array, '}');
    else
        fputc('\n', p->out);
}

static void print_row(void *context, sqlite3_stmt *row) {
    printer *p = context;
    begin_row(p);
    print_columns(p, row, sqlite3_column_count(row));
    end_row(p);
}

/* --- the decision made again --- */

static void note_id(void *context, sqlite3_stmt *row) {
    *(int64_t *)context = sqlite3_column_int64(row, 0);
}

static void print_again_json(kl_json *j, const kl_again_verdict *v) {
    const kl_decision *d = &v->decision;
    kl_json_truth(j, "made", !v->missing);
    kl_json_text(j, "why_not", v->missing);
    if (v->missing)
        return;
    kl_json_truth(j, "same", !kl_again_differs(v));
    kl_json_text(j, "kind", kl_decision_name(d->kind));
    kl_json_count(j, "count", d->count);
    kl_json_count(j, "count_then", v->meant);
    kl_json_number(j, "forecast_s", d->forecast_s > 0 ? d->forecast_s : NAN);
    kl_json_number(j, "gain_s", d->gain_s);
    kl_json_text(j, "reason", d->reason);
}

/* Print how the decision differs from the recorded one. whole: also print the values that do not differ. */
static void print_again(const printer *p, const kl_again_verdict *v, bool whole) {
    const kl_decision *d = &v->decision;
    FILE *out = p->out;
    fprintf(out, "  %s %s", p->instead ? "instead" : "again", kl_again_differs(v) ? "differs" : "same");
    if (whole || v->other_kind)
        fprintf(out, "  kind %s", kl_decision_name(d->kind));
    if (whole || v->other_count)
        fprintf(out, "  count %" PRIu64, d->count);
    if (v->other_count)
        fprintf(out, "  count_then %" PRIu64, v->meant);
    if (d->forecast_s > 0 && (whole || v->other_forecast))
        fprintf(out, "  forecast_s %.6f", d->forecast_s);
    if (whole || v->other_gain)
        fprintf(out, "  gain_s %.6f", d->gain_s);
    if (whole || v->other_reason)
        fprintf(out, "  reason %s", d->reason);
}

static void count_verdict(printer *p, sqlite3_stmt *row, const kl_again_verdict *v) {
    left_out *kind = &p->left_out[kl_decision_find((const char *)sqlite3_column_text(row, KL_COLUMN_KIND))];
    p->decisions++;
    p->made_again += !v->missing;
    p->same += !v->missing && !kl_again_differs(v);
    if (v->missing && kind->count++ == 0)
        kind->why = v->missing;
}

/* Print a decision as a line of the list of all decisions. */
static void print_decision(void *context, sqlite3_stmt *row) {
    printer *p = context;
    kl_again_verdict v;
    kl_decide_again(p->again, p->instead, row, &v);
    count_verdict(p, row, &v);
    begin_row(p);
    print_columns(p, row, KL_COLUMN_GROUNDS);
    if (p->json) {
        kl_json_open(&p->array, p->instead ? "instead" : "again", '{');
        print_again_json(&p->array, &v);
        kl_json_close(&p->array, '}');
    } else if (!v.missing) {
        print_again(p, &v, false);
    }
    end_row(p);
}

static void note_verdict(void *context, sqlite3_stmt *row) {
    printer *p = context;
    kl_decide_again(p->again, p->instead, row, &p->verdict);
}

/* Query decisions with their inputs. Records of earlier versions have no inputs. */
static kilter_status ask_decisions(printer *p, const char *path, const char *which, kl_record_row_fn take,
                                   kilter_error *error) {
    int64_t there = 0;
    char sql[512];
    kilter_status status = kl_record_ask(
        path, "SELECT count(*) FROM pragma_table_info('decision') WHERE name = 'grounds' AND ?1 = 0", 0,
        note_id, &there, error);
    snprintf(sql, sizeof sql, "SELECT " KL_DECISION_COLUMNS ", %s FROM decision WHERE %s ORDER BY id",
             there ? "grounds" : "NULL", which);
    return status == KILTER_OK ? kl_record_ask(path, sql, p->id, take, p, error) : status;
}

static void print_left_out(const printer *p) {
    for (size_t i = 0; i <= KL_DECISION_KINDS; i++)
        if (p->left_out[i].count > 0)
            fprintf(p->out, "  %llu of kind %s not made again: %s\n", kl_ull(p->left_out[i].count),
                    i < KL_DECISION_KINDS ? kl_decision_name((kl_decision_kind)i) : "unknown",
                    p->left_out[i].why);
}

static kilter_status print_list(printer *p, const char *path, kilter_error *error) {
    p->title = "decisions";
    if (p->json)
        kl_json_open(&p->array, "decisions", '[');
    kilter_status status = ask_decisions(p, path, "?1 = -1", print_decision, error);
    if (p->json) {
        kl_json_close(&p->array, ']');
        kl_json_count(&p->array, "made_again", p->made_again);
        kl_json_count(&p->array, "same", p->same);
    } else if (status == KILTER_OK && p->decisions == 0) {
        fputs("no decisions\n", p->out);
    } else if (status == KILTER_OK) {
        fprintf(p->out, "made again%s%s: %llu of %llu decisions, %llu the same\n",
                p->instead ? " by policy " : "", p->instead ? p->instead : "", kl_ull(p->made_again),
                kl_ull(p->decisions), kl_ull(p->same));
        print_left_out(p);
    }
    return status;
}

static kilter_status print_verdict(printer *p, const char *path, kilter_error *error) {
    kilter_status status = ask_decisions(
        p, path, "run = (SELECT run FROM decision WHERE id = ?1) AND id <= ?1", note_verdict, error);
    if (p->json) {
        kl_json_open(&p->array, p->instead ? "instead" : "again", '{');
        print_again_json(&p->array, &p->verdict);
        kl_json_close(&p->array, '}');
    } else if (status == KILTER_OK && p->verdict.missing) {
        fprintf(p->out, "not made again: %s\n", p->verdict.missing);
    } else if (status == KILTER_OK) {
        fprintf(p->out, "the decision, made again%s%s:\n", p->instead ? " by policy " : "",
                p->instead ? p->instead : "");
        print_again(p, &p->verdict, true);
        fputc('\n', p->out);
    }
    return status;
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

/* Find the chosen decision. Times are compared as they are printed, to the microsecond. */
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
                          "reading the run record '%s': no decision was made by this time; without --at, "
                          "kilter replay lists the decisions",
                          path)
                : kl_fail(error, KILTER_ERR_INPUT, "reading the run record '%s': there is no decision %lld",
                          path, (long long)choice->number);
}

static kilter_status print_one(printer *p, const char *path, kilter_error *error) {
    kilter_status status = KILTER_OK;
    for (size_t i = 0; i < sizeof sections / sizeof *sections && status == KILTER_OK; i++) {
        status = print_section(p, path, &sections[i], p->id, error);
        if (i == 0 && status == KILTER_OK)
            status = print_verdict(p, path, error);
    }
    return status;
}

static kilter_status begin(printer *p, const kl_replay_choice *choice, kilter_error *error) {
    const kl_policy *instead = choice->policy ? kl_policy_find(choice->policy) : NULL;
    if (choice->policy && !instead)
        return kl_fail(error, KILTER_ERR_INPUT,
                       "deciding again by policy '%s': there is no such policy; 'kilter simulate --help' "
                       "lists them",
                       choice->policy);
    p->again = kl_again_new(instead);
    return p->again ? KILTER_OK : kl_fail(error, KILTER_ERR_MEMORY, "deciding again: memory ran out");
}

kilter_status kl_replay_print(const char *path, const kl_replay_choice *choice, FILE *out,
                              kilter_error *error) {
    printer p = {.out = out,
                 .json = choice->json,
                 .array = {.out = out, .first = true},
                 .id = -1,
                 .instead = choice->policy};
    bool all = choice->by == KL_REPLAY_LIST;
    kilter_status status = begin(&p, choice, error);
    if (status == KILTER_OK && !all)
        status = find(path, choice, &p.id, error);
    if (p.json)
        kl_json_open(&p.array, NULL, '{');
    if (status == KILTER_OK)
        status = all ? print_list(&p, path, error) : print_one(&p, path, error);
    if (p.json) {
        kl_json_close(&p.array, '}');
        fputc('\n', out);
    }
    kl_again_free(p.again);
    return status;
}
