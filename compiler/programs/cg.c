/* Conjugate gradients for a sparse matrix that is symmetric and positive definite. The dot products are exact
 * sums, so the residuals have the same bits on any number of ranks. The sequential program rounds its sums,
 * so its output differs. The file cg.expected has the output with exact sums. */
#include "common.h"

enum { N = 150, BAND = 4, STEPS = 8 };

static int start[N + 1], column[N * (2 * BAND + 1)];
static double value[N * (2 * BAND + 1)], x[N], r[N], p[N], q[N];

/* Write row i of the matrix: the diagonal, and entries at distances 1, 12, 23 and 34 from the diagonal. An
 * entry stays the same if its row and column are exchanged, so the matrix is symmetric. */
static int make_row(int i, int at) {
    start[i] = at;
    column[at] = i;
    value[at++] = 9;
    for (int way = -1; way <= 1; way += 2)
        for (int b = 0; b < BAND; b++) {
            int k = i + way * (1 + 11 * b);
            if (k < 0 || k >= N)
                continue;
            column[at] = k;
            value[at++] = -chance((uint64_t)(i < k ? i * N + k : k * N + i));
        }
    return at;
}

int main(void) {
    int at = 0;
    for (int i = 0; i < N; i++)
        at = make_row(i, at);
    start[N] = at;
    double rr = 0;
#pragma kilter loop reduction(exact + : rr)
    for (int i = 0; i < N; i++) {
        x[i] = 0;
        r[i] = p[i] = chance((uint64_t)(i + 100000));
        rr += r[i] * r[i];
    }
    for (int step = 0; step < STEPS; step++) {
        double pq = 0, left = 0;
#pragma kilter loop reduction(exact + : pq)
        for (int i = 0; i < N; i++) {
            double sum = 0;
            for (int k = start[i]; k < start[i + 1]; k++)
                sum += value[k] * p[column[k]];
            q[i] = sum;
            pq += sum * p[i];
        }
        double alpha = rr / pq;
#pragma kilter loop reduction(exact + : left)
        for (int i = 0; i < N; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
            left += r[i] * r[i];
        }
        double beta = left / rr;
#pragma kilter loop
        for (int i = 0; i < N; i++)
            p[i] = r[i] + beta * p[i];
        rr = left;
    }
    printf("%a %.6e %016llx\n", rr, rr, digest(x, sizeof x));
}
