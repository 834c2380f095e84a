/* redblack [N [SWEEPS]]: successive over-relaxation of an N×N grid with a fixed boundary. Points are coloured
 * like a chessboard: a sweep updates all points of one colour, then all points of the other. Rows move to the
 * ranks that compute them fastest. */
#include <kilter/loop.h>

#include "loop_program.h"

static const double OMEGA = 1.5;

static void start_row(size_t n, size_t i, double *u) {
    for (size_t j = 0; j < n; j++)
        u[j] = chance(i * n + j);
}

/* Relax the points of one colour in row i; u is the address of row i. */
static void relax(size_t n, size_t i, int colour, const double *up, double *u, const double *down) {
    for (size_t j = 1 + (i + 1 + (size_t)colour) % 2; j + 1 < n; j += 2)
        u[j] += OMEGA * (0.25 * (up[j] + down[j] + u[j - 1] + u[j + 1]) - u[j]);
}

static void *sequential(const settings *set, size_t n) {
    double(*u)[n] = allocate(n, sizeof *u);
    for (size_t i = 0; i < n; i++)
        start_row(n, i, u[i]);
    for (int half = 0; half < 2 * set->sweeps; half++)
        for (size_t i = 1; i + 1 < n; i++)
            relax(n, i, half % 2, u[i - 1], u[i], u[i + 1]);
    return u;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    settings set = read_settings(argc, argv, (settings){.program = "redblack", .n = 1000, .sweeps = 40});
    size_t n = (size_t)set.n;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    kilter_loop_options options = {
        .iterations = n, .deep = true, .fixed = set.fixed, .name = "redblack", .record = set.record};
    kilter_loop *loop;
    kilter_error error;
    must(kilter_loop_open(MPI_COMM_WORLD, &options, &loop, &error), &error);
    double(*u)[n];
    must(kilter_loop_array(loop, sizeof *u, 1, (void **)&u, &error), &error);
    kilter_range r;
    for (size_t nth = 0; kilter_loop_mine(loop, nth, &r); nth++)
        for (size_t i = r.lo; i < r.hi; i++)
            start_row(n, i, u[i]);

    MPI_Barrier(MPI_COMM_WORLD);
    double begun_s = MPI_Wtime();
    for (int half = 0; half < 2 * set.sweeps; half++) {
        must(kilter_loop_begin(loop, &error), &error);
        while (kilter_loop_next(loop, &r)) {
            double from_s = cpu_s(&set);
            for (size_t i = r.lo; i < r.hi; i++)
                if (i > 0 && i + 1 < n)
                    relax(n, i, half % 2, u[i - 1], u[i], u[i + 1]);
            pay(&set, from_s, (double)(r.hi - r.lo));
        }
        must(kilter_loop_end(loop, &error), &error);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double elapsed_s = MPI_Wtime() - begun_s;

    double(*whole)[n] = rank == 0 ? allocate(n, sizeof *whole) : NULL;
    must(kilter_loop_gather(loop, u, 0, whole, &error), &error);
    double(*expected)[n] = rank == 0 && set.check ? sequential(&set, n) : NULL;
    int code = rank == 0 ? finish(&set, elapsed_s, whole, expected, n * sizeof *whole) : 0;
    if (rank == 0)
        say_summary(&set, loop);
    free(expected);
    free(whole);
    must(kilter_loop_close(loop, &error), &error);
    MPI_Finalize();
    return code;
}
