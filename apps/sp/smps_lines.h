/* Read lines, tokens, numbers and names of an SMPS file. The readers of all three files use these
 * functions. */
#ifndef SP_SMPS_LINES_H
#define SP_SMPS_LINES_H

#include <stdbool.h>

#include "smps.h"

/* A piece of the file's bytes; it does not end with a NUL. */
typedef struct sp_token {
    const char *text;
    size_t size;
} sp_token;

enum { SP_LINE_TOKENS = 6 };

/* The state of reading a file. At the beginning, all members but `file` and `error` are zero. */
typedef struct sp_lines {
    const sp_file *file;
    kilter_error *error;
    size_t at;
    uint64_t line; /* number of the present line, counted from 1 */
    bool header;   /* the line opens a section: it starts in column 1, or consists of a section's name only */
    int count;
    sp_token token[SP_LINE_TOKENS];
} sp_lines;

/* Read the next line that is neither empty nor a comment (`*` in column 1). Set *more to false at the end of
 * the file. */
kilter_status sp_lines_next(sp_lines *lines, bool *more);

/* Fail with KILTER_ERR_INPUT and the text "NAME:LINE: …". sp_lines_fail() names the present line,
 * sp_lines_fail_at() any line. */
kilter_status sp_lines_fail(const sp_lines *lines, const char *format, ...) KILTER_PRINTF(2, 3);
kilter_status sp_lines_fail_at(const sp_lines *lines, uint64_t line, const char *format, ...)
    KILTER_PRINTF(3, 4);
kilter_status sp_lines_memory(const sp_lines *lines); /* fail with KILTER_ERR_MEMORY */

bool sp_token_is(sp_token token, const char *text);
bool sp_token_same(sp_token a, sp_token b);

/* A token's text for error messages, made printable and cut if it is long. */
typedef struct sp_shown {
    char text[44];
} sp_shown;
sp_shown sp_show(sp_token token);

/* Read a finite decimal number below 1e30 in absolute value. */
kilter_status sp_lines_number(const sp_lines *lines, int token, double *value);
/* Read a number below 1e15 in absolute value; CLP cannot scale larger costs. */
kilter_status sp_lines_cost(const sp_lines *lines, int token, double *value);
/* Read a number as sp_lines_number() does, but accept infinity ("inf", "1e30" and beyond) as ±INFINITY. */
kilter_status sp_lines_bound(const sp_lines *lines, int token, double *value);
/* Read a probability, a number in [0, 1]. */
kilter_status sp_lines_probability(const sp_lines *lines, int token, double *value);

/* A set of names in the order in which they first appear, found by hashing. If all members are zero, the set
 * is empty. The names' bytes are not copied. */
typedef struct sp_names {
    sp_token *name;
    int count, capacity;
    int *slot; /* hash table: index of a name, plus 1; 0: the slot is free */
    size_t slots;
} sp_names;

/* return the index of `name`, or −1 if it is not in the set */
int sp_names_find(const sp_names *names, sp_token name);
bool sp_names_add(sp_names *names, sp_token name); /* append `name`; return false if memory ran out */
void sp_names_free(sp_names *names);

/* Make room for `needed` items of `size` bytes in *array, by doubling *capacity. Return false if memory ran
 * out. */
bool sp_grow(void *array, size_t *capacity, size_t needed, size_t size);

#endif
