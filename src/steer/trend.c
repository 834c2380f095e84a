/* The trend filter, which decides how soon an estimated rate follows a change of the measured rate. */
#include <math.h>

#include "steer/steer.h"

static const double STEADY = 0.05; /* relative changes that are smaller than this are noise */
static const double STEADY_H = 0.75;
static const double DOWN_H[] = {1, 0.25, 0}, UP_H[] = {1, 0.5, 0.25, 0};
enum { DOWN_STATES = sizeof DOWN_H / sizeof *DOWN_H, UP_STATES = sizeof UP_H / sizeof *UP_H };

static double h_of(const kl_trend *trend) {
    if (trend->way < 0)
        return DOWN_H[trend->seen < DOWN_STATES ? trend->seen - 1 : DOWN_STATES - 1];
    return UP_H[trend->seen < UP_STATES ? trend->seen - 1 : UP_STATES - 1];
}

double kl_trend_next(kl_trend *trend, double rate) {
    if (!(rate > 0) || !isfinite(rate))
        return trend->rate;
    if (trend->rate == 0) {
        *trend = (kl_trend){.rate = rate};
        return rate;
    }
    double change = rate - trend->rate, h = STEADY_H;
    if (fabs(change) <= STEADY * trend->rate) {
        trend->way = 0;
        trend->seen = 0;
    } else {
        int8_t way = change < 0 ? -1 : 1;
        trend->seen = way != trend->way ? 1 : trend->seen < UINT8_MAX ? trend->seen + 1 : trend->seen;
        trend->way = way;
        h = h_of(trend);
    }
    trend->rate = (1 - h) * rate + h * trend->rate;
    return trend->rate;
}

bool kl_trend_moves(const kl_trend *trend) {
    return trend->way != 0 && h_of(trend) > 0;
}
