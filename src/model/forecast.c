/* Forecast the end of a run from the present pace of each worker. Also compute the times of an equal split
 * and of perfect balance. */
#include "model/model.h"

#include <math.h>

/* Return the seconds in which the workers together do `units`, if each begins when it becomes free. One more
 * worker, of own_rate, begins at once. longest_s: time until the last worker is free. The search starts with
 * all workers. Each step leaves out the workers that become free later than the time found so far. Each step
 * shortens this time, so the search ends, usually after two steps. */
static double level_s(const kl_snapshot *s, double units, double own_rate, uint32_t without,
                      double longest_s) {
    double level = INFINITY;
    for (;;) {
        kl_crew_part part = kl_crew_free_within(s->crew, level, without);
        double rate = part.rate + own_rate, next = rate > 0 ? (units + part.owed) / rate : level;
        bool settled = longest_s <= next || !(next < level * (1 - 1e-9));
        level = fmin(next, level);
        if (settled)
            return level;
    }
}

/* Return the variance of the relative error of left_s. It has three causes. The remaining tasks may differ
 * from those that were measured. A worker without measurements may be 50 % slower or faster than the mean.
 * The pace of each worker varies. */
static double relative_variance(const kl_snapshot *s, const kl_crew_sums *c, double task) {
    double n = c->present, cv = kl_stat_cv(&s->unit_s);
    double variance = cv * cv * task / fmax(s->left_units + c->queued_units, task);
    variance += 0.25 * (c->present - c->known) / (n * n);
    if (s->unit_s.count)
        variance += cv * cv / (double)s->unit_s.count;
    if (c->seconds > 0)
        variance += c->spread / c->seconds / n;
    return variance;
}

/* Return the present lane of a worker; rate = 0: its rate cannot be estimated. */
static kl_lane lane_of(const kl_snapshot *s, uint32_t worker) {
    bool known = kl_crew_total(s->crew)->known > 0 && worker < s->slots && s->workers[worker].present;
    return known ? kl_worker_lane(&s->workers[worker], kl_crew_mean_rate(s->crew), s->now_s) : (kl_lane){0};
}

static void add_lane(const kl_lane *l, kl_forecast *f) {
    if (!(l->rate > 0))
        return;
    f->unit_s = 1 / l->rate;
    f->free_s = l->free_s;
}

kl_forecast kl_model_worker_forecast(const kl_snapshot *s, uint32_t worker) {
    kl_lane l = lane_of(s, worker);
    kl_forecast f = {0};
    add_lane(&l, &f);
    return f;
}

kl_forecast kl_model_forecast(const kl_snapshot *s, uint32_t worker) {
    const kl_crew_sums *c = kl_crew_total(s->crew);
    if (c->known == 0)
        return (kl_forecast){0};
    double mean_rate = kl_crew_mean_rate(s->crew), longest_s = kl_crew_longest_s(s->crew);
    double level = level_s(s, s->left_units, 0, UINT32_MAX, longest_s);
    kl_lane own = lane_of(s, worker);
    kl_forecast f = {.rate_units_per_s = mean_rate * c->present, .left_s = fmax(level, longest_s)};
    if (f.left_s > 0) {
        double task = s->tasks && s->units > 0 ? s->units / (double)s->tasks : 1;
        double off = 1.96 * sqrt(relative_variance(s, c, task));
        f.low_s = f.left_s / (1 + off);
        /* add one task, because a worker's last task may have just begun */
        f.high_s = f.left_s * (1 + off) + s->unit_s.mean * task;
    }
    add_lane(&own, &f);
    if (own.rate > 0)
        f.share_units = fmin(fmax(0, level - own.free_s) * own.rate, s->left_units);
    return f;
}

/* If fewer tasks than workers are left, return the least seconds that these tasks take. Otherwise return 0.
 * Each of the fastest workers, except `worker`, does one task, and the slowest of them ends last. Without
 * this limit, the forecast could be less than the time of one task. */
static double one_each_s(const kl_snapshot *s, uint32_t worker, double task_units) {
    double speed = 0, own = kl_worker_rate(&s->workers[worker]);
    uint32_t ranked = kl_crew_ranked(s->crew);
    if (s->left >= ranked)
        return 0;
    uint32_t last = (uint32_t)s->left;
    kl_crew_nth_fastest(s->crew, last, &speed);
    if (own >= speed) /* `worker` is among the fastest ones, so one more worker is needed */
        kl_crew_nth_fastest(s->crew, last + 1, &speed);
    return speed > 0 ? task_units / speed : 0;
}

double kl_model_end_without_s(const kl_snapshot *s, uint32_t worker) {
    if (s->left == 0)
        return 0;
    if (kl_crew_total(s->crew)->known == 0)
        return INFINITY;
    double task_units = s->left_units / (double)s->left;
    double first_s = kl_crew_first_end_s(s->crew, task_units, worker, NULL);
    if (isinf(first_s))
        return INFINITY;
    double whole_s = fmax(first_s, one_each_s(s, worker, task_units));
    return fmax(whole_s, level_s(s, s->left_units, 0, worker, kl_crew_longest_s(s->crew)));
}

double kl_model_end_shared_s(const kl_snapshot *s, uint32_t worker, double units) {
    kl_lane l = kl_worker_lane(&s->workers[worker], kl_crew_mean_rate(s->crew), s->now_s);
    double pot = s->left_units + units + l.rate * l.free_s;
    return level_s(s, pot, l.rate, worker, kl_crew_longest_s(s->crew));
}

double kl_model_equal_split_s(const kl_snapshot *s) {
    uint32_t sharing = 0;
    double slowest = 0;
    for (uint32_t i = 0; i < s->slots; i++) {
        const kl_worker_view *w = &s->workers[i];
        bool measured = w->units > 0 && w->busy_s > 0;
        sharing += w->present || measured;
        if (measured)
            slowest = fmax(slowest, w->busy_s / w->units);
    }
    return sharing ? s->units / sharing * slowest : 0;
}

double kl_model_bound_s(const kl_snapshot *s) {
    double rate = 0, units = 0;
    for (uint32_t i = 0; i < s->slots; i++)
        if (s->workers[i].units > 0 && s->workers[i].busy_s > 0) {
            rate += s->workers[i].units / s->workers[i].busy_s;
            units += s->workers[i].units;
        }
    return rate > 0 ? units / rate : 0;
}
