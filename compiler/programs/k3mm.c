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

    static double E[N][N], F[N][N], G[N][N];
#pragma kilter loop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            E[i][j] = 0;
            for (int k = 0; k < N; ++k)
                E[i][j] += A[i][k] * B[k][j];
        }
#pragma kilter loop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            F[i][j] = 0;
            for (int k = 0; k < N; ++k)
                F[i][j] += C[i][k] * D[k][j];
        }
#pragma kilter loop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            G[i][j] = 0;
            for (int k = 0; k < N; ++k)
                G[i][j] += E[i][k] * F[k][j];
        }
    tmp[0][0] = G[1][1];
    printf("%016llx %.17g\n", digest(G, sizeof G), tmp[0][0]);
}
