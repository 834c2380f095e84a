/* Lists of functions of the C library, by what they do. */
#include "library.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const PURE[] = {"sqrt",
                                   "fabs",
                                   "exp",
                                   "log",
                                   "sin",
                                   "cos",
                                   "tan",
                                   "pow",
                                   "fmax",
                                   "fmin",
                                   "floor",
                                   "ceil",
                                   "abs",
                                   "labs",
                                   "llabs",
                                   "sqrtf",
                                   "fabsf",
                                   "expf",
                                   "logf",
                                   "sinf",
                                   "cosf",
                                   "tanf",
                                   "powf",
                                   "fmaxf",
                                   "fminf",
                                   "floorf",
                                   "ceilf",
                                   "hypot",
                                   "hypotf",
                                   "atan",
                                   "atan2",
                                   "asin",
                                   "acos",
                                   "sinh",
                                   "cosh",
                                   "tanh",
                                   "exp2",
                                   "expm1",
                                   "log2",
                                   "log10",
                                   "log1p",
                                   "cbrt",
                                   "fmod",
                                   "fmodf",
                                   "round",
                                   "trunc",
                                   "rint",
                                   "nearbyint",
                                   "lround",
                                   "lrint",
                                   "copysign",
                                   "fma",
                                   "erf",
                                   "erfc",
                                   "tgamma",
                                   "atanf",
                                   "atan2f",
                                   "roundf",
                                   "truncf",
                                   "fdim",
                                   "__builtin_fabs",
                                   "__builtin_sqrt"};
static const char *const QUIET[] = {"fabs",  "fmax",   "fmin",   "floor",     "ceil",           "abs",
                                    "labs",  "llabs",  "fabsf",  "fmaxf",     "fminf",          "floorf",
                                    "ceilf", "atan",   "tanh",   "cbrt",      "round",          "trunc",
                                    "rint",  "roundf", "truncf", "nearbyint", "__builtin_fabs", "copysign"};
static const char *const LOCAL[] = {
    "malloc",       "calloc",        "exit",    "abort",   "atoi",          "atof",
    "atol",         "atoll",         "strtol",  "strtod",  "strtoul",       "strtoull",
    "strtoll",      "strcmp",        "strncmp", "strlen",  "strcpy",        "strncpy",
    "strcat",       "strchr",        "strrchr", "strstr",  "snprintf",      "sprintf",
    "sscanf",       "rand",          "srand",   "random",  "srandom",       "isdigit",
    "isalpha",      "isspace",       "toupper", "tolower", "__assert_fail", "__errno_location",
    "strerror",     "aligned_alloc", "drand48", "srand48", "_Exit",         "__builtin_expect",
    "__ctype_b_loc"};
static const char *const MEMORY[] = {"memcpy",  "memset", "memmove", "memcmp", "qsort",
                                     "bsearch", "fwrite", "fread",   "fgets"};
static const char *const ROOT[] = {"printf", "fprintf", "puts",  "putchar", "fputs",  "fputc",  "putc",
                                   "perror", "fflush",  "fopen", "fclose",  "fgetc",  "getc",   "getchar",
                                   "fwrite", "fseek",   "ftell", "rewind",  "remove", "rename", "feof",
                                   "ferror", "setvbuf", "time",  "clock"};

static bool is_one_of(const char *const *names, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

#define IS_ONE_OF(list, name) is_one_of(list, sizeof(list) / sizeof *(list), name)

bool kc_is_pure(const char *name) {
    return IS_ONE_OF(PURE, name);
}

bool kc_sets_errno(const char *name) {
    return kc_is_pure(name) && !IS_ONE_OF(QUIET, name);
}

bool kc_is_local(const char *name) {
    return IS_ONE_OF(LOCAL, name) || kc_is_pure(name);
}

bool kc_is_memory(const char *name) {
    return IS_ONE_OF(MEMORY, name);
}

bool kc_is_root(const char *name) {
    return IS_ONE_OF(ROOT, name);
}

bool kc_has_word(const char *words, const char *word) {
    char padded[128];
    snprintf(padded, sizeof padded, " %s ", word);
    return strlen(word) < 100 && strstr(words, padded);
}
