#include "common.h"

#define NX 30
#define NY 26

static double ex[NX][NY], ey[NX][NY], hz[NX][NY], fict[20];

int main(void) {
    for (int t = 0; t < 20; t++)
        fict[t] = t;
    for (int i = 0; i < NX; i++)
        for (int j = 0; j < NY; j++) {
            ex[i][j] = ((double)i * (j + 1)) / NX;
            ey[i][j] = ((double)i * (j + 2)) / NY;
            hz[i][j] = ((double)i * (j + 3)) / NX;
        }
    for (int t = 0; t < 6; t++) {
#pragma kilter loop
        for (int i = 0; i < NX; i++)
            for (int j = 0; j < NY; j++)
                if (i == 0)
                    ey[i][j] = fict[t];
                else
                    ey[i][j] = ey[i][j] - 0.5 * (hz[i][j] - hz[i - 1][j]);
#pragma kilter loop
        for (int i = 0; i < NX; i++)
            for (int j = 1; j < NY; j++)
                ex[i][j] = ex[i][j] - 0.5 * (hz[i][j] - hz[i][j - 1]);
#pragma kilter loop
        for (int i = 0; i < NX - 1; i++)
            for (int j = 0; j < NY - 1; j++)
                hz[i][j] = hz[i][j] - 0.7 * (ex[i][j + 1] - ex[i][j] + ey[i + 1][j] - ey[i][j]);
    }
    printf("%016llx %016llx %016llx\n", digest(ex, sizeof ex), digest(ey, sizeof ey), digest(hz, sizeof hz));
}
