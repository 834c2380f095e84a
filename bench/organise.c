/* Compare the choice of --organise auto, on random platforms, with the better of two ways: a master deals
 * tasks, or peers exchange tasks. Print tables in Markdown.
 *
 * A farm makes RUNS runs, the first one with a master. Before each later run the farm chooses who organises
 * it. For comparison, each run is also simulated with a master and with peers.
 *
 * Tasks take 1 ms to 1 s. All runs have the same tasks, and hosts change their speed at the same times.
 *   --short   tasks take 10 us to 1 ms
 *   --anew    each run has other tasks of the same law, and hosts change their speed at other times
 *   --each    print a line for every platform. The line begins with the seed, the number of workers, whether
 *             hosts keep their speed, and which way would be better if they did. Five values for each run
 *             follow: seconds with a master, seconds with peers, seconds as chosen, lower bound in seconds,
 * and the choice. The platform, the tasks and the reason for the last choice are at the end of the line.
 *   --table   read such lines from the standard input, and print their tables
 *
 * usage: organise [--short] [--anew] [--each] [PLATFORMS [SEED]]
 *        organise --table */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster.h"
#include "platforms.h"
#include "sim/sim.h"

/* ANSWER_S: time in seconds that the master needs for a message. MESSAGE_S: time that a peer needs to send or
 * receive a message. Both are the defaults of `kilter simulate`. */
static const double ANSWER_S = 1e-5, MESSAGE_S = 5e-6;
static const double NEAR = 1.01;
enum { MOST_WORKERS = 1024, MOST_PLATFORMS = 1000000 };
static const platform_range RANGE = {.most_workers = MOST_WORKERS,
                                     .least_tasks = 20,
                                     .most_tasks = 400,
                                     .least_s = 1e-3,
                                     .most_s = 1},
                            SHORT = {.most_workers = MOST_WORKERS,
                                     .least_tasks = 20,
                                     .most_tasks = 400,
                                     .least_s = 1e-5,
                                     .most_s = 1e-3};

enum { RUNS = 16, LATE = RUNS / 2 }; /* LATE: number of the first run in the second half of the runs */

/* seconds of each run: with a master, with peers, and in the way that the farm chose */
typedef struct way_times {
    double master_s[RUNS], peers_s[RUNS], auto_s[RUNS];
    bool by_peers[RUNS]; /* whether the farm chose peers for the run */
} way_times;

typedef struct row {
    platform p;
    uint32_t workers;
    way_times of;
    bool oracle_peers; /* true: peers would be faster if no host changed its speed */
    double bound_s[RUNS];
    kl_decision decision;
} row;

static void fail(const char *text) {
    fprintf(stderr, "organise: %s\n", text);
    exit(1);
}

/* --- runs --- */

/* The platform and tasks of one run. */
typedef struct scene {
    kl_cluster cluster;
    kl_tasks tasks;
    uint64_t drawn; /* seed of the task times: runs with equal numbers have equal tasks */
    kl_sim_run run;
} scene;

static double task_s(void *self, uint64_t run, uint64_t index) {
    scene *s = self;
    (void)run;
    return kl_task_s(&s->tasks, s->drawn, index);
}

static void set(scene *s, const platform *p, uint64_t drawn) {
    kilter_error error;
    if (kl_cluster_parse(p->hosts, &s->cluster, &error) != KILTER_OK ||
        kl_tasks_parse(p->tasks, &s->tasks, &error) != KILTER_OK)
        fail(error.text);
    s->tasks.seed = 1;
    s->drawn = drawn;
    s->run = (kl_sim_run){.tasks = s->tasks.count,
                          .task_s = s->tasks.law == KL_LAW_CONST ? NULL : task_s,
                          .self = s,
                          .even_s = s->tasks.mean_s};
}

static void strike(scene *s) {
    kl_cluster_free(&s->cluster);
    kl_tasks_free(&s->tasks);
}

static kl_sim *new_farm(const kl_cluster *cluster) {
    kl_sim_farm farm = {
        .cluster = cluster, .policy = kl_policy_find("auto"), .answer_s = ANSWER_S, .renews = true};
    kilter_error error;
    kl_sim *sim;
    if (kl_sim_new(&farm, &sim, &error) != KILTER_OK)
        fail(error.text);
    return sim;
}

static double with_master(kl_sim *sim, const kl_sim_run *run) {
    kl_sim_outcome outcome;
    kilter_error error;
    if (kl_sim_run_next(sim, run, &outcome, &error) != KILTER_OK)
        fail(error.text);
    if (outcome.results != run->tasks)
        fail("a task was not counted exactly once");
    return outcome.elapsed_s;
}

static double with_peers(const scene *s, double *bound_s) {
    kl_sim_peers peers = {
        .cluster = &s->cluster, .help = kl_help_at(0), .message_s = MESSAGE_S, .attends = true, .seed = 1};
    kl_sim_peers_outcome outcome;
    kilter_error error;
    if (kl_sim_peers_run(&peers, &s->run, &outcome, &error) != KILTER_OK)
        fail(error.text);
    if (outcome.results != s->run.tasks || outcome.twice > 0 || !outcome.exact)
        fail("a task was not counted exactly once");
    *bound_s = outcome.bound_s;
    return outcome.elapsed_s;
}

/* Let the farm choose between master and peers, as --organise auto does, and simulate the run in that way. */
static void as_chosen(row *r, kl_sim *sim, const kl_sim_run *run, int i) {
    r->decision = kl_sim_way(sim, run);
    bool peers = r->of.by_peers[i] = r->decision.count > 0;
    r->of.auto_s[i] = peers ? r->of.peers_s[i] : with_master(sim, run);
    if (peers)
        kl_sim_note_peers(sim, run->tasks, r->of.auto_s[i]);
}

/* Simulate the second run with master and with peers, on hosts whose speeds never change. Return whether
 * peers are faster. */
static bool oracle(const scene *s) {
    double bound_s;
    scene steady = *s;
    steady.run.self = &steady;
    steady.cluster.groups = calloc(s->cluster.group_count, sizeof *steady.cluster.groups);
    if (!steady.cluster.groups)
        fail("memory ran out");
    for (uint32_t i = 0; i < s->cluster.group_count; i++) {
        steady.cluster.groups[i] = s->cluster.groups[i];
        steady.cluster.groups[i].host.profile = (kl_profile){0};
    }
    kl_sim *sim = new_farm(&steady.cluster);
    with_master(sim, &steady.run);
    bool faster = with_peers(&steady, &bound_s) < with_master(sim, &steady.run);
    kl_sim_free(sim);
    free(steady.cluster.groups);
    return faster;
}

/* Let the hosts' speeds change in the same way as those of the platform `drawn`. */
static void change_profiles(kl_cluster *hosts, const kl_cluster *drawn) {
    for (uint32_t i = 0; i < hosts->group_count; i++)
        hosts->groups[i].host.profile = drawn->groups[i].host.profile;
}

static row measure(uint64_t seed, const platform_range *range, bool anew) {
    row r = {.p = platform_of(seed, range)};
    scene first, now;
    set(&first, &r.p, 0);
    r.workers = first.cluster.workers;
    r.oracle_peers = oracle(&first);
    kl_sim *always = new_farm(&first.cluster), *chosen = new_farm(&first.cluster);
    for (int i = 0; i < RUNS; i++) {
        platform p = anew ? platform_again(seed, range, (uint64_t)i) : r.p;
        set(&now, &p, anew ? (uint64_t)i : 0);
        change_profiles(&first.cluster, &now.cluster);
        bool known = i > 0 && !anew;
        r.of.peers_s[i] = known ? r.of.peers_s[0] : with_peers(&now, &r.bound_s[i]);
        r.bound_s[i] = known ? r.bound_s[0] : r.bound_s[i];
        r.of.master_s[i] = with_master(always, &now.run);
        as_chosen(&r, chosen, &now.run, i);
        strike(&now);
    }
    kl_sim_free(always);
    kl_sim_free(chosen);
    strike(&first);
    return r;
}

/* --- results --- */

static const char *way_of(bool peers) {
    return peers ? "peers" : "master";
}

static double better_s(const row *r, int run) {
    return fmin(r->of.master_s[run], r->of.peers_s[run]);
}

static double ratio(const row *r, int run) {
    return r->of.auto_s[run] / better_s(r, run);
}

static bool is_near(double time_s, const row *r, int run) {
    return time_s <= NEAR * better_s(r, run);
}

/* --- seconds of a run, if it is organised in one of these ways --- */

typedef double time_of(const row *r, int run);

static double master_s(const row *r, int run) {
    return r->of.master_s[run];
}

static double peers_s(const row *r, int run) {
    return r->of.peers_s[run];
}

static double auto_s(const row *r, int run) {
    return r->of.auto_s[run];
}

static double chosen_s(const row *r, int run) {
    return r->of.by_peers[run] ? peers_s(r, run) : master_s(r, run);
}

static double least_s(const row *r, int run) {
    return r->bound_s[run];
}

static double oracle_s(const row *r, int run) {
    return r->oracle_peers ? peers_s(r, run) : master_s(r, run);
}

/* Return the seconds of the second half of the runs. */
static double half_s(const row *r, time_of *of) {
    double sum_s = 0;
    for (int i = LATE; i < RUNS; i++)
        sum_s += of(r, i);
    return sum_s;
}

static double half_ratio(const row *r, time_of *of) {
    return half_s(r, of) / fmin(half_s(r, master_s), half_s(r, peers_s));
}

/* Return whether peers are faster than a master on average over all runs but the first. */
static bool mostly_peers(const row *r) {
    double more_s = 0;
    for (int i = 1; i < RUNS; i++)
        more_s += r->of.peers_s[i] - r->of.master_s[i];
    return more_s < 0;
}

/* Sums over all platforms, from which a line of a table is computed. */
typedef struct tally {
    /* platforms: number of platforms; faster: number of platforms where peers are over 1 % faster in run 2 */
    double platforms, faster;
    /* numbers of platforms where the second half of the runs took at most NEAR times as long as the better
     * way */
    double way, late, oracle, master;
    /* numbers of runs that took at most NEAR times as long as the better way in the same run */
    double second, single, fixed;
    double ratio, master_ratio, worst, below;
} tally;

static void count(tally *t, const row *r) {
    t->platforms++;
    t->faster += r->of.peers_s[1] < r->of.master_s[1] / NEAR;
    t->second += is_near(r->of.auto_s[1], r, 1);
    for (int i = 1; i < RUNS; i++) {
        t->ratio += ratio(r, i) / (RUNS - 1);
        t->master_ratio += r->of.master_s[i] / better_s(r, i) / (RUNS - 1);
    }
    t->way += half_ratio(r, chosen_s) <= NEAR;
    t->late += half_ratio(r, auto_s) <= NEAR;
    t->oracle += half_ratio(r, oracle_s) <= NEAR;
    t->master += half_ratio(r, master_s) <= NEAR;
    t->below =
        fmax(t->below, half_s(r, least_s) / half_s(r, master_s) - half_s(r, least_s) / half_s(r, auto_s));
    for (int i = LATE; i < RUNS; i++) {
        const double part = 1.0 / (RUNS - LATE);
        t->single += part * is_near(chosen_s(r, i), r, i);
        t->fixed += part * is_near(mostly_peers(r) ? r->of.peers_s[i] : r->of.master_s[i], r, i);
        t->worst = fmax(t->worst, ratio(r, i));
    }
}

/* Print a table line for the platforms with `least` to `most` workers. steady: count only platforms whose
 * hosts keep their speed. */
static void print_group(const row *rows, size_t rows_count, uint32_t least, uint32_t most, bool steady) {
    tally t = {0};
    for (size_t i = 0; i < rows_count; i++)
        if (rows[i].workers >= least && rows[i].workers <= most && (!steady || rows[i].p.steady))
            count(&t, &rows[i]);
    if (t.platforms == 0)
        return;
    double percent = 100 / t.platforms;
    printf("| %" PRIu32 " to %" PRIu32
           "%s | %.0f | %.0f | %.0f %% | %.1f %% | %.1f %% | %.3f | %.3f | %.0f %% | %.3f | "
           "%.0f %% | %.1f %% | %.1f %% | %.3f |\n",
           least, most, steady ? ", constant speeds" : "", t.platforms, t.faster, percent * t.second,
           percent * t.way, percent * t.late, t.ratio / t.platforms, t.worst, percent * t.master,
           t.master_ratio / t.platforms, percent * t.oracle, percent * t.single, percent * t.fixed, t.below);
}

static int by_ratio(const void *a, const void *b) {
    double x = half_ratio(a, auto_s), y = half_ratio(b, auto_s);
    return (x < y) - (x > y);
}

static void print_page(row *rows, size_t rows_count) {
    enum { SMALL = 64 };
    printf("| workers | platforms | peers 1 %% faster | run 2 | way in runs %d to %d | their time | mean "
           "ratio | worst | master always | its mean ratio | speeds at the start known | single runs | "
           "better way on average | most below the master |\n",
           LATE + 1, RUNS);
    puts("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    print_group(rows, rows_count, 2, MOST_WORKERS, false);
    print_group(rows, rows_count, 2, MOST_WORKERS, true);
    print_group(rows, rows_count, 2, SMALL, false);
    print_group(rows, rows_count, SMALL + 1, MOST_WORKERS, false);
    qsort(rows, rows_count, sizeof *rows, by_ratio);
    printf("\n| seed | last choice | time / better | platform | tasks |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < rows_count && half_ratio(&rows[i], auto_s) > NEAR; i++)
        printf("| %" PRIu64 " | %s | %.3f | `%s` | `%s` |\n", rows[i].p.seed,
               way_of(rows[i].of.by_peers[RUNS - 1]), half_ratio(&rows[i], auto_s), rows[i].p.hosts,
               rows[i].p.tasks);
}

/* --- option --each: a line for every platform --- */

static void print_each(const row *r) {
    printf("%" PRIu64 "\t%" PRIu32 "\t%s\t%s", r->p.seed, r->workers, r->p.steady ? "steady" : "changes",
           way_of(r->oracle_peers));
    for (int i = 0; i < RUNS; i++)
        printf("\t%.9g %.9g %.9g %.9g %s", r->of.master_s[i], r->of.peers_s[i], r->of.auto_s[i],
               r->bound_s[i], way_of(r->of.by_peers[i]));
    printf("\t%s\t%s\t%s\n", r->p.hosts, r->p.tasks, r->decision.reason);
    fflush(stdout);
}

static bool read_run(const char *text, row *r, int i) {
    char way[8];
    bool read = sscanf(text, "%lf %lf %lf %lf %7s", &r->of.master_s[i], &r->of.peers_s[i], &r->of.auto_s[i],
                       &r->bound_s[i], way) == 5;
    r->of.by_peers[i] = read && strcmp(way, way_of(true)) == 0;
    return read;
}

/* Read a line that print_each() wrote. The line is changed. */
static bool read_each(char *line, row *r) {
    enum { SEED, WORKERS, STEADY, ORACLE, FIRST, HOSTS = FIRST + RUNS, TASKS, FIELDS };
    char *fields[FIELDS];
    for (int i = 0; i < FIELDS; i++)
        if (!(fields[i] = strsep(&line, "\t")))
            return false;
    *r = (row){.workers = (uint32_t)strtoul(fields[WORKERS], NULL, 10),
               .oracle_peers = strcmp(fields[ORACLE], way_of(true)) == 0};
    r->p.seed = strtoull(fields[SEED], NULL, 10);
    r->p.steady = strcmp(fields[STEADY], "steady") == 0;
    snprintf(r->p.hosts, sizeof r->p.hosts, "%s", fields[HOSTS]);
    snprintf(r->p.tasks, sizeof r->p.tasks, "%s", fields[TASKS]);
    for (int i = 0; i < RUNS; i++)
        if (!read_run(fields[FIRST + i], r, i))
            return false;
    return true;
}

/* Print the tables for the platforms whose lines come from the standard input. */
static void print_read(void) {
    enum { MOST = 10000 };
    row *rows = calloc(MOST, sizeof *rows);
    char *line = NULL;
    size_t room = 0, count = 0;
    while (rows && count < MOST && getline(&line, &room, stdin) > 0)
        if (!read_each(line, &rows[count++]))
            fail("the input has a line that was not written by --each");
    if (!rows)
        fail("memory ran out");
    print_page(rows, count);
    free(line);
    free(rows);
}

static const char USAGE[] = "usage: organise [--short] [--anew] [--each] [PLATFORMS [SEED]] | --table\n";

int main(int argc, char **argv) {
    if (take_option(&argc, &argv, "--table")) {
        print_read();
        return 0;
    }
    const platform_range *range = take_option(&argc, &argv, "--short") ? &SHORT : &RANGE;
    bool anew = take_option(&argc, &argv, "--anew"), each = take_option(&argc, &argv, "--each");
    size_t count = argc > 1 ? take_number(argv[1], MOST_PLATFORMS, USAGE) : 100;
    uint64_t seed = argc > 2 ? take_number(argv[2], UINT32_MAX, USAGE) : 1;
    row *rows = calloc(count + 1, sizeof *rows);
    if (!rows)
        fail("memory ran out");
    for (size_t i = 0; i < count; i++) {
        rows[i] = measure(seed + i, range, anew);
        if (each)
            print_each(&rows[i]);
    }
    if (!each)
        print_page(rows, count);
    free(rows);
}
