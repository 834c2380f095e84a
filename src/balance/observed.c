/* The tasks that ended last, and the forecast of the time left that is made from them. */
#include <math.h>
#include <stdlib.h>

#include "balance/balance.h"

/* If a worker reports more than APART_MOST tasks together, APART_MOST tasks are stored instead. They have
 * about the same mean time and standard deviation as the reported tasks. */
enum { APART_MOST = 8 };
static const double PART = 0.9;

static void add(kl_observed *o, const kl_worker_view *view, uint32_t place, double unit_s) {
    uint32_t at = (uint32_t)(o->count++ % KL_OBSERVED);
    o->ring[at] = (kl_seen_task){.unit_s = unit_s, .worker = place};
    o->numbers[at] = view->number;
}

void kl_observed_add(kl_observed *o, const kl_worker_view *view, uint32_t place, const kl_stat *unit_s) {
    double sd = kl_stat_sd(unit_s), count = (double)unit_s->count;
    if (unit_s->count == 1)
        add(o, view, place, unit_s->mean);
    if (unit_s->count < 2)
        return;
    if (unit_s->count > APART_MOST) {
        for (int i = 0; i < APART_MOST; i++)
            add(o, view, place, fmax(unit_s->mean + (i % 2 ? sd : -sd), unit_s->min));
        return;
    }
    add(o, view, place, unit_s->min);
    add(o, view, place, unit_s->max);
    for (uint64_t i = 2; i < unit_s->count; i++)
        add(o, view, place, (unit_s->mean * count - unit_s->min - unit_s->max) / (count - 2));
}

/* Return the busy seconds of the workers, divided by the seconds of their tasks. The ratio exceeds 1 if there
 * are gaps between tasks. */
static double gaps(const kl_balance *b) {
    double busy_s = 0, tasks_s = 0;
    for (uint32_t i = 0; i < b->snapshot.slots; i++) {
        busy_s += b->views[i].busy_s;
        tasks_s += b->views[i].units * b->views[i].run_unit_s.mean;
    }
    return tasks_s > 0 && busy_s > tasks_s ? busy_s / tasks_s : 1;
}

/* List the present workers, and return their number. Set index[i] to the position in this list of the worker
 * that has place i in the array of views. */
static uint32_t list_workers(const kl_balance *b, double report_s, kl_left_worker *workers, uint32_t *index) {
    double now_s = kl_now_s(&b->clock);
    uint32_t count = 0;
    for (uint32_t i = 0; i < b->snapshot.slots; i++) {
        const kl_worker_view *v = &b->views[i];
        index[i] = v->present ? count : UINT32_MAX;
        double silent_s = v->queued_tasks > 0 ? fmax(now_s - v->queued_at_s, 0) : 0;
        double task_s = v->queued_tasks == 1 ? silent_s : fmax(silent_s - report_s, 0);
        if (v->present)
            workers[count++] = (kl_left_worker){v->queued_tasks, silent_s, task_s};
    }
    return count;
}

/* List the observed tasks in the order of their ends. */
static uint32_t list_seen(const kl_balance *b, const uint32_t *index, kl_seen_task *seen) {
    const kl_observed *o = &b->observed;
    uint32_t count = o->count < KL_OBSERVED ? (uint32_t)o->count : KL_OBSERVED;
    double factor = gaps(b);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = (uint32_t)((o->count - count + i) % KL_OBSERVED), place = o->ring[at].worker;
        bool same = place < b->snapshot.slots && b->views[place].number == o->numbers[at];
        seen[i] = (kl_seen_task){o->ring[at].unit_s * factor, same ? index[place] : UINT32_MAX};
    }
    return count;
}

bool kl_balance_time_left(const kl_balance *b, const kl_left_look *look, kl_left *left) {
    const kl_snapshot *s = &b->snapshot;
    kl_left_worker *workers = calloc(s->slots + 1, sizeof *workers);
    uint32_t *index = calloc(s->slots + 1, sizeof *index);
    kl_seen_task *seen = calloc(KL_OBSERVED, sizeof *seen);
    bool known = workers && index && seen;
    *left = (kl_left){0};
    if (known) {
        uint32_t count = list_workers(b, look->report_s, workers, index);
        const kl_left_ask ask = {.seen = seen,
                                 .seen_count = list_seen(b, index, seen),
                                 .workers = workers,
                                 .count = count,
                                 .tasks = look->tasks,
                                 .chain = look->chain,
                                 .task_units = s->tasks && s->units > 0 ? s->units / (double)s->tasks : 1,
                                 .part = PART,
                                 .seed = b->observed.count};
        known = kl_model_time_left(&ask, left);
    }
    free(workers);
    free(index);
    free(seen);
    return known;
}
