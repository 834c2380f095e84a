/* Door of room model: forecast the time of each alternative. Pure. Formulas: docs/explanation/model.md. */
#ifndef KL_MODEL_H
#define KL_MODEL_H

#include "measure/measure.h"

/* A balanced master/worker iteration (César, Moreno, Sorribes, Luque 2006). Brackets hold the paper's
 * symbols. */
typedef struct kl_farm_model {
    kl_linear message; /* start-up per message [m_o, s] and time per byte [λ, s] */
    double work_s;     /* processing time of all tasks on one worker [T_c] */
    double bytes;      /* bytes in both directions, of all workers [V] */
    double to_workers; /* part of these bytes that goes to the workers [α], 0 … 1 */
    double master_s;   /* the master's own time per iteration [l_m] */
    bool synchronous;  /* true: a send returns only when the message has arrived */
    /* true: each worker has a link of its own, so bytes for one do not hold up bytes for another */
    bool own_links;
} kl_farm_model;

/* Return the largest number of workers the master can feed, eq. (10) to (12); UINT32_MAX when messages cost
 * nothing. */
uint32_t kl_model_capability(const kl_farm_model *m);

/* The next functions hold for workers that all end together, each with work and bytes in proportion to its
 * speed. `speed` > 0 is the sum of their speeds, relative to the worker work_s was measured on, so n for
 * equal workers. In (7) to (9) T_c/speed takes the place of T_c/n. */
double kl_model_time_with_s(const kl_farm_model *m, uint32_t workers,
                            double speed); /* Return the seconds of an iteration [T_t]; n ≥ 1. */
/* Return the parallel efficiency E = T_c/(speed·T_t). */
double kl_model_efficiency_with(const kl_farm_model *m, uint32_t workers, double speed);
/* Return the performance index P_i = T_t/E, eq. (13). Its minimum is at the number of workers that pays best.
 */
double kl_model_index_with(const kl_farm_model *m, uint32_t workers, double speed);

/* Return the sum of speeds of the n fastest workers, relative to the worker work_s was measured on; n ≥ 1. */
typedef struct kl_speeds {
    double (*of_fastest)(const void *self, uint32_t n);
    const void *self;
} kl_speeds;

kl_speeds kl_speeds_listed(const double *sums); /* sums[n−1]; the caller keeps the array */
static inline double kl_speed_of(kl_speeds speeds, uint32_t n) {
    return speeds.of_fastest(speeds.self, n);
}
/* Find the number in 1 … most with the lowest value of a function that falls and then rises; ties go to the
 * fewest. It evaluates O(log most) values. */
typedef struct kl_index {
    double (*of)(const void *self, uint32_t n);
    const void *self;
} kl_index;
uint32_t kl_model_lowest(const kl_index *index, uint32_t most);
/* Return kl_model_capability() for the fastest of `most` ≥ 1 workers, and the number of them with the
 * smallest P_i, which is never above it; ties go to the fewest. Both use O(log most) speeds. */
uint32_t kl_model_capability_of(const kl_farm_model *m, kl_speeds speeds, uint32_t most);
uint32_t kl_model_best_of(const kl_farm_model *m, kl_speeds speeds, uint32_t most);

/* Work dealt in rounds. In each round every worker gets one chunk, before it has finished the previous one.
 * The size of a chunk is in proportion to its worker's speed. */
typedef struct kl_rounds {
    const double *part; /* part[0 … count−1] of the work and of the bytes, each > 0, sum 1 */
    size_t count;       /* number of rounds, ≥ 1 */
    double tasks;       /* number of tasks in all rounds */
    double task_sd_s;   /* standard deviation of a task's seconds, on the worker that T_c was measured on */
    double answer_s;    /* seconds of the master for one chunk, if known apart from m_o; 0: use m_o */
    bool uneven;        /* true: workers differ by more than their tasks do, so they soon do not keep step */
} kl_rounds;

/* Return T_t(n) for several rounds; for one round of equal tasks it equals kl_model_time_with_s().
 * docs/explanation/model.md derives it and gives its error. */
double kl_model_rounds_time_s(const kl_farm_model *m, uint32_t workers, double speed,
                              const kl_rounds *rounds);
/* Fill part[] (room for most ≥ 1) with the rounds DAF deals to `workers` and return their number: eq. (1) and
 * (2) of the paper, with no chunk below one task or below what the master can keep up with. variation: the
 * standard deviation of a task's time over its mean. */
size_t kl_model_daf_parts(const kl_farm_model *m, double tasks, double variation, uint32_t workers,
                          double *part, size_t most);

/* A resource that workers share. Each task uses it for task_s; up to `servers` tasks use it at full speed,
 * more tasks share it evenly. */
typedef struct kl_station {
    double task_s, servers; /* number of servers, ≥ 1 */
} kl_station;

/* Return tasks per second when each of `workers` spends away_s between two visits. This is exact for evenly
 * shared resources and any distribution of visits. */
double kl_station_rate(const kl_station *station, double away_s, uint32_t workers);

/* What the tasks of a run demand of each shared resource. */
typedef struct kl_load {
    kl_use use;
    double task_s;     /* seconds of one task if its worker were alone */
    double beyond;     /* factor by which the run's tasks took longer than task_s and sharing explain */
    uint32_t workers;  /* number of workers that did the run */
    double chunks;     /* number of chunks of the run */
    double answer_s;   /* seconds of the thread that deals, for one chunk */
    double to_workers; /* part of the bytes that goes to the workers, 0 … 1 */
    double per_byte_s; /* seconds per byte of a message alone on a link to another host */
    /* true: each worker has a link of its own, and the master's link has room for all of them */
    bool own_links;
    bool apart; /* true: the master has cores of its own */
    /* CPU seconds of one side for each byte of a message on the master's host; 0: not known */
    double copy_s;
    double near_s; /* seconds of a small message alone on that host, one way */
} kl_load;

typedef enum kl_shared {
    KL_SHARED_NOTHING, /* CPU time of the tasks themselves */
    KL_SHARED_CORES,
    KL_SHARED_MESSAGES, /* CPU time of one of the master's threads */
    KL_SHARED_CALLBACKS,
    KL_SHARED_LINK,  /* the link of the master's host */
    KL_SHARED_LINKS, /* the links of the workers' hosts, one for each */
} kl_shared;

typedef struct kl_limit {
    kl_shared what; /* the resource that slows the workers down most */
    double times;   /* a task takes this multiple of its time alone */
    double used;    /* part of the resource that is in use; 0: nothing limits */
    double sending; /* for cores: part of their use that is sending and receiving */
    bool known;     /* false: nothing is known about shared resources */
} kl_limit;

/* Fill task_s, beyond and own_links of a load whose other fields are set, for a run of elapsed_s whose tasks
 * took task_s on average. Lower per_byte_s if the run's bytes could not have been carried otherwise. Return
 * the part of that time in which nobody kept the workers from their cores. */
double kl_load_fit(kl_load *load, double task_s, double elapsed_s);
bool kl_load_known(const kl_load *load); /* false: nothing limits */
/* Return the limit for another number of workers than the run had; for the same number `times` stays as it
 * was. */
kl_limit kl_model_limit(const kl_load *load, uint32_t workers);
/* Return the least time in which the shared resources can serve the run in this many chunks; 0: not known. */
double kl_model_shared_s(const kl_load *load, double chunks);
/* Return the number of chunks that another number of workers would get. The load must be known. */
double kl_model_chunks(const kl_load *load, uint32_t workers);
/* Return load.answer_s for that number: smaller chunks have fewer bytes. The load must be known. */
double kl_model_answer_s(const kl_load *load, uint32_t workers);
const char *kl_shared_name(kl_shared what); /* name, such as "the cores of the master's host" */
kl_load
kl_load_with_bytes(const kl_load *load,
                   double times); /* the load if the contents of messages were this many times as large */

/* The interval that holds the time of a run with probability KL_SURE, for a forecast of time_s. */
static const double KL_SURE = 0.9;
typedef struct kl_interval {
    double low_s, high_s;
} kl_interval;
typedef struct kl_doubt {
    double runs;    /* standard deviation over mean of equal runs; 0: not known */
    uint32_t known; /* number of workers in the measured run; 0: none was measured */
} kl_doubt;
kl_interval kl_model_interval(double time_s, const kl_doubt *doubt, uint32_t workers, const kl_limit *limit);

/* Return q = 1 − mean busy time/elapsed; busy_s is the sum over all workers. */
double kl_model_quality(double busy_s, uint32_t workers, double elapsed_s);
double kl_model_quality_bound(double task_mean_s, double task_sd_s,
                              uint32_t workers); /* q ≤ 1/(1 + (μ/σ)·sqrt(2/n)) */

/* Return the shortest time of a chunk with which one master can keep `workers` fed: the capability (10) to
 * (12) solved for T_c/n. `send_s` is the master's time per chunk (m_o, λ·bytes, or both). */
double kl_model_min_chunk_s(double send_s, uint32_t workers);

/* A program that repeats two steps: it works alone, then it forks T tasks and waits for all (Buaklee, Tracy,
 * Vernon, Wright 2002). */
typedef struct kl_forkjoin {
    kl_curve master;     /* seconds alone in an iteration, as a function of the number of tasks [t_M(T)] */
    double round_trip_s; /* seconds of the round trip of a message */
    double update_s;     /* seconds of the master for the results of one worker [t_update] */
    double task_s;       /* seconds of each task on the link */
} kl_forkjoin;

/* Return the seconds from fork to join; workers_s: the longest compute time of a worker [max t_W]. */
double kl_model_join_s(const kl_forkjoin *m, double tasks, uint32_t workers, double workers_s);
double kl_model_forkjoin_s(const kl_forkjoin *m, double tasks, uint32_t workers,
                           double workers_s); /* Return the seconds of one iteration. */
/* Time of the whole program: master_s in total [t_M], n iterations and the evaluation of the starting point:
 * t_M + (n + 1)·join. Table 3 of the paper follows from it where the workers were near. */
double kl_model_forkjoin_total_s(double master_s, double iterations, double join_s);

/* The forecast for work dealt in proportion to the workers' present speeds. */
typedef struct kl_forecast {
    double rate_units_per_s; /* rate of all present workers together */
    double left_s;           /* time until all work is done in perfect balance */
    double low_s, high_s;    /* interval of about 95 % around left_s */
    double share_units;      /* part of `worker` in the work not dealt yet, if all end together */
    double unit_s;           /* seconds per unit of `worker` */
    double free_s;           /* time until `worker` has done its queue */
} kl_forecast;

/* Return the forecast for one worker; worker = UINT32_MAX: totals only. All 0 while no worker's rate is
 * known. */
kl_forecast kl_model_forecast(const kl_snapshot *snapshot, uint32_t worker);

/* Return the seconds until all undealt work would be done without `worker`, at least one whole task on the
 * best of the others. INFINITY: there are no others, or none has a known rate. */
double kl_model_end_without_s(const kl_snapshot *snapshot, uint32_t worker);

/* Return the seconds until all would end together if the others shared the queue of `worker` and another
 * `units` that nobody has. At least one rate must be known. */
double kl_model_end_shared_s(const kl_snapshot *snapshot, uint32_t worker, double units);

/* Return the elapsed time of an equal split at the start, at the workers' mean speeds in this run. 0: not
 * known. */
double kl_model_equal_split_s(const kl_snapshot *snapshot);
/* Return the elapsed time if every worker had computed all the time at its mean speed in this run. 0: not
 * known. */
double kl_model_bound_s(const kl_snapshot *snapshot);

#endif
