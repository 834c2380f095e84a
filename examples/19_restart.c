/* restart [N [SWEEPS]]: heat in a plate of N×N points, saved in checkpoints.
 *
 *   KILTER_CHECKPOINT=heat mpirun -n 4 ./restart
 *
 * If the program dies, the same command continues from the newest checkpoint, on any number of ranks. */
#include <inttypes.h>
#include <kilter/loop.h>
#include <stdio.h>
#include <stdlib.h>

static void must(kilter_status status, const kilter_error *error) {
    if (status != KILTER_OK) {
        fprintf(stderr, "restart: %s\n", error->text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 500;
    uint64_t sweeps = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
    kilter_loop *loop;
    kilter_error error;
    must(kilter_loop_open(MPI_COMM_WORLD, &(kilter_loop_options){.iterations = n, .sweeps = sweeps}, &loop,
                          &error),
         &error);
    double(*plates[2])[n], *sums, heat = 0;
    for (int i = 0; i < 2; i++)
        must(kilter_loop_array(loop, sizeof *plates[i], 1, (void **)&plates[i], &error), &error);
    must(kilter_loop_array(loop, sizeof *sums, 0, (void **)&sums, &error), &error);

    /* only the next two lines are needed for checkpoints */
    uint64_t done;
    must(kilter_loop_keep(loop, "heat", &heat, sizeof heat, &error), &error);
    must(kilter_loop_resumed(loop, &done, &error), &error);

    kilter_range r;
    for (size_t nth = 0; done == 0 && kilter_loop_mine(loop, nth, &r); nth++)
        for (size_t i = r.lo; i < r.hi; i++)
            plates[0][i][0] = plates[1][i][0] = (double)i;
    for (uint64_t sweep = done; sweep < sweeps; sweep++) {
        double(*from)[n] = plates[sweep % 2], (*to)[n] = plates[1 - sweep % 2];
        must(kilter_loop_begin(loop, &error), &error);
        while (kilter_loop_next(loop, &r))
            for (size_t i = r.lo; i < r.hi; i++) {
                sums[i] = 0;
                for (size_t j = 1; i > 0 && i + 1 < n && j + 1 < n; j++) {
                    to[i][j] = 0.25 * (from[i - 1][j] + from[i + 1][j] + from[i][j - 1] + from[i][j + 1]);
                    sums[i] += to[i][j];
                }
            }
        must(kilter_loop_end(loop, &error), &error);
        if (sweep % 100 == 99)
            must(kilter_loop_sum(loop, sums, &heat, &error), &error);
    }
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        printf("%" PRIu64 " sweeps before this start, heat %.17g\n", done, heat);
    must(kilter_loop_close(loop, &error), &error);
    MPI_Finalize();
    return 0;
}
