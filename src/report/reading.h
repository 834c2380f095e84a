/* Private to room report: a question to a record, asked as carefully as the report reads it. */
#ifndef KL_REPORT_READING_H
#define KL_REPORT_READING_H

#include <sqlite3.h>

#include "report/report.h"

enum { KL_RECORD_TEXT_BYTES = 64 * 1024 }; /* no text of a record is longer */

/* What a step of reading a report works on, in one snapshot. failed: SQLite did, or memory ran out
 * (`memory`); nothing more is read then. */
typedef struct kl_reading {
    sqlite3 *db;
    kl_report *report; /* of these two the one that is read */
    kl_outline *outline;
    bool failed, memory;
} kl_reading;

typedef void (*kl_row_fn)(kl_reading *r, sqlite3_stmt *row);

kilter_status kl_no_record(const char *path, const char *why, kilter_error *error); /* KILTER_ERR_INPUT */
/* A snapshot of the record in r->db, which the caller closes, also after an error. Errors are those of
 * kl_report_read(). */
kilter_status kl_reading_open(kl_reading *r, const char *path, kilter_error *error);
kilter_status kl_reading_failed(const kl_reading *r, const char *path, kilter_error *error); /* says why */
/* Records of earlier versions lack some. */
bool kl_has_table(const kl_reading *r, const char *name);
bool kl_has_column(const kl_reading *r, const char *table, const char *name);

bool kl_each_row(kl_reading *r, const char *sql, kl_row_fn take); /* false: SQLite fails, or memory ran out */
uint64_t kl_count_at(sqlite3_stmt *row, int column);
char *kl_text_at(kl_reading *r, sqlite3_stmt *row, int column); /* malloc'd */
char *kl_text_or_null(kl_reading *r, sqlite3_stmt *row, int column);
/* Room for one more element at the end of `items`, whose capacity is the power of two above its count. */
void *kl_grown(kl_reading *r, void *items, size_t count, size_t size);
/* Give `array` one more element, zeroed, in `item`; where memory ran out, `item` is NULL. */
#define KL_APPEND(r, array, count, item)                                                                     \
    do {                                                                                                     \
        void *more_ = kl_grown(r, array, count, sizeof *(array));                                            \
        (item) = NULL;                                                                                       \
        if (more_) {                                                                                         \
            (array) = more_;                                                                                 \
            (item) = memset(&(array)[(count)++], 0, sizeof *(array));                                        \
        }                                                                                                    \
    } while (0)

typedef void (*kl_record_row_fn)(void *context, sqlite3_stmt *row);

/* One row after another of `sql`, whose parameter ?1 is `number`. Errors are those of kl_report_read(). */
kilter_status kl_record_ask(const char *path, const char *sql, int64_t number, kl_record_row_fn take,
                            void *context, kilter_error *error);
/* What a loop's record holds beside a farm's, into r->report->loop. */
void kl_loop_read(kl_reading *r);
void kl_loop_report_free(kl_report_loop *loop);
double kl_record_real(sqlite3_stmt *row, int column); /* NAN: no number stands there */

#endif
