/* Forecast how fast the program would be on other hosts, from its speed on its present hosts. */
#include <math.h>

#include "keeper/keeper_private.h"

double kl_keeper_rank_speed(const kl_keeper *k, const kl_keeper_host *h) {
    if (h->ranks > 0 && h->rate > 0)
        return h->rate / h->ranks;
    double pace = h->pace > 0 ? h->pace : h->qos;
    return k->costs.rank_rate > 0 ? k->costs.rank_rate * pace : pace;
}

/* Forecast the seconds of a sweep on the hosts chosen for the next attempt. The loop balances its rows, so a
 * sweep takes the number of rows divided by the sum of all rates. Ranks that share a core make other ranks
 * wait. Waiting makes a sweep longer but does not change the rates, so sweep time × rates can be too large.
 * Therefore use the least value of sweep time × rates so far as the number of rows. */
double kl_keeper_forecast_sweep_s(const kl_keeper *k) {
    double here = 0, there = 0;
    for (uint64_t i = 0; i < k->count; i++) {
        const kl_keeper_host *h = &k->hosts[i];
        here += h->rate;
        there += h->next * kl_keeper_rank_speed(k, h);
    }
    double rows = k->watch.sweep_s * here;
    if (k->costs.sweep_rows > 0)
        rows = fmin(rows, k->costs.sweep_rows);
    return here > 0 && there > 0 ? rows / there : 0;
}
