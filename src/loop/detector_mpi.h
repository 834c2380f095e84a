/* The failure detector: which rank died, or gave the loop up, and why. Private to room loop. */
#ifndef KL_DETECTOR_MPI_H
#define KL_DETECTOR_MPI_H

#include "loop/group_mpi.h"
#include "transport/liveness_mpi.h"

typedef struct kl_last_words { /* of a rank that leaves the loop, or of rank 0 about another rank */
    int rank;
    bool closed;                        /* it closed the loop as it should */
    char text[KILTER_ERROR_TEXT_BYTES]; /* why it gives the loop up; "": it is dead */
} kl_last_words;

typedef struct kl_detector {
    kl_group *group;
    struct kl_watch *watch; /* rank 0's over the lines to the others; NULL: none */
    kl_liveness *lines;     /* the others', to rank 0; NULL: none */
    uint8_t *invitations;   /* to connect; NULL once the loop is open */
    double patience_s;      /* others may be silent for so long while the loop is opened or closed */
    double until_s;         /* no later than then; 0: for ever, as lines tell of a death */
    kl_last_words words;    /* heard */
} kl_detector;

bool kl_detector_init(kl_detector *detector, kl_group *group); /* false: no memory */
void kl_detector_free(kl_detector *detector);
/* Connect all ranks of `comm` with rank 0.   Collective. */
kilter_status kl_detector_open(kl_detector *detector, MPI_Comm comm, kilter_error *error);
static inline bool kl_detector_works(const kl_detector *d) {
    return d->watch || d->lines;
}
/* KILTER_ERR_PEER: a rank is dead, or gave the loop up. */
kilter_status kl_detector_look(kl_detector *detector, double now_s, kilter_error *error);
/* MPI failed: wait shortly for the news of a death, and replace *failure by it. */
void kl_detector_ask(kl_detector *detector, kilter_error *failure);
void kl_detector_give_up(kl_detector *detector, const char *why); /* tells the other ranks */
void kl_detector_close(kl_detector *detector);                    /* nobody is dead, or waited for */

#endif
