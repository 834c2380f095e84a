/* Print the failed tasks that a record has. */
#include <inttypes.h>

#include "report/print.h"
#include "report/reading.h"
#include "report/text.h"

typedef struct failures {
    FILE *out;
    bool json;
    kl_json array;
    uint64_t count;
} failures;

enum { TEXT_COLUMNS = 400, TEXT_BYTES = 4 * TEXT_COLUMNS + 1 };

static const char *text_of(sqlite3_stmt *row, int column) {
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? text : "";
}

static void print_line(failures *f, sqlite3_stmt *row) {
    char label[40], host[TEXT_BYTES], text[TEXT_BYTES];
    snprintf(label, sizeof label, "task %" PRIu64, kl_count_at(row, 1));
    kl_printable(host, sizeof host, text_of(row, 4), KL_CELL_COLUMNS);
    kl_printable(text, sizeof text, text_of(row, 9), TEXT_COLUMNS);
    kl_say(f->out, label, "run %llu, attempt %llu, at worker %llu%s%s, after %s: %s",
           kl_ull(kl_count_at(row, 0)), kl_ull(kl_count_at(row, 2)), kl_ull(kl_count_at(row, 3)),
           *host ? " on " : "", host, kl_time_words(kl_record_real(row, 5)).text, text);
}

static void print_count(kl_json *j, const char *name, sqlite3_stmt *row, int column) {
    if (sqlite3_column_type(row, column) == SQLITE_INTEGER)
        kl_json_count(j, name, kl_count_at(row, column));
    else
        kl_json_text(j, name, NULL);
}

static void print_object(failures *f, sqlite3_stmt *row) {
    static const char *const counts[] = {"run", "task", "attempt", "worker"};
    kl_json *j = &f->array;
    kl_json_open(j, NULL, '{');
    for (int i = 0; i < 4; i++)
        print_count(j, counts[i], row, i);
    kl_json_text(j, "host", text_of(row, 4));
    kl_json_number(j, "at_s", kl_record_real(row, 5));
    kl_json_truth(j, "lost", sqlite3_column_int(row, 6) != 0);
    print_count(j, "code", row, 7);
    print_count(j, "signal", row, 8);
    kl_json_text(j, "text", text_of(row, 9));
    kl_json_close(j, '}');
}

static void print_failure(void *context, sqlite3_stmt *row) {
    failures *f = context;
    f->count++;
    (f->json ? print_object : print_line)(f, row);
}

static void note_table(void *context, sqlite3_stmt *row) {
    *(bool *)context = sqlite3_column_int(row, 0) > 0;
}

kilter_status kl_failures_print(const char *path, bool json, FILE *out, kilter_error *error) {
    bool there = false;
    failures f = {.out = out, .json = json, .array = {.out = out, .first = true}};
    kilter_status status =
        kl_record_ask(path, "SELECT count(*) FROM sqlite_master WHERE name = 'failure' AND ?1 = 0", 0,
                      note_table, &there, error);
    if (status == KILTER_OK && !there)
        return kl_no_record(path, "an earlier version of Kilter made it, which recorded no failures", error);
    if (json)
        kl_json_open(&f.array, NULL, '[');
    if (status == KILTER_OK)
        status = kl_record_ask(path,
                               "SELECT f.run, f.task, f.attempt, f.worker, h.name, f.at_s, f.lost, f.code, "
                               "f.signal, f.text FROM failure f LEFT JOIN worker w ON w.worker = f.worker "
                               "LEFT JOIN host h ON h.host = w.host WHERE f.run >= ?1 "
                               "AND (f.run, f.task) IN (SELECT run, task FROM failure WHERE final) "
                               "ORDER BY f.run, f.task, f.id",
                               0, print_failure, &f, error);
    if (json)
        kl_json_close(&f.array, ']');
    if (json)
        fputc('\n', out);
    else if (status == KILTER_OK && f.count == 0)
        fputs("no task failed\n", out);
    return status;
}
