/* Private to room steer: measure whether balancing pays. Now and then a loop returns to equal shares and
 * measures a sweep. If equal shares are faster, the loop keeps them for a while. */
#ifndef KL_STEER_PROOF_H
#define KL_STEER_PROOF_H

#include "steer/steer.h"

typedef struct kl_proof { /* zeroed: nothing is proved yet */
    bool tries;           /* a try is under way, with equal shares */
    bool equal;           /* shares were equal in the last round */
    uint32_t rounds;      /* whole rounds since equal shares began or ended */
    double executions,
        /* sweeps since equal shares began or ended, and their seconds; older rounds count less */
        elapsed_s;
    double here_s;        /* seconds of a sweep before equal shares were tried */
    double equal_s;       /* seconds of a sweep in the last try; 0: not known */
    double since_s;       /* time at which the last try, or the rest after it, ended */
    double round_s;       /* seconds of the last round */
    uint32_t passed, won; /* consecutive tries that equal shares lost, and won */
    double rest_s,
        rests_until_s; /* seconds of the last rest, and its end; rest_s 0: equal shares lost a try since */
    double rested_s;   /* seconds of a sweep at the beginning of the rest */
} kl_proof;

typedef enum kl_proved { KL_PROVED_NOTHING, KL_BALANCING_PAYS, KL_EQUAL_IS_BETTER } kl_proved;

/* Add a round. elapsed_s excludes the time for moving, which the account counts. `equal`: shares were equal
 * in this round. */
void kl_proof_round(kl_proof *proof, double now_s, double executions, double elapsed_s, bool equal);
/* Return whether sweeps take longer than in the last try of equal shares. */
bool kl_proof_doubts(const kl_proof *proof);
/* Return whether a try that costs cost_s is due. Tries take less than a hundredth of the time, or a twentieth
 * while sweeps are slower than in the last try. At least six rounds lie between two tries. Each try that
 * equal shares lose doubles the time to the next try, up to 16 times. */
bool kl_proof_due(const kl_proof *proof, double now_s, double cost_s, double round_s);
void kl_proof_begin(kl_proof *proof);
/* Return whether equal shares are better, by the measurements of this try. */
kl_proved kl_proof_verdict(const kl_proof *proof);
/* End a try. If equal shares are better, a rest begins. The rest is three times as long as this finding took,
 * or twice as long as the rest before, but at most 100 s or 50 rounds. */
void kl_proof_end(kl_proof *proof, double now_s, kl_proved proved);
/* Return whether balancing rests. The rest ends early if a sweep takes 1.2 times as long as at the rest's
 * beginning. */
bool kl_proof_rests(const kl_proof *proof, double now_s);
double kl_proof_sweep_s(const kl_proof *proof); /* seconds since equal shares began or ended; 0: not known */

#endif
