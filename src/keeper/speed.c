/* Forecast how fast the program would be on other hosts, from its speed on its present hosts. */
#include <math.h>
#include <stdlib.h>

#include "keeper/keeper_private.h"

/* Return the seconds that a rank on this host would need for a row if the host had pace 1; 0: not known. */
static double row_s(const kl_keeper_host *h) {
    static const double LEAST_PACE = 0.25;
    double pace = h->launch_pace > 0 ? h->launch_pace : 1;
    return h->ranks > 0 && h->rate > 0 ? h->ranks * fmax(pace, LEAST_PACE) / h->rate : 0;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Return the median of row_s() over the hosts in use; 0: no rates are known, or memory ran out. */
static double median_row_s(const kl_keeper *k) {
    double *all_s = malloc((k->count + 1) * sizeof *all_s), median_s = 0;
    size_t count = 0;
    for (uint64_t i = 0; i < k->count && all_s; i++)
        if (row_s(&k->hosts[i]) > 0)
            all_s[count++] = row_s(&k->hosts[i]);
    if (count > 0) {
        qsort(all_s, count, sizeof *all_s, by_size);
        median_s = all_s[(count - 1) / 2];
    }
    free(all_s);
    return median_s;
}

/* Return how many rows all ranks do in the time of a sweep. */
static double rows_now(const kl_keeper *k) {
    double rate = 0;
    for (uint64_t i = 0; i < k->count; i++)
        rate += k->hosts[i].rate;
    return k->watch.sweep_s * rate;
}

static void learn(kl_keeper *k, kl_keeper_mean *mean, double value, double passed_s) {
    if (!(value > 0))
        return;
    kl_keeper_note_change(&mean->change, log(value), k->now_s, k->watch.started_s);
    kl_keeper_learn(mean, value, passed_s);
}

void kl_keeper_learn_speed(kl_keeper *k, double passed_s) {
    learn(k, &k->costs.row_s, median_row_s(k), passed_s);
    learn(k, &k->costs.sweep_rows, rows_now(k), passed_s);
}

double kl_keeper_rank_speed(const kl_keeper *k, const kl_keeper_host *h) {
    if (h->ranks > 0 && h->rate > 0)
        return h->rate / h->ranks;
    double pace = h->pace > 0 ? h->pace : h->qos;
    return k->costs.row_s.value > 0 ? pace / k->costs.row_s.value : pace;
}

/* Return the number of rows in a sweep. Ranks that share a core make other ranks wait. Waiting makes a sweep
 * longer but does not change the rates, so sweep time × rates can be too large. Therefore the mean of the
 * fastest phase is used, until a value is clearly below it. */
static double rows_of_sweep(const kl_keeper *k) {
    const kl_keeper_mean *rows = &k->costs.sweep_rows;
    double now = rows_now(k);
    return rows->value > 0 && now > rows->value * exp(-kl_keeper_alike(rows)) ? rows->value : now;
}

/* Forecast the seconds of a sweep on the hosts chosen for the next attempt. The loop balances its rows, so a
 * sweep takes the number of rows divided by the sum of all rates. */
double kl_keeper_forecast_sweep_s(const kl_keeper *k) {
    double here = 0, there = 0;
    for (uint64_t i = 0; i < k->count; i++) {
        const kl_keeper_host *h = &k->hosts[i];
        here += h->rate;
        there += h->next * kl_keeper_rank_speed(k, h);
    }
    return here > 0 && there > 0 ? rows_of_sweep(k) / there : 0;
}
