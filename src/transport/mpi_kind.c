#include "transport/mpi_kind.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *title, *launcher;
} MPIS[KL_MPI_KINDS] = {
    [KL_MPI_OPENMPI] = {"openmpi", "Open MPI", "Open MPI's mpirun"},
    [KL_MPI_MPICH] = {"mpich", "MPICH", "MPICH's mpiexec"},
};

const char *kl_mpi_name(kl_mpi_kind kind) {
    return MPIS[kind].name;
}

const char *kl_mpi_title(kl_mpi_kind kind) {
    return MPIS[kind].title;
}

const char *kl_mpi_launcher(kl_mpi_kind kind) {
    return MPIS[kind].launcher;
}

/* MPICH's launcher (Hydra) and launchers derived from it set MPI_LOCALNRANKS. The variable PMI_SIZE alone
 * proves nothing, because Slurm sets it for every MPI. */
kl_mpi_kind kl_mpi_of_launcher(void) {
    bool openmpi = getenv("OMPI_COMM_WORLD_SIZE"), mpich = getenv("MPI_LOCALNRANKS");
    if (openmpi == mpich)
        return KL_MPI_UNKNOWN;
    return openmpi ? KL_MPI_OPENMPI : KL_MPI_MPICH;
}

long kl_mpi_launched(void) {
    static const char *const SIZES[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"};
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        const char *value = getenv(SIZES[i]);
        if (value && atol(value) > 1)
            return atol(value);
    }
    /* PMIx has no variable for the number of processes, so use rank + 1, which is a lower bound */
    const char *rank = getenv("PMIX_RANK");
    return rank && atol(rank) > 0 ? atol(rank) + 1 : 1;
}

kl_mpi_kind kl_mpi_of_version(const char *text) {
    static const char *const LIKE_MPICH[] = {"MPICH", "MVAPICH", "Intel(R) MPI"};
    if (strncmp(text, "Open MPI", 8) == 0)
        return KL_MPI_OPENMPI;
    for (size_t i = 0; i < sizeof LIKE_MPICH / sizeof *LIKE_MPICH; i++)
        if (strstr(text, LIKE_MPICH[i]))
            return KL_MPI_MPICH;
    return KL_MPI_UNKNOWN;
}
