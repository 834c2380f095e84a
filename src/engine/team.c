/* The master between two runs: who works in the next one, by which policy; and what it shows of itself. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/master_private.h"

/* --- who rests --- */

static void set_resting(kl_master *m, member *one, bool resting) {
    if (one->resting == resting)
        return;
    one->resting = resting;
    m->resting += resting ? 1 : UINT32_MAX; /* + 1 or − 1 */
    kl_balance_rest(&m->balance, one->worker, resting);
    m->feed_all = true;
}

void kl_master_rest(kl_master *m, member *one) {
    set_resting(m, one, true);
}

/* They leave the farm, as the user wants of workers that are not needed. */
static void release(kl_master *m) {
    for (size_t i = 0; i < m->member_count; i++)
        if (m->members[i].resting)
            kl_master_send_home(m, &m->members[i], "was released: fewer workers are enough");
}

typedef struct candidate {
    double rate;
    uint32_t sharing; /* faster ones that are bound to the same cores */
    member *member;
} candidate;

static int faster_first(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->sharing != y->sharing)
        return x->sharing > y->sharing ? 1 : -1;
    if (x->rate != y->rate)
        return x->rate < y->rate ? 1 : -1;
    return (x->member->number > y->member->number) - (x->member->number < y->member->number);
}

/* All that could work, the fastest first; one not known yet counts as the mean of the others. */
static uint32_t rank(kl_master *m, candidate *list) {
    uint32_t count = 0, known = 0;
    double sum = 0;
    for (size_t i = 0; i < m->member_count; i++) {
        member *one = &m->members[i];
        if (one->stage != WORKING)
            continue;
        double rate = kl_balance_rate(&m->balance, one->worker);
        list[count++] = (candidate){.rate = rate, .member = one};
        sum += rate;
        known += rate > 0;
    }
    for (uint32_t i = 0; i < count; i++)
        if (!(list[i].rate > 0))
            list[i].rate = known ? sum / known : 1;
    qsort(list, count, sizeof *list, faster_first);
    return count;
}

/* Two that are bound to the same cores of a host take each other's time: others go before the second of them.
 */
static void spread(candidate *list, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const kl_hello *one = &list[i].member->hello;
        for (uint32_t k = i; k > 0 && *one->binding; k--) {
            const kl_hello *other = &list[k - 1].member->hello;
            if (strcmp(one->binding, other->binding) == 0 && strcmp(one->host, other->host) == 0) {
                list[i].sharing = list[k - 1].sharing + 1;
                break;
            }
        }
    }
    qsort(list, count, sizeof *list, faster_first);
}

kilter_status kl_master_seat(kl_master *m, kilter_error *error) {
    candidate *list = malloc((m->member_count + 1) * sizeof *list);
    if (!list)
        return kl_fail(error, KILTER_ERR_MEMORY, "choosing the workers of a run: memory ran out");
    uint32_t count = rank(m, list), seats = m->seats ? m->seats : count;
    if (seats < count)
        spread(list, count);
    for (uint32_t i = 0; i < count; i++)
        set_resting(m, list[i].member, i >= seats);
    free(list);
    return KILTER_OK;
}

static member *fastest_resting(const kl_master *m) {
    member *fastest = NULL;
    double most = 0;
    for (size_t i = 0; i < m->member_count; i++) {
        member *one = &m->members[i];
        double rate = one->resting ? kl_balance_rate(&m->balance, one->worker) : 0;
        if (one->resting && (!fastest || rate > most)) {
            fastest = one;
            most = rate;
        }
    }
    return fastest;
}

void kl_master_wake_for_lost(kl_master *m) {
    member *one;
    while (m->ready - m->resting < m->seats && (one = fastest_resting(m)))
        set_resting(m, one, false);
}

/* --- what takes effect between runs --- */

kl_iteration kl_master_iteration_so_far(kl_master *m) {
    const kl_run_times times = {kl_now_s(&m->options.clock) - m->began_s, m->master_s};
    const kl_use use = kl_master_use_so_far(m);
    kl_iteration it = kl_balance_iteration(&m->balance, &times, (double)m->shared_sent, &use);
    it.model.bytes *= use.tasks / (double)m->summary.tasks;
    return it;
}

kl_iteration kl_master_iteration(kl_master *m) {
    const kl_run_times times = {m->summary.elapsed_s, m->master_s};
    return kl_balance_iteration(&m->balance, &times, (double)m->shared_sent, &m->use);
}

void kl_master_spent(kl_master *m, double seconds) {
    m->master_s = seconds;
    if (m->runs > 0 && m->summary.tasks > 0 && !m->grown)
        kl_line_add(&m->alone, (double)m->summary.tasks, seconds);
}

static void record_at(kl_master *m, double now_s, const kl_decision *decision) {
    kl_trace_decision(
        m->trace,
        &(kl_trace_moment){.now_s = now_s, .opened_s = m->opened_s, .run = m->runs, .chunk = UINT64_MAX},
        decision);
}

/* What m->state.decision says. */
static void record(kl_master *m, kl_decision_kind kind, uint64_t count) {
    kl_decision d = {.kind = kind, .subject = KL_SUBJECT_ALL, .count = count};
    snprintf(d.reason, sizeof d.reason, "%s", m->state.decision);
    record_at(m, kl_now_s(&m->options.clock), &d);
}

void kl_master_record_look(kl_master *m, uint32_t workers) {
    record(m, KL_DECIDES_WORKERS, workers);
}

static void set_factor(kl_master *m, double factor) {
    kl_dealer_set_factor(m->balance.dealer, factor);
    double now = kl_dealer_factor(m->balance.dealer);
    if (now > 0)
        snprintf(m->state.decision, sizeof m->state.decision, "factor %.3g: set by hand", now);
    else
        snprintf(m->state.decision, sizeof m->state.decision, "factor %.3g: set by hand; policy %s has none",
                 factor, kl_policy_name(kl_dealer_policy(m->balance.dealer)));
    record(m, KL_DECIDES_FACTOR, 0);
}

kilter_status kl_master_tune(kl_master *m, const kl_tuning *tuning, kilter_error *error) {
    bool factor = tuning->set & KL_TUNE_FACTOR;
    if (factor && !(tuning->factor >= 0 && tuning->factor <= 1))
        return kl_fail(error, KILTER_ERR_RANGE, "setting the factor to %g: it is above 0 and at most 1",
                       tuning->factor);
    if (tuning->set & KL_TUNE_POLICY)
        m->pending.policy = tuning->policy;
    if (tuning->set & KL_TUNE_WORKERS)
        m->pending.workers = tuning->workers;
    m->pending.set |= tuning->set & (KL_TUNE_POLICY | KL_TUNE_WORKERS);
    if (factor && m->pending.set & KL_TUNE_POLICY) { /* of the policy to come */
        m->pending.factor = tuning->factor;
        m->pending.set |= KL_TUNE_FACTOR;
    } else if (factor) {
        set_factor(m, tuning->factor);
    }
    return KILTER_OK;
}

static kilter_status apply_pending(kl_master *m, kilter_error *error) {
    kl_tuning next = m->pending;
    if (next.set & KL_TUNE_POLICY) {
        kilter_status status = kl_balance_set_policy(&m->balance, next.policy, 0, error);
        if (status != KILTER_OK)
            return status;
        snprintf(m->state.decision, sizeof m->state.decision, "policy %s: set by hand",
                 kl_policy_name(next.policy));
        record(m, KL_DECIDES_POLICY, 0);
    }
    if (next.set & KL_TUNE_FACTOR)
        set_factor(m, next.factor);
    if (next.set & KL_TUNE_WORKERS) {
        m->seats = next.workers;
        m->by_hand = next.workers > 0;
        m->chooses = !m->by_hand;
        m->team = (kl_team){0};
        uint32_t workers = m->by_hand ? m->seats : m->ready; /* nobody rests until it chooses again */
        snprintf(m->state.decision, sizeof m->state.decision,
                 m->by_hand ? "%u worker%s: set by hand" : "%u worker%s, as the farm chooses: set by hand",
                 workers, workers == 1 ? "" : "s");
        record(m, KL_DECIDES_WORKERS, m->seats);
    }
    m->pending = (kl_tuning){0};
    return KILTER_OK;
}

/* After the last run, which was whole: how many in the next one? */
static bool choose(kl_master *m) {
    kl_iteration it = kl_master_iteration(m);
    kl_team_plan plan;
    kl_team_choose(&m->team, &it, &plan);
    kl_team_commit(&m->team, &it, &plan);
    if (!*plan.decision.reason)
        return false;
    snprintf(m->state.decision, sizeof m->state.decision, "%s", plan.decision.reason);
    if (plan.verdict == KL_TEAM_NOTHING) {
        kl_master_record_look(m, (uint32_t)plan.decision.count);
        return false;
    }
    double now_s = kl_now_s(&m->options.clock);
    plan.decision.forecast_s = now_s + plan.forecast_s;
    record_at(m, now_s, &plan.decision);
    if (plan.verdict < KL_TEAM_CHANGED)
        return false;
    m->seats = (uint32_t)plan.decision.count;
    return true;
}

/* After several runs, or looks within one, the number it has come to; after one run what that shows. */
void kl_master_advise(kl_master *m) {
    if (m->runs == 0 || m->done < m->summary.tasks || m->grown)
        return;
    uint32_t workers = m->ready - m->resting;
    bool settled = m->chooses && (m->runs > 1 || m->glance.from > 0);
    if (settled) {
        snprintf(m->state.decision, sizeof m->state.decision, "as many as worked last");
    } else {
        kl_iteration it = kl_master_iteration(m);
        workers = kl_team_expect(&it, m->state.decision);
    }
    if (workers > 0)
        record(m, KL_DECIDES_TEAM, workers);
}

/* While a smaller number is on trial, the others must be there to come back. */
static bool may_release(const kl_master *m) {
    return m->options.release && m->resting > 0 &&
           (m->by_hand || (m->team.tried_from == 0 && m->team.measured >= KL_TEAM_PERSISTS));
}

kilter_status kl_master_between_runs(kl_master *m, kilter_error *error) {
    bool number_set = m->pending.set & KL_TUNE_WORKERS;
    kilter_status status = apply_pending(m, error);
    if (status != KILTER_OK)
        return status;
    bool looked = m->runs > 0 && m->done == m->summary.tasks && !m->grown && !m->open && m->glance.from == 0;
    bool fixed = m->by_hand || m->runs == 0;
    bool crowded = fixed && m->seats > 0 && m->ready - m->resting > m->seats; /* some have joined since */
    if (number_set || crowded || (m->chooses && looked && choose(m)))
        status = kl_master_seat(m, error);
    if (may_release(m))
        release(m);
    return status;
}

/* --- how many tasks --- */

/* What the model says of as many tasks as the last run had, against what they took. Once, however often it is
 * asked. */
static void learn_lost(kl_master *m, const kl_grain_look *look) {
    kl_grain_question same = {.least = look->tasks, .most = look->tasks};
    kl_grain_plan plan;
    if (m->lost_runs == m->runs || look->tasks == 0 || m->done < m->summary.tasks ||
        look->lane_count != m->summary.workers || kl_grain_choose(look, &same, &plan) != KILTER_OK)
        return;
    double lost_s = fmax(0, m->summary.elapsed_s - plan.workers_s - plan.messages_s);
    m->lost_s = m->lost_s > 0 ? (m->lost_s + lost_s) / 2 : lost_s;
    m->lost_runs = m->runs;
}

kilter_status kl_master_grain(kl_master *m, double spent_s, double work, kl_grain_look *look) {
    if (m->grown)
        return KILTER_ERR_USAGE;
    kl_lane *lanes = calloc((size_t)m->balance.snapshot.present + 1, sizeof *lanes);
    if (!lanes)
        return KILTER_ERR_MEMORY;
    kl_line alone = m->alone;
    if (m->runs > 0 && m->summary.tasks > 0)
        kl_line_add(&alone, (double)m->summary.tasks, spent_s); /* before the run that makes it final */
    kl_balance_grain(&m->balance, 0, lanes, look);
    learn_lost(m, look);
    kl_balance_grain(&m->balance, work, lanes, look);
    look->lost_s = m->lost_s;
    look->model.master = kl_line_fit(&alone);
    look->least_seen = (uint64_t)alone.least_x;
    look->most_seen = (uint64_t)alone.most_x;
    return KILTER_OK;
}

void kl_master_note_grain(kl_master *m, const kl_grain_plan *plan) {
    m->grain = *plan;
}

void kl_master_record_grain(kl_master *m) {
    if (m->grain.decision.count == 0)
        return;
    m->grain.decision.forecast_s = m->open ? 0 : m->began_s + m->grain.workers_s + m->grain.messages_s;
    record_at(m, m->began_s, &m->grain.decision);
    m->grain.decision.count = 0;
}

/* --- what the program expects --- */

void kl_master_note_expectation(kl_master *m, const kl_expectation *expectation) {
    if (expectation->runs > 0)
        m->expected = *expectation;
}

void kl_master_record_expectation(kl_master *m) {
    if (m->expected.runs == 0)
        return;
    kl_decision d = {.kind = KL_DECIDES_PROGRAM,
                     .subject = KL_SUBJECT_ALL,
                     .count = m->expected.runs,
                     .forecast_s = m->expected.end_s};
    snprintf(d.reason, sizeof d.reason, "%s", m->expected.reason);
    record_at(m, m->began_s, &d);
    m->expected.runs = 0;
}

/* --- what it shows --- */

void kl_master_note_iteration(kl_master *m) {
    kl_farm_state *state = &m->state;
    kl_iteration it = kl_master_iteration(m);
    if (it.workers == 0 || m->done < m->summary.tasks)
        return;
    double speed = it.workers;
    state->last = it;
    state->last.speeds = (kl_speeds){0}; /* they change with the next run */
    state->time_s = kl_model_time_with_s(&it.model, it.workers, speed) + it.way_s;
    state->index = kl_model_index_with(&it.model, it.workers, speed);
    state->efficiency = kl_model_efficiency_with(&it.model, it.workers, speed);
    state->quality_bound = kl_model_quality_bound(it.task_mean_s, it.task_sd_s, it.workers);
    state->capability = kl_model_capability(&it.model);
    if (it.most == 0)
        return;
    state->best_workers = kl_model_best_of(&it.model, it.speeds, it.most);
    speed = kl_speed_of(it.speeds, state->best_workers);
    state->best_time_s = kl_model_time_with_s(&it.model, state->best_workers, speed) + it.way_s;
    state->best_index = kl_model_index_with(&it.model, state->best_workers, speed);
}

static kl_worker_doing doing(const kl_master *m, const member *one) {
    if (one->stage == LEAVING)
        return KL_WORKER_LEAVING;
    if (one->stage != WORKING)
        return KL_WORKER_STARTING;
    if (one->resting)
        return KL_WORKER_RESTING;
    return m->balance.views[one->worker].queued_tasks > 0 ? KL_WORKER_BUSY : KL_WORKER_IDLE;
}

static void list_workers(const kl_master *m, kl_farm_state *state) {
    state->listed = 0;
    for (size_t i = 0; i < m->member_count && state->listed < KL_STATE_WORKERS; i++) {
        const member *one = &m->members[i];
        if (one->stage == GREETING || one->stage == GONE)
            continue;
        const kl_worker_view *v = &m->balance.views[one->worker];
        state->worker[state->listed++] = (kl_worker_state){
            .worker = one->number,
            .doing = doing(m, one),
            .rate_units_per_s = kl_balance_rate(&m->balance, one->worker),
            .busy_s = v->busy_s,
            .chunks = v->chunks,
            .queued_tasks = v->queued_tasks,
        };
    }
}

void kl_master_state(const kl_master *m, kl_farm_state *state) {
    *state = m->state;
    state->at_s = kl_now_s(&m->options.clock) - m->opened_s;
    state->running = m->running;
    state->elapsed_s = (m->running ? kl_now_s(&m->options.clock) : m->ended_s) - m->began_s;
    state->run = m->running || m->runs == 0 ? m->runs : m->runs - 1;
    state->tasks = m->summary.tasks;
    state->done = m->done - m->unsafe;
    state->message = m->balance.message_now;
    state->answer_s = m->balance.answer.mean;
    state->policy = kl_dealer_policy(m->balance.dealer);
    state->factor = kl_dealer_factor(m->balance.dealer);
    state->present = m->ready - m->resting;
    state->resting = m->resting;
    state->leaving = m->leaving;
    state->workers = m->by_hand ? m->seats : 0;
    state->chooses = m->chooses;
    state->pending = m->pending;
    state->late = kl_master_late(m);
    list_workers(m, state);
}
