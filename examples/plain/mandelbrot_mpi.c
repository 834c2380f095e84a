/* Compute the area of the Mandelbrot set with a master and workers in MPI; see ../07_mandelbrot.c. */
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>

#include "examples/mandelbrot.h"

enum { RESULT, ROW };

static uint64_t deal(int workers) {
    uint64_t row = 0, inside = 0;
    int working = workers;
    while (working > 0) {
        uint64_t counted;
        MPI_Status from;
        MPI_Recv(&counted, 1, MPI_UINT64_T, MPI_ANY_SOURCE, RESULT, MPI_COMM_WORLD, &from);
        inside += counted;
        MPI_Send(&row, 1, MPI_UINT64_T, from.MPI_SOURCE, ROW, MPI_COMM_WORLD);
        if (row < GRID)
            row++;
        else
            working--;
    }
    return inside;
}

static void work(void) {
    uint64_t row, inside = 0; /* a worker's first message has no result, and only asks for a row */
    for (;;) {
        MPI_Send(&inside, 1, MPI_UINT64_T, 0, RESULT, MPI_COMM_WORLD);
        MPI_Recv(&row, 1, MPI_UINT64_T, 0, ROW, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (row == GRID)
            return;
        inside = points_inside(row);
    }
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank > 0)
        work();
    else if (ranks == 1)
        fprintf(stderr, "%s needs at least 2 ranks\n", argv[0]);
    else {
        uint64_t inside = deal(ranks - 1);
        printf("%" PRIu64 " points inside, area %.4f\n", inside, 9.0 * (double)inside / GRID / GRID);
    }
    MPI_Finalize();
    return rank == 0 && ranks == 1;
}
