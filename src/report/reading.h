/* Private to the folder report: read a record without trusting its content. */
#ifndef KL_REPORT_READING_H
#define KL_REPORT_READING_H

#include <sqlite3.h>

#include "report/report.h"

enum { KL_RECORD_TEXT_BYTES = 64 * 1024 }; /* longer texts from a record are cut to this number of bytes */

/* The state of reading a record. failed: SQLite failed; memory: memory ran out. In both cases nothing more is
 * read. */
typedef struct kl_reading {
    sqlite3 *db;
    kl_report *report; /* report, outline: one of them is being read */
    kl_outline *outline;
    bool failed, memory;
} kl_reading;

typedef void (*kl_row_fn)(kl_reading *r, sqlite3_stmt *row);

kilter_status kl_no_record(const char *path, const char *why, kilter_error *error); /* KILTER_ERR_INPUT */
/* Open the record as r->db, and begin a transaction, so that rows written later are not read. The caller
 * closes r->db, even after an error. Errors are those of kl_report_read(). */
kilter_status kl_reading_open(kl_reading *r, const char *path, kilter_error *error);
kilter_status kl_reading_failed(const kl_reading *r, const char *path,
                                kilter_error *error); /* set `error` from the failure that `r` describes */
/* Open the record as r->db, and read it into a new r->report. run_only: read only what kl_report_read_run()
 * reads. The caller closes r->db and frees r->report, even after an error. */
kilter_status kl_reading_report(kl_reading *r, const char *path, bool run_only, kilter_error *error);
/* Return whether the record has this table. Records of earlier versions lack some tables. */
bool kl_has_table(const kl_reading *r, const char *name);
bool kl_has_column(const kl_reading *r, const char *table, const char *name);

bool kl_each_row(
    kl_reading *r, const char *sql,
    kl_row_fn take); /* call `take` for each row of a query; false: SQLite failed, or memory ran out */
uint64_t kl_count_at(sqlite3_stmt *row, int column);
char *kl_text_at(kl_reading *r, sqlite3_stmt *row, int column); /* malloc'd */
char *kl_text_or_null(kl_reading *r, sqlite3_stmt *row, int column);
/* Return the array `items` with room for one more element. Its capacity is the next power of two. */
void *kl_grown(kl_reading *r, void *items, size_t count, size_t size);
/* Add an element of zeros to `array`, and set `item` to its address; NULL: memory ran out. */
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

/* Call `take` for each row of the query `sql`, in which ?1 is `number`. Errors are those of kl_report_read().
 */
kilter_status kl_record_ask(const char *path, const char *sql, int64_t number, kl_record_row_fn take,
                            void *context, kilter_error *error);
/* Read the tables that only the record of a loop has into r->report->loop. */
void kl_loop_read(kl_reading *r);
void kl_loop_report_free(kl_report_loop *loop);
void kl_watched_read(kl_reading *r);
void kl_watched_report_free(kl_report_watched *watched);
double kl_record_real(sqlite3_stmt *row,
                      int column); /* return the number in this column; NAN: it holds no number */

#endif
