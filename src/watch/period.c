/* The iteration: the shortest sequence of calls that repeats.
 *
 * Calls are compared by the place in the program that makes them. For each candidate length p, count the
 * calls that come from the same place as the call p positions earlier. Branches, such as output at every
 * tenth step, make some calls differ. So the result is the shortest length that has nearly as many equal
 * calls as the best length. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "watch/watch.h"

enum {
    CALLS_LEAST = 16,    /* no iteration is searched for in fewer calls than this */
    PERIODS_LEAST = 4,   /* least number of times that an iteration must repeat */
    LENGTH_MOST = 8192,  /* greatest number of calls of an iteration */
    WINDOW_MOST = 32768, /* greatest number of calls that are compared */
    SAMPLE = 256,        /* number of pairs of calls that are compared first */
    MULTIPLES_MOST = 64, /* greatest number of consecutive calls of one place that may be one iteration */
};
static const double ALIKE_LEAST = 0.7;  /* least part of the calls that must repeat */
static const double ALIKE_NEARLY = 0.9; /* a length is nearly as good as the best length if it has at least
                                           this part of its repeating calls */
static const double LIKE_TIMES = 0.6;   /* least correlation of useful times that shows an iteration */
/* A part of the run counts as an iteration only if it has at least 1 / CALLS_USUAL of the usual calls. The
 * mean time of an iteration leaves out iterations with more than CALLS_USUAL times the usual number of calls.
 * It also leaves out an iteration that takes more than GAP times the median time and more than GAP_PART of
 * the whole time. */
static const double CALLS_USUAL = 2, GAP = 10, GAP_PART = 0.2;

/* The calls in which an iteration is searched for. */
typedef struct window {
    const kl_watch_call *call;
    size_t count;
} window;

/* Return a window: the calls in which an iteration is searched for. Windows are searched in the order of
 * their numbers. The first window has all calls except the first twentieth and the last twentieth. The other
 * windows are halves and quarters of it, because only a phase of the program may have iterations. After the
 * last window, count is 0. */
static window window_of(const kl_watch_rank *r, size_t number) {
    static const struct {
        size_t of, at; /* the window has the part 1 / `of` of the calls, and begins after `at` eighths of the
                          calls */
    } PARTS[] = {{1, 0}, {2, 2}, {2, 4}, {2, 0}, {4, 6}, {4, 4}, {4, 2}, {4, 0}};
    if (r->call_count == 0 || number >= sizeof PARTS / sizeof *PARTS)
        return (window){NULL, 0};
    size_t edge = r->call_count / 20, all = r->call_count - 2 * edge, count = all / PARTS[number].of;
    size_t from = edge + all * PARTS[number].at / 8;
    if (count > WINDOW_MOST) {
        from += (count - WINDOW_MOST) / 2;
        count = WINDOW_MOST;
    }
    return (window){r->call + from, count};
}

/* Compare only some of the pairs of calls that are `length` apart. Return whether half of them or more
 * differ. */
static bool is_hopeless(const window *w, size_t length) {
    size_t pairs = w->count - length, step = pairs / SAMPLE + 1, unlike = 0;
    for (size_t i = length; i < w->count; i += step)
        unlike += w->call[i].site != w->call[i - length].site;
    return 2 * unlike * step > pairs;
}

/* Return the fraction of the calls that come from the same place as the call `length` positions earlier.
 * Return 0 if this fraction is below `least`. */
static double alike(const window *w, size_t length, double least) {
    size_t pairs = w->count - length, unlike = 0;
    size_t most = (size_t)((1 - least) * (double)pairs);
    if (is_hopeless(w, length))
        return 0;
    for (size_t i = length; i < w->count && unlike <= most; i++)
        unlike += w->call[i].site != w->call[i - length].site;
    return unlike > most ? 0 : 1 - (double)unlike / (double)pairs;
}

/* Return the shortest length that is nearly as good as the best one; 0: there is none. *how is set to the
 * part of the calls that repeat. The search ends early at a length that is nearly perfect. */
static size_t length_of(const window *w, double *how) {
    size_t most = w->count / PERIODS_LEAST < LENGTH_MOST ? w->count / PERIODS_LEAST : LENGTH_MOST;
    double best = 0, *found = calloc(most + 1, sizeof *found);
    size_t length = 0;
    for (size_t p = 1; found && p <= most && best < ALIKE_NEARLY; p++) {
        found[p] = alike(w, p, fmax(ALIKE_LEAST, ALIKE_NEARLY * best));
        best = fmax(best, found[p]);
    }
    for (size_t p = 1; found && p <= most && length == 0; p++)
        if (found[p] > 0 && found[p] >= ALIKE_NEARLY * best) {
            length = p;
            *how = found[p];
        }
    free(found);
    return length;
}

/* Return `length` calls from the middle of the longest stretch of calls that repeats. NULL: nothing repeats.
 */
static const kl_watch_call *pattern_of(const window *w, size_t length) {
    size_t same = 0, longest = 0, end = 0;
    for (size_t i = length; i < w->count; i++) {
        same = w->call[i].site == w->call[i - length].site ? same + 1 : 0;
        if (same <= longest)
            continue;
        longest = same;
        end = i + 1;
    }
    return longest >= length ? &w->call[end - longest / 2 - length] : NULL;
}

/* --- iterations whose calls all come from one place --- */

/* Return the correlation, from −1 to 1, of useful times that are `lag` calls apart. The mean has been
 * subtracted from `times`. */
static double correlation(const double *times, size_t count, size_t lag) {
    double both = 0, alone = 0;
    for (size_t i = lag; i < count; i++) {
        both += times[i] * times[i - lag];
        alone += (times[i] * times[i] + times[i - lag] * times[i - lag]) / 2;
    }
    return alone > 0 ? both / alone : 0;
}

/* Store in `times` the useful times before calls, only for calls from places that are used in each iteration
 * of this length. Return the number of these calls. */
static size_t keep_usual(const window *w, size_t length, double *times) {
    size_t *often = calloc(UINT16_MAX + 1, sizeof *often), count = 0;
    for (size_t i = 0; often && i < w->count; i++)
        often[w->call[i].site]++;
    for (size_t i = 0; often && i < w->count; i++)
        if (2 * length * often[w->call[i].site] >= w->count)
            times[count++] = w->call[i].useful_s;
    free(often);
    return count;
}

/* Replace each long time by 1 and each short time by 0, and then subtract the mean. This lessens the effect
 * of other programs on the host: they lengthen some times, but they turn few short times into long ones. */
static void mark_long(double *times, size_t count) {
    double mean = 0, part = 0;
    for (size_t i = 0; i < count; i++)
        mean += times[i] / (double)count;
    for (size_t i = 0; i < count; i++) {
        times[i] = times[i] > mean / 4;
        part += times[i] / (double)count;
    }
    for (size_t i = 0; i < count; i++)
        times[i] -= part;
}

/* Return the number of sequences of `length` calls in an iteration. A program may exchange messages with all
 * its neighbours from the same place. Then each call equals the call before it, and only the useful times
 * show where an iteration begins. */
static size_t multiple_of(const window *w, size_t length) {
    double best = 0, found[MULTIPLES_MOST + 1] = {0}, *times = calloc(w->count + 1, sizeof *times);
    size_t multiple = 1, count = times ? keep_usual(w, length, times) : 0;
    if (times)
        mark_long(times, count);
    for (size_t k = 1; k <= MULTIPLES_MOST && k * length * PERIODS_LEAST <= count; k++) {
        found[k] = correlation(times, count, k * length);
        best = fmax(best, found[k]);
    }
    if (best >= LIKE_TIMES && found[1] < best / 2)
        while (found[multiple] < ALIKE_NEARLY * best)
            multiple++;
    free(times);
    return multiple;
}

/* --- the anchor: the place where an iteration begins --- */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Return how often each call of the pattern happened in the run, as a sorted list. If a place has several
 * calls in the pattern, its calls in the run are divided evenly among them. NULL: memory ran out. */
static double *often(const kl_watch_rank *r, const kl_watch_call *pattern, size_t calls,
                     const size_t *times) {
    double *found = calloc(calls + 1, sizeof *found);
    for (size_t i = 0; found && i < calls; i++)
        found[i] = (double)r->places[pattern[i].site].events / (double)times[pattern[i].site];
    if (found)
        qsort(found, calls, sizeof *found, by_value);
    return found;
}

/* Choose the anchor: a place that is used as often as the median place of the pattern. Places used more often
 * may also be used outside of iterations; places used less often may be missing in some iterations. */
static void choose_anchor(const kl_watch_rank *r, const kl_watch_call *pattern, kl_watch_period *p) {
    size_t *times = calloc(r->place_count + 1, sizeof *times);
    for (size_t i = 0; times && i < p->calls; i++)
        times[pattern[i].site]++;
    double *sorted = times ? often(r, pattern, p->calls, times) : NULL;
    double middle = sorted ? sorted[p->calls / 2] : 0, nearest = INFINITY;
    for (size_t i = 0; sorted && i < p->calls; i++) {
        uint16_t site = pattern[i].site;
        double away = fabs((double)r->places[site].events / (double)times[site] - middle);
        if (away > nearest || (away == nearest && times[site] >= p->each))
            continue;
        nearest = away;
        p->anchor = site;
        p->each = times[site];
        p->iterations = (uint64_t)(middle + 0.5);
    }
    if (!sorted)
        *p = (kl_watch_period){.calls = 0};
    free(sorted);
    free(times);
}

/* --- the mean time of an iteration --- */

/* Return the time of each iteration in the ring buffer: its whole time or, if `useful` is true, only its
 * useful time. The part before the first anchor and the part after the last one are left out. */
static double *split(const kl_watch_rank *r, const kl_watch_period *p, bool useful, size_t *count) {
    double *found = p->calls > 0 && p->each > 0 ? calloc(r->call_count / p->each + 2, sizeof *found) : NULL;
    size_t seen = 0, parts = 0;
    for (size_t i = 0; found && i < r->call_count; i++) {
        const kl_watch_call *c = &r->call[i];
        double s = c->useful_s + (useful ? 0 : c->mpi_s);
        if (parts > 0)
            found[parts - 1] += s;
        if (c->site == p->anchor && seen++ % p->each == 0)
            parts++;
    }
    *count = parts > 0 ? parts - 1 : 0;
    if (*count >= 2)
        return found;
    free(found);
    return NULL;
}

double *kl_watch_iterations(const kl_watch_rank *rank, const kl_watch_period *period, size_t *count) {
    return split(rank, period, true, count);
}

/* The calls of the part of the run that is being read, compared with the calls of the iteration. */
typedef struct tally {
    size_t *wanted, *found; /* [place_count] wanted, found: number of calls from each place in the iteration,
                               and in the part */
    size_t places, calls, common;
} tally;

static bool tally_open(tally *t, const kl_watch_rank *r, const kl_watch_call *pattern, size_t calls) {
    size_t places = r->place_count + 1, *both = calloc(2 * places, sizeof *both);
    if (!both)
        return false;
    *t = (tally){.wanted = both, .found = both + places, .places = places};
    for (size_t i = 0; i < calls; i++)
        t->wanted[pattern[i].site]++;
    return true;
}

static void tally_clear(tally *t) {
    memset(t->found, 0, t->places * sizeof *t->found);
    t->calls = t->common = 0;
}

static void tally_take(tally *t, uint16_t site) {
    t->calls++;
    t->common += t->found[site]++ < t->wanted[site];
}

/* Cut the run at the anchors into parts. Set like[k] to the number of calls that part k has in common with
 * the iteration, divided by the iteration's number of calls. Set the time of a part to 0 if it has many more
 * calls than the iteration. */
static void compare_parts(const kl_watch_rank *r, const kl_watch_period *p, tally *t, double *like,
                          double *times, size_t count) {
    size_t seen = 0, parts = 0;
    for (size_t i = 0; i < r->call_count; i++) {
        if (r->call[i].site == p->anchor && seen++ % p->each == 0) {
            if (parts > 0 && parts <= count) {
                like[parts - 1] = (double)t->common / (double)p->calls;
                times[parts - 1] *= (double)t->calls <= CALLS_USUAL * (double)(p->calls + 1);
            }
            parts++;
            tally_clear(t);
        }
        tally_take(t, r->call[i].site);
    }
}

/* Return whether part k is an iteration. Fewer equal calls are enough if the parts before and after it are
 * iterations, because the program may make other calls in some iterations. */
static bool is_iteration(const double *like, size_t count, size_t k) {
    bool between = k > 0 && k + 1 < count && like[k - 1] >= ALIKE_LEAST && like[k + 1] >= ALIKE_LEAST;
    return like[k] >= ALIKE_LEAST || (between && CALLS_USUAL * like[k] >= 1);
}

/* Return how many of the parts between anchors are iterations. Set the times of the others to 0. */
static size_t judge_parts(const kl_watch_rank *r, const kl_watch_period *p, tally *t, double *times,
                          size_t count) {
    double *like = calloc(count, sizeof *like);
    size_t iterations = 0;
    if (like)
        compare_parts(r, p, t, like, times, count);
    for (size_t k = 0; like && k < count; k++) {
        bool is = is_iteration(like, count, k);
        iterations += is;
        times[k] *= is;
    }
    free(like);
    return iterations;
}

/* Return the mean of the times above 0. A time that is far above all others does not count. */
static double mean_of(double *times, size_t count) {
    double sum = 0, all = 0;
    size_t used = 0;
    qsort(times, count, sizeof *times, by_value);
    for (size_t i = 0; i < count; i++)
        all += times[i];
    double gap = fmax(GAP * times[count / 2], GAP_PART * all);
    for (size_t i = 0; i < count; i++)
        if (times[i] > 0 && times[i] <= gap) {
            sum += times[i];
            used++;
        }
    return used > 0 ? sum / (double)used : (double)NAN;
}

/* Find the mean time of an iteration. The anchor may also be used outside of iterations. So not every part
 * between two anchors is an iteration, and the number of iterations is reduced accordingly. */
static void take_time(const kl_watch_rank *r, const kl_watch_call *pattern, kl_watch_period *p) {
    size_t count;
    double *times = split(r, p, false, &count);
    tally t;
    if (times && tally_open(&t, r, pattern, p->calls)) {
        size_t iterations = judge_parts(r, p, &t, times, count);
        p->iterations = p->iterations * (iterations + 1) / (count + 1);
        p->iteration_s = mean_of(times, count);
        free(t.wanted);
    }
    free(times);
}

static kl_watch_period period_in(const kl_watch_rank *rank, const window *w) {
    kl_watch_period p = {.iteration_s = (double)NAN};
    p.calls = length_of(w, &p.alike);
    p.calls = p.calls > 0 ? p.calls * multiple_of(w, p.calls) : 0;
    const kl_watch_call *pattern = p.calls > 0 ? pattern_of(w, p.calls) : NULL;
    if (pattern)
        choose_anchor(rank, pattern, &p);
    else
        p.calls = 0;
    if (p.calls > 0)
        take_time(rank, pattern, &p);
    return p;
}

kl_watch_period kl_watch_period_of(const kl_watch_rank *rank) {
    kl_watch_period none = {.iteration_s = (double)NAN};
    for (size_t i = 0;; i++) {
        window w = window_of(rank, i);
        if (w.count < CALLS_LEAST)
            return none;
        kl_watch_period p = period_in(rank, &w);
        if (p.calls > 0)
            return p;
    }
}
