/* A list of changes to the source text. They may be added in any order. */
#ifndef KC_EDIT_H
#define KC_EDIT_H

#include <stddef.h>
#include <stdio.h>

#include "kilter/status.h"

typedef struct kc_edit {
    unsigned from, to; /* the characters from … to − 1 of the source are replaced */
    char *text;        /* the text that replaces these characters */
    size_t number;     /* edits at the same offset are applied in the order of their numbers */
} kc_edit;

typedef struct kc_edits {
    kc_edit *at;
    size_t count, room;
} kc_edits;

/* Add an edit that replaces source[from … to − 1]. `format` and its arguments are those of printf(). */
void kc_replace(kc_edits *edits, unsigned from, unsigned to, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Print source[from … to − 1] with its edits. */
void kc_print_edited(kc_edits *edits, const char *source, unsigned from, unsigned to, FILE *out);
void kc_edits_free(kc_edits *edits);

#endif
