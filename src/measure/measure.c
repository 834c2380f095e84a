#include "measure/measure.h"

#include <math.h>

void kl_stat_add(kl_stat *stat, double value, double now_s) {
    if (!isfinite(value))
        return;
    if (stat->count == 0 || value < stat->min)
        stat->min = value;
    if (stat->count == 0 || value > stat->max)
        stat->max = value;
    stat->count++;
    double before = value - stat->mean;
    stat->mean += before / (double)stat->count;
    stat->m2 += before * (value - stat->mean);
    stat->last_s = now_s;
}

void kl_stat_merge(kl_stat *into, const kl_stat *from) {
    if (from->count == 0)
        return;
    if (into->count == 0) {
        *into = *from;
        return;
    }
    double a = (double)into->count, b = (double)from->count, between = from->mean - into->mean;
    into->mean += between * b / (a + b);
    into->m2 += from->m2 + between * between * a * b / (a + b);
    into->count += from->count;
    into->min = fmin(into->min, from->min);
    into->max = fmax(into->max, from->max);
    into->last_s = fmax(into->last_s, from->last_s);
}

double kl_stat_sd(const kl_stat *stat) {
    return stat->count < 2 ? 0 : sqrt(fmax(stat->m2, 0) / (double)(stat->count - 1));
}

double kl_stat_cv(const kl_stat *stat) {
    return stat->mean == 0 ? 0 : kl_stat_sd(stat) / fabs(stat->mean);
}

/* Seconds that are counted for work that was too short for the clock. 0 would mean that the pace is not
 * known. */
static const double TICK_S = 1e-9;

void kl_pace_add(kl_pace *pace, double seconds, double units, double memory_s) {
    if (!(seconds >= 0) || !(units >= 0) || !(memory_s > 0) || !isfinite(seconds) || !isfinite(units))
        return;
    seconds = fmax(seconds, TICK_S);
    /* The weight of a piece of work also decays during the piece: it is ∫ exp(−t/memory) dt over its length.
     * So one long piece weighs the same as the same work in several pieces. */
    double keep = exp(-seconds / memory_s);
    double weight = -expm1(-seconds / memory_s) * memory_s / seconds;
    double known = kl_pace_unit_s(pace);
    double off = known > 0 && units > 0 ? seconds / units / known - 1 : 0;
    pace->spread = pace->spread * keep + off * off * seconds * weight;
    pace->seconds = pace->seconds * keep + seconds * weight;
    pace->units = pace->units * keep + units * weight;
}

double kl_pace_unit_s(const kl_pace *pace) {
    return pace->units > 0 ? pace->seconds / pace->units : 0;
}

void kl_wap_add(kl_wap *wap, double seconds, double units) {
    if (!(seconds >= 0) || !(units > 0) || !isfinite(seconds) || !isfinite(units))
        return;
    double k = (double)++wap->chunks;
    wap->seconds += k * fmax(seconds, TICK_S);
    wap->units += k * units;
}

double kl_wap_unit_s(const kl_wap *wap) {
    return wap->units > 0 ? wap->seconds / wap->units : 0;
}

/* The pace is out of date if the last two tasks both took more than SLOWED_TWO times the pace. It is also out
 * of date if the last three tasks all took more than SLOWED_THREE times the pace. By chance, this happens
 * less than once in 1,000 tasks, even if the standard deviation of task times equals their mean. */
static const double SLOWED_TWO = 4, SLOWED_THREE = 2;

/* If the last tasks show that the pace is out of date, return their seconds per unit. Otherwise return 0. */
static double slowed_unit_s(const kl_worker_view *worker) {
    const double *last_s = worker->quickest_s, pace_s = kl_pace_unit_s(&worker->pace);
    double two_s = fmin(last_s[0], last_s[1]), three_s = fmin(two_s, last_s[2]);
    if (two_s > SLOWED_TWO * pace_s)
        return two_s;
    return three_s > SLOWED_THREE * pace_s ? three_s : 0;
}

double kl_worker_rate(const kl_worker_view *worker) {
    double unit_s = worker->present ? kl_pace_unit_s(&worker->pace) : 0;
    if (!(unit_s > 0))
        return 0;
    double slowed_s = slowed_unit_s(worker);
    return 1 / (slowed_s > 0 ? slowed_s : unit_s);
}

kl_lane kl_worker_lane(const kl_worker_view *worker, double mean_rate, double now_s) {
    double rate = kl_worker_rate(worker), queued = worker->queued_units;
    if (!(rate > 0))
        rate = mean_rate;
    if (!(queued > 0))
        return (kl_lane){rate, 0};
    double due_s = worker->queued_at_s + queued / rate, silent_s = now_s - worker->queued_at_s;
    if (due_s < now_s)
        return (kl_lane){queued / silent_s, silent_s};
    return (kl_lane){rate, due_s - now_s};
}
