/* A struct, followed by guard bytes that the library must not touch. */
#ifndef SIZES_H
#define SIZES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 256, GUARD = 0xA5 };

#define GUARDED(type)                                                                                        \
    struct {                                                                                                 \
        type it;                                                                                             \
        unsigned char guard[GUARD_BYTES];                                                                    \
    }

#define CHECK(holds) ((holds) ? (void)0 : wrong(__FILE__, __LINE__, #holds))

static inline void wrong(const char *file, int line, const char *what) {
    fprintf(stderr, "%s:%d: this condition is false: %s\n", file, line, what);
    exit(1);
}

static inline int all_are(const unsigned char *bytes, size_t size, int value) {
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != value)
            return 0;
    return 1;
}

/* Prepare an input struct: zeros in the struct, and garbage after the struct. */
#define PREPARE_INPUT(s) (memset(&(s), GUARD, sizeof(s)), memset(&(s).it, 0, sizeof(s).it))
/* Prepare an output struct: garbage in the struct and after the struct. */
#define PREPARE_OUTPUT(s) memset(&(s), GUARD, sizeof(s))
#define UNTOUCHED(s)      all_are((s).guard, sizeof(s).guard, GUARD)

#ifdef NEWER /* with NEWER defined, every struct that may grow has a member that the library does not know   \
              */
#define LATER_IS_ZERO(s) all_are((s)->later, sizeof(s)->later, 0)
#define SET_LATER(s, to) ((s)->later[7] = (to))
#define KNOWS_LATER      1
#else
#define LATER_IS_ZERO(s) 1
#define SET_LATER(s, to) ((void)(s))
#define KNOWS_LATER      0
#endif

#endif
