/* Public header of the folder model: forecast the time that a run would take with other choices. All
 * functions are pure. docs/explanation/model.md has the formulas. */
#ifndef KL_MODEL_H
#define KL_MODEL_H

#include "measure/measure.h"

/* A balanced master/worker iteration (César, Moreno, Sorribes, Luque 2006). Square brackets hold the symbols
 * of this paper. */
typedef struct kl_farm_model {
    kl_linear message; /* start-up time of a message [m_o, s] and time per byte [λ, s] */
    double work_s;     /* seconds that all tasks would take on one worker [T_c] */
    double bytes;      /* bytes of all messages to and from the workers [V] */
    double to_workers; /* part of `bytes` that goes to the workers [α], 0 … 1 */
    double master_s;   /* seconds that the master itself needs per iteration [l_m] */
    bool synchronous;  /* true: a send returns only when the message has arrived */
    /* true: each worker has its own link, so bytes for one worker do not delay bytes for another */
    bool own_links;
} kl_farm_model;

/* Return the largest number of workers that the master can keep busy, by equations (10) to (12) of the paper;
 * UINT32_MAX if messages cost nothing. */
uint32_t kl_model_capability(const kl_farm_model *m);

/* The next functions assume that each worker gets work and bytes in proportion to its speed, so that all
 * workers end together. The argument `speed` (above 0) is the sum of the workers' speeds. The worker on which
 * work_s was measured has speed 1. These functions use T_c/speed where expressions (7) to (9) of the paper
 * have T_c/n. */
/* Return the seconds of an iteration [T_t]. */
double kl_model_time_with_s(const kl_farm_model *m, uint32_t workers, double speed);
/* Return the parallel efficiency of an iteration, E = T_c/(speed·T_t). */
double kl_model_efficiency_with(const kl_farm_model *m, uint32_t workers, double speed);
/* Return the performance index P_i = T_t/E of equation (13). The best number of workers has the lowest
 * index. */
double kl_model_index_with(const kl_farm_model *m, uint32_t workers, double speed);

/* of_fastest(self, n) returns the sum of the speeds of the n fastest workers, n ≥ 1. The worker on which
 * work_s was measured has speed 1. */
typedef struct kl_speeds {
    double (*of_fastest)(const void *self, uint32_t n);
    const void *self;
} kl_speeds;

/* Return speeds from an array: sums[n − 1] is the sum of the n greatest speeds. The array must stay valid. */
kl_speeds kl_speeds_listed(const double *sums);
static inline double kl_speed_of(kl_speeds speeds, uint32_t n) {
    return speeds.of_fastest(speeds.self, n);
}
/* Find the number in 1 … most for which a function has its lowest value. The function must first fall and
 * then rise. Among equal values, the smallest number is returned. The function is called O(log most) times.
 */
typedef struct kl_index {
    double (*of)(const void *self, uint32_t n);
    const void *self;
} kl_index;
uint32_t kl_model_lowest(const kl_index *index, uint32_t most);
/* Choose a number of workers from 1 to `most`, if the fastest workers are used first. The function
 * kl_model_capability_of() is kl_model_capability() for workers of different speeds. The function
 * kl_model_best_of() tries the numbers up to this capability, and returns the number with the lowest index
 * P_i. Both functions call of_fastest() O(log most) times. */
uint32_t kl_model_capability_of(const kl_farm_model *m, kl_speeds speeds, uint32_t most);
uint32_t kl_model_best_of(const kl_farm_model *m, kl_speeds speeds, uint32_t most);

/* Work that is dealt in rounds. In each round every worker gets one chunk, before it has finished its chunk
 * of the previous round. The size of a chunk is proportional to its worker's speed. */
typedef struct kl_rounds {
    const double *part; /* part[i]: part of the work, and of the bytes, that round i deals, for i = 0 …
                           count−1; each part is > 0, and all parts add up to 1 */
    size_t count;       /* number of rounds, at least 1 */
    double tasks;       /* number of tasks in all rounds */
    double task_sd_s;   /* standard deviation of a task's seconds, on the worker on which T_c was measured */
    double answer_s;    /* seconds that the master works for one chunk; 0: not known, then m_o is used */
    bool uneven; /* true: the workers' speeds differ by more than the times of tasks do, so the workers soon
                    get out of step */
} kl_rounds;

/* Return T_t, the seconds of an iteration, for work dealt in rounds. With one round of equal tasks it equals
 * kl_model_time_with_s(). docs/explanation/model.md derives it and gives its error. */
double kl_model_rounds_time_s(const kl_farm_model *m, uint32_t workers, double speed,
                              const kl_rounds *rounds);
/* Fill part[] with the rounds that the policy DAF deals to `workers`, by DAF's equations (1) and (2). Return
 * the number of rounds, at most `most`. No chunk is smaller than a task, or shorter than
 * kl_model_min_chunk_s(). variation: standard deviation of a task's time, divided by its mean. */
size_t kl_model_daf_parts(const kl_farm_model *m, double tasks, double variation, uint32_t workers,
                          double *part, size_t most);

/* A resource that workers share. Each task uses it for task_s. At most `servers` tasks use it at full speed
 * at the same time. If there are more tasks, they share it evenly. */
typedef struct kl_station {
    double task_s, servers; /* servers: number of tasks that the resource serves at full speed, at least 1 */
} kl_station;

/* Return the tasks per second that a station serves, if each worker spends away_s between two uses of the
 * station. The result is exact if tasks share the station evenly, whatever the distribution of their times.
 */
double kl_station_rate(const kl_station *station, double away_s, uint32_t workers);

/* How much the tasks of a run use each shared resource. */
typedef struct kl_load {
    kl_use use;
    double task_s;     /* seconds that one task would take if its worker were alone on the machine */
    double wait_s;     /* seconds per task for which a worker waits for something that is not in the model */
    double beyond;     /* measured time of a task, divided by the time that the model computes from task_s,
                          wait_s and sharing */
    uint32_t workers;  /* number of workers in the measured run */
    double chunks;     /* number of chunks in the measured run */
    double answer_s;   /* seconds that the dealing thread of the master works for one chunk */
    double to_workers; /* part of all bytes that goes to the workers, 0 … 1 */
    double per_byte_s; /* seconds per byte on a link to another host that nobody else uses */
    /* true: each worker has its own link, and the master's link can carry all of them at full speed */
    bool own_links;
    bool apart; /* true: the master has cores that no worker uses */
    bool even;  /* true: the work of threads on the master's host is known to be divided evenly over its cores
                 */
    /* CPU seconds that a sender, and also a receiver, needs for a byte of a message within the master's host;
     * 0: not known */
    double copy_s;
    double near_s; /* seconds until a small message within the master's host arrives */
    /* CPU seconds of the master for a chunk of one task; woken_s: if the master slept until the message came;
     * awake_s: if the master was awake; 0: not known */
    double woken_s, awake_s;
} kl_load;

typedef enum kl_shared {
    KL_SHARED_NOTHING, /* no resource is a limit, so a task takes task_s + wait_s */
    KL_SHARED_CORES,
    KL_SHARED_CORE,     /* the core of the master's busiest thread, which workers use, too */
    KL_SHARED_MESSAGES, /* the busiest of the master's threads that send, receive or deal */
    KL_SHARED_CALLBACKS,
    KL_SHARED_LINK,  /* the link of the master's host */
    KL_SHARED_LINKS, /* the links of the workers' hosts, one link for each worker */
} kl_shared;

typedef struct kl_limit {
    kl_shared what; /* the resource that slows the workers most */
    double times;   /* ratio of a task's time to the time that it would take alone */
    double used;    /* part of this resource that is in use; 0: no resource is a limit */
    double sending; /* part of all CPU time that is spent on sending and receiving */
    /* factor by which tasks take longer on a machine whose switches between many processes are dear; below 1:
     * tasks take less time, because there are fewer workers than in the measured run; 0: not known, as 1 */
    double dearest;
    bool known; /* false: nothing is known about shared resources, so the model sets no limit */
} kl_limit;

/* Set task_s, wait_s, beyond, own_links and even of a load whose other fields are set. The run took
 * elapsed_s, and its tasks took task_s on average. The cost per_byte_s is lowered if the link could not have
 * carried the run's bytes at this cost. Return the part of task_s in which the workers had their cores for
 * themselves. */
double kl_load_fit(kl_load *load, double task_s, double elapsed_s);
/* Return whether enough is known for kl_model_limit() to find a limit. */
bool kl_load_known(const kl_load *load);
/* Return the resource that limits the run with this number of workers. For the number of workers in the
 * measured run, `times` is the measured value. */
kl_limit kl_model_limit(const kl_load *load, uint32_t workers);
/* Return the part of the cost of messages that does not depend on their size. bytes: bytes of all messages
 * together; messages: number of messages. */
double kl_message_fixed_part(double bytes, double messages);
/* Return the least seconds in which the shared resources can do the run's tasks in this number of chunks; 0:
 * not known. */
double kl_model_shared_s(const kl_load *load, double chunks);
/* Return the number of chunks that the run would have with this number of workers. The load must be known. */
double kl_model_chunks(const kl_load *load, uint32_t workers);
/* Return the value of answer_s for this number of workers, which depends on the size of chunks. The load must
 * be known. */
double kl_model_answer_s(const kl_load *load, uint32_t workers);
/* Return the CPU seconds per task that this number of workers saves, compared with the measured run. More
 * workers save time, because they keep the cores awake. Below 0: fewer workers lose time, because more cores
 * fall asleep. */
double kl_model_roused_s(const kl_load *load, uint32_t workers);
/* Return a name of the resource, such as "the cores of the master's host". */
const char *kl_shared_name(kl_shared what);
/* Return the load that the run would have if every message's content were larger by the factor `times`. */
kl_load kl_load_with_bytes(const kl_load *load, double times);

/* An interval that contains the time of a run with the probability KL_SURE. */
static const double KL_SURE = 0.9;
typedef struct kl_interval {
    double low_s, high_s;
} kl_interval;
typedef struct kl_doubt {
    double runs;    /* standard deviation of the times of equal runs, divided by their mean; 0: not known */
    uint32_t known; /* number of workers in the measured run; 0: no run was measured */
} kl_doubt;
kl_interval kl_model_interval(double time_s, const kl_doubt *doubt, uint32_t workers, const kl_limit *limit);

/* Return q = 1 − mean busy time / elapsed time, which is 0 in perfect balance. busy_s: busy time of all
 * workers together. */
double kl_model_quality(double busy_s, uint32_t workers, double elapsed_s);
/* Return the upper bound 1/(1 + (μ/σ)·sqrt(2/n)) of q, for n workers and tasks with mean μ and standard
 * deviation σ. */
double kl_model_quality_bound(double task_mean_s, double task_sd_s, uint32_t workers);

/* Return the seconds of the shortest chunks with which one master can keep `workers` busy. Expressions (10)
 * to (12) give the number n of workers that a master can keep busy. Here they are solved for T_c/n. send_s:
 * the master's time for sending a chunk (m_o, λ·bytes, or both). */
double kl_model_min_chunk_s(double send_s, uint32_t workers);

/* A program that repeats two steps: the master works alone, then it starts T tasks and waits until all have
 * ended (Buaklee, Tracy, Vernon, Wright 2002). Square brackets hold the symbols of this paper. */
typedef struct kl_forkjoin {
    /* seconds that the master works alone in an iteration, as a function of the number of tasks [t_M(T)] */
    kl_curve master;
    double round_trip_s; /* seconds from sending a message until its answer arrives */
    double update_s;     /* seconds that the master needs for the results of one worker [t_update] */
    double task_s;       /* seconds that each task takes on the link */
} kl_forkjoin;

/* Return the seconds from the start of the tasks to the end of the last one. Argument workers_s: compute time
 * of the worker with the most work [max t_W]. */
double kl_model_join_s(const kl_forkjoin *m, double tasks, uint32_t workers, double workers_s);
/* Return the seconds of one iteration of a fork-join program. */
double kl_model_forkjoin_s(const kl_forkjoin *m, double tasks, uint32_t workers, double workers_s);
/* Return the seconds of a whole fork-join program with n iterations, t_M + (n + 1)·join. master_s [t_M]: sum
 * over the n iterations. The program also evaluates its starting point, which takes one more join. If all
 * workers are near the master, the results are the values of table 3 of the paper. */
double kl_model_forkjoin_total_s(double master_s, double iterations, double join_s);

/* A forecast for work dealt in proportion to the workers' present speeds. */
typedef struct kl_forecast {
    double rate_units_per_s; /* units per second of all present workers together */
    double left_s;           /* seconds until all work is done, in perfect balance */
    double low_s, high_s;    /* interval that contains the time left with a probability of about 95 % */
    /* units of the work not dealt yet that `worker` should get, so that all workers end at the same time */
    double share_units;
    double unit_s; /* seconds per unit of this worker */
    double free_s; /* seconds until this worker has finished its queue */
} kl_forecast;

/* --- time_left.c: an interval for the time that is left --- */

typedef struct kl_seen_task { /* a task that has ended */
    double unit_s;            /* seconds that the task took, per unit of its work */
    uint32_t worker;          /* index of its worker in kl_left_ask.workers; UINT32_MAX: the worker is gone */
} kl_seen_task;

typedef struct kl_left_worker {
    uint64_t queued; /* number of tasks that the worker has got and not reported as done */
    double silent_s; /* seconds since the worker's last report or request, or since it got a task while its
                        queue was empty, whichever is shorter; 0: the queue is empty */
    double task_s;   /* least number of seconds for which its present task has run */
} kl_left_worker;

typedef struct kl_left_ask {
    const kl_seen_task *seen; /* [seen_count] the last tasks that have ended, in the order of their ends */
    uint32_t seen_count;
    const kl_left_worker *workers; /* [count] the workers that are present */
    uint32_t count;
    uint64_t tasks;    /* number of tasks that are not done, including tasks that workers have got */
    double task_units; /* mean work of a task that is not done, in units */
    /* length of the longest chain of tasks in which each task waits for the previous one; 0: there is no
     * chain */
    uint64_t chain;
    double part;   /* probability with which the interval must contain the end of the run, such as 0.9 */
    uint64_t seed; /* seed of the random numbers; equal seeds give equal intervals */
} kl_left_ask;

/* The run ends between low_s and high_s with the probability kl_left_ask.part, and before middle_s with
 * probability 1/2. This holds if the remaining tasks resemble those that have ended, and if speeds do not
 * change. */
typedef struct kl_left {
    double low_s, middle_s, high_s;
} kl_left;

/* Forecast the seconds until all tasks are done. Return false without a forecast if no task has ended, no
 * worker is present, or memory ran out. */
bool kl_model_time_left(const kl_left_ask *ask, kl_left *left);

/* Return the forecast for a run. Its last three values are about `worker`; if this is UINT32_MAX, they are 0.
 * All values are 0 while no worker's rate is known. */
kl_forecast kl_model_forecast(const kl_snapshot *snapshot, uint32_t worker);
/* Return only unit_s and free_s of this forecast; all other values are 0. This takes far less time, because
 * it reads no other worker. */
kl_forecast kl_model_worker_forecast(const kl_snapshot *snapshot, uint32_t worker);

/* Return the seconds until the work that is not dealt yet is done, if `worker` gets none of it. 0: all work
 * is dealt; INFINITY: no other worker could do it. */
double kl_model_end_without_s(const kl_snapshot *snapshot, uint32_t worker);

/* Return the seconds until all workers end together. The forecast assumes that the workers share the work not
 * dealt yet, the queue of `worker`, and `units` of work that no worker has. At least one rate must be
 * known. */
double kl_model_end_shared_s(const kl_snapshot *snapshot, uint32_t worker, double units);

/* Return the seconds that the run would have taken if every worker had got the same amount of work. The run
 * would then have ended with the slowest worker. 0: not known. */
double kl_model_equal_split_s(const kl_snapshot *snapshot);
/* Return the seconds that the run would have taken if no worker had ever waited. Every worker then computes
 * at its mean speed in this run. 0: not known. */
double kl_model_bound_s(const kl_snapshot *snapshot);

/* Return the mean seconds between failures of a program that has run for ran_s in total. Before the first
 * failure, this is at least a day. */
double kl_model_between_failures_s(double ran_s, uint64_t failures);
/* Return the interval between two checkpoints that loses the least time: √(2·C·M) seconds. C: seconds that a
 * checkpoint costs the program; M: mean seconds between failures. The formula is from Young 1974, "A first
 * order approximation to the optimum checkpoint interval". */
double kl_model_checkpoint_s(double cost_s, double between_failures_s);
/* Return the part of the time that is lost to checkpoints and to repeated work: C/interval + interval/(2M).
 * C: cost_s, the cost of a checkpoint; M: between_failures_s. */
double kl_model_lost_part(double interval_s, double cost_s, double between_failures_s);

#endif
