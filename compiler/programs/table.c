#include "common.h"

/* Compute the length of the longest common subsequence of two texts. */
enum { N = 50, M = 60 };

static int length[N + 1][M + 1];
static char a[N], b[M];

int main(void) {
    for (int i = 0; i < N; i++)
        a[i] = (char)('a' + (int)(4 * chance((uint64_t)i)));
    for (int j = 0; j < M; j++)
        b[j] = (char)('a' + (int)(4 * chance((uint64_t)(j + 1000))));
#pragma kilter loop
    for (int i = 1; i <= N; i++)
        for (int j = 1; j <= M; j++) {
            int up = length[i - 1][j], left = length[i][j - 1];
            length[i][j] = a[i - 1] == b[j - 1] ? length[i - 1][j - 1] + 1 : up > left ? up : left;
        }
    printf("%d %016llx\n", length[N][M], digest(length, sizeof length));
}
