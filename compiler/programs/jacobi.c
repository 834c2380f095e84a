#include "common.h"

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 38, steps = argc > 2 ? atoi(argv[2]) : 9;
    double(*a)[n] = malloc((size_t)n * sizeof *a), (*b)[n] = malloc((size_t)n * sizeof *b);
    if (!a || !b) {
        fprintf(stderr, "no memory\n");
        return 1;
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            a[i][j] = b[i][j] = chance((uint64_t)(i * n + j));
    for (int t = 0; t < steps; t++) {
#pragma kilter loop name("jacobi")
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j < n - 1; j++)
                b[i][j] = 0.25 * (a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1]);
        double(*c)[n] = a;
        a = b;
        b = c;
    }
    printf("%d %016llx\n", n, digest(a, (size_t)n * sizeof *a));
    free(a);
    free(b);
    return 0;
}
