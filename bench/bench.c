/* kilter-bench: measure the costs and the efficiency of Kilter. Results are ratios of two measurements that
 * were made side by side.
 *
 *   a  time of one chunk's round trip, divided by the time of a ping-pong on the bare transport
 *   b  efficiency of the policies with two workers, one of them at half speed
 *   c  tasks per second for empty tasks
 *   d  time of a run with a record, and with stored results, divided by the time of a run with neither
 *   e  the master's memory for each task
 *   f  time of a decision, by the number of workers
 *
 * Machines are shared and noisy, so the two measurements of a ratio alternate several times, and the median
 * counts. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kilter/kilter.h>

#include "decide/decide.h"
#include "sys/sys.h"
#include "transport/transport.h"

enum { REPEATS = 5 };

static double now_s(void) {
    kl_clock clock = kl_clock_system();
    return kl_now_s(&clock);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_size);
    return values[count / 2];
}

static void give_up(const kilter_error *error) {
    exit(kilter_exit("kilter-bench", error));
}

/* --- tasks, which use CPU time, so a worker with half a core takes twice as long --- */

static int empty(const kilter_task *task, kilter_result *result, void *state) {
    (void)task, (void)result, (void)state;
    return 0;
}

static int one_ms(const kilter_task *task, kilter_result *result, void *state) {
    (void)task, (void)result, (void)state;
    kl_spend_s(1e-3);
    return 0;
}

static int ten_ms(const kilter_task *task, kilter_result *result, void *state) {
    (void)task, (void)result, (void)state;
    kl_spend_s(10e-3);
    return 0;
}

/* Use CPU time: a log-normal time with mean 2 ms and σ/μ = 0.8, which depends only on the index. */
static int mixed(const kilter_task *task, kilter_result *result, void *state) {
    (void)result, (void)state;
    double s2 = log(1 + 0.8 * 0.8), u = ((double)(kl_mix64(2 * task->index) >> 11) + 0.5) * 0x1p-53;
    double v = (double)(kl_mix64(2 * task->index + 1) >> 11) * 0x1p-53;
    double normal = sqrt(-2 * log(u)) * cos(2 * acos(-1) * v);
    kl_spend_s(2e-3 * exp(sqrt(s2) * normal - s2 / 2));
    return 0;
}

/* --- a trial: one farm, which does several runs --- */

typedef struct trial {
    kilter_work_fn work;
    uint32_t workers;
    const char *policy, *record, *resume;
    uint64_t tasks;
    int runs; /* number of runs; the last one is measured */
} trial;

static kilter_farm_summary farm_trial(const trial *t) {
    kilter_farm *farm;
    kilter_error error;
    kilter_farm_summary summary;
    kilter_farm_options options = {.work = t->work,
                                   .workers = t->workers,
                                   .policy = t->policy,
                                   .record = t->record,
                                   .resume = t->resume,
                                   .name = "bench"};
    if (kilter_farm_open(&options, NULL, NULL, &farm, &error) != KILTER_OK)
        give_up(&error);
    double began_s = 0;
    for (int i = 0; i < t->runs; i++) {
        began_s = kl_monotonic_s();
        if (kilter_farm_run(farm, &(kilter_run){.tasks = t->tasks}, &error) != KILTER_OK)
            give_up(&error);
    }
    double took_s = kl_monotonic_s() - began_s;
    kilter_farm_summary_get(farm, &summary);
    if (t->resume)
        summary.elapsed_s =
            took_s; /* with `resume`, elapsed_s must include the time until the last result is on the disk */
    summary.decision = NULL; /* the farm will free this text */
    kilter_farm_close(farm, NULL);
    return summary;
}

/* --- part a: round trips of a chunk --- */

enum { EXCHANGES = 20000 };

static int echo_process(void *arg) {
    char binding[KL_BINDING_BYTES];
    kl_transport *t;
    kl_event event;
    kl_bind_cores(0, 1, binding);
    if (kl_zmq_join(arg, &(kl_zmq_options){0}, &t, NULL) != KILTER_OK)
        return 1;
    while (kl_poll(t, -1, &event, NULL) == KILTER_OK && event.kind != KL_EVENT_LEFT)
        if (event.kind == KL_EVENT_MESSAGE) {
            t->ops->send(t, event.peer, event.message.data, event.message.size, NULL);
            kl_message_release(&event.message);
        }
    kl_transport_close(t);
    return 0;
}

static double ping_pong_s(void) {
    kilter_error error;
    kl_transport *t = NULL;
    kl_event event;
    char *folder, *endpoint;
    pid_t pid;
    if (kl_private_dir(&folder, &error) != KILTER_OK)
        give_up(&error);
    endpoint = kl_text("ipc://%s/bench", folder);
    if (kl_process_start(echo_process, endpoint, &pid, &error) != KILTER_OK ||
        kl_zmq_listen(endpoint, &(kl_zmq_options){0}, NULL, &t, &error) != KILTER_OK)
        give_up(&error);
    do
        kl_poll(t, -1, &event, NULL);
    while (event.kind != KL_EVENT_JOINED);
    kl_peer peer = event.peer;
    double began_s = 0;
    for (int i = -1000; i < EXCHANGES; i++) {
        if (i == 0)
            began_s = now_s();
        t->ops->send(t, peer, "8 bytes", 8, NULL);
        do
            kl_poll(t, -1, &event, NULL);
        while (event.kind != KL_EVENT_MESSAGE);
        kl_message_release(&event.message);
    }
    double each_s = (now_s() - began_s) / EXCHANGES;
    kl_transport_close(t);
    kl_process_finish(pid, 5);
    rmdir(folder);
    free(folder);
    free(endpoint);
    return each_s;
}

static void bench_round_trip(void) {
    double bare[REPEATS], farm[REPEATS], ratio[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        trial t = {
            .work = empty, .workers = 1, .policy = "ss", .record = "none", .tasks = EXCHANGES, .runs = 1};
        bare[i] = ping_pong_s();
        farm[i] = farm_trial(&t).elapsed_s / EXCHANGES;
        ratio[i] = farm[i] / bare[i];
    }
    printf("a  one chunk's round trip (ss, one worker, empty tasks)\n");
    printf("   bare ping-pong %.1f µs, chunk %.1f µs, ratio %.2f (at most 1.50)\n\n",
           1e6 * median(bare, REPEATS), 1e6 * median(farm, REPEATS), median(ratio, REPEATS));
}

/* --- part b: efficiency of the policies --- */

static int compete(void *arg) {
    char binding[KL_BINDING_BYTES];
    kl_bind_cores(*(uint32_t *)arg, 1, binding);
    for (volatile unsigned long i = 0;; i++)
        ;
    return 0;
}

static void bench_efficiency(int repeats) {
    const char *const policies[] = {"static", "gss", "fac2", "awf-c", "daf", "auto"};
    const struct {
        const char *name;
        kilter_work_fn work;
        int runs;
    } tasks[] = {
        {"1 ms", one_ms, 1},
        {"1 ms, 2nd run", one_ms, 2},
        {"mixed", mixed, 1},
        {"10 ms", ten_ms, 1},
    };
    enum { POLICIES = sizeof policies / sizeof policies[0] };
    uint32_t core = 1;
    pid_t competitor;
    kilter_error error;
    printf("b  efficiency: bound/elapsed, 2,000 tasks, two workers, a competing process on the second "
           "worker's core\n   %-14s",
           "");
    for (int p = 0; p < POLICIES; p++)
        printf("%8s", policies[p]);
    printf("\n");
    if (kl_process_start(compete, &core, &competitor, &error) != KILTER_OK)
        give_up(&error);
    for (size_t k = 0; k < sizeof tasks / sizeof tasks[0]; k++) {
        double got[POLICIES][REPEATS];
        for (int i = 0; i < repeats; i++)
            for (int p = 0; p < POLICIES; p++) {
                trial t = {.work = tasks[k].work,
                           .workers = 2,
                           .policy = policies[p],
                           .record = "none",
                           .tasks = 2000};
                t.runs = tasks[k].runs;
                got[p][i] = farm_trial(&t).efficiency;
            }
        printf("   %-14s", tasks[k].name);
        for (int p = 0; p < POLICIES; p++)
            printf("%8.3f", median(got[p], repeats));
        printf("\n");
        fflush(stdout);
    }
    kill(competitor, SIGKILL);
    kl_process_finish(competitor, 5);
    printf("   (auto at least 0.970; mixed: log-normal, mean 2 ms, σ/μ 0.8; median of %d)\n\n", repeats);
}

/* --- parts c, d and e: empty tasks, records, and memory --- */

static void bench_empty_tasks(void) {
    double rate[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        trial t = {
            .work = empty, .workers = 2, .policy = "auto", .record = "none", .tasks = 5000000, .runs = 1};
        rate[i] = (double)t.tasks / farm_trial(&t).elapsed_s;
    }
    printf("c  empty tasks: %.2f million tasks per second (auto, two workers)\n\n",
           median(rate, REPEATS) / 1e6);
}

static void bench_recording(void) {
    const struct {
        const char *name, *policy;
        kilter_work_fn work;
        uint64_t tasks;
    } rows[] = {{"1 ms tasks, auto", "auto", one_ms, 4000},
                {"1 ms tasks, ss", "ss", one_ms, 4000},
                {"empty tasks, ss", "ss", empty, 40000}};
    printf("d ratio of elapsed times: with the record to without it, and with stored results (--resume) to "
           "without the record\n");
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        double ratio[2 * REPEATS + 1], stored[2 * REPEATS + 1];
        for (int i = 0; i < 2 * REPEATS + 1; i++) {
            char *path = kl_text("%s/kilter-bench-%d.kilter", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
                                 (int)getpid());
            trial t = {.work = rows[k].work,
                       .workers = 2,
                       .policy = rows[k].policy,
                       .record = "none",
                       .tasks = rows[k].tasks};
            t.runs = 1;
            double off_s = farm_trial(&t).elapsed_s;
            t.record = path;
            double on_s = farm_trial(&t).elapsed_s;
            unlink(path);
            t.record = NULL;
            t.resume = path;
            stored[i] = farm_trial(&t).elapsed_s / off_s;
            unlink(path);
            free(path);
            ratio[i] = on_s / off_s;
        }
        printf("   %-18s %.4f  %.4f\n", rows[k].name, median(ratio, 2 * REPEATS + 1),
               median(stored, 2 * REPEATS + 1));
        fflush(stdout);
    }
    printf("   (the ratios should be at most 1.01 for tasks of 1 ms and more)\n\n");
}

/* Return the peak memory of this process in bytes. */
static double peak_bytes(void) {
    char line[256];
    double kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %lf kB", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib * 1024;
}

static double memory_in_child(const char *policy, kilter_order order) {
    enum { TASKS = 1000000 };
    int pipes[2];
    double per_task = 0;
    fflush(stdout); /* otherwise the child would print the buffered text a second time */
    if (pipe(pipes) != 0)
        exit(1);
    pid_t pid = fork();
    if (pid == 0) {
        kilter_farm *farm;
        kilter_error error;
        kilter_farm_options options = {
            .work = empty, .workers = 2, .policy = policy, .record = "none", .name = "bench"};
        if (kilter_farm_open(&options, NULL, NULL, &farm, &error) != KILTER_OK)
            give_up(&error);
        kilter_farm_run(farm, &(kilter_run){.tasks = 10}, NULL);
        double before = peak_bytes();
        kilter_farm_run(farm, &(kilter_run){.tasks = TASKS, .order = order}, NULL);
        per_task = (peak_bytes() - before) / TASKS;
        kilter_farm_close(farm, NULL);
        if (write(pipes[1], &per_task, sizeof per_task) < 0)
            _exit(1);
        _exit(0);
    }
    if (read(pipes[0], &per_task, sizeof per_task) != sizeof per_task)
        per_task = NAN;
    waitpid(pid, NULL, 0);
    close(pipes[0]);
    close(pipes[1]);
    return per_task;
}

static void bench_memory(void) {
    printf("e  master memory for 1,000,000 tasks with empty results: auto %.1f, auto by index %.1f, ss by "
           "index %.1f bytes per task "
           "(should be under 200)\n\n",
           memory_in_child("auto", KILTER_BY_ARRIVAL), memory_in_child("auto", KILTER_BY_INDEX),
           memory_in_child("ss", KILTER_BY_INDEX));
}

/* --- part f: the time of a decision --- */

/* Simulated workers that are always busy, without a farm, to measure the time of decisions. */
typedef struct crowd {
    uint32_t workers, next;
    kl_worker_view *views;
    kl_crew *crew;
    kl_dealer *dealer;
    kl_snapshot s;
    double turn_s; /* seconds in which every worker asks once for a chunk of tasks */
} crowd;

static double random_01(uint64_t i) {
    return (double)(kl_mix64(i) >> 11) * 0x1p-53;
}

static void report(crowd *c, uint32_t worker, double unit_s, double units) {
    kl_worker_view *v = &c->views[worker];
    kl_stat stat = {.count = v->queued_tasks, .mean = unit_s, .min = unit_s, .max = unit_s};
    kl_view_reported(v, &stat, unit_s * units, units, c->s.unit_s.mean, c->s.now_s);
    kl_crew_update(c->crew, c->views, worker);
    kl_wap_add(&v->wap, unit_s * units, units);
    kl_crew_update(c->crew, c->views, worker);
}

/* Make simulated workers of speeds 1 to 4, for tasks of 1 ms at speed 1. Each worker has already done as
 * many tasks as fit into turn_s. */
static void gather(crowd *c, uint32_t workers, const char *policy, double left_per_worker) {
    *c = (crowd){.workers = workers, .turn_s = fmax(10e-3, 40e-6 * workers)};
    c->views = calloc(workers, sizeof *c->views);
    c->crew = kl_crew_new();
    c->dealer = kl_dealer_new(kl_policy_find(policy), NULL);
    if (!c->views || !c->crew || !c->dealer || kl_crew_reserve(c->crew, workers) != KILTER_OK)
        exit(1);
    double tasks = 1000.0 * workers, left = ceil(left_per_worker * workers);
    c->s = (kl_snapshot){.run = 1,
                         .tasks = (uint64_t)tasks,
                         .units = tasks,
                         .left = (uint64_t)left,
                         .left_units = left,
                         .workers = c->views,
                         .slots = workers,
                         .present = workers,
                         .crew = c->crew,
                         .answer_s = 20e-6,
                         .message = {20e-6, 1e-9},
                         .round_trip_s = 100e-6};
    for (uint32_t i = 0; i < workers; i++) {
        kl_worker_view *v = &c->views[i];
        double unit_s = 1e-3 / (1 + 3 * random_01(i)), tasks_once = ceil(c->turn_s / unit_s);
        v->present = true;
        for (int k = 0; k < 3; k++) {
            kl_view_dealt(v, (uint64_t)tasks_once, tasks_once, 0);
            report(c, i, unit_s * (0.5 + k / 2.0), tasks_once);
        }
        kl_stat_merge(&c->s.unit_s, &v->unit_s);
        kl_view_dealt(v, (uint64_t)tasks_once, tasks_once, c->turn_s * i / workers);
    }
    c->s.now_s = c->turn_s;
    kl_crew_look_again(c->crew, c->views, c->s.now_s);
    if (kl_dealer_begin(c->dealer, &c->s) != KILTER_OK)
        exit(1);
}

static void disperse(crowd *c) {
    kl_dealer_free(c->dealer);
    kl_crew_free(c->crew);
    free(c->views);
}

/* Let one worker report its results and get its next chunk. The number of undealt tasks stays the same. Add
 * the time of the decision to *decide_s, and the time of updating the data about workers to *keep_s. */
static void serve_next(crowd *c, double *decide_s, double *keep_s) {
    uint32_t i = c->next++ % c->workers;
    kl_worker_view *v = &c->views[i];
    double unit_s = 1e-3 / (1 + 3 * random_01(i)) * (0.5 + random_01(c->next));
    kl_plan plan;
    c->s.now_s += c->turn_s / c->workers;
    double at_s = now_s();
    kl_view_asked(v, c->s.now_s);
    kl_crew_update(c->crew, c->views, i);
    if (v->queued_tasks)
        report(c, i, unit_s, v->queued_units);
    kl_crew_advance(c->crew, c->s.now_s);
    double then_s = now_s();
    kl_dealer_plan(c->dealer, &c->s, i, &plan);
    kl_dealer_commit(c->dealer, &c->s, &plan);
    double after_s = now_s();
    if (plan.decision.count)
        kl_view_dealt(v, plan.decision.count, (double)plan.decision.count, c->s.now_s);
    kl_crew_update(c->crew, c->views, i);
    *keep_s += then_s - at_s + now_s() - after_s;
    *decide_s += after_s - then_s;
}

static double speed_of_fastest(const void *self, uint32_t n) {
    const crowd *c = self;
    return kl_crew_fastest_speed(c->crew, n) / kl_crew_mean_rate(c->crew);
}

/* Measure the time in which Kilter chooses the number of workers, after a run in which all workers took part.
 * Each worker had 100 s of equal tasks; each message has a fixed cost of 100 us. */
static void bench_choosing(void) {
    enum { WORKERS = 1000000, CHOICES = 100 };
    crowd c;
    gather(&c, WORKERS, "auto", 0);
    double mean_unit_s = 1 / kl_crew_mean_rate(c.crew), choose_s[CHOICES];
    kl_iteration it = {.run = 1,
                       .tasks = c.s.tasks * 100,
                       .chunks = (uint64_t)WORKERS * 10,
                       .model = {.message = {100e-6, 0}, .work_s = 100.0 * WORKERS},
                       .task_mean_s = mean_unit_s,
                       .workers = WORKERS,
                       .elapsed_s = 201,
                       .speeds = {speed_of_fastest, &c},
                       .most = WORKERS};
    kl_team_plan plan = {0};
    for (int i = 0; i < CHOICES; i++) {
        kl_team team = {0};
        double at_s = now_s();
        kl_team_choose(&team, &it, &plan);
        choose_s[i] = now_s() - at_s;
    }
    disperse(&c);
    printf("   choosing %u of 1,000,000 workers: %.1f us\n", (unsigned)plan.considered,
           1e6 * median(choose_s, CHOICES));
}

static void bench_deciding(void) {
    static const uint32_t sizes[] = {10, 1000, 100000, 1000000};
    static const struct {
        const char *name, *policy;
        double left; /* number of tasks that are left, per worker */
    } rows[] = {{"auto", "auto", 500},
                {"auto, the end", "auto", 0.5},
                {"daf", "daf", 500},
                {"awf-c", "awf-c", 500},
                {"af", "af", 500}};
    enum { STEPS = 20000, SIZES = sizeof sizes / sizeof sizes[0] };
    printf("f  deciding one chunk + updating the crew [us], by the number of workers\n   %-14s", "");
    for (int k = 0; k < SIZES; k++)
        printf("%18u", (unsigned)sizes[k]);
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        printf("\n   %-14s", rows[r].name);
        for (int k = 0; k < SIZES; k++) {
            crowd c;
            double decide_s = 0, keep_s = 0;
            /* each worker gets a chunk: the first decisions for a large crew take longer, because its memory
             * is not in the caches */
            uint32_t steps = sizes[k] > STEPS ? sizes[k] : STEPS;
            gather(&c, sizes[k], rows[r].policy, rows[r].left);
            for (uint32_t i = 0; i < steps; i++)
                serve_next(&c, &decide_s, &keep_s);
            disperse(&c);
            printf("%10.2f + %5.2f", 1e6 * decide_s / steps, 1e6 * keep_s / steps);
            fflush(stdout);
        }
    }
    printf("\n");
    bench_choosing();
    printf("   (these times should be under 1000 us for 1,000,000 workers)\n\n");
}

int main(int argc, char **argv) {
    const char *which = argc > 1 ? argv[1] : "abcdef";
    if (argc > 2 || strspn(which, "abcdef") != strlen(which)) {
        fprintf(stderr, "usage: kilter-bench [letters of a b c d e f]\n");
        return 2;
    }
    printf("kilter %s, %u cores\n\n", KILTER_VERSION, kl_core_count());
    if (strchr(which, 'a'))
        bench_round_trip();
    if (strchr(which, 'b'))
        bench_efficiency(3);
    if (strchr(which, 'c'))
        bench_empty_tasks();
    if (strchr(which, 'd'))
        bench_recording();
    if (strchr(which, 'e'))
        bench_memory();
    if (strchr(which, 'f'))
        bench_deciding();
    return 0;
}
