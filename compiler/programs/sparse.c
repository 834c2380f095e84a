#include "common.h"

/* Multiply a sparse matrix by a vector. Each row reads elements of the vector at stored indices. */
#define N 60

static int start[N + 1], column[4 * N];
static double value[4 * N], x[N], y[N];

int main(void) {
    int at = 0;
    for (int i = 0; i < N; i++) {
        start[i] = at;
        x[i] = chance((uint64_t)i);
        for (int k = 0; k < 1 + i % 4; k++) {
            column[at] = (i * 7 + k * 13) % N;
            value[at++] = chance((uint64_t)(1000 + at));
        }
    }
    start[N] = at;
    for (int t = 0; t < 3; t++) {
#pragma kilter loop
        for (int i = 0; i < N; i++) {
            double sum = 0;
            for (int k = start[i]; k < start[i + 1]; k++)
                sum += value[k] * x[column[k]];
            y[i] = sum;
        }
#pragma kilter loop
        for (int i = 0; i < N; i++)
            x[i] = 0.5 * (x[i] + y[i]);
    }
    printf("%016llx\n", digest(x, sizeof x));
}
