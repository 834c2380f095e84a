/* Find out which MPI started this process, and to which MPI a library belongs. Private to the folder
 * transport. */
#ifndef KL_MPI_KIND_H
#define KL_MPI_KIND_H

typedef enum kl_mpi_kind {
    KL_MPI_UNKNOWN,
    KL_MPI_OPENMPI,
    KL_MPI_MPICH, /* MPICH, and MPIs compatible with it: Intel MPI, MVAPICH */
    KL_MPI_KINDS,
} kl_mpi_kind;

/* Return the MPI's name as it is in file names such as libkilter-openmpi: "openmpi". Return NULL for an
 * unknown MPI; so do kl_mpi_title() and kl_mpi_launcher(). */
const char *kl_mpi_name(kl_mpi_kind kind);
/* Return the MPI's name for messages to users: "Open MPI", "MPICH". */
const char *kl_mpi_title(kl_mpi_kind kind);
/* Return the name of the command that starts the MPI's ranks. */
const char *kl_mpi_launcher(kl_mpi_kind kind);
/* Return the MPI whose launcher set this process's environment. Return KL_MPI_UNKNOWN if no launcher has set
 * it, or if several launchers have. */
kl_mpi_kind kl_mpi_of_launcher(void);
/* Return the number of processes that the launcher started, or a lower bound of this number; 1: unknown. */
long kl_mpi_launched(void);
/* Return the MPI whose library version is `text`. */
kl_mpi_kind kl_mpi_of_version(const char *text);

#endif
