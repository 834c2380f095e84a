/* Options of farms and of commands. One row describes an option: reading it, --help, the man page and shell
 * completion all use that row. */
#ifndef KL_OPTIONS_H
#define KL_OPTIONS_H

#include <stdio.h>

#include "base/base.h"

typedef enum kl_option_kind {
    KL_OPTION_SWITCH, /* bool: the option needs no value, and accepts 0 or 1 */
    KL_OPTION_TEXT,   /* const char *: the text itself, which is never empty and not copied */
    KL_OPTION_UINT32,
    KL_OPTION_UINT64, /* also int64_t, where −1 means "not given" */
    KL_OPTION_NUMBER, /* double */
    KL_OPTION_WHOLE,  /* double without a fraction */
    KL_OPTION_OTHER,  /* any type: the function `read` stores the value */
} kl_option_kind;

typedef struct kl_option kl_option;

/* A value that an option's text gives, before it is stored in a field. */
typedef struct kl_value {
    const kl_option *option;
    const char *said, *text; /* what the user wrote, as --name or KILTER_NAME; the value */
    void *into;              /* the struct to fill */
    kilter_error *error;
} kl_value;

struct kl_option {
    const char *name;  /* name without the dashes */
    const char *value; /* the placeholder in help, as FILE; NULL for a switch */
    const char *help;  /* sentences for help and man page */
    kl_option_kind kind;
    size_t offset;      /* offset of the option's field in the struct to fill */
    double least, most; /* limits of a number; most = 0: no upper limit */
    bool above;         /* `least` itself is too small */
    bool repeats;       /* the option may be given several times */
    const char *needs;  /* the option without which this one has no effect; NULL: none */
    const char *words;  /* values separated by blanks: the only ones, unless `read` is set */
    bool is_file;       /* the value names a file to write; "-" is refused */
    kilter_status (*read)(const kl_value *value); /* check the value before it is stored. KILTER_ERR_USAGE */
};

typedef struct kl_option_list {
    const kl_option *row;
    size_t count;
} kl_option_list;

/* Check `text` and store it in the option's field of `into`. `said` is what the user wrote, as --name or
 * KILTER_NAME, for the error. KILTER_ERR_USAGE. */
kilter_status kl_option_set(const kl_option *option, const char *said, const char *text, void *into,
                            kilter_error *error);
/* Fail with "--name: 'text' is WHAT". */
kilter_status kl_option_refuse(const kl_value *value, const char *what);
/* Find the option whose name is the first `length` bytes of `name`. NULL: there is none. */
const kl_option *kl_option_find(kl_option_list list, const char *name, size_t length);
/* Is `text` one of the blank-separated words? */
bool kl_option_is_word(const char *words, const char *text);

enum { KL_VARIABLE_BYTES = 64 };
void kl_option_variable(const kl_option *option, char name[KL_VARIABLE_BYTES]); /* KILTER_NAME */

/* Print an indented line for each option, wrapped at the width of a terminal. */
void kl_options_print(FILE *out, kl_option_list list);
void kl_option_print(FILE *out, const char *left, const char *help);

/* --- typo.c --- */

/* Find the name that differs from `word` by one or two letters. NULL: there is none, or `word` is a name. */
const char *kl_typo_of(const char *word, const char *const *names, size_t count);
/* The same among the options. */
const char *kl_typo_of_option(kl_option_list list, const char *word);
/* Warn of each variable that begins with KILTER_ and is not in `names`; KILTER_TEST_… is left alone. */
void kl_typo_warn_environment(FILE *out, char *const *variables, const char *const *names, size_t count);
/* Warn when the argument, which Kilter leaves to the program, is nearly an option. */
void kl_typo_warn_argument(FILE *out, const char *argument, kl_option_list list);

#endif
