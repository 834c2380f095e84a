/* cg [N [STEPS]]: conjugate gradients for Poisson's equation on N×N points with boundary value 0, with two
 * dot products in each step. With --exact the dot products have the same bits for every number of ranks.
 * Without --exact, MPI_Allreduce computes the dot products. */
#include <kilter/loop.h>

#include "loop_program.h"

/* Compute row i of A·u, with the five-point Laplacian and boundary value 0. */
static void apply(size_t n, size_t i, const double *up, const double *u, const double *down, double *out) {
    for (size_t j = 0; j < n; j++)
        out[j] = 4 * u[j] - (i > 0 ? up[j] : 0) - (i + 1 < n ? down[j] : 0) - (j > 0 ? u[j - 1] : 0) -
                 (j + 1 < n ? u[j + 1] : 0);
}

static double dot(size_t n, const double *a, const double *b) {
    double sum = 0;
    for (size_t j = 0; j < n; j++)
        sum += a[j] * b[j];
    return sum;
}

/* Move along the search direction p in one row: update the solution x and the residual r. Return the row's
 * part of r·r. */
static double go(size_t n, double alpha, const double *p, const double *q, double *x, double *r) {
    for (size_t j = 0; j < n; j++) {
        x[j] += alpha * p[j];
        r[j] -= alpha * q[j];
    }
    return dot(n, r, r);
}

static void turn(size_t n, double beta, const double *r, double *p) {
    for (size_t j = 0; j < n; j++)
        p[j] = r[j] + beta * p[j];
}

static void start_row(size_t n, size_t i, double *r, double *p) {
    for (size_t j = 0; j < n; j++)
        r[j] = p[j] = chance(i * n + j);
}

/* Do all steps in one process; return the solution x. */
static void *sequential(const settings *set, size_t n) {
    double(*x)[n] = allocate(n, sizeof *x), (*r)[n] = allocate(n, sizeof *r),
    (*p)[n] = allocate(n, sizeof *p), (*q)[n] = allocate(n, sizeof *q), rr = 0;
    for (size_t i = 0; i < n; i++) {
        start_row(n, i, r[i], p[i]);
        rr += dot(n, r[i], r[i]);
    }
    for (int step = 0; step < set->sweeps; step++) {
        double pq = 0, left = 0;
        for (size_t i = 0; i < n; i++) {
            apply(n, i, p[i > 0 ? i - 1 : 0], p[i], p[i + 1 < n ? i + 1 : i], q[i]);
            pq += dot(n, p[i], q[i]);
        }
        for (size_t i = 0; i < n; i++)
            left += go(n, rr / pq, p[i], q[i], x[i], r[i]);
        for (size_t i = 0; i < n; i++)
            turn(n, left / rr, r[i], p[i]);
        rr = left;
    }
    free(r);
    free(p);
    free(q);
    return x;
}

/* Compare two results with a tolerance for rounding, because the sequential program adds numbers in another
 * order. */
static bool is_near(size_t count, const double *a, const double *b) {
    double most = 0;
    for (size_t i = 0; b && i < count; i++)
        most = fmax(most, fabs(b[i]));
    for (size_t i = 0; b && i < count; i++)
        if (!(fabs(a[i] - b[i]) <= 1e-9 * most)) /* this comparison is also false for NaN */
            return false;
    return true;
}

typedef struct vectors { /* the vectors have rows of N values; `sums` has rows of 1 value */
    double *x, *r, *p, *q, *sums;
} vectors;

static double *attach(kilter_loop *loop, size_t n, uint64_t ghost) {
    void *base;
    kilter_error error;
    must(kilter_loop_array(loop, n * sizeof(double), ghost, &base, &error), &error);
    return base;
}

/* Return the sum of all values in v->sums, which has one value for each row. */
static double sum(kilter_loop *loop, const settings *set, const vectors *v) {
    kilter_error error;
    kilter_range own;
    double here = 0, all;
    if (set->exact) {
        must(kilter_loop_sum(loop, v->sums, &all, &error), &error);
        return all;
    }
    for (size_t nth = 0; kilter_loop_mine(loop, nth, &own); nth++)
        for (size_t i = own.lo; i < own.hi; i++)
            here += v->sums[i];
    MPI_Allreduce(&here, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/* Do one step. Return the square of the residual's norm after the step. */
static double step(kilter_loop *loop, const settings *set, const vectors *v, double rr) {
    size_t n = (size_t)set->n;
    kilter_error error;
    kilter_range own;
    must(kilter_loop_begin(loop, &error), &error);
    while (kilter_loop_next(loop, &own)) {
        double from_s = cpu_s(set);
        for (size_t i = own.lo; i < own.hi; i++) {
            apply(n, i, v->p + (i > 0 ? i - 1 : 0) * n, v->p + i * n, v->p + (i + 1 < n ? i + 1 : i) * n,
                  v->q + i * n);
            v->sums[i] = dot(n, v->p + i * n, v->q + i * n);
        }
        pay(set, from_s, (double)(own.hi - own.lo));
    }
    must(kilter_loop_end(loop, &error), &error);
    double alpha = rr / sum(loop, set, v);
    for (size_t nth = 0; kilter_loop_mine(loop, nth, &own); nth++)
        for (size_t i = own.lo; i < own.hi; i++)
            v->sums[i] = go(n, alpha, v->p + i * n, v->q + i * n, v->x + i * n, v->r + i * n);
    double left = sum(loop, set, v);
    for (size_t nth = 0; kilter_loop_mine(loop, nth, &own); nth++)
        for (size_t i = own.lo; i < own.hi; i++)
            turn(n, left / rr, v->r + i * n, v->p + i * n);
    return left;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    settings set = read_settings(argc, argv, (settings){.program = "cg", .n = 500, .sweeps = 100});
    size_t n = (size_t)set.n;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    kilter_loop_options options = {.iterations = n, .fixed = set.fixed, .name = "cg", .record = set.record};
    kilter_loop *loop;
    kilter_error error;
    kilter_range own;
    must(kilter_loop_open(MPI_COMM_WORLD, &options, &loop, &error), &error);
    vectors v = {.p = attach(loop, n, 1)};
    v.x = attach(loop, n, 0);
    v.r = attach(loop, n, 0);
    v.q = attach(loop, n, 0);
    v.sums = attach(loop, 1, 0);
    for (size_t nth = 0; kilter_loop_mine(loop, nth, &own); nth++)
        for (size_t i = own.lo; i < own.hi; i++) {
            start_row(n, i, v.r + i * n, v.p + i * n);
            v.sums[i] = dot(n, v.r + i * n, v.r + i * n);
        }

    MPI_Barrier(MPI_COMM_WORLD);
    double begun_s = MPI_Wtime(), rr = sum(loop, &set, &v);
    for (int i = 0; i < set.sweeps; i++)
        rr = step(loop, &set, &v, rr);
    MPI_Barrier(MPI_COMM_WORLD);
    double elapsed_s = MPI_Wtime() - begun_s;

    double(*whole)[n] = rank == 0 ? allocate(n, sizeof *whole) : NULL;
    must(kilter_loop_gather(loop, v.x, 0, whole, &error), &error);
    double(*expected)[n] = rank == 0 && set.check ? sequential(&set, n) : NULL;
    bool near = rank != 0 || !expected || is_near(n * n, *whole, *expected);
    int code = rank == 0
                   ? finish(&set, elapsed_s, whole, expected && near ? whole : expected, n * sizeof *whole)
                   : 0;
    if (rank == 0)
        say_summary(&set, loop);
    free(expected);
    free(whole);
    must(kilter_loop_close(loop, &error), &error);
    MPI_Finalize();
    return code;
}
