/* Apply edits to the source text. */
#include "edit.h"

#include <stdarg.h>
#include <stdlib.h>

void kc_replace(kc_edits *e, unsigned from, unsigned to, const char *format, ...) {
    if (e->count == e->room) {
        e->room = e->room ? 2 * e->room : 64;
        e->at = realloc(e->at, e->room * sizeof *e->at);
        if (!e->at)
            abort();
    }
    kc_edit *edit = &e->at[e->count];
    *edit = (kc_edit){.from = from, .to = to, .number = e->count};
    va_list args;
    va_start(args, format);
    if (vasprintf(&edit->text, format, args) < 0)
        abort();
    va_end(args);
    e->count++;
}

static int compare(const void *a, const void *b) {
    const kc_edit *one = a, *other = b;
    if (one->from != other->from)
        return one->from < other->from ? -1 : 1;
    return one->number < other->number ? -1 : 1;
}

void kc_print_edited(kc_edits *e, const char *source, unsigned from, unsigned to, FILE *out) {
    unsigned at = from;
    qsort(e->at, e->count, sizeof *e->at, compare);
    for (size_t i = 0; i < e->count; i++) {
        const kc_edit *edit = &e->at[i];
        if (edit->from < at || edit->to > to)
            continue; /* skip edits outside of this range, or within text that is already replaced */
        fwrite(source + at, 1, edit->from - at, out);
        fputs(edit->text, out);
        at = edit->to;
    }
    fwrite(source + at, 1, to - at, out);
}

void kc_edits_free(kc_edits *e) {
    for (size_t i = 0; i < e->count; i++)
        free(e->at[i].text);
    free(e->at);
    *e = (kc_edits){.at = NULL};
}
