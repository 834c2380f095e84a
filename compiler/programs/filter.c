#include "common.h"

enum { REACH = 2 };

/* Return the median of the points around (i, j). */
static unsigned char median(int n, int i, int j, unsigned char (*seen)[n]) {
    unsigned char window[(2 * REACH + 1) * (2 * REACH + 1)];
    int count = 0;
    for (int y = -REACH; y <= REACH; y++)
        for (int x = -REACH; x <= REACH; x++)
            if (i + y >= 0 && i + y < n && j + x >= 0 && j + x < n) {
                unsigned char value = seen[y][j + x];
                int at = count++;
                while (at > 0 && window[at - 1] > value) {
                    window[at] = window[at - 1];
                    at--;
                }
                window[at] = value;
            }
    return window[count / 2];
}

static void clean_row(int n, int i, unsigned char (*seen)[n], unsigned char *clean) {
    for (int j = 0; j < n; j++)
        clean[j] = median(n, i, j, seen);
}

int main(void) {
    int n = 33;
    unsigned char(*seen)[n] = malloc((size_t)n * sizeof *seen),
             (*clean)[n] = malloc((size_t)n * sizeof *clean);
    for (int frame = 0; frame < 4; frame++) {
#pragma kilter loop
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                seen[i][j] = (unsigned char)(256 * chance((uint64_t)((frame * n + i) * n + j)));
#pragma kilter loop
        for (int i = 0; i < n; i++)
            clean_row(n, i, &seen[i], clean[i]);
        printf("%016llx\n", digest(clean, (size_t)n * sizeof *clean));
    }
    free(seen);
    free(clean);
}
