#include "common.h"

#define N 30
#define M 24

static double data[N][M], cov[M][M], mean[M];

int main(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++)
            data[i][j] = ((double)i * j) / M + chance((uint64_t)(i * M + j));
#pragma kilter loop
    for (int j = 0; j < M; j++) {
        mean[j] = 0.0;
        for (int i = 0; i < N; i++)
            mean[j] += data[i][j];
        mean[j] /= N;
    }
#pragma kilter loop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++)
            data[i][j] -= mean[j];
#pragma kilter loop
    for (int i = 0; i < M; i++)
        for (int j = 0; j < M; j++) {
            cov[i][j] = 0.0;
            for (int k = 0; k < N; k++)
                cov[i][j] += data[k][i] * data[k][j];
            cov[i][j] /= (N - 1.0);
        }
    printf("%016llx\n", digest(cov, sizeof cov));
}
