/* Choose how many candidates to evaluate at once. */
#ifndef SP_BASKET_H
#define SP_BASKET_H

#include <stdio.h>

/* Mean times of a candidate when candidates come one after the other. All zero: not measured. */
typedef struct sp_times {
    double master_s; /* seconds that the master computes alone [t_M] */
    double farm_s;   /* seconds until the candidate's last cut has arrived [t_W and messages] */
} sp_times;

/* Return the forecast ratio of times with two candidates at once and with one. At best, two candidates keep
 * the master or the workers busy all the time, but more candidates are needed: n·f·max(t_M, t_W) against
 * n·(t_M + t_W). NaN: not measured. */
double sp_basket_ratio(const sp_times *times);

/* Print why one candidate at a time is better. */
void sp_basket_print(FILE *out, const sp_times *times);

#endif
