/* Count the rows that the busiest rank sends and receives in a move. If the size of rows changes, a row
 * counts by its bytes. */
#include "steer/parts.h"

typedef struct walk { /* A position that moves over the bounds between ranks, in rising order. */
    const kl_outlook *o;
    const kl_place *before;
    uint32_t rank; /* the rank whose range of rows contains the last bound visited */
    /* number of rows below this rank's range; a row counts by its size relative to the mean */
    double below;
} walk;

/* Return the number of rows below a bound; a row counts by its size relative to the mean. */
static double rows_below(walk *w, uint64_t bound) {
    while (w->rank + 1 < w->o->options.ranks && w->before[w->rank + 1] <= bound) {
        w->below += (double)(w->before[w->rank + 1] - w->before[w->rank]) * w->o->weight[w->rank];
        w->rank++;
    }
    return w->below + (double)(bound - w->before[w->rank]) * w->o->weight[w->rank];
}

/* Return the number of rows between the old and the new place of a bound; a row counts by its size relative
 * to the mean. */
static double passing(walk *w, uint64_t before, uint64_t after) {
    double first = rows_below(w, before < after ? before : after);
    /* continue with a copy of the walk, because the next bound may lie below the upper place */
    walk further = *w;
    return rows_below(&further, before < after ? after : before) - first;
}

static double busiest_flow(const kl_outlook *o, const kl_place *before, const kl_place *after) {
    walk w = {.o = o, .before = before};
    double most = 0, last = 0;
    for (uint32_t r = 1; r <= o->options.ranks; r++) {
        double next = r < o->options.ranks ? passing(&w, before[r], after[r]) : 0;
        most = kl_larger(most, last + next);
        last = next;
    }
    return most;
}

static double busiest_transfer(const kl_outlook *o, const kl_place *before, const kl_place *after) {
    double given = 0, weight = 0, most = 0;
    for (uint32_t r = 0; r < o->options.ranks; r++)
        if (before[r] > after[r]) {
            given += (double)(before[r] - after[r]);
            weight += (double)(before[r] - after[r]) * o->weight[r];
        }
    for (uint32_t r = 0; r < o->options.ranks; r++)
        most = kl_larger(most, before[r] > after[r] ? (double)(before[r] - after[r]) * o->weight[r]
                               : given > 0          ? (double)(after[r] - before[r]) * weight / given
                                                    : 0);
    return most;
}

double kl_busiest(const kl_outlook *o, const kl_place *before, const kl_place *after) {
    uint32_t ranks = o->options.ranks;
    bool scattered = o->options.scattered;
    if (o->mean_bytes > 0)
        return (scattered ? busiest_transfer : busiest_flow)(o, before, after);
    return (double)(scattered ? kl_transfers_busiest : kl_flow_busiest)(ranks, before, after);
}
