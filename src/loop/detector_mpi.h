/* Private to the folder loop: the failure detector. It finds a rank that died or gave up, and the reason. */
#ifndef KL_DETECTOR_MPI_H
#define KL_DETECTOR_MPI_H

#include "loop/group_mpi.h"
#include "transport/liveness_mpi.h"

typedef struct kl_last_words { /* a message from a rank that leaves the loop, or from rank 0 about such a rank
                                */
    int rank;
    bool closed;                        /* the rank closed the loop normally */
    char text[KILTER_ERROR_TEXT_BYTES]; /* why the rank gave up the loop; "": the rank is dead */
} kl_last_words;

typedef struct kl_detector {
    kl_group *group;
    struct kl_watch *watch; /* lines from rank 0 to the other ranks; NULL: no lines */
    kl_liveness *lines;     /* line from another rank to rank 0; NULL: no line */
    uint8_t *invitations;   /* invitations to connect; NULL once the loop is open */
    double patience_s;      /* seconds that other ranks may be silent while the loop is opened or closed */
    double until_s; /* time after which silence counts as death; 0: never, because the lines report deaths */
    kl_last_words words; /* last message received */
} kl_detector;

bool kl_detector_init(kl_detector *detector, kl_group *group); /* false: memory ran out */
void kl_detector_free(kl_detector *detector);
/* Connect all ranks of `comm` with rank 0. Collective. */
kilter_status kl_detector_open(kl_detector *detector, MPI_Comm comm, kilter_error *error);
static inline bool kl_detector_works(const kl_detector *d) {
    return d->watch || d->lines;
}
/* Look for lost ranks. KILTER_ERR_PEER: a rank is dead, or gave the loop up. */
kilter_status kl_detector_look(kl_detector *detector, double now_s, kilter_error *error);
/* Wait briefly, after a failure of MPI, for the report of a death, and replace *failure by this report. */
void kl_detector_ask(kl_detector *detector, kilter_error *failure);
void kl_detector_give_up(kl_detector *detector, const char *why); /* tell the other ranks why */
void kl_detector_close(kl_detector *detector);                    /* close without looking for lost ranks */

#endif
