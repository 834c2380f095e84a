/* Start compilers and programs. */
#ifndef KC_RUN_H
#define KC_RUN_H

#include <stdbool.h>

#include "kilter/status.h"

enum { KC_WORDS = 256 };

typedef struct kc_words {
    char *at[KC_WORDS + 1]; /* the words of a command; NULL after the last word */
    int count;
} kc_words;

void kc_add_word(kc_words *words, const char *word);
void kc_add_text(kc_words *words, const char *text); /* words separated by spaces */
void kc_words_free(kc_words *words);
/* Run a command, and set *code to its exit code. The command's standard output goes to the file `output`; if
 * `output` is NULL, it goes to the standard output of this process. Return KILTER_ERR_SYSTEM if the command
 * cannot be started. */
kilter_status kc_run(const kc_words *words, const char *output, int *code, kilter_error *error);
/* Return what a command prints, or NULL if the command fails. The caller frees the text. */
char *kc_output_of(const char *command);

#endif
