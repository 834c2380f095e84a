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
    kilter_status (*open)(int *argc, char ***argv, double lost_after_s, int *rank, int *size,
                          kl_transport **transport, kilter_error *error); /* as kl_mpi_open() */
} kl_mpi_library;

/* The description in each of the libraries. Weak: it is NULL in a program that is linked with none. */
extern KILTER_API const kl_mpi_library kl_mpi_library_linked __attribute__((weak));

/* The MPIs there are. */
typedef enum kl_mpi_kind {
    KL_MPI_UNKNOWN,
    KL_MPI_OPENMPI,
    KL_MPI_MPICH, /* and what is compatible with it: Intel MPI, MVAPICH */
    KL_MPI_KINDS,
} kl_mpi_kind;

const char *kl_mpi_title(kl_mpi_kind kind);    /* for people: "Open MPI", "MPICH" */
const char *kl_mpi_launcher(kl_mpi_kind kind); /* the command that starts its ranks */
/* The MPI whose launcher started this process, by its environment; unknown where several did. */
kl_mpi_kind kl_mpi_of_launcher(void);
/* The number of processes the launcher says it started, or a lower bound; 1: it says nothing. */
long kl_mpi_launched(void);
/* The MPI that gives `text` as its library's version. */
kl_mpi_kind kl_mpi_of_version(const char *text);

#endif
