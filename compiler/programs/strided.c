#include "common.h"

#define N 50

static double u[N][N], w[N][N];

int main(void) {
    int i, j, odd;
    for (i = 0; i < N; i++)
        for (j = 0; j < N; j++)
            u[i][j] = chance((uint64_t)(i * N + j));
    for (odd = 0; odd < 6; odd++) {
#pragma kilter loop
        for (i = 1 + odd % 2; i < N - 1; i += 2)
            for (j = 0; j < N; j++)
                u[i][j] = 0.5 * (u[i - 1][j] + u[i + 1][j]);
#pragma kilter loop
        for (i = N - 1; i > 2; i -= 3)
            for (j = 0; j < N; j += 2)
                w[i][j] += u[i][j];
    }
    printf("%d %016llx %016llx\n", i, digest(u, sizeof u), digest(w, sizeof w));
    return 0;
}
