#include "common.h"

/* Sums along rows: iterations of the inner loop depend on each other, iterations of the outer loop do not. */
#define N 33

static double a[N][N];

int main(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            a[i][j] = chance((uint64_t)(i * N + j));
#pragma kilter loop
    for (int i = 0; i < N; i++)
        for (int j = 1; j < N; j++)
            a[i][j] += a[i][j - 1];
    printf("%016llx\n", digest(a, sizeof a));
}
