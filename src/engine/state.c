/* Report the state of the master for `kilter tune`. */
#include <stdio.h>

#include "engine/master_private.h"

void kl_master_note_iteration(kl_master *m) {
    kl_farm_state *state = &m->state;
    kl_iteration it = kl_master_iteration(m);
    if (it.workers == 0 || m->run.done < m->run.summary.tasks)
        return;
    double speed = it.workers;
    state->last = it;
    /* leave the workers' speeds out, because their memory belongs to the load balance and is valid only until
     * the next run */
    state->last.speeds = (kl_speeds){0};
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
    for (size_t i = 0; i < m->members.count && state->listed < KL_STATE_WORKERS; i++) {
        const member *one = &m->members.list[i];
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

/* Return the mean seconds of the tasks that the present workers have reported in this run. 0: they have
 * reported none. */
static double task_s(const kl_master *m) {
    double busy_s = 0;
    uint64_t tasks = 0;
    for (size_t i = 0; i < m->members.count; i++) {
        const member *one = &m->members.list[i];
        if (!one->has_place)
            continue;
        busy_s += m->balance.views[one->worker].busy_s;
        tasks += m->balance.views[one->worker].run_unit_s.count;
    }
    return tasks > 0 ? busy_s / (double)tasks : 0;
}

void kl_master_note(kl_master *m, const kl_decision *decision) {
    snprintf(m->state.decision, sizeof m->state.decision, "%s", decision->reason);
    kl_master_record_decision(m, kl_now_s(&m->options.clock), decision, NULL);
}

void kl_master_state(kl_master *m, kl_farm_state *state) {
    *state = m->state;
    state->at_s = kl_now_s(&m->options.clock) - m->opened_s;
    state->running = m->run.running;
    state->elapsed_s = (m->run.running ? kl_now_s(&m->options.clock) : m->run.ended_s) - m->run.began_s;
    state->run = m->run.running || m->run.number == 0 ? m->run.number : m->run.number - 1;
    state->tasks = m->run.summary.tasks;
    state->done = m->run.done - m->run.unsafe;
    state->message = m->balance.traffic.now;
    state->answer_s = kl_traffic_answer(&m->balance.traffic).mean;
    state->policy = kl_dealer_policy(m->balance.dealer);
    state->factor = kl_dealer_factor(m->balance.dealer);
    state->present = kl_master_active(m);
    state->resting = m->members.resting;
    state->leaving = m->members.leaving;
    state->workers = m->staff.by_hand ? m->staff.seats : 0;
    state->chooses = m->staff.chooses;
    state->pending = m->staff.pending;
    state->late = kl_master_late(m);
    state->growing.left_s = m->run.running ? kl_balance_forecast(&m->balance).left_s : 0;
    const kl_left_look look = {m->run.running ? m->run.summary.tasks - m->run.done : 0, 0, KL_FLUSH_S};
    kl_balance_time_left(&m->balance, &look, &state->growing.left);
    state->growing.task_s = task_s(m);
    list_workers(m, state);
    kl_master_list_hosts(m, &state->growing);
}
