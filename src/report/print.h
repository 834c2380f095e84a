/* Printing for every command: numbers as words, lines and tables for people, JSON for programs. */
#ifndef KL_REPORT_PRINT_H
#define KL_REPORT_PRINT_H

#include <stdio.h>

#include "base/base.h"

enum {
    KL_WIDTH = 110, /* width of everything printed for people */
    KL_CELL_BYTES = 160,
    KL_CELL_COLUMNS = 32, /* width of a cell with text from the user */
    KL_COLUMNS_MAX = 16,
    KL_WHOLE = 2, /* see kl_column */
};

typedef struct kl_words {
    char text[32];
} kl_words;

/* In all of these functions, a number that is not known (NAN) is printed as "-". */
kl_words kl_digits(double value);       /* four significant digits */
kl_words kl_time_words(double seconds); /* with a suitable unit */
kl_words kl_percent(double share);      /* share 1: 100 % */
kl_words kl_bytes_words(uint64_t bytes);

/* Print the label, then a text formatted as by printf(), wrapped to further lines. */
void kl_say(FILE *out, const char *label, const char *format, ...) KILTER_PRINTF(3, 4);

/* Write the text of a row's cell, at most KL_CELL_BYTES with its NUL. */
typedef void (*kl_cell_fn)(const void *context, size_t row, char *cell);

typedef struct kl_column {
    const char *head;
    int text; /* true: aligned left, may shrink; KL_WHOLE: aligned left, never shortened */
    kl_cell_fn cell;
} kl_column;

/* Print at most KL_COLUMNS_MAX columns. Empty columns are left out. */
void kl_print_table(FILE *out, const kl_column *columns, size_t count, const void *context, size_t rows);
/* How a column shows a member of a row. If the column has a cell function, that function gives the text. */
typedef enum kl_style {
    KL_AS_COUNT,  /* uint64_t */
    KL_AS_ANY,    /* uint64_t; all cells stay empty if the last row, the sum, is 0 */
    KL_AS_NUMBER, /* uint32_t */
    KL_AS_BYTES,  /* uint64_t, by kl_bytes_words() */
    KL_AS_TEXT,   /* char * */
    KL_AS_REAL,   /* double, with `decimals` decimals, multiplied by `times` unless `times` is 0 */
    KL_AS_KNOWN,  /* as KL_AS_REAL, but empty if the value is not finite */
    KL_AS_DIGITS, /* double, multiplied in the same way, by kl_digits() */
    KL_AS_TIME,   /* double, by kl_time_words() */
} kl_style;

typedef struct kl_row_column {
    kl_column column;
    kl_style style;
    size_t offset;
    int decimals;
    double times;
    bool no_sum; /* the last row's cell is empty */
} kl_row_column;

/* A column that shows `member` of struct `row`. */
#define KL_SHOW(title, as, row, member)                                                                      \
    { .column = {.head = (title)}, .style = KL_AS_##as, .offset = offsetof(row, member) }
#define KL_SHOW_REAL(title, as, row, member, digits, factor)                                                 \
    {                                                                                                        \
        .column = {.head = (title)}, .style = KL_AS_##as, .offset = offsetof(row, member),                   \
        .decimals = (digits), .times = (factor)                                                              \
    }

#define KL_SHOW_OWN(title, as, row, member, digits, factor) /* the last row has no sum */                    \
    {                                                                                                        \
        .column = {.head = (title)}, .style = KL_AS_##as, .offset = offsetof(row, member),                   \
        .decimals = (digits), .times = (factor), .no_sum = true                                              \
    }

/* Return the struct that a row of the table shows. NULL: its cells stay empty. */
typedef const void *(*kl_row_at_fn)(const void *context, size_t row);

void kl_print_rows(FILE *out, const kl_row_column *columns, size_t count, kl_row_at_fn row_at,
                   const void *context, size_t rows);
/* Write a cell as printf() does; NAN becomes "-". For use in a kl_cell_fn. */
void kl_cell(char *cell, const char *format, ...) KILTER_PRINTF(2, 3);
void kl_cell_number(char *cell, const char *format, double value) KILTER_PRINTF(2, 0);

/* A JSON value that is being written. `first`: the innermost object or array is still empty. */
typedef struct kl_json {
    FILE *out;
    bool first;
    int digits; /* of numbers; 0: as many as a number has */
} kl_json;

/* name: name of the member, inside an object; NULL in an array or at the top level */
void kl_json_open(kl_json *j, const char *name, char bracket); /* '{' or '[' */
void kl_json_close(kl_json *j, char bracket);
void kl_json_text(kl_json *j, const char *name, const char *value); /* NULL: null */
void kl_json_number(kl_json *j, const char *name,
                    double value); /* Print a number, or null if it is not finite. */
void kl_json_count(kl_json *j, const char *name, uint64_t value);
void kl_json_signed(kl_json *j, const char *name, int64_t value);
void kl_json_truth(kl_json *j, const char *name, bool value);

/* Print the name or path of a file, made safe for a terminal. */
typedef struct kl_shown {
    char text[1024];
} kl_shown;
kl_shown kl_shown_name(const char *name);

#endif
