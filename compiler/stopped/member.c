/* stops: g.n and x share memory */
#include <stdio.h>

static struct { int n, m; } g = {4, 7};

int main(void) {
    int *x = &g.n; /* the first iteration would set g.n to 1, which ends the loop */
#pragma kilter loop
    for (int i = 0; i < g.n; i++)
        x[i] = 1;
    printf("%d\n", g.n);
}
