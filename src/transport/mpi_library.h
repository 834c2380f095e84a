/* Kilter's library for the MPI of this process. Private to the folder transport; sim/ includes it, too.
 * libkilter needs no MPI. The code that needs it is in libkilter-openmpi and libkilter-mpich. Each has a
 * kl_mpi_library. kl_mpi_open() finds the library, or takes the one that the program is linked with. */
#ifndef KL_MPI_LIBRARY_H
#define KL_MPI_LIBRARY_H

#include "transport/transport.h"

typedef struct kl_mpi_library {
    /* Kilter's version; always the first field, because other versions may have other fields after it */
    const char *version;
    kilter_status (*open)(double lost_after_s, int *rank, int *size, kl_transport **transport,
                          kilter_error *error); /* open the transport, as kl_mpi_open() does */
} kl_mpi_library;

/* The description that each library contains. It is a weak symbol: in a program that is linked with
 * neither library, its address is NULL. */
extern KILTER_API const kl_mpi_library kl_mpi_library_linked __attribute__((weak));

#endif
