/* Check that the launcher and the MPI library belong to the same MPI. If they do, all ranks are in one
 * MPI_COMM_WORLD; if not, each rank is alone in a separate one. */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int asked = argc > 1 ? atoi(argv[1]) : 0;
    if (size != asked)
        fprintf(stderr, "the launcher started %d ranks, but the world has %d\n", asked, size);
    MPI_Finalize();
    return size != asked;
}
