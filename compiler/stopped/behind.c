/* stops: g->n and x share memory */
#include <stdio.h>
#include <stdlib.h>

typedef struct grid {
    int n, m;
} grid;

static void fill(const grid *g, int *x) {
#pragma kilter loop
    for (int i = 0; i < g->n; i++)
        for (int j = 0; j < g->m; j++)
            x[i * g->m + j] = j;
}

int main(void) {
    grid *all = malloc(100 * sizeof *all);
    all[1].n = all[1].m = 6;
    grid *g = all + 1;
    int *x = (int *)all;
    fill(g, x);
    printf("%d\n", all[20].n);
    free(all);
}
