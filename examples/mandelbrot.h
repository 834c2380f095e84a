/* The Mandelbrot set on a grid: the points c for which the iteration z → z² + c stays near 0. Rows through
 * the middle of the set take a hundred times as long as rows at its edges. */
#ifndef MANDELBROT_H
#define MANDELBROT_H

#include <stdint.h>

enum {
    GRID = 1200,
    MOST = 2000
}; /* GRID: number of rows, and of columns. MOST: number of iterations after which a point counts as inside */

/* Return the number of points of this row that are in the set. */
static inline uint64_t points_inside(uint64_t row) {
    uint64_t inside = 0;
    for (int column = 0; column < GRID; column++) {
        double a = -2.25 + 3.0 * column / GRID, b = -1.5 + 3.0 * (double)row / GRID, x = 0, y = 0;
        int i = 0;
        while (i < MOST && x * x + y * y <= 4) {
            double next = x * x - y * y + a;
            y = 2 * x * y + b;
            x = next;
            i++;
        }
        inside += i == MOST;
    }
    return inside;
}

#endif
