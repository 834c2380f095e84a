/* Choose how many candidates to evaluate at once. */
#ifndef SP_BASKET_H
#define SP_BASKET_H

#include <stdio.h>

/* Mean times of a candidate if one candidate is evaluated at a time. All zero: not measured. */
typedef struct sp_times {
    double master_s; /* seconds that the master computes alone [t_M] */
    double farm_s;   /* seconds until the candidate's last cut has arrived [t_W and messages] */
} sp_times;

/* Return the forecast time with two candidates at once, as a multiple of the time with one at a time; NaN:
 * not measured. At best, two candidates keep either the master or the workers busy all the time, but f times
 * as many are needed: n·f·max(t_M, t_W) against n·(t_M + t_W). */
double sp_basket_ratio(const sp_times *times);

/* Print that one candidate was evaluated at a time, and what evaluating two would be expected to change. */
void sp_basket_print(FILE *out, const sp_times *times);

#endif
