/* The collective calls that each rank has made: are all ranks in the same one? Private to room loop. */
#ifndef KL_STEPS_MPI_H
#define KL_STEPS_MPI_H

#include "loop/group_mpi.h"

typedef enum kl_call { /* collective ones */
                       KL_CALL_ARRAY = 1,
                       KL_CALL_BEGIN,
                       KL_CALL_SUM,
                       KL_CALL_GATHER,
                       KL_CALL_CLOSE,
} kl_call;

enum { KL_STEPS = 16 };

typedef struct kl_steps_word { /* from a rank that waits, to the next one */
    uint64_t number, recent[KL_STEPS];
    uint64_t last; /* the rank closes the loop: no other word follows */
} kl_steps_word;

typedef struct kl_steps {
    kl_group *group;
    uint64_t number;           /* collective calls so far, with the one under way */
    uint64_t recent[KL_STEPS]; /* call k at k mod KL_STEPS, as a number */
    double looked_s, waits_s;  /* the last look; the first of those that follow each other */
    uint64_t told;             /* the number that the next rank was told */
    bool heard_last;           /* the rank before sends no other word */
    double tell_after_s;       /* of waiting, the next rank is told */
    kl_steps_word word;
    kl_requests requests; /* of the word */
} kl_steps;

bool kl_loop_checks(void); /* is this rank told to be in checking mode? */
/* Enter a collective call, after so many sweeps. array, root: those it is about, or 0. */
void kl_step(kl_steps *steps, kl_call call, uint64_t sweeps, size_t array, int root);
/* Wait for all ranks, and compare the calls that they are in. words (NULL: none): KL_SUM_WORDS numbers that
 * are added up. KILTER_ERR_USAGE, on all ranks: the calls differ. */
kilter_status kl_steps_meet(kl_steps *steps, int64_t *words, kilter_error *error);
/* Compare calls with the rank before, and tell the next rank. While a rank waits, or now and then. */
kilter_status kl_steps_look(kl_steps *steps, double now_s, kilter_error *error);
kilter_status kl_steps_close(kl_steps *steps, kilter_error *error);

#endif
