/* Choose how many candidates to evaluate at once. */
#ifndef SP_BASKET_H
#define SP_BASKET_H

#include <stdio.h>

/* Mean times for one candidate (a decision to evaluate), when candidates are evaluated one at a time. All
 * members are zero if nothing was measured. */
typedef struct sp_times {
    double master_s; /* mean seconds of the master per candidate, while no worker computes [t_M] */
    double farm_s;   /* mean seconds until a candidate's last cut has arrived [t_W and messages] */
} sp_times;

/* Return the forecast time of a solve with two candidates at once, divided by the time with one at a time.
 * Return NaN if the times were not measured. If the solve evaluates n candidates one at a time, they take
 * n·(t_M + t_W). With two at once, the solve needs f times as many candidates. At best the master or the
 * workers are always busy, so these candidates take n·f·max(t_M, t_W). */
double sp_basket_ratio(const sp_times *times);

/* Print that candidates were evaluated one at a time, and the time that is expected with two at a time. */
void sp_basket_print(FILE *out, const sp_times *times);

#endif
