/* Compute shares and bounds: divide n iterations among the ranks, so that all ranks end a sweep together. */
#include <math.h>
#include <stdlib.h>

#include "steer/steer.h"

/* --- shares in proportion to rates --- */

typedef struct due {
    uint32_t rank;
    double rate; /* rate of the rank, relative to the greatest rate */
    double part; /* fraction of an iteration that the rank should get in addition to whole iterations */
} due;

static int by_rate(const void *a, const void *b) {
    const due *x = a, *y = b;
    if (x->rate != y->rate)
        return x->rate < y->rate ? -1 : 1;
    return x->rank < y->rank ? -1 : 1;
}

static int by_part(const void *a, const void *b) {
    const due *x = a, *y = b;
    if (x->part != y->part)
        return x->part > y->part ? -1 : 1;
    return x->rank < y->rank ? -1 : 1;
}

/* Return the greatest rate; 0: the rates are not valid. */
static double largest(uint32_t ranks, const double *rates) {
    double most = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        if (!(rates[r] >= 0) || !isfinite(rates[r]))
            return 0;
        most = rates[r] > most ? rates[r] : most;
    }
    return most;
}

/* if the speeds of two ranks seem to differ by more than this factor, the cost of iterations probably
 * jumps at the bound between them */
static const double SPEEDS_MOST = 8;

enum { BUCKETS = 256 };

static uint32_t bucket_of(const due *d) {
    double at = d->part * BUCKETS;
    return at < BUCKETS - 1 ? (uint32_t)at : BUCKETS - 1;
}

/* Give one more iteration to each of the `more` ranks with the greatest fractions. Fractions are sorted into
 * buckets. Only the last bucket from which ranks get an iteration is sorted exactly. */
static void deal_parts(uint64_t more, due *dues, size_t count, uint64_t *shares) {
    size_t in[BUCKETS] = {0}, last = BUCKETS, edge = 0;
    for (size_t i = 0; i < count; i++)
        in[bucket_of(&dues[i])]++;
    while (last > 0 && in[last - 1] <= more)
        more -= in[--last];
    for (size_t i = 0; i < count; i++) {
        uint32_t bucket = bucket_of(&dues[i]);
        if (bucket >= last)
            shares[dues[i].rank]++;
        else if (bucket + 1 == last)
            dues[edge++] = dues[i];
    }
    if (more > 0)
        qsort(dues, edge, sizeof *dues, by_part);
    for (size_t i = 0; i < more; i++)
        shares[dues[i].rank]++;
}

/* Divide n iterations among the ranks dues[0 … count−1]: first the whole iterations of each rank, then one
 * more for the greatest fractions. */
static void deal(uint64_t n, due *dues, size_t count, double sum, uint64_t *shares) {
    uint64_t left = n;
    for (size_t i = 0; i < count; i++) {
        double quota = (double)n * (dues[i].rate / sum);
        uint64_t whole = quota < (double)left ? (uint64_t)quota : left;
        dues[i].part = quota - (double)whole;
        shares[dues[i].rank] = whole;
        left -= whole;
    }
    uint64_t each = left / count; /* the quotient is above 0 only if n exceeds the precision of a double */
    for (size_t i = 0; i < count && each > 0; i++)
        shares[dues[i].rank] += each;
    deal_parts(left % count, dues, count, shares);
}

/* Give `floor` iterations to each rank that would get fewer, beginning with the slowest ranks. Return the
 * number of these ranks. Set *n and *sum to the iterations and the sum of rates that remain for the other
 * ranks. */
static uint32_t deal_floor(uint64_t floor, due *dues, uint32_t ranks, uint64_t *n, double *sum,
                           uint64_t *shares) {
    uint32_t low = 0;
    qsort(dues, ranks, sizeof *dues, by_rate);
    while (low + 1 < ranks && (double)*n * (dues[low].rate / *sum) < (double)floor) {
        *sum -= dues[low].rate;
        *n -= floor;
        shares[dues[low++].rank] = floor;
    }
    return low;
}

kilter_status kl_shares(uint64_t n, uint32_t ranks, const double *rates, uint64_t least, uint64_t *shares) {
    double most = largest(ranks, rates), slowest = 1, sum = 0;
    if (most <= 0)
        return KILTER_ERR_RANGE;
    due *dues = malloc(ranks * sizeof *dues);
    if (!dues)
        return KILTER_ERR_MEMORY;
    for (uint32_t r = 0; r < ranks; r++) {
        dues[r] = (due){.rank = r, .rate = rates[r] / most};
        sum += dues[r].rate;
        slowest = dues[r].rate < slowest ? dues[r].rate : slowest;
    }
    uint64_t floor_each = least < n / ranks ? least : n / ranks;
    uint32_t low = 0; /* number of ranks, the slowest ones, that get only the minimum of iterations */
    if ((double)n * (slowest / sum) < (double)floor_each)
        low = deal_floor(floor_each, dues, ranks, &n, &sum, shares);
    deal(n, dues + low, ranks - low, sum, shares);
    free(dues);
    return KILTER_OK;
}

void kl_equal_shares(uint64_t n, uint32_t ranks, uint64_t *shares) {
    for (uint32_t r = 0; r < ranks; r++)
        shares[r] = n / ranks + (r < n % ranks);
}

void kl_bounds_of_shares(uint32_t ranks, const uint64_t *shares, uint64_t *bounds) {
    uint64_t at = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        bounds[r] = at;
        at += shares[r];
    }
    bounds[ranks] = at;
}

/* --- costs of iterations along their index --- */

kilter_status kl_costs_init(kl_costs *costs, uint64_t n, uint32_t bins) {
    uint32_t parts = bins < n ? bins : (uint32_t)n;
    double *cost = malloc(parts * sizeof *cost);
    if (!cost)
        return KILTER_ERR_MEMORY;
    for (uint32_t k = 0; k < parts; k++)
        cost[k] = 1;
    *costs = (kl_costs){.n = n, .bins = parts, .cost = cost};
    return KILTER_OK;
}

void kl_costs_free(kl_costs *costs) {
    free(costs->cost);
    costs->cost = NULL;
}

static double width_of(const kl_costs *costs) {
    return (double)costs->n / costs->bins;
}

/* Return the length of the part of [lo, hi) that lies in [from, to). */
static double overlap(double lo, double hi, double from, double to) {
    double length = (hi < to ? hi : to) - (lo > from ? lo : from);
    return length > 0 ? length : 0;
}

static uint32_t bin_at(const kl_costs *costs, double at) {
    double bin = at / width_of(costs);
    return bin < costs->bins ? (uint32_t)bin : costs->bins - 1;
}

double kl_costs_work(const kl_costs *costs, kl_span range) {
    double lo = (double)range.lo, hi = (double)range.hi, work = 0;
    if (range.hi <= range.lo)
        return 0;
    if (!costs->cost)
        return hi - lo;
    double width = width_of(costs);
    for (uint32_t k = bin_at(costs, lo); k < costs->bins && k * width < hi; k++)
        work += overlap(lo, hi, k * width, (k + 1) * width) * costs->cost[k];
    return work;
}

static bool measured(double seconds) {
    return seconds > 0 && isfinite(seconds);
}

/* Return the seconds that were measured for the part [from, to) of the range. Set *known to the length of
 * this part for which there are measurements. */
static double seconds_in(kl_span range, const double *segments_s, double from, double to, double *known) {
    double length = (double)(range.hi - range.lo) / KL_SEGMENTS, lo = (double)range.lo, seconds = 0;
    double first = (from - lo) / length;
    *known = 0;
    for (uint32_t s = first > 0 ? (uint32_t)first : 0; s < KL_SEGMENTS && lo + s * length < to; s++) {
        double part = overlap(lo + s * length, lo + (s + 1) * length, from, to);
        if (measured(segments_s[s])) {
            seconds += part * segments_s[s];
            *known += part;
        }
    }
    return seconds;
}

/* Return the cost of an iteration at the beginning (way 1) or at the end (way −1) of a range, relative to the
 * range's mean cost. Extrapolate this cost from the two outermost segments. Limit the result to between half
 * and double the value of the outermost segment. */
static double end_of(const double *segments_s, uint32_t first, int way) {
    double sum = 0;
    for (uint32_t s = 0; s < KL_SEGMENTS; s++) {
        if (!measured(segments_s[s]))
            return 1;
        sum += segments_s[s];
    }
    double near_s = segments_s[first], end_s = 1.5 * near_s - 0.5 * segments_s[(int)first + way];
    double least_s = near_s / 2, most_s = near_s * 2;
    return (end_s < least_s ? least_s : end_s > most_s ? most_s : end_s) * KL_SEGMENTS / sum;
}

static double step_between(const double *below_s, const double *above_s) {
    return end_of(below_s, KL_SEGMENTS - 1, -1) / end_of(above_s, 0, 1);
}

static double mean_s(const double *segments_s) {
    double sum = 0;
    for (uint32_t s = 0; s < KL_SEGMENTS; s++) {
        if (!measured(segments_s[s]))
            return 0;
        sum += segments_s[s];
    }
    return sum / KL_SEGMENTS;
}

/* Return whether the differences between the ranks' speeds are credible, if costs are assumed equal on both
 * sides of each bound. */
static bool are_believable(uint32_t ranks, const double (*segments_s)[KL_SEGMENTS]) {
    double level = 1, least = INFINITY, most = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        double seconds = mean_s(segments_s[r]);
        if (seconds <= 0)
            return true;
        level *= r > 0 ? step_between(segments_s[r - 1], segments_s[r]) : 1;
        least = fmin(least, level / seconds);
        most = fmax(most, level / seconds);
    }
    return most <= SPEEDS_MOST * least;
}

void kl_costs_join(kl_costs *costs, uint32_t ranks, const uint64_t *bounds,
                   const double (*segments_s)[KL_SEGMENTS]) {
    double width = width_of(costs), level = 1, sum = 0;
    bool joined = are_believable(ranks, segments_s);
    uint32_t k = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        if (!joined)
            level = mean_s(segments_s[r]);
        else if (r > 0)
            level *= step_between(segments_s[r - 1], segments_s[r]);
        for (; k < costs->bins && ((k + 0.5) * width < (double)bounds[r + 1] || r + 1 == ranks); k++)
            sum += costs->cost[k] = level;
    }
    for (k = 0; k < costs->bins; k++)
        costs->cost[k] *= costs->bins / sum;
}

void kl_costs_learn(kl_costs *costs, kl_span range, const double *segments_s, double trust) {
    if (!costs->cost || range.hi <= range.lo || range.hi > costs->n)
        return;
    double width = width_of(costs), lo = (double)range.lo, hi = (double)range.hi, work = 0, seconds = 0,
           known;
    uint32_t first = bin_at(costs, lo);
    for (uint32_t k = first; k < costs->bins && k * width < hi; k++) {
        seconds += seconds_in(range, segments_s, k * width, (k + 1) * width, &known);
        work += known * costs->cost[k];
    }
    if (!(seconds > 0))
        return;
    double speed = work / seconds; /* speed of this rank, if the total cost of its range is right */
    for (uint32_t k = first; k < costs->bins && k * width < hi; k++) {
        double here_s = seconds_in(range, segments_s, k * width, (k + 1) * width, &known);
        costs->cost[k] += trust * (here_s * speed - known * costs->cost[k]) / width;
    }
}

/* --- bounds --- */

static bool flat(const kl_costs *costs) {
    for (uint32_t k = 0; costs->cost && k < costs->bins; k++)
        if (costs->cost[k] != costs->cost[0])
            return false;
    return true;
}

static kilter_status bounds_of_rates(uint64_t n, uint32_t ranks, const double *rates, uint64_t least,
                                     uint64_t *bounds) {
    uint64_t *shares = malloc(ranks * sizeof *shares);
    if (!shares)
        return KILTER_ERR_MEMORY;
    kilter_status status = kl_shares(n, ranks, rates, least, shares);
    if (status == KILTER_OK)
        kl_bounds_of_shares(ranks, shares, bounds);
    free(shares);
    return status;
}

/* Find the bounds by going through the iterations once. Bound r is where the work so far equals the work
 * that the ranks 0 … r−1 must get. */
static void cut(const kl_costs *costs, uint32_t ranks, const double *speeds, double most, double total,
                uint64_t *bounds) {
    double width = width_of(costs), sum = 0, due_work = 0, before = 0;
    for (uint32_t r = 0; r < ranks; r++)
        sum += speeds[r] / most;
    uint32_t k = 0;
    for (uint32_t r = 1; r < ranks; r++) {
        due_work += total * (speeds[r - 1] / most / sum);
        while (k + 1 < costs->bins && before + width * costs->cost[k] < due_work)
            before += width * costs->cost[k++];
        double in_bin = costs->cost[k] > 0 ? (due_work - before) / costs->cost[k] : 0;
        double at = k * width + (in_bin < width ? in_bin : width) + 0.5;
        bounds[r] = at < (double)costs->n ? (uint64_t)at : costs->n;
    }
}

static void keep_least(uint64_t n, uint32_t ranks, uint64_t least, uint64_t *bounds) {
    uint64_t each = least < n / ranks ? least : n / ranks;
    for (uint32_t r = 1; r < ranks; r++) {
        uint64_t low = bounds[r - 1] + each, high = n - (ranks - r) * each;
        bounds[r] = bounds[r] < low ? low : bounds[r];
        bounds[r] = bounds[r] > high ? high : bounds[r];
    }
}

kilter_status kl_bounds(const kl_costs *costs, uint32_t ranks, const double *speeds, uint64_t least,
                        uint64_t *bounds) {
    if (flat(costs))
        return bounds_of_rates(costs->n, ranks, speeds, least, bounds);
    double most = largest(ranks, speeds);
    if (most <= 0)
        return KILTER_ERR_RANGE;
    bounds[0] = 0;
    bounds[ranks] = costs->n;
    cut(costs, ranks, speeds, most, kl_costs_work(costs, (kl_span){0, costs->n}), bounds);
    keep_least(costs->n, ranks, least, bounds);
    return KILTER_OK;
}
