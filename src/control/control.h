/* Door of room control: the owner of a running farm looks at it, sets its tuning points and sends workers
 * home.
 *
 *   kilter tune, drain ── look, set, drain ──▶ a socket only the owner reaches ──▶ the server's thread
 *                     ◀── state, taken, refused ──                                 calls the farm
 *
 * A farm nobody looks at pays nothing. Whatever clients do, the farm neither waits for them nor stops: the
 * server answers so many, so often, with messages of bounded size, and drops who does not keep to that. */
#ifndef KL_CONTROL_H
#define KL_CONTROL_H

#include "base/base.h"

enum {
    KL_CONTROL_VERSION = 4,
    KL_CONTROL_WORKERS_MOST = 64, /* shown of a farm that has more: the first ones */
    KL_CONTROL_ANSWER_BYTES = 256,
    KL_CONTROL_DRAINED_MOST = 64, /* workers named in one request */
    KL_CONTROL_HOST_BYTES = 128,
};

/* Numbers of a farm as it is now. One list makes the struct, its message, and the names in JSON. Symbols of
 * Cesar, Moreno, Sorribes, Luque 2006 in brackets; see docs/explanation/model.md. */
#define KL_CONTROL_COUNTS(X)                                                                                 \
    X(run)   /* iterations begun before this one */                                                          \
    X(tasks) /* of this iteration, or of the last one while none goes on */                                  \
    X(done)                                                                                                  \
    X(present)          /* workers that are there, resting ones, too */                                      \
    X(resting)          /* workers that are there and not dealt any */                                       \
    X(leaving)          /* not among the present: they finish their task and go */                           \
    X(measured_workers) /* that took part in the last iteration that ended; 0: none has */                   \
    X(capability)       /* most workers the master can feed; UINT32_MAX: no limit, 0: not known */           \
    X(best_workers)     /* where the performance index is smallest; 0: not known */                          \
    X(workers_set)      /* by hand; 0: it was not */                                                         \
    X(late_task)        /* at hand for far longer than is usual, where late_s is above 0: which, */          \
    X(late_worker)      /* and at whom */
/* NAN: not known */
#define KL_CONTROL_NUMBERS(X)                                                                                \
    X(at_s)               /* since the farm was opened */                                                    \
    X(elapsed_s)          /* of this iteration, or of the last one */                                        \
    X(message_fixed_s)    /* start-up of a message [m_o] */                                                  \
    X(message_per_byte_s) /* [λ] */                                                                         \
    X(answer_s)           /* the master's time to answer one request for work */                             \
    X(bytes)              /* both ways, an iteration [V] */                                                  \
    X(to_workers)         /* part of them that goes to workers [α] */                                       \
    X(work_s)             /* of all tasks on one worker of mean speed [T_c] */                               \
    X(task_mean_s)        /* [μ] */                                                                         \
    X(task_sd_s)          /* [σ] */                                                                         \
    X(master_s)           /* the master's own time per iteration [l_m] */                                    \
    X(measured_s)         /* the last iteration that ended took this */                                      \
    X(time_s)             /* modelled time of an iteration on the active workers [T_t(n)] */                 \
    X(best_time_s)        /* and on best_workers */                                                          \
    X(efficiency)         /* modelled [E(n)] */                                                              \
    X(index)              /* performance index [P_i(n)] */                                                   \
    X(best_index)                                                                                            \
    X(quality)       /* of the last iteration's balance; 0: perfect */                                       \
    X(quality_bound) /* it need not be worse than this */                                                    \
    X(factor)        /* partition factor in force; 0: the policy has none, or searches it */                 \
    X(late_s)        /* the late task takes so long now; 0: there is none */                                 \
    X(late_usual_s)  /* and tasks of its weight usually */

typedef enum kl_control_activity {
    KL_CONTROL_STARTING,
    KL_CONTROL_BUSY,    /* tasks are queued at it */
    KL_CONTROL_IDLE,    /* it waits for tasks */
    KL_CONTROL_RESTING, /* not wanted now */
    KL_CONTROL_LEAVING, /* it finishes its task and goes */
    KL_CONTROL_ACTIVITIES
} kl_control_activity;

typedef struct kl_control_worker {
    uint32_t worker;
    kl_control_activity activity;
    double rate_units_per_s, busy_s; /* now, and in this iteration; NAN: not known */
    uint64_t chunks, queued_tasks;
} kl_control_worker;

/* Text is cut to what fits, and always ended. */
typedef struct kl_control_state {
    char program[64], transport[16];
    bool running;     /* an iteration goes on */
    bool chooses;     /* the farm chooses the number of workers */
    char policy[32];  /* in force */
    char waiting[96]; /* what was set by hand and is not in force yet; "" */
    char decision[256];
#define KL_CONTROL_COUNT(name)  uint64_t name;
#define KL_CONTROL_NUMBER(name) double name;
    KL_CONTROL_COUNTS(KL_CONTROL_COUNT)
    KL_CONTROL_NUMBERS(KL_CONTROL_NUMBER)
#undef KL_CONTROL_COUNT
#undef KL_CONTROL_NUMBER
    uint32_t worker_count; /* of workers[], at most KL_CONTROL_WORKERS_MOST */
    kl_control_worker workers[KL_CONTROL_WORKERS_MOST];
} kl_control_state;

/* Tuning points set by hand. What is not given stays as it is. */
typedef struct kl_control_setting {
    bool policy_given, factor_given, workers_given;
    char policy[32];
    double factor;    /* in (0, 1]; 0: left to the policy again */
    uint32_t workers; /* 0: left to the farm again */
} kl_control_setting;

/* Workers to be sent home: those of a host, or those listed; with neither, and `all`, everyone. */
typedef struct kl_control_drain {
    bool all; /* also when nobody else stays */
    char host[KL_CONTROL_HOST_BYTES];
    uint32_t worker_count; /* of workers[]; 0 with a host */
    uint32_t workers[KL_CONTROL_DRAINED_MOST];
} kl_control_drain;

/* --- the farm's side --- */

/* Called in the server's thread, one call at a time; none may wait for long. */
typedef struct kl_control_farm {
    void (*look)(void *self, kl_control_state *state);
    /* Takes the setting as a whole or not at all, and says in `answer` when it takes effect. */
    kilter_status (*set)(void *self, const kl_control_setting *setting, char answer[KL_CONTROL_ANSWER_BYTES],
                         kilter_error *error);
    /* Likewise; `answer` says who leaves and who stays. */
    kilter_status (*drain)(void *self, const kl_control_drain *drain, char answer[KL_CONTROL_ANSWER_BYTES],
                           kilter_error *error);
    void *self;
} kl_control_farm;

typedef struct kl_control kl_control;

/* Open the socket, which takes this user alone, and start the server's thread. It is in no folder, so that a
 * killed master leaves nothing. KILTER_ERR_SYSTEM, _MEMORY: there is no server, and nothing else is lost. */
kilter_status kl_control_open(const kl_control_farm *farm, kl_control **control, kilter_error *error);
const char *kl_control_name(const kl_control *control); /* the socket's; "" for NULL */
/* Tells all who are attached. Returns when no callback runs any more. NULL does nothing. */
void kl_control_close(kl_control *control);

/* --- the tool's side --- */

typedef struct kl_tuner kl_tuner; /* attached to one farm; used by one thread */

/* All of these take at most `patience_s`. KILTER_ERR_PEER: the farm is not running any more, or does not
 * answer in time; KILTER_ERR_USAGE: this user may not look, or farm and tool are of different versions;
 * KILTER_ERR_INPUT: what answers there is no farm. */
kilter_status kl_tuner_attach(const char *name, double patience_s, kl_tuner **tuner, kilter_error *error);
void kl_tuner_detach(kl_tuner *tuner);
kilter_status kl_tuner_look(kl_tuner *tuner, kl_control_state *state, kilter_error *error);
/* These two KILTER_ERR_RANGE too: the farm refuses, and says why. */
kilter_status kl_tuner_set(kl_tuner *tuner, const kl_control_setting *setting,
                           char answer[KL_CONTROL_ANSWER_BYTES], kilter_error *error);
kilter_status kl_tuner_drain(kl_tuner *tuner, const kl_control_drain *drain,
                             char answer[KL_CONTROL_ANSWER_BYTES], kilter_error *error);
/* After KILTER_ERR_PEER: did the farm end in order, and not by a crash? */
bool kl_tuner_ended(const kl_tuner *tuner);

#endif
