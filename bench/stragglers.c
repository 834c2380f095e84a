/* stragglers [--few] [--orders] [--each] [PLATFORMS [SEED]]: compare AUTO with the best other policy, chosen
 * afterwards for each of many random platforms; print Markdown.
 * --few: 5 to 20 tasks a worker instead of 20 to 400.
 * --orders: compare AUTO with its own best of twelve other orders of the same tasks, which shows the effect
 * of chance.
 * --each: print a line for every platform, to compare two builds: seed, whether speeds are constant, AUTO's
 * time, that time over the best one's, the best policy, platform and tasks. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster.h"
#include "sim/sim.h"

enum { SPEC_BYTES = 512, WORST = 10, MOST_PLATFORMS = 1000000 };
static const double ANSWER_S = 1e-5; /* default of `kilter simulate`, in tasks */
static const double NEAR = 1.01;

typedef struct platform {
    uint64_t seed;
    char hosts[SPEC_BYTES], tasks[SPEC_BYTES];
    bool steady; /* true: no host's speed changes */
} platform;

typedef struct row {
    platform p;
    double auto_s, best_s;
    const kl_policy *best;
    uint64_t executed,
        tasks; /* number of tasks that AUTO executed; a task with a speculative copy counts twice */
} row;

/* --- random platforms --- */

typedef struct dice {
    uint64_t state;
} dice;

static double chance(dice *d) {
    return ((double)(kl_mix64(++d->state) >> 11) + 0.5) * 0x1p-53;
}

static double between(dice *d, double least, double most) {
    return least + (most - least) * chance(d);
}

/* Draw a factor; its logarithm is uniform. */
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
    vsnprintf(spec + used, SPEC_BYTES - used, format, args);
    va_end(args);
}

/* Draw a change of a host's speed, for a run of about ideal_s seconds. Half of the groups have no change. */
static bool add_profile(dice *d, char *hosts, double ideal_s) {
    uint32_t kind = one_of(d, 6);
    double at = chance(d), how_long = chance(d), factor = scaled(d, 0.02, 0.8);
    double from_s = 1.2 * at * ideal_s;
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

static platform platform_of(uint64_t seed, bool few) {
    enum { GROUPS = 3 };
    dice d = {kl_mix64(seed)};
    platform p = {.seed = seed, .steady = true};
    uint32_t groups = 1 + one_of(&d, GROUPS), counts[GROUPS], workers = 0;
    double speeds[GROUPS], speed = 0;
    for (uint32_t i = 0; i < groups; i++) {
        counts[i] = 1 + one_of(&d, 8);
        speeds[i] = scaled(&d, 0.1, 2);
        workers += counts[i];
        speed += counts[i] * speeds[i];
    }
    double mean_s = scaled(&d, 1e-3, 1);
    uint64_t tasks = (uint64_t)ceil(workers * (few ? scaled(&d, 5, 20) : scaled(&d, 20, 400)));
    double ideal_s = (double)tasks * mean_s / speed;
    for (uint32_t i = 0; i < groups; i++) {
        add(p.hosts, "%s%ux%.3g", i ? "," : "", (unsigned)counts[i], speeds[i]);
        p.steady &= !add_profile(&d, p.hosts, ideal_s);
    }
    double latency_s = scaled(&d, 1e-5, 1e-3);
    add(p.hosts, ";link=%.4gs,%.4gMB/s", latency_s, scaled(&d, 10, 1000));
    if (one_of(&d, 2))
        add(p.hosts, ";master=1");
    add(p.tasks, "%llu@", (unsigned long long)tasks);
    add_law(&d, p.tasks, mean_s);
    return p;
}

/* --- a run --- */

static void fail(const char *text) {
    fprintf(stderr, "stragglers: %s\n", text);
    exit(1);
}

/* Return the same tasks in another order: from task `first` to the end, then from task 0. */
typedef struct order {
    const kl_tasks *tasks;
    uint64_t first;
} order;

static double task_s(void *self, uint64_t run, uint64_t index) {
    const order *o = self;
    return kl_task_s(o->tasks, run, (index + o->first) % o->tasks->count);
}

static double elapsed_s(const kl_cluster *cluster, order o, const kl_policy *policy, row *r) {
    const kl_tasks *tasks = o.tasks;
    kl_sim_farm farm = {.cluster = cluster, .policy = policy, .answer_s = ANSWER_S};
    kl_sim_run run = {.tasks = tasks->count,
                      .task_s = tasks->law == KL_LAW_CONST ? NULL : task_s,
                      .self = &o,
                      .even_s = tasks->mean_s};
    kl_sim_outcome outcome;
    kilter_error error;
    kl_sim *sim;
    if (kl_sim_new(&farm, &sim, &error) != KILTER_OK ||
        kl_sim_run_next(sim, &run, &outcome, &error) != KILTER_OK)
        fail(error.text);
    kl_sim_free(sim);
    r->executed = outcome.executed;
    r->tasks = outcome.results;
    if (r->tasks != tasks->count)
        fail("a task was not counted exactly once");
    return outcome.elapsed_s;
}

/* ECT is left out, because it deals as AUTO does in a first run. */
static bool is_other(const kl_policy *policy) {
    return policy != kl_policy_find("auto") && policy != kl_policy_find("ect");
}

enum { ORDERS = 12 };

static void find_best(row *r, const kl_cluster *cluster, const kl_tasks *tasks, bool orders) {
    const kl_policy *own = kl_policy_find("auto");
    for (size_t i = 0; i < (orders ? ORDERS : kl_policy_count()); i++) {
        const kl_policy *policy = orders ? own : kl_policy_at(i);
        order o = {tasks, orders ? (i + 1) * tasks->count / (ORDERS + 1) : 0};
        double took_s = orders || is_other(policy) ? elapsed_s(cluster, o, policy, r) : INFINITY;
        if (took_s < r->best_s) {
            r->best_s = took_s;
            r->best = policy;
        }
    }
}

static row measure(uint64_t seed, bool few, bool orders) {
    row r = {.p = platform_of(seed, few), .best_s = INFINITY};
    kl_cluster cluster;
    kl_tasks tasks;
    kilter_error error;
    if (kl_cluster_parse(r.p.hosts, &cluster, &error) != KILTER_OK ||
        kl_tasks_parse(r.p.tasks, &tasks, &error) != KILTER_OK)
        fail(error.text);
    tasks.seed = 1;
    find_best(&r, &cluster, &tasks, orders);
    r.auto_s = elapsed_s(&cluster, (order){&tasks, 0}, kl_policy_find("auto"), &r);
    kl_cluster_free(&cluster);
    kl_tasks_free(&tasks);
    return r;
}

/* --- results --- */

static double ratio(const row *r) {
    return r->auto_s / r->best_s;
}

static void print_group(const row *rows, size_t count, const char *name, int steady) {
    double sum = 0, worst = 0, near = 0, n = 0, executed = 0, tasks = 0;
    for (size_t i = 0; i < count; i++) {
        if (steady >= 0 && rows[i].p.steady != steady)
            continue;
        n++;
        sum += ratio(&rows[i]);
        near += ratio(&rows[i]) <= NEAR;
        worst = fmax(worst, ratio(&rows[i]));
        executed += (double)rows[i].executed;
        tasks += (double)rows[i].tasks;
    }
    if (n > 0)
        printf("| %s | %.0f | %.3f | %.1f %% | %.2f | %.2f %% |\n", name, n, sum / n, 100 * near / n, worst,
               100 * (executed / tasks - 1));
}

static int by_ratio(const void *a, const void *b) {
    double x = ratio(a), y = ratio(b);
    return (x < y) - (x > y);
}

static void print_page(row *rows, size_t count) {
    printf("| speeds | platforms | mean of AUTO's time over the best one's | within 1 %% or better | worst | "
           "tasks done twice |\n|---|---|---|---|---|---|\n");
    print_group(rows, count, "all", -1);
    print_group(rows, count, "constant", 1);
    print_group(rows, count, "changing", 0);
    qsort(rows, count, sizeof *rows, by_ratio);
    printf("\nThe %d on which AUTO is furthest behind:\n\n| seed | AUTO / best | best | platform | tasks |\n"
           "|---|---|---|---|---|\n",
           WORST);
    for (size_t i = 0; i < count && i < WORST; i++)
        printf("| %llu | %.3f | `%s` | `%s` | `%s` |\n", (unsigned long long)rows[i].p.seed, ratio(&rows[i]),
               kl_policy_name(rows[i].best), rows[i].p.hosts, rows[i].p.tasks);
}

static uint64_t number(const char *text, uint64_t most) {
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || value > most) {
        fprintf(stderr, "usage: stragglers [--few] [--orders] [--each] [PLATFORMS [SEED]]\n");
        exit(2);
    }
    return value;
}

static bool takes(int *argc, char ***argv, const char *option) {
    bool given = *argc > 1 && strcmp((*argv)[1], option) == 0;
    *argc -= given;
    *argv += given;
    return given;
}

int main(int argc, char **argv) {
    bool few = takes(&argc, &argv, "--few"), orders = takes(&argc, &argv, "--orders");
    bool each = takes(&argc, &argv, "--each");
    size_t count = argc > 1 ? number(argv[1], MOST_PLATFORMS) : 600;
    uint64_t seed = argc > 2 ? number(argv[2], UINT32_MAX) : 1;
    row *rows = calloc(count + 1, sizeof *rows);
    if (!rows)
        fail("memory ran out");
    for (size_t i = 0; i < count; i++) {
        rows[i] = measure(seed + i, few, orders);
        if (each)
            printf("%llu\t%d\t%.9g\t%.6f\t%s\t%s\t%s\n", (unsigned long long)rows[i].p.seed, rows[i].p.steady,
                   rows[i].auto_s, ratio(&rows[i]), kl_policy_name(rows[i].best), rows[i].p.hosts,
                   rows[i].p.tasks);
    }
    if (!each)
        print_page(rows, count);
    free(rows);
}
