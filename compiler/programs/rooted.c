/* Only rank 0 runs some statements of this program. */
#include "common.h"

enum { N = 17, M = 6 };
static struct {
    int n, k;
    const char *unit;
} size = {0, 0, "rows"};
static double grid[N][M], total, *flat;
static char title[40];
static int lines;

static void show(const char *what, double (*x)[M]) {
    for (int i = 0; i < N; i += 4)
        printf("%s %d %g\n", what, i, x[i][i % M]);
    lines += N / 4;
}

static void raise_by(double *x, int count, double by) {
    for (int i = 0; i < count; i++)
        x[i] += by;
}

int main(void) {
    double(*u)[M] = malloc(N * sizeof *u);
    int width = 0;
#pragma kilter root
    {
        sscanf("17 6", "%d %d", &size.n, &width);
        snprintf(title, sizeof title, "%d rows", size.n);
        size.k = width + 1;
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++)
            u[i][j] = i + j;
    for (int t = 0; t < 3; t++) {
#pragma kilter loop
        for (int i = 1; i < N; i++)
            for (int j = 0; j < M; j++) {
                grid[i][j] += u[i][j] + width;
                u[i][j] -= size.k;
            }
#pragma kilter root
        raise_by(u[2], M, 0.25);
#pragma kilter root
        for (int i = 0; i < N; i++) {
            if (i % 3)
                continue;
            grid[i][1] += 1;
            total += grid[i][1];
        }
        if (t == 1) {
#pragma kilter root
            show(title, grid);
        }
    }
    flat = u[0];
#pragma kilter root
    {
        for (int i = 0; i < N; i++)
            flat[i * M + 1] = total;
        show("u", u);
    }
    printf("%s %s %g %d %d %llu %llu\n", size.unit, title, total, lines, size.k, digest(grid, sizeof grid),
           digest(u, N * sizeof *u));
    free(u);
}
