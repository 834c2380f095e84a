#include "common.h"

static const double OMEGA = 1.5;

static void relax(size_t n, size_t i, int colour, const double *up, double *u, const double *down) {
    for (size_t j = 1 + (i + 1 + (size_t)colour) % 2; j + 1 < n; j += 2)
        u[j] += OMEGA * (0.25 * (up[j] + down[j] + u[j - 1] + u[j + 1]) - u[j]);
}

int main(void) {
    size_t n = 43;
    double(*u)[n] = malloc(n * sizeof *u);
#pragma kilter loop
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            u[i][j] = chance(i * n + j);
    for (int half = 0; half < 12; half++)
#pragma kilter loop
        for (size_t i = 1; i + 1 < n; i++)
            relax(n, i, half % 2, u[i - 1], u[i], u[i + 1]);
    printf("%016llx\n", digest(u, n * sizeof *u));
    free(u);
    return 0;
}
