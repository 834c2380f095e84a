/* Decide whether the iterations of a loop may be spread over ranks, and where its arrays lie then. */
#ifndef KC_DECIDE_H
#define KC_DECIDE_H

#include "nest.h"

typedef enum kc_kind_of_loop {
    KC_REFUSED,
    KC_DOALL,    /* iterations do not depend on each other */
    KC_DOACROSS, /* an iteration needs the one before it: a pipeline over blocks of the loop inside */
    KC_OLD,      /* iterations read what later iterations write: each rank does its rows in order */
} kc_kind_of_loop;

typedef enum kc_role {
    KC_PARAMETER, /* a scalar that is only read */
    KC_PRIVATE,   /* a scalar that each iteration sets before it reads it */
    KC_REDUCED,   /* a scalar that iterations combine */
    KC_EXACT,     /* a scalar to which iterations add, without rounding */
    KC_ROWS,      /* an array whose rows go with the iterations */
    KC_COPIED,    /* an array that all ranks have */
} kc_role;

typedef struct kc_decided { /* of an array or a scalar */
    kc_role role;
    bool written, needs_clause; /* needs_clause: the order of a floating-point sum changes */
    kc_update update;
    long long before, after; /* halo: rows read before and after the iteration's own */
} kc_decided;

typedef struct kc_clauses { /* of the pragma */
    bool independent;
    char reductions[KC_TEXT]; /* names with blanks around them */
    char exact[KC_TEXT];      /* those of them with exact sums */
    char name[64];
} kc_clauses;

typedef struct kc_decision {
    kc_kind_of_loop kind;
    bool backward;         /* a pipeline, or old values: from the last row to the first */
    long long shift;       /* iteration i has row i + shift */
    long long inner_shift; /* pipeline: the loop inside writes element j + inner_shift */
    int pipelined;         /* an array of the pipeline; its elements are the blocks' elements */
    kc_decided array[KC_ARRAYS];
    unsigned line; /* of the refusal */
    char why[KC_TEXT], advice[KC_TEXT];
} kc_decision;

kc_decision kc_decide(kc_nest *nest, const kc_clauses *clauses);

#endif
