#include "common.h"

#define N 40

static double u[N][N];

int main(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            u[i][j] = (double)((i * 7919 + j * 104729) % 1000) / 1000;
    for (int t = 0; t < 7; t++)
#pragma kilter loop
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                u[i][j] += 1.5 * (0.25 * (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]) - u[i][j]);
    for (int i = 0; i < N; i += 7)
        printf("%.17g %.17g\n", u[i][i], u[i][N - 1 - i]);
    printf("%016llx\n", digest(u, sizeof u));
}
