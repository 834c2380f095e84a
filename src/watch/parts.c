/* The useful time of all ranks in the same parts of the run. A part is an iteration or a slice of time. */
#include <math.h>
#include <stdlib.h>

#include "watch/watch_private.h"

enum {
    SLICES_MOST = 64,
    SPEEDS_MOST =
        20, /* if the useful times of ranks differ by more than this factor, the ranks did different work */
};

void kl_watch_table_free(kl_watch_table *t) {
    free(t->useful_s);
    *t = (kl_watch_table){.ranks = 0};
}

static bool make(kl_watch_table *t, size_t ranks, size_t parts) {
    size_t cells = ranks * parts;
    *t = (kl_watch_table){
        .ranks = ranks, .parts = parts, .useful_s = calloc(cells > 0 ? cells : 1, sizeof(double))};
    return t->useful_s != NULL;
}

/* Return the number of iterations at the end of the run that every rank has in its ring buffer. */
static size_t common(double *const *each, const size_t *counts, size_t ranks) {
    size_t least = SIZE_MAX;
    for (size_t r = 0; r < ranks; r++) {
        size_t count = each[r] ? counts[r] : 0;
        least = count < least ? count : least;
    }
    return ranks > 0 ? least : 0;
}

/* Make a table of iterations. They are counted backwards from the end of the run, because all ranks end with
 * the same iteration. */
bool kl_watch_table_iterations(const kl_watch_rank *ranks, const kl_watch_period *periods, size_t count,
                               kl_watch_table *t) {
    double **each = calloc(count + 1, sizeof *each);
    size_t *counts = calloc(count + 1, sizeof *counts);
    bool good = each && counts;
    for (size_t r = 0; good && r < count; r++)
        each[r] = kl_watch_iterations(&ranks[r], &periods[r], &counts[r]);
    size_t parts = good ? common(each, counts, count) : 0;
    good = good && make(t, count, parts);
    for (size_t r = 0; good && r < count; r++)
        for (size_t k = 0; k < parts; k++)
            kl_watch_part(t, k)[r] = each[r][counts[r] - parts + k];
    for (size_t r = 0; each && r < count; r++)
        free(each[r]);
    free(each);
    free(counts);
    return good;
}

/* Add the slices of a rank to the slices of the table. The table begins at `from`, and its slices are
 * `width_s` long. A slice of the rank that lies in two slices of the table is divided in proportion. */
static void put_slices(const kl_watch_rank *rank, size_t r, double from, double width_s, kl_watch_table *t) {
    for (size_t i = 0; i < rank->slice_count; i++) {
        double at = rank->began_unix_s - from + (double)i * rank->slice_s, until = at + rank->slice_s;
        for (size_t k = at > 0 ? (size_t)(at / width_s) : 0; k < t->parts && (double)k * width_s < until;
             k++) {
            double low = fmax(at, (double)k * width_s), high = fmin(until, (double)(k + 1) * width_s);
            if (high > low)
                kl_watch_part(t, k)[r] += rank->slice[i] * (high - low) / rank->slice_s;
        }
    }
}

bool kl_watch_table_slices(const kl_watch_rank *ranks, size_t count, double least_s, kl_watch_table *t) {
    double from = INFINITY, longest_s = 0, slice_s = 0;
    for (size_t r = 0; r < count; r++) {
        from = fmin(from, ranks[r].began_unix_s);
        longest_s = fmax(longest_s, ranks[r].elapsed_s);
        slice_s = fmax(slice_s, ranks[r].slice_s);
    }
    double width_s = fmax(fmax(least_s, 2 * slice_s), longest_s / SLICES_MOST);
    size_t parts = width_s > 0 ? (size_t)(longest_s / width_s) : 0;
    if (!make(t, count, parts))
        return false;
    for (size_t r = 0; r < count && parts > 0; r++)
        if (ranks[r].slice_s > 0)
            put_slices(&ranks[r], r, from, longest_s / (double)parts, t);
    return true;
}

double kl_watch_even_speed(const double *useful_s, size_t ranks) {
    double speeds = 0, longest = 0, shortest = INFINITY;
    for (size_t r = 0; r < ranks; r++) {
        speeds += 1 / useful_s[r];
        longest = fmax(longest, useful_s[r]);
        shortest = fmin(shortest, useful_s[r]);
    }
    return shortest > longest / SPEEDS_MOST ? (double)ranks / speeds : 0;
}

/* Return the time that a part of the run would take with the shares that would have balanced the part before
 * it. */
static double lagged(const double *before, const double *now, size_t ranks) {
    double even = kl_watch_even_speed(before, ranks), longest = 0, as_it_was = 0;
    for (size_t r = 0; r < ranks; r++) {
        as_it_was = fmax(as_it_was, now[r]);
        if (before[r] > 0)
            longest = fmax(longest, now[r] * even / before[r]);
    }
    return even > 0 ? longest : as_it_was;
}

kl_watch_sums kl_watch_add_up(const kl_watch_table *t) {
    kl_watch_sums sums = {0};
    for (size_t k = 0; k < t->parts; k++) {
        const double *now = kl_watch_part(t, k);
        double longest = 0;
        for (size_t r = 0; r < t->ranks; r++)
            longest = fmax(longest, now[r]);
        double even = kl_watch_even_speed(now, t->ranks);
        sums.longest_s += longest;
        sums.even_s += even > 0 ? even : longest;
        sums.lagged_s += k > 0 ? lagged(kl_watch_part(t, k - 1), now, t->ranks) : longest;
    }
    return sums;
}
