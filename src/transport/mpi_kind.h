/* Find which MPI started this process, and which one a library is. Private to room transport. */
#ifndef KL_MPI_KIND_H
#define KL_MPI_KIND_H

typedef enum kl_mpi_kind {
    KL_MPI_UNKNOWN,
    KL_MPI_OPENMPI,
    KL_MPI_MPICH, /* also compatible ones: Intel MPI, MVAPICH */
    KL_MPI_KINDS,
} kl_mpi_kind;

const char *
kl_mpi_name(kl_mpi_kind kind); /* as in "libkilter-openmpi"; this and the next two return NULL if unknown */
const char *kl_mpi_title(kl_mpi_kind kind);    /* for users: "Open MPI", "MPICH" */
const char *kl_mpi_launcher(kl_mpi_kind kind); /* command that starts the ranks */
/* Return the MPI whose launcher started this process, found from the environment; unknown if several did. */
kl_mpi_kind kl_mpi_of_launcher(void);
/* Return the number of processes that the launcher started, or a lower bound; 1: unknown. */
long kl_mpi_launched(void);
/* Return the MPI whose library version is `text`. */
kl_mpi_kind kl_mpi_of_version(const char *text);

#endif
