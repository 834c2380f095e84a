/* Compute the area of the Mandelbrot set with OpenMP; see ../07_mandelbrot.c. */
#include <inttypes.h>
#include <stdio.h>

#include "examples/mandelbrot.h"

int main(void) {
    uint64_t inside = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : inside)
    for (uint64_t row = 0; row < GRID; row++)
        inside += points_inside(row);
    printf("%" PRIu64 " points inside, area %.4f\n", inside, 9.0 * (double)inside / GRID / GRID);
    return 0;
}
