/* Public header of the folder model: forecast the time of each alternative. All functions are pure.
 * Formulas: docs/explanation/model.md. */
#ifndef KL_MODEL_H
#define KL_MODEL_H

#include "measure/measure.h"

/* A balanced master/worker iteration (César, Moreno, Sorribes, Luque 2006). Brackets hold the paper's
 * symbols. */
typedef struct kl_farm_model {
    kl_linear message; /* start-up time per message [m_o, s] and time per byte [λ, s] */
    double work_s;     /* time to process all tasks on one worker [T_c] */
    double bytes;      /* bytes of all messages to and from the workers [V] */
    double to_workers; /* part of `bytes` that goes to the workers [α], 0 … 1 */
    double master_s;   /* the master's own time per iteration [l_m] */
    bool synchronous;  /* true: a send returns only when the message has arrived */
    /* true: each worker has a link of its own, so bytes for one worker do not delay bytes for another */
    bool own_links;
} kl_farm_model;

/* Return the largest number of workers that the master can keep busy, eq. (10) to (12); UINT32_MAX when
 * messages cost nothing. */
uint32_t kl_model_capability(const kl_farm_model *m);

/* The next functions assume that each worker gets work and bytes in proportion to its speed, so that all
 * end together. The sum of the workers' speeds is `speed` > 0. The worker on which work_s was measured has
 * speed 1. So `speed` is n for equal workers, and T_c/speed replaces T_c/n in (7) to (9). */
double kl_model_time_with_s(const kl_farm_model *m, uint32_t workers,
                            double speed); /* Return the seconds of an iteration [T_t]. */
/* Return the parallel efficiency E = T_c/(speed·T_t). */
double kl_model_efficiency_with(const kl_farm_model *m, uint32_t workers, double speed);
/* Return the performance index P_i = T_t/E, eq. (13). Its minimum is at the best number of workers. */
double kl_model_index_with(const kl_farm_model *m, uint32_t workers, double speed);

/* of_fastest(self, n) returns the sum of the speeds of the n ≥ 1 fastest workers, relative to the worker
 * on which work_s was measured. */
typedef struct kl_speeds {
    double (*of_fastest)(const void *self, uint32_t n);
    const void *self;
} kl_speeds;

/* Return speeds whose sums are sums[n−1]; the caller keeps the array. */
kl_speeds kl_speeds_listed(const double *sums);
static inline double kl_speed_of(kl_speeds speeds, uint32_t n) {
    return speeds.of_fastest(speeds.self, n);
}
/* Find the number in 1 … most with the lowest value of a function that first falls and then rises. Among
 * equal values, return the smallest number. The function is called O(log most) times. */
typedef struct kl_index {
    double (*of)(const void *self, uint32_t n);
    const void *self;
} kl_index;
uint32_t kl_model_lowest(const kl_index *index, uint32_t most);
/* Choose a number of workers, from 1 to `most` of the fastest ones. The first function returns
 * kl_model_capability(). The second returns the number with the smallest P_i, at most the capability, and
 * among equal P_i the smallest number. Both use O(log most) speeds. */
uint32_t kl_model_capability_of(const kl_farm_model *m, kl_speeds speeds, uint32_t most);
uint32_t kl_model_best_of(const kl_farm_model *m, kl_speeds speeds, uint32_t most);

/* Work that is dealt in rounds. In each round every worker gets one chunk, before it has finished the
 * previous one. The size of a chunk is proportional to its worker's speed. */
typedef struct kl_rounds {
    const double
        *part; /* part[0 … count−1] of the work and of the bytes; each part is > 0, and their sum is 1 */
    size_t count;     /* number of rounds, ≥ 1 */
    double tasks;     /* number of tasks in all rounds */
    double task_sd_s; /* standard deviation of a task's seconds, on the worker on which T_c was measured */
    double answer_s;  /* seconds that the master works for one chunk; 0: not known, use m_o */
    bool uneven;      /* true: the workers differ by more than their tasks do, so they soon get out of step */
} kl_rounds;

/* Return T_t for work dealt in rounds. With one round of equal tasks it equals kl_model_time_with_s().
 * docs/explanation/model.md derives it and gives its error. */
double kl_model_rounds_time_s(const kl_farm_model *m, uint32_t workers, double speed,
                              const kl_rounds *rounds);
/* Fill part[] (room for most ≥ 1) with the rounds that the policy DAF deals to `workers`, by eq. (1) and (2)
 * of its paper. Return their number. No chunk is below one task, or shorter than kl_model_min_chunk_s().
 * variation: the standard deviation of a task's time over its mean. */
size_t kl_model_daf_parts(const kl_farm_model *m, double tasks, double variation, uint32_t workers,
                          double *part, size_t most);

/* A resource that workers share. Each task uses it for task_s. At most `servers` tasks can use it at full
 * speed at the same time; more tasks share it evenly. */
typedef struct kl_station {
    double task_s, servers; /* number of servers, ≥ 1 */
} kl_station;

/* Return tasks per second if each worker spends away_s between two uses of the station. This is exact for
 * evenly shared resources, whatever the distribution of the times. */
double kl_station_rate(const kl_station *station, double away_s, uint32_t workers);

/* The demand of a run's tasks on each shared resource. */
typedef struct kl_load {
    kl_use use;
    double task_s;     /* seconds of one task if its worker were alone */
    double beyond;     /* the run's tasks took this multiple of the time that task_s and sharing explain */
    uint32_t workers;  /* number of workers that did the run */
    double chunks;     /* number of chunks of the run */
    double answer_s;   /* seconds that the master's dealing thread works for one chunk */
    double to_workers; /* part of the bytes that goes to the workers, 0 … 1 */
    double per_byte_s; /* seconds per byte on a link to another host, if no other process uses the link */
    /* true: each worker has its own link, and the link of the master can carry all of them at full speed */
    bool own_links;
    bool apart; /* true: the master has its own cores */
    /* CPU seconds that the sender or the receiver needs for a byte of a message within the master's host;
     * 0: not known */
    double copy_s;
    double near_s; /* one-way seconds of a small message within the master's host */
} kl_load;

typedef enum kl_shared {
    KL_SHARED_NOTHING, /* no resource limits: tasks take as long as they take alone */
    KL_SHARED_CORES,
    KL_SHARED_MESSAGES, /* the busiest of the master's threads for messages and dealing */
    KL_SHARED_CALLBACKS,
    KL_SHARED_LINK,  /* the link of the master's host */
    KL_SHARED_LINKS, /* the links of the workers' hosts, one for each */
} kl_shared;

typedef struct kl_limit {
    kl_shared what; /* the resource that slows the workers down most */
    double times;   /* a task takes this multiple of the time that it takes alone */
    double used;    /* part of the resource that is in use; 0: no resource limits */
    double sending; /* part of the CPU time that is used for sending and receiving */
    bool known;     /* false: nothing is known about shared resources */
} kl_limit;

/* Set task_s, beyond and own_links of a load whose other fields are set. The run took elapsed_s, and its
 * tasks took task_s on average. Lower per_byte_s if the link could not have carried the run's bytes at
 * that cost. Return the part of task_s in which no other thread kept the workers from their cores. */
double kl_load_fit(kl_load *load, double task_s, double elapsed_s);
bool kl_load_known(const kl_load *load); /* false: kl_model_limit() finds no limit */
/* Return the limit for a number of workers. For the number of the measured run, `times` is the measured
 * value. */
kl_limit kl_model_limit(const kl_load *load, uint32_t workers);
/* Return the part of the cost of messages that does not depend on their size. bytes: bytes of all
 * messages. */
double kl_message_fixed_part(double bytes, double messages);
/* Return the least time in which the shared resources can serve the run in this many chunks; 0: not known. */
double kl_model_shared_s(const kl_load *load, double chunks);
/* Return the number of chunks with another number of workers. The load must be known. */
double kl_model_chunks(const kl_load *load, uint32_t workers);
/* Return answer_s with another number of workers: smaller chunks have fewer bytes. The load must be known. */
double kl_model_answer_s(const kl_load *load, uint32_t workers);
/* Return the CPU seconds per task that another number of workers saves, because it keeps the cores awake.
 * Below 0: it wakes more idle cores than the measured run did. */
double kl_model_roused_s(const kl_load *load, uint32_t workers);
const char *kl_shared_name(kl_shared what); /* Return a name such as "the cores of the master's host". */
kl_load kl_load_with_bytes(
    const kl_load *load,
    double times); /* Return the load as it would be if the contents of messages were `times` as large. */

/* An interval that contains the time of a run with probability KL_SURE. It is computed from a forecast of
 * time_s. */
static const double KL_SURE = 0.9;
typedef struct kl_interval {
    double low_s, high_s;
} kl_interval;
typedef struct kl_doubt {
    double runs;    /* standard deviation of the times of equal runs, divided by their mean; 0: not known */
    uint32_t known; /* number of workers in the measured run; 0: none was measured */
} kl_doubt;
kl_interval kl_model_interval(double time_s, const kl_doubt *doubt, uint32_t workers, const kl_limit *limit);

/* Return q = 1 − mean busy time/elapsed time, 0 in perfect balance. busy_s: sum over all workers. */
double kl_model_quality(double busy_s, uint32_t workers, double elapsed_s);
double kl_model_quality_bound(double task_mean_s, double task_sd_s,
                              uint32_t workers); /* q ≤ 1/(1 + (μ/σ)·sqrt(2/n)) */

/* Return the length in seconds of the shortest chunks with which one master can keep `workers` busy. This
 * is the capability (10) to (12), solved for T_c/n. `send_s` is the master's time per chunk (m_o, λ·bytes,
 * or both). */
double kl_model_min_chunk_s(double send_s, uint32_t workers);

/* A program that repeats two steps: the master works alone, then it starts T tasks and waits for all of
 * them (Buaklee, Tracy, Vernon, Wright 2002). */
typedef struct kl_forkjoin {
    /* seconds for which the master works alone in an iteration, as a function of the number of tasks
     * [t_M(T)] */
    kl_curve master;
    double round_trip_s; /* seconds of the round trip of a message */
    double update_s;     /* seconds that the master needs for the results of one worker [t_update] */
    double task_s;       /* seconds that each task takes on the link */
} kl_forkjoin;

/* Return the seconds from the start of the tasks to the end of the last one. workers_s: the longest
 * compute time of a worker [max t_W]. */
double kl_model_join_s(const kl_forkjoin *m, double tasks, uint32_t workers, double workers_s);
double kl_model_forkjoin_s(const kl_forkjoin *m, double tasks, uint32_t workers,
                           double workers_s); /* Return the seconds of one iteration. */
/* Return the time of the whole program, t_M + (n + 1)·join. master_s [t_M] is the total over n iterations.
 * Evaluating the starting point adds one join. If all workers are near the master, this gives the values
 * of table 3 of the paper. */
double kl_model_forkjoin_total_s(double master_s, double iterations, double join_s);

/* A forecast for work dealt in proportion to the workers' present speeds. */
typedef struct kl_forecast {
    double rate_units_per_s; /* rate of all present workers together */
    double left_s;           /* time until all work is done in perfect balance */
    double low_s, high_s;    /* interval of about 95 % around left_s */
    /* units that `worker` gets of the work not dealt yet, if all workers end at the same time */
    double share_units;
    double unit_s; /* seconds per unit of `worker` */
    double free_s; /* seconds until `worker` has finished its queue */
} kl_forecast;

/* --- time_left.c: the time left as an interval --- */

typedef struct kl_seen_task { /* a task that has ended */
    double unit_s;            /* seconds of the task per unit of its work */
    uint32_t worker;          /* index of its worker in the ask; UINT32_MAX: the worker is gone */
} kl_seen_task;

typedef struct kl_left_worker {
    uint64_t queued; /* number of tasks that the worker has not reported as done */
    double silent_s; /* seconds since the worker reported a task, or got the first of these tasks */
    double task_s;   /* seconds for which its present task has run at least */
} kl_left_worker;

typedef struct kl_left_ask {
    const kl_seen_task *seen; /* [seen_count] the last tasks that have ended, in order */
    uint32_t seen_count;
    const kl_left_worker *workers; /* [count] the workers that are present */
    uint32_t count;
    uint64_t tasks;    /* number of tasks that are not done, including those that workers have */
    double task_units; /* mean work of these tasks */
    uint64_t chain;    /* length of the longest chain in which each task waits for the one before; 0: none */
    double part;       /* probability with which the interval must contain the end, such as 0.9 */
    uint64_t seed;     /* seed: equal seeds give equal intervals */
} kl_left_ask;

/* The end comes between low_s and high_s with probability `part`, and before middle_s with probability
 * 1/2. This holds if the remaining tasks resemble those that were seen, and if speeds do not change. */
typedef struct kl_left {
    double low_s, middle_s, high_s;
} kl_left;

/* Forecast the seconds until all tasks are done. There is no forecast (false) if no task has ended, no
 * worker is present, or memory ran out. */
bool kl_model_time_left(const kl_left_ask *ask, kl_left *left);

/* Return the forecast. Its last three values are for `worker`; UINT32_MAX: they are 0. All values are 0
 * while no worker's rate is known. */
kl_forecast kl_model_forecast(const kl_snapshot *snapshot, uint32_t worker);

/* Return the seconds until all workers end together, if they share the undealt work, the queue of
 * `worker`, and `units` that no worker has. At least one rate must be known. */
double kl_model_end_without_s(const kl_snapshot *snapshot, uint32_t worker);

/* Return the seconds until all workers would end together if they shared the undealt work, the queue of
 * `worker`, and `units` that nobody has. At least one rate must be known. */
double kl_model_end_shared_s(const kl_snapshot *snapshot, uint32_t worker, double units);

/* Return the elapsed time if every worker had computed all the time at its mean speed of this run. 0: not
 * known. */
double kl_model_equal_split_s(const kl_snapshot *snapshot);
/* Return the elapsed time if every worker had computed all the time at its mean speed in this run. 0: not
 * known. */
double kl_model_bound_s(const kl_snapshot *snapshot);

/* Return the mean seconds between failures of a program that has run for ran_s in total. Without a failure
 * so far, return at least a day. */
double kl_model_between_failures_s(double ran_s, uint64_t failures);
/* Return the seconds between two checkpoints that lose the least time: √(2·C·M). C: seconds that a
 * checkpoint costs the program. M: mean seconds between failures. The formula is from Young 1974, "A first
 * order approximation to the optimum checkpoint interval". */
double kl_model_checkpoint_s(double cost_s, double between_failures_s);
/* Return the part of the time that checkpoints and repeated work take: C/interval + interval/(2M). */
double kl_model_lost_part(double interval_s, double cost_s, double between_failures_s);

#endif
