/* Private to the folder report: lists of the fields that a row has. The same list is used to read rows from a
 * record, to print the rows as JSON, and to free them. */
#ifndef KL_REPORT_FIELDS_H
#define KL_REPORT_FIELDS_H

#include "report/print.h"
#include "report/reading.h"

typedef enum kl_field_type {
    KL_FIELD_COUNT,        /* uint64_t; a negative value of the column is read as 0 */
    KL_FIELD_NUMBER,       /* uint32_t */
    KL_FIELD_SIGNED,       /* int64_t */
    KL_FIELD_SUBJECT,      /* int64_t; −1 stands for NULL in the column */
    KL_FIELD_REAL,         /* a double; NAN: the column is NULL or not a number */
    KL_FIELD_TRUTH,        /* bool */
    KL_FIELD_KNOWN,        /* a bool: true if the column is not NULL */
    KL_FIELD_TEXT,         /* char *, malloc'd; "" stands for NULL in the column */
    KL_FIELD_TEXT_OR_NULL, /* char *, malloc'd; NULL if the column is NULL */
} kl_field_type;

typedef struct kl_field {
    kl_field_type type;
    size_t offset;
    const char *column; /* the column to read, or an SQL expression; NULL: the field is not read */
    const char *json;   /* name of the member in JSON; NULL: the field is not printed */
    bool later;         /* true: records of earlier versions may lack this column */
} kl_field;

/* Describe the field `name` of the struct ROW. ROW must be defined before a list of fields, and undefined
 * after it. */
#define KL_FIELD(type, name)                                                                                 \
    { KL_FIELD_##type, offsetof(ROW, name), #name, #name, false }
#define KL_FIELD_LATER(type, name)                                                                           \
    { KL_FIELD_##type, offsetof(ROW, name), #name, #name, true }
#define KL_FIELD_AS(type, name, from, as)                                                                    \
    { KL_FIELD_##type, offsetof(ROW, name), from, as, false }

enum { KL_FIELDS_MAX = 32 };

typedef struct kl_rows {
    size_t size;              /* size of a row's struct in bytes */
    const char *table, *rest; /* the query is SELECT columns FROM table rest */
    const kl_field *fields;
    size_t field_count;
} kl_rows;

#define KL_ROWS(row, from, more, list)                                                                       \
    { sizeof(row), from, more, list, sizeof(list) / sizeof *(list) }

/* Append all rows of the table to `items`, and return the array. After a failure, r->failed is set and
 * nothing more is read. */
void *kl_rows_read(kl_reading *r, const kl_rows *rows, void *items, size_t *count);
void kl_row_read(kl_reading *r, const kl_rows *rows,
                 void *item); /* read the first row of the table; if there is none, `item` does not change */
/* kl_row_json() prints the fields of a row as members of an object, without brackets. kl_rows_json() prints
 * several rows as an array of objects. */
void kl_row_json(kl_json *j, const kl_rows *rows, const void *item);
void kl_rows_json(kl_json *j, const char *name, const kl_rows *rows, const void *items, size_t count);
void kl_row_free(const kl_rows *rows, void *item); /* free the texts that a row's struct points to */
void kl_rows_free(const kl_rows *rows, void *items, size_t count);

extern const kl_rows kl_run_rows, kl_session_rows, kl_worker_rows, kl_iteration_rows, kl_share_rows,
    kl_decision_rows, kl_decided_rows, kl_measurement_rows, kl_loop_rows, kl_rank_rows, kl_round_rows,
    kl_watched_rows, kl_watched_rank_rows, kl_watched_place_rows, kl_watched_slice_rows;

#endif
