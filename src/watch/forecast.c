/* Forecast the elapsed time of a run in which all ranks get even shares of the work.
 *
 * A rank computes longer because it has more work, because its core is slower, or because it gets only part
 * of its core. CPU time shows the last case. The first two cases look the same, so each of them gives one
 * limit of the forecast:
 *   more work: the rank's CPU time is its work; the work is divided by the shares of cores that ranks get
 *   slower:    all ranks have the same work; the work is divided by their speeds */
#include <math.h>
#include <stdlib.h>

#include "watch/watch_private.h"

static double share_of(const kl_watch_rank *r) {
    return r->core_share > 0 ? r->core_share : 1;
}

static double even_work(const kl_watch_rank *ranks, size_t count) {
    double work_s = 0, cores = 0;
    for (size_t r = 0; r < count; r++) {
        work_s += ranks[r].useful_s * share_of(&ranks[r]);
        cores += share_of(&ranks[r]);
    }
    return work_s / cores;
}

static double even_speed(const kl_watch_rank *ranks, size_t count) {
    double *useful_s = calloc(count, sizeof *useful_s), even = 0;
    for (size_t r = 0; useful_s && r < count; r++)
        useful_s[r] = ranks[r].useful_s;
    if (useful_s)
        even = kl_watch_even_speed(useful_s, count);
    free(useful_s);
    return even;
}

/* Return the range between two forecasts of the elapsed time. A forecast above the time that the run really
 * took is replaced by this time.
 */
static kl_watch_range range_of(double a_s, double b_s, double elapsed_s) {
    return (kl_watch_range){fmin(fmin(a_s, b_s), elapsed_s), fmin(fmax(a_s, b_s), elapsed_s)};
}

void kl_watch_forecast(const kl_watch_rank *ranks, const kl_watch_table *slices, kl_watch_found *f) {
    double longest_s = ranks[f->slowest].useful_s;
    double by_work = even_work(ranks, f->ranks), by_speed = even_speed(ranks, f->ranks);
    if (!(by_speed > 0))
        by_speed = by_work;
    f->even = range_of(f->elapsed_s - longest_s + by_work, f->elapsed_s - longest_s + by_speed, f->elapsed_s);
    kl_watch_sums sums = kl_watch_add_up(slices);
    double ideal_s = f->elapsed_s - (sums.longest_s - sums.even_s);
    double lagged_s = f->elapsed_s - (sums.longest_s - sums.lagged_s) + fmax(by_work - by_speed, 0);
    f->follow = range_of(ideal_s, lagged_s, f->elapsed_s);
}
