/* Forecast how fast the program would be on other hosts, from its speed on its present hosts. */
#include <math.h>

#include "keeper/keeper_private.h"

/* The keeper learns the program's speed from means over about LEARN_S seconds of an attempt. The first WARM_S
 * seconds are left out, because a program that starts is often faster or slower than later. A mean counts
 * after SURE_S seconds. Means over shorter times would differ by chance, and their extremes would promise
 * gains that no move brings. */
static const double LEARN_S = 20, WARM_S = 2, SURE_S = 3;
static const double LEAST_PACE = 0.25;
/* a sweep differs by at most this part by chance; greater differences are the work of other programs */
static const double DIFFERS_MOST = 0.15;

/* Return the mean in which a new value counts for passed_s of all seconds, but of at most about LEARN_S
 * seconds. */
static double long_mean(double mean, double value, double passed_s, double seconds) {
    double weight = seconds > 0 ? fmax(1 - exp(-passed_s / LEARN_S), passed_s / seconds) : 1;
    return kl_keeper_smooth(mean, value, weight);
}

/* Return the rows per second that the best rank would have on a host of pace 1. Take the mean of each host
 * before the best: the ranks' rates often differ by chance, and then the greatest one is too great. */
static double best_rate(kl_keeper *k, double passed_s) {
    double best = 0;
    for (uint64_t i = 0; i < k->count; i++) {
        kl_keeper_host *h = &k->hosts[i];
        double pace = h->launch_pace > 0 ? h->launch_pace : 1;
        if (h->ranks == 0 || !(h->told > 0))
            continue;
        h->row_s = long_mean(h->row_s, 1 / h->told, passed_s, k->watch.learnt.seconds);
        best = fmax(best, 1 / h->row_s / h->ranks / fmax(pace, LEAST_PACE));
    }
    return best;
}

static double rows_of_sweep(const kl_keeper *k) {
    double rate = 0;
    for (uint64_t i = 0; i < k->count; i++)
        rate += k->hosts[i].rate;
    return k->watch.sweep_s * rate;
}

/* Learn the speed of the present attempt. Other programs can only slow the run down, so the best values of
 * all attempts count. There is one exception: if the run has moved to hosts that seemed free, and is not
 * faster there, the earlier values were wrong. */
void kl_keeper_learn_speed(kl_keeper *k, double passed_s) {
    kl_keeper_learnt *l = &k->watch.learnt;
    double rows = rows_of_sweep(k);
    if (!(rows > 0) || k->now_s - k->watch.first_s < WARM_S)
        return;
    bool was_sure = l->seconds >= SURE_S;
    l->seconds += passed_s;
    l->sweep_rows = long_mean(l->sweep_rows, rows, passed_s, l->seconds);
    l->sweep_s = long_mean(l->sweep_s, k->watch.sweep_s, passed_s, l->seconds);
    double differs = fabs(k->watch.sweep_s / l->sweep_s - 1);
    if (differs < DIFFERS_MOST)
        l->spread = long_mean(l->spread, differs, passed_s, l->seconds);
    double rank_rate = best_rate(k, passed_s);
    if (l->seconds < SURE_S)
        return;
    bool anew = !(k->costs.rank_rate > 0) || (!was_sure && kl_keeper_promise_broken(k));
    k->costs.rank_rate = anew ? rank_rate : fmax(k->costs.rank_rate, rank_rate);
    k->costs.sweep_rows = anew ? l->sweep_rows : fmin(k->costs.sweep_rows, l->sweep_rows);
}

double kl_keeper_rank_speed(const kl_keeper *k, const kl_keeper_host *h) {
    bool known = k->costs.rank_rate > 0;
    if (known && h->ranks > 0 && h->rate > 0)
        return h->rate / h->ranks;
    double pace = h->pace > 0 ? h->pace : h->qos;
    return known ? k->costs.rank_rate * pace : pace;
}

/* Forecast the seconds of a sweep on the hosts chosen for the next attempt. The loop balances its rows, so a
 * sweep takes the number of rows divided by the sum of all rates. Ranks that share a core make other ranks
 * wait. Waiting makes a sweep longer but does not change the rates, so sweep time × rates can be too large.
 * Therefore use the learnt value of sweep time × rates as the number of rows if it is smaller. */
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
