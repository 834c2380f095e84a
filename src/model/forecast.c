/* When will it end? The forecast from what each worker does now, and the two yardsticks of a run. */
#include "model/model.h"

#include <math.h>

/* One present worker's part in the rest of the run. */
typedef struct lane {
    double rate;   /* units per second it is trusted with */
    double free_s; /* until it has done what is queued */
} lane;

/* What has been silent for longer than its queued work should take has become slower: at least so slow that
 * this work takes the time that has passed. What took so long is expected to take as long again. */
static lane lane_of(const kl_worker_view *worker, double mean_rate, double now_s) {
    double rate = kl_worker_rate(worker);
    if (!(rate > 0))
        rate = mean_rate;
    double queued = worker->queued_units, silent_s = fmax(0, now_s - worker->queued_at_s);
    if (!(queued > 0))
        return (lane){rate, 0};
    if (silent_s * rate > queued)
        return (lane){queued / silent_s, silent_s};
    return (lane){rate, queued / rate - silent_s};
}

/* Time until all that work ends at which the lanes together have taken `units` more, each from when it is
 * free. Starting with all lanes and leaving out those that are busy longer only shortens the time, so this
 * settles, in practice after two or three rounds. */
static double level_s(const kl_snapshot *s, double mean_rate, double units, uint32_t without) {
    double level = INFINITY;
    for (;;) {
        double rate = 0, owed = units;
        for (uint32_t i = 0; i < s->slots; i++) {
            if (!s->workers[i].present || i == without)
                continue;
            lane l = lane_of(&s->workers[i], mean_rate, s->now_s);
            if (l.free_s < level) {
                rate += l.rate;
                owed += l.rate * l.free_s;
            }
        }
        double next = rate > 0 ? owed / rate : level;
        if (!(next < level * (1 - 1e-9)))
            return next < level ? next : level;
        level = next;
    }
}

static double longest_queue_s(const kl_snapshot *s, double mean_rate) {
    double longest = 0;
    for (uint32_t i = 0; i < s->slots; i++)
        if (s->workers[i].present)
            longest = fmax(longest, lane_of(&s->workers[i], mean_rate, s->now_s).free_s);
    return longest;
}

/* Variance of the relative error of left_s: tasks differ (those to come, and those the mean was taken from),
 * paces waver, and unknown workers may be half or half again as fast as the mean. */
static double relative_variance(const kl_snapshot *s) {
    double unit = s->tasks && s->units > 0 ? s->units / (double)s->tasks : 1;
    double waver = 0, seconds = 0, queued = 0;
    uint32_t unknown = 0, present = 0;
    for (uint32_t i = 0; i < s->slots; i++) {
        const kl_worker_view *w = &s->workers[i];
        if (!w->present)
            continue;
        present++;
        unknown += !(kl_worker_rate(w) > 0);
        waver += w->pace.spread;
        seconds += w->pace.seconds;
        queued += w->queued_units;
    }
    double n = present, cv = kl_stat_cv(&s->unit_s), tasks = fmax((s->left_units + queued) / unit, 1);
    double variance = cv * cv / tasks + 0.25 * unknown / (n * n);
    if (s->unit_s.count)
        variance += cv * cv / (double)s->unit_s.count;
    if (seconds > 0)
        variance += waver / seconds / n;
    return variance;
}

kl_forecast kl_model_forecast(const kl_snapshot *s, uint32_t worker) {
    kl_forecast f = {.rate_units_per_s = kl_total_rate(s)};
    if (!(f.rate_units_per_s > 0) || s->present == 0)
        return (kl_forecast){0};
    double mean_rate = f.rate_units_per_s / s->present;
    double level = s->left_units > 0 ? level_s(s, mean_rate, s->left_units, UINT32_MAX) : 0;
    double balanced_s = fmax(level, longest_queue_s(s, mean_rate));
    f.left_s = balanced_s;
    if (balanced_s > 0) {
        double off = 1.96 * sqrt(relative_variance(s));
        double task_s = s->unit_s.mean * (s->tasks ? s->units / (double)s->tasks : 0);
        f.low_s = balanced_s / (1 + off);
        f.high_s = balanced_s * (1 + off) + task_s; /* nobody ends in the middle of a task */
    }
    if (worker < s->slots && s->workers[worker].present) {
        lane l = lane_of(&s->workers[worker], mean_rate, s->now_s);
        f.unit_s = 1 / l.rate;
        f.free_s = l.free_s;
        f.share_units = fmin(fmax(0, level - l.free_s) * l.rate, s->left_units);
    }
    return f;
}

double kl_model_end_without_s(const kl_snapshot *s, uint32_t worker) {
    double total = kl_total_rate(s), first_s = INFINITY, rate = 0;
    if (!(total > 0) || s->left == 0)
        return s->left ? INFINITY : 0;
    double mean_rate = total / s->present, task = s->left_units / (double)s->left;
    uint32_t others = 0;
    for (uint32_t i = 0; i < s->slots; i++) {
        if (!s->workers[i].present || i == worker)
            continue;
        lane l = lane_of(&s->workers[i], mean_rate, s->now_s);
        first_s = fmin(first_s, l.free_s + task / l.rate);
        rate += l.rate;
        others++;
    }
    if (others == 0)
        return INFINITY;
    /* Whole tasks do not end together: on average the last one sticks out by half. */
    return fmax(first_s, level_s(s, mean_rate, s->left_units, worker) + task * others / rate / 2);
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
    double rate = 0;
    for (uint32_t i = 0; i < s->slots; i++)
        if (s->workers[i].units > 0 && s->workers[i].busy_s > 0)
            rate += s->workers[i].units / s->workers[i].busy_s;
    return rate > 0 ? s->units / rate : 0;
}
