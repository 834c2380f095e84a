#include "common.h"

#define N 50

static double x[N], y[N], vx[N], vy[N], m[N];

int main(void) {
    for (int i = 0; i < N; i++) {
        x[i] = chance((uint64_t)i);
        y[i] = chance((uint64_t)(i + N));
        m[i] = 1 + chance((uint64_t)(i + 2 * N));
    }
    for (int t = 0; t < 5; t++) {
#pragma kilter loop
        for (int i = 0; i < N; i++) {
            double fx = 0, fy = 0;
            for (int j = 0; j < N; j++) {
                double dx = x[j] - x[i], dy = y[j] - y[i], d2 = dx * dx + dy * dy + 0.01;
                double f = m[j] / (d2 * sqrt(d2));
                fx += f * dx;
                fy += f * dy;
            }
            vx[i] += 0.01 * fx;
            vy[i] += 0.01 * fy;
        }
#pragma kilter loop
        for (int i = 0; i < N; i++) {
            x[i] += 0.01 * vx[i];
            y[i] += 0.01 * vy[i];
        }
    }
    printf("%016llx %016llx\n", digest(x, sizeof x), digest(vy, sizeof vy));
}
