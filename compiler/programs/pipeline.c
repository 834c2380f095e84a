#include "common.h"

static const double OMEGA = 1.5;

static void relax(size_t n, const double *up, double *u, const double *down) {
    for (size_t j = 1; j + 1 < n; j++)
        u[j] += OMEGA * (0.25 * (up[j] + down[j] + u[j - 1] + u[j + 1]) - u[j]);
}

int main(void) {
    size_t n = 41;
    double(*u)[n] = malloc(n * sizeof *u);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            u[i][j] = chance(i * n + j);
    for (int sweep = 0; sweep < 6; sweep++)
#pragma kilter loop
        for (size_t i = 1; i + 1 < n; i++)
            relax(n, u[i - 1], u[i], u[i + 1]);
    printf("%016llx\n", digest(u, n * sizeof *u));
    free(u);
}
