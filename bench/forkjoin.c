/* forkjoin NAME=VALUE…: print the time of a fork-join program while workers join and leave. The number of
 * tasks is fixed, or the farm chooses it.
 *
 *   work_s=322      work of an iteration, in seconds on a worker of speed 1
 *   program=50:66:56.7,100:50:71.8
 *                   TASKS:ITERATIONS:SECONDS,…: with TASKS tasks in a run, the program needs ITERATIONS
 *                   iterations, and the master computes SECONDS in all
 *   crew=0:5x1,0.3:45x2,0.7:-5x1
 *                   PART:COUNTxSPEED,…: after the fraction PART of the program, COUNT workers of this speed
 *                   join (COUNT below 0: leave)
 *   policy=ect
 *   tasks=100       number of tasks in a run; 0: the farm chooses
 *   groups=50       number of groups into which the tasks of a run are divided; a group is dealt as one
 *                   task; 0: no groups
 *   key=FILE        use real processes over tcp, whose tasks sleep; without it, simulate
 */
#include "forkjoin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void forkjoin_fail(const char *what, const char *why) {
    fprintf(stderr, "forkjoin: %s: %s\n", what, why);
    exit(2);
}

/* --- the fork-join program and its iterations --- */

static double between(double x, double x0, double y0, double x1, double y1) {
    return y0 * pow(y1 / y0, log(x / x0) / log(x1 / x0));
}

static const forkjoin_point *point_below(const forkjoin *p, double tasks) {
    int at = 0;
    while (at + 2 < p->point_count && p->points[at + 1].tasks <= tasks)
        at++;
    return &p->points[at];
}

static double iterations_of(const forkjoin *p, double tasks) {
    const forkjoin_point *a = point_below(p, tasks);
    return p->point_count == 1 ? a->iterations
                               : between(tasks, a[0].tasks, a[0].iterations, a[1].tasks, a[1].iterations);
}

static double master_s_of(const forkjoin *p, double tasks) {
    const forkjoin_point *a = point_below(p, tasks);
    return (p->point_count == 1 ? a->master_s
                                : between(tasks, a[0].tasks, a[0].master_s, a[1].tasks, a[1].master_s)) /
           iterations_of(p, tasks);
}

static double runs_to_come(uint64_t tasks, void *user) {
    return iterations_of(user, (double)tasks);
}

static uint64_t tasks_now(const forkjoin *p, const forkjoin_ground *ground) {
    if (p->tasks > 0)
        return (uint64_t)p->tasks;
    kilter_grain_options options = {.least = (uint64_t)p->points[0].tasks,
                                    .most = (uint64_t)p->points[p->point_count - 1].tasks,
                                    .runs = runs_to_come,
                                    .user = (void *)p,
                                    .work = p->work_s};
    return ground->ask(ground->self, &options);
}

static void come_and_go(const forkjoin *p, const forkjoin_ground *ground, double from, double to) {
    for (int i = 0; i < p->change_count; i++) {
        const forkjoin_change *c = &p->changes[i];
        if (c->at < from || c->at >= to)
            continue;
        if (c->count > 0)
            ground->come(ground->self, c->count, c->speed);
        else
            ground->go(ground->self, -c->count, c->speed);
    }
}

/* Do the iterations of the program and print the elapsed time. Count only the needed fraction of the last
 * iteration. With whole iterations, small differences between two settings would not show. */
void forkjoin_play(const forkjoin *p, const forkjoin_ground *ground) {
    double done = 0, seen = 0, elapsed_s = 0;
    uint64_t first = 0, least = UINT64_MAX, most = 0;
    int runs = 0;
    come_and_go(p, ground, -1, 1e-9);
    double began_s = ground->now_s(ground->self);
    for (; done < 1 - 1e-9; runs++) {
        come_and_go(p, ground, seen + 1e-9, done + 1e-9);
        seen = done;
        uint64_t tasks = tasks_now(p, ground);
        ground->run(ground->self, p->groups > 0 ? (uint64_t)p->groups : tasks, tasks, p->work_s);
        double step = runs == 0 ? 0 : 1 / iterations_of(p, (double)tasks), left = 1 - done;
        double took_s = ground->now_s(ground->self) - began_s;
        elapsed_s += step > left ? took_s * left / step : took_s;
        done += step;
        began_s = ground->now_s(ground->self);
        ground->alone(ground->self, master_s_of(p, (double)tasks));
        first = runs == 0 ? tasks : first;
        least = tasks < least ? tasks : least;
        most = tasks > most ? tasks : most;
    }
    printf("{\"policy\":\"%s\",\"groups\":%g,\"elapsed_s\":%.6g,\"runs\":%d,\"first_tasks\":%llu,\"least_"
           "tasks\":%llu,"
           "\"most_tasks\":%llu}\n",
           p->policy, p->groups, elapsed_s, runs, (unsigned long long)first, (unsigned long long)least,
           (unsigned long long)most);
}

/* --- the command line --- */

static void read_program(forkjoin *p, const char *text) {
    const char *at = text;
    for (int taken = 0; *at; at += taken + (at[taken] == ',')) {
        forkjoin_point *point = &p->points[p->point_count];
        if (p->point_count == FORKJOIN_POINTS ||
            sscanf(at, "%lf:%lf:%lf%n", &point->tasks, &point->iterations, &point->master_s, &taken) != 3)
            forkjoin_fail("program", text);
        p->point_count++;
    }
}

static void read_crew(forkjoin *p, const char *text) {
    const char *at = text;
    for (int taken = 0; *at; at += taken + (at[taken] == ',')) {
        forkjoin_change *c = &p->changes[p->change_count];
        if (p->change_count == FORKJOIN_CHANGES ||
            sscanf(at, "%lf:%dx%lf%n", &c->at, &c->count, &c->speed, &taken) != 3)
            forkjoin_fail("crew", text);
        p->change_count++;
    }
}

static bool is_named(const char *word, size_t length, const char *name) {
    return strlen(name) == length && strncmp(word, name, length) == 0;
}

static void read_word(forkjoin *p, const char *word, const char **key) {
    const char *value = strchr(word, '=');
    size_t length = value ? (size_t)(value - word) : 0;
    if (length == 0)
        forkjoin_fail(word, "give NAME=VALUE");
    value++;
    if (is_named(word, length, "program"))
        read_program(p, value);
    else if (is_named(word, length, "crew"))
        read_crew(p, value);
    else if (is_named(word, length, "policy"))
        p->policy = value;
    else if (is_named(word, length, "work_s"))
        p->work_s = atof(value);
    else if (is_named(word, length, "tasks"))
        p->tasks = atof(value);
    else if (is_named(word, length, "groups"))
        p->groups = atof(value);
    else if (is_named(word, length, "key"))
        *key = value;
    else
        forkjoin_fail(word, "unknown parameter");
}

int main(int argc, char **argv) {
    forkjoin program = {.policy = "ect"};
    const char *key = NULL;
    if (argc == 5 && strcmp(argv[1], "worker") == 0)
        return forkjoin_be_worker(argv[2], argv[3], atof(argv[4]));
    for (int i = 1; i < argc; i++)
        read_word(&program, argv[i], &key);
    if (program.point_count == 0 || program.change_count == 0 || !(program.work_s > 0))
        forkjoin_fail("parameters are missing", "give the parameters work_s, program and crew");
    if (key)
        forkjoin_run(&program, key);
    else
        forkjoin_simulate(&program);
    return 0;
}
