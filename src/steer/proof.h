/* Private to the folder steer: measure whether balancing pays. Now and then, a loop returns to equal shares
 * and measures its sweeps. If equal shares are faster, the loop keeps them for a while, which is called a
 * rest. */
#ifndef KL_STEER_PROOF_H
#define KL_STEER_PROOF_H

#include "steer/steer.h"

typedef struct kl_proof { /* The state of trials of equal shares. All zero: nothing was tried yet. */
    bool tries;           /* true: a trial of equal shares is under way */
    bool equal;           /* true: the shares were equal in the last round */
    uint32_t rounds;      /* number of whole rounds since shares became equal or unequal */
    /* executions: number of sweeps since shares became equal or unequal; elapsed_s: seconds of these sweeps;
     * older rounds have less weight in both */
    double executions, elapsed_s;
    double here_s;  /* seconds of a sweep before the trial */
    double equal_s; /* seconds of a sweep when shares were last equal; 0: not known */
    double since_s; /* time at which the last trial, or the rest (pause) after this trial, ended */
    double round_s; /* seconds of the last round */
    /* passed: number of trials in a row that equal shares have lost; won: number of trials in a row that
     * equal shares have won */
    uint32_t passed, won;
    /* rest_s: seconds of the last rest of balancing; 0 after a trial in which equal shares were slower.
     * rests_until_s: time at which the rest ends */
    double rest_s, rests_until_s;
    double rested_s; /* seconds of a sweep when the rest began */
} kl_proof;

typedef enum kl_proved { KL_PROVED_NOTHING, KL_BALANCING_PAYS, KL_EQUAL_IS_BETTER } kl_proved;

/* Add a round. elapsed_s: seconds of the round, without the seconds of moving rows, which kl_account counts;
 * equal: true if shares were equal in this round. */
void kl_proof_round(kl_proof *proof, double now_s, double executions, double elapsed_s, bool equal);
/* Return whether sweeps now take longer than they took with equal shares when these were last used. */
bool kl_proof_doubts(const kl_proof *proof);
/* Return whether a trial that costs cost_s is due. Trials may take a hundredth of the time, or a twentieth
 * while kl_proof_doubts() is true. At least six rounds lie between two trials. Each trial that equal shares
 * lose doubles the pause before the next trial, up to 16 times the first pause. */
bool kl_proof_due(const kl_proof *proof, double now_s, double cost_s, double round_s);
void kl_proof_begin(kl_proof *proof);
/* Return the result of the trial so far; KL_PROVED_NOTHING: it is not known yet. */
kl_proved kl_proof_verdict(const kl_proof *proof);
/* End a trial. If equal shares have won two trials in a row, balancing rests (pauses). The rest lasts three
 * times the seconds since the previous trial or rest ended, or twice the last rest, whichever is longer. It
 * lasts at most 100 s, or 50 rounds if these take longer. */
void kl_proof_end(kl_proof *proof, double now_s, kl_proved proved);
/* Return whether balancing rests. A rest ends early if a sweep takes 1.2 times as long as at the beginning
 * of the rest. */
bool kl_proof_rests(const kl_proof *proof, double now_s);
/* Return the seconds of a sweep with the present shares, measured since shares became equal or unequal; 0:
 * not known. */
double kl_proof_sweep_s(const kl_proof *proof);

#endif
