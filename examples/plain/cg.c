/* cg [N [STEPS]]: conjugate gradients for Poisson's equation on N×N points with boundary value 0, with two
 * dot products in each step. The rows are distributed; each rank also has the row before and the row after
 * its own.
 */
#include "examples/loop_program.h"

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
        if (!(fabs(a[i] - b[i]) <= 1e-9 * most)) /* the comparison is also false for NaN */
            return false;
    return true;
}

typedef struct part { /* the rows that this rank computes */
    size_t lo, own;
    int before, after;
} part;

static double sum(double here) {
    double all;
    MPI_Allreduce(&here, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/* Fetch the neighbours' outer rows. The array p has the rows lo − 1 … lo + own. */
static void exchange(const part *at, size_t n, double p[][n]) {
    MPI_Request requests[4];
    MPI_Status statuses[4];
    MPI_Irecv(p[0], (int)n, MPI_DOUBLE, at->before, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(p[at->own + 1], (int)n, MPI_DOUBLE, at->after, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(p[1], (int)n, MPI_DOUBLE, at->before, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(p[at->own], (int)n, MPI_DOUBLE, at->after, 0, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, statuses);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    settings set = read_settings(argc, argv, (settings){.program = "cg", .n = 500, .sweeps = 100});
    size_t n = (size_t)set.n;
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if ((size_t)ranks > n)
        refuse(&set, "N", "there are fewer rows than ranks; start fewer ranks");
    int counts[ranks], starts[ranks];
    for (int k = 0; k < ranks; k++) {
        starts[k] = (int)(n * (size_t)k / (size_t)ranks);
        counts[k] = (int)(n * ((size_t)k + 1) / (size_t)ranks) - starts[k];
    }
    part at = {(size_t)starts[rank], (size_t)counts[rank], rank > 0 ? rank - 1 : MPI_PROC_NULL,
               rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL};
    double(*x)[n] = allocate(at.own, sizeof *x), (*r)[n] = allocate(at.own, sizeof *r),
    (*q)[n] = allocate(at.own, sizeof *q), (*p)[n] = allocate(at.own + 2, sizeof *p), here = 0;
    for (size_t i = 0; i < at.own; i++) {
        start_row(n, at.lo + i, r[i], p[i + 1]);
        here += dot(n, r[i], r[i]);
    }

    MPI_Barrier(MPI_COMM_WORLD);
    double begun_s = MPI_Wtime(), rr = sum(here);
    for (int step = 0; step < set.sweeps; step++) {
        double pq = 0, left = 0, from_s;
        exchange(&at, n, p);
        from_s = cpu_s(&set);
        for (size_t i = 0; i < at.own; i++) {
            apply(n, at.lo + i, p[i], p[i + 1], p[i + 2], q[i]);
            pq += dot(n, p[i + 1], q[i]);
        }
        pay(&set, from_s, (double)at.own);
        double alpha = rr / sum(pq);
        for (size_t i = 0; i < at.own; i++)
            left += go(n, alpha, p[i + 1], q[i], x[i], r[i]);
        left = sum(left);
        for (size_t i = 0; i < at.own; i++)
            turn(n, left / rr, r[i], p[i + 1]);
        rr = left;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double elapsed_s = MPI_Wtime() - begun_s;

    MPI_Datatype row;
    MPI_Type_contiguous((int)n, MPI_DOUBLE, &row);
    MPI_Type_commit(&row);
    double(*whole)[n] = rank == 0 ? allocate(n, sizeof *whole) : NULL;
    MPI_Gatherv(x, (int)at.own, row, whole, counts, starts, row, 0, MPI_COMM_WORLD);
    MPI_Type_free(&row);
    double(*expected)[n] = rank == 0 && set.check ? sequential(&set, n) : NULL;
    bool near = rank != 0 || !expected || is_near(n * n, *whole, *expected);
    int code = rank == 0
                   ? finish(&set, elapsed_s, whole, expected && near ? whole : expected, n * sizeof *whole)
                   : 0;
    free(expected);
    free(whole);
    free(x);
    free(r);
    free(q);
    free(p);
    MPI_Finalize();
    return code;
}
