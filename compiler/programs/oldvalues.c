/* Iterations read values that later iterations overwrite: in upward and downward loops, several rows ahead,
 * with strides, and with a reduction. */
#include "common.h"
enum { N = 83, M = 17 };
static double u[N][M], v[N][M], w[N];

static double shifted(const double *after, const double *further, int j) {
    return 0.5 * after[j] + 0.25 * further[(j + 3) % M];
}

int main(void) {
    for (int i = 0; i < N; i++) {
        w[i] = chance((uint64_t)i);
        for (int j = 0; j < M; j++) {
            u[i][j] = chance((uint64_t)(i * M + j + 1000));
            v[i][j] = chance((uint64_t)(i * M + j + 5000));
        }
    }
    double most = 0;
    for (int t = 0; t < 9; t++) {
#pragma kilter loop
        for (int i = 0; i < N - 3; i++)
            for (int j = 0; j < M; j++)
                u[i][j] = 0.25 * u[i][j] + shifted(u[i + 1], u[i + 3], j);
#pragma kilter loop
        for (int i = N - 1; i >= 2; i--) {
            for (int j = 1; j < M; j++)
                v[i][j] = 0.5 * (v[i - 1][j - 1] + v[i - 2][j]) + u[i][j];
            if (v[i][3] > most)
                most = v[i][3];
        }
#pragma kilter loop
        for (int i = 1; i < N - 2; i += 3)
            w[i] = w[i + 1] + v[i + 2][0] - 0.5 * w[i];
        int k;
#pragma kilter loop
        for (k = N - 2; k > 0; k -= 1)
            w[k] = 0.9 * w[k - 1] + 0.1 * w[k];
    }
    printf("%016llx %016llx %016llx %.17g\n", digest(u, sizeof u), digest(v, sizeof v), digest(w, sizeof w),
           most);
}
