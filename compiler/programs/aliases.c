/* Pointers point to declared arrays and to parts of structures. Code outside of the loops uses both names. */
#include "common.h"

#define N 40

static double x[N], y[N], backward[N];
static struct { double a[N], s; } whole;

static void step(double *a, double *b) {
#pragma kilter loop
    for (int i = 1; i < N - 1; i++)
        b[i] = a[i - 1] + a[i + 1];
}

int main(void) {
    double *a = x, *b = y, *part = whole.a;
    for (int i = 0; i < N; i++)
        x[i] = i * i % 7;
    for (int t = 0; t < 3; t++) {
#pragma kilter loop
        for (int i = 1; i < N - 1; i++)
            b[i] = a[i - 1] + a[i + 1];
        double *c = a;
        a = b;
        b = c;
        step(x, y);
        x[5] += y[6];
    }
#pragma kilter loop
    for (int i = 0; i < N; i++)
        part[i] = i * 1.5;
#pragma kilter loop
    for (int i = 0; i < N; i++)
        backward[i] = whole.a[N - 1 - i];
    for (int i = 0; i < N; i++)
        printf("%a %a %a %a\n", x[i], y[i], whole.a[i], backward[i]);
}
