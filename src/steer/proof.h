/* Whether balancing pays, by measurement: now and then a loop goes back to equal shares, to see what an
 * execution takes with them. Within room steer. */
#ifndef KL_STEER_PROOF_H
#define KL_STEER_PROOF_H

#include "steer/steer.h"

typedef struct kl_proof {         /* zeroed: nothing is proved yet */
    bool tries;                   /* equal shares are in force, to be measured */
    uint32_t rounds;              /* with the present shares, without the one in which they came */
    double executions, elapsed_s; /* in them; of what was long ago less and less */
    double here_s;                /* an execution took before the try */
    double equal_s;               /* and in the last round with equal shares; 0: not known */
    double since_s;               /* when the last try ended */
    uint32_t passed;              /* tries in a row that equal shares lost */
} kl_proof;

typedef enum kl_proved { KL_PROVED_NOTHING, KL_BALANCING_PAYS, KL_EQUAL_IS_BETTER } kl_proved;

/* A round is over, with equal shares or others; came: with it came other ones. */
void kl_proof_round(kl_proof *proof, double executions, double elapsed_s, bool equal, bool came);
/* Is it time for a try that costs so much? Less than a hundredth of the time goes to tries, or a tenth while
 * executions take longer than the last ones with equal shares did; and at most one in 12 rounds. Each try
 * that equal shares lose doubles the time to the next one, up to 16 times. */
bool kl_proof_due(const kl_proof *proof, double now_s, double cost_s, double round_s);
void kl_proof_begin(kl_proof *proof);
/* In a try: are other shares better than equal ones? */
kl_proved kl_proof_verdict(const kl_proof *proof);
void kl_proof_end(kl_proof *proof, double now_s, kl_proved proved);
double kl_proof_execution_s(const kl_proof *proof); /* with the present shares; 0: not known */

#endif
