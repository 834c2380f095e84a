/* How fast the ranks are, and how long that lasts. Within room steer.
 *
 * Speeds are, most of the time, in one of a few states: nobody disturbed, somebody on rank 2, …. States are
 * known again when they come back, and with them how long they lasted before. */
#ifndef KL_STEER_LOADS_H
#define KL_STEER_LOADS_H

#include "steer/steer.h"

enum { KL_STATES = 4, KL_VISITS = 32 };

typedef struct kl_state {
    double *speed;  /* of each rank, mean 1 */
    double level;   /* work per second of a speed of 1 */
    double lasts_s; /* mean of the last times it ended; 0: it never did */
    uint64_t ended, rounds;
    uint64_t seen; /* last, round; 0: no state */
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
    double mean_speed; /* work per second of a speed of 1 */
    double guess;      /* of ranks never measured: the mean of those that were measured first */
    double noise;      /* of what is measured around what is believed, relative, mean */
    kl_state states[KL_STATES];
    uint32_t here;
    double begun_s; /* this state */
    double dwell_s; /* of all states that ended, mean of the last */
    uint64_t dwells;
    uint32_t unsettled;         /* rounds that speeds have been on their way to another one */
    double departed_s;          /* and since then */
    double pending_s;           /* of it, since the last movement */
    bool arrived;               /* in another state, this round */
    kl_visit visits[KL_VISITS]; /* since the last movement; the last is the present one */
    uint32_t visit_count;
} kl_loads;

kilter_status kl_loads_init(kl_loads *loads, uint32_t ranks); /* after a failure, too: kl_loads_free() */
void kl_loads_free(kl_loads *loads);
/* A round's work per second, 0: not measured. @return false: nothing is known of anybody yet */
bool kl_loads_measure(kl_loads *loads, const double *rates);
/* What was measured held for the `step_s` before now_s: which state is that? */
void kl_loads_follow(kl_loads *loads, double now_s, double step_s);
void kl_loads_moved(kl_loads *loads); /* visits are counted anew */
/* The speeds as they are: the mean of the state, or what they are on the way to another. */
const double *kl_loads_present(const kl_loads *loads);
/* So long states like the present one last: as it did before, or as others did when it never ended and
 * several of those have. 0: not known. */
double kl_loads_lasts_s(const kl_loads *loads);
double kl_loads_lasted_s(const kl_loads *loads, double now_s);
/* Below it a difference of speeds may be noise. */
double kl_loads_uncertain(const kl_loads *loads);

#endif
