/* Update what the master knows about a worker, from the worker's messages. */
#include <math.h>
#include <string.h>

#include "measure/measure.h"

/* Time constant of a pace: the longer of 0.2 s and 8 tasks, in working time. So a pace is an average over
 * many time slices and several tasks. */
static const double PACE_MEMORY_S = 0.2, PACE_MEMORY_TASKS = 8;
static const double LEAD_S = 1e-3, LEAD_MOST_S = 20e-3, LEAD_ROUND_TRIPS = 4;

void kl_view_asked(kl_worker_view *view, double now_s) {
    view->queued_at_s = now_s;
}

void kl_view_dealt(kl_worker_view *view, uint64_t tasks, double units, double now_s) {
    if (view->queued_tasks == 0)
        view->queued_at_s = now_s;
    view->queued_tasks += tasks;
    view->queued_units += units;
    view->chunks++;
}

void kl_view_returned(kl_worker_view *view, uint64_t tasks, double units) {
    view->queued_tasks -= tasks;
    view->queued_units = view->queued_tasks ? view->queued_units - units : 0;
}

static double memory_of(double task_s) {
    return fmax(PACE_MEMORY_S, PACE_MEMORY_TASKS * task_s);
}

void kl_view_reported(kl_worker_view *view, const kl_stat *unit_s, double busy_s, double units, double mean_s,
                      double now_s) {
    kl_stat_merge(&view->unit_s, unit_s);
    kl_stat_merge(&view->run_unit_s, unit_s);
    /* The first report may come from a single task that took almost no time. So if a worker seems faster than
     * the mean, its pace begins with one unit of work at the mean pace. */
    if (view->pace.units == 0 && busy_s < mean_s * units)
        kl_pace_add(&view->pace, mean_s, 1, memory_of(mean_s));
    kl_pace_add(&view->pace, busy_s, units, memory_of(busy_s / (double)unit_s->count));
    for (uint64_t i = 0; i < unit_s->count && i < KL_QUICKEST; i++) {
        memmove(view->quickest_s + 1, view->quickest_s, (KL_QUICKEST - 1) * sizeof *view->quickest_s);
        view->quickest_s[0] = unit_s->min;
    }
    view->busy_s += busy_s;
    view->units += units;
    view->queued_tasks -= unit_s->count;
    view->queued_units = view->queued_tasks ? view->queued_units - units : 0;
    view->queued_at_s = now_s;
}

void kl_view_abandoned(kl_worker_view *view, double units, double mean_s, double now_s) {
    double silent_s = now_s - view->queued_at_s;
    if (kl_pace_unit_s(&view->pace) > 0 || !(units > 0) || !(silent_s > mean_s * units))
        return;
    kl_pace_add(&view->pace, silent_s, units, memory_of(mean_s));
}

void kl_views_begin(kl_worker_view *views, uint32_t slots) {
    double total = 0;
    uint32_t known = 0;
    for (uint32_t i = 0; i < slots; i++) {
        kl_worker_view *v = &views[i];
        double rate = v->busy_s > 0 ? v->units / v->busy_s : kl_worker_rate(v);
        v->prior_rate = v->present ? rate : 0;
        total += v->prior_rate;
        known += v->prior_rate > 0;
        v->wap = (kl_wap){0};
        v->chunks = 0;
        v->busy_s = v->units = 0;
        v->run_unit_s = (kl_stat){0};
    }
    for (uint32_t i = 0; i < slots && known; i++)
        views[i].prior_rate *= known / total; /* scale the prior rates so that their mean is 1 */
}

double kl_lead_s(const kl_snapshot *snapshot) {
    return fmin(fmax(LEAD_ROUND_TRIPS * snapshot->round_trip_s, LEAD_S), LEAD_MOST_S);
}

void kl_stat_rescale(kl_stat *stat, double factor) {
    stat->mean *= factor;
    stat->m2 *= factor * factor;
    stat->min *= factor;
    stat->max *= factor;
}

void kl_view_rescale(kl_worker_view *view, double factor) {
    kl_stat_rescale(&view->unit_s, factor);
    kl_stat_rescale(&view->run_unit_s, factor);
    view->pace.units /= factor;
    view->wap.units /= factor;
    view->units /= factor;
    view->queued_units /= factor;
    for (int i = 0; i < KL_QUICKEST; i++)
        view->quickest_s[i] *= factor;
}
