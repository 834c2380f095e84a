/* Choose the number of tasks of the next run. The service thread provides the present state of the farm. The
 * caller's thread chooses, because it must call the program's function for the number of coming runs. This
 * file also records the program's own forecasts for its next runs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "farm/farm_private.h"

void kl_farm_answer_grain(kilter_farm *f) {
    grain_request *asked = f->plans.asked;
    if (!asked)
        return;
    asked->status = kl_master_grain(f->master, asked->spent_s, asked->work, asked->look);
    f->plans.asked = NULL;
    pthread_cond_signal(&f->news);
}

static kilter_status look(kilter_farm *f, double work, kl_grain_look *look, kilter_error *error) {
    grain_request request = {.work = work, .look = look};
    if (f->run.ended_s > 0)
        request.spent_s = fmax(0, kl_busy_s(&f->clock) - f->run.ended_s);
    pthread_mutex_lock(&f->lock);
    f->plans.asked = &request;
    if (f->service.threaded)
        kl_transport_wake(f->transport);
    else
        kl_farm_answer_grain(f);
    while (f->plans.asked && !f->run.broken)
        pthread_cond_wait(&f->news, &f->lock);
    bool answered = !f->plans.asked;
    kilter_error failure = f->run.failure;
    f->plans.asked = NULL;
    pthread_mutex_unlock(&f->lock);
    if (!answered)
        return kl_fail(error, failure.status, "%s", failure.text);
    if (request.status == KILTER_ERR_USAGE)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "measuring the last run: tasks were added to it, so it gives no estimate; ask after a "
                       "run without `grows`");
    return request.status == KILTER_OK
               ? KILTER_OK
               : kl_fail(error, request.status, "choosing the number of tasks: memory ran out");
}

/* The program's function for the number of coming runs, and whether this function returned a valid number. */
typedef struct runs_to_come {
    const kilter_grain_options *options;
    bool wrong;
} runs_to_come;

static double checked_runs(uint64_t tasks, void *user) {
    runs_to_come *r = user;
    double runs = r->options->runs(tasks, r->options->user);
    r->wrong |= !(runs > 0 && isfinite(runs));
    return runs;
}

static kilter_status check(const kilter_grain_options *o, kilter_error *error) {
    if (o->most == 0 || o->least > o->most)
        return kl_fail(error, KILTER_ERR_RANGE,
                       "choosing the number of tasks: the range from %llu to %llu is empty; give `most`, and "
                       "a `least` that is not above it",
                       (unsigned long long)o->least, (unsigned long long)o->most);
    if (!(o->work >= 0 && isfinite(o->work)))
        return kl_fail(
            error, KILTER_ERR_RANGE,
            "choosing the number of tasks: the work is %g; give a number above 0, or 0 for as much "
            "as in the last run",
            o->work);
    return KILTER_OK;
}

static kilter_status choose(kilter_farm *f, const kilter_grain_options *o, kl_grain_plan *plan,
                            kilter_error *error) {
    kl_grain_look now = {0};
    kilter_status status = look(f, o->work, &now, error);
    if (status != KILTER_OK)
        return status;
    if (now.tasks == 0 && now.lane_count < f->workers)
        now.lane_count = f->workers; /* plan for all workers, because the first run waits for all of them */
    runs_to_come runs = {o, false};
    kl_grain_question question = {.least = o->least ? o->least : 1,
                                  .most = o->most,
                                  .runs = o->runs ? checked_runs : NULL,
                                  .user = &runs};
    status = kl_grain_choose(&now, &question, plan);
    free((void *)(uintptr_t)now.lanes);
    if (status != KILTER_OK)
        return kl_fail(error, status, "choosing the number of tasks: memory ran out");
    if (runs.wrong)
        return kl_fail(error, KILTER_ERR_RANGE,
                       "choosing the number of tasks: the function `runs` must return a number above 0");
    return KILTER_OK;
}

kilter_status kl_farm_grain(kilter_farm *f, const kilter_grain_options *options, kilter_grain *grain,
                            kilter_error *error) {
    kilter_status status = check(options, error);
    if (status == KILTER_OK && f->settings.resume)
        status = kl_fail(error, KILTER_ERR_USAGE,
                         "choosing the number of tasks: not possible with --resume, where every start of the "
                         "program needs the same number; give a number");
    if (status == KILTER_OK)
        status = kl_farm_begin_use(f, "choosing the number of tasks", error);
    if (status != KILTER_OK)
        return status;
    kl_grain_plan plan;
    status = choose(f, options, &plan, error);
    if (status == KILTER_OK) {
        *grain = (kilter_grain){.tasks = plan.decision.count,
                                .workers = plan.workers,
                                .master_s = plan.master_s,
                                .workers_s = plan.workers_s,
                                .messages_s = plan.messages_s};
        snprintf(grain->reason, sizeof grain->reason, "%s", plan.decision.reason);
        pthread_mutex_lock(&f->lock);
        f->plans.grain = plan;
        pthread_mutex_unlock(&f->lock);
    }
    kl_farm_end_use(f);
    return status;
}

kilter_status kl_farm_program(kilter_farm *f, kilter_program *program, kilter_error *error) {
    kl_grain_look now = {0};
    kilter_status status = kl_farm_begin_use(f, "getting the measurements of the last run", error);
    if (status != KILTER_OK)
        return status;
    status = look(f, 0, &now, error);
    if (status == KILTER_OK && now.tasks == 0)
        status = kl_fail(error, KILTER_ERR_USAGE,
                         "getting the measurements: nothing is measured yet; call this after a run");
    if (status == KILTER_OK) {
        double rate = 0;
        for (uint32_t i = 0; i < now.lane_count; i++)
            rate += now.lanes[i].rate / now.lane_count;
        kl_curve *master = &now.model.master;
        *program = (kilter_program){
            .tasks = now.tasks,
            .iterations = 1,
            .work_s = now.work_units / rate,
            .master_s = master->fixed_s,
            .master_task_s = (kl_curve_s(master, (double)now.tasks) - master->fixed_s) / (double)now.tasks,
            .round_trip_s = now.model.round_trip_s,
            .update_s = now.model.update_s,
            .task_message_s = now.model.task_s};
    }
    free((void *)(uintptr_t)now.lanes);
    kl_farm_end_use(f);
    return status;
}

/* --- the program's own forecasts --- */

kilter_status kl_farm_expect(kilter_farm *f, const kilter_expectation *expectation, kilter_error *error) {
    if (expectation->runs == 0 || !(expectation->seconds > 0 && isfinite(expectation->seconds)))
        return kl_fail(error, KILTER_ERR_RANGE,
                       "expecting %llu runs to take %g s: give at least one run, and a time above 0",
                       (unsigned long long)expectation->runs, expectation->seconds);
    kilter_status status = kl_farm_begin_use(f, "storing a forecast of the next runs", error);
    if (status != KILTER_OK)
        return status;
    kl_expectation expected = {.runs = expectation->runs,
                               .end_s = kl_now_s(&f->clock) + expectation->seconds};
    snprintf(expected.reason, sizeof expected.reason, "%s", expectation->reason ? expectation->reason : "");
    pthread_mutex_lock(&f->lock);
    kilter_error failure = f->run.broken ? f->run.failure : (kilter_error){KILTER_OK, ""};
    if (!f->run.broken)
        f->plans.expected = expected;
    pthread_mutex_unlock(&f->lock);
    kl_farm_end_use(f);
    return failure.status ? kl_fail(error, failure.status, "%s", failure.text) : KILTER_OK;
}
