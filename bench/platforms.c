#include "platforms.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum { GROUPS = 3, GROUP_MOST = 8 };

typedef struct dice {
    uint64_t state;
} dice;

static double chance(dice *d) {
    return ((double)(kl_mix64(++d->state) >> 11) + 0.5) * 0x1p-53;
}

static double between(dice *d, double least, double most) {
    return least + (most - least) * chance(d);
}

/* Draw a factor from least to most; its logarithm is uniform. */
static double scaled(dice *d, double least, double most) {
    return least * pow(most / least, chance(d));
}

static uint32_t one_of(dice *d, uint32_t count) {
    return (uint32_t)(chance(d) * count);
}

static void add(char *spec, const char *format, ...) KILTER_PRINTF(2, 3);
static void add(char *spec, const char *format, ...) {
    size_t used = strlen(spec);
    va_list args;
    va_start(args, format);
    vsnprintf(spec + used, SPEC_BYTES - used, format, args); // NOLINT(clang-analyzer-valist.Uninitialized)
    va_end(args);
}

/* Draw how a host's speed changes during a run of about ideal_s seconds. On average, half of the groups of
 * hosts keep their speed. The time when the change begins is drawn from `when`, or from `d` if `when` is
 * NULL. Return whether the speed changes. */
static bool add_profile(dice *d, dice *when, char *hosts, double ideal_s) {
    uint32_t kind = one_of(d, 6);
    double at = chance(d), how_long = chance(d), factor = scaled(d, 0.02, 0.8);
    double from_s = 1.2 * (when ? chance(when) : at) * ideal_s;
    if (kind == 0) {
        add(hosts, "@drop(%.6gs,%.3g)", from_s, factor);
    } else if (kind == 1) {
        add(hosts, "@freeze(%.6gs,%.6gs)", from_s, from_s + 0.05 * pow(60, how_long) * ideal_s);
    } else if (kind == 2) {
        double period_s = 0.02 * pow(100, how_long) * ideal_s;
        add(hosts, "@osc(%.6gs,%.6gs,%.3g)", period_s, (0.1 + 0.8 * at) * period_s, factor);
    }
    return kind < 3;
}

static void add_law(dice *d, char *tasks, double mean_s) {
    switch (one_of(d, 5)) {
    case 0:
        add(tasks, "const(%.6gs)", mean_s);
        break;
    case 1:
        add(tasks, "uniform(%.6gs,%.3g)", mean_s, between(d, 0.05, 0.57));
        break;
    case 2:
        add(tasks, "exp(%.6gs)", mean_s);
        break;
    default:
        add(tasks, "lognormal(%.6gs,%.3g)", mean_s, scaled(d, 0.1, 3));
    }
}

/* Draw the number of hosts of each group. If `most` is not 0, draw a number of workers up to `most`, and
 * divide this number by the number of groups. */
static uint32_t draw_group(dice *d, uint32_t most, uint32_t groups) {
    if (most == 0)
        return 1 + one_of(d, GROUP_MOST);
    uint32_t count = (uint32_t)(scaled(d, 2, most) / groups);
    return count > 0 ? count : 1;
}

platform platform_of(uint64_t seed, const platform_range *range) {
    return platform_again(seed, range, 0);
}

platform platform_again(uint64_t seed, const platform_range *range, uint64_t run) {
    dice d = {kl_mix64(seed)}, when = {kl_mix64(seed + kl_mix64(run))};
    platform p = {.seed = seed, .steady = true};
    uint32_t groups = 1 + one_of(&d, GROUPS), counts[GROUPS], workers = 0;
    double speeds[GROUPS], speed = 0;
    for (uint32_t i = 0; i < groups; i++) {
        counts[i] = draw_group(&d, range->most_workers, groups);
        speeds[i] = scaled(&d, 0.1, 2);
        workers += counts[i];
        speed += counts[i] * speeds[i];
    }
    double mean_s = scaled(&d, range->least_s, range->most_s);
    uint64_t tasks = (uint64_t)ceil(workers * scaled(&d, range->least_tasks, range->most_tasks));
    double ideal_s = (double)tasks * mean_s / speed;
    for (uint32_t i = 0; i < groups; i++) {
        add(p.hosts, "%s%ux%.3g", i ? "," : "", (unsigned)counts[i], speeds[i]);
        p.steady &= !add_profile(&d, run > 0 ? &when : NULL, p.hosts, ideal_s);
    }
    double latency_s = scaled(&d, 1e-5, 1e-3);
    add(p.hosts, ";link=%.4gs,%.4gMB/s", latency_s, scaled(&d, 10, 1000));
    if (one_of(&d, 2))
        add(p.hosts, ";master=1");
    add(p.tasks, "%llu@", (unsigned long long)tasks);
    add_law(&d, p.tasks, mean_s);
    return p;
}

bool take_option(int *argc, char ***argv, const char *option) {
    bool given = *argc > 1 && strcmp((*argv)[1], option) == 0;
    *argc -= given;
    *argv += given;
    return given;
}

uint64_t take_number(const char *text, uint64_t most, const char *usage) {
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || value > most) {
        fputs(usage, stderr);
        exit(2);
    }
    return value;
}
