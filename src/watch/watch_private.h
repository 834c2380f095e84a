/* Private to the folder watch: parts of the judgement. */
#ifndef KL_WATCH_PRIVATE_H
#define KL_WATCH_PRIVATE_H

#include "watch/watch.h"

/* Sums over the parts of a run: time until the last rank has computed. */
typedef struct kl_watch_sums {
    double longest_s; /* as measured */
    double even_s;    /* with shares that are even in each part */
    double lagged_s;  /* with shares that were even in the part before */
} kl_watch_sums;

/* Make a table of the iterations that all ranks have in their rings. parts is 0 if there are none. false: no
 * memory. */
bool kl_watch_table_iterations(const kl_watch_rank *ranks, const kl_watch_period *periods, size_t count,
                               kl_watch_table *t);
kl_watch_sums kl_watch_add_up(const kl_watch_table *t);
/* Return the time of even shares if all ranks had the same work and differ in speed. Return 0 if the times
 * differ so much that the work cannot have been the same. */
double kl_watch_even_speed(const double *useful_s, size_t ranks);

void kl_watch_forecast(const kl_watch_rank *ranks, const kl_watch_table *slices, kl_watch_found *found);
void kl_watch_advise(const kl_watch_rank *ranks, kl_watch_found *found);

#endif
