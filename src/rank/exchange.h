/* Private to the folder rank: the exchange of halos, and of rows that move. rank.h includes this header.
 * An exchange brings each rank the target rows and halos that it lacks, from the ranks that have them. If
 * no rows move, it brings only halos. A pipeline's rows move in stages, and each stage is an exchange. */
#ifndef KL_EXCHANGE_H
#define KL_EXCHANGE_H

#include "rank/action.h"
#include "rank/layout.h"
#include "rank/meter.h"

enum { KL_DEEPEST = 32 }; /* greatest number of sweeps that one exchange can serve */

typedef enum kl_finishing {
    KL_ROWS_COME,
    KL_ROWS_AWAITED,
    KL_CONTENT_UNPACKED,
    KL_MEMORY_GIVEN
} kl_finishing;
/* The ranks' answer to KL_ROOM. The least answer of all ranks counts. */
typedef enum kl_room { KL_ROOM_UNPACKED, KL_ROOM_NONE, KL_ROOM_FITS } kl_room;

typedef struct kl_copy {
    void *to;
    const void *from;
    size_t bytes;
} kl_copy;

typedef struct kl_exchange {
    kl_layout *layout;
    kl_meter *meter;
    bool by_blocks; /* true: the loop is a pipeline, so the halo on one side arrives block by block */
    bool backward;  /* true: this side is above the own rows, because the pipeline runs backwards */
    bool midway;    /* true: the loop is a pipeline, and some blocks of the sweep are done */
    kl_mail *legs;  /* messages of the exchange; receives come first */
    size_t receives, leg_count;
    uint64_t leg_room;
    kl_copy *copies; /* halos of periodic arrays that are copies of this rank's own rows */
    uint64_t copy_count, copy_room;
    bool legs_stand;        /* true: legs and copies fit the present bounds */
    kl_span inner;          /* own rows that do not depend on the last exchange */
    bool begins;            /* true: this sweep has an exchange */
    bool under_way, moving; /* moving: true: the exchange brings rows, not only halos */
    kl_finishing finishing;
    double awaited_s; /* time at which the wait for the exchange began */
    kl_set set;       /* the exchange's messages */
    bool moves;       /* true: bounds and target differ, so the next exchange moves rows */
    bool refused;     /* true: the last exchange moved no rows, because a rank had no memory, … */
    kl_room room;     /* … or because a row was not packed: the last answer to KL_ROOM */
    uint64_t *goal;   /* bounds after all stages of a move; `target` has the bounds after the next stage */
    bool passing;     /* true: a stage before the last one is next */
    uint64_t deepest, depth; /* number of sweeps that one exchange can serve, and serves at present */
    uint64_t ahead;          /* number of sweeps left before the next exchange */
    bool deepened;           /* true: `depth` has changed since the last exchange */
} kl_exchange;

bool kl_exchange_init(kl_exchange *x, kl_layout *layout, kl_meter *meter); /* false: memory ran out */
void kl_exchange_free(kl_exchange *x);
/* Set the layout's target, to which the next exchange moves the rows. */
void kl_exchange_aim(kl_exchange *x, const uint64_t *target);
void kl_exchange_deepen(kl_exchange *x, uint64_t depth); /* true: the memory for halos limits the depth */
/* Return whether the sweep needs an exchange: the last halos are used up, or something changes. */
static inline bool kl_exchange_due(const kl_exchange *x) {
    return x->ahead == 0 || x->moves || x->deepened;
}

/* Give the answer to KL_ROOM. KL_ROOM_FITS: all ranks have memory for their target rows. Otherwise no rows
 * move. spent_s: seconds that this rank took to get memory. */
void kl_exchange_room_is(kl_exchange *x, kl_room room, double spent_s);
/* Begin a move to the target in stages; call kl_exchange_next_stage() while x->passing. */
void kl_exchange_aim_by_stages(kl_exchange *x);
/* Set the target of the next stage, in which rows move only between neighbours. */
void kl_exchange_next_stage(kl_exchange *x);

/* Stages of a call: */
kl_act kl_exchange_room(kl_rank *rank);   /* get memory if rows are to move */
kl_act kl_exchange_post(kl_rank *rank);   /* begin the exchange */
kl_act kl_exchange_finish(kl_rank *rank); /* wait for the exchange if it is under way */

#endif
