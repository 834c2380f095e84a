/* Measure how much tasks differ in size: a histogram of the logarithm of their sizes. */
#include <math.h>

#include "measure/measure.h"

static const double PER_DOUBLING = 4; /* number of bins from a size to twice this size */
/* Put size 1 in the middle of a bin. At a border between two bins, small variations would divide equal tasks
 * between both. */
static const double MIDDLE = KL_SIZE_BINS / 2.0 + 0.5;

static uint32_t bin_of(double size) {
    double bin = floor(PER_DOUBLING * log2(size) + MIDDLE);
    return bin < 0 ? 0 : bin < KL_SIZE_BINS ? (uint32_t)bin : KL_SIZE_BINS - 1;
}

static void add(kl_sizes *sizes, double size, double count) {
    if (!(size >= 0) || !isfinite(size) || !(count > 0))
        return;
    sizes->tasks[bin_of(size)] += count;
    sizes->count += count;
}

void kl_sizes_add(kl_sizes *sizes, const kl_stat *unit_s, double rate) {
    double count = (double)unit_s->count;
    if (!(rate > 0) || count == 0)
        return;
    if (count < 3) {
        add(sizes, unit_s->min * rate, count / 2);
        add(sizes, unit_s->max * rate, count / 2);
        return;
    }
    double others_s = (unit_s->mean * count - unit_s->min - unit_s->max) / (count - 2);
    add(sizes, unit_s->min * rate, 1);
    add(sizes, unit_s->max * rate, 1);
    add(sizes, fmin(fmax(others_s, unit_s->min), unit_s->max) * rate, count - 2);
}

double kl_sizes_bin(uint32_t bin, double *most) {
    double least = exp2((bin - MIDDLE) / PER_DOUBLING);
    *most = least * exp2(1 / PER_DOUBLING);
    return least;
}
