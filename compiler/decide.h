/* Decide whether the iterations of a loop may be distributed over ranks, and how the ranks store the loop's
 * arrays. */
#ifndef KC_DECIDE_H
#define KC_DECIDE_H

#include "nest.h"

typedef enum kc_kind_of_loop {
    KC_REFUSED,
    KC_DOALL, /* iterations do not depend on each other */
    /* each iteration needs the previous iteration; ranks form a pipeline over blocks of the inner loop */
    KC_DOACROSS,
    /* iterations read old values that later iterations overwrite; each rank runs its rows in order */
    KC_OLD,
} kc_kind_of_loop;

typedef enum kc_role {
    KC_PARAMETER, /* a scalar that is only read */
    KC_PRIVATE,   /* a scalar that each iteration sets before it reads it */
    KC_REDUCED,   /* a scalar that iterations combine */
    KC_EXACT,     /* a scalar to which iterations add; the sum is rounded only once, after the loop */
    KC_ROWS,      /* a distributed array: each rank has the rows that its iterations use */
    KC_COPIED,    /* an array of which all ranks have a copy */
} kc_role;

typedef struct kc_decided { /* the decision about an array or a scalar */
    kc_role role;
    /* needs_clause: a reduction clause must allow another order of a floating-point sum or product */
    bool written, needs_clause;
    kc_update update;
    long long before, after; /* number of halo rows that an iteration reads before and after its own row */
} kc_decided;

typedef struct kc_clauses { /* the clauses of a pragma */
    bool independent;
    char reductions[KC_TEXT]; /* names, with a space before and after each */
    char exact[KC_TEXT];      /* the names in `reductions` that have exact sums */
    char name[64];
} kc_clauses;

typedef struct kc_decision {
    kc_kind_of_loop kind;
    /* for a pipeline or a loop with old values: the ranks compute the rows from the last to the first */
    bool backward;
    long long shift;       /* iteration i writes row i + shift */
    long long inner_shift; /* pipeline: iteration j of the inner loop writes element j + inner_shift */
    int pipelined;         /* number of an array that the pipeline writes; its rows are divided into blocks */
    kc_decided array[KC_ARRAYS];
    unsigned line; /* line of the source that causes the refusal */
    char why[KC_TEXT], advice[KC_TEXT];
} kc_decision;

kc_decision kc_decide(kc_nest *nest, const kc_clauses *clauses);

#endif
