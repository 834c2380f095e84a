/* Kilter's library for the MPI of this process. Private to the folder transport; sim/ includes it, too. The
 * library libkilter itself needs no MPI. The code that needs MPI is in libkilter-openmpi and
 * libkilter-mpich, which each have a kl_mpi_library. The function kl_mpi_open() loads one of these
 * libraries, or takes the one that the program is linked with. */
#ifndef KL_MPI_LIBRARY_H
#define KL_MPI_LIBRARY_H

#include "transport/transport.h"

typedef struct kl_mpi_library {
    /* Kilter's version; it must be the first field, because other versions may have other fields after it */
    const char *version;
    kilter_status (*open)(double lost_after_s, int *rank, int *size, kl_transport **transport,
                          kilter_error *error); /* function that opens the transport, as kl_mpi_open() does */
} kl_mpi_library;

/* The kl_mpi_library that each of the two libraries contains. It is a weak symbol: in a program that is
 * linked with neither library, its address is NULL. */
extern KILTER_API const kl_mpi_library kl_mpi_library_linked __attribute__((weak));

#endif
