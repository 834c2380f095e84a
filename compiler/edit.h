/* Changes of the source's text, which are noted in any order. */
#ifndef KC_EDIT_H
#define KC_EDIT_H

#include <stddef.h>
#include <stdio.h>

#include "kilter/status.h"

typedef struct kc_edit {
    unsigned from, to; /* these characters of the source */
    char *text;        /* are replaced by this */
    size_t number;     /* order of edits at one place */
} kc_edit;

typedef struct kc_edits {
    kc_edit *at;
    size_t count, room;
} kc_edits;

/* Replace source[from … to − 1]. The text is made in printf's manner. */
void kc_replace(kc_edits *edits, unsigned from, unsigned to, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Print source[from … to − 1] with its edits. */
void kc_print_edited(kc_edits *edits, const char *source, unsigned from, unsigned to, FILE *out);
void kc_edits_free(kc_edits *edits);

#endif
