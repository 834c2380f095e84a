#include "common.h"

#define N 30
#define M 20

static double A[N][M], B[N][M], C[N][N];

int main(void) {
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < M; j++) {
            A[i][j] = (double)((i * j + 1) % N) / N;
            B[i][j] = (double)((i * j + 2) % M) / M;
        }
        for (int j = 0; j < N; j++)
            C[i][j] = (double)((i * j + 3) % M) / N;
    }
#pragma kilter loop
    for (int i = 0; i < N; i++) {
        for (int j = 0; j <= i; j++)
            C[i][j] *= 1.2;
        for (int k = 0; k < M; k++)
            for (int j = 0; j <= i; j++)
                C[i][j] += A[j][k] * 1.5 * B[i][k] + B[j][k] * 1.5 * A[i][k];
    }
    printf("%016llx\n", digest(C, sizeof C));
}
