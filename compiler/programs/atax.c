#include "common.h"

#define M 30
#define N 34

static double A[M][N], x[N], y[N], tmp[M];

int main(void) {
    for (int i = 0; i < N; i++)
        x[i] = 1 + i / (double)N;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            A[i][j] = (double)((i + j) % N) / (5 * M);
#pragma kilter loop
    for (int i = 0; i < M; i++) {
        tmp[i] = 0.0;
        for (int j = 0; j < N; j++)
            tmp[i] = tmp[i] + A[i][j] * x[j];
    }
#pragma kilter loop
    for (int j = 0; j < N; j++) {
        y[j] = 0;
        for (int i = 0; i < M; i++)
            y[j] = y[j] + A[i][j] * tmp[i];
    }
    printf("%016llx\n", digest(y, sizeof y));
}
