/* wave [N [STEPS]]: a wave on an N×N membrane with a fixed boundary. The membrane starts with random heights.
 * Rows move to the ranks that compute them fastest. */
#include <kilter/loop.h>

#include "loop_program.h"

static const double SPEED2 = 0.25; /* (wave speed × time step / distance between points)² */

/* A point has two values: its heights at this step and at the previous step. After each step, the two array
 * elements exchange their roles. */
static void start_row(size_t n, size_t i, double u[n][2]) {
    for (size_t j = 0; j < n; j++)
        u[j][0] = u[j][1] = i > 0 && i + 1 < n && j > 0 && j + 1 < n ? chance(i * n + j) : 0;
}

/* Advance row i by a step: the new height replaces the height at the previous step. */
static void advance(size_t n, int step, double up[n][2], double u[n][2], double down[n][2]) {
    int now = step % 2, next = 1 - now;
    for (size_t j = 1; j + 1 < n; j++) {
        double bend = up[j][now] + down[j][now] + u[j - 1][now] + u[j + 1][now] - 4 * u[j][now];
        u[j][next] = 2 * u[j][now] - u[j][next] + SPEED2 * bend;
    }
}

static void *sequential(const settings *set, size_t n) {
    double(*u)[n][2] = allocate(n, sizeof *u);
    for (size_t i = 0; i < n; i++)
        start_row(n, i, u[i]);
    for (int step = 0; step < set->sweeps; step++)
        for (size_t i = 1; i + 1 < n; i++)
            advance(n, step, u[i - 1], u[i], u[i + 1]);
    return u;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    settings set = read_settings(argc, argv, (settings){.program = "wave", .n = 1000, .sweeps = 40});
    size_t n = (size_t)set.n;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    kilter_loop_options options = {
        .iterations = n, .deep = true, .fixed = set.fixed, .name = "wave", .record = set.record};
    kilter_loop *loop;
    kilter_error error;
    must(kilter_loop_open(MPI_COMM_WORLD, &options, &loop, &error), &error);
    double(*u)[n][2];
    must(kilter_loop_array(loop, sizeof *u, 1, (void **)&u, &error), &error);
    kilter_range r;
    for (size_t nth = 0; kilter_loop_mine(loop, nth, &r); nth++)
        for (size_t i = r.lo; i < r.hi; i++)
            start_row(n, i, u[i]);

    MPI_Barrier(MPI_COMM_WORLD);
    double begun_s = MPI_Wtime();
    for (int step = 0; step < set.sweeps; step++) {
        must(kilter_loop_begin(loop, &error), &error);
        while (kilter_loop_next(loop, &r)) {
            double from_s = cpu_s(&set);
            for (size_t i = r.lo; i < r.hi; i++)
                if (i > 0 && i + 1 < n)
                    advance(n, step, u[i - 1], u[i], u[i + 1]);
            pay(&set, from_s, (double)(r.hi - r.lo));
        }
        must(kilter_loop_end(loop, &error), &error);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double elapsed_s = MPI_Wtime() - begun_s;

    double(*whole)[n][2] = rank == 0 ? allocate(n, sizeof *whole) : NULL;
    must(kilter_loop_gather(loop, u, 0, whole, &error), &error);
    double(*expected)[n][2] = rank == 0 && set.check ? sequential(&set, n) : NULL;
    int code = rank == 0 ? finish(&set, elapsed_s, whole, expected, n * sizeof *whole) : 0;
    if (rank == 0)
        say_summary(&set, loop);
    free(expected);
    free(whole);
    must(kilter_loop_close(loop, &error), &error);
    MPI_Finalize();
    return code;
}
