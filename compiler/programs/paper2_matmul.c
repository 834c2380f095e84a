/* paper2_matmul [N SWEEPS]: compute A = A * B again and again. It is the sequential form of
 * examples/10_matmul.c, for tools/paper2. With arguments the program prints the time of the sweeps. */
#include "common.h"

#include <time.h>

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void multiply(size_t n, const double *a, double b[n][n], double *c) {
    for (size_t j = 0; j < n; j++)
        c[j] = 0;
    for (size_t k = 0; k < n; k++)
        for (size_t j = 0; j < n; j++)
            c[j] += a[k] * b[k][j];
}

int main(int argc, char **argv) {
    size_t n = argc > 1 ? (size_t)atoi(argv[1]) : 37;
    int sweeps = argc > 2 ? atoi(argv[2]) : 4;
    double(*restrict b)[n] = malloc(n * sizeof *b);
    double(*a)[n] = malloc(n * sizeof *a), (*c)[n] = malloc(n * sizeof *c), (*made)[n];
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            a[i][j] = chance(i * n + j);
            b[i][j] = 2 * chance((n + i) * n + j) / (double)n;
        }
    double begun_s = now_s();
    for (int sweep = 0; sweep < sweeps; sweep++) {
#pragma kilter loop name("matmul")
        for (size_t i = 0; i < n; i++)
            multiply(n, a[i], b, c[i]);
        made = a;
        a = c;
        c = made;
    }
    /* reading a[0][0] collects the result from the ranks, so the time includes the collection */
    double first = a[0][0], elapsed_s = now_s() - begun_s;
    unsigned long long checksum = digest(a, n * sizeof *a);
    if (argc > 1)
        printf("{\"elapsed_s\":%.9g,\"checksum\":\"%016llx\"}\n", elapsed_s, checksum);
    else
        printf("%.17g %016llx\n", first, checksum);
    free(a);
    free(b);
    free(c);
    return 0;
}
