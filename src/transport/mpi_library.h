/* Kilter's library for the MPI of this process. Private to room transport; sim/ includes it, too.
 * libkilter needs no MPI. Code that needs MPI is in libkilter-openmpi and libkilter-mpich, each of which has
 * this description. kl_mpi_open() finds the library, or takes the one that the program is linked with. */
#ifndef KL_MPI_LIBRARY_H
#define KL_MPI_LIBRARY_H

#include "transport/transport.h"

typedef struct kl_mpi_library {
    const char *version; /* Kilter's version. This stays the first field, because other versions may differ in
                            the others */
    kilter_status (*open)(double lost_after_s, int *rank, int *size, kl_transport **transport,
                          kilter_error *error); /* opens the transport, as kl_mpi_open() does */
} kl_mpi_library;

/* The description in each library. Weak: its address is NULL in a program linked with none. */
extern KILTER_API const kl_mpi_library kl_mpi_library_linked __attribute__((weak));

#endif
