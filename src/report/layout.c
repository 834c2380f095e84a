/* Print wrapped lines and tables for people. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "report/print.h"
#include "report/text.h"

enum {
    LABEL = 14,        /* width of the label at the beginning of a line, in columns */
    TEXT_BYTES = 4096, /* greatest number of bytes of a text before it is wrapped */
    NARROWEST =
        4, /* least width of a text column in a table that must be made narrower to fit into KL_WIDTH */
};

/* ---- words ---- */

/* Return the number of bytes of the first word of `text`. Only the first `columns` characters of a longer
 * word count. *taken is set to the number of characters that count. */
static size_t word_bytes(const char *text, size_t columns, size_t *taken) {
    size_t bytes = 0;
    *taken = 0;
    while (text[bytes] && text[bytes] != ' ' && *taken < columns) {
        size_t one = kl_utf8_bytes(text + bytes);
        bytes += one ? one : 1;
        ++*taken;
    }
    return bytes;
}

/* Print words. A word that does not fit into the line begins the next line. A word that is wider than a line
 * is broken. */
static void wrap(FILE *out, const char *label, const char *text) {
    size_t at = LABEL, columns;
    bool glued = true; /* true: print no space before the next word */
    int pad = LABEL - (int)kl_utf8_columns(label);
    fprintf(out, "%s%*s", label, pad > 0 ? pad : 0, "");
    while (*text) {
        size_t bytes = word_bytes(text, KL_WIDTH - LABEL, &columns);
        if (at > LABEL && at + !glued + columns > KL_WIDTH) {
            fprintf(out, "\n%*s", LABEL, "");
            at = LABEL;
        }
        bool space = at > LABEL && !glued;
        fprintf(out, "%s%.*s", space ? " " : "", (int)bytes, text);
        at += columns + space;
        size_t spaces = strspn(text + bytes, " ");
        glued = spaces == 0;
        text += bytes + spaces;
    }
    fputc('\n', out);
}

void kl_say(FILE *out, const char *label, const char *format, ...) {
    char text[TEXT_BYTES], fit[TEXT_BYTES + 8];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    kl_printable(fit, sizeof fit, text, TEXT_BYTES / 4);
    wrap(out, label, fit);
}

kl_words kl_digits(double value) {
    kl_words w;
    double size = fabs(value);
    int decimals = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4;
    if (isnan(value))
        snprintf(w.text, sizeof w.text, "-");
    else if (size != 0 && (size < 0.01 || size >= 1e9))
        snprintf(w.text, sizeof w.text, "%.3g", value);
    else
        snprintf(w.text, sizeof w.text, "%.*f", decimals, value);
    return w;
}

kl_words kl_time_words(double seconds) {
    kl_words w;
    double size = fabs(seconds);
    if (isnan(seconds))
        snprintf(w.text, sizeof w.text, "-");
    else if (size >= 7200)
        snprintf(w.text, sizeof w.text, "%.0f h %02.0f min", trunc(seconds / 3600),
                 trunc(fmod(size, 3600) / 60));
    else if (size >= 120)
        snprintf(w.text, sizeof w.text, "%.0f min %02.0f s", trunc(seconds / 60), trunc(fmod(size, 60)));
    else if (size >= 1 || size == 0)
        snprintf(w.text, sizeof w.text, "%.2f s", seconds);
    else if (size >= 1e-3)
        snprintf(w.text, sizeof w.text, "%.3g ms", 1e3 * seconds);
    else if (size >= 1e-6)
        snprintf(w.text, sizeof w.text, "%.3g µs", 1e6 * seconds);
    else
        snprintf(w.text, sizeof w.text, "%.3g ns", 1e9 * seconds);
    return w;
}

void kl_left_words(double low_s, double high_s, char words[KL_LEFT_BYTES]) {
    *words = '\0';
    if (high_s > 0)
        snprintf(words, KL_LEFT_BYTES, "%s to %s left (90 %%)", kl_time_words(low_s).text,
                 kl_time_words(high_s).text);
}

kl_words kl_percent(double share) {
    kl_words w;
    snprintf(w.text, sizeof w.text, isnan(share) ? "-" : "%.1f %%", 100 * share);
    return w;
}

kl_words kl_bytes_words(uint64_t bytes) {
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB"};
    kl_words w;
    double size = (double)bytes / 1e3;
    size_t unit = 0;
    for (; size >= 999.95 && unit + 1 < sizeof units / sizeof *units; size /= 1e3)
        unit++;
    snprintf(w.text, sizeof w.text, "%.*f %s", size >= 100 ? 0 : 1, size, units[unit]);
    return w;
}

/* ---- tables ---- */

/* Where the cells of a table come from. */
typedef struct source {
    const void *context;
    const kl_row_column *shown; /* NULL: every column has a cell function */
    kl_row_at_fn row_at;
    size_t rows;
} source;

static void show_real(const kl_row_column *column, double value, char *cell) {
    double shown = (column->times != 0 ? column->times : 1) * value;
    if (column->style == KL_AS_DIGITS)
        kl_cell(cell, "%s", kl_digits(shown).text);
    else if (isnan(value) && column->style == KL_AS_REAL)
        kl_cell(cell, "-");
    else if (isfinite(value) || column->style == KL_AS_REAL)
        kl_cell(cell, "%.*f", column->decimals, shown);
}

static void show(const kl_row_column *column, const void *row, const void *last, char *cell) {
    const void *value = (const char *)row + column->offset;
    switch (column->style) {
    case KL_AS_ANY:
        if (*(const uint64_t *)((const char *)last + column->offset) == 0)
            break;
        /* fall through */
    case KL_AS_COUNT:
        kl_cell(cell, "%" PRIu64, *(const uint64_t *)value);
        break;
    case KL_AS_NUMBER:
        kl_cell(cell, "%" PRIu32, *(const uint32_t *)value);
        break;
    case KL_AS_BYTES:
        kl_cell(cell, "%s", kl_bytes_words(*(const uint64_t *)value).text);
        break;
    case KL_AS_TEXT:
        kl_cell(cell, "%s", *(char *const *)value);
        break;
    case KL_AS_TIME:
        kl_cell(cell, "%s", kl_time_words(*(const double *)value).text);
        break;
    case KL_AS_REAL:
    case KL_AS_KNOWN:
    case KL_AS_DIGITS:
        show_real(column, *(const double *)value, cell);
        break;
    }
}

static void put_text(const source *from, const kl_column *columns, size_t c, size_t row, char *cell) {
    cell[0] = '\0';
    if (columns[c].cell)
        columns[c].cell(from->context, row, cell);
    else if (from->row_at(from->context, row) && !(from->shown[c].no_sum && row + 1 == from->rows))
        show(&from->shown[c], from->row_at(from->context, row), from->row_at(from->context, from->rows - 1),
             cell);
}

/* Find the widths of the columns. An empty column has width 0 and is not printed. */
static void measure(const source *from, const kl_column *columns, size_t count, size_t rows, size_t *width) {
    char cell[KL_CELL_BYTES];
    for (size_t c = 0; c < count; c++) {
        width[c] = 0;
        for (size_t row = 0; row < rows; row++) {
            put_text(from, columns, c, row, cell);
            size_t needed = kl_utf8_columns(cell);
            width[c] = needed > width[c] ? needed : width[c];
        }
        size_t head = kl_utf8_columns(columns[c].head);
        if (width[c] > 0 && width[c] < head)
            width[c] = head;
    }
}

static size_t total_width(const size_t *width, size_t count) {
    size_t total = 0;
    for (size_t c = 0; c < count; c++)
        total += width[c] ? width[c] + 2 : 0;
    return total ? total - 2 : 0;
}

static void shrink(const kl_column *columns, size_t count, size_t *width) {
    while (total_width(width, count) > KL_WIDTH) {
        size_t widest = count;
        for (size_t c = 0; c < count; c++)
            if (columns[c].text == true && width[c] > NARROWEST &&
                (widest == count || width[c] > width[widest]))
                widest = c;
        if (widest == count)
            return;
        width[widest]--;
    }
}

/* Write a cell into a line at position `at`. Return the position of the next cell. */
static size_t put_cell(char *line, size_t at, const char *text, size_t width, bool left) {
    char fit[KL_CELL_BYTES + 8];
    kl_printable(fit, sizeof fit, text, width);
    int pad = (int)(width - kl_utf8_columns(fit));
    int bytes = snprintf(line + at, TEXT_BYTES - at, "%s%*s%s%*s", at ? "  " : "", left ? 0 : pad, "", fit,
                         left ? pad : 0, "");
    return at + (size_t)bytes < TEXT_BYTES ? at + (size_t)bytes : TEXT_BYTES - 1;
}

static void print(FILE *out, const source *from, const kl_column *columns, size_t count, size_t rows) {
    size_t width[KL_COLUMNS_MAX];
    char cell[KL_CELL_BYTES];
    measure(from, columns, count, rows, width);
    shrink(columns, count, width);
    for (size_t row = 0; row <= rows; row++) { /* row 0 is the header */
        char line[TEXT_BYTES];
        size_t at = 0;
        for (size_t c = 0; c < count; c++) {
            if (width[c] == 0)
                continue;
            if (row > 0)
                put_text(from, columns, c, row - 1, cell);
            at = put_cell(line, at, row == 0 ? columns[c].head : cell, width[c], columns[c].text != false);
        }
        while (at > 0 && line[at - 1] == ' ')
            at--;
        fprintf(out, "%.*s\n", (int)at, line);
    }
}

void kl_print_table(FILE *out, const kl_column *columns, size_t count, const void *context, size_t rows) {
    print(out, &(source){.context = context}, columns, count, rows);
}

void kl_print_rows(FILE *out, const kl_row_column *columns, size_t count, kl_row_at_fn row_at,
                   const void *context, size_t rows) {
    kl_column heads[KL_COLUMNS_MAX];
    for (size_t c = 0; c < count; c++)
        heads[c] = columns[c].column;
    print(out, &(source){.context = context, .shown = columns, .row_at = row_at, .rows = rows}, heads, count,
          rows);
}

void kl_cell(char *cell, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(cell, KL_CELL_BYTES, format, args);
    va_end(args);
}

void kl_cell_number(char *cell, const char *format, double value) {
    if (isnan(value))
        kl_cell(cell, "-");
    else
        snprintf(cell, KL_CELL_BYTES, format, value);
}
