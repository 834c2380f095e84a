/* Conversions between a farm and `kilter tune`. The farm's state becomes the values that the tool shows. The
 * tool's settings become tuning points of the farm. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/engine.h"

static double known(double value) {
    return value > 0 ? value : (double)NAN;
}

static void show_waiting(const kl_tuning *pending, char *text, size_t size) {
    char factor[32] = "", workers[48] = "";
    if (pending->set & KL_TUNE_FACTOR)
        snprintf(factor, sizeof factor, " with factor %g", pending->factor);
    if (pending->set & KL_TUNE_WORKERS && pending->workers > 0)
        snprintf(workers, sizeof workers, "%u worker%s", pending->workers, pending->workers == 1 ? "" : "s");
    else if (pending->set & KL_TUNE_WORKERS)
        snprintf(workers, sizeof workers, "the farm chooses the number of workers again");
    bool policy = pending->set & KL_TUNE_POLICY;
    snprintf(text, size, "%s%s%s%s%s", policy ? "policy " : "", policy ? kl_policy_name(pending->policy) : "",
             factor, policy && *workers ? "; " : "", workers);
}

static void show_measured(const kl_farm_state *s, kl_control_state *shown) {
    const kl_iteration *last = &s->last;
    bool any = last->workers > 0;
    shown->message_fixed_s = s->message.fixed_s;
    shown->message_per_byte_s = s->message.per_unit_s;
    shown->answer_s = known(s->answer_s);
    shown->bytes = any ? last->model.bytes : (double)NAN;
    shown->to_workers = any ? last->model.to_workers : (double)NAN;
    shown->work_s = any ? last->model.work_s : (double)NAN;
    shown->master_s = any ? last->model.master_s : (double)NAN;
    shown->task_mean_s = any ? last->task_mean_s : (double)NAN;
    shown->task_sd_s = any ? last->task_sd_s : (double)NAN;
    shown->quality = any ? last->quality : (double)NAN;
    shown->measured_s = any ? last->elapsed_s : (double)NAN;
    shown->measured_workers = last->workers;
}

static void show_modelled(const kl_farm_state *s, kl_control_state *shown) {
    shown->time_s = known(s->time_s);
    shown->efficiency = known(s->efficiency);
    shown->index = known(s->index);
    shown->quality_bound = s->last.workers > 0 ? s->quality_bound : (double)NAN;
    shown->capability = s->capability;
    shown->best_workers = s->best_workers;
    shown->best_time_s = known(s->best_time_s);
    shown->best_index = known(s->best_index);
}

static kl_control_activity activity_of(kl_worker_doing doing) {
    switch (doing) {
    case KL_WORKER_BUSY:
        return KL_CONTROL_BUSY;
    case KL_WORKER_IDLE:
        return KL_CONTROL_IDLE;
    case KL_WORKER_RESTING:
        return KL_CONTROL_RESTING;
    case KL_WORKER_LEAVING:
        return KL_CONTROL_LEAVING;
    default:
        return KL_CONTROL_STARTING;
    }
}

static void show_workers(const kl_farm_state *s, kl_control_state *shown) {
    for (uint32_t i = 0; i < s->listed && i < KL_CONTROL_WORKERS_MOST; i++) {
        const kl_worker_state *w = &s->worker[i];
        shown->workers[shown->worker_count++] =
            (kl_control_worker){.worker = w->worker,
                                .activity = activity_of(w->doing),
                                .rate_units_per_s = known(w->rate_units_per_s),
                                .busy_s = w->busy_s,
                                .chunks = w->chunks,
                                .queued_tasks = w->queued_tasks};
    }
}

static void show_hosts(const kl_growing_state *s, kl_control_state *shown) {
    for (uint32_t i = 0; i < s->hosts; i++) {
        const kl_host_state *h = &s->host[i];
        kl_control_host *to = &shown->hosts[shown->host_count++];
        *to = (kl_control_host){.drained = h->drained,
                                .workers = h->workers,
                                .idle = h->idle,
                                .working = h->working,
                                .lost = h->lost};
        memcpy(to->name, h->name, sizeof to->name);
    }
}

void kl_tuning_show(const kl_farm_state *s, kl_control_state *shown) {
    *shown = (kl_control_state){.running = s->running,
                                .chooses = s->chooses,
                                .run = s->run,
                                .tasks = s->tasks,
                                .done = s->done,
                                .present = s->present,
                                .resting = s->resting,
                                .leaving = s->leaving,
                                .workers_set = s->workers,
                                .at_s = s->at_s,
                                .elapsed_s = s->elapsed_s,
                                .factor = s->factor,
                                .left_s = known(s->growing.left_s),
                                .left_low_s = s->growing.left.high_s > 0 ? s->growing.left.low_s : NAN,
                                .left_high_s = known(s->growing.left.high_s),
                                .task_s = known(s->growing.task_s),
                                .late_task = s->late.task,
                                .late_worker = s->late.worker,
                                .late_s = s->late.elapsed_s,
                                .late_usual_s = s->late.usual_s};
    snprintf(shown->policy, sizeof shown->policy, "%s", kl_policy_name(s->policy));
    snprintf(shown->decision, sizeof shown->decision, "%s", s->decision);
    show_waiting(&s->pending, shown->waiting, sizeof shown->waiting);
    show_measured(s, shown);
    show_modelled(s, shown);
    show_workers(s, shown);
    show_hosts(&s->growing, shown);
}

/* --- settings --- */

/* Return the policy of the next run, for which the factor is set. */
static const kl_policy *policy_to_come(const kl_farm_state *s, const kl_tuning *tuning) {
    return tuning->policy ? tuning->policy : s->pending.set & KL_TUNE_POLICY ? s->pending.policy : s->policy;
}

static kilter_status take_policy(const kl_control_setting *setting, kl_tuning *tuning, kilter_error *error) {
    tuning->policy = kl_policy_find(setting->policy);
    tuning->set |= KL_TUNE_POLICY;
    return tuning->policy ? KILTER_OK
                          : kl_fail(error, KILTER_ERR_USAGE, "policy=%s: the farm knows no such policy",
                                    setting->policy);
}

static kilter_status take_factor(const kl_control_setting *setting, const kl_farm_state *s, kl_tuning *tuning,
                                 kilter_error *error) {
    const kl_policy *policy = policy_to_come(s, tuning);
    if (!(setting->factor >= 0 && setting->factor <= 1))
        return kl_fail(error, KILTER_ERR_RANGE, "factor=%g: a factor must be above 0 and at most 1",
                       setting->factor);
    if (!kl_policy_has_factor(policy))
        return kl_fail(error, KILTER_ERR_USAGE,
                       "factor=%g: policy %s has no factor; set policy=fsc or policy=dpf as well",
                       setting->factor, kl_policy_name(policy));
    tuning->factor = setting->factor;
    tuning->set |= KL_TUNE_FACTOR;
    return KILTER_OK;
}

static kilter_status take_workers(const kl_control_setting *setting, const kl_farm_state *s,
                                  kl_tuning *tuning, kilter_error *error) {
    uint32_t there = s->present + s->resting;
    if (setting->workers > there)
        return kl_fail(error, KILTER_ERR_RANGE, "workers=%u: there %s only %u", setting->workers,
                       there == 1 ? "is" : "are", there);
    tuning->workers = setting->workers;
    tuning->set |= KL_TUNE_WORKERS;
    return KILTER_OK;
}

kilter_status kl_tuning_check(const kl_control_setting *setting, const kl_farm_state *s, kl_tuning *tuning,
                              char answer[KL_CONTROL_ANSWER_BYTES], kilter_error *error) {
    kl_tuning taken = {0};
    kilter_status status = KILTER_OK;
    if (setting->policy_given)
        status = take_policy(setting, &taken, error);
    if (status == KILTER_OK && setting->factor_given)
        status = take_factor(setting, s, &taken, error);
    if (status == KILTER_OK && setting->workers_given)
        status = take_workers(setting, s, &taken, error);
    if (status != KILTER_OK)
        return status;
    const char *moment = "from the next run on";
    bool at_once = taken.set == KL_TUNE_FACTOR && !(s->pending.set & KL_TUNE_POLICY);
    if (at_once)
        moment = "from the next batch on";
    char now[64] = "";
    if (s->running)
        snprintf(now, sizeof now, "; run %llu continues unchanged", (unsigned long long)s->run);
    snprintf(answer, KL_CONTROL_ANSWER_BYTES, "taken: in force %s%s", moment, now);
    *tuning = taken;
    return KILTER_OK;
}

void kl_tuning_merge(kl_tuning *into, const kl_tuning *from) {
    if (from->set & KL_TUNE_POLICY)
        into->policy = from->policy;
    if (from->set & KL_TUNE_FACTOR)
        into->factor = from->factor;
    if (from->set & KL_TUNE_WORKERS)
        into->workers = from->workers;
    into->set |= from->set;
}
