#include "common.h"

#define N 40

static double A[N][N], x1[N], x2[N], p1[N], p2[N];

int main(void) {
    for (int i = 0; i < N; i++) {
        x1[i] = (double)(i % N) / N;
        x2[i] = (double)((i + 1) % N) / N;
        p1[i] = (double)((i + 3) % N) / N;
        p2[i] = (double)((i + 4) % N) / N;
        for (int j = 0; j < N; j++)
            A[i][j] = (double)(i * j % N) / N;
    }
#pragma kilter loop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            x1[i] = x1[i] + A[i][j] * p1[j];
#pragma kilter loop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            x2[i] = x2[i] + A[j][i] * p2[j];
    printf("%016llx %016llx\n", digest(x1, sizeof x1), digest(x2, sizeof x2));
}
