/* Private to the folder loop: the failure detector. It finds a rank that died or gave up, and the reason. */
#ifndef KL_DETECTOR_MPI_H
#define KL_DETECTOR_MPI_H

#include "loop/group_mpi.h"
#include "transport/liveness_mpi.h"

/* The last message of a rank that leaves the loop, or a message of rank 0 about that rank. */
typedef struct kl_last_words {
    int rank;
    bool closed;                        /* the rank closed the loop normally */
    char text[KILTER_ERROR_TEXT_BYTES]; /* why the rank gave up the loop; empty: the rank is dead */
} kl_last_words;

typedef struct kl_detector {
    kl_group *group;
    /* on rank 0: the connections (lines) to the other ranks, and the thread that watches these connections;
     * NULL: there are none */
    struct kl_watch *watch;
    kl_liveness *lines; /* on the other ranks: the connection (line) to rank 0; NULL: there is none */
    /* invitations to connect to rank 0, used while the loop is opened; NULL: the ranks have connected */
    uint8_t *invitations;
    double patience_s;   /* seconds that other ranks may be silent while the loop is opened or closed */
    double until_s;      /* after this time, a silent rank counts as dead; 0: silence does not count, because
                            connections report deaths */
    kl_last_words words; /* the last message that was received */
} kl_detector;

bool kl_detector_init(kl_detector *detector, kl_group *group); /* Return false if memory ran out. */
void kl_detector_free(kl_detector *detector);
/* Connect all ranks of `comm` with rank 0. Collective. */
kilter_status kl_detector_open(kl_detector *detector, MPI_Comm comm, kilter_error *error);
static inline bool kl_detector_works(const kl_detector *d) {
    return d->watch || d->lines;
}
/* Check for lost ranks. KILTER_ERR_PEER: a rank is dead, or gave up the loop. */
kilter_status kl_detector_look(kl_detector *detector, double now_s, kilter_error *error);
/* After a failure of MPI, wait briefly for the report of a death, and replace *failure by this report. */
void kl_detector_ask(kl_detector *detector, kilter_error *failure);
/* leave the loop, and tell the other ranks why */
void kl_detector_give_up(kl_detector *detector, const char *why);
/* leave the loop normally, without checking for lost ranks */
void kl_detector_close(kl_detector *detector);

#endif
