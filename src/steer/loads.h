/* Private to the folder steer: the speeds of the ranks, and how long these speeds last. Most of
 * the time, speeds are in one of a few states. In one state no rank is disturbed; in another, a program runs
 * on one rank's core. A state that comes back is recognised, and its earlier durations tell how long it will
 * last. */
#ifndef KL_STEER_LOADS_H
#define KL_STEER_LOADS_H

#include "steer/steer.h"

enum { KL_STATES = 4, KL_VISITS = 32 };

typedef struct kl_state {
    double *speed;  /* speed[r]: speed of rank r relative to the mean speed, which is 1 */
    double level;   /* number of iterations of mean cost that a rank of speed 1 does per second */
    double lasts_s; /* mean seconds for which the state lasted; 0: it has never ended */
    /* ended: number of times that the state ended; rounds: number of rounds in the state */
    uint64_t ended, rounds;
    uint64_t seen; /* number of the last round in this state of speeds; 0: this entry is free */
} kl_state;

typedef struct kl_visit {
    uint32_t state;
    double stayed_s;
} kl_visit;

typedef struct kl_loads {
    uint32_t ranks;
    uint64_t round;
    kl_trend *trends;
    double *raw;       /* work per second of each rank in its last measurement */
    double *speed;     /* speed of each rank relative to the mean, filtered from the measurements */
    double mean_speed; /* mean of all ranks' work per second */
    /* rate that is assumed for a rank that was never measured: the mean of the rates that were measured
     * first */
    double guess;
    double noise; /* mean relative difference between measured and estimated speeds */
    kl_state states[KL_STATES];
    uint32_t here;
    double begun_s; /* time at which the present state began */
    double dwell_s; /* mean duration in seconds of the states that ended last */
    uint64_t dwells;
    uint32_t unsettled; /* number of rounds for which speeds have been changing to another state */
    double departed_s;  /* time at which this change to another state began */
    /* seconds of this change that do not yet count for any state */
    double pending_s;
    bool arrived;               /* true: another state began in this round */
    kl_visit visits[KL_VISITS]; /* states that were visited since the last move, oldest first */
    uint32_t visit_count;
} kl_loads;

/* Error: KILTER_ERR_MEMORY. Call kl_loads_free() even then. */
kilter_status kl_loads_init(kl_loads *loads, uint32_t ranks);
void kl_loads_free(kl_loads *loads);
/* Add the work per second of each rank in a round, or 0 if the rank was not measured. Return false if no rank
 * was ever measured. */
bool kl_loads_measure(kl_loads *loads, const double *rates);
/* Find the state to which the last measured speeds belong. The speeds were measured in the step_s seconds
 * before now_s. */
void kl_loads_follow(kl_loads *loads, double now_s, double step_s);
void kl_loads_moved(kl_loads *loads); /* Forget which states were visited, because rows have moved. */
/* Return the present speeds: the mean speeds of the state, or the measured speeds while they change to
 * another state. */
const double *kl_loads_present(const kl_loads *loads);
/* Return the mean duration of the present state of speeds in seconds. If this state has never ended, return
 * the mean duration of the other states. Return 0 if too few states have ended for this mean. */
double kl_loads_lasts_s(const kl_loads *loads);
double kl_loads_lasted_s(const kl_loads *loads, double now_s);
/* Return the relative error of the present speeds. Smaller differences may be noise. */
double kl_loads_uncertain(const kl_loads *loads);

#endif
