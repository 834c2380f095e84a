#include "common.h"

/* Marked loops in a function. Each call of the function passes different arrays. */
static void step(int n, double a[restrict n][n], double b[restrict n][n]) {
#pragma kilter loop
    for (int i = 1; i < n - 1; i++)
        for (int j = 1; j < n - 1; j++)
            b[i][j] = 0.25 * (a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1]);
}

int main(void) {
    int n = 29;
    double(*x)[n] = calloc((size_t)n, sizeof *x), (*y)[n] = calloc((size_t)n, sizeof *y),
    (*z)[n] = calloc((size_t)n, sizeof *z);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            x[i][j] = y[i][j] = chance((uint64_t)(i * n + j));
    for (int t = 0; t < 4; t++) {
        step(n, x, y);
        step(n, y, z);
        step(n, z, x);
    }
    printf("%016llx %016llx\n", digest(x, (size_t)n * sizeof *x), digest(z, (size_t)n * sizeof *z));
    free(x);
    free(y);
    free(z);
    return 0;
}
