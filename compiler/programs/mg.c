/* V-cycles of multigrid for Poisson's equation on a periodic cube, as in the benchmark MG. A grid of n³
 * points has a border of one point. Each function has one marked loop over the planes of a grid. The program
 * calls the functions for grids of all levels. */
#include "common.h"

enum { LEVELS = 3, TOP = 12 };

/* Copy the opposite sides into the border of a plane. */
static void border(int n, double plane[n + 2][n + 2]) {
    for (int j = 1; j <= n; j++) {
        plane[j][0] = plane[j][n];
        plane[j][n + 1] = plane[j][1];
    }
    for (int i = 0; i < n + 2; i++) {
        plane[0][i] = plane[n][i];
        plane[n + 1][i] = plane[1][i];
    }
}

static void wrap(int n, double a[n + 2][n + 2][n + 2]) {
    memcpy(a[0], a[n], sizeof a[0]);
    memcpy(a[n + 1], a[1], sizeof a[0]);
}

static void residual(int n, double v[n + 2][n + 2][n + 2], double u[n + 2][n + 2][n + 2],
                     double r[n + 2][n + 2][n + 2]) {
#pragma kilter loop
    for (int k = 1; k <= n; k++) {
        for (int j = 1; j <= n; j++)
            for (int i = 1; i <= n; i++)
                r[k][j][i] = v[k][j][i] - 6 * u[k][j][i] + u[k - 1][j][i] + u[k + 1][j][i] + u[k][j - 1][i] +
                             u[k][j + 1][i] + u[k][j][i - 1] + u[k][j][i + 1];
        border(n, r[k]);
    }
    wrap(n, r);
}

static void smooth(int n, double r[n + 2][n + 2][n + 2], double u[n + 2][n + 2][n + 2]) {
#pragma kilter loop
    for (int k = 1; k <= n; k++) {
        for (int j = 1; j <= n; j++)
            for (int i = 1; i <= n; i++)
                u[k][j][i] += 0.14 * r[k][j][i] + 0.01 * (r[k - 1][j][i] + r[k + 1][j][i] + r[k][j - 1][i]);
        border(n, u[k]);
    }
    wrap(n, u);
}

/* Compute a coarse grid, with half as many planes, lines and points, from the fine grid. */
static void project(int n, double fine[2 * n + 2][2 * n + 2][2 * n + 2], double coarse[n + 2][n + 2][n + 2]) {
#pragma kilter loop
    for (int k = 1; k <= n; k++) {
        for (int j = 1; j <= n; j++)
            for (int i = 1; i <= n; i++)
                coarse[k][j][i] = fine[2 * k][2 * j][2 * i] +
                                  0.5 * (fine[2 * k - 1][2 * j][2 * i] + fine[2 * k + 1][2 * j][2 * i]);
        border(n, coarse[k]);
    }
    wrap(n, coarse);
}

static void interpolate(int n, double coarse[n + 2][n + 2][n + 2],
                        double fine[2 * n + 2][2 * n + 2][2 * n + 2]) {
#pragma kilter loop
    for (int k = 1; k <= 2 * n; k++) {
        for (int j = 1; j <= 2 * n; j++)
            for (int i = 1; i <= 2 * n; i++)
                fine[k][j][i] +=
                    0.5 * (coarse[k / 2][j / 2][i / 2] + coarse[(k + 1) / 2][(j + 1) / 2][(i + 1) / 2]);
        border(2 * n, fine[k]);
    }
    wrap(2 * n, fine);
}

int main(void) {
    double *u[LEVELS], *r[LEVELS], *v[LEVELS];
    int size[LEVELS];
    for (int l = 0; l < LEVELS; l++) {
        size[l] = TOP >> l;
        size_t points = (size_t)(size[l] + 2) * (size_t)(size[l] + 2) * (size_t)(size[l] + 2);
        u[l] = calloc(points, sizeof *u[l]);
        r[l] = calloc(points, sizeof *r[l]);
        v[l] = calloc(points, sizeof *v[l]);
    }
    double(*charge)[TOP + 2][TOP + 2] = (double(*)[TOP + 2][TOP + 2]) v[0];
    charge[3][4][5] = 1;
    charge[9][2][8] = -1;
    for (int cycle = 0; cycle < 3; cycle++) {
        residual(TOP, charge, (double(*)[TOP + 2][TOP + 2]) u[0], (double(*)[TOP + 2][TOP + 2]) r[0]);
        for (int l = 1; l < LEVELS; l++) {
            int n = size[l], m = 2 * n;
            project(n, (double(*)[m + 2][m + 2]) r[l - 1], (double(*)[n + 2][n + 2]) v[l]);
            memset(u[l], 0, sizeof(double) * (size_t)(n + 2) * (size_t)(n + 2) * (size_t)(n + 2));
            residual(n, (double(*)[n + 2][n + 2]) v[l], (double(*)[n + 2][n + 2]) u[l],
                     (double(*)[n + 2][n + 2]) r[l]);
        }
        for (int l = LEVELS - 1; l >= 0; l--) {
            int n = size[l];
            residual(n, (double(*)[n + 2][n + 2]) v[l], (double(*)[n + 2][n + 2]) u[l],
                     (double(*)[n + 2][n + 2]) r[l]);
            smooth(n, (double(*)[n + 2][n + 2]) r[l], (double(*)[n + 2][n + 2]) u[l]);
            if (l > 0)
                interpolate(n, (double(*)[n + 2][n + 2]) u[l], (double(*)[2 * n + 2][2 * n + 2]) u[l - 1]);
        }
    }
    double most = 0;
    double(*rest)[TOP + 2][TOP + 2] = (double(*)[TOP + 2][TOP + 2]) r[0];
    for (int k = 1; k <= TOP; k++)
        most = fmax(most, fabs(rest[k][3][4]));
    printf("%.17g %016llx\n", most, digest(u[0], sizeof(double) * (TOP + 2) * (TOP + 2) * (TOP + 2)));
}
