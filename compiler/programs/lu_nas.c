/* The benchmark LU of the NAS Parallel Benchmarks, class S: the arithmetic of examples/lu.h, in the form that
 * kilter cc accepts. It prints whether its norms equal the published norms.
 *
 * There are four differences from examples/lu.h. Grids have subscripts [k][j][i][m] instead of positions
 * computed from s->line and s->plane. Grids are parameters instead of members of a structure. The flow is
 * stored at all points, not only in three planes that are reused. The structure contains the time step
 * instead of a pointer to the class. */
#include "common.h"

enum { VALUES = 5, DIRECTIONS = 3 };

static const double C1 = 1.4, C2 = 0.4, C34 = 0.1, C1345 = 1.4 * 0.1 * 1.4; /* constants of the gas */
static const double OMEGA = 1.2;                                            /* over-relaxation */

static const double NORMS[2 * VALUES] = {
    1.6196343210976702e-02, 2.1976745164821318e-03, 1.5179927653399185e-03, 1.5029584435994323e-03,
    3.4264073155896461e-02, 6.4223319957960924e-04, 8.4144342047347926e-05, 5.8588269616485186e-05,
    5.8474222595157350e-05, 1.3103347914111294e-03};
static const double SURFACE = 7.8418928865937083e+00;

static const double EXACT[VALUES][13] = {{2, 0, 0, 4, 5, 3, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3},
                                         {1, 0, 0, 0, 1, 2, 3, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5},
                                         {2, 2, 0, 0, 0, 2, 3, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4},
                                         {2, 2, 0, 0, 0, 2, 3, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3},
                                         {5, 4, 3, 2, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2}};

typedef struct lu {
    int n, steps;
    double dt, h, t1, t2;         /* h: distance between points; t1: 1 / h²; t2: 1 / 2h */
    double d[DIRECTIONS][VALUES]; /* coefficients of second differences, for each direction and value */
    double dissipation;           /* coefficient of the fourth differences */
    double diagonal[VALUES]; /* the part of a block's diagonal that does not depend on the point's values */
    double viscous[VALUES];  /* sums of the viscous coefficients over all directions */
} lu;

typedef struct flow { /* velocity, energy and pressure at a point */
    double v[DIRECTIONS], e, p;
} flow;

static double coefficient(int direction, int value) { /* return the coefficient of a viscous term */
    return value == 4 ? C1345 : value == direction + 1 ? 4.0 / 3 * C34 : C34;
}

static void set_up(lu *s, int n, int steps, double dt) {
    double h = 1 / ((double)n - 1);
    s->n = n;
    s->steps = steps;
    s->dt = dt;
    s->h = h;
    s->t1 = 1 / (h * h);
    s->t2 = 1 / (2 * h);
    s->dissipation = 0.25;
    for (int m = 0; m < VALUES; m++) {
        s->diagonal[m] = s->viscous[m] = 0;
        for (int d = 0; d < DIRECTIONS; d++) {
            s->d[d][m] = d == 2 ? 1 : 0.75;
            s->diagonal[m] += s->t1 * s->d[d][m];
            s->viscous[m] += m > 0 ? s->t1 * coefficient(d, m) : 0;
        }
        s->diagonal[m] = 1 + 2 * dt * s->diagonal[m];
    }
}

/* --- the exact solution, and the first values --- */

static void exact_at(const lu *s, int k, int j, int i, double u[VALUES]) {
    double x = (double)i * s->h, y = (double)j * s->h, z = (double)k * s->h;
    for (int m = 0; m < VALUES; m++)
        u[m] = EXACT[m][0] + (EXACT[m][1] + (EXACT[m][4] + (EXACT[m][7] + EXACT[m][10] * x) * x) * x) * x +
               (EXACT[m][2] + (EXACT[m][5] + (EXACT[m][8] + EXACT[m][11] * y) * y) * y) * y +
               (EXACT[m][3] + (EXACT[m][6] + (EXACT[m][9] + EXACT[m][12] * z) * z) * z) * z;
}

/* Set the first values at a point: exact values on the boundary, and values interpolated between opposite
 * faces inside. */
static void start_at(const lu *s, int k, int j, int i, double u[VALUES]) {
    int last = s->n - 1;
    double x = (double)i * s->h, y = (double)j * s->h, z = (double)k * s->h, lo[3][VALUES], hi[3][VALUES];
    exact_at(s, k, j, 0, lo[0]);
    exact_at(s, k, j, last, hi[0]);
    exact_at(s, k, 0, i, lo[1]);
    exact_at(s, k, last, i, hi[1]);
    exact_at(s, 0, j, i, lo[2]);
    exact_at(s, last, j, i, hi[2]);
    for (int m = 0; m < VALUES; m++) {
        double a = (1 - x) * lo[0][m] + x * hi[0][m], b = (1 - y) * lo[1][m] + y * hi[1][m],
               c = (1 - z) * lo[2][m] + z * hi[2][m];
        u[m] = a + b + c - a * b - b * c - c * a + a * b * c;
    }
    if (k == 0 || k == last || j == 0 || j == last || i == 0 || i == last)
        exact_at(s, k, j, i, u);
}

static void start(const lu *s, double (*u)[s->n][s->n][VALUES], double (*exact)[s->n][s->n][VALUES]) {
#pragma kilter loop name("start")
    for (int k = 0; k < s->n; k++)
        for (int j = 0; j < s->n; j++)
            for (int i = 0; i < s->n; i++) {
                start_at(s, k, j, i, u[k][j][i]);
                exact_at(s, k, j, i, exact[k][j][i]);
            }
}

/* --- the residual: the sum of all terms of the equations at a point --- */

static void flow_at(const double *u, flow *f) {
    double r = 1 / u[0], half = 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) * r;
    f->v[0] = u[1] * r;
    f->v[1] = u[2] * r;
    f->v[2] = u[3] * r;
    f->e = u[4] * r;
    f->p = C2 * (u[4] - half);
}

static void find_flow(const lu *s, double (*u)[s->n][s->n][VALUES], flow (*f)[s->n][s->n]) {
#pragma kilter loop name("flow")
    for (int k = 0; k < s->n; k++)
        for (int j = 0; j < s->n; j++)
            for (int i = 0; i < s->n; i++)
                flow_at(u[k][j][i], &f[k][j][i]);
}

/* Add the convection through a face, times `factor`. */
static void convect(int d, const double *u, const flow *f, double factor, double out[VALUES]) {
    double through = factor * f->v[d];
    for (int m = 0; m < VALUES; m++)
        out[m] += through * u[m];
    out[d + 1] += factor * f->p;
    out[4] += through * f->p;
}

/* Add the friction between two neighbours, times `factor`. */
static void rub(int d, const flow *a, const flow *b, double factor, double out[VALUES]) {
    double work = 0;
    for (int m = 0; m < DIRECTIONS; m++) {
        double c = coefficient(d, m + 1);
        out[m + 1] += factor * c * (b->v[m] - a->v[m]);
        work += 0.5 * (c - C1345) * (b->v[m] * b->v[m] - a->v[m] * a->v[m]);
    }
    out[4] += factor * (work + C1345 * (b->e - a->e));
}

/* Values at a point and at its neighbours in each direction d. u[d] begins two points before the point, f[d]
 * one point before the point. Where the boundary is too near, u[d] has the point's own values in place of the
 * second neighbour's. */
typedef struct stencil {
    double u[DIRECTIONS][5][VALUES];
    flow f[DIRECTIONS][3];
} stencil;

static void copy(const double *from, double *to) {
    for (int m = 0; m < VALUES; m++)
        to[m] = from[m];
}

static void gather_u(const lu *s, int k, int j, int i, double (*u)[s->n][s->n][VALUES], stencil *p) {
    int end = s->n - 3;
    copy(u[k][j][i > 2 ? i - 2 : i], p->u[0][0]);
    copy(u[k][j > 2 ? j - 2 : j][i], p->u[1][0]);
    copy(u[k > 2 ? k - 2 : k][j][i], p->u[2][0]);
    copy(u[k][j][i - 1], p->u[0][1]);
    copy(u[k][j - 1][i], p->u[1][1]);
    copy(u[k - 1][j][i], p->u[2][1]);
    for (int d = 0; d < DIRECTIONS; d++)
        copy(u[k][j][i], p->u[d][2]);
    copy(u[k][j][i + 1], p->u[0][3]);
    copy(u[k][j + 1][i], p->u[1][3]);
    copy(u[k + 1][j][i], p->u[2][3]);
    copy(u[k][j][i < end ? i + 2 : i], p->u[0][4]);
    copy(u[k][j < end ? j + 2 : j][i], p->u[1][4]);
    copy(u[k < end ? k + 2 : k][j][i], p->u[2][4]);
}

static void gather_flow(const lu *s, int k, int j, int i, flow (*f)[s->n][s->n], stencil *p) {
    p->f[0][0] = f[k][j][i - 1];
    p->f[1][0] = f[k][j - 1][i];
    p->f[2][0] = f[k - 1][j][i];
    for (int d = 0; d < DIRECTIONS; d++)
        p->f[d][1] = f[k][j][i];
    p->f[0][2] = f[k][j][i + 1];
    p->f[1][2] = f[k][j + 1][i];
    p->f[2][2] = f[k + 1][j][i];
}

/* Add the fourth difference in one direction. Near the boundary, the difference uses fewer points. at: number
 * of the point in this direction */
static void dissipate(const lu *s, int d, int at, const stencil *p, double out[VALUES]) {
    int left = s->n - 1 - at;
    double w[5] = {at > 2, at > 1 ? -4 : 0, at > 1 && left > 1 ? 6 : 5, left > 1 ? -4 : 0, left > 2};
    for (int m = 0; m < VALUES; m++)
        out[m] -= s->dissipation * (w[0] * p->u[d][0][m] + w[1] * p->u[d][1][m] + w[2] * p->u[d][2][m] +
                                    w[3] * p->u[d][3][m] + w[4] * p->u[d][4][m]);
}

/* Add all terms of the equations for one direction. */
static void direction(const lu *s, int d, int at, const stencil *p, double out[VALUES]) {
    convect(d, p->u[d][3], &p->f[d][2], -s->t2, out);
    convect(d, p->u[d][1], &p->f[d][0], s->t2, out);
    rub(d, &p->f[d][1], &p->f[d][2], s->t1, out);
    rub(d, &p->f[d][0], &p->f[d][1], -s->t1, out);
    for (int m = 0; m < VALUES; m++)
        out[m] += s->d[d][m] * s->t1 * (p->u[d][1][m] - 2 * p->u[d][2][m] + p->u[d][3][m]);
    dissipate(s, d, at, p, out);
}

static void add_terms(const lu *s, int k, int j, int i, const stencil *p, double sum[VALUES]) {
    direction(s, 0, i, p, sum);
    direction(s, 1, j, p, sum);
    direction(s, 2, k, p, sum);
}

/* Compute the forcing term, with which the exact solution has the residual 0. On the boundary the forcing
 * term stays 0. */
static void force(const lu *s, double (*u)[s->n][s->n][VALUES], flow (*f)[s->n][s->n],
                  double (*forcing)[s->n][s->n][VALUES]) {
#pragma kilter loop name("force")
    for (int k = 1; k < s->n - 1; k++)
        for (int j = 1; j < s->n - 1; j++)
            for (int i = 1; i < s->n - 1; i++) {
                double sum[VALUES] = {0};
                stencil p;
                gather_u(s, k, j, i, u, &p);
                gather_flow(s, k, j, i, f, &p);
                add_terms(s, k, j, i, &p, sum);
                for (int m = 0; m < VALUES; m++)
                    forcing[k][j][i][m] = sum[m];
            }
}

static void residual(const lu *s, double (*u)[s->n][s->n][VALUES], flow (*f)[s->n][s->n],
                     double (*forcing)[s->n][s->n][VALUES], double (*v)[s->n][s->n][VALUES]) {
#pragma kilter loop name("residual")
    for (int k = 1; k < s->n - 1; k++)
        for (int j = 1; j < s->n - 1; j++)
            for (int i = 1; i < s->n - 1; i++) {
                double sum[VALUES] = {0};
                stencil p;
                gather_u(s, k, j, i, u, &p);
                gather_flow(s, k, j, i, f, &p);
                add_terms(s, k, j, i, &p, sum);
                for (int m = 0; m < VALUES; m++)
                    v[k][j][i][m] = sum[m] - forcing[k][j][i][m];
            }
}

/* --- relaxation --- */

/* Add the product of a neighbour's matrix block with the neighbour's change v. The block consists of
 * convection, times `way`, and friction. */
static void couple(const lu *s, int d, double way, const double *u, const double *v, double out[VALUES]) {
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
static void solve(const lu *s, const double *u, double x[VALUES]) {
    double r = 1 / u[0], w[DIRECTIONS] = {u[1] * r, u[2] * r, u[3] * r}, twice = 2 * s->dt * r;
    x[0] /= s->diagonal[0];
    double energy = x[4] + twice * s->viscous[4] * (u[4] * r) * x[0];
    for (int m = 0; m < DIRECTIONS; m++) {
        double k = twice * s->viscous[m + 1];
        x[m + 1] = (x[m + 1] + k * w[m] * x[0]) / (s->diagonal[m + 1] + k);
        energy -= twice * (s->viscous[m + 1] - s->viscous[4]) * w[m] * (x[m + 1] - w[m] * x[0]);
    }
    x[4] = energy / (s->diagonal[4] + twice * s->viscous[4]);
}

/* Sweep forward: compute each point's change from the changes of the points before it. */
static void forward(const lu *s, double (*u)[s->n][s->n][VALUES], double (*v)[s->n][s->n][VALUES]) {
#pragma kilter loop name("forward")
    for (int k = 1; k < s->n - 1; k++)
        for (int j = 1; j < s->n - 1; j++)
            for (int i = 1; i < s->n - 1; i++) {
                double sum[VALUES] = {0};
                couple(s, 2, 1, u[k - 1][j][i], v[k - 1][j][i], sum);
                couple(s, 1, 1, u[k][j - 1][i], v[k][j - 1][i], sum);
                couple(s, 0, 1, u[k][j][i - 1], v[k][j][i - 1], sum);
                for (int m = 0; m < VALUES; m++)
                    sum[m] = s->dt * v[k][j][i][m] + OMEGA * s->dt * sum[m];
                solve(s, u[k][j][i], sum);
                for (int m = 0; m < VALUES; m++)
                    v[k][j][i][m] = sum[m];
            }
}

/* Sweep backward: compute each point's change with the changes of the points after it. */
static void backward(const lu *s, double (*u)[s->n][s->n][VALUES], double (*v)[s->n][s->n][VALUES]) {
#pragma kilter loop name("backward")
    for (int k = s->n - 2; k > 0; k--)
        for (int j = s->n - 2; j > 0; j--)
            for (int i = s->n - 2; i > 0; i--) {
                double sum[VALUES] = {0};
                couple(s, 2, -1, u[k + 1][j][i], v[k + 1][j][i], sum);
                couple(s, 1, -1, u[k][j + 1][i], v[k][j + 1][i], sum);
                couple(s, 0, -1, u[k][j][i + 1], v[k][j][i + 1], sum);
                for (int m = 0; m < VALUES; m++)
                    sum[m] *= OMEGA * s->dt;
                solve(s, u[k][j][i], sum);
                for (int m = 0; m < VALUES; m++)
                    v[k][j][i][m] += sum[m];
            }
}

static void update(const lu *s, double (*v)[s->n][s->n][VALUES], double (*u)[s->n][s->n][VALUES]) {
    double factor = 1 / (OMEGA * (2 - OMEGA));
#pragma kilter loop name("update")
    for (int k = 1; k < s->n - 1; k++)
        for (int j = 1; j < s->n - 1; j++)
            for (int i = 1; i < s->n - 1; i++)
                for (int m = 0; m < VALUES; m++)
                    u[k][j][i][m] += factor * v[k][j][i][m];
}

/* --- the result --- */

/* For each plane, add up the squares of the residual and of the error. */
static void squares(const lu *s, double (*u)[s->n][s->n][VALUES], double (*v)[s->n][s->n][VALUES],
                    double (*exact)[s->n][s->n][VALUES], double sums[][2 * VALUES]) {
#pragma kilter loop name("squares")
    for (int k = 1; k < s->n - 1; k++)
        for (int j = 1; j < s->n - 1; j++)
            for (int i = 1; i < s->n - 1; i++)
                for (int m = 0; m < VALUES; m++) {
                    double error = exact[k][j][i][m] - u[k][j][i][m];
                    sums[k][m] += v[k][j][i][m] * v[k][j][i][m];
                    sums[k][VALUES + m] += error * error;
                }
}

/* Integrate the pressure over six faces of a box inside the cube. */
static double surface_of(const lu *s, double (*u)[s->n][s->n][VALUES]) {
    const int lo[DIRECTIONS] = {1, 1, 2}, hi[DIRECTIONS] = {s->n - 2, s->n - 3, s->n - 2};
    double all = 0;
    for (int d = 0; d < DIRECTIONS; d++) {
        int a = d == 0 ? 1 : 0, b = d == 2 ? 1 : 2; /* the two directions within a face */
        double sum = 0;
        for (int q = lo[b]; q < hi[b]; q++)
            for (int p = lo[a]; p < hi[a]; p++)
                for (int corner = 0; corner < 8; corner++) {
                    int at[DIRECTIONS];
                    flow f;
                    at[a] = p + (corner & 1);
                    at[b] = q + (corner >> 1 & 1);
                    at[d] = corner >> 2 ? hi[d] : lo[d];
                    flow_at(u[at[2]][at[1]][at[0]], &f);
                    sum += f.p;
                }
        all += sum * s->h * s->h;
    }
    return 0.25 * all;
}

static int is_near(double value, double expected) {
    return fabs((value - expected) / expected) <= 1e-8;
}

/* Compare the norms with the published values, and print the result. */
static void verify(const lu *s, double sums[][2 * VALUES], double surface) {
    double points = (double)(s->n - 2) * (double)(s->n - 2) * (double)(s->n - 2);
    int verified = is_near(surface, SURFACE);
    for (int m = 0; m < 2 * VALUES; m++) {
        double sum = 0;
        for (int k = 0; k < s->n; k++)
            sum += sums[k][m];
        double norm = sqrt(sum / points);
        verified = verified && is_near(norm, NORMS[m]);
        printf("%.13e ", norm);
    }
    printf("%.13e %s\n", surface, verified ? "verified" : "wrong");
}

int main(void) {
    static lu s;
    set_up(&s, 12, 50, 0.5);
    int n = s.n, steps = s.steps;
    size_t planes = (size_t)n, points = planes * planes;
    double(*u)[n][n][VALUES] = calloc(planes, points * sizeof(double[VALUES]));
    double(*v)[n][n][VALUES] = calloc(planes, points * sizeof(double[VALUES]));
    double(*forcing)[n][n][VALUES] = calloc(planes, points * sizeof(double[VALUES]));
    double(*exact)[n][n][VALUES] = calloc(planes, points * sizeof(double[VALUES]));
    flow(*f)[n][n] = calloc(planes, points * sizeof(flow));
    double(*sums)[2 * VALUES] = calloc(planes, sizeof *sums);
    start(&s, u, exact);
    find_flow(&s, exact, f);
    force(&s, exact, f, forcing);
    find_flow(&s, u, f);
    residual(&s, u, f, forcing, v);
    for (int step = 0; step < steps; step++) {
        forward(&s, u, v);
        backward(&s, u, v);
        update(&s, v, u);
        find_flow(&s, u, f);
        residual(&s, u, f, forcing, v);
    }
    squares(&s, u, v, exact, sums);
    double surface = surface_of(&s, u);
    verify(&s, sums, surface);
    printf("%016llx\n", digest(u, planes * points * sizeof(double[VALUES])));
    free(u);
    free(v);
    free(forcing);
    free(exact);
    free(f);
    free(sums);
    return 0;
}
