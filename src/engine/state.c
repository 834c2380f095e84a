/* Report the master's state for `kilter tune`, and the progress of a run. */
#include <stdio.h>

#include "engine/master_private.h"

void kl_master_note_iteration(kl_master *m) {
    kl_farm_state *state = &m->state;
    kl_iteration it = kl_master_iteration(m);
    if (it.workers == 0 || m->run.done < m->run.summary.tasks)
        return;
    double speed = it.workers;
    state->last = it;
    state->last.speeds = (kl_speeds){0}; /* the values that change with the next run */
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

void kl_master_state(const kl_master *m, kl_farm_state *state) {
    *state = m->state;
    state->at_s = kl_now_s(&m->options.clock) - m->opened_s;
    state->running = m->run.running;
    state->elapsed_s = (m->run.running ? kl_now_s(&m->options.clock) : m->run.ended_s) - m->run.began_s;
    state->run = m->run.running || m->run.number == 0 ? m->run.number : m->run.number - 1;
    state->tasks = m->run.summary.tasks;
    state->done = m->run.done - m->run.unsafe;
    state->message = m->balance.traffic.now;
    state->answer_s = m->balance.traffic.answer.mean;
    state->policy = kl_dealer_policy(m->balance.dealer);
    state->factor = kl_dealer_factor(m->balance.dealer);
    state->present = m->members.ready - m->members.resting;
    state->resting = m->members.resting;
    state->leaving = m->members.leaving;
    state->workers = m->staff.by_hand ? m->staff.seats : 0;
    state->chooses = m->staff.chooses;
    state->pending = m->staff.pending;
    state->late = kl_master_late(m);
    list_workers(m, state);
}

static void time_text(double seconds, char *text, size_t size) {
    if (seconds > 0 && seconds < 0.0995)
        snprintf(text, size, "%.2g ms", 1e3 * seconds);
    else if (seconds < 120)
        snprintf(text, size, "%.*f s", seconds < 9.95 ? 1 : 0, seconds);
    else if (seconds < 7200)
        snprintf(text, size, "%.0f min", seconds / 60);
    else
        snprintf(text, size, "%.1f h", seconds / 3600);
}

void kl_master_progress(kl_master *m, char *text, size_t size) {
    char low[32], high[32], left[80] = "time left still unknown";
    kl_forecast forecast = kl_balance_forecast(&m->balance);
    if (forecast.rate_units_per_s > 0) {
        time_text(forecast.low_s, low, sizeof low);
        time_text(forecast.high_s, high, sizeof high);
        snprintf(left, sizeof left, "%s to %s left", low, high);
    }
    uint64_t tasks = m->run.summary.tasks, done = m->run.done - m->run.unsafe;
    uint32_t present = m->members.ready - m->members.resting;
    kl_late late = kl_master_late(m);
    char usual[32], long_task[128] = "";
    if (late.elapsed_s > 0) {
        time_text(late.elapsed_s, low, sizeof low);
        time_text(late.usual_s, usual, sizeof usual);
        snprintf(long_task, sizeof long_task, " · task %llu at worker %u for %s, usually %s",
                 (unsigned long long)late.task, late.worker, low, usual);
    }
    snprintf(text, size, "%3.0f %% · %llu of %llu tasks · %u worker%s · %s%s",
             tasks ? 100.0 * (double)done / (double)tasks : 100, (unsigned long long)done,
             (unsigned long long)tasks, present, present == 1 ? "" : "s", left, long_task);
}
