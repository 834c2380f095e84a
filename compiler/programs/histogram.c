#include "common.h"

#define N    40
#define BINS 16

static int bins[N][BINS];
static double sample[N][100];

int main(void) {
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 100; k++)
            sample[i][k] = chance((uint64_t)(i * 100 + k));
#pragma kilter loop
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 100; k++)
            bins[i][(int)(BINS * sample[i][k])]++;
    printf("%016llx\n", digest(bins, sizeof bins));
}
