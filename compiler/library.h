/* Known functions of the C library. */
#ifndef KC_LIBRARY_H
#define KC_LIBRARY_H

#include <stdbool.h>

bool kc_is_pure(const char *name);   /* its result depends only on its numeric arguments; no side effects */
bool kc_is_local(const char *name);  /* it does the same on all ranks, and touches no arrays */
bool kc_is_memory(const char *name); /* it touches the memory to which its arguments lead */
bool kc_is_root(const char *name);   /* rank 0 alone may call it: files, clocks */
/* Is the function pure, except that it may set errno? */
bool kc_sets_errno(const char *name);
/* Is the word in a list with blanks around each? */
bool kc_has_word(const char *words, const char *word);

#endif
