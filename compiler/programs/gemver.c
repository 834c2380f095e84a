#include "common.h"

#define N 28

static double A[N][N], u1[N], u2[N], v1[N], v2[N], w[N], x[N], y[N], z[N];

int main(void) {
    for (int i = 0; i < N; i++) {
        u1[i] = i;
        u2[i] = ((i + 1) / (double)N) / 2.0;
        v1[i] = ((i + 1) / (double)N) / 4.0;
        v2[i] = ((i + 1) / (double)N) / 6.0;
        y[i] = ((i + 1) / (double)N) / 8.0;
        z[i] = ((i + 1) / (double)N) / 9.0;
        for (int j = 0; j < N; j++)
            A[i][j] = (double)(i * j % N) / N;
    }
#pragma kilter loop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            A[i][j] = A[i][j] + u1[i] * v1[j] + u2[i] * v2[j];
#pragma kilter loop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            x[i] = x[i] + 1.2 * A[j][i] * y[j];
#pragma kilter loop
    for (int i = 0; i < N; i++)
        x[i] = x[i] + z[i];
#pragma kilter loop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            w[i] = w[i] + 1.5 * A[i][j] * x[j];
    printf("%016llx\n", digest(w, sizeof w));
}
