/* Without skewing, blocks of this loop nest would need later blocks. The nest is skewed as kilter cc
 * --explain advises: element j of row i is stored in column j + i. */
#include "common.h"

enum { N = 41, M = 30 };

static double u[N][M + N];

int main(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++)
            u[i][j + i] = chance((uint64_t)(i * M + j));
    for (int t = 0; t < 5; t++) {
#pragma kilter loop
        for (int i = 1; i < N; i++)
            for (int k = 1 + i; k < M - 1 + i; k++)
                u[i][k] = (u[i - 1][k] + u[i - 1][k - 1] + u[i][k - 1]) / 3;
    }
    printf("%016llx\n", digest(u, sizeof u));
}
