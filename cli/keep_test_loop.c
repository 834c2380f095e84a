/* keep_test_loop: an MPI program for tests of kilter run --keep. Its loop continues until the file
 * `enough` exists. Then each rank computes its rows again without Kilter, and compares the bits. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "kilter/loop.h"

enum { ROWS = 48, LOOK_SWEEPS = 10 };

static void must(kilter_status status, const kilter_error *error) {
    if (status == KILTER_OK)
        return;
    fprintf(stderr, "keep_test_loop: %s\n", error->text);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static double next_value(const double *from, size_t row) {
    double left = row > 0 ? from[row - 1] : 1, right = row + 1 < ROWS ? from[row + 1] : 2;
    return 0.3 * left + 0.3 * right + 0.39 * from[row];
}

/* Return how many rows of this rank have another value than a sequential program computes for them. */
static uint64_t count_wrong(kilter_loop *loop, const double *values, uint64_t sweeps) {
    double plain[2][ROWS] = {{0}};
    uint64_t wrong = 0;
    kilter_range r;
    for (uint64_t sweep = 0; sweep < sweeps; sweep++)
        for (size_t row = 0; row < ROWS; row++)
            plain[1 - sweep % 2][row] = next_value(plain[sweep % 2], row);
    for (size_t nth = 0; kilter_loop_mine(loop, nth, &r); nth++)
        for (uint64_t row = r.lo; row < r.hi; row++)
            wrong += values[row] < plain[sweeps % 2][row] || values[row] > plain[sweeps % 2][row];
    return wrong;
}

static void sweep_once(kilter_loop *loop, const double *from, double *to, double *ends) {
    const struct timespec nap = {.tv_nsec = 2000000};
    kilter_error error;
    kilter_range r;
    must(kilter_loop_begin(loop, &error), &error);
    while (kilter_loop_next(loop, &r))
        for (uint64_t row = r.lo; row < r.hi; row++) {
            to[row] = next_value(from, row);
            ends[row] = row == 0 && access("enough", F_OK) == 0;
            if (row == r.lo)
                nanosleep(&nap, NULL);
        }
    must(kilter_loop_end(loop, &error), &error);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    kilter_loop *loop;
    kilter_error error;
    double *values[2], *ends, end = 0, all_wrong = 0;
    must(kilter_loop_open(MPI_COMM_WORLD, &(kilter_loop_options){.iterations = ROWS, .sweeps = 1000000},
                          &loop, &error),
         &error);
    for (int i = 0; i < 2; i++)
        must(kilter_loop_array(loop, sizeof *values[i], 1, (void **)&values[i], &error), &error);
    must(kilter_loop_array(loop, sizeof *ends, 0, (void **)&ends, &error), &error);
    uint64_t sweep;
    must(kilter_loop_resumed(loop, &sweep, &error), &error);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        printf("begins after sweep %llu\n", (unsigned long long)sweep);
    fflush(stdout);
    for (; end == 0; sweep++) {
        sweep_once(loop, values[sweep % 2], values[1 - sweep % 2], ends);
        if (sweep % LOOK_SWEEPS == LOOK_SWEEPS - 1)
            must(kilter_loop_sum(loop, ends, &end, &error), &error);
    }
    double wrong = (double)count_wrong(loop, values[sweep % 2], sweep);
    MPI_Allreduce(&wrong, &all_wrong, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s after sweep %" PRIu64 "\n", all_wrong > 0 ? "wrong" : "right", sweep);
    must(kilter_loop_close(loop, &error), &error);
    MPI_Finalize();
    return all_wrong > 0;
}
