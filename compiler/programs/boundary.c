#include "common.h"

/* Code outside of marked loops changes the array in each step. */
#define N 26

static double u[N][N], v[N][N];
static double history[10];

int main(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            u[i][j] = chance((uint64_t)(i * N + j));
    for (int t = 0; t < 6; t++) {
        for (int j = 0; j < N; j++) {
            u[0][j] = t;
            u[N - 1][j] = -t;
        }
#pragma kilter loop
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                v[i][j] = 0.25 * (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]);
#pragma kilter loop
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                u[i][j] = v[i][j];
        history[t] = u[N / 2][N / 2];
        if (t == 3)
            u[4][4] = 100;
    }
    for (int t = 0; t < 6; t++)
        printf("%.17g\n", history[t]);
    printf("%016llx\n", digest(u, sizeof u));
}
