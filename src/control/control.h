/* Public header of the folder control. The owner of a running farm uses it to read the farm's state, set its
 * tuning points, release workers, and record decisions about the farm. Without a client, the control server
 * takes no CPU time. The farm never waits for a client. The server drops a client that exceeds the limits on
 * clients, requests or message sizes. */
#ifndef KL_CONTROL_H
#define KL_CONTROL_H

#include "base/base.h"
#include "decide/decide.h"

enum {
    KL_CONTROL_VERSION = 6,
    /* greatest number of workers in the state that the server sends; workers with higher numbers are left out
     */
    KL_CONTROL_WORKERS_MOST = 64,
    KL_CONTROL_ANSWER_BYTES = 256,
    KL_CONTROL_DRAINED_MOST = 64, /* greatest number of workers in one request to release workers */
    KL_CONTROL_HOST_BYTES = 128,
    /* greatest number of hosts in the state that the server sends; further hosts are left out */
    KL_CONTROL_HOSTS_MOST = 64,
};

/* Whole numbers in the state of a farm. This list makes the struct's fields, the message, and the names in
 * JSON. Letters in brackets are symbols of the model in `docs/explanation/model.md`. */
#define KL_CONTROL_COUNTS(X)                                                                                 \
    X(run)   /* number of runs of the farm that began before the current run */                              \
    X(tasks) /* number of tasks of the current run, or of the last run if none is in progress */             \
    X(done)                                                                                                  \
    X(present) /* number of connected workers that get tasks; `resting` counts the others */                 \
    X(resting) /* number of connected workers that get no tasks at present */                                \
    X(leaving) /* number of workers that finish their task and then leave; not counted in `present` */       \
    X(measured_workers) /* number of workers in the last run that ended; 0: no run has ended yet */          \
    X(capability) /* greatest number of workers that the master can feed; UINT32_MAX: no limit; 0: not known \
                   */                                                                                        \
    X(best_workers) /* number of workers with the smallest performance index; 0: not known */                \
    X(workers_set)  /* number of active workers that the user has set; 0: not set */                         \
    X(late_task)    /* number of the task that takes far longer than usual, if late_s > 0 */                 \
    X(late_worker)  /* number of the worker that has the late task, if late_s > 0 */
/* Numbers in the state of a farm that are not whole; NAN: not known */
#define KL_CONTROL_NUMBERS(X)                                                                                \
    X(at_s)               /* seconds since the farm was opened */                                            \
    X(elapsed_s)          /* seconds since the current run began, or length of the last run */               \
    X(message_fixed_s)    /* seconds that it takes to start a message [m_o] */                               \
    X(message_per_byte_s) /* seconds for each byte of a message [λ] */                                      \
    X(answer_s)           /* seconds that the master needs to answer a request for work */                   \
    X(bytes)              /* bytes of a run's messages, in both directions [V] */                            \
    X(to_workers)         /* fraction of `bytes` that goes to workers [α] */                                \
    X(work_s)             /* seconds that all tasks of a run take on one worker of mean speed [T_c] */       \
    X(task_mean_s)        /* mean seconds of a task [μ] */                                                  \
    X(task_sd_s)          /* standard deviation of the seconds of a task [σ] */                             \
    X(master_s)           /* seconds that the master's own work in a run takes [l_m] */                      \
    X(measured_s)         /* measured seconds of the last run that ended */                                  \
    X(time_s)             /* modelled seconds of a run on the present number of active workers [T_t(n)] */   \
    X(best_time_s)        /* modelled seconds of a run on `best_workers` workers */                          \
    X(efficiency)         /* modelled efficiency of the active workers [E(n)] */                             \
    X(index)              /* performance index of the active workers; less is better [P_i(n)] */             \
    X(best_index)                                                                                            \
    X(left_s)     /* forecast: seconds until the connected workers have finished the run */                  \
    X(left_low_s) /* seconds until the run's earliest likely end; it ends between left_low_s and left_high_s \
                     with probability 90 % */                                                                \
    X(left_high_s)                                                                                           \
    X(task_s)        /* mean seconds per task of the connected workers in this run */                        \
    X(quality)       /* quality of the load balance in the last run; 0: perfect */                           \
    X(quality_bound) /* greatest value of `quality` that the policy aims at */                               \
    X(factor)        /* partition factor in use; 0: the policy has none, or still searches for one */        \
    X(late_s)        /* seconds that the late task has taken so far; 0: no task is late */                   \
    X(late_usual_s)  /* seconds that a task as heavy as the late task usually takes */

typedef enum kl_control_activity {
    KL_CONTROL_STARTING,
    KL_CONTROL_BUSY,    /* the worker has tasks in its queue */
    KL_CONTROL_IDLE,    /* the worker has no tasks and waits for some */
    KL_CONTROL_RESTING, /* the worker is connected, but gets no tasks at present */
    KL_CONTROL_LEAVING, /* the worker finishes its task and then leaves */
    KL_CONTROL_ACTIVITIES
} kl_control_activity;

typedef struct kl_control_worker {
    uint32_t worker;
    kl_control_activity activity;
    /* rate: units per second at present; busy_s: seconds that the worker was busy in this run; NAN: not
     * known */
    double rate_units_per_s, busy_s;
    uint64_t chunks, queued_tasks;
} kl_control_worker;

typedef struct kl_control_host { /* a host that has workers, or where workers were lost or released */
    char name[KL_CONTROL_HOST_BYTES];
    bool drained; /* true: a user has released the host's workers */
    /* workers: number of connected workers on the host; idle: number of these workers that have no task */
    uint32_t workers, idle;
    uint32_t working; /* number of connected workers on the host that got tasks in this run */
    uint32_t lost;    /* number of workers lost on the host since a worker of the host last got tasks */
} kl_control_host;

/* The state of a farm. Texts are cut to the size of their member, and end with a NUL. */
typedef struct kl_control_state {
    char program[64], transport[16];
    bool running;     /* true: a run is in progress */
    bool chooses;     /* true: the farm itself chooses the number of active workers */
    char policy[32];  /* name of the policy that is in use */
    char waiting[96]; /* settings that were made but are not in force yet; "": there are none */
    char decision[256];
#define KL_CONTROL_COUNT(name)  uint64_t name;
#define KL_CONTROL_NUMBER(name) double name;
    KL_CONTROL_COUNTS(KL_CONTROL_COUNT)
    KL_CONTROL_NUMBERS(KL_CONTROL_NUMBER)
#undef KL_CONTROL_COUNT
#undef KL_CONTROL_NUMBER
    uint32_t worker_count; /* number of elements of `workers`, at most KL_CONTROL_WORKERS_MOST */
    kl_control_worker workers[KL_CONTROL_WORKERS_MOST];
    uint32_t host_count;
    kl_control_host hosts[KL_CONTROL_HOSTS_MOST];
} kl_control_state;

/* Tuning points that a user sets. A tuning point whose flag …_given is false keeps its value. */
typedef struct kl_control_setting {
    bool policy_given, factor_given, workers_given;
    char policy[32];
    double factor;    /* partition factor in (0, 1]; 0: the policy chooses the factor */
    uint32_t workers; /* number of active workers; 0: the farm chooses the number */
} kl_control_setting;

/* A request to release workers: all workers of a host, or the listed workers. If neither a host nor a list
 * is given, `all` must be set, and every worker is released. */
typedef struct kl_control_drain {
    bool all; /* true: release the workers even if no other worker stays */
    char host[KL_CONTROL_HOST_BYTES];
    uint32_t worker_count; /* number of workers in the list; 0 if `host` is given */
    uint32_t workers[KL_CONTROL_DRAINED_MOST];
} kl_control_drain;

/* --- functions for the farm's process --- */

/* Functions of the farm that the server's thread calls, one at a time. None of them may wait for long. */
typedef struct kl_control_farm {
    void (*look)(void *self, kl_control_state *state);
    /* Apply all points of the setting or none of them, and write into `answer` when the setting takes
     * effect. */
    kilter_status (*set)(void *self, const kl_control_setting *setting, char answer[KL_CONTROL_ANSWER_BYTES],
                         kilter_error *error);
    /* Release all of these workers or none of them. Write into `answer` which workers leave and which stay.
     */
    kilter_status (*drain)(void *self, const kl_control_drain *drain, char answer[KL_CONTROL_ANSWER_BYTES],
                           kilter_error *error);
    /* Record a decision about the farm that another program has made. */
    kilter_status (*note)(void *self, const kl_decision *decision, kilter_error *error);
    void *self;
    const char *name; /* wanted name of the socket, "@…"; if `name` is NULL or in use, a new name is made */
} kl_control_farm;

typedef struct kl_control kl_control;

/* Open a socket that only this user may use, and start the server's thread. The socket has no file, so a
 * killed master leaves none behind. After an error (KILTER_ERR_SYSTEM, KILTER_ERR_MEMORY) there is no
 * server, but the farm works without one. */
kilter_status kl_control_open(const kl_control_farm *farm, kl_control **control, kilter_error *error);
/* Make a new name for a socket; the caller frees it. NULL: memory ran out. */
char *kl_control_new_name(void);
/* Return the name of the server's socket. For NULL, return "". */
const char *kl_control_name(const kl_control *control);
/* Tell all clients that the farm ends. Return when no callback runs any more. NULL: do nothing. */
void kl_control_close(kl_control *control);

/* --- functions for the process of the tool --- */

typedef struct kl_tuner kl_tuner; /* A tool that is attached to one farm. Only one thread may use it. */

/* Each of the functions from kl_tuner_attach() to kl_tuner_note() takes at most `patience_s`.
 * KILTER_ERR_PEER: the farm has ended or does not answer in time. KILTER_ERR_USAGE: this user may not attach,
 * or farm and tool have different versions. KILTER_ERR_INPUT: the process that answers is not a farm. */
kilter_status kl_tuner_attach(const char *name, double patience_s, kl_tuner **tuner, kilter_error *error);
void kl_tuner_detach(kl_tuner *tuner);
kilter_status kl_tuner_look(kl_tuner *tuner, kl_control_state *state, kilter_error *error);
/* kl_tuner_set() and kl_tuner_drain() also return KILTER_ERR_RANGE if the farm refuses the request; the
 * error's text is the farm's reason. */
kilter_status kl_tuner_set(kl_tuner *tuner, const kl_control_setting *setting,
                           char answer[KL_CONTROL_ANSWER_BYTES], kilter_error *error);
kilter_status kl_tuner_drain(kl_tuner *tuner, const kl_control_drain *drain,
                             char answer[KL_CONTROL_ANSWER_BYTES], kilter_error *error);
/* Record a decision about the number of jobs. The kind of the decision is KL_DECIDES_GIVE_UP or a later kind
 * of the enum.
 */
kilter_status kl_tuner_note(kl_tuner *tuner, const kl_decision *decision, kilter_error *error);
/* Return whether the farm ended normally; false: it crashed. Call this after KILTER_ERR_PEER. */
bool kl_tuner_ended(const kl_tuner *tuner);

/* Return the process number of the farm's master; 0: not known. */
int64_t kl_tuner_process(const kl_tuner *tuner);

#endif
