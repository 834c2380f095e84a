#include "common.h"

#define N 32

static double x[N * N], y[N * N];

int main(void) {
    for (int i = 0; i < N * N; i++)
        x[i] = chance((uint64_t)i);
    for (int t = 0; t < 5; t++) {
#pragma kilter loop
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                y[i * N + j] =
                    0.25 * (x[(i - 1) * N + j] + x[(i + 1) * N + j] + x[i * N + j - 1] + x[i * N + j + 1]);
#pragma kilter loop
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                x[i * N + j] = y[i * N + j];
    }
    printf("%016llx\n", digest(x, sizeof x));
}
