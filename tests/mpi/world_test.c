/* The launcher and the library belong to the same MPI: as many ranks as were asked for stand in one world.
 * Two MPIs mixed give as many worlds of one rank each. */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int asked = argc > 1 ? atoi(argv[1]) : 0;
    if (size != asked)
        fprintf(stderr, "%d ranks were asked for, the world has %d\n", asked, size);
    MPI_Finalize();
    return size != asked;
}
