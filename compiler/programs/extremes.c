/* fmin() and fmax() prefer numbers to NaN, and small integers wrap around. */
#include "common.h"

static double u[30];
static short s[30];
static unsigned char h[30];

int main(void) {
    double most = 0.0 / 0.0, least = 5, kept = 0.0 / 0.0;
    short sum = 0;
    unsigned char rest = 200;
    long long product = 1;
    for (int i = 0; i < 30; i++) {
        u[i] = i * i;
        s[i] = (short)(i * 999);
        h[i] = (unsigned char)(i * 9);
    }
    u[3] = 0.0 / 0.0;
#pragma kilter loop
    for (int i = 0; i < 29; i++) {
        most = fmax(most, u[i]);
        least = fmin(u[i], least);
        if (u[i] > kept)
            kept = u[i];
        sum += s[i];
        rest -= h[i];
        product *= h[i] | 1;
    }
    printf("%a %a %d %d %d %lld\n", most, least, kept != kept, sum, rest, product);
}
