/* Relax five values at each point of a cube, as the benchmark LU does. A step computes the residual, runs two
 * pipelines and updates the values. */
#include "common.h"

enum { N = 14, VALUES = 5 };

static double u[N][N][N][VALUES], v[N][N][N][VALUES], forcing[N][N][N][VALUES];

/* Multiply a neighbour's change by a matrix block that depends on the neighbour's values, and add the product
 * to `sum`. */
static void couple(const double *at, const double *change, double sum[VALUES]) {
    for (int m = 0; m < VALUES; m++)
        for (int l = 0; l < VALUES; l++)
            sum[m] += (m == l ? 0.2 : 0.01) * at[(m + l) % VALUES] * change[l];
}

/* Compute the change at a point. The point's own matrix block is a lower triangle. */
static void solve(const double *at, double x[VALUES]) {
    for (int m = 0; m < VALUES; m++) {
        for (int l = 0; l < m; l++)
            x[m] -= 0.05 * at[l] * x[l];
        x[m] /= 1.5 + 0.1 * at[m];
    }
}

int main(void) {
#pragma kilter loop
    for (int k = 0; k < N; k++)
        for (int j = 0; j < N; j++)
            for (int i = 0; i < N; i++)
                for (int m = 0; m < VALUES; m++) {
                    int at = ((k * N + j) * N + i) * VALUES + m;
                    u[k][j][i][m] = 1 + chance((uint64_t)at);
                    forcing[k][j][i][m] = chance((uint64_t)(at + 1000000));
                }
    for (int step = 0; step < 4; step++) {
#pragma kilter loop name("residual")
        for (int k = 2; k < N - 2; k++)
            for (int j = 2; j < N - 2; j++)
                for (int i = 2; i < N - 2; i++)
                    for (int m = 0; m < VALUES; m++)
                        v[k][j][i][m] = forcing[k][j][i][m] -
                                        0.1 * (u[k - 2][j][i][m] - 4 * u[k - 1][j][i][m] + 6 * u[k][j][i][m] -
                                               4 * u[k + 1][j][i][m] + u[k + 2][j][i][m]) -
                                        0.1 * (u[k][j - 2][i][m] - 2 * u[k][j][i][m] + u[k][j][i + 2][m]);
#pragma kilter loop name("forward")
        for (int k = 1; k < N - 1; k++)
            for (int j = 1; j < N - 1; j++)
                for (int i = 1; i < N - 1; i++) {
                    double sum[VALUES] = {0};
                    couple(u[k - 1][j][i], v[k - 1][j][i], sum);
                    couple(u[k][j - 1][i], v[k][j - 1][i], sum);
                    couple(u[k][j][i - 1], v[k][j][i - 1], sum);
                    for (int m = 0; m < VALUES; m++)
                        sum[m] = 0.5 * v[k][j][i][m] + 0.4 * sum[m];
                    solve(u[k][j][i], sum);
                    for (int m = 0; m < VALUES; m++)
                        v[k][j][i][m] = sum[m];
                }
#pragma kilter loop name("backward")
        for (int k = N - 2; k > 0; k--)
            for (int j = N - 2; j > 0; j--)
                for (int i = N - 2; i > 0; i--) {
                    double sum[VALUES] = {0};
                    couple(u[k + 1][j][i], v[k + 1][j][i], sum);
                    couple(u[k][j + 1][i], v[k][j + 1][i], sum);
                    couple(u[k][j][i + 1], v[k][j][i + 1], sum);
                    solve(u[k][j][i], sum);
                    for (int m = 0; m < VALUES; m++)
                        v[k][j][i][m] -= 0.3 * sum[m];
                }
#pragma kilter loop name("update")
        for (int k = 1; k < N - 1; k++)
            for (int j = 1; j < N - 1; j++)
                for (int i = 1; i < N - 1; i++)
                    for (int m = 0; m < VALUES; m++)
                        u[k][j][i][m] += v[k][j][i][m] / 1.2;
    }
    printf("%016llx %016llx %.17g\n", digest(u, sizeof u), digest(v, sizeof v), u[5][6][7][2]);
}
