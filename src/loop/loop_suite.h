/* Functions for tests of loops on the ranks of MPI_COMM_WORLD. A check that fails ends all ranks. */
#ifndef KL_LOOP_SUITE_H
#define KL_LOOP_SUITE_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loop/loop_mpi.h"
#include "sys/sys.h"
#include "transport/launch_mpi.h"

static int rank, ranks;

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "rank %d of %d: %s:%d: %s\n", rank, ranks, __FILE__, __LINE__, #condition);      \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                    \
        }                                                                                                    \
    } while (0)

#define CHECK_OK(call)                                                                                       \
    do {                                                                                                     \
        kilter_error check_error = {KILTER_OK, ""}, *error = &check_error;                                   \
        if ((call) != KILTER_OK) {                                                                           \
            fprintf(stderr, "rank %d of %d: %s:%d: %s\n", rank, ranks, __FILE__, __LINE__, error->text);     \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                    \
        }                                                                                                    \
    } while (0)

/* Make rows move at every opportunity, to places chosen by `seed`, which is the same on all ranks. Nothing
 * is measured or decided. Collective; call this before the first kilter_loop_begin(). */
static inline void force_moves(kilter_loop *loop, uint64_t seed) {
    loop->rank.rounds.forced = true;
    loop->rank.rounds.seed = kl_mix64(seed);
}

/* Return a limit, in bytes, slightly above the size of the present address space. It leaves room for MPI,
 * but not for two rows of 512 KiB. */
static inline struct rlimit little_more(void) {
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%*u %*u %*u %*u %*u %lu", &pages) == 1);
    fclose(file);
    return (struct rlimit){pages * (unsigned long)sysconf(_SC_PAGESIZE) + (800 << 10), RLIM_INFINITY};
}

/* Start MPI as a farm does. With MPICH, the other ranks can then continue after a rank has died. */
static inline void suite_begin(void) {
    bool started;
    int provided;
    kl_mpi_watchdog *watchdog;
    CHECK_OK(kl_mpi_start(&started, &provided, &watchdog, error));
    kl_mpi_started(watchdog);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

#endif
