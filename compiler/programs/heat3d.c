#include "common.h"

#define N 14

static double a[N][N][N], b[N][N][N];

int main(void) {
    double residual = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int k = 0; k < N; k++)
                a[i][j][k] = chance((uint64_t)((i * N + j) * N + k));
    for (int t = 0; t < 5; t++) {
        residual = 0;
#pragma kilter loop reduction(max : residual)
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                for (int k = 1; k < N - 1; k++) {
                    double v = (a[i - 1][j][k] + a[i + 1][j][k] + a[i][j - 1][k] + a[i][j + 1][k] +
                                a[i][j][k - 1] + a[i][j][k + 1]) /
                               6;
                    residual = fmax(residual, fabs(v - a[i][j][k]));
                    b[i][j][k] = v;
                }
#pragma kilter loop
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                for (int k = 1; k < N - 1; k++)
                    a[i][j][k] = b[i][j][k];
        printf("%d %.17g\n", t, residual);
    }
    printf("%016llx\n", digest(a, sizeof a));
    return 0;
}
