#include "common.h"

#define N 40

static double u[N][N], v[N][N];

int main(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            u[i][j] = chance((uint64_t)(i * N + j));
    for (int t = 0; t < 4; t++) {
#pragma kilter loop
        for (int i = 2; i < N - 2; i++)
            for (int j = 0; j < N; j++)
                v[i][j] =
                    (-u[i - 2][j] + 16 * u[i - 1][j] - 30 * u[i][j] + 16 * u[i + 1][j] - u[i + 2][j]) / 12;
#pragma kilter loop
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                u[i][j] += 0.1 * v[i][j];
    }
    printf("%016llx\n", digest(u, sizeof u));
}
