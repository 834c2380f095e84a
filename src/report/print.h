/* Print numbers, lines and tables for people, and JSON for programs. All commands use these functions. */
#ifndef KL_REPORT_PRINT_H
#define KL_REPORT_PRINT_H

#include <stdio.h>

#include "base/base.h"

enum {
    KL_WIDTH = 110, /* greatest width in columns of everything that is printed for people */
    KL_CELL_BYTES = 160,
    KL_CELL_COLUMNS = 32, /* greatest width in columns of a table's cell that contains text of the user */
    KL_COLUMNS_MAX = 16,
    KL_WHOLE = 2, /* a value for kl_column.text: the text is never shortened */
};

typedef struct kl_words {
    char text[32];
} kl_words;

/* These functions print a number that is not known (NAN) as "-". */
kl_words kl_digits(double value);       /* write a number with four significant digits */
kl_words kl_time_words(double seconds); /* write a time with a suitable unit, such as "1.50 ms" */
kl_words kl_percent(double share);      /* write a share as a percentage: 1 becomes 100 % */

enum { KL_LEFT_BYTES = 80 };
/* Write the time left as an interval, in which the end lies with a probability of 90 %. The text is "" if the
 * time left is not known.
 */
void kl_left_words(double low_s, double high_s, char words[KL_LEFT_BYTES]);
kl_words kl_bytes_words(uint64_t bytes);

/* Print a label, then a text that is formatted as by printf(). The text is wrapped if it is longer than a
 * line. */
void kl_say(FILE *out, const char *label, const char *format, ...) KILTER_PRINTF(3, 4);

/* A function that writes the text of a cell of a table. The text has at most KL_CELL_BYTES bytes, including
 * the NUL at its end. */
typedef void (*kl_cell_fn)(const void *context, size_t row, char *cell);

typedef struct kl_column {
    const char *head;
    int text; /* true: text, aligned left, may be shortened; KL_WHOLE: text, aligned left, never shortened;
                 false: aligned right */
    kl_cell_fn cell;
} kl_column;

/* Print a table of at most KL_COLUMNS_MAX columns. Empty columns are left out. */
void kl_print_table(FILE *out, const kl_column *columns, size_t count, const void *context, size_t rows);
/* How a column of a table shows a member of a row's struct. If the column has a cell function, that function
 * is used instead.
 */
typedef enum kl_style {
    KL_AS_COUNT,  /* uint64_t */
    KL_AS_ANY,    /* uint64_t; the whole column stays empty if its sum, which is in the last row, is 0 */
    KL_AS_NUMBER, /* uint32_t */
    KL_AS_BYTES,  /* uint64_t, as kl_bytes_words() writes it */
    KL_AS_TEXT,   /* char * */
    KL_AS_REAL,   /* double, multiplied by `times` unless `times` is 0, with `decimals` decimals */
    KL_AS_KNOWN,  /* like KL_AS_REAL, but the cell is empty if the value is not finite */
    KL_AS_DIGITS, /* double, multiplied by `times` unless `times` is 0, as kl_digits() writes it */
    KL_AS_TIME,   /* double, as kl_time_words() writes it */
} kl_style;

typedef struct kl_row_column {
    kl_column column;
    kl_style style;
    size_t offset;
    int decimals;
    double times;
    bool no_sum; /* true: the cell in the last row, which has the sums, is empty */
} kl_row_column;

/* A column with the heading `title` that shows `member` of struct `row`. */
#define KL_SHOW(title, as, row, member)                                                                      \
    { .column = {.head = (title)}, .style = KL_AS_##as, .offset = offsetof(row, member) }
#define KL_SHOW_REAL(title, as, row, member, digits, factor)                                                 \
    {                                                                                                        \
        .column = {.head = (title)}, .style = KL_AS_##as, .offset = offsetof(row, member),                   \
        .decimals = (digits), .times = (factor)                                                              \
    }

#define KL_SHOW_OWN(title, as, row, member, digits,                                                          \
                    factor) /* like KL_SHOW_REAL, but the last row, which has the sums, is empty here */     \
    {                                                                                                        \
        .column = {.head = (title)}, .style = KL_AS_##as, .offset = offsetof(row, member),                   \
        .decimals = (digits), .times = (factor), .no_sum = true                                              \
    }

/* A function that returns the struct for a row of the table. NULL: the cells of this row stay empty. */
typedef const void *(*kl_row_at_fn)(const void *context, size_t row);

void kl_print_rows(FILE *out, const kl_row_column *columns, size_t count, kl_row_at_fn row_at,
                   const void *context, size_t rows);
/* Write the text of a cell, formatted as by printf(). Functions of the type kl_cell_fn call kl_cell() and
 * kl_cell_number(). kl_cell_number() writes NAN as "-". */
void kl_cell(char *cell, const char *format, ...) KILTER_PRINTF(2, 3);
void kl_cell_number(char *cell, const char *format, double value) KILTER_PRINTF(2, 0);

/* A JSON value that is being written. `first`: the innermost open object or array has no member yet. */
typedef struct kl_json {
    FILE *out;
    bool first;
    int digits; /* number of digits of printed numbers; 0: as many as a number needs */
} kl_json;

/* Begin an object or array. name: its name as a member of an object; NULL in an array or at the top level. */
void kl_json_open(kl_json *j, const char *name, char bracket); /* '{' or '[' */
void kl_json_close(kl_json *j, char bracket);
/* print a text, or null if `value` is NULL */
void kl_json_text(kl_json *j, const char *name, const char *value);
void kl_json_number(kl_json *j, const char *name,
                    double value); /* print a number, or null if it is not finite */
void kl_json_count(kl_json *j, const char *name, uint64_t value);
void kl_json_signed(kl_json *j, const char *name, int64_t value);
void kl_json_truth(kl_json *j, const char *name, bool value);

/* Make the name or path of a file safe to print on a terminal. */
typedef struct kl_shown {
    char text[1024];
} kl_shown;
kl_shown kl_shown_name(const char *name);

#endif
