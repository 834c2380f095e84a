#include "common.h"

#define N 38

static double u[N][N];

int main(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            u[i][j] = chance((uint64_t)(i * N + j));
    for (int t = 0; t < 4; t++) {
#pragma kilter loop
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                u[i][j] = 0.25 * (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]);
#pragma kilter loop
        for (int i = N - 2; i >= 1; i--)
            for (int j = N - 2; j >= 1; j--)
                u[i][j] = 0.25 * (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]);
    }
    printf("%016llx\n", digest(u, sizeof u));
}
