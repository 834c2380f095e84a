/* Write the tables of a record as CSV. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "report/reading.h"
#include "report/report.h"

/* Query for the names of the tables. These become names of files, so unusual names are left out. Virtual
 * tables are left out, too, because reading a virtual table runs the code of an SQLite module. */
static const char table_names[] =
    "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%' AND name NOT LIKE "
    "'sqlite%' AND name NOT GLOB '*[^a-zA-Z0-9_]*' ORDER BY name";

static void put_quoted(FILE *out, const char *text, size_t size) {
    bool plain = size > 0;
    for (size_t i = 0; i < size; i++)
        plain = plain && text[i] != '"' && text[i] != ',' && text[i] != '\n' && text[i] != '\r';
    if (plain) {
        fwrite(text, 1, size, out);
        return;
    }
    fputc('"', out);
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '"')
            fputc('"', out);
        fputc(text[i], out);
    }
    fputc('"', out);
}

static void put_hex(FILE *out, const unsigned char *bytes, int size) {
    for (int i = 0; i < size; i++)
        fprintf(out, "%02x", bytes[i]);
}

static void put_field(FILE *out, sqlite3_stmt *row, int column) {
    switch (sqlite3_column_type(row, column)) {
    case SQLITE_NULL:
        break;
    case SQLITE_FLOAT:
        fprintf(out, "%.17g", sqlite3_column_double(row, column));
        break;
    case SQLITE_BLOB: {
        const unsigned char *bytes = sqlite3_column_blob(row, column);
        put_hex(out, bytes, sqlite3_column_bytes(row, column));
        break;
    }
    default: {
        const char *text = (const char *)sqlite3_column_text(row, column);
        put_quoted(out, text ? text : "", (size_t)sqlite3_column_bytes(row, column));
    }
    }
}

static void put_row(FILE *out, sqlite3_stmt *row) {
    for (int i = 0; i < sqlite3_column_count(row); i++) {
        if (i > 0)
            fputc(',', out);
        put_field(out, row, i);
    }
    fputs("\r\n", out);
}

static void put_header(FILE *out, sqlite3_stmt *row) {
    for (int i = 0; i < sqlite3_column_count(row); i++) {
        const char *name = sqlite3_column_name(row, i);
        if (i > 0)
            fputc(',', out);
        put_quoted(out, name ? name : "", name ? strlen(name) : 0);
    }
    fputs("\r\n", out);
}

static void put_table(kl_reading *r, const char *table, FILE *out) {
    sqlite3_stmt *statement = NULL;
    char *sql = sqlite3_mprintf("SELECT * FROM main.\"%w\"", table);
    int step = SQLITE_ERROR;
    r->memory |= !sql;
    if (sql && sqlite3_prepare_v2(r->db, sql, -1, &statement, NULL) == SQLITE_OK) {
        put_header(out, statement);
        while ((step = sqlite3_step(statement)) == SQLITE_ROW)
            put_row(out, statement);
    }
    r->failed |= step != SQLITE_DONE;
    sqlite3_finalize(statement);
    sqlite3_free(sql);
}

static kilter_status write_table(kl_reading *r, const char *path, const char *table,
                                 const kl_table_files *files, kilter_error *error) {
    kilter_error later;
    FILE *out = files->open(files->context, table, error);
    if (!out)
        return error->status;
    put_table(r, table, out);
    bool whole = !r->failed && !r->memory;
    kilter_status status = whole ? KILTER_OK : kl_reading_failed(r, path, error);
    kilter_status closed = files->close(files->context, out, whole, whole ? error : &later);
    return whole ? closed : status;
}

kilter_status kl_tables_write(const char *path, const kl_table_files *files, kilter_error *error) {
    kl_reading r = {0};
    sqlite3_stmt *names = NULL;
    int step = SQLITE_DONE;
    kilter_status status = kl_reading_open(&r, path, error);
    if (status == KILTER_OK && sqlite3_prepare_v2(r.db, table_names, -1, &names, NULL) != SQLITE_OK)
        status = kl_reading_failed(&r, path, error);
    while (status == KILTER_OK && (step = sqlite3_step(names)) == SQLITE_ROW)
        status = write_table(&r, path, (const char *)sqlite3_column_text(names, 0), files, error);
    if (status == KILTER_OK && step != SQLITE_DONE)
        status = kl_reading_failed(&r, path, error);
    sqlite3_finalize(names);
    sqlite3_close(r.db);
    return status;
}
