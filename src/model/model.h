/* Door of room model: what each alternative would take. Pure. Formulas: docs/explanation/model.md. */
#ifndef KL_MODEL_H
#define KL_MODEL_H

#include "measure/measure.h"

/* A balanced master/worker iteration (César, Moreno, Sorribes, Luque 2006). Symbols in brackets are theirs.
 */
typedef struct kl_farm_model {
    kl_linear message; /* start-up per message [m_o, s] and time per byte [λ, s] */
    double work_s;     /* processing time of all tasks on one worker [T_c] */
    double bytes;      /* both ways, all workers [V] */
    double to_workers; /* part of it that goes to the workers [α], 0 … 1 */
    double master_s;   /* the master's own time per iteration [l_m] */
    bool synchronous;  /* a send returns only when the message has arrived */
} kl_farm_model;

/* Most workers the master can feed, eq. (10) to (12); UINT32_MAX when messages cost nothing. */
uint32_t kl_model_capability(const kl_farm_model *m);

/* For workers that end together, each with work and bytes as its speed: `speed` is the sum of their speeds,
 * relative to the one work_s was measured at, so n for equal ones; > 0. In (7) to (9) T_c/speed takes the
 * place of T_c/n. */
double kl_model_time_with_s(const kl_farm_model *m, uint32_t workers, double speed); /* T_t; n ≥ 1 */
/* E = T_c/(speed·T_t). */
double kl_model_efficiency_with(const kl_farm_model *m, uint32_t workers, double speed);
/* P_i = T_t/E, eq. (13): smallest where more stop paying. */
double kl_model_index_with(const kl_farm_model *m, uint32_t workers, double speed);

/* The speed of the n fastest workers together, relative to the one work_s was measured at; n ≥ 1. */
typedef struct kl_speeds {
    double (*of_fastest)(const void *self, uint32_t n);
    const void *self;
} kl_speeds;

kl_speeds kl_speeds_listed(const double *sums); /* sums[n−1]; used, not kept */
static inline double kl_speed_of(kl_speeds speeds, uint32_t n) {
    return speeds.of_fastest(speeds.self, n);
}
/* Something of n workers that falls and then rises: where it is lowest, of 1 … most; ties: the fewest. It is
 * asked for O(log most) values. */
typedef struct kl_index {
    double (*of)(const void *self, uint32_t n);
    const void *self;
} kl_index;
uint32_t kl_model_lowest(const kl_index *index, uint32_t most);
/* As kl_model_capability(), for the fastest of `most` ≥ 1 workers; and how many of them have the smallest
 * P_i, never above that; ties: the fewest. Both ask for O(log most) speeds. */
uint32_t kl_model_capability_of(const kl_farm_model *m, kl_speeds speeds, uint32_t most);
uint32_t kl_model_best_of(const kl_farm_model *m, kl_speeds speeds, uint32_t most);

/* Work dealt in rounds: in each of them every worker gets one chunk, and the next before it has done the
 * last. Chunks are as large as their worker is fast. */
typedef struct kl_rounds {
    const double *part; /* part[0 … count−1] of the work and of the bytes, > 0, together 1 */
    size_t count;       /* ≥ 1 */
    double tasks;       /* in all */
    double task_sd_s;   /* σ of one task where T_c was measured */
    double answer_s;    /* the master's time for one chunk, where it is known apart from m_o; 0: it is m_o */
    bool uneven;        /* workers differ by more than their tasks do, so that they soon fall out of step */
} kl_rounds;

/* T_t(n) for several rounds; for one of equal tasks it is kl_model_time_with_s(). docs/explanation/model.md
 * derives it and says how far it is off. */
double kl_model_rounds_time_s(const kl_farm_model *m, uint32_t workers, double speed,
                              const kl_rounds *rounds);
/* The rounds DAF deals to `workers`: eq. (1) and (2) of the paper's first phase, no chunk below one task or
 * below what the master can keep up with. Fills part[], room for most ≥ 1, and gives their number. */
size_t kl_model_daf_parts(const kl_farm_model *m, double tasks, double task_mean_s, double task_sd_s,
                          uint32_t workers, double *part, size_t most);

/* What workers share, as a station: each task is there for task_s, and `servers` of them at once go on at
 * full speed; more share it. */
typedef struct kl_station {
    double task_s, servers; /* servers ≥ 1 */
} kl_station;

/* Tasks per second when each of `workers` is away for away_s between two visits: exact for visits that share
 * the station evenly, whatever their distribution. */
double kl_station_rate(const kl_station *station, double away_s, uint32_t workers);

/* What a run's tasks asked of all that its workers share. */
typedef struct kl_load {
    kl_use use;
    double task_s;     /* of one task at its worker, if nobody else were there */
    double beyond;     /* its tasks took so many times as long as that and what is shared explain */
    uint32_t workers;  /* that did the run */
    double chunks;     /* of the run */
    double answer_s;   /* the dealing thread's part, for one chunk */
    double to_workers; /* part of the bytes that goes to the workers, 0 … 1 */
    double per_byte_s; /* on the master's link to other hosts */
    bool apart;        /* the master has cores of its own */
} kl_load;

typedef enum kl_shared {
    KL_SHARED_NOTHING, /* the tasks themselves */
    KL_SHARED_CORES,
    KL_SHARED_MESSAGES, /* one of the master's threads */
    KL_SHARED_CALLBACKS,
    KL_SHARED_LINK,
} kl_shared;

typedef struct kl_limit {
    kl_shared what; /* that slows workers down most */
    double times;   /* a task takes so many times as long as alone */
    double used;    /* part of it that is busy; 0 of nothing */
    double sending; /* of cores: part of what they do that is sending and receiving */
    bool known;     /* else nothing is known of what they share */
} kl_limit;

/* Fill task_s and beyond of a load that has all the rest, of a run of elapsed_s whose tasks took task_s on
 * average. Gives the part of that in which nobody kept their workers from the cores. */
double kl_load_fit(kl_load *load, double task_s, double elapsed_s);
bool kl_load_known(const kl_load *load); /* else nothing limits */
/* With other numbers of workers than the run had; with as many, `times` is what it was. */
kl_limit kl_model_limit(const kl_load *load, uint32_t workers);
/* The least time in which what they share can do its part of the run, in so many chunks; 0: not known. */
double kl_model_shared_s(const kl_load *load, double chunks);
/* The chunks of a run that other numbers of workers would get. The load is known. */
double kl_model_chunks(const kl_load *load, uint32_t workers);
/* load.answer_s then: smaller chunks have fewer bytes. The load is known. */
double kl_model_answer_s(const kl_load *load, uint32_t workers);
const char *kl_shared_name(kl_shared what); /* "the cores of the master's host" */
kl_load kl_load_with_bytes(const kl_load *load,
                           double times); /* were messages' contents so many times as large */

/* Where the time of a run lies with probability KL_SURE, when time_s is forecast. */
static const double KL_SURE = 0.9;
typedef struct kl_interval {
    double low_s, high_s;
} kl_interval;
typedef struct kl_doubt {
    double runs;    /* σ of runs alike over their mean; 0: not known */
    uint32_t known; /* number of workers that was measured; 0: none was */
} kl_doubt;
kl_interval kl_model_interval(double time_s, const kl_doubt *doubt, uint32_t workers, const kl_limit *limit);

double kl_model_quality(double busy_s, uint32_t workers,
                        double elapsed_s); /* q = 1 − mean busy/elapsed; busy_s: of all together */
double kl_model_quality_bound(double task_mean_s, double task_sd_s,
                              uint32_t workers); /* q ≤ 1/(1 + (μ/σ)·sqrt(2/n)) */

/* Shortest time a chunk may take so that `workers` of them are kept fed by one master: the capability (10) to
 * (12) solved for T_c/n. `send_s` is the master's time per chunk (m_o or λ·bytes or both). */
double kl_model_min_chunk_s(double send_s, uint32_t workers);

/* A program that again and again works alone, then forks T tasks and waits for all (Buaklee, Tracy, Vernon,
 * Wright 2002). */
typedef struct kl_forkjoin {
    kl_curve master;     /* alone, per iteration, by the number of tasks [t_M(T)] */
    double round_trip_s; /* of a message */
    double update_s;     /* the master, for what one worker sends back [t_update] */
    double task_s;       /* on the wire, for each task */
} kl_forkjoin;

/* From the fork to the join; workers_s: the longest that one of `workers` computes [max t_W]. */
double kl_model_join_s(const kl_forkjoin *m, double tasks, uint32_t workers, double workers_s);
double kl_model_forkjoin_s(const kl_forkjoin *m, double tasks, uint32_t workers,
                           double workers_s); /* one iteration */
/* All of a program: master_s in all [t_M], n iterations, and the starting point, which has to be evaluated,
 * too: t_M + (n + 1)·join. Their table 3 follows from it where the workers were near. */
double kl_model_forkjoin_total_s(double master_s, double iterations, double join_s);

/* What is expected if work goes to workers as their present speeds demand. */
typedef struct kl_forecast {
    double rate_units_per_s; /* of all present workers */
    double left_s;           /* until everything is done, balanced perfectly */
    double low_s, high_s;    /* interval around left_s, about 95 % */
    double share_units; /* of `worker`, of what is not dealt yet: what it could do until all end together */
    double unit_s;      /* seconds per unit of `worker` */
    double free_s;      /* until `worker` has done what is queued at it */
} kl_forecast;

/* Forecast for one worker; worker = UINT32_MAX: only the totals. All 0 while nothing is known of any worker.
 */
kl_forecast kl_model_forecast(const kl_snapshot *snapshot, uint32_t worker);

/* Seconds until all that is not dealt would be done if `worker` got none of it: no sooner than one whole task
 * on the best of the others. INFINITY: there is nobody else, or nothing is known of them. */
double kl_model_end_without_s(const kl_snapshot *snapshot, uint32_t worker);

/* Seconds until all would end together if the others took part in what is queued at `worker`, and in `units`
 * besides that are at nobody. Something must be known of somebody. */
double kl_model_end_shared_s(const kl_snapshot *snapshot, uint32_t worker, double units);

/* Elapsed time of an equal split made up front, at the workers' mean speeds of this run. 0: not known. */
double kl_model_equal_split_s(const kl_snapshot *snapshot);
/* Elapsed time if every worker had computed all the time at its mean speed of this run. 0: not known. */
double kl_model_bound_s(const kl_snapshot *snapshot);

#endif
