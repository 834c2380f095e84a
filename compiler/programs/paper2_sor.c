/* paper2_sor [N SWEEPS]: successive over-relaxation of an N×N grid, in the order of rows and columns. It is
 * the sequential form of examples/12_pipeline.c, for tools/paper2. With arguments the program prints the time
 * of the sweeps. */
#include "common.h"

#include <time.h>

static const double OMEGA = 1.5;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void relax(size_t n, const double *up, double *u, const double *down) {
    for (size_t j = 1; j + 1 < n; j++)
        u[j] += OMEGA * (0.25 * (up[j] + down[j] + u[j - 1] + u[j + 1]) - u[j]);
}

int main(int argc, char **argv) {
    size_t n = argc > 1 ? (size_t)atoi(argv[1]) : 41;
    int sweeps = argc > 2 ? atoi(argv[2]) : 6;
    double(*u)[n] = malloc(n * sizeof *u);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            u[i][j] = chance(i * n + j);
    double begun_s = now_s();
    for (int sweep = 0; sweep < sweeps; sweep++)
#pragma kilter loop name("pipeline")
        for (size_t i = 1; i + 1 < n; i++)
            relax(n, u[i - 1], u[i], u[i + 1]);
    /* reading u[0][0] collects the result from the ranks, so the time includes the collection */
    double first = u[0][0], elapsed_s = now_s() - begun_s;
    unsigned long long checksum = digest(u, n * sizeof *u);
    if (argc > 1)
        printf("{\"elapsed_s\":%.9g,\"checksum\":\"%016llx\"}\n", elapsed_s, checksum);
    else
        printf("%.17g %016llx\n", first, checksum);
    free(u);
    return 0;
}
