/* The benchmark MG of the NAS Parallel Benchmarks, class S: the arithmetic of examples/mg.h, in the form that
 * kilter cc accepts. It prints whether its norm equals the published norm.
 *
 * There are four differences from examples/mg.h. Grids have subscripts [k][j][i] instead of positions
 * computed from n. Limits are the member n of a level instead of 1 << l. Grids are parameters instead of
 * members of arrays in a structure. The residual that overwrites its own input has a separate function.
 * Planes, lines and points count from 1, because the border comes first. */
#include "common.h"

enum { TOP = 5, CYCLES = 4, EXTREMES = 10, LINE_MOST = (1 << TOP) + 2 };

static const double NORM = 0.5307707005734e-04;
static const double SMOOTH[3] = {-3.0 / 8, 1.0 / 32, -1.0 / 64};

typedef struct level {
    int n;         /* number of planes, of lines and of points, without the border */
    double *u, *r; /* [n + 2][n + 2][n + 2] */
} level;

/* Copy the values of the opposite sides into the border of a plane. */
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

/* Copy the opposite planes into the first and the last plane. */
static void wrap(int n, double (*a)[n + 2][n + 2]) {
    memcpy(a[0], a[n], sizeof a[0]);
    memcpy(a[n + 1], a[1], sizeof a[0]);
}

/* For each point of line j in plane a[0], add up the neighbours in other lines: `near` at distance 1, `far`
 * at distance √2. */
static void across(int n, int j, double (*a)[n + 2][n + 2], double *near, double *far) {
    for (int i = 0; i < n + 2; i++) {
        near[i] = a[0][j - 1][i] + a[0][j + 1][i] + a[-1][j][i] + a[1][j][i];
        far[i] = a[-1][j - 1][i] + a[-1][j + 1][i] + a[1][j - 1][i] + a[1][j + 1][i];
    }
}

/* Compute r = v − A·u. */
static void residual(const level *at, double (*v)[at->n + 2][at->n + 2], double (*u)[at->n + 2][at->n + 2],
                     double (*r)[at->n + 2][at->n + 2]) {
#pragma kilter loop name("residual")
    for (int k = 1; k <= at->n; k++) {
        double near[LINE_MOST] = {0}, far[LINE_MOST] = {0};
        for (int j = 1; j <= at->n; j++) {
            across(at->n, j, u + k, near, far);
            for (int i = 1; i <= at->n; i++)
                r[k][j][i] = v[k][j][i] - -8.0 / 3 * u[k][j][i] -
                             1.0 / 6 * (far[i] + near[i - 1] + near[i + 1]) -
                             1.0 / 12 * (far[i - 1] + far[i + 1]);
        }
        border(at->n, r[k]);
    }
    wrap(at->n, r);
}

/* Compute r −= A·u. */
static void residual_again(const level *at, double (*u)[at->n + 2][at->n + 2],
                           double (*r)[at->n + 2][at->n + 2]) {
#pragma kilter loop name("residual again")
    for (int k = 1; k <= at->n; k++) {
        double near[LINE_MOST] = {0}, far[LINE_MOST] = {0};
        for (int j = 1; j <= at->n; j++) {
            across(at->n, j, u + k, near, far);
            for (int i = 1; i <= at->n; i++)
                r[k][j][i] = r[k][j][i] - -8.0 / 3 * u[k][j][i] -
                             1.0 / 6 * (far[i] + near[i - 1] + near[i + 1]) -
                             1.0 / 12 * (far[i - 1] + far[i + 1]);
        }
        border(at->n, r[k]);
    }
    wrap(at->n, r);
}

/* Compute u += S·r, where S is the smoother. If `fresh` is set, compute u = S·r. */
static void smooth(const level *at, double (*r)[at->n + 2][at->n + 2], double (*u)[at->n + 2][at->n + 2],
                   int fresh) {
#pragma kilter loop name("smooth")
    for (int k = 1; k <= at->n; k++) {
        double near[LINE_MOST], far[LINE_MOST], a = SMOOTH[0], b = SMOOTH[1], c = SMOOTH[2];
        for (int j = 1; j <= at->n; j++) {
            across(at->n, j, r + k, near, far);
            for (int i = 1; i <= at->n; i++)
                u[k][j][i] = (fresh ? 0 : u[k][j][i]) + a * r[k][j][i] +
                             b * (r[k][j][i - 1] + r[k][j][i + 1] + near[i]) +
                             c * (far[i] + near[i - 1] + near[i + 1]);
        }
        border(at->n, u[k]);
    }
    wrap(at->n, u);
}

/* Compute a coarse grid from planes 2k − 1, 2k and 2k + 1 of the finer grid. */
static void project(const level *at, double (*fine)[2 * at->n + 2][2 * at->n + 2],
                    double (*coarse)[at->n + 2][at->n + 2]) {
#pragma kilter loop name("project")
    for (int k = 1; k <= at->n; k++) {
        double near[LINE_MOST] = {0}, far[LINE_MOST] = {0};
        for (int j = 1; j <= at->n; j++) {
            across(2 * at->n, 2 * j, fine + 2 * k, near, far);
            for (int i = 1; i <= at->n; i++)
                coarse[k][j][i] =
                    0.5 * fine[2 * k][2 * j][2 * i] +
                    0.25 * (fine[2 * k][2 * j][2 * i - 1] + fine[2 * k][2 * j][2 * i + 1] + near[2 * i]) +
                    0.125 * (near[2 * i - 1] + near[2 * i + 1] + far[2 * i]) +
                    0.0625 * (far[2 * i - 1] + far[2 * i + 1]);
        }
        border(at->n, coarse[k]);
    }
    wrap(at->n, coarse);
}

/* Interpolate the coarse grid, which has half as many planes as u, and add the result to u. If `fresh` is
 * set, treat the old u as 0. */
static void interpolate(const level *at, double (*coarse)[at->n / 2 + 2][at->n / 2 + 2],
                        double (*u)[at->n + 2][at->n + 2], int fresh) {
#pragma kilter loop name("interpolate")
    for (int k = 1; k <= at->n; k++) {
        double sum[LINE_MOST];
        for (int j = 1; j <= at->n; j++) {
            /* planes, lines: is the point between two coarse planes, between two coarse lines? */
            int planes = k % 2 == 1, lines = j % 2 == 1;
            double weight = planes && lines ? 0.25 : planes || lines ? 0.5 : 1;
            for (int i = 0; i <= at->n / 2; i++)
                sum[i] = coarse[k / 2][j / 2][i];
            if (lines)
                for (int i = 0; i <= at->n / 2; i++)
                    sum[i] += coarse[k / 2][j / 2 + 1][i];
            if (planes)
                for (int i = 0; i <= at->n / 2; i++)
                    sum[i] += coarse[k / 2 + 1][j / 2][i];
            if (planes && lines)
                for (int i = 0; i <= at->n / 2; i++)
                    sum[i] += coarse[k / 2 + 1][j / 2 + 1][i];
            sum[at->n / 2 + 1] = 0; /* this value affects only a point of the border */
            for (int i = 0; i <= at->n / 2; i++) {
                u[k][j][2 * i] = (fresh ? 0 : u[k][j][2 * i]) + weight * sum[i];
                u[k][j][2 * i + 1] = (fresh ? 0 : u[k][j][2 * i + 1]) + 0.5 * weight * (sum[i] + sum[i + 1]);
            }
        }
        border(at->n, u[k]);
    }
    wrap(at->n, u);
}

/* --- charges: −1 at the ten points with the smallest random numbers, 1 at the ten with the largest --- */

/* The ten smallest random numbers, negated, in row 0, and the ten largest in row 1. Each row is sorted from
 * the largest value to the smallest. */
typedef struct extremes {
    double value[2][EXTREMES];
    uint64_t at[2][EXTREMES]; /* number of the point, plane by plane and line by line */
} extremes;

static void extreme(extremes *e, int side, double value, uint64_t at) {
    int i = EXTREMES;
    if (value <= e->value[side][EXTREMES - 1])
        return;
    for (; i > 0 && value > e->value[side][i - 1]; i--)
        if (i < EXTREMES) {
            e->value[side][i] = e->value[side][i - 1];
            e->at[side][i] = e->at[side][i - 1];
        }
    e->value[side][i] = value;
    e->at[side][i] = at;
}

static void charge(int n, double (*v)[n + 2][n + 2]) {
    extremes e;
    uint64_t state = 314159265, points = (uint64_t)n * (uint64_t)n * (uint64_t)n;
    for (int i = 0; i < EXTREMES; i++)
        e.value[0][i] = e.value[1][i] = -2;
    for (uint64_t at = 0; at < points; at++) { /* the benchmark's generator of random numbers */
        state = state * 1220703125 & ((UINT64_C(1) << 46) - 1);
        extreme(&e, 0, -(double)state * 0x1p-46, at);
        extreme(&e, 1, (double)state * 0x1p-46, at);
    }
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < EXTREMES; i++) {
            int at = (int)e.at[side][i];
            v[at / (n * n) + 1][at / n % n + 1][at % n + 1] = side ? 1 : -1;
        }
    for (int k = 1; k <= n; k++)
        border(n, v[k]);
    wrap(n, v);
}

/* Compare the norm with the published value, and print the result. */
static void verify(int n, double (*r)[n + 2][n + 2]) {
    double sum = 0;
    for (int k = 1; k <= n; k++) {
        double plane = 0;
        for (int j = 1; j <= n; j++)
            for (int i = 1; i <= n; i++)
                plane += r[k][j][i] * r[k][j][i];
        sum += plane;
    }
    double norm = sqrt(sum / ((double)n * n * n));
    printf("%.13e %s\n", norm, fabs((norm - NORM) / NORM) <= 1e-8 ? "verified" : "wrong");
}

int main(void) {
    level all[TOP + 1];
    for (int l = 1; l <= TOP; l++) {
        all[l].n = 1 << l;
        size_t line = (size_t)all[l].n + 2;
        all[l].u = calloc(line, line * line * sizeof(double));
        all[l].r = calloc(line, line * line * sizeof(double));
    }
    int n = all[TOP].n;
    double(*u)[n + 2][n + 2] = (double(*)[n + 2][n + 2]) all[TOP].u;
    double(*r)[n + 2][n + 2] = (double(*)[n + 2][n + 2]) all[TOP].r;
    double(*v)[n + 2][n + 2] = calloc((size_t)n + 2, sizeof *v);
    charge(n, v);
    level *top = &all[TOP];
    residual(top, v, u, r);
    for (int cycle = 0; cycle < CYCLES; cycle++) {
        for (int l = TOP - 1; l > 0; l--) {
            level *at = &all[l];
            int m = at->n, finer = 2 * m;
            double(*fine)[finer + 2][finer + 2] = (double(*)[finer + 2][finer + 2]) at[1].r;
            double(*coarse)[m + 2][m + 2] = (double(*)[m + 2][m + 2]) at->r;
            project(at, fine, coarse);
        }
        for (int l = 1; l <= TOP; l++) {
            level *at = &all[l];
            int m = at->n, c = m / 2;
            double(*own)[m + 2][m + 2] = (double(*)[m + 2][m + 2]) at->u;
            double(*rest)[m + 2][m + 2] = (double(*)[m + 2][m + 2]) at->r;
            double(*coarse)[c + 2][c + 2] = l > 1 ? (double(*)[c + 2][c + 2]) at[-1].u : NULL;
            if (l > 1)
                interpolate(at, coarse, own, l < TOP);
            if (l == TOP)
                residual(at, v, own, rest);
            else if (l > 1)
                residual_again(at, own, rest);
            smooth(at, rest, own, l == 1);
        }
        residual(top, v, u, r);
    }
    verify(n, r);
    printf("%016llx\n", digest(u, ((size_t)n + 2) * sizeof *u));
    for (int l = 1; l <= TOP; l++) {
        free(all[l].u);
        free(all[l].r);
    }
    free(v);
    return 0;
}
