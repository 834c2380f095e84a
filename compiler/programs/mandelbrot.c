#include "common.h"

#define H 40
#define W 50

static int depth[H][W];

int main(void) {
    long total = 0;
#pragma kilter loop
    for (int i = 0; i < H; i++)
        for (int j = 0; j < W; j++) {
            double re = 0, im = 0, x = -2 + 3.0 * j / W, y = -1 + 2.0 * i / H;
            int n = 0;
            while (re * re + im * im < 4 && n < 200) {
                double next = re * re - im * im + x;
                im = 2 * re * im + y;
                re = next;
                n++;
            }
            depth[i][j] = n;
            total += n;
        }
    printf("%ld %016llx\n", total, digest(depth, sizeof depth));
}
