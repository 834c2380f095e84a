/* Choose the number of tasks of a fork-join program. With few tasks, the master is less busy. With many
 * tasks, the load is more even, and some methods need fewer iterations (Buaklee, Tracy, Vernon, Wright
 * 2002, section 4). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "decide/policy.h"

/* change the number of tasks only if all runs together then take less than this part of their time with the
 * present number */
static const double FINDING = 0.95;
/* The master's times t_M were measured for some numbers of tasks. They are trusted up to this multiple of the
 * greatest of these numbers, and down to the least of them divided by this value. */
static const double BELIEVED = 4;
/* each candidate number of tasks is 1/16 greater than the previous candidate */
static const double APART = 16;
enum { UNMEASURED_TASKS = 4 }; /* number of tasks for each worker before anything is measured */

/* A number of tasks, and the forecast of the times with it. */
typedef struct candidate {
    uint64_t tasks;
    uint32_t workers;
    double master_s, workers_s, messages_s;
    /* runs: number of runs that the program needs; total_s: seconds of all these runs */
    double runs, total_s;
} candidate;

static kilter_status weigh(const kl_grain_look *look, const kl_grain_question *q, uint64_t tasks,
                           uint64_t *counts, candidate *c) {
    double units = look->work_units / (double)tasks, number = (double)tasks;
    kilter_status status = kl_assign_earliest(look->lanes, look->lane_count, units, tasks, counts);
    if (status != KILTER_OK)
        return status;
    *c = (candidate){.tasks = tasks, .runs = q->runs ? q->runs(tasks, q->user) : 1};
    for (uint32_t i = 0; i < look->lane_count; i++)
        c->workers += counts[i] > 0;
    c->workers_s = kl_assignment_end_s(look->lanes, look->lane_count, units, counts);
    c->master_s = kl_curve_s(&look->model.master, number);
    c->messages_s = kl_model_join_s(&look->model, number, c->workers, look->lost_s);
    c->total_s =
        c->runs * (kl_model_forkjoin_s(&look->model, number, c->workers, c->workers_s) + look->lost_s);
    return KILTER_OK;
}

static uint64_t within(double tasks, uint64_t least, uint64_t most) {
    return tasks <= (double)least ? least : tasks >= (double)most ? most : (uint64_t)tasks;
}

static uint64_t next_number(uint64_t tasks) {
    return tasks + 1 + (uint64_t)((double)tasks / APART);
}

static kilter_status consider(const kl_grain_look *look, const kl_grain_question *q, uint64_t tasks,
                              uint64_t *counts, candidate *best) {
    candidate c;
    kilter_status status = weigh(look, q, tasks, counts, &c);
    if (status == KILTER_OK && c.total_s < best->total_s)
        *best = c;
    return status;
}

/* Try a series of numbers of tasks, each 1/16 greater than the previous number. Between them, also try
 * multiples of the number of workers. */
static kilter_status find_best(const kl_grain_look *look, const kl_grain_question *q, uint64_t *counts,
                               candidate *best) {
    uint64_t least = within(floor((double)look->least_seen / BELIEVED), q->least, q->most);
    uint64_t most = within(BELIEVED * (double)look->most_seen, q->least, q->most);
    kilter_status status = weigh(look, q, least, counts, best);
    for (uint64_t tasks = least; tasks < most && status == KILTER_OK;) {
        uint64_t last = tasks;
        tasks = next_number(tasks) < most ? next_number(tasks) : most;
        uint64_t even = tasks - tasks % look->lane_count;
        if (even > last && even < tasks)
            status = consider(look, q, even, counts, best);
        if (status == KILTER_OK)
            status = consider(look, q, tasks, counts, best);
    }
    return status;
}

static void answer(const candidate *c, const candidate *now, kl_grain_plan *plan) {
    *plan =
        (kl_grain_plan){.decision = {.kind = KL_DECIDES_GRAIN, .subject = KL_SUBJECT_ALL, .count = c->tasks},
                        .workers = c->workers,
                        .master_s = c->master_s,
                        .workers_s = c->workers_s,
                        .messages_s = c->messages_s};
    double each_s = c->master_s + c->workers_s + c->messages_s;
    plan->decision.gain_s = c->runs > 0 ? fmax(0, (now->total_s - c->total_s) / c->runs) : 0;
    int at = snprintf(plan->decision.reason, sizeof plan->decision.reason,
                      "%llu tasks: an iteration takes %s, in which the master works %s", kl_ull(c->tasks),
                      kl_say_s(each_s).text, kl_say_s(c->master_s).text);
    if (now->tasks != c->tasks)
        snprintf(plan->decision.reason + at, sizeof plan->decision.reason - (size_t)at,
                 "; with %llu tasks all runs would take %.3g times as long", kl_ull(now->tasks),
                 now->total_s / c->total_s);
}

kilter_status kl_grain_choose(const kl_grain_look *look, const kl_grain_question *q, kl_grain_plan *plan) {
    if (look->tasks == 0 || look->lane_count == 0 || !(look->work_units > 0)) {
        uint64_t tasks = within((double)UNMEASURED_TASKS * look->lane_count, q->least, q->most);
        *plan =
            (kl_grain_plan){.decision = {.kind = KL_DECIDES_GRAIN, .subject = KL_SUBJECT_ALL, .count = tasks},
                            .workers = look->lane_count};
        snprintf(plan->decision.reason, sizeof plan->decision.reason,
                 "%llu tasks: nothing is measured yet, so %d for each of %u workers", kl_ull(tasks),
                 UNMEASURED_TASKS, (unsigned)look->lane_count);
        return KILTER_OK;
    }
    uint64_t *counts = calloc(look->lane_count, sizeof *counts);
    if (!counts)
        return KILTER_ERR_MEMORY;
    candidate best, now;
    kilter_status status = find_best(look, q, counts, &best);
    if (status == KILTER_OK)
        status = weigh(look, q, within((double)look->tasks, q->least, q->most), counts, &now);
    free(counts);
    if (status == KILTER_OK)
        answer(best.total_s < FINDING * now.total_s ? &best : &now, &now, plan);
    return status;
}
