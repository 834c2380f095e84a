/* The exchange of halos, and of rows that move. Private to room loop.
 *
 * One exchange brings each rank what it lacks of its target rows and their halos, from the rank that had it.
 * When nothing moves these are just the halos. A pipeline's rows move in stages, each an exchange with a
 * target of its own. */
#ifndef KL_EXCHANGE_MPI_H
#define KL_EXCHANGE_MPI_H

#include "loop/layout.h"
#include "loop/meter_mpi.h"

typedef struct kl_leg { /* rows of an array, from or to a peer */
    int peer;
    size_t array;
    kl_span rows;
} kl_leg;

typedef struct kl_exchange {
    kl_group *group;
    kl_layout *layout;
    kl_meter *meter;
    bool by_blocks; /* a pipeline: the halo below comes block by block */
    bool midway;    /* and blocks of the sweep are done already */
    kl_leg *legs;   /* receives first */
    size_t receives, leg_count, leg_capacity;
    bool legs_stand; /* they are those of the bounds as they are */
    kl_requests requests;
    bool under_way, moving;  /* moving: rows, and not halos alone */
    bool moves;              /* bounds and target differ, and the next exchange mends it */
    bool refused;            /* the last exchange moved nothing: a rank had no memory */
    uint64_t *goal;          /* where rows lie after all stages of a move; target: after the next one */
    bool passing;            /* that is not the last one */
    uint64_t deepest, depth; /* sweeps that one exchange is for, at most and now */
    uint64_t ahead;          /* sweeps left before the next exchange */
    bool deepened;           /* depth is another one than at the last exchange */
} kl_exchange;

bool kl_exchange_init(kl_exchange *x, kl_group *group, kl_layout *layout, kl_meter *meter);
void kl_exchange_free(kl_exchange *x);
/* Before the first sweep of a deep loop: get memory for as many halo rows as it may want. */
kilter_status kl_exchange_open(kl_exchange *x, kilter_error *error);
/* From the next exchange on rows lie by the layout's target. */
void kl_exchange_aim(kl_exchange *x, const uint64_t *target);
void kl_exchange_deepen(kl_exchange *x, uint64_t depth); /* as far as there is memory */
/* The sweep needs an exchange: the last one's halos are used up, or something changes. */
static inline bool kl_exchange_due(const kl_exchange *x) {
    return x->ahead == 0 || x->moves || x->deepened;
}
/* Begin to bring what is lacking, and give in *inner the own rows that need nothing of it. */
kilter_status kl_exchange_begin(kl_exchange *x, kl_span *inner, kilter_error *error);
kilter_status kl_exchange_look(kl_exchange *x, kilter_error *error);
/* Wait for it. *now_s: the time; if an exchange was under way, the time when it is done. */
kilter_status kl_exchange_finish(kl_exchange *x, double *now_s, kilter_error *error);
/* Carry out a move in which rows only change between neighbours at a time. */
kilter_status kl_exchange_by_stages(kl_exchange *x, kilter_error *error);

#endif
