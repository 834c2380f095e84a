/* Private to the folder rank: the exchange of halos, and of rows that move. rank.h includes this header. An
 * exchange brings each rank the rows that it will have, and their halos, from the ranks that have them now.
 * If no rows move, the exchange brings only halos. Rows of a pipeline move in stages, and each stage is an
 * exchange. */
#ifndef KL_EXCHANGE_H
#define KL_EXCHANGE_H

#include "rank/action.h"
#include "rank/layout.h"
#include "rank/meter.h"

enum { KL_DEEPEST = 32 }; /* greatest number of sweeps for which the halos of one exchange can be enough */

typedef enum kl_finishing {
    KL_ROWS_COME,
    KL_ROWS_AWAITED,
    KL_CONTENT_UNPACKED,
    KL_MEMORY_GIVEN
} kl_finishing;
/* A rank's answer to the action KL_ROOM (get memory). The smallest value that any rank answers counts for all
 * ranks. */
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
    /* true: the pipeline runs backwards, so the halo that arrives block by block comes after this rank's last
     * row */
    bool backward;
    bool midway;   /* true: the loop is a pipeline, and some blocks of the sweep are done */
    kl_mail *legs; /* messages of the exchange; those to receive come first */
    size_t receives, leg_count;
    uint64_t leg_room;
    kl_copy *copies; /* halos of periodic arrays that are copies of this rank's own rows */
    uint64_t copy_count, copy_room;
    bool legs_stand; /* true: `legs` and `copies` are valid for the present bounds */
    kl_span inner;   /* rows of this rank that can be done before the exchange is complete */
    bool begins;     /* true: this sweep has an exchange */
    /* under_way is true if an exchange has begun and is not complete; moving is true if this exchange also
     * moves rows */
    bool under_way, moving;
    kl_finishing finishing;
    double awaited_s; /* time at which the wait for the exchange began */
    kl_set set;       /* the exchange's messages */
    bool moves;       /* true: the next exchange moves rows to the layout's target bounds */
    /* true: the last exchange moved no rows, because a rank had no memory or could not pack a row */
    bool refused;
    kl_room room; /* the last answer to KL_ROOM; after a refused move, it shows why the move was refused */
    /* bounds after all stages of a move; the layout's target has the bounds after the next stage */
    uint64_t *goal;
    bool passing; /* true: more stages of the move follow */
    /* depth: number of sweeps for which the halos of one exchange are enough; deepest: greatest possible
     * depth */
    uint64_t deepest, depth;
    uint64_t ahead; /* number of sweeps left before the next exchange */
    bool deepened;  /* true: `depth` has changed since the last exchange */
} kl_exchange;

/* Return false if memory ran out. */
bool kl_exchange_init(kl_exchange *x, kl_layout *layout, kl_meter *meter);
void kl_exchange_free(kl_exchange *x);
/* Set the bounds to which the next exchange moves the rows. */
void kl_exchange_aim(kl_exchange *x, const uint64_t *target);
/* Set `depth`, the number of sweeps for which the halos of one exchange are enough. The memory for halos
 * limits it to x->deepest. */
void kl_exchange_deepen(kl_exchange *x, uint64_t depth);
/* Return whether the sweep needs an exchange, because the last halos are used up, rows move, or the depth
 * changes. */
static inline bool kl_exchange_due(const kl_exchange *x) {
    return x->ahead == 0 || x->moves || x->deepened;
}

/* Give the driver's answer to KL_ROOM. KL_ROOM_FITS: all ranks have memory for the rows that they will have
 * after the move. With any other answer no rows move. spent_s: seconds that this rank took to get memory. */
void kl_exchange_room_is(kl_exchange *x, kl_room room, double spent_s);
/* Begin a move to the target bounds in stages. Call kl_exchange_next_stage() for each stage while x->passing
 * is true. */
void kl_exchange_aim_by_stages(kl_exchange *x);
/* Set the layout's target for the next stage, in which rows move only between neighbours. */
void kl_exchange_next_stage(kl_exchange *x);

/* Functions that are stages of a call: */
kl_act kl_exchange_room(kl_rank *rank);   /* get memory if rows are to move */
kl_act kl_exchange_post(kl_rank *rank);   /* begin the exchange */
kl_act kl_exchange_finish(kl_rank *rank); /* wait for the exchange if it is under way */

#endif
