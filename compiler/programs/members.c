/* Limits, strides and sizes are members of structures. */
#include "common.h"

enum { GRIDS = 3, MOST = 24 };

typedef struct limits {
    int first, end;
} limits;

typedef struct grid {
    int n, m;
    double factor;
    limits part;
    double row[MOST];
} grid;

static grid all[GRIDS];
static struct {
    int n;
    double shift, x[MOST];
} line;

/* Each call can pass another grid, whose members have other values. */
static void sweep(const grid *g, double (*a)[g->m], double (*b)[g->m]) {
#pragma kilter loop
    for (int i = 1; i < g->n - 1; i++)
        for (int j = 1; j < g->m - 1; j++)
            b[i][j] = g->factor * (a[i - 1][j] + a[i + 1][j]) - a[i][j - 1];
}

/* x is flat memory, in which the member m is the length of a row. */
static void relax(const grid *g, double *x) {
#pragma kilter loop
    for (int i = g->part.first; i < g->part.end; i++)
        for (int j = 1; j < g->m; j++)
            x[i * g->m + j] += 0.5 * x[(i - 1) * g->m + j] + 0.25 * x[i * g->m + j - 1];
}

static double row_sum(const limits *part, const double *x) {
    double sum = 0;
    for (int j = part->first; j < part->end; j++)
        sum += x[j];
    return sum;
}

/* row_sum() has a loop whose limits are members of the structure g->part. */
static void add_rows(grid *g, double *sums, double x[][MOST]) {
#pragma kilter loop
    for (int i = 0; i < g->n; i++)
        sums[i] = row_sum(&g->part, x[i]) + g->factor;
}

int main(void) {
    static double a[MOST * MOST], b[MOST * MOST], sums[MOST];
    for (int i = 0; i < MOST * MOST; i++)
        a[i] = chance((uint64_t)i);
    for (int g = 0; g < GRIDS; g++) {
        all[g].n = MOST - 3 * g;
        all[g].m = MOST - g;
        all[g].factor = 0.5 + g;
        all[g].part.first = 1 + g;
        all[g].part.end = MOST - 4;
    }
    for (int t = 0; t < 2 * GRIDS; t++) {
        grid *g = &all[t % GRIDS];
        int m = g->m;
        sweep(g, (double(*)[m])a, (double(*)[m])b);
        relax(g, b);
        sweep(g, (double(*)[m])b, (double(*)[m])a);
        g->part.end--;
    }
    grid *second = &all[1];
    double(*rows)[MOST] = (double(*)[MOST])a;
    add_rows(second, sums, rows);

    /* The loop's limit and the array that it writes are members of the same structure. */
    line.n = MOST - 2;
    line.shift = 3;
    double *x = line.x;
#pragma kilter loop
    for (int i = 0; i < line.n; i++)
        x[i] = sums[i] + line.shift;

        /* The first loop computes the limit of the second loop. The row with this limit may be on another
         * rank. */
#pragma kilter loop
    for (int i = 0; i < GRIDS; i++)
        all[i].n = 5 * i + 4;
#pragma kilter loop
    for (int i = 0; i < all[2].n; i++)
        sums[i] += 100 * i;
    printf("%016llx %016llx\n", digest(a, sizeof a), digest(b, sizeof b));
    for (int i = 0; i < MOST; i++)
        printf("%a %a\n", sums[i], line.x[i]);
}
