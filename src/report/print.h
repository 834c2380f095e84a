/* What every command prints with: numbers as words, lines and tables for people, JSON for programs. */
#ifndef KL_REPORT_PRINT_H
#define KL_REPORT_PRINT_H

#include <stdio.h>

#include "base/base.h"

enum {
    KL_WIDTH = 110, /* columns of whatever is printed for people */
    KL_CELL_BYTES = 160,
    KL_CELL_COLUMNS = 32, /* of a cell that holds text of the user's */
    KL_COLUMNS_MAX = 16,
    KL_WHOLE = 2, /* see kl_column */
};

typedef struct kl_words {
    char text[32];
} kl_words;

/* A number that is not known, NAN, is "-" in all of them. */
kl_words kl_digits(double value);       /* four digits of it */
kl_words kl_time_words(double seconds); /* with the unit that suits it */
kl_words kl_percent(double share);      /* share 1: 100 % */
kl_words kl_bytes_words(uint64_t bytes);

/* A line: the label, then text in printf's manner; what does not fit goes on below. */
void kl_say(FILE *out, const char *label, const char *format, ...) KILTER_PRINTF(3, 4);

/* What stands in a row of a table, NUL-terminated, in KL_CELL_BYTES. */
typedef void (*kl_cell_fn)(const void *context, size_t row, char *cell);

typedef struct kl_column {
    const char *head;
    int text; /* true: to the left, and shrinks; KL_WHOLE: to the left, and is never cut */
    kl_cell_fn cell;
} kl_column;

/* At most KL_COLUMNS_MAX columns; one with nothing in it is left out. */
void kl_print_table(FILE *out, const kl_column *columns, size_t count, const void *context, size_t rows);
/* A column that shows a member of a row, in a style; with a cell function, what that says. */
typedef enum kl_style {
    KL_AS_COUNT,  /* of a uint64_t */
    KL_AS_ANY,    /* of a uint64_t; nothing in all rows when it is 0 in the last one, their sum */
    KL_AS_NUMBER, /* of a uint32_t */
    KL_AS_BYTES,  /* of a uint64_t: kl_bytes_words() */
    KL_AS_TEXT,   /* of a char * */
    KL_AS_REAL,   /* of a double, with `decimals`, multiplied by `times` unless that is 0 */
    KL_AS_KNOWN,  /* the same; nothing when it is not finite */
    KL_AS_DIGITS, /* of a double, multiplied likewise: kl_digits() */
    KL_AS_TIME,   /* of a double: kl_time_words() */
} kl_style;

typedef struct kl_row_column {
    kl_column column;
    kl_style style;
    size_t offset;
    int decimals;
    double times;
    bool no_sum; /* nothing in the last row */
} kl_row_column;

/* A column for `member` of the struct `row`. */
#define KL_SHOW(title, as, row, member)                                                                      \
    { .column = {.head = (title)}, .style = KL_AS_##as, .offset = offsetof(row, member) }
#define KL_SHOW_REAL(title, as, row, member, digits, factor)                                                 \
    {                                                                                                        \
        .column = {.head = (title)}, .style = KL_AS_##as, .offset = offsetof(row, member),                   \
        .decimals = (digits), .times = (factor)                                                              \
    }

#define KL_SHOW_OWN(title, as, row, member, digits, factor) /* not of the sum */                             \
    {                                                                                                        \
        .column = {.head = (title)}, .style = KL_AS_##as, .offset = offsetof(row, member),                   \
        .decimals = (digits), .times = (factor), .no_sum = true                                              \
    }

/* A row of a table; NULL: one whose members are not shown. */
typedef const void *(*kl_row_at_fn)(const void *context, size_t row);

void kl_print_rows(FILE *out, const kl_row_column *columns, size_t count, kl_row_at_fn row_at,
                   const void *context, size_t rows);
/* For a kl_cell_fn: in printf's manner; "-" for NAN. */
void kl_cell(char *cell, const char *format, ...) KILTER_PRINTF(2, 3);
void kl_cell_number(char *cell, const char *format, double value) KILTER_PRINTF(2, 0);

/* One JSON value after another; `first`: nothing stands yet in the innermost object or array. */
typedef struct kl_json {
    FILE *out;
    bool first;
} kl_json;

/* name: the member's, in an object; NULL in an array and outside of both. */
void kl_json_open(kl_json *j, const char *name, char bracket); /* '{' or '[' */
void kl_json_close(kl_json *j, char bracket);
void kl_json_text(kl_json *j, const char *name, const char *value); /* NULL: null */
void kl_json_number(kl_json *j, const char *name, double value);    /* not finite: null */
void kl_json_count(kl_json *j, const char *name, uint64_t value);
void kl_json_signed(kl_json *j, const char *name, int64_t value);
void kl_json_truth(kl_json *j, const char *name, bool value);

/* A file's name or path as a terminal may show it. */
typedef struct kl_shown {
    char text[1024];
} kl_shown;
kl_shown kl_shown_name(const char *name);

#endif
