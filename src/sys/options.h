/* Options of farms and of commands. One row describes an option; the parser, --help, the man page and shell
 * completion use this row. */
#ifndef KL_OPTIONS_H
#define KL_OPTIONS_H

#include <stdio.h>

#include "base/base.h"

typedef enum kl_option_kind {
    KL_OPTION_SWITCH, /* type bool: the option needs no value, and accepts 0 or 1 */
    KL_OPTION_TEXT, /* type const char *: the pointer to the user's text is stored; the text is never empty */
    KL_OPTION_UINT32,
    KL_OPTION_UINT64, /* type uint64_t; also for int64_t, where −1 means "not given" */
    KL_OPTION_NUMBER, /* type double */
    KL_OPTION_WHOLE,  /* type double that holds a whole number */
    KL_OPTION_OTHER,  /* any other type: the function `read` stores the value */
} kl_option_kind;

typedef struct kl_option kl_option;

/* The text that the user gave for an option, and where to store its value. */
typedef struct kl_value {
    const kl_option *option;
    /* said: the option as the user wrote it, --name or KILTER_NAME; text: the value as the user wrote it */
    const char *said, *text;
    void *into; /* the struct in which the value is stored */
    kilter_error *error;
} kl_value;

struct kl_option {
    const char *name;  /* name of the option without the dashes */
    const char *value; /* the word for the value in the help text, such as FILE; NULL for a switch */
    const char *help;  /* description of the option for help and man page, in whole sentences */
    kl_option_kind kind;
    size_t offset;      /* offset of the option's field in the struct that `into` points to */
    double least, most; /* least and greatest allowed number; most = 0: there is no upper limit */
    bool above;         /* true: a number must be greater than `least`; false: `least` is allowed */
    bool repeats;       /* true: the option may be given several times */
    const char *needs;  /* name of the option without which this one has no effect; NULL: none */
    const char *except; /* name of the option that cannot be combined with this one; NULL: none */
    /* the allowed values, separated by spaces; if `read` is set, `read` decides instead which values are
     * allowed */
    const char *words;
    bool is_file; /* true: the value names a file to write, and the value "-" is refused */
    /* function that checks the value, and for KL_OPTION_OTHER also stores it; NULL: no check. Error:
     * KILTER_ERR_USAGE */
    kilter_status (*read)(const kl_value *value);
    /* the option's name as a single letter, such as 'n' for -n; only for options of commands; 0: none */
    char letter;
};

typedef struct kl_option_list {
    const kl_option *row;
    size_t count;
} kl_option_list;

/* Check `text` and store it in the option's field of `into`. The argument `said` is the option as the user
 * wrote it, --name or KILTER_NAME. Error messages name the option by `said`. Error: KILTER_ERR_USAGE */
kilter_status kl_option_set(const kl_option *option, const char *said, const char *text, void *into,
                            kilter_error *error);
/* Fail with the message "--name: 'text' is WHAT"; `what` gives WHAT. */
kilter_status kl_option_refuse(const kl_value *value, const char *what);
/* Find the option whose name is the first `length` bytes of `name`. NULL: there is none. */
const kl_option *kl_option_find(kl_option_list list, const char *name, size_t length);
/* Return whether `text` is one of the words, which are separated by spaces. */
bool kl_option_is_word(const char *words, const char *text);

enum { KL_VARIABLE_BYTES = 64 };
void kl_option_variable(const kl_option *option, char name[KL_VARIABLE_BYTES]); /* write KILTER_NAME */

/* Print indented lines for each option, wrapped at the width of a terminal. */
void kl_options_print(FILE *out, kl_option_list list);
void kl_option_print(FILE *out, const char *left, const char *help);

/* --- typo.c --- */

/* Find the name that differs from `word` by one or two letters. NULL: there is none, or `word` is a name. */
const char *kl_typo_of(const char *word, const char *const *names, size_t count);
/* Find the option whose name differs from `word` by one or two letters. NULL: there is none, or `word` is
 * a name. */
const char *kl_typo_of_option(kl_option_list list, const char *word);
/* Warn of each variable that begins with KILTER_ and is not in `names`, except those that begin with
 * KILTER_TEST_. */
void kl_typo_warn_environment(FILE *out, char *const *variables, const char *const *names, size_t count);
/* Warn if `argument` looks like a mistyped option of Kilter. Kilter leaves arguments that it does not know
 * to the program. */
void kl_typo_warn_argument(FILE *out, const char *argument, kl_option_list list);

#endif
