/* Judge how well the ranks of a run used their time: POP's efficiencies, and the time that was lost to
 * imbalance. Three kinds of imbalance are distinguished: it lasts for the whole run, changes slowly, or
 * changes with each iteration. */
#include <math.h>
#include <stdlib.h>

#include "watch/watch_private.h"

enum {
    BLOCK = 20, /* number of iterations in a block; if an imbalance evens out within a block, it counts as one
                   that changes with each iteration */
};

static void take_efficiencies(const kl_watch_rank *ranks, size_t count, kl_watch_found *f) {
    double sum = 0, most = -1;
    for (size_t r = 0; r < count; r++) {
        sum += ranks[r].useful_s;
        f->elapsed_s = fmax(f->elapsed_s, ranks[r].elapsed_s);
        f->shared_ranks += ranks[r].core_share < kl_watch_whole_core;
        if (ranks[r].useful_s <= most)
            continue;
        most = ranks[r].useful_s;
        f->slowest = (uint32_t)r;
    }
    double mean = sum / (double)count;
    f->load_balance = most > 0 ? mean / most : 1;
    f->communication = f->elapsed_s > 0 ? fmin(most / f->elapsed_s, 1) : 1;
    f->parallel = f->load_balance * f->communication;
    f->lost_constant = f->elapsed_s > 0 ? (most - mean) / f->elapsed_s : 0;
}

/* --- the iteration that most ranks have --- */

static int by_iterations(const void *a, const void *b) {
    const kl_watch_period *x = a, *y = b;
    return (x->iterations > y->iterations) - (x->iterations < y->iterations);
}

/* Choose one rank's iteration for the whole run: sort the ranks that have an iteration by their numbers of
 * iterations, and take the middle one. Up to half of the ranks may have none, for example because they only
 * serve other ranks. If more ranks have none, the run has no iteration. Return false if memory ran out. */
static bool take_period(const kl_watch_period *periods, size_t count, kl_watch_found *f) {
    kl_watch_period *sorted = calloc(count + 1, sizeof *sorted);
    size_t having = 0;
    for (size_t r = 0; sorted && r < count; r++)
        if (periods[r].calls > 0)
            sorted[having++] = periods[r];
    if (having > 0 && 2 * having >= count) {
        qsort(sorted, having, sizeof *sorted, by_iterations);
        const kl_watch_period *p = &sorted[having / 2];
        f->iterations = p->iterations;
        f->iteration_calls = p->calls;
        f->iteration_s = p->iteration_s;
        f->alike = p->alike;
    }
    free(sorted);
    return sorted != NULL;
}

/* --- imbalance that changes during the run --- */

/* Cut the run into blocks of `block` parts. In each block, find the longest time of a rank. Return the sum of
 * these times. */
static double longest_of_blocks(const kl_watch_table *t, size_t block, double *sums) {
    double all = 0;
    for (size_t from = 0; from < t->parts; from += block) {
        double longest = 0;
        for (size_t r = 0; r < t->ranks; r++) {
            sums[r] = 0;
            for (size_t k = from; k < from + block && k < t->parts; k++)
                sums[r] += kl_watch_part(t, k)[r];
            longest = fmax(longest, sums[r]);
        }
        all += longest;
    }
    return all;
}

static bool take_fast(const kl_watch_table *t, kl_watch_found *f) {
    double *sums = calloc(t->ranks + 1, sizeof *sums);
    double seen_s = (double)t->parts * f->iteration_s;
    if (sums && seen_s > 0) {
        double within = longest_of_blocks(t, 1, sums), lasting = longest_of_blocks(t, BLOCK, sums);
        double part = fmin((double)f->iterations * f->iteration_s / f->elapsed_s, 1);
        f->lost_fast = fmax(part * (within - lasting) / seen_s, 0);
    }
    free(sums);
    return sums != NULL;
}

static bool take_slow(const kl_watch_table *t, kl_watch_found *f) {
    double *sums = calloc(t->ranks + 1, sizeof *sums);
    if (sums && t->parts > 1)
        f->lost_slow =
            fmax((longest_of_blocks(t, 1, sums) - longest_of_blocks(t, t->parts, sums)) / f->elapsed_s, 0);
    free(sums);
    return sums != NULL;
}

static bool judge(const kl_watch_rank *ranks, size_t count, kl_watch_period *periods, kl_watch_found *f) {
    kl_watch_table iterations = {0}, slices = {0};
    take_efficiencies(ranks, count, f);
    for (size_t r = 0; r < count && r < KL_WATCH_LOOKED_AT; r++)
        periods[r] = kl_watch_period_of(&ranks[r]);
    size_t looked = count < KL_WATCH_LOOKED_AT ? count : KL_WATCH_LOOKED_AT;
    bool good = take_period(periods, looked, f);
    if (good && f->iterations > 0)
        good = kl_watch_table_iterations(ranks, periods, looked, &iterations) && take_fast(&iterations, f);
    double least_s = f->iterations > 0 ? BLOCK * f->iteration_s : 0;
    good = good && kl_watch_table_slices(ranks, count, least_s, &slices) && take_slow(&slices, f);
    if (good) {
        kl_watch_forecast(ranks, &slices, f);
        kl_watch_advise(ranks, f);
    }
    kl_watch_table_free(&iterations);
    kl_watch_table_free(&slices);
    return good;
}

kilter_status kl_watch_judge(const kl_watch_rank *ranks, size_t count, kl_watch_found *found,
                             kilter_error *error) {
    kl_watch_found f = {.ranks = (uint32_t)count, .iteration_s = (double)NAN};
    kl_watch_period *periods = calloc(count + 1, sizeof *periods);
    bool good = periods && count > 0 && judge(ranks, count, periods, &f);
    free(periods);
    if (!good)
        return kl_fail(error, KILTER_ERR_MEMORY, "judging %zu ranks: memory ran out", count);
    *found = f;
    return KILTER_OK;
}
