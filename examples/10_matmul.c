/* matmul [N [SWEEPS]]: A ← A·B, repeated. Rows of A move to the fastest ranks; every rank has B. */
#include <kilter/loop.h>

#include "loop_program.h"

static void start_row(size_t n, size_t i, double *a) {
    for (size_t j = 0; j < n; j++)
        a[j] = chance(i * n + j);
}

/* Fill B so that the sums of its columns are about 1. So the values of A keep their order of magnitude over
 * many sweeps. */
static void start_b(size_t n, double b[n][n]) {
    for (size_t k = 0; k < n; k++)
        for (size_t j = 0; j < n; j++)
            b[k][j] = 2 * chance((n + k) * n + j) / (double)n;
}

static void multiply(size_t n, const double *a, double b[n][n], double *c) {
    memset(c, 0, n * sizeof *c);
    for (size_t k = 0; k < n; k++)
        for (size_t j = 0; j < n; j++)
            c[j] += a[k] * b[k][j];
}

static void *sequential(const settings *set, size_t n, double b[n][n]) {
    double(*a)[n] = allocate(n, sizeof *a), (*c)[n] = allocate(n, sizeof *c), (*made)[n];
    for (size_t i = 0; i < n; i++)
        start_row(n, i, a[i]);
    for (int sweep = 0; sweep < set->sweeps; sweep++, made = a, a = c, c = made)
        for (size_t i = 0; i < n; i++)
            multiply(n, a[i], b, c[i]);
    free(c);
    return a;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    settings set = read_settings(argc, argv, (settings){.program = "matmul", .n = 500, .sweeps = 1});
    size_t n = (size_t)set.n;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    kilter_loop_options options = {
        .iterations = n, .scattered = true, .fixed = set.fixed, .name = "matmul", .record = set.record};
    kilter_loop *loop;
    kilter_error error;
    must(kilter_loop_open(MPI_COMM_WORLD, &options, &loop, &error), &error);
    double(*b)[n] = allocate(n, sizeof *b);
    double(*a)[n], (*c)[n], (*made)[n];
    must(kilter_loop_array(loop, sizeof *a, 0, (void **)&a, &error), &error);
    must(kilter_loop_array(loop, sizeof *c, 0, (void **)&c, &error), &error);
    start_b(n, b);
    kilter_range r;
    for (size_t nth = 0; kilter_loop_mine(loop, nth, &r); nth++)
        for (size_t i = r.lo; i < r.hi; i++)
            start_row(n, i, a[i]);

    MPI_Barrier(MPI_COMM_WORLD);
    double begun_s = MPI_Wtime();
    for (int sweep = 0; sweep < set.sweeps; sweep++, made = a, a = c, c = made) {
        must(kilter_loop_begin(loop, &error), &error);
        while (kilter_loop_next(loop, &r)) {
            double from_s = cpu_s(&set);
            for (size_t i = r.lo; i < r.hi; i++)
                multiply(n, a[i], b, c[i]);
            pay(&set, from_s, (double)(r.hi - r.lo));
        }
        must(kilter_loop_end(loop, &error), &error);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double elapsed_s = MPI_Wtime() - begun_s;

    double(*whole)[n] = rank == 0 ? allocate(n, sizeof *whole) : NULL;
    must(kilter_loop_gather(loop, a, 0, whole, &error), &error);
    double(*expected)[n] = rank == 0 && set.check ? sequential(&set, n, b) : NULL;
    int code = rank == 0 ? finish(&set, elapsed_s, whole, expected, n * sizeof *whole) : 0;
    if (rank == 0)
        say_summary(&set, loop);
    free(expected);
    free(whole);
    free(b);
    must(kilter_loop_close(loop, &error), &error);
    MPI_Finalize();
    return code;
}
