/* Check how often the real time left is within the stated 90 % interval. Print a line for each check during a
 * run: the run's number, the fraction of work that is done, and four times in seconds. The four times are the
 * forecast's low end, middle and high end, and the real time left. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/control.h"
#include "sim/sim.h"

enum { LOOKS = 10, AT_ONCE = 2, GROUPS_MOST = 16 };
/* the fractions of the work at which forecasts are checked; no run reaches the last entry, 2 */
static const double PARTS[LOOKS + 1] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 2};

typedef struct look {
    double part, at_s, low_s, middle_s, high_s;
} look;

typedef struct one_run {
    uint64_t number;
    look looks[LOOKS];
    int count;
    kl_sim *sim;
    const double *task_s;
    uint64_t tasks, begun;
    char what[40]; /* description of the run: law of the task times, number of workers, number of tasks */
    uint64_t random;
} one_run;

static double draw(one_run *r) {
    return ((double)(kl_mix64(r->random++) >> 12) + 0.5) / 4503599627370496.0;
}

static double draw_normal(one_run *r) {
    double radius = sqrt(-2 * log(draw(r)));
    return radius * cos(6.283185307179586 * draw(r));
}

/* Draw a task's time, with a mean near 1, from one of six probability laws. */
static double draw_time(one_run *r, int kind) {
    switch (kind) {
    case 0:
        return 0.002 + 1.996 * draw(r); /* uniform */
    case 1:
        return -log(draw(r)); /* exponential */
    case 2:
        return exp(draw_normal(r) - 0.5); /* lognormal */
    case 3:
        return draw(r) < 0.1
                   ? 5.5 * (0.9 + 0.2 * draw(r))
                   : 0.5 * (0.9 + 0.2 * draw(r)); /* a law with many short tasks and a few long ones */
    case 4:
        return 0.6 * pow(draw(r), -1 / 2.5); /* Pareto law, which has a heavy tail */
    default:
        return 0.95 + 0.1 * draw(r); /* a law with nearly equal times */
    }
}

static void note(one_run *r, double part, look seen) {
    if (r->count < LOOKS && part >= PARTS[r->count]) {
        seen.part = PARTS[r->count];
        /* if several fractions were passed since the last state, store this state only for the last of these
         * fractions */
        while (r->count < LOOKS && part >= PARTS[r->count])
            r->looks[r->count++] = (look){0};
        r->looks[r->count - 1] = seen;
    }
}

static void print(const one_run *r, double end_s) {
    for (int i = 0; i < r->count; i++) {
        const look *l = &r->looks[i];
        if (l->part > 0)
            printf("%llu %.2f %.6g %.6g %.6g %.6g %s\n", kl_ull(r->number), l->part, l->low_s, l->middle_s,
                   l->high_s, end_s - l->at_s, r->what);
    }
}

/* --- checking forecasts of simulated runs --- */

static double begin_task(void *self, uint64_t run, uint64_t index) {
    one_run *r = self;
    kl_progress p;
    (void)run;
    if (!r->sim || (double)r->begun++ < PARTS[r->count] * (double)r->tasks)
        return r->task_s[index];
    kl_sim_progress(r->sim, &p);
    if (p.known && p.done > 0)
        note(r, (double)p.done / (double)p.tasks,
             (look){0, p.elapsed_s, p.left.low_s, p.left.middle_s, p.left.high_s});
    return r->task_s[index];
}

static void simulate(uint64_t number) {
    one_run r = {.number = number, .random = kl_mix64(number) + 1};
    kl_host_group groups[GROUPS_MOST];
    static const uint32_t HOSTS[] = {2, 3, 4, 8, 16};
    uint32_t hosts = HOSTS[(size_t)(5 * draw(&r))];
    uint64_t tasks = (uint64_t)(50 * pow(40, draw(&r))); /* 50 to 2,000 */
    int kind = (int)(6 * draw(&r));
    bool equal = draw(&r) < 0.3; /* if false, workers' speeds differ by up to a factor of 3 */
    for (uint32_t i = 0; i < hosts; i++)
        groups[i] = (kl_host_group){1, {.speed = equal ? 1 : pow(3, -draw(&r))}};
    kl_cluster cluster = {groups, hosts, hosts, true, {.speed = 1}, 1e-4, INFINITY, false, 0, 0};
    double *times = calloc(tasks, sizeof *times);
    for (uint64_t i = 0; times && i < tasks; i++)
        times[i] = draw_time(&r, kind);
    r.task_s = times;
    r.tasks = tasks;
    snprintf(r.what, sizeof r.what, "%d %u %llu", kind, hosts, kl_ull(tasks));
    const kl_sim_farm farm = {.cluster = &cluster, .policy = kl_policy_find("auto"), .answer_s = 10e-6};
    kl_sim_run run = {.tasks = tasks, .task_s = begin_task, .self = &r};
    kl_sim_outcome outcome;
    kilter_error error;
    if (!times || kl_sim_new(&farm, &r.sim, &error) != KILTER_OK ||
        kl_sim_run_next(r.sim, &run, &outcome, &error) != KILTER_OK) {
        fprintf(stderr, "time_left: run %llu failed\n", kl_ull(number));
        exit(1);
    }
    print(&r, outcome.elapsed_s);
    kl_sim_free(r.sim);
    free(times);
}

/* --- checking forecasts of real runs --- */

/* Write the command lines of a real run: commands that sleep for 1 to some hundred milliseconds. */
static void write_values(one_run *r, FILE *out) {
    int kind = (int)(6 * draw(r)), tasks = 60 + (int)(140 * draw(r));
    snprintf(r->what, sizeof r->what, "%d 2 %d", kind, tasks);
    for (int i = 0; i < tasks; i++)
        fprintf(out, "%.0f\n", fmax(1, 60 * draw_time(r, kind)));
}

static pid_t start_map(one_run *r, const char *kilter, const char *nap, const char *name) {
    FILE *values = tmpfile();
    if (!values)
        return -1;
    write_values(r, values);
    rewind(values);
    bool slow = draw(r) < 0.5;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fileno(values), STDIN_FILENO);
        setenv("KILTER_RUN", name, 1);
        if (slow)
            setenv("SLOW_SLOT", "2", 1);
        execl(kilter, "kilter", "map", "-j", "2", "--quiet", nap, "{}", (char *)NULL);
        _exit(127);
    }
    fclose(values);
    return pid;
}

/* Follow a real run to its end, and read the state that its farm reports. */
static int follow(uint64_t number, const char *kilter, const char *nap) {
    one_run r = {.number = number, .random = kl_mix64(number) + 1};
    char *name = kl_control_new_name();
    pid_t pid = name ? start_map(&r, kilter, nap, name) : -1;
    kl_tuner *tuner = NULL;
    double began_s = kl_monotonic_s();
    int status = 0;
    if (pid < 0)
        return 1;
    for (pid_t ended = 0; ended == 0; ended = waitpid(pid, &status, WNOHANG)) {
        kl_control_state *s = calloc(1, sizeof *s);
        if (!tuner && kl_tuner_attach(name, 1, &tuner, NULL) != KILTER_OK)
            tuner = NULL;
        double now_s = kl_monotonic_s() - began_s;
        if (tuner && s && kl_tuner_look(tuner, s, NULL) == KILTER_OK && s->left_high_s > 0)
            note(&r, (double)s->done / (double)s->tasks,
                 (look){0, now_s, s->left_low_s, s->left_s, s->left_high_s});
        free(s);
        kl_nap_s(10e-3);
    }
    print(&r, kl_monotonic_s() - began_s);
    fflush(stdout);
    kl_tuner_detach(tuner);
    free(name);
    return status;
}

static int run_real(uint64_t first, uint64_t runs, const char *kilter, const char *nap) {
    int failed = 0, running = 0, status;
    fflush(stdout);
    for (uint64_t i = 0; i < runs || running > 0;) {
        if (i < runs && running < AT_ONCE) {
            running++;
            if (fork() == 0)
                exit(follow(first + i, kilter, nap) != 0);
            i++;
            continue;
        }
        if (wait(&status) > 0)
            failed += status != 0;
        running--;
    }
    return failed > 0;
}

/* simulated: check farms in virtual time. real: check runs of kilter map with two slots each, two runs at a
 * time. FIRST is the number of the first run; a run's number is the seed of its random numbers. */
int main(int argc, char **argv) {
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 0,
             runs = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    if (argc == 4 && strcmp(argv[1], "simulated") == 0) {
        for (uint64_t i = 0; i < runs; i++)
            simulate(first + i);
        return 0;
    }
    if (argc == 6 && strcmp(argv[1], "real") == 0)
        return run_real(first, runs, argv[4], argv[5]);
    fputs("usage: time_left simulated FIRST RUNS\n       time_left real FIRST RUNS KILTER NAP\n", stderr);
    return 2;
}
