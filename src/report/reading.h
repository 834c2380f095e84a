/* Private to room report: a question to a record, asked as carefully as the report reads it. */
#ifndef KL_REPORT_READING_H
#define KL_REPORT_READING_H

#include <sqlite3.h>

#include "base/base.h"

typedef void (*kl_record_row_fn)(void *context, sqlite3_stmt *row);

/* One row after another of `sql`, whose parameter ?1 is `number`. Errors are those of kl_report_read(). */
kilter_status kl_record_ask(const char *path, const char *sql, int64_t number, kl_record_row_fn take,
                            void *context, kilter_error *error);
double kl_record_real(sqlite3_stmt *row, int column); /* NAN: no number stands there */

#endif
