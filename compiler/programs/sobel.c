#include "common.h"

#define H 31
#define W 45

static int picture[H][W], edges[H][W];

int main(void) {
    for (int i = 0; i < H; i++)
        for (int j = 0; j < W; j++)
            picture[i][j] = (int)(255 * chance((uint64_t)(i * W + j)));
    int most = 0;
#pragma kilter loop
    for (int i = 1; i < H - 1; i++)
        for (int j = 1; j < W - 1; j++) {
            int x = picture[i - 1][j + 1] + 2 * picture[i][j + 1] + picture[i + 1][j + 1] -
                    picture[i - 1][j - 1] - 2 * picture[i][j - 1] - picture[i + 1][j - 1];
            int y = picture[i + 1][j - 1] + 2 * picture[i + 1][j] + picture[i + 1][j + 1] -
                    picture[i - 1][j - 1] - 2 * picture[i - 1][j] - picture[i - 1][j + 1];
            int e = abs(x) + abs(y);
            edges[i][j] = e > 255 ? 255 : e;
            if (e > most)
                most = e;
        }
    printf("%d %016llx\n", most, digest(edges, sizeof edges));
}
