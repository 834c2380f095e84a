/* Private to the front end: its state while it reads a loop. A kc_value or kc_place owns its isl objects. */
#ifndef KC_WALK_H
#define KC_WALK_H

#include "nest.h"

enum { KC_BOUND = 256, KC_CHANGED = 512, KC_CHECKS = 256, KC_FUNCTIONS = 64, KC_THERE = 16 };

/* The value of an integer expression: rows × stride + aff, or only aff if `rows` is NULL. If aff is NULL, the
 * value is unknown. */
typedef struct kc_value {
    isl_pw_aff *aff, *rows;
    int stride; /* number of the stride's symbol; −1: no stride */
} kc_value;

/* KC_OWN: memory that each iteration has for itself; KC_UNKNOWN: it is not known which array is meant */
enum { KC_OWN = -1, KC_UNKNOWN = -2 };

/* An array element, or its address. Arithmetic on the address changes the last subscript. */
typedef struct kc_place {
    int array; /* number of the array, KC_OWN or KC_UNKNOWN */
    int count;
    isl_pw_aff *at[KC_DIMS]; /* NULL: unknown */
    isl_pw_aff *rows;        /* flat memory: rows × stride is added to the last subscript */
    int stride;              /* number of the stride's symbol; −1: no stride */
    bool by_own_name;
} kc_place;

/* A variable with a known value or place: an index, a parameter of a called function, a constant. */
typedef struct kc_bound {
    CXCursor variable;
    isl_pw_aff *value; /* NULL: unknown */
    bool is_place;
    kc_place place;
} kc_bound;

/* A value that must be within the limits of its type. Outside of the limits, the C program would compute
 * another value than `value`. */
typedef struct kc_check {
    isl_pw_aff *value;
    CXType type;
} kc_check;

/* An array element whose subscripts are constant. */
typedef struct kc_element {
    int array, count;
    long long at[KC_DIMS];
} kc_element;

typedef struct kc_walk {
    kc_nest *nest;
    CXCursor loop;
    isl_set *domain; /* the iterations in which the current statement runs */
    kc_bound bound[KC_BOUND];
    int bounds;
    /* changed: variables that statements change; index: variables that headers of loops change */
    CXCursor changed[KC_CHANGED], index[KC_CHANGED];
    int changes, indices;
    kc_check check[KC_CHECKS];
    int checks, settled;        /* settled: index of the first check that the next kc_settle() makes */
    kc_element there[KC_THERE]; /* structures that the loop's header always reads through pointers */
    int theres;
    bool alone;                      /* treat all members of structures as unknown */
    CXCursor function[KC_FUNCTIONS]; /* functions that were already searched */
    int functions;
    int region[KC_DEPTH + 1], depth, regions;
    int loops, calls;
    int unsure; /* number of unknown conditions around the current statement */
    bool in_inner, ignore;
    bool returned; /* an earlier statement of the current function may have returned */
} kc_walk;

/* --- affine.c --- */

kc_value kc_eval(kc_walk *w, CXCursor node);
void kc_value_free(kc_value value);
/* Evaluate as kc_eval() does. Return NULL if the value is not affine. Return NULL also if the value may
 * exceed the limits of its type in an iteration that runs the statement. */
isl_pw_aff *kc_affine(kc_walk *w, CXCursor node);
/* Return the iterations in which a condition may hold. Set *exact to true if the condition surely holds in
 * all these iterations, otherwise to false. The function does not check the limits of types. */
isl_set *kc_condition(kc_walk *w, CXCursor node, bool *exact);
/* Check all values that kc_add_check() added since the last call: are they within the limits of their types
 * in the iterations `where`? The call frees `where`. */
bool kc_settle(kc_walk *w, isl_set *where);
void kc_add_check(kc_walk *w, isl_pw_aff *value, CXType type); /* the check frees `value` later */
/* is `aff` the same number everywhere? If so, set *value to it */
bool kc_fixed(isl_pw_aff *aff, long long *value);
isl_pw_aff *kc_number(kc_walk *w, long long number);
isl_pw_aff *kc_of_symbol(kc_walk *w, int symbol);
/* Return the variable's symbol, or −1 if there are too many symbols. */
int kc_symbol_of(kc_walk *w, CXCursor variable, int loop);
/* Return the symbol of the structure's member with this text and type, or −1 if there are too many
 * symbols. */
int kc_symbol_of_member(kc_walk *w, CXCursor variable, int array, const char *text, CXType type);
const kc_bound *kc_lookup(const kc_walk *w, CXCursor variable);
void kc_bind(kc_walk *w, kc_bound bound);
void kc_unbind(kc_walk *w, int count); /* remove the latest bound variables until `count` of them are left */
bool kc_has(const CXCursor *list, int count, CXCursor one);
/* Does each iteration have its own copy of the variable? */
bool kc_is_own(const kc_walk *w, CXCursor variable);

/* --- member.c --- */

/* Return the symbol of a structure's member, or −1. Only numbers at a constant position in memory have
 * symbols. */
int kc_member(kc_walk *w, CXCursor node);
/* Store the structures that an expression always reads through pointers. */
void kc_note_there(kc_walk *w, CXCursor node);
/* Refuse the loop if it changes a structure and relies on the values of the structure's members. */
void kc_check_members(kc_walk *w);

/* --- place.c --- */

kc_place kc_place_of(kc_walk *w, CXCursor node);
void kc_place_free(kc_place *place);
/* Record that the statement reads or writes the place. The call frees the place. */
void kc_touch(kc_walk *w, CXCursor node, kc_place place, bool write, kc_update update);

/* --- header.c --- */

/* Read the header of a loop. Return false unless it has the form for (index = lower; index < bound; index +=
 * step). */
bool kc_header_read(kc_walk *w, CXCursor loop, kc_header *header);
/* Restrict the domain to the values that the loop gives to its index, the symbol `symbol`. Return false if
 * these values are not known. */
bool kc_header_enter(kc_walk *w, kc_header *header, int symbol);
void kc_header_free(kc_header *header);

/* --- expression.c --- */

/* Record all reads and writes of an expression. */
void kc_expression(kc_walk *w, CXCursor node);
/* Do the same as kc_expression() for an expression whose value the program does not use. */
void kc_expression_statement(kc_walk *w, CXCursor node);
/* Record the statement if (e > s) s = e as an update of the scalar s. Return false for any other
 * statement. */
bool kc_extreme(kc_walk *w, CXCursor test, CXCursor body);
void kc_body_of_call(kc_walk *w, CXCursor function); /* in nest.c */

#endif
