/* Known functions of the C library. */
#ifndef KC_LIBRARY_H
#define KC_LIBRARY_H

#include <stdbool.h>

bool kc_is_pure(const char *name);   /* the result depends only on the numeric arguments; no side effects */
bool kc_is_local(const char *name);  /* the call does the same on all ranks, and touches no arrays */
bool kc_is_memory(const char *name); /* the call touches memory that its arguments point to */
bool kc_is_root(const char *name);   /* only rank 0 may call the function, which uses files or clocks */
/* Is the function pure, except that it may set errno? */
bool kc_sets_errno(const char *name);
/* Is the word in `words`, a list with a space before and after each word? */
bool kc_has_word(const char *words, const char *word);

#endif
