/* A cost as a straight line through what was seen of it. */
#include <math.h>

#include "measure/measure.h"

static const double KEPT = 0.8; /* of a reading's weight, with each that follows */
/* Readings whose numbers differ by less than this part of their mean tell a level, no slope. */
static const double ALIKE = 0.02;

/* number: above 0. Means and sums of a weighted sample, one more value at a time (West 1979). */
void kl_line_add(kl_line *line, double number, double seconds) {
    line->least_x = line->count ? fmin(line->least_x, number) : number;
    line->most_x = line->count ? fmax(line->most_x, number) : number;
    line->count++;
    line->weight = KEPT * line->weight + 1;
    double from_x = number - line->x, from_y = seconds - line->y;
    line->x += from_x / line->weight;
    line->y += from_y / line->weight;
    line->spread_x = KEPT * line->spread_x + from_x * (number - line->x);
    line->with_y = KEPT * line->with_y + from_x * (seconds - line->y);
}

kl_linear kl_line_fit(const kl_line *line) {
    if (line->count == 0)
        return (kl_linear){0, 0};
    double squares = line->spread_x + line->weight * line->x * line->x;
    kl_linear proportional = {0, (line->with_y + line->weight * line->x * line->y) / squares};
    if (line->spread_x < line->weight * (ALIKE * line->x) * (ALIKE * line->x))
        return proportional;
    double slope = line->with_y / line->spread_x;
    if (!(slope > 0))
        return (kl_linear){line->y, 0};
    return slope < proportional.per_unit_s ? (kl_linear){line->y - slope * line->x, slope} : proportional;
}
