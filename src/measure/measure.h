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

/* What part of its core a thread can have. A thread that is always ready to run sees it: the time it ran over
 * the time it ran or was kept from running. A thread that sleeps while it waits does not, as it asks for
 * less: then the last part seen holds until the core is seen idle. Zeroed is empty. */
typedef enum kl_core_mode {
    KL_CORE_OWN,     /* nobody else wants the core */
    KL_CORE_WATCHED, /* others do, or did: the thread must not sleep, so that it sees what it gets */
    KL_CORE_SHARED,  /* others do, and `share` is known */
} kl_core_mode;
typedef struct kl_core_sample { /* sums since any moment */
    double now_s;
    double run_s, delay_s; /* it ran; it was ready, and others ran */
    double slices;         /* times it was let run */
    double waited_s;       /* it waited for others, asleep or not */
    double idle_s;         /* nobody used the cores it may use; below 0: not looked at … */
    bool idle_unknown;     /* … or the system does not tell */
} kl_core_sample;
typedef struct kl_core_share {
    kl_core_mode mode;
    double share; /* 0 … 1 */
    /* Shared: it needs less than its share, and keeps it by sleeping while it waits. One that needs all is
     * let in late when it has slept, and spins. */
    bool sleeps;
    double slack; /* part of the time that it waits; of one that sleeps, that it is not ready to run */
    double spins_until_s, spin_s; /* sleeping left no slack: not tried again before then; for so long */
    double since_s;               /* the mode */
    double hold_s;                /* shared for so long before the core is watched again */
    double quantum_s;       /* it was let run so long at a time when others wanted the core; 0: not seen */
    kl_core_sample watched; /* sums of the time since then, while it is watched */
    kl_core_sample last, idle_from;
} kl_core_share;

bool kl_core_share_due(const kl_core_share *core, double now_s);        /* another sample tells something */
bool kl_core_share_wants_idle(const kl_core_share *core, double now_s); /* with idle_s */
void kl_core_share_add(kl_core_share *core, const kl_core_sample *sample);

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

/* A cost that grows with a number: fixed_s + per_unit_s·number^(1 + bend), none below 0. */
typedef struct kl_curve {
    double fixed_s, per_unit_s;
    double bend; /* 0: a straight line */
} kl_curve;

double kl_curve_s(const kl_curve *curve, double number);

/* Such a cost as it is seen: least squares, the last readings counting most; a straight line, or, where that
 * would begin below 0, a power of the number. While only one number was seen, the cost is taken to be
 * proportional to it. Zeroed is empty. */
typedef struct kl_line {
    uint64_t count; /* of readings */
    double weight;  /* fading: Σ1 */
    struct kl_line_sums {
        double x, y;             /* means of numbers and costs, fading */
        double spread_x, with_y; /* fading sums of squared deviations of x, and of products with those of y */
    } plain, logs;
    double least_x, most_x; /* ever */
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

/* What is known of one worker. */
typedef struct kl_worker_view {
    uint32_t number;    /* what it is called: its place here may be another's when it is gone */
    bool present;       /* joined, ready, not lost and not resting */
    bool resting;       /* could work, but is not wanted now */
    kl_stat unit_s;     /* seconds per unit of single tasks (a task's time over its weight), in all runs */
    kl_stat run_unit_s; /* the same, this run */
    kl_pace pace;       /* the same, now */
    double quickest_s[KL_QUICKEST]; /* seconds per unit of the last tasks, or the least of those they were
                                       reported with; 0: there were not as many */
    kl_wap wap;                     /* this run */
    double prior_rate; /* rate relative to the other workers, known when the run began; 0: not known */
    uint64_t chunks;   /* dealt to it in this run */
    uint64_t queued_tasks;
    double queued_units;  /* dealt to it and not reported finished */
    double queued_at_s;   /* when that was last true: a report came or a chunk went out */
    double busy_s, units; /* this run: time with its tasks, and units done in it */
} kl_worker_view;

/* Units per second now; 0: not known or not present. That of its pace, unless each of its last tasks took
 * more than twice as long: a pace takes a while to forget how fast the worker was, one long task means
 * nothing. */
double kl_worker_rate(const kl_worker_view *worker);
bool kl_worker_slowed(const kl_worker_view *worker);

/* One worker's part in what is still to be done. */
typedef struct kl_lane {
    double rate;   /* units per second it is trusted with */
    double free_s; /* until it has done what is queued */
} kl_lane;

/* What has been silent for longer than its queued work should take has become slower: at least so slow that
 * this work takes the time that has passed. What took so long is expected to take as long again.
 * mean_rate: of a worker not known yet, > 0. */
kl_lane kl_worker_lane(const kl_worker_view *worker, double mean_rate, double now_s);

/* The workers of a farm added up and in order, so that no decision looks at each of them: a change of one
 * worker costs O(log P), and so does a question (docs/explanation/model.md says how, and where it rounds).
 * About 220 bytes a worker. */
typedef struct kl_crew kl_crew;

/* Over the present workers. A worker without a value counts in no sum. */
typedef struct kl_crew_sums {
    uint32_t present;
    uint32_t known;                        /* whose rate is known */
    uint32_t unserved;                     /* dealt nothing in this run */
    uint32_t with_prior, with_wap, steady; /* have a prior_rate, a wap, a mean and deviation of unit_s */
    double rates;                          /* Σ kl_worker_rate() */
    double spread, seconds;                /* Σ of those of the paces */
    double queued_units;
    double priors, waps;               /* Σ prior_rate, Σ 1/kl_wap_unit_s() */
    double variance_rates, unit_rates; /* of unit_s: Σ σ²/μ, Σ 1/μ */
} kl_crew_sums;

/* What some of the present workers can do together. */
typedef struct kl_crew_part {
    uint32_t workers;
    double rate; /* Σ of their lanes' rate */
    double owed; /* Σ rate·free_s: units they could have done by the time they are free */
} kl_crew_part;

kl_crew *kl_crew_new(void); /* of no workers; NULL: no memory */
void kl_crew_free(kl_crew *crew);
kilter_status kl_crew_reserve(kl_crew *crew,
                              uint32_t slots); /* views[0 … slots−1] exist; KILTER_ERR_MEMORY */

/* To be told: `worker`'s view has changed. */
void kl_crew_update(kl_crew *crew, const kl_worker_view *views, uint32_t worker);
/* To be told before questions are asked: it is now_s, not sooner than the last time. */
void kl_crew_advance(kl_crew *crew, double now_s);
/* All views may have changed, and time may have begun anew. O(P) where little has changed. */
void kl_crew_look_again(kl_crew *crew, const kl_worker_view *views, double now_s);

const kl_crew_sums *kl_crew_total(const kl_crew *crew);
double kl_crew_mean_rate(const kl_crew *crew); /* of those known; 0: none is */

/* The next ones need a mean rate above 0, and leave out worker `without` (UINT32_MAX: nobody).
 *
 * Those with free_s < within_s. Overdue workers whose silences differ by less than a fifth are taken
 * together, which makes their rate at most 0.83 % too low; all else is exact. */
kl_crew_part kl_crew_free_within(const kl_crew *crew, double within_s, uint32_t without);
/* The largest free_s; 0: there is nobody. */
double kl_crew_longest_s(const kl_crew *crew);
enum { KL_CREW_LATEST = 16 };
typedef struct kl_crew_choice {
    const void *self;
    bool (*counts)(const void *self, uint32_t worker);
} kl_crew_choice;
/* Those that count and whose free_s is above beyond_s, at most `most` (and KL_CREW_LATEST) of them, the
 * largest first; returns how many. It costs a look at each that is late and does not count. */
uint32_t kl_crew_latest(const kl_crew *crew, double beyond_s, const kl_crew_choice *choice, uint32_t *workers,
                        uint32_t most);
/* The highest rate of those with nothing queued, and whose it is; 0: there is nobody. One that is not known
 * counts as the mean. */
double kl_crew_fastest_idle(const kl_crew *crew, uint32_t without, uint32_t *worker);
/* The least free_s + units/rate, and (unless NULL) whose it is; INFINITY: there is nobody. */
double kl_crew_first_end_s(const kl_crew *crew, double units, uint32_t without, uint32_t *worker);

/* Present and resting workers by falling speed: units over busy time of the last run they worked in, the
 * present pace while that is not known. Those of whom neither is known are not in it. */
uint32_t kl_crew_ranked(const kl_crew *crew);
double kl_crew_fastest_speed(const kl_crew *crew, uint32_t n); /* Σ of the n fastest, or of all */
/* The n-th fastest, from 1; n at most kl_crew_ranked(). */
uint32_t kl_crew_nth_fastest(const kl_crew *crew, uint32_t n, double *speed);

/* What is heard of the task a worker has at hand while it runs. */
typedef struct kl_hand {
    double heard_s;   /* when anything came from the worker last; 0: it tells nothing while a task runs */
    double elapsed_s; /* of the task, when it was told; 0: nothing was */
    double share;     /* of a core that the task got until then, over what the worker's tasks usually get */
} kl_hand;

/* The tasks at one worker that are at no other, in the order it does them: the first is at hand, or next. */
typedef struct kl_held {
    uint64_t tasks;
    double units, first_units;
    uint64_t kept; /* of them: begun, moved often enough, or, while it is asked to give back, not asked for */
    double asked_s; /* when it was asked to give the others back, and has not answered; 0: it is not asked */
    kl_hand hand;
} kl_held;

/* How large tasks are, against what was predicted of them: time × the worker's rate over the units. 1 is as
 * predicted. Bins of a quarter of a doubling, the middle one begins at 1. Zeroed is empty. */
enum { KL_SIZE_BINS = 128 };
typedef struct kl_sizes {
    double count; /* of tasks */
    double tasks[KL_SIZE_BINS];
} kl_sizes;

/* Tasks of unit_s seconds per unit, done at `rate` units per second. Of many only mean and extremes are
 * known: those between the extremes count as equal. */
void kl_sizes_add(kl_sizes *sizes, const kl_stat *unit_s, double rate);
double kl_sizes_bin(uint32_t bin, double *most); /* its least and its most size */

/* What a run cost the master's host, in seconds of CPU time. Zeroed: not known. */
typedef struct kl_use {
    double farm_s;      /* in the master's process: messages and dealing */
    double callbacks_s; /* in the program's callbacks */
    double local_s;     /* in workers on that host, with their tasks and messages */
    double local_tasks; /* done by them */
    double
        delay_s;  /* of their tasks: workers were ready to compute and others had their cores, all added up */
    double tasks; /* done by all */
    double messages; /* that the master took in or sent */
    double bytes;    /* of tasks and results in them */
    uint32_t cores;  /* that the master's process may use */
} kl_use;

/* Everything a decision may look at. Kept up to date in place by the farm; nobody rebuilds it per decision.
 */
typedef struct kl_snapshot {
    double now_s, began_s; /* began_s: start of the run */
    uint64_t run;          /* 0, 1, 2, … */
    uint64_t tasks;        /* of the run */
    uint64_t left;         /* not dealt yet */
    double units, left_units;
    const kl_worker_view *workers; /* workers[0 … slots−1]; those gone stay, not present, until others need
                                    their places */
    uint32_t slots, present;
    const kl_crew *crew; /* of the same workers, up to date */
    kl_stat unit_s;      /* of single tasks over all workers */
    kl_sizes sizes;      /* of the same */
    kl_linear message;   /* m_o [s], λ [s/byte]: the least of what probes and traffic show */
    double answer_s;     /* master's own time to answer one request for work; 0: not known */
    double round_trip_s; /* of a small message; 0: not known */
    double task_bytes;   /* bytes to a worker per task, mean */
    double result_bytes; /* bytes back per task, mean */
} kl_snapshot;

/* What becomes of a view: its worker asked for work, so it is not silent; a chunk went out to it; tasks were
 * reported finished, with which, and between them, its worker was for busy_s, where a unit takes mean_s on
 * average over all workers (0: not known); a run begins, all views at once since their priors are relative to
 * each other. */
void kl_view_asked(kl_worker_view *view, double now_s);
void kl_view_dealt(kl_worker_view *view, uint64_t tasks, double units, double now_s);
void kl_view_reported(kl_worker_view *view, const kl_stat *unit_s, double busy_s, double units, double mean_s,
                      double now_s);
void kl_view_returned(kl_worker_view *view, uint64_t tasks, double units); /* it will not do them */
/* The run ends while it has a task of so many units, for which nobody waits: a worker of which nothing else
 * is known is as slow as it has shown. */
void kl_view_abandoned(kl_worker_view *view, double units, double mean_s, double now_s);
void kl_views_begin(kl_worker_view *views, uint32_t slots);
/* From now on a unit is `factor` times as much work as it was. */
void kl_view_rescale(kl_worker_view *view, double factor);
void kl_stat_rescale(kl_stat *stat, double factor); /* all its values times `factor` */

/* A worker should ask for its next chunk this long before it runs dry: more than a scheduling delay of the
 * master and some round trips. */
double kl_lead_s(const kl_snapshot *snapshot);

#endif
