#include "common.h"

/* Sums over ranks are computed in another order, so the program does not print their last bits. */
double a[300];
int main(void) {
    double s = 1, p = 1;
    float f = 0;
    int c = 0;
    long least = 1000;
    unsigned u = 0;
    for (int i = 0; i < 300; i++)
        a[i] = sin(i);
#pragma kilter loop reduction(+ : s, f) reduction(* : p)
    for (int i = 3; i < 299; i++) {
        if (a[i] < -0.9)
            continue;
        s += a[i];
        p *= 1 + a[i] / 100;
        f -= (float)a[i];
        c++;
        u += 3000000000u;
        long v = (long)(100 * a[i]);
        if (v < least)
            least = v;
    }
    printf("%.9g %.9g %.4g %d %ld %u\n", s, p, f, c, least, u);
}
