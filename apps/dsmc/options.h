/* Options of the programs: a table gives the name, the meaning and the place of each value. */
#ifndef DSMC_OPTIONS_H
#define DSMC_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef enum dsmc_kind { DSMC_NUMBER, DSMC_WHOLE, DSMC_WORD, DSMC_TEXT, DSMC_FLAG } dsmc_kind;

typedef struct dsmc_option {
    const char *name, *text;
    dsmc_kind kind;
    size_t at;                /* offset of the value: double; WORD: double; TEXT: const char *; FLAG: bool */
    double least, most;       /* NUMBER, WHOLE */
    const char *const *words; /* WORD: the words, which end with NULL; the value is the number of the word */
} dsmc_option;

typedef struct dsmc_options { /* the options of a program */
    const char *program;
    const dsmc_option *at;
    size_t count;
} dsmc_options;

void dsmc_print_options(const dsmc_options *options, FILE *out);
/* Read the words after the command's name into `values`. errors: where to print an error; NULL: nowhere.
 * Return the exit code: 0 or 2. */
int dsmc_read_options(const dsmc_options *options, int word_count, char **words, void *values, FILE *errors);

#endif
