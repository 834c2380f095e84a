/* Functions that the user declares pure. */
#include "common.h"

#pragma kilter pure(logb, ways, ldexp)

static int ways(int n) { /* kilter cc does not analyse this function */
    return n < 2 ? 1 : ways(n - 1) + ways(n - 2);
}

static double u[40];

int main(void) {
#pragma kilter loop
    for (int i = 0; i < 40; i++)
        u[i] = ldexp(ways(i % 12), 2) + logb(i + 1);
    printf("%d\n", ways(4));
    for (int i = 0; i < 40; i++)
        printf("%g\n", u[i]);
}
