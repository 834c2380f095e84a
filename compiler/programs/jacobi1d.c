#include "common.h"

#define N 120

static double A[N], B[N];

int main(void) {
    for (int i = 0; i < N; i++) {
        A[i] = ((double)i + 2) / N;
        B[i] = ((double)i + 3) / N;
    }
    for (int t = 0; t < 8; t++) {
#pragma kilter loop
        for (int i = 1; i < N - 1; i++)
            B[i] = 0.33333 * (A[i - 1] + A[i] + A[i + 1]);
#pragma kilter loop
        for (int i = 1; i < N - 1; i++)
            A[i] = 0.33333 * (B[i - 1] + B[i] + B[i + 1]);
    }
    printf("%016llx\n", digest(A, sizeof A));
}
