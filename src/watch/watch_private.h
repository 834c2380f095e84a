/* Private to the folder watch: functions for the judgement of a run. */
#ifndef KL_WATCH_PRIVATE_H
#define KL_WATCH_PRIVATE_H

#include "watch/watch.h"

/* Three sums over the parts of a run. Each adds up, for every part, the useful time of the rank that computes
 * longest. */
typedef struct kl_watch_sums {
    double longest_s; /* with the shares of the work that the ranks really had */
    double even_s;   /* if the shares were balanced anew for each part, so that all ranks took equally long */
    double lagged_s; /* if each part used the shares that would have balanced the part before it */
} kl_watch_sums;

/* Make a table of the last iterations: those that are still in the ring buffers of all ranks. If there are
 * none, the table has no parts. false: memory ran out. */
bool kl_watch_table_iterations(const kl_watch_rank *ranks, const kl_watch_period *periods, size_t count,
                               kl_watch_table *t);
kl_watch_sums kl_watch_add_up(const kl_watch_table *t);
/* Return the time that a part would take with even shares. Assume that the ranks had equal work, and differ
 * only in speed. Return 0 if their times differ too much for this assumption. */
double kl_watch_even_speed(const double *useful_s, size_t ranks);

void kl_watch_forecast(const kl_watch_rank *ranks, const kl_watch_table *slices, kl_watch_found *found);
void kl_watch_advise(const kl_watch_rank *ranks, kl_watch_found *found);

#endif
