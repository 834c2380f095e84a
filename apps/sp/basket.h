/* How many candidates at once? */
#ifndef SP_BASKET_H
#define SP_BASKET_H

#include <stdio.h>

/* A candidate's, where one comes after the other, mean. Zeroed: not measured. */
typedef struct sp_times {
    double master_s; /* the master alone [t_M] */
    double farm_s;   /* until its last cut has come [t_W and messages] */
} sp_times;

/* Forecast: time with two at once over that with one after the other. Two share master and workers without a
 * gap at best, and take more candidates: n·f·max(t_M, t_W) against n·(t_M + t_W). NaN: not measured. */
double sp_basket_ratio(const sp_times *times);

/* Why one at a time, in words. */
void sp_basket_print(FILE *out, const sp_times *times);

#endif
