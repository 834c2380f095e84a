/* Draw a flow: its density, and which rank had which rows over time. */
#ifndef DSMC_PICTURE_H
#define DSMC_PICTURE_H

#include <stdio.h>

#include "flow.h"

/* The rows that each rank had over time: one entry for each step at which the bounds between ranks
 * changed. */
typedef struct dsmc_history {
    uint32_t ranks;
    uint64_t *step;   /* step[count] */
    uint32_t *bounds; /* bounds[count · (ranks + 1)]: rank r has the rows bounds[r] to bounds[r + 1] − 1 */
    uint64_t count, room;
} dsmc_history;

/* Append the bounds between ranks at a step if the bounds have changed. Return false if memory ran out. */
bool dsmc_history_add(dsmc_history *history, uint64_t step, const uint32_t *bounds);
void dsmc_history_free(dsmc_history *history);

/* Write the picture as SVG. sums[rows · columns] are sums over `samples` samples. */
void dsmc_draw(FILE *out, const dsmc_flow *flow, const dsmc_sums *sums, double samples, uint64_t steps,
               const dsmc_history *history);

#endif
