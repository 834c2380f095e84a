/* Forecast how fast the program would be on other hosts, from its speed on its present hosts. */
#include <math.h>

#include "keeper/keeper_private.h"

/* Other programs can only slow the run down. So the keeper learns the times of the run's fastest phase. A
 * value that differs from the mean by less than ALIKE_LEAST, or by less than ALIKE times the usual change of
 * forecasts, belongs to the same phase: it counts in the mean of the last MEAN_S seconds. Slower values are
 * ignored. Faster values are the beginning of a faster phase, and the mean follows them within about FASTER_S
 * seconds. An extreme value would not do, as values differ by chance: all other hosts would seem faster. */
static const double ALIKE_LEAST = 0.1, ALIKE = 2.5, MEAN_S = 60, FASTER_S = 5;

/* Return the mean after one more value. passed_s: seconds for which the value stands; *counted_s: seconds
 * that the mean stands for. */
static double learn(double mean, double value, double passed_s, double alike, double *counted_s) {
    double differs = mean > 0 ? log(value / mean) : 0;
    if (differs > alike)
        return mean;
    if (differs < -alike)
        return kl_keeper_smooth(mean, value, 1 - exp(-passed_s / FASTER_S));
    *counted_s = fmin(*counted_s + passed_s, MEAN_S);
    return kl_keeper_smooth(mean, value, *counted_s > 0 ? passed_s / *counted_s : 0);
}

/* Return the seconds that a rank on this host would need for a row if the host had pace 1; 0: not known. */
static double row_s(const kl_keeper_host *h) {
    static const double LEAST_PACE = 0.25;
    double pace = h->launch_pace > 0 ? h->launch_pace : 1;
    return h->ranks > 0 && h->rate > 0 ? h->ranks * fmax(pace, LEAST_PACE) / h->rate : 0;
}

static double best_row_s(const kl_keeper *k) {
    double best_s = 0;
    for (uint64_t i = 0; i < k->count; i++)
        if (row_s(&k->hosts[i]) > 0 && (best_s == 0 || row_s(&k->hosts[i]) < best_s))
            best_s = row_s(&k->hosts[i]);
    return best_s;
}

void kl_keeper_learn_speed(kl_keeper *k, double passed_s) {
    double alike = fmax(ALIKE_LEAST, ALIKE * k->evidence.usual), rate = 0, rows = 0;
    double mean_s = k->costs.rank_rate > 0 ? 1 / k->costs.rank_rate : best_row_s(k);
    for (uint64_t i = 0; i < k->count; i++) {
        rate += k->hosts[i].rate;
        if (row_s(&k->hosts[i]) > 0)
            mean_s = learn(mean_s, row_s(&k->hosts[i]), passed_s, alike, &k->costs.rate_counted_s);
    }
    rows = k->watch.sweep_s * rate;
    if (mean_s > 0)
        k->costs.rank_rate = 1 / mean_s;
    if (rows > 0)
        k->costs.sweep_rows = learn(k->costs.sweep_rows, rows, passed_s, alike, &k->costs.rows_counted_s);
}

double kl_keeper_rank_speed(const kl_keeper *k, const kl_keeper_host *h) {
    if (h->ranks > 0 && h->rate > 0)
        return h->rate / h->ranks;
    double pace = h->pace > 0 ? h->pace : h->qos;
    return k->costs.rank_rate > 0 ? k->costs.rank_rate * pace : pace;
}

/* Forecast the seconds of a sweep on the hosts chosen for the next attempt. The loop balances its rows, so a
 * sweep takes the number of rows divided by the sum of all rates. Ranks that share a core make other ranks
 * wait. Waiting makes a sweep longer but does not change the rates, so sweep time × rates can be too large.
 * Therefore the learned number of rows is used if it is smaller. */
double kl_keeper_forecast_sweep_s(const kl_keeper *k) {
    double here = 0, there = 0;
    for (uint64_t i = 0; i < k->count; i++) {
        const kl_keeper_host *h = &k->hosts[i];
        here += h->rate;
        there += h->next * kl_keeper_rank_speed(k, h);
    }
    double rows = k->costs.sweep_rows > 0 ? k->costs.sweep_rows : k->watch.sweep_s * here;
    return here > 0 && there > 0 ? rows / there : 0;
}
