/* Fit a straight line, or a power, to readings. A reading has a number, such as a number of tasks, and its
 * cost in seconds. */
#include <math.h>

#include "measure/measure.h"

static const double KEPT =
    0.8; /* factor by which each new reading multiplies the weight of all older readings */
/* If the numbers of all readings differ by less than this part of their mean, they do not show a slope. */
static const double ALIKE = 0.02;
/* The numbers of the readings must differ by about this part of their mean to show the power with which the
 * cost grows. If the numbers differ less, the readings mostly show noise. */
static const double APART = 0.15;
static const double MOST_BEND = 1;
static const double LEAST_S = 1e-9; /* smallest cost in seconds whose logarithm is used */

double kl_curve_s(const kl_curve *c, double number) {
    return c->fixed_s + c->per_unit_s * number * (c->bend > 0 ? pow(number, c->bend) : 1);
}

/* Add a point to the running means and sums of a weighted sample (West 1979). */
static void add(struct kl_line_sums *t, double weight, double x, double y) {
    double from_x = x - t->x, from_y = y - t->y;
    t->x += from_x / weight;
    t->y += from_y / weight;
    t->spread_x = KEPT * t->spread_x + from_x * (x - t->x);
    t->with_y = KEPT * t->with_y + from_x * (y - t->y);
}

/* Add a reading, whose number is above 0. */
void kl_line_add(kl_line *line, double number, double seconds) {
    line->least_x = line->count ? fmin(line->least_x, number) : number;
    line->most_x = line->count ? fmax(line->most_x, number) : number;
    line->count++;
    line->weight = KEPT * line->weight + 1;
    add(&line->plain, line->weight, number, seconds);
    add(&line->logs, line->weight, log(number), log(fmax(seconds, LEAST_S)));
}

/* Fit a power to the logarithms of the readings. Add an artificial reading: the logarithm of its number
 * differs from the mean by APART, and its cost is proportional to its number. If the real numbers differ
 * little, this reading pulls the exponent towards 1. */
static kl_curve power(const struct kl_line_sums *logs) {
    double bend = (logs->with_y - logs->spread_x) / (logs->spread_x + APART * APART);
    bend = fmax(0, fmin(MOST_BEND, bend));
    return (kl_curve){0, exp(logs->y - (1 + bend) * logs->x), bend};
}

kl_curve kl_line_fit(const kl_line *line) {
    const struct kl_line_sums *t = &line->plain;
    if (line->count == 0)
        return (kl_curve){0, 0, 0};
    if (t->spread_x < line->weight * (ALIKE * t->x) * (ALIKE * t->x)) {
        double squares = t->spread_x + line->weight * t->x * t->x;
        return (kl_curve){0, (t->with_y + line->weight * t->x * t->y) / squares, 0};
    }
    double slope = t->with_y / t->spread_x;
    if (!(slope > 0))
        return (kl_curve){t->y, 0, 0};
    return slope * t->x < t->y ? (kl_curve){t->y - slope * t->x, slope, 0} : power(&line->logs);
}
