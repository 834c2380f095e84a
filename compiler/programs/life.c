#include "common.h"

int main(void) {
    int n = 34;
    int(*now)[n] = malloc((size_t)n * sizeof *now), (*next)[n] = malloc((size_t)n * sizeof *next);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            now[i][j] = next[i][j] =
                i > 0 && j > 0 && i < n - 1 && j < n - 1 && chance((uint64_t)(i * n + j)) < 0.4;
    for (int t = 0; t < 8; t++) {
        int alive = 0;
#pragma kilter loop
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j < n - 1; j++) {
                int around = 0;
                for (int y = -1; y <= 1; y++)
                    for (int x = -1; x <= 1; x++)
                        if (x != 0 || y != 0)
                            around += now[i + y][j + x];
                next[i][j] = around == 3 || (around == 2 && now[i][j]);
                alive += next[i][j];
            }
        printf("%d alive\n", alive);
        int(*old)[n] = now;
        now = next;
        next = old;
    }
    printf("%016llx\n", digest(now, (size_t)n * sizeof *now));
    free(now);
    free(next);
}
