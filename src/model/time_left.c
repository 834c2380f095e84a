/* Forecast the time that is left of a run, as an interval. The remaining part of the run is simulated many
 * times, and the interval leaves out the shortest and the longest results. Each simulation draws at random
 * what is not known. It draws a sample of the tasks that have ended, in which a task may occur several times.
 * It also draws the speed of each worker, and the time of each further task. Running tasks count as tasks
 * that take longer than their time so far (Efron 1967, "The two sample problem with censored data"). Without
 * them, long tasks would seem rare at the beginning. The machine may become slower or faster. To measure
 * this, the tasks that have ended are divided into blocks, in the order of their ends. If the blocks differ
 * by more than chance, each simulation also draws the machine's speed in the remaining part of the run. */
#include <math.h>
#include <stdlib.h>

#include "model/model.h"

enum {
    PLAYS = 200,
    PLAYS_LEAST = 40,
    MANY_WORKERS = 64,
    WORKERS_MOST = 1024,
    TAIL_TASKS = 50,
    TRIES = 100,
    UNREPORTED_MOST = 64,
    ROUNDS = 20,
    BLOCKS = 8,
    BLOCK_LEAST = 4 /* least number of tasks in a block */
};
/* Assumption about the workers' speeds before anything is measured. USUAL_SPREAD: standard deviation of the
 * logarithms of the speeds. The assumption has the weight of USUAL_WORKERS measured workers. */
static const double USUAL_SPREAD = 0.2, USUAL_WORKERS = 2;
/* Assumption about the longest tasks before anything is measured. If a task is longer than the longest task
 * seen so far, it takes more than x times as long as that one with probability x^(−1/tail). The assumption
 * has the weight of one task. */
static const double USUAL_TAIL = 0.5;
/* Assumption about changes of the machine's speed before anything is measured. USUAL_DRIFT: standard
 * deviation of the logarithm of the speed in a block of tasks. The assumption has the weight of USUAL_BLOCKS
 * blocks. */
static const double USUAL_DRIFT = 0.04, USUAL_BLOCKS = 4;
/* a change of speed fades: after this number of further blocks, half of it remains */
static const double LASTS_BLOCKS = 4;

typedef struct seen { /* a task that has ended, or one that is running */
    double unit_s;
    uint32_t worker;
    bool running;
} seen;

typedef struct lane {
    double free_s, unit_s; /* free_s: time at which the worker is free; unit_s: its seconds per unit, relative
                              to the mean worker */
} lane;

typedef struct play {
    const kl_left_ask *ask;
    uint64_t random;
    uint32_t workers;
    double tasks; /* number of tasks that are not done, which these workers will do */
    seen *seen;
    /* count: number of tasks in the array `seen`; ended: number of these that have ended, which come first */
    uint32_t count, ended;
    /* true: compare means of the logarithms of times; false: compare logarithms of mean times */
    bool by_logs;
    double tail;
    double moved, drift; /* moved, drift: mean and standard deviation of the logarithm of `drifted` */
    double drifted; /* seconds per unit of the remaining tasks in this simulation, divided by the seconds per
                       unit of the tasks in `seen` */
    /* variances of logarithms: within: of the times of one worker's tasks; between: of the workers' speeds */
    double within, between;
    double *sums, *times; /* [workers] */
    lane *lanes;          /* [workers] a heap, in which the worker that is free first is at the top */
    uint32_t *drawn; /* [count] indices of tasks, drawn at random for this simulation; an index may repeat */
    double *sizes;   /* [count] seconds per unit of these tasks, on the mean worker */
    double results[PLAYS];
} play;

/* --- random numbers --- */

static double draw(play *p) { /* above 0, below 1 */
    return ((double)(kl_mix64(p->random++) >> 12) + 0.5) / 4503599627370496.0;
}

static double draw_normal(play *p) {
    double radius = sqrt(-2 * log(draw(p)));
    return radius * cos(6.283185307179586 * draw(p));
}

/* Draw the size of a task that is known to be larger than `above`. */
static double draw_size(play *p, double above) {
    for (int i = 0; i < TRIES; i++) {
        uint32_t at = (uint32_t)(draw(p) * p->count);
        if (p->sizes[at] <= above)
            continue;
        if (!p->seen[p->drawn[at]].running)
            return p->sizes[at];
        above = p->sizes[at];
    }
    return above * pow(draw(p), -p->tail);
}

/* --- the speeds of the workers --- */

static double value_of(const play *p, const seen *s) {
    return p->by_logs ? log(s->unit_s) : s->unit_s;
}

static double as_log(const play *p, double mean) {
    return p->by_logs ? mean : log(mean);
}

/* Add up the values of tasks that have ended. If `drawn` is true, take only the tasks that were drawn for
 * this simulation. Return the mean value. */
static double add_up(play *p, bool drawn) {
    double sum = 0, count = 0;
    for (uint32_t w = 0; w < p->workers; w++)
        p->sums[w] = p->times[w] = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const seen *s = &p->seen[drawn ? p->drawn[i] : i];
        if (s->running)
            continue;
        sum += value_of(p, s);
        count++;
        if (s->worker < p->workers) {
            p->sums[s->worker] += value_of(p, s);
            p->times[s->worker]++;
        }
    }
    return count > 0 ? sum / count : NAN;
}

/* Choose whether to compare the times of tasks or the logarithms of these times. Choose the values that vary
 * less. */
static void choose_measure(play *p) {
    kl_stat plain = {0}, logs = {0};
    for (uint32_t i = 0; i < p->count; i++)
        if (!p->seen[i].running) {
            kl_stat_add(&plain, p->seen[i].unit_s, 0);
            kl_stat_add(&logs, log(p->seen[i].unit_s), 0);
        }
    double cv = kl_stat_cv(&plain), sd = kl_stat_sd(&logs);
    p->by_logs = sd < cv;
    p->within = fmax(fmin(cv * cv, sd * sd), 1e-9);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Estimate the tail of the distribution of task times from the longest √n of n tasks (Hill 1975). */
static void measure_tail(play *p) {
    uint32_t ended = 0;
    double sum = USUAL_TAIL;
    for (uint32_t i = 0; i < p->count; i++)
        if (!p->seen[i].running)
            p->sizes[ended++] = p->seen[i].unit_s;
    qsort(p->sizes, ended, sizeof *p->sizes, compare);
    uint32_t longest = (uint32_t)ceil(sqrt(ended)), first = longest < ended ? ended - longest : 1;
    for (uint32_t i = first; i < ended; i++)
        sum += log(p->sizes[i] / p->sizes[first - 1]);
    p->tail = sum / (1 + (ended > first ? ended - first : 0));
}

/* Estimate how much the workers' speeds differ, apart from differences by chance (DerSimonian, Laird 1986).
 */
static void compare_workers(play *p) {
    double mean = as_log(p, add_up(p, false)), excess = 0, all = 0, squares = 0, known = 0;
    for (uint32_t w = 0; w < p->workers; w++) {
        double n = p->times[w], off = n > 0 ? as_log(p, p->sums[w] / n) - mean : 0;
        excess += n * off * off - (n > 0) * p->within;
        all += n;
        squares += n * n;
        known += n > 0;
    }
    double room = all > 0 ? all - squares / all : 0;
    double seen = room > 0 ? fmax(0, (excess + p->within) / room) : 0, others = fmax(known - 1, 0);
    p->between = (USUAL_WORKERS * USUAL_SPREAD * USUAL_SPREAD + others * seen) / (USUAL_WORKERS + others);
}

/* Return by how much a task's time exceeds the usual time of its worker's tasks. The result is the logarithm
 * of their ratio, or a fraction of the usual time. */
static double residual_of(const play *p, const seen *s, double mean) {
    double usual = s->worker < p->workers ? p->sums[s->worker] / p->times[s->worker] : mean;
    return p->by_logs ? log(s->unit_s) - usual : s->unit_s / usual - 1;
}

/* Compare blocks of tasks that ended one after the other: add the mean of each block to `blocks`, and each
 * task to `all`. Return the mean of the last block. */
static double compare_blocks(play *p, uint32_t count, kl_stat *blocks, kl_stat *all) {
    double mean = add_up(p, false), last = 0;
    for (uint32_t b = 0, i = 0; b < count; b++) {
        kl_stat block = {0};
        for (; i < (uint64_t)p->ended * (b + 1) / count; i++) {
            double residual = residual_of(p, &p->seen[i], mean);
            kl_stat_add(&block, residual, 0);
            kl_stat_add(all, residual, 0);
        }
        kl_stat_add(blocks, last = block.mean, 0);
    }
    return last;
}

/* Estimate how much the speed of the remaining tasks may differ from the speed of the tasks that have ended.
 * Each of these two speeds is a mean over several blocks of tasks. If the speed changed in the last block,
 * the change fades slowly. */
static void measure_drift(play *p) {
    uint32_t count = p->ended / BLOCK_LEAST < BLOCKS ? p->ended / BLOCK_LEAST : BLOCKS;
    kl_stat blocks = {0}, all = {0};
    double last = compare_blocks(p, count, &blocks, &all), known = count > 1 ? count - 1 : 0;
    double size = count > 0 ? (double)p->ended / count : BLOCK_LEAST, rest = fmax(p->tasks / size, 1);
    double chance = pow(kl_stat_sd(&all), 2) / size, excess = pow(kl_stat_sd(&blocks), 2) - chance;
    double variance = (known * excess + USUAL_BLOCKS * USUAL_DRIFT * USUAL_DRIFT) / (known + USUAL_BLOCKS);
    variance = fmax(variance, 0);
    p->drift = sqrt(variance * (1 / fmax(count, 1) + 1 / rest));
    p->moved = variance > 0 ? last * variance / (variance + chance) / (1 + rest / LASTS_BLOCKS) : 0;
}

/* Set the workers' speeds for this simulation. A worker's speed follows from its drawn tasks, and more tasks
 * have more weight. If none of its tasks was drawn, draw its speed at random. */
static void set_speeds(play *p) {
    double mean = as_log(p, add_up(p, true));
    for (uint32_t w = 0; w < p->workers; w++) {
        double n = p->times[w], off = n > 0 ? as_log(p, p->sums[w] / n) - mean : 0;
        double trust = n * p->between / (n * p->between + p->within);
        double unknown = sqrt(p->between * (1 - trust));
        p->lanes[w].unit_s = exp(trust * off + (n > 0 ? 0 : unknown * draw_normal(p)));
    }
}

/* --- one simulation of the rest of the run --- */

static void draw_seen(play *p) {
    bool any = false;
    while (!any)
        for (uint32_t i = 0; i < p->count; i++) {
            p->drawn[i] = (uint32_t)(draw(p) * p->count);
            any |= !p->seen[p->drawn[i]].running;
        }
    set_speeds(p);
    for (uint32_t i = 0; i < p->count; i++) {
        const seen *s = &p->seen[p->drawn[i]];
        p->sizes[i] = s->unit_s / (s->worker < p->workers ? p->lanes[s->worker].unit_s : 1);
    }
    p->drifted = exp(p->moved + p->drift * draw_normal(p));
    for (uint32_t w = 0; w < p->workers; w++)
        p->lanes[w].unit_s *= p->drifted;
}

/* Draw the time at which a worker becomes free. Until then it does its present task. It may have done other
 * tasks since its last report. Return the number of all these tasks. */
static double draw_free(play *p, uint32_t worker) {
    const kl_left_worker *w = &p->ask->workers[worker];
    double scale = p->lanes[worker].unit_s * p->ask->task_units, busy_s = 0;
    uint64_t begun = 0, queued = w->queued < UNREPORTED_MOST ? w->queued : UNREPORTED_MOST;
    while (begun < queued && (begun == 0 || busy_s < w->silent_s)) {
        double least_s = begun == 0 ? w->task_s : 0;
        if (++begun == queued)
            least_s = fmax(least_s, w->silent_s - busy_s);
        busy_s += scale * draw_size(p, least_s / scale);
    }
    p->lanes[worker].free_s = fmax(busy_s - w->silent_s, 0);
    return (double)begun;
}

/* Return the time at which all workers together have done `work`. A worker that becomes free after this time
 * does no part of it. */
static double level_of(const play *p, double work) {
    double level = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        double rate = 0, owed = 0;
        for (uint32_t w = 0; w < p->workers; w++)
            if (p->lanes[w].free_s < level) {
                rate += 1 / p->lanes[w].unit_s;
                owed += p->lanes[w].free_s / p->lanes[w].unit_s;
            }
        double next = (work + owed) / rate;
        if (!(next < level))
            break;
        level = next;
    }
    return level;
}

/* If there are many tasks, do most of them in one step, because the sum of their times is nearly normally
 * distributed. */
static void do_most(play *p, double tasks) {
    kl_stat sizes = {0};
    for (uint32_t i = 0; i < p->count; i++)
        kl_stat_add(&sizes, draw_size(p, 0), 0);
    double sum = tasks * sizes.mean + sqrt(tasks) * kl_stat_sd(&sizes) * draw_normal(p);
    double level = level_of(p, fmax(sum, 0) * p->ask->task_units);
    for (uint32_t w = 0; w < p->workers; w++)
        p->lanes[w].free_s = fmax(p->lanes[w].free_s, level);
}

static void sink(play *p, uint32_t at) {
    for (uint32_t next; (next = 2 * at + 1) < p->workers; at = next) {
        if (next + 1 < p->workers && p->lanes[next + 1].free_s < p->lanes[next].free_s)
            next++;
        if (p->lanes[at].free_s <= p->lanes[next].free_s)
            return;
        lane swap = p->lanes[at];
        p->lanes[at] = p->lanes[next];
        p->lanes[next] = swap;
    }
}

/* Give each of the last tasks to the worker that is free first. Return the time at which the last task ends.
 */
static double do_rest(play *p, double tasks) {
    double end_s = 0;
    for (uint32_t i = p->workers; i-- > 0;)
        sink(p, i);
    for (; tasks >= 0.5; tasks--) {
        p->lanes[0].free_s += draw_size(p, 0) * p->lanes[0].unit_s * p->ask->task_units;
        sink(p, 0);
    }
    for (uint32_t w = 0; w < p->workers; w++)
        end_s = fmax(end_s, p->lanes[w].free_s);
    return end_s;
}

/* Draw the least time that the longest chain of tasks can take. Each task of the chain waits for the previous
 * one. */
static double chain_s(play *p) {
    double sum = 0;
    for (uint64_t i = 0; i < p->ask->chain; i++)
        sum += draw_size(p, 0) * p->ask->task_units * p->drifted;
    return sum;
}

static double play_once(play *p) {
    double rest = p->tasks, tail = TAIL_TASKS + 2.0 * p->workers;
    draw_seen(p);
    for (uint32_t w = 0; w < p->workers; w++)
        rest -= draw_free(p, w);
    if (rest > tail) {
        do_most(p, rest - tail);
        rest = tail;
    }
    double end_s = do_rest(p, rest);
    return p->ask->chain > 1 ? fmax(end_s, chain_s(p)) : end_s;
}

/* --- all simulations, and the interval --- */

/* Fill `seen` with the tasks that have ended and the running tasks. A further task may take longer than all
 * of these. So add one imaginary task that takes longer than the longest task that has ended. */
static void take_seen(play *p) {
    const kl_left_ask *ask = p->ask;
    double longest = 0;
    for (uint32_t i = 0; i < ask->seen_count; i++)
        if (ask->seen[i].unit_s > 0) {
            p->seen[p->count++] = (seen){ask->seen[i].unit_s, ask->seen[i].worker, false};
            longest = fmax(longest, ask->seen[i].unit_s);
        }
    p->ended = p->count;
    if (p->ended > 0)
        p->seen[p->count++] = (seen){longest, UINT32_MAX, true};
    for (uint32_t w = 0; w < p->workers && p->ended > 0; w++)
        if (ask->workers[w].queued > 0 && ask->workers[w].task_s > 0)
            p->seen[p->count++] = (seen){ask->workers[w].task_s / ask->task_units, w, true};
}

/* Return the number of simulations. With many workers a simulation takes longer, so there are fewer. */
static int plays_of(uint32_t workers) {
    int plays = workers > MANY_WORKERS ? PLAYS * MANY_WORKERS / (int)workers : PLAYS;
    return plays > PLAYS_LEAST ? plays : PLAYS_LEAST;
}

static void play_all(play *p, kl_left *left) {
    int plays = plays_of(p->workers), outside = (int)((1 - p->ask->part) / 2 * plays);
    choose_measure(p);
    measure_tail(p);
    compare_workers(p);
    measure_drift(p);
    for (int i = 0; i < plays; i++)
        p->results[i] = play_once(p);
    qsort(p->results, (size_t)plays, sizeof *p->results, compare);
    left->low_s = p->results[outside];
    left->middle_s = p->results[plays / 2];
    left->high_s = p->results[plays - 1 - outside];
}

bool kl_model_time_left(const kl_left_ask *ask, kl_left *left) {
    uint32_t workers = ask->count < WORKERS_MOST ? ask->count : WORKERS_MOST;
    size_t most = (size_t)ask->seen_count + workers + 1;
    play p = {.ask = ask, .random = kl_mix64(ask->seed), .workers = workers};
    bool known = false;
    *left = (kl_left){0};
    if (workers == 0 || ask->seen_count == 0 || !(ask->task_units > 0))
        return false;
    p.tasks = (double)ask->tasks * workers / ask->count;
    p.seen = calloc(most, sizeof *p.seen);
    p.drawn = calloc(most, sizeof *p.drawn);
    p.sizes = calloc(most, sizeof *p.sizes);
    p.sums = calloc(2 * (size_t)workers, sizeof *p.sums);
    p.lanes = calloc(workers, sizeof *p.lanes);
    if (p.seen && p.drawn && p.sizes && p.sums && p.lanes) {
        p.times = p.sums + workers;
        take_seen(&p);
        known = p.count > 0;
        if (known)
            play_all(&p, left);
    }
    free(p.seen);
    free(p.drawn);
    free(p.sizes);
    free(p.sums);
    free(p.lanes);
    return known;
}
