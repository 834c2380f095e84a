#include <stdlib.h>
#include <string.h>

#include "balance/balance.h"

/* Empty the bag of undealt tasks, but keep `homes`, which tells for each task of a series the worker that did
 * it last. */
static void empty(kl_bag *bag) {
    free(bag->spans);
    free(bag->prefix);
    *bag = (kl_bag){.homes = bag->homes};
}

void kl_bag_free(kl_bag *bag) {
    empty(bag);
    kl_homes_free(&bag->homes);
}

/* Least and greatest weight of a task. With such weights, sums over all tasks and squares of times per unit
 * fit into a double. */
static const double LEAST_WEIGHT = 1e-50, MOST_WEIGHT = 1e50;

kilter_status kl_weights_check(const double *weights, uint64_t lo, uint64_t count, kilter_error *error) {
    for (uint64_t i = 0; i < count; i++)
        if (!(weights[i] >= LEAST_WEIGHT && weights[i] <= MOST_WEIGHT))
            return kl_fail(error, KILTER_ERR_RANGE,
                           "weight of task %llu is %g: give each task a number from %g to %g",
                           (unsigned long long)(lo + i), weights[i], LEAST_WEIGHT, MOST_WEIGHT);
    return KILTER_OK;
}

static kilter_status add_up_weights(kl_bag *bag, uint64_t tasks, const double *weights, kilter_error *error) {
    if (tasks > SIZE_MAX / sizeof(double) - 1 ||
        !(bag->prefix = malloc((size_t)(tasks + 1) * sizeof *bag->prefix)))
        return kl_fail(error, KILTER_ERR_MEMORY, "summing the weights of %llu tasks: memory ran out",
                       (unsigned long long)tasks);
    kilter_status status = kl_weights_check(weights, 0, tasks, error);
    if (status != KILTER_OK)
        return status;
    bag->prefix[0] = 0;
    for (uint64_t i = 0; i < tasks; i++)
        bag->prefix[i + 1] = bag->prefix[i] + weights[i];
    bag->prefix_room = tasks + 1;
    bag->scale = tasks ? (double)tasks / bag->prefix[tasks] : 1;
    for (uint64_t i = 0; i <= tasks; i++)
        bag->prefix[i] *= bag->scale;
    return KILTER_OK;
}

/* Put all tasks that are not done into the bag. Begin with the last span, because the span that is put last
 * is dealt first. */
static kilter_status put_all_but(kl_bag *bag, kl_spans done) {
    kilter_status status = KILTER_OK;
    uint64_t hi = bag->tasks;
    for (size_t i = done.count; i > 0 && status == KILTER_OK; i--) {
        if (done.spans[i - 1].hi < hi)
            status = kl_bag_return(bag, (kl_span){done.spans[i - 1].hi, hi});
        hi = done.spans[i - 1].lo;
    }
    return status == KILTER_OK && hi > 0 ? kl_bag_return(bag, (kl_span){0, hi}) : status;
}

kilter_status kl_bag_fill(kl_bag *bag, uint64_t tasks, const double *weights, kl_spans done,
                          kilter_error *error) {
    empty(bag);
    bag->tasks = tasks;
    bag->scale = 1;
    if (weights) {
        kilter_status status = add_up_weights(bag, tasks, weights, error);
        if (status != KILTER_OK) {
            empty(bag);
            return status;
        }
    }
    if (put_all_but(bag, done) != KILTER_OK) {
        empty(bag);
        return kl_fail(error, KILTER_ERR_MEMORY, "filling the bag of tasks: memory ran out");
    }
    bag->units = bag->left_units;
    return KILTER_OK;
}

/* --- growing --- */

/* Continue the sums of weights over the added tasks. A task without a weight counts as 1 unit. */
static bool sum_weights(kl_bag *bag, uint64_t count, const double *weights) {
    uint64_t tasks = bag->tasks;
    double *prefix = kl_array_grow(bag->prefix, &bag->prefix_room, tasks + count + 1, sizeof *prefix);
    if (!prefix)
        return false;
    for (uint64_t i = 0; !bag->prefix && i <= tasks; i++)
        prefix[i] = (double)i;
    for (uint64_t i = 0; i < count; i++)
        prefix[tasks + i + 1] = prefix[tasks + i] + (weights ? bag->scale * weights[i] : 1);
    bag->prefix = prefix;
    return true;
}

/* Add a span of tasks that is dealt after all others. The array of spans must have room for it. */
static void put_last(kl_bag *bag, kl_span span) {
    if (span.lo >= span.hi)
        return;
    /* in a series, bag->spans holds returned tasks first, then tasks that were added during the run */
    bool first_added = span.lo == bag->homes.tasks;
    if (bag->count > 0 && bag->spans[0].hi == span.lo && !first_added) {
        bag->spans[0].hi = span.hi;
    } else {
        memmove(bag->spans + 1, bag->spans, bag->count * sizeof *bag->spans);
        bag->spans[0] = span;
        bag->count++;
    }
    double units = kl_bag_units(bag, span);
    bag->left += span.hi - span.lo;
    bag->left_units += units;
    bag->units += units;
}

kilter_status kl_bag_grow(kl_bag *bag, uint64_t count, const double *weights, kl_spans done) {
    uint64_t at = bag->tasks, end = at + count;
    kl_span *spans = kl_array_grow(bag->spans, &bag->room, bag->count + done.count + 1, sizeof *spans);
    if (!spans)
        return KILTER_ERR_MEMORY;
    bag->spans = spans;
    if ((bag->prefix || weights) && !sum_weights(bag, count, weights))
        return KILTER_ERR_MEMORY;
    bag->tasks = end;
    for (size_t i = 0; i < done.count && done.spans[i].lo < end; i++) {
        put_last(bag, (kl_span){at, done.spans[i].lo});
        at = done.spans[i].hi > at ? done.spans[i].hi : at;
    }
    put_last(bag, (kl_span){at, end});
    return KILTER_OK;
}

double kl_bag_units(const kl_bag *bag, kl_span span) {
    return bag->prefix ? bag->prefix[span.hi] - bag->prefix[span.lo] : (double)(span.hi - span.lo);
}

/* Return the smallest hi for which the tasks from front.lo to hi − 1 have at least `units` units of work, but
 * at most front.hi. */
static uint64_t cut_at(const kl_bag *bag, kl_span front, double units) {
    uint64_t low = front.lo + 1, high = front.hi;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (kl_bag_units(bag, (kl_span){front.lo, middle}) < units)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

kilter_status kl_bag_sort(kl_bag *bag, uint64_t series, const kl_snapshot *snapshot) {
    kilter_status status = kl_homes_begin(&bag->homes, series, bag->tasks, snapshot, bag->spans, bag->count);
    if (status == KILTER_OK && kl_homes_in_use(&bag->homes))
        bag->count = 0;
    return status;
}

/* Return the tasks to offer to a worker: the first consecutive tasks of the first kind that the bag has. The
 * order of kinds is: tasks that the worker did in the last run; returned tasks; tasks that another worker did
 * in the last run; added tasks. */
static kl_offer source_for(const kl_bag *bag, const kl_dealer *dealer, const kl_snapshot *s,
                           uint32_t worker) {
    const kl_homes *homes = &bag->homes;
    /* in a series, bag->spans holds returned tasks and added tasks; added tasks have numbers from
     * homes->tasks on */
    bool has_come_back = bag->count > 0 && bag->spans[bag->count - 1].lo < homes->tasks;
    if (!kl_homes_in_use(homes) || (has_come_back && !kl_homes_has_own(homes, worker)))
        return (kl_offer){.span = bag->spans[bag->count - 1], .home = UINT32_MAX};
    uint64_t most;
    uint32_t home = kl_homes_choose(homes, dealer, s, worker, &most);
    if (homes->home[home].tasks == 0)
        return (kl_offer){.span = bag->spans[bag->count - 1], .home = UINT32_MAX};
    kl_span span = kl_homes_front(homes, home);
    if (most < span.hi - span.lo)
        span.hi = span.lo + most;
    return (kl_offer){.span = span, .home = home};
}

kl_offer kl_bag_offer(const kl_bag *bag, const kl_dealer *dealer, const kl_snapshot *snapshot,
                      uint32_t worker, uint64_t count) {
    kl_offer offer = source_for(bag, dealer, snapshot, worker);
    kl_span front = offer.span;
    if (count < 1)
        count = 1;
    double units = bag->left_units * ((double)count / (double)bag->left);
    offer.cut_short = bag->prefix ? kl_bag_units(bag, front) < units : front.hi - front.lo < count;
    if (bag->prefix && count < bag->left)
        offer.span.hi = cut_at(bag, front, units);
    else if (count < front.hi - front.lo)
        offer.span.hi = front.lo + count;
    return offer;
}

void kl_bag_take(kl_bag *bag, const kl_offer *offer) {
    uint64_t count = offer->span.hi - offer->span.lo;
    if (offer->home != UINT32_MAX) {
        kl_homes_take(&bag->homes, offer->home, count);
    } else {
        kl_span *front = &bag->spans[bag->count - 1];
        front->lo = offer->span.hi;
        if (front->lo == front->hi)
            bag->count--;
    }
    bag->left -= count;
    bag->left_units = bag->left == 0 ? 0 : bag->left_units - kl_bag_units(bag, offer->span);
}

kilter_status kl_bag_return(kl_bag *bag, kl_span span) {
    kl_span *spans = kl_array_grow(bag->spans, &bag->room, bag->count + 1, sizeof *spans);
    if (!spans)
        return KILTER_ERR_MEMORY;
    bag->spans = spans;
    bag->spans[bag->count++] = span;
    bag->left += span.hi - span.lo;
    bag->left_units += kl_bag_units(bag, span);
    return KILTER_OK;
}
