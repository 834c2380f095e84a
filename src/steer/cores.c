/* Estimate which part of its core each rank gets. Another process may use a core for a moment only. So a
 * report of a smaller part counts only after such reports have come for some time. */
#include <math.h>
#include <string.h>

#include "steer/parts.h"

/* a report counts at once if it differs by no more than NOISE from the part in use; such small changes are
 * usual */
static const double NOISE = 0.1;
/* a report that the core is free counts at once; the core is free if the rank gets at least this part */
static const double FREE_PART = 0.95;
/* any other report counts only after such reports have come for this number of seconds */
static const double LASTING_S = 0.3;
/* if a part has changed by more than this, another load has begun */
static const double CHANGED = 0.2;

void kl_cores_init(kl_cores *c, uint32_t ranks) {
    for (uint32_t r = 0; r < ranks; r++)
        c->part[r] = c->then[r] = 1;
}

static void learn_one(kl_cores *c, uint32_t r, double step_s) {
    bool differs = fabs(c->seen[r] - c->part[r]) > NOISE && c->seen[r] < FREE_PART;
    c->differs_s[r] = differs ? c->differs_s[r] + step_s : 0;
    if (!differs || c->differs_s[r] >= LASTING_S)
        c->part[r] = c->seen[r];
}

void kl_cores_learn(kl_cores *c, uint32_t ranks, const kl_rank_report *reports, double step_s) {
    for (uint32_t r = 0; r < ranks; r++) {
        c->seen[r] = reports[r].share > 0 ? reports[r].share : 1;
        learn_one(c, r, step_s);
    }
}

bool kl_cores_differ(const kl_cores *c, uint32_t ranks, const double *parts) {
    double most = 0;
    for (uint32_t r = 0; r < ranks; r++)
        most = kl_larger(most, fabs(c->part[r] - parts[r]));
    return most > CHANGED;
}

bool kl_cores_changed(const kl_cores *c, uint32_t ranks) {
    return kl_cores_differ(c, ranks, c->then);
}

bool kl_cores_freed(const kl_cores *c, uint32_t ranks) {
    bool less = false;
    for (uint32_t r = 0; r < ranks; r++)
        less = less || c->part[r] < c->then[r] - NOISE;
    return !less;
}

void kl_cores_store(kl_cores *c, uint32_t ranks) {
    memcpy(c->then, c->part, ranks * sizeof *c->then);
}

double kl_cores_lasting_s(void) {
    return LASTING_S;
}
