#include "report/fields.h"

#include <stdlib.h>
#include <string.h>

enum { SQL_BYTES = 2048 };

static bool prepare(kl_reading *r, const kl_rows *rows, sqlite3_stmt **statement) {
    char sql[SQL_BYTES] = "";
    for (size_t i = 0; i < rows->field_count; i++)
        if (rows->fields[i].column) {
            size_t at = strlen(sql);
            bool lacks = rows->fields[i].later && !kl_has_column(r, rows->table, rows->fields[i].column);
            snprintf(sql + at, SQL_BYTES - at, "%s%s", at ? ", " : "SELECT ",
                     lacks ? "NULL" : rows->fields[i].column);
        }
    size_t at = strlen(sql);
    snprintf(sql + at, sizeof sql - at, " FROM %s %s", rows->table, rows->rest);
    return sqlite3_prepare_v2(r->db, sql, -1, statement, NULL) == SQLITE_OK;
}

static void take_field(kl_reading *r, sqlite3_stmt *row, int column, kl_field_type type, void *to) {
    bool is_null = sqlite3_column_type(row, column) == SQLITE_NULL;
    switch (type) {
    case KL_FIELD_COUNT:
        *(uint64_t *)to = kl_count_at(row, column);
        break;
    case KL_FIELD_NUMBER:
        *(uint32_t *)to = (uint32_t)kl_count_at(row, column);
        break;
    case KL_FIELD_SIGNED:
        *(int64_t *)to = sqlite3_column_int64(row, column);
        break;
    case KL_FIELD_SUBJECT:
        *(int64_t *)to = is_null ? -1 : sqlite3_column_int64(row, column);
        break;
    case KL_FIELD_REAL:
        *(double *)to = kl_record_real(row, column);
        break;
    case KL_FIELD_TRUTH:
        *(bool *)to = sqlite3_column_int(row, column) != 0;
        break;
    case KL_FIELD_KNOWN:
        *(bool *)to = !is_null;
        break;
    case KL_FIELD_TEXT:
        *(char **)to = kl_text_at(r, row, column);
        break;
    case KL_FIELD_TEXT_OR_NULL:
        *(char **)to = kl_text_or_null(r, row, column);
        break;
    }
}

static void take_row(kl_reading *r, const kl_rows *rows, sqlite3_stmt *row, char *item) {
    int column = 0;
    for (size_t i = 0; i < rows->field_count; i++)
        if (rows->fields[i].column)
            take_field(r, row, column++, rows->fields[i].type, item + rows->fields[i].offset);
}

void *kl_rows_read(kl_reading *r, const kl_rows *rows, void *items, size_t *count) {
    sqlite3_stmt *statement = NULL;
    int step = SQLITE_ERROR;
    if (r->failed)
        return items;
    if (prepare(r, rows, &statement))
        while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
            void *more = kl_grown(r, items, *count, rows->size);
            if (!more)
                break;
            items = more;
            char *item = memset((char *)items + (*count)++ * rows->size, 0, rows->size);
            take_row(r, rows, statement, item);
            if (r->memory)
                break;
        }
    sqlite3_finalize(statement);
    r->failed |= step != SQLITE_DONE;
    return items;
}

void kl_row_read(kl_reading *r, const kl_rows *rows, void *item) {
    sqlite3_stmt *statement = NULL;
    int step = SQLITE_ERROR;
    if (r->failed)
        return;
    if (prepare(r, rows, &statement) && (step = sqlite3_step(statement)) == SQLITE_ROW)
        take_row(r, rows, statement, item);
    sqlite3_finalize(statement);
    r->failed |= r->memory || (step != SQLITE_ROW && step != SQLITE_DONE);
}

static void print_field(kl_json *j, const kl_field *f, const void *value) {
    switch (f->type) {
    case KL_FIELD_COUNT:
        kl_json_count(j, f->json, *(const uint64_t *)value);
        break;
    case KL_FIELD_NUMBER:
        kl_json_count(j, f->json, *(const uint32_t *)value);
        break;
    case KL_FIELD_SIGNED:
        kl_json_signed(j, f->json, *(const int64_t *)value);
        break;
    case KL_FIELD_SUBJECT:
        if (*(const int64_t *)value < 0)
            kl_json_text(j, f->json, NULL);
        else
            kl_json_signed(j, f->json, *(const int64_t *)value);
        break;
    case KL_FIELD_REAL:
        kl_json_number(j, f->json, *(const double *)value);
        break;
    case KL_FIELD_TRUTH:
    case KL_FIELD_KNOWN:
        kl_json_truth(j, f->json, *(const bool *)value);
        break;
    case KL_FIELD_TEXT:
    case KL_FIELD_TEXT_OR_NULL:
        kl_json_text(j, f->json, *(char *const *)value);
        break;
    }
}

void kl_row_json(kl_json *j, const kl_rows *rows, const void *item) {
    for (size_t i = 0; i < rows->field_count; i++)
        if (rows->fields[i].json)
            print_field(j, &rows->fields[i], (const char *)item + rows->fields[i].offset);
}

void kl_rows_json(kl_json *j, const char *name, const kl_rows *rows, const void *items, size_t count) {
    kl_json_open(j, name, '[');
    for (size_t i = 0; i < count; i++) {
        kl_json_open(j, NULL, '{');
        kl_row_json(j, rows, (const char *)items + i * rows->size);
        kl_json_close(j, '}');
    }
    kl_json_close(j, ']');
}

void kl_row_free(const kl_rows *rows, void *item) {
    for (size_t i = 0; i < rows->field_count; i++)
        if (rows->fields[i].type == KL_FIELD_TEXT || rows->fields[i].type == KL_FIELD_TEXT_OR_NULL)
            free(*(char **)((char *)item + rows->fields[i].offset));
}

void kl_rows_free(const kl_rows *rows, void *items, size_t count) {
    for (size_t i = 0; i < count; i++)
        kl_row_free(rows, (char *)items + i * rows->size);
    free(items);
}
