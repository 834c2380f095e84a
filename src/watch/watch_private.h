/* Private to the folder watch: functions for the judgement of a run. */
#ifndef KL_WATCH_PRIVATE_H
#define KL_WATCH_PRIVATE_H

#include "watch/watch.h"

/* Sums over the parts of a run: seconds until the last rank has computed its share. */
typedef struct kl_watch_sums {
    double longest_s; /* with the shares that the program had in fact */
    double even_s;    /* with shares that are even in each part */
    double lagged_s;  /* with shares that would have been even in the part before */
} kl_watch_sums;

/* Make a table of the last iterations, those that all ranks have in their rings. It has no parts if there are
 * none. false: memory ran out. */
bool kl_watch_table_iterations(const kl_watch_rank *ranks, const kl_watch_period *periods, size_t count,
                               kl_watch_table *t);
kl_watch_sums kl_watch_add_up(const kl_watch_table *t);
/* Return the time of a part with even shares, if the ranks had equal work and differ only in speed. Return 0
 * if their times differ too much for equal work. */
double kl_watch_even_speed(const double *useful_s, size_t ranks);

void kl_watch_forecast(const kl_watch_rank *ranks, const kl_watch_table *slices, kl_watch_found *found);
void kl_watch_advise(const kl_watch_rank *ranks, kl_watch_found *found);

#endif
