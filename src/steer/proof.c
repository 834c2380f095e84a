/* Forecasts say what equal shares would take; they may be wrong, as when rows are dear because of where they
 * lie. So they are tried: rarely, as a try costs what is gained otherwise. */
#include "steer/proof.h"

#include <math.h>

enum {
    HERE_ROUNDS = 6, /* are measured before a try … */
    TRY_ROUNDS = 2,  /* … and in it */
    PAUSE_ROUNDS = 12,
    MOST_PASSED = 4
};
static const double PART = 100, DOUBTFUL = 10; /* of the time between two tries, a try may cost one */
static const double KEPT = 0.8;                /* of what was measured before, in each round */
static const double BETTER = 0.98;

void kl_proof_round(kl_proof *p, double executions, double elapsed_s, bool equal, bool came) {
    if (came) {
        p->rounds = 0;
        p->executions = p->elapsed_s = 0;
        return;
    }
    p->rounds++;
    p->executions = KEPT * p->executions + executions;
    p->elapsed_s = KEPT * p->elapsed_s + elapsed_s;
    if (equal && executions > 0)
        p->equal_s = elapsed_s / executions;
}

double kl_proof_execution_s(const kl_proof *p) {
    return p->executions > 0 ? p->elapsed_s / p->executions : 0;
}

bool kl_proof_due(const kl_proof *p, double now_s, double cost_s, double round_s) {
    bool doubtful = BETTER * kl_proof_execution_s(p) > p->equal_s;
    double pause_s = fmax((p->equal_s > 0 && doubtful ? DOUBTFUL : PART) * cost_s, PAUSE_ROUNDS * round_s);
    return !p->tries && p->rounds >= HERE_ROUNDS && p->executions > 0 &&
           now_s - p->since_s >= pause_s * (double)(1 << p->passed);
}

void kl_proof_begin(kl_proof *p) {
    p->here_s = kl_proof_execution_s(p);
    p->tries = true;
}

kl_proved kl_proof_verdict(const kl_proof *p) {
    double equal_s = kl_proof_execution_s(p);
    if (!p->tries || p->rounds < TRY_ROUNDS || equal_s == 0)
        return KL_PROVED_NOTHING;
    return equal_s < BETTER * p->here_s ? KL_EQUAL_IS_BETTER : KL_BALANCING_PAYS;
}

void kl_proof_end(kl_proof *p, double now_s, kl_proved proved) {
    p->tries = false;
    p->since_s = now_s;
    if (proved != KL_BALANCING_PAYS)
        p->passed = 0;
    else if (p->passed < MOST_PASSED)
        p->passed++;
}
