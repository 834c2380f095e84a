/* Make the loops of an example move rows at every opportunity, to random places. The environment variable
 * FORCED_SEED is the seed of the random numbers. Pipelines get blocks of random size, and several passes in a
 * sweep. The compiler includes this header before the example's source. */
#ifndef KL_FORCED_TEST_HELPER_H
#define KL_FORCED_TEST_HELPER_H

#include <stdlib.h>

#include "loop/loop_mpi.h"

static inline kilter_status open_forced(MPI_Comm comm, const kilter_loop_options *options, kilter_loop **loop,
                                        kilter_error *error) {
    const char *seed = getenv("FORCED_SEED");
    kilter_status status = kilter_loop_open(comm, options, loop, error);
    if (status == KILTER_OK) {
        (*loop)->rank.rounds.forced = true;
        (*loop)->rank.rounds.seed = kl_mix64((seed ? strtoull(seed, NULL, 10) : 1) + (*loop)->number);
    }
    return status;
}

#define kilter_loop_open open_forced

#endif
