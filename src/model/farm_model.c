/* Model an iteration of a balanced master/worker program by expressions (7) to (13) of a paper: César,
 * Moreno, Sorribes and Luque 2006. Also rate how well work was distributed. docs/explanation/model.md
 * explains the expressions and their limits. */
#include "model/model.h"

#include <math.h>

/* Return λαV: the seconds that all bytes to the workers need on the link. */
static double wire_to_s(const kl_farm_model *m) {
    return m->message.per_unit_s * m->to_workers * m->bytes;
}

/* Return λV: the seconds that all bytes in both directions need on the link. */
static double wire_s(const kl_farm_model *m) {
    return m->message.per_unit_s * m->bytes;
}

double kl_model_time_with_s(const kl_farm_model *m, uint32_t workers, double speed) {
    double n = workers ? workers : 1, start_s = m->message.fixed_s, to_s = wire_to_s(m);
    double work_s = m->work_s / (speed > 0 ? speed : n);
    if (m->synchronous) /* expression (9) */
        return (n + 1) * start_s + ((n - 1) * to_s + wire_s(m)) / n + work_s + m->master_s;
    if (m->own_links ||
        start_s >= to_s / n) /* expression (7): no message waits for the bytes of another message */
        return (n + 1) * start_s + wire_s(m) / n + work_s + m->master_s;
    return 2 * start_s + ((n - 1) * to_s + wire_s(m)) / n + work_s + m->master_s; /* expression (8) */
}

double kl_model_efficiency_with(const kl_farm_model *m, uint32_t workers, double speed) {
    double spent_s = speed * kl_model_time_with_s(m, workers, speed);
    return spent_s > 0 ? m->work_s / spent_s : 1; /* without work and cost, nothing is lost */
}

double kl_model_index_with(const kl_farm_model *m, uint32_t workers, double speed) {
    double time_s = kl_model_time_with_s(m, workers, speed), scaled = speed * time_s * time_s;
    /* Without work, every index would be infinite. Then the constant factor 1/T_c is left out, which does not
     * change the order of the indices. */
    return m->work_s > 0 ? scaled / m->work_s : scaled;
}

static uint32_t whole_workers(double n) {
    return !(n < UINT32_MAX) ? UINT32_MAX : n < 1 ? 1 : (uint32_t)n;
}

uint32_t kl_model_capability(const kl_farm_model *m) {
    double start_s = m->message.fixed_s, to_s = wire_to_s(m), total_s = wire_s(m) + m->work_s;
    /* (1−α)λV + T_c: n times the seconds that one worker needs to work and to answer */
    double answer_s = total_s - to_s;
    if (m->synchronous) {
        double b = to_s - 2 * start_s;
        if (start_s > 0) { /* expression (12), in a form that keeps all digits when b is large */
            double root = sqrt(b * b + 4 * start_s * total_s);
            return whole_workers(b > 0 ? 2 * total_s / (b + root) : (root - b) / (2 * start_s));
        }
        return to_s > 0 ? whole_workers(total_s / to_s) : UINT32_MAX;
    }
    /* A send takes the longer of m_o and λαV/n, so both give a limit for the number of workers. The smaller
     * limit decides. */
    double by_start = start_s > 0 ? 1 + sqrt(1 + answer_s / start_s) : INFINITY; /* expression (10) */
    bool waits = !m->own_links && to_s > start_s;
    double by_wire = waits ? total_s / (to_s - start_s) : (double)INFINITY; /* expression (11) */
    return whole_workers(fmin(by_start, by_wire));
}

typedef struct best {
    uint32_t workers;
    double index;
} best;

/* Return whether the messages to the other n−1 workers are sent before the first worker's answer arrives.
 * Expressions (10) to (12) follow from this inequality. */
static bool feeds(const kl_farm_model *m, uint32_t workers, double speed) {
    double n = workers, start_s = m->message.fixed_s, to_s = wire_to_s(m) / n;
    double send_s = m->synchronous ? start_s + to_s : m->own_links ? start_s : fmax(start_s, to_s);
    return (n - 1) * send_s <= start_s + m->work_s / speed + wire_s(m) / n - to_s;
}

static double listed(const void *sums, uint32_t n) {
    return ((const double *)sums)[n - 1];
}

kl_speeds kl_speeds_listed(const double *sums) {
    return (kl_speeds){listed, sums};
}

/* Find the limit by bisection. With more workers, sending takes longer, and the first answer comes sooner. So
 * if the master cannot feed a number of workers, it cannot feed more workers either. */
uint32_t kl_model_capability_of(const kl_farm_model *m, kl_speeds speeds, uint32_t most) {
    uint32_t fed = 1, over = most + 1; /* the master can keep `fed` workers busy, but not `over` workers */
    while (over > fed + 1) {
        uint32_t middle = fed + (over - fed) / 2;
        if (feeds(m, middle, kl_speed_of(speeds, middle)))
            fed = middle;
        else
            over = middle;
    }
    return fed;
}

/* number of steps for a range of numbers; if steps grow, each number is 1/32 larger than the number before
 * it */
enum { COARSE = 32 };

/* Evaluate the index from *low to *high in steps of `step`. If `step` is 0, the steps grow. Return the best
 * number of workers. Set *low and *high to the evaluated numbers below and above it. */
static best look_through(const kl_index *index, uint32_t step, uint32_t *low, uint32_t *high) {
    uint32_t last = *high, before = *low;
    best found = {*low, INFINITY};
    for (uint32_t n = *low, next;; before = n, n = next) {
        uint32_t more = step ? step : n / COARSE + 1;
        next = last - n < more ? last : n + more;
        double here = index->of(index->self, n);
        if (here < found.index) {
            found = (best){n, here};
            *low = before;
            *high = next;
        }
        if (n == last)
            return found;
    }
}

/* Evaluate numbers in growing steps, then in smaller and smaller steps around the best one. This finds the
 * lowest value, because the values first fall and then rise. */
uint32_t kl_model_lowest(const kl_index *index, uint32_t most) {
    uint32_t low = 1, high = most;
    best found = look_through(index, 0, &low, &high);
    while (found.index < INFINITY && high > low + 1) { /* the loop ends if no number has a finite index */
        uint32_t step = (high - low) / COARSE + 1;
        found = look_through(index, step, &low, &high);
        if (step == 1)
            break;
    }
    return found.workers;
}

typedef struct workers_of {
    const kl_farm_model *model;
    kl_speeds speeds;
} workers_of;

static double index_of_fastest(const void *self, uint32_t n) {
    const workers_of *w = self;
    return kl_model_index_with(w->model, n, kl_speed_of(w->speeds, n));
}

uint32_t kl_model_best_of(const kl_farm_model *m, kl_speeds speeds, uint32_t most) {
    workers_of w = {m, speeds};
    return kl_model_lowest(&(kl_index){index_of_fastest, &w}, kl_model_capability_of(m, speeds, most));
}

double kl_model_quality(double busy_s, uint32_t workers, double elapsed_s) {
    if (workers == 0 || !(elapsed_s > 0))
        return 0;
    /* busy_s and elapsed_s may come from two clocks, so busy_s may be slightly too large */
    return fmax(0, 1 - busy_s / workers / elapsed_s);
}

double kl_model_quality_bound(double task_mean_s, double task_sd_s, uint32_t workers) {
    if (!(task_sd_s > 0) || workers == 0)
        return 0;
    return 1 / (1 + task_mean_s / task_sd_s * sqrt(2.0 / workers));
}

double kl_model_min_chunk_s(double send_s, uint32_t workers) {
    return workers > 1 ? send_s * (workers - 1) : 0;
}
