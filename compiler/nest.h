/* The intermediate form: a loop, and what its iterations read and write.
 *
 * Integer expressions become piecewise affine expressions over symbols; the library isl represents them. A
 * symbol is the index of a loop, or a variable or a structure's member that the loop does not change. Unknown
 * conditions count as possibly true, and unknown subscripts may have any value. So the recorded accesses
 * include all accesses of the program. If no two iterations share an element in the recorded accesses, no two
 * iterations share an element in the program. */
#ifndef KC_NEST_H
#define KC_NEST_H

#include <isl/aff.h>
#include <isl/map.h>
#include <isl/set.h>

#include "ast.h"

enum { KC_DIMS = 6, KC_DEPTH = 16, KC_ARRAYS = 64, KC_ACCESSES = 1024, KC_SYMBOLS = 128, KC_TEXT = 400 };

/* An array, a pointer or a scalar that several iterations of the loop touch. */
typedef struct kc_array {
    CXCursor variable; /* declaration of the array, pointer or scalar */
    char *name;
    bool scalar;     /* a variable that is neither array nor pointer */
    bool pointer;    /* true: the memory has an unknown size */
    bool fresh;      /* an array or a restrict pointer: the program reaches the memory by no other name */
    int dims;        /* number of subscripts; in flat memory, the row counts as one subscript */
    int stride;      /* for flat memory such as x[i * n + j]: number of the symbol n; −1: no such symbol */
    long long width; /* constant length of the rows of flat memory; 0: not constant, or not flat */
} kc_array;

typedef enum kc_update {
    KC_NO_UPDATE,
    KC_SUM,
    KC_PRODUCT,
    KC_LEAST, /* minimum by a comparison such as if (e < s) s = e; if s is NaN, s stays NaN */
    KC_MOST,
    KC_FMIN, /* fmin(), which prefers numbers to NaN */
    KC_FMAX,
} kc_update;

typedef struct kc_access {
    int array;
    bool write;
    kc_update update; /* kind of the update that contains the access, such as s += … or s = fmax(s, …) */
    bool in_inner;    /* the access is in the first inner loop */
    bool by_own_name; /* a called function makes this access by the variable's own name */
    bool unsure;      /* an unknown condition may make iterations skip the access */
    int member;       /* symbol of the structure member that is read; −1: no such member */
    /* maps the loop's index to the subscripts; with in_inner: the pair (loop's index, inner loop's index) */
    isl_map *where;
    /* numbers of the conditions and loops around the access, from outside to inside */
    int region[KC_DEPTH + 1], depth;
    unsigned line;
} kc_access;

/* A loop, as its header describes it. */
typedef struct kc_header {
    CXCursor loop, index, lower, test, bound, body;
    bool declared;   /* the header declares the index */
    long long step;  /* negative: the index falls */
    bool inclusive;  /* the index may reach the bound */
    long long shift; /* index + shift is compared with the bound */
    bool ends;       /* a jump may end the loop before its test fails */
    bool unsure;     /* the test is unknown, or known only in part */
    /* from: first value of the index; to: first value that the index does not reach; NULL: not affine */
    isl_pw_aff *from, *to;
} kc_header;

typedef struct kc_symbol {
    CXCursor variable; /* for a member: the structure, or the pointer to it */
    isl_id *id;        /* its name is the symbol's text in C, for example n or s->n */
    int array; /* for a member: the array that contains the structure; −1: the symbol is not a member */
    bool used; /* for a member: the loop uses the member's value */
    int loops; /* for an index: number of its loop, from 1; 0: the symbol is a variable or member */
    bool is_index;
} kc_symbol;

typedef struct kc_nest {
    isl_ctx *isl;
    CXCursor function; /* the function that the loop is in */
    const char *pure;  /* functions that the user declared pure, with a space before and after each */
    kc_header outer, inner;
    /* the loop's body is one inner loop, perhaps in a function that the body calls */
    bool has_inner;
    CXCursor calls[KC_DEPTH]; /* the calls through which the body reaches the first inner loop */
    int call_count;
    kc_array array[KC_ARRAYS];
    int arrays;
    kc_access access[KC_ACCESSES];
    int accesses;
    kc_symbol symbol[KC_SYMBOLS];
    int symbols;
    isl_set *context;    /* known conditions on the symbols that are not indices */
    unsigned wrong_line; /* line of the first statement or expression that was not understood */
    char wrong[KC_TEXT];
} kc_nest;

/* Read the loop. The caller must always free the nest. nest->wrong is "" if the whole loop was understood. */
kc_nest *kc_nest_read(isl_ctx *isl, CXCursor function, CXCursor loop, const char *pure);
void kc_nest_free(kc_nest *nest);
const char *kc_text_of(const kc_nest *nest, int symbol); /* the symbol's text in C */
/* Does the loop access the array only by reading structure members that are symbols? */
bool kc_is_read_by_members(const kc_nest *nest, int array);
void kc_wrong(kc_nest *nest, CXCursor at, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Return true if no statement assigns to the variable by its name or takes its address. */
bool kc_is_stable(CXCursor variable);
/* May a pointer point to the variable? */
bool kc_has_address(CXCursor variable);

#endif
