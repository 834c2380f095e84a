/* A source file with its loops and their pragmas. */
#ifndef KC_UNIT_H
#define KC_UNIT_H

#include "decide.h"
#include "kilter/status.h"

enum { KC_LOOPS = 256, KC_PRAGMAS = 128 };

typedef struct kc_loop {
    CXCursor loop, function;
    bool marked;          /* a pragma stands before the loop */
    unsigned pragma_from; /* offset of the pragma's line, or of the loop if it has no pragma */
    kc_clauses clauses;
    kc_nest *nest;
    kc_decision decision;
} kc_loop;

typedef struct kc_pragma {
    unsigned line, from, next; /* line number of the pragma; offsets of its line and of the token after it */
    kc_clauses clauses;
    bool used;
} kc_pragma;

typedef struct kc_root { /* a statement that only rank 0 runs */
    unsigned line, from, next;
    CXCursor statement, function;
} kc_root;

typedef struct kc_unit {
    const char *path;
    char *text; /* the file's text */
    size_t bytes;
    isl_ctx *isl;
    CXIndex index;
    CXTranslationUnit tu;
    kc_pragma pragma[KC_PRAGMAS];
    int pragmas;
    kc_root root[KC_PRAGMAS];
    int roots;
    char pure[2000]; /* names of functions that the user declared pure, with a space before and after each */
    unsigned reserved_line; /* line with a name that begins with kcc_ or KCC_; 0: no such name */
    kc_loop loop[KC_LOOPS];
    int loops;
} kc_unit;

/* Read a file, and decide on its loops. The caller must always close the unit. flags: additional compiler
 * flags. Return KILTER_ERR_INPUT if the file cannot be read, does not compile, or has a wrong pragma. */
kilter_status kc_unit_open(kc_unit *unit, const char *path, const char *const *flags, int count,
                           kilter_error *error);
void kc_unit_close(kc_unit *unit);
/* Does a line of the file begin with #pragma kilter? */
kilter_status kc_has_pragma(const char *path, bool *has, kilter_error *error);

/* --- vouched.c --- */

/* Store a function that the user declared pure. Return KILTER_ERR_INPUT if the C source does not declare the
 * function, or if the function cannot be pure. */
kilter_status kc_add_pure(kc_unit *unit, const char *name, unsigned line, kilter_error *error);
/* Find the statements after the root pragmas. Return KILTER_ERR_INPUT if no statement follows a pragma. */
kilter_status kc_find_roots(kc_unit *unit, kilter_error *error);
/* Return the entry of a statement that only rank 0 runs, or NULL if all ranks run the statement. */
const kc_root *kc_root_of(const kc_unit *unit, CXCursor statement);

/* --- explain.c --- */

void kc_explain(const kc_unit *unit, FILE *out);
void kc_explain_json(const kc_unit *unit, FILE *out);

#endif
