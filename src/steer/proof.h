/* Whether balancing pays, by measurement: now and then a loop goes back to equal shares, to see what an
 * sweep takes with them, and stays there for a while if that is less. Within room steer. */
#ifndef KL_STEER_PROOF_H
#define KL_STEER_PROOF_H

#include "steer/steer.h"

typedef struct kl_proof {         /* zeroed: nothing is proved yet */
    bool tries;                   /* equal shares are in force, to be measured */
    bool equal;                   /* they were in the last round */
    uint32_t rounds;              /* since they came or went, without the one in which that was */
    double executions, elapsed_s; /* in them; of what was long ago less and less */
    double here_s;                /* a sweep took before the try */
    double equal_s;               /* and in the last round with equal shares; 0: not known */
    double since_s;               /* when the last try ended, or the rest after it */
    double round_s;               /* the last round's time */
    uint32_t passed, won;         /* tries in a row that equal shares lost, and won */
    double rest_s, rests_until_s; /* the last rest; rest_s 0: equal shares have lost a try since */
    double rested_s;              /* a sweep took when it began */
} kl_proof;

typedef enum kl_proved { KL_PROVED_NOTHING, KL_BALANCING_PAYS, KL_EQUAL_IS_BETTER } kl_proved;

/* A round is over, with equal shares or others; its time without moving, which the account counts. */
void kl_proof_round(kl_proof *proof, double now_s, double executions, double elapsed_s, bool equal);
/* Sweeps take longer than the last ones with equal shares did. */
bool kl_proof_doubts(const kl_proof *proof);
/* Is it time for a try that costs so much? Less than a hundredth of the time goes to tries, or a twentieth
 * while there are doubts; and six rounds at least lie between two. Each try that equal shares lose doubles
 * the time to the next one, up to 16 times. */
bool kl_proof_due(const kl_proof *proof, double now_s, double cost_s, double round_s);
void kl_proof_begin(kl_proof *proof);
/* In a try: are other shares better than equal ones? */
kl_proved kl_proof_verdict(const kl_proof *proof);
/* If equal shares are better, there is a rest: three times as long as it took to find that out, or twice the
 * rest before, and at most 100 s or 50 rounds. */
void kl_proof_end(kl_proof *proof, double now_s, kl_proved proved);
/* Equal shares are to stay. That ends early if sweeps take 1.2 times as long as when it began. */
bool kl_proof_rests(const kl_proof *proof, double now_s);
double kl_proof_sweep_s(const kl_proof *proof); /* since equal shares came or went; 0: not known */

#endif
