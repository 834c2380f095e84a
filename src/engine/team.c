/* The master between two runs. It chooses the active workers and the policy of the next run. It also records
 * how many workers a later farm should use. */
#include <stdio.h>

#include "engine/master_private.h"

/* --- releasing resting workers --- */

/* Release the resting workers. The farm does this only if the user wants workers to leave when they are not
 * needed. */
static void release(kl_master *m) {
    for (size_t i = 0; i < m->members.count; i++)
        if (m->members.list[i].resting)
            kl_master_send_home(m, &m->members.list[i], "was released: fewer workers are enough");
}

/* --- choices and settings that take effect between runs --- */

kl_iteration kl_master_iteration_so_far(kl_master *m) {
    const kl_run_times times = {kl_now_s(&m->options.clock) - m->run.began_s, m->planning.master_s};
    const kl_use use = kl_master_use_so_far(m);
    kl_iteration it = kl_balance_iteration(&m->balance, &times, (double)m->shared.sent, &use);
    it.model.bytes *= use.tasks / (double)m->run.summary.tasks;
    return it;
}

kl_iteration kl_master_iteration(kl_master *m) {
    const kl_run_times times = {m->run.summary.elapsed_s, m->planning.master_s};
    return kl_balance_iteration(&m->balance, &times, (double)m->shared.sent, &m->use.last);
}

/* Record a decision. Its reason is the text m->state.decision. */
static void record(kl_master *m, kl_decision_kind kind, uint64_t count, kl_buffer *grounds) {
    kl_decision d = {.kind = kind, .subject = KL_SUBJECT_ALL, .count = count};
    snprintf(d.reason, sizeof d.reason, "%s", m->state.decision);
    kl_master_record_decision(m, kl_now_s(&m->options.clock), &d, grounds);
}

void kl_master_record_look(kl_master *m, uint32_t workers, kl_buffer *grounds) {
    record(m, KL_DECIDES_WORKERS, workers, grounds);
}

static void set_factor(kl_master *m, double factor) {
    kl_dealer_set_factor(m->balance.dealer, factor);
    double now = kl_dealer_factor(m->balance.dealer);
    if (now > 0)
        snprintf(m->state.decision, sizeof m->state.decision, "factor %.3g: set by hand", now);
    else
        snprintf(m->state.decision, sizeof m->state.decision, "factor %.3g: set by hand; policy %s has none",
                 factor, kl_policy_name(kl_dealer_policy(m->balance.dealer)));
    record(m, KL_DECIDES_FACTOR, 0, NULL);
}

kilter_status kl_master_tune(kl_master *m, const kl_tuning *tuning, kilter_error *error) {
    bool factor = tuning->set & KL_TUNE_FACTOR;
    if (factor && !(tuning->factor >= 0 && tuning->factor <= 1))
        return kl_fail(error, KILTER_ERR_RANGE,
                       "setting the factor to %g: a factor must be above 0 and at most 1", tuning->factor);
    if (tuning->set & KL_TUNE_POLICY)
        m->staff.pending.policy = tuning->policy;
    if (tuning->set & KL_TUNE_WORKERS)
        m->staff.pending.workers = tuning->workers;
    m->staff.pending.set |= tuning->set & (KL_TUNE_POLICY | KL_TUNE_WORKERS);
    /* if a new policy waits for the next run, the factor is meant for that policy, so it waits, too */
    if (factor && m->staff.pending.set & KL_TUNE_POLICY) {
        m->staff.pending.factor = tuning->factor;
        m->staff.pending.set |= KL_TUNE_FACTOR;
    } else if (factor) {
        set_factor(m, tuning->factor);
    }
    return KILTER_OK;
}

static kilter_status apply_pending(kl_master *m, kilter_error *error) {
    kl_tuning next = m->staff.pending;
    if (next.set & KL_TUNE_POLICY) {
        kilter_status status = kl_balance_set_policy(&m->balance, next.policy, 0, error);
        if (status != KILTER_OK)
            return status;
        snprintf(m->state.decision, sizeof m->state.decision, "policy %s: set by hand",
                 kl_policy_name(next.policy));
        record(m, KL_DECIDES_POLICY, 0, NULL);
    }
    if (next.set & KL_TUNE_FACTOR)
        set_factor(m, next.factor);
    if (next.set & KL_TUNE_WORKERS) {
        m->staff.seats = next.workers;
        m->staff.by_hand = next.workers > 0;
        m->staff.chooses = !m->staff.by_hand;
        m->staff.team = (kl_team){0};
        /* all workers are active until the farm chooses the number again */
        uint32_t workers = m->staff.by_hand ? m->staff.seats : m->members.ready;
        snprintf(m->state.decision, sizeof m->state.decision,
                 m->staff.by_hand ? "%u worker%s: set by hand"
                                  : "%u worker%s: the farm chooses the number again, as set by hand",
                 workers, workers == 1 ? "" : "s");
        record(m, KL_DECIDES_WORKERS, m->staff.seats, NULL);
    }
    m->staff.pending = (kl_tuning){0};
    return KILTER_OK;
}

/* Return the index n·T² of the best number n of workers. T is the time of a run divided by its number of
 * tasks. The best number is the number that the plan chooses or considers; if there is none, it is the
 * present number. */
static double best_index(const kl_iteration *it, const kl_team_plan *plan) {
    bool other = plan->verdict >= KL_TEAM_CHANGED || (plan->verdict == KL_TEAM_REFUSED && plan->seen > 0);
    double n = other ? plan->considered : it->workers;
    double task_s = (it->elapsed_s - (other ? plan->decision.gain_s : 0)) / (double)it->tasks;
    return n * task_s * task_s;
}

/* After a complete run, choose the number of active workers for the next run. Return whether the number
 * changes. */
static bool choose(kl_master *m) {
    kl_iteration it = kl_master_iteration(m);
    kl_team_plan plan;
    kl_buffer grounds = {0};
    kl_grounds_team(&grounds, &m->staff.team, &it, &plan);
    kl_team_commit(&m->staff.team, &it, &plan);
    m->organising.best_index = best_index(&it, &plan);
    if (!*plan.decision.reason) {
        kl_buffer_free(&grounds);
        return false;
    }
    snprintf(m->state.decision, sizeof m->state.decision, "%s", plan.decision.reason);
    if (plan.verdict == KL_TEAM_NOTHING) {
        kl_master_record_look(m, (uint32_t)plan.decision.count, &grounds);
        return false;
    }
    double now_s = kl_now_s(&m->options.clock);
    plan.decision.forecast_s = now_s + plan.forecast_s;
    kl_master_record_decision(m, now_s, &plan.decision, &grounds);
    if (plan.verdict < KL_TEAM_CHANGED)
        return false;
    m->staff.seats = (uint32_t)plan.decision.count;
    return true;
}

/* Record how many workers a later farm should use. This number was found in several runs or checks, or it is
 * forecast from a single run. */
void kl_master_advise(kl_master *m) {
    if (m->run.number == 0 || m->run.done < m->run.summary.tasks || m->run.grown || m->peers.on)
        return;
    uint32_t workers = kl_master_active(m);
    kl_buffer grounds = {0};
    bool settled = m->staff.chooses && (m->run.number > 1 || m->staff.glance.from > 0);
    if (settled) {
        snprintf(m->state.decision, sizeof m->state.decision, "as many as in the last run");
    } else {
        kl_iteration it = kl_master_iteration(m);
        workers = kl_grounds_expect(&grounds, &it, m->state.decision);
    }
    if (workers > 0)
        record(m, KL_DECIDES_TEAM, workers, &grounds);
    else
        kl_buffer_free(&grounds);
}

kilter_status kl_master_between_runs(kl_master *m, kilter_error *error) {
    bool number_set = m->staff.pending.set & KL_TUNE_WORKERS;
    kilter_status status = apply_pending(m, error);
    if (status != KILTER_OK)
        return status;
    bool looked = m->run.number > 0 && m->run.done == m->run.summary.tasks && !m->run.grown && !m->run.open &&
                  !m->peers.on && m->staff.glance.from == 0;
    bool fixed = m->staff.by_hand || m->run.number == 0;
    /* true: more workers are active than wanted, because some workers have just joined */
    bool crowded = fixed && m->staff.seats > 0 && kl_master_active(m) > m->staff.seats;
    if (number_set || crowded || (m->staff.chooses && looked && choose(m)))
        status = kl_master_seat(m, error);
    /* true: a smaller number of workers is being tried; do not release resting workers, because they may be
     * needed again */
    bool on_trial = m->staff.team.tried_from > 0 || m->staff.team.measured < KL_TEAM_PERSISTS;
    if (m->options.release && m->members.resting > 0 && (m->staff.by_hand || !on_trial))
        release(m);
    return status;
}
