/* Compute the fitness of hosts from readings. The fitness of a host is a product of factors, so a host
 * without free memory is unfit even if its cores are idle. See docs/decisions/0036-fitness-of-hosts.md. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fitness/fitness.h"
#include "fitness/fitness_private.h"

kl_reading kl_reading_none(void) {
    return (kl_reading){.at_s = NAN,
                        .cores = 1,
                        .probe = NAN,
                        .steps_per_s = NAN,
                        .quota = INFINITY,
                        .memory_left = NAN,
                        .memory_total = NAN,
                        .swap_free = NAN,
                        .swap_total = NAN,
                        .load = NAN,
                        .waits_cpu = NAN,
                        .waits_memory = NAN,
                        .waits_io = NAN,
                        .measured = NAN};
}

/* Limit a share to the range 0 … 1. A share that is not known counts as 1. */
static double share_of(double value) {
    return value >= 0 ? fmin(value, 1) : value < 0 ? 0 : 1;
}

static double cores_of(const kl_reading *r) {
    return r->cores > 0 ? r->cores : 1;
}

/* Return how many threads of other programs want a core. The probe ran one thread on each of the host's c
 * cores. With n threads of other programs, each thread of the probe got the part c / (c + n) of a core. The
 * quota of a control group also lowers this part, so the part is first divided by quota / c. */
static double others_of(const kl_reading *r) {
    double cores = cores_of(r), most = share_of(r->quota / cores);
    if (isnan(r->probe))
        return fmax(0, (isnan(r->load) ? 0 : r->load) - r->own);
    double got = most > 0 ? share_of(r->probe / most) : 0;
    return fmax(0, cores * (1 / got - 1) - r->own);
}

/* Assume that the threads of other programs are in the same control group and share its quota. Threads
 * outside of the group hardly slow down the probe. */
double kl_fit_cpu(const kl_reading *r, double threads) {
    double cores = cores_of(r), want = threads > 0 ? threads : cores;
    if (isfinite(r->measured))
        return share_of(r->measured);
    return share_of(fmin(cores, r->quota) / (want + others_of(r)));
}

static double threads_of(const kl_fit_ask *ask, size_t i) {
    uint32_t slots = ask->slots ? ask->slots[i] : 0;
    return slots > 0 ? slots : cores_of(&ask->readings[i]);
}

/* Compute the factors of a host's fitness, one for each resource. A factor is lower if processes wait for its
 * resource. */
static kl_fit fit_alone(const kl_fit_ask *ask, size_t i) {
    const kl_reading *r = &ask->readings[i];
    double enough = ask->memory_bytes > 0 ? ask->memory_bytes : 0.1 * r->memory_total;
    kl_fit fit = {.state = KL_FIT_KNOWN};
    if (isnan(r->at_s))
        fit.state = KL_FIT_UNREACHABLE;
    else if (ask->stale_s > 0 && ask->now_s - r->at_s > ask->stale_s)
        fit.state = KL_FIT_STALE;
    if (fit.state != KL_FIT_KNOWN)
        return fit;
    fit.cpu = kl_fit_cpu(r, threads_of(ask, i));
    fit.memory = share_of(r->memory_left / enough) * share_of(1 - r->waits_memory);
    fit.swap = r->swap_total > 0 ? 0.5 + 0.5 * share_of(r->swap_free / r->swap_total) : 1;
    fit.disk = share_of(1 - 0.5 * r->waits_io);
    fit.host = fit.cpu * fit.memory * fit.swap * fit.disk;
    return fit;
}

/* Compute the speed of each host, as a number of cores of the fastest host. A host of unknown speed counts as
 * the fastest. */
static void set_speeds(const kl_fit_ask *ask, kl_fit *fits) {
    double most = 0;
    for (size_t i = 0; i < ask->count; i++)
        if (fits[i].state == KL_FIT_KNOWN && ask->readings[i].steps_per_s > most)
            most = ask->readings[i].steps_per_s;
    for (size_t i = 0; i < ask->count; i++) {
        fits[i].pace = fits[i].host * (most > 0 ? share_of(ask->readings[i].steps_per_s / most) : 1);
        fits[i].speed = fits[i].pace * threads_of(ask, i);
    }
}

kilter_status kl_fit_hosts(const kl_fit_ask *ask, kl_fit *fits, kilter_error *error) {
    for (size_t i = 0; i < ask->count; i++)
        fits[i] = fit_alone(ask, i);
    if (!kl_fit_net(ask, fits))
        return kl_fail(error, KILTER_ERR_MEMORY, "finding the fitness of hosts: memory ran out");
    for (size_t i = 0; i < ask->count; i++)
        if (fits[i].state == KL_FIT_KNOWN)
            fits[i].qos = ask->weight * fits[i].host + (1 - ask->weight) * fits[i].net;
    set_speeds(ask, fits);
    return KILTER_OK;
}

double kl_fit_mean(const kl_fit *fits, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += fits[i].qos;
    return count > 0 ? sum / (double)count : 0;
}

/* --- the reason for a low fitness, in words --- */

static void cpu_words(const kl_reading *r, char why[KL_FIT_WHY_BYTES]) {
    double by_quota = share_of(r->quota / cores_of(r));
    if (by_quota < 1 && !isfinite(r->measured) && others_of(r) < 0.5)
        snprintf(why, KL_FIT_WHY_BYTES, "a quota of %.3g of %u cores", r->quota, r->cores);
    else
        snprintf(why, KL_FIT_WHY_BYTES, "other programs use the cores");
}

void kl_fit_why(const kl_fit *fit, const kl_reading *r, char why[KL_FIT_WHY_BYTES]) {
    static const double NOTABLE = 0.9;
    double least = fmin(fmin(fit->cpu, fmin(fit->memory, fit->swap)), fmin(fit->disk, fit->net));
    const char *words = "";
    if (fit->state != KL_FIT_KNOWN)
        words = fit->state == KL_FIT_STALE ? "stale: no new answer" : "unreachable";
    else if (least >= NOTABLE)
        words = "";
    else if (least == fit->memory)
        words = r->waits_memory > 0.1 ? "processes wait for memory" : "little memory is left";
    else if (least == fit->swap)
        words = "its swap space is in use";
    else if (least == fit->disk)
        words = "processes wait for its disk";
    else if (least == fit->net && least != fit->cpu)
        words = fit->net > 0 ? "slow links to other hosts" : "no link to other hosts";
    else {
        cpu_words(r, why);
        return;
    }
    snprintf(why, KL_FIT_WHY_BYTES, "%s", words);
}
