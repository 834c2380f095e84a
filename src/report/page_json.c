/* The JSON object of a page: the report, the decisions about single workers, the failures, and the units of
 * the columns. */
#include "report/page.h"
#include "report/report.h"

/* Limits for the numbers of decisions about single workers and of failures, because more would make the page
 * too large. `kilter replay` shows all decisions. */
enum { ABOUT_MOST = 4000, FAILURES_MOST = 1000 };
/* Number of digits of printed numbers. More digits would be noise, because the ticks of chunks are not more
 * exact. Noise does not compress. */
enum { DIGITS = 9 };

typedef struct list {
    const char *name, *sql;
    const char *cells; /* one letter for each column; t: a text; n: a number */
} list;

/* The decisions about single workers. If there are too many, those that deal chunks are left out, because
 * there are as many of them as chunks. */
static const list about = {
    "about",
    "SELECT d.kind, d.at_s, d.run, d.subject, d.count, d.forecast_s, c.ended_s, d.reason FROM "
    "(SELECT * FROM decision WHERE subject IS NOT NULL AND (kind <> 'deal' OR "
    "(SELECT count(*) FROM decision WHERE kind = 'deal') <= ?1) ORDER BY id LIMIT ?1) d "
    "LEFT JOIN chunk c ON c.run = d.run AND c.chunk = d.chunk AND NOT c.lost ORDER BY d.at_s",
    "tnnnnnnt"};
static const list failures = {
    "failures", "SELECT at_s, run, task, attempt, worker, lost, text FROM failure ORDER BY id LIMIT ?1",
    "nnnnnnt"};

static void put_row(kl_json *j, const list *l, sqlite3_stmt *row) {
    kl_json_open(j, NULL, '[');
    for (int i = 0; l->cells[i]; i++)
        if (l->cells[i] == 't')
            kl_json_text(j, NULL, (const char *)sqlite3_column_text(row, i));
        else
            kl_json_number(j, NULL, kl_record_real(row, i));
    kl_json_close(j, ']');
}

static void put_list(kl_reading *r, kl_json *j, const list *l, int most) {
    sqlite3_stmt *statement = NULL;
    int step = SQLITE_ERROR;
    kl_json_open(j, l->name, '[');
    if (!r->failed && sqlite3_prepare_v2(r->db, l->sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_bind_int(statement, 1, most) == SQLITE_OK)
        while ((step = sqlite3_step(statement)) == SQLITE_ROW)
            put_row(j, l, statement);
    r->failed |= step != SQLITE_DONE;
    sqlite3_finalize(statement);
    kl_json_close(j, ']');
}

static void put_lanes(kl_json *j, const kl_page_chunks *chunks) {
    kl_json_open(j, "lanes", '[');
    for (size_t i = 0; i < chunks->lane_count; i++) {
        kl_json_open(j, NULL, '[');
        kl_json_count(j, NULL, chunks->lanes[i].worker);
        kl_json_count(j, NULL, chunks->lanes[i].chunks);
        kl_json_close(j, ']');
    }
    kl_json_close(j, ']');
}

static void put_story(kl_json *j, const kl_page *page) {
    kl_json_open(j, "story", '[');
    for (int i = 0; i < KL_PAGE_SENTENCES && page->story[i]; i++)
        kl_json_text(j, NULL, page->story[i]);
    kl_json_close(j, ']');
}

void kl_page_json(kl_reading *r, const kl_page_chunks *chunks, const kl_page *page, FILE *out) {
    kl_json j = {.out = out,
                 .first = false,
                 .digits = DIGITS}; /* these members are written after the member "report" */
    fputs("{\"report\":", out);
    kl_report_print_for_page(r->report, DIGITS, out);
    kl_json_number(&j, "tick_s", chunks->tick_s);
    kl_json_number(&j, "end_s", chunks->end_s);
    kl_json_number(&j, "unit", chunks->unit);
    kl_json_count(&j, "about_most", ABOUT_MOST);
    put_story(&j, page);
    put_lanes(&j, chunks);
    put_list(r, &j, &about, ABOUT_MOST);
    if (!r->failed && kl_has_table(r, "failure"))
        put_list(r, &j, &failures, FAILURES_MOST);
    kl_json_close(&j, '}');
}
