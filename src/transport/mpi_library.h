/* Which MPI this process runs under, and Kilter's library for it. Private to room transport; sim/ includes
 * it, too.
 *
 * libkilter needs no MPI. What does lies in libkilter-openmpi and libkilter-mpich, which share this
 * description of themselves: kl_mpi_open() finds the right one, or takes the one the program is linked with.
 */
#ifndef KL_MPI_LIBRARY_H
#define KL_MPI_LIBRARY_H

#include "transport/transport.h"

typedef struct kl_mpi_library {
    const char *version; /* Kilter's. Another version may pass other structures: always the first field */
    kilter_status (*open)(double lost_after_s, int *rank, int *size, kl_transport **transport,
                          kilter_error *error); /* as kl_mpi_open() */
} kl_mpi_library;

/* The description in each of the libraries. Weak: it is NULL in a program that is linked with none. */
extern KILTER_API const kl_mpi_library kl_mpi_library_linked __attribute__((weak));

#endif
