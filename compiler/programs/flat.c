#include "common.h"

static void fill(double *x, int n) {
    for (int i = 0; i < n * n; i++)
        x[i] = chance((uint64_t)i);
}

int main(void) {
    int n = 35;
    double *x = malloc(sizeof(double) * (size_t)n * (size_t)n),
           *y = malloc(sizeof(double) * (size_t)n * (size_t)n);
    fill(x, n);
    fill(y, n);
    for (int t = 0; t < 5; t++) {
#pragma kilter loop
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j < n - 1; j++)
                y[i * n + j] = 0.2 * (x[i * n + j] + x[(i - 1) * n + j] + x[(i + 1) * n + j] +
                                      x[i * n + j - 1] + x[i * n + j + 1]);
#pragma kilter loop
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j < n - 1; j++)
                x[i * n + j] = y[i * n + j];
    }
    printf("%016llx\n", digest(x, sizeof(double) * (size_t)n * (size_t)n));
    free(x);
    free(y);
}
