/* One rank of a farm in which ranks are killed: `farm_death_mpi_test RANKS SEED KILLS WHEN`. The script
 * mpi_death_test.sh starts it, under a launcher that lets the other ranks survive. WHEN says when ranks are
 * killed:
 *
 *   WHEN opening   before or while the farm is opened
 *        running   while tasks of 2 ms are done
 *        sending   while results of 3 MB are sent
 *        master    while tasks are done; the master is killed
 *        series    in each of SERIES runs, which have small and large results in turn; KILLS is not used. In
 *                  the last run, all workers that are left are killed
 *
 * The same SEED kills the same ranks at the same moments. The master exits with 0 if every task was delivered
 * once with the right result. It also exits with 0 if all workers were killed and the farm reports this. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "farm/farm.h"

enum { TASKS = 400, LARGE_TASKS = 40, LARGE_BYTES = 3000000, SMALL_BYTES = 16, RANKS_MOST = 64 };
enum { SERIES = 10, SERIES_LEAST = 8, SERIES_KILLS = 4, SERIES_LARGE_BYTES = 100000 };

static const double TASK_S = 2e-3, SERIES_TASK_S = 5e-4;

typedef struct plan {
    int ranks, rank, kills;
    const char *when;
    double kill_after_s; /* seconds until this rank is killed; < 0: it is not killed */
    uint64_t killed_in;  /* number of the run in which this rank is killed; only for WHEN = series */
    double task_s;
    size_t result_bytes;
    uint64_t tasks;
} plan;

static uint64_t next_random(uint64_t *seed) {
    *seed += 0x9e3779b97f4a7c15u;
    uint64_t z = *seed;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static bool is_when(const plan *p, const char *when) {
    return strcmp(p->when, when) == 0;
}

/* Return the number of workers that are killed in a run of a series of runs. The number is so small that
 * every run of the series begins with at least SERIES_LEAST workers. */
static int kills_in(uint64_t run, int left, uint64_t *seed) {
    int kills = 1 + (int)(next_random(seed) % SERIES_KILLS);
    int most = left - SERIES_LEAST - (SERIES - 2 - (int)run);
    return run + 1 == SERIES ? left : kills < most ? kills : most > 1 ? most : 1;
}

/* For a series of runs, choose the run in which this rank is killed. The rank is killed during this run or
 * soon after this run. */
static void draw_series(plan *p, const int *order, uint64_t seed) {
    int at = 0, workers = p->ranks - 1;
    for (uint64_t run = 0; run < SERIES && at < workers; run++) {
        int left = workers - at;
        for (int kills = kills_in(run, left, &seed); kills > 0; kills--, at++) {
            double part = (double)(next_random(&seed) % 1000) / 1000;
            if (order[at] == p->rank) {
                p->killed_in = run;
                p->kill_after_s = 1.5 * part * TASKS * SERIES_TASK_S / left;
            }
        }
    }
}

/* Draw the ranks to kill and the times of the kills from the seed. Choose KILLS workers or, if WHEN is
 * "master", only the master. */
static void draw(plan *p, uint64_t seed) {
    int order[RANKS_MOST];
    p->kill_after_s = -1;
    for (int i = 0; i < p->ranks - 1; i++)
        order[i] = i + 1;
    for (int i = p->ranks - 2; i > 0; i--) {
        int k = (int)(next_random(&seed) % (uint64_t)(i + 1)), other = order[k];
        order[k] = order[i];
        order[i] = other;
    }
    if (is_when(p, "series")) {
        draw_series(p, order, seed);
        return;
    }
    bool dies = is_when(p, "master") && p->rank == 0;
    for (int i = 0; i < p->kills && !is_when(p, "master"); i++)
        dies |= order[i] == p->rank;
    seed += (uint64_t)p->rank;
    double most_s = is_when(p, "master") ? 0.15 : 0.5; /* kill the rank before all tasks can be done */
    p->kill_after_s = dies ? (double)(next_random(&seed) % 1000) / 1000 * most_s : -1;
}

/* Kill this rank after some seconds, without any warning. */
static void kill_after(double seconds) {
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec at = {.it_value = kl_timespec(seconds + 1e-4)};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &at, NULL) != 0)
        abort();
}

static int start(const kilter_worker *worker, void **state) {
    plan *p = worker->user;
    *state = p;
    if (p->kill_after_s >= 0 && !is_when(p, "opening") && !is_when(p, "series"))
        kill_after(p->kill_after_s);
    return 0;
}

static void fill(uint8_t *bytes, size_t size, uint64_t index) {
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(index * 31 + i * 7 + (i >> 8));
}

static size_t bytes_in(const plan *p, uint64_t run) {
    return is_when(p, "series") && run % 2 ? SERIES_LARGE_BYTES : p->result_bytes;
}

/* In a series, start the timer that kills this rank. Start it with the rank's first task in the run
 * killed_in, or in a later run if the rank gets no task in that run. */
static void begin_to_die(plan *p, uint64_t run) {
    if (!is_when(p, "series") || p->kill_after_s < 0 || run < p->killed_in)
        return;
    kill_after(p->kill_after_s);
    p->kill_after_s = -1;
}

static int work(const kilter_task *task, kilter_result *result, void *state) {
    plan *p = state;
    size_t size = bytes_in(p, task->run);
    uint8_t *bytes = malloc(size);
    if (!bytes)
        return 1;
    begin_to_die(p, task->run);
    fill(bytes, size, task->index);
    kl_nap_s(p->task_s);
    kilter_status status = kilter_result_put(result, bytes, size);
    free(bytes);
    return status != KILTER_OK;
}

typedef struct tally {
    const plan *plan;
    size_t result_bytes;
    uint64_t came, wrong;
    uint8_t seen[TASKS], *right;
} tally;

/* Return what is wrong with an outcome; NULL: nothing is wrong. */
static const char *fault(tally *t, const kilter_outcome *o) {
    if (o->index >= t->plan->tasks)
        return "no task has this number";
    if (t->seen[o->index]++)
        return "this task had an outcome before";
    if (o->status != KILTER_OK)
        return o->error;
    if (o->result.size != t->result_bytes)
        return "its size";
    fill(t->right, t->result_bytes, o->index);
    return memcmp(o->result.data, t->right, o->result.size) == 0 ? NULL : "its bytes";
}

static void count(const kilter_outcome *o, void *user) {
    tally *t = user;
    const char *what = fault(t, o);
    t->came++;
    if (!what)
        return;
    t->wrong++;
    printf("task %llu of worker %u is wrong: %s\n", (unsigned long long)o->index, o->worker, what);
    const uint8_t *got = o->result.data;
    for (size_t i = 0, shown = 0; o->result.size == t->result_bytes && i < o->result.size && shown < 5; i++)
        if (got[i] != t->right[i])
            printf("  at %zu: %u, not %u\n", i, got[i], t->right[i]), shown++;
}

static bool is_deserted(const plan *p, kilter_status status) {
    return status == KILTER_ERR_NO_WORKER && p->kills == p->ranks - 1;
}

static int check_run(plan *p, kilter_farm *farm, uint64_t number) {
    kilter_error error = {KILTER_OK, ""};
    tally t = {.plan = p, .result_bytes = bytes_in(p, number)};
    t.right = malloc(t.result_bytes);
    kilter_run run = {.tasks = p->tasks, .done = count, .user = &t};
    kilter_status status = kilter_farm_run(farm, &run, &error);
    free(t.right);
    bool deserted = is_deserted(p, status);
    bool done = status == KILTER_OK && t.came == p->tasks;
    printf("%s: %llu of %llu tasks have an outcome, %llu are wrong%s%s\n",
           t.wrong || !(done || deserted) ? "FAILED" : "right", (unsigned long long)t.came,
           (unsigned long long)p->tasks, (unsigned long long)t.wrong, error.text[0] ? "; " : "", error.text);
    fflush(stdout);
    return t.wrong || !(done || deserted);
}

static int be_master(plan *p, kilter_farm *farm) {
    uint64_t runs = is_when(p, "series") ? SERIES : 1;
    int failed = 0;
    if (p->kill_after_s >= 0)
        kill_after(p->kill_after_s);
    for (uint64_t i = 0; i < runs && !failed; i++) {
        if (is_when(p, "series"))
            p->kills = i + 1 == runs ? p->ranks - 1 : 0;
        failed = check_run(p, farm, i);
    }
    kilter_farm_close(farm, NULL);
    return failed;
}

static int rank_here(void) {
    const char *text = getenv("OMPI_COMM_WORLD_RANK");
    text = text ? text : getenv("PMI_RANK");
    return text ? atoi(text) : -1;
}

int main(int argc, char **argv) {
    plan p = {.rank = rank_here()};
    if (argc < 5 || p.rank < 0 || (p.ranks = atoi(argv[1])) < 2 || p.ranks > RANKS_MOST)
        return 2;
    p.kills = atoi(argv[3]);
    p.when = argv[4];
    p.tasks = is_when(&p, "sending") ? LARGE_TASKS : TASKS;
    p.result_bytes = is_when(&p, "sending") ? LARGE_BYTES : SMALL_BYTES;
    p.task_s = is_when(&p, "series") ? SERIES_TASK_S : TASK_S;
    draw(&p, strtoull(argv[2], NULL, 10));
    if (p.kill_after_s >= 0 && is_when(&p, "opening"))
        kill_after(p.kill_after_s);
    kilter_farm *farm = NULL;
    kilter_error error = {KILTER_OK, ""};
    kilter_farm_options options = {
        .work = work, .start = start, .user = &p, .transport = "mpi", .attempts = 1000, .record = "none"};
    kilter_status status = kilter_farm_open(&options, NULL, NULL, &farm, &error);
    if (status == KILTER_OK)
        return be_master(&p, farm);
    /* all workers may be dead already, because a worker's timer starts when the worker starts */
    if (p.rank == 0 && is_deserted(&p, status)) {
        printf("right: 0 of %llu tasks have an outcome, 0 are wrong; %s\n", (unsigned long long)p.tasks,
               error.text);
        return 0;
    }
    return kilter_exit("farm_death_mpi_test", &error);
}
