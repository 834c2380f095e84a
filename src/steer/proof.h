/* Measure whether balancing pays. Now and then a loop goes back to equal shares and measures a sweep. If
 * equal shares are faster, it keeps them for a while. Within room steer. */
#ifndef KL_STEER_PROOF_H
#define KL_STEER_PROOF_H

#include "steer/steer.h"

typedef struct kl_proof {         /* zeroed: nothing is proved yet */
    bool tries;                   /* a try is under way, with equal shares */
    bool equal;                   /* shares were equal in the last round */
    uint32_t rounds;              /* whole rounds since equal shares began or ended */
    double executions, elapsed_s; /* sweeps and seconds in these rounds; old ones count less and less */
    double here_s;                /* seconds of a sweep before the try */
    double equal_s;               /* seconds of a sweep in the last try; 0: not known */
    double since_s;               /* end of the last try, or of the rest after it */
    double round_s;               /* seconds of the last round */
    uint32_t passed, won;         /* tries in a row that equal shares lost, and won */
    double rest_s,
        rests_until_s; /* length and end of the last rest; rest_s 0: equal shares lost a try since */
    double rested_s;   /* seconds of a sweep when the rest began */
} kl_proof;

typedef enum kl_proved { KL_PROVED_NOTHING, KL_BALANCING_PAYS, KL_EQUAL_IS_BETTER } kl_proved;

/* Add a round. elapsed_s is without the time for moving, which the account counts. `equal`: shares were
 * equal. */
void kl_proof_round(kl_proof *proof, double now_s, double executions, double elapsed_s, bool equal);
/* Do sweeps take longer than in the last try of equal shares? */
bool kl_proof_doubts(const kl_proof *proof);
/* Is a try that costs cost_s due? Tries take less than a hundredth of the time, or a twentieth while sweeps
 * are slower than in the last try. At least six rounds lie between two tries. Each try that equal shares lose
 * doubles the time to the next one, up to 16 times. */
bool kl_proof_due(const kl_proof *proof, double now_s, double cost_s, double round_s);
void kl_proof_begin(kl_proof *proof);
/* Are equal shares better, by the measurements of this try? */
kl_proved kl_proof_verdict(const kl_proof *proof);
/* End a try. If equal shares are better, a rest begins. It is three times as long as the time to find this
 * out, or twice the rest before, but at most 100 s or 50 rounds. */
void kl_proof_end(kl_proof *proof, double now_s, kl_proved proved);
/* Is there a rest? It ends early if a sweep takes 1.2 times as long as at its beginning. */
bool kl_proof_rests(const kl_proof *proof, double now_s);
double kl_proof_sweep_s(const kl_proof *proof); /* since equal shares began or ended; 0: not known */

#endif
