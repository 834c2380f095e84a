/* Public header of the folder measure: turn measured times of probes, messages and tasks into estimates. The
 * functions are pure: time is an argument. Work is counted in units: the sum of the tasks' weights. In a run
 * without weights, a task is 1 unit. */
#ifndef KL_MEASURE_H
#define KL_MEASURE_H

#include "base/base.h"

/* Running count, mean and variance (Welford) of values, with the smallest and the largest value. If all
 * fields are zero, there are no values. */
typedef struct kl_stat {
    uint64_t count;
    double mean, m2; /* m2: sum of squared deviations from the mean */
    double min, max;
    double last_s; /* time at which the last value was added */
} kl_stat;

void kl_stat_add(kl_stat *stat, double value, double now_s);
void kl_stat_merge(kl_stat *into,
                   const kl_stat *from); /* Add all values of `from` to `into` (Chan et al. 1979). */
/* Return the standard deviation of the values as a sample, with n − 1. With fewer than two values, return 0.
 */
double kl_stat_sd(const kl_stat *stat);
/* Return the standard deviation divided by the mean; 0 if the mean is 0. */
double kl_stat_cv(const kl_stat *stat);

/* The share of its core that a thread can get. The share is the time in which the thread ran, divided by the
 * time in which the thread was ready to run. The share can be measured only while the thread hardly sleeps.
 * While the thread sleeps more, the share measured last is used, until the core is seen idle. If all fields
 * are zero, nothing is known. */
typedef enum kl_core_mode {
    KL_CORE_OWN, /* no other thread wants the thread's core */
    /* other threads may want the core; this thread must not sleep, so that its share can be measured */
    KL_CORE_WATCHED,
    KL_CORE_SHARED, /* other threads want the core, and `share` is known */
} kl_core_mode;
typedef struct kl_core_sample { /* values of counters of the system, which only rise */
    double now_s;
    /* run_s: seconds in which the thread ran; delay_s: seconds in which it was ready while others ran */
    double run_s, delay_s;
    double slices;   /* number of times that the thread was scheduled */
    double waited_s; /* seconds in which the thread waited for messages, asleep or spinning */
    /* idle seconds of the cores that the thread may use; below 0: not read this time */
    double idle_s;
    bool idle_unknown; /* true: the system does not count idle time */
} kl_core_sample;
typedef struct kl_core_share {
    kl_core_mode mode;
    double share; /* 0 … 1 */
    /* The driver sets these two fields. They are used if a rank shares its cores with other ranks. taken:
     * number of these cores that other processes use; unsettled: true if this is not known yet. */
    uint32_t taken;
    bool unsettled;
    /* true: the thread should sleep while it waits for messages, because it needs less than its share. If it
     * needed all of its share, the system would run it late after a sleep, so it spins (waits without
     * sleeping). */
    bool sleeps;
    /* part of the time in which the thread waits for messages; while it sleeps, the part in which it is not
     * ready to run */
    double slack;
    /* set when the thread stops sleeping because it has hardly any slack; spins_until_s: time until which
     * the thread does not sleep again; spin_s: seconds from the stop until this time */
    double spins_until_s, spin_s;
    double since_s; /* time at which the present mode began */
    double hold_s;  /* seconds for which the core counts as shared before the share is measured again */
    /* mean seconds for which a thread keeps the core while others want it; 0: not measured */
    double quantum_s;
    kl_core_sample
        watched; /* run_s, delay_s and slices that were counted since the mode KL_CORE_WATCHED began */
    kl_core_sample last, idle_from;
} kl_core_share;

bool kl_core_share_due(const kl_core_share *core,
                       double now_s); /* Return whether it is time for the next sample. */
bool kl_core_share_wants_idle(const kl_core_share *core,
                              double now_s); /* Return whether the next sample must contain idle_s. */
void kl_core_share_add(kl_core_share *core, const kl_core_sample *sample);

/* How many cores other processes use, if ranks share cores with each other. If all fields are zero, nothing
 * is known. */
typedef struct kl_crowd_sample {
    double now_s, cores; /* cores: number of cores that the ranks may use */
    /* used_s: CPU seconds of all these ranks; idle_s: idle seconds of the cores; both only rise. Below 0: not
     * known */
    double used_s, idle_s;
    /* CPU seconds of the other threads of this process, and of its ended children; a child that has not ended
     * counts as another process */
    double threads_s;
    uint32_t processes; /* number of processes whose time is in used_s */
} kl_crowd_sample;
typedef struct kl_crowd {
    bool judged;  /* true: two samples were compared */
    bool known;   /* true: `others` and `idle` are known */
    bool threads; /* true: other threads of this process have computed, or children that have ended */
    bool alone;   /* true: other processes hardly use the cores; false if idle times are not known */
    /* numbers of cores whose time other processes use, and that are idle; 0: not known */
    double others, idle;
    /* `others` rounded up, except a small rest: other processes take at least this number of cores */
    uint32_t taken;
    kl_crowd_sample last;
} kl_crowd;

bool kl_crowd_due(const kl_crowd *crowd, double now_s); /* Return whether it is time for the next sample. */
void kl_crowd_add(kl_crowd *crowd, const kl_crowd_sample *sample);

/* Whether a rank is pinned to its core, so that the system does not move it to other cores. If all fields are
 * zero, it is not pinned. */
typedef struct kl_pin {
    bool pinned;             /* the driver sets this */
    uint32_t rounds;         /* number of rounds since the pin was last useful */
    double useful_s;         /* time at which it was last useful */
    double full_s;           /* time at which few cores were idle for the last time */
    double pause_s, again_s; /* length of the pause after a useless pin, and time at which it ends */
} kl_pin;
typedef struct kl_pin_sample {
    double now_s;
    bool known;          /* true: `others` and `idle` are known; otherwise nothing changes */
    bool shared;         /* true: the rank's core is shared */
    bool threads;        /* true: other threads of the process compute; new threads would be pinned, too */
    double others, idle; /* numbers of cores that other processes use, and that are idle */
    /* number of cores that are left if each rank takes one; below 0: ranks share cores with each other */
    int spare;
} kl_pin_sample;

/* Return whether the rank should be pinned: other processes use more than the spare cores. This begins when
 * the rank's own core is shared. */
bool kl_pin_wanted(kl_pin *pin, const kl_pin_sample *sample);
/* Note after a round of a loop whether the pin is useful: the ranks have unequal shares. */
void kl_pin_round(kl_pin *pin, bool useful, double now_s);

/* Present pace of a worker: seconds per unit, with more weight on recent work. The weights decay with working
 * time, not with idle time. So several small chunks weigh the same as one large chunk of the same total time.
 * If all fields are zero, nothing is known. */
typedef struct kl_pace {
    double seconds, units; /* weighted sums of seconds and of units; the weights of older work decay */
    double spread; /* sum over pieces of work: squared relative deviation from the pace, times the seconds of
                      the piece; older work has less weight, as above */
} kl_pace;

/* Add `units` of work that took `seconds`. memory_s > 0: after this many seconds of further work, a value
 * weighs 1/e of its first weight. */
void kl_pace_add(kl_pace *pace, double seconds, double units, double memory_s);
double kl_pace_unit_s(const kl_pace *pace); /* Return the pace in seconds per unit; 0: not known. */

/* The cost of a message: m_o + λ·bytes, where m_o is the start-up time and λ is the time per byte. Both are
 * fitted by least squares to the quickest exchange of each size, in the present window of time and the
 * previous window. Slower exchanges may have been delayed by other messages. If the sizes are too similar to
 * show λ, λ keeps its value. If all fields are zero, nothing is known. */
enum { KL_MSGCOST_SIZES = 32 };
typedef struct kl_msgcost_size { /* class i: messages of 2^(i−1) to 2^i bytes */
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
    double per_byte_s; /* λ (seconds per byte) as found in earlier windows */
    bool per_byte_known;
} kl_msgcost;

void kl_msgcost_add(kl_msgcost *cost, double bytes, double seconds);
kl_linear
kl_msgcost_fit(const kl_msgcost *cost); /* Return m_o and λ of the fit. Both are 0 if there are no
                                           measurements. λ is 0 while all messages have had the same size. */
/* End the present window of time and begin a new one. Forget the window before the present one. If the
 * present window has too few exchanges, change nothing. */
void kl_msgcost_next_window(kl_msgcost *cost);

/* A cost in seconds that grows with a number, such as the number of tasks: fixed_s + per_unit_s·number^(1 +
 * bend). No term is below 0. */
typedef struct kl_curve {
    double fixed_s, per_unit_s;
    double bend; /* exponent of the number, minus 1; 0: the cost is a straight line */
} kl_curve;

double kl_curve_s(const kl_curve *curve, double number);

/* An estimate of a kl_curve from readings, by least squares with more weight on the last readings. The fit is
 * a straight line. If the line would be below 0 at number 0, the fit is a power of the number instead. While
 * all readings have nearly the same number, the cost is proportional to the number. If all fields are zero,
 * there are no readings. */
typedef struct kl_line {
    uint64_t count; /* number of readings */
    double weight;  /* sum of the weights of all readings, which decay with every new reading */
    struct kl_line_sums {
        /* weighted means of the numbers (x) and of the seconds (y); in `logs`, of their logarithms */
        double x, y;
        /* weighted sums over all readings, with the means X of x and Y of y; spread_x: sum of (x − X)²;
         * with_y: sum of (x − X)·(y − Y) */
        double spread_x, with_y;
    } plain, logs;
    double least_x, most_x; /* smallest and largest number of all readings */
} kl_line;

void kl_line_add(kl_line *line, double number, double seconds);
kl_curve kl_line_fit(const kl_line *line); /* Return the fitted curve; all zero if there are no readings. */

/* The weighted average performance of a worker, as in the policy AWF: the worker's k-th chunk has weight k.
 * If all fields are zero, the worker has done no chunk. */
typedef struct kl_wap {
    uint64_t chunks;
    double seconds, units; /* Σ k·seconds_k, Σ k·units_k */
} kl_wap;

void kl_wap_add(kl_wap *wap, double seconds, double units);
double kl_wap_unit_s(const kl_wap *wap); /* Return the weighted average of seconds per unit; 0: not known. */

enum { KL_QUICKEST = 3 };

/* All that the master knows about one worker. */
typedef struct kl_worker_view {
    uint32_t number; /* number of the worker; after the worker has left, another one may get its slot */
    bool present;    /* true: the worker has joined, is ready, is not lost and is not resting */
    bool resting;    /* true: the worker is able to work, but the farm does not use it now */
    /* seconds per unit in all runs; each task gives one value, its time divided by its weight */
    kl_stat unit_s;
    kl_stat run_unit_s; /* seconds per unit in this run only; each task gives one value */
    kl_pace pace;       /* present pace of the worker, in seconds per unit */
    /* seconds per unit of the last tasks, newest first; if tasks were reported together, each has the least
     * value of them; 0: there were fewer tasks */
    double quickest_s[KL_QUICKEST];
    kl_wap wap;        /* weighted average of the worker's performance in this run */
    double prior_rate; /* worker's rate at the start of the run, divided by the mean rate of all workers; 0:
                          not known */
    uint64_t chunks;   /* number of chunks dealt to the worker in this run */
    uint64_t queued_tasks;
    double
        queued_units; /* units that were dealt to the worker, and that it has not reported as finished yet */
    /* time of the worker's last report or request, or time at which it got a chunk while it had no tasks,
     * whichever is later */
    double queued_at_s;
    /* busy_s: seconds that the worker spent on tasks in this run; units: units that it has done in that time
     */
    double busy_s, units;
} kl_worker_view;

/* Return the worker's present rate in units per second; 0: not known or not present. The rate is 1/pace,
 * unless the worker has become slow. The pace changes slowly, so the last tasks show earlier whether a worker
 * is slow. It is slow if each of its last two tasks took more than four times the pace. It is also slow if
 * each of its last three tasks took more than twice the pace. The rate of a slow worker is 1/(seconds per
 * unit of the quickest of these tasks). One long task alone has no effect. */
double kl_worker_rate(const kl_worker_view *worker);

/* The assumptions of a forecast about one worker. */
typedef struct kl_lane {
    double rate;   /* units per second that are assumed for the worker */
    double free_s; /* seconds until the worker has done its queue */
} kl_lane;

/* Compute the assumptions of a forecast about a worker. If the worker has been silent for longer than its
 * queue should take, it counts as slower. Its rate is then the units in its queue, divided by the seconds of
 * silence. The queue is expected to take the same number of seconds again. mean_rate: rate that is assumed
 * for a worker without measurements, > 0. */
kl_lane kl_worker_lane(const kl_worker_view *worker, double mean_rate, double now_s);

/* A crew holds the P workers of a farm in sorted order, with sums over them. So no decision needs a loop over
 * all workers. A change of one worker costs O(log P), and so does a query. The page docs/explanation/model.md
 * says how a crew works, and which of its results are approximate. A crew takes about 220 bytes for each
 * worker. */
typedef struct kl_crew kl_crew;

/* Sums over the present workers. A worker for which a value is not known adds nothing to its sum. */
typedef struct kl_crew_sums {
    uint32_t present;
    uint32_t known;    /* number of workers whose rate is known */
    uint32_t unserved; /* number of workers that have got no chunk in this run */
    /* numbers of workers with known values; with_prior: prior_rate is known; with_wap: wap (weighted
     * average performance) is known; steady: unit_s has at least two values */
    uint32_t with_prior, with_wap, steady;
    double rates;           /* Σ kl_worker_rate() */
    double spread, seconds; /* Σ pace.spread, Σ pace.seconds */
    double queued_units;
    double priors, waps; /* Σ prior_rate, Σ 1/kl_wap_unit_s() */
    double variance_rates,
        unit_rates; /* sums over the `steady` workers, with σ and μ of their unit_s: Σ σ²/μ, Σ 1/μ */
} kl_crew_sums;

/* The capacity of several present workers together. */
typedef struct kl_crew_part {
    uint32_t workers;
    double rate; /* Σ of the rates of these workers, in units per second */
    double owed; /* Σ rate·free_s: units that these workers do before they become free */
} kl_crew_part;

kl_crew *kl_crew_new(void); /* Make a crew without workers. NULL: memory ran out. */
void kl_crew_free(kl_crew *crew);
/* Get memory for the workers of views[0 … slots−1]. A failure gives KILTER_ERR_MEMORY. */
kilter_status kl_crew_reserve(kl_crew *crew, uint32_t slots);

/* Update the crew after the view of `worker` has changed. */
void kl_crew_update(kl_crew *crew, const kl_worker_view *views, uint32_t worker);
/* Set the present time for the queries that follow. now_s never decreases. */
void kl_crew_advance(kl_crew *crew, double now_s);
/* Update the crew from the views of all workers. Call this when any view may have changed, or when the clock
 * was started again. It costs O(P) if little has changed. */
void kl_crew_look_again(kl_crew *crew, const kl_worker_view *views, double now_s);

const kl_crew_sums *kl_crew_total(const kl_crew *crew);
/* Return the mean rate of the workers whose rate is known; 0: no rate is known. */
double kl_crew_mean_rate(const kl_crew *crew);

/* --- queries that need a mean rate above 0; they leave out worker `without` (UINT32_MAX: no worker) --- */

/* Return the sums over the workers whose queues will be done within within_s (free_s < within_s). Overdue
 * workers may be added as a group if the times since their last messages differ by at most a fifth. The rate
 * of such a group may be up to 0.83 % too low; all other results are exact. */
kl_crew_part kl_crew_free_within(const kl_crew *crew, double within_s, uint32_t without);
/* Return the largest free_s of all workers; 0: there is no worker. */
double kl_crew_longest_s(const kl_crew *crew);
enum { KL_CREW_LATEST = 16 };
typedef struct kl_crew_choice {
    const void *self;
    bool (*counts)(const void *self, uint32_t worker);
} kl_crew_choice;
/* Find the workers with free_s above beyond_s for which choice->counts() is true, in order of falling free_s.
 * Return their number, at most `most` and KL_CREW_LATEST. counts() is called once for each worker whose
 * free_s is large enough. */
uint32_t kl_crew_latest(const kl_crew *crew, double beyond_s, const kl_crew_choice *choice, uint32_t *workers,
                        uint32_t most);
/* Find the fastest worker without queued work, and return its rate. A worker whose rate is not known counts
 * with the mean rate. 0: no worker is idle. */
double kl_crew_fastest_idle(const kl_crew *crew, uint32_t without, uint32_t *worker);
/* Return the least free_s + units/rate of all workers. This is the earliest time at which a task of `units`
 * can end. Set *worker to the worker that ends it then, unless `worker` is NULL. INFINITY: there is no
 * worker. */
double kl_crew_first_end_s(const kl_crew *crew, double units, uint32_t without, uint32_t *worker);

/* Return the number of ranked workers, present or resting. They are sorted by falling speed. The speed of a
 * worker is its units divided by its busy time, in its last run, or else 1 divided by its pace. A worker that
 * has neither is not ranked. */
uint32_t kl_crew_ranked(const kl_crew *crew);
/* Return the sum of the speeds of the n fastest workers, or of all workers if there are fewer. */
double kl_crew_fastest_speed(const kl_crew *crew, uint32_t n);
/* Return the speed with which `worker` is ranked; 0: it is not ranked. */
double kl_crew_speed(const kl_crew *crew, uint32_t worker);
/* Rank `worker` with this speed, until it has done units in a run. */
void kl_crew_set_speed(kl_crew *crew, uint32_t worker, double speed);
/* Return the n-th fastest worker, where 1 ≤ n ≤ kl_crew_ranked(). *speed is set to its speed. */
uint32_t kl_crew_nth_fastest(const kl_crew *crew, uint32_t n, double *speed);

/* The reports of a worker about its present task while the task runs. */
typedef struct kl_hand {
    double heard_s; /* time of the worker's last message; 0: it sends no messages while a task runs */
    double
        elapsed_s; /* seconds that the task had run when the worker last reported; 0: nothing was reported */
    /* share of its core that the task had got until the last report, divided by the usual share of this
     * worker's tasks */
    double share;
} kl_hand;

/* The tasks that only this worker has, in the order in which it will do them. It runs the first one now or
 * next. */
typedef struct kl_held {
    uint64_t tasks;
    double units, first_units;
    /* number of tasks that cannot be recalled: they have begun, were moved too often, or are left out of a
     * recall in progress */
    uint64_t kept;
    double asked_s; /* time of a recall that the worker has not answered yet; 0: there is none */
    kl_hand hand;
} kl_held;

/* A histogram of task sizes. A task's size is its time × its worker's rate / its predicted units, so a task
 * that took the predicted time has size 1. A bin reaches from a size to 2^(1/4) times that size. Size 1 is in
 * the middle of the middle bin. If all fields are zero, there are no tasks. */
enum { KL_SIZE_BINS = 128 };
typedef struct kl_sizes {
    double count; /* number of tasks in all bins */
    double tasks[KL_SIZE_BINS];
} kl_sizes;

/* Add tasks that took unit_s seconds per unit, on a worker that does `rate` units per second. A kl_stat of
 * many tasks has only their mean and their extremes, so all tasks between these count as equal. */
void kl_sizes_add(kl_sizes *sizes, const kl_stat *unit_s, double rate);
double kl_sizes_bin(uint32_t bin,
                    double *most); /* Return the least size of a bin, and set *most to its greatest size. */

/* CPU time that a run used on the master's host, in seconds. If all fields are zero, it is not known. */
typedef struct kl_use {
    double farm_s;      /* CPU time of the master's process for messages and dealing */
    double callbacks_s; /* CPU time of the program's callbacks in the master */
    double local_s;     /* CPU time of the workers on the master's host, for tasks and messages */
    double local_tasks; /* number of tasks that the workers on the master's host did */
    /* seconds in which workers were ready to compute a task while other threads had their cores, added over
     * all workers */
    double delay_s;
    double tasks;    /* number of tasks that all workers did */
    double messages; /* number of messages that the master received or sent */
    double bytes;    /* bytes of tasks and results in these messages */
    uint32_t cores;  /* number of cores that the master's process may use */
} kl_use;

/* All data that a decision may read. The farm keeps them up to date, so that decisions need not compute
 * them. */
typedef struct kl_snapshot {
    double now_s, began_s; /* now_s: present time; began_s: time at which the run began */
    uint64_t run;          /* number of the run: 0, 1, 2, … */
    uint64_t tasks;        /* number of tasks of the run */
    uint64_t left;         /* number of tasks that are not dealt yet */
    double units, left_units;
    /* workers[0 … slots−1]; a worker that has left keeps its slot, as not present, until a new worker needs
     * it */
    const kl_worker_view *workers;
    uint32_t slots, present;
    const kl_crew *crew; /* sums over these workers, which are always up to date */
    kl_stat unit_s;      /* seconds per unit of single tasks, over all workers */
    kl_sizes sizes;      /* histogram of the sizes of tasks */
    /* m_o [s] and λ [s/byte] of a message; both are from probes alone or both from all messages, whichever
     * gives the smaller m_o */
    kl_linear message;
    double answer_s;     /* seconds that the master works to answer a worker's request; 0: not known */
    double round_trip_s; /* seconds from sending a small message until its answer arrives; 0: not known */
    double task_bytes;   /* mean bytes of a task in a message to a worker */
    double result_bytes; /* mean bytes of a result in a message to the master */
} kl_snapshot;

/* Update a view after an event. kl_view_asked(): its worker asked for work; kl_view_dealt(): a chunk was sent
 * to its worker; kl_view_reported(): its worker reported tasks. busy_s: seconds that the reported tasks took;
 * mean_s: mean time of a unit over all workers, 0: not known. */
void kl_view_asked(kl_worker_view *view, double now_s);
void kl_view_dealt(kl_worker_view *view, uint64_t tasks, double units, double now_s);
void kl_view_reported(kl_worker_view *view, const kl_stat *unit_s, double busy_s, double units, double mean_s,
                      double now_s);
void kl_view_returned(kl_worker_view *view, uint64_t tasks,
                      double units); /* Update a view because tasks were taken back from its worker. */
/* Update a view at the end of a run, if its worker still has a task of this many units whose result nobody
 * needs. If the worker's rate is not known, estimate it from the time that the task has taken so far. */
void kl_view_abandoned(kl_worker_view *view, double units, double mean_s, double now_s);
void kl_views_begin(kl_worker_view *views, uint32_t slots);
/* Change the unit of work of a view: one new unit is `factor` old units. */
void kl_view_rescale(kl_worker_view *view, double factor);
void kl_stat_rescale(kl_stat *stat,
                     double factor); /* Multiply all values by `factor`, because the unit has changed. */

/* Return how many seconds before the end of its work a worker should ask for its next chunk. This is four
 * round trips, but at least 1 ms, because the master may be scheduled late, and at most 20 ms. */
double kl_lead_s(const kl_snapshot *snapshot);

#endif
