#include "common.h"

/* Compute one row of A * B. The program repeats A = A * B. */
static void multiply(size_t n, const double *a, double b[n][n], double *c) {
    for (size_t j = 0; j < n; j++)
        c[j] = 0;
    for (size_t k = 0; k < n; k++)
        for (size_t j = 0; j < n; j++)
            c[j] += a[k] * b[k][j];
}

int main(void) {
    size_t n = 37;
    double(*restrict b)[n] = malloc(n * sizeof *b);
    double(*a)[n] = malloc(n * sizeof *a), (*c)[n] = malloc(n * sizeof *c), (*made)[n];
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            a[i][j] = chance(i * n + j);
            b[i][j] = 2 * chance((n + i) * n + j) / (double)n;
        }
    for (int sweep = 0; sweep < 4; sweep++) {
#pragma kilter loop
        for (size_t i = 0; i < n; i++)
            multiply(n, a[i], b, c[i]);
        made = a;
        a = c;
        c = made;
    }
    printf("%016llx\n", digest(a, n * sizeof *a));
    free(a);
    free(b);
    free(c);
    return 0;
}
