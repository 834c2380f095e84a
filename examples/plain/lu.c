/* lu [CLASS]: the benchmark LU of the NAS Parallel Benchmarks, class S, W, A or B, on one rank. The program
 * compares the norms of its result with the published norms. */
#include "examples/lu.h"

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const lu_class *is;
    settings set = lu_settings(argc, argv, &is);
    lu s = lu_of(is);
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks > 1)
        refuse(&set, "ranks", "the plain program is sequential; start one rank");
    double begun_s = MPI_Wtime();
    lu_grids g = lu_sequential(&s);
    finish(&set, MPI_Wtime() - begun_s, g.u, NULL, s.n * s.plane * sizeof *g.u);
    bool verified = lu_verify(&s, g.sums, g.u);
    lu_free(&g);
    MPI_Finalize();
    return !verified;
}
