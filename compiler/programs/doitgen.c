#include "common.h"

#define NR 12
#define NQ 10
#define NP 14

static double A[NR][NQ][NP], C4[NP][NP];

int main(void) {
    for (int i = 0; i < NR; i++)
        for (int j = 0; j < NQ; j++)
            for (int k = 0; k < NP; k++)
                A[i][j][k] = (double)((i * j + k) % NP) / NP;
    for (int i = 0; i < NP; i++)
        for (int j = 0; j < NP; j++)
            C4[i][j] = (double)(i * j % NP) / NP;
#pragma kilter loop
    for (int r = 0; r < NR; r++)
        for (int q = 0; q < NQ; q++) {
            double sum[NP];
            for (int p = 0; p < NP; p++) {
                sum[p] = 0.0;
                for (int s = 0; s < NP; s++)
                    sum[p] += A[r][q][s] * C4[s][p];
            }
            for (int p = 0; p < NP; p++)
                A[r][q][p] = sum[p];
        }
    printf("%016llx\n", digest(A, sizeof A));
}
