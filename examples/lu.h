/* The benchmark LU of the NAS Parallel Benchmarks, for the example programs plain/lu.c and 21_lu.c. It solves
 * the compressible Navier-Stokes equations on a cube by symmetric successive over-relaxation. This code was
 * written from the benchmark's published description (NASA technical report RNR-94-007, and the reference
 * values of NPB 3).
 *
 * A grid has n planes with n lines of n points each. A point has five values: density, momentum in three
 * directions, and energy. A plane is a row of a loop. Functions get the address of plane 0. */
#ifndef LU_H
#define LU_H

#include "loop_program.h"
#include <assert.h>

enum { VALUES = 5, DIRECTIONS = 3 };

static const double C1 = 1.4, C2 = 0.4, C34 = 0.1, C1345 = 1.4 * 0.1 * 1.4; /* constants of the gas in the
                                                                             * equations */
static const double OMEGA = 1.2;                                            /* over-relaxation */

typedef struct lu_class {
    char name;
    size_t n;
    double steps, dt;
    double residual[VALUES], error[VALUES], surface; /* published reference values: norms and surface
                                                      * integral */
} lu_class;

static const lu_class LU_CLASSES[] = {
    {'S',
     12,
     50,
     0.5,
     {1.6196343210976702e-02, 2.1976745164821318e-03, 1.5179927653399185e-03, 1.5029584435994323e-03,
      3.4264073155896461e-02},
     {6.4223319957960924e-04, 8.4144342047347926e-05, 5.8588269616485186e-05, 5.8474222595157350e-05,
      1.3103347914111294e-03},
     7.8418928865937083e+00},
    {'W',
     33,
     300,
     1.5e-3,
     {0.1236511638192e+02, 0.1317228477799e+01, 0.2550120713095e+01, 0.2326187750252e+01,
      0.2826799444189e+02},
     {0.4867877144216e+00, 0.5064652880982e-01, 0.9281818101960e-01, 0.8570126542733e-01,
      0.1084277417792e+01},
     0.1161399311023e+02},
    {'A',
     64,
     250,
     2,
     {7.7902107606689367e+02, 6.3402765259692870e+01, 1.9499249727292479e+02, 1.7845301160418537e+02,
      1.8384760349464247e+03},
     {2.9964085685471943e+01, 2.8194576365003349e+00, 7.3473412698774742e+00, 6.7139225687777051e+00,
      7.0715315688392578e+01},
     2.6030925604886277e+01},
    {'B',
     102,
     250,
     2,
     {3.5532672969982736e+03, 2.6214750795310692e+02, 8.8333721850952190e+02, 7.7812774739425265e+02,
      7.3087969592545314e+03},
     {1.1401176380212709e+02, 8.1098963655421574e+00, 2.8480597317698308e+01, 2.5905394567832939e+01,
      2.6054907504857413e+02},
     4.7887162703308227e+01},
};

/* Return the benchmark class with this name. NULL: there is no such class */
static inline const lu_class *lu_class_of(const char *name) {
    for (size_t c = 0; c < sizeof LU_CLASSES / sizeof *LU_CLASSES; c++)
        if (name && name[0] == LU_CLASSES[c].name && !name[1])
            return &LU_CLASSES[c];
    return NULL;
}

typedef struct lu {
    const lu_class *is;
    size_t n, line, plane;        /* numbers of doubles in a line and in a plane */
    double h, t1, t2, t3;         /* h: distance between points; t1: 1 / h²; t2: 1 / 2h; t3: 1 / h */
    double d[DIRECTIONS][VALUES]; /* coefficients of the second differences that are added for stability */
    double dissipation;           /* coefficient of the fourth differences */
    /* a point's matrix block: the part of its diagonal that is the same at all points */
    double diagonal[VALUES];
    double viscous[VALUES]; /* sums of the viscous coefficients over all directions */
} lu;

/* Return the coefficient of the viscous term of a value: momentum or energy. */
static inline double coefficient(int direction, int value) {
    return value == 4 ? C1345 : value == direction + 1 ? 4.0 / 3 * C34 : C34;
}

static inline lu lu_of(const lu_class *is) {
    double h = 1 / ((double)is->n - 1);
    lu s = {.is = is,
            .n = is->n,
            .line = is->n * VALUES,
            .plane = is->n * is->n * VALUES,
            .h = h,
            .t1 = 1 / (h * h),
            .t2 = 1 / (2 * h),
            .t3 = 1 / h,
            .dissipation = 0.25};
    for (int m = 0; m < VALUES; m++) {
        for (int d = 0; d < DIRECTIONS; d++) {
            s.d[d][m] = d == 2 ? 1 : 0.75;
            s.diagonal[m] += s.t1 * s.d[d][m];
            s.viscous[m] += m > 0 ? s.t1 * coefficient(d, m) : 0;
        }
        s.diagonal[m] = 1 + 2 * is->dt * s.diagonal[m];
    }
    return s;
}

static inline size_t lu_at(const lu *s, size_t k, size_t j, size_t i) {
    return k * s->plane + j * s->line + i * VALUES;
}

/* --- the exact solution, and the start values --- */

static inline void lu_exact(const lu *s, size_t k, size_t j, size_t i, double u[VALUES]) {
    static const double c[VALUES][13] = {{2, 0, 0, 4, 5, 3, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3},
                                         {1, 0, 0, 0, 1, 2, 3, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5},
                                         {2, 2, 0, 0, 0, 2, 3, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4},
                                         {2, 2, 0, 0, 0, 2, 3, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3},
                                         {5, 4, 3, 2, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2}};
    double x = (double)i * s->h, y = (double)j * s->h, z = (double)k * s->h;
    for (int m = 0; m < VALUES; m++) {
        const double *a = c[m];
        u[m] = a[0] + (a[1] + (a[4] + (a[7] + a[10] * x) * x) * x) * x +
               (a[2] + (a[5] + (a[8] + a[11] * y) * y) * y) * y +
               (a[3] + (a[6] + (a[9] + a[12] * z) * z) * z) * z;
    }
}

/* Set a point's start values. On the boundary, start values are exact; inside, they are interpolated between
 * opposite faces.
 */
static inline void lu_start_point(const lu *s, size_t k, size_t j, size_t i, double u[VALUES]) {
    size_t last = s->n - 1;
    double x = (double)i * s->h, y = (double)j * s->h, z = (double)k * s->h, lo[3][VALUES], hi[3][VALUES];
    lu_exact(s, k, j, 0, lo[0]);
    lu_exact(s, k, j, last, hi[0]);
    lu_exact(s, k, 0, i, lo[1]);
    lu_exact(s, k, last, i, hi[1]);
    lu_exact(s, 0, j, i, lo[2]);
    lu_exact(s, last, j, i, hi[2]);
    for (int m = 0; m < VALUES; m++) {
        double a = (1 - x) * lo[0][m] + x * hi[0][m], b = (1 - y) * lo[1][m] + y * hi[1][m],
               c = (1 - z) * lo[2][m] + z * hi[2][m];
        u[m] = a + b + c - a * b - b * c - c * a + a * b * c;
    }
    if (k == 0 || k == last || j == 0 || j == last || i == 0 || i == last)
        lu_exact(s, k, j, i, u);
}

static inline void lu_start(const lu *s, size_t k, double *u) {
    for (size_t j = 0; j < s->n; j++)
        for (size_t i = 0; i < s->n; i++)
            lu_start_point(s, k, j, i, u + lu_at(s, k, j, i));
}

/* --- the residual: the sum of all terms of the equations at a point --- */

typedef struct lu_flow { /* velocity, energy and pressure of the gas at a point */
    double v[DIRECTIONS], e, p;
} lu_flow;

static inline lu_flow lu_flow_at(const double *u) {
    assert(u);
    double r = 1 / u[0], half = 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) * r;
    return (lu_flow){{u[1] * r, u[2] * r, u[3] * r}, u[4] * r, C2 * (u[4] - half)};
}

/* Add the convection through a face of a point's cell, times `factor`. */
static inline void lu_convect(int d, const double *u, const lu_flow *f, double factor, double out[VALUES]) {
    double through = factor * f->v[d];
    for (int m = 0; m < VALUES; m++)
        out[m] += through * u[m];
    out[d + 1] += factor * f->p;
    out[4] += through * f->p;
}

/* Add the friction between two neighbouring points, times `factor`. */
static inline void lu_rub(int d, const lu_flow *a, const lu_flow *b, double factor, double out[VALUES]) {
    double work = 0;
    for (int m = 0; m < DIRECTIONS; m++) {
        double c = coefficient(d, m + 1);
        out[m + 1] += factor * c * (b->v[m] - a->v[m]);
        work += 0.5 * (c - C1345) * (b->v[m] * b->v[m] - a->v[m] * a->v[m]);
    }
    out[4] += factor * (work + C1345 * (b->e - a->e));
}

/* Add the fourth difference in one direction. Near the boundary, the difference uses fewer points. at: number
 * of the point in this direction; apart: distance of neighbours in memory */
static inline void lu_dissipate(const lu *s, const double *u, size_t at, size_t apart, double out[VALUES]) {
    size_t left = s->n - 1 - at;
    double w[5] = {at > 2, at > 1 ? -4 : 0, at > 1 && left > 1 ? 6 : 5, left > 1 ? -4 : 0, left > 2};
    const double *far = at > 2 ? u - 2 * apart : u, *near = u - apart, *next = u + apart,
                 *last = left > 2 ? u + 2 * apart : u;
    for (int m = 0; m < VALUES; m++)
        out[m] -=
            s->dissipation * (w[0] * far[m] + w[1] * near[m] + w[2] * u[m] + w[3] * next[m] + w[4] * last[m]);
}

/* Add all terms of the equations for one direction. f[3]: the flow at the point before, at the point, and at
 * the point after */
static inline void lu_direction(const lu *s, int d, const double *u, const lu_flow *f[3], size_t at,
                                size_t apart, double out[VALUES]) {
    const double *before = u - apart, *after = u + apart;
    lu_convect(d, after, f[2], -s->t2, out);
    lu_convect(d, before, f[0], s->t2, out);
    lu_rub(d, f[1], f[2], s->t1, out);
    lu_rub(d, f[0], f[1], -s->t1, out);
    for (int m = 0; m < VALUES; m++)
        out[m] += s->d[d][m] * s->t1 * (before[m] - 2 * u[m] + after[m]);
    lu_dissipate(s, u, at, apart, out);
}

/* Memory for the flow at the points of three planes. */
typedef struct lu_scratch {
    lu_flow *planes[3];
} lu_scratch;

static inline lu_scratch lu_scratch_of(const lu *s) {
    size_t points = s->n * s->n;
    lu_flow *all = allocate(3 * points, sizeof *all);
    return (lu_scratch){{all, all + points, all + 2 * points}};
}

static inline void lu_scratch_free(lu_scratch *t) {
    lu_flow *first = t->planes[0];
    for (int i = 1; i < 3; i++)
        first = t->planes[i] < first ? t->planes[i] : first;
    free(first);
}

static inline void lu_flow_plane(const lu *s, size_t k, const double *u, lu_flow *plane) {
    for (size_t p = 0; p < s->n * s->n; p++)
        plane[p] = lu_flow_at(u + k * s->plane + p * VALUES);
}

/* Compute out = (all terms of the equations) − forcing in plane k, from planes k − 2 to k + 2. If `forcing`
 * is NULL, the forcing is 0. The function does not write to the boundary, where `out` stays 0. */
static inline void lu_residual_plane(const lu *s, size_t k, const double *u, const double *forcing,
                                     const lu_scratch *t, double *out) {
    const lu_flow *const *f = (const lu_flow *const *)t->planes;
    for (size_t j = 1; j + 1 < s->n; j++)
        for (size_t i = 1; i + 1 < s->n; i++) {
            size_t at = lu_at(s, k, j, i), p = j * s->n + i;
            double sum[VALUES] = {0};
            lu_direction(s, 0, u + at, (const lu_flow *[]){&f[1][p - 1], &f[1][p], &f[1][p + 1]}, i, VALUES,
                         sum);
            lu_direction(s, 1, u + at, (const lu_flow *[]){&f[1][p - s->n], &f[1][p], &f[1][p + s->n]}, j,
                         s->line, sum);
            lu_direction(s, 2, u + at, (const lu_flow *[]){&f[0][p], &f[1][p], &f[2][p]}, k, s->plane, sum);
            for (int m = 0; m < VALUES; m++)
                out[at + m] = forcing ? sum[m] - forcing[at + m] : sum[m];
        }
}

/* Compute the residual in the planes lo … hi − 1. */
static inline void lu_residual(const lu *s, size_t lo, size_t hi, const double *u, const double *forcing,
                               lu_scratch *t, double *out) {
    size_t first = lo > 1 ? lo : 1, end = hi < s->n - 1 ? hi : s->n - 1;
    for (size_t k = first; k < end; k++) {
        if (k == first) {
            lu_flow_plane(s, k - 1, u, t->planes[0]);
            lu_flow_plane(s, k, u, t->planes[1]);
        }
        lu_flow_plane(s, k + 1, u, t->planes[2]);
        lu_residual_plane(s, k, u, forcing, t, out);
        lu_flow *oldest = t->planes[0];
        t->planes[0] = t->planes[1];
        t->planes[1] = t->planes[2];
        t->planes[2] = oldest;
    }
}

/* Compute the forcing: the terms that make the residual of the exact solution 0. */
static inline void lu_force(const lu *s, size_t lo, size_t hi, lu_scratch *t, double *forcing) {
    double *five = allocate(5, s->plane * sizeof *five);
    for (size_t k = lo; k < hi; k++) {
        const double *plane_0 =
            five - (k > 2 ? (k - 2) * s->plane : 0); /* `five` has the planes k − 2 … k + 2 */
        for (size_t near = k > 2 ? k - 2 : 0; near <= k + 2 && near < s->n; near++)
            for (size_t j = 0; j < s->n; j++)
                for (size_t i = 0; i < s->n; i++)
                    lu_exact(s, near, j, i,
                             five + (near - (k > 2 ? k - 2 : 0)) * s->plane + (j * s->n + i) * VALUES);
        lu_residual(s, k, k + 1, plane_0, NULL, t, forcing);
    }
    free(five);
}

/* --- relaxation --- */

/* Add the product of a neighbour's matrix block with the neighbour's change v. The block consists of
 * convection, times `way`, and friction. */
static inline void lu_couple(const lu *s, int d, double way, const double *u, const double *v,
                             double out[VALUES]) {
    double r = 1 / u[0], w[DIRECTIONS] = {u[1] * r, u[2] * r, u[3] * r}, e = u[4] * r;
    double half = 0.5 * (w[0] * w[0] + w[1] * w[1] + w[2] * w[2]);
    double pressure = C2 * (half * v[0] - (w[0] * v[1] + w[1] * v[2] + w[2] * v[3]) + v[4]);
    double through = w[d], change = v[d + 1] - through * v[0], t2 = way * s->t2, work = 0;
    out[0] += t2 * v[d + 1] + s->t1 * s->d[d][0] * v[0];
    for (int m = 0; m < DIRECTIONS; m++) {
        double c = coefficient(d, m + 1), rubbed = r * (v[m + 1] - w[m] * v[0]);
        out[m + 1] += t2 * (through * v[m + 1] + w[m] * change + (m == d ? pressure : 0)) +
                      s->t1 * (c * rubbed + s->d[d][m + 1] * v[m + 1]);
        work += (c - C1345) * w[m] * rubbed;
    }
    out[4] += t2 * ((C1 * e - C2 * half) * change + through * (pressure + v[4])) +
              s->t1 * (C1345 * r * (v[4] - e * v[0]) + work + s->d[d][4] * v[4]);
}

/* Compute the change at a point. The point's own matrix block is a lower triangle. */
static inline void lu_solve(const lu *s, const double *u, double x[VALUES]) {
    double r = 1 / u[0], w[DIRECTIONS] = {u[1] * r, u[2] * r, u[3] * r}, twice = 2 * s->is->dt * r;
    x[0] /= s->diagonal[0];
    double energy = x[4] + twice * s->viscous[4] * (u[4] * r) * x[0];
    for (int m = 0; m < DIRECTIONS; m++) {
        double k = twice * s->viscous[m + 1];
        x[m + 1] = (x[m + 1] + k * w[m] * x[0]) / (s->diagonal[m + 1] + k);
        energy -= twice * (s->viscous[m + 1] - s->viscous[4]) * w[m] * (x[m + 1] - w[m] * x[0]);
    }
    x[4] = energy / (s->diagonal[4] + twice * s->viscous[4]);
}

/* Do the forward pass on line j of plane k: the changes of all points before the line are known. */
static inline void lu_forward(const lu *s, size_t k, size_t j, const double *u, double *v) {
    const size_t apart[DIRECTIONS] = {VALUES, s->line, s->plane};
    double dt = s->is->dt;
    for (size_t i = 1; i + 1 < s->n; i++) {
        size_t at = lu_at(s, k, j, i);
        double sum[VALUES] = {0};
        for (int d = DIRECTIONS - 1; d >= 0; d--)
            lu_couple(s, d, 1, u + at - apart[d], v + at - apart[d], sum);
        for (int m = 0; m < VALUES; m++)
            sum[m] = dt * v[at + m] + OMEGA * dt * sum[m];
        lu_solve(s, u + at, sum);
        memcpy(v + at, sum, sizeof sum);
    }
}

/* Do the backward pass on line j of plane k: the changes of all points after the line are known. */
static inline void lu_backward(const lu *s, size_t k, size_t j, const double *u, double *v) {
    const size_t apart[DIRECTIONS] = {VALUES, s->line, s->plane};
    for (size_t i = s->n - 2; i > 0; i--) {
        size_t at = lu_at(s, k, j, i);
        double sum[VALUES] = {0};
        for (int d = DIRECTIONS - 1; d >= 0; d--)
            lu_couple(s, d, -1, u + at + apart[d], v + at + apart[d], sum);
        for (int m = 0; m < VALUES; m++)
            sum[m] *= OMEGA * s->is->dt;
        lu_solve(s, u + at, sum);
        for (int m = 0; m < VALUES; m++)
            v[at + m] += sum[m];
    }
}

static inline void lu_update(const lu *s, size_t k, const double *v, double *u) {
    double factor = 1 / (OMEGA * (2 - OMEGA));
    for (size_t j = 1; j + 1 < s->n && k > 0 && k + 1 < s->n; j++)
        for (size_t x = VALUES; x < s->line - VALUES; x++)
            u[k * s->plane + j * s->line + x] += factor * v[k * s->plane + j * s->line + x];
}

/* --- checking the result --- */

/* Add up the squares of the residual and of the error in plane k. */
static inline void lu_squares(const lu *s, size_t k, const double *u, const double *v,
                              double sums[2 * VALUES]) {
    memset(sums, 0, 2 * VALUES * sizeof *sums);
    for (size_t j = 1; j + 1 < s->n && k > 0 && k + 1 < s->n; j++)
        for (size_t i = 1; i + 1 < s->n; i++) {
            double exact[VALUES];
            size_t at = lu_at(s, k, j, i);
            lu_exact(s, k, j, i, exact);
            for (int m = 0; m < VALUES; m++) {
                sums[m] += v[at + m] * v[at + m];
                sums[VALUES + m] += (exact[m] - u[at + m]) * (exact[m] - u[at + m]);
            }
        }
}

static inline double lu_pressure(const lu *s, const double *u, size_t k, size_t j, size_t i) {
    return lu_flow_at(u + lu_at(s, k, j, i)).p;
}

/* Integrate the pressure over six faces of a box inside the cube. */
static inline double lu_surface(const lu *s, const double *u) {
    const size_t lo[DIRECTIONS] = {1, 1, 2}, hi[DIRECTIONS] = {s->n - 2, s->n - 3, s->n - 2};
    double all = 0;
    for (int d = 0; d < DIRECTIONS; d++) {
        int a = d == 0 ? 1 : 0, b = d == 2 ? 1 : 2; /* the two directions within a face */
        double sum = 0;
        for (size_t q = lo[b]; q < hi[b]; q++)
            for (size_t p = lo[a]; p < hi[a]; p++)
                for (int corner = 0; corner < 8; corner++) {
                    size_t at[DIRECTIONS];
                    at[a] = p + (corner & 1);
                    at[b] = q + (corner >> 1 & 1);
                    at[d] = corner >> 2 ? hi[d] : lo[d];
                    sum += lu_pressure(s, u, at[2], at[1], at[0]);
                }
        all += sum * s->h * s->h;
    }
    return 0.25 * all;
}

static inline bool lu_is_near(double value, double expected) {
    return fabs((value - expected) / expected) <= 1e-8; /* this comparison is also false if the value is
                                                         * not a number */
}

/* Compare the norms with the published values, and print the result. sums: sums of squares over all
 * planes. */
static inline bool lu_verify(const lu *s, const double sums[2 * VALUES], const double *u) {
    const lu_class *is = s->is;
    double points = (double)(s->n - 2) * (double)(s->n - 2) * (double)(s->n - 2), surface = lu_surface(s, u);
    bool verified = lu_is_near(surface, is->surface);
    printf("{\"class\":\"%c\",\"residual\":[", is->name);
    for (int m = 0; m < 2 * VALUES; m++) {
        double norm = sqrt(sums[m] / points);
        verified &= lu_is_near(norm, m < VALUES ? is->residual[m] : is->error[m - VALUES]);
        printf("%s%.13e", m == VALUES ? "],\"error\":[" : m > 0 ? "," : "", norm);
    }
    printf("],\"surface\":%.13e,\"verified\":%s}\n", surface, verified ? "true" : "false");
    return verified;
}

/* --- the benchmark as a sequential program --- */

typedef struct lu_grids {
    double *u, *v, *forcing; /* v: the residual, later the change of the solution */
    double sums[2 * VALUES];
} lu_grids;

static inline lu_grids lu_sequential(const lu *s) {
    lu_grids g = {allocate(s->n, s->plane * sizeof(double)),
                  allocate(s->n, s->plane * sizeof(double)),
                  allocate(s->n, s->plane * sizeof(double)),
                  {0}};
    lu_scratch t = lu_scratch_of(s);
    for (size_t k = 0; k < s->n; k++)
        lu_start(s, k, g.u);
    lu_force(s, 0, s->n, &t, g.forcing);
    lu_residual(s, 0, s->n, g.u, g.forcing, &t, g.v);
    for (int step = 0; step < s->is->steps; step++) {
        for (size_t k = 1; k + 1 < s->n; k++)
            for (size_t j = 1; j + 1 < s->n; j++)
                lu_forward(s, k, j, g.u, g.v);
        for (size_t k = s->n - 2; k > 0; k--)
            for (size_t j = s->n - 2; j > 0; j--)
                lu_backward(s, k, j, g.u, g.v);
        for (size_t k = 0; k < s->n; k++)
            lu_update(s, k, g.v, g.u);
        lu_residual(s, 0, s->n, g.u, g.forcing, &t, g.v);
    }
    for (size_t k = 0; k < s->n; k++) {
        double sums[2 * VALUES];
        lu_squares(s, k, g.u, g.v, sums);
        for (int m = 0; m < 2 * VALUES; m++)
            g.sums[m] += sums[m];
    }
    lu_scratch_free(&t);
    return g;
}

static inline void lu_free(lu_grids *g) {
    free(g->u);
    free(g->v);
    free(g->forcing);
}

/* Read the benchmark's class, which is the first argument, and then the other arguments. */
static inline settings lu_settings(int count, char **arguments, const lu_class **is) {
    settings set = {.program = "lu"};
    *is = lu_class_of(count > 1 ? arguments[1] : "S");
    if (!*is)
        refuse(&set, arguments[1], "the first argument is a class: S, W, A or B");
    set = read_settings(count > 1 ? count - 1 : count, count > 1 ? arguments + 1 : arguments, set);
    if (set.n > 0 || set.sweeps > 0)
        refuse(&set, "N", "a class has its own size and number of steps; leave these arguments out");
    set.n = (double)(*is)->n;
    set.sweeps = (*is)->steps;
    return set;
}

#endif
