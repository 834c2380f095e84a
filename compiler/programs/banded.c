#include "common.h"

#define N    80
#define BAND 3

static double a[N][2 * BAND + 1], x[N], y[N];

int main(void) {
    for (int i = 0; i < N; i++) {
        x[i] = 1;
        for (int k = 0; k <= 2 * BAND; k++)
            a[i][k] = chance((uint64_t)(i * 10 + k)) / 4;
    }
    for (int t = 0; t < 6; t++) {
#pragma kilter loop
        for (int i = BAND; i < N - BAND; i++) {
            double sum = 0;
            for (int k = -BAND; k <= BAND; k++)
                sum += a[i][k + BAND] * x[i + k];
            y[i] = sum;
        }
#pragma kilter loop
        for (int i = BAND; i < N - BAND; i++)
            x[i] = y[i];
    }
    printf("%016llx\n", digest(x, sizeof x));
}
