/* Distributed arrays on the stack exist only until their blocks end. Other arrays then use the same
 * memory. */
#include "common.h"

static long z[8];

__attribute__((noinline)) static long sum(long n) {
    long tmp[2000], s = 0;
#pragma kilter loop
    for (int i = 0; i < 2000; i++)
        tmp[i] = i * 3 + n;
#pragma kilter loop
    for (int i = 0; i < 2000; i++)
        s += tmp[i];
    return s;
}

__attribute__((noinline)) static long plain(const long *q) {
    volatile long other[2000];
    for (int i = 0; i < 2000; i++)
        other[i] = 7;
    long k = *q;
    for (int i = 0; i < 2000; i++)
        k += other[i];
    return k;
}

int main(void) {
    long *q = calloc(10, sizeof *q), a = sum(20);
    long b = plain(q);
#pragma kilter loop
    for (int i = 0; i < 8; i++)
        z[i] = b;
    printf("%ld %ld %ld\n", a, b, z[2]);
    a = sum(3);
    long k = q[0];
    b = sum(4);
    printf("%ld %ld %ld\n", a, b, k);
    free(q);
}
