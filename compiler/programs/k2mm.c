#include "common.h"

#define N 24

static double A[N][N], B[N][N], C[N][N], D[N][N], tmp[N][N];

int main(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            A[i][j] = (double)((i * j + 1) % N) / N;
            B[i][j] = (double)(i * (j + 1) % N) / N;
            C[i][j] = (double)((i * (j + 3) + 1) % N) / N;
            D[i][j] = (double)(i * (j + 2) % N) / N;
        }

#pragma kilter loop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            tmp[i][j] = 0;
            for (int k = 0; k < N; ++k)
                tmp[i][j] += 1.5 * A[i][k] * B[k][j];
        }
#pragma kilter loop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            D[i][j] *= 1.2;
            for (int k = 0; k < N; ++k)
                D[i][j] += tmp[i][k] * C[k][j];
        }
    printf("%016llx\n", digest(D, sizeof D));
}
