/* Try equal shares now and then, because forecasts may be wrong. Rows may be slow on some ranks only, or
 * speeds may change faster than rows can follow. Trials are rare, because balancing gains nothing during a
 * trial. */
#include "steer/proof.h"

#include <math.h>

enum {
    HERE_ROUNDS = 6, /* at least this number of rounds lies between two trials */
    /* a trial takes at least TRY_ROUNDS rounds; equal shares can win only after SURE_ROUNDS rounds */
    TRY_ROUNDS = 2,
    SURE_ROUNDS = 6,
    MOST_PASSED = 4
};
/* The pause between two trials is at least PART times the cost of a trial. If sweeps were faster when shares
 * were last equal, it is at least DOUBTFUL times this cost. */
static const double PART = 100, DOUBTFUL = 20;
/* weight of earlier rounds in the mean: with each later round, a round's weight is multiplied by this */
static const double KEPT = 0.8;
/* equal shares win a trial if a sweep takes less than this fraction of its time with the other shares */
static const double BETTER = 0.98;
/* A rest is a pause of balancing. FIRST_REST: least length, in multiples of the time since the previous trial
 * or rest; NEXT_REST: least length, in multiples of the last rest; LONGEST_REST_S, LONGEST_REST_ROUNDS:
 * greatest length in seconds or rounds, whichever is longer. */
static const double FIRST_REST = 3, NEXT_REST = 2, LONGEST_REST_S = 100, LONGEST_REST_ROUNDS = 50;
/* a trial's result is outdated if sweeps take more than this multiple of the time that they took at the
 * end of the trial */
static const double CHANGED = 1.2;

void kl_proof_round(kl_proof *p, double now_s, double executions, double elapsed_s, bool equal) {
    if (equal != p->equal) {
        p->equal = equal;
        p->rounds = 0;
        p->executions = p->elapsed_s = 0;
        return;
    }
    p->round_s = elapsed_s;
    p->rounds++;
    p->executions = KEPT * p->executions + executions;
    p->elapsed_s = KEPT * p->elapsed_s + elapsed_s;
    if (equal && executions > 0)
        p->equal_s = kl_proof_sweep_s(p);
    if (kl_proof_rests(p, now_s) && kl_proof_sweep_s(p) > CHANGED * p->rested_s) {
        p->rests_until_s = 0;
        p->since_s = now_s;
    }
}

double kl_proof_sweep_s(const kl_proof *p) {
    return p->executions > 0 ? p->elapsed_s / p->executions : 0;
}

bool kl_proof_doubts(const kl_proof *p) {
    return p->equal_s > 0 && BETTER * kl_proof_sweep_s(p) > p->equal_s;
}

bool kl_proof_due(const kl_proof *p, double now_s, double cost_s, double round_s) {
    double pause_s = fmax((kl_proof_doubts(p) ? DOUBTFUL : PART) * cost_s, HERE_ROUNDS * round_s);
    return !p->tries && !p->equal && p->rounds >= HERE_ROUNDS && p->executions > 0 &&
           now_s - p->since_s >= pause_s * (double)(1 << p->passed);
}

void kl_proof_begin(kl_proof *p) {
    p->here_s = kl_proof_sweep_s(p);
    p->tries = true;
}

kl_proved kl_proof_verdict(const kl_proof *p) {
    double equal_s = kl_proof_sweep_s(p);
    if (!p->tries || !p->equal || p->rounds < TRY_ROUNDS || equal_s == 0)
        return KL_PROVED_NOTHING;
    if (equal_s >= BETTER * p->here_s)
        return KL_BALANCING_PAYS;
    return p->rounds < SURE_ROUNDS ? KL_PROVED_NOTHING : KL_EQUAL_IS_BETTER;
}

void kl_proof_end(kl_proof *p, double now_s, kl_proved proved) {
    p->tries = false;
    if (proved == KL_BALANCING_PAYS) {
        p->rest_s = p->won = 0;
        p->passed += p->passed < MOST_PASSED;
    } else if (proved == KL_EQUAL_IS_BETTER) {
        p->passed = 0;
        p->won++;
    }
    if (proved == KL_EQUAL_IS_BETTER && p->won > 1) {
        double longer_s = fmax(FIRST_REST * (now_s - p->since_s), NEXT_REST * p->rest_s);
        p->rest_s = fmin(longer_s, fmax(LONGEST_REST_S, LONGEST_REST_ROUNDS * p->round_s));
        p->rested_s = kl_proof_sweep_s(p);
        p->since_s = p->rests_until_s = now_s + p->rest_s;
    } else
        p->since_s = now_s;
}

bool kl_proof_rests(const kl_proof *p, double now_s) {
    return now_s < p->rests_until_s;
}
