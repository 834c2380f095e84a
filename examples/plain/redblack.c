/* redblack [N [SWEEPS]]: successive over-relaxation of an N×N grid with a fixed boundary. Points are coloured
 * like a chessboard: a sweep updates all points of one colour, then all points of the other. The rows are
 * distributed; each rank also has the row before and the row after its own. */
#include "examples/loop_program.h"

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
    for (size_t i = 0; i < own; i++)
        start_row(n, lo + i, u[i + 1]);

    MPI_Barrier(MPI_COMM_WORLD);
    double begun_s = MPI_Wtime();
    for (int half = 0; half < 2 * set.sweeps; half++) {
        MPI_Request requests[4];
        MPI_Status statuses[4];
        MPI_Irecv(u[0], (int)n, MPI_DOUBLE, before, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(u[own + 1], (int)n, MPI_DOUBLE, after, 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(u[1], (int)n, MPI_DOUBLE, before, 0, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(u[own], (int)n, MPI_DOUBLE, after, 0, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, statuses);
        double from_s = cpu_s(&set);
        for (size_t i = 1; i <= own; i++)
            if (lo + i > 1 && lo + i < n)
                relax(n, lo + i - 1, half % 2, u[i - 1], u[i], u[i + 1]);
        pay(&set, from_s, (double)own);
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
    free(u);
    MPI_Finalize();
    return code;
}
