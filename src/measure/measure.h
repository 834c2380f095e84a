/* Public header of the folder measure: turn timings of probes, messages and tasks into estimates. The
 * functions are pure: time is an argument. Work is counted in units: the sum of the tasks' weights. In a
 * run without weights, a task is 1 unit. */
#ifndef KL_MEASURE_H
#define KL_MEASURE_H

#include "base/base.h"

/* Running count, mean and variance (Welford) of values, with the smallest and the largest value, and the
 * time of the last one. All zero: empty. */
typedef struct kl_stat {
    uint64_t count;
    double mean, m2; /* m2: sum of squared deviations from the mean */
    double min, max;
    double last_s; /* time of the last value */
} kl_stat;

void kl_stat_add(kl_stat *stat, double value, double now_s);
void kl_stat_merge(kl_stat *into, const kl_stat *from); /* Add all values of `from` (Chan et al. 1979). */
/* Return the standard deviation of the sample (n − 1). With fewer than two values, return 0. */
double kl_stat_sd(const kl_stat *stat);
double kl_stat_cv(const kl_stat *stat); /* σ/μ; 0 when μ is 0 */

/* The share of its core that a thread can get. While the thread is always ready, its share is the time in
 * which it ran, divided by its ready time (running or not). While the thread sleeps at times, its share
 * cannot be measured. Then the last known share is used until the core is seen idle. All zero: empty. */
typedef enum kl_core_mode {
    KL_CORE_OWN, /* no other thread wants the core */
    /* other threads may want the core; the thread must not sleep, so that its share can be measured */
    KL_CORE_WATCHED,
    KL_CORE_SHARED, /* other threads want the core, and `share` is known */
} kl_core_mode;
typedef struct kl_core_sample { /* counters that rise from some fixed moment on */
    double now_s;
    /* run_s: seconds in which the thread ran; delay_s: seconds in which it was ready while others ran */
    double run_s, delay_s;
    double slices;   /* number of times that the thread was scheduled */
    double waited_s; /* seconds in which the thread waited for messages, asleep or spinning */
    /* idle seconds of the cores that the thread may use; below 0: they were not read this time … */
    double idle_s;
    bool idle_unknown; /* … or the system does not tell */
} kl_core_sample;
typedef struct kl_core_share {
    kl_core_mode mode;
    double share; /* 0 … 1 */
    /* true: the thread should sleep while it waits, because it needs less than its share. If it needs its
     * whole share, the system would run it late after a sleep, so it spins (waits without sleeping). */
    bool sleeps;
    /* part of the time in which the thread waits; while `sleeps`, part in which it is not ready to run */
    double slack;
    double spins_until_s,
        /* after sleeping has left no slack: time before which the thread does not sleep again, and length
         * of that pause in seconds */
        spin_s;
    double since_s; /* time at which the mode began */
    double hold_s;  /* seconds for which the core counts as shared before its share is measured again */
    /* mean seconds that a thread keeps the core while others want it; 0: not measured */
    double quantum_s;
    kl_core_sample watched; /* run, delay and slices since KL_CORE_WATCHED began */
    kl_core_sample last, idle_from;
} kl_core_share;

bool kl_core_share_due(const kl_core_share *core,
                       double now_s); /* Return whether it is time for the next sample. */
bool kl_core_share_wants_idle(const kl_core_share *core,
                              double now_s); /* Return whether the next sample needs idle_s. */
void kl_core_share_add(kl_core_share *core, const kl_core_sample *sample);

/* Present pace of a worker: seconds per unit, with more weight on recent work. The weights decay with
 * working time, not with idle time. So several small chunks weigh the same as one large chunk of the same
 * total time. All zero: empty. */
typedef struct kl_pace {
    double seconds, units; /* decayed sums */
    double spread;         /* decayed sum of squared relative deviations, weighted by seconds */
} kl_pace;

/* Add `units` done in `seconds`. memory_s > 0: seconds of work after which a value weighs 1/e as much. */
void kl_pace_add(kl_pace *pace, double seconds, double units, double memory_s);
double kl_pace_unit_s(const kl_pace *pace); /* Return seconds per unit; 0: not known. */

/* Message cost m_o + λ·bytes, with no term below 0. It is fitted by least squares to the quickest exchange
 * of each size in this window and the previous one. Slower exchanges do not count, because other messages
 * may have delayed them. While all sizes are too similar to show λ, λ keeps its value. All zero: empty. */
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
    double per_byte_s; /* λ from earlier windows */
    bool per_byte_known;
} kl_msgcost;

void kl_msgcost_add(kl_msgcost *cost, double bytes, double seconds);
kl_linear
kl_msgcost_fit(const kl_msgcost *cost); /* Return m_o and λ. Both are 0 if there are no measurements. λ = 0
                                           while all messages have had the same size. */
/* Begin a new window and forget the older ones, unless this window has too few exchanges. */
void kl_msgcost_next_window(kl_msgcost *cost);

/* A cost in seconds that grows with a number, such as a number of tasks: fixed_s + per_unit_s·number^(1 +
 * bend). No term is below 0. */
typedef struct kl_curve {
    double fixed_s, per_unit_s;
    double bend; /* 0: the cost is a straight line */
} kl_curve;

double kl_curve_s(const kl_curve *curve, double number);

/* An estimate of a kl_curve from readings: least squares with more weight on the last readings. The fit is a
 * straight line; if this line would be below 0 at number 0, the fit is a power of the number. While all
 * readings have nearly the same number, the cost is proportional to it. All zero: empty. */
typedef struct kl_line {
    uint64_t count; /* number of readings */
    double weight;  /* sum of the weights, which decay with every reading */
    struct kl_line_sums {
        /* weighted means of numbers (x) and seconds (y); in `logs`: of their logarithms */
        double x, y;
        double spread_x, with_y; /* weighted sums of squared deviations of x, and of the products of
                                    deviations of x and y */
    } plain, logs;
    double least_x, most_x; /* smallest and largest number so far */
} kl_line;

void kl_line_add(kl_line *line, double number, double seconds);
kl_curve kl_line_fit(const kl_line *line); /* Return the fit; all 0 when empty. */

/* The weighted average performance of a worker (AWF): its k-th chunk counts k times. All zero: empty. */
typedef struct kl_wap {
    uint64_t chunks;
    double seconds, units; /* Σ k·seconds_k, Σ k·units_k */
} kl_wap;

void kl_wap_add(kl_wap *wap, double seconds, double units);
double kl_wap_unit_s(const kl_wap *wap); /* Return seconds per unit; 0: not known. */

enum { KL_QUICKEST = 3 };

/* All that is known about one worker. */
typedef struct kl_worker_view {
    uint32_t number; /* number of the worker; after it has left, another worker may get its slot */
    bool present;    /* true: the worker has joined, is ready, is not lost and is not resting */
    bool resting;    /* true: the worker is able to work, but is not used now */
    /* seconds per unit over all runs; each task gives one value: its time divided by its weight */
    kl_stat unit_s;
    kl_stat run_unit_s; /* the same, for this run only */
    kl_pace pace;       /* present pace: seconds per unit */
    /* seconds per unit of the last tasks, newest first; if several tasks were reported together, the least
     * of them; 0: too few tasks */
    double quickest_s[KL_QUICKEST];
    kl_wap wap;        /* weighted average performance in this run */
    double prior_rate; /* rate that was known at the start of the run, divided by the mean of the workers; 0:
                          not known */
    uint64_t chunks;   /* number of chunks dealt to the worker in this run */
    uint64_t queued_tasks;
    double queued_units; /* units dealt to the worker and not yet reported as finished */
    /* time of the last report or request, or of the first chunk after an empty queue */
    double queued_at_s;
    /* seconds that the worker spent on tasks in this run, and the units done in that time */
    double busy_s, units;
} kl_worker_view;

/* Return the present rate in units per second; 0: not known or not present. It is one over the pace. The pace
 * changes slowly, so the last tasks replace it if they were all slow. This is so if the last two took more
 * than four times the pace, or the last three more than two times. Then the rate is that of the quickest
 * of these tasks. One long task alone has no effect. */
double kl_worker_rate(const kl_worker_view *worker);

/* The assumptions that a forecast makes about one worker. */
typedef struct kl_lane {
    double rate;   /* units per second that are assumed for the worker */
    double free_s; /* seconds until the worker has done its queue */
} kl_lane;

/* Compute the lane of a worker. If a worker has been silent for longer than its queue should take, it
 * counts as slower. Its rate is its queue divided by its silence. Its queue is expected to take the same
 * time again. mean_rate: rate of a worker without measurements, > 0. */
kl_lane kl_worker_lane(const kl_worker_view *worker, double mean_rate, double now_s);

/* The P workers of a farm, summed and sorted, so that no decision loops over all of them. A change of one
 * worker costs O(log P), and so does a query. docs/explanation/model.md says how, and which results are
 * approximate. A crew takes about 220 bytes for each worker. */
typedef struct kl_crew kl_crew;

/* Sums over the present workers. A worker whose value is not known adds nothing. */
typedef struct kl_crew_sums {
    uint32_t present;
    uint32_t known;                        /* number of workers whose rate is known */
    uint32_t unserved;                     /* number of workers that got no chunk in this run */
    uint32_t with_prior, with_wap, steady; /* number of workers that have a prior_rate; that have a wap; that
                                              have at least two values in unit_s */
    double rates;                          /* Σ kl_worker_rate() */
    double spread, seconds;                /* Σ pace.spread, Σ pace.seconds */
    double queued_units;
    double priors, waps;               /* Σ prior_rate, Σ 1/kl_wap_unit_s() */
    double variance_rates, unit_rates; /* over the `steady` workers, with σ and μ of unit_s: Σ σ²/μ, Σ 1/μ */
} kl_crew_sums;

/* The capacity of several present workers together. */
typedef struct kl_crew_part {
    uint32_t workers;
    double rate; /* Σ of the rates of these workers */
    double owed; /* Σ rate·free_s: units that these workers do until they become free */
} kl_crew_part;

kl_crew *kl_crew_new(void); /* Make a crew without workers. NULL: no memory. */
void kl_crew_free(kl_crew *crew);
/* Tell the crew about views[0 … slots−1]. KILTER_ERR_MEMORY. */
kilter_status kl_crew_reserve(kl_crew *crew, uint32_t slots);

/* Call this after the view of `worker` has changed. */
void kl_crew_update(kl_crew *crew, const kl_worker_view *views, uint32_t worker);
/* Set the time for the queries that follow; now_s never decreases. */
void kl_crew_advance(kl_crew *crew, double now_s);
/* Update all workers. Call this when any view may have changed, or the clock was started again. It costs
 * O(P) if little has changed. */
void kl_crew_look_again(kl_crew *crew, const kl_worker_view *views, double now_s);

const kl_crew_sums *kl_crew_total(const kl_crew *crew);
/* Return the mean rate of the workers whose rate is known; 0: no rate is known. */
double kl_crew_mean_rate(const kl_crew *crew);

/* These functions, up to kl_crew_first_end_s(), need a mean rate above 0. They leave out worker `without`
 * (UINT32_MAX: leave out none). Return the capacity of the workers with free_s < within_s. Overdue workers
 * whose silences differ by less than a fifth are grouped, so their rate may be up to 0.83 % too low. All
 * other results are exact. */
kl_crew_part kl_crew_free_within(const kl_crew *crew, double within_s, uint32_t without);
/* Return the largest free_s; 0: there is no worker. */
double kl_crew_longest_s(const kl_crew *crew);
enum { KL_CREW_LATEST = 16 };
typedef struct kl_crew_choice {
    const void *self;
    bool (*counts)(const void *self, uint32_t worker);
} kl_crew_choice;
/* Find the workers with free_s above beyond_s for which choice->counts() is true, in order of falling
 * free_s. Return their number, at most `most` and KL_CREW_LATEST. The function calls counts() one time for
 * each worker whose free_s is large enough. */
uint32_t kl_crew_latest(const kl_crew *crew, double beyond_s, const kl_crew_choice *choice, uint32_t *workers,
                        uint32_t most);
/* Return the highest rate of a worker with nothing queued, and its number. A worker whose rate is not
 * known gets the mean rate. 0: no worker is idle. */
double kl_crew_fastest_idle(const kl_crew *crew, uint32_t without, uint32_t *worker);
/* Return the least free_s + units/rate, and its worker if `worker` is not NULL. INFINITY: there is no
 * worker. */
double kl_crew_first_end_s(const kl_crew *crew, double units, uint32_t without, uint32_t *worker);

/* Return the number of ranked workers, present or resting, which are sorted by falling speed. A speed is
 * units over busy time in the last run in which the worker took part, or else one over its pace. Workers
 * with neither are not ranked. */
uint32_t kl_crew_ranked(const kl_crew *crew);
/* Return the sum of the speeds of the n fastest workers, or of all workers if there are fewer. */
double kl_crew_fastest_speed(const kl_crew *crew, uint32_t n);
/* Return the speed by which `worker` is ranked; 0: it is not ranked. */
double kl_crew_speed(const kl_crew *crew, uint32_t worker);
/* Rank `worker` by this speed until it has done units of its own in a run. */
void kl_crew_set_speed(kl_crew *crew, uint32_t worker, double speed);
/* Return the n-th fastest worker, n = 1 being the fastest; n ≤ kl_crew_ranked(). */
uint32_t kl_crew_nth_fastest(const kl_crew *crew, uint32_t n, double *speed);

/* A worker's reports about its present task while the task runs. */
typedef struct kl_hand {
    double heard_s;   /* time of the worker's last message; 0: it sends no messages while a task runs */
    double elapsed_s; /* seconds for which the task had run at its last report; 0: nothing was reported */
    /* share of its core that the task had got by that report, divided by the usual share of this worker's
     * tasks */
    double share;
} kl_hand;

/* The tasks that only this worker has, in the order in which it does them. The first one runs now or next. */
typedef struct kl_held {
    uint64_t tasks;
    double units, first_units;
    /* number of tasks that cannot be recalled: they are begun, were moved too often, or are not covered by
     * a recall in progress */
    uint64_t kept;
    double asked_s; /* time of the recall that the worker has not answered yet; 0: there is none */
    kl_hand hand;
} kl_held;

/* A histogram of task sizes. A task's size is its time × its worker's rate / its predicted units, so size
 * 1 is a task that took the predicted time. A bin reaches from a size to 2^(1/4) times that size. Size 1
 * is in the middle of the middle bin. All zero: empty. */
enum { KL_SIZE_BINS = 128 };
typedef struct kl_sizes {
    double count; /* number of tasks */
    double tasks[KL_SIZE_BINS];
} kl_sizes;

/* Add tasks that took unit_s seconds per unit on a worker of `rate` units per second. A kl_stat of many
 * tasks has only the mean and the extremes, so all other tasks count as equal. */
void kl_sizes_add(kl_sizes *sizes, const kl_stat *unit_s, double rate);
double kl_sizes_bin(uint32_t bin,
                    double *most); /* Return the least size of the bin, and set *most to its greatest size. */

/* CPU time that a run used on the master's host [s]. All zero: not known. */
typedef struct kl_use {
    double farm_s;      /* CPU time of the master's process for messages and dealing */
    double callbacks_s; /* CPU time in the program's callbacks */
    double local_s;     /* CPU time of the workers on the master's host, for tasks and messages */
    double local_tasks; /* number of tasks that those workers did */
    /* seconds in which workers were ready to compute a task while other threads had their cores; sum over
     * the workers */
    double delay_s;
    double tasks;    /* number of tasks done by all workers */
    double messages; /* number of messages that the master received or sent */
    double bytes;    /* bytes of tasks and results in these messages */
    uint32_t cores;  /* number of cores that the master's process may use */
} kl_use;

/* All data that a decision may read. The farm keeps them up to date, so that decisions need not compute
 * them. */
typedef struct kl_snapshot {
    double now_s, began_s; /* began_s: time at which the run began */
    uint64_t run;          /* number of the run: 0, 1, 2, … */
    uint64_t tasks;        /* number of tasks of the run */
    uint64_t left;         /* number of tasks that are not dealt yet */
    double units, left_units;
    /* workers[0 … slots−1]; a worker that has left is not present, but keeps its slot until another worker
     * needs it */
    const kl_worker_view *workers;
    uint32_t slots, present;
    const kl_crew *crew; /* sums over the same workers, up to date */
    kl_stat unit_s;      /* seconds per unit of single tasks, of all workers */
    kl_sizes sizes;      /* histogram of the tasks' sizes */
    /* m_o [s], λ [s/byte]: for each the smaller of two values, from probes and from the run's messages */
    kl_linear message;
    double answer_s;     /* seconds that the master works to answer one request; 0: not known */
    double round_trip_s; /* seconds of the round trip of a small message; 0: not known */
    double task_bytes;   /* mean bytes of a task's message to a worker */
    double result_bytes; /* mean bytes of a result */
} kl_snapshot;

/* Update a view because its worker asked for work, so that it is no longer silent; because it was sent a
 * chunk; or because it reported tasks. The reported tasks took busy_s. mean_s is the mean time of a unit
 * over all workers; 0: not known. */
void kl_view_asked(kl_worker_view *view, double now_s);
void kl_view_dealt(kl_worker_view *view, uint64_t tasks, double units, double now_s);
void kl_view_reported(kl_worker_view *view, const kl_stat *unit_s, double busy_s, double units, double mean_s,
                      double now_s);
void kl_view_returned(kl_worker_view *view, uint64_t tasks,
                      double units); /* Update a view because tasks were taken back from its worker. */
/* Update a view at the end of a run if its worker still has a task of this many units whose result is not
 * needed. If the worker's rate is not known, compute it from the time that the task has taken so far. */
void kl_view_abandoned(kl_worker_view *view, double units, double mean_s, double now_s);
void kl_views_begin(kl_worker_view *views, uint32_t slots);
/* Change the unit of work: one new unit is `factor` old units. */
void kl_view_rescale(kl_worker_view *view, double factor);
void kl_stat_rescale(kl_stat *stat,
                     double factor); /* Multiply all values by `factor`, for a change of unit. */

/* Return how many seconds before the end of its work a worker asks for its next chunk. They are four round
 * trips, but at least 1 ms because the master may be scheduled late, and at most 20 ms. */
double kl_lead_s(const kl_snapshot *snapshot);

#endif
