/* A program with a loop. It checks that the compiler finds kilter/loop.h and mpi.h, and that the linker finds
 * the functions of loops. With an argument the program runs MPI and prints how many ranks its loop has.
 * Without an argument it does not start MPI, and checks that kilter_loop_open() returns an error. */
#include <kilter/loop.h>
#include <stdio.h>

int main(int argc, char **argv) {
    kilter_loop *loop = NULL;
    kilter_error error = {KILTER_OK, ""};
    kilter_loop_options options = {.iterations = 1};
    if (argc == 1) {
        if (kilter_loop_open(MPI_COMM_WORLD, &options, &loop, &error) != KILTER_ERR_USAGE)
            return fprintf(stderr, "a loop without MPI: %s\n", error.text), 1;
        return kilter_loop_close(NULL, &error) == KILTER_OK ? 0 : 1;
    }
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (kilter_loop_open(MPI_COMM_WORLD, &options, &loop, &error) == KILTER_OK)
        kilter_loop_close(loop, &error);
    if (rank == 0 && error.status == KILTER_OK)
        printf("a loop on %d ranks\n", ranks);
    MPI_Finalize();
    return kilter_exit("outside_loop", &error);
}
