/* Private to the front end: what is known while a loop is read. Values and places own their isl objects. */
#ifndef KC_WALK_H
#define KC_WALK_H

#include "nest.h"

enum { KC_BOUND = 256, KC_CHANGED = 512, KC_CHECKS = 256, KC_FUNCTIONS = 64, KC_THERE = 16 };

/* An integer: aff, or rows × stride + aff. aff is NULL if the value is unknown. */
typedef struct kc_value {
    isl_pw_aff *aff, *rows;
    int stride; /* the symbol; −1: none */
} kc_value;

enum { KC_OWN = -1, KC_UNKNOWN = -2 }; /* KC_OWN: memory of one iteration alone; KC_UNKNOWN: unknown memory */

/* An element, or the address of one. Arithmetic on the address changes the last subscript. */
typedef struct kc_place {
    int array; /* its number, KC_OWN or KC_UNKNOWN */
    int count;
    isl_pw_aff *at[KC_DIMS]; /* NULL: unknown */
    isl_pw_aff *rows;        /* flat memory: the last subscript counts from rows × stride */
    int stride;              /* the symbol; −1: none */
    bool by_own_name;
} kc_place;

/* A variable with a known value or place: an index, a parameter of a called function, a constant. */
typedef struct kc_bound {
    CXCursor variable;
    isl_pw_aff *value; /* NULL: unknown */
    bool is_place;
    kc_place place;
} kc_bound;

/* A value that must be within the limits of its type. Otherwise C computes a different value. */
typedef struct kc_check {
    isl_pw_aff *value;
    CXType type;
} kc_check;

/* An element with a constant position. */
typedef struct kc_element {
    int array, count;
    long long at[KC_DIMS];
} kc_element;

typedef struct kc_walk {
    kc_nest *nest;
    CXCursor loop;
    isl_set *domain; /* the iterations that run the statement that is being read */
    kc_bound bound[KC_BOUND];
    int bounds;
    CXCursor changed[KC_CHANGED], index[KC_CHANGED]; /* variables that statements and loop headers change */
    int changes, indices;
    kc_check check[KC_CHECKS];
    int checks, settled;        /* settled: number of the first check that kc_settle() looks at */
    kc_element there[KC_THERE]; /* structures behind pointers that the loop's header always reads */
    int theres;
    bool alone;                      /* members of structures are unknown */
    CXCursor function[KC_FUNCTIONS]; /* functions that were already searched */
    int functions;
    int region[KC_DEPTH + 1], depth, regions;
    int loops, calls;
    int unsure; /* number of unknown conditions around the statement that is being read */
    bool in_inner, ignore;
    bool returned; /* the function that is being read may have returned */
} kc_walk;

/* --- affine.c --- */

kc_value kc_eval(kc_walk *w, CXCursor node);
void kc_value_free(kc_value value);
/* Evaluate as kc_eval() does. Return NULL if the value is not affine, or may exceed the limits of its types
 * where the statement runs. */
isl_pw_aff *kc_affine(kc_walk *w, CXCursor node);
/* Return the iterations in which a condition may hold. *exact: the condition holds in exactly these
 * iterations. Limits of types are not checked. */
isl_set *kc_condition(kc_walk *w, CXCursor node, bool *exact);
/* Check that all values since the last call are within their limits in `where`. The call frees `where`. */
bool kc_settle(kc_walk *w, isl_set *where);
void kc_add_check(kc_walk *w, isl_pw_aff *value, CXType type); /* the check frees `value` later */
bool kc_fixed(isl_pw_aff *aff, long long *value); /* is it one number everywhere? *value: this number */
isl_pw_aff *kc_number(kc_walk *w, long long number);
isl_pw_aff *kc_of_symbol(kc_walk *w, int symbol);
int kc_symbol_of(kc_walk *w, CXCursor variable, int loop); /* −1: there are too many */
/* Return the symbol of a structure's member, which has this text and type; −1: there are too many. */
int kc_symbol_of_member(kc_walk *w, CXCursor variable, int array, const char *text, CXType type);
const kc_bound *kc_lookup(const kc_walk *w, CXCursor variable);
void kc_bind(kc_walk *w, kc_bound bound);
void kc_unbind(kc_walk *w, int count); /* remove the last ones until `count` are left */
bool kc_has(const CXCursor *list, int count, CXCursor one);
/* Does each iteration have its own copy of the variable? */
bool kc_is_own(const kc_walk *w, CXCursor variable);

/* --- member.c --- */

/* Return the symbol of a structure's member, which is a number at a constant position in memory; −1: unknown.
 */
int kc_member(kc_walk *w, CXCursor node);
/* Note the structures behind pointers that an expression always reads. */
void kc_note_there(kc_walk *w, CXCursor node);
/* Refuse the loop if it changes a structure and relies on the values of the structure's members. */
void kc_check_members(kc_walk *w);

/* --- place.c --- */

kc_place kc_place_of(kc_walk *w, CXCursor node);
void kc_place_free(kc_place *place);
/* Note that the statement reads or writes the place. The call frees the place. */
void kc_touch(kc_walk *w, CXCursor node, kc_place place, bool write, kc_update update);

/* --- header.c --- */

/* Read the header of a loop. Return false if the header has another form. */
bool kc_header_read(kc_walk *w, CXCursor loop, kc_header *header);
/* Restrict the domain to the iterations of the loop whose index is `symbol`. Return false if the values of
 * the index are not known. */
bool kc_header_enter(kc_walk *w, kc_header *header, int symbol);
void kc_header_free(kc_header *header);

/* --- expression.c --- */

/* Note all that an expression reads and writes. */
void kc_expression(kc_walk *w, CXCursor node);
void kc_expression_statement(kc_walk *w, CXCursor node); /* its value is not used */
/* Note the update of the scalar s by the statement if (e > s) s = e. Return false for any other statement. */
bool kc_extreme(kc_walk *w, CXCursor test, CXCursor body);
void kc_body_of_call(kc_walk *w, CXCursor function); /* in nest.c */

#endif
