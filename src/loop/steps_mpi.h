/* Private to the folder loop: check that all ranks make the same collective calls. */
#ifndef KL_STEPS_MPI_H
#define KL_STEPS_MPI_H

#include "loop/group_mpi.h"

typedef enum kl_call { /* The collective calls of a loop. */
                       KL_CALL_ARRAY = 1,
                       KL_CALL_BEGIN,
                       KL_CALL_SUM,
                       KL_CALL_GATHER,
                       KL_CALL_CLOSE,
                       KL_CALL_ROWS,
                       KL_CALL_DELIVER,
                       KL_CALL_RESUMED,
                       KL_CALL_FOLLOW,
                       KL_CALL_SHARE,
                       KL_CALL_REDUCE,
                       KL_CALL_SCATTER,
                       KL_CALLS_END,
} kl_call;

enum { KL_STEPS = 16 };

typedef struct kl_steps_word { /* The list of calls that a waiting rank sends to the next rank. */
    uint64_t number, recent[KL_STEPS];
    uint64_t last; /* 1: the rank closes the loop, and no other message follows */
} kl_steps_word;

typedef struct kl_steps {
    kl_group *group;
    uint64_t number;           /* number of collective calls so far, with the present one */
    uint64_t recent[KL_STEPS]; /* the last calls, packed as numbers; call k is recent[k mod KL_STEPS] */
    /* looked_s: time of the last check; waits_s: time of the first check since this rank began to wait */
    double looked_s, waits_s;
    double heard_s;  /* time of the last check for the list of the previous rank */
    uint64_t told;   /* value of `number` in the list that was sent last to the next rank */
    bool heard_last; /* true: the previous rank sends no further list of calls */
    /* seconds of waiting after which this rank sends its list of calls to the next rank */
    double tell_after_s;
    kl_steps_word word;
    kl_requests requests; /* requests of the message `word` */
} kl_steps;

bool kl_loop_checks(void); /* Return whether checking mode is set on this rank. */
/* Record that this rank enters a collective call, after `sweeps` sweeps. array, root: arguments of the call;
 * 0: the call has no such argument. */
void kl_step(kl_steps *steps, kl_call call, uint64_t sweeps, size_t array, int root);
/* Wait for all ranks and compare their calls. words: KILTER_SUM_WORDS numbers to be summed over all ranks;
 * NULL: there is nothing to sum. KILTER_ERR_USAGE, on all ranks: the calls differ. */
kilter_status kl_steps_meet(kl_steps *steps, int64_t *words, kilter_error *error);
/* Compare this rank's list of calls with the list of the previous rank, and send this rank's list to the next
 * rank. Call this often while the rank waits, and now and then while it works. */
kilter_status kl_steps_look(kl_steps *steps, double now_s, kilter_error *error);
kilter_status kl_steps_close(kl_steps *steps, kilter_error *error);

#endif
