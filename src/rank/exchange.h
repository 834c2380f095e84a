/* The exchange of halos, and of rows that move. Private to room rank; the door includes it.
 *
 * One exchange brings each rank what it lacks of its target rows and their halos, from the rank that had it.
 * When nothing moves these are just the halos. A pipeline's rows move in stages, each an exchange with a
 * target of its own. */
#ifndef KL_EXCHANGE_H
#define KL_EXCHANGE_H

#include "rank/action.h"
#include "rank/layout.h"
#include "rank/meter.h"

enum { KL_DEEPEST = 32 }; /* sweeps for which one exchange may bring halos */

typedef enum kl_finishing { KL_ROWS_COME, KL_ROWS_AWAITED, KL_MEMORY_GIVEN } kl_finishing;

typedef struct kl_exchange {
    kl_layout *layout;
    kl_meter *meter;
    bool by_blocks; /* a pipeline: the halo below comes block by block */
    bool midway;    /* and blocks of the sweep are done already */
    kl_mail *legs;  /* receives first */
    size_t receives, leg_count;
    uint64_t leg_room;
    bool legs_stand;        /* they are those of the bounds as they are */
    kl_span inner;          /* own rows that need nothing of the last exchange */
    bool begins;            /* this sweep has an exchange */
    bool under_way, moving; /* moving: rows, and not halos alone */
    kl_finishing finishing;
    double awaited_s;        /* since when */
    kl_set set;              /* the messages */
    bool moves;              /* bounds and target differ, and the next exchange mends it */
    bool refused;            /* the last exchange moved nothing: a rank had no memory */
    uint64_t *goal;          /* where rows lie after all stages of a move; target: after the next one */
    bool passing;            /* that is not the last one */
    uint64_t deepest, depth; /* sweeps that one exchange is for, at most and now */
    uint64_t ahead;          /* sweeps left before the next exchange */
    bool deepened;           /* depth is another one than at the last exchange */
} kl_exchange;

bool kl_exchange_init(kl_exchange *x, kl_layout *layout, kl_meter *meter); /* false: no memory */
void kl_exchange_free(kl_exchange *x);
/* From the next exchange on rows lie by the layout's target. */
void kl_exchange_aim(kl_exchange *x, const uint64_t *target);
void kl_exchange_deepen(kl_exchange *x, uint64_t depth); /* as far as there is memory */
/* The sweep needs an exchange: the last one's halos are used up, or something changes. */
static inline bool kl_exchange_due(const kl_exchange *x) {
    return x->ahead == 0 || x->moves || x->deepened;
}

/* The answer to KL_ROOM: all ranks have memory for their target rows, or nothing moves. spent_s: here. */
void kl_exchange_room_is(kl_exchange *x, bool fits, double spent_s);
/* A move to the target in stages begins: kl_exchange_next_stage() as long as x->passing. */
void kl_exchange_aim_by_stages(kl_exchange *x);
/* The next stage of a move in which rows only change between neighbours. */
void kl_exchange_next_stage(kl_exchange *x);

/* Stages of a call */
kl_act kl_exchange_room(kl_rank *rank);   /* if rows are to move */
kl_act kl_exchange_post(kl_rank *rank);   /* what is lacking */
kl_act kl_exchange_finish(kl_rank *rank); /* wait for it, if it is under way */

#endif
