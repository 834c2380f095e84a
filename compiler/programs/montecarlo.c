#include "common.h"

int main(void) {
    long hits = 0;
    double least = 2;
    int tries = 200;
#pragma kilter loop
    for (int i = 0; i < tries; i++)
        for (int k = 0; k < 50; k++) {
            double u = chance((uint64_t)(i * 100 + 2 * k)), v = chance((uint64_t)(i * 100 + 2 * k + 1)),
                   d = u * u + v * v;
            if (d < 1)
                hits++;
            if (d < least)
                least = d;
        }
    printf("%.4f %ld %.17g\n", 4.0 * (double)hits / (tries * 50.0), hits, least);
}
