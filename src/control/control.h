/* Public header of the folder control. With it, the owner of a running farm reads its state, sets its
 * tuning points, releases workers, and records decisions about it. Without a client, the server costs
 * nothing. The farm never waits for a client. The server limits the number of clients, the rate of
 * requests and the size of messages, and drops a client that exceeds a limit. */
#ifndef KL_CONTROL_H
#define KL_CONTROL_H

#include "base/base.h"
#include "decide/decide.h"

enum {
    KL_CONTROL_VERSION = 6,
    /* greatest number of workers in a state; only workers with the lowest numbers are in it */
    KL_CONTROL_WORKERS_MOST = 64,
    KL_CONTROL_ANSWER_BYTES = 256,
    KL_CONTROL_DRAINED_MOST = 64, /* greatest number of workers in a state: those with the lowest numbers */
    KL_CONTROL_HOST_BYTES = 128,
    KL_CONTROL_HOSTS_MOST = 64, /* greatest number of hosts in a state; further ones are left out */
};

/* Whole numbers in the state of a farm. The list makes the struct's fields, its message, and the names in
 * JSON. Brackets hold the symbols of Cesar, Moreno, Sorribes, Luque 2006; see docs/explanation/model.md. */
#define KL_CONTROL_COUNTS(X)                                                                                 \
    X(run)   /* number of runs that began before the current run */                                          \
    X(tasks) /* tasks of the current run, or of the last run if none is in progress */                       \
    X(done)                                                                                                  \
    X(present)          /* number of connected workers, including resting ones */                            \
    X(resting)          /* connected workers that get no tasks at present */                                 \
    X(leaving)          /* workers that finish their task and then leave; not counted in `present` */        \
    X(measured_workers) /* number of workers that took part in the last run that ended; 0: no run has ended  \
                         */                                                                                  \
    X(capability) /* greatest number of workers that the master can feed; UINT32_MAX: no limit, 0: not known \
                   */                                                                                        \
    X(best_workers) /* number of workers with the smallest performance index; 0: not known */                \
    X(workers_set)  /* number of workers set by hand; 0: not set */                                          \
    X(late_task)    /* if late_s > 0: number of the task that takes far longer than usual, */                \
    X(late_worker)  /* and number of the worker that has it */
/* Other numbers in the state of a farm; NAN: not known */
#define KL_CONTROL_NUMBERS(X)                                                                                \
    X(at_s)               /* seconds since the farm was opened */                                            \
    X(elapsed_s)          /* seconds since the current run began, or length of the last run */               \
    X(message_fixed_s)    /* seconds to start a message [m_o] */                                             \
    X(message_per_byte_s) /* [λ] */                                                                         \
    X(answer_s)           /* seconds that the master needs to answer a request for work */                   \
    X(bytes)              /* bytes of a run's messages, in both directions [V] */                            \
    X(to_workers)         /* fraction of `bytes` that goes to workers [α] */                                \
    X(work_s)             /* seconds of a run's tasks on one worker of mean speed [T_c] */                   \
    X(task_mean_s)        /* [μ] */                                                                         \
    X(task_sd_s)          /* [σ] */                                                                         \
    X(master_s)           /* seconds of the master's own work in a run [l_m] */                              \
    X(measured_s)         /* seconds of the last run that ended */                                           \
    X(time_s)             /* modelled seconds of a run on the active workers [T_t(n)] */                     \
    X(best_time_s)        /* modelled seconds of a run on best_workers */                                    \
    X(efficiency)         /* modelled [E(n)] */                                                              \
    X(index)              /* performance index [P_i(n)] */                                                   \
    X(best_index)                                                                                            \
    X(left_s)     /* forecast: seconds until the present workers have done the run */                        \
    X(left_low_s) /* with a probability of 90 %, the run ends between these two times */                     \
    X(left_high_s)                                                                                           \
    X(task_s)        /* mean seconds of the present workers' tasks in this run */                            \
    X(quality)       /* quality of the last run's balance; 0: perfect */                                     \
    X(quality_bound) /* greatest `quality` that the policy aims at */                                        \
    X(factor)        /* partition factor in force; 0: the policy has none, or searches for it */             \
    X(late_s)        /* seconds that the late task has taken so far; 0: no task is late */                   \
    X(late_usual_s)  /* seconds that a task of the late task's weight usually takes */

typedef enum kl_control_activity {
    KL_CONTROL_STARTING,
    KL_CONTROL_BUSY,    /* tasks are queued at the worker */
    KL_CONTROL_IDLE,    /* the worker waits for tasks */
    KL_CONTROL_RESTING, /* the worker is connected, but gets no tasks now */
    KL_CONTROL_LEAVING, /* the worker finishes its task and then leaves */
    KL_CONTROL_ACTIVITIES
} kl_control_activity;

typedef struct kl_control_worker {
    uint32_t worker;
    kl_control_activity activity;
    double rate_units_per_s, busy_s; /* units per second now, and busy seconds in this run; NAN: not known */
    uint64_t chunks, queued_tasks;
} kl_control_worker;

typedef struct kl_control_host { /* a host that has workers, or where workers were lost or sent home */
    char name[KL_CONTROL_HOST_BYTES];
    bool drained;           /* true: a person has sent its workers home */
    uint32_t workers, idle; /* present workers, and those among them that have no task */
    uint32_t working;       /* present workers that got tasks in this run */
    uint32_t lost; /* number of workers lost there in a row, without any worker of the host getting tasks
                      between */
} kl_control_host;

/* Texts are cut to their members' sizes and end with a NUL. */
typedef struct kl_control_state {
    char program[64], transport[16];
    bool running;     /* true: a run is in progress */
    bool chooses;     /* true: the farm chooses the number of workers */
    char policy[32];  /* name of the present policy */
    char waiting[96]; /* settings that have not taken effect yet; "": there are none */
    char decision[256];
#define KL_CONTROL_COUNT(name)  uint64_t name;
#define KL_CONTROL_NUMBER(name) double name;
    KL_CONTROL_COUNTS(KL_CONTROL_COUNT)
    KL_CONTROL_NUMBERS(KL_CONTROL_NUMBER)
#undef KL_CONTROL_COUNT
#undef KL_CONTROL_NUMBER
    uint32_t worker_count; /* number of workers[], at most KL_CONTROL_WORKERS_MOST */
    kl_control_worker workers[KL_CONTROL_WORKERS_MOST];
    uint32_t host_count;
    kl_control_host hosts[KL_CONTROL_HOSTS_MOST];
} kl_control_state;

/* Tuning points that a user sets. A point that is not given keeps its value. */
typedef struct kl_control_setting {
    bool policy_given, factor_given, workers_given;
    char policy[32];
    double factor;    /* partition factor in (0, 1]; 0: the policy chooses it */
    uint32_t workers; /* number of active workers; 0: the farm chooses the number */
} kl_control_setting;

/* Workers that are to be released: all workers of a host, or the listed workers. If neither is given, `all`
 * must be set, and means every worker. */
typedef struct kl_control_drain {
    bool all; /* release them even if no other worker stays */
    char host[KL_CONTROL_HOST_BYTES];
    uint32_t worker_count; /* number of workers in the list; 0 if `host` is given */
    uint32_t workers[KL_CONTROL_DRAINED_MOST];
} kl_control_drain;

/* --- the farm's side --- */

/* Callbacks of the farm. The server's thread makes one call at a time. No callback may wait for long. */
typedef struct kl_control_farm {
    void (*look)(void *self, kl_control_state *state);
    /* Apply all points of the setting or none of them, and write into `answer` when it takes effect. */
    kilter_status (*set)(void *self, const kl_control_setting *setting, char answer[KL_CONTROL_ANSWER_BYTES],
                         kilter_error *error);
    /* Release all of these workers or none of them, and write into `answer` which leave and which stay. */
    kilter_status (*drain)(void *self, const kl_control_drain *drain, char answer[KL_CONTROL_ANSWER_BYTES],
                           kilter_error *error);
    /* Record a decision about the farm that another program has made. */
    kilter_status (*note)(void *self, const kl_decision *decision, kilter_error *error);
    void *self;
    const char *name; /* wanted name of the socket, "@…"; if it is NULL or in use, a new name is made */
} kl_control_farm;

typedef struct kl_control kl_control;

/* Open a socket that only this user may use, and start the server's thread. The socket has no file, so a
 * killed master leaves nothing behind. KILTER_ERR_SYSTEM, _MEMORY: there is no server, but the farm works
 * without one. */
kilter_status kl_control_open(const kl_control_farm *farm, kl_control **control, kilter_error *error);
char *kl_control_new_name(void); /* Make a new name; the caller frees it. NULL: memory ran out. */
const char *kl_control_name(const kl_control *control); /* Return the socket's name; "" for NULL. */
/* Tell all clients that the farm ends. Return when no callback runs any more. NULL does nothing. */
void kl_control_close(kl_control *control);

/* --- the tool's side --- */

typedef struct kl_tuner kl_tuner; /* A tool that is attached to one farm. Only one thread may use it. */

/* Each of these calls takes at most `patience_s`. KILTER_ERR_PEER: the farm has ended or does not answer in
 * time. KILTER_ERR_USAGE: this user may not attach, or farm and tool have different versions.
 * KILTER_ERR_INPUT: the process that answers is not a farm. */
kilter_status kl_tuner_attach(const char *name, double patience_s, kl_tuner **tuner, kilter_error *error);
void kl_tuner_detach(kl_tuner *tuner);
kilter_status kl_tuner_look(kl_tuner *tuner, kl_control_state *state, kilter_error *error);
/* These two calls also return KILTER_ERR_RANGE if the farm refuses; the error gives the farm's reason. */
kilter_status kl_tuner_set(kl_tuner *tuner, const kl_control_setting *setting,
                           char answer[KL_CONTROL_ANSWER_BYTES], kilter_error *error);
kilter_status kl_tuner_drain(kl_tuner *tuner, const kl_control_drain *drain,
                             char answer[KL_CONTROL_ANSWER_BYTES], kilter_error *error);
/* Record a decision about the number of jobs: KL_DECIDES_GIVE_UP or a later kind. */
kilter_status kl_tuner_note(kl_tuner *tuner, const kl_decision *decision, kilter_error *error);
/* After KILTER_ERR_PEER: return true if the farm ended normally, false if it crashed. */
bool kl_tuner_ended(const kl_tuner *tuner);

/* Return the process of the farm's master; 0: not known. */
int64_t kl_tuner_process(const kl_tuner *tuner);

#endif
