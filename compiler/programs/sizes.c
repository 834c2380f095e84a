/* The same loops run on arrays of many sizes, also on arrays without elements. */
#include "common.h"

static void run(int n) {
    double *x = malloc((size_t)(n * n + 1) * sizeof *x), *y = malloc((size_t)(n + 1) * sizeof *y);
    long s = 0;
#pragma kilter loop
    for (int i = 0; i < n; i++) {
        y[i] = i;
        for (int j = 0; j < n; j++)
            x[i * n + j] = i * j;
    }
#pragma kilter loop
    for (int i = 1; i < n; i++)
        for (int j = 0; j < n; j++)
            x[i * n + j] += 0.5 * x[(i - 1) * n + j];
#pragma kilter loop
    for (int i = 0; i < n; i++)
        s += (long)y[i];
    double t = 0;
    for (int i = 0; i < n * n; i++)
        t = 1.01 * t + x[i];
    printf("%d %ld %a\n", n, s, t);
    free(x);
    free(y);
}

int main(void) {
    for (int n = 0; n < 7; n++)
        run(n);
    run(40);
    run(2);
    run(33);
}
