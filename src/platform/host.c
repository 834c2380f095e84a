/* Compute how much work a host does over time. Its speed is given by a profile, and is constant between two
 * steps of the profile. */
#include <math.h>

#include "platform/platform.h"

/* A period of time with constant speed, which ends at until_s. */
typedef struct stretch {
    double speed, until_s;
} stretch;

static stretch stretch_at(const kl_host *host, double at_s) {
    const kl_profile *p = &host->profile;
    double begin_s = p->period_s > 0 ? floor(at_s / p->period_s) * p->period_s : 0;
    double in_s = at_s - begin_s, factor = 1;
    uint32_t next = 0;
    for (; next < p->count && p->at_s[next] <= in_s; next++)
        factor = p->factor[next];
    double until_s = next < p->count                   ? begin_s + p->at_s[next]
                     : p->period_s > 0 && p->count > 0 ? begin_s + p->period_s
                                                       : INFINITY;
    /* a stretch must end after at_s, but rounding may give an end that is not later than at_s */
    if (until_s <= at_s)
        until_s = nextafter(at_s, INFINITY);
    return (stretch){host->speed * factor, until_s};
}

double kl_host_speed(const kl_host *host, double at_s) {
    return stretch_at(host, at_s).speed;
}

/* Return the work that the host does in one period of its profile; 0: the profile does not repeat. */
static double period_work_s(const kl_host *host) {
    const kl_profile *p = &host->profile;
    if (!(p->period_s > 0) || p->count == 0)
        return 0;
    double sum = p->at_s[0];
    for (uint32_t i = 0; i < p->count; i++)
        sum += p->factor[i] * ((i + 1 < p->count ? p->at_s[i + 1] : p->period_s) - p->at_s[i]);
    return host->speed * sum;
}

double kl_host_end_s(const kl_host *host, double from_s, double work_s) {
    if (host->profile.count == 0)
        return from_s + work_s / host->speed;
    double at_s = from_s, period = period_work_s(host);
    if (period > 0 && work_s > period) { /* skip the work of whole periods of the profile */
        double periods = floor(work_s / period);
        at_s += periods * host->profile.period_s;
        work_s -= periods * period;
    }
    for (;;) {
        stretch s = stretch_at(host, at_s);
        double room = (s.until_s - at_s) * s.speed;
        if (work_s <= room || isinf(s.until_s))
            return s.speed > 0 ? at_s + work_s / s.speed : INFINITY;
        work_s -= room;
        at_s = s.until_s;
    }
}

double kl_host_work_s(const kl_host *host, double from_s, double to_s) {
    if (host->profile.count == 0)
        return (to_s - from_s) * host->speed;
    double at_s = from_s, sum = 0, period = period_work_s(host);
    if (period > 0 && to_s - at_s > host->profile.period_s) {
        double periods = floor((to_s - at_s) / host->profile.period_s);
        sum = periods * period;
        at_s += periods * host->profile.period_s;
    }
    while (at_s < to_s) {
        stretch s = stretch_at(host, at_s);
        double end_s = fmin(s.until_s, to_s);
        sum += (end_s - at_s) * s.speed;
        at_s = end_s;
    }
    return sum;
}

const kl_host *kl_cluster_master(const kl_cluster *cluster) {
    return cluster->master_apart ? &cluster->master : &cluster->groups[0].host;
}

static double all_work_s(const kl_cluster *cluster, double from_s, double to_s) {
    double sum = 0;
    for (uint32_t i = 0; i < cluster->group_count; i++)
        sum += cluster->groups[i].count * kl_host_work_s(&cluster->groups[i].host, from_s, to_s);
    return sum;
}

/* Find the time by bisection and secant steps in turn. The work done grows continuously with time, so
 * bisection converges. If no host changes its speed between the two ends of the interval, a secant step
 * gives the exact time. */
double kl_cluster_bound_s(const kl_cluster *cluster, double from_s, double work_s) {
    double low_s = 0, high_s = 1e-6, low = 0, high;
    if (!(work_s > 0))
        return 0;
    while ((high = all_work_s(cluster, from_s, from_s + high_s)) < work_s) {
        low_s = high_s;
        low = high;
        high_s *= 2;
        if (isinf(high_s))
            return INFINITY;
    }
    for (int i = 0; i < 200 && high_s - low_s > 1e-12 * high_s; i++) {
        double secant_s = low_s + (high_s - low_s) * (work_s - low) / (high - low);
        double at_s = i % 2 ? (low_s + high_s) / 2 : secant_s;
        double work = all_work_s(cluster, from_s, from_s + at_s);
        if (fabs(work - work_s) <= 1e-12 * work_s)
            return at_s;
        if (work < work_s) {
            low_s = at_s;
            low = work;
        } else {
            high_s = at_s;
            high = work;
        }
    }
    return high_s;
}
