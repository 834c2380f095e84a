/* Door of room measure: turn numbers (from probes and the farm's traffic) into estimates. Pure: time is an
 * argument. Work is counted in units: the sum of the tasks' weights. A task of a run without weights is 1
 * unit. */
#ifndef KL_MEASURE_H
#define KL_MEASURE_H

#include "base/base.h"

/* Running count, mean and variance (Welford), with the smallest and the largest value and the time of the
 * last one. A zeroed one is empty. */
typedef struct kl_stat {
    uint64_t count;
    double mean, m2; /* m2: sum of squared deviations from the mean */
    double min, max;
    double last_s; /* time of the last value */
} kl_stat;

void kl_stat_add(kl_stat *stat, double value, double now_s);
void kl_stat_merge(kl_stat *into, const kl_stat *from); /* add all values of `from` (Chan et al. 1979) */
double kl_stat_sd(const kl_stat *stat); /* standard deviation of the sample (n − 1); 0 below two values */
double kl_stat_cv(const kl_stat *stat); /* σ/μ; 0 when μ is 0 */

/* The share of its core that a thread can get. A thread that is always ready sees its share: the time it ran
 * over the time it ran or was kept from running. A thread that sleeps while it waits asks for less and does
 * not see it; then the last known share holds until the core is seen idle. A zeroed one is empty. */
typedef enum kl_core_mode {
    KL_CORE_OWN,     /* no other thread wants the core */
    KL_CORE_WATCHED, /* others want the core, or did; the thread must not sleep, so that its share can be
                        measured */
    KL_CORE_SHARED,  /* others want the core, and `share` is known */
} kl_core_mode;
typedef struct kl_core_sample { /* sums since any fixed moment */
    double now_s;
    double run_s, delay_s; /* the thread ran; the thread was ready while others ran */
    double slices;         /* number of times the thread was scheduled */
    double waited_s;       /* the thread waited for messages, asleep or not */
    double idle_s;         /* idle time of the cores the thread may use; below 0: not read this time … */
    bool idle_unknown;     /* … or the system does not tell */
} kl_core_sample;
typedef struct kl_core_share {
    kl_core_mode mode;
    double share; /* 0 … 1 */
    /* The core is shared, and the thread needs less than its share: it may sleep while it waits. A thread
     * that needs its whole share is scheduled late after a sleep, so it spins. */
    bool sleeps;
    double slack; /* part of the time in which it waits; for a sleeping thread, in which it is not ready to
                     run */
    double spins_until_s,
        spin_s;       /* sleeping left no slack: do not try again before this time; length of that pause */
    double since_s;   /* since when the mode holds */
    double hold_s;    /* the core stays shared for this long before it is watched again */
    double quantum_s; /* mean length of a turn while others wanted the core; 0: not measured */
    kl_core_sample watched; /* sums of the time in which the core is watched */
    kl_core_sample last, idle_from;
} kl_core_share;

bool kl_core_share_due(const kl_core_share *core,
                       double now_s); /* true when another sample would be useful */
bool kl_core_share_wants_idle(const kl_core_share *core,
                              double now_s); /* true when that sample needs idle_s */
void kl_core_share_add(kl_core_share *core, const kl_core_sample *sample);

/* Present pace of a worker: seconds per unit, with more weight on recent work. The weights decay with working
 * time, not with idle time, so a burst of small chunks weighs the same as one large chunk of the same length.
 * A zeroed one is empty. */
typedef struct kl_pace {
    double seconds, units; /* decayed sums */
    double spread;         /* decayed sum of squared relative deviations, weighted by seconds */
} kl_pace;

void kl_pace_add(kl_pace *pace, double seconds, double units,
                 double memory_s);          /* memory_s: time constant of the decay, > 0 */
double kl_pace_unit_s(const kl_pace *pace); /* seconds per unit; 0: not known */

/* Message cost m_o + λ·bytes, neither term below 0: least squares over the quickest exchange of each size in
 * this window and the previous one. The quickest one counts because other messages delay the rest. While all
 * sizes are too similar to give λ, λ keeps its value. A zeroed one is empty. */
enum { KL_MSGCOST_SIZES = 32 };
typedef struct kl_msgcost_size { /* class i: from 2^(i−1) bytes to 2^i */
    bool known;
    double bytes, seconds;
} kl_msgcost_size;
typedef struct kl_msgcost_window {
    uint64_t count;
    kl_msgcost_size sizes[KL_MSGCOST_SIZES];
} kl_msgcost_window;
typedef struct kl_msgcost {
    uint64_t count; /* number of exchanges so far */
    kl_msgcost_window now, before;
    double per_byte_s; /* result of earlier windows */
    bool per_byte_known;
} kl_msgcost;

void kl_msgcost_add(kl_msgcost *cost, double bytes, double seconds);
kl_linear
kl_msgcost_fit(const kl_msgcost *cost); /* all 0 when empty; λ = 0 while every message had the same size */
/* Begin a new window and forget the older ones, unless this window has too few exchanges. */
void kl_msgcost_next_window(kl_msgcost *cost);

/* A cost that grows with a number: fixed_s + per_unit_s·number^(1 + bend), no term below 0. */
typedef struct kl_curve {
    double fixed_s, per_unit_s;
    double bend; /* 0: a straight line */
} kl_curve;

double kl_curve_s(const kl_curve *curve, double number);

/* An estimate of such a cost from readings: least squares with more weight on the last readings. The fit is a
 * straight line, or a power of the number where a line would begin below 0. While all readings have one
 * number, the cost is proportional to it. A zeroed one is empty. */
typedef struct kl_line {
    uint64_t count; /* number of readings */
    double weight;  /* decayed sum of weights */
    struct kl_line_sums {
        double x, y; /* decayed means of numbers and of costs */
        double spread_x,
            with_y; /* decayed sums of squared deviations of x, and of products of deviations of x and y */
    } plain, logs;
    double least_x, most_x; /* smallest and largest number so far */
} kl_line;

void kl_line_add(kl_line *line, double number, double seconds);
kl_curve kl_line_fit(const kl_line *line); /* all 0 when empty */

/* Weighted average performance of a worker (AWF): the k-th chunk counts k times. Zeroed is empty. */
typedef struct kl_wap {
    uint64_t chunks;
    double seconds, units; /* Σ k·seconds_k, Σ k·units_k */
} kl_wap;

void kl_wap_add(kl_wap *wap, double seconds, double units);
double kl_wap_unit_s(const kl_wap *wap); /* seconds per unit; 0: not known */

enum { KL_QUICKEST = 3 };

/* All that is known about one worker. */
typedef struct kl_worker_view {
    uint32_t number;    /* the worker's number; its slot may go to another worker after it has left */
    bool present;       /* joined, ready, not lost, not resting */
    bool resting;       /* able to work, but not used now */
    kl_stat unit_s;     /* seconds per unit of single tasks (a task's time over its weight), over all runs */
    kl_stat run_unit_s; /* the same for this run */
    kl_pace pace;       /* the same, present pace */
    double quickest_s[KL_QUICKEST]; /* seconds per unit of the last tasks, or the least of each report; 0: too
                                       few tasks */
    kl_wap wap;                     /* weighted average performance in this run */
    double
        prior_rate;  /* rate relative to the other workers, as known at the start of the run; 0: not known */
    uint64_t chunks; /* units dealt to it in this run */
    uint64_t queued_tasks;
    double queued_units;  /* units dealt to it and not yet reported finished */
    double queued_at_s;   /* when `queued` last held: the time of the last report or chunk */
    double busy_s, units; /* in this run: time spent on its tasks, and units done in that time */
} kl_worker_view;

/* Return the present rate in units per second; 0: not known or not present. It is one over the pace. But if
 * each of the last three tasks took more than twice as long as the pace says, or each of the last two more
 * than four times, it follows from the quickest of them. A pace changes slowly, and one long task alone has
 * no effect. */
double kl_worker_rate(const kl_worker_view *worker);

/* One worker's part in the remaining work. */
typedef struct kl_lane {
    double rate;   /* units per second assumed for it */
    double free_s; /* seconds until it has done its queue */
} kl_lane;

/* Compute the lane of a worker. A worker that is silent for longer than its queue should take counts as
 * slower: its queue takes at least the time that has passed, and is expected to take the same time again.
 * mean_rate: rate of a worker without measurements, > 0. */
kl_lane kl_worker_lane(const kl_worker_view *worker, double mean_rate, double now_s);

/* The workers of a farm, summed and sorted, so that no decision loops over all of them. A change of one
 * worker costs O(log P), and so does a query (docs/explanation/model.md says how, and where it rounds). It
 * takes about 220 bytes a worker. */
typedef struct kl_crew kl_crew;

/* Sums over the present workers. A worker without a value adds nothing. */
typedef struct kl_crew_sums {
    uint32_t present;
    uint32_t known;    /* number of workers whose rate is known */
    uint32_t unserved; /* number of workers that got nothing in this run */
    uint32_t with_prior, with_wap,
        steady;   /* number of workers that have a prior_rate, a wap, a mean and deviation of unit_s */
    double rates; /* Σ kl_worker_rate() */
    double spread, seconds; /* Σ of the spreads of their paces */
    double queued_units;
    double priors, waps;               /* Σ prior_rate, Σ 1/kl_wap_unit_s() */
    double variance_rates, unit_rates; /* over unit_s: Σ σ²/μ, Σ 1/μ */
} kl_crew_sums;

/* Capacity of some of the present workers together. */
typedef struct kl_crew_part {
    uint32_t workers;
    double rate; /* Σ rate of their lanes */
    double owed; /* Σ rate·free_s: units they could do until they become free */
} kl_crew_part;

kl_crew *kl_crew_new(void); /* create a crew without workers; NULL: no memory */
void kl_crew_free(kl_crew *crew);
kilter_status kl_crew_reserve(kl_crew *crew,
                              uint32_t slots); /* make views[0 … slots−1] known; KILTER_ERR_MEMORY */

/* Call this after the view of `worker` has changed. */
void kl_crew_update(kl_crew *crew, const kl_worker_view *views, uint32_t worker);
/* Call this before queries: the time is now_s, which never decreases. */
void kl_crew_advance(kl_crew *crew, double now_s);
/* Call this when all views may have changed and time may have restarted. It costs O(P) when little has
 * changed. */
void kl_crew_look_again(kl_crew *crew, const kl_worker_view *views, double now_s);

const kl_crew_sums *kl_crew_total(const kl_crew *crew);
double kl_crew_mean_rate(const kl_crew *crew); /* mean over workers with a known rate; 0: none is known */

/* The next functions need a mean rate above 0 and leave out worker `without` (UINT32_MAX: nobody). Return the
 * capacity of workers with free_s < within_s. Overdue workers whose silences differ by less than a fifth are
 * grouped, which makes their rate at most 0.83 % too low; all else is exact. */
kl_crew_part kl_crew_free_within(const kl_crew *crew, double within_s, uint32_t without);
/* Return the largest free_s; 0: there is no worker. */
double kl_crew_longest_s(const kl_crew *crew);
enum { KL_CREW_LATEST = 16 };
typedef struct kl_crew_choice {
    const void *self;
    bool (*counts)(const void *self, uint32_t worker);
} kl_crew_choice;
/* Find the workers that count and have free_s above beyond_s, largest first, at most `most` (and
 * KL_CREW_LATEST) of them; return their number. Each late worker that does not count costs one look. */
uint32_t kl_crew_latest(const kl_crew *crew, double beyond_s, const kl_crew_choice *choice, uint32_t *workers,
                        uint32_t most);
/* Return the highest rate of a worker with nothing queued, and its number; 0: there is none. A worker without
 * a known rate counts as the mean. */
double kl_crew_fastest_idle(const kl_crew *crew, uint32_t without, uint32_t *worker);
/* Return the least free_s + units/rate and, unless NULL, the worker that has it; INFINITY: there is no
 * worker. */
double kl_crew_first_end_s(const kl_crew *crew, double units, uint32_t without, uint32_t *worker);

/* Present and resting workers by falling speed: units over busy time in the last run they took part in, or
 * the present pace. Workers without either are left out. */
uint32_t kl_crew_ranked(const kl_crew *crew);
double kl_crew_fastest_speed(const kl_crew *crew,
                             uint32_t n); /* Σ speed of the n fastest workers, or of all */
/* Return the speed that `worker` is ranked by; 0: it is left out. */
double kl_crew_speed(const kl_crew *crew, uint32_t worker);
/* Rank `worker` by this speed until it has units of its own in a run. */
void kl_crew_set_speed(kl_crew *crew, uint32_t worker, double speed);
/* Return the n-th fastest worker, counted from 1; n ≤ kl_crew_ranked(). */
uint32_t kl_crew_nth_fastest(const kl_crew *crew, uint32_t n, double *speed);

/* What a worker reports about its present task while the task runs. */
typedef struct kl_hand {
    double heard_s;   /* time of the last message from the worker; 0: it sends nothing while a task runs */
    double elapsed_s; /* age of the task when it was reported; 0: nothing was reported */
    double share; /* core share of the task up to then, over the share that this worker's tasks usually get */
} kl_hand;

/* The tasks that only this worker has, in the order it does them. The first one runs now or next. */
typedef struct kl_held {
    uint64_t tasks;
    double units, first_units;
    uint64_t kept;  /* number of tasks that cannot be recalled: begun, moved too often, or outside a recall in
                       progress */
    double asked_s; /* time of the unanswered recall; 0: there is none */
    kl_hand hand;
} kl_held;

/* A histogram of task sizes: time × the worker's rate over the predicted units, so 1 is as predicted. A bin
 * is a quarter of a doubling wide; size 1 is in the middle of the middle bin. A zeroed one is empty. */
enum { KL_SIZE_BINS = 128 };
typedef struct kl_sizes {
    double count; /* number of tasks */
    double tasks[KL_SIZE_BINS];
} kl_sizes;

/* Add tasks of unit_s seconds per unit, done at `rate` units per second. For many tasks only mean and
 * extremes are known, so those in between count as equal. */
void kl_sizes_add(kl_sizes *sizes, const kl_stat *unit_s, double rate);
double kl_sizes_bin(uint32_t bin, double *most); /* smallest and largest size of the bin */

/* CPU time that a run cost the master's host [s]. All zero: not known. */
typedef struct kl_use {
    double farm_s;      /* of the master's process for messages and dealing */
    double callbacks_s; /* in the program's callbacks */
    double local_s;     /* of the workers on that host, for tasks and messages */
    double local_tasks; /* number of tasks those workers did */
    double
        delay_s;  /* total time in which workers were ready to compute a task while others had their cores */
    double tasks; /* number of tasks done by all workers */
    double messages; /* messages that the master received or sent */
    double bytes;    /* bytes of tasks and results in them */
    uint32_t cores;  /* number of cores the master's process may use */
} kl_use;

/* Everything a decision may read. The farm updates it in place; no decision rebuilds it. */
typedef struct kl_snapshot {
    double now_s, began_s; /* began_s: start of the run */
    uint64_t run;          /* number of the run: 0, 1, 2, … */
    uint64_t tasks;        /* tasks of the run */
    uint64_t left;         /* tasks not dealt yet */
    double units, left_units;
    const kl_worker_view *workers; /* workers[0 … slots−1]; a departed worker keeps its slot, not present,
                                      until another worker needs it */
    uint32_t slots, present;
    const kl_crew *crew; /* sums over the same workers, up to date */
    kl_stat unit_s;      /* of single tasks over all workers */
    kl_sizes sizes;      /* deviation of the same values */
    kl_linear message;   /* m_o [s], λ [s/byte]: the smaller of the values from probes and from traffic */
    double answer_s;     /* the master's own time to answer one request; 0: not known */
    double round_trip_s; /* round trip of a small message; 0: not known */
    double task_bytes;   /* mean bytes of a task on the way to a worker */
    double result_bytes; /* mean bytes of a result */
} kl_snapshot;

/* Update a view. Its worker asked for work, so it is not silent; a chunk was sent to it; it reported finished
 * tasks after busy_s of work on them (mean_s: mean time of a unit over all workers, 0 if not known); a run
 * begins, for all views at once because their prior rates are relative to each other. */
void kl_view_asked(kl_worker_view *view, double now_s);
void kl_view_dealt(kl_worker_view *view, uint64_t tasks, double units, double now_s);
void kl_view_reported(kl_worker_view *view, const kl_stat *unit_s, double busy_s, double units, double mean_s,
                      double now_s);
void kl_view_returned(kl_worker_view *view, uint64_t tasks,
                      double units); /* the worker will not do these units */
/* The run ends while the worker still has a task of this many units that nobody waits for. If nothing else is
 * known of the worker, its rate follows from the time it has taken so far. */
void kl_view_abandoned(kl_worker_view *view, double units, double mean_s, double now_s);
void kl_views_begin(kl_worker_view *views, uint32_t slots);
/* Change the unit of work: one new unit is `factor` old units. */
void kl_view_rescale(kl_worker_view *view, double factor);
void kl_stat_rescale(kl_stat *stat, double factor); /* multiply all values by `factor` */

/* A worker asks for its next chunk this long before it runs out of work: longer than a scheduling delay of
 * the master plus some round trips. */
double kl_lead_s(const kl_snapshot *snapshot);

#endif
