/* Options of the kilter-dsmc programs. A table has each option's name and meaning, and the member that gets
 * the option's value.
 */
#ifndef DSMC_OPTIONS_H
#define DSMC_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef enum dsmc_kind { DSMC_NUMBER, DSMC_WHOLE, DSMC_WORD, DSMC_TEXT, DSMC_FLAG } dsmc_kind;

typedef struct dsmc_option {
    const char *name, *text;
    dsmc_kind kind;
    /* offset of the option's value in `values`. The value's type is double (NUMBER, WHOLE, WORD), const char
     * * (TEXT), bool (FLAG) */
    size_t at;
    double least, most; /* limits of the value, for kinds NUMBER and WHOLE */
    /* for options of kind WORD: the allowed words, ending with NULL; the option's value is the index of the
     * given word */
    const char *const *words;
} dsmc_option;

typedef struct dsmc_options { /* the options of a program */
    const char *program;
    const dsmc_option *at;
    size_t count;
} dsmc_options;

void dsmc_print_options(const dsmc_options *options, FILE *out);
/* Read the words after the command's name into `values`. Errors are printed to `errors`, if it is not NULL.
 * Return the exit code: 0 or 2. */
int dsmc_read_options(const dsmc_options *options, int word_count, char **words, void *values, FILE *errors);

#endif
