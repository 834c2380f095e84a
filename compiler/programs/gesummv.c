#include "common.h"

#define N 32

static double A[N][N], B[N][N], tmp[N], x[N], y[N];

int main(void) {
    double alpha = 1.5, beta = 1.2;
    for (int i = 0; i < N; i++) {
        x[i] = (double)(i % N) / N;
        for (int j = 0; j < N; j++) {
            A[i][j] = (double)((i * j + 1) % N) / N;
            B[i][j] = (double)((i * j + 2) % N) / N;
        }
    }
#pragma kilter loop
    for (int i = 0; i < N; i++) {
        tmp[i] = 0.0;
        y[i] = 0.0;
        for (int j = 0; j < N; j++) {
            tmp[i] = A[i][j] * x[j] + tmp[i];
            y[i] = B[i][j] * x[j] + y[i];
        }
        y[i] = alpha * tmp[i] + beta * y[i];
    }
    printf("%016llx\n", digest(y, sizeof y));
}
