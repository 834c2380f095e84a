/* mg [CLASS]: the benchmark MG of the NAS Parallel Benchmarks, class S, W, A or B, on one rank. The program
 * compares the norm of its result with the published norm. */
#include "examples/mg.h"

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const mg_class *is;
    settings set = mg_settings(argc, argv, &is);
    size_t n = (size_t)1 << is->top;
    double sum = 0;
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks > 1)
        refuse(&set, "ranks", "the plain program is sequential; start one rank");
    mg_grids g = mg_start(is);
    double begun_s = MPI_Wtime();
    mg_solve(is, &g);
    double elapsed_s = MPI_Wtime() - begun_s;
    for (size_t k = 0; k < n; k++)
        sum += mg_square(n, (ptrdiff_t)k, g.r[is->top]);
    finish(&set, elapsed_s, g.u[is->top], NULL, n * mg_plane(n) * sizeof(double));
    bool verified = mg_verify(is, sum);
    mg_free(is, &g);
    MPI_Finalize();
    return !verified;
}
