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
void kl_stat_merge(kl_stat *into, const kl_stat *from); /* Add all values of `from` (Chan et al. 1979). */
/* Return the standard deviation of the sample (n − 1); 0 below two values. */
double kl_stat_sd(const kl_stat *stat);
double kl_stat_cv(const kl_stat *stat); /* σ/μ; 0 when μ is 0 */

/* The share of its core that a thread can get. A thread that is always ready sees its share: the time it ran
 * over the time it ran or was kept from running. A thread that sleeps while it waits asks for less and does
 * not see it; then the last known share holds until the core is seen idle. A zeroed one is empty. */
typedef enum kl_core_mode {
    KL_CORE_OWN, /* no other thread wants the core */
    /* other threads want the core, or did; the thread must not sleep, so that its share can be measured */
    KL_CORE_WATCHED,
    KL_CORE_SHARED, /* other threads want the core, and `share` is known */
} kl_core_mode;
typedef struct kl_core_sample { /* sums of seconds since any fixed moment */
    double now_s;
    /* seconds in which the thread ran; seconds in which it was ready while others ran */
    double run_s, delay_s;
    double slices;   /* number of times the thread was scheduled */
    double waited_s; /* seconds in which the thread waited for messages, asleep or not */
    /* idle seconds of the cores that the thread may use; below 0: they were not read this time … */
    double idle_s;
    bool idle_unknown; /* … or the system does not tell */
} kl_core_sample;
typedef struct kl_core_share {
    kl_core_mode mode;
    double share; /* 0 … 1 */
    /* The core is shared, and the thread needs less than its share: it may sleep while it waits. A thread
     * that needs its whole share is scheduled late after a sleep, so it spins. */
    bool sleeps;
    /* part of the time in which the thread waits; if it sleeps then: in which it is not ready to run */
    double slack;
    double spins_until_s,
        /* if sleeping left no time to spare: time before which it is not tried again; length of that pause */
        spin_s;
    double since_s;         /* time since which the mode holds */
    double hold_s;          /* seconds that the core stays shared before it is watched again */
    double quantum_s;       /* mean seconds of a turn while other threads wanted the core; 0: not measured */
    kl_core_sample watched; /* sums of the time during which the core is watched */
    kl_core_sample last, idle_from;
} kl_core_share;

bool kl_core_share_due(const kl_core_share *core,
                       double now_s); /* Return whether another sample would be useful. */
bool kl_core_share_wants_idle(const kl_core_share *core,
                              double now_s); /* Return whether that sample needs idle_s. */
void kl_core_share_add(kl_core_share *core, const kl_core_sample *sample);

/* Present pace of a worker: seconds per unit, with more weight on recent work. The weights decay with working
 * time, not with idle time, so a burst of small chunks weighs the same as one large chunk of the same length.
 * A zeroed one is empty. */
typedef struct kl_pace {
    double seconds, units; /* sums in which older values count less */
    double spread;         /* decayed sum of squared relative deviations, weighted by seconds */
} kl_pace;

/* memory_s: seconds after which a value counts 1/e as much; > 0 */
void kl_pace_add(kl_pace *pace, double seconds, double units, double memory_s);
double kl_pace_unit_s(const kl_pace *pace); /* Return seconds per unit; 0: not known. */

/* Message cost m_o + λ·bytes, neither term below 0: least squares over the quickest exchange of each size in
 * this window and the previous one. The quickest one counts because other messages delay the rest. While all
 * sizes are too similar to give λ, λ keeps its value. A zeroed one is empty. */
enum { KL_MSGCOST_SIZES = 32 };
typedef struct kl_msgcost_size { /* class i has messages from 2^(i−1) bytes to 2^i */
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
    double bend; /* 0: the cost is a straight line */
} kl_curve;

double kl_curve_s(const kl_curve *curve, double number);

/* An estimate of such a cost from readings: least squares with more weight on the last readings. The fit is a
 * straight line, or a power of the number where a line would begin below 0. While all readings have one
 * number, the cost is proportional to it. A zeroed one is empty. */
typedef struct kl_line {
    uint64_t count; /* number of readings */
    double weight;  /* sum of weights, in which older readings count less */
    struct kl_line_sums {
        double x, y; /* means of numbers and of costs, in which older readings count less */
        double spread_x,
            with_y; /* decayed sums of squared deviations of x, and of products of deviations of x and y */
    } plain, logs;
    double least_x, most_x; /* smallest and largest number so far */
} kl_line;

void kl_line_add(kl_line *line, double number, double seconds);
kl_curve kl_line_fit(const kl_line *line); /* all 0 when empty */

/* The weighted average performance of a worker (AWF): the k-th chunk counts k times. Zeroed: it is empty. */
typedef struct kl_wap {
    uint64_t chunks;
    double seconds, units; /* Σ k·seconds_k, Σ k·units_k */
} kl_wap;

void kl_wap_add(kl_wap *wap, double seconds, double units);
double kl_wap_unit_s(const kl_wap *wap); /* Return seconds per unit; 0: not known. */

enum { KL_QUICKEST = 3 };

/* All that is known about one worker. */
typedef struct kl_worker_view {
    uint32_t number;    /* the worker's number; its slot may go to another worker after it has left */
    bool present;       /* true: the worker has joined, is ready, is not lost and does not rest */
    bool resting;       /* true: the worker is able to work, but not used now */
    kl_stat unit_s;     /* seconds per unit, over all runs; one value for each task (its time over weight) */
    kl_stat run_unit_s; /* the same for this run */
    kl_pace pace;       /* the present pace, in the same unit */
    double quickest_s[KL_QUICKEST]; /* seconds per unit of the last tasks, or the least of each report; 0: too
                                       few tasks */
    kl_wap wap;                     /* weighted average performance in this run */
    double
        prior_rate;  /* rate relative to the other workers, as known at the start of the run; 0: not known */
    uint64_t chunks; /* units dealt to the worker in this run */
    uint64_t queued_tasks;
    double queued_units; /* units dealt to the worker and not yet reported as finished */
    double queued_at_s;  /* time at which `queued` was right: that of the last report or chunk */
    /* in this run: seconds that the worker spent on its tasks, and units done in that time */
    double busy_s, units;
} kl_worker_view;

/* Return the present rate in units per second; 0: not known or not present. It is one over the pace. But if
 * each of the last three tasks took more than twice as long as the pace says, or each of the last two more
 * than four times, it follows from the quickest of them. A pace changes slowly, and one long task alone has
 * no effect. */
double kl_worker_rate(const kl_worker_view *worker);

/* One worker's part in the remaining work. */
typedef struct kl_lane {
    double rate;   /* units per second that are assumed for the worker */
    double free_s; /* seconds until the worker has done its queue */
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
    double rate; /* Σ of the rates of these workers */
    double owed; /* Σ rate·free_s: units that these workers could do until they become free */
} kl_crew_part;

kl_crew *kl_crew_new(void); /* Make a crew without workers. NULL: no memory. */
void kl_crew_free(kl_crew *crew);
/* Make views[0 … slots−1] known to the crew. KILTER_ERR_MEMORY. */
kilter_status kl_crew_reserve(kl_crew *crew, uint32_t slots);

/* Call this after the view of `worker` has changed. */
void kl_crew_update(kl_crew *crew, const kl_worker_view *views, uint32_t worker);
/* Call this before queries: the time is now_s, which never decreases. */
void kl_crew_advance(kl_crew *crew, double now_s);
/* Call this when all views may have changed and time may have restarted. It costs O(P) when little has
 * changed. */
void kl_crew_look_again(kl_crew *crew, const kl_worker_view *views, double now_s);

const kl_crew_sums *kl_crew_total(const kl_crew *crew);
/* Return the mean over workers with a known rate; 0: no rate is known. */
double kl_crew_mean_rate(const kl_crew *crew);

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
/* Return the Σ of the speeds of the n fastest workers, or of all. */
double kl_crew_fastest_speed(const kl_crew *crew, uint32_t n);
/* Return the speed that `worker` is ranked by; 0: the worker is left out. */
double kl_crew_speed(const kl_crew *crew, uint32_t worker);
/* Rank `worker` by this speed until it has units of its own in a run. */
void kl_crew_set_speed(kl_crew *crew, uint32_t worker, double speed);
/* Return the n-th fastest worker, counted from 1; n ≤ kl_crew_ranked(). */
uint32_t kl_crew_nth_fastest(const kl_crew *crew, uint32_t n, double *speed);

/* What a worker reports about its present task while the task runs. */
typedef struct kl_hand {
    double heard_s;   /* time of the last message from the worker; 0: it sends nothing while a task runs */
    double elapsed_s; /* age of the task in seconds when it was reported; 0: nothing was reported */
    /* share of its core that the task got until then, over the share that this worker's tasks usually get */
    double share;
} kl_hand;

/* The tasks that only this worker has, in the order in which it does them. The first one runs now or next. */
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
    double farm_s;      /* CPU time of the master's process for messages and dealing */
    double callbacks_s; /* CPU time in the program's callbacks */
    double local_s;     /* CPU time of the workers on that host, for tasks and messages */
    double local_tasks; /* number of tasks that those workers did */
    /* total seconds in which workers were ready to compute a task while other threads had their cores */
    double delay_s;
    double tasks;    /* number of tasks done by all workers */
    double messages; /* number of messages that the master received or sent */
    double bytes;    /* bytes of tasks and results in these messages */
    uint32_t cores;  /* number of cores the master's process may use */
} kl_use;

/* All data that a decision may read. The farm updates them in place; no decision rebuilds them. */
typedef struct kl_snapshot {
    double now_s, began_s; /* began_s: time at which the run began */
    uint64_t run;          /* number of the run: 0, 1, 2, … */
    uint64_t tasks;        /* number of tasks of the run */
    uint64_t left;         /* number of tasks that are not dealt yet */
    double units, left_units;
    const kl_worker_view *workers; /* workers[0 … slots−1]; a departed worker keeps its slot, not present,
                                      until another worker needs it */
    uint32_t slots, present;
    const kl_crew *crew; /* sums over the same workers, up to date */
    kl_stat unit_s;      /* seconds per unit of single tasks, over all workers */
    kl_sizes sizes;      /* histogram of the same values */
    kl_linear message;   /* m_o [s], λ [s/byte]: the smaller of the values from probes and from traffic */
    double answer_s;     /* seconds of the master's own to answer one request; 0: not known */
    double round_trip_s; /* seconds of the round trip of a small message; 0: not known */
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
                      double units); /* Note that the worker will not do these units. */
/* The run ends while the worker still has a task of this many units that nobody waits for. If nothing else is
 * known of the worker, its rate follows from the time it has taken so far. */
void kl_view_abandoned(kl_worker_view *view, double units, double mean_s, double now_s);
void kl_views_begin(kl_worker_view *views, uint32_t slots);
/* Change the unit of work: one new unit is `factor` old units. */
void kl_view_rescale(kl_worker_view *view, double factor);
void kl_stat_rescale(kl_stat *stat, double factor); /* Multiply all values by `factor`. */

/* A worker asks for its next chunk this long before it runs out of work: longer than a scheduling delay of
 * the master plus some round trips. */
double kl_lead_s(const kl_snapshot *snapshot);

#endif
