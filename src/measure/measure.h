/* Door of room measure: numbers in (fed by probe and by the farm's traffic), estimates out. Pure: time is an
 * argument.
 *
 * Work is counted in units: the sum of the weights of tasks; a task of a run without weights is 1 unit. */
#ifndef KL_MEASURE_H
#define KL_MEASURE_H

#include "base/base.h"

/* Running count, mean and variance (Welford), with the smallest, the largest and the age of the last value.
 * Zeroed is empty. */
typedef struct kl_stat {
    uint64_t count;
    double mean, m2; /* m2: sum of squared deviations from the mean */
    double min, max;
    double last_s; /* when the last value came */
} kl_stat;

void kl_stat_add(kl_stat *stat, double value, double now_s);
void kl_stat_merge(kl_stat *into,
                   const kl_stat *from); /* as if all values of `from` had been added (Chan et al. 1979) */
double kl_stat_sd(const kl_stat *stat);  /* of the sample (n − 1); 0 below two values */
double kl_stat_cv(const kl_stat *stat);  /* σ/μ; 0 when μ is 0 */

/* Present pace of a worker: seconds per unit, recent work counting more. Decays with the time spent working
 * (not idling), so that a burst of small chunks and one big one of the same length weigh alike. Zeroed is
 * empty. */
typedef struct kl_pace {
    double seconds, units; /* decayed sums */
    double spread;         /* decayed sum of squared relative deviations, each weighed by its seconds */
} kl_pace;

void kl_pace_add(kl_pace *pace, double seconds, double units,
                 double memory_s);          /* memory_s: time constant of the decay, > 0 */
double kl_pace_unit_s(const kl_pace *pace); /* seconds per unit; 0: not known */

/* Message cost m_o + λ·bytes, neither term below 0: least squares over the quickest exchange of each size in
 * this window and the one before. The quickest, as a message that had to wait for others tells of them. While
 * the sizes are too much alike to tell λ, it stays as it was. Zeroed is empty. */
enum { KL_MSGCOST_SIZES = 32 };
typedef struct kl_msgcost_size { /* from 2^(i−1) bytes to 2^i */
    bool known;
    double bytes, seconds;
} kl_msgcost_size;
typedef struct kl_msgcost_window {
    uint64_t count;
    kl_msgcost_size sizes[KL_MSGCOST_SIZES];
} kl_msgcost_window;
typedef struct kl_msgcost {
    uint64_t count; /* ever */
    kl_msgcost_window now, before;
    double per_byte_s; /* as windows further back had it */
    bool per_byte_known;
} kl_msgcost;

void kl_msgcost_add(kl_msgcost *cost, double bytes, double seconds);
kl_linear
kl_msgcost_fit(const kl_msgcost *cost); /* all 0 when empty; λ = 0 while every message had the same size */
/* What was before this window is forgotten, unless there is too little in it. */
void kl_msgcost_next_window(kl_msgcost *cost);

/* Weighted average performance of a worker (AWF): the k-th chunk counts k times. Zeroed is empty. */
typedef struct kl_wap {
    uint64_t chunks;
    double seconds, units; /* Σ k·seconds_k, Σ k·units_k */
} kl_wap;

void kl_wap_add(kl_wap *wap, double seconds, double units);
double kl_wap_unit_s(const kl_wap *wap); /* seconds per unit; 0: not known */

/* What is known of one worker. */
typedef struct kl_worker_view {
    bool present;       /* joined, ready, not lost and not resting */
    bool resting;       /* could work, but is not wanted now */
    kl_stat unit_s;     /* seconds per unit of single tasks (a task's time over its weight), in all runs */
    kl_stat run_unit_s; /* the same, this run */
    kl_pace pace;       /* the same, now */
    kl_wap wap;         /* this run */
    double prior_rate;  /* rate relative to the other workers, known when the run began; 0: not known */
    uint64_t chunks;    /* dealt to it in this run */
    uint64_t queued_tasks;
    double queued_units;  /* dealt to it and not reported finished */
    double queued_at_s;   /* when that was last true: a report came or a chunk went out */
    double busy_s, units; /* this run: time in the work function and units done in it */
} kl_worker_view;

/* Everything a decision may look at. Kept up to date in place by the farm; nobody rebuilds it per decision.
 */
typedef struct kl_snapshot {
    double now_s, began_s; /* began_s: start of the run */
    uint64_t run;          /* 0, 1, 2, … */
    uint64_t tasks;        /* of the run */
    uint64_t left;         /* not dealt yet */
    double units, left_units;
    const kl_worker_view *workers; /* workers[0 … slots−1]; those gone stay, not present */
    uint32_t slots, present;
    kl_stat unit_s;      /* of single tasks over all workers */
    kl_linear message;   /* m_o [s], λ [s/byte], fitted from probes */
    double answer_s;     /* master's own time to answer one request for work; 0: not known */
    double round_trip_s; /* of a small message; 0: not known */
    double task_bytes;   /* bytes to a worker per task, mean */
    double result_bytes; /* bytes back per task, mean */
} kl_snapshot;

double kl_worker_rate(const kl_worker_view *worker); /* units per second now; 0: not known or not present */
double kl_total_rate(const kl_snapshot *snapshot);   /* sum over present workers; one not known yet counts as
                                                        the mean of the others */

#endif
