/* In a series of runs with the same tasks, give each worker the tasks that it did in the last run. The
 * policy decides how many tasks the worker gets. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "decide/policy.h"

void kl_homes_free(kl_homes *homes) {
    free(homes->last);
    free(homes->spans);
    free(homes->home);
    *homes = (kl_homes){0};
}

/* Begin a run of a series. If the last run of the series is known, keep which worker did each task;
 * otherwise no task has a worker. */
static kilter_status begin_series(kl_homes *h, uint64_t series, uint64_t tasks) {
    if (h->last && h->series == series && h->tasks == tasks)
        return KILTER_OK;
    kl_homes_free(h);
    if (tasks > SIZE_MAX / sizeof *h->last - 1 || !(h->last = malloc((size_t)(tasks + 1) * sizeof *h->last)))
        return KILTER_ERR_MEMORY;
    memset(h->last, 0xff, (size_t)(tasks + 1) * sizeof *h->last); /* UINT32_MAX */
    h->series = series;
    h->tasks = tasks;
    return KILTER_OK;
}

/* Return the task's home, which is the place of the worker that did the task last. If this worker has left,
 * return `places`, which stands for no worker. */
static uint32_t home_of(const kl_homes *h, const kl_worker_view *views, uint64_t task) {
    uint32_t last = h->last[task];
    return last < h->places && views[last].present ? last : h->places;
}

/* Return the longest span of tasks that begins at span.lo and that one worker did last. The span has at least
 * one task. */
static kl_span alike(const kl_homes *h, const kl_worker_view *views, kl_span span, uint32_t *home) {
    *home = home_of(h, views, span.lo);
    uint64_t hi = span.lo + 1;
    while (hi < span.hi && home_of(h, views, hi) == *home)
        hi++;
    return (kl_span){span.lo, hi};
}

/* With put = false, only count the spans that belong to each worker. With put = true, store the spans at the
 * positions that were computed from these counts. Return the number of spans. */
static size_t go_through(kl_homes *h, const kl_worker_view *views, const kl_span *left, size_t count,
                         bool put) {
    size_t found = 0;
    for (size_t i = count; i > 0; i--) /* the span that is dealt next is the last one in `left`, and is
                                          stored first */
        for (kl_span rest = left[i - 1]; rest.lo < rest.hi; found++) {
            uint32_t home;
            kl_span span = alike(h, views, rest, &home);
            if (put)
                h->spans[h->home[home].end] = span;
            h->home[home].end++;
            h->home[home].tasks += put ? span.hi - span.lo : 0;
            rest.lo = span.hi;
        }
    return found;
}

kilter_status kl_homes_begin(kl_homes *h, uint64_t series, uint64_t tasks, const kl_snapshot *snapshot,
                             const kl_span *left, size_t count) {
    if (series == 0) {
        kl_homes_free(h);
        return KILTER_OK;
    }
    kilter_status status = begin_series(h, series, tasks);
    free(h->spans);
    free(h->home);
    h->spans = NULL;
    h->places = snapshot->slots;
    h->home = calloc((size_t)h->places + 1, sizeof *h->home);
    if (status != KILTER_OK || !h->home)
        return KILTER_ERR_MEMORY;
    h->spans = malloc((go_through(h, snapshot->workers, left, count, false) + 1) * sizeof *h->spans);
    if (!h->spans)
        return KILTER_ERR_MEMORY;
    size_t at = 0;
    for (uint32_t i = 0; i <= h->places; i++) {
        size_t spans = h->home[i].end;
        h->home[i] = (kl_home){at, at, 0};
        at += spans;
    }
    go_through(h, snapshot->workers, left, count, true);
    return KILTER_OK;
}

bool kl_homes_in_use(const kl_homes *h) {
    return h->spans != NULL;
}

bool kl_homes_has_own(const kl_homes *h, uint32_t worker) {
    return worker < h->places && h->home[worker].tasks > 0;
}

/* A home has the tasks that one worker did in the last run. Return how many of the home's tasks exceed this
 * worker's share now, so that other workers must do them. */
static double beyond_share(const kl_homes *h, const kl_dealer *dealer, const kl_snapshot *s, uint32_t home) {
    double waiting = (double)h->home[home].tasks;
    bool there = home < h->places && s->workers[home].present;
    return there ? waiting - (double)kl_dealer_share(dealer, home) : waiting;
}

/* A home has the tasks that one worker did in the last run. Return the home that exceeds its worker's share
 * by the most tasks. Return h->places if there are tasks without a present worker, or if no home has
 * tasks. */
static uint32_t fullest(const kl_homes *h, const kl_dealer *dealer, const kl_snapshot *s) {
    uint32_t home = h->places;
    double most = -HUGE_VAL;
    for (uint32_t i = 0; i < h->places && h->home[h->places].tasks == 0; i++) {
        double beyond = beyond_share(h, dealer, s, i);
        if (h->home[i].tasks > 0 && beyond > most) {
            home = i;
            most = beyond;
        }
    }
    return home;
}

uint32_t kl_homes_choose(const kl_homes *h, const kl_dealer *dealer, const kl_snapshot *s, uint32_t worker,
                         uint64_t *most) {
    *most = UINT64_MAX;
    if (kl_homes_has_own(h, worker))
        return worker;
    uint32_t home = fullest(h, dealer, s);
    double beyond = beyond_share(h, dealer, s, home);
    *most = beyond > 1 ? (uint64_t)beyond : 1;
    return home;
}

kl_span kl_homes_front(const kl_homes *h, uint32_t home) {
    return h->spans[h->home[home].first];
}

void kl_homes_take(kl_homes *h, uint32_t home, uint64_t count) {
    kl_home *from = &h->home[home];
    kl_span *front = &h->spans[from->first];
    front->lo += count;
    from->tasks -= count;
    if (front->lo == front->hi)
        from->first++;
}

void kl_homes_note(kl_homes *h, kl_span done, uint32_t worker) {
    for (uint64_t i = done.lo; h->last && i < done.hi && i < h->tasks; i++)
        h->last[i] = worker;
}
