/* Which MPI started this process, and which one a library is. Needs no MPI. Private to room transport. */
#ifndef KL_MPI_KIND_H
#define KL_MPI_KIND_H

typedef enum kl_mpi_kind {
    KL_MPI_UNKNOWN,
    KL_MPI_OPENMPI,
    KL_MPI_MPICH, /* and what is compatible with it: Intel MPI, MVAPICH */
    KL_MPI_KINDS,
} kl_mpi_kind;

const char *kl_mpi_name(kl_mpi_kind kind);     /* as in "libkilter-openmpi"; NULL: unknown, also below */
const char *kl_mpi_title(kl_mpi_kind kind);    /* for people: "Open MPI", "MPICH" */
const char *kl_mpi_launcher(kl_mpi_kind kind); /* the command that starts its ranks */
/* The MPI whose launcher started this process, by its environment; unknown where several did. */
kl_mpi_kind kl_mpi_of_launcher(void);
/* The number of processes the launcher says it started, or a lower bound; 1: it says nothing. */
long kl_mpi_launched(void);
/* The MPI that gives `text` as its library's version. */
kl_mpi_kind kl_mpi_of_version(const char *text);

#endif
