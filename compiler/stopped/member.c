/* stops: g.n and x share memory */
#include <stdio.h>

static struct { int n, m; } g = {4, 7};

int main(void) {
    int *x = &g.n; /* the second iteration would end the loop */
#pragma kilter loop
    for (int i = 0; i < g.n; i++)
        x[i] = 1;
    printf("%d\n", g.n);
}
