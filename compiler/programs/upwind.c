#include "common.h"

#define N 36

static double u[N][N], speed[N][N];

int main(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            u[i][j] = chance((uint64_t)(i * N + j));
            speed[i][j] = 1 + chance((uint64_t)(i * N + j + 5000));
        }
#pragma kilter loop
    for (int i = 1; i < N; i++)
        for (int j = 1; j < N; j++)
            u[i][j] = 0.5 * (u[i - 1][j] + u[i][j - 1]) + 0.01 * speed[i][j];
    printf("%016llx\n", digest(u, sizeof u));
}
