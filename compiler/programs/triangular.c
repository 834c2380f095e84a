#include "common.h"

#define N 60

static double a[N][N], x[N], y[N];

int main(void) {
    for (int i = 0; i < N; i++) {
        x[i] = chance((uint64_t)i);
        for (int j = 0; j <= i; j++)
            a[i][j] = chance((uint64_t)(i * N + j + 1000));
    }
#pragma kilter loop
    for (int i = 0; i < N; i++) {
        double sum = 0;
        for (int j = 0; j <= i; j++)
            sum += a[i][j] * x[j];
        y[i] = sum;
    }
    printf("%016llx\n", digest(y, sizeof y));
}
