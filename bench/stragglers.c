/* stragglers [--few] [--orders] [--each] [PLATFORMS [SEED]]: compare AUTO with the best other policy on
 * many random platforms, and print tables in Markdown. All policies are simulated, so the best one of each
 * platform is known.
 *   --few: 5 to 20 tasks a worker instead of 20 to 400.
 *   --orders: compare AUTO with its best time over twelve other orders of the same tasks. This shows the
 *       effect of chance.
 *   --each: print a line for every platform, so that two builds can be compared. It has the seed, whether
 *       speeds are constant, AUTO's time, the ratio of this time to the best time, the best policy, platform
 *       and tasks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster.h"
#include "platforms.h"
#include "sim/sim.h"

enum { WORST = 10, MOST_PLATFORMS = 1000000 };
/* Seconds that the master needs for a message; the default of `kilter simulate`. */
static const double ANSWER_S = 1e-5;
static const double NEAR = 1.01;
/* Ranges of random platforms, with 1 to 24 workers in up to 3 groups of up to 8. */
static const platform_range MANY = {.least_tasks = 20, .most_tasks = 400, .least_s = 1e-3, .most_s = 1},
                            FEW = {.least_tasks = 5, .most_tasks = 20, .least_s = 1e-3, .most_s = 1};

typedef struct row {
    platform p;
    double auto_s, best_s;
    const kl_policy *best;
    /* executed: number of tasks that AUTO executed; a task with a speculative copy counts as two */
    uint64_t executed, tasks;
} row;

/* --- a run --- */

static void fail(const char *text) {
    fprintf(stderr, "stragglers: %s\n", text);
    exit(1);
}

/* The same tasks in another order: from task `first` to the last task, then from task 0 to the task before
 * `first`. */
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

/* Return whether to compare AUTO with this policy. ECT is left out, because AUTO deals tasks in the same way
 * as ECT in a first run. */
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
    row r = {.p = platform_of(seed, few ? &FEW : &MANY), .best_s = INFINITY};
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
           "further executions |\n|---|---|---|---|---|---|\n");
    print_group(rows, count, "all", -1);
    print_group(rows, count, "constant", 1);
    print_group(rows, count, "changing", 0);
    qsort(rows, count, sizeof *rows, by_ratio);
    printf("\nThe table has the %d platforms on which AUTO is furthest behind:\n\n| seed | AUTO / best | "
           "best | platform | tasks |\n"
           "|---|---|---|---|---|\n",
           WORST);
    for (size_t i = 0; i < count && i < WORST; i++)
        printf("| %llu | %.3f | `%s` | `%s` | `%s` |\n", (unsigned long long)rows[i].p.seed, ratio(&rows[i]),
               kl_policy_name(rows[i].best), rows[i].p.hosts, rows[i].p.tasks);
}

static const char USAGE[] = "usage: stragglers [--few] [--orders] [--each] [PLATFORMS [SEED]]\n";

int main(int argc, char **argv) {
    bool few = take_option(&argc, &argv, "--few"), orders = take_option(&argc, &argv, "--orders");
    bool each = take_option(&argc, &argv, "--each");
    size_t count = argc > 1 ? take_number(argv[1], MOST_PLATFORMS, USAGE) : 600;
    uint64_t seed = argc > 2 ? take_number(argv[2], UINT32_MAX, USAGE) : 1;
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
