/* A program with a loop: kilter/loop.h is found, with mpi.h, and its functions are linked. */
#include <kilter/loop.h>
#include <stdio.h>

int main(void) {
    kilter_loop *loop;
    kilter_error error = {KILTER_OK, ""};
    kilter_loop_options options = {.iterations = 1};
    if (kilter_loop_open(MPI_COMM_WORLD, &options, &loop, &error) != KILTER_ERR_USAGE) /* MPI does not run */
        return fprintf(stderr, "a loop without MPI: %s\n", error.text), 1;
    return kilter_loop_close(NULL, &error) == KILTER_OK ? 0 : 1;
}
