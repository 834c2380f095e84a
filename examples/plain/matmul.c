/* matmul [N [SWEEPS]]: A ← A·B, repeated. The rows of A are distributed; every rank has B. */
#include "examples/loop_program.h"

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
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int counts[ranks], starts[ranks];
    for (int r = 0; r < ranks; r++) {
        starts[r] = (int)(n * (size_t)r / (size_t)ranks);
        counts[r] = (int)(n * ((size_t)r + 1) / (size_t)ranks) - starts[r];
    }
    size_t lo = (size_t)starts[rank], own = (size_t)counts[rank];
    double(*b)[n] = allocate(n, sizeof *b);
    double(*a)[n] = allocate(own, sizeof *a), (*c)[n] = allocate(own, sizeof *c), (*made)[n];
    start_b(n, b);
    for (size_t i = 0; i < own; i++)
        start_row(n, lo + i, a[i]);

    MPI_Barrier(MPI_COMM_WORLD);
    double begun_s = MPI_Wtime();
    for (int sweep = 0; sweep < set.sweeps; sweep++, made = a, a = c, c = made) {
        double from_s = cpu_s(&set);
        for (size_t i = 0; i < own; i++)
            multiply(n, a[i], b, c[i]);
        pay(&set, from_s, (double)own);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double elapsed_s = MPI_Wtime() - begun_s;

    MPI_Datatype row;
    MPI_Type_contiguous((int)n, MPI_DOUBLE, &row);
    MPI_Type_commit(&row);
    double(*whole)[n] = rank == 0 ? allocate(n, sizeof *whole) : NULL;
    MPI_Gatherv(a, counts[rank], row, whole, counts, starts, row, 0, MPI_COMM_WORLD);
    MPI_Type_free(&row);
    double(*expected)[n] = rank == 0 && set.check ? sequential(&set, n, b) : NULL;
    int code = rank == 0 ? finish(&set, elapsed_s, whole, expected, n * sizeof *whole) : 0;
    free(expected);
    free(whole);
    free(a);
    free(b);
    free(c);
    MPI_Finalize();
    return code;
}
