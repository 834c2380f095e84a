/* How fast the ranks are, and how long this lasts. Within room steer.
 *
 * Most of the time, speeds are in one of a few states, such as: no rank is disturbed, or another program runs
 * on one rank's core. A state that comes back is recognised. Its earlier durations tell how long it will
 * last. */
#ifndef KL_STEER_LOADS_H
#define KL_STEER_LOADS_H

#include "steer/steer.h"

enum { KL_STATES = 4, KL_VISITS = 32 };

typedef struct kl_state {
    double *speed;  /* of each rank, mean 1 */
    double level;   /* work per second at speed 1 */
    double lasts_s; /* mean seconds that the state lasted; 0: it never ended */
    uint64_t ended, rounds;
    uint64_t seen; /* last round in this state; 0: this place is free */
} kl_state;

typedef struct kl_visit {
    uint32_t state;
    double stayed_s;
} kl_visit;

typedef struct kl_loads {
    uint32_t ranks;
    uint64_t round;
    kl_trend *trends;
    double *raw;       /* work per second, measured last */
    double *speed;     /* filtered, mean 1 */
    double mean_speed; /* work per second at speed 1 */
    double guess;      /* rate of ranks never measured: the mean of the first measured ones */
    double noise;      /* mean relative difference between measured and estimated speeds */
    kl_state states[KL_STATES];
    uint32_t here;
    double begun_s; /* when this state began */
    double dwell_s; /* mean seconds of the last states that ended */
    uint64_t dwells;
    uint32_t unsettled;         /* rounds in which speeds were changing to another state */
    double departed_s;          /* when this change began */
    double pending_s;           /* seconds of this change since the last movement */
    bool arrived;               /* another state began in this round */
    kl_visit visits[KL_VISITS]; /* states since the last movement; the last one is the present state */
    uint32_t visit_count;
} kl_loads;

kilter_status kl_loads_init(kl_loads *loads, uint32_t ranks); /* call kl_loads_free() even after a failure */
void kl_loads_free(kl_loads *loads);
/* Add the ranks' work per second in a round; 0: not measured. @return false: no rank was measured yet */
bool kl_loads_measure(kl_loads *loads, const double *rates);
/* Find the state of the speeds that were measured over the step_s seconds before now_s. */
void kl_loads_follow(kl_loads *loads, double now_s, double step_s);
void kl_loads_moved(kl_loads *loads); /* rows moved: forget the visits */
/* Return the present speeds: the mean of the state, or those measured during a change. */
const double *kl_loads_present(const kl_loads *loads);
/* Return how long the present state usually lasts. If it never ended, this is the mean of other states, if
 * several of them did. 0: not known. */
double kl_loads_lasts_s(const kl_loads *loads);
double kl_loads_lasted_s(const kl_loads *loads, double now_s);
/* Return the difference of speeds below which it may be noise. */
double kl_loads_uncertain(const kl_loads *loads);

#endif
