/* The dealer: plan and commit chunks by the policy of one farm, and keep its state from run to run. */
#include <math.h>
#include <stdlib.h>

#include "decide/grounds.h"

kl_dealer *kl_dealer_new(const kl_policy *policy, const kl_policy_settings *settings) {
    kl_dealer *dealer = calloc(1, sizeof *dealer);
    if (!dealer)
        return NULL;
    dealer->policy = policy;
    kl_dealer_set_factor(dealer, settings ? settings->factor : 0);
    dealer->workers = 1;
    return dealer;
}

void kl_dealer_free(kl_dealer *dealer) {
    if (!dealer)
        return;
    free(dealer->weights);
    free(dealer->shares);
    free(dealer);
}

const kl_policy *kl_dealer_policy(const kl_dealer *dealer) {
    return dealer->policy;
}

double kl_dealer_factor(const kl_dealer *dealer) {
    return dealer->factor;
}

void kl_dealer_set_factor(kl_dealer *dealer, double factor) {
    kl_grounds_factor(dealer->grounds, factor);
    if (!kl_policy_has_factor(dealer->policy))
        return;
    dealer->factor_set = factor > 0 && factor <= 1;
    dealer->factor = dealer->factor_set ? factor : dealer->policy->factor;
    dealer->expected_s = 0;
}

/* Make room for workers that have joined. Their weight is 1 until the weights of all workers are computed
 * again. */
static kilter_status make_room(kl_dealer *dealer, uint32_t slots) {
    if (slots <= dealer->slots)
        return KILTER_OK;
    double *weights = realloc(dealer->weights, slots * sizeof *weights);
    if (!weights)
        return KILTER_ERR_MEMORY;
    dealer->weights = weights;
    uint64_t *shares = realloc(dealer->shares, slots * sizeof *shares);
    if (!shares)
        return KILTER_ERR_MEMORY;
    dealer->shares = shares;
    for (uint32_t i = dealer->slots; i < slots; i++) {
        weights[i] = 1;
        shares[i] = 0;
    }
    dealer->slots = slots;
    return KILTER_OK;
}

void kl_dealer_write(kl_dealer *dealer, kl_grounds *grounds) {
    dealer->grounds = grounds;
    dealer->without_gains = !grounds;
}

void kl_dealer_joined(kl_dealer *dealer, uint32_t worker) {
    kl_grounds_joined(dealer->grounds, worker);
    if (worker < dealer->slots)
        dealer->weights[worker] = 1;
}

void kl_dealer_changed(kl_dealer *dealer) {
    kl_grounds_others(dealer->grounds);
    dealer->undealt = 0;
}

/* From the run with this number on, the policy's factor is chosen by a search. As in the paper of César et
 * al. 2006, the first two runs only measure tasks. */
enum { FIRST_SEARCHED_RUN = 2 };

kilter_status kl_dealer_begin(kl_dealer *dealer, const kl_snapshot *snapshot) {
    kl_grounds_begins(dealer->grounds, dealer, snapshot);
    kilter_status status = make_room(dealer, snapshot->slots);
    if (status != KILTER_OK)
        return status;
    dealer->workers = snapshot->present ? snapshot->present : 1;
    dealer->course = (kl_course){0};
    dealer->expected_s = 0;
    dealer->undealt = 0;
    dealer->assignment = (kl_assignment){0};
    for (uint32_t i = 0; i < dealer->slots; i++)
        dealer->weights[i] = 1;
    if (dealer->policy->begin)
        return dealer->policy->begin(dealer, snapshot);
    bool measured = snapshot->run >= FIRST_SEARCHED_RUN && snapshot->present > 0 && snapshot->unit_s.mean > 0;
    if (kl_policy_has_factor(dealer->policy) && !dealer->factor_set && measured && snapshot->tasks > 0)
        return kl_search_factor(dealer, snapshot);
    return KILTER_OK;
}

/* Give up the workers' assigned shares, because tasks were added to the run. If there is at least one new
 * task for each worker, compute new shares. Otherwise the remaining tasks are dealt step by step. */
kilter_status kl_dealer_grown(kl_dealer *dealer, const kl_snapshot *snapshot, uint64_t tasks) {
    kl_grounds_grows(dealer->grounds, snapshot, tasks);
    kilter_status status = make_room(dealer, snapshot->slots);
    dealer->undealt = 0;
    if (status != KILTER_OK || !dealer->policy->begin || tasks < snapshot->present)
        return status;
    dealer->assignment = (kl_assignment){0};
    return dealer->policy->begin(dealer, snapshot);
}

static kl_look look_at(const kl_dealer *dealer, const kl_snapshot *snapshot, uint32_t worker) {
    return (kl_look){
        .dealer = dealer,
        .snapshot = snapshot,
        .self = &snapshot->workers[worker],
        .worker = worker,
        .workers = snapshot->present ? snapshot->present : 1,
    };
}

/* Forecast when the worker will have done the chunk. Also forecast how much time the chunk saves, compared
 * with an equal part of the remaining work. With an equal part, a slow worker would end late, and a fast
 * worker would leave too much work to others. */
static void add_forecast(const kl_look *look, kl_plan *plan) {
    const kl_snapshot *s = look->snapshot;
    const kl_forecast *f = &look->forecast;
    double rate = kl_worker_rate(look->self);
    if (!(rate > 0) || plan->decision.count == 0)
        return;
    double own_s = (double)plan->decision.count * kl_task_units(s) * f->unit_s;
    plan->decision.forecast_s = s->now_s + f->free_s + own_s;
    if (f->rate_units_per_s == 0) /* there is no forecast of the run */
        return;
    double part = s->left_units / look->workers, others = f->rate_units_per_s - rate;
    double late_s = f->free_s + part * f->unit_s - f->left_s;
    double spill_s = others > 0 ? (f->share_units - part) / others : 0;
    plan->decision.gain_s = fmax(0, fmax(late_s, spill_s));
}

void kl_dealer_plan(const kl_dealer *dealer, const kl_snapshot *snapshot, uint32_t worker, kl_plan *plan) {
    *plan = (kl_plan){.decision.kind = KL_DECIDES_WITHHOLD, .decision.subject = worker};
    if (snapshot->left == 0) {
        kl_reason(plan, "all tasks are dealt");
        return;
    }
    if (worker >= snapshot->slots || !snapshot->workers[worker].present) {
        kl_reason(plan, "the worker is not present");
        return;
    }
    kl_look look = look_at(dealer, snapshot, worker);
    bool whole = dealer->policy->forecasts || !dealer->without_gains;
    look.forecast = whole ? kl_model_forecast(snapshot, worker) : kl_model_worker_forecast(snapshot, worker);
    dealer->policy->deal(&look, plan);
    if (plan->decision.count > snapshot->left)
        plan->decision.count = snapshot->left;
    if (plan->decision.count > 0)
        plan->decision.kind = KL_DECIDES_DEAL;
    plan->meant = plan->decision.count;
    add_forecast(&look, plan);
}

kilter_status kl_dealer_commit(kl_dealer *dealer, const kl_snapshot *snapshot, const kl_plan *plan) {
    if (plan->decision.count == 0 || plan->decision.subject >= snapshot->slots)
        return KILTER_OK;
    kilter_status status = make_room(dealer, snapshot->slots);
    if (status != KILTER_OK)
        return status;
    kl_look look = look_at(dealer, snapshot, (uint32_t)plan->decision.subject);
    if (dealer->policy->dealt)
        dealer->policy->dealt(dealer, &look, plan);
    dealer->course.chunks++;
    return KILTER_OK;
}
