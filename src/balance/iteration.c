/* The measurements of a run, as input of the model for the number of workers. */
#include <math.h>

#include "balance/balance.h"

/* Return the worker's units of work per second over the whole run. If the worker took no part in the run,
 * return its earlier speed; 0: not known. */
static double rate_of(const kl_worker_view *v) {
    if (v->units > 0 && v->busy_s > 0)
        return v->units / v->busy_s;
    double unit_s = kl_pace_unit_s(&v->pace);
    return unit_s > 0 ? 1 / unit_s : 0;
}

double kl_balance_rate(const kl_balance *b, uint32_t worker) {
    return rate_of(&b->views[worker]);
}

/* Return the sum of the n greatest speeds of workers, as a multiple of the mean speed. Workers of unknown
 * speed come last, with the mean speed. */
static double of_fastest(const void *balance, uint32_t n) {
    const kl_balance *b = balance;
    uint32_t ranked = kl_crew_ranked(b->crew);
    return kl_crew_fastest_speed(b->crew, n) / b->mean_rate + (n > ranked ? n - ranked : 0);
}

/* Sums over the workers that took part in the run. */
typedef struct effort {
    /* workers: number of workers that took part; active: number of workers that get tasks; there: number of
     * connected workers */
    uint32_t workers, active, there;
    /* sums over the workers that took part; most_busy_s: greatest number of busy seconds of any worker */
    double rate, units, busy_s, most_busy_s;
    /* sum over all tasks of (t − m)²/m², with t: time of the task, m: mean time of its worker's tasks */
    double variance;
    double tasks;
} effort;

static effort effort_of(const kl_snapshot *s) {
    effort e = {0};
    for (uint32_t i = 0; i < s->slots; i++) {
        const kl_worker_view *v = &s->workers[i];
        e.there += v->present || v->resting;
        e.active += v->present;
        if (!(v->units > 0 && v->busy_s > 0))
            continue;
        double mean = v->run_unit_s.mean;
        e.workers++;
        e.rate += rate_of(v);
        e.units += v->units;
        e.busy_s += v->busy_s;
        e.most_busy_s = fmax(e.most_busy_s, v->busy_s);
        e.variance += mean > 0 ? v->run_unit_s.m2 / (mean * mean) : 0;
        e.tasks += (double)v->run_unit_s.count;
    }
    return e;
}

/* Set it->load, which says how much the run used the resources that workers share. Reduce the times of tasks
 * to the times that the tasks would take on a worker that shares nothing. */
static void add_load(const kl_balance *b, const kl_use *use, kl_iteration *it) {
    it->load = (kl_load){.use = *use,
                         .workers = it->workers,
                         .chunks = (double)it->chunks,
                         .answer_s = it->answer_s,
                         .to_workers = it->model.to_workers,
                         .per_byte_s = it->model.message.per_unit_s,
                         .copy_s = b->traffic.copy_byte_s,
                         .near_s = b->traffic.near_s};
    if (kl_traffic_wakes(&b->traffic)) {
        it->load.woken_s = b->traffic.woken.mean;
        it->load.awake_s = b->traffic.awake.mean;
    }
    double alone = kl_load_fit(&it->load, it->task_mean_s, it->elapsed_s);
    if (!kl_load_known(&it->load))
        return;
    it->model.own_links = it->load.own_links;
    it->model.message.per_unit_s = it->load.per_byte_s;
    it->model.work_s *= alone;
    it->task_mean_s *= alone;
    it->task_sd_s *= alone;
    if (use->local_tasks >= use->tasks)
        it->model.message.per_unit_s = 0; /* the time of tasks on the cores includes the time for sending
                                             their bytes */
}

/* Return the cost of a message. If the time that the link needs for a byte was measured, use it as the cost
 * per byte. */
static kl_linear message_cost(const kl_balance *b) {
    kl_linear message = b->snapshot.message;
    if (b->traffic.link_byte_s > 0)
        message.per_unit_s = b->traffic.link_byte_s;
    return message;
}

kl_iteration kl_balance_iteration(kl_balance *b, const kl_run_times *times, double shared_bytes,
                                  const kl_use *use) {
    const kl_snapshot *s = &b->snapshot;
    effort e = effort_of(s);
    kl_iteration it = {.run = s->run,
                       .tasks = s->tasks,
                       .chunks = b->chunks,
                       .workers = e.workers > e.active ? e.workers : e.active,
                       .elapsed_s = times->elapsed_s};
    if (e.workers == 0)
        return it;
    double mean = e.rate / e.workers, bytes = s->task_bytes + s->result_bytes;
    it.model = (kl_farm_model){.message = message_cost(b),
                               .work_s = e.units / mean,
                               .bytes = bytes * (double)s->tasks,
                               .to_workers = bytes > 0 ? s->task_bytes / bytes : 0,
                               .master_s = times->master_s};
    it.answer_s = kl_traffic_answer(&b->traffic).mean;
    /* The measured time of a message covers its whole way to the worker. The next message can leave earlier:
     * as soon as the master has sent this one. */
    double under_way_s = it.model.message.fixed_s;
    if (it.answer_s > 0 && it.answer_s < under_way_s) {
        it.model.message.fixed_s = it.answer_s;
        it.way_s = 2 * (under_way_s - it.answer_s);
    }
    it.model.message.fixed_s += it.model.message.per_unit_s * shared_bytes;
    it.task_mean_s = it.model.work_s / e.tasks;
    it.task_sd_s = it.task_mean_s * sqrt(e.variance / e.tasks);
    it.uneven_s = e.most_busy_s - e.busy_s / e.workers;
    it.quality = kl_model_quality(e.busy_s, e.workers, times->elapsed_s);
    b->mean_rate = mean;
    it.speeds = (kl_speeds){of_fastest, b};
    it.most = e.there;
    add_load(b, use, &it);
    return it;
}

void kl_balance_grain(kl_balance *b, double work, kl_lane *lanes, kl_grain_look *look) {
    const kl_snapshot *s = &b->snapshot;
    double now_s = kl_now_s(&b->clock), mean_rate = kl_crew_mean_rate(b->crew), tasks = (double)b->bag.tasks;
    *look = (kl_grain_look){.lanes = lanes};
    for (uint32_t i = 0; i < s->slots; i++)
        if (s->workers[i].present)
            lanes[look->lane_count++] =
                mean_rate > 0 ? kl_worker_lane(&s->workers[i], mean_rate, now_s) : (kl_lane){0};
    if (!(mean_rate > 0))
        return;
    double bytes = s->task_bytes + s->result_bytes;
    look->tasks = b->bag.tasks;
    look->work_units = work > 0 && b->task_work > 0 ? work / b->task_work : tasks;
    look->model = (kl_forkjoin){.round_trip_s = s->round_trip_s,
                                .update_s = kl_traffic_answer(&b->traffic).mean,
                                .task_s = b->traffic.now.per_unit_s * bytes};
}
