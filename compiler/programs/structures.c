/* The program assigns whole structures, and pointers point to arrays in them. */
#include <stdio.h>
struct G {
    int n;
    double a[30];
} g, h;
int main(void) {
    g.n = 30;
    double *p = g.a;
#pragma kilter loop
    for (int i = 0; i < 30; i++)
        p[i] = i;
    h = g;
    double *q = h.a;
#pragma kilter loop
    for (int i = 0; i < 30; i++)
        q[i] += p[i];
    g = h;
    struct G *r = &h;
    struct G l = *r;
    for (int i = 0; i < 30; i++)
        printf("%g %g %g\n", g.a[i], h.a[i], l.a[i]);
}
