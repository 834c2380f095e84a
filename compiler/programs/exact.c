/* Compute exact sums. An ordinary floating-point sum would lose the small addends. */
#include "common.h"

enum { N = 300 };

static double x[N];

int main(void) {
    double sum = 0.25, other = 3;
    float narrow = 0;
#pragma kilter loop
    for (int i = 0; i < N; i++)
        x[i] = (double)(i % 7) / 8;
    for (int t = 0; t < 4; t++) {
#pragma kilter loop reduction(exact + : sum, other) reduction(exact + : narrow)
        for (int i = 0; i < N; i++) {
            sum += i % 2 ? 1e18 : -1e18;
            sum -= x[i];
            sum++;
            for (int j = 0; j < 3; j++)
                other = x[i] * j + other;
            if (i == 5)
                other = other - 0x1p70;
            else if (i == N - 5)
                other += 0x1p70;
            narrow += i % 3 == 0 ? 1e9 : i % 3 == 1 ? -1e9 : 0x1p-40;
        }
    }
    printf("%a %a %a\n", sum, other, narrow);
}
