/* The benchmark MG of the NAS Parallel Benchmarks, for the example programs plain/mg.c and 20_mg.c. It solves
 * Poisson's equation on a periodic cube by V-cycles of multigrid. This code was written from the benchmark's
 * published description (NASA technical report RNR-94-007, and the reference values of NPB 3).
 *
 * The grid of level l has n = 2^l planes with n lines of n points each. Each plane has a border one point
 * wide; a border point has the value of the point on the opposite side. A plane is a row of a loop. Planes −1
 * and n are copies of planes n − 1 and 0. Functions get the address of plane 0. */
#ifndef MG_H
#define MG_H

#include "loop_program.h"
#include <assert.h>

enum { LEVELS = 9, EXTREMES = 10, LINE_MOST = (1 << (LEVELS - 1)) + 2 };

typedef struct mg_class {
    char name;
    int top;             /* number of the finest grid's level */
    double cycles, norm; /* norm: the published norm of the residual at the end */
    /* weights of a point, of its neighbours at distance 1, and of its neighbours at distance √2 */
    double smooth[3];
} mg_class;

static const mg_class MG_CLASSES[] = {
    {'S', 5, 4, 0.5307707005734e-04, {-3.0 / 8, 1.0 / 32, -1.0 / 64}},
    {'W', 7, 4, 0.6467329375339e-05, {-3.0 / 8, 1.0 / 32, -1.0 / 64}},
    {'A', 8, 4, 0.2433365309069e-05, {-3.0 / 8, 1.0 / 32, -1.0 / 64}},
    {'B', 8, 20, 0.1800564401355e-05, {-3.0 / 17, 1.0 / 33, -1.0 / 61}},
};

/* Return the benchmark class with this name. NULL: there is no such class */
static inline const mg_class *mg_class_of(const char *name) {
    for (size_t c = 0; c < sizeof MG_CLASSES / sizeof *MG_CLASSES; c++)
        if (name && name[0] == MG_CLASSES[c].name && !name[1])
            return &MG_CLASSES[c];
    return NULL;
}

static inline size_t mg_line(size_t n) { /* number of values in a line, with its border */
    return n + 2;
}
static inline size_t mg_plane(size_t n) { /* number of values in a plane, with its border */
    return (n + 2) * (n + 2);
}

/* Return the address of line j of plane k. k may be −1. */
static inline const double *mg_at(size_t n, const double *a, ptrdiff_t k, size_t j) {
    return a + k * (ptrdiff_t)mg_plane(n) + j * mg_line(n);
}

/* Copy the values of the opposite sides into the border of a plane. */
static inline void mg_border(size_t n, double *plane) {
    size_t line = mg_line(n);
    for (size_t j = 1; j <= n; j++) {
        plane[j * line] = plane[j * line + n];
        plane[j * line + n + 1] = plane[j * line + 1];
    }
    memcpy(plane, plane + n * line, line * sizeof *plane);
    memcpy(plane + (n + 1) * line, plane + line, line * sizeof *plane);
}

/* For each point of line j, add up its neighbours in other lines: `near` gets the neighbours at distance 1,
 * and `far` the neighbours at distance √2. The pointers before, here and after point to line j − 1 of three
 * planes. */
static inline void mg_across(size_t n, const double *a, ptrdiff_t k, size_t j, double *near, double *far) {
    const double *before = mg_at(n, a, k - 1, j - 1), *here = mg_at(n, a, k, j - 1),
                 *after = mg_at(n, a, k + 1, j - 1);
    size_t line = mg_line(n), next = 2 * line;
    for (size_t i = 0; i < line; i++) {
        near[i] = here[i] + here[next + i] + before[line + i] + after[line + i];
        far[i] = before[i] + before[next + i] + after[i] + after[next + i];
    }
}

/* Compute the residual r = v − A·u in plane k. r and v may be the same array. */
static inline void mg_residual(size_t n, ptrdiff_t k, const double *v, const double *u, double *r) {
    static const double CENTRE = -8.0 / 3, FAR = 1.0 / 6,
                        CORNER = 1.0 / 12; /* neighbours at distance 1 have weight 0, so they are left out */
    double near[LINE_MOST] = {0}, far[LINE_MOST] = {0};
    double *plane = r + k * (ptrdiff_t)mg_plane(n);
    for (size_t j = 1; j <= n; j++) {
        const double *from = mg_at(n, v, k, j), *here = mg_at(n, u, k, j);
        double *to = plane + j * mg_line(n);
        mg_across(n, u, k, j, near, far);
        for (size_t i = 1; i <= n; i++)
            to[i] = from[i] - CENTRE * here[i] - FAR * (far[i] + near[i - 1] + near[i + 1]) -
                    CORNER * (far[i - 1] + far[i + 1]);
    }
    mg_border(n, plane);
}

/* Add the smoother's correction, u += S·r, in plane k. If `fresh` is true, treat the old u as 0. */
static inline void mg_smooth(size_t n, ptrdiff_t k, const double weights[3], const double *r, double *u,
                             bool fresh) {
    double near[LINE_MOST], far[LINE_MOST], a = weights[0], b = weights[1], c = weights[2];
    double *plane = u + k * (ptrdiff_t)mg_plane(n);
    for (size_t j = 1; j <= n; j++) {
        const double *here = mg_at(n, r, k, j);
        double *to = plane + j * mg_line(n);
        mg_across(n, r, k, j, near, far);
        for (size_t i = 1; i <= n; i++)
            to[i] = (fresh ? 0 : to[i]) + a * here[i] + b * (here[i - 1] + here[i + 1] + near[i]) +
                    c * (far[i] + near[i - 1] + near[i + 1]);
    }
    mg_border(n, plane);
}

/* Compute plane k of a coarse grid, with n points in a line, from the planes 2k, 2k + 1 and 2k + 2 of the
 * finer grid. */
static inline void mg_project(size_t n, ptrdiff_t k, const double *fine, double *coarse) {
    double near[LINE_MOST] = {0}, far[LINE_MOST] = {0};
    double *plane = coarse + k * (ptrdiff_t)mg_plane(n);
    for (size_t j = 1; j <= n; j++) {
        const double *here = mg_at(2 * n, fine, 2 * k + 1, 2 * j);
        double *to = plane + j * mg_line(n);
        mg_across(2 * n, fine, 2 * k + 1, 2 * j, near, far);
        for (size_t i = 1; i <= n; i++)
            to[i] = 0.5 * here[2 * i] + 0.25 * (here[2 * i - 1] + here[2 * i + 1] + near[2 * i]) +
                    0.125 * (near[2 * i - 1] + near[2 * i + 1] + far[2 * i]) +
                    0.0625 * (far[2 * i - 1] + far[2 * i + 1]);
    }
    mg_border(n, plane);
}

/* Interpolate to line j of plane k of the finer grid: add up the one, two or four nearest lines of the coarse
 * grid. Return the weight that turns the sum into the mean. n: number of points in a coarse line */
static inline double mg_sources(size_t n, ptrdiff_t k, size_t j, const double *coarse, double *sum) {
    /* planes: plane k lies between two planes of the coarse grid; lines: line j lies between two lines of the
     * coarse grid */
    bool planes = k % 2 == 0, lines = j % 2 == 1;
    const double *a = mg_at(n, coarse, k % 2 == 0 ? k / 2 - 1 : (k - 1) / 2, j / 2);
    size_t plane = planes ? mg_plane(n) : 0, line = lines ? mg_line(n) : 0;
    for (size_t i = 0; i <= n; i++)
        sum[i] = a[i];
    if (lines)
        for (size_t i = 0; i <= n; i++)
            sum[i] += a[line + i];
    if (planes)
        for (size_t i = 0; i <= n; i++)
            sum[i] += a[plane + i];
    if (planes && lines)
        for (size_t i = 0; i <= n; i++)
            sum[i] += a[plane + line + i];
    return planes && lines ? 0.25 : planes || lines ? 0.5 : 1;
}

/* Interpolate the coarse grid and add it to u, in plane k of a grid with n points in a line. If `fresh` is
 * true, treat the old u as 0. */
static inline void mg_interpolate(size_t n, ptrdiff_t k, const double *coarse, double *u, bool fresh) {
    double sum[LINE_MOST];
    double *plane = u + k * (ptrdiff_t)mg_plane(n);
    for (size_t j = 1; j <= n; j++) {
        double weight = mg_sources(n / 2, k, j, coarse, sum), *to = plane + j * mg_line(n);
        sum[n / 2 + 1] = 0; /* this value affects only a point of the border */
        for (size_t i = 0; i <= n / 2; i++) {
            to[2 * i] = (fresh ? 0 : to[2 * i]) + weight * sum[i];
            to[2 * i + 1] = (fresh ? 0 : to[2 * i + 1]) + 0.5 * weight * (sum[i] + sum[i + 1]);
        }
    }
    mg_border(n, plane);
}

/* --- charges: −1 at the ten points with the smallest random numbers, 1 at the ten with the largest --- */

typedef struct mg_extremes { /* extreme[0]: the smallest numbers, negated; extreme[1]: the largest; both in
                              * falling order */
    double value[2][EXTREMES];
    uint64_t at[2][EXTREMES]; /* number of the point in the grid, counted plane by plane and line by line */
} mg_extremes;

static inline void mg_extreme(mg_extremes *e, int side, double value, uint64_t at) {
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

/* Multiply modulo 2^46, as the benchmark's generator of random numbers does. */
static inline uint64_t mg_times(uint64_t a, uint64_t b) {
    return a * b & ((UINT64_C(1) << 46) - 1);
}

/* Return the state of the generator after it has drawn `count` random numbers. */
static inline uint64_t mg_state(uint64_t count) {
    uint64_t state = 314159265, power = 1220703125; /* 5^13 */
    for (; count > 0; count /= 2, power = mg_times(power, power))
        if (count % 2 == 1)
            state = mg_times(state, power);
    return state;
}

static inline void mg_find_extremes(size_t n, size_t k, mg_extremes *e) {
    uint64_t at = (uint64_t)k * n * n, state = mg_state(at);
    for (int i = 0; i < EXTREMES; i++)
        e->value[0][i] = e->value[1][i] = -2;
    for (uint64_t end = at + n * n; at < end; at++) {
        state = mg_times(state, 1220703125);
        double value = (double)state * 0x1p-46;
        mg_extreme(e, 0, -value, at);
        mg_extreme(e, 1, value, at);
    }
}

static inline void mg_merge(mg_extremes *e, const mg_extremes *other) {
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < EXTREMES; i++)
            mg_extreme(e, side, other->value[side][i], other->at[side][i]);
}

/* Set plane k to 0, except for the charges that are in it. */
static inline void mg_charge(size_t n, size_t k, const mg_extremes *e, double *v) {
    double *plane = v + k * mg_plane(n);
    memset(plane, 0, mg_plane(n) * sizeof *plane);
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < EXTREMES; i++)
            if (e->at[side][i] / (n * n) == k)
                plane[(e->at[side][i] / n % n + 1) * mg_line(n) + e->at[side][i] % n + 1] = side ? 1 : -1;
    mg_border(n, plane);
}

/* --- checking the result --- */

/* Return the sum of squares of the points in plane k. */
static inline double mg_square(size_t n, ptrdiff_t k, const double *r) {
    double sum = 0;
    for (size_t j = 1; j <= n; j++)
        for (size_t i = 1; i <= n; i++)
            sum += mg_at(n, r, k, j)[i] * mg_at(n, r, k, j)[i];
    return sum;
}

/* Compare the norm with the published norm, and print the result. sum: sum of squares over all planes. */
static inline bool mg_verify(const mg_class *is, double sum) {
    double n = (double)(1 << is->top), norm = sqrt(sum / (n * n * n));
    bool verified = fabs((norm - is->norm) / is->norm) <= 1e-8; /* this comparison is also false if the
                                                                 * value is not a number */
    printf("{\"class\":\"%c\",\"norm\":%.13e,\"verified\":%s}\n", is->name, norm,
           verified ? "true" : "false");
    return verified;
}

/* --- the benchmark as a sequential program --- */

typedef struct mg_grids { /* u[l], r[l]: addresses of plane 0 on level l */
    double *u[LEVELS], *r[LEVELS], *v;
} mg_grids;

static inline double *mg_allocate(size_t n) {
    return (double *)allocate(n + 2, mg_plane(n) * sizeof(double)) + mg_plane(n);
}

static inline void mg_release(size_t n, double *planes) {
    free(planes - mg_plane(n));
}

static inline void mg_wrap(size_t n, double *a) { /* copy the opposite planes into the planes −1 and n */
    size_t bytes = mg_plane(n) * sizeof *a;
    assert(a);
    memcpy(a - mg_plane(n), a + (n - 1) * mg_plane(n), bytes);
    memcpy(a + n * mg_plane(n), a, bytes);
}

static inline void mg_solve_level(const mg_class *is, mg_grids *g, int l) {
    ptrdiff_t n = 1 << l;
    bool top = l == is->top;
    for (ptrdiff_t k = 0; k < n && l > 1; k++)
        mg_interpolate((size_t)n, k, g->u[l - 1], g->u[l], !top);
    mg_wrap((size_t)n, g->u[l]);
    for (ptrdiff_t k = 0; k < n && l > 1; k++)
        mg_residual((size_t)n, k, top ? g->v : g->r[l], g->u[l], g->r[l]);
    mg_wrap((size_t)n, g->r[l]);
    for (ptrdiff_t k = 0; k < n; k++)
        mg_smooth((size_t)n, k, is->smooth, g->r[l], g->u[l], l == 1);
    mg_wrap((size_t)n, g->u[l]);
}

static inline void mg_cycle(const mg_class *is, mg_grids *g) {
    size_t n = (size_t)1 << is->top;
    for (int l = is->top - 1; l > 0; l--) {
        for (ptrdiff_t k = 0; k < 1 << l; k++)
            mg_project((size_t)1 << l, k, g->r[l + 1], g->r[l]);
        mg_wrap((size_t)1 << l, g->r[l]);
    }
    for (int l = 1; l <= is->top; l++)
        mg_solve_level(is, g, l);
    for (size_t k = 0; k < n; k++)
        mg_residual(n, (ptrdiff_t)k, g->v, g->u[is->top], g->r[is->top]);
    mg_wrap(n, g->r[is->top]);
}

static inline mg_grids mg_start(const mg_class *is) {
    size_t n = (size_t)1 << is->top;
    mg_grids g = {.v = mg_allocate(n)};
    mg_extremes all, plane;
    for (int l = 1; l <= is->top; l++) {
        g.u[l] = mg_allocate((size_t)1 << l);
        g.r[l] = mg_allocate((size_t)1 << l);
    }
    mg_find_extremes(n, 0, &all);
    for (size_t k = 1; k < n; k++) {
        mg_find_extremes(n, k, &plane);
        mg_merge(&all, &plane);
    }
    for (size_t k = 0; k < n; k++)
        mg_charge(n, k, &all, g.v);
    return g;
}

static inline void mg_solve(const mg_class *is, mg_grids *g) {
    size_t n = (size_t)1 << is->top;
    for (size_t k = 0; k < n; k++)
        mg_residual(n, (ptrdiff_t)k, g->v, g->u[is->top], g->r[is->top]);
    mg_wrap(n, g->r[is->top]);
    for (int cycle = 0; cycle < is->cycles; cycle++)
        mg_cycle(is, g);
}

static inline void mg_free(const mg_class *is, mg_grids *g) {
    for (int l = 1; l <= is->top; l++) {
        mg_release((size_t)1 << l, g->u[l]);
        mg_release((size_t)1 << l, g->r[l]);
    }
    mg_release((size_t)1 << is->top, g->v);
}

/* Read the benchmark's class, which is the first argument, and then the other arguments. */
static inline settings mg_settings(int count, char **arguments, const mg_class **is) {
    settings set = {.program = "mg"};
    *is = mg_class_of(count > 1 ? arguments[1] : "S");
    if (!*is)
        refuse(&set, arguments[1], "the first argument is a class: S, W, A or B");
    set = read_settings(count > 1 ? count - 1 : count, count > 1 ? arguments + 1 : arguments, set);
    if (set.n > 0 || set.sweeps > 0)
        refuse(&set, "N", "a class has its own size and number of cycles; leave these arguments out");
    set.n = 1 << (*is)->top;
    set.sweeps = (*is)->cycles;
    return set;
}

#endif
