#include "common.h"

#define NI 20
#define NJ 25
#define NK 30

static double A[NI][NK], B[NK][NJ], C[NI][NJ];

int main(void) {
    double alpha = 1.5, beta = 1.2;
    int i, j, k;
    for (i = 0; i < NI; i++)
        for (j = 0; j < NJ; j++)
            C[i][j] = (double)((i * j + 1) % NI) / NI;
    for (i = 0; i < NI; i++)
        for (j = 0; j < NK; j++)
            A[i][j] = (double)(i * (j + 1) % NK) / NK;
    for (i = 0; i < NK; i++)
        for (j = 0; j < NJ; j++)
            B[i][j] = (double)(i * (j + 2) % NJ) / NJ;
#pragma kilter loop
    for (i = 0; i < NI; i++) {
        for (j = 0; j < NJ; j++)
            C[i][j] *= beta;
        for (k = 0; k < NK; k++)
            for (j = 0; j < NJ; j++)
                C[i][j] += alpha * A[i][k] * B[k][j];
    }
    printf("%d %016llx\n", i, digest(C, sizeof C));
    return 0;
}
