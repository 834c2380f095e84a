/* pipeline [N [SWEEPS]] [--block B]: successive over-relaxation of an N×N grid with a fixed boundary, row by
 * row and from left to right. Each point needs the new values above it and to the left of it. The rows are
 * distributed, and the ranks form a pipeline on blocks of B columns. */
#include "examples/loop_program.h"

static const double OMEGA = 1.5;

static void start_row(size_t n, size_t i, double *u) {
    for (size_t j = 0; j < n; j++)
        u[j] = chance(i * n + j);
}

/* Relax the columns `from` to `to` − 1 of a row; u is the address of the row's first value. */
static void relax(size_t n, size_t from, size_t to, const double *up, double *u, const double *down) {
    for (size_t j = from > 1 ? from : 1; j < to && j + 1 < n; j++)
        u[j] += OMEGA * (0.25 * (up[j] + down[j] + u[j - 1] + u[j + 1]) - u[j]);
}

static void *sequential(const settings *set, size_t n) {
    double(*u)[n] = allocate(n, sizeof *u);
    for (size_t i = 0; i < n; i++)
        start_row(n, i, u[i]);
    for (int sweep = 0; sweep < set->sweeps; sweep++)
        for (size_t i = 1; i + 1 < n; i++)
            relax(n, 0, n, u[i - 1], u[i], u[i + 1]);
    return u;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    settings set = read_settings(argc, argv, (settings){.program = "pipeline", .n = 1000, .sweeps = 40});
    size_t n = (size_t)set.n, block = set.block > 0 ? (size_t)set.block : (n + 15) / 16;
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if ((size_t)ranks > n)
        refuse(&set, "N", "there are fewer rows than ranks; start fewer ranks");
    int counts[ranks], starts[ranks];
    for (int r = 0; r < ranks; r++) {
        starts[r] = (int)(n * (size_t)r / (size_t)ranks);
        counts[r] = (int)(n * ((size_t)r + 1) / (size_t)ranks) - starts[r];
    }
    size_t lo = (size_t)starts[rank], own = (size_t)counts[rank];
    int before = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    int after = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    double(*u)[n] = allocate(own + 2, sizeof *u); /* the memory holds the rows lo − 1 … lo + own */
    MPI_Request *sends = allocate((n + block - 1) / block, sizeof *sends);
    for (size_t i = 0; i < own; i++)
        start_row(n, lo + i, u[i + 1]);

    MPI_Barrier(MPI_COMM_WORLD);
    double begun_s = MPI_Wtime();
    for (int sweep = 0; sweep < set.sweeps; sweep++) {
        int sent = 0;
        MPI_Sendrecv(u[1], (int)n, MPI_DOUBLE, before, 0, u[own + 1], (int)n, MPI_DOUBLE, after, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (size_t from = 0; from < n; from += block) {
            size_t to = from + block < n ? from + block : n;
            MPI_Recv(&u[0][from], (int)(to - from), MPI_DOUBLE, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            double from_s = cpu_s(&set);
            for (size_t i = 1; i <= own; i++)
                if (lo + i > 1 && lo + i < n)
                    relax(n, from, to, u[i - 1], u[i], u[i + 1]);
            pay(&set, from_s, (double)own * (double)(to - from) / (double)n);
            MPI_Isend(&u[own][from], (int)(to - from), MPI_DOUBLE, after, 1, MPI_COMM_WORLD, &sends[sent++]);
        }
        while (sent > 0)
            MPI_Wait(&sends[--sent], MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double elapsed_s = MPI_Wtime() - begun_s;

    MPI_Datatype row;
    MPI_Type_contiguous((int)n, MPI_DOUBLE, &row);
    MPI_Type_commit(&row);
    double(*whole)[n] = rank == 0 ? allocate(n, sizeof *whole) : NULL;
    MPI_Gatherv(u[1], (int)own, row, whole, counts, starts, row, 0, MPI_COMM_WORLD);
    MPI_Type_free(&row);
    double(*expected)[n] = rank == 0 && set.check ? sequential(&set, n) : NULL;
    int code = rank == 0 ? finish(&set, elapsed_s, whole, expected, n * sizeof *whole) : 0;
    free(expected);
    free(whole);
    free(sends);
    free(u);
    MPI_Finalize();
    return code;
}
