/* Means of values that differ by chance, and how much they differ. Other programs can only slow a run down.
 * So a mean is that of the run's fastest phase. The least value so far would be too small, because a value
 * may be small by chance. */
#include <math.h>

#include "keeper/keeper_private.h"

static const double CHANGE_WEIGHT = 0.2;
static const double FIRST_CHANGE = 0.03, LEAST_CHANGE = 0.005; /* FIRST_CHANGE: assumed if none is known */
/* mean change between two independent values of a normal distribution, divided by its standard deviation */
static const double CHANGE_OF_SIGMA = 1.128;
/* A value belongs to the phase of the mean if it differs from the mean by at most ALIKE standard deviations.
 * This limit is at least ALIKE_LEAST and at most ALIKE_MOST. */
static const double ALIKE = 2.5, ALIKE_LEAST = 0.1, ALIKE_MOST = 0.3;
/* A faster phase must last for some multiple of FASTER_S before it counts more than the phase of the mean. */
static const double FASTER_S = 5;

void kl_keeper_note_change(kl_keeper_change *c, double value, double now_s, double since_s) {
    bool first = c->noted_s < since_s || c->noted_s == 0;
    if (!first && now_s - c->noted_s < KL_KEEPER_APART_S)
        return;
    if (!first)
        c->usual = kl_keeper_smooth(c->usual > 0 ? c->usual : FIRST_CHANGE,
                                    fmin(fabs(value - c->last), KL_KEEPER_CHANGE_MOST), CHANGE_WEIGHT);
    c->last = value;
    c->noted_s = now_s;
}

double kl_keeper_sigma(const kl_keeper_change *c) {
    return fmax(c->usual > 0 ? c->usual : FIRST_CHANGE, LEAST_CHANGE) / CHANGE_OF_SIGMA;
}

double kl_keeper_alike(const kl_keeper_mean *m) {
    return fmin(ALIKE_MOST, fmax(ALIKE_LEAST, ALIKE * kl_keeper_sigma(&m->change)));
}

void kl_keeper_learn(kl_keeper_mean *m, double value, double passed_s) {
    double differs = m->value > 0 ? log(value / m->value) : 0, alike = kl_keeper_alike(m);
    if (differs > alike || (m->value > 0 && !(passed_s > 0)))
        return;
    m->counted_s *= differs < -alike ? exp(-passed_s / FASTER_S) : 1;
    m->counted_s += passed_s;
    m->value = m->counted_s > 0 ? kl_keeper_smooth(m->value, value, passed_s / m->counted_s) : value;
}
