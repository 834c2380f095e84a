/* Try equal shares now and then, to measure whether balancing pays. */
#include <stdio.h>

#include "steer/parts.h"

static const double TRY_TAKES = 3; /* expected number of rounds with equal shares in a trial */

/* Return the expected cost of a trial in seconds: rows move to equal shares and back, and sweeps may be
 * slower during the trial. */
static double try_s(const kl_steer *s) {
    const kl_outlook *o = &s->outlook;
    double loss = 1 - kl_time_with(o, o->here, o->loads.raw) / kl_time_with(o, o->equal, o->loads.raw);
    bool expected = !kl_proof_doubts(&s->trial.proof) && loss > 0;
    return 2 * kl_move_s(o, o->equal) + (expected ? TRY_TAKES * o->round_s * loss * kl_share_of_time(o) : 0);
}

void kl_trial_begin(kl_steer *s, kl_steer_plan *plan) {
    kl_outlook *o = &s->outlook;
    double cost_s = try_s(s);
    if (plan->move || o->options.scattered || s->mean.lag_s > 0 || kl_volume(o, o->equal) == 0 ||
        o->now_s < s->outcome.account.rests_until_s ||
        !kl_proof_due(&s->trial.proof, o->now_s, cost_s, o->round_s))
        return;
    kl_proof_begin(&s->trial.proof);
    kl_put(o, s->trial.kept, o->here);
    s->proposed = o->equal;
    plan->move = true;
    plan->now_s = kl_proof_sweep_s(&s->trial.proof);
    plan->then_s = kl_sweep_s(o, o->equal);
    plan->judgement = (kl_judgement){.verdict = KL_MOVE_HINDSIGHT, .cost_s = cost_s};
    snprintf(plan->judgement.reason, KL_REASON_BYTES,
             "equal shares for some rounds, to measure sweeps; with the present shares, a sweep takes %s",
             kl_say_s(plan->now_s).text);
}

static void end_try(kl_steer *s, kl_proved proved, kl_steer_plan *plan) {
    kl_outlook *o = &s->outlook;
    kl_judgement *j = &plan->judgement;
    double equal_s = kl_proof_sweep_s(&s->trial.proof), kept_s = s->trial.proof.here_s;
    kl_proof_end(&s->trial.proof, o->now_s, proved);
    plan->now_s = plan->then_s = equal_s;
    if (proved == KL_EQUAL_IS_BETTER) {
        kl_steer_stay(s, KL_STAY_RESTING, plan);
        kl_account_rest(&s->outcome.account, o->now_s, s->outcome.unit_s);
        snprintf(j->reason, KL_REASON_BYTES,
                 "balancing rests for %s: a sweep takes %s with equal shares, and took %s with other shares",
                 kl_say_s(kl_larger(s->outcome.account.rest_s, s->trial.proof.rests_until_s - o->now_s)).text,
                 kl_say_s(equal_s).text, kl_say_s(kept_s).text);
        return;
    }
    s->proposed = s->trial.kept;
    plan->move = true;
    plan->then_s = kept_s;
    *j = (kl_judgement){.verdict = KL_MOVE_HINDSIGHT, .cost_s = kl_move_s(o, s->trial.kept)};
    snprintf(j->reason, KL_REASON_BYTES,
             "back to the previous shares: a sweep takes %s, and took %s with equal shares",
             kl_say_s(kept_s).text, kl_say_s(equal_s).text);
}

bool kl_trial_keeps(kl_steer *s, kl_steer_plan *plan) {
    kl_outlook *o = &s->outlook;
    if (kl_proof_rests(&s->trial.proof, o->now_s) && kl_volume(o, o->equal) == 0) {
        kl_steer_stay(s, KL_STAY_RESTING, plan);
        plan->now_s = plan->then_s = kl_proof_sweep_s(&s->trial.proof);
        snprintf(plan->judgement.reason, KL_REASON_BYTES,
                 "balancing rests for another %s: a trial found equal shares better",
                 kl_say_s(s->trial.proof.rests_until_s - s->outlook.now_s).text);
        return true;
    }
    if (!s->trial.proof.tries)
        return false;
    if (kl_volume(o, o->equal) > 0) { /* shares are not equal in the trial, because the move to equal shares
                                         was refused */
        kl_proof_end(&s->trial.proof, o->now_s, KL_PROVED_NOTHING);
        return false;
    }
    kl_proved proved = kl_proof_verdict(&s->trial.proof);
    if (proved != KL_PROVED_NOTHING) {
        end_try(s, proved, plan);
        return true;
    }
    kl_steer_stay(s, KL_STAY_WAITING, plan);
    plan->now_s = plan->then_s = kl_sweep_s(o, o->here);
    snprintf(plan->judgement.reason, KL_REASON_BYTES, "equal shares, to measure the time of a sweep");
    return true;
}
