/* Use forms of C that are rare in programs. */
#include "common.h"

#define EACH(i, n) for (int i = 0; i < n; i++)
#define SET(x, y)  ((x) = (y))
enum { N = 20 };
enum index { FIRST };
struct cell {
    double x[3];
    unsigned low : 3, high : 7;
};
union word {
    double number;
    unsigned long long bits;
};
static struct cell cells[N], others[N];
static double a[N], b[N][N];
static _Thread_local long double c[N];

static double old_style(x)
float x;
{ return x; }

static double stored(double *x, int i) {
    x[i] += 1;
    return x[i];
}

static int again(double *x, int depth) {
#pragma kilter loop
    for (int i = 0; i < N; i++)
        x[i] += depth;
    if (depth > 0)
        return again(x, depth - 1);
    return x[3] > 1;
}

static double *memory(void) {
    static double own[N];
    return own;
}

int main(void) {
    int last, n = 5, before = 1;
    double resized[n][n], *x = memory();
    memset(resized, 0, sizeof resized);
    n = 3;
#pragma kilter loop
    for (enum index i = FIRST; i < N; i++) {
        struct cell t = {{i, i, i}, 1, i}, u = t;
        union word w;
        w.number = i;
        w.bits += 1;
        u.x[0] = w.number;
        cells[i] = u;
        cells[i].high += cells[i].low;
    }
#pragma kilter loop
    for (signed char i = 0; i < N; i++)
        others[i] = cells[i];
#pragma kilter loop
    for (int i = 0; i < N; i++)
        EACH(j, N) SET(b[i][j], j == 4 ? stored(a, i) : a[i]);
#pragma kilter loop
    for (last = N - 1; last > 2; last -= 4)
        c[last] = old_style(last / 3.0);
#pragma kilter loop
    for (int i = 0; i < 5; i++)
        resized[i][1] = i + n;
back:;
#pragma kilter loop
    for (int i = 0; i < N; i++) {
        int k = 0;
        do {
            x[i] += k;
        } while (k++ < i);
    }
    if (before++ < 3)
        goto back;
    if (n > 3)
#pragma kilter loop
        for (int i = 0; i < N; i++)
            a[i] = 0;
    else
        a[3] = before;
    int more = again(x, 3);
    for (int i = 0; i < N; i++)
        printf("%g %g %u %g %g %g\n", a[i], b[i][4], others[i].high, others[i].x[0], (double)c[i], x[i]);
    printf("%d %d %g %g\n", last, more, resized[4][1], memory()[7]);
}
