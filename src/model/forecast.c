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

/* Time until all work ends at which the lanes together have taken `units` more, each from when it is free,
 * and in *longest_s (NULL: not asked) when the last of them is free. Starting with all lanes and leaving out
 * those that are busy longer only shortens the time, so this settles, mostly in the first or second round. */
static double level_s(const kl_snapshot *s, double mean_rate, uint32_t without, double *longest_s) {
    double level = INFINITY, longest = 0;
    for (;;) {
        double rate = 0, owed = s->left_units;
        for (uint32_t i = 0; i < s->slots; i++) {
            if (!s->workers[i].present || i == without)
                continue;
            lane l = lane_of(&s->workers[i], mean_rate, s->now_s);
            longest = fmax(longest, l.free_s);
            if (l.free_s < level) {
                rate += l.rate;
                owed += l.rate * l.free_s;
            }
        }
        double next = rate > 0 ? owed / rate : level;
        bool settled = longest <= next || !(next < level * (1 - 1e-9));
        level = fmin(next, level);
        if (settled)
            break;
    }
    if (longest_s)
        *longest_s = longest;
    return level;
}

/* Sums over the present workers. */
typedef struct crew {
    uint32_t present, known;
    double rate;           /* of those known */
    double waver, seconds; /* spread of the paces and what it was measured over */
    double queued;
} crew;

static crew crew_of(const kl_snapshot *s) {
    crew c = {0};
    for (uint32_t i = 0; i < s->slots; i++) {
        const kl_worker_view *w = &s->workers[i];
        if (!w->present)
            continue;
        double rate = kl_worker_rate(w);
        c.present++;
        c.known += rate > 0;
        c.rate += rate;
        c.waver += w->pace.spread;
        c.seconds += w->pace.seconds;
        c.queued += w->queued_units;
    }
    return c;
}

/* Variance of the relative error of left_s: tasks differ (those to come, and those the mean was taken from),
 * paces waver, and unknown workers may be half or half again as fast as the mean. */
static double relative_variance(const kl_snapshot *s, const crew *c, double task) {
    double n = c->present, cv = kl_stat_cv(&s->unit_s);
    double variance = cv * cv * task / fmax(s->left_units + c->queued, task);
    variance += 0.25 * (c->present - c->known) / (n * n);
    if (s->unit_s.count)
        variance += cv * cv / (double)s->unit_s.count;
    if (c->seconds > 0)
        variance += c->waver / c->seconds / n;
    return variance;
}

kl_forecast kl_model_forecast(const kl_snapshot *s, uint32_t worker) {
    crew c = crew_of(s);
    if (c.known == 0)
        return (kl_forecast){0};
    double mean_rate = c.rate / c.known, longest_s, level = level_s(s, mean_rate, UINT32_MAX, &longest_s);
    kl_forecast f = {.rate_units_per_s = mean_rate * c.present, .left_s = fmax(level, longest_s)};
    if (f.left_s > 0) {
        double task = s->tasks && s->units > 0 ? s->units / (double)s->tasks : 1;
        double off = 1.96 * sqrt(relative_variance(s, &c, task));
        f.low_s = f.left_s / (1 + off);
        f.high_s = f.left_s * (1 + off) + s->unit_s.mean * task; /* nobody ends in the middle of a task */
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
    crew c = crew_of(s);
    if (s->left == 0)
        return 0;
    if (c.known == 0)
        return INFINITY;
    double mean_rate = c.rate / c.known, task = s->left_units / (double)s->left, first_s = INFINITY;
    for (uint32_t i = 0; i < s->slots; i++) {
        if (!s->workers[i].present || i == worker)
            continue;
        lane l = lane_of(&s->workers[i], mean_rate, s->now_s);
        first_s = fmin(first_s, l.free_s + task / l.rate);
    }
    return isinf(first_s) ? INFINITY : fmax(first_s, level_s(s, mean_rate, worker, NULL));
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
